/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point operations of calls. */
#ifndef FEATURE_FLOPS_H
#define FEATURE_FLOPS_H

#include "model/feature.h"

extern const struct mdl_feature feature_flops;
extern const struct view_trace_feature flops_trace;

enum flops_estimate {
	FLOPS_OTHER,   /* there is no formula for the operator */
	FLOPS_UNKNOWN, /* there is a formula, but the shapes are not enough */
	FLOPS_KNOWN,
};

/*
 * Estimates the floating-point operations of a call from the operator's name and its shapes. `args` is the text of its
 * args_id, which ends with NUL, or NULL. A multiplication with the addition behind it counts as two operations. *flops
 * is set for FLOPS_KNOWN.
 */
enum flops_estimate flops_estimate(const char *name, size_t name_len, const char *args, size_t len, uint64_t *flops);
/* Returns the estimate for one span. */
struct mdl_flops flops_of(const struct mdl *m, const struct mxbpf_span *s);
/* Adds the estimate for all calls of a row of this model. */
void flops_add(const struct mdl *m, struct mdl_flops *to, const struct mdl_row *from);

#endif
