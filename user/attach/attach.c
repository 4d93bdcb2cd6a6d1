// SPDX-License-Identifier: Apache-2.0
/* Attaches the probes of a plan to processes, switches recording on and off, and detaches. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "attach/backend.h"
#include "attach/costs.h"
#include "attach/priv.h"
#include "attach/sched.h"

static int attach_failed(int err, const struct tgt_lib *lib, uint32_t n, pid_t tgid, struct err *e)
{
	if (err == -ESRCH)
		return err_set(e, ERR_TARGET, err, "process %d exited while probes were being attached", tgid);
	if (err == -EPERM || err == -EACCES)
		return err_set(e, ERR_PRIVILEGE, err,
			       "attaching to %s is not permitted: run with sudo, or with CAP_BPF, CAP_PERFMON and "
			       "CAP_SYS_PTRACE",
			       lib->path);
	return err_set(e, ERR_RUNTIME, err, "cannot attach %u probes to %s: %s", n, lib->path, strerror(-err));
}

static bool is_shared_already(const struct att *a, const struct variant *v, const struct tgt_lib *lib, bool returns)
{
	const struct att_link *link = (const struct att_link *)a->links.data;
	size_t i, n = buf_count(&a->links, struct att_link);

	for (i = 0; i < n; i++)
		if (link[i].tgid == ATT_SHARED && link[i].prog_fd == v->prog_fd && link[i].dev == lib->dev &&
		    link[i].ino == lib->ino && link[i].returns == returns)
			return true;
	return false;
}

/*
 * Attaches all probes of a variant in one library by one call. done[i] means that probe i is attached or is in `offs`.
 * All plans of a session have the same probes in a file that they share.
 */
static int attach_link(struct att *a, const struct variant *v, const struct plan *p, bool *done, uint64_t *offs,
		       pid_t tgid, uint64_t bits, struct err *e)
{
	const struct tgt_lib *lib = NULL;
	const struct plan_site *sites;
	uint64_t *cookies;
	uint32_t n = 0;
	size_t i, nsites;
	struct att_link *links;
	bool returns = false;
	int *fds, made, k;

	sites = sites_of(p, &nsites);
	cookies = offs + nsites;
	for (i = 0; i < nsites; i++) {
		if (done[i] || (lib && (sites[i].lib != lib || plan_at_return(&sites[i]) != returns)) ||
		    memcmp(sites[i].row, v->row, sizeof(*v->row)))
			continue;
		done[i] = true;
		returns = plan_at_return(&sites[i]);
		lib = sites[i].lib;
		offs[n] = sites[i].off;
		cookies[n++] = (sites[i].cookie & ~(MXBPF_COOKIE_SHARED | MXBPF_COOKIE_SLICED)) | bits;
	}
	if (!n || !lib)
		return 0;
	if (tgid == ATT_SHARED && is_shared_already(a, v, lib, returns))
		return 1;
	fds = calloc(n, sizeof(*fds));
	links = fds ? buf_add(&a->links, n * sizeof(*links)) : NULL;
	if (!links) {
		free(fds);
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	}
	made = (returns ? a->backend->attach_returns : a->backend->attach)(v->prog_fd, lib->open_path, offs, cookies, n,
									   tgid, fds);
	for (k = 0; k < made; k++)
		links[k] = (struct att_link){.tgid = tgid,
					     .fd = fds[k],
					     .iteration_ends = v->row->iteration_end[0],
					     .prog_fd = v->prog_fd,
					     .dev = lib->dev,
					     .ino = lib->ino,
					     .returns = returns};
	a->links.len -=
		(n - (made > 0 ? (size_t)made : 0)) * sizeof(*links); /* a backend may make one link for all probes */
	free(fds);
	return made < 0 ? attach_failed(made, lib, n, tgid, e) : 1;
}

static bool ends_calls(const struct mxbpf_row *row)
{
	return row->action == MXBPF_ACT_CLOSE_PAIR || row->action == MXBPF_ACT_CLOSE_KEY ||
	       row->action == MXBPF_ACT_CLOSE_CUT;
}

/* Attaches ends before entries: a call whose start is recorded then always has its end recorded too. */
static int attach_variants(struct att *a, const struct plan *p, bool *done, uint64_t *offs, pid_t tgid, uint64_t bits,
			   struct err *e)
{
	int ret = 0, entries;
	unsigned i;

