/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* Records that user space makes: names, and the rows of tables. BPF sends none of these. */
#ifndef MXBPF_TABLE_H
#define MXBPF_TABLE_H

#include "mxbpf_event.h"
#include "mxbpf_hist.h"
#include "mxbpf_name.h"

struct mxbpf_name {
	struct mxbpf_rec h; /* ts_ns 0 */
	__u64 id;
	__u32 len;   /* bytes in text, at most MXBPF_NAME_BYTES_MAX or MXBPF_TEXT_BYTES_MAX */
	__u32 kind;  /* enum mxbpf_name_kind */
	char text[]; /* no NUL at the end; zero-padded to a multiple of 8. Untrusted: escape before printing */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_name) == 32);

enum mxbpf_name_kind {
	MXBPF_NAME_SPAN = 0,   /* id is a name_id */
	MXBPF_NAME_THREAD = 1, /* id is a tid; h.tgid its process */
	/*
	 * id is an args_id. The text has three lines of JSON, with an element for each argument: dimensions, types
	 * and strides, in the form that traces have as "Input Dims", "Input type" and "Input Strides". An argument
	 * that is not a tensor has [] and "". Example: "[[8,3],[]]\n[\"float\",\"\"]\n[[3,1],[]]"
	 */
	MXBPF_NAME_ARGS = 2,
	/*
	 * id is a stack_id. The text has a line for each frame, innermost first: "train.py(12): step". The line
	 * "nn.Module: Conv2d" stands above the frame of a module's forward method, if the module is known.
	 */
	MXBPF_NAME_STACK = 3,
	/*
	 * id is the scope of a gauge. "/a/b" is a control group; "cpu:/a/b" is one in the hierarchy of that
	 * controller.
	 */
	MXBPF_NAME_SCOPE = 4,
	/*
	 * id is a code_id. The text has a line for each frame of machine code, innermost first, with function and
	 * library: "ns::add(...)\tlib.so", "[kernel] clear_page_erms\t".
	 */
	MXBPF_NAME_CODE = 5,
	/* id is a wchan_id: the kernel function in which a thread sleeps */
	MXBPF_NAME_WCHAN = 6,
	/* id is a layer_id: "conv0_fwd", "conv0_fwd_backward" */
	MXBPF_NAME_LAYER = 7,
	/* id is a name_id: the domain of a user annotation */
	MXBPF_NAME_DOMAIN = 8,
	MXBPF_NAME_KINDS = 9,
};

/*
 * Rows of a table that says itself what its columns are (user/table/), of one process (h.tgid; 0: of none or of all).
 * Behind the columns stand the rows. A row has nvalues 64-bit cells for each column, in their order.
 */
#define MXBPF_TABLE		((enum mxbpf_kind)78)
#define MXBPF_TABLE_NAME_BYTES	24
#define MXBPF_TABLE_COLUMNS_MAX 96
#define MXBPF_TABLE_BYTES_MAX	65528 /* of a record */
enum mxbpf_table_flag {
	MXBPF_TABLE_TIME = 1 << 0, /* the cells are times of CLOCK_MONOTONIC in ns; 0: none */
};
struct mxbpf_table_column {
	char name[MXBPF_TABLE_NAME_BYTES]; /* ends with a NUL */
	__u16 nvalues;			   /* from 1 on */
	__u8 id_of;			   /* 0, or the cells are ids: 1 + enum mxbpf_name_kind */
	__u8 flags;			   /* enum mxbpf_table_flag */
	__u32 first;			   /* of a histogram: the values before it, and behind the last one, are 0 */
};
struct mxbpf_table {
	struct mxbpf_rec h; /* ts_ns: 0 */
	char name[MXBPF_TABLE_NAME_BYTES];
	__u16 ncols, nrows;
	__u32 unused;
	struct mxbpf_table_column columns[];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_table) == 48 && sizeof(struct mxbpf_table_column) == 32);

static inline const __u64 *mxbpf_table_cells(const struct mxbpf_table *t)
{
	return (const __u64 *)&t->columns[t->ncols];
}

struct mxbpf_agg {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u64 count;
	__u64 total_ns;
	__u64 self_ns;
	__u64 min_ns;
	__u64 max_ns;
	__u32 device;
	__u8 cls;
	__u8 pad;
	__u16 nbuckets; /* non-empty buckets that follow, in rising order */
	struct mxbpf_bucket buckets[];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg) == 72);

/* Sums of the memory of a row's spans; it comes after the row. Rows without memory have none. */
struct mxbpf_agg_mem {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__s64 alloc_bytes;
	__s64 self_alloc_bytes;
	__u32 device; /* h.tgid, name_id, cls and device identify the row */
	__u8 cls;
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_mem) == 48);

/*
 * Sum of the accounts of a row's spans; it comes after the row. If the session recorded accounts, a row without
 * this record was on CPU all the time.
 */
