// SPDX-License-Identifier: Apache-2.0
/* Loads the BPF object of a plan: chooses the programs, sets their constants and fills the maps. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "attach/backend.h"
#include "attach/costs.h"
#include "attach/slice.h"
#include "attach/kernel_types.h"
#include "attach/priv.h"
#include "attach/sched.h"
#include "mxbpf_args.h"

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

struct variant *att_variant_of(struct att *a, const struct mxbpf_row *row)
{
	unsigned i;

	for (i = 0; i < a->nvariants; i++)
		if (!memcmp(a->variants[i].row, row, sizeof(*row)))
			return &a->variants[i];
	return NULL;
}

/* Adds a program for each distinct row. The row becomes a constant of the program. */
int att_choose_program(struct att *a, const struct mxbpf_row *row, bool late, struct err *e)
{
	if (att_variant_of(a, row))
		return 0;
	if (a->nvariants == MXBPF_ROWS_MAX)
		return err_set(e, ERR_RUNTIME, -E2BIG, "the plan has more than %d kinds of probes", MXBPF_ROWS_MAX);
	if (rows_choose(a, row, late))
		return err_set(e, ERR_RUNTIME, -EINVAL, "no program for action %u", row->action);
	a->sees_raises |= row->action == MXBPF_ACT_RAISE;
	a->skel->rodata->cfg_custom |= row->cls == MXBPF_CLASS_CUSTOM;
	a->skel->rodata->cfg_spans[late] |= row->action == MXBPF_ACT_OPEN;
	return 0;
}

/* Chooses the program of a library that is loaded later, and the program for the ends of its calls. */
static int choose_late(struct att *a, const struct plan *p, size_t i, struct err *e)
{
	static const struct mxbpf_row cut = {.action = MXBPF_ACT_CLOSE_CUT};
	int err = att_choose_program(a, &p->rows[i], true, e);

	err = err ? err : att_choose_program(a, &p->endless[i], true, e);
	return err || p->rows[i].end != MXBPF_END_CUT ? err : att_choose_program(a, &cut, true, e);
}

static int choose_programs(struct att *a, const struct plan *p, struct err *e)
{
	const struct mxbpf_row *last = NULL;
	const struct plan_site *sites;
	size_t i, n;
	int err = 0;

	sites = sites_of(p, &n);
	for (i = 0; !err && i < n; i++) {
		/* A cut may turn out wrong, and then its spans end like those without an end of their own. */
		a->skel->rodata->cfg_endless |=
			sites[i].row->end == MXBPF_END_NEXT || sites[i].row->end == MXBPF_END_CUT;
		err = sites[i].row == last ? 0 : att_choose_program(a, sites[i].row, false, e);
		last = sites[i].row;
	}
	for (i = 0; !err && i < p->nprobes; i++)
		if (p->probes[i].wanted && p->probes[i].row->each_lib)
			err = choose_late(a, p, i, e);
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
	return err_set(
		e, ERR_PRIVILEGE, -ENOTSUP,
		"process %d and mxbpf are in different pid namespaces: run mxbpf on the host, or inside that container",
		tgid);
}

/* Tells BPF the pid namespace of mxbpf, because BPF reports threads by the numbers of that namespace. */
static int choose_namespace(struct att *a, pid_t tgid, struct err *e)
{
	int err = att_reaches(tgid, e);

	if (!err)
		backend_namespace(&a->skel->rodata->cfg_pidns_dev, &a->skel->rodata->cfg_pidns_ino);
	return err;
}

static bool ends_by_key(const struct mxbpf_row *row)
{
	return row->action == MXBPF_ACT_OPEN && row->end == MXBPF_END_KEY;
}

static bool notes(const struct mxbpf_row *row)
{
	return row->action == MXBPF_ACT_NOTE;
}

static bool pushes(const struct mxbpf_row *row)
{
	return row->action == MXBPF_ACT_PUSHED;
}

static bool nests(const struct mxbpf_row *row)
{
	return row->action == MXBPF_ACT_OPEN && !row->leaf;
}

static bool any_row(const struct att *a, bool (*is)(const struct mxbpf_row *row))
{
	unsigned i = 0;

	while (i < a->nvariants && !is(a->variants[i].row))
		i++;
	return i < a->nvariants;
}

/*
 * Shrinks maps that no row fills to one entry. The kernel allocates these maps at once. If the agent records calls,
 * only ranges, and calls in libraries that are mapped later, nest or end by key.
 */
