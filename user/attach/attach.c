// SPDX-License-Identifier: Apache-2.0
#include "attach/attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attach/backend.h"
#include "attach/stats.h"
#include "base/buf.h"
#include "mxbpf.skel.h"

#define OPEN_BATCH	 512
#define RING_BYTES_STATS (64u << 10)

/* When a cut is judged not to hold: so many failures, and one in so many entries. */
#define CUT_LOST_MIN	 10
#define CUT_LOST_PART	 1000
#define CUT_FOREIGN_MIN	 100
#define CUT_FOREIGN_PART 10

#define CUT_CHECKS_BYTES (MXBPF_FUNCS_MAX * sizeof(struct mxbpf_cut_check))

/* A program variant: all sites whose rows are equal. */
struct variant {
	const struct mxbpf_row *row;
	struct bpf_program *prog;
};

struct att_link {
	pid_t tgid;
	int fd;
	bool marks; /* of ends of iterations */
};

struct att {
	struct mxbpf_bpf *skel;
	const struct att_backend *backend;
	struct variant variants[MXBPF_ROWS_MAX];
	unsigned nvariants;
	struct buf links; /* of struct att_link */
	bool less;	  /* but for ends of iterations nothing is attached now */
	struct ring_buffer *marks;
	struct bpf_link *exit_link, *exec_link;
	struct mxbpf_thread *threads; /* the map, shared with the kernel */
	size_t threads_bytes;
	struct mxbpf_cut_check *cut_checks; /* likewise, by function */
	bool sees_raises;		    /* exceptions are among what is probed */
	uint32_t ring_bytes;
	struct stats stats;
};

static const struct plan_site *sites_of(const struct plan *p, size_t *n)
{
	*n = buf_count(&p->sites, struct plan_site);
	return (const struct plan_site *)p->sites.data;
}

static int choose_backend(struct att *a, const struct plan *p, const char *name, struct err *e)
{
	const struct att_backend *b = att_pick(name, e);
	size_t n;

	if (!b)
		return e->code;
	sites_of(p, &n);
	if (b->probes_max && n > b->probes_max)
		return err_set(
			e, ERR_PRIVILEGE, -E2BIG,
			"%zu probes are more than the %u that %s can attach: choose fewer with --probes, or use a "
			"kernel with uprobe_multi (Linux 6.6 or later)",
			n, b->probes_max, b->name);
	a->backend = b;
	return 0;
}

static struct variant *variant_of(struct att *a, const struct mxbpf_row *row)
{
	unsigned i;

	for (i = 0; i < a->nvariants; i++)
		if (!memcmp(a->variants[i].row, row, sizeof(*row)))
			return &a->variants[i];
	return NULL;
}

/* One program for each different row; the row becomes its constant. */
static int choose_program(struct att *a, const struct mxbpf_row *row, struct err *e)
{
	struct variant *v = &a->variants[a->nvariants];
	char name[32];

	if (variant_of(a, row))
		return 0;
	if (a->nvariants == MXBPF_ROWS_MAX)
		return err_set(e, ERR_RUNTIME, -E2BIG, "more than %d kinds of probes", MXBPF_ROWS_MAX);
	v->row = row;
	snprintf(name, sizeof(name), "on_probe_%u", a->nvariants);
	v->prog = bpf_object__find_program_by_name(a->skel->obj, name);
	bpf_program__set_autoload(v->prog, true);
	bpf_program__set_expected_attach_type(v->prog, (enum bpf_attach_type)a->backend->attach_type);
	memcpy((void *)&a->skel->rodata->cfg_rows[a->nvariants], row, sizeof(*row));
	a->sees_raises |= row->action == MXBPF_ACT_RAISE;
	a->nvariants++;
	return 0;
}

