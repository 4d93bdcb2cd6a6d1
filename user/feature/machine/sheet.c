// SPDX-License-Identifier: Apache-2.0
/* Gauges of the machine: programs get all readings, people get those that explain slow calls. */
#include "feature/machine/machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/machine/sheet.h"
#include "view/sheet.h"
#include "view/priv.h"

#define SAYS_BYTES   1024
#define TICKS_MIN_NS 50000000 /* a shorter time may be chance, because the kernel counts ticks of 10 ms */

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static double mean(const struct machine_row *r)
{
	return r ? ratio((double)r->sum, (double)r->count) : 0;
}

static double difference(const struct mdl *m, uint16_t id)
{
	const struct machine_row *r = machine_row(m, id, 0);

	return r ? (double)r->difference : 0;
}

/* Returns a percentage, or the number of hits. */
static double share(const struct mdl *m, const struct machine_gauge *g, const struct machine_row *r)
{
	const struct machine_row *max = machine_row(m, MXBPF_GAUGE_CPU_KHZ_MAX, r->scope);
	double all = 0;
	uint16_t id;

	switch (g->share) {
	case MACHINE_SHARE_TIME:
		return 100 * ratio((double)r->difference, (double)r->elapsed_ns);
	case MACHINE_SHARE_CPU_TIME:
		for (id = MXBPF_GAUGE_CPU_BUSY; id <= MXBPF_GAUGE_CPU_STEAL; id++)
			all += difference(m, id);
		return r->difference < TICKS_MIN_NS ? 0 : 100 * ratio((double)r->difference, all);
	case MACHINE_SHARE_KHZ:
		return 100 * ratio(mean(r), mean(max));
	case MACHINE_SHARE_HITS:
		return (double)r->difference;
	case MACHINE_SHARE_NONE:
		break;
	}
	return 0;
}

static bool read_anywhere(const struct mdl *m, unsigned id)
{
	size_t n, i;
	const struct machine_row *rows = machine_rows(m, &n);

	for (i = 0; i < n; i++)
		if (rows[i].id == id)
			return true;
	return false;
}

static bool worth_saying(const struct mdl *m, const struct machine_gauge *g, double value)
{
	if (!g->says || (g->unless && read_anywhere(m, g->unless)))
		return false;
	return g->share == MACHINE_SHARE_KHZ ? value > 0 && value <= g->threshold : value >= g->threshold;
}

static bool has_said(const struct mdl *m, uint16_t id)
{
	size_t n, i;
	const struct machine_row *rows = machine_rows(m, &n);

	for (i = 0; i < n; i++)
		if (rows[i].id == id && worth_saying(m, &machine_gauges[id], share(m, &machine_gauges[id], &rows[i])))
			return true;
	return false;
}

bool machine_throttled(const struct mdl *m)
{
	return has_said(m, MXBPF_GAUGE_THROTTLED);
}

bool machine_stolen(const struct mdl *m)
{
	return has_said(m, MXBPF_GAUGE_CPU_STEAL);
}

/* Writes "cpu.max (0.30 CPUs)" with the name of the file in this version of control groups. */
static void limit_text(const struct mdl *m, const struct machine_gauge *g, const struct machine_row *r, char *text,
		       size_t cap)
{
	const struct machine_gauge *limit = &machine_gauges[g->limit];
	const struct machine_row *of = machine_row(m, (uint16_t)g->limit, r->scope);
	size_t len;
	bool v1 = *machine_scope_name(m, r->scope, &len) != '/';
	int n = snprintf(text, cap, "%s", limit->from[v1].file ? limit->from[v1].file : limit->name);
	char bytes[24];

	if (!of || of->last == MXBPF_GAUGE_NO_LIMIT)
		return;
	if (limit->unit == MACHINE_UNIT_MILLICPUS)
		snprintf(text + n, cap - (size_t)n, " (%.2f CPUs)", (double)of->last / 1000);
	else
		snprintf(text + n, cap - (size_t)n, " (%s)", fmt_bytes(of->last, bytes));
}

/* Each CPU counts its own time, so the sum can exceed the elapsed time. */
static bool is_summed(const struct mdl *m, const struct machine_row *r, double value)
{
	const struct machine_row *max = machine_row(m, MXBPF_GAUGE_CPU_MAX, r->scope);

	return r->id == MXBPF_GAUGE_THROTTLED && (value > 100 || (max && max->last > 1000));
}

/* Writes the sentence of a gauge. A reading of a control group ends with its path, unless that is the root. */
static void sentence(const struct mdl *m, const struct machine_row *r, double value, char text[SAYS_BYTES])
{
	const struct machine_gauge *g = &machine_gauges[r->id];
	char number[64], limit[96] = "";
	const char *name, *path;
	size_t len;
	int n;

	if (g->share == MACHINE_SHARE_HITS)
		fmt_count(r->difference, number);
	else
		snprintf(number, sizeof(number), value < 9.95 ? "%.1f %%%s" : "%.0f %%%s", value,
			 is_summed(m, r, value) ? " (summed over CPUs)" : "");
	if (g->limit)
		limit_text(m, g, r, limit, sizeof(limit));
	n = snprintf(text, SAYS_BYTES, g->says, number, limit);
	name = machine_scope_name(m, r->scope, &len);
	path = memchr(name, '/', len);
	if (path && path + 1 < name + len)
		snprintf(text + n, SAYS_BYTES - (size_t)n, ": %.*s", (int)(name + len - path), path);
}

