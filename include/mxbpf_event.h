/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * The records that BPF sends to user space, and what every record has. A recording is a sequence of records: these, and
 * those that user space makes (mxbpf_table.h and the header of each feature). The model and the outputs see nothing
 * else.
 *
 * Integers have a fixed width and the machine's (little-endian) order, padding is explicit, and every record begins
 * with struct mxbpf_rec and is a multiple of 8 bytes long. A kind is never renumbered. A reader accepts a size that is
 * larger than the one it knows, and ignores the rest. Times are CLOCK_MONOTONIC in ns (bpf_ktime_get_ns()).
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
	MXBPF_SPAN = 1,	 /* BPF: a call with start and end                           struct mxbpf_span */
	MXBPF_AGG = 2,	 /* user: one row of a table                                    struct mxbpf_agg */
	MXBPF_TALLY = 4, /* user: a value of a span class over the window         struct mxbpf_tally */
	MXBPF_ALLOC = 5, /* BPF: bytes taken or given back on a device              struct mxbpf_alloc */
	MXBPF_SCHED = 6, /* BPF; user at the window's end: a thread left its CPU, and got one again
			  *							struct mxbpf_sched */
	MXBPF_EDGE = 7,	 /* BPF: an open span caused work that starts later          struct mxbpf_edge */
	MXBPF_NAME = 8,	 /* user: id -> string, before its first use in a slot       struct mxbpf_name */
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
	MXBPF_MEM_OWNER = 26,	 /* user: whose allocations are alive (mxbpf_memory.h)   struct mxbpf_mem_owner */
	MXBPF_MEM_TIME = 27,	 /* user: what a device held, over time              struct mxbpf_mem_time */
	MXBPF_INSTANT = 3,	 /* BPF: a moment that the program marked; user: a row	  struct mxbpf_instant */
	MXBPF_VALUE = 29,	 /* BPF: a counter of the program's was set; user: a row    struct mxbpf_value */
	MXBPF_AGG_EXTENT = 32,	 /* user: first start and last end of an AGG row	struct mxbpf_agg_extent */
	MXBPF_ACTIVITY = 34,	 /* agent: something that ran on a device                         mxbpf_track.h */
	MXBPF_LAUNCH = 35,	 /* agent: a thread began an edge to activities                   mxbpf_track.h */
	MXBPF_AGG_ACTIVITY = 36, /* user: a row of activities                                     mxbpf_track.h */
				 /* From 37 on a feature takes the next free number in a header of its own. */
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

/* Counters of spans, added up. */
struct mxbpf_counter_sum {
	__u64 spans;  /* whose counters are known */
	__u64 scaled; /* of these, those with MXBPF_SPAN_SCALED */
	__u64 value[MXBPF_COUNTERS_MAX];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_counter_sum) == 48);

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

#endif
