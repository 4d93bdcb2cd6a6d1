// SPDX-License-Identifier: Apache-2.0
/* Rows of recordings become tracks: a centre, segments and blocks. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/judge.h"

#define CUT	      1	     /* calls of so many iterations may be cut off by the window */
#define FAST	      0.05   /* percentile of the iterations */
#define OUTLIER	      10     /* deviations from the median */
#define NORMAL_MEDIAN 0.6745 /* of the distances from the median in a normal distribution */

/* Returns the logarithm of cmp_centre() of bins [from, to). */
static double level(const float *v, size_t from, size_t to, double eps, double *scratch)
{
	size_t i;

	for (i = from; v && i < to; i++)
		scratch[i - from] = v[i];
	return log((v ? cmp_centre(scratch, to - from) : 0) + eps);
}

static float clip(double v, double low, double high)
{
	return (float)(v < low ? low : v > high ? high : v);
}

/* Makes the logarithms of single bins, unless the row has nothing in many of them. */
static int make_log(struct cmp_track *t, const float *v, size_t n, double eps, double *scratch)
{
	double middle, width, mean = 0;
	size_t i, zeros = 0;

	for (i = 0; v && i < n; i++)
		zeros += v[i] <= 0;
	if (!v || !n || zeros > n / 10)
		return 0;
	t->log = calloc(n, sizeof(*t->log));
	if (!t->log)
		return -ENOMEM;
	t->n = n;
	for (i = 0; i < n; i++)
		scratch[i] = log(v[i] + eps);
	middle = cmp_median(scratch, n);
	for (i = 0; i < n; i++)
		scratch[i] = fabs(log(v[i] + eps) - middle);
	width = OUTLIER * cmp_median(scratch, n) / NORMAL_MEDIAN;
	for (i = 0; i < n; i++) {
		t->log[i] = clip(log(v[i] + eps), middle - width, middle + width);
		mean += t->log[i] / (double)n;
	}
	for (i = 0; i < n; i++)
		t->log[i] -= (float)mean;
	return 0;
}

static int track_make(struct cmp_track *t, const float *v, size_t n, double eps, double small)
{
	int err;

	double *scratch = calloc(n ? n : 1, sizeof(*scratch)), mean = 0;
	unsigned i;

	if (!scratch)
		return -ENOMEM;
	t->centre = level(v, 0, n, eps, scratch);
	t->fast = log(cmp_at(scratch, n, FAST) + small); /* level() has sorted them */
	if (n < CMP_SEGMENTS) {
		free(scratch);
		return 0;
	}
	for (i = 0; i < CMP_SEGMENTS; i++) {
		t->segment[i] = level(v, n * i / CMP_SEGMENTS, n * (i + 1) / CMP_SEGMENTS, eps, scratch);
		mean += t->segment[i] / CMP_SEGMENTS;
	}
	for (i = 0; i < CMP_SEGMENTS; i++)
		t->segment[i] -= mean;
	t->nblocks = n / 2 < CMP_BLOCKS ? (unsigned)(n / 2) : CMP_BLOCKS;
	for (i = 0; i < t->nblocks; i++)
		t->block[i] = level(v, n * i / t->nblocks, n * (i + 1) / t->nblocks, eps, scratch);
	err = make_log(t, v, n, eps, scratch);
	free(scratch);
	return err;
}

/* Adds a recording to the numbers of the row that outputs show. */
static int add_numbers(struct cmp_judged *j, enum cmp_which side, unsigned runs, const struct cmp_series *s,
		       const struct cmp_samples *x)
{
	double *v = calloc(x->n ? x->n : 1, sizeof(*v)), sum = 0, queued;
	struct cmp_row *row = &j->row;
	size_t i;

	if (!v)
		return -ENOMEM;
	for (i = 0; i < x->n; i++) {
		v[i] = s->value[i];
		sum += v[i];
	}
	sum *= x->n ? (double)x->count / (double)x->n : 0;
	if (sum > 0 && s->cost_ns / sum > j->cost)
		j->cost = s->cost_ns / sum;
	queued = s->runq_ns < sum / 2 ? log1p(s->runq_ns / (sum - s->runq_ns)) : s->runq_ns > 0 ? M_LN2 : 0;
	j->queued = queued > j->queued ? queued : j->queued;
	j->waits |= s->blocked_ns > sum / 2;
	row->waits = j->waits;
	row->value[side] += cmp_centre(v, x->n) / runs;
	row->p90[side] += cmp_at(v, x->n, 0.9) / runs;
	row->calls[side] += x->count ? (double)s->calls / (double)x->count / runs : 0;
	free(v);
	return 0;
}

/* Returns how often the row is called in each iteration of a side, or -1 if that differs or is not known. */
static double calls_each(const struct cmp_judged *j, const struct cmp_sides *of, unsigned side)
{
	const struct cmp_samples *x;
	const struct cmp_series *s;
	double each, before = -1;
	unsigned i;

	for (i = 0; i < of->n[side]; i++) {
		x = &of->run[side][i].x;
		s = cmp_series_find(x, j->row.key);
		if (!s || !x->iterations || x->count < CMP_LEAST)
			return -1;
		each = round((double)s->calls / (double)x->count);
		if (fabs((double)s->calls - each * (double)x->count) > CUT * (each + 1) || (i && each != before))
			return -1;
		before = each;
	}
	return before;
}

int judge_track(struct cmp_judged *j, const struct cmp_sides *of, double eps, double small)
{
	const struct cmp_series *s;
	double mean[CMP_SIDES] = {0}, fast[CMP_SIDES] = {0}, mine, others;
	unsigned side, i;
	int err = 0;

	for (side = 0; side < CMP_SIDES; side++) {
		j->track[side] = calloc(of->n[side], sizeof(*j->track[side]));
		j->tracks[side] = of->n[side];
		for (i = 0; i < of->n[side] && !err; i++) {
			s = cmp_series_find(&of->run[side][i].x, j->row.key);
			err = j->track[side] ? track_make(&j->track[side][i], s ? s->value : NULL, of->run[side][i].x.n,
							  eps, small)
					     : -ENOMEM;
			if (!err && s)
				err = add_numbers(j, (enum cmp_which)side, of->n[side], s, &of->run[side][i].x);
			mean[side] += err ? 0 : j->track[side][i].centre / of->n[side];
			fast[side] += err ? 0 : j->track[side][i].fast / of->n[side];
		}
	}
	mine = calls_each(j, of, CMP_A);
	others = calls_each(j, of, CMP_B);
	j->row.recalled =
		j->row.kind >= CMP_OPERATOR && j->row.kind <= CMP_KERNEL && mine >= 1 && others >= 1 && mine != others;
	j->delta = mean[CMP_B] - mean[CMP_A];
	j->fast = fast[CMP_B] - fast[CMP_A];
	j->row.change = j->row.value[CMP_A] > 0 ? j->row.value[CMP_B] / j->row.value[CMP_A] - 1 : 0;
	return err;
}

void judge_fini(struct cmp_judged *j)
{
	unsigned side, i;

	for (side = 0; side < CMP_SIDES; side++) {
		for (i = 0; j->track[side] && i < j->tracks[side]; i++)
			free(j->track[side][i].log);
		free(j->track[side]);
	}
}
