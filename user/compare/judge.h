/* SPDX-License-Identifier: Apache-2.0 */
/* A row of both sides while it is judged. Times are logarithms, so that differences are shares. */
#ifndef COMPARE_JUDGE_H
#define COMPARE_JUDGE_H

#include "compare/compare.h"
#include "compare/stats.h"

struct cmp_track {
	double centre;
	double fast;		      /* of the fastest iterations, which other jobs hardly delay; `small` is added */
	double segment[CMP_SEGMENTS]; /* segments of the recording, minus their mean */
	double block[CMP_BLOCKS];
	unsigned nblocks;
	float *log; /* owned; one for each bin, without outliers, minus the mean; NULL: most bins have nothing */
	size_t n;
};

struct cmp_judged {
	struct cmp_row row;
	struct cmp_track *track[CMP_SIDES]; /* owned; one for each recording of the side */
	unsigned tracks[CMP_SIDES];
	double delta;	/* difference of the centres of both sides */
	double fast;	/* difference of the fastest iterations of both sides */
	double cost;	/* the cost of watching, which was subtracted, as a share of what is left */
	double queued;	/* logarithm of the factor by which waiting for a CPU lengthens times in a JSON result */
	bool waits;	/* an operator that is asleep for most of its time: it does not follow the CPU's speed */
	double share;	/* share of an iteration, on the side where it is larger */
	double jitter;	/* standard deviation of the logarithms of bins */
	double scatter; /* the part of it that does not follow the machine */
	double follow;	/* slope against the state of the machine; see follow.c */
	double error;	/* standard deviation of follow */
	bool guessed;	/* the recordings do not show the slope, which is between 0 and 1 */
	bool set_aside; /* it has certainly changed, so it is not used for the state of the machine */
	double own, deviation, df, p;
	double sure;  /* the part of `own` that can be a change of the job */
	double wrong; /* error of `own` from follow, or from an unknown difference of the machine */
};

/* Operators with at least this share of an iteration show the state of the machine. */
#define CMP_CONTROL_SHARE 0.01
bool judge_is_control(const struct cmp_judged *j);
/* Sets follow, error and scatter of all rows. 0 or -ENOMEM. */
int judge_follow(struct cmp_judged *j, size_t n, const struct cmp_sides *of);

/*
 * Computes the tracks and the numbers of a row. eps is added to each value, because a row can be 0. small: added to the
 * fastest iterations, the time of a row that is too small to be judged. 0 or -ENOMEM.
 */
int judge_track(struct cmp_judged *j, const struct cmp_sides *of, double eps, double small);
void judge_fini(struct cmp_judged *j);
/* Judges all rows against each other. */
int judge_all(struct cmp_judged *j, size_t n, const struct cmp_sides *of, struct cmp_result *r);

#endif
