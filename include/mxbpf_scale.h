/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* Scaling of a counter that shared its hardware with others and ran for only a part of the time. */
#ifndef MXBPF_SCALE_H
#define MXBPF_SCALE_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#endif

/* Scales n, which was counted during running_ns, to enabled_ns (>= running_ns). Returns 0 if running_ns is 0. */
static inline __attribute__((always_inline)) __u64 mxbpf_scaled(__u64 n, __u64 enabled_ns, __u64 running_ns)
{
	if (enabled_ns >> 32) { /* n % running_ns * enabled_ns would overflow */
		enabled_ns >>= 20;
		running_ns >>= 20;
	}
	return running_ns ? n / running_ns * enabled_ns + n % running_ns * enabled_ns / running_ns : 0;
}

#endif
