/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* What BPF sends of a sample, before user space has made names of the addresses. */
#ifndef MXBPF_SAMPLE_H
#define MXBPF_SAMPLE_H

#include "mxbpf_config.h"

#define MXBPF_SAMPLE_HZ_MAX    1000
#define MXBPF_SAMPLE_ADDRS_MAX 64 /* innermost */

/* Where it ran. Stands behind the spans of a struct mxbpf_sample without ids. */
struct mxbpf_sample_where {
	__u64 kernel_addr; /* with MXBPF_SAMPLE_KERNEL */
	__u64 naddrs;
	__u64 addrs[MXBPF_SAMPLE_ADDRS_MAX]; /* of the process, innermost first: by frame pointers, where there are any
					      */
	struct mxbpf_stack python;	     /* as many of its frames as it has are sent */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sample_where) == 1560);

#define MXBPF_SAMPLE_BYTES(nspans) (sizeof(struct mxbpf_sample) + (nspans) * sizeof(struct mxbpf_sample_span))
#define MXBPF_SAMPLE_WHERE_BYTES(nframes)                                                                              \
	(sizeof(struct mxbpf_sample_where) - sizeof(struct mxbpf_stack) + 8 +                                          \
	 (nframes) * sizeof(struct mxbpf_stack_frame))

#endif
