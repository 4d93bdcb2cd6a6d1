/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* --life: what became of an operator before it ran, and what the program waited for. Part of the event ABI. */
#ifndef MXBPF_LIFE_H
#define MXBPF_LIFE_H

#include "mxbpf_event.h"
#include "mxbpf_hist.h"

/* What a life is made of, in this order, without gaps but for what was not seen. */
enum mxbpf_life_part {
	/* Its thread made it: since the call around it began, or since the operator before it was pushed in that. */
	MXBPF_LIFE_DISPATCH = 0,
	MXBPF_LIFE_DEPENDENCIES = 1, /* from being pushed until all that it reads and writes was free */
	MXBPF_LIFE_QUEUE = 2,	     /* until a thread took it */
	MXBPF_LIFE_RUN = 3,
	MXBPF_LIFE_PARTS = 4,
};

#define MXBPF_LIFE_UNKNOWN (~0ull)

/* BPF, when it has ended. */
struct mxbpf_life {
	struct mxbpf_rec h; /* ts_ns: when it started; with tid its span */
	__u64 name_id;
	__u64 ns[MXBPF_LIFE_PARTS]; /* MXBPF_LIFE_UNKNOWN: a moment before it was not seen */
	__u32 device;
	__u32 tid, ready_tid, push_tid; /* 0: not seen */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_life) == 72);

/* User: one part of all lives of one name, process and device. */
struct mxbpf_agg_life {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u64 count, total_ns, min_ns, max_ns;
	__u32 device;
	__u8 part; /* enum mxbpf_life_part */
	__u8 pad;
	__u16 nbuckets; /* as in struct mxbpf_agg */
	struct mxbpf_bucket buckets[];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_life) == 64);

/* What a wait of the program was for. */
enum mxbpf_wait_what {
	MXBPF_WAIT_NOTHING = 0, /* all was done already */
	MXBPF_WAIT_OPERATOR = 1,
	MXBPF_WAIT_UNSEEN = 2, /* an operator that was pushed before the window */
	MXBPF_WAIT_WHATS = 3,
};

/* BPF, at the wait's end: dur_ns, count 1. User: the sum of those of one process, call and operator. */
struct mxbpf_wait {
	struct mxbpf_rec h; /* ts_ns: its start; of a sum 0 */
	__u64 name_id;	    /* of the wait's span */
	__u64 call_id;	    /* of the call that waited */
	/* The operator that was the last to write what was waited for, by the order of pushing; of a wait for all, the
	 * last that ended. within_id: the bulk that it ran in, 0 none. */
	__u64 op_id, within_id;
	__u64 count, total_ns, max_ns;
	__u32 tid; /* of a sum 0 */
	__u8 what; /* enum mxbpf_wait_what */
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_wait) == 80);

#endif
