/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Names. The bytes are read when the span opens, because they may be gone when it ends. Their hash is the name's
 * id. A new name is put into a map for user space to read. A record in the ring could be dropped, and then the id
 * would have no name for ever.
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

/* Adds len bytes of the thread's scratch part to hash h, eight bytes at a time. */
__noinline __u64 name_hash(struct mxbpf_thread *t, __u64 h, __u32 len)
{
	if (!t)
		return 0;
	return mxbpf_name_fold(h, (const __u64 *)t->part.text, len);
}

/*
 * Stores one part of a name. Returns 0 on success. The slot is looked up again, because Linux <= 6.1 does not let a
 * global function store its argument in a map.
 */
__noinline int name_store_part(__u32 slot, __u64 addr, __u64 id, __u32 part, __u32 tag)
{
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);
	struct mxbpf_name_key key = {.id = id, .part = part};
	long n;

	if (!t)
		return -1;
	n = cstr_read(t->part.text, sizeof(t->part.text), addr + (__u64)part * MXBPF_NAME_TEXT_MAX);
	if (n < 0) /* the string is gone by now */
		return -1;
	t->part.len = n - 1;
	t->part.tag = tag;
	if (bpf_map_update_elem(&names, &key, &t->part, BPF_ANY))
		return -1;
	t->part.more = 1; /* set for the parts still to be stored, which come before this one */
	return 0;
}

/* Stores all parts of a new name. The first part is stored last, since it is the sign that all parts are there. */
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

/* Returns the id of the C string at addr, or 0 if it cannot be read. */
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

/* Stores the first len bytes of the scratch part as a name. */
__noinline int name_store_text(struct mxbpf_thread *t, __u64 id, __u32 len)
{
	struct mxbpf_name_key key = {.id = id};
	__u32 slot = t ? t->slot : 0;

	t = bpf_map_lookup_elem(&threads, &slot);
	if (!t)
		return 0;
	t->part.len = len;
	t->part.more = 0;
	t->part.tag = 0;
	if (bpf_map_update_elem(&names, &key, &t->part, BPF_ANY))
		t->counts[MXBPF_COUNT_TRUNCATED]++;
	return 0;
}

/* In little-endian order */
#define SEQ_WORD   0x203d20716573202cull /* ", seq = " */
#define OP_ID_WORD 0x2064695f706f202cull /* ", op_id " */
#define SEQ_DIGITS 16

/* Returns where such a word is in the text of the scratch part, or 0. */
__noinline __u32 name_seq_at(struct mxbpf_thread *t)
{
	__u64 word;
	__u32 i;

	for (i = 1; t && i < MXBPF_NAME_PART_BYTES - 8; i++) {
		word = *(__u64 *)(t->part.text + i);
		if (word == SEQ_WORD || word == OP_ID_WORD)
			return i;
		if (!(word & 0xff))
			break;
	}
	return 0;
}

/* Returns 1 + the number after SEQ_WORD at `at`, or 0. */
__noinline __u64 name_seq(struct mxbpf_thread *t, __u32 at)
{
	__u64 v = 0;
	__u32 i;
	char c;

	if (!t || at >= MXBPF_NAME_PART_BYTES - 8 || *(__u64 *)(t->part.text + at) != SEQ_WORD)
		return 0;
	for (i = 0; i < SEQ_DIGITS; i++) {
		c = t->part.text[(at + 8 + i) & (MXBPF_NAME_PART_BYTES - 1)];
		if (c < '0' || c > '9')
			break;
		v = v * 10 + (c - '0');
	}
	return 1 + v;
}

/*
 * Returns the id of a name without the numbers that emit_nvtx() of PyTorch puts behind it, by which no two names would
 * be the same ("aten::mm, seq = 12, op_id = 7"). t->seq_in_name keeps the first one.
 */
__noinline __u64 name_intern_cut(struct mxbpf_thread *t, __u64 addr)
{
	struct mxbpf_name_key key = {};
	__u32 at;

	if (!t)
		return 0;
	t->seq_in_name = 0;
	if (cstr_read(t->part.text, sizeof(t->part.text), addr) < 0) {
		t->counts[MXBPF_COUNT_UNREADABLE]++;
		return 0;
	}
	at = name_seq_at(t);
	if (!at || at >= MXBPF_NAME_PART_BYTES)
		return name_intern(t, addr, 0);
	t->seq_in_name = name_seq(t, at);
	key.id = mxbpf_name_id(name_hash(t, MXBPF_NAME_SEED, at));
	if (!bpf_map_lookup_elem(&names, &key))
		name_store_text(t, key.id, at);
	return key.id;
}

#define NODE_WORD 0x5f65646f6eull /* "node_" in little-endian order */

/*
 * Returns true for a generated name such as "node_796". Autograd makes one for each operator that the program calls
 * by itself. No layer has such a name, and each call has another one.
 */
static __always_inline bool name_is_numbered(__u64 text)
{
	__u64 word = 0;

	bpf_probe_read_user_str(&word, sizeof(word), (void *)text);
	return (word & 0xffffffffff) == NODE_WORD && (word >> 40 & 0xff) >= '0' && (word >> 40 & 0xff) <= '9';
}

/* Name ids of the plan's functions, by function number. */
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

/*
 * Returns a vtable's address relative to its library, so that all processes with the same libraries get the same
 * id.
 */
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
	if (row->name_type == MXBPF_NAMED_BYTES && row->range_from == MXBPF_RANGE_FROM_NAME)
		return name_intern_cut(t, v);
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
