/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The target processes. All BPF objects of a session share this map: there is one for each build of a runtime, and the
 * fork tracepoint of another one adds child processes (bpf/watch.bpf.c).
 */
#ifndef TARGETS_BPF_H
#define TARGETS_BPF_H

#include "mxbpf_config.h"
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

/*
 * Targets by tgid. Every hit is checked against this map, because the process filters of some kernels let other
 * processes through, and shared links have no filter.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MXBPF_TARGETS_MAX);
	__type(key, __u32);
	__type(value, struct mxbpf_target);
} targets SEC(".maps");

#endif
