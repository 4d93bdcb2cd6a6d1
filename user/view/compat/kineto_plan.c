// SPDX-License-Identifier: Apache-2.0
#include "view/compat/kineto_plan.h"

#include <errno.h>
#include <stdlib.h>

struct start {
	uint64_t ts_ns;
	uint64_t seq; /* 0: no number */
	uint32_t tgid;
	uint32_t ordinal : 31, backward : 1;
};

int view_numbers_survey(struct view_numbers *n, const struct mxbpf_span *s)
{
	struct start start = {
		.ts_ns = s->h.ts_ns,
		.tgid = s->h.tgid,
		.ordinal = (uint32_t)buf_count(&n->starts, struct start),
		.backward = !!(s->flags & MXBPF_SPAN_BACKWARD),
	};

	/* Each thread counts for itself, so a number without thread means nothing. */
	if ((s->flags & MXBPF_SPAN_SEQ) && MXBPF_SEQ_THREAD(s->seq))
		start.seq = s->seq;
	n->args |= s->args_id != 0;
	n->stacks |= s->stack_id != 0;
	return buf_put(&n->starts, &start, sizeof(start));
}

/* Of two that start together, the outer one ended last. */
static int kineto_plan_by_start(const void *x, const void *y)
{
	const struct start *a = x, *b = y;

	if (a->ts_ns != b->ts_ns)
		return a->ts_ns < b->ts_ns ? -1 : 1;
	return a->ordinal > b->ordinal ? -1 : 1;
}

/* The last operator with the number of a node made the node. A node that runs again has no arrow, as in PyTorch. */
static int kineto_plan_join(struct view_numbers *n, struct hash *last, const struct start *starts, size_t i)
{
	const struct start *s = &starts[i], *maker;
	uint64_t *at, from;

	if (!s->seq)
		return 0;
	if (!s->backward) {
		at = hash_put(last, s->seq, s->tgid);
		if (at)
			*at = i;
		return at ? 0 : -ENOMEM;
	}
	if (!hash_del(last, s->seq, s->tgid, &from)) {
		n->nlonely++;
		return 0;
	}
	maker = &starts[from];
	if (maker->ts_ns == s->ts_ns)
		return 0; /* an arrow must end after it started */
	n->narrows++;
	buf_at(&n->of_span, struct view_number, maker->ordinal)->arrow = n->narrows;
	buf_at(&n->of_span, struct view_number, s->ordinal)->arrow = n->narrows;
	return 0;
}

static int kineto_plan_number(struct view_numbers *n, const struct view_plan *p, struct hash *last)
{
	const struct start *starts = (const struct start *)n->starts.data;
	size_t nspans = buf_count(&n->starts, struct start), nallocs = buf_count(&p->allocs, struct view_plan_alloc);
	const struct view_plan_alloc *allocs = (const struct view_plan_alloc *)p->allocs.data;
	struct view_number *of;
	size_t i, k = 0;
	int ret = 0;

	for (i = 0; i < nspans && !ret; i++) {
		for (; k < nallocs && allocs[k].ts_ns < starts[i].ts_ns; k++)
			*buf_at(&n->of_alloc, uint32_t, k) = (uint32_t)(k + i);
		of = buf_at(&n->of_span, struct view_number, starts[i].ordinal);
		*of = (struct view_number){.external_id = (uint32_t)i + 1, .ev_idx = (uint32_t)(i + k)};
		ret = kineto_plan_join(n, last, starts, i);
	}
	for (; k < nallocs; k++)
		*buf_at(&n->of_alloc, uint32_t, k) = (uint32_t)(k + i);
	return ret;
}

int view_numbers_finish(struct view_numbers *n, const struct view_plan *p)
{
	size_t nspans = buf_count(&n->starts, struct start), nallocs = buf_count(&p->allocs, struct view_plan_alloc);
	struct hash last = {0};
	int ret;

	if ((nspans && !buf_add(&n->of_span, nspans * sizeof(struct view_number))) ||
	    (nallocs && !buf_add(&n->of_alloc, nallocs * sizeof(uint32_t))))
		return -ENOMEM;
	if (nspans)
		qsort(n->starts.data, nspans, sizeof(struct start), kineto_plan_by_start);
	ret = kineto_plan_number(n, p, &last);
	hash_fini(&last);
	buf_fini(&n->starts);
	return ret;
}

void view_numbers_fini(struct view_numbers *n)
{
	buf_fini(&n->of_span);
	buf_fini(&n->of_alloc);
	buf_fini(&n->starts);
}
