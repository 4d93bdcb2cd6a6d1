// SPDX-License-Identifier: Apache-2.0
/* Collectives by operation, size and group; by process; and what overlapped them on each device. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/collective/collective.h"
#include "view/gpu.h"
#include "view/priv.h"
#include "view/sheet.h"

#define SHOWN_MAX 12
#define DIGITS	  6 /* of a communicator, which tell it from others; people see the last ones */

struct operation {
	struct view_text name, backend, group, last, comm, comm_end, reduction, source;
	uint64_t bytes; /* TBL_UNKNOWN */
	uint64_t calls, members, total_ns, each_ns, wait_ns, move_ns, last_times, late_ns;
	uint64_t algorithm, bus; /* TBL_UNKNOWN */
	uint64_t parts, matched, comm_number, ranks, root;
	uint32_t tgid; /* without a group: the process */
	char group_text[COLLECTIVE_TEXT], last_text[COLLECTIVE_TEXT], comm_text[24];
};

struct rank {
	struct view_text name, group;
	uint64_t calls, total_ns, wait_ns, last, late_ns;
	double wait_share, last_share;
	uint32_t tgid, device;
	char text[COLLECTIVE_TEXT], group_text[COLLECTIVE_TEXT];
};

struct overlap {
	struct view_text name;
	uint64_t ns, overlapped_ns, exposed_ns, compute_ns;
	double exposed;
	uint32_t tgid, device;
	char text[COLLECTIVE_TEXT + 16];
};

struct table {
	struct view_list list;
	bool single;	 /* some parts have no group */
	bool comms;	 /* rows of one group have several communicators */
	bool roots;	 /* some rows have one */
	bool reductions; /* some rows have another than "sum" */
	bool nvtx;	 /* NCCL said some sizes */
};

/* ---- by operation */

static int collective_by_time(const void *va, const void *vb)
{
	const struct operation *a = va, *b = vb;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return a->tgid < b->tgid ? -1 : a->tgid > b->tgid;
}

/* By the bits of enum mxbpf_collective_source. */
static const char *const sources[] = {NULL, "arguments", "nvtx", "arguments, nvtx"};

static int collective_fill(const struct view *s, const struct buf *rows, struct operation *r,
			   const struct collective_sum *from)
{
	const struct mxbpf_agg_collective *a = &from->all;
	const uint32_t size = collective_size(s->in->session, a->ranks, a->members);
	const double bus = collective_bus_factor(a->op, size) > 0 ? from->bus : 0;
	char text[COLLECTIVE_TEXT];

	*r = (struct operation){
		.name = view_word(collective_ops[a->op]),
		.backend = view_word(collective_backends[a->backend]),
		.bytes = a->bytes == MXBPF_COLLECTIVE_UNSIZED ? TBL_UNKNOWN : a->bytes,
		.calls = from->calls,
		.members = a->members ? a->members : TBL_UNKNOWN,
		.total_ns = a->total_ns,
		.each_ns = from->each_ns,
		.wait_ns = collective_waits(a->op) && a->matched ? from->wait_ns : TBL_UNKNOWN,
		.move_ns = a->matched ? from->move_ns : TBL_UNKNOWN,
		.last_times = from->last,
		.late_ns = from->last ? from->late_ns / from->last : 0,
		.algorithm = from->algorithm > 0 ? whole(from->algorithm) : TBL_UNKNOWN,
		.bus = bus > 0 ? whole(bus) : TBL_UNKNOWN,
		.parts = a->count,
		.matched = a->matched,
		.comm_number = a->comm,
		.ranks = a->ranks ? a->ranks : TBL_UNKNOWN,
		.root = a->root ? a->root - 1 : TBL_UNKNOWN,
		.tgid = a->group ? 0 : a->h.tgid,
	};
	if (sources[a->source % 4])
		r->source = view_word(sources[a->source % 4]);
	if (a->reduction)
		r->reduction = view_word(collective_reduction(a->reduction));
	if (a->comm)
		snprintf(r->comm_text, sizeof(r->comm_text), "%016" PRIx64, r->comm_number);
	if (from->last)
		collective_process(s->in->session, from->last_tgid, r->last_text);
	if (a->group)
		return collective_group(s->in->session, rows, a, r->group_text);
	snprintf(r->group_text, sizeof(r->group_text), "%s%.40s", collective_is_apart(a->op) ? "" : "only ",
		 collective_process(s->in->session, a->h.tgid, text));
	return 0;
}

