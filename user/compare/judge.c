// SPDX-License-Identifier: Apache-2.0
/*
 * Decides which changes are certain. Three things must agree. The blocks of both sides differ by rank. The change is
 * larger than the noise of the row within a recording and between recordings of a side, widened by how much other
 * operators differ between the sides. And it is at least CMP_FLOOR. Before this, the state of the machine is subtracted
 * from each row as far as the row follows it (follow.c).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/judge.h"

#define CONTROL_WEIGHT 0.3 /* largest weight of one operator in the difference of the machine */
#define LIMIT_PASSES   20
#define CONTROLS_LEAST 3    /* operators needed to compute the difference of the machine, without those set aside */
#define CONTROLS_KNOWN 5    /* operators needed to compute it, with those set aside */
#define FOLLOWS	       0.3  /* least slope of an operator that is used for this */
#define UNKNOWN	       0.2  /* deviation of the difference of the machine if operators do not show it */
#define FAST_FACTOR    2    /* if contended, a change is at most so many times that of the fastest iterations */
#define CONTENDED      0.02 /* contended: something else took this share of the job's CPU time */
#define OTHERS	       0.1  /* or other processes took this share of the machine's CPU time */
#define ALIKE_SHARE    0.7  /* share of the operators; if so many changed by about as much, all changed alike */
#define QUEUED	       0.5  /* deviation of waiting for a CPU in JSON results, as a share of it */
#define USUAL	       0.1  /* usual difference of the machine: times the error of a slope, it is an error of a value */
/*
 * Recordings of one job differ from each other by more than a row varies within them, because each process has other
 * addresses and the machine another state. On a busy machine with two CPUs, this factor was measured as 1.8. Other
 * operators show the factor in each comparison.
 */
#define APART	      1.8
#define APART_WEIGHT  4	    /* weight of APART, as a number of operators */
#define APART_AT      0.7   /* percentile of the operators' distances that is compared */
#define APART_OF      1.04  /* with this percentile in a normal distribution */
#define SCATTER_SHARE 0.25  /* share of the deviation of single bins that more bins do not reduce */
#define NOISE_LEAST   0.003 /* least deviation of a row from recording to recording */
#define FREEDOM	      30    /* degrees of freedom of the deviation within recordings */
#define COST_ERROR    0.1   /* relative error of the cost of watching, which is subtracted by estimates */
#define COST_MOST     1	    /* limit of a row's cost, relative to what is left of the row */
#define NOISE_MOST    1000  /* limit, as a share; a larger noise says no more */
#define REGULAR	      0.1   /* small rows with fewer calls in an iteration are on one side by chance */
#define PASSES	      6	    /* passes; in each, an operator with a certain change is set aside */

struct judging {
	struct cmp_judged *j;
	size_t n;
	const struct cmp_sides *of;
	const struct cmp_result *r;
	bool in_turn;		/* the recordings of both sides were made in turn */
	bool known;		/* enough operators show how the machine differs between the sides */
	bool contended;		/* something else took CPU time from the job */
	double apart;		/* factor between the operators' distances and their deviations */
	double *value, *weight; /* scratch, n each */
};

/* A value of a row: its change, or how a part of a recording differs from the rest of it. */
enum what { DELTA, FAST, SEGMENT, BLOCK, RUN };
struct place {
	enum what what;
	unsigned side, run, part;
};

static double mean_of(const struct cmp_judged *j, unsigned side)
{
	double sum = 0;
	unsigned i;

	for (i = 0; i < j->tracks[side]; i++)
		sum += j->track[side][i].centre;
	return sum / j->tracks[side];
}

static double value_at(const struct cmp_judged *j, const struct place *at)
{
	const struct cmp_track *t = &j->track[at->side][at->run];

	switch (at->what) {
	case DELTA:
		return j->delta;
	case FAST:
		return j->fast;
	case SEGMENT:
		return t->segment[at->part];
	case BLOCK:
		return t->block[at->part] - t->centre;
	case RUN:
		return t->centre - mean_of(j, at->side);
	}
	return 0;
}

