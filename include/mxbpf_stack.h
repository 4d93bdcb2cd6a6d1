/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * Python stacks: where an interpreter keeps its frames (rodata cfg_python), and the stacks that BPF puts into map
 * `stacks`. A code object may be freed before user space reads its name, and another one may take its place. Each
 * frame therefore has a hash ("print") of the code object's content, which BPF and user space compute in the same
 * way.
 */
#ifndef MXBPF_STACK_H
#define MXBPF_STACK_H

#include "mxbpf_event.h"

#define MXBPF_STACK_FRAMES_MAX 32   /* innermost frames that are kept; `cut` says that there are more */
#define MXBPF_STACKS_MAX       8192 /* different stacks of a session */

/* Bytes that are read of each kind of object. */
#define MXBPF_PY_STATE_BYTES 160
#define MXBPF_PY_FRAME_BYTES 88
#define MXBPF_PY_CODE_BYTES  128
#define MXBPF_PY_TEXT_BYTES  96
#define MXBPF_PY_TEXT_HEAD   24 /* of a string: its length, hash and state */
#define MXBPF_PY_PRINT_WORDS 5
#define MXBPF_PY_PRINT_TEXT  64 /* bytes of the file name that go into the print */

#define MXBPF_PY_NONE	     0xffff
#define MXBPF_PY_OWNER_C     3	     /* frame of the interpreter between two C functions; 3.14 has two kinds: 3 and 4 */
#define MXBPF_PY_POINTER     (~3ull) /* the address in a reference of a frame: from 3.14 on, the low bits are a tag */
#define MXBPF_PY_TEXT_STATE  16
#define MXBPF_PY_STATE_ASCII (1 << 6)

/*
 * Layout of an interpreter, as offsets. All 0: there is no interpreter. An object begins with its reference count and
 * its class, which take more bytes in a free-threaded build; what follows is at the same place after them in both.
 */
struct mxbpf_python {
	__s32 tls;	    /* from the thread's base (fs): address of its PyThreadState, or of a list; see tls_key */
	__u16 state_start;  /* start of the bytes read of the thread state; base of the next two offsets */
	__u16 state_thread; /* base of the state's thread */
	__u16 state_frame;  /* innermost frame, or a structure with it */
	__u16 cframe_frame; /* that frame in the structure; MXBPF_PY_NONE: no structure */
	__u16 frame_start;  /* start of the bytes read of a frame; base of frame_back to frame_owner */
	__u16 frame_bytes;  /* bytes read of a frame: the page after it may not be mapped */
	__u16 frame_back, frame_code, frame_instr;
	__u16 frame_owner; /* MXBPF_PY_NONE: all frames are Python's */
	__u16 instr_bytes; /* frame_instr counts instructions of this size; 0: it is an address */
	__u16 frame_local; /* from the frame: its first local variable */
	__u16 code_instrs; /* from the code object: its first instruction, if frame_instr is an address */
	__u16 code_name;   /* from the code object: name of the function */
	__u16 code_file;   /* name of the file; from the end of the object's head, as the print's words are */
	__u16 code_print[MXBPF_PY_PRINT_WORDS];
	__u16 text;	  /* bytes of an ASCII string, from the end of its head */
	__u16 text_shift; /* of the bits of its state */
	__u16 head;	  /* bytes of an object's head; the class is its last word */
	__u16 frame_copy; /* number (32 bits) of the copy of the code that a frame executes; MXBPF_PY_NONE: no copies */
	__u16 code_copies; /* from the code object: list of its copies: their number, and the address of each */
	__u16 tls_key;	   /* 1 + number of the word of that list with the address of the PyThreadState; 0: no list */
};

#define MXBPF_PY_CLASS(py) ((py)->head - 8) /* from an object */

struct mxbpf_stack_frame {
	__u64 code;  /* address of its code object */
	__u64 print; /* hash of the code object's content */
	__u64 type;  /* class of the module that it calls; 0: none known */
	__u32 instr; /* offset in bytes from the first instruction */
	__u32 pad;
};

/* Value of map `stacks`, by BPF's stack_id. User space makes another id from the text. */
struct mxbpf_stack {
	__u32 n;
	__u32 cut; /* 1: there are more, outer frames */
	struct mxbpf_stack_frame frames[MXBPF_STACK_FRAMES_MAX];
};

#define MXBPF_PY_WORD(bytes, off) (*(const __u64 *)((const char *)(bytes) + (off)))

static inline __attribute__((always_inline)) __u64 mxbpf_stack_fold(__u64 h, __u64 word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/* Returns a hash of a string, from those of its bytes that never change. */
static inline __attribute__((always_inline)) __u64 mxbpf_text_print(const volatile struct mxbpf_python *py,
								    const void *bytes)
{
	__u64 len = MXBPF_PY_WORD(bytes, 0), h = mxbpf_stack_fold(1, len), word;
	__u32 i;

	if (!((__u32)MXBPF_PY_WORD(bytes, MXBPF_PY_TEXT_STATE) >> py->text_shift & MXBPF_PY_STATE_ASCII))
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

/* Returns a hash of a code object's content and its file name's print. */
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
