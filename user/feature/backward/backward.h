/* SPDX-License-Identifier: Apache-2.0 */
/* Forward operators with their backward nodes (--backward). */
#ifndef FEATURE_BACKWARD_H
#define FEATURE_BACKWARD_H

#include "model/feature.h"

extern const struct mdl_feature feature_backward;
extern const struct cmd_option backward_option;
extern const struct view_sheet sheet_backward;

/* Operators whose backward nodes may still run: so many of the latest are remembered. */
#define BACKWARD_MAKERS_MAX (1u << 17)

/* The spans of a forward operator, and of the backward nodes that they created. */
struct backward_row {
	uint64_t name_id;		    /* name of the nodes if their operator is unknown; count is then 0 */
	uint64_t count, total_ns;	    /* forward operators that created nodes */
	uint64_t bwd_count, bwd_total_ns;   /* nodes that they created */
	uint64_t deep_count, deep_total_ns; /* nodes created by those: double backward and deeper */
	uint32_t tgid;
};
extern const struct tbl_def backward_table;
/*
 * Gives a span of a backward pass the stack of its forward operator, if that operator was passed to this function
 * before. The model calls it for each span. A reader of records calls it with a model of its own. Returns 0 or -ENOMEM.
 */
int backward_follow(struct mdl *m, struct mxbpf_span *s);

#endif
