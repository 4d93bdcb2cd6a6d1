// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/lines/lines.h"
#include "view/priv.h"
#include "view/sheet.h"

struct row {
	struct view_text line, call;
	struct mxbpf_agg_line l;
	bool main, sleeps, rank;
};

static int order(const void *va, const void *vb)
{
	const struct row *a = va, *b = vb;

	if (a->l.count != b->l.count)
		return a->l.count > b->l.count ? -1 : 1;
	return view_name_cmp(a->line.data, a->line.len, b->line.data, b->line.len);
}

static int make(const struct view *s, void *table)
{
	struct view_list *t = table;
	const struct mxbpf_agg_line *all = lines_rows(s->in->model, &t->all);
	struct row *r = calloc(t->all + 1, sizeof(*r));
	size_t i;

	t->rows = r;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < t->all; i++) {
		r[i] = (struct row){.l = all[i], .main = all[i].main, .sleeps = all[i].sleeps, .rank = all[i].rank};
		r[i].line.data = lines_of_program(s->in->model, all[i].stack_id, &r[i].line.len);
		if (all[i].cls)
			r[i].call.data = mdl_name(s->in->model, all[i].name_id, &r[i].call.len);
	}
	qsort(r, t->all, sizeof(*r), order);
	return 0;
}

static bool when(const struct view *s)
{
	size_t n;

	lines_rows(s->in->model, &n);
	return n;
}

#define ROW struct row
static const struct tbl_column columns[] = {
	{"line", NULL, "line", TBL_TEXT, AT(line), TBL_NULL, .name_min = 24,
	 .help = "innermost line that is neither of Python's library nor of an installed package"},
	PID_COLUMN(l.h.tgid),
	{"tid", NULL, NULL, TBL_COUNT, AT(l.tid)},
	{"other_rank", NULL, NULL, TBL_BOOL, AT(rank), TBL_OMIT,
	 .help = "true for another rank of the job, which is not profiled; `tid` is its pid"},
	{"looks", NULL, "samples", TBL_COUNT, AT(l.count),
	 .help = "number of samples (ten a second) that found the thread on the line"},
	{"call", NULL, "in call", TBL_TEXT, AT(call), TBL_NULL,
	 .help = "the innermost call of the runtime that it was in"},
	{0},
};

const struct view_sheet sheet_lines = {
	.title = "Lines",
	.help = "Lines of Python on which the threads of the job stood, by the clock.",
	.member = "lines",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct view_list),
	.when = when,
	.make = make,
};
