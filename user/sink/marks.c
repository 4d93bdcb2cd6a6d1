// SPDX-License-Identifier: Apache-2.0
/* The program's own marks that are no spans: its counters, and the moments that it marked. */
#include "sink/priv.h"

#include "base/fmt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES 64

static const char *const said[MXBPF_INSTANT_WHATS] = {
	[MXBPF_INSTANT_RUN] = "set_state('run')",
	[MXBPF_INSTANT_STOP] = "set_state('stop')",
	[MXBPF_INSTANT_PAUSE] = "pause",
	[MXBPF_INSTANT_RESUME] = "resume",
	[MXBPF_INSTANT_DUMP] = "dump",
};

const char *const snk_scopes[MXBPF_SCOPES] = {
	[MXBPF_SCOPE_NONE] = "",	 [MXBPF_SCOPE_GLOBAL] = "global", [MXBPF_SCOPE_PROCESS] = "process",
	[MXBPF_SCOPE_THREAD] = "thread", [MXBPF_SCOPE_TASK] = "task",	  [MXBPF_SCOPE_MARKER] = "marker",
};

const char *snk_instant_name(const struct mdl *m, const struct mxbpf_instant *i, size_t *len)
{
	if (i->what == MXBPF_INSTANT_MARKER)
		return mdl_name(m, i->name_id, len);
	*len = strlen(said[i->what]);
	return said[i->what];
}

const char *snk_domain(const struct mdl *m, uint64_t name_id, size_t *len)
{
	const char *text = mdl_text(m, MXBPF_NAME_DOMAIN, name_id, len);

	*len = text ? *len : 0;
	return text ? text : "";
}

static int by_text(const struct snk_mark *a, const struct snk_mark *b)
{
	int order = snk_name_cmp(a->domain, a->domain_len, b->domain, b->domain_len);

	order = order ? order : snk_name_cmp(a->name, a->len, b->name, b->len);
	return order ? order : a->tgid < b->tgid ? -1 : a->tgid > b->tgid;
}

/* By name, or by how many there were of it. */
static int by_opts(const void *va, const void *vb, void *vopts)
{
	const struct snk_mark *a = va, *b = vb;
	const struct snk_opts *opts = vopts;

	if (opts->sort == SNK_SORT_COUNT && a->count != b->count)
		return (a->count < b->count) == opts->ascending ? -1 : 1;
	return by_text(a, b);
}

static size_t shown(const struct snk *s, size_t n)
{
	return s->opts->top && s->opts->top < n ? s->opts->top : n;
}

static struct snk_mark mark(const struct mdl *m, uint64_t name_id, uint32_t tgid, uint64_t count)
{
	struct snk_mark r = {.tgid = tgid, .count = count};

	r.domain = snk_domain(m, name_id, &r.domain_len);
	r.name = mdl_name(m, name_id, &r.len);
	return r;
}

int snk_marks(const struct snk *s, struct snk_marks *t)
{
	const struct mdl *m = s->in->model;
	const struct mxbpf_instant *const *instants = mdl_instants(m, &t->ninstants_all);
	const struct mxbpf_value *const *values = mdl_values(m, &t->nvalues_all);
	size_t i;

	t->values = calloc(t->nvalues_all + 1, sizeof(*t->values));
	t->instants = calloc(t->ninstants_all + 1, sizeof(*t->instants));
	if (!t->values || !t->instants)
		return -ENOMEM;
	for (i = 0; i < t->nvalues_all; i++) {
		t->values[i] = mark(m, values[i]->name_id, values[i]->h.tgid, values[i]->count);
		t->values[i].value = values[i];
	}
	for (i = 0; i < t->ninstants_all; i++) {
		t->instants[i] = mark(m, instants[i]->name_id, instants[i]->h.tgid, instants[i]->count);
		t->instants[i].name = snk_instant_name(m, instants[i], &t->instants[i].len);
		t->instants[i].instant = instants[i];
	}
	qsort_r(t->values, t->nvalues_all, sizeof(*t->values), by_opts, (void *)s->opts);
	qsort_r(t->instants, t->ninstants_all, sizeof(*t->instants), by_opts, (void *)s->opts);
	t->nvalues = shown(s, t->nvalues_all);
	t->ninstants = shown(s, t->ninstants_all);
	return 0;
}

static int add_number(struct snk_grid *g, uint64_t n)
{
	char cell[CELL_BYTES];

	return snk_grid_add(g, cell, (size_t)snprintf(cell, sizeof(cell), "%" PRIu64, n));
}

static int add_name(struct snk_grid *g, const struct snk_mark *r)
{
	int err = snk_grid_add(g, r->name, r->len);

	err = err ? err : snk_grid_add(g, r->domain, r->domain_len);
	return err ? err : add_number(g, r->count);
}

static int add_value(struct snk_grid *g, const struct snk_mark *r)
{
	int err = add_name(g, r);

	err = err ? err : add_number(g, r->value->value);
	err = err ? err : add_number(g, r->value->min);
	return err ? err : add_number(g, r->value->max);
}

/* In seconds since the start of the window. */
static int add_moment(const struct snk *s, struct snk_grid *g, uint64_t ns)
{
	char cell[CELL_BYTES];
	const int64_t since = (int64_t)(ns - s->in->session->start_mono_ns);

	return snk_grid_add(g, cell, (size_t)snprintf(cell, sizeof(cell), "%.6f", (double)since / 1e9));
}

static int add_instant(const struct snk *s, struct snk_grid *g, const struct snk_mark *r)
{
	const char *scope = snk_scopes[r->instant->scope];
	int err = add_name(g, r);

	err = err ? err : snk_grid_add(g, scope, strlen(scope));
	err = err ? err : add_moment(s, g, r->instant->h.ts_ns);
	return err ? err : add_moment(s, g, r->instant->last_ns);
}

static void print(struct snk *s, struct snk_grid *g, const char *title, size_t n, size_t all)
{
	out_printf(s->out, "%s: %zu row%s%s\n", title, all, all == 1 ? "" : "s",
		   n < all ? ", not all of them shown" : "");
	snk_grid_print(g, s->opts->width ? s->opts->width : SNK_WIDTH, s->out);
	out_puts(s->out, "\n");
}

int snk_put_marks(struct snk *s, const struct snk_marks *t)
{
	struct snk_grid values = {
		.cols = {{"name", .left = true}, {"domain", .left = true}, {"sets"}, {"last"}, {"min"}, {"max"}},
		.ncols = 6};
	struct snk_grid instants = {.cols = {{"name", .left = true},
					     {"domain", .left = true},
					     {"times"},
					     {"scope", .left = true},
					     {"first (s)"},
					     {"last (s)"}},
				    .ncols = 6};
	size_t i;
	int err = 0;

	for (i = 0; !err && i < t->nvalues; i++)
		err = add_value(&values, &t->values[i]);
	for (i = 0; !err && i < t->ninstants; i++)
		err = add_instant(s, &instants, &t->instants[i]);
	if (!err && t->nvalues)
		print(s, &values, "Counter", t->nvalues, t->nvalues_all);
	if (!err && t->ninstants)
		print(s, &instants, "Instant", t->ninstants, t->ninstants_all);
	snk_grid_fini(&values);
	snk_grid_fini(&instants);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}
