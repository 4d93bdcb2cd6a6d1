/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of chosen kernels (--kernel-metrics), which the agent measures in the program's own launches. */
#ifndef FEATURE_KERNELS_H
#define FEATURE_KERNELS_H

#include "model/feature.h"
#include "mxbpf_kernels.h"

extern const struct mdl_feature feature_kernels;
extern const struct cmd_option kernels_option;
extern const struct view_sheet sheet_gpu_counters;

/* Measured launches of one kernel. */
struct kernels_row {
	uint64_t name_id; /* of kind MXBPF_NAME_SPAN */
	uint64_t launches, held_ns, longest_ns;
	uint32_t passes, tgid;
	struct kernels_counter {
		uint64_t n, sum; /* in thousandths */
	} counters[MXBPF_KERNEL_COUNTERS];
};
extern const struct tbl_def kernels_table; /* of struct kernels_row */

struct mxbpf_gpu_shared;
/* What --kernel-metrics has measured, and why not more. Returns buf. */
const char *ses_metrics_note(const struct mxbpf_gpu_shared *g, char buf[1024]);

#endif
