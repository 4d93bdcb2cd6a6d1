/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * State that BPF keeps for each thread, in maps that user space reads: open spans, counts of loss, and keys. User
 * space removes the keys that a process leaves in the maps after it has ended.
 */
#ifndef MXBPF_THREAD_H
#define MXBPF_THREAD_H

#include "mxbpf_config.h"
#include "mxbpf_name.h"

#define MXBPF_THREADS_MAX  1024 /* threads of targets that hit probes at one time */
#define MXBPF_SLOT_FRAMES  32	/* open spans per slot; a power of two */
#define MXBPF_THREAD_SLOTS 16	/* slots per thread, taken as its calls nest; a power of two */
#define MXBPF_FRAMES_MAX   (MXBPF_THREAD_SLOTS * MXBPF_SLOT_FRAMES) /* open spans per thread */
#define MXBPF_RANGES_DEEP                                                                                              \
	(MXBPF_FRAMES_MAX - 8) /* ranges that would be deeper leave room for calls, if none is popped */
#define MXBPF_SLOTS_DEEP 384   /* slots for frames beyond the first 32 of a thread, shared by all threads */
#define MXBPF_SLOTS_MAX	 (MXBPF_THREADS_MAX + MXBPF_SLOTS_DEEP)
#define MXBPF_KEYS_MAX	 16384 /* open spans that end by key */

/* State of the running thread when a span opened. */
struct mxbpf_account_start {
	__s64 ran_ns;	/* constant while the thread runs, whatever is taken from it */
	__u64 taken_ns; /* time that interrupts and the hypervisor took of its CPU since boot, if counted */
	__u64 sum_exec_ns, run_delay_ns;
	__u32 nvcsw, nivcsw, minflt, majflt;
};

/* In frame.flags: */
#define MXBPF_FRAME_SLICED  (1u << 10) /* the probe at its start is of a slice */
#define MXBPF_FRAME_KEYLESS (1u << 11) /* its key has not come yet, see row.key_later */

#define MXBPF_FRAME_REGS 4

struct mxbpf_frame {
	__u64 start_ns;
	__u64 child_ns;	     /* time of spans directly nested in this one */
	__u64 cost_ns;	     /* cost_ns of its thread before it began */
	__u64 child_cost_ns; /* cost of spans directly nested in this one */
	__u64 name_id;
	/* END_KEY, and ranges: the key; END_NEXT: the return address, found at sp + return_off until the return */
	__u64 key;
	__u64 link;
	__u64 sp; /* the frame is over when the thread's stack pointer is at or above this */
	__u32 device;
	__u8 cls;
	__u8 end;
	__u16 cpu;
	__u32 tid;
	__u32 func;		/* function number of the cookie; 0: none */
	__u8 tail;		/* may leave by a tail call: a frame at the same sp can be the next function's */
	__u8 merge;		/* row.merge_same */
	__u8 nchild;		/* spans directly nested in it, counted up to 2 */
	__u8 inside;		/* row.inside */
	__u32 flags;		/* enum mxbpf_span_flag and MXBPF_FRAME_* */
	__u32 return_off;	/* END_NEXT: see `key`; engine's work: number of inner operators that began */
	__u64 ip;		/* a span found by its call site: return address; else 0 */
	__s64 alloc_bytes;	/* bytes allocated minus freed on its thread since it opened */
	__s64 self_alloc_bytes; /* part of these while it was the innermost span */
	/* See struct mxbpf_span. Only set if these details were asked for. */
	__u64 args_id, stack_id, seq, origin, layer_id;
	__u64 custom_id; /* the program's part of a custom operator: name id of the type */
	/* The first registers that pass arguments of an operator with tensors: rdi, rsi, rdx, rcx; else the first is 0
	 */
	__u64 regs[MXBPF_FRAME_REGS];
	struct mxbpf_account_start began;
	struct mxbpf_account_nested nested; /* sum of the accounts of spans directly nested in this one */
	/*
	 * The first child, while it may still be merged into this frame; dur_ns 0: none. In the map's copy of a
	 * frame that ends by key, only the account is used: that of the starting thread, once its function has
	 * returned.
	 */
	struct mxbpf_span twin;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_frame) == 528);

/*
 * Map `counter_starts`, by slot: the values of the thread's perf events at the start of each of the slot's frames.
 */
struct mxbpf_counter_start {
	struct {
		__u64 counter, enabled, running; /* see struct bpf_perf_event_value */
	} at[MXBPF_COUNTERS_MAX];
	__u64 known; /* 0: the frame has no start values */
};
struct mxbpf_counter_starts {
	struct mxbpf_counter_start frames[MXBPF_SLOT_FRAMES];
};

