/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * The event ABI: every record that BPF sends to user space, and every record that user space derives
 * and stores beside them. A recording is a sequence of these; the model and the sinks see nothing else.
 *
 * Rules: fixed-width integers in the machine's (little-endian) order, explicit padding, every record
 * starts with struct mxbpf_rec and is a multiple of 8 bytes. Kinds are append-only and never renumbered.
 * A reader accepts size >= the size it knows and ignores the tail.
 * Times are CLOCK_MONOTONIC in ns (bpf_ktime_get_ns()).
 */
#ifndef MXBPF_EVENT_H
#define MXBPF_EVENT_H

#ifdef __bpf__
#include "vmlinux.h"
#define MXBPF_STATIC_ASSERT(c) _Static_assert(c, #c)
#else
#include <linux/types.h>
#define MXBPF_STATIC_ASSERT(c) _Static_assert(c, #c)
#endif

enum mxbpf_kind {
	MXBPF_SPAN = 1,	   /* BPF: a call with start and end                           struct mxbpf_span */
	MXBPF_AGG = 2,	   /* user: one row of a table                                    struct mxbpf_agg */
	MXBPF_COUNTER = 4, /* user: a value of a span class over the window         struct mxbpf_counter */
	MXBPF_ALLOC = 5,   /* BPF: bytes taken or given back on a device              struct mxbpf_alloc */
	MXBPF_SCHED = 6,   /* BPF; user at the window's end: a thread left its CPU, and got one again
			    *							struct mxbpf_sched */
	MXBPF_EDGE = 7,	   /* BPF: an open span caused work that starts later          struct mxbpf_edge */
	MXBPF_NAME = 8,	   /* user: id -> string, before its first use in a slot       struct mxbpf_name */
	/* 9 loss: carried by chunk headers, see mxbpf_file.h */
	MXBPF_MEM = 10,	    /* user: allocation totals of one device                     struct mxbpf_mem */
	MXBPF_AGG_MEM = 11, /* user: the memory columns of an AGG row before it     struct mxbpf_agg_mem */
	MXBPF_GROUP = 12,   /* user: what a row's id is made of, before its use; BPF, with id 0: --stats has a new one
			     *							struct mxbpf_group */
	MXBPF_JOIN = 13,    /* user: a forward operator with its backward time      struct mxbpf_join */
	MXBPF_AGG_COUNTERS = 17, /* user: the counters of an AGG row before it    struct mxbpf_agg_counters */
	MXBPF_AGG_ACCOUNT = 14,	 /* user: the account of an AGG row before it     struct mxbpf_agg_account */
	MXBPF_GAUGE = 15,	 /* user: a reading of the machine, or several as one    struct mxbpf_gauge */
	MXBPF_TEAM = 18,	 /* BPF: a parallel region of OpenMP's; user: a row of them    struct mxbpf_team */
	MXBPF_AGG_SCHED = 21,	 /* user: where an operator's threads were, off the CPU  struct mxbpf_agg_sched */
	MXBPF_SLOW = 20,	 /* user: a span far above the median of its row            struct mxbpf_slow */
	MXBPF_SAMPLE = 16,	 /* BPF: a thread that ran when its CPU's clock rang     struct mxbpf_sample */
	MXBPF_KV = 30,		 /* BPF: what a call of a store of parameters carries             mxbpf_kv.h */
	MXBPF_AGG_KV = 33,	 /* user: a row of them                                           mxbpf_kv.h */
	MXBPF_OPEN = 19,	 /* user: a span that had not ended with its window      struct mxbpf_open */
	MXBPF_LIFE = 22,	 /* BPF: an operator from being pushed to its end      struct mxbpf_life */
	MXBPF_AGG_LIFE = 23,	 /* user: a part of the lives of one name          struct mxbpf_agg_life */
	MXBPF_WAIT = 24,	 /* BPF: what the program waited for                   struct mxbpf_wait */
	MXBPF_AGG_WAIT = 25,	 /* user: likewise, of one operator                    struct mxbpf_wait */
	MXBPF_STEP = 28,	 /* BPF: a moment that tells iterations                struct mxbpf_step */
	MXBPF_ITERATION = 31,	 /* user: an iteration that has ended             struct mxbpf_iteration */
	MXBPF_HOLDER = 26,	 /* user: whose allocations are alive (mxbpf_held.h)   struct mxbpf_holder */
	MXBPF_MEM_TIME = 27,	 /* user: what a device held, over time              struct mxbpf_mem_time */
	MXBPF_INSTANT = 3,	 /* BPF: a moment that the program marked; user: a row	  struct mxbpf_instant */
	MXBPF_VALUE = 29,	 /* BPF: a counter of the program's was set; user: a row    struct mxbpf_value */
	MXBPF_AGG_EXTENT = 32,	 /* user: first start and last end of an AGG row	struct mxbpf_agg_extent */
	MXBPF_ACTIVITY = 34,	 /* agent: something that ran on a device                         mxbpf_track.h */
	MXBPF_LAUNCH = 35,	 /* agent: a thread began an edge to activities                   mxbpf_track.h */
	MXBPF_AGG_ACTIVITY = 36, /* user: a row of activities                                     mxbpf_track.h */
				 /*
				  * 37 and up are free.
				  */
};