/* Limits each weight to CONTROL_WEIGHT of their sum. */
static void limit(double *weight, unsigned n)
{
	double all;
	unsigned i, pass;

	for (pass = 0; pass < LIMIT_PASSES; pass++) {
		for (all = i = 0; i < n; i++)
			all += weight[i];
		for (i = 0; i < n; i++)
			weight[i] = weight[i] < CONTROL_WEIGHT * all ? weight[i] : CONTROL_WEIGHT * all;
	}
}

static bool tells(const struct cmp_judged *j)
{
	return judge_is_control(j) && j->follow >= FOLLOWS;
}

/*
 * Collects the values of the operators that show the state of the machine, except `but`: each value is divided by the
 * operator's slope. Returns their number. range: the smallest and the largest value before the division.
 */
static unsigned gather(const struct judging *g, const struct cmp_judged *but, const struct place *at, double range[2])
{
	const struct cmp_judged *j;
	double wrong, v;
	unsigned n = 0;

	for (j = g->j; j < g->j + g->n; j++) {
		if (j == but || j->set_aside || !tells(j))
			continue;
		v = value_at(j, at);
		range[0] = n && range[0] < v ? range[0] : v;
		range[1] = n && range[1] > v ? range[1] : v;
		wrong = j->error * USUAL;
		g->value[n] = v / j->follow;
		g->weight[n++] = j->follow * j->follow / (j->jitter * j->jitter + wrong * wrong);
	}
	limit(g->weight, n);
	return n;
}

/*
 * Computes how much the machine differs in a value, limited to the range of the operators' own values. Returns false,
 * and 0, if there are too few operators, because these may have changed themselves.
 */
static bool find_machine(const struct judging *g, const struct cmp_judged *but, const struct place *at, double *differs)
{
	double range[2] = {0};
	const unsigned n = gather(g, but, at, range);

	*differs = 0;
	if (!g->known || n < CONTROLS_LEAST)
		return false;
	*differs = cmp_weighted(g->value, g->weight, n, 0.5);
	*differs = *differs < range[0] ? range[0] : *differs > range[1] ? range[1] : *differs;
	return true;
}

static double machine(const struct judging *g, const struct cmp_judged *but, const struct place *at)
{
	double differs;

	find_machine(g, but, at, &differs);
	return differs;
}

/*
 * Returns the slope that is used for a row. With several recordings of each side, their iterations show the noise, so
 * nothing is subtracted from iterations.
 */
static double follow_of(const struct judging *g, const struct cmp_judged *j)
{
	return g->r->several && j->row.kind == CMP_ITERATION ? 0 : j->follow;
}

/* Returns a value of a row minus what it has in common with the machine. */
static double rest_at(const struct judging *g, const struct cmp_judged *j, const struct place *at)
{
	const double follow = follow_of(g, j);

	return value_at(j, at) - (follow > 0 ? follow * machine(g, j, at) : 0);
}

/* Returns the variance of a recording's value, from how much the row varies within the recordings. */
static double within(const struct judging *g, const struct cmp_judged *j)
{
	const double scatter = j->scatter * SCATTER_SHARE;
	struct place at = {.what = SEGMENT};
	double sum = 0, v;
	unsigned df = 0;

	for (at.side = 0; at.side < CMP_SIDES; at.side++)
		for (at.run = 0; at.run < g->of->n[at.side]; at.run++, df += CMP_SEGMENTS - 1)
			for (at.part = 0; at.part < CMP_SEGMENTS; at.part++) {
				v = rest_at(g, j, &at);
				sum += v * v;
			}
	return ((sum / df + scatter * scatter) / 2 + NOISE_LEAST * NOISE_LEAST) / 2;
}

