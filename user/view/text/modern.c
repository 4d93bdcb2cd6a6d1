// SPDX-License-Identifier: Apache-2.0
/* The tables for people: every column in 80, or the least useful one gives way. */
#include "view/priv.h"
#include "feature/marks/marks.h"
#include "view/sheet.h"

#include "base/fmt.h"
#include "view/text/grid.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CELL_BYTES 64

struct modern {
	struct view s;
	bool account;		/* its columns are in some table */
	bool nested;		/* self time is not the total in some table */
	uint64_t migrated;	/* calls whose account is less exact */
	struct mdl_flops flops; /* calls and unknown of what is shown */
};

struct cell_of {
	const struct view *s;
	const struct view_table *t;
	const struct mdl_row *r;
};

static uint64_t total_ns(const struct mdl_row *r)
{
	return r->total_ns;
}

static uint64_t self_ns(const struct mdl_row *r)
{
	return r->self_ns;
}

static uint64_t min_ns(const struct mdl_row *r)
{
	return r->min_ns;
}

static uint64_t p50_ns(const struct mdl_row *r)
{
	return mdl_percentile(r, 0.50);
}

static uint64_t p99_ns(const struct mdl_row *r)
{
	return mdl_percentile(r, 0.99);
}

static uint64_t max_ns(const struct mdl_row *r)
{
	return r->max_ns;
}

static void device(const struct cell_of *c, char cell[CELL_BYTES])
{
	mdl_device_name(c->s->in->session, c->r->device, cell);
}

static void calls(const struct cell_of *c, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%" PRIu64, c->r->count);
}

static void put_share(uint64_t n, uint64_t of, char cell[CELL_BYTES])
{
	double part = of ? 100.0 * (double)n / (double)of : 0;

	snprintf(cell, CELL_BYTES, part < 99.95 ? "%.1f%%" : "%.0f%%", part);
}

/* Of the row's own time. */
static void part(uint64_t ns, const struct cell_of *c, char cell[CELL_BYTES])
{
	double percent = c->r->total_ns ? 100.0 * (double)ns / (double)c->r->total_ns : 0;

	snprintf(cell, CELL_BYTES, !ns ? "-" : percent < 1 ? "<1%%" : "%.0f%%", percent);
}

static void on_cpu(const struct cell_of *c, char cell[CELL_BYTES])
{
	part(mdl_on_cpu_ns(c->r), c, cell);
}

static void runq(const struct cell_of *c, char cell[CELL_BYTES])
{
	part(c->r->account.runq_ns, c, cell);
}

static void blocked(const struct cell_of *c, char cell[CELL_BYTES])
{
	part(c->r->account.blocked_ns, c, cell);
}

/* Cut where it does not fit: the name is what is read first. */
static void domain(const struct cell_of *c, char cell[CELL_BYTES])
{
	size_t len;
	const char *text = marks_domain(c->s->in->model, c->r->name_id, &len);

	snprintf(cell, CELL_BYTES, "%.*s", (int)len, text);
}

/* From the first start to the last end. */
static void rate(const struct cell_of *c, char cell[CELL_BYTES])
{
	double per_s = marks_rate(c->r);

	snprintf(cell, CELL_BYTES, per_s < 100 ? "%.2f" : "%.0f", per_s);
}

static void share(const struct cell_of *c, char cell[CELL_BYTES])
{
	put_share(c->r->self_ns, c->t->self_ns, cell);
}

static void flops(const struct cell_of *c, char cell[CELL_BYTES])
{
	view_flops_cell(&c->r->flops, cell);
}

static void flops_rate(const struct cell_of *c, char cell[CELL_BYTES])
{
	view_flops_rate_cell(&c->r->flops, cell);
}

static void event_thread(const struct view *s, const struct mxbpf_span *e, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%" PRIu32, e->tid);
}

/* In seconds since the start of the window. */
static void event_start(const struct view *s, const struct mxbpf_span *e, char cell[CELL_BYTES])
{
	int64_t ns = (int64_t)(e->h.ts_ns - s->in->session->start_mono_ns);

	snprintf(cell, CELL_BYTES, "%.6f", (double)ns / 1e9);
}

static void event_time(const struct view *s, const struct mxbpf_span *e, char cell[CELL_BYTES])
{
	bool unwound = e->flags & MXBPF_SPAN_UNWOUND;

	cell[0] = '<'; /* it was left without its end */
	fmt_tight_ns(e->dur_ns, cell + unwound);
}

static void event_self(const struct view *s, const struct mxbpf_span *e, char cell[CELL_BYTES])
{
	fmt_tight_ns(e->self_ns, cell);
}

