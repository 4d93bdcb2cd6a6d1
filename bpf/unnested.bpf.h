/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Spans that are not nested. The frames of a thread are a stack, but a program may push a range inside a call and pop
 * it after the call, or the other way round. Then the outer span is sent when it ends, and its frame stays, with
 * MXBPF_FRAME_SENT, until the span that began inside it has ended.
 */
#ifndef UNNESTED_BPF_H
#define UNNESTED_BPF_H

#include "read/detail.bpf.h"
#include "send.bpf.h"

/*
 * Removes top frames whose spans were sent before (MXBPF_FRAME_SENT). What was nested in them is nested in the frame
 * around them.
 */
__noinline int frames_bury(struct mxbpf_thread *t)
{
	struct mxbpf_frame *f, *parent;
	int i;

	t = frames_of(t);
	for (i = 0; t && i < FRAMES_STEP; i++) {
		f = frame_top(t);
		if (!f || !(f->flags & MXBPF_FRAME_SENT))
			break;
		parent = frame_off(t, f);
		if (!parent)
			break;
		parent->child_ns += f->child_ns;
		parent->child_cost_ns += f->child_cost_ns;
		account_pass(parent, f);
	}
	return 0;
}

/*
 * Sends the span of frame i, which ends although a span that began inside it is open. The frame stays until that one
 * has ended. A span that is not nested has no time of its own.
 */
__noinline int frame_send_inner(struct mxbpf_thread *t, __u32 i, __u64 now, __u32 flags)
{
	struct mxbpf_frame *f, *inner;

	t = frames_of(t);
	f = t ? frame_at(t, i) : 0;
	inner = t ? frame_at(t, i + 1) : 0;
	if (!f || !inner || f->flags & MXBPF_FRAME_SENT)
		return 0;
	t->counted.known = 0;
	detail_close(t, f, flags);
	if (f->twin.dur_ns)
		twin_emit(t, f);
	f->child_ns += now - inner->start_ns;
	span_emit(t, f, now, flags);
	__builtin_memset(&f->nested, 0, sizeof(f->nested));
	account_nest(f, &t->done);
	f->child_ns = inner->start_ns - f->start_ns; /* together with the span inside, the time of both */
	f->child_cost_ns = inner->cost_ns > f->cost_ns ? inner->cost_ns - f->cost_ns : 0;
	f->flags |= MXBPF_FRAME_SENT;
	f->end = MXBPF_END_KEY; /* what drops it finds no such key, and sends nothing */
	f->key = 0;
	f->sp = ~0ull;
	return 0;
}

/* Does range_pop_inner() for frame i. Returns 0 if it is not the one. */
__noinline int range_pop_at(struct mxbpf_thread *t, __u32 i, __u64 now, __u32 cls)
{
	struct mxbpf_frame *f = t ? frame_at(t, i) : 0;

	if (!f || f->end != MXBPF_END_PAIR || f->cls != cls || f->sp != ~0ull)
		return 0;
	frame_send_inner(t, i, now, MXBPF_SPAN_ASYNC);
	return 1;
}

__noinline int range_pop_step(struct mxbpf_thread *t, __u32 d, __u64 now, __u32 cls)
{
	__u32 i;

	for (i = 1; i <= FRAMES_STEP; i++)
		if (range_pop_at(t, d - i, now, cls))
			return 1;
	return 0;
}

/*
 * Ends the innermost range of a class, although spans that began inside it are open: the program pops it inside a call
 * that began after it. A pop without its push ends nothing.
 */
static __always_inline void range_pop_inner(struct mxbpf_thread *t, __u64 now, __u32 cls)
{
	__u32 i;

	for (i = 0; i < MXBPF_FRAMES_MAX && i < t->depth; i += FRAMES_STEP)
		if (range_pop_step(t, t->depth - i, now, cls))
			return;
	t->counts[MXBPF_COUNT_UNMATCHED]++;
}

#endif
