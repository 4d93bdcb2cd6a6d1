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
	/* Open pieces: of the thread by part, all of these, those with only a cost, and busy ones of any thread. */
	unsigned own[MXBPF_STEP_PARTS], nours, nsilent, nbusy;
	uint64_t now_ns, idle_ns; /* since idle_ns no piece of the thread is open */
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

/* A piece begins. */
static void add_cost(const struct sweep *s, const struct piece *p)
{
	const unsigned part = p->part < MXBPF_STEP_PARTS ? p->part : MXBPF_PART_OUTSIDE;
	struct mxbpf_iteration *it = s->it;

	it->cost_ns[part] += p->self_cost_ns;
	it->runq_ns[part] += p->self_runq_ns;
	if (!s->nours && !s->nsilent)
		it->cost_ns[p->loader ? MXBPF_PART_DATA : MXBPF_PART_OUTSIDE] += p->before_cost_ns;
}

static void pass(struct sweep *s, const struct edge *e)
{
	const struct piece *p = e->piece;

	until(s, e->ns);
	s->nbusy += p->busy ? (e->ends ? -1u : 1u) : 0;
	if (p->tid != s->it->tid)
		return;
	if (!e->ends)
		add_cost(s, p);
	if (p->part == MXBPF_STEP_PARTS) {
		s->nsilent += e->ends ? -1u : 1u;
		return;
	}
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
		it->flags = MXBPF_ITERATION_PARTS | MXBPF_ITERATION_COST;
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

static uint64_t scaled(uint64_t ns, uint32_t permille)
{
	return (uint64_t)((double)ns * permille / 1000);
}

/* Takes up to *ns out of a part. */
static void take(struct mxbpf_iteration *it, unsigned part, uint64_t *ns)
{
	const uint64_t n = *ns < it->part_ns[part] ? *ns : it->part_ns[part];

	it->part_ns[part] -= n;
	it->dur_ns -= n < it->dur_ns ? n : it->dur_ns;
	*ns -= n;
}

/* A thread waits for a CPU in proportion to the time that it runs: returns by how much it waited longer in a part. */
static uint64_t waited(const struct mxbpf_iteration *it, unsigned part, uint64_t cost_ns, uint64_t all_runq_ns)
{
	const uint64_t ran_ns = it->dur_ns > all_runq_ns ? it->dur_ns - all_runq_ns : 0;

	return cost_ns < ran_ns ? (uint64_t)((double)it->runq_ns[part] * ((double)cost_ns / (double)ran_ns))
				: it->runq_ns[part];
}

/* Returns what watching cost a part, with the waiting for a CPU that goes with it. */
static uint64_t cost_of(const struct mxbpf_iteration *it, unsigned part, uint32_t permille)
{
	uint64_t all = 0, runq = 0;
	unsigned i;

	for (i = 0; i < MXBPF_STEP_PARTS; i++) {
		all += scaled(it->cost_ns[i], permille);
		runq += it->runq_ns[i];
	}
	return scaled(it->cost_ns[part], permille) + waited(it, part, all, runq);
}

uint64_t parts_cost(const struct mxbpf_iteration *it, const struct mdl_cost *cost)
{
	uint64_t sum = 0;
	unsigned part;

	for (part = 0; part < MXBPF_STEP_PARTS && it->flags & MXBPF_ITERATION_COST && !it->raw_ns; part++)
		sum += cost_of(it, part, cost->scale);
	return sum;
}

void parts_take_cost(struct mxbpf_iteration *it, const struct mdl_cost *cost, double factor)
{
	uint64_t ns[MXBPF_STEP_PARTS], left = 0;
	unsigned part;

	if (!(it->flags & MXBPF_ITERATION_COST) || it->raw_ns)
		return;
	for (part = 0; part < MXBPF_STEP_PARTS; part++)
		ns[part] = (uint64_t)((double)cost_of(it, part, cost->scale) * factor);
	it->raw_ns = it->dur_ns;
	for (part = 0; part < MXBPF_STEP_PARTS; part++) {
		take(it, part, &ns[part]);
		left += ns[part];
	}
	for (part = 0; part < MXBPF_STEP_PARTS; part++) /* a part may have others' calls in it */
		take(it, part, &left);
	if (it->first_ns > it->part_ns[MXBPF_PART_OUTSIDE])
		it->first_ns = it->part_ns[MXBPF_PART_OUTSIDE];
	if (it->raw_ns)
		it->busy_ns = (uint64_t)((double)it->busy_ns * ((double)it->dur_ns / (double)it->raw_ns));
}
