/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * What calls of a store of parameters carry: keys, and the bytes of their values. Part of the event ABI.
 */
#ifndef MXBPF_KV_H
#define MXBPF_KV_H

#include "mxbpf_event.h"
#include "mxbpf_hist.h"

#define MXBPF_KV_VALUES_MAX 64 /* of a call, that are looked at; a power of two */
#define MXBPF_KV_UNKNOWN    (~0ull)

enum mxbpf_kv_flag {
	MXBPF_KV_NAMED = 1 << 0,  /* a key is the id of its name (MXBPF_NAME_SPAN), else the number itself */
	MXBPF_KV_SERVED = 1 << 1, /* a server does what a worker asked for: */
	MXBPF_KV_PULLED = 1 << 2, /* to have it; else to take it */
};

#define MXBPF_KV_FLAGS	    15 /* of row.kv_flags, */
#define MXBPF_KV_DIMS_SHIFT 4  /* and above them */

struct mxbpf_kv_value {
	__u64 key;
	__u64 bytes; /* of its array if it is dense: shape and type; MXBPF_KV_UNKNOWN else, or if it cannot be read */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_kv_value) == 16);

/* One call; its values follow. Stands before its span. */
struct mxbpf_kv {
	struct mxbpf_rec h; /* ts_ns: with tid which span, its start */
	__u64 name_id;	    /* of the span */
	__u32 tid;
	__u32 more; /* values beyond those that there is room for */
	__u32 nvalues;
	__u16 nsent; /* of these, so many go to the store, and the others come from it */
	__u8 flags;  /* enum mxbpf_kv_flag */
	__u8 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_kv) == 40);

/* All calls of one name that had a key, added up. A call with several keys is in the row of each, with all its time. */
struct mxbpf_agg_kv {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u64 key;
	__u64 calls, values;
	__u64 sent_bytes, received_bytes;
	__u64 unknown; /* of the values, those whose bytes are not known */
	__u64 total_ns, min_ns, max_ns;
	__u8 flags; /* enum mxbpf_kv_flag */
	__u8 pad[5];
	__u16 nbuckets; /* as in struct mxbpf_agg */
	struct mxbpf_bucket buckets[];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_kv) == 104);

#endif
