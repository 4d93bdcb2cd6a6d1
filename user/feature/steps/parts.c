// SPDX-License-Identifier: Apache-2.0
/* Computes how an iteration spent its time, by sweeping over the starts and ends of the spans in it. */
#include "feature/steps/parts.h"

#include <errno.h>
#include <stdlib.h>

struct edge {
	uint64_t ns;
	const struct piece *piece;
	bool ends;
};

struct sweep {
	struct mxbpf_iteration *it;
	unsigned own[MXBPF_STEP_PARTS], nours, nbusy; /* open pieces: of the thread by part, all of them, busy ones */
	uint64_t now_ns, idle_ns;		      /* since idle_ns no piece of the thread is open */
};

static int by_time(const void *va, const void *vb)
{
	const struct edge *a = va, *b = vb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->ends - b->ends;
}

static void until(struct sweep *s, uint64_t ns)
{
	const uint64_t dt = ns - s->now_ns;
	unsigned part = 0;

	if (s->nbusy)
		s->it->busy_ns += dt;
	while (s->nours && !s->own[part])
		part++;
	if (s->nours)
		s->it->part_ns[part] += dt;
	s->now_ns = ns;
}

/* Adds the time that the thread spent outside calls, before a call or at the end. */
static void idle(struct sweep *s, enum mxbpf_step_part part)
{
	const uint64_t dt = s->now_ns - s->idle_ns;

	s->it->part_ns[part] += dt;
	if (s->idle_ns == s->it->h.ts_ns && part == MXBPF_PART_OUTSIDE)
		s->it->first_ns = dt;
}

static void pass(struct sweep *s, const struct edge *e)
{
	const struct piece *p = e->piece;

	until(s, e->ns);
	s->nbusy += p->busy ? (e->ends ? -1u : 1u) : 0;
	if (p->tid != s->it->tid)
		return;
	if (!e->ends && !s->nours)
		idle(s, p->loader ? MXBPF_PART_DATA : MXBPF_PART_OUTSIDE);
	s->own[p->part] += e->ends ? -1u : 1u;
	s->nours += e->ends ? -1u : 1u;
	if (!s->nours)
		s->idle_ns = e->ns;
}

static size_t edges_of(const struct buf *pieces, const struct extent *x, struct edge *edges)
{
	const struct piece *piece = (const struct piece *)pieces->data;
	size_t i, n = 0;

	for (i = 0; i < buf_count(pieces, struct piece); i++, piece++) {
		const uint64_t start = piece->start_ns > x->start_ns ? piece->start_ns : x->start_ns;
		const uint64_t end = piece->end_ns < x->end_ns ? piece->end_ns : x->end_ns;

		if (start >= end || (piece->tid != x->tid && !piece->busy))
			continue;
		edges[n++] = (struct edge){start, piece, false};
		edges[n++] = (struct edge){end, piece, true};
	}
	return n;
}

int parts_make(const struct buf *pieces, uint32_t tgid, const struct extent *x, uint64_t nr, struct mxbpf_iteration *it)
{
	struct edge *edges = malloc((2 * buf_count(pieces, struct piece) + 1) * sizeof(*edges));
	struct sweep s = {.it = it, .now_ns = x->start_ns, .idle_ns = x->start_ns};
	size_t i, n;

	if (!edges)
		return -ENOMEM;
	*it = (struct mxbpf_iteration){
		.h = {.kind = MXBPF_ITERATION, .size = sizeof(*it), .tgid = tgid, .ts_ns = x->start_ns},
		.dur_ns = x->end_ns - x->start_ns,
		.nr = nr,
		.tid = x->tid,
		.told = x->told,
	};
	n = edges_of(pieces, x, edges);
	if (n && !x->full) {
		it->flags = MXBPF_ITERATION_PARTS;
		qsort(edges, n, sizeof(*edges), by_time);
		for (i = 0; i < n; i++)
			pass(&s, &edges[i]);
		until(&s, x->end_ns);
		if (!s.nours)
			idle(&s, MXBPF_PART_OUTSIDE);
	}
	free(edges);
	return 0;
}