static int choose_programs(struct att *a, const struct plan *p, struct err *e)
{
	const struct mxbpf_row *last = NULL;
	const struct plan_site *sites;
	size_t i, n;
	int err = 0;

	sites = sites_of(p, &n);
	for (i = 0; !err && i < n; i++) {
		a->skel->rodata->cfg_endless |= sites[i].row->end == MXBPF_END_NEXT;
		err = sites[i].row == last ? 0 : choose_program(a, sites[i].row, e);
		last = sites[i].row;
	}
	/* Those that come later find their programs loaded. */
	for (i = 0; !err && i < p->nprobes; i++)
		if (p->probes[i].wanted && p->probes[i].row->each_lib) {
			err = choose_program(a, &p->rows[i], e);
			err = err ? err : choose_program(a, &p->endless[i], e);
		}
	return err;
}

int att_reaches(pid_t tgid, struct err *e)
{
	__u64 dev = 0, ino = 0;
	struct stat its;
	char path[64];

	backend_namespace(&dev, &ino);
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", tgid);
	if (!ino || stat(path, &its) || ino == its.st_ino)
		return 0;
	return err_set(e, ERR_PRIVILEGE, -ENOTSUP,
		       "process %d is in another pid namespace than mxbpf, which is in one itself: run mxbpf on "
		       "the host, or inside that container",
		       tgid);
}

/* BPF knows the threads of a process by the numbers of its own pid namespace. */
static int choose_namespace(struct att *a, pid_t tgid, struct err *e)
{
	int err = att_reaches(tgid, e);

	if (!err)
		backend_namespace(&a->skel->rodata->cfg_pidns_dev, &a->skel->rodata->cfg_pidns_ino);
	return err;
}

/* What only a detail needs is as small as a map can be without it. */
static void choose_sizes(struct att *a, const struct plan *p, unsigned details)
{
	struct bpf_map *of_args[] = {a->skel->maps.func_args, a->skel->maps.arg_scratch, a->skel->maps.tensors,
				     a->skel->maps.args};
	const uint32_t first_off = p->tensor_keys_off + 8 - sizeof(((struct mxbpf_arg_scratch *)NULL)->impl);
	size_t i;

	bpf_map__set_max_entries(a->skel->maps.calls, a->ring_bytes);
	for (i = 0; i < sizeof(of_args) / sizeof(of_args[0]) && !(details & MXBPF_DETAIL_ARGS); i++)
		bpf_map__set_max_entries(of_args[i], 1);
	a->skel->rodata->cfg_tensor_keys_off = p->tensor_keys_off;
	a->skel->rodata->cfg_tensor_storage_word =
		p->tensor_storage_off ? (p->tensor_storage_off - first_off) / 8 : MXBPF_NO_STORAGE;
}

static int fill_args(struct att *a, const struct plan *p, unsigned details)
{
	int fd = bpf_map__fd(a->skel->maps.func_args);
	__u32 i, n = details & MXBPF_DETAIL_ARGS ? (__u32)buf_count(&p->args, struct mxbpf_func_args) : 0;

	for (i = 0; i < n && i < MXBPF_FUNCS_MAX; i++)
		if (bpf_map_update_elem(fd, &i, buf_at(&p->args, struct mxbpf_func_args, i), BPF_ANY))
			return -errno;
	return 0;
}

static int fill_names(struct att *a, const struct plan *p)
{
	int fd = bpf_map__fd(a->skel->maps.func_names);
	__u32 i, func;

	for (i = 0; i < buf_count(&p->funcs, uint64_t); i++) {
		func = p->first_func + i;
		if (func < MXBPF_FUNCS_MAX && bpf_map_update_elem(fd, &func, buf_at(&p->funcs, uint64_t, i), BPF_ANY))
			return -errno;
	}
	return 0;
}

static int fill_callers(struct att *a, const struct plan *p)
{
	int fd = bpf_map__fd(a->skel->maps.callers);
	size_t i;

	for (i = 0; i < buf_count(&p->callers, struct plan_caller); i++) {
		const struct plan_caller *c = buf_at(&p->callers, struct plan_caller, i);

		if (bpf_map_update_elem(fd, &c->return_va, &c->cookie, BPF_ANY))
			return -errno;
	}
	return 0;
}

