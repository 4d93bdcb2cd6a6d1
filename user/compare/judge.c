// SPDX-License-Identifier: Apache-2.0
/*
 * Which changes are certain. Three things must agree: the blocks of both sides differ by rank; the change is larger
 * than what a row does within a recording, between recordings of a side, and than what other operators do between the
 * sides; and it is at least CMP_FLOOR. What operators have in common is the machine's speed as far as one recording of
 * each side can tell, so it is taken out of each row before.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/judge.h"

#define CONTROL_SHARE  0.01 /* operators that take this much of an iteration tell what they have in common */
#define CONTROL_WEIGHT 0.15 /* most weight of one of them */
#define CONTROLS_LEAST 3
/* A recording wanders less than its segments. Were these independent, it would be by CMP_SEGMENTS; they never are. */
#define INDEPENDENT 2
#define SPREAD_AT   0.7	  /* percentile of distances that says how far operators are apart */
#define SPREAD_OF   1.04  /* and which it is in a normal distribution */
#define COST_ERROR  0.1	  /* of the cost of watching, which is taken out by estimates */
#define COST_MOST   1	  /* of a row, as a share of what is left of it */
#define NOISE_MOST  1000  /* as a share, which is as good as none */
#define NOISE_LEAST 0.003 /* of a row from recording to recording */
#define REGULAR	    0.1	  /* calls in an iteration below which it is chance on which side a small row is */

struct judging {
	struct cmp_judged *j;
	size_t n;
	const struct cmp_sides *of;
	double *value, *weight; /* scratch, n each */
};

static bool is_control(const struct cmp_judged *j)
{
	return j->row.kind == CMP_OPERATOR && !j->waits && j->share >= CONTROL_SHARE && j->cost < COST_MOST &&
	       j->row.calls[CMP_A] > 0 && j->row.calls[CMP_B] > 0;
}

/* Gathers a number of each operator that is a control, but one. Returns how many there are. */
static unsigned gather(const struct judging *g, const struct cmp_judged *but,
		       double (*of)(const struct cmp_judged *j, const void *ctx), const void *ctx)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < g->n; i++) {
		if (&g->j[i] == but || !is_control(&g->j[i]))
			continue;
		g->value[n] = of(&g->j[i], ctx);
		g->weight[n++] = g->j[i].share < CONTROL_WEIGHT ? g->j[i].share : CONTROL_WEIGHT;
	}
	return n;
}

static double delta_of(const struct cmp_judged *j, const void *ctx)
{
	return j->delta;
}

static double distance_of(const struct cmp_judged *j, const void *ctx)
{
	return fabs(j->delta - *(const double *)ctx);
}

struct place {
	unsigned side, run, segment;
};

static double segment_of(const struct cmp_judged *j, const void *ctx)
{
	const struct place *at = ctx;

	return j->track[at->side][at->run].segment[at->segment];
}

static double mean_of(const struct cmp_judged *j, const struct cmp_sides *of, unsigned side)
{
	double sum = 0;
	unsigned i;

	for (i = 0; i < of->n[side]; i++)
		sum += j->track[side][i].centre;
	return sum / of->n[side];
}

struct run_place {
	const struct cmp_sides *of;
	unsigned side, run;
};

static double run_of(const struct cmp_judged *j, const void *ctx)
{
	const struct run_place *at = ctx;

	return j->track[at->side][at->run].centre - mean_of(j, at->of, at->side);
}

/* Returns what the operators but one have in common, 0 if there are too few of them. */
static double common(const struct judging *g, const struct cmp_judged *but,
		     double (*of)(const struct cmp_judged *j, const void *ctx), const void *ctx)
{
	const unsigned n = gather(g, but, of, ctx);

	return n >= CONTROLS_LEAST ? cmp_weighted(g->value, g->weight, n, 0.5) : 0;
}

/* How much a row follows what the operators have in common, and by how much that may be wrong. */
struct follow {
	double factor, error;
};

/*
 * Finds within recordings how much a row follows the operators: 1 for work of the CPU, 0 for a wait that takes its time
 * whatever the speed of the machine. If that speed did not change, nobody knows.
 */
static struct follow follows(const struct judging *g, const struct cmp_judged *j)
{
	struct place at;
	double with = 0, all = 0, own = 0, c, v, rest, factor;
	unsigned n = 0;

	for (at.side = 0; at.side < CMP_SIDES; at.side++)
		for (at.run = 0; at.run < g->of->n[at.side]; at.run++)
			for (at.segment = 0; at.segment < CMP_SEGMENTS; at.segment++, n++) {
				c = common(g, j, segment_of, &at);
				v = segment_of(j, &at);
				with += c * v;
				all += c * c;
				own += v * v;
			}
	if (!(all > 0))
		return (struct follow){1, 1};
	factor = with / all < 0 ? 0 : with / all > 1 ? 1 : with / all;
	rest = (own - 2 * factor * with + factor * factor * all) / (n - 1) / all;
	return (struct follow){factor, rest < 1 ? sqrt(rest) : 1};
}

