// SPDX-License-Identifier: Apache-2.0
/* --backward: forward operators with the time of the backward nodes that they created. */
#include "feature/backward/backward.h"

#include <math.h>

#include "base/fmt.h"
#include "view/priv.h"
#include "view/sheet.h"

/* Forward operators of one name, on any thread. */
struct join {
	struct backward_row j;
	struct view_text name;
	uint64_t all_ns;
	double ratio;
};

struct joins {
	struct view_list list;
	uint64_t unjoined; /* nodes that are listed under their own names */
};

static uint64_t all_ns(const struct backward_row *j)
{
	uint64_t sum;

	if (__builtin_add_overflow(j->total_ns, j->bwd_total_ns, &sum) ||
	    __builtin_add_overflow(sum, j->deep_total_ns, &sum))
		return UINT64_MAX;
	return sum;
}

static int backward_by_name(const void *va, const void *vb)
{
	const struct join *a = va, *b = vb;
	int order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);

	return order ? order : a->j.tgid < b->j.tgid ? -1 : a->j.tgid > b->j.tgid;
}

static int backward_by_opts(const void *va, const void *vb, void *vopts)
{
	const struct join *a = va, *b = vb;
	const struct view_opts *opts = vopts;
	bool count = opts->sort == VIEW_SORT_COUNT;
	uint64_t ka = count ? a->j.count : all_ns(&a->j), kb = count ? b->j.count : all_ns(&b->j);

	if (opts->sort == VIEW_SORT_NAME)
		return backward_by_name(a, b);
	if (ka != kb)
		return (ka < kb) == opts->ascending ? -1 : 1;
	return -backward_by_name(a, b);
}

static void backward_fill(const struct view *s, void *row)
{
	struct join *r = row;
	const struct backward_row *j = &r->j;

	r->name.data = mdl_name(s->in->model, j->name_id, &r->name.len);
	r->all_ns = all_ns(j);
	r->ratio = j->total_ns ? ((double)j->bwd_total_ns + (double)j->deep_total_ns) / (double)j->total_ns : NAN;
}

static void backward_finish(const struct view *s, void *table)
{
	struct joins *t = table;
	unsigned cls;

	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++)
		t->unjoined += mdl_tally(s->in->model, cls, MXBPF_TALLY_UNJOINED);
}

static void backward_above(struct view *s, const void *table, const char *prefix)
{
	out_printf(s->out, "%sforward and backward: ", prefix);
	view_put_shown(s, table, "operator");
}

static void backward_below(struct view *s, const void *table, const char *prefix)
{
	const struct joins *t = table;
	char n[32];

	if (t->unjoined)
		out_printf(s->out,
			   "%s%s backward nodes are listed under their own names: their operator ran before the window "
			   "or cannot be seen\n",
			   prefix, fmt_count(t->unjoined, n));
}

static bool backward_when(const struct view *s)
{
	return s->opts->backward;
}

#define ROW struct joins
static const struct tbl_column totals[] = {
	{"unjoined", NULL, NULL, TBL_COUNT, AT(unjoined),
	 .help = "runs of nodes whose operator ran before the window or cannot be seen; they are listed under their "
		 "own names, with count 0"},
	{0},
};
#undef ROW

#define ROW struct join
static const struct tbl_column columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(j.name_id)},
	{"name", NULL, "name", TBL_TEXT, AT(name)},
	PID_COLUMN(j.tgid, .merge = TBL_IS_KEY),
	{"count", NULL, "calls", TBL_COUNT, SUM_AT(j.count),
	 .help = "calls of the forward operator for which a backward node has run"},
	{"total_ns", NULL, "forward", TBL_NS, SUM_AT(j.total_ns), .help = "time of these calls"},
	{"backward_count", NULL, NULL, TBL_COUNT, SUM_AT(j.bwd_count),
	 .help = "runs of the backward nodes that these calls created"},
	{"backward_ns", NULL, "backward", TBL_NS, SUM_AT(j.bwd_total_ns)},
	{"deeper_count", NULL, NULL, TBL_COUNT, SUM_AT(j.deep_count),
	 .help = "runs of nodes that were created while backward nodes ran: double backward and deeper"},
	{"deeper_ns", NULL, "deeper", TBL_NS, SUM_AT(j.deep_total_ns)},
	{NULL, NULL, "total", TBL_NS, AT(all_ns), .help = "sum of forward, backward and deeper"},
	{NULL, NULL, "ratio", TBL_RATIO, AT(ratio), .digits = 2, .help = "backward plus deeper, divided by forward"},
	{0},
};

const struct tbl_def backward_table = {
	.name = "backward", .row_bytes = sizeof(struct backward_row), .columns = columns};

const struct view_sheet sheet_backward = {
	.title = "forward and backward",
	.help = "Requires --backward: forward operators, with the time of the backward nodes that they created.",
	.member = "backward",
	.list = "operators",
	.csv = "backward",
	.columns = columns,
	.totals = totals,
	.row_bytes = sizeof(struct join),
	.table_bytes = sizeof(struct joins),
	.when = backward_when,
	.stored = &backward_table,
	.feature = &feature_backward,
	.joins = true,
	.fill = backward_fill,
	.finish = backward_finish,
	.order = backward_by_opts,
	.above = backward_above,
	.below = backward_below,
};