static int fill_maps(struct att *a)
{
	int slots = bpf_map__fd(a->skel->maps.free_slots);
	__u32 slot;

	for (slot = MXBPF_THREADS_MAX - 1; slot > 0; slot--) /* slot 0 belongs to no thread */
		if (bpf_map_update_elem(slots, NULL, &slot, BPF_ANY))
			return -errno;
	a->threads_bytes = MXBPF_THREADS_MAX * sizeof(struct mxbpf_thread);
	a->threads = mmap(NULL, a->threads_bytes, PROT_READ, MAP_SHARED, bpf_map__fd(a->skel->maps.threads), 0);
	if (a->threads == MAP_FAILED) {
		a->threads = NULL;
		return -errno;
	}
	a->cut_checks = mmap(NULL, CUT_CHECKS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			     bpf_map__fd(a->skel->maps.cut_checks), 0);
	if (a->cut_checks == MAP_FAILED) {
		a->cut_checks = NULL;
		return -errno;
	}
	return 0;
}

/* What only those pay for who asked for it. */
static void choose_details(struct att *a, const struct att_opts *o)
{
	a->skel->rodata->cfg_details = (__u8)o->details;
	if (!(o->details & MXBPF_DETAIL_STACK))
		return;
	memcpy((void *)&a->skel->rodata->cfg_python, o->python, sizeof(*o->python));
	bpf_map__set_max_entries(a->skel->maps.stack_rooms, MXBPF_THREADS_MAX);
	bpf_map__set_max_entries(a->skel->maps.stacks, MXBPF_STACKS_MAX);
}

static int on_mark(void *ctx, void *data, size_t size)
{
	return 0;
}

static int open_marks(struct att *a, unsigned iterations)
{
	a->skel->bss->sampling.each = iterations;
	a->less = true;
	a->marks = ring_buffer__new(bpf_map__fd(a->skel->maps.marks), on_mark, NULL, NULL);
	return a->marks ? 0 : -errno;
}

int att_load(const struct plan *p, pid_t tgid, const struct att_opts *o, struct att **out, struct err *e)
{
	struct att *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (!o->verbose)
		backend_quiet();
	a->ring_bytes = o->ring_bytes		     ? o->ring_bytes
			: o->stats == MXBPF_STATS_ON ? RING_BYTES_STATS
						     : MXBPF_RING_BYTES;
	a->stats.rows_fd = a->stats.mems_fd = -1;
	err = choose_backend(a, p, o->backend, e);
	if (err)
		goto fail;
	a->skel = mxbpf_bpf__open();
	if (!a->skel) {
		err = backend_load_failed(-errno, e);
		goto fail;
	}
	err = choose_programs(a, p, e);
	if (!err)
		err = choose_namespace(a, tgid, e);
	if (err)
		goto fail;
	memcpy((void *)a->skel->rodata->cfg_hidden, p->hidden, sizeof(p->hidden));
	a->skel->rodata->cfg_wake_bytes = a->ring_bytes / 4;
	choose_details(a, o);
	stats_choose(a->skel, o->stats);
	choose_sizes(a, p, o->details);
	bpf_program__set_autoload(a->skel->progs.on_thread_exit, true);
	bpf_program__set_autoload(a->skel->progs.on_thread_exec, true);
	err = mxbpf_bpf__load(a->skel);
	if (!err)
		err = fill_maps(a);
	if (!err)
		err = stats_open(&a->stats, a->skel, o->stats_rows);
	if (!err)
		err = fill_names(a, p);
	if (!err)
		err = fill_callers(a, p);
	if (!err && o->iterations)
		err = open_marks(a, o->iterations);
	if (!err)
		err = fill_args(a, p, o->details);
	if (err) {
		err = backend_load_failed(err, e);
		goto fail;
	}
	*out = a;
	return 0;
fail:
	att_free(a);
	return err;
}

static int attach_failed(int err, const struct tgt_lib *lib, uint32_t n, pid_t tgid, struct err *e)
{
	if (err == -ESRCH)
		return err_set(e, ERR_TARGET, err, "process %d exited while probes were being attached", tgid);
	if (err == -EPERM || err == -EACCES)
		return err_set(e, ERR_PRIVILEGE, err,
			       "attaching to %s is not permitted: run with sudo, or with CAP_BPF, CAP_PERFMON and "
			       "CAP_SYS_PTRACE",
			       lib->path);
	return err_set(e, ERR_RUNTIME, err, "attaching %u probes to %s failed: %s", n, lib->path, strerror(-err));
}

