// SPDX-License-Identifier: Apache-2.0
/*
 * Computes how an iteration spent its time, by sweeping over the starts and ends of the spans in it.
 *
 * A thread that waits for an exchange or for a backward pass of other threads is in no call of the runtime. It shows in
 * what comes next: a thread that goes on when they have ended has waited for them, and one that goes on at any other
 * time did something else.
 */
#include "feature/steps/parts.h"
#include "base/whole.h"
#include "feature/steps/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const steps_parts[MXBPF_STEP_PARTS] = {
	[MXBPF_PART_DATA] = "data",	  [MXBPF_PART_WAIT] = "wait", [MXBPF_PART_KVSTORE] = "kvstore",
	[MXBPF_PART_OPERATOR] = "inline", [MXBPF_PART_API] = "api",   [MXBPF_PART_OUTSIDE] = "outside",
};

struct edge {
	uint64_t ns;
	const struct piece *piece;
	bool ends;
};

/* A time in which the thread was in no call. */
struct gap {
	uint64_t beside_ns[AWAITED_MAX]; /* while this went on */
	uint64_t end_ns;
	uint64_t awaited_end_ns; /* when the last of them ended in it; 0: none did */
	uint8_t awaited;	 /* that last one: enum awaited */
	bool first;		 /* before the first call of the iteration */
	bool late;		 /* a backward pass ran already when it began */
};

struct sweep {
	struct mxbpf_iteration *it;
	/* Open pieces: of the thread by part, all of these, those with only a cost, and busy ones of any thread. */
	unsigned own[MXBPF_STEP_PARTS], nours, nsilent, nbusy;
	unsigned nawaited[AWAITED_MAX];
	uint64_t now_ns, idle_ns; /* since idle_ns no piece of the thread is open */
	struct gap gap;		  /* the present one, or the last one */
	struct gap pending;	  /* it ended while an exchange went on, whose end may be recorded late */
};

static int steps_by_time(const void *va, const void *vb)
{
	const struct edge *a = va, *b = vb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->ends - b->ends;
}

static uint64_t beside_ns(const struct gap *g)
{
	return g->beside_ns[AWAITS_EXCHANGE] + g->beside_ns[AWAITS_PASS];
}

/* Adds time of a gap. Between the functions of a backward pass, the thread waits as well. */
static void add_beside(struct sweep *s, uint64_t dt)
{
	struct gap *g = &s->gap;
	uint64_t hole;

	if (s->nawaited[AWAITS_PASS] && !g->late) {
		hole = g->awaited == AWAITS_PASS ? s->now_ns - g->awaited_end_ns : 0;
		g->beside_ns[AWAITS_PASS] += dt + (hole < beside_ns(g) && !s->nawaited[AWAITS_EXCHANGE] ? hole : 0);
		g->awaited = AWAITS_NOTHING;
	} else if (s->nawaited[AWAITS_EXCHANGE]) {
		g->beside_ns[AWAITS_EXCHANGE] += dt;
	}
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
	else
		add_beside(s, dt);
	s->now_ns = ns;
}

/* Whether the thread went on when what it had been beside ended: within a half of that time. */
static bool is_wait(const struct gap *g, uint64_t apart_ns)
{
	return beside_ns(g) && apart_ns <= beside_ns(g) / 2;
}

static void take_wait(struct mxbpf_iteration *it, struct gap *g)
{
	it->part_ns[MXBPF_PART_OUTSIDE] -= beside_ns(g);
	it->first_ns -= g->first ? beside_ns(g) : 0;
	it->part_ns[MXBPF_PART_KVSTORE] += g->beside_ns[AWAITS_EXCHANGE];
	it->part_ns[MXBPF_PART_WAIT] += g->beside_ns[AWAITS_PASS];
	*g = (struct gap){0};
}

static void begin_gap(struct sweep *s)
{
	s->idle_ns = s->now_ns;
	s->gap = (struct gap){.first = s->now_ns == s->it->h.ts_ns, .late = s->nawaited[AWAITS_PASS]};
}

/* Adds the time that the thread spent outside calls, before a call or at the end. */
static void end_gap(struct sweep *s, enum mxbpf_step_part part)
{
	const uint64_t dt = s->now_ns - s->idle_ns;
	struct gap *g = &s->gap;

	s->it->part_ns[part] += dt;
	if (part != MXBPF_PART_OUTSIDE)
		return;
	if (g->first)
		s->it->first_ns = dt;
	g->end_ns = s->now_ns;
	if (g->awaited_end_ns && (g->late || !s->nawaited[AWAITS_PASS]) && is_wait(g, s->now_ns - g->awaited_end_ns))
		take_wait(s->it, g);
	else if (s->nawaited[AWAITS_EXCHANGE] && beside_ns(g) > beside_ns(&s->pending))
		s->pending = *g;
}

/* Notes that an exchange or a function of a backward pass has ended. */
static void end_awaited(struct sweep *s, enum awaited awaited)
{
	if (!s->nours && !(awaited == AWAITS_PASS && s->gap.late)) {
		s->gap.awaited_end_ns = s->now_ns;
		s->gap.awaited = (uint8_t)awaited;
	}
	if (awaited != AWAITS_EXCHANGE)
		return;
	if (is_wait(&s->pending, s->now_ns - s->pending.end_ns))
		take_wait(s->it, &s->pending);
	s->pending = (struct gap){0};
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
	if (p->tid != s->it->tid) {
		s->nawaited[p->awaited] += e->ends ? -1u : 1u;
		if (e->ends && p->awaited)
			end_awaited(s, p->awaited);
		return;
	}
	if (!e->ends)
		add_cost(s, p);
	if (p->part == MXBPF_STEP_PARTS) {
		s->nsilent += e->ends ? -1u : 1u;
		return;
	}
	if (!e->ends && !s->nours)
		end_gap(s, p->loader ? MXBPF_PART_DATA : MXBPF_PART_OUTSIDE);
	s->own[p->part] += e->ends ? -1u : 1u;
	s->nours += e->ends ? -1u : 1u;
	if (!s->nours)
		begin_gap(s);
}