struct mxbpf_rec {
	__u16 kind; /* enum mxbpf_kind */
	__u16 size; /* bytes of the whole record, multiple of 8 */
	__u32 tgid;
	__u64 ts_ns; /* span: its start; others: the moment */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_rec) == 16);

/* Which table a span belongs to. Order and trace categories: mdl_classes[] in user/model/class.c. */
enum mxbpf_class {
	MXBPF_CLASS_NONE = 0,
	MXBPF_CLASS_API = 1,	  /* a call of the runtime's C API */
	MXBPF_CLASS_OPERATOR = 2, /* an operator as the runtime's engine executes it */
	MXBPF_CLASS_WAIT = 3,	  /* the program waits for the engine */
	MXBPF_CLASS_KERNEL = 4,	  /* code that a compiler of the runtime made while the program ran */
	MXBPF_CLASS_TASK = 5,	  /* the program's own marks: a task, */
	MXBPF_CLASS_FRAME = 6,	  /* a frame, */
	MXBPF_CLASS_EVENT = 7,	  /* an event */
	MXBPF_CLASS_STEP = 8,	  /* an iteration of the program */
	MXBPF_CLASS_DATA = 9,	  /* the program waits for its next batch of data */
	MXBPF_CLASS_KVSTORE = 10, /* a parameter goes to or comes from other devices or hosts */
	MXBPF_CLASS_CUSTOM =
		11, /* an operator that is written in the program's language, or that language's part of it */
	MXBPF_CLASS_MAX = 12,
};

enum mxbpf_span_flag {
	MXBPF_SPAN_ASYNC = 1 << 0, /* ended on another thread, or after its function had returned: may
				    * overlap other spans of its thread */
	/* No end seen; closed by a later event above its frame. A span of class CUSTOM is then in no table: MXNet's
	 * profiler does not count the Python of an operator that failed either. */
	MXBPF_SPAN_UNWOUND = 1 << 1,
	MXBPF_SPAN_USER = 1 << 2, /* the program's own mark, not the runtime's work */
	MXBPF_SPAN_SEQ = 1 << 3, /* seq joins: a node of the backward pass, or the forward operator around its making */
	MXBPF_SPAN_BACKWARD = 1 << 4, /* a node of the backward pass: seq is that of the operator that made it */
	MXBPF_SPAN_ACCOUNT = 1 << 5,  /* cpu and account are known */
	MXBPF_SPAN_SCALED = 1 << 6,   /* a counter ran for a part of the time, which was taken for the whole */
	MXBPF_SPAN_PART = 1 << 7,     /* an operator in a segment of the graph: the segment's name has its own */
};

