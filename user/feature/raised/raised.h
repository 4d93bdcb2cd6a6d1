/* SPDX-License-Identifier: Apache-2.0 */
/* --raised: calls that an exception left. */
#ifndef FEATURE_RAISED_H
#define FEATURE_RAISED_H

#include "model/feature.h"
#include "mxbpf_raised.h"

#define RAISED_BIT (1u << 0) /* in mdl_session.features */

extern const struct mdl_feature feature_raised;
extern const struct cmd_option raised_option;
extern const struct view_sheet sheet_raised;
extern const struct view_trace_feature raised_trace;

extern const struct tbl_def raised_table; /* of struct mxbpf_agg_raised */

/* Returns true if an exception left the span. */
static inline bool raised_left(const struct mxbpf_span *s)
{
	return s->flags & MXBPF_SPAN_UNWOUND;
}

#endif
