/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Kineto's form of a timeline needs beyond the plan of any: events numbered in order of time, arrows from
 * operators to the backward nodes that they made. Learnt in the survey, asked in the second pass.
 *
 * Memory, at worst and twice that while a buffer grows: 24 bytes a span (12 once they are numbered), 4 an allocation,
 * 32 an operator that bears a number whose node did not run.
 */
#ifndef VIEW_KINETO_PLAN_H
#define VIEW_KINETO_PLAN_H

#include "view/timeline/chrome_plan.h"

struct view_number {
	uint32_t external_id; /* from 1, of spans alone */
	uint32_t ev_idx;      /* from 0, of allocations too */
	uint32_t arrow;	      /* from 1: begins here, at a backward node ends here; 0 none */
};

struct view_numbers {
	struct buf of_span;  /* struct view_number, by ordinal; after view_numbers_finish() */
	struct buf of_alloc; /* uint32_t ev_idx, in order of time */
	uint32_t narrows;
	uint32_t nlonely;  /* backward nodes whose operator was not seen */
	bool args, stacks; /* some span has them */

	/* private */
	struct buf starts;
};

/* Every span, in order. 0, -ENOMEM. */
int view_numbers_survey(struct view_numbers *n, const struct mxbpf_span *s);
/* Behind view_plan_finish(). 0, -ENOMEM. */
int view_numbers_finish(struct view_numbers *n, const struct view_plan *p);
void view_numbers_fini(struct view_numbers *n);

#endif
