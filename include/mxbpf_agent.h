/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between the agent inside a target and mxbpf outside. The agent maps a piece of memory that
 * mxbpf opens as a file, and hands over batches of calls. The agent writes the memory and mxbpf reads it, except for
 * the fields that say otherwise. Other code of the target can write it, too, so mxbpf reads it through records/gate.h
 * alone. mxbpf uses only an agent of its own MXBPF_AGENT_VERSION.
 */
#ifndef MXBPF_AGENT_H
#define MXBPF_AGENT_H

#include "mxbpf_args.h"
#include "mxbpf_event.h"
#include "mxbpf_gpu.h"
#include "mxbpf_stack.h"

/* Symbols of the shared object that mxbpf looks up. */
#define MXBPF_AGENT_START  "mxbpf_agent_start"	/* function: see struct mxbpf_agent_config, mxbpf_agent_module */
#define MXBPF_AGENT_BELL   "mxbpf_agent_bell"	/* function; its argument is a struct mxbpf_agent_batch to hand over */
#define MXBPF_AGENT_SWITCH "mxbpf_agent_switch" /* 16 bits: number of attached mxbpf processes, kept by the kernel */
#define MXBPF_AGENT_CONFIG "mxbpf_agent_config"
#define MXBPF_AGENT_FILE   "mxbpf-agent" /* the mapping is called /memfd:mxbpf-agent in /proc/PID/maps */

/*
 * Offset of the instruction in the bell function that is probed. A no-operation of ten bytes comes first, and the
 * probe is on one of a single byte: one of five bytes would break forked children, see lib/agent.c.
 */
#define MXBPF_AGENT_BELL_OFF 10

#define MXBPF_AGENT_MAGIC   0x746e6761666d786dull
#define MXBPF_AGENT_VERSION 10

#define MXBPF_AGENT_PROCESSES  4096	  /* of one session that have the agent at one time */
#define MXBPF_AGENT_SPILL      64	  /* batches that a forked child keeps until mxbpf attaches to it, 1 MiB */
#define MXBPF_AGENT_THREADS    512	  /* threads that have a slot at one time */
#define MXBPF_AGENT_OPEN       512	  /* open calls of one thread */
#define MXBPF_AGENT_BATCH      255	  /* calls handed over at once, 16 KiB */
#define MXBPF_AGENT_GPU_BATCH  185	  /* records of a GPU handed over at once, 16 KiB */
#define MXBPF_AGENT_NAMES      16384	  /* different names; a power of two */
#define MXBPF_AGENT_TEXTS      (1u << 20) /* bytes of all names */
#define MXBPF_AGENT_NAME_BYTES 256	  /* bytes of one name with its NUL; longer names are cut */
#define MXBPF_AGENT_LISTS      32768	  /* different lists of arguments, and Python stacks; a power of two */
#define MXBPF_AGENT_WORDS      (2u << 20) /* words of all lists, 16 MiB */
#define MXBPF_AGENT_LIST_WORDS 1024	  /* words of one list; a call with more arguments has none */

/* Scope of a call in the runtime, which is also the number of the agent's callback. */
enum mxbpf_agent_scope {
	MXBPF_AGENT_FUNCTION = 0, /* an operator */
	MXBPF_AGENT_BACKWARD = 1, /* a node of the backward pass */
	MXBPF_AGENT_SCRIPT = 2,	  /* a function of compiled model code */
	MXBPF_AGENT_USER = 3,	  /* a user annotation (record_function) */
	MXBPF_AGENT_SCOPES = 4,
	MXBPF_AGENT_MEMORY = 4, /* no call: memory is allocated or freed, see struct mxbpf_agent_call */
	MXBPF_AGENT_RANGE = 5,	/* no call yet: a user annotation begins */
};

enum mxbpf_agent_flag {
	MXBPF_AGENT_CALL_ASYNC = 1 << 0, /* ended on another thread, or before a call nested in it */
	MXBPF_AGENT_CALL_SEQ = 1 << 1,	 /* the call has MXBPF_SPAN_SEQ */
	MXBPF_AGENT_CALL_FREED = 1 << 2, /* only with MXBPF_AGENT_MEMORY: the block is freed */
};

