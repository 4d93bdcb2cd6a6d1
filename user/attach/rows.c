// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the programs of the plan's rows. The object has one program per action, and that program reads row 0. libbpf
 * prepares the program. Instead of loading it, this file copies it for each row and redirects the copy's loads from row
 * 0 to its own row. So the object stays small. The verifier takes most of the time from start to first event, so
 * threads load the copies side by side.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/priv.h"

#define SECTION	  "row"
#define LOADERS	  8
#define LOG_BYTES (4u << 20)

static const char *const names[] = {
	[MXBPF_ACT_NONE] = "on_nothing",
	[MXBPF_ACT_OPEN] = "on_open",
	[MXBPF_ACT_CLOSE_PAIR] = "on_close_pair",
	[MXBPF_ACT_CLOSE_KEY] = "on_close_key",
	[MXBPF_ACT_ALLOC] = "on_memory",
	[MXBPF_ACT_FREE] = "on_memory",
	[MXBPF_ACT_EDGE] = "on_edge",
	[MXBPF_ACT_CLOSE_CUT] = "on_close_cut",
	[MXBPF_ACT_RAISE] = "on_raise",
	[MXBPF_ACT_TICK] = "on_tick",
	[MXBPF_ACT_OMP_OPEN] = "on_region",
	[MXBPF_ACT_OMP_BEGIN] = "on_region",
	[MXBPF_ACT_OMP_WAIT] = "on_region",
	[MXBPF_ACT_OMP_CLOSE] = "on_region",
	[MXBPF_ACT_OMP_JOIN] = "on_region",
	[MXBPF_ACT_OMP_LEAVE] = "on_region",
	[MXBPF_ACT_STEP] = "on_step",
	[MXBPF_ACT_COUNT] = "on_count",
	[MXBPF_ACT_NOTE] = "on_note",
	[MXBPF_ACT_PUSHED] = "on_custom_push",
	[MXBPF_ACT_OUTPUT] = "on_output",
	[MXBPF_ACT_LIFE_PUSH] = "on_life_push",
	[MXBPF_ACT_LIFE_CLAIM] = "on_life_push",
	[MXBPF_ACT_LIFE_READY] = "on_life_ready",
	[MXBPF_ACT_ALLOCATED] = "on_allocated",
	[MXBPF_ACT_POOL] = "on_pool",
	[MXBPF_ACT_REPORT] = "on_memory",
	[MXBPF_ACT_FAILED] = "on_failed",
	[MXBPF_ACT_THROWN] = "on_thrown",
	[MXBPF_ACT_MARK_START] = "on_mark_start",
	[MXBPF_ACT_MARK_STOP] = "on_mark_stop",
	[MXBPF_ACT_MARK_SET] = "on_mark_value",
	[MXBPF_ACT_MARK_ADJUST] = "on_mark_value",
	[MXBPF_ACT_MARK_INSTANT] = "on_mark_instant",
	[MXBPF_ACT_MARK_END] = "on_mark_end",
	[MXBPF_ACT_APP] = "on_app",
	[MXBPF_ACT_KEYED] = "on_keyed",
	[MXBPF_ACT_SEEN] = "on_seen",
};
#define NNAMES (sizeof(names) / sizeof(names[0]))

/* The program of an action, as libbpf would have loaded it. */
struct model {
	const struct bpf_program *prog;
	struct bpf_insn *insns; /* owned */
	size_t ninsns;
	struct bpf_prog_load_opts opts; /* its pointers belong to the object */
};

struct rows {
	struct model models[NNAMES];
	size_t n;
	bool verbose;
};

/* libbpf passes no pointer of the caller's to the callback. */
static _Thread_local struct rows *loading;

static int keep_model(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long cookie)
{
	static struct bpf_insn nothing[] = {{.code = 0xb7}, {.code = 0x95}}; /* r0 = 0; exit */
	struct model *m;

	if (!loading || loading->n == NNAMES)
		return -EINVAL;
	m = &loading->models[loading->n];
	m->ninsns = bpf_program__insn_cnt(prog);
	m->insns = malloc(m->ninsns * sizeof(*m->insns));
	if (!m->insns)
		return -ENOMEM;
	memcpy(m->insns, bpf_program__insns(prog), m->ninsns * sizeof(*m->insns));
	m->prog = prog;
	m->opts = *opts;
	loading->n++;
	opts->func_info_cnt = opts->line_info_cnt = 0;
	return bpf_program__set_insns(prog, nothing, sizeof(nothing) / sizeof(nothing[0]));
}

/* libbpf has one table of handlers for the whole process. */
static int registered;

static void register_once(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, o, .prog_prepare_load_fn = keep_model);

	registered = libbpf_register_prog_handler(SECTION, BPF_PROG_TYPE_KPROBE, 0, &o);
}

int rows_register(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_once);
	return registered < 0 ? registered : 0;
}

int rows_choose(struct att *a, const struct mxbpf_row *row, bool late)
{
	struct bpf_program *prog = NULL;

	if (row->action < NNAMES && names[row->action])
		prog = bpf_object__find_program_by_name(a->skel->obj, names[row->action]);
	if (!prog)
		return -EINVAL;
	bpf_program__set_autoload(prog, true);
	bpf_program__set_expected_attach_type(prog, (enum bpf_attach_type)a->backend->attach_type);
	memcpy((void *)&a->skel->rodata->cfg_rows[a->nvariants], row, sizeof(*row));
	a->variants[a->nvariants++] = (struct variant){row, -1, late};
	return 0;
}

