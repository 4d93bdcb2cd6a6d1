/* SPDX-License-Identifier: Apache-2.0 */
/* Records of what operators reach on GPUs, against what the GPUs can. */
#ifndef MXBPF_ROOFLINE_H
#define MXBPF_ROOFLINE_H

#include "mxbpf_track.h"

/* Kinds of records, which continue enum mxbpf_kind. */
#define MXBPF_GPU_LIMITS ((enum mxbpf_kind)63) /* agent: rates of a device, struct mxbpf_gpu_limits */

/* What struct mxbpf_gpu_device lacks. Since 2.2. */
struct mxbpf_gpu_limits {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u32 device;
	__u32 memory_clock_khz, memory_bus_bits; /* 0: unknown */
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gpu_limits) == 32);

#endif
