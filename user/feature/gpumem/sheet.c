// SPDX-License-Identifier: Apache-2.0
/* Calls of CUDA that allocate and free memory: a row for each call and operator around it. */
#include <errno.h>
#include <stdlib.h>

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
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct row {
	struct mxbpf_agg_gpu_alloc a;
	struct view_text name, op, line;
	uint8_t kind;
};
struct table {
	struct view_list list;
	uint64_t count, failed, ns;
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
	return a->a.h.tgid < b->a.h.tgid ? -1 : a->a.h.tgid > b->a.h.tgid;
}

static int gpumem_by_time(const void *va, const void *vb)
{
	const struct row *a = va, *b = vb;

	if (a->a.total_ns != b->a.total_ns)
		return a->a.total_ns > b->a.total_ns ? -1 : 1;
	return by_row(a, b);
}

static void gpumem_sheet_add(struct mxbpf_agg_gpu_alloc *to, const struct mxbpf_agg_gpu_alloc *from)
{
	add_sat(&to->count, from->count);
	add_sat(&to->failed, from->failed);
	add_sat(&to->alloc_bytes, from->alloc_bytes);
	add_sat(&to->free_bytes, from->free_bytes);
	add_sat(&to->total_ns, from->total_ns);
	to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
	to->pool_peak_bytes = from->pool_peak_bytes > to->pool_peak_bytes ? from->pool_peak_bytes : to->pool_peak_bytes;
}

/* Merges rows whose stacks have the same line. Returns the number of rows. */
static size_t gpumem_merge(struct row *r, size_t n)
{
	size_t i, last = 0;

	qsort(r, n, sizeof(*r), by_row);
	for (i = 1; i < n; i++) {
		if (by_row(&r[last], &r[i]))
			r[++last] = r[i];
		else
			gpumem_sheet_add(&r[last].a, &r[i].a);
	}
	return n ? last + 1 : 0;
}

static struct row gpumem_row_of(const struct mdl *m, const struct mxbpf_agg_gpu_alloc *a)
{
	struct row r = {.a = *a, .kind = a->kind < KINDS ? a->kind : MXBPF_MEMORY_UNKNOWN};

	r.name = view_word("[no call]");
	if (a->name_id)
		r.name.data = mdl_name(m, a->name_id, &r.name.len);
	if (a->op_id)
		r.op.data = mdl_name(m, a->op_id, &r.op.len);
	r.line.data = lines_of_program(m, a->stack_id, &r.line.len);
	return r;
}

static int gpumem_make(const struct view *s, void *table)
{
	struct table *t = table;
	struct buf all = {0};
	struct row *r = NULL;
	size_t i;
	int err = gpumem_rows(s->in->model, &all);

	t->list.all = err ? 0 : buf_count(&all, r->a);
	t->list.rows = r = err ? NULL : calloc(t->list.all + 1, sizeof(*r));
	for (i = 0; r && i < t->list.all; i++)
		r[i] = gpumem_row_of(s->in->model, buf_at(&all, const struct mxbpf_agg_gpu_alloc, i));
	buf_fini(&all);
	if (!r)
		return -ENOMEM;
	t->list.all = gpumem_merge(r, t->list.all);
	for (i = 0; i < t->list.all; i++) {
		add_sat(&t->count, r[i].a.count);
		add_sat(&t->failed, r[i].a.failed);
		add_sat(&t->ns, r[i].a.total_ns);
		t->devices |= r[i].a.device != r[0].a.device;
		t->lines |= r[i].line.len;
	}
	t->failures = t->failed;
	qsort(r, t->list.all, sizeof(*r), gpumem_by_time);
	gpu_show_empty(s, &t->list);
	return 0;
}

static void gpumem_above(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;
	char n[32], ns[24];

	out_printf(s->out, "%sMemory by calls of CUDA: %s calls, %s", prefix, fmt_count(t->count, n),
		   fmt_ns(t->ns, ns));
	if (t->failed)
		out_printf(s->out, "; %s failed", fmt_count(t->failed, n));
	out_puts(s->out, "\n");
}

#define ROW	     struct row
#define SEEN(member) .shown = offsetof(struct table, member)
static const struct tbl_column columns[] = {
	{"name", NULL, "call", TBL_TEXT, AT(name), .help = "[no call]: CUPTI has no record of the call"},
	{NULL, NULL, "gpu", TBL_COUNT, AT(a.device), SEEN(devices)},
	PID_COLUMN(a.h.tgid),
	{"gpu", NULL, NULL, TBL_COUNT, KEY_AT(a.device), .help = "number of the GPU in the process"},
	{"memory", NULL, NULL, TBL_WORD, AT(kind), WORDS(kinds), .help = "kind of memory; unknown if the calls failed"},
	{"operator", NULL, "operator", TBL_TEXT, AT(op), TBL_NULL,
	 .help = "innermost operator around the calls; null: none"},
	{"count", NULL, "calls", TBL_COUNT, SUM_AT(a.count)},
	{"failed", NULL, "failed", TBL_COUNT, SUM_AT(a.failed), TBL_DASH, SEEN(failures),
	 .help = "calls that returned an error; an allocator may have tried again"},
	{"alloc_bytes", NULL, "allocated", TBL_BYTES, SUM_AT(a.alloc_bytes), TBL_DASH},
	{"free_bytes", NULL, "freed", TBL_BYTES, SUM_AT(a.free_bytes), TBL_DASH},
	{"total_ns", NULL, "total", TBL_NS, SUM_AT(a.total_ns), TBL_TIGHT,
	 .help = "time in the calls, with their waits: cudaFree waits for the GPU"},
	{"max_ns", NULL, "max", TBL_NS, AT(a.max_ns), TBL_TIGHT, .name_min = 20},
	{"pool_peak_bytes", NULL, NULL, TBL_BYTES, MAX_AT(a.pool_peak_bytes),
	 .help = "largest size of the pool of CUDA that the memory is of; 0: of none, or not known"},
	{"line", NULL, "line", TBL_TEXT, AT(line), TBL_NULL | TBL_BELOW, SEEN(lines)},
	{0},
};

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
	.make = gpumem_make,
	.above = gpumem_above,
};