/* All sites of a variant in one library at once. done[i]: site i is attached or stands in `offs`. */
static int attach_link(struct att *a, const struct variant *v, const struct plan *p, bool *done, uint64_t *offs,
		       pid_t tgid, struct err *e)
{
	const struct tgt_lib *lib = NULL;
	const struct plan_site *sites;
	uint64_t *cookies;
	uint32_t n = 0;
	size_t i, nsites;
	struct att_link *links;
	int *fds, made, k;

	sites = sites_of(p, &nsites);
	cookies = offs + nsites;
	for (i = 0; i < nsites; i++) {
		if (done[i] || (lib && sites[i].lib != lib) || memcmp(sites[i].row, v->row, sizeof(*v->row)))
			continue;
		done[i] = true;
		lib = sites[i].lib;
		offs[n] = sites[i].off;
		cookies[n++] = sites[i].cookie;
	}
	if (!n)
		return 0;
	fds = calloc(n, sizeof(*fds));
	links = fds ? buf_add(&a->links, n * sizeof(*links)) : NULL;
	if (!links) {
		free(fds);
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	}
	made = a->backend->attach(bpf_program__fd(v->prog), lib->open_path, offs, cookies, n, tgid, fds);
	for (k = 0; k < made; k++)
		links[k] = (struct att_link){tgid, fds[k], v->row->mark[0]};
	a->links.len -= (n - (made > 0 ? (size_t)made : 0)) * sizeof(*links); /* there may be fewer than sites */
	free(fds);
	return made < 0 ? attach_failed(made, lib, n, tgid, e) : 1;
}

static int attach_sites(struct att *a, const struct plan *p, pid_t tgid, bool marks, bool rest, struct err *e)
{
	const struct plan_site *sites;
	size_t n;
	uint64_t *offs;
	bool *done;
	unsigned i;
	int ret = 0;

	sites = sites_of(p, &n);
	offs = calloc(2 * n + 1, sizeof(*offs));
	done = calloc(n + 1, sizeof(*done));
	if (!offs || !done)
		ret = err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	for (i = 0; !ret && i < n; i++)
		done[i] = sites[i].row->mark[0] ? !marks : !rest;
	for (i = 0; ret >= 0 && i < a->nvariants; i++) {
		do
			ret = attach_link(a, &a->variants[i], p, done, offs, tgid, e);
		while (ret > 0);
	}
	for (i = 0; !ret && i < n; i++)
		if (!done[i])
			ret = err_set(e, ERR_RUNTIME, -ENOTSUP,
				      "the libraries that are mapped beside %s are others than in the first process",
				      p->lib->path);
	free(offs);
	free(done);
	return ret;
}

int att_attach(struct att *a, const struct plan *p, const struct mxbpf_target *at, pid_t tgid, struct err *e)
{
	__u32 key = (__u32)tgid;
	int err;

	/* Without them, slots of ended threads are not given back: a loss that is counted, no reason to fail. */
	if (!a->exit_link)
		a->exit_link = bpf_program__attach_raw_tracepoint(a->skel->progs.on_thread_exit, "sched_process_exit");
	if (!a->exec_link)
		a->exec_link = bpf_program__attach_raw_tracepoint(a->skel->progs.on_thread_exec, "sched_process_exec");
	if (bpf_map_update_elem(bpf_map__fd(a->skel->maps.targets), &key, at, BPF_ANY))
		return err_set(e, ERR_RUNTIME, -errno, "more than %d processes", MXBPF_TARGETS_MAX);
	err = attach_sites(a, p, tgid, true, !a->less, e);
	if (err)
		att_leave(a, tgid, true);
	return err;
}

