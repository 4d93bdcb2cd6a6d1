// SPDX-License-Identifier: Apache-2.0
#include "feature/lines/lines.h"
#include "view/priv.h"
#include "view/sheet.h"

#define ROWS_MAX 8192 /* beyond that, looks at another place count in the row of their thread without a stack */

struct row {
	struct mxbpf_agg_line l;
	struct view_text line, call;
	bool rank;
};

static int order(const void *va, const void *vb, void *opts)
{
	const struct row *a = va, *b = vb;

	if (a->l.count != b->l.count)
		return a->l.count > b->l.count ? -1 : 1;
	return view_name_cmp(a->line.data, a->line.len, b->line.data, b->line.len);
}

static void lines_fill(const struct view *s, void *row)
{
	struct row *r = row;

	r->rank = r->l.rank;
	r->line.data = lines_of_program(s->in->model, r->l.stack_id, &r->line.len);
	if (r->l.cls)
		r->call.data = mdl_name(s->in->model, r->l.name_id, &r->call.len);
}

static bool lines_when(const struct view *s)
{
	size_t n;

	lines_rows(s->in->model, &n);
	return n;
}

#define ROW struct row
static const struct tbl_column columns[] = {
	{.stored = "stack_id",
	 .type = TBL_NAME,
	 KEY_AT(l.stack_id),
	 .name_kind = MXBPF_NAME_STACK,
	 .flags = TBL_DETAIL},
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(l.name_id), .flags = TBL_DETAIL},
	{.stored = "syscall", .type = TBL_COUNT, KEY_AT(l.syscall)},
	{.stored = "class", .type = TBL_COUNT, KEY_AT(l.cls), .limit = MXBPF_CLASS_MAX - 1},
	{.stored = "sleeps", .type = TBL_COUNT, KEY_AT(l.sleeps)},
	{.stored = "main", .type = TBL_BOOL, KEY_AT(l.main)},
	{.stored = "handles", .type = TBL_COUNT, KEY_AT(l.handles), .limit = UINT8_MAX},
	{.stored = "on", .type = TBL_COUNT, KEY_AT(l.on), .limit = MXBPF_ON_KINDS - 1},
	{.stored = "rank", .type = TBL_BOOL, KEY_AT(l.rank)},
	{.stored = "number", .type = TBL_COUNT, KEY_AT(l.number)},
	{.stored = "local_ranks", .type = TBL_COUNT, KEY_AT(l.local_ranks)},
	{.stored = "of", .type = TBL_COUNT, KEY_AT(l.of)},
	{.stored = "first_ns", .type = TBL_MOMENT, MIN_AT(l.h.ts_ns)},
	{"line", NULL, "line", TBL_TEXT, AT(line), TBL_NULL, .name_min = 24,
	 .help = "innermost line that is neither of Python's library nor of an installed package"},
	PID_COLUMN(l.h.tgid, .merge = TBL_IS_KEY),
	{"tid", NULL, NULL, TBL_COUNT, KEY_AT(l.tid)},
	{"other_rank", NULL, NULL, TBL_BOOL, AT(rank), TBL_OMIT,
	 .help = "true for another rank of the job, which is not profiled; `tid` is its pid"},
	{"looks", NULL, "samples", TBL_COUNT, SUM_AT(l.count),
	 .help = "number of samples (ten a second) that found the thread on the line"},
	{"call", NULL, "in call", TBL_TEXT, AT(call), TBL_NULL,
	 .help = "the innermost call of the runtime that it was in"},
	{0},
};

#undef ROW
#define ROW struct mxbpf_network
static const struct tbl_column network_columns[] = {
	{.stored = "pid", .type = TBL_PID, KEY_AT(h.tgid)},
	{.stored = "address", .type = TBL_COUNT, KEY_AT(address), .flags = TBL_DETAIL},
	{.stored = "peer", .type = TBL_COUNT, KEY_AT(peer), .flags = TBL_DETAIL},
	{.stored = "first_ns", .type = TBL_MOMENT, MIN_AT(h.ts_ns)},
	{.stored = "looks", .type = TBL_COUNT, SUM_AT(looks)},
	{.stored = "flights", .type = TBL_COUNT, SUM_AT(flights)},
	{.stored = "sent", .type = TBL_COUNT, SUM_AT(sent)},
	{.stored = "resent", .type = TBL_COUNT, SUM_AT(resent)},
	{.stored = "bytes", .type = TBL_COUNT, SUM_AT(bytes)},
	{0},
};
const struct tbl_def network_table = {.name = "network",
				      .row_bytes = sizeof(struct mxbpf_network),
				      .max_rows = ROWS_MAX,
				      .of_process = true,
				      .columns = network_columns};
#undef ROW
#define ROW struct row

const struct tbl_def lines_table = {.name = "lines",
				    .row_bytes = sizeof(struct mxbpf_agg_line),
				    .max_rows = ROWS_MAX,
				    .of_process = true,
				    .columns = columns};

const struct view_sheet sheet_lines = {
	.title = "Lines",
	.help = "Lines of Python on which the threads of the job stood, by the clock; without Python, functions of the "
		"program.",
	.member = "lines",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct view_list),
	.when = lines_when,
	.stored = &lines_table,
	.feature = &feature_lines,
	.fill = lines_fill,
	.order = order,
};
