/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* --stats: the rows that BPF sums in maps and user space reads. */
#ifndef MXBPF_STATS_H
#define MXBPF_STATS_H

#include "mxbpf_event.h"
#include "mxbpf_hist.h"

/* What BPF does with a finished span or an allocation. */
enum mxbpf_stats {
	MXBPF_STATS_OFF = 0,   /* send it to the ring */
	MXBPF_STATS_ON = 1,    /* add it to its row; the ring gets only new rows (MXBPF_GROUP) */
	MXBPF_STATS_CHECK = 2, /* both, to compare the results */
};

#define MXBPF_STATS_STRIPES_MAX 8	   /* copies of a row, selected by CPU; a power of two */
#define MXBPF_STATS_ROWS_MAX	(1u << 14) /* over all stripes; allocated on first use */
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

/* A row starts as zeros. */
struct mxbpf_stat {
	__u64 total_ns, self_ns;
	__u64 max_ns;
	__u64 min_ns_inv; /* ~min_ns, so that the value only rises */
	__s64 alloc_bytes, self_alloc_bytes;
	__u64 unwound;			   /* spans with MXBPF_SPAN_UNWOUND */
	__u64 first_ns_inv, last_ns;	   /* spans with MXBPF_SPAN_USER: ~first start, last end */
	__u64 cost_units, self_cost_units; /* sums of struct mxbpf_span_cost */
	struct mxbpf_account_sum account;
	struct mxbpf_counter_sum counters;
	__u64 hist[MXBPF_HIST_BUCKETS]; /* the sum of all buckets is the number of spans */
};

struct mxbpf_stat_mem_key {
	__u32 tgid, device;
};

/* Counterpart of struct mxbpf_mem in the kernel. */
struct mxbpf_stat_mem {
	__u64 allocs, frees;
	__u64 alloc_bytes, free_bytes;
	__u64 live_bytes, peak_bytes;
	__u64 low_bytes_inv; /* ~low_bytes */
	__u64 empty;	     /* allocations of no bytes, kept only to count records */
};

#endif
