// SPDX-License-Identifier: Apache-2.0
/* --life: what operators waited for before they ran, and what the program waited for. */
#include "sink/priv.h"

#include "base/fmt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES 64

const char *const snk_life_parts[MXBPF_LIFE_PARTS] = {
	[MXBPF_LIFE_DISPATCH] = "dispatch",
	[MXBPF_LIFE_DEPENDENCIES] = "dependencies",
	[MXBPF_LIFE_QUEUE] = "queue",
	[MXBPF_LIFE_RUN] = "run",
};

const char *const snk_wait_whats[MXBPF_WAIT_WHATS] = {
	[MXBPF_WAIT_NOTHING] = "nothing",
	[MXBPF_WAIT_OPERATOR] = "operator",
	[MXBPF_WAIT_UNSEEN] = "unseen",
};

/* ---- rows */

/* All of an operator's life that its dispatch is not: what the program sees between pushing it and having it. */
static uint64_t life_ns(const struct mdl_life *r)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = MXBPF_LIFE_DEPENDENCIES; i < MXBPF_LIFE_PARTS; i++)
		if (__builtin_add_overflow(sum, r->parts[i].total_ns, &sum))
			return UINT64_MAX;
	return sum;
}

static int by_name(const struct mdl *m, const struct mdl_life *a, const struct mdl_life *b)
{
	size_t na, nb;
	const char *ta = mdl_name(m, a->name_id, &na), *tb = mdl_name(m, b->name_id, &nb);
	int order = snk_name_cmp(ta, na, tb, nb);

	if (order)
		return order;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return a->tgid < b->tgid ? -1 : a->tgid > b->tgid;
}

static int by_opts(const void *va, const void *vb, void *vs)
{
	const struct mdl_life *a = *(const struct mdl_life *const *)va, *b = *(const struct mdl_life *const *)vb;
	const struct snk *s = vs;
	const bool count = s->opts->sort == SNK_SORT_COUNT;
	const uint64_t ka = count ? a->parts[MXBPF_LIFE_RUN].count : life_ns(a);
	const uint64_t kb = count ? b->parts[MXBPF_LIFE_RUN].count : life_ns(b);

	if (s->opts->sort != SNK_SORT_NAME && ka != kb)
		return (ka < kb) == s->opts->ascending ? -1 : 1;
	return by_name(s->in->model, a, b);
}

