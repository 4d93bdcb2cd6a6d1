/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Makes the record of a span from its frame, and sends it. */
#ifndef SEND_BPF_H
#define SEND_BPF_H

#include "account.bpf.h"
#include "common.bpf.h"
#include "cost.bpf.h"
#include "counters.bpf.h"
#include "frame.bpf.h"

__u64 ring_full; /* atomic: spans that the ring had no room for, of all threads */

#define FILLS_WHOLE (cfg_counters || cfg_details & MXBPF_DETAIL_LAYER)

/* Fills the members behind the account. A record that has them must have the account too. */
static __always_inline void span_fill_rest(struct mxbpf_span *s, struct mxbpf_thread *t, struct mxbpf_frame *f)
{
	if (s->h.size != MXBPF_SPAN_BYTES_ACCOUNT) {
		__builtin_memset(&s->account, 0, sizeof(s->account));
		s->account.on_cpu_ns = s->dur_ns;
		s->account.end_cpu = s->cpu;
	}
	counters_fill(s, t);
	s->layer_id = cfg_details & MXBPF_DETAIL_LAYER ? f->layer_id : 0;
	s->nested = f->nested;
	s->h.size = MXBPF_SPAN_BYTES_WHOLE;
}

/* Fills s with the span of frame f, which ends at `now`. */
__noinline int span_fill(struct mxbpf_span *s, struct mxbpf_thread *t, struct mxbpf_frame *f, __u64 now, __u32 flags)
{
	if (!s || !t || !f)
		return 0;
	flags |= f->flags & MXBPF_SPAN_ASYNC;
	s->h.kind = MXBPF_SPAN;
	s->h.size = cfg_details ? MXBPF_SPAN_BYTES_DETAILS : MXBPF_SPAN_BYTES_PLAIN;
	s->h.tgid = t->tgid;
	s->h.ts_ns = f->start_ns;
	s->dur_ns = now - f->start_ns;
	s->self_ns = flags & MXBPF_SPAN_ASYNC ? 0 : s->dur_ns - f->child_ns;
	s->name_id = f->name_id;
	s->link = f->link;
	s->tid = f->tid;
	s->end_tid = t->tid;
	s->device = f->device;
	s->cls = f->cls;
	s->bulk = !!(f->flags & MXBPF_FRAME_BULK);
	s->flags = f->flags | flags;
	s->cpu = f->cpu;
	s->alloc_bytes = f->alloc_bytes;
	s->self_alloc_bytes = f->self_alloc_bytes;
	if (cfg_details) {
		s->args_id = f->args_id;
		s->stack_id = f->stack_id;
		s->seq = f->seq;
		s->origin = f->origin;
	}
	cost_fill(s, t, f);
	if (cfg_account)
		account_close(s, f);
	if (FILLS_WHOLE || (cfg_account && account_has_nested(f)))
		span_fill_rest(s, t, f);
	return 0;
}

/*
 * Sends the first `bytes` bytes of the record and the cost. The cost takes the place of members that this form lacks:
 * they are 0 before and after this call.
 */
static __always_inline long span_output_as(struct mxbpf_thread *t, struct mxbpf_span *s, __u32 bytes)
{
	struct mxbpf_span_cost *cost = (struct mxbpf_span_cost *)((char *)s + bytes);
	long err;

	s->h.size = MXBPF_WITH_COST(bytes);
	*cost = s->cost;
	err = bpf_ringbuf_output(&calls, s, MXBPF_WITH_COST(bytes), ring_flags(t));
	__builtin_memset(cost, 0, sizeof(*cost));
	return err;
}

/* Sends one of four forms. Each call has a constant size, because the verifier requires one. */
static __always_inline long span_output(struct mxbpf_thread *t, struct mxbpf_span *s)
{
	if (FILLS_WHOLE || s->h.size == MXBPF_SPAN_BYTES_WHOLE)
		return span_output_as(t, s, MXBPF_SPAN_BYTES_WHOLE);
	if (s->h.size == MXBPF_SPAN_BYTES_ACCOUNT)
		return span_output_as(t, s, MXBPF_SPAN_BYTES_ACCOUNT);
	return span_output_as(t, s, cfg_details ? MXBPF_SPAN_BYTES_DETAILS : MXBPF_SPAN_BYTES_PLAIN);
}

/* Sends a finished span to the ring. */
__noinline int span_send(struct mxbpf_thread *t, struct mxbpf_span *s)
{
	if (!t || !s)
		return 0;
	t->counts[MXBPF_COUNT_ATTEMPTED]++;
	if (span_output(t, s)) {
		t->counts[MXBPF_COUNT_DROPPED]++;
		__sync_fetch_and_add(&ring_full, 1);
	}
	return 0;
}

static __always_inline void span_emit(struct mxbpf_thread *t, struct mxbpf_frame *f, __u64 now, __u32 flags)
{
	span_fill(&t->done, t, f, now, flags);
	span_send(t, &t->done);
}

/* Sends the first child as a span of its own. A second child shows that it was not its parent's twin. */
static __always_inline void twin_emit(struct mxbpf_thread *t, struct mxbpf_frame *f)
{
	span_send(t, &f->twin);
	f->twin.dur_ns = 0;
}

/* Pops the top frame f and returns its parent. Memory allocated in f was also allocated in the parent. */
static __always_inline struct mxbpf_frame *frame_off(struct mxbpf_thread *t, struct mxbpf_frame *f)
{
	struct mxbpf_frame *parent;

	t->depth--;
	slot_release(t);
	parent = frame_top(t);
	if (parent)
		parent->alloc_bytes += f->alloc_bytes;
	return parent;
}

#endif