static void event_bytes(const struct view *s, const struct mxbpf_span *e, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%" PRId64, (int64_t)e->alloc_bytes);
}

/* Of one call a time says more than a share. */
static void off_cpu_ns(uint64_t ns, char *cell)
{
	strcpy(cell, "-");
	if (ns)
		fmt_tight_ns(ns, cell);
}

static void event_on_cpu(const struct view *s, const struct mxbpf_span *e, char cell[CELL_BYTES])
{
	off_cpu_ns(e->account.on_cpu_ns, cell);
}

static void event_runq(const struct view *s, const struct mxbpf_span *e, char cell[CELL_BYTES])
{
	off_cpu_ns(e->account.runq_ns, cell);
}

static void event_blocked(const struct view *s, const struct mxbpf_span *e, char cell[CELL_BYTES])
{
	off_cpu_ns(e->account.blocked_ns, cell);
}

enum { NAME, DEVICE, SELF = 4, P50 = 7, ON_CPU = 11, RUNQ, BLOCKED, FLOPS, FLOPS_RATE, DOMAIN, RATE };

/* name_min: how much of a name is worth more than the column. */
static const struct column {
	struct view_grid_col col;
	uint64_t (*ns)(const struct mdl_row *r);
	void (*text)(const struct cell_of *c, char cell[CELL_BYTES]);
} columns[] = {
	[NAME] = {.col = {"name", .left = true}},
	[DEVICE] = {.col = {"device", .left = true}, .text = device},
	{.col = {"calls"}, .text = calls},
	{.col = {"total"}, .ns = total_ns},
	[SELF] = {.col = {"self", .name_min = 16}, .ns = self_ns},
	{.col = {"avg"}, .ns = mdl_row_avg},
	{.col = {"min", .name_min = 24}, .ns = min_ns},
	[P50] = {.col = {"p50", .name_min = 12}, .ns = p50_ns},
	{.col = {"p99"}, .ns = p99_ns},
	{.col = {"max"}, .ns = max_ns},
	{.col = {"share"}, .text = share},
	[ON_CPU] = {.col = {"cpu", .name_min = 20}, .text = on_cpu},
	[RUNQ] = {.col = {"runq"}, .text = runq},
	[BLOCKED] = {.col = {"blocked"}, .text = blocked},
	[FLOPS] = {.col = {"flop", .name_min = 22}, .text = flops},
	[FLOPS_RATE] = {.col = {"GFLOP/s"}, .text = flops_rate},
	[DOMAIN] = {.col = {"domain", .left = true}, .text = domain},
	[RATE] = {.col = {"per s"}, .text = rate},
};
#define NCOLUMNS (sizeof(columns) / sizeof(columns[0]))

/* No stack is not worth a line. */
static int add_note(struct view_grid *g, const char *text, size_t len)
{
	return len ? view_grid_note(g, text, len) : 0;
}

/* An annotation of the program's that is called as an operator is. */
static bool is_namesake(const struct cell_of *c, const char *name, size_t len)
{
	const char *other;
	size_t other_len, i;

	for (i = 0; view_is_annotation(c->s, c->r) && i < c->t->nrows; i++) {
		if (view_is_annotation(c->s, c->t->rows[i]))
			continue;
		other = mdl_name(c->s->in->model, c->t->rows[i]->name_id, &other_len);
		if (len == other_len && !memcmp(name, other, len))
			return true;
	}
	return false;
}

static int add_name(struct view_grid *g, const struct cell_of *c)
{
	char label[VIEW_LABEL_BYTES];
	struct buf text = {0};
	const char *name;
	size_t len;
	int err;

	name = view_row_name(c->s, c->r, label, &len);
	if (!is_namesake(c, name, len))
		return view_grid_add(g, name, len);
	err = buf_printf(&text, "%.*s (annotation)", (int)len, name);
	err = err ? err : view_grid_add(g, text.data, text.len);
	buf_fini(&text);
	return err;
}

static int add_row(struct view_grid *g, const struct cell_of *c)
{
	int err = add_name(g, c);
	char cell[CELL_BYTES];
	const char *detail;
	size_t len, i;

	for (i = 1; !err && i < NCOLUMNS; i++) {
		if (columns[i].ns)
			fmt_tight_ns(columns[i].ns(c->r), cell);
		else
			columns[i].text(c, cell);
		err = view_grid_add(g, cell, strlen(cell));
	}
	if (!err && c->s->opts->by == VIEW_BY_SHAPE)
		return view_grid_shapes(c->s, g, c->r->args_id);
	detail = view_detail(c->s->in->model, c->s->opts, c->r, &len);
	return err ? err : add_note(g, detail, len);
}