/* Which columns people see. */
static void collective_look(struct table *t)
{
	const struct operation *r = t->list.rows;
	size_t i, k;

	for (i = 0; i < t->list.all; i++) {
		t->roots |= r[i].root != TBL_UNKNOWN;
		t->reductions |= r[i].reduction.data && strcmp(r[i].reduction.data, "sum") != 0;
		t->nvtx |= r[i].source.data && strstr(r[i].source.data, "nvtx");
		for (k = 0; k < i && !t->comms; k++)
			t->comms = r[k].comm_number && r[i].comm_number && r[k].comm_number != r[i].comm_number &&
				   !strcmp(r[k].group_text, r[i].group_text);
	}
}

static int collective_make(const struct view *s, void *table)
{
	struct table *t = table;
	struct buf rows = {0}, all = {0};
	struct operation *r;
	size_t i, n;
	int err = collective_rows(s->in->model, &rows);

	err = err ? err : collective_sums(&rows, &all);
	n = buf_count(&all, struct collective_sum);
	t->list.rows = r = calloc(n + 1, sizeof(*r));
	err = err || r ? err : -ENOMEM;
	for (i = 0; !err && i < n; i++) {
		err = collective_fill(s, &rows, &r[i], buf_at(&all, struct collective_sum, i));
		t->single |= !strncmp(r[i].group_text, "only ", 5);
	}
	t->list.all = err ? 0 : n;
	if (!err)
		qsort(r, n, sizeof(*r), collective_by_time);
	for (i = 0; i < t->list.all; i++) {
		r[i].group = view_word(r[i].group_text);
		r[i].last = r[i].last_times ? view_word(r[i].last_text) : (struct view_text){0};
		if (!r[i].comm_number)
			continue;
		r[i].comm = view_word(r[i].comm_text);
		r[i].comm_end = view_word(r[i].comm_text + strlen(r[i].comm_text) - DIGITS);
	}
	collective_look(t);
	buf_fini(&rows);
	buf_fini(&all);
	return err;
}

static void collective_above(struct view *s, const void *table, const char *prefix)
{
	gpu_put_title(s, table, prefix, "Collectives:");
}

static void collective_below(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;
	const struct operation *r = t->list.rows;
	bool sized = false;
	size_t i;

	for (i = 0; i < t->list.n; i++)
		sized |= r[i].bytes != TBL_UNKNOWN;
	out_printf(s->out,
		   "%s         wait: until the last process began; move: from then to the last end; busbw as in "
		   "nccl-tests\n",
		   prefix);
	if (!sized)
		out_printf(s->out, "%s         bytes are not known%s\n", prefix,
			   s->in->session->profiler ? "" : "; record with --shapes");
	if (t->nvtx)
		out_printf(s->out,
			   "%s         bytes of nccl are those of its NVTX ranges, where no arguments were recorded\n",
			   prefix);
	if (t->single)
		out_printf(s->out,
			   "%s         \"only\": no other process of the collective was recorded, so its time includes "
			   "the wait\n",
			   prefix);
}