/*
 * Joins a backward node to the operator that made it: both bear the same thread and number. Thread: the runtime's own
 * number of the thread of the forward pass, from 1, 0 if not known. Numbers rise with each node made by that thread; an
 * operator bears the next one to be given when it began, so the operator that made node N is the last to begin with N
 * of those with MXBPF_SPAN_SEQ. A node that was made outside of operators (Functions of Python's) has none.
 */
#define MXBPF_SEQ(thread, nr) ((__u64)(thread) << 48 | ((__u64)(nr)&0xffffffffffffull))
#define MXBPF_SEQ_THREAD(s)   ((__u32)((s) >> 48))
#define MXBPF_SEQ_NR(s)	      ((s)&0xffffffffffffull)

/*
 * A device as the runtime's adapter numbers it: type in the upper, ordinal in the lower 16 bits.
 * Type 0 is "no device". Names of types come from the adapter by way of the recording's metadata.
 */
#define MXBPF_DEVICE(type, id) (((__u32)(type) << 16) | ((__u32)(id)&0xffff))
#define MXBPF_DEVICE_TYPE(d)   ((__u32)(d) >> 16)
#define MXBPF_DEVICE_ID(d)     ((__u32)(d)&0xffff)

enum mxbpf_account_flag {
	/*
	 * The thread ended it on another CPU. Where nvcsw is not 0 and the clocks of the two CPUs differ, on_cpu_ns may
	 * be wrong by MXBPF_ACCOUNT_SLACK_NS at most; and of the rest runq_ns may have what is blocked_ns's: Linux 6.12
	 * and later take a thread that their balancer moves while it sleeps for one that waits, in schedstat too.
	 */
	MXBPF_ACCOUNT_MIGRATED = 1 << 0,
	/* The span ended on another thread, or after its function had returned: the account is of its own thread, and
	 * only while its function ran. The rest of the time the work was elsewhere. */
	MXBPF_ACCOUNT_PART = 1 << 1,
};
#define MXBPF_CPU_NONE 0xffff /* as a number of a CPU: it is not known */
#define MXBPF_ACCOUNT_SLACK_NS                                                                                         \
	10000000ull /* the longest tick of a kernel, at which it brings a task's time up to date */

/*
 * Where the time of a span went, by the kernel's fields of its thread (sum_exec_runtime, exec_start,
 * sched_info.run_delay, nvcsw, nivcsw, min_flt, maj_flt) at its start and its end. The three times sum up to dur_ns,
 * but for ACCOUNT_PART. What interrupts and the hypervisor took while the thread ran is in on_cpu_ns. If the thread
 * slept as well, that is an estimate: a share of what was taken of its CPU, as large as its share of the other time.
 */
struct mxbpf_account {
	__u64 on_cpu_ns;
	__u64 runq_ns;	      /* could have run, but waited for a CPU */
	__u64 blocked_ns;     /* slept, or waited for a lock, a disk, a page */
	__u32 nvcsw, nivcsw;  /* times it left its CPU because it waited, and because it had to */
	__u32 minflt, majflt; /* page faults without and with I/O */
	__u16 end_cpu;	      /* struct mxbpf_span has that of the start */
	__u8 flags;	      /* enum mxbpf_account_flag */
	__u8 pad[5];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_account) == 48);
struct mxbpf_account_nested {
	__u64 runq_ns, blocked_ns;
	__u32 nvcsw, nivcsw, minflt, majflt;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_account_nested) == 32);
/* Perf events that are read at both ends of a span; which ones the session says. */
#define MXBPF_COUNTERS_MAX 4
#define MXBPF_COUNTER_NONE (~0ull) /* as the first of them: of this span none is known */

