// SPDX-License-Identifier: Apache-2.0
#include "feature/cost/cost.h"

#include "feature/steps/steps.h"

static int cost_span(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s)
{
	add_sat(&row->cost_ns, (uint64_t)s->cost.all * MXBPF_COST_UNIT_NS);
	add_sat(&row->self_cost_ns, (uint64_t)s->cost.self * MXBPF_COST_UNIT_NS);
	return 0;
}

static void cost_fold_add(struct mdl_row *r, const struct mxbpf_agg_cost *a)
{
	add_sat(&r->cost_ns, a->cost_ns);
	add_sat(&r->self_cost_ns, a->self_cost_ns);
	add_sat(&r->raw_total_ns, a->raw_total_ns);
	add_sat(&r->raw_self_ns, a->raw_self_ns);
}

/* The record belongs to an AGG record before it. Without that one there is no row, and the record is skipped. */
static int cost_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_cost *a = (const void *)rec;
	struct mdl_row *r = mdl_row_find(m, a->cls, a->name_id, a->h.tgid, a->device);

	if (r)
		cost_fold_add(r, a);
	return 0;
}

static struct mxbpf_agg_cost of_row(const struct mdl_row *r)
{
	return (struct mxbpf_agg_cost){
		.h = {.kind = MXBPF_AGG_COST, .size = sizeof(struct mxbpf_agg_cost), .tgid = r->tgid},
		.name_id = r->id,
		.cost_ns = r->cost_ns,
		.self_cost_ns = r->self_cost_ns,
		.raw_total_ns = r->raw_total_ns,
		.raw_self_ns = r->raw_self_ns,
		.device = r->device,
		.cls = r->cls,
	};
}

static int cost_emit_row(const struct mdl_row *r, struct buf *out)
{
	const struct mxbpf_agg_cost a = of_row(r);

	int err = a.cost_ns || a.raw_total_ns ? buf_put(out, &a, sizeof(a)) : 0;

	return err ? err : cost_estimate_emit(r, out);
}

static void cost_merge_row(struct mdl_row *to, const struct mdl_row *from)
{
	const struct mxbpf_agg_cost a = of_row(from);

	cost_fold_add(to, &a);
	cost_estimate_add(to, &from->estimate);
}

static void cost_own_row(struct mdl_row *r)
{
	r->cost_ns = r->self_cost_ns;
	r->raw_total_ns = r->raw_self_ns;
	r->estimate.total_ns = r->estimate.self_ns;
}

/* ---- how much it is */

struct cost_iterations cost_of_iterations(struct mdl *m)
{
	size_t n, i, first = 0;
	const struct mxbpf_iteration *it = steps_iterations(m, &n);
	struct cost_iterations best = {0}, sum = {0};

	if (cost_has_slices(m))
		return best;
	for (i = 0; i < n; i++) {
		if (it[i].h.tgid != it[first].h.tgid) {
			sum = (struct cost_iterations){0};
			first = i;
		}
		if (!it[i].raw_ns)
			continue;
		sum.n++;
		add_sat(&sum.watched_ns, it[i].raw_ns);
		add_sat(&sum.unwatched_ns, it[i].dur_ns);
		best = sum.watched_ns > best.watched_ns ? sum : best;
	}
	if (best.n) {
		best.watched_ns /= best.n;
		best.unwatched_ns /= best.n;
	}
	return best;
}

uint32_t cost_permille(struct mdl *m, const struct mdl_session *s)
{
	const struct cost_iterations it = cost_of_iterations(m);
	uint64_t base = s->duration_ns, all = base + s->cost.thread_ns;

	if (!s->cost.scale)
		return 0;
	if (it.n) {
		base = it.unwatched_ns;
		all = it.watched_ns;
	} else if (s->cost.thread_ns < base) {
		all = base;
		base -= s->cost.thread_ns;
	}
	return base && all > base ? (uint32_t)((double)(all - base) * 1000 / (double)base) : 0;
}

const struct mdl_feature feature_cost = {
	.session = &cost_session,
	.state_bytes = sizeof(struct cost_state),
	.kinds = {{MXBPF_AGG_COST, cost_fold},
		  {MXBPF_PARTIAL, cost_partial_fold},
		  {MXBPF_SLICE, cost_slice_fold},
		  {MXBPF_AGG_ESTIMATE, cost_estimate_fold}},
	.emit = cost_partial_emit,
	.copy = cost_partial_copy,
	.move = cost_partial_move,
	.fini = cost_partial_fini,
	.span = cost_span,
	.emit_row = cost_emit_row,
	.merge_row = cost_merge_row,
	.own_row = cost_own_row,
};
