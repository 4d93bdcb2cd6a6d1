// SPDX-License-Identifier: Apache-2.0
/*
 * Computes how much rows follow the state of the machine. Other jobs take caches and memory away, and all operators get
 * slower, but not alike: while one takes 1 % longer, a small one that finds its data in no cache takes 6 % longer. The
 * state is the mean of all operators. The slope of a row is how much its time changes with the state, from iteration to
 * iteration within the recordings. So a change between recordings is not in the slope.
 *
 * A slope against the state of the same iteration would be too small, because that state has noise of its own. The
 * iterations around it have the same state of the machine with other noise, so the slope is a quotient of two
 * covariances with their state ("instrumental variable").
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "compare/judge.h"

#define AROUND	    5	/* iterations before and after, whose state is used */
#define WEIGHT_MOST 0.5 /* largest weight of one operator in the state */
#define STRONG	    5	/* least covariance of the state with that around it, in deviations, to know slopes */
#define PRIOR	    1	/* assumed deviation of slopes from 1, for rows that tell little of their own */
#define MOST	    8	/* largest slope */

/* The state of the machine in a recording. */
struct state {
	double *now, *around;
	size_t n;
};

bool judge_is_control(const struct cmp_judged *j)
{
	return j->row.kind == CMP_OPERATOR && !j->waits && j->share >= CMP_CONTROL_SHARE && j->cost < 1 &&
	       j->jitter > 0 && j->row.calls[CMP_A] > 0 && j->row.calls[CMP_B] > 0;
}

/*
 * Returns the standard deviation of a row's bins in all recordings, or 0 if a recording has too few bins with the row.
 */
static double jitter_of(const struct cmp_judged *j)
{
	const struct cmp_track *t;
	double sum = 0;
	size_t i, n = 0;
	unsigned side, k;

	for (side = 0; side < CMP_SIDES; side++)
		for (k = 0; k < j->tracks[side]; k++) {
			t = &j->track[side][k];
			for (i = 0; i < t->n; i++)
				sum += (double)t->log[i] * t->log[i];
			n += t->n;
			if (!t->log)
				return 0;
		}
	return n ? sqrt(sum / (double)n) : 0;
}

/* Adds an operator to the state of a recording. */
static void add_to(struct state *s, const struct cmp_track *t, double weight)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		s->now[i] += weight * t->log[i];
}

static void look_around(struct state *s)
{
	size_t i, k, n;

	for (i = 0; i < s->n; i++) {
		n = 0;
		for (k = i > AROUND ? i - AROUND : 0; k <= i + AROUND && k < s->n; k++) {
			s->around[i] += k == i ? 0 : s->now[k];
			n += k != i;
		}
		s->around[i] /= n ? (double)n : 1;
	}
}

struct sums {
	double with, now, around, noise; /* row * around, now * around, around^2, (row - slope * now)^2 */
	double n;
};

static void follow_add_up(struct sums *sum, const struct state *s, const float *row, double slope)
{
	double v;
	size_t i;

	for (i = 0; i < s->n; i++) {
		v = row ? row[i] : s->now[i];
		sum->with += v * s->around[i];
		sum->now += s->now[i] * s->around[i];
		sum->around += s->around[i] * s->around[i];
		v -= slope * s->now[i];
		sum->noise += v * v;
		sum->n++;
	}
}

/* Adds up the products of all recordings. j: NULL for the state itself. */
static struct sums sums_of(const struct state *s, const struct cmp_judged *j, const struct cmp_sides *of, double slope)
{
	struct sums sum = {0};
	unsigned side, i;

	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < of->n[side]; i++, s++)
			follow_add_up(&sum, s, j ? j->track[side][i].log : NULL, slope);
	return sum;
}

/* Sets the slope of a row. strong: slopes are known; otherwise the slope is 1, or 0 for rows of memory and kernels. */
static void set_slope(const struct state *s, struct cmp_judged *j, const struct cmp_sides *of, bool strong)
{
	struct sums sum;
	double known;

	j->follow = j->row.kind == CMP_MEMORY || j->row.kind == CMP_KERNEL ? 0 : 1;
	j->error = 0;
	j->scatter = j->jitter;
	j->guessed = j->follow > 0 && (j->waits || (j->row.kind != CMP_OPERATOR && j->row.kind != CMP_LAYER));
	if (j->follow > 0 && strong && j->jitter > 0) {
		sum = sums_of(s, j, of, 0);
		j->follow = sum.with / sum.now;
		sum = sums_of(s, j, of, j->follow);
		j->error = sqrt(sum.noise / sum.n * sum.around) / sum.now;
		j->scatter = sqrt(sum.noise / sum.n);
		known = PRIOR * PRIOR / (PRIOR * PRIOR + j->error * j->error);
		j->follow = 1 + known * (j->follow - 1);
		j->follow = j->follow < 0 ? 0 : j->follow > MOST ? MOST : j->follow;
		j->error *= sqrt(known);
	}
}

static int make_states(struct state *s, struct cmp_judged *j, size_t n, const struct cmp_sides *of)
{
	double all = 0, weight;
	unsigned side, i;
	size_t k;

	for (k = 0; k < n; k++) {
		j[k].jitter = jitter_of(&j[k]);
		all += judge_is_control(&j[k]) ? 1 / (j[k].jitter * j[k].jitter) : 0;
	}
	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < of->n[side]; i++, s++) {
			s->n = of->run[side][i].x.n;
			s->now = calloc(s->n + 1, sizeof(*s->now));
			s->around = calloc(s->n + 1, sizeof(*s->around));
			if (!s->now || !s->around)
				return -ENOMEM;
			for (k = 0; k < n; k++) {
				weight = 1 / (j[k].jitter * j[k].jitter) / all;
				if (judge_is_control(&j[k]))
					add_to(s, &j[k].track[side][i], weight < WEIGHT_MOST ? weight : WEIGHT_MOST);
			}
			look_around(s);
		}
	return 0;
}

int judge_follow(struct cmp_judged *j, size_t n, const struct cmp_sides *of)
{
	const unsigned runs = of->n[CMP_A] + of->n[CMP_B];
	struct state *s = calloc(runs, sizeof(*s));
	int err = s ? make_states(s, j, n, of) : -ENOMEM;
	struct sums sum;
	unsigned i;
	bool strong;
	size_t k;

	if (!err) {
		sum = sums_of(s, NULL, of, 0);
		strong = sum.now > 0 && sum.now > STRONG * sqrt(sum.noise / sum.n * sum.around);
		for (k = 0; k < n; k++)
			set_slope(s, &j[k], of, strong);
	}
	for (i = 0; s && i < runs; i++) {
		free(s[i].now);
		free(s[i].around);
	}
	free(s);
	return err;
}
