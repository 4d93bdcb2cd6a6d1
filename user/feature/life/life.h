/* SPDX-License-Identifier: Apache-2.0 */
/* Operators from push to completion (--life). */
#ifndef FEATURE_LIFE_H
#define FEATURE_LIFE_H

#include "model/feature.h"
#include "mxbpf_life.h"

extern const struct mdl_feature feature_life;
extern const struct ses_feature life_session;
extern const struct cmd_option life_option;
extern const struct view_sheet sheet_life, sheet_life_waits;
extern const struct view_trace_feature life_trace;

/* One part of the lives of an operator, over the lives in which its duration is known. */
struct life_row {
	uint64_t name_id;
	uint32_t tgid, device;
	uint8_t part; /* enum mxbpf_life_part */
	uint64_t count, total_ns, min_ns, max_ns;
	uint64_t hist[MXBPF_HIST_BUCKETS];
};
/* Returns *n rows in no order. */
const struct life_row *life_rows(const struct mdl *m, size_t *n);
extern const struct tbl_def life_waits_table; /* of struct mxbpf_wait */
/* Returns *n rows in no order: the time that a call of the program waited for an operator. */
const struct mxbpf_wait *life_waits(const struct mdl *m, size_t *n);

#endif
