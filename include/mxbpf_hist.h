/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* Histogram of durations, shared by BPF and user space. */
#ifndef MXBPF_HIST_H
#define MXBPF_HIST_H

#include "mxbpf_event.h"

/*
 * The histogram is log-linear, with 8 buckets per octave. A value v below 8 has bucket v. Any other has octave =
 * floor(log2 v) and bucket (octave - 2) * 8 + the three bits after its highest one. A bucket is at most 12.5 %
 * wide. The last bucket also counts all longer durations (137 minutes and more).
 */
#define MXBPF_HIST_BUCKETS 328

struct mxbpf_bucket {
	__u32 index;
	__u32 reserved;
	__u64 count;
};

/*
 * Returns floor(log2 v) for v > 0. It halves the range step by step, because clang has no BPF instruction for it.
 */
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