/*
 * A call that has ended. With MXBPF_AGENT_MEMORY: start_ns is when, seq is the address of the block, origin its bytes
 * (0 with CALL_FREED: unknown), dur_ns the bytes that its allocator has reserved on the device (0: unknown) and self_ns
 * those that it has allocated in all after this, name the MXBPF_DEVICE(), tid and end_tid the thread, stack as in a
 * call; the rest is 0. With MXBPF_AGENT_RANGE: start_ns, name, tid and end_tid as in the call that will end; the rest
 * is 0.
 */
struct mxbpf_agent_call {
	__u64 start_ns, dur_ns; /* CLOCK_MONOTONIC */
	__u64 self_ns;		/* dur_ns minus the time of calls directly nested in it; 0 with CALL_ASYNC */
	__u64 seq, origin;	/* MXBPF_SEQ() values, see struct mxbpf_span; 0: none */
	__u32 name;		/* offset of the name in texts[]; 0: texts[] was full */
	__u32 end_tid;
	__u32 tid; /* thread that began the call */
	__u8 scope, flags;
	__u8 pad[2];
	__u32 args, stack; /* places of its arguments and of its Python stack in words[]; 0: none */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agent_call) == 64);

/* A call that is open. */
struct mxbpf_agent_open {
	__u64 call; /* address of the runtime's object; 0: ended before a call nested in it */
	__u64 start_ns, inner_ns;
	__u64 seq, origin;
	__u32 name;
	__u8 scope;
	__u8 inner; /* enum mxbpf_agent_inner */
	__u8 join;  /* enum mxbpf_agent_join */
	__u8 pad;
	__u32 args, stack;	      /* as in struct mxbpf_agent_call */
	__u64 top;		      /* hash of the innermost Python frame at its start; private to the agent */
	struct mxbpf_agent_call twin; /* with INNER_TWIN: the nested call */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agent_open) == 128);

/*
 * A list of words that calls refer to, at a place in words[]: a word with the number of words behind it in its lower
 * half and the kind in its upper half, then these words.
 */
enum mxbpf_agent_list {
	/*
	 * The arguments of a call: enum mxbpf_arg_word for each argument and for each element of a list.
	 * (at most MXBPF_ARG_WORDS_MAX of them). MXBPF_AGENT_TENSOR stands before the sizes of a tensor, then its
	 * strides if it has them; its lower bits say what it is (MXBPF_AGENT_TENSOR_WORD).
	 */
	MXBPF_AGENT_LIST_ARGS = 1,
	/* A Python stack: 1 if there are more frames, then struct mxbpf_stack_frame for each frame, the innermost
	   first. */
	MXBPF_AGENT_LIST_STACK = 2,
};
#define MXBPF_AGENT_LIST(kind, n) ((__u64)(kind) << 32 | (n))

#define MXBPF_AGENT_TENSOR (1ull << 32)
/* Parts of that word: the type of the elements, the number of dimensions, whether it has strides. */
#define MXBPF_AGENT_TENSOR_WORD(dtype, ndim, strided)                                                                  \
	(MXBPF_AGENT_TENSOR | (__u64)(dtype) << 16 | (__u64)(ndim) << 8 | (strided))
#define MXBPF_AGENT_TENSOR_DTYPE(w)   ((__u32)((w) >> 16 & 0xffff))
#define MXBPF_AGENT_TENSOR_NDIM(w)    ((__u32)((w) >> 8 & 0xff))
#define MXBPF_AGENT_TENSOR_STRIDED(w) ((__u32)((w)&0xff))

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
 * State of the calls that ended directly inside an open call. The runtime's profiler merges a call with the only
 * call inside it if both have the same name.
 */
enum mxbpf_agent_inner {
	MXBPF_AGENT_INNER_NONE = 0,
	MXBPF_AGENT_INNER_TWIN = 1, /* one call of the same name, recorded only if another one follows */
	MXBPF_AGENT_INNER_MORE = 2,
};

/* The kind of the records in a batch. */
enum mxbpf_agent_what {
	MXBPF_AGENT_CALLS = 0, /* calls of one thread */
	MXBPF_AGENT_GPU = 1,   /* records of CUPTI, from any thread */
};

