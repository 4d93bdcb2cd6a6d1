// SPDX-License-Identifier: Apache-2.0
/* Kernels, copies, sets and waits of GPUs, by name. */
#include "feature/activity/sheet.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/activity/occupancy.h"
#include "view/priv.h"

struct activity {
	struct view_text name;
	struct mxbpf_agg_activity a;
	uint64_t avg_ns, p50_ns, p99_ns;
	uint64_t rate;	 /* bytes per second of its own time */
	uint64_t shared; /* static and dynamic */
	double share;
	struct occupancy occupancy;
	uint8_t grid_limit; /* enum occupancy_grid; FILLS if calls differ in it */
	struct view_text grid, block, limit, owner;
	bool shaped, varies;
	char grid_text[40], block_text[24], limit_text[OCCUPANCY_TEXT_BYTES];
	char owner_text[VIEW_LABEL_BYTES];
	char short_name[512]; /* people read this one */
};

struct activities {
	struct view_list list;
	uint64_t count, total_ns, bytes; /* of all rows */
	uint64_t unlaunched;		 /* part of count: see struct mxbpf_agg_activity */
	bool devices;			 /* the rows have several devices */
	bool shapes, varies, occupied;	 /* some row has a shape, one that differs between its calls, an occupancy */
	bool limited, grids;		 /* some row has a limit of its occupancy, a grid that does not fill the GPU */
	bool kinds;			 /* some row has a kind of memory */
	bool processes;			 /* people see whose row it is */
};

/* ---- rows */

static int activity_sheet_by_opts(const void *va, const void *vb, void *vopts)
{
	const struct activity *a = va, *b = vb;
	const struct gpu_keys ka = {a->a.total_ns, a->a.total_ns, a->a.count, a->avg_ns,
				    a->a.min_ns,   a->a.max_ns,	  a->p99_ns};
	const struct gpu_keys kb = {b->a.total_ns, b->a.total_ns, b->a.count, b->avg_ns,
				    b->a.min_ns,   b->a.max_ns,	  b->p99_ns};
	const int order = gpu_order(vopts, &ka, &kb, &a->name, &b->name);

	if (order)
		return order;
	if (a->a.device != b->a.device)
		return a->a.device < b->a.device ? -1 : 1;
	if (a->a.h.tgid != b->a.h.tgid)
		return a->a.h.tgid < b->a.h.tgid ? -1 : 1;
	return memcmp(&a->a.copy, &b->a.copy, 4);
}

/* People read "128" instead of "128x1x1", and "~128" if calls differ. */
static struct view_text put_shape(char *to, size_t size, const uint32_t n[3], bool people, bool varies)
{
	const char *mark = people && varies ? "~" : "";

	if (people && n[2] <= 1 && n[1] <= 1)
		snprintf(to, size, "%s%" PRIu32, mark, n[0]);
	else if (people && n[2] <= 1)
		snprintf(to, size, "%s%" PRIu32 "x%" PRIu32, mark, n[0], n[1]);
	else
		snprintf(to, size, "%s%" PRIu32 "x%" PRIu32 "x%" PRIu32, mark, n[0], n[1], n[2]);
	return view_word(to);
}

static void fill_shape(const struct view *s, struct activity *r, bool people)
{
	const uint32_t block[3] = {r->a.block[0], r->a.block[1], r->a.block[2]};

	r->occupancy = activity_occupancy(gpu_device(s, r->a.h.tgid, r->a.device), &r->a);
	r->shaped = r->a.shape_ns;
	if (!r->shaped)
		return;
	r->grid_limit = r->occupancy.grid;
	if (r->occupancy.limits)
		r->limit = view_word(occupancy_limits_text(r->occupancy.limits, r->limit_text));
	r->varies = r->a.varies;
	r->shared = (uint64_t)r->a.static_shared + r->a.dynamic_shared;
	r->grid = put_shape(r->grid_text, sizeof(r->grid_text), r->a.grid, people, r->a.varies & MXBPF_SHAPE_GRID);
	r->block = put_shape(r->block_text, sizeof(r->block_text), block, people, r->a.varies & MXBPF_SHAPE_BLOCK);
}