static void choose_sizes_by_rows(struct att *a)
{
	const unsigned part = a->few_calls ? 4 : 1;

	bpf_map__set_max_entries(a->skel->maps.open_keys, any_row(a, ends_by_key) ? MXBPF_KEYS_MAX / part : 1);
	if (!any_row(a, notes))
		bpf_map__set_max_entries(a->skel->maps.noted, 1);
	if (!any_row(a, pushes))
		bpf_map__set_max_entries(a->skel->maps.pushed, 1);
	a->nslots = MXBPF_THREADS_MAX + (any_row(a, nests) ? MXBPF_SLOTS_DEEP / part : 0);
	bpf_map__set_max_entries(a->skel->maps.threads, (__u32)a->nslots);
}

/* Sets the sizes of maps that only some options need. */
static void choose_sizes(struct att *a, unsigned details)
{
	struct bpf_map *of_args[] = {a->skel->maps.func_args, a->skel->maps.arg_scratch, a->skel->maps.tensors,
				     a->skel->maps.args};
	size_t i;

	if (a->skel->rodata->cfg_omp) {
		bpf_map__set_max_entries(a->skel->maps.teams, MXBPF_TEAMS_MAX);
		bpf_map__set_max_entries(a->skel->maps.team_threads, MXBPF_THREADS_MAX);
	}
	if (a->skel->rodata->cfg_life) {
		bpf_map__set_max_entries(a->skel->maps.life_turns, MXBPF_LIVES_MAX);
		bpf_map__set_max_entries(a->skel->maps.life_pushed, MXBPF_LIVES_MAX);
		bpf_map__set_max_entries(a->skel->maps.life_ready, MXBPF_LIVES_MAX);
		bpf_map__set_max_entries(a->skel->maps.life_writers, MXBPF_WRITERS_MAX);
		bpf_map__set_max_entries(a->skel->maps.life_threads, MXBPF_THREADS_MAX);
	}
	if (a->skel->rodata->cfg_kv)
		bpf_map__set_max_entries(a->skel->maps.kv_calls, MXBPF_THREADS_MAX);
	if (a->skel->rodata->cfg_memory)
		bpf_map__set_max_entries(a->skel->maps.allocating, MXBPF_THREADS_MAX);
	if (a->skel->rodata->cfg_memory && details & MXBPF_DETAIL_STACK)
		bpf_map__set_max_entries(a->skel->maps.pushed_stacks, MXBPF_OUTPUTS_MAX);
	bpf_map__set_max_entries(a->skel->maps.calls, a->ring_bytes);
	bpf_map__set_max_entries(a->skel->maps.samples, a->samples_bytes);
	for (i = 0; i < sizeof(of_args) / sizeof(of_args[0]) && !(details & MXBPF_DETAIL_ARGS); i++)
		bpf_map__set_max_entries(of_args[i], 1);
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

int att_fill_names(struct att *a, const struct plan *p)
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
	int slots = bpf_map__fd(a->skel->maps.free_slots), deep = bpf_map__fd(a->skel->maps.deep_slots);
	__u32 slot;

	for (slot = (__u32)a->nslots - 1; slot > 0; slot--) /* slot 0 belongs to no thread */
		if (bpf_map_update_elem(slot < MXBPF_THREADS_MAX ? slots : deep, NULL, &slot, BPF_ANY))
			return -errno;
	a->threads = mmap(NULL, a->nslots * sizeof(*a->threads), PROT_READ, MAP_SHARED,
			  bpf_map__fd(a->skel->maps.threads), 0);
	if (a->threads == MAP_FAILED) {
		a->threads = NULL;
		return -errno;
	}
	a->cut_checks = mmap(NULL, ATT_CUT_CHECKS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			     bpf_map__fd(a->skel->maps.cut_checks), 0);
	if (a->cut_checks == MAP_FAILED) {
		a->cut_checks = NULL;
		return -errno;
	}
	return 0;
}

