/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* Samples of page faults: BPF sends where a process touches memory that it did not have, and its Python stack. */
#ifndef MXBPF_FAULTS_H
#define MXBPF_FAULTS_H

#include "mxbpf_stack.h"

struct mxbpf_fault {
	__u64 ts_ns, addr;
	__u64 weight; /* page faults of the thread for which it stands */
	__u32 tgid, tid;
	struct mxbpf_stack stack; /* the last member: only the frames in use are sent */
};

#endif
