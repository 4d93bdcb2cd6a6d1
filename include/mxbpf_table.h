/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * What user space makes of records and stores beside them: names, and the rows of tables. BPF sees none of these.
 */
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
	char text[]; /* not NUL-terminated; zero-padded to a multiple of 8. Hostile: never print unescaped */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_name) == 32);

enum mxbpf_name_kind {
	MXBPF_NAME_SPAN = 0,   /* id is a name_id */
	MXBPF_NAME_THREAD = 1, /* id is a tid; h.tgid its process */
	/*
	 * id is an args_id. Three lines of JSON, an element for each argument of the operator's schema: dimensions,
	 * types, strides, as Kineto writes "Input Dims", "Input type" and "Input Strides"; what is no tensor has [] and
	 * "". "[[8,3],[]]\n[\"float\",\"\"]\n[[3,1],[]]"
	 */
	MXBPF_NAME_ARGS = 2,
	/* id is a stack_id. A line for each frame, innermost first: "train.py(12): step". Of a module's forward method
	 * "nn.Module: Conv2d" stands as a line above it, where it can be told. */
	MXBPF_NAME_STACK = 3,
	/* id is the scope of a gauge. "/a/b": a control group; "cpu:/a/b": one of that controller's own hierarchy */
	MXBPF_NAME_SCOPE = 4,
	/* id is a code_id. A line for each frame of machine code, innermost first:
	 * "at::native::add(...)\tlibtorch_cpu.so",
	 * "[kernel] clear_page_erms\t". */
	MXBPF_NAME_CODE = 5,
	/* id is a wchan_id: a function of the kernel in which a thread sleeps */
	MXBPF_NAME_WCHAN = 6,
	/* id is a layer_id: "conv0_fwd", "conv0_fwd_backward" */
	MXBPF_NAME_LAYER = 7,
	/* id is a name_id: the domain that a mark of the program's belongs to */
	MXBPF_NAME_DOMAIN = 8,
};

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
	__u16 nbuckets; /* non-empty buckets that follow, by rising index */
	struct mxbpf_bucket buckets[];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg) == 72);

/* Sums of the spans' bytes; of a row that stands before it. Rows without memory have none. */
struct mxbpf_agg_mem {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__s64 alloc_bytes;
	__s64 self_alloc_bytes;
	__u32 device; /* with h.tgid, name_id and cls: of which row */
	__u8 cls;
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_mem) == 48);

/* Of a row that stands before it. A row without was on its CPU all the time, if the session kept accounts. */
struct mxbpf_agg_account {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u32 device; /* with h.tgid, name_id and cls: of which row */
	__u8 cls;
	__u8 pad[3];
	struct mxbpf_account_sum sum;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_account) == 144);
#define MXBPF_AGG_ACCOUNT_BYTES_MIN 96

/* Of a row that stands before it, where any of its spans has them. */
struct mxbpf_agg_counters {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u32 device; /* with h.tgid, name_id and cls: of which row */
	__u8 cls;
	__u8 pad[3];
	struct mxbpf_counter_sum sum;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_counters) == 80);

/* The spans of a forward operator and of the backward nodes that they made. */
struct mxbpf_join {
	struct mxbpf_rec h;		 /* ts_ns: 0 */
	__u64 name_id;			 /* of the nodes where their operator is not known; count is 0 then */
	__u64 count, total_ns;		 /* forward: operators that made nodes */
	__u64 bwd_count, bwd_total_ns;	 /* nodes that they made */
	__u64 deep_count, deep_total_ns; /* nodes made while those ran: double backward and deeper */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_join) == 72);

/*
 * A span that was open when its window ended: it is in no row. What its thread did is known only where that was looked
 * at while the span was open for certain.
 */
struct mxbpf_open {
	struct mxbpf_rec h; /* ts_ns: start */
	__u64 open_ns;	    /* from then until the end of the window */
	__u64 name_id, args_id, stack_id;
	__u64 wchan_id; /* where in the kernel its thread sleeps: a name of kind MXBPF_NAME_WCHAN; 0 it does not */
	__u32 tid;
	__u32 device;
	__s32 syscall; /* of its thread, by the kernel's number; -1: in none, or not known */
	__u8 cls;
	__u8 state;	/* of its thread, a letter as in /proc/PID/stat, 'X': it has ended; 0: not known */
	__u8 flags;	/* enum mxbpf_span_flag; ASYNC: its function has returned, so the thread may do anything else */
	__u8 level;	/* open spans of its thread around it, at most 255: orders those of one age */
	__u64 layer_id; /* not in the first recordings */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_open) == 80);
