// SPDX-License-Identifier: Apache-2.0
/* Calls of CUDA that allocate and free memory: a row for each call and operator around it. */
#include "base/fmt.h"
#include "feature/gpumem/gpumem.h"
#include "feature/lines/lines.h"
#include "mxbpf_track.h"
#include "view/gpu.h"
#include "view/priv.h"
#include "view/sheet.h"

static const char *const kinds[] = {
	[MXBPF_MEMORY_UNKNOWN] = "unknown", [MXBPF_MEMORY_PAGEABLE] = "pageable", [MXBPF_MEMORY_PINNED] = "pinned",
	[MXBPF_MEMORY_DEVICE] = "device",   [MXBPF_MEMORY_ARRAY] = "array",	  [MXBPF_MEMORY_MANAGED] = "managed",
};
#define KINDS	 (sizeof(kinds) / sizeof(kinds[0]))
#define ROWS_MAX 4096 /* further rows have no operator */

struct row {
	struct gpumem_row a;
	struct view_text name, op, line;
};
struct table {
	struct view_list list;
	struct gpumem_row sum;
	bool devices, failures, lines;
};

static int by_row(const void *va, const void *vb)
{
	const struct row *a = va, *b = vb;
	int order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);

	order = order ? order : view_name_cmp(a->op.data, a->op.len, b->op.data, b->op.len);
	order = order ? order : view_name_cmp(a->line.data, a->line.len, b->line.data, b->line.len);
	if (order || a->a.device != b->a.device)
		return order ? order : a->a.device < b->a.device ? -1 : 1;
	return a->a.tgid < b->a.tgid ? -1 : a->a.tgid > b->a.tgid;
}

static int gpumem_by_time(const void *va, const void *vb, void *opts)
{
	const struct row *a = va, *b = vb;

	if (a->a.total_ns != b->a.total_ns)
		return a->a.total_ns > b->a.total_ns ? -1 : 1;
	return by_row(a, b);
}

static void gpumem_sheet_fill(const struct view *s, void *row)
{
	const struct mdl *m = s->in->model;
	struct row *r = row;

	r->name = view_word("[no call]");
	if (r->a.name_id)
		r->name.data = mdl_name(m, r->a.name_id, &r->name.len);
	if (r->a.op_id)
		r->op.data = mdl_name(m, r->a.op_id, &r->op.len);
	r->line.data = lines_of_program(m, r->a.stack_id, &r->line.len);
}

static void gpumem_finish(const struct view *s, void *table)
{
	struct table *t = table;
	const struct row *r = t->list.rows;
	size_t i;

	for (i = 0; i < t->list.all; i++) {
		t->devices |= r[i].a.device != r[0].a.device;
		t->lines |= r[i].line.len;
	}
	t->failures = t->sum.failed;
	gpu_show_empty(s, &t->list);
}

static void gpumem_above(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;
	char n[32], ns[24];

	out_printf(s->out, "%sMemory by calls of CUDA: %s calls, %s", prefix, fmt_count(t->sum.count, n),
		   fmt_ns(t->sum.total_ns, ns));
	if (t->sum.failed)
		out_printf(s->out, "; %s failed", fmt_count(t->sum.failed, n));
	out_puts(s->out, "\n");
}

#define ROW	     struct row
#define SEEN(member) .shown = offsetof(struct table, member)
static const struct tbl_column columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(a.name_id)},
	{.stored = "operator_id", .type = TBL_NAME, KEY_AT(a.op_id), .flags = TBL_DETAIL},
	{.stored = "stack_id",
	 .type = TBL_NAME,
	 KEY_AT(a.stack_id),
	 .name_kind = MXBPF_NAME_STACK,
	 .flags = TBL_DETAIL},
	{"name", NULL, "call", TBL_TEXT, AT(name), .help = "[no call]: CUPTI has no record of the call"},
	{NULL, NULL, "gpu", TBL_COUNT, AT(a.device), SEEN(devices)},
	PID_COLUMN(a.tgid, .merge = TBL_IS_KEY),
	{"gpu", NULL, NULL, TBL_COUNT, KEY_AT(a.device), .help = "number of the GPU in the process"},
	{"memory", NULL, NULL, TBL_WORD, LAST_AT(a.kind), WORDS(kinds), .limit = KINDS - 1,
	 .help = "kind of memory; unknown if the calls failed"},
	{"operator", NULL, "operator", TBL_TEXT, AT(op), TBL_NULL,
	 .help = "innermost operator around the calls; null: none"},
	{"count", NULL, "calls", TBL_COUNT, SUM_AT(a.count)},
	{"failed", NULL, "failed", TBL_COUNT, SUM_AT(a.failed), TBL_DASH, SEEN(failures),
	 .help = "calls that returned an error; an allocator may have tried again"},
	{"alloc_bytes", NULL, "allocated", TBL_BYTES, SUM_AT(a.alloc_bytes), TBL_DASH},
	{"free_bytes", NULL, "freed", TBL_BYTES, SUM_AT(a.free_bytes), TBL_DASH},
	{"total_ns", NULL, "total", TBL_NS, SUM_AT(a.total_ns), TBL_TIGHT,
	 .help = "time in the calls, with their waits: cudaFree waits for the GPU"},
	{"max_ns", NULL, "max", TBL_NS, MAX_AT(a.max_ns), TBL_TIGHT, .name_min = 20},
	{"pool_peak_bytes", NULL, NULL, TBL_BYTES, MAX_AT(a.pool_peak_bytes),
	 .help = "largest size of the pool of CUDA that the memory is of; 0: of none, or not known"},
	{"line", NULL, "line", TBL_TEXT, AT(line), TBL_NULL | TBL_BELOW, SEEN(lines)},
	{0},
};

const struct tbl_def gpumem_table = {.name = "memory calls",
				     .row_bytes = sizeof(struct gpumem_row),
				     .max_rows = ROWS_MAX,
				     .adds_processes = true,
				     .of_process = true,
				     .columns = columns};

const struct view_sheet sheet_gpu_allocs = {
	.title = "Memory by calls of CUDA",
	.help = "Requires --gpu and --memory: calls of CUDA that allocate and free memory.",
	.list_help = "calls of CUDA that allocate and free memory; absent without --memory",
	.member = "gpu",
	.list = "memory_calls",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.if_any = true,
	.when = gpu_when,
	.stored = &gpumem_table,
	.feature = &feature_gpumem,
	.joins = true,
	.fill = gpumem_sheet_fill,
	.finish = gpumem_finish,
	.order = gpumem_by_time,
	.sum_at = offsetof(struct table, sum),
	.above = gpumem_above,
};
