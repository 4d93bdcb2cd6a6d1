// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* --life: the actions of its probes. */
#include "feature/life.bpf.h"

/* Handles a push. An operator whose name cannot be read counts as a loss and is shown without a name. */
static __always_inline void on_writes(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	__u64 at = fetch(ctx, t, &row->key), end = fetch(ctx, t, &row->size), op_id = name_of(ctx, t, row);
	bool claim = row->action == MXBPF_ACT_LIFE_CLAIM;
	struct mxbpf_frame *top;

	life_writes(t->slot, at, end, op_id ? op_id : MXBPF_NAME_UNNAMED, claim);
	if (claim)
		return;
	frames_end(t, PT_REGS_SP(ctx));
	top = frame_top(t);
	if (at == end && top && top->cls == MXBPF_CLASS_WAIT)
		life_wait_for(t->slot, t->tgid, top->key, top->start_ns);
	life_push(t->slot, t->tgid, t->tid, fetch_link(ctx, t, &row->link), top ? top->start_ns : 0);
}

static __always_inline void on_ready(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	life_readied(t->slot, t->tgid, t->tid, fetch_link(ctx, t, &row->link), fetch_link(ctx, t, &row->key));
}
