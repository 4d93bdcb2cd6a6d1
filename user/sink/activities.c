// SPDX-License-Identifier: Apache-2.0
/* Activities of devices, by class and name. */
#include "sink/priv.h"

#include "base/fmt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES 64

const char *const snk_activity_kinds[MXBPF_ACTIVITY_MAX] = {
	[MXBPF_ACTIVITY_KERNEL] = "kernel", [MXBPF_ACTIVITY_COPY] = "copy", [MXBPF_ACTIVITY_SET] = "set"};

static int by_name(const struct snk_activity *a, const struct snk_activity *b)
{
	int order = snk_name_cmp(a->name, a->len, b->name, b->len);

	if (order)
		return order;
	if (a->a.cls != b->a.cls)
		return a->a.cls < b->a.cls ? -1 : 1;
	if (a->a.device != b->a.device)
		return a->a.device < b->a.device ? -1 : 1;
	return a->a.h.tgid < b->a.h.tgid ? -1 : a->a.h.tgid > b->a.h.tgid;
}

static int by_opts(const void *va, const void *vb, void *vopts)
{
	const struct snk_activity *a = va, *b = vb;
	const struct snk_opts *opts = vopts;
	bool count = opts->sort == SNK_SORT_COUNT;
	uint64_t ka = count ? a->a.count : a->a.total_ns, kb = count ? b->a.count : b->a.total_ns;

	if (opts->sort != SNK_SORT_NAME && ka != kb)
		return (ka < kb) == opts->ascending ? -1 : 1;
	return by_name(a, b);
}

static void add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

int snk_activities(const struct snk *s, struct snk_activity **rows, struct snk_activities *t)
{
	const struct mxbpf_agg_activity *all = mdl_activities(s->in->model, &t->nrows_all);
	struct snk_activity *r = calloc(t->nrows_all + 1, sizeof(*r));
	size_t i;

	*rows = r;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < t->nrows_all; i++) {
		r[i].a = all[i];
		r[i].name = mdl_name(s->in->model, all[i].name_id, &r[i].len);
		add(&t->count, all[i].count);
		add(&t->total_ns, all[i].total_ns);
		add(&t->unlaunched, all[i].unlaunched);
		t->devices |= all[i].device != all[0].device;
	}
	qsort_r(r, t->nrows_all, sizeof(*r), by_opts, (void *)s->opts);
	t->rows = r;
	t->nrows = s->opts->top && s->opts->top < t->nrows_all ? s->opts->top : t->nrows_all;
	return 0;
}

static int add_row(struct snk_grid *g, const struct snk_activity *r)
{
	const struct mxbpf_agg_activity *a = &r->a;
	const uint64_t ns[] = {a->total_ns, a->total_ns / a->count, a->min_ns, a->max_ns};
	char cell[CELL_BYTES];
	size_t i;
	int err = snk_grid_add(g, r->name, r->len);

	err = err ? err : snk_grid_add(g, snk_activity_kinds[a->cls], strlen(snk_activity_kinds[a->cls]));
	snprintf(cell, sizeof(cell), "%" PRIu32, a->device);
	err = err ? err : snk_grid_add(g, cell, strlen(cell));
	snprintf(cell, sizeof(cell), "%" PRIu64, (uint64_t)a->count);
	err = err ? err : snk_grid_add(g, cell, strlen(cell));
	for (i = 0; !err && i < sizeof(ns) / sizeof(ns[0]); i++) {
		fmt_tight_ns(ns[i], cell);
		err = snk_grid_add(g, cell, strlen(cell));
	}
	snprintf(cell, sizeof(cell), "-");
	if (a->bytes)
		fmt_bytes(a->bytes, cell);
	return err ? err : snk_grid_add(g, cell, strlen(cell));
}

int snk_put_activities(struct snk *s, const struct snk_activities *t)
{
	struct snk_grid g = {
		.cols = {{"name", .left = true},
			 {"kind", .left = true, .name_min = 20},
			 {"gpu", .hidden = !t->devices},
			 {"calls"},
			 {"total"},
			 {"mean"},
			 {"min", .name_min = 16},
			 {"max", .name_min = 12},
			 {"bytes"}},
		.ncols = 9,
	};
	char n[32], ns[24];
	size_t i;
	int err = 0;

	out_printf(s->out, "GPU activities: %s, %s in all, in %zu row%s%s\n", fmt_count(t->count, n),
		   fmt_ns(t->total_ns, ns), t->nrows_all, t->nrows_all == 1 ? "" : "s",
		   t->nrows < t->nrows_all ? ", not all of them shown" : "");
	for (i = 0; !err && i < t->nrows; i++)
		err = add_row(&g, &t->rows[i]);
	if (!err)
		snk_grid_print(&g, s->opts->width ? s->opts->width : SNK_WIDTH, s->out);
	if (t->unlaunched)
		out_printf(s->out, "         %s of them have no call: their launch was not seen\n",
			   fmt_count(t->unlaunched, n));
	out_puts(s->out, "\n");
	snk_grid_fini(&g);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}
