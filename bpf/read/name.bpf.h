/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Names: the bytes are read when the span opens (they may be gone when it ends), hashed to an id, and put into a map at
 * first sight, where user space finds them: a name in a ring record could be dropped and leave an id nameless for ever.
 */
#ifndef NAME_BPF_H
#define NAME_BPF_H

#include "common.bpf.h"
#include "mxbpf_name.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MXBPF_NAMES_MAX);
	__type(key, struct mxbpf_name_key);
	__type(value, struct mxbpf_name_part);
} names SEC(".maps");

/* Folds len bytes of the thread's scratch part into h, eight at a time. */
__noinline __u64 name_hash(struct mxbpf_thread *t, __u64 h, __u32 len)
{
	if (!t)
		return 0;
	return mxbpf_name_fold(h, (const __u64 *)t->part.text, len);
}

/*
 * One part into the map; 0 if it is there. The slot is looked up once more, as Linux <= 6.1 puts nothing into a map
 * that a global function got as its argument.
 */
__noinline int name_store_part(__u32 slot, __u64 addr, __u64 id, __u32 part, __u32 tag)
{
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);
	struct mxbpf_name_key key = {.id = id, .part = part};
	long n;

	if (!t)
		return -1;
	n = cstr_read(t->part.text, sizeof(t->part.text), addr + (__u64)part * MXBPF_NAME_TEXT_MAX);
	if (n < 0) /* it has gone meanwhile */
		return -1;
	t->part.len = n - 1;
	t->part.tag = tag;
	if (bpf_map_update_elem(&names, &key, &t->part, BPF_ANY))
		return -1;
	t->part.more = 1; /* of those that are still to come */
	return 0;
}

/* Second pass, once per name: the parts into the map, the first one last, as it is the sign that all are there. */
__noinline int name_store(struct mxbpf_thread *t, __u64 addr, __u64 id, __u32 parts, __u32 tag)
{
	int i;

	if (!t)
		return 0;
	t->part.more = 0;
	for (i = MXBPF_NAME_PARTS_MAX - 1; i >= 0; i--)
		if (i < parts && name_store_part(t->slot, addr, id, i, tag)) {
			t->counts[MXBPF_COUNT_TRUNCATED]++;
			break;
		}
	return 0;
}

/* The id of the C string at addr; 0 if it cannot be read. */
__noinline __u64 name_intern(struct mxbpf_thread *t, __u64 addr, __u32 tag)
{
	struct mxbpf_name_key key = {};
	__u64 h = MXBPF_NAME_SEED + tag;
	__u32 parts;
	long n = 0;

	if (!t)
		return 0;
	for (parts = 0; parts < MXBPF_NAME_PARTS_MAX;) {
		n = cstr_read(t->part.text, sizeof(t->part.text), addr + (__u64)parts * MXBPF_NAME_TEXT_MAX);
		if (n < 0) {
			t->counts[MXBPF_COUNT_UNREADABLE]++;
			return 0;
		}
		h = name_hash(t, h, n - 1);
		parts++;
		if (n <= MXBPF_NAME_TEXT_MAX)
			break;
	}
	if (n > MXBPF_NAME_TEXT_MAX)
		t->counts[MXBPF_COUNT_TRUNCATED]++;
	if (parts == 1 && n == 1)
		return MXBPF_NAME_UNNAMED;
	h = mxbpf_name_id(h);
	key.id = h;
	if (!bpf_map_lookup_elem(&names, &key))
		name_store(t, addr, h, parts, tag);
	return h;
}

#define NODE_WORD 0x5f65646f6eull /* "node_" */

/* Autograd makes up such a name for what the program calls one by one, "node_796": no layer is called so, and each call
 * has another. */
static __always_inline bool name_is_numbered(__u64 text)
{
	__u64 word = 0;

	bpf_probe_read_user_str(&word, sizeof(word), (void *)text);
	return (word & 0xffffffffff) == NODE_WORD && (word >> 40 & 0xff) >= '0' && (word >> 40 & 0xff) <= '9';
}

/* The name of a function of the plan, by its number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MXBPF_FUNCS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} func_names SEC(".maps");

static __always_inline __u64 func_name(__u32 func)
{
	__u64 *id = bpf_map_lookup_elem(&func_names, &func);

	return id ? *id : 0;
}

/* A vtable's address as every process of the same libraries has it. */
__noinline __u64 object_id(struct mxbpf_thread *t, __u64 vtable)
{
	struct mxbpf_target *target;
	__u32 tgid, i;

	if (!t)
		return 0;
	tgid = t->tgid;
	target = bpf_map_lookup_elem(&targets, &tgid);
	for (i = 0; target && i < MXBPF_IMAGES_MAX; i++)
		if (vtable >= target->images[i].start && vtable < target->images[i].end)
			return (vtable - target->images[i].base) | (__u64)(i + 1) << MXBPF_NAME_IMAGE_SHIFT;
	return vtable & MXBPF_NAME_ADDR_MASK;
}

static __always_inline __u64 name_of(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	__u64 v;

	if (row->name_type == MXBPF_NAMED_NOT)
		return 0;
	t->fetch_failed = 0;
	v = fetch(ctx, t, &row->name);
	if (!v)
		return t->fetch_failed ? 0 : MXBPF_NAME_UNNAMED;
	if (row->name_type == MXBPF_NAMED_BYTES)
		return name_intern(t, v, row->name_tag);
	if (row->name_type == MXBPF_NAMED_STATIC)
		return (v - t->static_base) | MXBPF_NAME_STATIC_BIT;
	if (row->name_type == MXBPF_NAMED_OBJECT)
		v = object_id(t, v);
	if (row->name_type == MXBPF_NAMED_OBJECT && row->alt_object && v == row->alt_object) {
		v = fetch(ctx, t, &row->alt_name);
		return v ? name_intern(t, v, row->name_tag) : MXBPF_NAME_UNNAMED;
	}
	if (row->name_type == MXBPF_NAMED_OBJECT)
		return v | (__u64)row->name_tag << MXBPF_NAME_TAG_SHIFT | MXBPF_NAME_STATIC_BIT | MXBPF_NAME_OBJECT_BIT;
	return func_name(v & MXBPF_FUNC_MASK);
}

#endif
