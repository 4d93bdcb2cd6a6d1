// SPDX-License-Identifier: Apache-2.0
/* User annotations without a duration: user counters and instants. */
#include "feature/marks/marks.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/marks/sheet.h"
#include "view/priv.h"
#include "view/sheet.h"

/* A counter or an instant. The other member is zero. */
struct mark {
	struct view_text name, domain; /* domain: without data if there is none */
	uint64_t count;
	struct mxbpf_value value;
	struct mxbpf_instant instant;
	uint32_t tgid;
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

static int by_text(const struct mark *a, const struct mark *b)
{
	int order = view_name_cmp(a->domain.data, a->domain.len, b->domain.data, b->domain.len);

	order = order ? order : view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);
	return order ? order : a->tgid < b->tgid ? -1 : a->tgid > b->tgid;
}

/* Sorts by name or by count. */
static int by_opts(const void *va, const void *vb, void *vopts)
{
	const struct mark *a = va, *b = vb;
	const struct view_opts *opts = vopts;

	if (opts->sort == VIEW_SORT_COUNT && a->count != b->count)
		return (a->count < b->count) == opts->ascending ? -1 : 1;
	return by_text(a, b);
}

static struct mark mark(const struct mdl *m, uint64_t name_id, uint32_t tgid, uint64_t count)
{
	struct mark r = {.tgid = tgid, .count = count};

	r.domain.data = mdl_text(m, MXBPF_NAME_DOMAIN, name_id, &r.domain.len);
	r.name.data = mdl_name(m, name_id, &r.name.len);
	return r;
}

static int make_values(const struct view *s, void *table)
{
	const struct mdl *m = s->in->model;
	struct view_list *t = table;
	const struct mxbpf_value *const *all = marks_values(m, &t->all);
	struct mark *r = calloc(t->all + 1, sizeof(*r));
	size_t i, others;

	t->rows = r;
	marks_instants(m, &others);
	t->empty_too = others;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < t->all; i++) {
		r[i] = mark(m, all[i]->name_id, all[i]->h.tgid, all[i]->count);
		r[i].value = *all[i];
	}
	qsort_r(r, t->all, sizeof(*r), by_opts, (void *)s->opts);
	return 0;
}

static int make_instants(const struct view *s, void *table)
{
	const struct mdl *m = s->in->model;
	struct view_list *t = table;
	const struct mxbpf_instant *const *all = marks_instants(m, &t->all);
	struct mark *r = calloc(t->all + 1, sizeof(*r));
	size_t i, others;

	t->rows = r;
	marks_values(m, &others);
	t->empty_too = others;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < t->all; i++) {
		r[i] = mark(m, all[i]->name_id, all[i]->h.tgid, all[i]->count);
		r[i].name.data = marks_instant_name(m, all[i], &r[i].name.len);
		r[i].instant = *all[i];
	}
	qsort_r(r, t->all, sizeof(*r), by_opts, (void *)s->opts);
	return 0;
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
static bool when(const struct view *s)
{
	char *const *title = s->in->session->class_title;

	return title[MXBPF_CLASS_TASK] || title[MXBPF_CLASS_EVENT];
}

/* Words for the kinds of instants. */
static const char *const kinds[MXBPF_INSTANT_WHATS] = {
	[MXBPF_INSTANT_MARKER] = "marker", [MXBPF_INSTANT_RUN] = "run",	      [MXBPF_INSTANT_STOP] = "stop",
	[MXBPF_INSTANT_PAUSE] = "pause",   [MXBPF_INSTANT_RESUME] = "resume", [MXBPF_INSTANT_DUMP] = "dump",
};

#define ROW	    struct mark
#define DOMAIN_HELP "domain of a user annotation; absent for others"

static const struct tbl_column value_columns[] = {
	{"name", NULL, "name", TBL_TEXT, AT(name)},
	{"domain", NULL, "domain", TBL_TEXT, AT(domain), TBL_OMIT, .help = DOMAIN_HELP},
	PID_COLUMN(tgid),
	{"count", NULL, "sets", TBL_COUNT, AT(count), .help = "number of changes of the counter"},
	{"last", "last_value", "last", TBL_COUNT, AT(value.value)},
	{"min", "min_value", "min", TBL_COUNT, AT(value.min)},
	{"max", "max_value", "max", TBL_COUNT, AT(value.max)},
	{"last_unix_ns", "", NULL, TBL_MOMENT, AT(value.h.ts_ns)},
	{0},
};

const struct view_sheet sheet_marks_values = {
	.title = "Counter",
	.help = "User counters of the program; absent, together with instants, if there are neither.",
	.member = "values",
	.csv = "counter",
	.columns = value_columns,
	.row_bytes = sizeof(struct mark),
	.table_bytes = sizeof(struct view_list),
	.if_any = true,
	.when = when,
	.make = make_values,
	.above = above_values,
};

static const struct tbl_column instant_columns[] = {
	{"name", NULL, "name", TBL_TEXT, AT(name)},
	{"domain", NULL, "domain", TBL_TEXT, AT(domain), TBL_OMIT, .help = DOMAIN_HELP},
	PID_COLUMN(tgid),
	{"count", NULL, "times", TBL_COUNT, AT(count)},
	{"what", "", NULL, TBL_WORD, AT(instant.what), WORDS(kinds),
	 .help = "marker, or the call of the runtime's own profiler"},
	{"scope", "", "scope", TBL_WORD, AT(instant.scope), TBL_OMIT, WORDS(marks_scopes)},
	{"first_unix_ns", NULL, "first (s)", TBL_MOMENT, AT(instant.h.ts_ns), TBL_TIGHT, .digits = 6},
	{"last_unix_ns", NULL, "last (s)", TBL_MOMENT, AT(instant.last_ns), TBL_TIGHT, .digits = 6},
	{0},
};

const struct view_sheet sheet_marks_instants = {
	.title = "Instant",
	.help = "Moments that the program marked, and its calls of the runtime's own profiler.",
	.member = "instants",
	.csv = "instant",
	.columns = instant_columns,
	.row_bytes = sizeof(struct mark),
	.table_bytes = sizeof(struct view_list),
	.if_any = true,
	.when = when,
	.make = make_instants,
	.above = above_instants,
};
