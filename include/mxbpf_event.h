/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * The records that BPF sends to user space, and the header of every record. A recording is a sequence of records:
 * those of BPF, and those that user space makes (mxbpf_table.h and the header of each feature). The model and the
 * outputs see nothing else.
 *
 * Integers have a fixed width and little-endian order, padding is explicit, and every record begins with struct
 * mxbpf_rec and is a multiple of 8 bytes long. A kind is never renumbered. A reader accepts a size that is larger
 * than the one it knows, and ignores the rest. Times are CLOCK_MONOTONIC in ns (bpf_ktime_get_ns()).
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

/*
 * Numbers from 37 on are defined in the headers of features. A new kind takes the next free number, never one of a kind
 * of earlier versions (user/records/old.c).
 */
enum mxbpf_kind {
	MXBPF_SPAN = 1,	 /* BPF: a finished call, struct mxbpf_span */
	MXBPF_AGG = 2,	 /* user: a row of a table, struct mxbpf_agg */
	MXBPF_TALLY = 4, /* user: a number about the spans of a class in the window, struct mxbpf_tally */
	MXBPF_ALLOC = 5, /* BPF: memory allocated or freed on a device, struct mxbpf_alloc */
	MXBPF_SCHED = 6, /* BPF, and user at the window's end: a thread's time off the CPU, struct mxbpf_sched */
	MXBPF_EDGE = 7,	 /* BPF: an open span hands over work that starts later, struct mxbpf_edge */
	MXBPF_NAME = 8,	 /* user: text of an id, before its first use in a slot, struct mxbpf_name */
	/* 9 is loss, which the headers of chunks carry (mxbpf_file.h). */
	MXBPF_MEM = 10,		 /* user: allocation totals of a device, struct mxbpf_mem */
	MXBPF_AGG_MEM = 11,	 /* user: memory of the AGG row before it, struct mxbpf_agg_mem */
	MXBPF_GROUP = 12,	 /* user: the ids that a row's id stands for, struct mxbpf_group */
	MXBPF_AGG_COUNTERS = 17, /* user: performance counters of the AGG row before it, struct mxbpf_agg_counters */
	MXBPF_AGG_ACCOUNT = 14,	 /* user: account of the AGG row before it, struct mxbpf_agg_account */
	MXBPF_GAUGE = 15,	 /* user: one or more readings of a machine's gauge, struct mxbpf_gauge */
	MXBPF_TEAM = 18,	 /* BPF: an OpenMP parallel region; user: a row of them, struct mxbpf_team */
	MXBPF_SLOW = 20,	 /* user: a span far longer than the median of its row, struct mxbpf_slow */
	MXBPF_SAMPLE = 16,	 /* BPF: a thread that ran when a sampling timer fired, struct mxbpf_sample */
	MXBPF_KV = 30,		 /* BPF: keys and bytes of a parameter store's call, mxbpf_kv.h */
	MXBPF_OPEN = 19,	 /* user: a span still open at the end of its window, struct mxbpf_open */
	MXBPF_LIFE = 22,	 /* BPF: an operator from push to completion, struct mxbpf_life */
	MXBPF_WAIT = 24,	 /* BPF: a wait of the program, struct mxbpf_wait */
	MXBPF_STEP = 28,	 /* BPF: an event that may mark an iteration, struct mxbpf_step */
	MXBPF_ITERATION = 31,	 /* user: a finished iteration, struct mxbpf_iteration */
	MXBPF_MEM_OWNER = 26,	 /* user: live allocations of an owner, struct mxbpf_mem_owner (mxbpf_memory.h) */
	MXBPF_MEM_TIME = 27,	 /* user: memory of a device over time, struct mxbpf_mem_time */
	MXBPF_INSTANT = 3,	 /* BPF: an instant user annotation; user: a row, struct mxbpf_instant */
	MXBPF_VALUE = 29,	 /* BPF: a change of a user counter; user: a row, struct mxbpf_value */
	MXBPF_AGG_EXTENT = 32,	 /* user: first start and last end of the AGG row before it, struct mxbpf_agg_extent */
	MXBPF_ACTIVITY = 34,	 /* agent: an activity of a device, mxbpf_track.h */
	MXBPF_LAUNCH = 35,	 /* agent: a thread's launch of activities, mxbpf_track.h */
	MXBPF_AGG_ACTIVITY = 36, /* user: a row of activities, mxbpf_track.h */
};