/*
 * Writes the sentence of the next row from *i on that is worth one. Limits are causes and come before the others. The
 * text is untrusted.
 */
static bool next_finding(const struct mdl *m, size_t *i, char text[SAYS_BYTES])
{
	size_t n;
	const struct machine_row *rows = machine_rows(m, &n), *r;
	double value;

	while (n && *i < 2 * n) {
		bool second = *i >= n;

		r = &rows[(*i)++ % n];
		value = share(m, &machine_gauges[r->id], r);
		if (second == !!machine_gauges[r->id].limit || !worth_saying(m, &machine_gauges[r->id], value))
			continue;
		sentence(m, r, value, text);
		return true;
	}
	return false;
}

void view_put_machine(struct view *s, const char *prefix)
{
	char text[SAYS_BYTES];
	size_t i = 0;

	while (next_finding(s->in->model, &i, text)) {
		out_printf(s->out, "%smachine  ", prefix);
		view_put_safe(s->out, text, strlen(text));
		out_puts(s->out, "\n");
	}
}

/* ---- sheet */

#define VALUE_BYTES 48
struct gauge_row {
	struct view_text name, group;
	struct view_text title, of, value, least, most; /* for people */
	char texts[4][VALUE_BYTES];
	uint64_t first, last, difference, elapsed_ns, min, max, mean; /* TBL_UNKNOWN: no limit */
	uint8_t unit;
	bool rises, ranges; /* a counter; a value that rises and falls */
};
_Static_assert(MXBPF_GAUGE_NO_LIMIT == TBL_UNKNOWN, "no limit is null in JSON");

struct gauge_table {
	struct view_list list;
	struct view_text says;
	struct buf says_text; /* a line for each sentence */
};

/* ---- for people */

static const char *unit_text(const struct machine_gauge *g, uint64_t v, char text[VALUE_BYTES])
{
	char part[32];

	if (v == MXBPF_GAUGE_NO_LIMIT)
		snprintf(text, VALUE_BYTES, "no limit");
	else if (g->unit == MACHINE_UNIT_NS)
		snprintf(text, VALUE_BYTES, "%s", fmt_ns(v, part));
	else if (g->unit == MACHINE_UNIT_BYTES)
		snprintf(text, VALUE_BYTES, "%s", fmt_bytes(v, part));
	else if (g->unit == MACHINE_UNIT_COUNT)
		snprintf(text, VALUE_BYTES, "%s", fmt_count(v, part));
	else
		snprintf(text, VALUE_BYTES, "%.2f %s", (double)v / (g->unit == MACHINE_UNIT_KHZ ? 1e6 : 1e3),
			 g->unit == MACHINE_UNIT_KHZ ? "GHz" : "CPUs");
	return text;
}

/* The title of a gauge, or its name with blanks. */
static const char *title_of(const struct machine_gauge *g, char text[VALUE_BYTES])
{
	char *p;

	snprintf(text, VALUE_BYTES, "%s", g->title ? g->title : g->name);
	for (p = text; *p; p++)
		*p = *p == '_' ? ' ' : *p;
	return text;
}

/* The row must stay where it is. */
static void fill_people(const struct mdl *m, struct gauge_row *r, const struct machine_row *of)
{
	const struct machine_gauge *g = &machine_gauges[of->id];
	const double percent = share(m, g, of);
	size_t len;

	r->title = view_word(title_of(g, r->texts[0]));
	r->of = r->group.data ? r->group : view_word("the machine");
	unit_text(g, r->rises ? r->difference : r->ranges ? r->mean : r->last, r->texts[1]);
	len = strlen(r->texts[1]);
	if (g->share == MACHINE_SHARE_TIME || g->share == MACHINE_SHARE_CPU_TIME ||
	    (g->share == MACHINE_SHARE_KHZ && percent > 0)) /* 0: the highest frequency is not known */
		snprintf(r->texts[1] + len, VALUE_BYTES - len, " (%.1f %%)", percent);
	r->value = view_word(r->texts[1]);
	if (!r->ranges)
		return;
	r->least = view_word(unit_text(g, r->min, r->texts[2]));
	r->most = view_word(unit_text(g, r->max, r->texts[3]));
}

