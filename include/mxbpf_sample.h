/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* --sample: the record of a sample, and what BPF sends before user space resolves the addresses. */
#ifndef MXBPF_SAMPLE_H
#define MXBPF_SAMPLE_H

#include "mxbpf_event.h"
#include "mxbpf_stack.h"

#define MXBPF_SAMPLE_HZ_MAX    1000
#define MXBPF_SAMPLE_ADDRS_MAX 64 /* innermost frames that are kept */

/*
 * --sample: the state of a thread. The open spans follow, outermost first. BPF also sends a struct
 * mxbpf_sample_where after them, which user space replaces by the two ids.
 */
struct mxbpf_sample {
	struct mxbpf_rec h;
	__u64 count;	/* 1; in tables (MXBPF_CHUNK_AGG) the number of equal samples, with tgid and last span only */
	__u64 stack_id; /* Python stack: a name of kind MXBPF_NAME_STACK; 0: none */
	__u64 code_id;	/* machine code: a name of kind MXBPF_NAME_CODE; 0: none */
	__u32 tid;
	__u16 cpu;
	__u8 nspans_low; /* number of spans, low 8 bits (mxbpf_sample_nspans()); 0: outside all spans */
	__u8 flags;	 /* enum mxbpf_sample_flag */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sample) == 48);

enum mxbpf_sample_flag {
	MXBPF_SAMPLE_KERNEL = 1 << 0,  /* it ran in the kernel */
	MXBPF_SAMPLE_BETWEEN = 1 << 1, /* between slices: calls were open that nobody recorded. Since 2.2. */
				       /* Bits 4 and up hold the number of spans above its low 8 bits. */
};
#define MXBPF_SAMPLE_NSPANS_SHIFT 4

static inline __attribute__((always_inline)) __u32 mxbpf_sample_nspans(const struct mxbpf_sample *s)
{
	return s->nspans_low | (__u32)(s->flags >> MXBPF_SAMPLE_NSPANS_SHIFT) << 8;
}

static inline __attribute__((always_inline)) void mxbpf_sample_set_nspans(struct mxbpf_sample *s, __u32 n)
{
	s->nspans_low = (__u8)n;
	s->flags = (__u8)((s->flags & ((1 << MXBPF_SAMPLE_NSPANS_SHIFT) - 1)) | n >> 8 << MXBPF_SAMPLE_NSPANS_SHIFT);
}

struct mxbpf_sample_span {
	__u64 name_id;
	__u32 device;
	__u8 cls; /* enum mxbpf_class */
	/*
	 * 1: an agent knows the call. The thread works in an OpenMP region that another thread opened: name_id is the
	 * start of the region in ns, and device the id of that thread. User space replaces the item by the call.
	 */
	__u8 by_team;
	__u8 pad[2];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sample_span) == 16);

/* Where a thread ran. It follows the spans of a struct mxbpf_sample without ids. */
struct mxbpf_sample_where {
	__u64 kernel_addr; /* with MXBPF_SAMPLE_KERNEL */
	__u64 naddrs;
	__u64 addrs[MXBPF_SAMPLE_ADDRS_MAX]; /* user addresses, innermost first, found by frame pointers */
	struct mxbpf_stack python;	     /* only the frames in use are sent */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sample_where) == 1560);

#define MXBPF_SAMPLE_BYTES(nspans) (sizeof(struct mxbpf_sample) + (nspans) * sizeof(struct mxbpf_sample_span))
#define MXBPF_SAMPLE_WHERE_BYTES(nframes)                                                                              \
	(sizeof(struct mxbpf_sample_where) - sizeof(struct mxbpf_stack) + 8 +                                          \
	 (nframes) * sizeof(struct mxbpf_stack_frame))

#endif