struct mxbpf_rec {
	__u16 kind; /* enum mxbpf_kind */
	__u16 size; /* bytes of the whole record, a multiple of 8 */
	__u32 tgid;
	__u64 ts_ns; /* time of the record in ns; for a span, its start */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_rec) == 16);

/*
 * Table that a span belongs to. mdl_classes[] in user/model/class.c has the order of the tables and the trace
 * categories.
 */
enum mxbpf_class {
	MXBPF_CLASS_NONE = 0,
	MXBPF_CLASS_API = 1,	  /* a call of the runtime's C API */
	MXBPF_CLASS_OPERATOR = 2, /* an operator that the runtime's engine executes */
	MXBPF_CLASS_WAIT = 3,	  /* the program waits for the engine */
	MXBPF_CLASS_KERNEL = 4,	  /* code compiled by the runtime while the program ran */
	MXBPF_CLASS_TASK = 5,	  /* user annotation: a task */
	MXBPF_CLASS_FRAME = 6,	  /* user annotation: a frame */
	MXBPF_CLASS_EVENT = 7,	  /* user annotation: an event */
	MXBPF_CLASS_STEP = 8,	  /* an iteration of the program */
	MXBPF_CLASS_DATA = 9,	  /* the program waits for its next batch of data */
	MXBPF_CLASS_KVSTORE = 10, /* a parameter moves to or from other devices or hosts */
	MXBPF_CLASS_CUSTOM = 11,  /* an operator written in the program's language, or its part in that language */
	MXBPF_CLASS_CUDA = 12,	  /* a call of CUDA's runtime or driver */
	MXBPF_CLASS_PYTHON = 13,  /* a function of Python, as another profiler saw it: user/import/ alone makes these */
	MXBPF_CLASS_MAX = 14,
};

enum mxbpf_span_flag {
	MXBPF_SPAN_ASYNC = 1 << 0, /* ended on another thread or after its function: may overlap other spans */
	/*
	 * The end was not seen, and a later event above its frame closed the span. Its duration is an upper bound.
	 * A span of class CUSTOM with this flag is in no table, because the runtime's profiler does not count the
	 * program's part of a failed operator either.
	 */
	MXBPF_SPAN_UNWOUND = 1 << 1,
	MXBPF_SPAN_USER = 1 << 2,     /* a user annotation, not work of the runtime */
	MXBPF_SPAN_SEQ = 1 << 3,      /* seq joins: a backward node, or the forward operator that created one */
	MXBPF_SPAN_BACKWARD = 1 << 4, /* a backward node: seq is that of the operator that created it */
	MXBPF_SPAN_ACCOUNT = 1 << 5,  /* cpu and account are known */
	MXBPF_SPAN_SCALED = 1 << 6,   /* a counter ran for part of the time and was scaled up */
	MXBPF_SPAN_PART = 1 << 7,     /* an operator in a segment of the graph, whose name contains its own */
};

/*
 * Joins a backward node to the operator that created it: both have the same thread and number. `thread` is the
 * runtime's number of the forward pass's thread, from 1 on, or 0 if unknown. Numbers rise with each node that the
 * thread creates. An operator has the next number that was free at its start. The operator that created node N is
 * therefore the last one with MXBPF_SPAN_SEQ that began with N. A node that was created outside of operators (by a
 * Python Function) has none.
 */
#define MXBPF_SEQ(thread, nr) ((__u64)(thread) << 48 | ((__u64)(nr)&0xffffffffffffull))
#define MXBPF_SEQ_THREAD(s)   ((__u32)((s) >> 48))
#define MXBPF_SEQ_NR(s)	      ((s)&0xffffffffffffull)

/*
 * A device as the runtime's adapter numbers it: type in the upper 16 bits, ordinal in the lower 16 bits. Type 0 is
 * "no device". The recording's metadata has the names of the types, which the adapter defines.
 */
#define MXBPF_DEVICE(type, id) (((__u32)(type) << 16) | ((__u32)(id)&0xffff))
#define MXBPF_DEVICE_TYPE(d)   ((__u32)(d) >> 16)
#define MXBPF_DEVICE_ID(d)     ((__u32)(d)&0xffff)