static unsigned line_width(const struct view *s)
{
	return s->opts->width ? s->opts->width : VIEW_WIDTH;
}

/* Nothing was nested, so the column of self time says nothing: it is the first to give way. */
static bool self_is_total(const struct view_table *t)
{
	size_t i;

	for (i = 0; i < t->nrows; i++)
		if (t->rows[i]->self_ns != t->rows[i]->total_ns)
			return false;
	return true;
}

/* Shares are of self time, so it has to be seen where it is not the total. */
static void show_self(struct view *s, struct view_grid *g)
{
	g->cols[SELF].name_min = 0;
	g->cols[P50].name_min = 16;
	((struct modern *)s)->nested = true;
}

/* As much as 1 % of the table's time, in one row. */
static bool is_worth(uint64_t ns, const struct view_table *t)
{
	return ns && ns >= t->self_ns / 100;
}

/* A column in which stands nothing but noise is for terminals with room to spare. */
static void show_account(struct view *s, const struct view_table *t, struct view_grid *g)
{
	bool wide = line_width(s) > VIEW_WIDTH, late = wide, blocks = wide;
	struct modern *m = (struct modern *)s;
	size_t i;

	for (i = 0; i < t->nrows; i++) {
		late |= is_worth(t->rows[i]->account.runq_ns, t);
		blocks |= is_worth(t->rows[i]->account.blocked_ns, t);
		m->migrated += t->rows[i]->account.migrated;
	}
	late &= s->in->session->account;
	blocks &= s->in->session->account;
	g->cols[ON_CPU].hidden = !late && !blocks;
	g->cols[RUNQ].hidden = !late;
	g->cols[BLOCKED].hidden = !blocks;
	m->account |= late || blocks;
}

/* Only where a row has any. */
static void show_flops(struct view *s, const struct view_table *t, struct view_grid *g)
{
	struct modern *m = (struct modern *)s;
	uint64_t calls = 0;
	size_t i;

	for (i = 0; i < t->nrows && view_shows_flops(s); i++) {
		calls += t->rows[i]->flops.calls;
		m->flops.unknown += t->rows[i]->flops.unknown;
	}
	m->flops.calls += calls;
	g->cols[FLOPS].hidden = g->cols[FLOPS_RATE].hidden = !calls;
}

static bool one_device(const struct view_table *t)
{
	size_t i;

	for (i = 1; i < t->nrows; i++)
		if (t->rows[i]->device != t->rows[0]->device)
			return false;
	return true;
}

/* The device that all rows share is said once. */
static void put_title(struct view *s, const struct view_table *t, bool single)
{
	char ns[24], dev[48];

	view_put_safe(s->out, t->title, strlen(t->title));
	if (!t->nrows) {
		out_puts(s->out, ": nothing seen\n");
		return;
	}
	if (single && t->rows[0]->device) {
		out_puts(s->out, " on ");
		mdl_device_name(s->in->session, t->rows[0]->device, dev);
		view_put_safe(s->out, dev, strlen(dev));
	}
	out_printf(s->out, ": %s in ", fmt_ns(t->self_ns, ns));
	if (t->nrows < t->nrows_all)
		out_printf(s->out, "%zu rows, of which %zu are shown\n", t->nrows_all, t->nrows);
	else
		out_printf(s->out, "%zu row%s\n", t->nrows_all, t->nrows_all == 1 ? "" : "s");
}

/* A column: what it is called, and its text for one call. */
static const struct event_column {
	const char *head;
	void (*text)(const struct view *s, const struct mxbpf_span *e, char cell[CELL_BYTES]);
	bool memory;  /* only where a call took memory */
	bool account; /* only of sessions that kept one */
} event_columns[] = {
	{.head = "thread", .text = event_thread},
	{.head = "start", .text = event_start},
	{.head = "time", .text = event_time},
	{.head = "self", .text = event_self},
	{.head = "bytes", .text = event_bytes, .memory = true},
	{.head = "cpu", .text = event_on_cpu, .account = true},
	{.head = "runq", .text = event_runq, .account = true},
	{.head = "blocked", .text = event_blocked, .account = true},
};
#define NEVENT_COLUMNS (sizeof(event_columns) / sizeof(event_columns[0]))

static int add_event(struct view *s, struct view_grid *g, const struct mxbpf_span *e)
{
	char cell[CELL_BYTES];
	const char *text;
	size_t len, i;
	int err;

	text = mdl_name(s->in->model, e->name_id, &len);
	err = view_grid_add(g, text, len);
	for (i = 0; !err && i < NEVENT_COLUMNS; i++) {
		event_columns[i].text(s, e, cell);
		err = view_grid_add(g, cell, strlen(cell));
	}
	if (!err && view_shows_shapes(s))
		err = view_grid_shapes(s, g, e->args_id);
	if (!err && view_shows_stack(s)) {
		text = view_stack(s->in->model, s->opts, e->stack_id, &len);
		err = add_note(g, text, len);
	}
	if (!err && view_shows_layer(s)) {
		text = view_layer(s->in->model, s->opts, e->layer_id, &len);
		err = text ? add_note(g, text, len) : 0;
	}
	return err;
}