#define ROW struct operation
static const struct tbl_column columns[] = {
	{"name", NULL, "collective", TBL_TEXT, AT(name), .help = "all_reduce, all_gather and so on"},
	{"reduction", "", "by", TBL_TEXT, AT(reduction), TBL_NULL, .shown = offsetof(struct table, reductions),
	 .name_min = 13,
	 .help = "sum, product, max, min, average, or custom, as NCCL's NVTX range says it; null: not known"},
	{"root", "", "root", TBL_COUNT, AT(root), TBL_NULL, .shown = offsetof(struct table, roots),
	 .help = "rank in the communicator, as NCCL's NVTX range says it; null: none, or not known"},
	{"backend", "", "backend", TBL_TEXT, AT(backend), .name_min = 9},
	{"group", "", "group", TBL_TEXT, AT(group),
	 .help = "the ranks whose parts belong together, found by their times; \"only\" and a process: parts without "
		 "others"},
	{NULL, NULL, "comm", TBL_TEXT, AT(comm_end), TBL_NULL, .shown = offsetof(struct table, comms)},
	{"communicator", "", NULL, TBL_TEXT, LAST_AT(comm), TBL_NULL,
	 .help = "the number that NCCL gives it in all its processes; null: not known"},
	{"communicator_size", "", NULL, TBL_COUNT, AT(ranks), TBL_NULL,
	 .help = "its ranks, also those that were not recorded; null: not known"},
	{"pid", NULL, NULL, TBL_COUNT, AT(tgid), TBL_OMIT, .help = "of parts without a group"},
	{"world_size", "", NULL, TBL_COUNT, AT(members), TBL_NULL, .help = "processes of the group; null: not known"},
	{"bytes", NULL, "bytes", TBL_BYTES, KEY_AT(bytes), TBL_NULL,
	 .help = "of one collective, as nccl-tests count them: of all_gather and gather what all processes give; "
		 "null: not known"},
	{"source", "", NULL, TBL_TEXT, LAST_AT(source), TBL_NULL,
	 .help = "what said the bytes: arguments of the framework's call, nvtx (NCCL's ranges); null: nothing"},
	{"calls", "count", "calls", TBL_COUNT, SUM_AT(calls)},
	{"total_ns", NULL, NULL, TBL_NS, SUM_AT(total_ns), .help = "of the parts of all processes"},
	{"each_ns", NULL, "time", TBL_NS, AT(each_ns), TBL_TIGHT, .help = "of a process in one collective, on average"},
	{"wait_ns", NULL, "wait", TBL_NS, AT(wait_ns), TBL_NULL | TBL_TIGHT,
	 .help = "of each_ns, until the last process began; null: not known, or no process waits for all others"},
	{"move_ns", NULL, "move", TBL_NS, AT(move_ns), TBL_NULL | TBL_TIGHT,
	 .help = "from the start of the last process to the last end, on average; null: not known"},
	{"algorithm_bytes_per_second", "", "algbw", TBL_RATE, AT(algorithm), TBL_NULL, .name_min = 12,
	 .help = "bytes by move_ns; without a group, by each_ns"},
	{"bus_bytes_per_second", "", "busbw", TBL_RATE, AT(bus), TBL_NULL,
	 .help = "algorithm bandwidth times the factor of the operation in nccl-tests, such as 2(n-1)/n of all_reduce"},
	{"last", "", "often last", TBL_TEXT, LAST_AT(last), TBL_NULL, .name_min = 14,
	 .help = "the process that began last most often"},
	{"last_count", "", NULL, TBL_COUNT, AT(last_times), .help = "so often"},
	{"late_ns", "", "late by", TBL_NS, AT(late_ns), TBL_DASH | TBL_TIGHT, .name_min = 14,
	 .help = "of that process when it was last: how long after the median start of the others, on average"},
	{"parts", "", NULL, TBL_COUNT, SUM_AT(parts), .help = "of all processes"},
	{"parts_matched", "", NULL, TBL_COUNT, AT(matched), .help = "parts with those of all processes of the group"},
	{0},
};
#undef ROW

/* Collectives are known of PyTorch, whose timelines have a form of their own, and of GPUs. */
static bool collective_when(const struct view *s)
{
	const char *form = s->in->session->trace_form;

	return (form && *form) || gpu_when(s);
}

const struct view_sheet sheet_collective = {
	.title = "Collectives",
	.help = "Collectives of gloo and NCCL by operation, size and group; absent without any.",
	.member = "collectives",
	.list = "operations",
	.list_help = "by time of all processes",
	.csv = "collective",
	.columns = columns,
	.row_bytes = sizeof(struct operation),
	.table_bytes = sizeof(struct table),
	.people_max = SHOWN_MAX,
	.if_any = true,
	.when = collective_when,
	.make = collective_make,
	.above = collective_above,
	.below = collective_below,
};

/* ---- by process */