static bool is_relative(const struct cmp_judged *j)
{
	return (j->row.kind == CMP_OPERATOR || j->row.kind == CMP_LAYER) && !j->waits;
}

/* With several recordings of each side it is known how they differ. Memory and GPUs do not follow the CPU. */
static struct follow choose_follow(const struct judging *g, const struct cmp_judged *j, bool several)
{
	if (is_relative(j))
		return (struct follow){1, 0};
	if (several || j->row.kind == CMP_MEMORY || j->row.kind == CMP_KERNEL)
		return (struct follow){0, 0};
	return follows(g, j);
}

/* How much a row wanders without what it has in common with the operators: a variance and its degrees of freedom. */
struct wander {
	double variance, df;
};

static struct wander within(const struct judging *g, const struct cmp_judged *j, double follow)
{
	struct wander w = {0};
	struct place at;
	double sum = 0, v;

	for (at.side = 0; at.side < CMP_SIDES; at.side++)
		for (at.run = 0; at.run < g->of->n[at.side]; at.run++) {
			for (at.segment = 0; at.segment < CMP_SEGMENTS; at.segment++) {
				v = segment_of(j, &at) - (follow > 0 ? follow * common(g, j, segment_of, &at) : 0);
				sum += v * v;
			}
			w.df += CMP_SEGMENTS - 1;
		}
	w.variance = sum / w.df / INDEPENDENT;
	return w;
}

/* Between the recordings of a side; df 0: neither side has several. */
static struct wander between(const struct judging *g, const struct cmp_judged *j, double follow)
{
	struct wander w = {0};
	struct run_place at = {.of = g->of};
	double sum = 0, v;

	for (at.side = 0; at.side < CMP_SIDES; at.side++) {
		for (at.run = 0; at.run < g->of->n[at.side]; at.run++) {
			v = run_of(j, &at) - (follow > 0 ? follow * common(g, j, run_of, &at) : 0);
			sum += v * v;
		}
		w.df += g->of->n[at.side] - 1;
	}
	w.variance = w.df > 0 ? sum / w.df : 0;
	return w;
}

static double block_of(const struct cmp_judged *j, const void *ctx)
{
	const struct place *at = ctx;
	const struct cmp_track *t = &j->track[at->side][at->run];

	return t->block[at->segment] - t->centre;
}

/* Compares the blocks of both sides by rank. own: the change without what the row has in common with operators. */
static double ranks(const struct judging *g, const struct cmp_judged *j, double own, double follow)
{
	const size_t most = (size_t)(g->of->n[CMP_A] + g->of->n[CMP_B]) * CMP_BLOCKS;
	double *v[CMP_SIDES] = {calloc(most, sizeof(double)), calloc(most, sizeof(double))}, p = 1;
	size_t n[CMP_SIDES] = {0};
	const struct cmp_track *t;
	struct place at;

	for (at.side = 0; at.side < CMP_SIDES && v[CMP_A] && v[CMP_B]; at.side++)
		for (at.run = 0; at.run < g->of->n[at.side]; at.run++) {
			t = &j->track[at.side][at.run];
			for (at.segment = 0; at.segment < t->nblocks; at.segment++)
				v[at.side][n[at.side]++] = t->block[at.segment] -
							   (at.side == CMP_B ? j->delta - own : 0) -
							   (follow > 0 ? follow * common(g, j, block_of, &at) : 0);
		}
	if (v[CMP_A] && v[CMP_B])
		p = cmp_rank_test(v[CMP_A], n[CMP_A], v[CMP_B], n[CMP_B]);
	free(v[CMP_A]);
	free(v[CMP_B]);
	return p;
}

/* Takes the larger p of a change and the larger noise. */
static void test(struct cmp_judged *j, double own, double deviation, double df)
{
	const double p = cmp_student(own / deviation, df);
	const double noise = exp(cmp_student_limit(CMP_LEVEL, df) * deviation) - 1;

	j->p = p > j->p ? p : j->p;
	j->row.noise = noise > j->row.noise ? noise : j->row.noise;
	j->row.noise = j->row.noise < NOISE_MOST ? j->row.noise : NOISE_MOST;
}

/*
 * Returns the change of a row without what it has in common with the operators. An iteration consists of work of the
 * CPU for the most part, so it is judged as if it was nothing else, too.
 */
static double own_of(const struct cmp_judged *j, double factor, double shift)
{
	const double own = j->delta - factor * shift, all = j->delta - shift;

	if (j->row.kind != CMP_ITERATION || !(factor > 0))
		return own;
	if ((own > 0) != (all > 0))
		return 0;
	return fabs(own) < fabs(all) ? own : all;
}

/* Returns how far the changes of operators are apart: that much a row changes for reasons of its own. */
static double spread(const struct judging *g, const struct cmp_judged *j, const double *shift)
{
	const unsigned n = gather(g, j, distance_of, shift);

	return n >= CONTROLS_LEAST ? cmp_weighted(g->value, g->weight, n, SPREAD_AT) / SPREAD_OF : 0;
}

