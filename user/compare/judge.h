/* SPDX-License-Identifier: Apache-2.0 */
/* A row of both sides while it is judged. Times are logarithms, so that differences are shares. */
#ifndef COMPARE_JUDGE_H
#define COMPARE_JUDGE_H

#include "compare/compare.h"
#include "compare/stats.h"

struct cmp_track {
	double centre;
	double fast;		      /* of the fastest iterations, which other jobs hardly delay; small is added */
	double segment[CMP_SEGMENTS]; /* less the mean of all segments */
	double block[CMP_BLOCKS];
	unsigned nblocks;
	float *log; /* owned; of each bin, without outliers, less the mean; NULL: most bins have nothing */
	size_t n;
};

struct cmp_judged {
	struct cmp_row row;
	struct cmp_track *track[CMP_SIDES]; /* owned; one for each recording of the side */
	unsigned tracks[CMP_SIDES];
	double delta;	/* of the centres of both sides */
	double fast;	/* of the fastest iterations of both sides */
	double cost;	/* of watching, which was taken out, as a share of what is left */
	double queued;	/* waiting for a CPU in a JSON result, as a logarithm of what it makes of the time */
	bool waits;	/* an operator that is asleep for most of its time: it does not follow the CPU's speed */
	double share;	/* of an iteration, on the side where it has more */
	double jitter;	/* deviation of the logarithms of bins */
	double scatter; /* of it, what does not follow the machine */
	double follow;	/* how much it follows the state of the machine; see follow.c */
	double error;	/* of follow, its deviation */
	bool guessed;	/* the recordings do not say how much the row follows: between 0 and 1 */
	bool set_aside; /* it has certainly changed, so it tells nothing of the machine */
	double own, deviation, df, p;
	double sure;  /* of own, what can be a change of the job */
	double wrong; /* that own may be, because follow or the difference of the machine is not known */
};

/* Operators that take this much of an iteration tell what state the machine is in. */
#define CMP_CONTROL_SHARE 0.01
bool judge_is_control(const struct cmp_judged *j);
/* Sets follow and error of all rows. 0 or -ENOMEM. */
int judge_follow(struct cmp_judged *j, size_t n, const struct cmp_sides *of);

/*
 * Makes the tracks and the numbers of a row. eps is added to each value, because a row can be 0. small: what a row
 * takes that is too small to be judged. 0 or -ENOMEM.
 */
int judge_track(struct cmp_judged *j, const struct cmp_sides *of, double eps, double small);
void judge_fini(struct cmp_judged *j);
/* Judges all rows against each other. */
int judge_all(struct cmp_judged *j, size_t n, const struct cmp_sides *of, struct cmp_result *r);

#endif
