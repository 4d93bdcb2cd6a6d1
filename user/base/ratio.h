/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_RATIO_H
#define BASE_RATIO_H

/*
 * Sums over n samples of x and of its base t (iterations or time). The sum of x divided by the sum of t estimates how
 * much x there is for each t.
 */
struct ratio {
	double n, x, t, xx, xt, tt;
};

/* Returns half the 95 % confidence interval of the estimate, relative to it; 1: it is not known, or is larger. */
double ratio_error(const struct ratio *s);

#endif
