/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The open spans of a thread: frames 0 to 31 are in its own slot, and it takes one more slot for each further 32. All
 * slots are in one map, so the verifier sees one kind of pointer wherever a frame lies. A function that walks all
 * frames calls another that walks FRAMES_STEP of them: the verifier follows every turn of a loop, but a global function
 * once.
 */
#ifndef FRAME_BPF_H
#define FRAME_BPF_H

#include "common.bpf.h"

/* In frame.flags beside enum mxbpf_span_flag. */
#define MXBPF_FRAME_AT_ONCE (1u << 8) /* row.at_once */
#define MXBPF_FRAME_BULK    (1u << 9) /* the span is a bulk: an operator that ran in it has a span of its own */

#define FRAMES_STEP  16
#define FRAMES_STEPS (MXBPF_FRAMES_MAX / FRAMES_STEP)

/* Slots for the frames beyond a thread's first 32; filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, MXBPF_SLOTS_DEEP);
	__uint(key_size, 0);
	__uint(value_size, sizeof(__u32));
} deep_slots SEC(".maps");

/* Number of the slot that frame i of t is in; 0: t has no room for it. */
static __always_inline __u32 frame_slot(struct mxbpf_thread *t, __u32 i)
{
	__u32 k = i / MXBPF_SLOT_FRAMES;

	if (k >= t->nslots || k >= MXBPF_THREAD_SLOTS)
		return 0;
	asm volatile("%0 &= %1" : "+r"(k) : "i"(MXBPF_THREAD_SLOTS - 1));
	return t->slots[k];
}

/*
 * Frame i; NULL if t has no room for it (i == -1 included). The mask is for the verifier, which would lose the bound
 * when the compiler computes the address before the comparison.
 */
static __always_inline struct mxbpf_frame *frame_at(struct mxbpf_thread *t, __u32 i)
{
	__u32 slot;

	if (i >= MXBPF_SLOT_FRAMES) {
		slot = frame_slot(t, i);
		t = slot ? bpf_map_lookup_elem(&threads, &slot) : 0;
		if (!t)
			return 0;
	}
	asm volatile("%0 &= %1" : "+r"(i) : "i"(MXBPF_SLOT_FRAMES - 1));
	return &t->frames[i];
}

/*
 * Frame i + by, in a loop over `by`. Behind the mask the verifier does not know the sum as one of i, of which it would
 * learn something else in each turn.
 */
static __always_inline struct mxbpf_frame *frame_near(struct mxbpf_thread *t, __u32 i, int by)
{
	i += by;
	asm volatile("%0 &= %1" : "+r"(i) : "i"(2 * MXBPF_FRAMES_MAX - 1));
	return frame_at(t, i);
}

static __always_inline struct mxbpf_frame *frame_top(struct mxbpf_thread *t)
{
	return frame_at(t, t->depth - 1);
}

/*
 * t as an element of its map. A global function knows its argument as memory only, so the verifier would follow two
 * kinds of pointers to frames from each frame_at() on.
 */
static __always_inline struct mxbpf_thread *frames_of(struct mxbpf_thread *t)
{
	__u32 slot = t ? t->slot : 0;

	return slot ? bpf_map_lookup_elem(&threads, &slot) : 0;
}

/*
 * One more slot for t. -1: there is none, or the calls under way include some that were dropped: a call inside these
 * is dropped as well, or its end would be taken for theirs.
 */
__noinline int slot_add(struct mxbpf_thread *t)
{
	__u32 n, slot;

	if (!t || t->over)
		return -1;
	n = t->nslots;
	if (t->depth < n * MXBPF_SLOT_FRAMES)
		return 0;
	if (n >= MXBPF_THREAD_SLOTS || bpf_map_pop_elem(&deep_slots, &slot))
		return -1;
	asm volatile("%0 &= %1" : "+r"(n) : "i"(MXBPF_THREAD_SLOTS - 1));
	t->slots[n] = slot;
	t->nslots = n + 1;
	return 0;
}

/* Gives back slots of t until it has n. */
__noinline int slots_keep(struct mxbpf_thread *t, __u32 n)
{
	__u32 i, last, slot;

	if (!t)
		return 0;
	for (i = 0; i < MXBPF_THREAD_SLOTS && t->nslots > n; i++) {
		last = t->nslots - 1;
		t->nslots = last;
		asm volatile("%0 &= %1" : "+r"(last) : "i"(MXBPF_THREAD_SLOTS - 1));
		slot = t->slots[last];
		bpf_map_push_elem(&deep_slots, &slot, BPF_ANY);
	}
	return 0;
}

/* The frame that the next span of t gets. NULL: there is no room. */
static __always_inline struct mxbpf_frame *frame_new(struct mxbpf_thread *t)
{
	__u32 d = t->depth;

	return d >= MXBPF_SLOT_FRAMES && slot_add(t) ? 0 : frame_at(t, d);
}

/*
 * After the top frame has gone. A slot is given back when the one below it is half empty, so that calls at the edge do
 * not take and give it each time.
 */
static __always_inline void slot_release(struct mxbpf_thread *t)
{
	__u32 n = t->nslots;

	if (n > 1 && t->depth + MXBPF_SLOT_FRAMES + MXBPF_SLOT_FRAMES / 2 <= n * MXBPF_SLOT_FRAMES)
		slots_keep(t, n - 1);
}

#endif
