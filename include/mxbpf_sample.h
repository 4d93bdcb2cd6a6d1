/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* --sample: the record of a sample, and what BPF sends of it before user space has made names of the addresses. */
#ifndef MXBPF_SAMPLE_H
#define MXBPF_SAMPLE_H

#include "mxbpf_event.h"
#include "mxbpf_stack.h"

#define MXBPF_SAMPLE_HZ_MAX    1000
#define MXBPF_SAMPLE_ADDRS_MAX 64 /* innermost */

/*
 * --sample: what a thread was at. Behind it stand the spans that were open, outermost first. What BPF sends has more
 * behind that (mxbpf_sample.h), of which user space makes the two ids.
 */
struct mxbpf_sample {
	struct mxbpf_rec h;
	__u64 count;	/* 1; in tables (MXBPF_CHUNK_AGG) so many, of which only the last span and tgid are told */
	__u64 stack_id; /* of the interpreter's frames: a name of kind MXBPF_NAME_STACK; 0 none */
	__u64 code_id;	/* of machine code: MXBPF_NAME_CODE; 0 none */
	__u32 tid;
	__u16 cpu;
	__u8 nspans_low; /* their number: mxbpf_sample_nspans(); 0: outside of all that is probed */
	__u8 flags;	 /* enum mxbpf_sample_flag */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sample) == 48);

enum mxbpf_sample_flag {
	MXBPF_SAMPLE_KERNEL = 1 << 0, /* it ran in the kernel */
				      /* From bit 4 on: the number of its spans beyond the low 8 bits. */
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
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sample_span) == 16);

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
