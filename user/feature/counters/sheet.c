// SPDX-License-Identifier: Apache-2.0
/* What --counters counted, and what follows from it. */
#include "feature/counters/counters.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "view/priv.h"
#include "view/text/grid.h"

#define NAME_BYTES_MAX 24
#define CELL_BYTES     32

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

/* Heads of columns where perf's own names are wide. */
static const struct {
	const char *name, *head;
} heads[] = {
	{"cache-references", "cache-refs"},
	{"context-switches", "switches"},
	{"cpu-migrations", "migrations"},
	{"alignment-faults", "alignments"},
};

/* It may come from a file that is anybody's. */
const char *view_counter_name(const struct mdl_session *s, unsigned i)
{
	static const char *const others[MXBPF_COUNTERS_MAX] = {"counter-1", "counter-2", "counter-3", "counter-4"};
	const char *name = s->counters[i].name;
	size_t len = strlen(name);

	return len && len <= NAME_BYTES_MAX && len == strspn(name, "abcdefghijklmnopqrstuvwxyz-") ? name : others[i];
}

/* Its place among the session's; MXBPF_COUNTERS_MAX: it is none. */
static unsigned find(const struct mdl_session *s, const char *name)
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
		if (find(s, r->over) < MXBPF_COUNTERS_MAX && find(s, r->under) < MXBPF_COUNTERS_MAX && !i--)
			return r;
	return NULL;
}

bool view_ratio_of(const struct mdl_session *s, const struct view_ratio *ratio, const struct mxbpf_counter_sum *c,
		   double *v)
{
	uint64_t under = c->value[find(s, ratio->under)];

	*v = under ? ratio->factor * (double)c->value[find(s, ratio->over)] / (double)under : 0;
	return under;
}

void view_put_counters_json(const struct view *s, const struct mxbpf_counter_sum *c)
{
	const struct mdl_session *ss = s->in->session;
	unsigned i, n = view_ncounters(ss);
	const struct view_ratio *r;
	double v;

	if (!n)
		return;
	out_printf(s->out, ", \"counters\": {\"calls\": %" PRIu64 ", \"scaled\": %" PRIu64, (uint64_t)c->spans,
		   (uint64_t)c->scaled);
	for (i = 0; i < n; i++)
		out_printf(s->out, ", \"%s\": %" PRIu64, view_counter_name(ss, i), (uint64_t)c->value[i]);
	for (i = 0; (r = view_ratio(ss, i)); i++)
		if (view_ratio_of(ss, r, c, &v))
			out_printf(s->out, ", \"%s\": %.4f", r->name, v);
	out_puts(s->out, "}");
}

static void put_csv_head(struct out *o, const struct mdl_session *s)
{
	const struct view_ratio *ratio;
	unsigned i;

	out_puts(o, ",counted_calls,scaled_calls");
	for (i = 0; i < view_ncounters(s); i++)
		out_printf(o, ",%s", view_counter_name(s, i));
	for (i = 0; (ratio = view_ratio(s, i)); i++)
		out_printf(o, ",%s", ratio->name);
}

void view_put_counters_csv(const struct view *s, const struct mxbpf_counter_sum *c)
{
	const struct mdl_session *ss = s->in->session;
	unsigned i, n = view_ncounters(ss);
	const struct view_ratio *ratio;
	double v;

	if (!n)
		return;
	if (!c) {
		put_csv_head(s->out, ss);
		return;
	}
	if (c->spans)
		out_printf(s->out, ",%" PRIu64 ",%" PRIu64, (uint64_t)c->spans, (uint64_t)c->scaled);
	for (i = 0; i < n && c->spans; i++)
		out_printf(s->out, ",%" PRIu64, (uint64_t)c->value[i]);
	for (i = 0; i < n + 2 && !c->spans; i++)
		out_puts(s->out, ",");
	for (i = 0; (ratio = view_ratio(ss, i)); i++) {
		out_puts(s->out, ",");
		if (view_ratio_of(ss, ratio, c, &v))
			out_printf(s->out, "%.4f", v);
	}
}

/* ---- for people */

/* "998", "12.3k", "4.56G". */
static void put_short(uint64_t n, char cell[CELL_BYTES])
{
	static const char units[] = "kMGTPE";
	double v = (double)n;
	unsigned unit = 0;

	if (n < 1000) {
		snprintf(cell, CELL_BYTES, "%" PRIu64, n);
		return;
	}
	for (v /= 1000; v >= 999.5; v /= 1000)
		unit++;
	snprintf(cell, CELL_BYTES, "%.*f%c", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[unit]);
}

/* Clocks count ns. */
static void put_value(const char *name, uint64_t n, char cell[CELL_BYTES])
{
	char *blank;

	if (!strstr(name, "-clock")) {
		put_short(n, cell);
		return;
	}
	blank = strchr(fmt_ns(n, cell), ' ');
	if (blank)
		memmove(blank, blank + 1, strlen(blank));
}

static int add_cell(struct view_grid *g, const char *text)
{
	return view_grid_add(g, text, strlen(text));
}

static int add_row(struct view *s, struct view_grid *g, const struct mdl_row *r)
{
	const struct mdl_session *ss = s->in->session;
	const struct mxbpf_counter_sum *c = &r->counters;
	const struct view_ratio *ratio;
	char cell[CELL_BYTES], label[VIEW_LABEL_BYTES];
	const char *text;
	unsigned i;
	size_t len;
	double v;
	int err;

	text = view_row_name(s, r, label, &len);
	err = view_grid_add(g, text, len);
	put_short(c->spans, cell);
	err = err ? err : add_cell(g, cell);
	for (i = 0; !err && i < view_ncounters(ss); i++) {
		put_value(view_counter_name(ss, i), c->value[i], cell);
		err = add_cell(g, c->spans ? cell : "-");
	}
	for (i = 0; !err && (ratio = view_ratio(ss, i)); i++) {
		bool known = view_ratio_of(ss, ratio, c, &v);

		snprintf(cell, sizeof(cell), "%.2f", v);
		err = add_cell(g, known ? cell : "-");
	}
	if (s->opts->by == VIEW_BY_SHAPE)
		return err ? err : view_grid_shapes(s, g, r->args_id);
	text = view_detail(s->in->model, s->opts, r, &len);
	return err || len <= strlen("[]") ? err : view_grid_note(g, text, len);
}

static const char *head_of(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		if (!strcmp(heads[i].name, name))
			return heads[i].head;
	return name;
}

int view_counter_table(struct view *s, const struct view_table *t)
{
	const struct mdl_session *ss = s->in->session;
	struct view_grid g = {.cols = {{"name", .left = true}, {"calls"}}, .ncols = 2};
	const struct view_ratio *ratio;
	unsigned i;
	size_t row;
	int err = 0;

	if (!view_ncounters(ss) || !t->nrows)
		return 0;
	for (i = 0; i < view_ncounters(ss); i++)
		g.cols[g.ncols++].head = head_of(view_counter_name(ss, i));
	for (i = 0; g.ncols < VIEW_GRID_COLS_MAX && (ratio = view_ratio(ss, i)); i++)
		g.cols[g.ncols++].head = ratio->head;
	for (row = 0; !err && row < t->nrows; row++)
		err = add_row(s, &g, t->rows[row]);
	view_put_safe(s->out, t->title, strlen(t->title));
	out_puts(s->out, ": counted by the thread of each call, what it calls included\n");
	if (!err)
		view_grid_print(&g, s->opts->width ? s->opts->width : VIEW_WIDTH, s->out);
	out_puts(s->out, "\n");
	view_grid_fini(&g);
	return err;
}
