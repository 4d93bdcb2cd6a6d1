/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * The id of a name is a hash of its text, the same in BPF (bytes read from the target) and in user space (names that
 * the plan knows), so that one name has one id wherever it comes from. A text is hashed in parts as BPF reads it.
 */
#ifndef MXBPF_NAME_H
#define MXBPF_NAME_H

#include "mxbpf_event.h"

/* Longest name that is kept; a longer one is cut there and counted as truncated. */
#define MXBPF_NAME_BYTES_MAX 4096
#define MXBPF_TEXT_BYTES_MAX 32768 /* of kinds ARGS, STACK and CODE */

#define MXBPF_NAME_PART_BYTES 256
#define MXBPF_NAME_PARTS_MAX  (MXBPF_NAME_BYTES_MAX / MXBPF_NAME_PART_BYTES)
#define MXBPF_NAMES_MAX	      8192 /* parts of names known to BPF */

/* name_id of a span whose name is a constant of the library: its address in the file with this bit set; user space
 * resolves it from there. */
#define MXBPF_NAME_STATIC_BIT (1ull << 63)

/* name_id of a span whose runtime gave it a null or empty name. Hashes are odd, addresses have the static bit. */
#define MXBPF_NAME_UNNAMED 2ull

/* Tag of a name that is two others with "::" between them: its bytes are their ids. */
#define MXBPF_NAME_TAG_PAIR 0xffff

/*
 * A NAMED_OBJECT id, the same in every process: the vtable's address in its file, the row's tag above it, the number of
 * the image above that, with the static bit and this one. Image 0: in none that the plan knows, address in the process.
 */
#define MXBPF_NAME_OBJECT_BIT  (1ull << 62)
#define MXBPF_NAME_TAG_SHIFT   48
#define MXBPF_NAME_TAG_MASK    0x3f
#define MXBPF_NAME_IMAGE_SHIFT 54
#define MXBPF_NAME_IMAGE_MASK  0xff
#define MXBPF_NAME_ADDR_MASK   ((1ull << MXBPF_NAME_TAG_SHIFT) - 1)

struct mxbpf_name_key {
	__u64 id;
	__u64 part;
};

struct mxbpf_name_part {
	__u32 len;  /* bytes in text */
	__u16 more; /* another part follows */
	__u16 tag;  /* row.name_tag of the row that read it */
	char text[MXBPF_NAME_PART_BYTES];
};

#define MXBPF_NAME_TEXT_MAX (MXBPF_NAME_PART_BYTES - 1) /* of a part; reading a string ends each with a NUL */
#define MXBPF_NAME_SEED	    0xcbf29ce484222325ull

static inline __attribute__((always_inline)) __u64 mxbpf_name_fold_word(__u64 h, __u64 word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/*
 * Folds the first len bytes of a part into h, eight at a time. words: MXBPF_NAME_PART_BYTES readable bytes. What is
 * left over comes after the loop: a second way through each turn of it would be ten times the work for the verifier,
 * which has to see the loop's own count there, not one that the compiler makes of len.
 */
static inline __attribute__((always_inline)) __u64 mxbpf_name_fold(__u64 h, const __u64 *words, __u32 len)
{
	__u32 i;

	for (i = 0; i < MXBPF_NAME_PART_BYTES / 8; i++) {
		if (i * 8 + 8 > len)
			break;
		h = mxbpf_name_fold_word(h, words[i]);
		asm volatile("" : "+r"(i));
	}
	if (i == MXBPF_NAME_PART_BYTES / 8 || i * 8 >= len)
		return h;
	return mxbpf_name_fold_word(h, words[i] & ((1ull << ((len & 7) * 8)) - 1));
}

/* Odd, without the marks of other kinds of ids. */
static inline __attribute__((always_inline)) __u64 mxbpf_name_id(__u64 h)
{
	return ((h ^ (h >> 32)) & ~(MXBPF_NAME_STATIC_BIT | MXBPF_NAME_OBJECT_BIT)) | 1;
}

#endif
