// SPDX-License-Identifier: Apache-2.0
/* --sched: where operators were off the CPU, and who had to do with it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "sched/sched.h"
#include "sink/priv.h"

#define PARTIES_SHOWN 3

/* Of one operator what is of one kind stands together, the longest first. */
static int by_row(const void *va, const void *vb)
{
	const struct mxbpf_agg_sched *a = va, *b = vb;

	if (a->h.tgid != b->h.tgid)
		return a->h.tgid < b->h.tgid ? -1 : 1;
	if (a->cls != b->cls)
		return a->cls < b->cls ? -1 : 1;
	if (a->name_id != b->name_id)
		return a->name_id < b->name_id ? -1 : 1;
	if (a->what != b->what)
		return a->what < b->what ? -1 : 1;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return a->own != b->own ? a->own - b->own : memcmp(a->comm, b->comm, sizeof(a->comm));
}

/* The longest off the CPU first, of what no span was open last: idle threads wait all day. */
static int by_time(const void *va, const void *vb)
{
	const struct snk_sched *a = va, *b = vb;

	if (!a->cls != !b->cls)
		return a->cls ? -1 : 1;
	if (a->off_ns != b->off_ns)
		return a->off_ns > b->off_ns ? -1 : 1;
	return snk_name_cmp(a->name, a->len, b->name, b->len);
}

static void open_row(const struct snk *s, struct snk_sched *r, const struct mxbpf_agg_sched *a)
{
	*r = (struct snk_sched){
		.name = SNK_NO_OPERATOR, .len = strlen(SNK_NO_OPERATOR), .tgid = a->h.tgid, .cls = a->cls};
	if (a->cls)
		r->name = mdl_name(s->in->model, a->name_id, &r->len);
}

static void add_item(struct snk_sched *r, const struct mxbpf_agg_sched *a)
{
	if (!r->n[a->what]++)
		r->of[a->what] = a;
	if (a->what < MXBPF_SCHED_KEPT_BY && __builtin_add_overflow(r->off_ns, a->total_ns, &r->off_ns))
		r->off_ns = UINT64_MAX;
}

int snk_scheds(const struct snk *s, struct snk_scheds_table *t)
{
	size_t n, i;
	const struct mxbpf_agg_sched *all = mdl_scheds(s->in->model, &n);
	struct mxbpf_agg_sched *items = calloc(n + 1, sizeof(*items));
	struct snk_sched *rows = calloc(n + 1, sizeof(*rows));

	*t = (struct snk_scheds_table){.rows = rows, .items = items};
	if (!items || !rows)
		return -ENOMEM;
	if (n)
		memcpy(items, all, n * sizeof(*items));
	qsort(items, n, sizeof(*items), by_row);
	for (i = 0; i < n; i++) {
		const struct mxbpf_agg_sched *a = &items[i], *last = i ? a - 1 : NULL;

		if (!last || last->h.tgid != a->h.tgid || last->cls != a->cls || last->name_id != a->name_id)
			open_row(s, &rows[t->nrows_all++], a);
		add_item(&rows[t->nrows_all - 1], a);
	}
	qsort(rows, t->nrows_all, sizeof(*rows), by_time);
	t->nrows = s->opts->top && s->opts->top < t->nrows_all ? s->opts->top : t->nrows_all;
	return 0;
}

uint64_t snk_sched_ns(const struct snk_sched *r, enum mxbpf_sched_what what)
{
	return r->n[what] ? r->of[what]->total_ns : 0;
}

/* ---- for people */

/* "woken by python (own) 1.20 ms, kworker/0:1 3.10 us, and 2 more" */
static int add_parties(struct snk_grid *g, const struct snk_sched *r, enum mxbpf_sched_what what, const char *verb)
{
	const struct mxbpf_agg_sched *a = r->of[what];
	struct buf line = {0};
	char ns[24];
	unsigned i;
	int err;

	if (!r->n[what])
		return 0;
	err = buf_printf(&line, "%s ", verb);
	for (i = 0; !err && i < r->n[what] && i < PARTIES_SHOWN; i++)
		err = buf_printf(&line, "%s%.16s%s %s", i ? ", " : "", a[i].comm, a[i].own ? " (own)" : "",
				 fmt_ns(a[i].total_ns, ns));
	if (!err && r->n[what] > PARTIES_SHOWN)
		err = buf_printf(&line, ", and %u more", r->n[what] - PARTIES_SHOWN);
	err = err ? err : snk_grid_note(g, line.data, line.len);
	buf_fini(&line);
	return err;
}

static int add_row(struct snk_grid *g, const struct snk_sched *r)
{
	int err = snk_grid_add(g, r->name, r->len);
	char cell[64] = "";
	unsigned what;

	fmt_ns(r->off_ns, cell);
	err = err ? err : snk_grid_add(g, cell, strlen(cell));
	for (what = 0; !err && what < MXBPF_SCHED_KEPT_BY; what++) {
		snprintf(cell, sizeof(cell), "-");
		if (r->n[what])
			fmt_ns(r->of[what]->total_ns, cell);
		err = snk_grid_add(g, cell, strlen(cell));
	}
	err = err ? err : add_parties(g, r, MXBPF_SCHED_KEPT_BY, "kept by");
	return err ? err : add_parties(g, r, MXBPF_SCHED_WOKEN_BY, "woken by");
}

int snk_put_scheds(struct snk *s, const struct snk_scheds_table *t)
{
	struct snk_grid g = {.cols = {{"name", .left = true},
				      {"off CPU"},
				      {"waited"},
				      {"futex"},
				      {"I/O"},
				      {"fault"},
				      {"sleep"},
				      {"other"}},
			     .ncols = 8};
	bool seen[MXBPF_SCHED_WHATS] = {false};
	unsigned what;
	size_t i;
	int err = 0;

	out_puts(s->out, "off the CPU, by the innermost call that was open: ");
	if (t->nrows < t->nrows_all)
		out_printf(s->out, "%zu rows, of which %zu are shown\n", t->nrows_all, t->nrows);
	else if (t->nrows)
		out_printf(s->out, "%zu row%s\n", t->nrows, t->nrows == 1 ? "" : "s");
	else
		out_puts(s->out, "nothing seen\n");
	for (i = 0; !err && i < t->nrows; i++) {
		err = add_row(&g, &t->rows[i]);
		for (what = 0; what < MXBPF_SCHED_WHATS; what++)
			seen[what] |= t->rows[i].n[what];
	}
	for (what = 0; what < MXBPF_SCHED_KEPT_BY; what++)
		g.cols[2 + what].hidden = !seen[what];
	if (!err && t->nrows)
		snk_grid_print(&g, s->opts->width ? s->opts->width : SNK_WIDTH, s->out);
	snk_grid_fini(&g);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}
