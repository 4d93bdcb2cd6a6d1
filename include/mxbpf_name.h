/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * Name ids. The id of a name is a hash of its text. BPF computes it from bytes of the target and user space from
 * names that the plan knows, with the same function, so one name has one id. A text is hashed in the parts that BPF
 * reads.
 */
#ifndef MXBPF_NAME_H
#define MXBPF_NAME_H

#include "mxbpf_event.h"

/* Longest name in bytes. A longer one is cut and counted as truncated. */
#define MXBPF_NAME_BYTES_MAX 4096
#define MXBPF_TEXT_BYTES_MAX 32768 /* limit for names of kinds ARGS, STACK and CODE */

#define MXBPF_NAME_PART_BYTES 256
#define MXBPF_NAME_PARTS_MAX  (MXBPF_NAME_BYTES_MAX / MXBPF_NAME_PART_BYTES)
#define MXBPF_NAMES_MAX	      8192 /* parts of names known to BPF */

/* A name_id with this bit is the address of a constant in the library's file. User space reads the name there. */
#define MXBPF_NAME_STATIC_BIT (1ull << 63)

/*
 * name_id of a span without a name: the runtime passed a null or empty string. Hashes are odd and addresses have
 * the static bit, so neither equals this.
 */
#define MXBPF_NAME_UNNAMED 2ull
/* name_id of the row of all further names of a process, see MDL_ROWS_MAX. No record of BPF has it. */
#define MXBPF_NAME_MORE 4ull

/* Tag of a name that joins two names with "::". Its bytes are their ids. */
#define MXBPF_NAME_TAG_PAIR 0xffff

/*
 * A NAMED_OBJECT id, which is the same in every process. From the low bits: the vtable's address in its file, the
 * row's tag, the number of the image; then the static bit and this one. Image 0: the vtable is in no known library,
 * and its address is that in the process.
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
	__u16 more; /* 1: another part follows */
	__u16 tag;  /* row.name_tag of the row that read it */
	char text[MXBPF_NAME_PART_BYTES];
};

#define MXBPF_NAME_TEXT_MAX (MXBPF_NAME_PART_BYTES - 1) /* longest text of a part, without its NUL */
#define MXBPF_NAME_SEED	    0xcbf29ce484222325ull

static inline __attribute__((always_inline)) __u64 mxbpf_name_fold_word(__u64 h, __u64 word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/*
 * Adds the first len bytes of a part to hash h, eight at a time. `words` has MXBPF_NAME_PART_BYTES readable bytes.
 * The rest after the last full word is handled after the loop: a branch in the loop would be ten times the work for
 * the verifier. The verifier must see the loop's own count there, and not one that the compiler derives from len.
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

/* Makes a hash odd and clears the bits that mark other kinds of ids. */
static inline __attribute__((always_inline)) __u64 mxbpf_name_id(__u64 h)
{
	return ((h ^ (h >> 32)) & ~(MXBPF_NAME_STATIC_BIT | MXBPF_NAME_OBJECT_BIT)) | 1;
}

#endif
