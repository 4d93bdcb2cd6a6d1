/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* The processes whose probe hits count. One map for both BPF objects: the fork tracepoint fills it (bpf/watch.bpf.c).
 */
#ifndef TARGETS_BPF_H
#define TARGETS_BPF_H

#include "mxbpf_config.h"
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

/* By tgid. Every hit is checked against it: the process filters of some kernels leak, and shared links have
 * none. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MXBPF_TARGETS_MAX);
	__type(key, __u32);
	__type(value, struct mxbpf_target);
} targets SEC(".maps");

#endif