static const struct model *model_of(const struct rows *rows, const struct mxbpf_row *row)
{
	size_t i;

	for (i = 0; i < rows->n; i++)
		if (!strcmp(bpf_program__name(rows->models[i].prog), names[row->action]))
			return &rows->models[i];
	return NULL;
}

/* Changes each address in item 0 of a constant array to the same place in item k. */
static void move_item(const struct att *a, struct bpf_insn *insns, size_t n, const void *array, size_t bytes,
		      unsigned k)
{
	const size_t first = (size_t)((const char *)array - (const char *)a->skel->rodata);
	const int rodata = bpf_map__fd(a->skel->maps.rodata);
	size_t i;

	for (i = 0; i + 1 < n; i++) {
		if (insns[i].code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (insns[i].src_reg == BPF_PSEUDO_MAP_VALUE && insns[i].imm == rodata &&
		    (size_t)insns[i + 1].imm - first < bytes)
			insns[i + 1].imm += (int)(k * bytes);
		i++;
	}
}

static int load_copy(const struct model *m, const struct bpf_insn *insns, const char *name, bool verbose)
{
	struct bpf_prog_load_opts o = m->opts;
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, name, "Dual BSD/GPL", insns, m->ninsns, &o);

	if (fd >= 0 || !verbose)
		return fd;
	o.log_level = 1;
	o.log_size = LOG_BYTES;
	o.log_buf = calloc(1, LOG_BYTES);
	if (!o.log_buf)
		return fd;
	fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, name, "Dual BSD/GPL", insns, m->ninsns, &o);
	if (fd < 0)
		fprintf(stderr, "libbpf: %s (%s): %s\n%s\n", name, bpf_program__name(m->prog), strerror(-fd),
			o.log_buf);
	free(o.log_buf);
	return fd;
}

static int load_row(struct att *a, unsigned k)
{
	const struct mxbpf_bpf__rodata *ro = a->skel->rodata;
	const struct model *m = model_of(a->rows, a->variants[k].row);
	struct bpf_insn *insns;
	char name[32];
	int fd;

	if (!m)
		return -EINVAL;
	insns = malloc(m->ninsns * sizeof(*insns));
	if (!insns)
		return -ENOMEM;
	memcpy(insns, m->insns, m->ninsns * sizeof(*insns));
	move_item(a, insns, m->ninsns, ro->cfg_rows, sizeof(ro->cfg_rows[0]), k);
	move_item(a, insns, m->ninsns, ro->cfg_nr, sizeof(ro->cfg_nr[0]), k);
	move_item(a, insns, m->ninsns, ro->cfg_spans, sizeof(ro->cfg_spans[0]), a->variants[k].late);
	snprintf(name, sizeof(name), "on_probe_%u", k);
	fd = load_copy(m, insns, name, a->rows->verbose);
	free(insns);
	a->variants[k].prog_fd = fd;
	return fd < 0 ? fd : 0;
}

/* State shared by the loading threads. They change `next` and `err` atomically. */
struct work {
	struct att *a;
	unsigned next;
	int err;
	bool late;
};

static void *load_some(void *arg)
{
	struct work *w = arg;
	unsigned k;
	int err;

	while (!__atomic_load_n(&w->err, __ATOMIC_RELAXED)) {
		k = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED);
		if (k >= w->a->nvariants)
			break;
		err = w->a->variants[k].late == w->late ? load_row(w->a, k) : 0;
		if (err)
			__atomic_store_n(&w->err, err, __ATOMIC_RELAXED);
	}
	return NULL;
}

static int load_all(struct att *a, bool late)
{
	struct work w = {.a = a, .late = late};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t others[LOADERS];
	int i, n = 0;

	while (n < LOADERS && n < cpus - 1 && !pthread_create(&others[n], NULL, load_some, &w))
		n++;
	load_some(&w);
	for (i = 0; i < n; i++)
		pthread_join(others[i], NULL);
	return w.err;
}

static void forget_models(struct att *a)
{
	size_t i;

	for (i = 0; a->rows && i < a->rows->n; i++)
		free(a->rows->models[i].insns);
	free(a->rows);
	a->rows = NULL;
}

int rows_load(struct att *a, bool verbose)
{
	int err;

	a->rows = calloc(1, sizeof(*a->rows));
	if (!a->rows)
		return -ENOMEM;
	a->rows->verbose = verbose;
	loading = a->rows;
	err = mxbpf_bpf__load(a->skel);
	loading = NULL;
	return err ? err : load_all(a, false);
}

int rows_load_late(struct att *a)
{
	int err = a->rows ? load_all(a, true) : 0;

	forget_models(a);
	return err;
}

void rows_close(struct att *a)
{
	forget_models(a);
	while (a->nvariants)
		if (a->variants[--a->nvariants].prog_fd >= 0)
			close(a->variants[a->nvariants].prog_fd);
}