int att_add(struct att *a, const struct plan *p, pid_t tgid, struct err *e)
{
	size_t n = buf_count(&p->sites, struct plan_site) + buf_count(&a->links, struct att_link);
	int err;

	if (a->backend->probes_max && n > a->backend->probes_max)
		return err_set(e, ERR_RUNTIME, -E2BIG, "more probes than %s can attach", a->backend->name);
	err = fill_names(a, p);
	if (err)
		return err_set(e, ERR_RUNTIME, err, "%s", strerror(-err));
	n = buf_count(&a->links, struct att_link);
	err = attach_sites(a, p, tgid, true, true, e);
	for (; n < buf_count(&a->links, struct att_link); n++)
		buf_at(&a->links, struct att_link, n)->marks = true; /* few, so they stay between iterations */
	return err;
}

int att_follow(struct att *a, const struct plan *p, pid_t child, pid_t parent, struct err *e)
{
	struct mxbpf_target target;

	if (!att_has(a, parent, &target))
		return err_set(e, ERR_TARGET, -ESRCH, "its parent %d is not attached any more", parent);
	return att_attach(a, p, &target, child, e);
}

bool att_has(const struct att *a, pid_t tgid, struct mxbpf_target *out)
{
	struct mxbpf_target target;
	__u32 key = (__u32)tgid;

	return !bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.targets), &key, out ? out : &target);
}

/* Takes the links of a process, of all with 0, off the list; without `marks` not those of ends of iterations. */
static struct buf take_links(struct att *a, pid_t tgid, bool marks)
{
	size_t i, kept = 0, n = buf_count(&a->links, struct att_link);
	struct att_link *links = (struct att_link *)a->links.data;
	struct buf fds = {0};

	for (i = 0; i < n; i++)
		if ((tgid && links[i].tgid != tgid) || (links[i].marks && !marks) ||
		    buf_put(&fds, &links[i].fd, sizeof(links[i].fd)))
			links[kept++] = links[i];
	a->links.len = kept * sizeof(*links);
	return fds;
}

void att_leave(struct att *a, pid_t tgid, bool wait)
{
	struct buf fds = take_links(a, tgid, true);
	__u32 key = (__u32)tgid;

	bpf_map_delete_elem(bpf_map__fd(a->skel->maps.targets), &key);
	backend_close(&fds, wait);
}

void att_activate(struct att *a, bool on)
{
	struct mxbpf_bpf__bss *bss = a->skel->bss;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now); /* BPF's clock */
	bss->activation += !on;
	__atomic_store_n(&bss->active_since_ns, on ? (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec : 0,
			 __ATOMIC_SEQ_CST);
}

int att_more(struct att *a, const struct plan *p, pid_t tgid, struct err *e)
{
	a->less = false;
	return attach_sites(a, p, tgid, false, true, e);
}

void att_less(struct att *a)
{
	struct buf fds = take_links(a, 0, false);

	a->less = true;
	backend_close(&fds, true);
}

