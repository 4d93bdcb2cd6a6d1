// SPDX-License-Identifier: Apache-2.0
/* What operators with known shapes reach on GPUs, against what the GPUs can. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/roofline/roofline.h"
#include "view/gpu.h"

static const char *const bounds[ROOFLINE_BOUNDS] = {
	[ROOFLINE_COMPUTE] = "compute",
	[ROOFLINE_MEMORY] = "memory",
	[ROOFLINE_SMALL] = "too small",
	[ROOFLINE_NEITHER] = "neither",
};
static const char *const types[FLOPS_TYPES] = {
	[FLOPS_FLOAT64] = "float64",
	[FLOPS_FLOAT32] = "float32",
	[FLOPS_FLOAT16] = "float16",
	[FLOPS_BFLOAT16] = "bfloat16",
};

struct row {
	struct view_text name, shapes, owner;
	struct roofline_row r;
	uint64_t flops, bytes; /* of a call */
	uint64_t avg_ns;
	double gflops, intensity, of_flops, of_bytes;
	uint64_t rate; /* bytes per second */
	uint8_t type, bound;
	char owner_text[VIEW_LABEL_BYTES];
};

struct table {
	struct view_list list;
	bool processes;
	bool operations; /* some row has operations */
	bool no_peaks;	 /* what some device can do is not known */
	uint64_t ns;	 /* of all rows */
};

static const struct mxbpf_gpu_limits *limits_of(const struct view *s, uint32_t tgid, uint32_t device)
{
	size_t n, i;
	const struct mxbpf_gpu_limits *l = roofline_limits(s->in->model, &n);

	for (i = 0; i < n; i++)
		if ((!tgid || l[i].h.tgid == tgid) && l[i].device == device)
			return &l[i];
	return NULL;
}

/* The GPUs of a process are taken to be alike, because a row has the work on all of them. */
static void fill_result(const struct view *s, struct table *t, struct row *row, const struct roofline_need *need)
{
	const struct roofline_peaks p = roofline_peaks(gpu_device(s, row->r.tgid, 0), limits_of(s, row->r.tgid, 0));
	const struct roofline_result o = roofline_of(&row->r, need, &p);

	row->flops = need->flops;
	row->bytes = need->bytes;
	row->type = (uint8_t)need->type;
	row->gflops = need->flops ? o.flops / 1e9 : NAN;
	row->rate = (uint64_t)o.bytes;
	row->intensity = o.intensity;
	row->of_flops = o.of_flops;
	row->of_bytes = o.of_bytes;
	row->bound = (uint8_t)o.bound;
	row->avg_ns = row->r.calls ? row->r.total.gpu_ns / row->r.calls : 0;
	t->operations |= need->flops != 0;
	t->no_peaks |= o.bound == ROOFLINE_UNKNOWN;
}

/* Returns false if the row has nothing to show. Operators that launch nothing themselves are those inside them. */
static bool roofline_fill(const struct view *s, struct table *t, struct row *row, const struct roofline_row *from)
{
	const struct mdl *m = s->in->model;
	struct roofline_need need;
	size_t len = 0;
	const char *args = mdl_text(m, MXBPF_NAME_ARGS, from->args_id, &len);

	*row = (struct row){.r = *from};
	row->name.data = mdl_name(m, from->name_id, &row->name.len);
	if (!from->calls || !from->self.gpu_ns || !roofline_need(row->name.data, row->name.len, args, len, &need))
		return false;
	row->shapes.data = view_shapes(m, from->args_id, &row->shapes.len);
	fill_result(s, t, row, &need);
	add_sat(&t->ns, from->total.gpu_ns);
	return true;
}

static int roofline_by_time(const void *va, const void *vb)
{
	const struct row *a = va, *b = vb;
	int order;

	if (a->r.total.gpu_ns != b->r.total.gpu_ns)
		return a->r.total.gpu_ns < b->r.total.gpu_ns ? 1 : -1;
	order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);
	order = order ? order : view_name_cmp(a->shapes.data, a->shapes.len, b->shapes.data, b->shapes.len);
	return order ? order : a->r.tgid < b->r.tgid ? -1 : a->r.tgid > b->r.tgid;
}

static int roofline_make(const struct view *s, void *table)
{
	struct table *t = table;
	size_t n, i;
	const struct roofline_row *all = roofline_rows(s->in->model, &n);
	struct row *r = calloc(n + 1, sizeof(*r));

	t->list.rows = r;
	t->processes = view_by_processes(s->opts->by);
	gpu_show_empty(s, &t->list);
	if (!r)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		t->list.all += roofline_fill(s, t, &r[t->list.all], &all[i]);
	qsort(r, t->list.all, sizeof(*r), roofline_by_time);
	for (i = 0; t->processes && i < t->list.all; i++)
		r[i].owner = view_word(gpu_owner(s, r[i].r.tgid, r[i].owner_text));
	return 0;
}