	for (entries = 0; entries < 2; entries++)
		for (i = 0; ret >= 0 && i < a->nvariants; i++) {
			if (ends_calls(a->variants[i].row) == !!entries)
				continue;
			do
				ret = attach_link(a, &a->variants[i], p, done, offs, tgid, bits, e);
			while (ret > 0);
		}
	return ret;
}

static struct att_left_out *left_out_of(const struct att *a, const struct plan *p)
{
	size_t i;

	for (i = 0; i < buf_count(&a->left_out, struct att_left_out); i++)
		if (buf_at(&a->left_out, struct att_left_out, i)->plan == p)
			return buf_at(&a->left_out, struct att_left_out, i);
	return NULL;
}

int att_leave_out(struct att *a, const struct plan *p, const bool *sites, bool only_counts)
{
	struct att_left_out *known = left_out_of(a, p), new = {p, sites, only_counts};

	if (!known)
		return buf_put(&a->left_out, &new, sizeof(new));
	*known = new;
	return 0;
}

/* Refuses a file that was overwritten: at the planned offsets, probes would change other instructions. */
static int refuse_overwritten(const struct plan *p, struct err *e)
{
	const struct plan_site *sites;
	size_t n, i;

	sites = sites_of(p, &n);
	for (i = 0; i < n; i++) {
		if ((i && sites[i].lib == sites[i - 1].lib) || tgt_lib_same(sites[i].lib))
			continue;
		return err_set(e, ERR_TARGET, -ESTALE,
			       "%s was overwritten in place while mxbpf attached to it: restart the job",
			       sites[i].lib->path);
	}
	return 0;
}

/* tgid is a process or ATT_SHARED. done[i]: site i is not wanted; owned by the caller, and all true afterwards. */
int att_attach_wanted(struct att *a, const struct plan *p, pid_t tgid, bool *done, uint64_t bits, struct err *e)
{
	size_t n, i;
	uint64_t *offs;
	int ret = 0;

	sites_of(p, &n);
	offs = calloc(2 * n + 1, sizeof(*offs));
	if (!offs)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (n)
		att_costs_open(a);
	ret = refuse_overwritten(p, e);
	ret = ret ? ret : attach_variants(a, p, done, offs, tgid, bits, e);
	ret = ret ? ret : refuse_overwritten(p, e); /* the caller removes the links of an error */
	for (i = 0; !ret && i < n; i++)
		if (!done[i])
			ret = err_set(e, ERR_RUNTIME, -ENOTSUP,
				      "cannot attach: the libraries that this process has mapped beside %s differ from "
				      "those of the first process",
				      p->lib->path);
	free(offs);
	return ret;
}

static int attach_sites(struct att *a, const struct plan *p, pid_t tgid, bool iteration_ends, bool rest, struct err *e)
{
	const struct plan_site *sites;
	const struct att_left_out *left = left_out_of(a, p);
	uint64_t bits = tgid == ATT_SHARED ? MXBPF_COOKIE_SHARED : 0;
	size_t n, i;
	bool *done;
	int ret;

	sites = sites_of(p, &n);
	done = calloc(n + 1, sizeof(*done));
	if (!done)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	for (i = 0; i < n; i++)
		done[i] = (sites[i].row->iteration_end[0] ? !iteration_ends : !rest) ||
			  (left && left->sites && left->sites[i]);
	if (iteration_ends && left && left->only_counts)
		bits |= MXBPF_COOKIE_SLICED;
	ret = att_attach_wanted(a, p, tgid, done, bits, e);
	free(done);
	return ret;
}

/* Attaches to a process by links of its own, and to all processes by shared links if sharing is on. */
static int attach_both(struct att *a, const struct plan *p, pid_t tgid, bool own, bool iteration_ends, bool rest,
		       struct err *e)
{
	const struct att_left_out *left = left_out_of(a, p);
	int err;

	if (iteration_ends && rest && left && left->only_counts) { /* iteration ends need other cookies */
		err = attach_both(a, p, tgid, own, true, false, e);
		return err ? err : attach_both(a, p, tgid, own, false, true, e);
	}
	err = own ? attach_sites(a, p, tgid, iteration_ends, rest, e) : 0;
	return err || !a->shared ? err : attach_sites(a, p, ATT_SHARED, iteration_ends, rest, e);
}

/*
 * Adds the process to the map of targets last. Until then its hits do not count, so no event comes from a partial set
 * of probes.
 */