/*
 * Returns the variance between the recordings of a side, and its degrees of freedom in *df. 0: neither side has
 * several.
 */
static double between(const struct judging *g, const struct cmp_judged *j, double *df)
{
	struct place at = {.what = RUN};
	double sum = 0, v;

	*df = 0;
	for (at.side = 0; at.side < CMP_SIDES; at.side++) {
		for (at.run = 0; at.run < g->of->n[at.side]; at.run++) {
			v = rest_at(g, j, &at);
			sum += v * v;
		}
		*df += g->of->n[at.side] - 1;
	}
	return *df > 0 ? sum / *df : 0;
}

/* Returns whether the sides were recorded in turn, so that each recording has one of the other side near it. */
static bool in_turn(const struct cmp_sides *of)
{
	const struct mdl_session *a, *b;
	uint64_t end = 0;
	unsigned i;

	for (i = 0; i < of->n[CMP_A] && of->n[CMP_A] == of->n[CMP_B]; i++) {
		a = of->run[CMP_A][i].s;
		b = of->run[CMP_B][i].s;
		if (!a->start_unix_ns || !b->start_unix_ns || a->start_unix_ns < end || b->start_unix_ns < end)
			return false;
		end = (a->start_unix_ns > b->start_unix_ns ? a : b)->start_unix_ns;
	}
	return i > 1;
}

/*
 * Returns the variance as between() does, for recordings in turn. What the machine did to both recordings of a pair
 * cancels out.
 */
static double between_pairs(const struct judging *g, const struct cmp_judged *j, double *df)
{
	struct place at = {.what = RUN};
	double sum = 0, v;

	*df = g->of->n[CMP_A] - 1;
	for (at.run = 0; at.run < g->of->n[CMP_A]; at.run++) {
		at.side = CMP_A;
		v = rest_at(g, j, &at);
		at.side = CMP_B;
		v -= rest_at(g, j, &at);
		sum += v * v;
	}
	return sum / *df / 2;
}

/* Compares the blocks of both sides by a rank test. Returns the p value. */
static double ranks(const struct judging *g, const struct cmp_judged *j)
{
	const size_t most = (size_t)(g->of->n[CMP_A] + g->of->n[CMP_B]) * CMP_BLOCKS;
	double *v[CMP_SIDES] = {calloc(most, sizeof(double)), calloc(most, sizeof(double))}, p = 1;
	size_t n[CMP_SIDES] = {0};
	struct place at = {.what = BLOCK}, run;

	for (at.side = 0; at.side < CMP_SIDES && v[CMP_A] && v[CMP_B]; at.side++)
		for (at.run = 0; at.run < g->of->n[at.side]; at.run++) {
			run = (struct place){RUN, at.side, at.run, 0};
			for (at.part = 0; at.part < j->track[at.side][at.run].nblocks; at.part++)
				v[at.side][n[at.side]++] =
					rest_at(g, j, &at) + rest_at(g, j, &run) + (at.side == CMP_B ? j->sure : 0);
		}
	if (v[CMP_A] && v[CMP_B])
		p = cmp_rank_test(v[CMP_A], n[CMP_A], v[CMP_B], n[CMP_B]);
	free(v[CMP_A]);
	free(v[CMP_B]);
	return p;
}

/* Returns the value nearer to 0, or 0 if the signs differ. */
static double least(double a, double b)
{
	return (a > 0) != (b > 0) ? 0 : fabs(a) < fabs(b) ? a : b;
}

/*
 * Returns the change of a row minus what it has in common with the machine. The slope of an iteration is not known
 * well, so the change must also remain if the slope is 1.
 */
static double own_at(const struct judging *g, const struct cmp_judged *j, enum what what)
{
	const struct place at = {.what = what};
	double own = rest_at(g, j, &at);

	if (j->row.kind == CMP_ITERATION && follow_of(g, j) > 0)
		own = least(own, value_at(j, &at) - machine(g, j, &at));
	return j->guessed ? least(own, value_at(j, &at)) : own;
}

