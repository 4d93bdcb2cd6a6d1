/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * User annotations without a duration: markers and user counters. Tasks, frames and events are spans. The domain of
 * an annotation is a name of kind MXBPF_NAME_DOMAIN with the annotation's id.
 */
#ifndef MXBPF_MARK_H
#define MXBPF_MARK_H

#include "mxbpf_event.h"

/* Kind of an instant annotation. */
enum mxbpf_instant_what {
	MXBPF_INSTANT_MARKER = 0, /* a marker; name_id has its name */
	/* A call that controls the runtime's profiler; it has no name. */
	MXBPF_INSTANT_RUN = 1,
	MXBPF_INSTANT_STOP = 2,
	MXBPF_INSTANT_PAUSE = 3,
	MXBPF_INSTANT_RESUME = 4,
	MXBPF_INSTANT_DUMP = 5,
	MXBPF_INSTANT_WHATS = 6,
};

/* Scope of a marker. */
enum mxbpf_instant_scope {
	MXBPF_SCOPE_NONE = 0, /* unknown */
	MXBPF_SCOPE_GLOBAL = 1,
	MXBPF_SCOPE_PROCESS = 2,
	MXBPF_SCOPE_THREAD = 3,
	MXBPF_SCOPE_TASK = 4,
	MXBPF_SCOPE_MARKER = 5,
	MXBPF_SCOPES = 6,
};

struct mxbpf_instant {
	struct mxbpf_rec h; /* ts_ns: of a row, the first one */
	__u64 last_ns;	    /* of a row, the last one; else 0 */
	__u64 name_id;
	__u64 count; /* 1, or the number of instants in a row */
	__u32 tid;   /* 0 in a row */
	__u8 what;   /* enum mxbpf_instant_what */
	__u8 scope;  /* enum mxbpf_instant_scope */
	__u8 pad[2];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_instant) == 48);

/* A user counter was set. If several threads set it, records are ordered by ts_ns, and by seq if that is equal. */
struct mxbpf_value {
	struct mxbpf_rec h; /* ts_ns: time of the change; of a row, the last one */
	__u64 name_id;
	__u64 count; /* 1, or the number of changes in a row */
	__u64 value; /* new value; of a row, the last one */
	__u64 min, max;
	__u64 seq;
	__u32 tid; /* 0 in a row */
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_value) == 72);

/* Start of the first span and end of the last span of the row that comes before this record. */
struct mxbpf_agg_extent {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u64 first_ns, last_ns;
	__u32 device; /* h.tgid, name_id, cls and device identify the row */
	__u8 cls;
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_extent) == 48);

#endif
