// SPDX-License-Identifier: Apache-2.0
/* User annotations without a duration: user counters and instants. */
#include "feature/marks/marks.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/marks/sheet.h"
#include "view/priv.h"
#include "view/sheet.h"

/* What both tables are sorted by. */
struct mark {
	struct view_text name, domain; /* domain: without data if there is none */
	uint64_t count;
	uint32_t tgid;
};
struct counter {
	struct mxbpf_value v;
	struct mark m;
};
struct instant {
	struct mxbpf_instant i;
	struct mark m;
};

static const char *const said[MXBPF_INSTANT_WHATS] = {
	[MXBPF_INSTANT_RUN] = "set_state('run')",
	[MXBPF_INSTANT_STOP] = "set_state('stop')",
	[MXBPF_INSTANT_PAUSE] = "pause",
	[MXBPF_INSTANT_RESUME] = "resume",
	[MXBPF_INSTANT_DUMP] = "dump",
};

const char *const marks_scopes[MXBPF_SCOPES] = {
	[MXBPF_SCOPE_NONE] = "",	 [MXBPF_SCOPE_GLOBAL] = "global", [MXBPF_SCOPE_PROCESS] = "process",
	[MXBPF_SCOPE_THREAD] = "thread", [MXBPF_SCOPE_TASK] = "task",	  [MXBPF_SCOPE_MARKER] = "marker",
};

const char *marks_instant_name(const struct mdl *m, const struct mxbpf_instant *i, size_t *len)
{
	if (i->what == MXBPF_INSTANT_MARKER)
		return mdl_name(m, i->name_id, len);
	*len = strlen(said[i->what]);
	return said[i->what];
}

static int marks_by_text(const struct mark *a, const struct mark *b)
{
	int order = view_name_cmp(a->domain.data, a->domain.len, b->domain.data, b->domain.len);

	order = order ? order : view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);
	return order ? order : a->tgid < b->tgid ? -1 : a->tgid > b->tgid;
}

/* Sorts by name or by count. */
static int marks_by_opts(const struct mark *a, const struct mark *b, const struct view_opts *opts)
{
	if (opts->sort == VIEW_SORT_COUNT && a->count != b->count)
		return (a->count < b->count) == opts->ascending ? -1 : 1;
	return marks_by_text(a, b);
}

static int counters_by_opts(const void *a, const void *b, void *opts)
{
	return marks_by_opts(&((const struct counter *)a)->m, &((const struct counter *)b)->m, opts);
}

static int instants_by_opts(const void *a, const void *b, void *opts)
{
	return marks_by_opts(&((const struct instant *)a)->m, &((const struct instant *)b)->m, opts);
}

static struct mark mark(const struct mdl *m, uint64_t name_id, uint32_t tgid, uint64_t count)
{
	struct mark r = {.tgid = tgid, .count = count};

	r.domain.data = mdl_text(m, MXBPF_NAME_DOMAIN, name_id, &r.domain.len);
	r.name.data = mdl_name(m, name_id, &r.name.len);
	return r;
}

static void fill_value(const struct view *s, void *row)
{
	struct counter *r = row;

	r->m = mark(s->in->model, r->v.name_id, r->v.h.tgid, r->v.count);
}

static void finish_values(const struct view *s, void *table)
{
	size_t others;

	marks_instants(s->in->model, &others);
	((struct view_list *)table)->empty_too = others;
}

static void fill_instant(const struct view *s, void *row)
{
	struct instant *r = row;

	r->m = mark(s->in->model, r->i.name_id, r->i.h.tgid, r->i.count);
	r->m.name.data = marks_instant_name(s->in->model, &r->i, &r->m.name.len);
}

static void finish_instants(const struct view *s, void *table)
{
	size_t others;

	marks_values(s->in->model, &others);
	((struct view_list *)table)->empty_too = others;
}

static void above_values(struct view *s, const void *table, const char *prefix)
{
	out_printf(s->out, "%sCounter: ", prefix);
	view_put_rows(s, table);
	out_puts(s->out, "\n");
}

static void above_instants(struct view *s, const void *table, const char *prefix)
{
	out_printf(s->out, "%sInstant: ", prefix);
	view_put_rows(s, table);
	out_puts(s->out, "\n");
}

/* True if they are possible: all tables of a series need the same columns. */
static bool marks_when(const struct view *s)
{
	char *const *title = s->in->session->class_title;

	return title[MXBPF_CLASS_TASK] || title[MXBPF_CLASS_EVENT];
}