static int by_late(const void *va, const void *vb)
{
	const struct rank *a = va, *b = vb;
	int group = strcmp(a->group_text, b->group_text);

	if (group)
		return group;
	if (a->last != b->last)
		return a->last < b->last ? 1 : -1;
	return a->tgid != b->tgid ? (a->tgid < b->tgid ? -1 : 1) : a->device < b->device ? -1 : a->device > b->device;
}

static int make_ranks(const struct view *s, void *table)
{
	struct table *t = table;
	const struct mxbpf_agg_collective *a;
	struct buf rows = {0}, all = {0};
	struct rank *r;
	size_t i, n;
	int err = collective_rows(s->in->model, &rows);

	err = err ? err : collective_ranks(&rows, &all);
	n = buf_count(&all, *a);
	t->list.rows = r = calloc(n + 1, sizeof(*r));
	err = err || r ? err : -ENOMEM;
	for (i = 0; !err && i < n; i++) {
		a = buf_at(&all, struct mxbpf_agg_collective, i);
		r[i] = (struct rank){.calls = a->count,
				     .total_ns = a->total_ns,
				     .wait_ns = a->wait_ns,
				     .last = a->last,
				     .late_ns = a->last ? a->late_ns / a->last : 0,
				     .wait_share = a->total_ns ? (double)a->wait_ns / (double)a->total_ns : 0,
				     .last_share = a->matched ? (double)a->last / (double)a->matched : 0,
				     .tgid = a->h.tgid,
				     .device = a->device};
		collective_process(s->in->session, a->h.tgid, r[i].text);
		err = collective_group(s->in->session, &rows, a, r[i].group_text);
	}
	t->list.all = err ? 0 : n;
	if (!err)
		qsort(r, n, sizeof(*r), by_late);
	for (i = 0; i < t->list.all; i++) {
		r[i].name = view_word(r[i].text);
		r[i].group = view_word(r[i].group_text);
	}
	buf_fini(&rows);
	buf_fini(&all);
	return err;
}

static void above_ranks(struct view *s, const void *table, const char *prefix)
{
	gpu_put_title(s, table, prefix, "Who comes last:");
}

#define ROW struct rank
static const struct tbl_column rank_columns[] = {
	{"name", NULL, "process", TBL_TEXT, AT(name), .help = "its rank, or its number if it has none"},
	{"group", "", "group", TBL_TEXT, AT(group)},
	{"pid", NULL, NULL, TBL_COUNT, AT(tgid)},
	{"gpu", "", NULL, TBL_COUNT, AT(device), .help = "NCCL: number of the GPU in the process; else 0"},
	{"calls", "count", "collectives", TBL_COUNT, SUM_AT(calls), .help = "of operations that wait for all processes",
	 .metric = METRIC_OF_CALLS("mxbpf_collectives", "Collectives in which the process waited for all others")},
	{"total_ns", NULL, "time", TBL_NS, SUM_AT(total_ns), TBL_TIGHT,
	 .metric = METRIC_OF_CALLS("mxbpf_collective_seconds", "Time in these collectives")},
	{"wait_ns", "", "waits", TBL_NS, SUM_AT(wait_ns), TBL_TIGHT, .help = "of it, until the last process began",
	 .metric = METRIC_OF_CALLS("mxbpf_collective_wait_seconds",
				   "Time in these collectives until the last process began")},
	{NULL, NULL, "of it", TBL_SHARE, AT(wait_share), .help = "waits as part of time"},
	{"last", "", "last", TBL_COUNT, SUM_AT(last), .help = "so often it began last",
	 .metric = METRIC_OF_CALLS("mxbpf_collectives_last",
				   "Collectives that the process began last, so that others waited")},
	{NULL, NULL, "share", TBL_SHARE, AT(last_share), .help = "last as part of collectives"},
	{"late_ns", "", "late by", TBL_NS, AT(late_ns), TBL_DASH | TBL_TIGHT,
	 .help = "when it was last: how long after the median start of the others, on average"},
	{0},
};
#undef ROW

