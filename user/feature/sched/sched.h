/* SPDX-License-Identifier: Apache-2.0 */
/* --sched: reasons why threads were off the CPU. */
#ifndef FEATURE_SCHED_H
#define FEATURE_SCHED_H

#include "model/feature.h"
#include "mxbpf_sched.h"

extern const struct mdl_feature feature_sched;
extern const struct ses_feature sched_session;
extern const struct cmd_option sched_option;
extern const struct view_sheet sheet_sched;
extern const struct view_trace_feature sched_trace;

/* Returns *n rows in no order: time off the CPU by process, class, name, cause and the other process. */
const struct mxbpf_agg_sched *sched_rows(const struct mdl *m, size_t *n);

/* Returns the records of threads that were off the CPU when recording stopped in a live session. */
uint64_t sched_ended(const struct session *ses);

#endif
