/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of chosen kernels (--kernel-metrics), which the agent measures in the program's own launches. */
#ifndef FEATURE_KERNELS_H
#define FEATURE_KERNELS_H

#include "model/feature.h"
#include "mxbpf_kernels.h"

extern const struct mdl_feature feature_kernels;
extern const struct cmd_option kernels_option;
extern const struct view_sheet sheet_gpu_counters;

extern const struct tbl_def kernels_table; /* of struct mxbpf_agg_kernel_metrics */

struct mxbpf_gpu_shared;
/* What --kernel-metrics has measured, and why not more. Returns buf. */
const char *ses_metrics_note(const struct mxbpf_gpu_shared *g, char buf[1024]);

#endif