struct mxbpf_agent_batch {
	__u64 slot_use; /* CALLS: slot number in the upper 32 bits, its `uses` in the lower; GPU: 0 */
	__u32 seq;	/* number of this batch, from 0: in this use of the slot, or of all batches of the GPU */
	__u32 ncalls;	/* number of calls or records */
	__u32 our_tid;	/* thread id that mxbpf knows, set by BPF; 0: not handed over */
	__u16 what;	/* enum mxbpf_agent_what */
	__u16 process;	/* which of the session's processes handed it over, set by BPF */
	union {
		struct mxbpf_agent_call calls[MXBPF_AGENT_BATCH];
		struct mxbpf_gpu_rec gpu[MXBPF_AGENT_GPU_BATCH];
	};
};
#define MXBPF_AGENT_BATCH_HEAD 24
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agent_batch) ==
		    MXBPF_AGENT_BATCH_HEAD + MXBPF_AGENT_BATCH * sizeof(struct mxbpf_agent_call));
MXBPF_STATIC_ASSERT(MXBPF_AGENT_GPU_BATCH * sizeof(struct mxbpf_gpu_rec) <=
		    MXBPF_AGENT_BATCH * sizeof(struct mxbpf_agent_call));

/* Cache from the address of a name in the runtime to its text, private to the agent. */
struct mxbpf_agent_cached {
	__u64 address;
	__u32 name;
	__u32 bytes; /* of the text, with its NUL */
};
#define MXBPF_AGENT_CACHED 512 /* entries of the cache; a power of two */

/* Cache from a hash of the frames of a thread to the place of its stack, private to the agent. */
struct mxbpf_agent_walked {
	__u64 hash;
	__u32 stack;
	__u32 pad;
};
#define MXBPF_AGENT_WALKED 512 /* entries of the cache; a power of two */

/* State of a thread. */
struct mxbpf_agent_slot {
	__u32 tid;  /* 0: free */
	__u32 uses; /* number of threads that have had this slot */
	__u32 depth;
	__u32 pad;
	__u64 calls;	  /* calls that ended, over all uses: handed over, in the batch below, or too_deep */
	__u64 too_deep;	  /* calls not recorded because MXBPF_AGENT_OPEN were open */
	__u64 unreadable; /* arguments that could not be read, over all uses */
	__u64 truncated;  /* lists that did not fit, over all uses */
	__u64 last_ns;	  /* the last time that the agent read for this thread */
	struct mxbpf_agent_batch batch;
	struct mxbpf_agent_open open[MXBPF_AGENT_OPEN];
	struct mxbpf_agent_cached cached[MXBPF_AGENT_CACHED];
	/* Private to the agent: code object of a module's call (0: none seen), a cache, and the list that is made. */
	__u64 module_code;
	struct mxbpf_agent_walked walked[MXBPF_AGENT_WALKED];
	__u64 list[MXBPF_AGENT_LIST_WORDS];
} __attribute__((aligned(64))); /* all that a call changes before its record is in one line of the CPU's cache */
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agent_slot) % 64 == 0);

/*
 * How the agent converts the CPU's counter (rdtsc) to CLOCK_MONOTONIC; set by mxbpf, which renews it many times a
 * second: ns + (counter - base) * mult / 2^32, while the counter is below `until`. mxbpf sets `until` to 0 before it
 * changes the other fields. It is never twice the same, so a reader that finds the same value before and after has read
 * one set.
 */
struct mxbpf_agent_clock {
	__u64 until; /* 0: the agent calls clock_gettime() */
	__u64 base, ns, mult;
};
#define MXBPF_AGENT_CLOCK_SHIFT 32

/*
 * A time of the agent may be ahead of CLOCK_MONOTONIC by less than this, ns. It is less than a microsecond, unless
 * somebody makes the machine's clock faster or slower by several percent.
 */
#define MXBPF_AGENT_CLOCK_AHEAD_NS 1000000

/*
 * Whether the agent reads sequence numbers. mxbpf sets OFF or ON. If the agent reads an impossible number, it sets
 * WRONG and reads no more numbers.
 */
enum mxbpf_agent_numbers {
	MXBPF_AGENT_NUMBERS_OFF = 0,
	MXBPF_AGENT_NUMBERS_ON = 1,
	MXBPF_AGENT_NUMBERS_WRONG = 2,
};