struct mxbpf_agg_account {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u32 device; /* h.tgid, name_id, cls and device identify the row */
	__u8 cls;
	__u8 pad[3];
	struct mxbpf_account_sum sum;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_account) == 144);
#define MXBPF_AGG_ACCOUNT_BYTES_MIN 96

/* Sum of the counters of a row's spans, if any has them; it comes after the row. */
struct mxbpf_agg_counters {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u32 device; /* h.tgid, name_id, cls and device identify the row */
	__u8 cls;
	__u8 pad[3];
	struct mxbpf_counter_sum sum;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_counters) == 80);

/*
 * A span that was still open at the end of its window. It is in no row. The state of its thread is known only if it
 * was read while the span was certainly open.
 */
struct mxbpf_open {
	struct mxbpf_rec h; /* ts_ns: start of the span */
	__u64 open_ns;	    /* from the start to the end of the window */
	__u64 name_id, args_id, stack_id;
	__u64 wchan_id; /* kernel function in which its thread sleeps: MXBPF_NAME_WCHAN; 0: not asleep */
	__u32 tid;
	__u32 device;
	__s32 syscall; /* number of its thread's system call; -1: none or unknown */
	__u8 cls;
	__u8 state;	/* state of its thread as in /proc/PID/stat; 'X': ended, 0: unknown */
	__u8 flags;	/* enum mxbpf_span_flag; ASYNC: its thread may do something else */
	__u8 level;	/* open spans around it, at most 255; orders spans of equal start */
	__u64 layer_id; /* old recordings lack this member */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_open) == 80);
#define MXBPF_OPEN_BYTES_MIN 72

/* Where the time of threads off the CPU went. Each row of an operator has one of these kinds. */
enum mxbpf_sched_what {
	MXBPF_SCHED_WAITED = 0, /* ready to run */
	MXBPF_SCHED_FUTEX = 1,	/* asleep for a lock, a condition, or a thread's end */
	MXBPF_SCHED_IO = 2,	/* asleep for a disk or a file system */
	MXBPF_SCHED_FAULT = 3,	/* in a page fault */
	MXBPF_SCHED_NAP = 4,	/* asleep by request (a sleep call) */
	MXBPF_SCHED_OTHER = 5,
	MXBPF_SCHED_KEPT_BY = 6,  /* part of WAITED during which `comm` ran there */
	MXBPF_SCHED_WOKEN_BY = 7, /* sleep that `comm` ended */
	MXBPF_SCHED_WHATS = 8,
};

/* With --sched: the thread that kept a slow span off the CPU. */
struct mxbpf_slow_by {
	__u64 ns;  /* time; 0: unknown */
	__u32 tid; /* 0: no thread */
	__u16 cpu;
	__u8 what; /* enum mxbpf_sched_what; never KEPT_BY or WOKEN_BY */
	__u8 pad;
	char comm[16]; /* untrusted text; NUL-terminated unless full */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_slow_by) == 32);

/* A span that was far longer than others like it. It comes after the row that it names. */
struct mxbpf_slow {
	struct mxbpf_rec h; /* ts_ns: its start */
	__u64 name_id;
	__u64 dur_ns;
	__u32 tid;
	__u32 device; /* h.tgid, name_id, cls and device identify the row */
	__u8 cls;
	__u8 pad;
	__u16 cpu; /* CPU of the start */
	__u32 pad2;
	struct mxbpf_account account;
	struct mxbpf_slow_by kept;  /* thread that ran longest on its CPU while it was ready, and for how long */
	struct mxbpf_slow_by slept; /* longest sleep by cause: its time, and the thread that ended most of it */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_slow) == 160);

/* Allocation totals of one device over the window, in bytes requested by the runtime. */
struct mxbpf_mem {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 allocs, frees;
	__u64 alloc_bytes, free_bytes;
	__u64 live_bytes; /* allocated minus freed since attach, never below 0: older memory is unknown */
	__u64 peak_bytes; /* highest live_bytes */
	__u64 low_bytes;  /* lowest live_bytes after an event */
	__u32 device;
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_mem) == 80);

enum mxbpf_tally_id {
	MXBPF_TALLY_MAX_OPEN = 1, /* most spans of the class open at one time */
	MXBPF_TALLY_LATE = 2,	  /* records that arrived after their drain window was folded */
	MXBPF_TALLY_UNWOUND = 3,  /* spans with MXBPF_SPAN_UNWOUND: their duration is an upper bound */
	/* Spans in the row of their name alone, because there were too many rows. */
	MXBPF_TALLY_UNGROUPED = 4,
	MXBPF_TALLY_MOMENTS = 6,  /* events that may mark iterations, which are in no row */
	MXBPF_TALLY_UNKEYED = 7,  /* values of a parameter store's calls that were not read, and are in no row */
	MXBPF_TALLY_UNJOINED = 5, /* backward nodes of unknown forward operators, shown by their own names */
};

struct mxbpf_tally {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 value;
	__u32 id; /* enum mxbpf_tally_id */
	__u32 cls;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_tally) == 32);

#endif
