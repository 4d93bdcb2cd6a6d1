// SPDX-License-Identifier: Apache-2.0
/* --backward: forward operators with the time of the backward nodes that they made. */
#include "sink/priv.h"

#include "base/fmt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES 64

static uint64_t all_ns(const struct mxbpf_join *j)
{
	uint64_t sum;

	if (__builtin_add_overflow(j->total_ns, j->bwd_total_ns, &sum) ||
	    __builtin_add_overflow(sum, j->deep_total_ns, &sum))
		return UINT64_MAX;
	return sum;
}

static int by_name(const void *va, const void *vb)
{
	const struct snk_join *a = va, *b = vb;
	int order = snk_name_cmp(a->name, a->len, b->name, b->len);

	return order ? order : a->j.h.tgid < b->j.h.tgid ? -1 : a->j.h.tgid > b->j.h.tgid;
}

static int by_opts(const void *va, const void *vb, void *vopts)
{
	const struct snk_join *a = va, *b = vb;
	const struct snk_opts *opts = vopts;
	bool count = opts->sort == SNK_SORT_COUNT;
	uint64_t ka = count ? a->j.count : all_ns(&a->j), kb = count ? b->j.count : all_ns(&b->j);

	if (opts->sort == SNK_SORT_NAME)
		return by_name(a, b);
	if (ka != kb)
		return (ka < kb) == opts->ascending ? -1 : 1;
	return -by_name(a, b);
}

int snk_joins(const struct snk *s, struct snk_join **rows, size_t *n)
{
	const struct mxbpf_join *const *all = mdl_joins(s->in->model, n);
	struct snk_join *r = calloc(*n + 1, sizeof(*r));
	size_t kept = 0, i;

	*rows = r;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < *n; i++) {
		r[i].j = *all[i];
		r[i].name = mdl_name(s->in->model, all[i]->name_id, &r[i].len);
	}
	qsort(r, *n, sizeof(*r), by_name);
	for (i = 0; i < *n; i++) {
		if (kept && !by_name(&r[kept - 1], &r[i]))
			mdl_join_merge(&r[kept - 1].j, &r[i].j);
		else
			r[kept++] = r[i];
	}
	*n = kept;
	qsort_r(r, kept, sizeof(*r), by_opts, (void *)s->opts);
	return 0;
}

static int add_row(struct snk_grid *g, const struct snk_join *r)
{
	const uint64_t ns[] = {r->j.total_ns, r->j.bwd_total_ns, r->j.deep_total_ns, all_ns(&r->j)};
	double backward_ns = (double)r->j.bwd_total_ns + (double)r->j.deep_total_ns;
	char cell[CELL_BYTES];
	int err = snk_grid_add(g, r->name, r->len);
	size_t i;

	snprintf(cell, sizeof(cell), "%llu", r->j.count);
	err = err ? err : snk_grid_add(g, cell, strlen(cell));
	for (i = 0; !err && i < sizeof(ns) / sizeof(ns[0]); i++) {
		fmt_ns(ns[i], cell);
		err = snk_grid_add(g, cell, strlen(cell));
	}
	if (r->j.total_ns)
		snprintf(cell, sizeof(cell), "%.2f", backward_ns / (double)r->j.total_ns);
	else
		snprintf(cell, sizeof(cell), "-");
	return err ? err : snk_grid_add(g, cell, strlen(cell));
}

int snk_put_joins(struct snk *s, const struct snk_joins *t, const char *prefix)
{
	struct snk_grid g = {
		.cols = {{"name", .left = true},
			 {"calls"},
			 {"forward"},
			 {"backward"},
			 {"deeper"},
			 {"total"},
			 {"ratio"}},
		.ncols = 7,
		.prefix = prefix,
	};
	unsigned width = (s->opts->width ? s->opts->width : SNK_WIDTH) - (unsigned)strlen(prefix);
	char n[32];
	size_t i;
	int err = 0;

	out_printf(s->out, "%sforward and backward: ", prefix);
	if (t->nrows < t->nrows_all)
		out_printf(s->out, "%zu operators, of which %zu are shown\n", t->nrows_all, t->nrows);
	else if (t->nrows)
		out_printf(s->out, "%zu operator%s\n", t->nrows, t->nrows == 1 ? "" : "s");
	else
		out_puts(s->out, "nothing seen\n");
	for (i = 0; !err && i < t->nrows; i++)
		err = add_row(&g, &t->rows[i]);
	if (!err && t->nrows)
		snk_grid_print(&g, width, s->out);
	snk_grid_fini(&g);
	if (t->unjoined)
		out_printf(s->out,
			   "%s%s backward nodes stand under their own names: their operator is from before the "
			   "window, or cannot be seen\n",
			   prefix, fmt_count(t->unjoined, n));
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}
