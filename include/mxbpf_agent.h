/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between the agent inside a target and mxbpf outside. Both map one piece of shared memory, and the agent
 * hands over batches of calls. The agent writes it and mxbpf reads it, but for the fields that say otherwise. mxbpf
 * uses only an agent of its own MXBPF_AGENT_VERSION.
 */
#ifndef MXBPF_AGENT_H
#define MXBPF_AGENT_H

#include "mxbpf_event.h"

/* The symbols of the shared object that mxbpf looks for. */
#define MXBPF_AGENT_START  "mxbpf_agent_start"	/* function: see struct mxbpf_agent_config */
#define MXBPF_AGENT_BELL   "mxbpf_agent_bell"	/* function: its argument is a full struct mxbpf_agent_batch */
#define MXBPF_AGENT_SWITCH "mxbpf_agent_switch" /* 16 bits: how many mxbpf listen; the kernel counts them */
#define MXBPF_AGENT_CONFIG "mxbpf_agent_config"

/* Where the bell can be probed: behind a no-operation of ten bytes, on one of five, which Linux 6.18 makes cheap. */
#define MXBPF_AGENT_BELL_OFF 10

#define MXBPF_AGENT_MAGIC   0x746e6761666d786dull
#define MXBPF_AGENT_VERSION 2

#define MXBPF_AGENT_THREADS    512	  /* that have a slot at one time */
#define MXBPF_AGENT_OPEN       512	  /* calls of a thread that are open at one time */
#define MXBPF_AGENT_BATCH      292	  /* calls that are handed over at once, 16 KiB */
#define MXBPF_AGENT_NAMES      16384	  /* different names; a power of two */
#define MXBPF_AGENT_TEXTS      (1u << 20) /* bytes of all names */
#define MXBPF_AGENT_NAME_BYTES 256	  /* of one name, with its NUL; longer ones are cut */

/* By which of torch's scopes a call came: which callback of the agent was called. */
enum mxbpf_agent_scope {
	MXBPF_AGENT_FUNCTION = 0, /* an operator */
	MXBPF_AGENT_BACKWARD = 1, /* a node of the backward pass */
	MXBPF_AGENT_SCRIPT = 2,	  /* a function of TorchScript */
	MXBPF_AGENT_USER = 3,	  /* the program's own record_function */
	MXBPF_AGENT_SCOPES = 4,
};

enum mxbpf_agent_flag {
	MXBPF_AGENT_CALL_ASYNC = 1 << 0, /* it ended on another thread, or before one that began later */
	MXBPF_AGENT_CALL_SEQ = 1 << 1,	 /* MXBPF_SPAN_SEQ */
};

/* A call that has ended. */
struct mxbpf_agent_call {
	__u64 start_ns, dur_ns; /* CLOCK_MONOTONIC */
	__u64 self_ns;		/* dur_ns less that of calls directly in it; 0 with CALL_ASYNC */
	__u64 seq, origin;	/* MXBPF_SEQ(), as struct mxbpf_span has them; 0: none */
	__u32 name;		/* where its text begins in texts[]; 0: there was no room for it */
	__u32 end_tid;
	__u32 tid; /* of the thread that began it */
	__u8 scope, flags;
	__u8 pad[2];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agent_call) == 56);

/* A call that is open. */
struct mxbpf_agent_open {
	__u64 call; /* torch's object; 0: it has ended, and what is above it has not */
	__u64 start_ns, inner_ns;
	__u64 seq, origin;
	__u32 name;
	__u8 scope;
	__u8 inner; /* enum mxbpf_agent_inner */
	__u8 join;  /* enum mxbpf_agent_join */
	__u8 pad;
	struct mxbpf_agent_call twin; /* with INNER_TWIN */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agent_open) == 104);

/*
 * How the number of an open call joins forward and backward. FORWARD: the call may make a node. It did if the thread's
 * next number has changed when the call ends. BACKWARD: the call is a node.
 */
enum mxbpf_agent_join {
	MXBPF_AGENT_JOIN_NONE = 0,
	MXBPF_AGENT_JOIN_FORWARD = 1,
	MXBPF_AGENT_JOIN_BACKWARD = 2,
};

