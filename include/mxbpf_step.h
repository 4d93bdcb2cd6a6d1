/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* Iterations of a training loop: the moments that tell them, and what user space makes of these. */
#ifndef MXBPF_STEP_H
#define MXBPF_STEP_H

#include "mxbpf_event.h"

/* What a moment is, and what told an iteration's end. */
enum mxbpf_step_what {
	MXBPF_STEP_NONE = 0,
	MXBPF_STEP_BACKWARD = 1,  /* a backward pass begins */
	MXBPF_STEP_KVSTORE = 2,	  /* parameters went to or came from a store, which may be where they are changed */
	MXBPF_STEP_UPDATE = 3,	  /* an operator of an optimizer is called; key: the weight that it changes */
	MXBPF_STEP_OPTIMIZER = 4, /* an optimizer's step has ended; key: its name */
	MXBPF_STEP_COUNTED = 5,	  /* --iterations counts one */
	MXBPF_STEP_WHATS = 6,
};

enum mxbpf_step_flag {
	MXBPF_STEP_OPENS = 1 << 0, /* of SAMPLED: a window opens with it, so that no iteration ends that was seen */
};

/* BPF: such a moment. */
struct mxbpf_step {
	struct mxbpf_rec h;
	__u64 key;
	__u32 tid;
	__u8 what;  /* enum mxbpf_step_what */
	__u8 flags; /* enum mxbpf_step_flag */
	__u8 pad[2];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_step) == 32);

/* Where the time of an iteration went, as its own thread has it: they add up to dur_ns. */
enum mxbpf_step_part {
	MXBPF_PART_DATA = 0,	 /* waiting for data: an iterator, or a loader's workers */
	MXBPF_PART_WAIT = 1,	 /* waiting for the engine */
	MXBPF_PART_KVSTORE = 2,	 /* in a call of the KVStore */
	MXBPF_PART_OPERATOR = 3, /* in an operator on this very thread */
	MXBPF_PART_API = 4,	 /* in another call of the C API */
	MXBPF_PART_OUTSIDE = 5,	 /* outside the runtime: the program itself */
	MXBPF_STEP_PARTS = 6,
};

enum mxbpf_iteration_flag {
	MXBPF_ITERATION_PARTS = 1 << 0, /* the parts and busy_ns are known */
};

/* User: an iteration, when it has ended. Its number counts those of its process, from 0. */
struct mxbpf_iteration {
	struct mxbpf_rec h; /* ts_ns: its start, the end of the one before */
	__u64 dur_ns;
	__u64 nr;
	__u64 part_ns[MXBPF_STEP_PARTS];
	__u64 first_ns; /* of OUTSIDE, what lies before the first call of the runtime */
	__u64 busy_ns;	/* while at least one operator ran, on whatever thread */
	__u32 tid;
	__u8 told;  /* enum mxbpf_step_what */
	__u8 flags; /* enum mxbpf_iteration_flag */
	__u8 pad[2];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_iteration) == 104);

#endif