void att_sample(struct att *a, bool on, bool arm, uint64_t wake_at)
{
	volatile struct mxbpf_sampling *s = &a->skel->bss->sampling;
	uint64_t since = a->skel->bss->active_since_ns, none = 0;
	struct timespec now;

	s->wake_at = wake_at;
	s->on = on;
	s->armed = arm;
	if (on || !since ||
	    !__atomic_compare_exchange_n(&a->skel->bss->active_since_ns, &since, none, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	a->skel->bss->activation++;
	__atomic_fetch_add(&s->window_ns, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - since,
			   __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&s->closed, 1, __ATOMIC_SEQ_CST);
}

struct mxbpf_sampling att_sampling(const struct att *a)
{
	const volatile struct mxbpf_sampling *s = &a->skel->bss->sampling;
	struct mxbpf_sampling copy;
	struct timespec now;
	uint64_t since;

	do { /* a window that closes now is neither open nor in the sum for a moment */
		copy = *s;
		since = __atomic_load_n(&a->skel->bss->active_since_ns, __ATOMIC_SEQ_CST);
	} while (copy.opened != copy.closed + !!since || copy.closed != s->closed);
	if (since) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		copy.window_ns += (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - since;
	}
	return copy;
}

int att_marks_fd(const struct att *a)
{
	return a->marks ? ring_buffer__epoll_fd(a->marks) : -1;
}

void att_marks_take(struct att *a)
{
	ring_buffer__consume(a->marks);
}

void att_detach(struct att *a)
{
	struct buf fds;

	if (a->skel && a->skel->bss)
		att_activate(a, false);
	fds = take_links(a, 0, true);
	backend_close(&fds, true);
	bpf_link__destroy(a->exit_link);
	bpf_link__destroy(a->exec_link);
	a->exit_link = a->exec_link = NULL;
}

void att_free(struct att *a)
{
	if (!a)
		return;
	att_detach(a);
	if (a->threads)
		munmap(a->threads, a->threads_bytes);
	ring_buffer__free(a->marks);
	stats_close(&a->stats);
	if (a->cut_checks)
		munmap(a->cut_checks, CUT_CHECKS_BYTES);
	mxbpf_bpf__destroy(a->skel);
	buf_fini(&a->links);
	free(a);
}

int att_ring_fd(const struct att *a)
{
	return bpf_map__fd(a->skel->maps.calls);
}

int att_names_fd(const struct att *a)
{
	return bpf_map__fd(a->skel->maps.names);
}

int att_args_fd(const struct att *a)
{
	return bpf_map__fd(a->skel->maps.args);
}

int att_tensors_fd(const struct att *a)
{
	return bpf_map__fd(a->skel->maps.tensors);
}

int att_read_stack(const struct att *a, uint64_t id, struct mxbpf_stack *s)
{
	if (bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.stacks), &id, s))
		return -errno;
	return s->n <= MXBPF_STACK_FRAMES_MAX ? 0 : -EBADMSG;
}

void att_counts(const struct att *a, struct mxbpf_loss *loss, uint64_t *hits)
{
	uint64_t sum[MXBPF_COUNT_MAX] = {0};
	unsigned i, k;

	for (i = 0; i < MXBPF_THREADS_MAX; i++)
		for (k = 0; k < MXBPF_COUNT_MAX; k++)
			sum[k] += __atomic_load_n(&a->threads[i].counts[k], __ATOMIC_RELAXED);
	*loss = (struct mxbpf_loss){
		.attempted = sum[MXBPF_COUNT_ATTEMPTED],
		.dropped = sum[MXBPF_COUNT_DROPPED],
		.truncated = sum[MXBPF_COUNT_TRUNCATED],
		.unreadable = sum[MXBPF_COUNT_UNREADABLE],
		.unmatched = sum[MXBPF_COUNT_UNMATCHED],
	};
	if (hits)
		*hits = sum[MXBPF_COUNT_HITS];
}

/*
 * What ends by key is counted where it is found by key: its frame may be gone (asynchronous) or stale. In batches: from
 * key to next key, the walk would begin again at each key that is taken away meanwhile.
 */
static unsigned open_keys(const struct att *a)
{
	struct {
		struct mxbpf_key keys[OPEN_BATCH];
		struct mxbpf_frame frames[OPEN_BATCH];
	} *batch = malloc(sizeof(*batch));
	int fd = bpf_map__fd(a->skel->maps.open_keys), err = batch ? 0 : -ENOMEM;
	__u32 at, got, n = 0;
	bool first = true;

	while (!err) {
		got = OPEN_BATCH;
		err = bpf_map_lookup_batch(fd, first ? NULL : &at, &at, batch->keys, batch->frames, &got, NULL);
		n += !err || err == -ENOENT ? got : 0; /* -ENOENT: the last ones */
		first = false;
	}
	free(batch);
	return n;
}

unsigned att_open_spans(const struct att *a)
{
	unsigned i, k, n = open_keys(a);

	for (i = 1; i < MXBPF_THREADS_MAX; i++)
		for (k = 0; a->threads[i].slot && k < a->threads[i].depth && k < MXBPF_FRAMES_MAX; k++)
			n += a->threads[i].frames[k].end != MXBPF_END_KEY;
	return n;
}

