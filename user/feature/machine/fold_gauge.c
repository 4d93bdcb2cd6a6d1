// SPDX-License-Identifier: Apache-2.0
/* Readings of gauges, folded one after the other. */
#include "feature/machine/machine.h"
#include <errno.h>
#include <string.h>

#include "model/priv.h"

/* A record as if it stood for several readings: of a single one it says less. */
static struct mxbpf_gauge widened(const struct mxbpf_rec *r)
{
	struct mxbpf_gauge g = {0};

	memcpy(&g, r, r->size < sizeof(g) ? r->size : sizeof(g));
	if (r->size >= sizeof(g))
		return g;
	g.first_ns = g.h.ts_ns;
	g.first = g.value;
	g.difference = g.elapsed_ns = 0;
	g.count = g.value != MXBPF_GAUGE_NO_LIMIT;
	g.sum = g.min = g.max = g.count ? g.value : 0;
	return g;
}

/* What rises may be set back to 0 when what is counted is made anew, and iowait does not always rise. */
static uint64_t rise(uint64_t from, uint64_t to)
{
	return to > from && to != MXBPF_GAUGE_NO_LIMIT ? to - from : 0;
}

static void merge(struct machine_row *to, const struct mxbpf_gauge *g)
{
	if (!(g->flags & MXBPF_GAUGE_RESUMED)) {
		add_sat(&to->difference, rise(to->last, g->first));
		add_sat(&to->elapsed_ns, rise(to->last_ns, g->first_ns));
	}
	add_sat(&to->difference, g->difference);
	add_sat(&to->elapsed_ns, g->elapsed_ns);
	if (g->count && (!to->count || g->min < to->min))
		to->min = g->min;
	if (g->count && g->max > to->max)
		to->max = g->max;
	add_sat(&to->count, g->count);
	add_sat(&to->sum, g->sum);
	to->last = g->value;
	to->last_ns = g->h.ts_ns;
}

static int gauge_fold(struct mdl *m, const struct mxbpf_rec *r)
{
	const struct mxbpf_gauge g = widened(r);
	struct machine_row *row;
	bool added;

	steps_resumed(m, (const void *)r);
	if (!g.id || g.id >= MXBPF_GAUGE_IDS) /* a newer one's */
		return 0;
	row = mdl_item_put(&m->gauge_index, &m->gauges, g.id, g.scope, sizeof(*row), &added);
	if (!row)
		return -ENOMEM;
	if (!added)
		merge(row, &g);
	else
		*row = (struct machine_row){
			.id = g.id,
			.scope = g.scope,
			.first_ns = g.first_ns,
			.last_ns = g.h.ts_ns,
			.first = g.first,
			.last = g.value,
			.difference = g.difference,
			.elapsed_ns = g.elapsed_ns,
			.count = g.count,
			.sum = g.sum,
			.min = g.min,
			.max = g.max,
		};
	return 0;
}

static int gauges_emit(const struct mdl *m, struct buf *out)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&m->gauges, struct machine_row); i++) {
		const struct machine_row *r = buf_at(&m->gauges, struct machine_row, i);
		struct mxbpf_gauge g = {
			.h = {.kind = MXBPF_GAUGE, .size = sizeof(g), .ts_ns = r->last_ns},
			.value = r->last,
			.id = r->id,
			.scope = r->scope,
			.first_ns = r->first_ns,
			.first = r->first,
			.difference = r->difference,
			.elapsed_ns = r->elapsed_ns,
			.count = r->count,
			.sum = r->sum,
			.min = r->min,
			.max = r->max,
		};

		err = buf_put(out, &g, sizeof(g));
	}
	return err;
}

const struct machine_row *machine_rows(const struct mdl *m, size_t *n)
{
	*n = buf_count(&m->gauges, struct machine_row);
	return (const void *)m->gauges.data;
}

const struct machine_row *machine_row(const struct mdl *m, uint16_t id, uint16_t scope)
{
	const uint64_t *at = hash_get(&m->gauge_index, id, scope);

	return at && *at ? buf_at(&m->gauges, struct machine_row, *at - 1) : NULL;
}

static void gauges_fini(struct mdl *m)
{
	hash_fini(&m->gauge_index);
	buf_fini(&m->gauges);
}

const struct mdl_feature feature_machine = {
	.kinds = {{MXBPF_GAUGE, gauge_fold}},
	.emit = gauges_emit,
	.fini = gauges_fini,
};