static int machine_make(const struct view *s, void *table)
{
	const struct mdl *m = s->in->model;
	struct gauge_table *t = table;
	const struct machine_row *g;
	struct gauge_row *r;
	char text[SAYS_BYTES], line[4 * SAYS_BYTES];
	size_t i = 0, n;
	int err = 0;

	while (!err && next_finding(m, &i, text)) {
		fmt_utf8(line, sizeof(line), text, strlen(text)); /* the name of a group can contain newlines */
		err = buf_printf(&t->says_text, "%s\n", line);
	}
	t->says = (struct view_text){t->says_text.data, t->says_text.len};
	g = machine_rows(m, &n);
	t->list.rows = r = calloc(n + 1, sizeof(*r));
	t->list.all = r ? n : 0;
	for (i = 0; r && i < n; i++, g++) {
		r[i] = (struct gauge_row){
			.name = view_word(machine_gauges[g->id].name),
			.unit = (uint8_t)machine_gauges[g->id].unit,
			.first = g->first,
			.last = g->last,
			.difference = g->difference,
			.elapsed_ns = g->elapsed_ns,
			.min = g->min,
			.max = g->max,
			.mean = g->count ? g->sum / g->count : 0,
			.rises = machine_gauges[g->id].rises,
			.ranges = !machine_gauges[g->id].rises && g->count,
		};
		r[i].group.data = machine_scope_name(m, g->scope, &r[i].group.len);
		if (!r[i].group.len)
			r[i].group.data = NULL;
		fill_people(m, &r[i], g);
	}
	return !err && r ? 0 : -ENOMEM;
}

static void machine_sheet_fini(void *table)
{
	buf_fini(&((struct gauge_table *)table)->says_text);
}

static bool machine_when(const struct view *s)
{
	size_t n;

	machine_rows(s->in->model, &n);
	return n;
}

#define ROW	    struct gauge_row
#define HAS(member) .has = offsetof(ROW, member)
static const struct tbl_column columns[] = {
	{"name", NULL, NULL, TBL_TEXT, AT(name)},
	{"group", NULL, NULL, TBL_TEXT, AT(group), TBL_NULL,
	 .help = "path of the control group, for version 1 with its controller (cpu:/a); null: the machine"},
	{"unit", NULL, NULL, TBL_WORD, AT(unit), .words = machine_units, .nwords = MACHINE_UNIT_KHZ + 1},
	{"first", NULL, NULL, TBL_COUNT, AT(first), TBL_NULL, .help = "null: no limit"},
	{"last", NULL, NULL, TBL_COUNT, AT(last), TBL_NULL},
	{"difference", NULL, NULL, TBL_COUNT, AT(difference), HAS(rises),
	 .help = "increase in the window without pauses, for gauges that only rise; throttled: summed over CPUs"},
	{"elapsed_ns", "", NULL, TBL_NS, AT(elapsed_ns), HAS(rises),
	 .help = "time between the two readings of the difference"},
	{"min", "least", NULL, TBL_COUNT, AT(min), HAS(ranges)},
	{"max", "most", NULL, TBL_COUNT, AT(max), HAS(ranges)},
	{"mean", NULL, NULL, TBL_COUNT, AT(mean), HAS(ranges)},
	{NULL, NULL, "reading", TBL_TEXT, AT(title)},
	{NULL, NULL, "of", TBL_TEXT, AT(of), .help = "the machine, or a control group"},
	{NULL, NULL, "in the window", TBL_TEXT, AT(value),
	 .help = "how much it rose, with its share of the time; of what rises and falls the mean; of limits the limit"},
	{NULL, NULL, "least", TBL_TEXT, AT(least)},
	{NULL, NULL, "most", TBL_TEXT, AT(most)},
	{0},
};
#undef ROW
#define ROW struct gauge_table
static const struct tbl_column totals[] = {
	{"says", "", NULL, TBL_LINES, AT(says), .help = "explanations of slow calls, as sentences"},
	{0},
};

/* Only the page shows the table to people. The others write the sentences alone. */
static void machine_above(struct view *s, const void *table, const char *prefix)
{
	const struct view_text says = ((const struct gauge_table *)table)->says;
	struct mxbpf_account_sum sum = {0};
	size_t n, i;
	const struct mdl_row *const *rows = mdl_rows(s->in->model, MXBPF_CLASS_OPERATOR, &n);
	char minor[32], major[32];

	view_put_machine(s, prefix);
	if (!says.len)
		out_printf(s->out, "%sNo throttling, pressure or other reading explains slow calls.\n", prefix);
	for (i = 0; i < n; i++) {
		add_sat(&sum.minflt, view_account_of(rows[i]).sum.minflt);
		add_sat(&sum.majflt, view_account_of(rows[i]).sum.majflt);
	}
	if (s->in->session->account && !s->in->session->no_faults)
		out_printf(s->out, "%sPage faults in operators: %s without I/O, %s with I/O\n", prefix,
			   fmt_count(sum.minflt, minor), fmt_count(sum.majflt, major));
}

const struct view_sheet sheet_machine = {
	.title = "Machine",
	.help = "Readings of the machine and of the target's control groups, about once a second; absent if there are "
		"none.",
	.member = "machine",
	.list = "gauges",
	.csv = "machine",
	.columns = columns,
	.totals = totals,
	.row_bytes = sizeof(struct gauge_row),
	.table_bytes = sizeof(struct gauge_table),
	.whole = true,
	.if_any = true,
	.at_end = true,
	.when = machine_when,
	.make = machine_make,
	.fini = machine_sheet_fini,
	.above = machine_above,
};
