/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Stacks of the interpreter of the running thread, interned like names. */
#ifndef STACK_BPF_H
#define STACK_BPF_H

#include "common.bpf.h"

/* The stack_id of this moment; 0: the thread runs no interpreter, or it cannot be read. */
static __always_inline __u64 stack_of(struct mxbpf_thread *t)
{
	return 0;
}

#endif
