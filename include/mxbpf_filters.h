/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* Limits of seccomp filters that are copied from the kernel (bpf/filters.bpf.c). */
#ifndef MXBPF_FILTERS_H
#define MXBPF_FILTERS_H

#define MXBPF_FILTERS_MAX      64   /* of a thread */
#define MXBPF_FILTER_INSNS_MAX 4096 /* of a filter: the kernel's own limit, BPF_MAXINSNS. Each has 8 bytes */

#endif