struct mxbpf_span {
	struct mxbpf_rec h; /* ts_ns: start */
	__u64 dur_ns;
	/* dur_ns less the time in spans nested directly in it on its thread. 0 with MXBPF_SPAN_ASYNC: while it lasted
	 * its thread was in others, which have that time. So the self times of a thread never exceed the time gone by.
	 */
	__u64 self_ns;
	__u64 name_id; /* 0: the name could not be read */
	__u64 link;    /* joins an edge to the span it caused: the runtime's work object; 0 none */
	__u32 tid;     /* thread of the start */
	__u32 end_tid;
	__u32 device;  /* MXBPF_DEVICE() */
	__u8 cls : 7;  /* enum mxbpf_class */
	__u8 bulk : 1; /* the engine ran several operators as one, and some of them have spans in this one. 0 in
			* the first recordings */
	__u8 flags;    /* enum mxbpf_span_flag */
	__u16 cpu;     /* on which it started; with MXBPF_SPAN_ACCOUNT */
	/* Not in the first recordings (MXBPF_SPAN_BYTES_MIN). Bytes taken less bytes given back while it was open on
	 * its own thread, and of these, those outside the spans nested in it. */
	__s64 alloc_bytes;
	__s64 self_alloc_bytes;
	/* Only where details were asked for (MXBPF_SPAN_BYTES_PLAIN without); 0 none. */
	__u64 args_id;	/* of its tensors: a name of kind MXBPF_NAME_ARGS */
	__u64 stack_id; /* of the interpreter's frames: a name of kind MXBPF_NAME_STACK */
	__u64 seq;	/* MXBPF_SEQ(); joins with MXBPF_SPAN_SEQ only: else what torch.profiler shows, or 0 */
	__u64 origin;	/* seq of the innermost backward node it ran in; 0 none */
	/* Only where there is anything to say: without, and with MXBPF_SPAN_ACCOUNT, its thread was on one CPU all the
	 * time and met no page fault. kind_span() fills it in. */
	struct mxbpf_account account;
	/* Only where they were asked for: what its thread counted while it was open. */
	__u64 counters[MXBPF_COUNTERS_MAX];
	__u64 layer_id; /* likewise, the node of the program's graph: a name of kind MXBPF_NAME_LAYER; 0 none */
	/* The part of the account that spans nested directly in it have. Without: none of them left its CPU. */
	struct mxbpf_account_nested nested;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_span) == 232);
#define MXBPF_SPAN_BYTES_MIN	 64
#define MXBPF_SPAN_BYTES_PLAIN	 80
#define MXBPF_SPAN_BYTES_DETAILS 112
#define MXBPF_SPAN_BYTES_ACCOUNT 160

/* name_id of a span whose name is a constant of the library: its address in the file with this bit set; user space
 * resolves it from there. */
#define MXBPF_NAME_STATIC_BIT (1ull << 63)

/* name_id of a span whose runtime gave it a null or empty name. Hashes are odd, addresses have the static bit. */
#define MXBPF_NAME_UNNAMED 2ull

struct mxbpf_alloc {
	struct mxbpf_rec h;
	__s64 bytes; /* > 0 allocated, < 0 freed */
	__u32 tid;
	__u32 device;
	__u64 addr; /* 0: not known. Not in the first recordings */
	/* Only with --memory (MXBPF_ALLOC_BYTES_PLAIN without). Who allocates: the innermost open operator, or call. */
	__u64 name_id;
	__u64 layer_id;
	__u64 scope_id, label_id; /* what the runtime calls the allocation; 0: nothing */
	__u64 pool_bytes; /* what the pool that it came from has taken from the device by now; 0: it came from none */
	__u8 cls;	  /* enum mxbpf_class; NONE: neither was open */
	__u8 flags;	  /* enum mxbpf_alloc_flag */
	__u8 pad[6];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_alloc) == 88);
#define MXBPF_ALLOC_BYTES_MIN	32
#define MXBPF_ALLOC_BYTES_PLAIN 40

enum mxbpf_alloc_flag {
	MXBPF_ALLOC_FREED = 1 << 0, /* bytes given back: with bytes 0 it is not known how many */
};

/*
 * The innermost open span of a thread (src_*) handed `link` to the runtime. The span it causes carries
 * the same link; one link may be handed over again before it ran: first in, first out. Edges from a call to activities
 * of a device are of kind MXBPF_LAUNCH.
 */
struct mxbpf_edge {
	struct mxbpf_rec h; /* ts_ns: the hand-over */
	__u64 link;
	__u64 src_start_ns; /* with tid and src_cls: which span */
	__u32 tid;
	__u8 src_cls;
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_edge) == 40);

