/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* Keys and value sizes of the calls of a parameter store. Part of the event ABI. */
#ifndef MXBPF_KV_H
#define MXBPF_KV_H

#include "mxbpf_event.h"
#include "mxbpf_hist.h"

#define MXBPF_KV_VALUES_MAX 64 /* values of one call that are read; a power of two */
#define MXBPF_KV_UNKNOWN    (~0ull)

enum mxbpf_kv_flag {
	MXBPF_KV_NAMED = 1 << 0,  /* a key is a name id (MXBPF_NAME_SPAN); else it is a number */
	MXBPF_KV_SERVED = 1 << 1, /* the call is a server's, for a request of a worker */
	MXBPF_KV_PULLED = 1 << 2, /* the request is a pull; else a push */
};

#define MXBPF_KV_FLAGS	    15 /* enum mxbpf_kv_flag in row.kv_flags */
#define MXBPF_KV_DIMS_SHIFT 4  /* bits above the flags: inline dimensions */

struct mxbpf_kv_value {
	__u64 key;
	__u64 bytes; /* size of a dense array by shape and type; else MXBPF_KV_UNKNOWN */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_kv_value) == 16);

/* One call, followed by its values. It comes before its span. */
struct mxbpf_kv {
	struct mxbpf_rec h; /* ts_ns: start of its span */
	__u64 name_id;	    /* name of its span */
	__u32 tid;
	__u32 more; /* values that did not fit */
	__u32 nvalues;
	__u16 nsent; /* number of values sent to the store; the others are received */
	__u8 flags;  /* enum mxbpf_kv_flag */
	__u8 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_kv) == 40);

#endif
