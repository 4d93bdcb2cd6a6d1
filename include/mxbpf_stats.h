/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* --stats: the rows that BPF keeps in maps, and user space reads. */
#ifndef MXBPF_STATS_H
#define MXBPF_STATS_H

#include "mxbpf_event.h"
#include "mxbpf_hist.h"

/* What becomes of a finished span and of an allocation. */
enum mxbpf_stats {
	MXBPF_STATS_OFF = 0,   /* a record in the ring */
	MXBPF_STATS_ON = 1,    /* added to its row in the kernel; the ring tells of new rows alone (MXBPF_GROUP) */
	MXBPF_STATS_CHECK = 2, /* both, to compare them */
};

#define MXBPF_STATS_STRIPES_MAX 8	   /* copies of a row, by CPU; a power of two */
#define MXBPF_STATS_ROWS_MAX	(1u << 14) /* over all stripes; each takes memory when it is first needed */
#define MXBPF_STATS_DEVICES_MAX (1u << 12)

struct mxbpf_stat_key {
	__u64 name_id, args_id, stack_id, layer_id;
	__u32 tgid, device;
	__u8 cls; /* enum mxbpf_class */
	__u8 stripe;
	__u8 traits; /* enum mxbpf_trait */
	__u8 pad;
	__u32 tid; /* with MXBPF_DETAIL_THREAD, else 0 */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_stat_key) == 48);

/* A row begins as zeros. */
struct mxbpf_stat {
	__u64 total_ns, self_ns;
	__u64 max_ns;
	__u64 min_ns_inv; /* ~min_ns, so that it rises as well */
	__s64 alloc_bytes, self_alloc_bytes;
	__u64 unwound;		     /* spans with MXBPF_SPAN_UNWOUND */
	__u64 first_ns_inv, last_ns; /* of spans with MXBPF_SPAN_USER: ~ of the first start, the last end */
	struct mxbpf_account_sum account;
	struct mxbpf_counter_sum counters;
	__u64 hist[MXBPF_HIST_BUCKETS]; /* their sum is how many there were */
};

struct mxbpf_stat_mem_key {
	__u32 tgid, device;
};

/* As struct mxbpf_mem. */
struct mxbpf_stat_mem {
	__u64 allocs, frees;
	__u64 alloc_bytes, free_bytes;
	__u64 live_bytes, peak_bytes;
	__u64 low_bytes_inv; /* ~low_bytes */
	__u64 empty;	     /* of no bytes: they count for nothing but the records' account */
};

#endif
