/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The open spans of a thread. Frames 0 to 31 are in the thread's own slot, and each further 32 frames take one more
 * slot. All slots are in one map, so the verifier sees one kind of pointer for every frame. A function that walks
 * all frames calls another one that walks FRAMES_STEP of them, because the verifier follows each iteration of a
 * loop, but checks a global function once.
 */
#ifndef FRAME_BPF_H
#define FRAME_BPF_H

#include "common.bpf.h"

/* Bits of frame.flags above those of enum mxbpf_span_flag. */
#define MXBPF_FRAME_AT_ONCE (1u << 8) /* the operator runs in its push (row.at_once) */
#define MXBPF_FRAME_BULK    (1u << 9) /* the span is a bulk: operators that run in it have spans of their own */

#define FRAMES_STEP  16
#define FRAMES_STEPS (MXBPF_FRAMES_MAX / FRAMES_STEP)

/* Free slots for the frames beyond a thread's first 32. User space fills this stack. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, MXBPF_SLOTS_DEEP);
	__uint(key_size, 0);
	__uint(value_size, sizeof(__u32));
} deep_slots SEC(".maps");

/* Returns the slot that holds frame i, or 0 if t has no room for it. */
static __always_inline __u32 frame_slot(struct mxbpf_thread *t, __u32 i)
{
	__u32 k = i / MXBPF_SLOT_FRAMES;

	if (k >= t->nslots || k >= MXBPF_THREAD_SLOTS)
		return 0;
	asm volatile("%0 &= %1" : "+r"(k) : "i"(MXBPF_THREAD_SLOTS - 1));
	return t->slots[k];
}

/*
 * Returns frame i, or NULL if t has no room for it (as for i == -1). The mask is for the verifier, which would lose
 * the bound when the compiler computes the address before the comparison.
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
 * Returns frame i + by, in a loop over `by`. The mask hides the sum's relation to i from the verifier, which would
 * otherwise learn something new in each iteration and not end.
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
 * Returns t as an element of its map. In a global function, an argument is plain memory to the verifier, so it
 * would follow two kinds of pointers from each frame_at() on.
 */
static __always_inline struct mxbpf_thread *frames_of(struct mxbpf_thread *t)
{
	__u32 slot = t ? t->slot : 0;

	return slot ? bpf_map_lookup_elem(&threads, &slot) : 0;
}

/*
 * Adds a slot to t if its frames are full. Returns -1 if no slot is left, or if calls in progress were dropped.
 * Calls nested in dropped ones are dropped too, since their ends could not be told apart.
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

/* Gives back slots of t until n are left. */
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

/* Returns the frame for the next span of t, or NULL if there is no room. */
static __always_inline struct mxbpf_frame *frame_new(struct mxbpf_thread *t)
{
	__u32 d = t->depth;

	return d >= MXBPF_SLOT_FRAMES && slot_add(t) ? 0 : frame_at(t, d);
}

/*
 * Gives back a slot after the top frame was popped, once the slot below is half empty. Calls around a slot's edge
 * then do not take and give back the slot each time.
 */
static __always_inline void slot_release(struct mxbpf_thread *t)
{
	__u32 n = t->nslots;

	if (n > 1 && t->depth + MXBPF_SLOT_FRAMES + MXBPF_SLOT_FRAMES / 2 <= n * MXBPF_SLOT_FRAMES)
		slots_keep(t, n - 1);
}

#endif