/* What a thread was as it left its CPU. */
enum mxbpf_sched_state {
	MXBPF_SCHED_RUNNABLE = 0, /* it could have gone on: another took its CPU */
	MXBPF_SCHED_SLEEPING = 1,
	MXBPF_SCHED_DISK = 2,	 /* likewise, and no signal wakes it: mostly for a disk */
	MXBPF_SCHED_STOPPED = 3, /* by a signal or a debugger */
	MXBPF_SCHED_STATES = 4,
};

enum mxbpf_sched_flag {
	MXBPF_SCHED_IOWAIT = 1 << 0,	/* the kernel counts its sleep as waiting for input or output */
	MXBPF_SCHED_BY_OURS = 1 << 1,	/* by_tid is a thread of a process that is looked at */
	MXBPF_SCHED_BY_IRQ = 1 << 2,	/* it was woken by an interrupt: by_tid has nothing to do with it */
	MXBPF_SCHED_NO_WAKER = 1 << 3,	/* its waking was not seen: woken_ns is back_ns */
	MXBPF_SCHED_MORE = 1 << 4,	/* there were more slices than there is room for: the first are missing */
	MXBPF_SCHED_STILL_OFF = 1 << 5, /* the window ended first, at back_ns */
	MXBPF_SCHED_LAST = 1 << 6,	/* it was on the CPU until ts_ns, where it or the window ended: woken_ns and
					 * back_ns are the same */
};

/* What ran on back_cpu while the thread could have: pieces of [woken_ns, back_ns]. */
struct mxbpf_sched_slice {
	__u64 from_ns, to_ns;
	__u32 tid, tgid; /* tid: the first, if threads of one name took turns. Of a target as in other records, else in
			    the machine's first pid namespace */
	char comm[16];	 /* hostile; NUL-terminated unless it is full */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sched_slice) == 40);

#define MXBPF_SCHED_SLICES_MAX 15 /* a power of two less 1 */

/*
 * A thread off its CPU: before ts_ns it ran for ran_ns, then slept until woken_ns (ts_ns: it did not sleep), then
 * waited for a CPU until back_ns. The innermost span that was open names what it was in: with tid.
 */
struct mxbpf_sched {
	struct mxbpf_rec h; /* ts_ns: when it left */
	__u64 ran_ns;	    /* on left_cpu, not counted from before the window */
	__u64 woken_ns, back_ns;
	__u64 span_start_ns, span_name_id; /* 0: none was open */
	__u32 tid;
	__u32 by_tid;	  /* RUNNABLE: who took its CPU; else who woke it. 0: none, or the idle CPU's */
	char by_comm[16]; /* of that; hostile */
	__s32 syscall;	  /* number of the system call it was in; -1: none */
	__u16 left_cpu, back_cpu;
	__u8 state; /* enum mxbpf_sched_state */
	__u8 span_cls;
	__u8 flags;   /* enum mxbpf_sched_flag */
	__u8 nslices; /* newest first */
	__u32 pad;
	struct mxbpf_sched_slice slices[];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sched) == 96);

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

/*
 * A parallel region, when it has ended, or the sum of those that spans of one name opened. Its master is the thread
 * that opened it, in the innermost span that was open there. Its threads were on their way (from the region's start
 * until they began), at work, or at the barrier at its end (from the end of their own work until the region's): late_ns
 * + work_ns + barrier_ns == threads_ns. On their way they waited for a CPU for late_runq_ns; of the work they were on
 * one for cpu_ns, waited for one for runq_ns, and were blocked for the rest. With MXBPF_TEAM_NESTED the master's own
 * time is in the region around it: it is none of the threads.
 */