int att_attach(struct att *a, const struct plan *p, const struct mxbpf_target *at, pid_t tgid, struct err *e)
{
	struct mxbpf_target target = *at;
	__u32 key = (__u32)tgid;
	int err;

	/*
	 * Without these links the slots of ended threads are not freed. Threads without a slot are counted as loss, so
	 * go on.
	 */
	if (!a->exit_link)
		a->exit_link = bpf_program__attach_raw_tracepoint(a->skel->progs.on_thread_gone, "sched_process_exit");
	if (!a->exec_link)
		a->exec_link = bpf_program__attach_raw_tracepoint(a->skel->progs.on_thread_gone, "sched_process_exec");
	if (sched_attach(a, e))
		return e->code;
	att_expect(a, tgid);
	target.own = !a->shared;
	target.build = a->skel->rodata->cfg_build;
	err = attach_both(a, p, tgid, target.own, true, !a->less, e);
	if (!err && bpf_map_update_elem(bpf_map__fd(a->skel->maps.targets), &key, &target, BPF_ANY))
		err = errno == E2BIG
			      ? err_set(e, ERR_RUNTIME, -E2BIG, "more than %d processes", MXBPF_TARGETS_MAX)
			      : err_set(e, ERR_RUNTIME, -errno, "cannot watch process %d: %s", tgid, strerror(errno));
	if (err)
		att_leave(a, tgid, true);
	else
		att_join(a, tgid);
	return err;
}

void att_expect(struct att *a, pid_t tgid)
{
	__u32 key = (__u32)tgid, one = 1;

	bpf_map_update_elem(bpf_map__fd(a->skel->maps.joining), &key, &one, BPF_ANY); /* else its hits seem foreign */
}

void att_join(struct att *a, pid_t tgid)
{
	__u32 key = (__u32)tgid;

	bpf_map_delete_elem(bpf_map__fd(a->skel->maps.joining), &key);
	sched_join(a, tgid);
	counters_count(&a->counters, tgid);
}

int att_share(struct att *a, const struct plan *p, struct err *e)
{
	a->shared = true;
	return attach_sites(a, p, ATT_SHARED, true, !a->less, e);
}

bool att_shares(const struct att *a)
{
	return a->shared;
}

int att_add(struct att *a, const struct plan *p, pid_t tgid, struct err *e)
{
	size_t n = buf_count(&p->sites, struct plan_site) + buf_count(&a->links, struct att_link);
	struct mxbpf_target target = {.own = !a->shared};
	int err;

	if (a->backend->probes_max && n > a->backend->probes_max)
		return err_set(e, ERR_RUNTIME, -E2BIG, "more probes than %s can attach", a->backend->name);
	err = rows_load_late(a);
	err = err ? err : att_fill_names(a, p);
	if (err)
		return err_set(e, ERR_RUNTIME, err, "%s", strerror(-err));
	n = buf_count(&a->links, struct att_link);
	att_has(a, tgid, &target);
	err = attach_both(a, p, tgid, target.own, true, true, e);
	for (; n < buf_count(&a->links, struct att_link); n++)
		buf_at(&a->links, struct att_link, n)->late = true;
	return err;
}

static bool is_program_of(struct att *a, const struct plan *p, int prog_fd)
{
	const struct plan_site *sites;
	size_t i, n;

	sites = sites_of(p, &n);
	for (i = 0; i < n; i++)
		if (att_variant_of(a, sites[i].row)->prog_fd == prog_fd)
			return true;
	return false;
}

void att_remove(struct att *a, const struct plan *p)
{
	size_t i, kept = 0, n = buf_count(&a->links, struct att_link);
	struct att_link *links = (struct att_link *)a->links.data;
	struct buf fds = {0};

	for (i = 0; i < n; i++)
		if (links[i].dev != p->lib->dev || links[i].ino != p->lib->ino ||
		    !is_program_of(a, p, links[i].prog_fd) || buf_put(&fds, &links[i].fd, sizeof(links[i].fd)))
			links[kept++] = links[i];
	a->links.len = kept * sizeof(*links);
	backend_close(&fds, true);
}

bool att_has(const struct att *a, pid_t tgid, struct mxbpf_target *out)
{
	struct mxbpf_target target;
	__u32 key = (__u32)tgid;

	return !bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.targets), &key, out ? out : &target);
}

