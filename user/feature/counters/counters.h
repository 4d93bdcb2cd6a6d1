/* SPDX-License-Identifier: Apache-2.0 */
/* Performance counters of each call (--counters). */
#ifndef FEATURE_COUNTERS_H
#define FEATURE_COUNTERS_H

#include "model/feature.h"

extern const struct mdl_feature feature_counters;
extern const struct view_trace_feature counters_trace;
extern const struct ses_feature counters_session;
extern const struct cmd_option counters_option;

/* Adds the performance counters of a span, if it has any. */
void counters_add(struct mxbpf_counter_sum *to, const struct mxbpf_span *s);

/* Returns the mask of ctr_name()s that a live session counts. */
unsigned counters_counted(const struct session *ses);

#endif