/*
 * Waiting for a CPU is known in calls only. Returns by how much that waiting differs between the sides: the time
 * between calls differs by as much for the same reason.
 */
static double unseen(const struct judging *g, const struct cmp_judged *j)
{
	double all[CMP_SIDES] = {0}, waits[CMP_SIDES] = {0};
	unsigned side;
	size_t i;

	if (j->row.kind != CMP_ITERATION && j->row.kind != CMP_PART && !j->waits)
		return 0;
	for (i = 0; i < g->n; i++)
		for (side = 0; side < CMP_SIDES; side++) {
			all[side] += g->j[i].row.kind == CMP_ITERATION ? g->j[i].row.value[side] : 0;
			waits[side] += g->j[i].row.kind == CMP_RUNQ ? g->j[i].row.p90[side] : 0;
		}
	if (!(all[CMP_A] > 0 && all[CMP_B] > 0))
		return 0;
	return fabs(log(1 + waits[CMP_B] / all[CMP_B]) - log(1 + waits[CMP_A] / all[CMP_A]));
}

static void judge(const struct judging *g, struct cmp_judged *j, bool several)
{
	const struct follow follow = choose_follow(g, j, several);
	const double shift = common(g, is_relative(j) ? j : NULL, delta_of, NULL);
	const double own = own_of(j, follow.factor, shift);
	const double each = 1. / g->of->n[CMP_A] + 1. / g->of->n[CMP_B];
	const struct wander in = within(g, j, follow.factor), of = between(g, j, follow.factor);
	const double wrong = follow.error * shift, waited = is_relative(j) ? 0 : unseen(g, j);
	const double cost = j->cost * COST_ERROR;
	const double deviation = sqrt(in.variance * each + wrong * wrong + waited * waited + cost * cost);
	const double apart = j->row.kind == CMP_ITERATION ? 0 : follow.factor * spread(g, j, &shift),
		     least = deviation > apart ? deviation : apart;

	j->row.noise = CMP_FLOOR;
	j->p = ranks(g, j, own, follow.factor);
	test(j, own, least > NOISE_LEAST ? least : NOISE_LEAST, in.df);
	if (of.df > 0 && of.variance > 0)
		test(j, own, sqrt(of.variance * each), of.df);
	j->row.own = exp(own) - 1;
}

/* Waiting for a CPU says what else the machine did. A row that costs more to watch than it takes says little. */
static bool is_large(const struct cmp_judged *j)
{
	return j->share >= CMP_SHARE && j->row.kind != CMP_RUNQ && j->cost < COST_MOST;
}

static bool is_judged(const struct cmp_judged *j)
{
	return is_large(j) && j->row.kind != CMP_LAYER;
}

/* Layers are parts of rows that are judged, so they are corrected among themselves. */
static void settle(struct cmp_judged *j, double p, const struct cmp_result *r)
{
	const bool large = is_large(j);

	j->row.p = p;
	if (!large && j->row.calls[CMP_A] < REGULAR && j->row.calls[CMP_B] < REGULAR)
		j->row.verdict = CMP_SMALL;
	else if (!j->row.calls[CMP_A])
		j->row.verdict = CMP_NEW;
	else if (!j->row.calls[CMP_B])
		j->row.verdict = CMP_GONE;
	else if (!large)
		j->row.verdict = CMP_SMALL;
	else
		j->row.verdict = !r->few && p <= CMP_LEVEL && fabs(j->row.own) >= CMP_FLOOR ? CMP_CHANGED : CMP_NOISE;
}

static void correct(const struct judging *g, const struct cmp_result *r, bool layers)
{
	size_t i, n = 0, k = 0;

	for (i = 0; i < g->n; i++)
		if (layers ? g->j[i].row.kind == CMP_LAYER && is_large(&g->j[i]) : is_judged(&g->j[i]))
			g->value[n++] = g->j[i].p;
	cmp_holm(g->value, n);
	for (i = 0; i < g->n; i++)
		if ((g->j[i].row.kind == CMP_LAYER) == layers)
			settle(&g->j[i], is_large(&g->j[i]) ? g->value[k++] : 1, r);
}

int judge_all(struct cmp_judged *j, size_t n, const struct cmp_sides *of, struct cmp_result *r)
{
	struct judging g = {.j = j, .n = n, .of = of};
	size_t i;

	g.value = calloc(n + 1, sizeof(*g.value));
	g.weight = calloc(n + 1, sizeof(*g.weight));
	if (g.value && g.weight) {
		for (i = 0; i < n; i++)
			if (j[i].share >= CMP_SHARE)
				judge(&g, &j[i], r->several);
		correct(&g, r, false);
		correct(&g, r, true);
		r->controls = gather(&g, NULL, delta_of, NULL);
		r->controls = r->controls >= CONTROLS_LEAST ? r->controls : 0;
		r->drift = exp(common(&g, NULL, delta_of, NULL)) - 1;
	}
	free(g.value);
	free(g.weight);
	return g.value && g.weight ? 0 : -ENOMEM;
}
