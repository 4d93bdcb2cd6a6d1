/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Custom operators, which are written in the program's language. The runtime runs them on threads of their own.
 * There they push operators to the runtime's engine, which runs these later on other threads. The time of such an
 * operator belongs to the custom operator that pushed it.
 */
#ifndef CUSTOM_BPF_H
#define CUSTOM_BPF_H

#include "common.bpf.h"
#include "frame.bpf.h"
#include "read/name.bpf.h"

/*
 * Key of map `pushed`: an operator that a custom operator pushed, by the address of the engine's object. The value
 * is the name id of the custom operator.
 */
struct mxbpf_pushed_key {
	__u64 opr;
	__u64 tgid;
};
#define MXBPF_PUSHED_MAX 8192

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MXBPF_PUSHED_MAX);
	__type(key, struct mxbpf_pushed_key);
	__type(value, __u64);
} pushed SEC(".maps");

__u8 custom_seen; /* set by the first custom operator; while it is 0, all others skip the lookup */

/*
 * Returns the class of the key in open_keys. An operator of the engine has MXBPF_CLASS_OPERATOR there, even if its
 * time is shown under a custom operator.
 */
static __always_inline __u8 frame_key_class(const struct mxbpf_frame *f)
{
	return f->cls == MXBPF_CLASS_CUSTOM ? MXBPF_CLASS_OPERATOR : f->cls;
}

/*
 * Returns true if frame f is the program's own part of a custom operator. Operators that a custom operator pushed
 * end by key, or run at once in the synchronous engine.
 */
static __always_inline bool custom_is_part(const struct mxbpf_frame *f)
{
	return f->cls == MXBPF_CLASS_CUSTOM && f->end != MXBPF_END_KEY && !(f->flags & MXBPF_FRAME_AT_ONCE);
}

/*
 * The program's own part begins. Until it ends, operators that this thread pushes are charged to the custom
 * operator's type. If an exception leaves the part, the runtime keeps the charge until the thread runs the next
 * part, and so does this file. An autograd function has an empty type.
 */
static __always_inline void custom_open(struct pt_regs *ctx, struct mxbpf_thread *t, struct mxbpf_frame *f,
					const volatile struct mxbpf_row *row)
{
	__u64 text = row->name_type == MXBPF_NAMED_BYTES ? fetch(ctx, t, &row->name) : 0;

	f->custom_id = text ? name_intern(t, text, row->name_tag + 1) : MXBPF_NAME_UNNAMED;
	t->custom_id = f->custom_id;
	t->custom_since_ns = active_since_ns;
	custom_seen = 1;
}

/* Returns the type of the custom operator in frame i, or 0 if the frame is no such part. */
__noinline __u64 custom_at(struct mxbpf_thread *t, __u32 i)
{
	struct mxbpf_frame *f = t ? frame_at(t, i) : 0;

	return f && custom_is_part(f) ? f->custom_id : 0;
}

/* Does custom_innermost() for at most FRAMES_STEP frames, starting with `from`. */
__noinline __u64 custom_innermost_step(struct mxbpf_thread *t, __u32 from)
{
	__u64 id = 0, deeper;
	__u32 i;

	for (i = 0; t && i < FRAMES_STEP && from + i < t->depth; i++) {
		deeper = custom_at(t, from + i);
		id = deeper ? deeper : id;
	}
	return id;
}

/* Returns the type of the innermost open part, or 0. Parts are nested only in the synchronous engine. */
__noinline __u64 custom_innermost(struct mxbpf_thread *t)
{
	__u64 id = 0, deeper;
	__u32 i;

	for (i = 0; t && i < MXBPF_FRAMES_MAX && i < t->depth; i += FRAMES_STEP) {
		deeper = custom_innermost_step(t, i);
		id = deeper ? deeper : id;
	}
	return id;
}

/* Returns the name id of the type that this thread's pushes are charged to, or 0. */
static __always_inline __u64 custom_charged(const struct mxbpf_thread *t)
{
	return t->custom_since_ns == active_since_ns ? t->custom_id : 0;
}

static __always_inline void custom_push(struct pt_regs *ctx, struct mxbpf_thread *t,
					const volatile struct mxbpf_row *row)
{
	struct mxbpf_pushed_key key = {.tgid = t->tgid};
	__u64 name_id;

	if (!custom_seen)
		return;
	name_id = custom_charged(t);
	if (!name_id)
		return;
	key.opr = fetch(ctx, t, &row->key);
	if (key.opr)
		bpf_map_update_elem(&pushed, &key, &name_id, BPF_ANY);
}

/*
 * Returns an id for two joined names, such as "double::_mul_scalar". User space reads both halves. The slot is
 * looked up again for the verifier of Linux <= 6.1 (name_store_part()).
 */
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

/* Returns half i of an id that custom_pair() made, or 0 for other ids. */
__noinline __u64 custom_half(__u64 id, __u32 i)
{
	struct mxbpf_name_key key = {.id = id};
	struct mxbpf_name_part *part = bpf_map_lookup_elem(&names, &key);

	return part && part->tag == MXBPF_NAME_TAG_PAIR ? ((__u64 *)part->text)[i & 1] : 0;
}

/* Returns the engine's name for the operator in frame f. */
static __always_inline __u64 custom_own_name(const struct mxbpf_frame *f)
{
	return f->cls == MXBPF_CLASS_CUSTOM ? custom_half(f->name_id, 1) : f->name_id;
}

/* Returns the joined name of an operator that the engine begins, if a custom operator pushed it, or 0. */
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

/*
 * Returns the joined name of an operator from the type it is charged to, or 0. In the synchronous engine that is
 * the type of its thread, else the type of its bulk.
 */
__noinline __u64 custom_name_in(struct mxbpf_thread *t, __u64 first, __u64 name_id)
{
	return first ? custom_pair(t, first, name_id) : 0;
}

#endif