/*
 * The calls that ended directly inside an open call. torch.profiler merges a call with the only call inside it if both
 * have the same name.
 */
enum mxbpf_agent_inner {
	MXBPF_AGENT_INNER_NONE = 0,
	MXBPF_AGENT_INNER_TWIN = 1, /* one call of its name, which is not recorded until another one ends */
	MXBPF_AGENT_INNER_MORE = 2,
};

/* A batch: calls of one thread, which the agent hands over at once. */
struct mxbpf_agent_batch {
	__u64 slot_use; /* slot in the upper 32 bits, its `uses` in the lower */
	__u32 seq;	/* of this use of the slot, from 0 */
	__u32 ncalls;
	__u32 our_tid; /* BPF's: the number that mxbpf has for the thread which hands it over; 0: it was not */
	__u32 pad;
	struct mxbpf_agent_call calls[MXBPF_AGENT_BATCH];
};
#define MXBPF_AGENT_BATCH_HEAD 24
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agent_batch) ==
		    MXBPF_AGENT_BATCH_HEAD + MXBPF_AGENT_BATCH * sizeof(struct mxbpf_agent_call));

/* Where the text of a name is, by the address that torch gave for it. The agent's own. */
struct mxbpf_agent_cached {
	__u64 address;
	__u32 name;
	__u32 pad;
};
#define MXBPF_AGENT_CACHED 512 /* a power of two */

/* A thread. */
struct mxbpf_agent_slot {
	__u32 tid;  /* 0: free */
	__u32 uses; /* how many threads have had it */
	__u32 depth;
	__u32 pad;
	__u64 calls; /* that ended in all, of all its threads: what was handed over, what stands below, and too_deep */
	__u64 too_deep; /* that were not recorded, as MXBPF_AGENT_OPEN were open */
	struct mxbpf_agent_batch batch;
	struct mxbpf_agent_open open[MXBPF_AGENT_OPEN];
	struct mxbpf_agent_cached cached[MXBPF_AGENT_CACHED];
};

/*
 * Whether the agent reads sequence numbers. mxbpf sets OFF or ON. If the agent reads an impossible number, it sets
 * WRONG and reads no more numbers.
 */
enum mxbpf_agent_numbers {
	MXBPF_AGENT_NUMBERS_OFF = 0,
	MXBPF_AGENT_NUMBERS_ON = 1,
	MXBPF_AGENT_NUMBERS_WRONG = 2,
};

/* The shared memory: zeros to begin with, and only what was written takes memory. */
struct mxbpf_agent_shared {
	__u64 magic;
	__u32 version;
	__u32 pid;	  /* as the target sees itself */
	__u64 since_ns;	  /* mxbpf's: calls that began before are not recorded; 0: none is */
	__u64 no_slot;	  /* calls of threads that found no slot */
	__u64 no_name;	  /* names that found no room */
	__u32 registered; /* torch calls the agent */
	__u32 numbers;	  /* enum mxbpf_agent_numbers; mxbpf sets it before since_ns */
	__u32 texts_len;
	__u32 pad;
	__u32 names[MXBPF_AGENT_NAMES]; /* where texts begin, by the hash of the text; 0: free */
	char texts[MXBPF_AGENT_TEXTS];	/* each ends with NUL; the first byte is nobody's */
	struct mxbpf_agent_slot slots[MXBPF_AGENT_THREADS];
};

/* In the shared object's data. mxbpf fills in the addresses before the object is loaded, and reads the rest. */
struct mxbpf_agent_config {
	__u64 add_callback;    /* at::addGlobalCallback(RecordFunctionCallback) */
	__u64 remove_callback; /* at::removeCallback(CallbackHandle) */
	__u64 name;	       /* at::RecordFunction::name() const */
	/* All 0: where a call has its number is not known. */
	__u64 next_number;		 /* at::sequence_number::peek() */
	__u64 thread_number;		 /* at::RecordFunction::currentThreadId() */
	__u32 number_off, of_thread_off; /* in a RecordFunction: its number, and the thread that made its node */
	__u64 shared;			 /* the agent's: address of struct mxbpf_agent_shared; 0: it did not start, */
	__s64 error;			 /* and why: -errno */
};

#endif