static unsigned left_of_thread(const struct mxbpf_thread *t, att_left_fn left,
			       void (*fn)(void *ctx, const struct mxbpf_span *s), void *ctx)
{
	unsigned k, n = 0;

	for (k = t->depth; k-- > 0 && k < MXBPF_FRAMES_MAX; n++) {
		const struct mxbpf_frame *f = &t->frames[k];
		struct mxbpf_span s = {
			.h = {.kind = MXBPF_SPAN, .size = sizeof(s), .tgid = t->tgid, .ts_ns = f->start_ns},
			.dur_ns = f->child_ns,
			.name_id = f->name_id,
			.link = f->link,
			.tid = f->tid,
			.end_tid = f->tid,
			.device = f->device,
			.cls = f->cls,
			.flags = MXBPF_SPAN_UNWOUND,
			.probe = f->probe,
			.alloc_bytes = f->alloc_bytes,
			.self_alloc_bytes = f->self_alloc_bytes,
			.args_id = f->args_id,
			.stack_id = f->stack_id,
			.origin = f->origin,
		};

		if ((f->end != MXBPF_END_CUT && f->end != MXBPF_END_NEXT) || !left(ctx, t, f))
			break;
		fn(ctx, &s);
	}
	return n;
}

unsigned att_left_spans(const struct att *a, att_left_fn left, void (*fn)(void *ctx, const struct mxbpf_span *s),
			void *ctx)
{
	unsigned i, n = 0;

	for (i = 1; i < MXBPF_THREADS_MAX; i++)
		if (a->threads[i].slot && a->threads[i].depth)
			n += left_of_thread(&a->threads[i], left, fn, ctx);
	return n;
}

/*
 * A cut that does not hold fails again and again. What is lost for other reasons (a jump out of it, a switch of stacks)
 * or foreign (in flight when events began to be taken) is little beside what is right.
 */
static bool cut_fails(const struct att *a, const struct mxbpf_cut_check *c, const struct mxbpf_row *row)
{
	/* Where exceptions are not seen, all that is lost may be theirs, unless nothing ever ends. */
	if (c->lost >= CUT_LOST_MIN && c->lost >= c->entries / CUT_LOST_PART && (a->sees_raises || !c->matched))
		return true;
	/* A guarded entry opens no span for the cut to end. */
	return row->guard.base == MXBPF_BASE_NONE && !row->hides && c->foreign >= CUT_FOREIGN_MIN &&
	       c->foreign >= c->entries / CUT_FOREIGN_PART;
}

void att_check_cuts(struct att *a, const struct plan *p, void (*fn)(void *ctx, const char *name, uint64_t spans),
		    void *ctx)
{
	const struct plan_site *sites;
	struct mxbpf_cut_check c;
	struct timespec now;
	size_t i, n;

	clock_gettime(CLOCK_MONOTONIC, &now);
	sites = sites_of(p, &n);
	for (i = 0; i < n; i++) {
		uint32_t func = (uint32_t)(sites[i].cookie & MXBPF_FUNC_MASK);

		if (sites[i].row->action != MXBPF_ACT_OPEN || sites[i].row->end != MXBPF_END_CUT)
			continue;
		c = a->cut_checks[func];
		if (c.fallen_ns || !cut_fails(a, &c, sites[i].row))
			continue;
		__atomic_store_n(&a->cut_checks[func].fallen_ns,
				 (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, __ATOMIC_RELAXED);
		fn(ctx, plan_func_name(p, sites[i].probe, func), c.matched + c.unwound);
	}
}

int att_take_rows(struct att *a, stats_row_fn fn, void *ctx)
{
	return stats_take_rows(&a->stats, fn, ctx);
}

int att_take_mems(struct att *a, bool keep, stats_mem_fn fn, void *ctx)
{
	return stats_take_mems(&a->stats, keep, fn, ctx);
}

/* 0 of an fd that is none. */
static uint64_t map_bytes(int fd)
{
	char path[64], line[128];
	uint64_t bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "memlock: %lu", &bytes) != 1)
		;
	if (f)
		fclose(f);
	return bytes;
}

uint64_t att_map_bytes(const struct att *a)
{
	uint64_t sum = map_bytes(a->stats.rows_fd) + map_bytes(a->stats.mems_fd);
	struct bpf_map *map;

	bpf_object__for_each_map(map, a->skel->obj) sum += map_bytes(bpf_map__fd(map));
	return sum;
}