static size_t edges_of(const struct buf *pieces, const struct extent *x, struct edge *edges)
{
	const struct piece *piece = (const struct piece *)pieces->data;
	size_t i, n = 0;

	for (i = 0; i < buf_count(pieces, struct piece); i++, piece++) {
		const uint64_t start = piece->start_ns > x->start_ns ? piece->start_ns : x->start_ns;
		const uint64_t end = piece->end_ns < x->end_ns ? piece->end_ns : x->end_ns;

		if (start >= end || (piece->tid != x->tid && !piece->busy && !piece->awaited))
			continue;
		edges[n++] = (struct edge){start, piece, false};
		edges[n++] = (struct edge){end, piece, true};
	}
	return n;
}

#define MOVES_EACH 64 /* of an edge on average; beyond this another sort is faster */

/*
 * Pieces come in the order of their ends, so only starts of calls with other calls in them have to move. That is faster
 * than a sort that knows nothing of the order.
 */
static void sort_edges(struct edge *e, size_t n)
{
	size_t i, k, moves = 0;
	struct edge one;

	for (i = 1; i < n && moves <= n * MOVES_EACH; i++) {
		for (k = i; k && steps_by_time(&e[k - 1], &e[i]) > 0; k--)
			;
		if (k == i)
			continue;
		one = e[i];
		memmove(&e[k + 1], &e[k], (i - k) * sizeof(*e));
		e[k] = one;
		moves += i - k;
	}
	if (i < n)
		qsort(e, n, sizeof(*e), steps_by_time);
}

int parts_make(const struct buf *pieces, uint32_t tgid, const struct extent *x, uint64_t nr, struct mxbpf_iteration *it)
{
	struct edge *edges = malloc((2 * buf_count(pieces, struct piece) + 1) * sizeof(*edges));
	struct sweep s = {.it = it, .now_ns = x->start_ns};
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
	it->flags = x->lost ? MXBPF_ITERATION_LOST : 0;
	if (n && !x->full && !x->lost) {
		it->flags = MXBPF_ITERATION_PARTS | MXBPF_ITERATION_COST | MXBPF_ITERATION_WAITS;
		begin_gap(&s);
		sort_edges(edges, n);
		for (i = 0; i < n; i++)
			pass(&s, &edges[i]);
		until(&s, x->end_ns);
		if (!s.nours)
			end_gap(&s, MXBPF_PART_OUTSIDE);
	}
	free(edges);
	return 0;
}

/* Takes up to *ns out of a part. */
static void steps_parts_take(struct mxbpf_iteration *it, unsigned part, uint64_t *ns)
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

	return cost_ns < ran_ns ? whole((double)it->runq_ns[part] * ((double)cost_ns / (double)ran_ns))
				: it->runq_ns[part];
}

/* Returns what watching cost a part, with the waiting for a CPU that goes with it. */
static uint64_t cost_of(const struct mxbpf_iteration *it, unsigned part, uint32_t permille)
{
	uint64_t all = 0, runq = 0;
	unsigned i;

	for (i = 0; i < MXBPF_STEP_PARTS; i++) {
		all += mdl_permille(it->cost_ns[i], permille);
		runq += it->runq_ns[i];
	}
	return mdl_permille(it->cost_ns[part], permille) + waited(it, part, all, runq);
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
		ns[part] = whole((double)cost_of(it, part, cost->scale) * factor);
	it->raw_ns = it->dur_ns;
	for (part = 0; part < MXBPF_STEP_PARTS; part++) {
		steps_parts_take(it, part, &ns[part]);
		left += ns[part];
	}
	for (part = 0; part < MXBPF_STEP_PARTS; part++) /* a part may have others' calls in it */
		steps_parts_take(it, part, &left);
	if (it->first_ns > it->part_ns[MXBPF_PART_OUTSIDE])
		it->first_ns = it->part_ns[MXBPF_PART_OUTSIDE];
	if (it->raw_ns)
		it->busy_ns = whole((double)it->busy_ns * ((double)it->dur_ns / (double)it->raw_ns));
}

/* ---- for people */

const char *steps_part_words(unsigned part, bool python)
{
	static const char *const words[MXBPF_STEP_PARTS] = {
		[MXBPF_PART_DATA] = "waiting for data",
		[MXBPF_PART_WAIT] = "waiting for results",
		[MXBPF_PART_KVSTORE] = "waiting for other processes",
		[MXBPF_PART_OPERATOR] = "in operators",
		[MXBPF_PART_API] = "in other calls of the runtime",
		[MXBPF_PART_OUTSIDE] = "in your Python code",
	};

	return part == MXBPF_PART_OUTSIDE && !python ? "in your own code" : words[part];
}

unsigned steps_large_parts(const uint64_t part_ns[MXBPF_STEP_PARTS], uint64_t all_ns, uint8_t order[MXBPF_STEP_PARTS])
{
	unsigned n = 0, k;
	uint8_t part;

	for (part = 0; part < MXBPF_STEP_PARTS; part++) {
		if (!part_ns[part] || part_ns[part] * 100 < all_ns)
			continue;
		for (k = n++; k && part_ns[order[k - 1]] < part_ns[part]; k--)
			order[k] = order[k - 1];
		order[k] = part;
	}
	return n;
}