int snk_life_rows(const struct snk *s, const struct mdl_life ***rows, size_t *n)
{
	const struct mdl_life *const *all = mdl_lives(s->in->model, n);

	*rows = calloc(*n + 1, sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	if (*n)
		memcpy(*rows, all, *n * sizeof(**rows));
	qsort_r(*rows, *n, sizeof(**rows), by_opts, (void *)s);
	return 0;
}

static int by_total(const void *va, const void *vb)
{
	const struct mxbpf_wait *a = va, *b = vb;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return a->op_id < b->op_id ? -1 : a->op_id > b->op_id;
}

int snk_wait_rows(const struct snk *s, struct mxbpf_wait **rows, size_t *n)
{
	const struct mxbpf_wait *all = mdl_waits(s->in->model, n);

	*rows = calloc(*n + 1, sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	if (*n)
		memcpy(*rows, all, *n * sizeof(**rows));
	qsort(*rows, *n, sizeof(**rows), by_total);
	return 0;
}

/* ---- for people */

static int add_count(struct snk_grid *g, uint64_t n)
{
	char cell[CELL_BYTES];

	snprintf(cell, sizeof(cell), "%" PRIu64, n);
	return snk_grid_add(g, cell, strlen(cell));
}

static int add_ns(struct snk_grid *g, uint64_t ns, bool known)
{
	char cell[CELL_BYTES] = "-";

	if (known)
		fmt_tight_ns(ns, cell);
	return snk_grid_add(g, cell, strlen(cell));
}

static int add_life(const struct snk *s, struct snk_grid *g, const struct mdl_life *r)
{
	size_t len;
	const char *name = mdl_name(s->in->model, r->name_id, &len);
	int err = snk_grid_add(g, name, len);
	unsigned i;

	err = err ? err : add_count(g, r->parts[MXBPF_LIFE_RUN].count);
	for (i = 0; i < MXBPF_LIFE_PARTS && !err; i++) {
		const struct mdl_life_part *p = &r->parts[i];

		err = add_ns(g, mdl_life_percentile(p, 0.5), p->count);
		err = err ? err : add_ns(g, mdl_life_percentile(p, 0.99), p->count);
	}
	return err;
}

static unsigned width_of(const struct snk *s)
{
	return s->opts->width ? s->opts->width : SNK_WIDTH;
}

static int put_lives(struct snk *s, const struct snk_lives *t)
{
	struct snk_grid g = {
		.cols = {{"name", .left = true},
			 {"calls", .name_min = 12},
			 {"dispatch", .name_min = 18},
			 {"p99", .name_min = 30},
			 {"depend"},
			 {"p99", .name_min = 24},
			 {"queue"},
			 {"p99", .name_min = 24},
			 {"run"},
			 {"p99", .name_min = 28}},
		.ncols = 2 + 2 * MXBPF_LIFE_PARTS,
	};
	size_t i;
	int err = 0;

	out_printf(s->out, "life of operators: medians, in %zu row%s%s\n", t->nrows_all, t->nrows_all == 1 ? "" : "s",
		   t->nrows < t->nrows_all ? ", not all of them shown" : "");
	for (i = 0; !err && i < t->nrows; i++)
		err = add_life(s, &g, t->rows[i]);
	if (!err && t->nrows)
		snk_grid_print(&g, width_of(s), s->out);
	snk_grid_fini(&g);
	return err;
}

/* "dot", "dot in ImperativeBulk": names that the target gave. */
static int add_cause(const struct snk *s, struct snk_grid *g, const struct mxbpf_wait *w)
{
	static const char *const words[MXBPF_WAIT_WHATS] = {
		[MXBPF_WAIT_NOTHING] = "(nothing: it was done)",
		[MXBPF_WAIT_UNSEEN] = "(pushed before the window)",
	};
	struct buf text = {0};
	size_t len;
	const char *name = words[w->what];
	int err;

	if (name)
		return snk_grid_add(g, name, strlen(name));
	name = mdl_name(s->in->model, w->op_id, &len);
	err = buf_put(&text, name, len);
	if (w->within_id && !err) {
		name = mdl_name(s->in->model, w->within_id, &len);
		err = buf_put(&text, " in ", 4) || buf_put(&text, name, len) ? -ENOMEM : 0;
	}
	err = err ? err : snk_grid_add(g, text.data, text.len);
	buf_fini(&text);
	return err;
}

static int add_wait(const struct snk *s, struct snk_grid *g, const struct mxbpf_wait *w)
{
	uint64_t id = w->call_id ? w->call_id : w->name_id;
	size_t len;
	const char *name;
	int err = add_cause(s, g, w);

	name = mdl_name(s->in->model, id, &len);
	err = err ? err : snk_grid_add(g, name, len);
	err = err ? err : add_count(g, w->count);
	err = err ? err : add_ns(g, w->total_ns, true);
	return err ? err : add_ns(g, w->max_ns, true);
}

static int put_waits(struct snk *s, const struct snk_lives *t)
{
	struct snk_grid g = {
		.cols = {{"for", .left = true}, {"in", .left = true, .name_min = 12}, {"waits"}, {"total"}, {"max"}},
		.ncols = 5,
	};
	size_t i;
	int err = 0;

	out_puts(s->out, "\nwhat the program waited for");
	out_puts(s->out, t->nwaits ? "\n" : ": nothing seen\n");
	for (i = 0; !err && i < t->nwaits; i++)
		err = add_wait(s, &g, &t->waits[i]);
	if (!err && t->nwaits)
		snk_grid_print(&g, width_of(s), s->out);
	snk_grid_fini(&g);
	return err;
}

int snk_put_lives(struct snk *s, const struct snk_lives *t)
{
	int err = put_lives(s, t);

	err = err ? err : put_waits(s, t);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}