/*
 * Returns the part of a change that can be a change of the job. On a contended machine other work delays some
 * iterations, even most of them, but a change of the job is in the fastest ones as well.
 */
static double sure_of(const struct judging *g, double change, double fast)
{
	return g->contended ? least(change, FAST_FACTOR * fast) : change;
}

static bool is_outside(const struct cmp_judged *j)
{
	return j->row.kind == CMP_PART && !strcmp(j->row.name, CMP_OUTSIDE);
}

/*
 * Returns how much waiting for a CPU adds to a row's time in JSON results, whose times all include it, as a logarithm.
 */
static double queued(const struct judging *g, const struct cmp_judged *j)
{
	double sum = 0, all = 0, ns;
	const struct cmp_judged *k;

	if (j->row.kind == CMP_OPERATOR || j->row.kind == CMP_MEMORY)
		return j->queued;
	for (k = g->j; k < g->j + g->n; k++) {
		ns = k->row.kind == CMP_OPERATOR ? k->row.value[CMP_A] + k->row.value[CMP_B] : 0;
		sum += ns * k->queued;
		all += ns;
	}
	return all > 0 ? sum / all : 0;
}

/*
 * Returns the error that comes from unknown waiting for a CPU, as a logarithm. Waiting is known only in calls. The time
 * between calls is assumed to differ by as much between the sides, and an iteration in proportion to such time.
 */
static double unseen(const struct judging *g, const struct cmp_judged *j)
{
	double all[CMP_SIDES] = {0}, waits[CMP_SIDES] = {0}, between = 0;
	const struct cmp_judged *k;
	unsigned side;

	if (g->r->sums)
		return QUEUED * queued(g, j);
	if (j->row.kind != CMP_ITERATION && !is_outside(j))
		return 0;
	for (k = g->j; k < g->j + g->n; k++)
		for (side = 0; side < CMP_SIDES; side++) {
			all[side] += k->row.kind == CMP_ITERATION ? k->row.value[side] : 0;
			waits[side] += k->row.kind == CMP_RUNQ ? k->row.value[side] : 0;
			between += is_outside(k) ? k->row.value[side] : 0;
		}
	if (!(all[CMP_A] > 0 && all[CMP_B] > 0))
		return 0;
	return (is_outside(j) ? 1 : between / (all[CMP_A] + all[CMP_B])) *
	       fabs(log(1 + waits[CMP_B] / all[CMP_B]) - log(1 + waits[CMP_A] / all[CMP_A]));
}

/* Computes the change of a row, its deviation within the recordings, and its error from what is not known. */
static void measure(const struct judging *g, struct cmp_judged *j)
{
	const double each = 1. / g->of->n[CMP_A] + 1. / g->of->n[CMP_B];
	const struct place at = {.what = DELTA};
	double differs;

	j->own = own_at(g, j, DELTA);
	j->sure = j->row.kind == CMP_KERNEL ? j->own : sure_of(g, j->own, own_at(g, j, FAST));
	if (find_machine(g, j, &at, &differs))
		j->wrong = follow_of(g, j) > 0 ? j->error * differs : 0;
	else
		j->wrong = g->r->several ? 0 : follow_of(g, j) * UNKNOWN;
	j->deviation = sqrt(within(g, j) * each);
}

/* Computes the factor between the operators' changes and their deviations. */
static void measure_apart(struct judging *g)
{
	const struct cmp_judged *j;
	double at = APART;
	unsigned n = 0;

	for (j = g->j; j < g->j + g->n; j++)
		if (judge_is_control(j) && !j->set_aside) {
			g->value[n] = fabs(j->own) / sqrt(j->deviation * j->deviation + j->wrong * j->wrong);
			g->weight[n++] = 1;
		}
	if (g->known && n >= CONTROLS_LEAST)
		at = cmp_weighted(g->value, g->weight, n, APART_AT) / APART_OF;
	g->apart = sqrt((APART_WEIGHT * APART * APART + n * at * at) / (APART_WEIGHT + n));
}

