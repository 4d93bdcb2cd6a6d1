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
struct life_part {
	uint64_t count, total_ns, min_ns, max_ns;
	uint64_t hist[MXBPF_HIST_BUCKETS];
};
struct life_row {
	uint32_t tgid, device;
	uint64_t name_id;
	struct life_part parts[MXBPF_LIFE_PARTS]; /* by enum mxbpf_life_part */
};

/* Returns *n rows in no order. */
const struct life_row *const *life_rows(const struct mdl *m, size_t *n);
/* Returns a percentile as mdl_percentile() does, or 0 if the part has no lives. */
uint64_t life_percentile(const struct life_part *p, double fraction);
extern const struct tbl_def life_waits_table; /* of struct mxbpf_wait */
/* Returns *n rows in no order: the time that a call of the program waited for an operator. */
const struct mxbpf_wait *life_waits(const struct mdl *m, size_t *n);

#endif
