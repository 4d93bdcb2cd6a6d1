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

/* Time off the CPU of one kind while spans of one name were open. */
struct sched_row {
	uint64_t name_id; /* name of the innermost open span; none if cls is 0 */
	uint64_t count, total_ns;
	uint32_t tgid;
	uint8_t cls, what; /* enum mxbpf_class, enum mxbpf_sched_what */
	uint8_t own;	   /* 1: comm is a thread of the targets */
	uint8_t between;   /* 1: between slices, so it is not known which call was open, and cls is 0 */
	char comm[16];	   /* for KEPT_BY and WOKEN_BY; untrusted text, NUL-terminated unless full */
};
/* Returns *n rows in no order: time off the CPU by process, class, name, cause and the other process. */
const struct sched_row *sched_rows(const struct mdl *m, size_t *n);

/* Returns the records of threads that were off the CPU when recording stopped in a live session. */
uint64_t sched_ended(const struct session *ses);

#endif
