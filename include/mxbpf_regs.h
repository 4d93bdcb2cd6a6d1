/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* User registers of a thread at its entry into the kernel, sent by BPF to the stack unwinder. */
#ifndef MXBPF_REGS_H
#define MXBPF_REGS_H

#include "mxbpf_event.h"

/* Order of DWARF's register numbers: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, rip. */
#define MXBPF_REGS_SP 7
#define MXBPF_REGS_PC 16
#define MXBPF_REGS    17

struct mxbpf_regs {
	__u32 tid;
	__u32 mxcsr;   /* of the floating-point unit, at the last switch to another thread; 0: not known */
	__u64 fs_base; /* base address of the thread's local variables */
	__u64 r[MXBPF_REGS];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_regs) == 152);

#endif
