/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* What BPF sends of a sample, before user space has made names of the addresses. */
#ifndef MXBPF_SAMPLE_H
#define MXBPF_SAMPLE_H

#include "mxbpf_config.h"

#define MXBPF_SAMPLE_HZ_MAX    1000
#define MXBPF_SAMPLE_ADDRS_MAX 64 /* innermost */

struct mxbpf_sample_head {
	struct mxbpf_sample s; /* without ids */
	struct mxbpf_sample_span spans[MXBPF_FRAMES_MAX];
	__u64 kernel_addr; /* where it ran, with MXBPF_SAMPLE_KERNEL */
	__u64 naddrs;
	__u64 addrs[MXBPF_SAMPLE_ADDRS_MAX]; /* of the process, innermost first: by frame pointers, where there are any
					      */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sample_head) == 1088);

struct mxbpf_raw_sample {
	struct mxbpf_sample_head head;
	struct mxbpf_stack python; /* as many of its frames as it has are sent */
};
#define MXBPF_RAW_SAMPLE_BYTES(nframes)                                                                                \
	(sizeof(struct mxbpf_sample_head) + 8 + (nframes) * sizeof(struct mxbpf_stack_frame))

#endif