/*
 * A beat: the annotation of an optimizer's step begins. mxbpf compares the times between two of them while the agent
 * records and while it rests, because that is what watching costs.
 */
struct mxbpf_agent_beat {
	__u64 ns, cpu_ns; /* CLOCK_MONOTONIC; time of the thread on CPUs */
	__u32 tid;
	__u32 registered; /* enum mxbpf_agent_registered */
};
#define MXBPF_AGENT_BEATS 4096 /* the last ones that are kept; a power of two */

/* Whether the agent's callbacks are registered with the runtime. */
enum mxbpf_agent_registered {
	MXBPF_AGENT_NOT_REGISTERED = 0,
	MXBPF_AGENT_REGISTERED = 1,
	MXBPF_AGENT_REGISTERED_ARGS = 2,  /* and the runtime passes them the arguments of calls, which costs time */
	MXBPF_AGENT_REGISTERED_BEATS = 3, /* that of annotations alone, because mxbpf has set `rest` */
};

enum mxbpf_agent_detail {
	MXBPF_AGENT_ARGS = 1 << 0,	  /* the arguments of calls */
	MXBPF_AGENT_STACK = 1 << 1,	  /* the Python stacks of calls */
	MXBPF_AGENT_STACK_ALLOC = 1 << 2, /* with STACK: those of memory that is allocated, too */
};

/* What the agent reads at the start of a call. mxbpf sets it before since_ns. */
struct mxbpf_agent_details {
	__u32 wanted; /* mask of enum mxbpf_agent_detail */
	/*
	 * ARGS: offsets of the array of arguments in the object that identifies a call, of the key set in a tensor, of
	 * the storage in it (0: not known), of the elements in a list; the tag of a list, and the number of the type
	 * in a list of tensors; address of the tensor that means "undefined".
	 */
	__u32 inputs_off, keys_off, storage_off, list_off, list_tag, list_kind, pad;
	__u64 undefined;
	/* STACK: the interpreter, and the address of a function int (void) that says whether it is ending. */
	__u64 is_finalizing;
	struct mxbpf_python python;
};

/*
 * The shared memory. It starts as zeros, so only the pages that were written take memory. A forked child inherits the
 * first page alone: that of its parent tells it whether to start an agent of its own at its first call.
 */
struct mxbpf_agent_shared {
	__u64 magic;
	__u32 version;
	__u32 pid;	  /* process id in the target's own pid namespace */
	__u64 since_ns;	  /* set by mxbpf: calls that began earlier are not recorded; 0: off */
	__u64 no_slot;	  /* calls of threads without a slot */
	__u64 no_name;	  /* names that did not fit */
	__u32 registered; /* enum mxbpf_agent_registered */
	__u32 numbers;	  /* enum mxbpf_agent_numbers; mxbpf sets it before since_ns */
	__u32 texts_len;
	__u32 memory;	/* set by mxbpf before since_ns: 1: record memory */
	__u32 children; /* set by mxbpf before since_ns: 1: forked children start an agent, too */
	__u32 unheard;	/* 1: a child has started it, and mxbpf, which clears this, is not attached yet */
	__u32 rest;	/* set by mxbpf: 1: record only beats; the next session registers all callbacks again */
	__u32 pad;
	__u64 nbeats;	     /* beats so far */
	__u64 orphans;	     /* calls of forked children that mxbpf has not attached to, or not in time */
	__u64 unheard_calls; /* calls of this process that were counted as orphans of its parent as well */
	struct mxbpf_agent_clock clock __attribute__((aligned(64)));
	struct mxbpf_agent_details details;
	__u64 words_len;		/* words that are in use in words[] */
	__u32 names[MXBPF_AGENT_NAMES]; /* offsets of texts by the hash of the text; 0: free */
	char texts[MXBPF_AGENT_TEXTS];	/* NUL-terminated names; the first byte is not used */
	__u32 lists[MXBPF_AGENT_LISTS]; /* places of lists by the hash of the list; 0: free */
	__u64 words[MXBPF_AGENT_WORDS]; /* lists; the first word is not used */
	struct mxbpf_agent_slot slots[MXBPF_AGENT_THREADS];
	struct mxbpf_agent_beat beats[MXBPF_AGENT_BEATS];
	__u32 spilled;			     /* batches that were spilled, or would have been if there were room */
	__u32 is_spilled[MXBPF_AGENT_SPILL]; /* 1: the batch is complete */
	struct mxbpf_agent_batch spill[MXBPF_AGENT_SPILL];
	struct mxbpf_gpu_shared gpu;
	struct mxbpf_gpu_names gpu_names;
};

