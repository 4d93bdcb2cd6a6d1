// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* Device memory: what the runtime's storage layer is asked for and given back, in requested bytes. */
#include "common.bpf.h"

/* The innermost open span of the thread pays, unless its function has been left. */
static __always_inline void mem_charge(struct pt_regs *ctx, struct mxbpf_thread *t, __s64 bytes)
{
	struct mxbpf_frame *f = frame_top(t);

	if (f && f->sp <= PT_REGS_SP(ctx)) {
		frames_trim(t, PT_REGS_SP(ctx), bpf_ktime_get_ns());
		f = frame_top(t);
	}
	if (!f)
		return;
	f->alloc_bytes += bytes;
	f->self_alloc_bytes += bytes;
}

static __always_inline void mem_emit(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	struct mxbpf_alloc *r;
	__s64 bytes;

	if (row->guard.base != MXBPF_BASE_NONE && !fetch(ctx, t, &row->guard))
		return;
	bytes = fetch(ctx, t, &row->size);
	if (row->action == MXBPF_ACT_FREE)
		bytes = -bytes;
	mem_charge(ctx, t, bytes);
	r = ring_reserve(t, sizeof(*r));
	if (!r)
		return;
	r->h.kind = MXBPF_ALLOC;
	r->h.size = sizeof(*r);
	r->h.tgid = t->tgid;
	r->h.ts_ns = bpf_ktime_get_ns();
	r->bytes = bytes;
	r->tid = t->tid;
	r->device = fetch_device(ctx, t, &row->device);
	ring_submit(t, r);
}