/* Counts of one slot. Only its thread writes them, and they are never reset: user space sums over all slots. */
enum mxbpf_count {
	MXBPF_COUNT_HITS = 0,
	MXBPF_COUNT_ATTEMPTED = 1,
	MXBPF_COUNT_DROPPED = 2,
	MXBPF_COUNT_TRUNCATED = 3,
	MXBPF_COUNT_UNREADABLE = 4,
	MXBPF_COUNT_UNMATCHED = 5,
	MXBPF_COUNT_MAX = 8,
};

/*
 * A thread of a target: its open spans, which user space can read even if the thread hangs, its counts, and scratch
 * space that no other task uses. Elements of array map `threads`, which user space maps. A thread takes a slot at
 * its first hit and gives it back at its exit.
 */
struct mxbpf_thread {
	__u32 tgid;
	__u32 tid;
	__u32 depth;
	__u32 slot;	    /* its own index; 0: free, or used only for deeper frames */
	__u32 over;	    /* open END_PAIR spans that did not fit: they and their ends are dropped */
	__u32 fetch_failed; /* scratch: the last recipe failed to read memory */
	__u64 static_base;  /* static_base of its process */
	/* MXBPF_DETAIL_SEQ: addresses of its thread-local variables, and its own number; 0: not known yet. */
	__u64 seq_addr, seq_thread_addr, seq_thread;
	__u64 raised_ns;   /* start of its last unwinding */
	__u64 top_sp;	   /* highest stack pointer seen at the start or end of a span that ends by cut; 0: none */
	__u64 noted_since; /* start of the window, once the thread ran a noted operator in it */
	__u64 module_code; /* MXBPF_DETAIL_STACK: code object of a module's call, once seen */
	__u64 wake;	   /* records left to send with a wake-up, since they have new stacks */
	__u64 undefined;   /* `undefined` of its process */
	__u64 own;	   /* `own` of its process */
	/*
	 * Name id of the custom operator's type that the thread's pushes are charged to (0: none), and start of the
	 * window in which it was set.
	 */
	__u64 custom_id, custom_since_ns;
	__u64 pushed_stack;		     /* stack_id of the push of the operator that it runs; 0: unknown */
	__u64 counted_at;		     /* 1 + number of its group of perf events; 0: none so far */
	__u64 marked_ns[MXBPF_MARK_CLASSES]; /* self time of its ended annotations, by class */
	__u64 cost_ns;			     /* of its hits so far, by the estimates; never reset */
	__u64 apart_ns;			     /* its cost_ns at the end of its last span that was in no other */
	__u64 before_ns;   /* cost_ns between that end and the start of the open span that is in no other */
	__u64 hit_over_ns; /* when its last hit was over, by the estimates */
	__u32 behind_start_ns, behind_end_ns; /* scratch: of the hit that runs, see struct mxbpf_hit_cost */
	struct {
		__u64 ts_ns, name_id;
		__u32 tid;
		__u16 depth;
		__u8 cls, pad;
	} ranged;	   /* scratch: the range or mark whose record is sent */
	__u64 seq_in_name; /* scratch: 1 + the number in the name of a range (MXBPF_RANGE_FROM_NAME); 0: none */
	__u32 nslots;	   /* number of its slots */
	__u32 iterations;  /* that it ended, if the session has slices */
	__u32 removed;	   /* frames removed below others since no frame was open, see frame_remove() */
	__u32 pad;
	__u32 slots[MXBPF_THREAD_SLOTS]; /* slot k has frames from MXBPF_SLOT_FRAMES * k on; [0] is its own */
	__u64 counts[MXBPF_COUNT_MAX];
	struct mxbpf_frame frames[MXBPF_SLOT_FRAMES];
	struct mxbpf_name_part part; /* scratch: part of a name */
	struct {
		__u64 off;
		__u32 skip, depth, state, length;
		char next;
	} segment;		/* scratch: progress in reading a segment's name */
	struct mxbpf_span done; /* scratch: the span that ends */
	struct {
		__u64 value[MXBPF_COUNTERS_MAX];
		__u8 known, scaled; /* scaled: MXBPF_SPAN_SCALED or 0 */
	} counted;		    /* scratch: counts of the span that ends */
};

/* Limits what deep nesting costs in every session: less than 8 MiB. */
MXBPF_STATIC_ASSERT(MXBPF_SLOTS_DEEP *(sizeof(struct mxbpf_thread) + sizeof(struct mxbpf_counter_starts)) < 8 << 20);

struct mxbpf_key {
	__u64 key;
	__u32 tgid;
	__u32 cls;
};

/* Identifies a parallel region: the function that the compiler made of it, and the function's argument. */
struct mxbpf_team_key {
	__u64 fn, data;
	__u32 tgid;
	__u32 pad;
};

/*
 * Identifies an object of a process and one of its turns, because an operator that is kept may be pushed many times
 * before it runs.
 */
struct mxbpf_life_key {
	__u64 object;
	__u64 turn;
	__u32 tgid;
	__u32 pad;
};

#endif
