/* SPDX-License-Identifier: Apache-2.0 */
/* --raised: calls that an exception left. */
#ifndef FEATURE_RAISED_H
#define FEATURE_RAISED_H

#include "model/feature.h"

#define RAISED_BIT (1u << 0) /* in mdl_session.features */

extern const struct mdl_feature feature_raised;
extern const struct cmd_option raised_option;
extern const struct view_sheet sheet_raised;
extern const struct view_trace_feature raised_trace;

/* Calls of one name, and with --py-stacks from one Python stack. */
struct raised_row {
	uint64_t name_id;
	uint64_t stack_id; /* Python stack: a name of kind MXBPF_NAME_STACK; 0: unknown */
	uint64_t count;
	uint64_t first_ns, last_ns; /* starts of the first and the last call */
	uint32_t tgid;
	uint8_t cls; /* enum mxbpf_class */
};
extern const struct tbl_def raised_table; /* of struct raised_row */

/* Returns true if an exception left the span. */
static inline bool raised_left(const struct mxbpf_span *s)
{
	return s->flags & MXBPF_SPAN_UNWOUND;
}

#endif
