/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* What of a span is read only when it was asked for: one file each, all nothing where cfg_details says so. */
#ifndef DETAIL_BPF_H
#define DETAIL_BPF_H

#include "read/args.bpf.h"
#include "read/ndarray.bpf.h"
#include "read/seq.bpf.h"
#include "read/stack.bpf.h"

/* When f opens; parent: the frame that it opens in, NULL if none. */
static __always_inline void detail_open(struct pt_regs *ctx, struct mxbpf_thread *t, struct mxbpf_frame *f,
					struct mxbpf_frame *parent, const volatile struct mxbpf_row *row)
{
	const __u8 details = cfg_details & row->details;

	if (!cfg_details)
		return;
	if (row->outputs_off)
		f->args_id = ndarrays_of(ctx, t, row);
	else
		f->args_id = details & MXBPF_DETAIL_ARGS ? args_of(ctx, t) : 0;
	f->stack_id = details & MXBPF_DETAIL_STACK ? stack_of(t, t->depth, parent) : 0;
	f->seq = f->origin = f->layer_id = 0;
	if (cfg_details & MXBPF_DETAIL_SEQ) {
		f->origin = !parent ? 0 : parent->flags & MXBPF_SPAN_BACKWARD ? parent->seq : parent->origin;
		if (details & MXBPF_DETAIL_SEQ)
			seq_open(ctx, t, f, row);
	}
}

/* When it closes; flags: as span_emit() takes them. */
static __always_inline void detail_close(struct mxbpf_thread *t, struct mxbpf_frame *f, __u32 flags)
{
	if (cfg_details & MXBPF_DETAIL_SEQ)
		seq_close(t, f, flags);
}

#endif
