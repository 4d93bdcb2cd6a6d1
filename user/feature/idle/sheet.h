/* SPDX-License-Identifier: Apache-2.0 */
/* Why GPUs ran nothing in each iteration, for sheets. */
#ifndef FEATURE_IDLE_SHEET_H
#define FEATURE_IDLE_SHEET_H

#include "feature/idle/idle.h"
#include "mxbpf_step.h"

/* The causes for programs: "data". */
extern const char *const idle_words[MXBPF_IDLE_CAUSES];

/* The GPUs of a process in one of its iterations: their mean. */
struct idle_step {
	uint64_t ns[MXBPF_IDLE_CAUSES]; /* all 0: not known */
	uint64_t longer_ns;
	uint8_t longer; /* the cause that exceeds its median the most; MXBPF_IDLE_CAUSES: none does */
};

/* All iterations with what is known of GPUs in them. */
struct idle_steps {
	struct buf means;   /* struct mxbpf_gpu_step, by process and start */
	struct buf medians; /* struct mxbpf_gpu_step, by process */
};
/* Fills an empty struct. Returns 0 or -ENOMEM. */
int idle_steps_open(const struct mdl *m, struct idle_steps *t);
void idle_steps_close(struct idle_steps *t);
void idle_step_of(const struct idle_steps *t, const struct mxbpf_iteration *it, struct idle_step *step);

/* Median and maximum of the iterations of a GPU, by cause. */
struct idle_spread {
	uint64_t p50_ns[MXBPF_IDLE_CAUSES], max_ns[MXBPF_IDLE_CAUSES];
};
/* steps: struct mxbpf_gpu_step. Returns 0 or -ENOMEM. */
int idle_spread_of(const struct buf *steps, uint32_t tgid, uint32_t device, struct idle_spread *spread);

#endif