static int event_table(struct view *s, const struct view_table *t)
{
	struct view_grid g = {.cols = {{"name", .left = true}}, .ncols = NEVENT_COLUMNS + 1};
	int err = 0;
	size_t i;

	view_put_safe(s->out, t->title, strlen(t->title));
	if (!t->nspans)
		out_puts(s->out, ": nothing kept\n");
	else if (t->nspans < t->nspans_all)
		out_printf(s->out, ": %" PRIu64 " calls, of which %zu are shown\n", t->nspans_all, t->nspans);
	else
		out_printf(s->out, ": %zu call%s\n", t->nspans, t->nspans == 1 ? "" : "s");
	for (i = 0; i < NEVENT_COLUMNS; i++) {
		g.cols[i + 1].head = event_columns[i].head;
		g.cols[i + 1].hidden = (event_columns[i].memory && !t->memory) ||
				       (event_columns[i].account && !s->in->session->account);
	}
	for (i = 0; !err && i < t->nspans; i++)
		err = add_event(s, &g, &t->spans[i]);
	if (!err && t->nspans)
		view_grid_print(&g, line_width(s), s->out);
	out_puts(s->out, "\n");
	view_grid_fini(&g);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}

static bool has_domain(const struct view *s, const struct view_table *t)
{
	size_t i, len;

	for (i = 0; i < t->nrows; i++)
		if (mdl_text(s->in->model, MXBPF_NAME_DOMAIN, t->rows[i]->name_id, &len))
			return true;
	return false;
}

static int class_table(struct view *s, const struct view_table *t)
{
	struct view_grid g = {.ncols = NCOLUMNS};
	bool single = one_device(t);
	int err = 0;
	size_t i;

	if (s->opts->by == VIEW_BY_EVENT)
		return event_table(s, t);
	put_title(s, t, single);
	for (i = 0; i < NCOLUMNS; i++)
		g.cols[i] = columns[i].col;
	g.cols[DEVICE].hidden = single;
	show_account(s, t, &g);
	show_flops(s, t, &g);
	g.cols[DOMAIN].hidden = !has_domain(s, t);
	g.cols[RATE].hidden = t->cls != MXBPF_CLASS_FRAME;
	if (self_is_total(t))
		g.cols[SELF].name_min = VIEW_GRID_NAME_MIN_MAX;
	else
		show_self(s, &g);
	for (i = 0; !err && i < t->nrows; i++)
		err = add_row(&g, &(struct cell_of){s, t, t->rows[i]});
	if (!err && t->nrows)
		view_grid_print(&g, line_width(s), s->out);
	out_puts(s->out, "\n");
	view_grid_fini(&g);
	if (!err)
		err = view_counter_table(s, t);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}

/* What its columns mean, and how exact they are. */
static void put_account(const struct modern *m)
{
	char n[32];

	out_puts(m->s.out, "account  of each row's time, runq waited for a CPU, blocked for anything else\n");
	if (m->migrated)
		out_printf(
			m->s.out,
			"         %s blocked and ended on another CPU: cpu is up to %llu ms off, runq may hold some of "
			"blocked\n",
			fmt_count(m->migrated, n), MXBPF_ACCOUNT_SLACK_NS / 1000000);
}

static int sheet(struct view *s, const struct view_sheet *sh, const void *table)
{
	int err;

	if (!sh->above || (!((const struct view_list *)table)->n && sh->if_any))
		return 0;
	err = view_sheet_print(s, sh, table, "");
	out_puts(s->out, "\n");
	return err;
}

static int end(struct view *s)
{
	const struct modern *m = (const struct modern *)s;

	if (m->nested)
		out_puts(s->out, "share    of its table's self time (the heading); totals have nested calls too\n");
	if (m->account)
		put_account(m);
	view_put_flops_footer(s, &((struct modern *)s)->flops);
	view_footer(s, "");
	return 0;
}

const struct view_ops view_modern = {
	.name = "modern",
	.help = "tables with percentiles and shares, for 80 columns",
	.magic = view_text_magic,
	.details = true,
	.state_bytes = sizeof(struct modern),
	.table = class_table,
	.sheet = sheet,
	.opens = view_put_opens,
	.end = end,
};
