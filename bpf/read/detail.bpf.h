/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Details of a span that are read only on request. Each has a file, and does nothing unless cfg_details asks for
 * it.
 */
#ifndef DETAIL_BPF_H
#define DETAIL_BPF_H

#include "read/args.bpf.h"
#include "read/ndarray.bpf.h"
#include "read/seq.bpf.h"
#include "read/stack.bpf.h"

/* Keeps where the tensors of an operator are, which user space looks at while it runs. */
static __always_inline void regs_open(struct pt_regs *ctx, struct mxbpf_frame *f, const volatile struct mxbpf_row *row)
{
	f->regs[0] = 0;
	if (!(row->details & MXBPF_DETAIL_ARGS) || row->outputs_off)
		return;
	f->regs[0] = ctx->di;
	f->regs[1] = ctx->si;
	f->regs[2] = ctx->dx;
	f->regs[3] = ctx->cx;
}

/* Reads the details of f, which opens. `parent` is the frame that it opens in, or NULL. */
static __always_inline void detail_open(struct pt_regs *ctx, struct mxbpf_thread *t, struct mxbpf_frame *f,
					struct mxbpf_frame *parent, const volatile struct mxbpf_row *row)
{
	const __u8 details = cfg_details & row->details;

	regs_open(ctx, f, row);
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

/* Completes the details of f, which closes. `flags` are those of span_emit(). */
static __always_inline void detail_close(struct mxbpf_thread *t, struct mxbpf_frame *f, __u32 flags)
{
	if (cfg_details & MXBPF_DETAIL_SEQ)
		seq_close(t, f, flags);
}

#endif
