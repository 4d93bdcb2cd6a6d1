/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * The program's own marks, beside those that are spans (classes TASK, FRAME, EVENT): moments and values. The domain
 * that a mark belongs to is a name of kind MXBPF_NAME_DOMAIN under the mark's own id.
 */
#ifndef MXBPF_MARK_H
#define MXBPF_MARK_H

#include "mxbpf_event.h"

/* What happened at a moment. */
enum mxbpf_instant_what {
	MXBPF_INSTANT_MARKER = 0, /* name_id */
	/* What the program says to the profiler of its runtime; without a name. */
	MXBPF_INSTANT_RUN = 1,
	MXBPF_INSTANT_STOP = 2,
	MXBPF_INSTANT_PAUSE = 3,
	MXBPF_INSTANT_RESUME = 4,
	MXBPF_INSTANT_DUMP = 5,
	MXBPF_INSTANT_WHATS = 6,
};

/* Of a marker: how far it reaches. */
enum mxbpf_instant_scope {
	MXBPF_SCOPE_NONE = 0, /* not known */
	MXBPF_SCOPE_GLOBAL = 1,
	MXBPF_SCOPE_PROCESS = 2,
	MXBPF_SCOPE_THREAD = 3,
	MXBPF_SCOPE_TASK = 4,
	MXBPF_SCOPE_MARKER = 5,
	MXBPF_SCOPES = 6,
};

struct mxbpf_instant {
	struct mxbpf_rec h; /* ts_ns: of a row the first */
	__u64 last_ns;	    /* of a row the last; else 0 */
	__u64 name_id;
	__u64 count; /* 1, or of how many it is the row */
	__u32 tid;   /* of a row 0 */
	__u8 what;   /* enum mxbpf_instant_what */
	__u8 scope;  /* enum mxbpf_instant_scope */
	__u8 pad[2];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_instant) == 48);

/*
 * A counter of the program's was given a value. Where several threads do that, ts_ns and, where that is equal, seq have
 * the order.
 */
struct mxbpf_value {
	struct mxbpf_rec h; /* ts_ns: when; of a row, the last time */
	__u64 name_id;
	__u64 count; /* 1, or of how many it is the row */
	__u64 value; /* of a row the last */
	__u64 min, max;
	__u64 seq;
	__u32 tid; /* of a row 0 */
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_value) == 72);

/* When the first span of a row that stands before it began, and the last one ended. */
struct mxbpf_agg_extent {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u64 first_ns, last_ns;
	__u32 device; /* with h.tgid, name_id and cls: of which row */
	__u8 cls;
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_extent) == 48);

#endif