struct mxbpf_team {
	struct mxbpf_rec h;  /* ts_ns: the region's start; 0 of a sum */
	__u64 regions;	     /* 1, or of how many it is the sum */
	__u64 name_id;	     /* of the span */
	__u64 span_start_ns; /* with tid and cls: which span; of a sum, and where none was open, 0 */
	__u64 dur_ns;
	__u64 threads_ns; /* threads * dur_ns */
	__u64 late_ns, work_ns, barrier_ns;
	__u64 late_runq_ns, cpu_ns, runq_ns;
	/*
	 * On a CPU without work: the master while it wakes its team and at the barrier, the others since they had ended
	 * their work before this, in whatever region that was: where they wait, they spin for a while before they
	 * sleep.
	 */
	__u64 spun_ns;
	__u32 tid;     /* of that span: the master's, or of who opened the region around it */
	__u32 threads; /* of a sum: the most */
	__u8 cls;      /* enum mxbpf_class; NONE where no span was open */
	__u8 flags;    /* enum mxbpf_team_flag */
	__u8 pad[6];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_team) == 128);

enum mxbpf_team_flag {
	MXBPF_TEAM_NESTED = 1 << 0,
	/* A thread changed its CPU at work: cpu_ns may be wrong by MXBPF_ACCOUNT_SLACK_NS. */
	MXBPF_TEAM_MIGRATED = 1 << 1,
};

/* Longest name that is kept; a longer one is cut there and counted as truncated. */
#define MXBPF_NAME_BYTES_MAX 4096
#define MXBPF_TEXT_BYTES_MAX 32768 /* of kinds ARGS, STACK and CODE */

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

/* What tells rows of one name apart although no option asks for it. */
enum mxbpf_trait {
	MXBPF_TRAIT_PART = 1 << 0, /* of spans with MXBPF_SPAN_PART */
	MXBPF_TRAIT_USER = 1 << 1, /* annotations of the program's in the table of the runtime's operators */
	MXBPF_TRAIT_BULK = 1 << 2, /* of spans with `bulk` */
};

static inline __attribute__((always_inline)) __u32 mxbpf_traits(const struct mxbpf_span *s)
{
	return (s->flags & MXBPF_SPAN_PART ? MXBPF_TRAIT_PART : 0) |
	       (s->flags & MXBPF_SPAN_USER && s->cls == MXBPF_CLASS_OPERATOR ? MXBPF_TRAIT_USER : 0) |
	       (s->bulk ? MXBPF_TRAIT_BULK : 0);
}

/*
 * A row of spans with details: its id is mdl_group_id() of the five. Rows without have none, and their id is their
 * name's.
 */
struct mxbpf_group {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 id;	    /* that AGG and AGG_MEM bear as name_id */
	__u64 name_id;
	__u64 args_id;
	__u64 stack_id;
	__u64 layer_id; /* not in the first recordings, nor are traits and tid */
	__u32 traits;	/* enum mxbpf_trait */
	__u32 tid;	/* rows are of one thread each; 0: of all */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_group) == 64);
#define MXBPF_GROUP_BYTES_MIN 48

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

/*
 * The histogram of durations is log-linear: 8 buckets an octave. Bucket of v: v itself below 8, else
 * octave = floor(log2 v), index = (octave - 2) * 8 + next three bits of v. A bucket is at most 12.5 % wide.
 * What is longer than the last bucket (from 137 minutes on) counts there.
 */
#define MXBPF_HIST_BUCKETS 328

struct mxbpf_bucket {
	__u32 index;
	__u32 reserved;
	__u64 count;
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

/* Accounts of spans, added up. Time on a CPU is what these three leave of total_ns. */
struct mxbpf_account_sum {
	__u64 runq_ns, blocked_ns;
	__u64 elsewhere_ns; /* of spans with MXBPF_ACCOUNT_PART: what their account does not cover */
	__u64 nvcsw, nivcsw, minflt, majflt;
	__u64 migrated; /* spans with MXBPF_ACCOUNT_MIGRATED that blocked, which says what is less exact */
	/* The part of these sums that is in no self time: of nested spans, and all of spans with MXBPF_SPAN_ASYNC. Not
	 * in the first recordings (MXBPF_AGG_ACCOUNT_BYTES_MIN). */
	__u64 nested_runq_ns, nested_blocked_ns;
	__u64 nested_nvcsw, nested_nivcsw, nested_minflt, nested_majflt;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_account_sum) == 112);

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

