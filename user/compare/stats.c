// SPDX-License-Identifier: Apache-2.0
#include "compare/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int by_value(const void *va, const void *vb)
{
	const double *a = va, *b = vb;

	return *a < *b ? -1 : *a > *b;
}

double cmp_at(const double *sorted, size_t n, double fraction)
{
	const double at = fraction * (double)(n - 1);
	const size_t i = (size_t)at;

	if (!n)
		return 0;
	return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

double cmp_median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n ? cmp_at(v, n, 0.5) : 0;
}

static double mean(const double *v, size_t from, size_t to)
{
	double sum = 0;
	size_t i;

	for (i = from; i < to; i++)
		sum += v[i];
	return to > from ? sum / (double)(to - from) : 0;
}

double cmp_centre(double *v, size_t n)
{
	const size_t from = n / 10, to = n - n * 4 / 10;

	qsort(v, n, sizeof(*v), by_value);
	if (!n)
		return 0;
	return cmp_at(v, n, 0.2) > 0 ? mean(v, from, to) : mean(v, 0, n);
}

struct weighted {
	double value, weight;
};

double cmp_weighted(const double *v, const double *weight, size_t n, double fraction)
{
	struct weighted *w = calloc(n ? n : 1, sizeof(*w));
	double all = 0, sum = 0, at = 0;
	size_t i;

	for (i = 0; w && i < n; i++) {
		w[i] = (struct weighted){v[i], weight[i]};
		all += weight[i];
	}
	if (w)
		qsort(w, n, sizeof(*w), by_value); /* the value comes first */
	for (i = 0; w && i < n; i++) {
		sum += w[i].weight;
		if (sum < all * fraction)
			continue;
		at = sum > all * fraction || i + 1 == n ? w[i].value : (w[i].value + w[i + 1].value) / 2;
		break;
	}
	free(w);
	return at;
}

/* ---- ranks */

struct ranked {
	double value;
	bool of_b;
};

double cmp_rank_test(const double *a, size_t na, const double *b, size_t nb)
{
	const size_t n = na + nb;
	struct ranked *r = calloc(n ? n : 1, sizeof(*r));
	double sum = 0, ties = 0, variance, rest, t;
	size_t i, end;

	if (!r || !na || !nb) {
		free(r);
		return 1;
	}
	for (i = 0; i < n; i++)
		r[i] = (struct ranked){i < na ? a[i] : b[i - na], i >= na};
	qsort(r, n, sizeof(*r), by_value);
	for (i = 0; i < n; i = end) {
		for (end = i; end < n && r[end].value == r[i].value;)
			end++;
		t = (double)(end - i);
		ties += t * t * t - t;
		for (size_t k = i; k < end; k++)
			sum += r[k].of_b ? (double)(i + end + 1) / 2 : 0;
	}
	free(r);
	variance = (double)na * (double)nb / 12 * ((double)n + 1 - ties / ((double)n * ((double)n - 1)));
	rest = fabs(sum - (double)nb * ((double)n + 1) / 2) - 0.5;
	return variance > 0 && rest > 0 ? erfc(rest / sqrt(variance) / M_SQRT2) : 1;
}

/* ---- Student's t, by the continued fraction of the incomplete beta function */

#define FRACTIONS 300
#define TINY	  1e-300

static double continued(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), h, step, m;
	int i, odd;

	d = 1 / (fabs(d) < TINY ? TINY : d);
	h = d;
	for (i = 1; i < FRACTIONS; i++) {
		m = i;
		for (odd = 0; odd < 2; odd++) {
			step = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
				   : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
			d = 1 + step * d;
			c = 1 + step / c;
			d = 1 / (fabs(d) < TINY ? TINY : d);
			c = fabs(c) < TINY ? TINY : c;
			h *= d * c;
		}
		if (fabs(d * c - 1) < 1e-12)
			break;
	}
	return h;
}

static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x >= 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x));
	if (x < (a + 1) / (a + b + 2))
		return front * continued(a, b, x) / a;
	return 1 - front * continued(b, a, 1 - x) / b;
}

double cmp_student(double t, double df)
{
	if (!(df > 0) || isnan(t))
		return 1;
	return isinf(t) ? 0 : incomplete_beta(df / 2, 0.5, df / (df + t * t));
}

double cmp_student_limit(double p, double df)
{
	double low = 0, high = 1e4, middle;
	int i;

	for (i = 0; i < 60; i++) {
		middle = (low + high) / 2;
		if (cmp_student(middle, df) > p)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* ---- many tests */

void cmp_holm(double *p, size_t n)
{
	struct weighted *order = calloc(n ? n : 1, sizeof(*order)); /* value: p, weight: its place */
	double most = 0, level;
	size_t i;

	for (i = 0; order && i < n; i++)
		order[i] = (struct weighted){p[i], (double)i};
	if (order)
		qsort(order, n, sizeof(*order), by_value);
	for (i = 0; i < n; i++) {
		if (!order) { /* without memory nothing is certain */
			p[i] = 1;
			continue;
		}
		level = order[i].value * (double)(n - i);
		most = level > most ? level : most;
		p[(size_t)order[i].weight] = most > 1 ? 1 : most;
	}
	free(order);
}
