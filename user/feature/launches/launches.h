/* SPDX-License-Identifier: Apache-2.0 */
/* How launches became work of GPUs: their calls, delays and queues, and which types of work ran at once. */
#ifndef FEATURE_LAUNCHES_H
#define FEATURE_LAUNCHES_H

#include "model/feature.h"
#include "mxbpf_queue.h"

extern const struct mdl_feature feature_launches;
extern const struct view_sheet sheet_gpu_launches, sheet_gpu_queues, sheet_gpu_types;

/* Launches of one call into one stream. */
struct launches_row {
	struct mxbpf_agg_gpu_launch a;
	uint64_t hist[MXBPF_HIST_BUCKETS]; /* number of launches by delay */
};

/* Append struct launches_row, and struct mxbpf_agg_gpu_types, in no order. Return 0 or -ENOMEM. */
int launches_rows(const struct mdl *m, struct buf *out);
int launches_types(const struct mdl *m, struct buf *out);

#endif