/* Counters of spans, added up. */
struct mxbpf_counter_sum {
	__u64 spans;  /* whose counters are known */
	__u64 scaled; /* of these, those with MXBPF_SPAN_SCALED */
	__u64 value[MXBPF_COUNTERS_MAX];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_counter_sum) == 48);

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

/*
 * --sample: what a thread was at. Behind it stand the spans that were open, outermost first. What BPF sends has more
 * behind that (mxbpf_sample.h), of which user space makes the two ids.
 */
struct mxbpf_sample {
	struct mxbpf_rec h;
	__u64 count;	/* 1; in tables (MXBPF_CHUNK_AGG) so many, of which only the last span and tgid are told */
	__u64 stack_id; /* of the interpreter's frames: a name of kind MXBPF_NAME_STACK; 0 none */
	__u64 code_id;	/* of machine code: MXBPF_NAME_CODE; 0 none */
	__u32 tid;
	__u16 cpu;
	__u8 nspans_low; /* their number: mxbpf_sample_nspans(); 0: outside of all that is probed */
	__u8 flags;	 /* enum mxbpf_sample_flag */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sample) == 48);

enum mxbpf_sample_flag {
	MXBPF_SAMPLE_KERNEL = 1 << 0, /* it ran in the kernel */
				      /* From bit 4 on: the number of its spans beyond the low 8 bits. */
};
#define MXBPF_SAMPLE_NSPANS_SHIFT 4

static inline __attribute__((always_inline)) __u32 mxbpf_sample_nspans(const struct mxbpf_sample *s)
{
	return s->nspans_low | (__u32)(s->flags >> MXBPF_SAMPLE_NSPANS_SHIFT) << 8;
}

static inline __attribute__((always_inline)) void mxbpf_sample_set_nspans(struct mxbpf_sample *s, __u32 n)
{
	s->nspans_low = (__u8)n;
	s->flags = (__u8)((s->flags & ((1 << MXBPF_SAMPLE_NSPANS_SHIFT) - 1)) | n >> 8 << MXBPF_SAMPLE_NSPANS_SHIFT);
}

struct mxbpf_sample_span {
	__u64 name_id;
	__u32 device;
	__u8 cls; /* enum mxbpf_class */
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sample_span) == 16);

enum mxbpf_counter_id {
	MXBPF_COUNTER_MAX_OPEN = 1, /* most spans of the class open at one time */
	MXBPF_COUNTER_LATE = 2,	    /* records that arrived after their drain window had been folded */
	MXBPF_COUNTER_UNWOUND = 3,  /* spans with MXBPF_SPAN_UNWOUND: their duration is an upper bound */
	/* Spans in the row of their name alone, since there were too many rows. */
	MXBPF_COUNTER_UNGROUPED = 4,
	MXBPF_COUNTER_MOMENTS = 6,  /* records that tell iterations, which are in no row */
	MXBPF_COUNTER_UNKEYED = 7,  /* values of calls of a store of parameters that were not looked at: in no row */
	MXBPF_COUNTER_UNJOINED = 5, /* backward nodes whose forward operator is not known: they stand for it */
};

struct mxbpf_counter {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 value;
	__u32 id; /* enum mxbpf_counter_id */
	__u32 cls;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_counter) == 32);

