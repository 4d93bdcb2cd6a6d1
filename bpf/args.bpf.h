/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Tensors among the arguments of an operator: shapes, types and strides, interned like names. */
#ifndef ARGS_BPF_H
#define ARGS_BPF_H

#include "common.bpf.h"

/* The args_id of the operator that is being entered; 0: it has none, or they cannot be read. */
static __always_inline __u64 args_of(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	return 0;
}

#endif