static void activity_sheet_fill(const struct view *s, struct activity *r, const struct activity_row *of, bool people)
{
	const struct mdl_extent extent = {of->a.count, of->a.min_ns, of->a.max_ns};

	r->a = of->a;
	r->avg_ns = of->a.total_ns / of->a.count;
	r->p50_ns = mdl_hist_percentile(of->hist, &extent, 0.50);
	r->p99_ns = mdl_hist_percentile(of->hist, &extent, 0.99);
	r->rate = of->a.total_ns ? whole((double)of->a.bytes * 1e9 / (double)of->a.total_ns) : 0;
	r->name.data = mdl_name(s->in->model, of->a.name_id, &r->name.len);
	fill_shape(s, r, people);
}

static void activity_add_up(struct activities *t, const struct activity *r, const struct activity *first)
{
	add_sat(&t->count, r->a.count);
	add_sat(&t->total_ns, r->a.total_ns);
	add_sat(&t->bytes, r->a.bytes);
	add_sat(&t->unlaunched, r->a.unlaunched);
	t->devices |= r->a.device != first->a.device;
	t->shapes |= r->shaped;
	t->varies |= r->shaped && r->a.varies;
	t->occupied |= !isnan(r->occupancy.share);
	t->limited |= r->occupancy.limits;
	t->grids |= r->grid_limit;
	t->kinds |= r->a.from || r->a.to;
}

static int make_class(const struct view *s, struct activities *t, unsigned cls)
{
	size_t n, i;
	const struct activity_row *const *all = activity_rows(s->in->model, &n);
	struct activity *r = calloc(n + 1, sizeof(*r)), *last = r;

	t->list.rows = r;
	t->processes = view_by_processes(s->opts->by);
	gpu_show_empty(s, &t->list);
	if (!r)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		if (all[i]->a.cls != cls || !all[i]->a.count)
			continue;
		activity_sheet_fill(s, last, all[i], t->list.people);
		activity_add_up(t, last, r);
		last++;
	}
	t->list.all = (size_t)(last - r);
	for (i = 0; i < t->list.all; i++)
		r[i].share = t->total_ns ? (double)r[i].a.total_ns / (double)t->total_ns : 0;
	qsort_r(r, t->list.all, sizeof(*r), activity_sheet_by_opts, (void *)s->opts);
	for (i = 0; cls == MXBPF_ACTIVITY_KERNEL && t->list.people && i < t->list.all; i++)
		r[i].name = gpu_short_kernel(r[i].name, r[i].short_name, sizeof(r[i].short_name));
	/* Sorting has moved the texts. */
	for (i = 0; i < t->list.all && t->processes; i++)
		r[i].owner = view_word(gpu_owner(s, r[i].a.h.tgid, r[i].owner_text));
	for (i = 0; i < t->list.all && t->shapes; i++) {
		r[i].grid.data = r[i].grid.len ? r[i].grid_text : NULL;
		r[i].block.data = r[i].block.len ? r[i].block_text : NULL;
		r[i].limit.data = r[i].limit.len ? r[i].limit_text : NULL;
	}
	return 0;
}

static void activity_sheet_above(struct view *s, const void *table, const char *prefix, const char *what)
{
	const struct activities *t = table;
	char n[32], ns[24], bytes[24] = "", text[128];

	if (t->bytes)
		fmt_bytes(t->bytes, bytes);
	snprintf(text, sizeof(text), "%s: %s%s%s, %s in all, in", what, fmt_count(t->count, n), t->bytes ? ", " : "",
		 bytes, fmt_ns(t->total_ns, ns));
	gpu_put_title(s, &t->list, prefix, text);
}

static void activity_sheet_below(struct view *s, const void *table, const char *prefix)
{
	const struct activities *t = table;
	char n[32];

	if (t->varies)
		out_printf(s->out, "%s~ calls differ, and the last one is shown\n", prefix);
	if (t->unlaunched)
		out_printf(s->out, "%s%s of them belong%s to no call, because the launch was not seen\n", prefix,
			   fmt_count(t->unlaunched, n), t->unlaunched == 1 ? "s" : "");
}

/* ---- kernels */

static int make_kernels(const struct view *s, void *table)
{
	return make_class(s, table, MXBPF_ACTIVITY_KERNEL);
}

static void above_kernels(struct view *s, const void *table, const char *prefix)
{
	activity_sheet_above(s, table, prefix, "GPU kernels");
}