/* Sets constants and maps of options that cost time or memory, so that only their users pay. */
static void choose_details(struct att *a, const struct plan *p, const struct att_opts *o)
{
	const uint32_t first_off = p->tensor_keys_off + 8 - MXBPF_IMPL_WORDS * 8;
	size_t i;

	a->skel->rodata->cfg_details = (__u8)o->details;
	a->skel->rodata->cfg_omp = o->teams;
	a->skel->rodata->cfg_agent = o->agent;
	a->skel->rodata->cfg_sliced = o->sliced;
	a->skel->rodata->cfg_life = o->life;
	for (i = 0; i < p->nprobes; i++)
		a->skel->rodata->cfg_kv |= p->probes[i].wanted && p->rows[i].kv;
	a->skel->rodata->cfg_memory = o->held;
	/* CONFIG_SCHED_INFO provides this file and the fields that the account is computed from. */
	a->skel->rodata->cfg_account = o->account && !access("/proc/self/schedstat", F_OK);
	a->skel->rodata->cfg_array_dims = p->array ? p->array->dims_here : 0;
	a->skel->rodata->cfg_array_bytes = p->array ? p->array->bytes : 0;
	a->skel->rodata->cfg_tensor_keys_off = p->tensor_keys_off;
	a->skel->rodata->cfg_tensor_storage_word =
		p->tensor_storage_off ? (p->tensor_storage_off - first_off) / 8 : MXBPF_NO_STORAGE;
	bpf_program__set_autoload(a->skel->progs.on_sample, o->samples);
	bpf_map__set_autocreate(a->skel->maps.sample_rooms, o->samples);
	bpf_map__set_autocreate(a->skel->maps.samples, o->samples);
	a->samples = o->samples;
	if (o->python)
		memcpy((void *)&a->skel->rodata->cfg_python, o->python, sizeof(*o->python));
	if (!(o->details & MXBPF_DETAIL_STACK))
		return;
	bpf_map__set_max_entries(a->skel->maps.stack_rooms, MXBPF_THREADS_MAX);
	bpf_map__set_max_entries(a->skel->maps.stacks, MXBPF_STACKS_MAX);
}

static int on_window(void *ctx, void *data, size_t size)
{
	return 0;
}

static int open_marks(struct att *a, unsigned iterations)
{
	a->skel->bss->iteration_window.each = iterations;
	a->less = iterations;
	a->windows = ring_buffer__new(bpf_map__fd(a->skel->maps.windows), on_window, NULL, NULL);
	return a->windows ? 0 : -errno;
}

int att_load(const struct plan *p, pid_t tgid, const struct att_opts *o, struct att **out, struct err *e)
{
	LIBBPF_OPTS(bpf_object_open_opts, types, .btf_custom_path = kernel_types_path());
	struct att *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (!o->verbose)
		backend_quiet();
	a->few_calls = o->few_calls;
	a->samples_bytes = o->ring_bytes ? o->ring_bytes : MXBPF_RING_BYTES;
	a->ring_bytes = o->ring_bytes ? o->ring_bytes : MXBPF_RING_BYTES / (o->few_calls ? 2 : 1);
	a->trap_measured = o->sister && o->sister->trap_measured;
	a->trap_hit_ns = a->trap_measured ? o->sister->trap_hit_ns : 0;
	err = choose_backend(a, p, o->backend, e);
	if (err)
		goto fail;
	err = rows_register();
	a->skel = err ? NULL : mxbpf_bpf__open_opts(&types);
	if (!a->skel) {
		err = backend_load_failed(err ? err : -errno, e);
		goto fail;
	}
	err = choose_programs(a, p, e);
	if (!err)
		err = costs_choose(a, e);
	if (!err && (o->sliced || o->scans))
		err = slice_choose(a, e);
	if (!err)
		err = choose_namespace(a, tgid, e);
	if (err)
		goto fail;
	memcpy((void *)a->skel->rodata->cfg_hidden, p->hidden, sizeof(p->hidden));
	memcpy((void *)a->skel->rodata->cfg_lenders, p->lenders, sizeof(p->lenders));
	memcpy((void *)a->skel->rodata->cfg_marks, p->mark_vtables, sizeof(p->mark_vtables));
	a->skel->rodata->cfg_wake_bytes = a->ring_bytes / 4;
	a->skel->rodata->cfg_build = o->build;
	choose_details(a, p, o);
	counters_choose(a->skel, o->counters);
	choose_sizes(a, o->details);
	choose_sizes_by_rows(a);
	if (o->sched)
		sched_choose(a);
	if (o->sched_spans) /* libraries that are loaded later have spans too */
		a->skel->rodata->cfg_spans[0] |= a->skel->rodata->cfg_spans[1];
	if (o->targets_fd > 0 && bpf_map__reuse_fd(a->skel->maps.targets, o->targets_fd)) {
		err = err_set(e, ERR_RUNTIME, -errno, "cannot share the map of targets: %s", strerror(errno));
		goto fail;
	}
	bpf_program__set_autoload(a->skel->progs.on_thread_gone, true);
	err = rows_load(a, o->verbose);
	if (!err)
		err = fill_maps(a);
	if (!err)
		err = o->sched ? sched_open(a) : 0;
	if (!err)
		err = counters_open(&a->counters, a->skel, o->counters);
	if (!err)
		err = att_fill_names(a, p);
	if (!err)
		err = fill_callers(a, p);
	if (!err && (o->iterations || o->follow_app || o->sliced))
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