/* What is read about once a second. How, in which unit and what is made of it: mdl_gauges[] in user/model/gauges.c. */
enum mxbpf_gauge_id {
	MXBPF_GAUGE_CPU_BUSY = 1,
	MXBPF_GAUGE_CPU_IDLE = 2,
	MXBPF_GAUGE_CPU_IOWAIT = 3,
	MXBPF_GAUGE_CPU_STEAL = 4,
	MXBPF_GAUGE_CPU_KHZ = 5,
	MXBPF_GAUGE_CPU_KHZ_MAX = 6,
	MXBPF_GAUGE_STALL_CPU = 7,
	MXBPF_GAUGE_STALL_IO = 8,
	MXBPF_GAUGE_STALL_IO_ALL = 9,
	MXBPF_GAUGE_STALL_MEMORY = 10,
	MXBPF_GAUGE_STALL_MEMORY_ALL = 11,
	/* of the target's control group */
	MXBPF_GAUGE_GROUP_WEIGHT = 12,
	MXBPF_GAUGE_GROUP_CPUS = 13,
	MXBPF_GAUGE_GROUP_STALL_CPU = 14,
	MXBPF_GAUGE_GROUP_STALL_IO = 15,
	MXBPF_GAUGE_GROUP_STALL_IO_ALL = 16,
	MXBPF_GAUGE_GROUP_STALL_MEMORY = 17,
	MXBPF_GAUGE_GROUP_STALL_MEMORY_ALL = 18,
	MXBPF_GAUGE_GROUP_MEMORY = 19,
	MXBPF_GAUGE_GROUP_CPU = 20,
	/* of that and of each around it */
	MXBPF_GAUGE_PERIODS = 21,
	MXBPF_GAUGE_PERIODS_THROTTLED = 22,
	MXBPF_GAUGE_THROTTLED = 23,
	MXBPF_GAUGE_CPU_MAX = 24,
	MXBPF_GAUGE_MEMORY_MAX = 25,
	MXBPF_GAUGE_MEMORY_HIGH = 26,
	MXBPF_GAUGE_MEMORY_MAX_HITS = 27,
	MXBPF_GAUGE_MEMORY_HIGH_HITS = 28,
	MXBPF_GAUGE_OOM_KILLS = 29,
	MXBPF_GAUGE_IDS = 30,
};

#define MXBPF_GAUGE_NO_LIMIT (~0ull)

enum mxbpf_gauge_flag {
	MXBPF_GAUGE_RESUMED = 1 << 0, /* what came between it and the reading before is not in the window */
};

struct mxbpf_gauge {
	struct mxbpf_rec h; /* ts_ns: when it was read, the last time; tgid 0 */
	__u64 value;	    /* the last */
	__u16 id;	    /* enum mxbpf_gauge_id */
	__u16 scope;	    /* 0: the machine; else a control group: MXBPF_NAME_SCOPE */
	__u32 flags;	    /* enum mxbpf_gauge_flag */
	/* Only of several readings (MXBPF_GAUGE_BYTES_MIN without). */
	__u64 first_ns, first;
	__u64 difference; /* summed from reading to reading, as elapsed_ns: what lies before one that resumed is in
			     neither */
	__u64 elapsed_ns;
	__u64 count; /* of readings that were a number; of these: */
	__u64 sum, min, max;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gauge) == 96);
#define MXBPF_GAUGE_BYTES_MIN 32

/*
 * What was lost, counted exactly where it happens. Cumulative over a session.
 * attempted == stored + dropped at rest.
 */
struct mxbpf_loss {
	__u64 attempted;  /* records BPF set out to send */
	__u64 stored;	  /* of these, records that reached the model */
	__u64 dropped;	  /* of these, records lost: ring full, too many threads, nesting too deep */
	__u64 truncated;  /* names longer than MXBPF_NAME_BYTES_MAX */
	__u64 unreadable; /* fetches of target memory that failed (page not resident) */
	__u64 unmatched;  /* starts without an end, ends without a start (calls in flight at attach or detach) */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_loss) == 48);

static inline void mxbpf_loss_add(struct mxbpf_loss *to, const struct mxbpf_loss *l)
{
	to->attempted += l->attempted;
	to->stored += l->stored;
	to->dropped += l->dropped;
	to->truncated += l->truncated;
	to->unreadable += l->unreadable;
	to->unmatched += l->unmatched;
}

static inline void mxbpf_loss_subtract(struct mxbpf_loss *from, const struct mxbpf_loss *l)
{
	from->attempted -= l->attempted;
	from->stored -= l->stored;
	from->dropped -= l->dropped;
	from->truncated -= l->truncated;
	from->unreadable -= l->unreadable;
	from->unmatched -= l->unmatched;
}

#endif
