// SPDX-License-Identifier: Apache-2.0
/* Performance counters (--counters) and the ratios of two counters. */
#include "feature/counters/counters.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "view/calls.h"
#include "view/priv.h"
#include "view/text/grid.h"

#define NAME_BYTES_MAX 24

static const struct view_ratio ratios[] = {
	{"instructions_per_cycle", "IPC", "instructions", "cycles", 1},
	{"ghz", "GHz", "cycles", "task-clock", 1},
	{"cache_misses_per_1000_instructions", "cmiss/1k", "cache-misses", "instructions", 1000},
	{"branch_misses_per_1000_instructions", "bmiss/1k", "branch-misses", "instructions", 1000},
	{"cache_misses_percent", "cmiss%", "cache-misses", "cache-references", 100},
	{"branch_misses_percent", "bmiss%", "branch-misses", "branches", 100},
};

unsigned view_ncounters(const struct mdl_session *s)
{
	return s->ncounters < MXBPF_COUNTERS_MAX ? (unsigned)s->ncounters : MXBPF_COUNTERS_MAX;
}

/* Shorter headings for wide names of perf. */
static const struct {
	const char *name, *head;
} heads[] = {
	{"cache-references", "cache-refs"},
	{"context-switches", "switches"},
	{"cpu-migrations", "migrations"},
	{"alignment-faults", "alignments"},
};

/* The name may come from an untrusted recording. */
const char *view_counter_name(const struct mdl_session *s, unsigned i)
{
	static const char *const others[MXBPF_COUNTERS_MAX] = {"counter-1", "counter-2", "counter-3", "counter-4"};
	const char *name = s->counters[i].name;
	size_t len = strlen(name);

	return len && len <= NAME_BYTES_MAX && len == strspn(name, "abcdefghijklmnopqrstuvwxyz-") ? name : others[i];
}

/* Returns the index of a counter in the session, or MXBPF_COUNTERS_MAX. */
static unsigned counters_find(const struct mdl_session *s, const char *name)
{
	unsigned i, n = view_ncounters(s);

	for (i = 0; i < n && strcmp(view_counter_name(s, i), name); i++)
		;
	return i < n ? i : MXBPF_COUNTERS_MAX;
}

const struct view_ratio *view_ratio(const struct mdl_session *s, unsigned i)
{
	const struct view_ratio *r;

	for (r = ratios; r < ratios + sizeof(ratios) / sizeof(ratios[0]); r++)
		if (counters_find(s, r->over) < MXBPF_COUNTERS_MAX && counters_find(s, r->under) < MXBPF_COUNTERS_MAX &&
		    !i--)
			return r;
	return NULL;
}

bool view_ratio_of(const struct mdl_session *s, const struct view_ratio *ratio, const struct mxbpf_counter_sum *c,
		   double *v)
{
	uint64_t under = c->value[counters_find(s, ratio->under)];

	*v = under ? ratio->factor * (double)c->value[counters_find(s, ratio->over)] / (double)under : 0;
	return under;
}

bool view_asks_counters(const struct view *s)
{
	return view_ncounters(s->in->session);
}

struct view_counters view_counters_of(const struct view *s, const struct mxbpf_counter_sum *sum, bool people)
{
	const struct mdl_session *ss = s->in->session;
	struct view_counters c = {.calls = sum->spans, .scaled = sum->scaled};
	const struct view_ratio *ratio;
	unsigned i;

	for (i = 0; i < view_ncounters(ss); i++)
		c.value[i] = people && !sum->spans ? TBL_UNKNOWN : sum->value[i];
	for (i = 0; (ratio = view_ratio(ss, i)); i++)
		if (!view_ratio_of(ss, ratio, sum, &c.ratio[i]))
			c.ratio[i] = NAN;
	return c;
}

/* Formats "998", "12.3k", "4.56G". */
static void short_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	static const char units[] = "kMGTPE";
	const uint64_t n = *(const uint64_t *)value;
	double v = (double)n;
	unsigned unit = 0;

	if (n < 1000) {
		snprintf(cell, TBL_CELL_BYTES, "%" PRIu64, n);
		return;
	}
	for (v /= 1000; v >= 999.5; v /= 1000)
		unit++;
	snprintf(cell, TBL_CELL_BYTES, "%.*f%c", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[unit]);
}

/* Clock counters count nanoseconds. */
static void clock_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	char *blank = strchr(fmt_ns(*(const uint64_t *)value, cell), ' ');

	if (blank)
		memmove(blank, blank + 1, strlen(blank));
}

static const char *head_of(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		if (!strcmp(heads[i].name, name))
			return heads[i].head;
	return name;
}

#define ROW struct view_counters
unsigned view_counter_columns(const struct mdl_session *ss, struct tbl_column *to)
{
	const struct view_ratio *ratio;
	unsigned n = 0, i;

	to[n++] = (struct tbl_column){"calls", "counted_calls", "calls", TBL_COUNT, AT(calls), .cell = short_cell};
	to[n++] = (struct tbl_column){"scaled", "scaled_calls", NULL, TBL_COUNT, AT(scaled)};
	for (i = 0; i < view_ncounters(ss); i++) {
		const char *name = view_counter_name(ss, i);

		to[n++] = (struct tbl_column){name,
					      NULL,
					      head_of(name),
					      TBL_COUNT,
					      AT(value[i]),
					      TBL_NULL,
					      .cell = strstr(name, "-clock") ? clock_cell : short_cell};
	}
	for (i = 0; (ratio = view_ratio(ss, i)); i++)
		to[n++] = (struct tbl_column){ratio->name,  NULL,	 ratio->head,	  TBL_RATIO,
					      AT(ratio[i]), .digits = 2, .data_digits = 4};
	return n;
}
_Static_assert(2 + MXBPF_COUNTERS_MAX + VIEW_RATIOS_MAX <= VIEW_MADE_MAX, "there is room for each column");
_Static_assert(sizeof(ratios) / sizeof(ratios[0]) <= VIEW_RATIOS_MAX, "a row has room for each ratio");
#undef ROW

static void counters_above(struct view *s, const void *table, const char *prefix)
{
	const struct view_list *t = table;

	view_put_safe(s->out, t->title, strlen(t->title));
	out_puts(s->out, ": counted by the thread of each call, what it calls included\n");
}

#define ROW struct view_call
static const struct tbl_column columns[] = {
	{NULL, NULL, "name", TBL_TEXT, AT(name)},
	{NULL, NULL, NULL, TBL_OBJECT, AT(counters), .generate = view_counter_columns},
	{NULL, NULL, NULL, TBL_PART, AT(details), .columns = view_details_columns},
	{0},
};

const struct view_sheet sheet_counters = {
	.title = "Performance counters",
	.help = "Requires --counters. Text has this table below that of the calls; JSON and CSV have the counters in "
		"the rows of the calls.",
	.columns = columns,
	.row_bytes = sizeof(struct view_call),
	.table_bytes = sizeof(struct view_calls),
	.of_class = true,
	.when = view_asks_counters,
	.row = view_call_make,
	.above = counters_above,
};
