/* SPDX-License-Identifier: Apache-2.0 */
/* Why GPUs ran nothing: their idle time by cause. */
#ifndef FEATURE_IDLE_H
#define FEATURE_IDLE_H

#include "model/feature.h"
#include "mxbpf_track.h"

struct mxbpf_sched; /* mxbpf_sched.h */

extern const struct mdl_feature feature_idle;
extern const struct view_sheet sheet_gpu_idle;

/* The causes for people: "waits for data". */
extern const char *const idle_cause_words[MXBPF_IDLE_CAUSES];
/* Appends struct mxbpf_agg_gpu_idle in no order. Returns 0 or -ENOMEM. */
int idle_rows(const struct mdl *m, struct buf *out);

/* All that is known, in no order. */
struct idle_results {
	struct buf rows;   /* struct mxbpf_agg_gpu_idle */
	struct buf pieces; /* struct mxbpf_gpu_idle */
	struct buf steps;  /* struct mxbpf_gpu_step */
};
/* Fills an empty struct. Returns 0 or -ENOMEM. */
int idle_results(const struct mdl *m, struct idle_results *out);
void idle_results_fini(struct idle_results *r);

#endif
