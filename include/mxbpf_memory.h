/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * --memory: who holds the memory of a device. What was allocated before the window is not known: live and peak bytes
 * are those beyond what was there when it began, and may be negative, as what was there is freed. Of a device the
 * holders add up: to its live bytes, and at its peak to its peak.
 */
#ifndef MXBPF_MEMORY_H
#define MXBPF_MEMORY_H

#include "mxbpf_event.h"

enum mxbpf_mem_owner_flag {
	MXBPF_MEM_OWNER_BEFORE = 1 << 0, /* what was allocated before the window: only its frees are known */
	MXBPF_MEM_OWNER_MORE = 1 << 1,	 /* those that there was no room for, as one */
};

/* Allocations of one kind: of which frees are those that gave them back, by whomever. */
struct mxbpf_mem_owner {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;	    /* of the innermost operator, or call, that was open; with cls 0: none was */
	__u64 layer_id;
	__u64 scope_id, label_id; /* what the runtime calls the allocation; 0: nothing */
	__u64 allocs, frees;
	__u64 alloc_bytes, free_bytes;
	__s64 live_bytes; /* at the end */
	__s64 peak_bytes; /* at the device's peak */
	__u64 live_blocks;
	__u32 device;
	__u8 cls;   /* enum mxbpf_class */
	__u8 flags; /* enum mxbpf_mem_owner_flag */
	__u8 pad[2];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_mem_owner) == 112);

/* A device over time. It stands before its holders. */
struct mxbpf_mem_time {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__s64 live_bytes;   /* at the end */
	__s64 peak_bytes;
	__u64 peak_ns; /* when it first held as much; 0: it never held more than at the start */
	__u64 last_ns; /* of its last event: until then, the bytes at each moment times ns are, signed and of 128 bits,
			*/
	__u64 area_low;
	__s64 area_high;
	__u64 missed;	  /* allocations whose end was not seen: their addresses were given out again */
	__u64 untracked;  /* allocations that there was no room for, or without an address: never known to be freed */
	__u64 unsized;	  /* frees of what was there before, whose size is not known */
	__u64 pool_bytes; /* where the runtime keeps a pool: what that had taken from the device at its last allocation,
			   */
	__u64 pool_peak_bytes; /* the most, */
	__u64 pool_used_bytes; /* and what of that was asked for at that moment */
	__u32 device;
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_mem_time) == 120);

#endif
