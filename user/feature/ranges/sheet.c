// SPDX-License-Identifier: Apache-2.0
/* --by range with --gpu: kernels by the range in which they were launched. */
#include "feature/ranges/ranges.h"
#include "view/priv.h"
#include "view/sheet.h"

#define ROWS_MAX (1u << 16) /* beyond that, a kernel counts in the row without a range */

struct kernel {
	struct ranges_row a;
	struct view_text name, range;
	uint64_t avg_ns;
	double share;
};

static int ranges_by_name(const void *va, const void *vb)
{
	const struct kernel *a = va, *b = vb;
	int order = view_name_cmp(a->range.data, a->range.len, b->range.data, b->range.len);

	order = order ? order : view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);
	return order ? order : a->a.tgid < b->a.tgid ? -1 : a->a.tgid > b->a.tgid;
}

static uint64_t ranges_key_of(const struct kernel *k, enum view_sort sort)
{
	return sort == VIEW_SORT_COUNT ? k->a.count
	       : sort == VIEW_SORT_AVG ? k->avg_ns
	       : sort == VIEW_SORT_MAX ? k->a.max_ns
	       : sort == VIEW_SORT_MIN ? k->a.min_ns
				       : k->a.total_ns;
}

static int ranges_by_opts(const void *va, const void *vb, void *vopts)
{
	const struct kernel *a = va, *b = vb;
	const struct view_opts *opts = vopts;
	const uint64_t ka = ranges_key_of(a, opts->sort), kb = ranges_key_of(b, opts->sort);

	if (ka == kb || opts->sort == VIEW_SORT_NAME)
		return ranges_by_name(a, b);
	return (ka < kb) == opts->ascending ? -1 : 1;
}

static void ranges_fill(const struct view *s, void *row)
{
	struct kernel *r = row;

	r->avg_ns = r->a.count ? r->a.total_ns / r->a.count : 0;
	r->name.data = mdl_name(s->in->model, r->a.name_id, &r->name.len);
	r->range = view_word("");
	if (r->a.range_id)
		r->range.data = mdl_name(s->in->model, r->a.range_id, &r->range.len);
}

static void ranges_finish(const struct view *s, void *table)
{
	struct view_list *t = table;
	struct kernel *r = t->rows;
	uint64_t total_ns = 0;
	size_t i;

	for (i = 0; i < t->all; i++)
		add_sat(&total_ns, r[i].a.total_ns);
	for (i = 0; i < t->all; i++)
		r[i].share = total_ns ? (double)r[i].a.total_ns / (double)total_ns : 0;
}

static void ranges_above(struct view *s, const void *table, const char *prefix)
{
	out_printf(s->out, "%skernels by range: ", prefix);
	view_put_shown(s, table, "row");
}

static bool ranges_when(const struct view *s)
{
	return s->opts->by == VIEW_BY_RANGE;
}

#define ROW struct kernel
static const struct tbl_column columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(a.name_id)},
	{.stored = "range_id", .type = TBL_NAME, KEY_AT(a.range_id), .flags = TBL_DETAIL},
	{"name", NULL, "kernel", TBL_TEXT, AT(name)},
	{"range", NULL, "range", TBL_TEXT, AT(range), .help = "innermost range around the launch; \"\": none"},
	PID_COLUMN(a.tgid, .merge = TBL_IS_KEY),
	{"count", NULL, "kernels", TBL_COUNT, SUM_AT(a.count)},
	{"total_ns", NULL, "total", TBL_NS, SUM_AT(a.total_ns), TBL_TIGHT},
	{"avg_ns", NULL, "avg", TBL_NS, AT(avg_ns), TBL_TIGHT},
	{"min_ns", NULL, "min", TBL_NS, MIN_AT(a.min_ns), TBL_TIGHT, .name_min = 24},
	{"max_ns", NULL, "max", TBL_NS, MAX_AT(a.max_ns), TBL_TIGHT},
	{NULL, NULL, "share", TBL_SHARE, AT(share), .digits = 1, .help = "total_ns as part of all kernels"},
	{0},
};

const struct tbl_def ranges_kernels = {
	.name = "kernels by range", .row_bytes = sizeof(struct ranges_row), .max_rows = ROWS_MAX, .columns = columns};

const struct view_sheet sheet_ranges = {
	.title = "kernels by range",
	.help = "Requires --by range, and --gpu in the session: kernels by the innermost range of the thread that "
		"launched "
		"them, at the time of the launch.",
	.member = "kernels_by_range",
	.csv = "kernels by range",
	.columns = columns,
	.row_bytes = sizeof(struct kernel),
	.table_bytes = sizeof(struct view_list),
	.if_any = true,
	.by_range = true,
	.when = ranges_when,
	.stored = &ranges_kernels,
	.feature = &feature_ranges,
	.fill = ranges_fill,
	.finish = ranges_finish,
	.order = ranges_by_opts,
	.above = ranges_above,
};
