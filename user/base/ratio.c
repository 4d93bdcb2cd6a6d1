// SPDX-License-Identifier: Apache-2.0
#include "base/ratio.h"

#include <math.h>

/*
 * The variance of the estimate r is that of x - r t over the samples, divided by the sum of t. The confidence interval
 * is 1.96 times its root on both sides.
 */
double ratio_error(const struct ratio *s)
{
	double r, rest, error;

	if (s->n < 2 || s->x <= 0 || s->t <= 0)
		return 1;
	r = s->x / s->t;
	rest = s->xx - 2 * r * s->xt + r * r * s->tt;
	error = 1.96 * sqrt((rest > 0 ? rest : 0) * s->n / (s->n - 1)) / s->x;
	return error < 1 ? error : 1;
}
