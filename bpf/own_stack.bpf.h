/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Keeps the stack of a program at a uprobe on the stack of its thread. Since Linux 6.13 the kernel gives a program that
 * needs 64 bytes a stack that belongs to the CPU. A uprobe's program can be preempted on kernels with PREEMPT or
 * PREEMPT_LAZY, and the same program then runs on the same memory for another thread: counts, rows and addresses are
 * those of the wrong call. A program with a tail call gets no such stack. This one is never made: the verifier knows
 * the constant and removes it, after it has looked for tail calls.
 */
#ifndef OWN_STACK_BPF_H
#define OWN_STACK_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

const volatile __u8 cfg_never; /* always 0 */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} nowhere SEC(".maps");

/* Call it in the program itself, not in a function that it calls. */
static __always_inline void own_stack(struct pt_regs *ctx)
{
	if (cfg_never)
		bpf_tail_call(ctx, &nowhere, 0);
}

#endif
