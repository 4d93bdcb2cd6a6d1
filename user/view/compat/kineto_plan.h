/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of Kineto's form, beside that of all forms: numbers of events in order of time, and arrows from operators to
 * their backward nodes. The first pass collects it, and the second pass uses it.
 *
 * It needs at most this much memory, and twice that while a buffer grows: 24 bytes for a span (12 after they are
 * numbered), 4 for an allocation, 32 for an operator with a sequence number whose backward node did not run.
 */
#ifndef VIEW_KINETO_PLAN_H
#define VIEW_KINETO_PLAN_H

#include "view/timeline/chrome_plan.h"

struct view_number {
	uint32_t external_id; /* counts spans, from 1 on */
	uint32_t ev_idx;      /* counts spans and allocations, from 0 on */
	uint32_t arrow;	      /* from 1 on: starts here, or at a backward node ends here; 0: none */
};

struct view_numbers {
	struct buf of_span;  /* struct view_number, by ordinal; after view_numbers_finish() */
	struct buf of_alloc; /* uint32_t ev_idx, in order of time */
	uint32_t narrows;
	uint32_t nlonely;  /* backward nodes without operator */
	bool args, stacks; /* some span has arguments; a stack */

	/* private */
	struct buf starts;
};

/* Call it for every span, in order. Returns 0 or -ENOMEM. */
int view_numbers_survey(struct view_numbers *n, const struct mxbpf_span *s);
/* Call it after view_plan_finish(). Returns 0 or -ENOMEM. */
int view_numbers_finish(struct view_numbers *n, const struct view_plan *p);
void view_numbers_fini(struct view_numbers *n);

#endif