/* Words for the kinds of instants. */
static const char *const kinds[MXBPF_INSTANT_WHATS] = {
	[MXBPF_INSTANT_MARKER] = "marker", [MXBPF_INSTANT_RUN] = "run",	      [MXBPF_INSTANT_STOP] = "stop",
	[MXBPF_INSTANT_PAUSE] = "pause",   [MXBPF_INSTANT_RESUME] = "resume", [MXBPF_INSTANT_DUMP] = "dump",
};

#define ROW	    struct counter
#define DOMAIN_HELP "domain of a user annotation; absent for others"

static const struct tbl_column value_columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(v.name_id)},
	{"name", NULL, "name", TBL_TEXT, AT(m.name)},
	{"domain", NULL, "domain", TBL_TEXT, AT(m.domain), TBL_OMIT, .help = DOMAIN_HELP},
	PID_COLUMN(v.h.tgid, .merge = TBL_IS_KEY),
	{"count", NULL, "sets", TBL_COUNT, SUM_AT(v.count), .help = "number of changes of the counter"},
	{"last", "last_value", "last", TBL_COUNT, LATEST_AT(v.value)},
	{"min", "min_value", "min", TBL_COUNT, MIN_AT(v.min)},
	{"max", "max_value", "max", TBL_COUNT, MAX_AT(v.max)},
	{"last_unix_ns", "", NULL, TBL_MOMENT, ORDER_AT(v.h.ts_ns)},
	/* Values of the same time are in the order in which the counter was set. */
	{.stored = "seq", .type = TBL_COUNT, ORDER_AT(v.seq)},
	{0},
};

const struct tbl_def marks_values_table = {.name = "user counters",
					   .row_bytes = sizeof(struct mxbpf_value),
					   .adds_processes = true,
					   .columns = value_columns};

const struct view_sheet sheet_marks_values = {
	.title = "Counter",
	.help = "User counters of the program; absent, together with instants, if there are neither.",
	.member = "values",
	.csv = "counter",
	.columns = value_columns,
	.row_bytes = sizeof(struct counter),
	.table_bytes = sizeof(struct view_list),
	.if_any = true,
	.when = marks_when,
	.stored = &marks_values_table,
	.feature = &feature_marks,
	.fill = fill_value,
	.finish = finish_values,
	.order = counters_by_opts,
	.above = above_values,
};

#undef ROW
#define ROW struct instant
static const struct tbl_column instant_columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(i.name_id)},
	{"name", NULL, "name", TBL_TEXT, AT(m.name)},
	{"domain", NULL, "domain", TBL_TEXT, AT(m.domain), TBL_OMIT, .help = DOMAIN_HELP},
	PID_COLUMN(i.h.tgid, .merge = TBL_IS_KEY),
	{"count", NULL, "times", TBL_COUNT, SUM_AT(i.count)},
	{"what", "", NULL, TBL_WORD, KEY_AT(i.what), WORDS(kinds), .limit = MXBPF_INSTANT_WHATS - 1,
	 .help = "marker, or the call of the runtime's own profiler"},
	{"scope", "", "scope", TBL_WORD, KEY_AT(i.scope), TBL_OMIT, WORDS(marks_scopes), .limit = MXBPF_SCOPES - 1},
	{"first_unix_ns", NULL, "first (s)", TBL_MOMENT, MIN_AT(i.h.ts_ns), TBL_TIGHT, .digits = 6},
	{"last_unix_ns", NULL, "last (s)", TBL_MOMENT, MAX_AT(i.last_ns), TBL_TIGHT, .digits = 6},
	{0},
};

const struct tbl_def marks_instants_table = {
	.name = "instants", .row_bytes = sizeof(struct mxbpf_instant), .columns = instant_columns};

const struct view_sheet sheet_marks_instants = {
	.title = "Instant",
	.help = "Moments that the program marked, and its calls of the runtime's own profiler.",
	.member = "instants",
	.csv = "instant",
	.columns = instant_columns,
	.row_bytes = sizeof(struct instant),
	.table_bytes = sizeof(struct view_list),
	.if_any = true,
	.when = marks_when,
	.stored = &marks_instants_table,
	.feature = &feature_marks,
	.fill = fill_instant,
	.finish = finish_instants,
	.order = instants_by_opts,
	.above = above_instants,
};
