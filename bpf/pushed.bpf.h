/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * --memory with --py-stacks: which line of the program allocates. An engine runs an operator on a thread of its own,
 * and arrays get their memory there, when the operator writes them. So the Python stack is kept when an operator is
 * pushed, and found again when it starts: by the object that the engine runs, or in a bulk, by the first array that it
 * writes.
 */
#ifndef PUSHED_BPF_H
#define PUSHED_BPF_H

#include "common.bpf.h"
#include "frame.bpf.h"
#include "read/stack.bpf.h"

const volatile __u8 cfg_memory; /* --memory: records name the address and the owner */

#define READS_LINES (cfg_memory && cfg_details & MXBPF_DETAIL_STACK)

/* stack_id by the object (class OPERATOR), or by the storage of the array (class NONE). */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct mxbpf_key);
	__type(value, __u64);
} pushed_stacks SEC(".maps");

/* Returns the stack_id of the innermost of frames d - 1 to d - FRAMES_STEP that has one, or 0. */
__noinline __u64 open_stack_step(struct mxbpf_thread *t, __u32 d)
{
	struct mxbpf_frame *f;
	int i;

	t = frames_of(t);
	for (i = 1; t && i <= FRAMES_STEP; i++) {
		f = frame_near(t, d, -i);
		if (!f)
			break;
		if (f->stack_id)
			return f->stack_id;
	}
	return 0;
}

/* Returns the stack_id of the innermost open span that has one, or 0. */
__noinline __u64 open_stack(struct mxbpf_thread *t)
{
	__u64 id = 0;
	__u32 i;

	for (i = 0; t && i < MXBPF_FRAMES_MAX && i < t->depth && !id; i += FRAMES_STEP)
		id = open_stack_step(t, t->depth - i);
	return id;
}

/*
 * Returns the stack_id of the Python code that runs on this thread, or 0. The stack of an open span is that of its
 * start. It is still the thread's stack, because the code that called waits for the call.
 */
static __always_inline __u64 running_stack(struct mxbpf_thread *t)
{
	__u64 id = open_stack(t), frame;
	__u32 slot = t->slot;
	struct stack_room *r;

	if (id)
		return id;
	r = bpf_map_lookup_elem(&stack_rooms, &slot);
	frame = r ? stack_top(t, r) : 0;
	return frame ? stack_intern(t, frame) : 0;
}

/* Returns the stack_id of an allocation, or 0. */
static __always_inline __u64 alloc_stack(struct mxbpf_thread *t)
{
	__u64 id = running_stack(t);

	return id || !t->depth ? id : t->pushed_stack;
}

/*
 * Makes the key of an array, which begins with the address of its storage. Returns false if it has none. Activations
 * have keys of their own, because a start may pass unseen between two.
 */
static __always_inline bool pushed_key(struct mxbpf_thread *t, __u64 array, struct mxbpf_key *key)
{
	__u64 storage = 0;

	if (bpf_probe_read_user(&storage, sizeof(storage), (void *)array)) {
		t->counts[MXBPF_COUNT_UNREADABLE]++;
		return false;
	}
	key->key = storage ^ (__u64)activation << 56;
	key->tgid = t->tgid;
	return storage;
}

/*
 * Notes the stack that pushes an operator. Operators that write the same array run in the order of their pushes, and
 * the first one allocates, so the entry of an operator that still waits stays. The array exists until the operator
 * starts.
 */
__noinline int pushed_note(struct mxbpf_thread *t, __u64 array, __u64 stack_id)
{
	struct mxbpf_key key = {};

	if (t && pushed_key(t, array, &key))
		bpf_map_update_elem(&pushed_stacks, &key, &stack_id, BPF_NOEXIST);
	return 0;
}

/*
 * Finds the stack of an operator that starts in the engine's work `top`. `array` is the address of the first array that
 * it writes. In a bulk, the stack of the operator before does not apply.
 */
__noinline int pushed_starts(struct mxbpf_thread *t, __u64 array, __u32 in_bulk)
{
	struct mxbpf_key key = {};
	__u64 *stack_id;

	if (!t)
		return 0;
	if (in_bulk)
		t->pushed_stack = 0;
	if (!pushed_key(t, array, &key))
		return 0;
	stack_id = bpf_map_lookup_elem(&pushed_stacks, &key);
	if (!stack_id)
		return 0;
	t->pushed_stack = *stack_id;
	bpf_map_delete_elem(&pushed_stacks, &key);
	return 0;
}

/* Finds the stack of an operator that the engine starts as the object `link`. */
__noinline int pushed_runs(struct mxbpf_thread *t, __u64 link)
{
	struct mxbpf_key key = {.key = link, .cls = MXBPF_CLASS_OPERATOR};
	__u64 *stack_id;

	if (!t)
		return 0;
	key.tgid = t->tgid;
	stack_id = bpf_map_lookup_elem(&pushed_stacks, &key);
	t->pushed_stack = stack_id ? *stack_id : 0;
	return 0;
}

#endif
