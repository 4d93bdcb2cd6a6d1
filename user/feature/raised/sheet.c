// SPDX-License-Identifier: Apache-2.0
#include "feature/raised/raised.h"
#include "view/priv.h"
#include "view/sheet.h"

#define ROWS_MAX 4096 /* beyond that, a new place in the program counts in the row without one */

struct row {
	struct raised_row r;
	struct view_text name, title, line; /* line: innermost Python line; without data if it is unknown */
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

static int most_first(const void *va, const void *vb, void *opts)
{
	const struct row *a = va, *b = vb;
	int order = a->r.count > b->r.count ? -1 : a->r.count < b->r.count;

	order = order ? order : view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);
	order = order ? order : view_name_cmp(a->line.data, a->line.len, b->line.data, b->line.len);
	order = order ? order : (int)a->r.cls - b->r.cls;
	return order ? order : a->r.tgid < b->r.tgid ? -1 : a->r.tgid > b->r.tgid;
}

static void raised_fill(const struct view *s, void *row)
{
	struct row *r = row;

	r->title = view_word(mdl_class_title(s->in->session, r->r.cls));
	r->line = line_of(s, r->r.stack_id);
	r->name.data = mdl_name(s->in->model, r->r.name_id, &r->name.len);
}

static void raised_finish(const struct view *s, void *table)
{
	((struct view_list *)table)->empty_too = true;
}

static void raised_above(struct view *s, const void *table, const char *prefix)
{
	const struct view_list *t = table;

	out_printf(s->out, "%sRaised: ", prefix);
	if (t->all)
		view_put_rows(s, t);
	else
		out_puts(s->out, "no call was left by an exception");
	out_puts(s->out, "\n");
}

static bool raised_sheet_when(const struct view *s)
{
	return mdl_asked(s->in->session, &feature_raised);
}

#define ROW struct row
static const struct tbl_column columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(r.name_id)},
	{.stored = "stack_id",
	 .type = TBL_NAME,
	 KEY_AT(r.stack_id),
	 .name_kind = MXBPF_NAME_STACK,
	 .flags = TBL_DETAIL},
	{"name", NULL, "call", TBL_TEXT, AT(name), .name_min = 24},
	{"table", "", NULL, TBL_TEXT, AT(title), TBL_NULL, .help = "table that has the row of the call"},
	PID_COLUMN(r.tgid, .merge = TBL_IS_KEY),
	{"count", NULL, "times", TBL_COUNT, SUM_AT(r.count), .help = "number of calls that an exception left"},
	{"first_unix_ns", NULL, "first (s)", TBL_MOMENT, MIN_AT(r.first_ns), TBL_TIGHT, .digits = 6,
	 .help = "when the first of these calls began"},
	{"last_unix_ns", NULL, "last (s)", TBL_MOMENT, MAX_AT(r.last_ns), TBL_TIGHT, .digits = 6},
	{.stored = "class", .type = TBL_COUNT, KEY_AT(r.cls), .limit = MXBPF_CLASS_MAX - 1},
	{"line", NULL, "line", TBL_TEXT, AT(line), TBL_NULL,
	 .help = "line of the program that made the call; requires --py-stacks"},
	{0},
};

const struct tbl_def raised_table = {
	.name = "raised", .row_bytes = sizeof(struct raised_row), .max_rows = ROWS_MAX, .columns = columns};

const struct view_sheet sheet_raised = {
	.title = "Raised",
	.help = "Requires --raised: calls that an exception left, by name and, with --py-stacks, by line.",
	.member = "raised",
	.csv = "raised",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct view_list),
	.when = raised_sheet_when,
	.stored = &raised_table,
	.feature = &feature_raised,
	.joins = true,
	.fill = raised_fill,
	.finish = raised_finish,
	.order = most_first,
	.above = raised_above,
};