static void roofline_above(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;
	char ns[24], text[96];

	snprintf(text, sizeof(text), "Operators against the GPU's peaks: %s in", fmt_ns(t->ns, ns));
	gpu_put_title(s, &t->list, prefix, text);
}

static void roofline_below(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;

	out_printf(s->out, "%sbytes are a lower bound: inputs and outputs once; peaks are at the highest clocks\n",
		   prefix);
	if (t->no_peaks)
		out_printf(s->out, "%sthe peak of some GPU or type is not known\n", prefix);
}

static void flops_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	const double v = *(const double *)value;

	snprintf(cell, TBL_CELL_BYTES, v < 9.95 ? "%.2f" : v < 99.5 ? "%.1f" : "%.0f", v);
}

static void intensity_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	const double v = *(const double *)value;

	snprintf(cell, TBL_CELL_BYTES, v < 9.95 ? "%.1f" : "%.0f", v);
}

#define ROW	     struct row
#define SEEN(member) .shown = offsetof(struct table, member)
static const struct tbl_column columns[] = {
	{"name", NULL, "operator", TBL_TEXT, AT(name)},
	GPU_OWNER_COLUMN,
	PID_COLUMN(r.tgid),
	{"shapes", NULL, "shapes", TBL_RAW, AT(shapes), .def = "shapes", .help = "of its inputs"},
	{"type", NULL, "type", TBL_WORD, AT(type), TBL_OMIT, WORDS(types), .name_min = 26,
	 .help = "of the first input, by which the peak is chosen; absent for other types"},
	{"count", NULL, "calls", TBL_COUNT, SUM_AT(r.calls), .name_min = 20, .help = "calls that launched something"},
	{"kernels", NULL, NULL, TBL_COUNT, SUM_AT(r.total.kernels)},
	{"gpu_total_ns", NULL, "gpu total", TBL_NS, SUM_AT(r.total.gpu_ns), TBL_TIGHT,
	 .help = "time on the GPU of what these calls launched"},
	{"gpu_avg_ns", NULL, "avg", TBL_NS, AT(avg_ns), TBL_TIGHT, .name_min = 24, .help = "for a call"},
	{"flops", NULL, NULL, TBL_COUNT, AT(flops), TBL_OMIT,
	 .help = "floating-point operations of a call, by its shapes; absent if they are few or not known"},
	{"bytes", NULL, NULL, TBL_BYTES, AT(bytes), TBL_OMIT,
	 .help = "bytes of the inputs and outputs of a call, each once: a lower bound of what it moves; absent if not "
		 "known"},
	{"flop_per_byte", NULL, "flop/B", TBL_RATIO, AT(intensity), TBL_OMIT | TBL_SIGNIFICANT, SEEN(operations),
	 .data_digits = 6, .name_min = 22, .cell = intensity_cell,
	 .help = "arithmetic intensity, an upper bound: flops / bytes"},
	{"gflop_per_s", NULL, "GFLOP/s", TBL_RATIO, AT(gflops), TBL_OMIT | TBL_SIGNIFICANT, SEEN(operations),
	 .data_digits = 6, .cell = flops_cell, .help = "what the calls reached on the GPU"},
	{"of_peak_flops", NULL, "of peak", TBL_RATIO, AT(of_flops), TBL_OMIT, SEEN(operations), .data_digits = 4,
	 .cell = gpu_percent_cell,
	 .help = "part of what the GPU can do in this type; float32 counts as computed by tensor cores (TF32) if other "
		 "units "
		 "cannot be as fast; absent if the peak is not known"},
	{"bytes_per_s", NULL, "moved/s", TBL_RATE, AT(rate), TBL_OMIT,
	 .help = "bytes by the time on the GPU, a lower bound"},
	{"of_peak_bytes", NULL, "of peak", TBL_RATIO, AT(of_bytes), TBL_OMIT, .data_digits = 4,
	 .cell = gpu_percent_cell,
	 .help = "part of what the GPU's memory can move; more than 1 if the data was in a cache; absent if the peak "
		 "is not "
		 "known"},
	{"bound", NULL, "bound by", TBL_WORD, LAST_AT(bound), TBL_OMIT, WORDS(bounds),
	 .help = "compute, memory: at least a half of the peak is reached; too small: neither, and a kernel takes less "
		 "than "
		 "10 us, so that launching and starting count; neither: something else, for example latency or few "
		 "blocks; "
		 "absent if a peak is not known"},
	{0},
};

const struct view_sheet sheet_gpu_roofline = {
	.title = "Operators against the GPU's peaks",
	.help = "Requires --gpu and --shapes: floating-point operations and bytes that the shapes of operators make "
		"necessary, by their time on the GPU, and as part of what it can do. Absent if no operator with known "
		"shapes "
		"launched work.",
	.list_help = "operators by name and shapes, those with the most time on the GPU first",
	.member = "gpu",
	.list = "roofline",
	.csv = "GPU roofline",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.if_any = true,
	.when = gpu_when,
	.make = roofline_make,
	.above = roofline_above,
	.below = roofline_below,
};
