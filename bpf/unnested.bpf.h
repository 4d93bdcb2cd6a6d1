/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Spans that are not nested. The frames of a thread are a stack, but a program may push a range inside a call and pop
 * it after the call, or have ranges of several coroutines open on one thread. A span that ends while one that began
 * inside it is open is sent, and its frame is removed from below that one.
 */
#ifndef UNNESTED_BPF_H
#define UNNESTED_BPF_H

#include "read/detail.bpf.h"
#include "feature/range.bpf.h"
#include "send.bpf.h"

__noinline int range_is(struct mxbpf_thread *t, __u32 i, __u64 key, __u32 cls)
{
	struct mxbpf_frame *f = t ? frame_at(t, i) : 0;

	return f && f->end == MXBPF_END_PAIR && f->sp == ~0ull && f->cls == cls && f->key == key &&
	       !(f->flags & MXBPF_FRAME_KEYLESS);
}

/* Does range_find() for frames d - 1 to d - FRAMES_STEP. */
__noinline int range_find_step(struct mxbpf_thread *t, __u32 d, __u64 key, __u32 cls)
{
	__u32 i;

	for (i = 1; i <= FRAMES_STEP; i++)
		if (range_is(t, d - i, key, cls))
			return d - i + 1;
	return 0;
}

/* Returns 1 + the number of the innermost frame of an open range with this class and key, or 0. */
__noinline int range_find(struct mxbpf_thread *t, __u64 key, __u32 cls)
{
	__u32 i, depth = t ? t->depth : 0;
	int n = 0;

	if (range_is(t, depth - 1, key, cls))
		return depth;
	for (i = 0; !n && i < MXBPF_FRAMES_MAX && i < depth; i += FRAMES_STEP)
		n = range_find_step(t, depth - i, key, cls);
	return n;
}

/* Copies frame i + 1 to frame i. */
__noinline int frame_move(struct mxbpf_thread *t, __u32 i)
{
	struct mxbpf_frame *to, *from;

	t = frames_of(t);
	to = t ? frame_at(t, i) : 0;
	from = t ? frame_at(t, i + 1) : 0;
	if (!to || !from)
		return 0;
	bpf_probe_read_kernel(to, sizeof(*to), from);
	if (cfg_counters)
		counters_move(t, i);
	return 0;
}

__noinline int frames_move_step(struct mxbpf_thread *t, __u32 from)
{
	__u32 i;

	for (i = 0; t && i < FRAMES_STEP && from + i + 1 < t->depth; i++)
		frame_move(t, from + i);
	return 0;
}

/* Gives the time and cost of frame f before the frame inside it started to the frame around f, or to nobody. */
static __always_inline void frame_bequeath(struct mxbpf_thread *t, const struct mxbpf_frame *f,
					   const struct mxbpf_frame *inner, struct mxbpf_frame *parent)
{
	const __u64 cost_ns = inner->cost_ns > f->cost_ns ? inner->cost_ns - f->cost_ns : 0;

	if (!parent) {
		t->before_ns += cost_ns;
		return;
	}
	if (parent->twin.dur_ns)
		twin_emit(t, parent);
	parent->nchild = 2;
	parent->child_ns += inner->start_ns - f->start_ns;
	parent->child_cost_ns += cost_ns;
	parent->alloc_bytes += f->alloc_bytes;
	if (cfg_account)
		account_between(&parent->nested, f, inner);
}

/* Removes frame i, which is not the top frame. */
__noinline int frame_remove(struct mxbpf_thread *t, __u32 i)
{
	struct mxbpf_frame *f, *inner;
	__u32 n;

	t = frames_of(t);
	f = t ? frame_at(t, i) : 0;
	inner = t ? frame_at(t, i + 1) : 0;
	if (!f || !inner)
		return 0;
	frame_bequeath(t, f, inner, frame_at(t, i - 1));
	for (n = 0; n < FRAMES_STEPS; n++)
		frames_move_step(t, i + n * FRAMES_STEP);
	t->depth--;
	t->removed++;
	slot_release(t);
	return 0;
}

/*
 * Sends the span of frame i, which ends although a span that began inside it is open, and removes the frame. A range
 * that is not nested has no time of its own.
 */
__noinline int frame_send_inner(struct mxbpf_thread *t, __u32 i, __u64 now, __u32 flags)
{
	struct mxbpf_frame *f, *inner;

	t = frames_of(t);
	f = t ? frame_at(t, i) : 0;
	inner = t ? frame_at(t, i + 1) : 0;
	if (!f || !inner)
		return 0;
	t->counted.known = 0;
	detail_close(t, f, flags);
	if (f->twin.dur_ns)
		twin_emit(t, f);
	f->child_ns += now - inner->start_ns;
	if ((f->flags | flags) & MXBPF_SPAN_ASYNC) {
		__builtin_memset(&f->twin.account, 0, sizeof(f->twin.account));
		account_keep(f, f, now);
	}
	span_emit(t, f, now, flags);
	frame_remove(t, i);
	return 0;
}

#endif
