/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that were much slower than their median. */
#ifndef FEATURE_SLOW_H
#define FEATURE_SLOW_H

#include "model/feature.h"
#include "mxbpf_sched.h"

extern const struct mdl_feature feature_slow;
extern const struct view_sheet sheet_slow;

/* A call is slow if it lasts SLOW_TIMES as long as the median of its row, and SLOW_BEYOND_NS longer. */
#define SLOW_TIMES     2
#define SLOW_BEYOND_NS 50000
#define SLOW_CALLS     16  /* the first calls of a row are not compared: their median says little */
#define SLOW_MAX       256 /* calls that are kept: those that exceed their median by the most time */

/* The largest part of the time by which a slow call exceeds the median. */
enum slow_cause {
	SLOW_COMPUTED,	/* on CPU: more work, or a slower CPU */
	SLOW_FAULTED,	/* on CPU, and page faults may account for most of it */
	SLOW_RUNNABLE,	/* waiting for a CPU */
	SLOW_BLOCKED,	/* sleeping, or waiting for a lock */
	SLOW_READ,	/* blocked, and pages were read from a disk */
	SLOW_ELSEWHERE, /* the call went on in another thread */
	SLOW_NCAUSES,
};
struct slow_call {
	struct mxbpf_slow span;
	const struct mdl_row *row; /* borrowed */
	uint64_t median_ns;	   /* of its row */
	enum slow_cause cause;
	uint64_t cause_ns; /* time of that cause; of SLOW_COMPUTED and SLOW_FAULTED, what exceeds the median */
};

/*
 * Returns the slow operators and compiled kernels, those that exceed their median by the most time first. A call that
 * is explained by a slow call nested in it is left out. fault_ns: mdl_session.fault_ns. The caller frees *slow. Returns
 * 0 or -ENOMEM.
 */
int slow_calls(const struct mdl *m, uint64_t fault_ns, struct slow_call **slow, size_t *n);

#endif
