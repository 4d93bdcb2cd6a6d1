/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Operators that are written in the program's language. MXNet runs them on threads of their own, where they push
 * operators of the engine's; these run elsewhere and later, but are theirs.
 */
#ifndef CUSTOM_BPF_H
#define CUSTOM_BPF_H

#include "common.bpf.h"
#include "frame.bpf.h"
#include "name.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MXBPF_NOTED_MAX);
	__type(key, struct mxbpf_pushed_key);
	__type(value, __u64);
} pushed SEC(".maps");

__u8 custom_seen; /* there is any: else nobody looks */

/* The end of an operator is that of the engine's work, whatever its table. */
static __always_inline __u8 frame_key_class(const struct mxbpf_frame *f)
{
	return f->cls == MXBPF_CLASS_CUSTOM ? MXBPF_CLASS_OPERATOR : f->cls;
}

/* The program's part begins: f's key is what the operator is called, f's name says besides what part of it. */
static __always_inline void custom_open(struct pt_regs *ctx, struct mxbpf_thread *t, struct mxbpf_frame *f,
					const volatile struct mxbpf_row *row)
{
	__u64 text = fetch(ctx, t, &row->name);

	f->key = text ? name_intern(t, text, row->name_tag + 1) : 0;
	custom_seen = 1;
}

/* custom_running() of frames from `from` on, at most FRAMES_STEP. */
__noinline __u64 custom_running_step(struct mxbpf_thread *t, __u32 from)
{
	struct mxbpf_frame *f;
	__u32 i;

	t = frames_of(t);
	for (i = 0; t && i < FRAMES_STEP && from + i < t->depth; i++) {
		f = frame_near(t, from, i);
		if (f && f->cls == MXBPF_CLASS_CUSTOM && f->end != MXBPF_END_KEY)
			return f->key;
	}
	return 0;
}

/* Name id of the custom operator that the thread runs the program's part of; 0: none. */
__noinline __u64 custom_running(struct mxbpf_thread *t)
{
	__u64 id = 0;
	__u32 i;

	for (i = 0; t && i < MXBPF_FRAMES_MAX && i < t->depth && !id; i += FRAMES_STEP)
		id = custom_running_step(t, i);
	return id;
}

static __always_inline void custom_push(struct pt_regs *ctx, struct mxbpf_thread *t,
					const volatile struct mxbpf_row *row)
{
	struct mxbpf_pushed_key key = {.tgid = t->tgid};
	__u64 name_id;

	if (!custom_seen || !t->depth)
		return;
	name_id = custom_running(t);
	key.opr = fetch(ctx, t, &row->key);
	if (name_id && key.opr)
		bpf_map_update_elem(&pushed, &key, &name_id, BPF_ANY);
}

/* "double::_mul_scalar" as an id, whose parts user space reads. The slot is looked up as in name_store(). */
__noinline __u64 custom_pair(struct mxbpf_thread *t, __u64 first, __u64 second)
{
	struct mxbpf_name_key key = {};
	__u32 slot = t ? t->slot : 0;

	t = bpf_map_lookup_elem(&threads, &slot);
	if (!t)
		return 0;
	((__u64 *)t->part.text)[0] = first;
	((__u64 *)t->part.text)[1] = second;
	key.id = mxbpf_name_id(mxbpf_name_fold(MXBPF_NAME_SEED + MXBPF_NAME_TAG_PAIR, (__u64 *)t->part.text, 16));
	if (bpf_map_lookup_elem(&names, &key))
		return key.id;
	t->part.len = 16;
	t->part.more = 0;
	t->part.tag = MXBPF_NAME_TAG_PAIR;
	if (bpf_map_update_elem(&names, &key, &t->part, BPF_ANY))
		t->counts[MXBPF_COUNT_TRUNCATED]++;
	return key.id;
}

/* The name of an operator that the engine begins, if a custom one pushed it; else 0. */
__noinline __u64 custom_name(struct mxbpf_thread *t, __u64 opr, __u64 name_id)
{
	struct mxbpf_pushed_key key = {.opr = opr};
	__u64 *by, first;

	if (!t)
		return 0;
	key.tgid = t->tgid;
	by = bpf_map_lookup_elem(&pushed, &key);
	if (!by)
		return 0;
	first = *by;
	bpf_map_delete_elem(&pushed, &key);
	return custom_pair(t, first, name_id);
}

#endif