#define ROW	     struct activity
#define SEEN(member) .shown = offsetof(struct activities, member)
#define HAS(member)  .has = offsetof(struct activity, member)
#define TIMES                                                                                                          \
	{"total_ns",                                                                                                   \
	 NULL,                                                                                                         \
	 "total",                                                                                                      \
	 TBL_NS,                                                                                                       \
	 SUM_AT(a.total_ns),                                                                                           \
	 TBL_TIGHT,                                                                                                    \
	 .help = "time on the GPU; activities of several streams overlap"},                                            \
		{"avg_ns", NULL, "avg", TBL_NS, AT(avg_ns), TBL_TIGHT},                                                \
		{"min_ns", NULL, "min", TBL_NS, AT(a.min_ns), TBL_TIGHT, .name_min = 38},                              \
		{"p50_ns", NULL, "p50", TBL_NS, AT(p50_ns), TBL_TIGHT, .name_min = 37},                                \
		{"p99_ns", NULL, "p99", TBL_NS, AT(p99_ns), TBL_TIGHT, .name_min = 36},                                \
		{"max_ns", NULL, "max", TBL_NS, AT(a.max_ns), TBL_TIGHT, .name_min = 30},                              \
	{                                                                                                              \
		NULL, NULL, "share", TBL_SHARE, AT(share), .digits = 1, .name_min = 24,                                \
							   .help = "part of the total time of this table"              \
	}
#define GPU_COLUMN                                                                                                     \
	{                                                                                                              \
		"gpu", NULL, "gpu", TBL_COUNT, KEY_AT(a.device), SEEN(devices),                                        \
			.label = "gpu", .help = "number of the GPU in the process"                                     \
	}
#define UNLAUNCHED_COLUMN                                                                                              \
	{                                                                                                              \
		"unlaunched", NULL, NULL, TBL_COUNT, SUM_AT(a.unlaunched),                                             \
			.help = "number of activities whose launch was not seen; count includes them"                  \
	}

static const struct tbl_column kernel_columns[] = {
	{"name", NULL, "kernel", TBL_TEXT, AT(name), TBL_BEGINS | TBL_MANY, .label = "kernel"},
	{NULL, NULL, NULL, TBL_NS, AT(a.total_ns),
	 .metric = METRIC("mxbpf_gpu_kernel_seconds", "Time of kernels on the GPU, by kernel")},
	GPU_OWNER_COLUMN,
	GPU_COLUMN,
	PID_COLUMN(a.h.tgid),
	{"count", NULL, "calls", TBL_COUNT, SUM_AT(a.count),
	 .metric = METRIC_NAMELESS("mxbpf_gpu_kernels", "Kernels that the process ran")},
	TIMES,
	{"registers", NULL, "regs", TBL_COUNT, AT(a.registers), SEEN(shapes), HAS(shaped), .name_min = 39,
	 .help = "registers of a thread, in the last call"},
	{"shared_bytes", NULL, "shared", TBL_BYTES, AT(shared), TBL_DASH, SEEN(shapes), HAS(shaped), .name_min = 40,
	 .help = "static and dynamic shared memory of a block, in the last call"},
	{"grid", NULL, "grid", TBL_TEXT, LAST_AT(grid), TBL_OMIT, SEEN(shapes), .name_min = 39,
	 .help = "blocks in each dimension, in the last call"},
	{"block", NULL, "block", TBL_TEXT, LAST_AT(block), TBL_OMIT, SEEN(shapes), .name_min = 39,
	 .help = "threads of a block in each dimension, in the last call"},
	{"varies", NULL, NULL, TBL_BOOL, AT(varies), HAS(shaped),
	 .help = "calls differ in registers, shared memory, grid or block"},
	{"occupancy", NULL, "occup", TBL_RATIO, AT(occupancy.share), TBL_OMIT, SEEN(occupied), .data_digits = 3,
	 .name_min = 34, .cell = gpu_percent_cell,
	 .help = "theoretical occupancy of the last call: the part of a multiprocessor's warps that its registers, its "
		 "shared memory and its block allow to run at once; absent if not known"},
	{"occupancy_limit", NULL, "limited by", TBL_TEXT, LAST_AT(limit), TBL_OMIT, SEEN(limited), .name_min = 22,
	 .help = "what allows the fewest blocks: registers, shared memory, block size (threads of a block), blocks per "
		 "SM; "
		 "several if they allow equally few; absent if the occupancy is 1"},
	{"waves", NULL, "waves", TBL_RATIO, AT(occupancy.waves), TBL_OMIT, SEEN(occupied), .digits = 2,
	 .data_digits = 3, .name_min = 18,
	 .help = "blocks of the last call for each block that the GPU can run at once"},
	{"grid_limit", NULL, "grid limit", TBL_WORD, LAST_AT(grid_limit), TBL_OMIT, WORDS(occupancy_grids), SEEN(grids),
	 .name_min = 20,
	 .help = "the last call leaves multiprocessors (SMs) unused: it has fewer blocks than there are, or its last "
		 "wave "
		 "has so few that all waves together use less than 80 % of the GPU; absent if it fills the GPU"},
	UNLAUNCHED_COLUMN,
	{0},
};