/* Sets the deviation of the change and its degrees of freedom, from the recordings of each side. */
static void measure_runs(const struct judging *g, struct cmp_judged *j)
{
	const double each = 1. / g->of->n[CMP_A] + 1. / g->of->n[CMP_B];
	const double apart = j->row.kind == CMP_MEMORY ? 1 : g->apart;
	const double cost = j->cost * COST_ERROR, waited = unseen(g, j);
	const double expected = apart * apart * j->deviation * j->deviation / each;
	const bool alone = g->r->sums || !(follow_of(g, j) > 0);
	double df, variance = g->in_turn && !alone ? between_pairs(g, j, &df) : between(g, j, &df);

	if (alone && df > 0) {
		j->df = df;
		variance = variance > expected ? variance : expected;
	} else {
		j->df = FREEDOM + df;
		variance = (FREEDOM * expected + df * variance) / j->df;
	}
	j->deviation = sqrt(variance * each + j->wrong * j->wrong + waited * waited + cost * cost);
}

/* Returns the least change that counts. Bytes are counted and not measured, so theirs is lower. */
static double floor_of(const struct cmp_judged *j)
{
	return j->row.kind == CMP_MEMORY ? CMP_FLOOR_BYTES : CMP_FLOOR;
}

static void test(const struct judging *g, struct cmp_judged *j)
{
	const double p = cmp_student(j->sure / j->deviation, j->df), by_rank = g->r->sums ? 0 : ranks(g, j);
	const double noise = exp(cmp_student_limit(CMP_LEVEL, j->df) * j->deviation) - 1;

	j->p = p > by_rank ? p : by_rank;
	j->row.noise = noise < floor_of(j) ? floor_of(j) : noise < NOISE_MOST ? noise : NOISE_MOST;
	if (g->r->sums && g->r->few)
		j->row.noise = INFINITY;
	j->row.own = exp(j->own) - 1;
}

/*
 * Returns true if a row is large enough to be judged. Waiting for a CPU shows other work of the machine, and a row that
 * costs more to watch than it takes shows little.
 */
static bool is_large(const struct cmp_judged *j)
{
	return j->share >= CMP_SHARE && j->row.kind != CMP_RUNQ && j->cost < COST_MOST;
}

static bool is_judged(const struct cmp_judged *j)
{
	return is_large(j) && j->row.kind != CMP_LAYER;
}

/* Sets the verdict of a row. Layers are parts of rows that are judged, so p is corrected among layers alone. */
static void judge_settle(struct cmp_judged *j, double p, const struct cmp_result *r)
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
		j->row.verdict =
			!r->few && p <= CMP_LEVEL && fabs(exp(j->sure) - 1) >= floor_of(j) ? CMP_CHANGED : CMP_NOISE;
	if (j->row.verdict == CMP_CHANGED)
		j->row.own = exp(j->sure) - 1;
}

static void correct(const struct judging *g, bool layers)
{
	size_t i, n = 0, k = 0;

	for (i = 0; i < g->n; i++)
		if (layers ? g->j[i].row.kind == CMP_LAYER && is_large(&g->j[i]) : is_judged(&g->j[i]))
			g->value[n++] = g->j[i].p;
	cmp_holm(g->value, n);
	for (i = 0; i < g->n; i++)
		if ((g->j[i].row.kind == CMP_LAYER) == layers)
			judge_settle(&g->j[i], is_large(&g->j[i]) ? g->value[k++] : 1, g->r);
}

/*
 * Returns the operator with the largest certain change, in deviations, that is still used for the state of the machine.
 * NULL: none.
 */
static struct cmp_judged *most_changed(const struct judging *g)
{
	struct cmp_judged *most = NULL, *j;

