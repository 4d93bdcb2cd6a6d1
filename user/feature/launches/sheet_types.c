// SPDX-License-Identifier: Apache-2.0
/* Time of GPUs by the type of their work. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "feature/launches/launches.h"
#include "view/gpu.h"

/* Types of work, and the time without any. */
#define NOTHING	  MXBPF_TYPES
#define ROWS_EACH (MXBPF_TYPES + 1)

static const char *const words[] = {
	[MXBPF_TYPE_COMPUTE] = "computation",
	[MXBPF_TYPE_EXCHANGE] = "communication",
	[MXBPF_TYPE_MEMORY] = "memory",
	[NOTHING] = "idle",
};

struct row {
	struct view_text gpu;
	uint32_t tgid, device;
	uint8_t type;
	bool works; /* it is a type of work */
	uint64_t count, total_ns, busy_ns, alone_ns, beside_ns;
	double share;
	char text[VIEW_LABEL_BYTES + 32];
};

struct table {
	struct view_list list;
	bool devices, processes;
};

static int launches_by_device(const void *va, const void *vb)
{
	const struct mxbpf_agg_gpu_types *a = va, *b = vb;

	if (a->h.tgid != b->h.tgid)
		return a->h.tgid < b->h.tgid ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

static void fill_type(struct row *r, const struct mxbpf_agg_gpu_types *a, unsigned type)
{
	unsigned mask;

	r->works = true;
	r->count = a->count[type];
	r->total_ns = a->total_ns[type];
	r->alone_ns = a->ns[1u << type];
	for (mask = 0; mask < 1u << MXBPF_TYPES; mask++)
		if (mask & 1u << type)
			add_sat(&r->busy_ns, a->ns[mask]);
	r->beside_ns = r->busy_ns - r->alone_ns;
}

/* Makes the rows of a device. Returns the row behind them. */
static struct row *make_device(const struct view *s, struct row *r, const struct mxbpf_agg_gpu_types *a)
{
	uint64_t all_ns = activity_seen_ns(s->in->model, a->h.tgid, s->in->session->duration_ns), busy_ns = 0;
	unsigned mask, type;
	struct row *one;

	for (mask = 1; mask < 1u << MXBPF_TYPES; mask++)
		add_sat(&busy_ns, a->ns[mask]);
	all_ns = all_ns > a->last_ns - a->first_ns ? all_ns : a->last_ns - a->first_ns;
	for (type = 0; type < ROWS_EACH; type++) {
		one = &r[type];
		*one = (struct row){.tgid = a->h.tgid, .device = a->device, .type = (uint8_t)type};
		if (type == NOTHING)
			one->total_ns = one->busy_ns = one->alone_ns = all_ns > busy_ns ? all_ns - busy_ns : 0;
		else
			fill_type(one, a, type);
		one->share = all_ns ? (double)one->busy_ns / (double)all_ns : 0;
	}
	return r + ROWS_EACH;
}

static int launches_make(const struct view *s, void *table)
{
	struct table *t = table;
	struct mxbpf_agg_gpu_types *a;
	struct buf all = {0};
	struct row *rows = NULL, *r;
	char process[VIEW_LABEL_BYTES + 2] = "", owner[VIEW_LABEL_BYTES];
	size_t n, i;
	int err = launches_types(s->in->model, &all);

	n = buf_count(&all, *a);
	a = (struct mxbpf_agg_gpu_types *)all.data;
	if (!err)
		t->list.rows = rows = calloc(ROWS_EACH * n + 1, sizeof(*rows));
	if (n)
		qsort(a, n, sizeof(*a), launches_by_device);
	for (r = rows, i = 0; rows && i < n; i++) {
		r = make_device(s, r, &a[i]);
		t->processes |= a[i].h.tgid != a[0].h.tgid;
	}
	t->devices = n > 1;
	t->list.all = rows ? (size_t)(r - rows) : 0;
	for (i = 0; i < t->list.all; i++) {
		if (t->processes)
			snprintf(process, sizeof(process), "%s ", gpu_owner(s, rows[i].tgid, owner));
		snprintf(rows[i].text, sizeof(rows[i].text), "%sGPU %" PRIu32, process, rows[i].device);
		rows[i].gpu = view_word(rows[i].text);
	}
	buf_fini(&all);
	gpu_show_empty(s, &t->list);
	return rows ? 0 : -ENOMEM;
}

static void launches_above(struct view *s, const void *table, const char *prefix)
{
	out_printf(s->out, "%sGPU time by type\n", prefix);
}

#define ROW	     struct row
#define SEEN(member) .shown = offsetof(struct table, member)
static const struct tbl_column columns[] = {
	{"type", "name", "type", TBL_WORD, AT(type), WORDS(words), .label = "type",
	 .help = "communication: kernels of NCCL and of other libraries that exchange data; memory: copies and sets; "
		 "computation: all other kernels; idle: nothing ran"},
	{NULL, NULL, "gpu", TBL_TEXT, AT(gpu), SEEN(devices)},
	PID_COLUMN(tgid),
	{"gpu", "", NULL, TBL_COUNT, KEY_AT(device), .label = "gpu", .help = "number of the GPU in the process"},
	{NULL, NULL, NULL, TBL_NS, AT(busy_ns), .has = offsetof(struct row, works),
	 .metric = METRIC("mxbpf_gpu_type_seconds", "Time in which the GPU did this type of work of the process")},
	{NULL, NULL, NULL, TBL_NS, AT(alone_ns), .has = offsetof(struct row, works),
	 .metric = METRIC("mxbpf_gpu_type_alone_seconds",
			  "Time in which the GPU did this type of work of the process and no other")},
	{"count", NULL, "activities", TBL_COUNT, SUM_AT(count), TBL_DASH},
	{"total_ns", NULL, "total", TBL_NS, SUM_AT(total_ns), TBL_TIGHT | TBL_DASH,
	 .help = "sum of the durations; those of several streams overlap"},
	{"busy_ns", NULL, "busy", TBL_NS, SUM_AT(busy_ns), TBL_TIGHT | TBL_DASH,
	 .help = "time in which at least one ran"},
	{NULL, NULL, "share", TBL_SHARE, AT(share), .digits = 1,
	 .help = "busy as part of the time in which the GPU was watched"},
	{"alone_ns", NULL, "alone", TBL_NS, SUM_AT(alone_ns), TBL_TIGHT | TBL_DASH,
	 .help = "the part of busy in which no other type ran"},
	{"beside_ns", NULL, "beside others", TBL_NS, SUM_AT(beside_ns), TBL_TIGHT | TBL_DASH,
	 .help = "the part of busy in which another type ran"},
	{0},
};

const struct view_sheet sheet_gpu_types = {
	.title = "GPU time by type",
	.help = "How long each GPU computed, communicated, moved memory and did nothing; absent if no GPU had work.",
	.list_help = "types of work, by process and GPU",
	.member = "gpu",
	.list = "types",
	.csv = "GPU time by type",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.if_any = true,
	.whole = true,
	.when = gpu_when,
	.make = launches_make,
	.above = launches_above,
	.left_out = "GPU time by type",
};
