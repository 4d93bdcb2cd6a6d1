/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * What BPF keeps of the target's threads, in maps that user space reads: open calls, counters of loss, and the keys of
 * what a process leaves behind, which user space removes after the process has ended.
 */
#ifndef MXBPF_THREAD_H
#define MXBPF_THREAD_H

#include "mxbpf_config.h"
#include "mxbpf_name.h"

#define MXBPF_THREADS_MAX  1024 /* threads of the target that hit a probe at the same time */
#define MXBPF_SLOT_FRAMES  32	/* open spans that a slot has room for; a power of two */
#define MXBPF_THREAD_SLOTS 16	/* slots of one thread, which takes them as its calls nest; a power of two */
#define MXBPF_FRAMES_MAX   (MXBPF_THREAD_SLOTS * MXBPF_SLOT_FRAMES) /* open spans of one thread */
#define MXBPF_SLOTS_DEEP   440 /* slots for frames beyond the first 32 of a thread, shared by all threads */
#define MXBPF_SLOTS_MAX	   (MXBPF_THREADS_MAX + MXBPF_SLOTS_DEEP)
#define MXBPF_KEYS_MAX	   16384 /* open spans that end by key */

/* Of the running thread when a span opened. */
struct mxbpf_account_start {
	__s64 ran_ns;	/* the same all the time that it runs, whatever is taken from it meanwhile */
	__u64 taken_ns; /* that interrupts and the hypervisor took of its CPU since boot, if the kernel counts it */
	__u64 sum_exec_ns, run_delay_ns;
	__u32 nvcsw, nivcsw, minflt, majflt;
};

struct mxbpf_frame {
	__u64 start_ns;
	__u64 child_ns; /* time in spans that were directly nested in this one */
	__u64 name_id;
	__u64 key; /* END_KEY; END_NEXT: the return address, which stands at sp + return_off until the function returns
		    */
	__u64 link;
	__u64 sp; /* the frame is dead once the thread's stack pointer is at or above this */
	__u32 device;
	__u8 cls;
	__u8 end;
	__u16 cpu;
	__u32 tid;
	__u32 func;		/* function of the cookie; 0 none */
	__u8 tail;		/* it can leave by a tail call: a frame at the same place may be its successor's */
	__u8 merge;		/* row.merge_same */
	__u8 nchild;		/* spans directly in it, at most 2 counted */
	__u8 inside;		/* row.inside */
	__u32 flags;		/* enum mxbpf_span_flag */
	__u32 return_off;	/* END_NEXT; of the engine's work: operators that it has begun, as row.inside counts */
	__u64 ip;		/* of a function that was told by its call: where it comes back to; else 0 */
	__s64 alloc_bytes;	/* taken less given back since it opened, on its thread */
	__s64 self_alloc_bytes; /* of these, while it was the innermost */
	/* As in struct mxbpf_span; only where details were asked for. */
	__u64 args_id, stack_id, seq, origin, layer_id;
	__u64 custom_id; /* of the program's part of a custom operator: name id of the operator's type */
	struct mxbpf_account_start began;
	struct mxbpf_account_nested nested; /* of the accounts of spans that were directly nested in this one */
	/* The first child, while it may be merged into this frame; dur_ns 0: none. Of a frame that ends by key, in the
	 * map's copy: its account alone, of the thread of the start, once its function has returned. */
	struct mxbpf_span twin;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_frame) == 464);

/* Map `counter_starts`, by slot: what its thread's perf events stood at when each of the slot's frames opened. */
struct mxbpf_counter_start {
	struct {
		__u64 counter, enabled, running; /* as struct bpf_perf_event_value */
	} at[MXBPF_COUNTERS_MAX];
	__u64 known; /* else it has none */
};
struct mxbpf_counter_starts {
	struct mxbpf_counter_start frames[MXBPF_SLOT_FRAMES];
};

/* Counters of one slot; written by its thread alone, never reset: user space sums over all slots. */
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
 * One thread of the target: its open spans (readable while it hangs), its counters, scratch space that
 * no other task can touch. Array map `threads`, mapped into user space; taken at a thread's first hit,
 * given back at its exit.
 */
struct mxbpf_thread {
	__u32 tgid;
	__u32 tid;
	__u32 depth;
	__u32 slot;	    /* its index; 0: no thread has it, or has only further frames in it */
	__u32 over;	    /* open pairs above the last frame there is room for: dropped, and their ends with them */
	__u32 fetch_failed; /* scratch: the last recipe met memory that is not there */
	__u64 static_base;  /* of its process */
	/* MXBPF_DETAIL_SEQ: addresses of its variables once it has them, and its own number; 0: not yet. */
	__u64 seq_addr, seq_thread_addr, seq_thread;
	__u64 raised_ns; /* when it last began to unwind */
	__u64 top_sp; /* highest stack pointer at which it was seen to begin or end a span that ends by cut; 0: none */
	__u64 noted_since; /* the window's begin, once the thread ran an operator that was noted in it */
	__u64 py_state;	   /* MXBPF_DETAIL_STACK: its state in the interpreter, once found */
	__u64 module_code; /* likewise: code object of a module's call, once one was seen */
	__u64 wake;	   /* so many records are to come whose stacks user space has to read soon */
	__u64 undefined;   /* as in struct mxbpf_target */
	__u64 own;	   /* as in struct mxbpf_target */
	/* Name id of the custom operator's type that what it pushes is charged to, 0 none; and the window's begin when
	 * that was noted. */
	__u64 custom_id, custom_since_ns;
	__u64 counted_at;		     /* 1 + its group of perf events; 0: none so far */
	__u64 marked_ns[MXBPF_MARK_CLASSES]; /* self time of its marks that have ended */
	__u32 nslots;			     /* that it has */
	__u32 pad;
	__u32 slots[MXBPF_THREAD_SLOTS]; /* of frames MXBPF_SLOT_FRAMES * k on; [0] is its own */
	__u64 counts[MXBPF_COUNT_MAX];
	struct mxbpf_frame frames[MXBPF_SLOT_FRAMES];
	struct mxbpf_name_part part; /* scratch */
	struct {
		__u64 off;
		__u32 skip, depth, state, length;
		char next;
	} segment;		/* scratch: how far its name is read */
	struct mxbpf_span done; /* scratch: the span that ends */
	struct {
		__u64 value[MXBPF_COUNTERS_MAX];
		__u8 known, scaled; /* MXBPF_SPAN_SCALED */
	} counted;		    /* scratch: its counters */
};

/* What deep nesting may cost every session. */
MXBPF_STATIC_ASSERT(MXBPF_SLOTS_DEEP *(sizeof(struct mxbpf_thread) + sizeof(struct mxbpf_counter_starts)) < 8 << 20);

struct mxbpf_key {
	__u64 key;
	__u32 tgid;
	__u32 cls;
};

/* A parallel region by what its threads call: the function that the compiler made of it, and the argument. */
struct mxbpf_team_key {
	__u64 fn, data;
	__u32 tgid;
	__u32 pad;
};

/* An object of a process, and which of its turns: an operator that is not temporary may be pushed many times ahead. */
struct mxbpf_life_key {
	__u64 object;
	__u64 turn;
	__u32 tgid;
	__u32 pad;
};

#endif
