// SPDX-License-Identifier: Apache-2.0
/* --by range with --gpu: kernels by the range in which they were launched. */
#include <errno.h>
#include <stdlib.h>

#include "feature/ranges/ranges.h"
#include "view/priv.h"
#include "view/sheet.h"

struct kernel {
	struct view_text name, range;
	struct mxbpf_agg_range a;
	uint64_t avg_ns;
	double share;
};

struct kernels {
	struct view_list list;
	uint64_t total_ns;
};

static int by_name(const void *va, const void *vb)
{
	const struct kernel *a = va, *b = vb;
	int order = view_name_cmp(a->range.data, a->range.len, b->range.data, b->range.len);

	order = order ? order : view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);
	return order ? order : a->a.h.tgid < b->a.h.tgid ? -1 : a->a.h.tgid > b->a.h.tgid;
}

static uint64_t key_of(const struct kernel *k, enum view_sort sort)
{
	return sort == VIEW_SORT_COUNT ? k->a.count
	       : sort == VIEW_SORT_AVG ? k->avg_ns
	       : sort == VIEW_SORT_MAX ? k->a.max_ns
	       : sort == VIEW_SORT_MIN ? k->a.min_ns
				       : k->a.total_ns;
}

static int by_opts(const void *va, const void *vb, void *vopts)
{
	const struct kernel *a = va, *b = vb;
	const struct view_opts *opts = vopts;
	const uint64_t ka = key_of(a, opts->sort), kb = key_of(b, opts->sort);

	if (ka == kb || opts->sort == VIEW_SORT_NAME)
		return by_name(a, b);
	return (ka < kb) == opts->ascending ? -1 : 1;
}

static int make(const struct view *s, void *table)
{
	size_t n, i;
	const struct mxbpf_agg_range *all = ranges_kernels(s->in->model, &n);
	struct kernel *r = calloc(n + 1, sizeof(*r));
	struct kernels *t = table;

	t->list.rows = r;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		r[i].a = all[i];
		r[i].avg_ns = all[i].count ? all[i].total_ns / all[i].count : 0;
		r[i].name.data = mdl_name(s->in->model, all[i].name_id, &r[i].name.len);
		r[i].range = view_word("");
		if (all[i].range_id)
			r[i].range.data = mdl_name(s->in->model, all[i].range_id, &r[i].range.len);
		add_sat(&t->total_ns, all[i].total_ns);
	}
	for (i = 0; i < n; i++)
		r[i].share = t->total_ns ? (double)r[i].a.total_ns / (double)t->total_ns : 0;
	qsort_r(r, n, sizeof(*r), by_opts, (void *)s->opts);
	t->list.all = n;
	return 0;
}

static void above(struct view *s, const void *table, const char *prefix)
{
	out_printf(s->out, "%skernels by range: ", prefix);
	view_put_shown(s, table, "row");
}

static bool when(const struct view *s)
{
	return s->opts->by == VIEW_BY_RANGE;
}

#define ROW struct kernel
static const struct view_column columns[] = {
	{"name", NULL, "kernel", VIEW_TEXT, AT(name)},
	{"range", NULL, "range", VIEW_TEXT, AT(range), .help = "innermost range around the launch; \"\": none"},
	PID_COLUMN(a.h.tgid),
	{"count", NULL, "kernels", VIEW_COUNT, AT(a.count)},
	{"total_ns", NULL, "total", VIEW_NS, AT(a.total_ns), VIEW_TIGHT},
	{"avg_ns", NULL, "avg", VIEW_NS, AT(avg_ns), VIEW_TIGHT},
	{"min_ns", NULL, "min", VIEW_NS, AT(a.min_ns), VIEW_TIGHT, .name_min = 24},
	{"max_ns", NULL, "max", VIEW_NS, AT(a.max_ns), VIEW_TIGHT},
	{NULL, NULL, "share", VIEW_SHARE, AT(share), .digits = 1, .help = "total_ns as part of all kernels"},
	{0},
};

const struct view_sheet sheet_ranges = {
	.title = "kernels by range",
	.help = "Requires --by range, and --gpu in the session: kernels by the innermost range of the thread that "
		"launched "
		"them, at the time of the launch.",
	.member = "kernels_by_range",
	.csv = "kernels by range",
	.columns = columns,
	.row_bytes = sizeof(struct kernel),
	.table_bytes = sizeof(struct kernels),
	.if_any = true,
	.when = when,
	.make = make,
	.above = above,
};
