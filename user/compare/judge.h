/* SPDX-License-Identifier: Apache-2.0 */
/* A row of both sides while it is judged. Times are logarithms, so that differences are shares. */
#ifndef COMPARE_JUDGE_H
#define COMPARE_JUDGE_H

#include "compare/compare.h"
#include "compare/stats.h"

struct cmp_track {
	double centre;
	double segment[CMP_SEGMENTS]; /* less the mean of all segments */
	double block[CMP_BLOCKS];
	unsigned nblocks;
};

struct cmp_judged {
	struct cmp_row row;
	struct cmp_track *track[CMP_SIDES]; /* owned; one for each recording of the side */
	double delta;			    /* of the centres of both sides */
	double cost;			    /* of watching, which was taken out, as a share of what is left */
	bool waits;   /* an operator that is asleep for most of its time: it does not follow the CPU's speed */
	double share; /* of an iteration, on the side where it has more */
	double p;
};

/* Makes the tracks and the numbers of a row. eps is added to each value, because a row can be 0. 0 or -ENOMEM. */
int judge_track(struct cmp_judged *j, const struct cmp_sides *of, double eps);
void judge_fini(struct cmp_judged *j);
/* Judges all rows against each other. */
int judge_all(struct cmp_judged *j, size_t n, const struct cmp_sides *of, struct cmp_result *r);

#endif
