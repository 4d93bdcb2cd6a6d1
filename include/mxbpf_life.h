/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* --life: an operator's time from push to completion, and what the program waited for. Part of the event ABI. */
#ifndef MXBPF_LIFE_H
#define MXBPF_LIFE_H

#include "mxbpf_event.h"

/* Parts of a life, in order. There are no gaps between them, except for what was not seen. */
enum mxbpf_life_part {
	/* Its thread created it: from the start of the enclosing call, or from that call's previous push. */
	MXBPF_LIFE_DISPATCH = 0,
	MXBPF_LIFE_DEPENDENCIES = 1, /* from its push until all that it reads and writes was free */
	MXBPF_LIFE_QUEUE = 2,	     /* from then until a thread took it */
	MXBPF_LIFE_RUN = 3,
	MXBPF_LIFE_PARTS = 4,
};

#define MXBPF_LIFE_UNKNOWN (~0ull)

/* Sent by BPF when the operator has ended. */
struct mxbpf_life {
	struct mxbpf_rec h; /* ts_ns: start of its run, the start of its span */
	__u64 name_id;
	__u64 ns[MXBPF_LIFE_PARTS]; /* ns of each part; MXBPF_LIFE_UNKNOWN: its start was not seen */
	__u32 device;
	__u32 tid, ready_tid, push_tid; /* ready_tid and push_tid 0: not seen */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_life) == 72);

/* What the program waited for. */
enum mxbpf_wait_what {
	MXBPF_WAIT_NOTHING = 0, /* nothing: all was done already */
	MXBPF_WAIT_OPERATOR = 1,
	MXBPF_WAIT_UNSEEN = 2, /* an operator that was pushed before the window */
	MXBPF_WAIT_WHATS = 3,
};

/* Sent by BPF at the end of a wait, with count 1. User space sums the waits of one process, call and operator. */
struct mxbpf_wait {
	struct mxbpf_rec h; /* ts_ns: its start; 0 in a sum */
	__u64 name_id;	    /* name of the wait's span */
	__u64 call_id;	    /* name of the call that waits */
	/*
	 * The operator that was pushed last among those that write the variable; for a wait for everything, the
	 * operator that ended last. within_id: the bulk that the operator ran in; 0: none.
	 */
	__u64 op_id, within_id;
	__u64 count, total_ns, max_ns;
	__u32 tid; /* 0 in a sum */
	__u8 what; /* enum mxbpf_wait_what */
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_wait) == 80);

#endif