enum mxbpf_account_flag {
	/*
	 * The thread ended the span on another CPU. If nvcsw is not 0 and the clocks of the two CPUs differ,
	 * on_cpu_ns may be wrong by up to MXBPF_ACCOUNT_SLACK_NS. Some blocked time may also count as run-queue
	 * wait: Linux 6.12 and later treat a sleeping thread that the load balancer moves as a waiting one, in
	 * schedstat too.
	 */
	MXBPF_ACCOUNT_MIGRATED = 1 << 0,
	/*
	 * The span ended on another thread, or after its function had returned. The account covers only its own
	 * thread while its function ran. The work was elsewhere for the rest of the time.
	 */
	MXBPF_ACCOUNT_PART = 1 << 1,
};
#define MXBPF_CPU_NONE	       0xffff	   /* number of an unknown CPU */
#define MXBPF_ACCOUNT_SLACK_NS 10000000ull /* longest tick of a kernel, which updates a task's time */

/*
 * Where the time of a span went. The values come from the kernel's fields of its thread (sum_exec_runtime,
 * exec_start, sched_info.run_delay, nvcsw, nivcsw, min_flt, maj_flt) at its start and end. The three times add up
 * to dur_ns, unless MXBPF_ACCOUNT_PART is set. on_cpu_ns includes the time that interrupts and the hypervisor took
 * while the thread ran. If the thread also slept, that part is an estimate: the thread's share of the CPU's
 * remaining time is taken as its share of the taken time.
 */
struct mxbpf_account {
	__u64 on_cpu_ns;
	__u64 runq_ns;	      /* ready to run, but waiting for a CPU */
	__u64 blocked_ns;     /* asleep: waiting for a lock, a disk, a page */
	__u32 nvcsw, nivcsw;  /* voluntary and involuntary context switches */
	__u32 minflt, majflt; /* page faults without and with I/O */
	__u16 end_cpu;	      /* CPU at the end; struct mxbpf_span has that of the start */
	__u8 flags;	      /* enum mxbpf_account_flag */
	__u8 pad[5];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_account) == 48);
struct mxbpf_account_nested {
	__u64 runq_ns, blocked_ns;
	__u32 nvcsw, nivcsw, minflt, majflt;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_account_nested) == 32);
/* Performance counters that are read at both ends of a span. The session defines which ones. */
#define MXBPF_COUNTERS_MAX 4
#define MXBPF_COUNTER_NONE (~0ull) /* value of the first counter if the span's counters are unknown */

/* Sum of the accounts of spans. The time on CPU is total_ns minus the first three members. */
struct mxbpf_account_sum {
	__u64 runq_ns, blocked_ns;
	__u64 elsewhere_ns; /* time that the accounts with MXBPF_ACCOUNT_PART do not cover */
	__u64 nvcsw, nivcsw, minflt, majflt;
	__u64 migrated; /* spans with MXBPF_ACCOUNT_MIGRATED that blocked: less exact */
	/*
	 * The part of these sums that is in no self time: that of nested spans, and that of whole spans with
	 * MXBPF_SPAN_ASYNC. Recordings with MXBPF_AGG_ACCOUNT_BYTES_MIN lack these members.
	 */
	__u64 nested_runq_ns, nested_blocked_ns;
	__u64 nested_nvcsw, nested_nivcsw, nested_minflt, nested_majflt;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_account_sum) == 112);

/* Sum of the counters of spans. */
struct mxbpf_counter_sum {
	__u64 spans;  /* spans with known counters */
	__u64 scaled; /* of these, spans with MXBPF_SPAN_SCALED */
	__u64 value[MXBPF_COUNTERS_MAX];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_counter_sum) == 48);

/*
 * Cost of watching a span: the time of the probe hits between its start and its end, by the estimates that were valid
 * when it ended (user/attach/costs.c), in units of MXBPF_COST_UNIT_NS. Each form of struct mxbpf_span that BPF sends
 * ends with it, also the shorter forms; mxbpf_span_cost_off() returns its offset.
 */
