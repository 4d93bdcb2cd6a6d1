/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Segments of a graph, which the engine runs as one. A segment's name lists its operators in the order in which
 * they run: "[A,B]", or in newer versions "A{name=a;kernel=[2,2]},B{name=b;}]". If an operator that runs in a
 * segment has no name of its own, its position in the segment gives its name. A text of another form gives no name.
 */
#ifndef SEGMENT_BPF_H
#define SEGMENT_BPF_H

#include "common.bpf.h"
#include "read/name.bpf.h"

/*
 * Key of map `noted`: an operator with a state. Its name is known when it is pushed, but not when it runs. An
 * operator and its backward operator have the same state, but write to different arrays.
 */
struct mxbpf_noted_key {
	__u64 state, output; /* addresses; output: the storage of the first array that the operator writes */
	__u32 tgid;
	__u16 ninputs, noutputs;
};
struct mxbpf_noted {
	__u64 name_id, layer_id;
};
#define MXBPF_NOTED_MAX 8192

#define SEGMENT_CHUNK  64
#define SEGMENT_CHUNKS 128
#define SEGMENT_NODE   0x3d656d616e7bull /* "{name=" in little-endian order: comes before a layer's name */
#define SEGMENT_BEFORE 6

enum segment_state {
	SEGMENT_SKIPPING = 0,
	SEGMENT_FOUND = 1,
	SEGMENT_BROKEN = 2,
};

/* Skips names in the first n bytes of the scratch part, until t->segment.skip names were skipped. */
__noinline int segment_skip(struct mxbpf_thread *t, __u32 n)
{
	__u32 i;

	if (!t)
		return 0;
	for (i = 0; i < SEGMENT_CHUNK && i < n; i++) {
		char c = t->part.text[i];

		if (t->segment.state != SEGMENT_SKIPPING)
			break;
		t->segment.off++;
		if (c == '{')
			t->segment.depth++;
		else if (c == '}' && !t->segment.depth--)
			t->segment.state = SEGMENT_BROKEN;
		else if (c == ',' && !t->segment.depth && !--t->segment.skip)
			t->segment.state = SEGMENT_FOUND;
	}
	return 0;
}

/* Returns the address of the name that follows `skip` names in the text, or 0 if the search reaches its limit. */
__noinline __u64 segment_find(struct mxbpf_thread *t, __u64 text, __u32 skip)
{
	__u32 i;
	long n;

	if (!t)
		return 0;
	t->segment.off = t->segment.depth = 0;
	t->segment.skip = skip;
	t->segment.state = skip ? SEGMENT_SKIPPING : SEGMENT_FOUND;
	for (i = 0; i < SEGMENT_CHUNKS && t->segment.state == SEGMENT_SKIPPING; i++) {
		n = cstr_read(t->part.text, SEGMENT_CHUNK + 1, text + t->segment.off);
		if (n <= 1)
			break;
		segment_skip(t, n - 1);
	}
	return t->segment.state == SEGMENT_FOUND ? text + t->segment.off : 0;
}

static __always_inline bool segment_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/*
 * Returns the length of the word at the start of the scratch part, or, if `word` is 0, of the text up to ';' or
 * '}'.
 */
__noinline __u32 segment_length(struct mxbpf_thread *t, __u32 word)
{
	__u32 i;

	if (!t)
		return 0;
	for (i = 0; i < MXBPF_NAME_TEXT_MAX; i++) {
		char c = t->part.text[i];

		if (word ? !segment_is_word(c) : !c || c == ';' || c == '}')
			break;
	}
	return i;
}

/* Returns the id of the text in the first len bytes of the scratch part. */
__noinline __u64 segment_intern(struct mxbpf_thread *t, __u32 len)
{
	struct mxbpf_name_key key = {};
	__u32 slot = t ? t->slot : 0;

	t = bpf_map_lookup_elem(&threads,
				&slot); /* the verifier of Linux <= 6.1 needs this lookup, see name_store_part() */
	if (!t || !len || len > MXBPF_NAME_TEXT_MAX)
		return 0;
	key.id = mxbpf_name_id(name_hash(t, MXBPF_NAME_SEED, len));
	if (bpf_map_lookup_elem(&names, &key))
		return key.id;
	t->part.len = len;
	t->part.more = t->part.tag = 0;
	if (bpf_map_update_elem(&names, &key, &t->part, BPF_ANY))
		t->counts[MXBPF_COUNT_TRUNCATED]++;
	return key.id;
}

/* Returns the id of the text at addr, up to the end of a word or up to ';' or '}'. Returns 0 if it is empty. */
__noinline __u64 segment_text(struct mxbpf_thread *t, __u64 addr, __u32 word)
{
	if (!t || cstr_read(t->part.text, sizeof(t->part.text), addr) < 0)
		return 0;
	t->segment.length = segment_length(t, word);
	t->segment.next = t->part.text[t->segment.length & (MXBPF_NAME_PART_BYTES - 1)];
	return segment_intern(t, t->segment.length);
}

/*
 * Finds the name of the operator that runs after `before` others in the segment with this text, and its layer if
 * the text has it.
 */
__noinline int segment_name(struct mxbpf_thread *t, __u64 text, __u32 before, struct mxbpf_noted *out)
{
	__u64 addr, word = 0;
	char first = 0;

	if (!t || !out)
		return 0;
	addr = segment_find(t, text, before);
	bpf_probe_read_user(&first, sizeof(first), (void *)addr);
	addr += first == '[';
	out->name_id = addr ? segment_text(t, addr, 1) : 0;
	if (t->segment.next && t->segment.next != ',' && t->segment.next != ']' && t->segment.next != '{')
		out->name_id = 0;
	if (!out->name_id)
		t->counts[MXBPF_COUNT_UNREADABLE]++;
	if (!out->name_id || !(cfg_details & MXBPF_DETAIL_LAYER))
		return 0;
	addr += t->segment.length;
	if (!bpf_probe_read_user(&word, SEGMENT_BEFORE, (void *)addr) && word == SEGMENT_NODE &&
	    !name_is_numbered(addr + SEGMENT_BEFORE))
		out->layer_id = segment_text(t, addr + SEGMENT_BEFORE, 0);
	return 0;
}

#endif
