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

/* Its rows are struct mxbpf_join: the forward and the backward time of an operator in a process. */
extern const struct tbl_def backward_table;
/*
 * Gives a span of a backward pass the stack of its forward operator, if that operator was passed to this function
 * before. The model calls it for each span. A reader of records calls it with a model of its own. Returns 0 or -ENOMEM.
 */
int backward_follow(struct mdl *m, struct mxbpf_span *s);

#endif