	for (j = g->j; j < g->j + g->n; j++)
		if (j->row.verdict == CMP_CHANGED && !j->set_aside && judge_is_control(j) &&
		    (!most || fabs(j->sure) / j->deviation > fabs(most->sure) / most->deviation))
			most = j;
	return most;
}

static void judge_judge(struct judging *g)
{
	struct cmp_judged *j;

	for (j = g->j; j < g->j + g->n; j++)
		if (j->share >= CMP_SHARE)
			measure(g, j);
	measure_apart(g);
	for (j = g->j; j < g->j + g->n; j++)
		if (j->share >= CMP_SHARE) {
			measure_runs(g, j);
			test(g, j);
		}
	correct(g, false);
	correct(g, true);
}

/* Returns whether other processes or the hypervisor took so much CPU time that iterations waited for it. */
static bool is_contended(const struct judging *g)
{
	double all[CMP_SIDES] = {0}, waits[CMP_SIDES] = {0};
	const struct cmp_judged *j;
	const struct facts *f;
	unsigned side, i;

	for (j = g->j; j < g->j + g->n; j++)
		for (side = 0; side < CMP_SIDES; side++) {
			all[side] += j->row.kind == CMP_ITERATION ? j->row.value[side] : 0;
			waits[side] += j->row.kind == CMP_RUNQ ? j->row.value[side] : 0;
		}
	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < g->of->n[side]; i++) {
			f = &g->of->run[side][i].found.facts;
			if (waits[side] > CONTENDED * all[side] || f->stolen > CONTENDED || f->throttled > CONTENDED ||
			    (double)f->others_cpu_ns > OTHERS * (double)f->cpu_elapsed_ns * f->cpus)
				return true;
		}
	return false;
}

static bool judge_is_known(const struct judging *g)
{
	const struct cmp_judged *j;
	unsigned n = 0;

	for (j = g->j; j < g->j + g->n; j++)
		n += tells(j);
	return n >= CONTROLS_KNOWN;
}

/* Returns true if most operators changed by half to twice of what they have in common. */
static bool is_alike(const struct judging *g, double common)
{
	const struct cmp_judged *j;
	unsigned n = 0, alike = 0;

	for (j = g->j; j < g->j + g->n; j++) {
		if (j->set_aside || !tells(j))
			continue;
		n++;
		alike += j->delta / common >= 0.5 && j->delta / common <= 2;
	}
	return alike > ALIKE_SHARE * n;
}

/*
 * Judges all rows. To the other operators, a change of one operator looks like another state of the machine. So it is
 * set aside, and all rows are judged anew.
 */
int judge_all(struct cmp_judged *j, size_t n, const struct cmp_sides *of, struct cmp_result *r)
{
	struct judging g = {.j = j, .n = n, .of = of, .r = r, .in_turn = in_turn(of)};
	const struct place at = {.what = DELTA}, fast = {.what = FAST};
	struct cmp_judged *most = NULL;
	int err = judge_follow(j, n, of);
	double range[2], differs;
	unsigned pass;

	g.value = calloc(n + 1, sizeof(*g.value));
	g.weight = calloc(n + 1, sizeof(*g.weight));
	err = g.value && g.weight ? err : -ENOMEM;
	g.known = !err && judge_is_known(&g);
	g.contended = !err && is_contended(&g);
	for (pass = 0; pass < PASSES && !err && (!pass || most); pass++) {
		judge_judge(&g);
		most = most_changed(&g);
		if (most)
			most->set_aside = true;
	}
	if (!err) {
		r->controls = find_machine(&g, NULL, &at, &differs) ? gather(&g, NULL, &at, range) : 0;
		r->drift = r->controls ? exp(differs) - 1 : NAN;
		r->alike = r->controls && is_alike(&g, differs);
		r->delayed = fabs(sure_of(&g, differs, machine(&g, NULL, &fast))) < fabs(differs);
	}
	free(g.value);
	free(g.weight);
	return err;
}