#define MXBPF_OPEN_BYTES_MIN 72

/* Where the time of threads off the CPU went; of the rows of an operator each is one of these. */
enum mxbpf_sched_what {
	MXBPF_SCHED_WAITED = 0, /* it could have run */
	MXBPF_SCHED_FUTEX = 1,	/* it slept for a lock, a condition, a thread's end */
	MXBPF_SCHED_IO = 2,	/* for a disk, or what a file system has in its place */
	MXBPF_SCHED_FAULT = 3,	/* in a page fault */
	MXBPF_SCHED_NAP = 4,	/* because it asked to sleep */
	MXBPF_SCHED_OTHER = 5,
	MXBPF_SCHED_KEPT_BY = 6,  /* of WAITED: while this one ran there */
	MXBPF_SCHED_WOKEN_BY = 7, /* of the sleep: until this one ended it */
	MXBPF_SCHED_WHATS = 8,
};

struct mxbpf_agg_sched {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;	    /* of the innermost span that was open; with cls 0: none was */
	__u64 count, total_ns;
	__u8 cls, what; /* enum mxbpf_class, enum mxbpf_sched_what */
	__u8 own;	/* comm is of a thread of the targets */
	__u8 pad[5];
	char comm[16]; /* of KEPT_BY and WOKEN_BY; hostile, NUL-terminated unless it is full */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_sched) == 64);

/* With --sched: who had to do with a slow span's time off the CPU. */
struct mxbpf_slow_by {
	__u64 ns;  /* 0: not known */
	__u32 tid; /* 0: nobody */
	__u16 cpu;
	__u8 what; /* enum mxbpf_sched_what: WAITED to IO and so on, never KEPT_BY */
	__u8 pad;
	char comm[16]; /* hostile; NUL-terminated unless it is full */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_slow_by) == 32);

/* A span that lasted much longer than its like. A row that it names stands before it. */
struct mxbpf_slow {
	struct mxbpf_rec h; /* ts_ns: its start */
	__u64 name_id;
	__u64 dur_ns;
	__u32 tid;
	__u32 device; /* with h.tgid, name_id and cls: of which row */
	__u8 cls;
	__u8 pad;
	__u16 cpu; /* on which it started */
	__u32 pad2;
	struct mxbpf_account account;
	struct mxbpf_slow_by kept;  /* who had its CPU the longest while it could have run, and for how long */
	struct mxbpf_slow_by slept; /* for what it slept the longest, how long, and who ended the longest of that */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_slow) == 160);

/* Allocation totals of one device over the window. Bytes as requested by the runtime. */
struct mxbpf_mem {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 allocs, frees;
	__u64 alloc_bytes, free_bytes;
	__u64 live_bytes; /* running alloc - free since attach, never below 0 (what was allocated before is unknown) */
	__u64 peak_bytes; /* highest live_bytes */
	__u64 low_bytes;  /* lowest live_bytes after an event */
	__u32 device;
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_mem) == 80);

enum mxbpf_tally_id {
	MXBPF_TALLY_MAX_OPEN = 1, /* most spans of the class open at one time */
	MXBPF_TALLY_LATE = 2,	  /* records that arrived after their drain window had been folded */
	MXBPF_TALLY_UNWOUND = 3,  /* spans with MXBPF_SPAN_UNWOUND: their duration is an upper bound */
	/* Spans in the row of their name alone, since there were too many rows. */
	MXBPF_TALLY_UNGROUPED = 4,
	MXBPF_TALLY_MOMENTS = 6,  /* records that tell iterations, which are in no row */
	MXBPF_TALLY_UNKEYED = 7,  /* values of calls of a store of parameters that were not looked at: in no row */
	MXBPF_TALLY_UNJOINED = 5, /* backward nodes whose forward operator is not known: they stand for it */
};

struct mxbpf_tally {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 value;
	__u32 id; /* enum mxbpf_tally_id */
	__u32 cls;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_tally) == 32);

#endif
