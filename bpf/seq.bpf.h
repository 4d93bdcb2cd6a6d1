/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Sequence numbers: what joins a backward node to the operator that made it. */
#ifndef SEQ_BPF_H
#define SEQ_BPF_H

#include "common.bpf.h"

/* Fills f->seq and its flag. The thread's own number may not be there yet: it comes with the thread's first node. */
static __always_inline void seq_open(struct pt_regs *ctx, struct mxbpf_thread *t, struct mxbpf_frame *f,
				     const volatile struct mxbpf_row *row)
{
}

static __always_inline void seq_close(struct mxbpf_thread *t, struct mxbpf_frame *f)
{
}

#endif