enum take {
	TAKE_REST,    /* all but those that see iterations end, and those of libraries that were mapped later */
	TAKE_PLANNED, /* all but those of libraries that were mapped later */
	TAKE_ALL,
};

static bool attach_stays(const struct att_link *l, enum take what)
{
	return what != TAKE_ALL && (l->late || (l->iteration_ends && what != TAKE_PLANNED));
}

/* Removes the links of a process, or all links, from the list. */
static struct buf take_links(struct att *a, pid_t tgid, bool all, enum take what)
{
	size_t i, kept = 0, n = buf_count(&a->links, struct att_link);
	struct att_link *links = (struct att_link *)a->links.data;
	struct buf fds = {0};

	for (i = 0; i < n; i++)
		if ((!all && links[i].tgid != tgid) || attach_stays(&links[i], what) ||
		    buf_put(&fds, &links[i].fd, sizeof(links[i].fd)))
			links[kept++] = links[i];
	a->links.len = kept * sizeof(*links);
	return fds;
}

void att_detach_planned(struct att *a)
{
	struct buf fds = take_links(a, 0, true, TAKE_PLANNED);

	backend_close(&fds, true);
}

int att_again(struct att *a, const struct plan *p, pid_t tgid, struct err *e)
{
	struct mxbpf_target target;

	if (!att_has(a, tgid, &target)) /* the process has ended */
		return 0;
	return attach_both(a, p, tgid, target.own, true, true, e);
}

