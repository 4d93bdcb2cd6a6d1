/* SPDX-License-Identifier: Apache-2.0 */
/* Records of hardware counters of chosen kernels (--kernel-metrics). */
#ifndef MXBPF_KERNELS_H
#define MXBPF_KERNELS_H

#include "mxbpf_event.h"

/* Kinds of records, which continue enum mxbpf_kind. */
#define MXBPF_KERNEL_METRIC                                                                                            \
	((enum mxbpf_kind)73) /* agent: one counter of a measured launch, struct mxbpf_kernel_metric */

#define MXBPF_KERNEL_COUNTERS 12 /* as many as the agent measures; kernels_counter() in feature/kernels/ names them */

/* Since 2.2. */
struct mxbpf_kernel_metric {
	struct mxbpf_rec h; /* ts_ns: when the measurement of the launch began */
	__u64 name_id;	    /* of the kernel, of kind MXBPF_NAME_SPAN */
	__u64 milli;	    /* value in thousandths of the counter's unit: ns, percent or bytes */
	__u64 held_ns;	    /* by which the launching thread was held up, with the kernel itself */
	__u32 edge_id;	    /* of the launch */
	__u32 tid, device;
	__u32 passes; /* how often the kernel was executed */
	__u16 number; /* of the counter */
	__u8 first;   /* 1: the first record of its launch */
	__u8 pad[5];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_kernel_metric) == 64);

#endif
