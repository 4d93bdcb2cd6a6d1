/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * Stacks of Python's frames between BPF and user space: where an interpreter keeps them (rodata cfg_python), and what a
 * walk leaves in map `stacks`. A code object may be gone by the time that user space reads its name, and another may
 * lie in its place: a frame bears a print of what its code object holds, computed by both in the same way.
 */
#ifndef MXBPF_STACK_H
#define MXBPF_STACK_H

#include "mxbpf_event.h"

#define MXBPF_STACK_FRAMES_MAX 32   /* innermost; what is below is cut, and that is said */
#define MXBPF_STACKS_MAX       8192 /* different ones of a session */

/* What is read of an object at one time. */
#define MXBPF_PY_STATE_BYTES 160
#define MXBPF_PY_FRAME_BYTES 88
#define MXBPF_PY_CODE_BYTES  128
#define MXBPF_PY_CODE_START  16
#define MXBPF_PY_TEXT_BYTES  96
#define MXBPF_PY_TEXT_START  16
#define MXBPF_PY_TEXT_HEAD   24 /* of these, what each string has: length, hash, state */
#define MXBPF_PY_PRINT_WORDS 5
#define MXBPF_PY_PRINT_TEXT  64 /* bytes of the file's name that go into the print */

#define MXBPF_PY_NONE	     0xffff
#define MXBPF_PY_OWNER_C     3 /* the interpreter's own frame between two of C's */
#define MXBPF_PY_TEXT_STATE  (32 - MXBPF_PY_TEXT_START)
#define MXBPF_PY_STATE_ASCII (1 << 6)

/* Offsets. All 0: no interpreter. */
struct mxbpf_python {
	__s32 tls;	    /* from a thread's base (fs): its PyThreadState */
	__u16 state_start;  /* of the bytes that are read of it; the next two are from here */
	__u16 state_thread; /* the base of its thread */
	__u16 state_frame;  /* its innermost frame, */
	__u16 cframe_frame; /* or a structure with that; MXBPF_PY_NONE */
	__u16 frame_start;  /* of the bytes that are read of a frame; frame_back to frame_owner are from here */
	__u16 frame_bytes;  /* how many: what lies behind a frame may be a page that nobody has touched */
	__u16 frame_back, frame_code, frame_instr;
	__u16 frame_owner; /* MXBPF_PY_NONE: all frames are Python's */
	__u16 instr_bytes; /* frame_instr is a number (32 bit) of instructions of so many bytes; 0: an address */
	__u16 frame_local; /* from the frame: its first local variable */
	__u16 code_instrs; /* from the code object: the first instruction; with addresses */
	__u16 code_name;   /* likewise: the function's name */
	__u16 code_file;   /* the file's; this and the words of the print are from MXBPF_PY_CODE_START */
	__u16 code_print[MXBPF_PY_PRINT_WORDS];
	__u16 text; /* the bytes of an ASCII string, from MXBPF_PY_TEXT_START */
	__u16 pad;
};

struct mxbpf_stack_frame {
	__u64 code;  /* address of its code object */
	__u64 print; /* of what that holds */
	__u64 type;  /* class of the module whose call it is; 0: it is none's, as far as is known */
	__u32 instr; /* in bytes from the first instruction */
	__u32 pad;
};

/* Value of map `stacks`, by the stack_id that BPF gives; user space makes another of the text. */
struct mxbpf_stack {
	__u32 n;
	__u32 cut; /* there are more frames below */
	struct mxbpf_stack_frame frames[MXBPF_STACK_FRAMES_MAX];
};

#define MXBPF_PY_WORD(bytes, off) (*(const __u64 *)((const char *)(bytes) + (off)))

static inline __attribute__((always_inline)) __u64 mxbpf_stack_fold(__u64 h, __u64 word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/* Of the bytes of a string, of which only those that never change are its own. */
static inline __attribute__((always_inline)) __u64 mxbpf_text_print(const volatile struct mxbpf_python *py,
								    const void *bytes)
{
	__u64 len = MXBPF_PY_WORD(bytes, 0), h = mxbpf_stack_fold(1, len), word;
	__u32 i;

	if (!(*((const __u8 *)bytes + MXBPF_PY_TEXT_STATE) & MXBPF_PY_STATE_ASCII))
		return h;
	for (i = 0; i < MXBPF_PY_PRINT_TEXT / 8; i++) {
		if (i * 8 >= len)
			break;
		word = MXBPF_PY_WORD(bytes, py->text + i * 8);
		if (len - i * 8 < 8)
			word &= (1ull << ((len - i * 8) * 8)) - 1;
		h = mxbpf_stack_fold(h, word);
	}
	return h;
}

/* Of the bytes of a code object and the print of its file's name. */
static inline __attribute__((always_inline)) __u64 mxbpf_code_print(const volatile struct mxbpf_python *py,
								    const void *bytes, __u64 file_print)
{
	__u64 h = file_print;
	int i;

	for (i = 0; i < MXBPF_PY_PRINT_WORDS; i++)
		h = mxbpf_stack_fold(h, MXBPF_PY_WORD(bytes, py->code_print[i]));
	return h;
}

#endif