void att_leave(struct att *a, pid_t tgid, bool wait)
{
	struct buf fds = take_links(a, tgid, false, TAKE_ALL);
	__u32 whose = (__u32)tgid;

	/* Iterations of another process count from now on. */
	__atomic_compare_exchange_n(&a->skel->bss->iteration_window.tgid, &whose, 0, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	backend_close(&fds, wait);
	att_forget(a, tgid);
}

void att_drop(struct att *a, pid_t tgid)
{
	__u32 key = (__u32)tgid;

	bpf_map_delete_elem(bpf_map__fd(a->skel->maps.targets), &key);
	att_leave(a, tgid, true);
}

bool att_accounts(const struct att *a)
{
	return a->skel->rodata->cfg_account;
}

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

void att_activate(struct att *a, bool on)
{
	struct mxbpf_bpf__bss *bss = a->skel->bss;
	struct timespec now;

	if (on && a->sched)
		sched_seed(a);
	clock_gettime(CLOCK_MONOTONIC, &now); /* the clock that BPF uses */
	bss->activation += !on;
	__atomic_store_n(&bss->active_since_ns, on ? (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec : 0,
			 __ATOMIC_SEQ_CST);
}

uint64_t att_active_since_ns(const struct att *a)
{
	return __atomic_load_n(&a->skel->bss->active_since_ns, __ATOMIC_SEQ_CST);
}

int att_more(struct att *a, const struct plan *p, pid_t tgid, struct err *e)
{
	struct mxbpf_target target;

	a->less = false;
	if (!att_has(a, tgid, &target)) /* the process has ended */
		return 0;
	return attach_both(a, p, tgid, target.own, false, true, e);
}

void att_less(struct att *a)
{
	struct buf fds = take_links(a, 0, true, TAKE_REST);

	a->less = true;
	backend_close(&fds, true);
}

void att_set_iteration_window(struct att *a, bool on, bool arm, uint64_t wake_at)
{
	volatile struct mxbpf_iteration_window *s = &a->skel->bss->iteration_window;
	uint64_t since, none = 0;
	struct timespec now;

	s->wake_at = wake_at;
	s->on = on;
	s->armed = arm;
	if (on)
		return;
	backend_grace(); /* wait for programs that have read on == 1 and may still open a window */
	since = a->skel->bss->active_since_ns;
	if (!since || !__atomic_compare_exchange_n(&a->skel->bss->active_since_ns, &since, none, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	a->skel->bss->activation++;
	__atomic_fetch_add(&s->window_ns, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - since,
			   __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&s->closed, 1, __ATOMIC_SEQ_CST);
}

struct mxbpf_iteration_window att_iteration_window(const struct att *a)
{
	const volatile struct mxbpf_iteration_window *s = &a->skel->bss->iteration_window;
	struct mxbpf_iteration_window copy;
	struct timespec now;
	uint64_t since;

	do { /* while a window closes it is neither open nor in the sum: read again */
		copy = *s;
		since = __atomic_load_n(&a->skel->bss->active_since_ns, __ATOMIC_SEQ_CST);
	} while (copy.opened != copy.closed + !!since || copy.closed != s->closed);
	if (since) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		copy.window_ns += (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - since;
	}
	return copy;
}

void att_app_start(struct att *a, pid_t tgid, const struct mxbpf_app *now)
{
	volatile struct mxbpf_app *app = &a->skel->bss->app;

	app->runs = now->runs;
	app->paused = now->paused;
	app->tgid = (__u32)tgid; /* from here on, profiler calls of this process open and close windows */
}

static bool app_records(const struct mxbpf_app *app)
{
	return __atomic_load_n(&app->runs, __ATOMIC_SEQ_CST) && !__atomic_load_n(&app->paused, __ATOMIC_SEQ_CST);
}

static void app_close(struct att *a)
{
	struct mxbpf_app *app = &a->skel->bss->app;
	uint64_t since = att_active_since_ns(a);
	struct timespec now;

	if (!since || !__atomic_compare_exchange_n(&a->skel->bss->active_since_ns, &since, (uint64_t)0, false,
						   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	a->skel->bss->activation++;
	__atomic_fetch_add(&app->window_ns, ns_of(&now) - since, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&app->closed, 1, __ATOMIC_SEQ_CST);
}

/*
 * Whoever sets active_since_ns, this function or a probe hit, counts the window. Whoever clears it adds up the window's
 * time.
 */
void att_app(struct att *a, bool on)
{
	struct mxbpf_app *app = &a->skel->bss->app;
	struct timespec now;
	uint64_t none = 0;

	__atomic_store_n(&app->on, on, __ATOMIC_SEQ_CST);
	if (!on)
		backend_grace(); /* wait for programs that have read on == 1 and may still open a window */
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (on && app_records(app) &&
	    __atomic_compare_exchange_n(&a->skel->bss->active_since_ns, &none, ns_of(&now), false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		__atomic_fetch_add(&app->opened, 1, __ATOMIC_SEQ_CST);
	if (!on || !app_records(app)) /* the profiler may have been stopped meanwhile */
		app_close(a);
}

struct mxbpf_app att_app_windows(const struct att *a)
{
	const volatile struct mxbpf_app *app = &a->skel->bss->app;
	struct mxbpf_app copy;
	struct timespec now;
	uint64_t since;

	do { /* while a window closes it is neither open nor in the sum: read again */
		copy = *app;
		since = __atomic_load_n(&a->skel->bss->active_since_ns, __ATOMIC_SEQ_CST);
	} while (copy.opened != copy.closed + !!since || copy.closed != app->closed);
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (since && ns_of(&now) > since)
		copy.window_ns += ns_of(&now) - since;
	return copy;
}

int att_windows_fd(const struct att *a)
{
	return a->windows ? ring_buffer__epoll_fd(a->windows) : -1;
}

void att_windows_take(struct att *a)
{
	ring_buffer__consume(a->windows);
}

void att_detach(struct att *a)
{
	struct buf fds;

	if (a->skel && a->skel->bss)
		att_activate(a, false);
	att_clocks_stop(a);
	fds = take_links(a, 0, true, TAKE_ALL);
	backend_close(&fds, true);
	bpf_link__destroy(a->exit_link);
	bpf_link__destroy(a->exec_link);
	a->exit_link = a->exec_link = NULL;
	counters_close(&a->counters);
	sched_detach(a);
}

void att_free(struct att *a)
{
	if (!a)
		return;
	if (a->skel && a->skel->bss)
		att_costs_measure(a, false);
	att_detach(a);
	if (a->threads)
		munmap(a->threads, a->nslots * sizeof(*a->threads));
	ring_buffer__free(a->windows);
	sched_close(a);
	if (a->cut_checks)
		munmap(a->cut_checks, ATT_CUT_CHECKS_BYTES);
	rows_close(a);
	mxbpf_bpf__destroy(a->skel);
	buf_fini(&a->links);
	buf_fini(&a->left_out);
	free(a);
}

int att_ring_fd(const struct att *a, enum att_ring ring)
{
	switch (ring) {
	case ATT_CALLS:
		return bpf_map__fd(a->skel->maps.calls);
	case ATT_SWITCHES:
		return a->sched ? bpf_map__fd(a->skel->maps.switches) : -1;
	default:
		return a->samples ? bpf_map__fd(a->skel->maps.samples) : -1;
	}
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
