// SPDX-License-Identifier: Apache-2.0
/* What the gauges of the machine say: all of it for programs, to people what explains slow calls. */
#include "feature/machine/machine.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/machine/sheet.h"
#include "view/priv.h"

#define SAYS_BYTES   1024
#define TICKS_MIN_NS 50000000 /* of what is counted in ticks of 10 ms, less may be chance */

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

/* In percent, or hits. */
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

/* "cpu.max (0.30 CPUs)": the file as that version calls it. */
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

/* Of time that each CPU counts for itself: more than one may have. */
static bool is_summed(const struct mdl *m, const struct machine_row *r, double value)
{
	const struct machine_row *max = machine_row(m, MXBPF_GAUGE_CPU_MAX, r->scope);

	return r->id == MXBPF_GAUGE_THROTTLED && (value > 100 || (max && max->last > 1000));
}

/* Where it is the group's, with its path, but for one of which nothing is known to be around it. */
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

/* The next row from *i on that is worth a sentence, which has bytes of anybody's; those with a limit are causes, and
 * come before the others. */
static bool next_finding(const struct mdl *m, size_t *i, char text[SAYS_BYTES])
{
	size_t n;
	const struct machine_row *rows = machine_rows(m, &n), *r;
	double value;

	while (*i < 2 * n) {
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

static void put_value(struct out *o, const char *key, uint64_t value)
{
	out_printf(o, ", \"%s\": ", key);
	if (value == MXBPF_GAUGE_NO_LIMIT)
		out_puts(o, "null");
	else
		out_printf(o, "%" PRIu64, value);
}

static void put_row_json(struct view *s, const struct machine_row *r)
{
	const struct machine_gauge *g = &machine_gauges[r->id];
	const char *scope;
	size_t len;

	out_printf(s->out, "{\"name\": \"%s\", \"group\": ", g->name);
	scope = machine_scope_name(s->in->model, r->scope, &len);
	if (len)
		view_put_json(s->out, scope, len);
	else
		out_puts(s->out, "null");
	out_printf(s->out, ", \"unit\": \"%s\"", machine_units[g->unit]);
	put_value(s->out, "first", r->first);
	put_value(s->out, "last", r->last);
	if (g->rises) {
		put_value(s->out, "difference", r->difference);
		put_value(s->out, "elapsed_ns", r->elapsed_ns);
	} else if (r->count) {
		put_value(s->out, "min", r->min);
		put_value(s->out, "max", r->max);
		put_value(s->out, "mean", r->sum / r->count);
	}
	out_puts(s->out, "}");
}

void view_put_machine_json(struct view *s)
{
	const struct mdl *m = s->in->model;
	const struct machine_row *rows;
	char text[SAYS_BYTES];
	size_t n, i = 0, said = 0;

	rows = machine_rows(m, &n);
	if (!n)
		return;
	out_puts(s->out, ",\n  \"machine\": {\n    \"says\": [");
	while (next_finding(m, &i, text)) {
		out_puts(s->out, said++ ? ",\n      " : "\n      ");
		view_put_json(s->out, text, strlen(text));
	}
	out_puts(s->out, "],\n    \"gauges\": [");
	for (i = 0; i < n; i++) {
		out_puts(s->out, i ? ",\n      " : "\n      ");
		put_row_json(s, &rows[i]);
	}
	out_puts(s->out, "]\n  }");
}