/* Without BPF: the most bytes of the agent's path. CUDA's driver ignores a longer CUDA_INJECTION64_PATH. */
#define MXBPF_AGENT_PATH_MAX 1023
/* Size of the name of an agent's file, with its NUL. It is in the agent's directory, and ends with the process id. */
#define MXBPF_AGENT_FILE_BYTES (MXBPF_AGENT_PATH_MAX + 33)
/* Without BPF: the beginning of the file of an agent that could not start, instead of that struct. */
#define MXBPF_AGENT_FAILED 0x74694e6761666d78ull
struct mxbpf_agent_failed {
	__u64 magic;
	__u32 error; /* errno */
	__u32 pad;
};

/* The parts of the agent: the argument of its start function is a mask of those to start. */
enum mxbpf_agent_module {
	MXBPF_AGENT_MODULE_CALLS = 1 << 0, /* records operators of the runtime */
	MXBPF_AGENT_MODULE_GPU = 1 << 1,   /* a client of CUPTI, see mxbpf_gpu.h */
	MXBPF_AGENT_MODULE_ARGS = 1 << 2,  /* with CALLS: the arguments of operators, too */
};

/* What the functions do that the agent sees through import tables. The arguments are those of PyTorch. */
enum mxbpf_agent_hook_kind {
	MXBPF_AGENT_HOOK_ALLOC = 0,  /* c10::ProfiledCPUMemoryReporter::New(): CPU memory is allocated */
	MXBPF_AGENT_HOOK_FREE = 1,   /* c10::ProfiledCPUMemoryReporter::Delete(): it is freed */
	MXBPF_AGENT_HOOK_REPORT = 2, /* c10::reportMemoryUsageToProfiler(): memory of another allocator */
	MXBPF_AGENT_HOOK_KINDS = 3,
};
#define MXBPF_AGENT_HOOKS 18

/* An entry of an import table that leads to a function of this kind. Its library stays mapped until the process ends.
 */
struct mxbpf_agent_hook {
	__u64 entry; /* address; 0: unused, as all that follow */
	__u64 kind;  /* enum mxbpf_agent_hook_kind */
};

/*
 * The agent passes a report on with this value in the sixth argument, which the function does not have. So the probe on
 * the function can tell that the agent has recorded it.
 */
#define MXBPF_AGENT_REPORTED 0x6d78627066736565ull

/*
 * Lies in the data of the shared object. mxbpf fills in the addresses before it loads the object, and reads the
 * rest afterwards. The addresses are functions of the runtime.
 */
struct mxbpf_agent_config {
	__u64 add_callback;    /* addGlobalCallback(RecordFunctionCallback) */
	__u64 remove_callback; /* removeCallback(CallbackHandle) */
	__u64 name;	       /* RecordFunction::name() const */
	__u64 step_callbacks;  /* getStepCallbacks(RecordScope); 0: it does not exist */
	/* All 0 if mxbpf does not know where a call has its sequence number. */
	__u64 next_number;		 /* sequence_number::peek() */
	__u64 thread_number;		 /* RecordFunction::currentThreadId() */
	__u32 number_off, of_thread_off; /* offsets in a RecordFunction: its number, the thread of its node */
	/* Functions by enum mxbpf_agent_hook_kind, and the entries that lead to them. */
	__u64 hooked[MXBPF_AGENT_HOOK_KINDS];
	struct mxbpf_agent_hook hooks[MXBPF_AGENT_HOOKS];
	__u64 shared; /* set by the agent: address of struct mxbpf_agent_shared; 0: not started */
	__s64 error;  /* set by the agent if it did not start: -errno */
	/* Set by the agent: enum mxbpf_agent_registered. A forked child inherits it with the callbacks. */
	__u64 registered;
};

#endif
