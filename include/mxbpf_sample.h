/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* What BPF sends of a sample, before user space has made names of the addresses. */
#ifndef MXBPF_SAMPLE_H
#define MXBPF_SAMPLE_H

#include "mxbpf_config.h"

#define MXBPF_SAMPLE_HZ_MAX    1000
#define MXBPF_SAMPLE_ADDRS_MAX 64 /* innermost */

/* Behind it stand as many spans as it has, then a struct mxbpf_stack with as many frames as that has. */
struct mxbpf_sample_head {
	struct mxbpf_sample s; /* without ids */
	__u64 kernel_addr;     /* where it ran, with MXBPF_SAMPLE_KERNEL */
	__u64 naddrs;
	__u64 addrs[MXBPF_SAMPLE_ADDRS_MAX]; /* of the process, innermost first: by frame pointers, where there are any
					      */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sample_head) == 576);

#define MXBPF_SAMPLE_STACK_OFF(nspans) (sizeof(struct mxbpf_sample_head) + (nspans) * sizeof(struct mxbpf_sample_span))
/* Bytes of a struct mxbpf_stack with so many frames. */
#define MXBPF_SAMPLE_STACK_BYTES(nframes) (8 + (nframes) * sizeof(struct mxbpf_stack_frame))

#endif
