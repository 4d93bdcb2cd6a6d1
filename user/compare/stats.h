/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a comparison. All functions are pure. */
#ifndef COMPARE_STATS_H
#define COMPARE_STATS_H

#include <stddef.h>

#define CMP_LEAST    16 /* iterations of a recording below which their number is too small to judge */
#define CMP_SEGMENTS 8	/* segments of a recording, which show how much its speed varies */
#define CMP_BLOCKS   24 /* blocks of a recording, for the rank test */

/* Returns the median, or 0 of no values. Sorts the values. */
double cmp_median(double *v, size_t n);
/* Returns a percentile of sorted values: fraction 0.5 for the median. */
double cmp_at(const double *sorted, size_t n, double fraction);
/*
 * Returns a typical value without iterations that a busy machine made longer: the mean between the percentiles 10 and
 * 60. If most values are 0, returns the mean of all. Sorts the values.
 */
double cmp_centre(double *v, size_t n);
/* Returns a percentile of values with weights: fraction 0.5 for the median. 0 if there are none. */
double cmp_weighted(const double *v, const double *weight, size_t n, double fraction);
/* Returns the two-sided p value of Mann and Whitney's rank test, by the normal approximation with ties. */
double cmp_rank_test(const double *a, size_t na, const double *b, size_t nb);
/* Returns the two-sided p value of Student's t with df degrees of freedom. */
double cmp_student(double t, double df);
/* Returns |t| beyond which the two-sided p value is below p. */
double cmp_student_limit(double p, double df);
/* Holm's correction for n tests: p becomes the smallest level at which each is still significant. */
void cmp_holm(double *p, size_t n);

#endif