struct mxbpf_span_cost {
	__u32 all;  /* of dur_ns; 0 with MXBPF_SPAN_ASYNC */
	__u32 self; /* of self_ns */
	/*
	 * Of a span that is in no other on its thread: of the hits since the end of the last such span. It means
	 * nothing in other spans.
	 */
	__u32 before;
	__u32 pad;
};
#define MXBPF_COST_UNIT_NS 16

static inline __attribute__((always_inline)) __u32 mxbpf_cost_units(__u64 ns)
{
	const __u64 n = (ns + MXBPF_COST_UNIT_NS / 2) / MXBPF_COST_UNIT_NS;

	return n > 0xffffffff ? 0xffffffff : (__u32)n;
}

struct mxbpf_span {
	struct mxbpf_rec h; /* ts_ns: start */
	__u64 dur_ns;
	/*
	 * dur_ns minus the time of spans directly nested in it on its thread; 0 with MXBPF_SPAN_ASYNC, because
	 * other spans of its thread have that time. The self times of a thread never exceed the elapsed time.
	 */
	__u64 self_ns;
	__u64 name_id; /* 0: the name could not be read */
	__u64 link;    /* work object of the runtime that joins an edge to this span; 0: none */
	__u32 tid;     /* thread of the start */
	__u32 end_tid;
	__u32 device;  /* MXBPF_DEVICE() */
	__u8 cls : 7;  /* enum mxbpf_class */
	__u8 bulk : 1; /* 1: a bulk, with spans of its operators nested in it; 0 in old recordings */
	__u8 flags;    /* enum mxbpf_span_flag */
	__u16 cpu;     /* CPU of the start; with MXBPF_SPAN_ACCOUNT */
	/*
	 * Recordings with MXBPF_SPAN_BYTES_MIN lack these members. Bytes allocated minus bytes freed on its own
	 * thread while it was open; and the part of these outside nested spans.
	 */
	__s64 alloc_bytes;
	__s64 self_alloc_bytes;
	/* These members need details (size MXBPF_SPAN_BYTES_PLAIN without); 0: none. */
	__u64 args_id;	/* its tensors: a name of kind MXBPF_NAME_ARGS */
	__u64 stack_id; /* its Python stack: a name of kind MXBPF_NAME_STACK */
	__u64 seq;	/* MXBPF_SEQ(); joins only with MXBPF_SPAN_SEQ, else only for display */
	__u64 origin;	/* seq of the innermost backward node that it ran in; 0: none */
	/*
	 * A record without this member but with MXBPF_SPAN_ACCOUNT means: the thread stayed on one CPU and had no
	 * page fault. kind_span() fills the member in.
	 */
	struct mxbpf_account account;
	/* Only with --counters: what the thread's counters counted while the span was open. */
	__u64 counters[MXBPF_COUNTERS_MAX];
	__u64 layer_id; /* node of the program's graph: a name of kind MXBPF_NAME_LAYER; 0: none */
	/*
	 * Part of the account that belongs to spans directly nested in it. Without this member, none of them left
	 * its CPU.
	 */
	struct mxbpf_account_nested nested;
	struct mxbpf_span_cost cost;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_span) == 248);
#define MXBPF_SPAN_BYTES_MIN	 64
#define MXBPF_SPAN_BYTES_PLAIN	 80
#define MXBPF_SPAN_BYTES_DETAILS 112
#define MXBPF_SPAN_BYTES_ACCOUNT 160
#define MXBPF_SPAN_BYTES_WHOLE	 232 /* all but the cost */
#define MXBPF_WITH_COST(form)	 ((form) + sizeof(struct mxbpf_span_cost))

/* Returns the offset of the cost in a record of `bytes` bytes, or 0 if it has none. */
static inline __attribute__((always_inline)) __u32 mxbpf_span_cost_off(__u32 bytes)
{
	const __u32 off = bytes - (__u32)sizeof(struct mxbpf_span_cost);

	return off == MXBPF_SPAN_BYTES_PLAIN || off == MXBPF_SPAN_BYTES_DETAILS || off == MXBPF_SPAN_BYTES_ACCOUNT ||
			       off == MXBPF_SPAN_BYTES_WHOLE
		       ? off
		       : 0;
}