const struct view_sheet sheet_collective_ranks = {
	.title = "Who comes last",
	.help = "How long each process waits in collectives, and how often the others wait for it; absent without "
		"several "
		"processes.",
	.member = "collectives",
	.list = "ranks",
	.list_help = "by group, the process that is last most often first",
	.csv = "collective of a rank",
	.columns = rank_columns,
	.row_bytes = sizeof(struct rank),
	.table_bytes = sizeof(struct table),
	.people_max = SHOWN_MAX,
	.if_any = true,
	.when = collective_when,
	.make = make_ranks,
	.above = above_ranks,
};

/* ---- by device */

static int by_exposed(const void *va, const void *vb)
{
	const struct overlap *a = va, *b = vb;

	if (a->exposed_ns != b->exposed_ns)
		return a->exposed_ns < b->exposed_ns ? 1 : -1;
	return a->tgid != b->tgid ? (a->tgid < b->tgid ? -1 : 1) : a->device < b->device ? -1 : a->device > b->device;
}

static int make_overlap(const struct view *s, void *table)
{
	struct table *t = table;
	const struct mxbpf_agg_overlap *a;
	struct buf all = {0};
	struct overlap *r;
	char text[COLLECTIVE_TEXT];
	size_t i, n;
	int err = collective_overlaps(s->in->model, &all);

	n = buf_count(&all, *a);
	t->list.rows = r = calloc(n + 1, sizeof(*r));
	err = err || r ? err : -ENOMEM;
	for (i = 0; !err && i < n; i++) {
		a = buf_at(&all, struct mxbpf_agg_overlap, i);
		r[i] = (struct overlap){.ns = a->ns,
					.overlapped_ns = a->overlapped_ns,
					.exposed_ns = a->ns > a->overlapped_ns ? a->ns - a->overlapped_ns : 0,
					.compute_ns = a->compute_ns,
					.tgid = a->h.tgid,
					.device = a->device};
		r[i].exposed = (double)r[i].exposed_ns / (double)a->ns;
		snprintf(r[i].text, sizeof(r[i].text), "%s GPU %" PRIu32,
			 collective_process(s->in->session, a->h.tgid, text), a->device);
	}
	t->list.all = err ? 0 : n;
	if (!err)
		qsort(r, n, sizeof(*r), by_exposed);
	for (i = 0; i < t->list.all; i++)
		r[i].name = view_word(r[i].text);
	buf_fini(&all);
	return err;
}

static void above_overlap(struct view *s, const void *table, const char *prefix)
{
	gpu_put_title(s, table, prefix, "Communication on GPUs:");
}

#define ROW struct overlap
static const struct tbl_column overlap_columns[] = {
	{"name", NULL, "gpu", TBL_TEXT, AT(name)},
	{"pid", NULL, NULL, TBL_COUNT, AT(tgid)},
	{"gpu", "", NULL, TBL_COUNT, AT(device), .help = "number of the GPU in the process"},
	{"total_ns", NULL, "time", TBL_NS, SUM_AT(ns), TBL_TIGHT,
	 .help = "in which at least one kernel of NCCL ran, with its waits for other ranks"},
	{"overlapped_ns", "", "overlapped", TBL_NS, SUM_AT(overlapped_ns), TBL_TIGHT,
	 .help = "of it, while another kernel ran on the GPU, too"},
	{"exposed_ns", "", "exposed", TBL_NS, SUM_AT(exposed_ns), TBL_TIGHT,
	 .help = "of it, while no other kernel ran"},
	{NULL, NULL, "of it", TBL_SHARE, AT(exposed), .help = "exposed as part of time"},
	{"compute_ns", "", "other kernels", TBL_NS, SUM_AT(compute_ns), TBL_TIGHT},
	{0},
};
#undef ROW

const struct view_sheet sheet_collective_overlap = {
	.title = "Communication on GPUs",
	.help = "How much of NCCL's time on each GPU other kernels overlap; absent without kernels of NCCL.",
	.member = "collectives",
	.list = "gpus",
	.list_help = "by time that nothing overlaps",
	.csv = "communication of a GPU",
	.columns = overlap_columns,
	.row_bytes = sizeof(struct overlap),
	.table_bytes = sizeof(struct table),
	.people_max = SHOWN_MAX,
	.if_any = true,
	.when = collective_when,
	.make = make_overlap,
	.above = above_overlap,
};