const struct view_sheet sheet_gpu_kernels = {
	.title = "GPU kernels",
	.help = "Kernels by GPU and name; absent if there are none.",
	.list_help = "kernels by GPU and name",
	.member = "gpu",
	.list = "kernels",
	.csv = "GPU kernels",
	.columns = kernel_columns,
	.row_bytes = sizeof(struct activity),
	.table_bytes = sizeof(struct activities),
	.if_any = true,
	.when = gpu_when,
	.make = make_kernels,
	.above = above_kernels,
	.below = activity_sheet_below,
};

/* ---- copies and sets */

static int make_copies(const struct view *s, void *table)
{
	return make_class(s, table, MXBPF_ACTIVITY_COPY);
}

static void above_copies(struct view *s, const void *table, const char *prefix)
{
	activity_sheet_above(s, table, prefix, "GPU copies");
}

static const char *const directions[] = {
	[MXBPF_COPY_HTOD] = "HtoD", [MXBPF_COPY_DTOH] = "DtoH", [MXBPF_COPY_HTOA] = "HtoA", [MXBPF_COPY_ATOH] = "AtoH",
	[MXBPF_COPY_ATOA] = "AtoA", [MXBPF_COPY_ATOD] = "AtoD", [MXBPF_COPY_DTOA] = "DtoA", [MXBPF_COPY_DTOD] = "DtoD",
	[MXBPF_COPY_HTOH] = "HtoH", [MXBPF_COPY_PTOP] = "PtoP",
};
static const char *const memories[] = {
	[MXBPF_MEMORY_PAGEABLE] = "pageable", [MXBPF_MEMORY_PINNED] = "pinned",	  [MXBPF_MEMORY_DEVICE] = "device",
	[MXBPF_MEMORY_ARRAY] = "array",	      [MXBPF_MEMORY_MANAGED] = "managed",
};

static const struct tbl_column copy_columns[] = {
	{"name", NULL, "copy", TBL_TEXT, AT(name)},
	{"direction", NULL, NULL, TBL_WORD, AT(a.copy), TBL_OMIT, WORDS(directions), .label = "direction",
	 .help = "between H (host), D (device), A (array of a device) and P (another device)"},
	{"from", NULL, "from", TBL_WORD, AT(a.from), TBL_OMIT, SEEN(kinds), WORDS(memories),
	 .help = "kind of the memory that is read; the host's memory is pageable or pinned"},
	{"to", NULL, "to", TBL_WORD, AT(a.to), TBL_OMIT, SEEN(kinds), WORDS(memories),
	 .help = "kind of the memory that is written"},
	GPU_OWNER_COLUMN,
	GPU_COLUMN,
	PID_COLUMN(a.h.tgid),
	{"count", NULL, "calls", TBL_COUNT, SUM_AT(a.count)},
	{"bytes", NULL, "bytes", TBL_BYTES, SUM_AT(a.bytes), TBL_DASH,
	 .metric = METRIC("mxbpf_gpu_copied_bytes", "Bytes that the GPU copied, by direction")},
	{NULL, NULL, NULL, TBL_NS, AT(a.total_ns),
	 .metric = METRIC("mxbpf_gpu_copy_seconds", "Time of copies on the GPU, by direction")},
	{"bytes_per_second", NULL, "rate", TBL_RATE, AT(rate), TBL_DASH,
	 .help = "bytes for each second that the copies took"},
	TIMES,
	UNLAUNCHED_COLUMN,
	{0},
};

