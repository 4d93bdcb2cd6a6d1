// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include "feature/raised/raised.h"
#include "view/priv.h"
#include "view/sheet.h"

struct row {
	struct view_text name, title, line; /* line: innermost Python line; without data if it is unknown */
	struct mxbpf_agg_raised r;
};

/* Returns the first line of a stack. */
static struct view_text line_of(const struct view *s, uint64_t stack_id)
{
	struct view_text line = {0};
	const char *end;

	if (!stack_id)
		return line;
	line.data = view_stack(s->in->model, s->opts, stack_id, &line.len);
	end = line.data ? memchr(line.data, '\n', line.len) : NULL;
	line.len = end ? (size_t)(end - line.data) : line.len;
	return line;
}

static int by_line(const void *va, const void *vb)
{
	const struct row *a = va, *b = vb;
	int order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);

	order = order ? order : view_name_cmp(a->line.data, a->line.len, b->line.data, b->line.len);
	order = order ? order : (int)a->r.cls - b->r.cls;
	return order ? order : a->r.h.tgid < b->r.h.tgid ? -1 : a->r.h.tgid > b->r.h.tgid;
}

static int most_first(const void *va, const void *vb)
{
	const struct row *a = va, *b = vb;

	if (a->r.count != b->r.count)
		return a->r.count > b->r.count ? -1 : 1;
	return by_line(a, b);
}

/* Merges stacks that have the same first line. Returns the number of rows. */
static size_t merge(struct row *r, size_t n)
{
	struct mxbpf_agg_raised *to, *from;
	size_t i, last = 0;

	qsort(r, n, sizeof(*r), by_line);
	for (i = 1; i < n; i++) {
		if (by_line(&r[last], &r[i])) {
			r[++last] = r[i];
			continue;
		}
		to = &r[last].r;
		from = &r[i].r;
		add_sat(&to->count, from->count);
		to->h.ts_ns = from->h.ts_ns < to->h.ts_ns ? from->h.ts_ns : to->h.ts_ns;
		to->last_ns = from->last_ns > to->last_ns ? from->last_ns : to->last_ns;
	}
	return n ? last + 1 : 0;
}

static int make(const struct view *s, void *table)
{
	struct view_list *t = table;
	const struct mxbpf_agg_raised *all = raised_rows(s->in->model, &t->all);
	struct row *r = calloc(t->all + 1, sizeof(*r));
	size_t i;

	t->rows = r;
	t->empty_too = true;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < t->all; i++) {
		r[i] = (struct row){.title = view_word(mdl_class_title(s->in->session, all[i].cls)),
				    .line = line_of(s, all[i].stack_id),
				    .r = all[i]};
		r[i].name.data = mdl_name(s->in->model, all[i].name_id, &r[i].name.len);
	}
	t->all = merge(r, t->all);
	qsort(r, t->all, sizeof(*r), most_first);
	return 0;
}

static void above(struct view *s, const void *table, const char *prefix)
{
	const struct view_list *t = table;

	out_printf(s->out, "%sRaised: ", prefix);
	if (t->all)
		view_put_rows(s, t);
	else
		out_puts(s->out, "no call was left by an exception");
	out_puts(s->out, "\n");
}

static bool when(const struct view *s)
{
	return mdl_asked(s->in->session, &feature_raised);
}

#define ROW struct row
static const struct view_column columns[] = {
	{"name", NULL, "call", VIEW_TEXT, AT(name), .name_min = 24},
	{"table", "", NULL, VIEW_TEXT, AT(title), VIEW_NULL, .help = "table that has the row of the call"},
	PID_COLUMN(r.h.tgid),
	{"count", NULL, "times", VIEW_COUNT, AT(r.count), .help = "number of calls that an exception left"},
	{"first_unix_ns", NULL, "first (s)", VIEW_MOMENT, AT(r.h.ts_ns), VIEW_TIGHT, .digits = 6,
	 .help = "when the first of these calls began"},
	{"last_unix_ns", NULL, "last (s)", VIEW_MOMENT, AT(r.last_ns), VIEW_TIGHT, .digits = 6},
	{"line", NULL, "line", VIEW_TEXT, AT(line), VIEW_NULL,
	 .help = "line of the program that made the call; requires --py-stacks"},
	{0},
};

const struct view_sheet sheet_raised = {
	.title = "Raised",
	.help = "Requires --raised: calls that an exception left, by name and, with --py-stacks, by line.",
	.member = "raised",
	.csv = "raised",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct view_list),
	.when = when,
	.make = make,
	.above = above,
};