/* Properties that separate rows of one name without an option. */
enum mxbpf_trait {
	MXBPF_TRAIT_PART = 1 << 0, /* spans with MXBPF_SPAN_PART */
	MXBPF_TRAIT_USER = 1 << 1, /* user annotations in the table of the runtime's operators */
	MXBPF_TRAIT_BULK = 1 << 2, /* spans with `bulk` */
};

static inline __attribute__((always_inline)) __u32 mxbpf_traits(const struct mxbpf_span *s)
{
	return (s->flags & MXBPF_SPAN_PART ? MXBPF_TRAIT_PART : 0) |
	       (s->flags & MXBPF_SPAN_USER && s->cls == MXBPF_CLASS_OPERATOR ? MXBPF_TRAIT_USER : 0) |
	       (s->bulk ? MXBPF_TRAIT_BULK : 0);
}

/*
 * A row of spans with details. Its id is mdl_group_id() of the five ids. A row without details has no such record,
 * and its id is its name_id.
 */
struct mxbpf_group {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 id;	    /* the name_id that its AGG and AGG_MEM records have */
	__u64 name_id;
	__u64 args_id;
	__u64 stack_id;
	__u64 layer_id; /* old recordings lack this and the next two members */
	__u32 traits;	/* enum mxbpf_trait */
	__u32 tid;	/* thread, if there is one row per thread; 0: all threads */
	__u64 range_id; /* name of the innermost range around the calls, if rows tell ranges apart; 0: none */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_group) == 72);
#define MXBPF_GROUP_BYTES_MIN 48

struct mxbpf_alloc {
	struct mxbpf_rec h;
	__s64 bytes; /* > 0: allocated, < 0: freed */
	__u32 tid;
	__u32 device;
	__u64 addr; /* 0: unknown; old recordings lack this member */
	/*
	 * Only with --memory (size MXBPF_ALLOC_BYTES_PLAIN without). Owner of the memory: the innermost open
	 * operator, or else the innermost open call.
	 */
	__u64 name_id;
	__u64 layer_id;
	__u64 scope_id, label_id; /* the runtime's names for the allocation; 0: none */
	__u64 pool_bytes;	  /* bytes reserved by its pool so far; 0: not pooled */
	__u8 cls;		  /* enum mxbpf_class; NONE: no operator or call was open */
	__u8 flags;		  /* enum mxbpf_alloc_flag */
	__u8 pad[6];
	/*
	 * Only with --memory and --py-stacks (size MXBPF_ALLOC_BYTES_OWNER without): the Python stack that allocated.
	 * If an engine's thread allocated, it is the stack that pushed the first operator which writes the array.
	 */
	__u64 stack_id; /* a name of kind MXBPF_NAME_STACK; 0: unknown, or memory is freed */
	/* Only of an allocator that reports its own totals, with --memory (size MXBPF_ALLOC_BYTES_STACK else). */
	__u64 total_bytes;  /* allocated in all after this, also before the window; pool_bytes are reserved */
	__u64 wanted_bytes; /* FAILED: bytes asked for */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_alloc) == 112);
#define MXBPF_ALLOC_BYTES_MIN	32
#define MXBPF_ALLOC_BYTES_PLAIN 40
#define MXBPF_ALLOC_BYTES_OWNER 88
#define MXBPF_ALLOC_BYTES_STACK 96

enum mxbpf_alloc_flag {
	MXBPF_ALLOC_FREED = 1 << 0, /* memory is freed; bytes 0: size unknown */
	MXBPF_ALLOC_FAILED =
		1 << 1, /* out of memory: bytes and addr are 0; such a record comes without --memory, too */
	MXBPF_ALLOC_UNCOUNTED = 1 << 2, /* of FAILED: total_bytes is not known */
	MXBPF_ALLOC_COUNTED = 1 << 3,	/* the profiler whose trace this is has counted it, also with bytes 0 */
};

/*
 * The innermost open span of a thread (src_*) handed `link` to the runtime, and the span that it causes has the
 * same link. A link may be handed over again before it ran; hand-overs and starts are then paired in order. Edges
 * to activities of a device have kind MXBPF_LAUNCH.
 */
struct mxbpf_edge {
	struct mxbpf_rec h; /* ts_ns: time of the hand-over */
	__u64 link;
	__u64 src_start_ns; /* identifies the span, together with tid and src_cls */
	__u32 tid;
	__u8 src_cls;
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_edge) == 40);

#endif