const struct view_sheet sheet_gpu_copies = {
	.title = "GPU copies",
	.help = "Copies to, from and between GPUs, by GPU, direction and kinds of memory; absent if there are none.",
	.list_help = "copies by GPU, direction and kinds of memory",
	.member = "gpu",
	.list = "copies",
	.csv = "GPU copies",
	.columns = copy_columns,
	.row_bytes = sizeof(struct activity),
	.table_bytes = sizeof(struct activities),
	.if_any = true,
	.when = gpu_when,
	.make = make_copies,
	.above = above_copies,
	.below = activity_sheet_below,
};

static int make_sets(const struct view *s, void *table)
{
	return make_class(s, table, MXBPF_ACTIVITY_SET);
}

static void above_sets(struct view *s, const void *table, const char *prefix)
{
	activity_sheet_above(s, table, prefix, "GPU memsets");
}

static const struct tbl_column set_columns[] = {
	{"name", NULL, "memset", TBL_TEXT, AT(name)},
	{"to", NULL, "to", TBL_WORD, AT(a.to), TBL_OMIT, SEEN(kinds), WORDS(memories),
	 .help = "kind of the memory that is set"},
	GPU_OWNER_COLUMN,
	GPU_COLUMN,
	PID_COLUMN(a.h.tgid),
	{"count", NULL, "calls", TBL_COUNT, SUM_AT(a.count)},
	{"bytes", NULL, "bytes", TBL_BYTES, SUM_AT(a.bytes), TBL_DASH},
	{"bytes_per_second", NULL, "rate", TBL_RATE, AT(rate), TBL_DASH,
	 .help = "bytes for each second that the sets took"},
	TIMES,
	UNLAUNCHED_COLUMN,
	{0},
};

const struct view_sheet sheet_gpu_sets = {
	.title = "GPU memsets",
	.help = "Settings of GPU memory to a value (memset), by GPU and kind of memory; absent if there are none.",
	.list_help = "settings of memory by GPU and kind of memory",
	.member = "gpu",
	.list = "sets",
	.csv = "GPU memsets",
	.columns = set_columns,
	.row_bytes = sizeof(struct activity),
	.table_bytes = sizeof(struct activities),
	.if_any = true,
	.when = gpu_when,
	.make = make_sets,
	.left_out = "GPU memsets",
	.above = above_sets,
	.below = activity_sheet_below,
};

/* ---- waits */

static int make_waits(const struct view *s, void *table)
{
	return make_class(s, table, MXBPF_ACTIVITY_SYNC);
}

static void above_waits(struct view *s, const void *table, const char *prefix)
{
	activity_sheet_above(s, table, prefix, "Waits for GPUs");
}

static const char *const sync_types[] = {
	[MXBPF_SYNC_EVENT] = "event",
	[MXBPF_SYNC_STREAM_WAITS] = "stream for event",
	[MXBPF_SYNC_STREAM] = "stream",
	[MXBPF_SYNC_CONTEXT] = "device",
};

static const struct tbl_column wait_columns[] = {
	{"name", NULL, "wait", TBL_TEXT, AT(name)},
	{"for", NULL, "for", TBL_WORD, AT(a.sync_type), TBL_OMIT, WORDS(sync_types),
	 .help = "what was waited for: an event, all work of a stream, or of the device. A stream that waits for an "
		 "event does not make the program wait."},
	GPU_OWNER_COLUMN,
	GPU_COLUMN,
	PID_COLUMN(a.h.tgid),
	{"count", NULL, "calls", TBL_COUNT, SUM_AT(a.count)},
	TIMES,
	{0},
};

const struct view_sheet sheet_gpu_waits = {
	.title = "Waits for GPUs",
	.help = "Synchronisation as CUPTI reports it; the calls that wait are in the table of CUDA calls. Absent if "
		"there "
		"are none.",
	.list_help = "synchronisation by GPU and what was waited for",
	.member = "gpu",
	.list = "waits",
	.csv = "Waits for GPUs",
	.columns = wait_columns,
	.row_bytes = sizeof(struct activity),
	.table_bytes = sizeof(struct activities),
	.if_any = true,
	.when = gpu_when,
	.make = make_waits,
	.left_out = "waits for GPUs",
	.above = above_waits,
};
