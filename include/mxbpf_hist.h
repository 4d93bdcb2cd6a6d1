/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* The histogram of durations, the same in BPF and in user space. */
#ifndef MXBPF_HIST_H
#define MXBPF_HIST_H

#include "mxbpf_event.h"

/*
 * The histogram of durations is log-linear: 8 buckets an octave. Bucket of v: v itself below 8, else
 * octave = floor(log2 v), index = (octave - 2) * 8 + next three bits of v. A bucket is at most 12.5 % wide.
 * What is longer than the last bucket (from 137 minutes on) counts there.
 */
#define MXBPF_HIST_BUCKETS 328

struct mxbpf_bucket {
	__u32 index;
	__u32 reserved;
	__u64 count;
};

/* By halves: clang's BPF has no instruction for it. v > 0. */
static inline __attribute__((always_inline)) __u32 mxbpf_log2(__u64 v)
{
	__u32 log = 0;

	if (v >> 32) {
		log += 32;
		v >>= 32;
	}
	if (v >> 16) {
		log += 16;
		v >>= 16;
	}
	if (v >> 8) {
		log += 8;
		v >>= 8;
	}
	if (v >> 4) {
		log += 4;
		v >>= 4;
	}
	if (v >> 2) {
		log += 2;
		v >>= 2;
	}
	return log + (v > 1);
}

static inline __attribute__((always_inline)) __u32 mxbpf_bucket(__u64 ns)
{
	__u32 octave, index;

	if (ns < 8)
		return (__u32)ns;
	octave = mxbpf_log2(ns);
	index = (octave - 2) * 8 + (__u32)(ns >> (octave - 3) & 7);
	return index < MXBPF_HIST_BUCKETS ? index : MXBPF_HIST_BUCKETS - 1;
}

#endif
