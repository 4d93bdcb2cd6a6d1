// SPDX-License-Identifier: Apache-2.0
/* Adds the performance counters of spans up. The sums are columns of the rows of calls. */
#include "feature/counters/counters.h"

#include <string.h>

static void counters_merge(struct mxbpf_counter_sum *to, const struct mxbpf_counter_sum *from)
{
	unsigned i;

	add_sat(&to->spans, from->spans);
	add_sat(&to->scaled, from->scaled);
	for (i = 0; i < MXBPF_COUNTERS_MAX; i++)
		add_sat(&to->value[i], from->value[i]);
}

void counters_add(struct mxbpf_counter_sum *to, const struct mxbpf_span *s)
{
	struct mxbpf_counter_sum one = {.spans = 1, .scaled = !!(s->flags & MXBPF_SPAN_SCALED)};

	if (s->counters[0] == MXBPF_COUNTER_NONE)
		return;
	memcpy(one.value, s->counters, sizeof(one.value));
	counters_merge(to, &one);
}

static int counters_span(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s)
{
	counters_add(&row->counters, s);
	return 0;
}

/* The record belongs to an AGG record before it. Without that one there is no row, and the record is skipped. */
static int counters_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_counters *a = (const void *)rec;
	struct mdl_row *r = mdl_row_find(m, a->cls, a->name_id, a->h.tgid, a->device);

	if (r)
		counters_merge(&r->counters, &a->sum);
	return 0;
}

static int counters_emit_row(const struct mdl_row *r, struct buf *out)
{
	const struct mxbpf_agg_counters a = {
		.h = {.kind = MXBPF_AGG_COUNTERS, .size = sizeof(a), .tgid = r->tgid},
		.name_id = r->id,
		.device = r->device,
		.cls = r->cls,
		.sum = r->counters,
	};

	return a.sum.spans ? buf_put(out, &a, sizeof(a)) : 0;
}

static void counters_merge_row(struct mdl_row *to, const struct mdl_row *from)
{
	counters_merge(&to->counters, &from->counters);
}

/* Nobody knows which part of the counters belongs to nested calls. */
static void counters_own_row(struct mdl_row *r)
{
	r->counters = (struct mxbpf_counter_sum){0};
}

const struct mdl_feature feature_counters = {
	.option = &counters_option,
	.session = &counters_session,
	.trace = &counters_trace,
	.kinds = {{MXBPF_AGG_COUNTERS, counters_fold}},
	.span = counters_span,
	.emit_row = counters_emit_row,
	.merge_row = counters_merge_row,
	.own_row = counters_own_row,
};
