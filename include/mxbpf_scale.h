/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* A counter that had to share its hardware with others ran for a part of the time, which stands for the whole. */
#ifndef MXBPF_SCALE_H
#define MXBPF_SCALE_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#endif

/* n, counted in running_ns, of enabled_ns, which is not less; 0 where there is nothing to go by. */
static inline __attribute__((always_inline)) __u64 mxbpf_scaled(__u64 n, __u64 enabled_ns, __u64 running_ns)
{
	if (enabled_ns >> 32) { /* n % running_ns * enabled_ns would be too large */
		enabled_ns >>= 20;
		running_ns >>= 20;
	}
	return running_ns ? n / running_ns * enabled_ns + n % running_ns * enabled_ns / running_ns : 0;
}

#endif
