/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * Configuration that user space passes to BPF. The rows of the plan are read-only data of the BPF object, so that
 * the verifier removes the code that a row does not use. The other structures are shared, and both sides change
 * them during a session.
 */
#ifndef MXBPF_CONFIG_H
#define MXBPF_CONFIG_H

#include "mxbpf_event.h"

#define MXBPF_ROWS_MAX	  64 /* program variants of one plan */
#define MXBPF_HIDDEN_MAX  8  /* names of operators that get no span */
#define MXBPF_LENDERS_MAX 8  /* names of operators that allocate for their callers */
#define MXBPF_DEREFS_MAX  4
#define MXBPF_TARGETS_MAX 1024 /* target processes at one time */
#define MXBPF_RING_BYTES  (8u << 20)
#define MXBPF_COUNTED_MAX 4096	/* threads with perf events at one time; most of them hit no probe */
#define MXBPF_TEAMS_MAX	  4096	/* parallel regions open at one time */
#define MXBPF_LIVES_MAX	  16384 /* --life: operators that are pushed and have not ended */
#define MXBPF_WRITERS_MAX 65536 /* --life: variables whose last writer is kept */
#define MXBPF_OUTPUTS_MAX 65536 /* --memory with --py-stacks: operators that are pushed and have not started */

/* What a probe does when it is hit. */
enum mxbpf_action {
	MXBPF_ACT_NONE = 0,
	MXBPF_ACT_OPEN = 1,	  /* open a span on the thread's stack */
	MXBPF_ACT_CLOSE_PAIR = 2, /* close the thread's innermost open span of this class */
	MXBPF_ACT_CLOSE_KEY = 3,  /* close the span with this process, class and key, on any thread */
	MXBPF_ACT_ALLOC = 4,	  /* memory is allocated on a device */
	MXBPF_ACT_FREE = 5,	  /* memory is freed on a device */
	MXBPF_ACT_EDGE = 6,	  /* the innermost open span hands over the work object `link` */
	MXBPF_ACT_CLOSE_CUT = 7,  /* close the span whose frame is at the hit's CFA (cookie: MXBPF_CUT_*) */
	MXBPF_ACT_RAISE = 8,	  /* an exception starts to unwind the stack: frames that it leaves get no end */
	MXBPF_ACT_TICK = 9,	  /* do nothing but end frames that can no longer be open */
	/*
	 * OpenMP, master thread: it opens a region, begins its own part, ends its part and waits, and leaves the
	 * region.
	 */
	MXBPF_ACT_OMP_OPEN = 10,
	MXBPF_ACT_OMP_BEGIN = 11, /* cookie: MXBPF_CUT_* */
	MXBPF_ACT_OMP_WAIT = 12,
	MXBPF_ACT_OMP_CLOSE = 13, /* cookie: MXBPF_CUT_* */
	MXBPF_ACT_OMP_JOIN = 14,  /* a worker thread begins its part; cookie: MXBPF_WORKER_* */
	MXBPF_ACT_OMP_LEAVE = 15, /* a worker thread ends its part */
	MXBPF_ACT_STEP = 31,	  /* an event that may mark an iteration */
	MXBPF_ACT_COUNT = 32,	  /* only count calls of the cookie's function, in cut_checks */
	MXBPF_ACT_NOTE = 16,	  /* an operator with a state is pushed: note its name for MXBPF_INSIDE_NOTED */
	/*
	 * An operator is pushed. If the thread runs the program's part of a custom operator, it belongs to that
	 * one.
	 */
	MXBPF_ACT_PUSHED = 17,
	/*
	 * --memory with --py-stacks: an operator is pushed. `link` is the object that the engine will run, unless it
	 * has a name in cfg_hidden. Without `link`, `key` is the vector with the addresses of the arrays that it
	 * writes.
	 */
	MXBPF_ACT_OUTPUT = 18,
	/*
	 * --life. PUSH: an operator with this name is pushed, and writes the variables from *key to *size. CLAIM:
	 * such an operator will be pushed, perhaps in a bulk. READY: block `key` of operator `link` is ready to
	 * run.
	 */
	MXBPF_ACT_LIFE_PUSH = 22,
	MXBPF_ACT_LIFE_CLAIM = 23,
	MXBPF_ACT_LIFE_READY = 24,
	/*
	 * --memory. ALLOCATED: an allocation with END_CUT returns (cookie: MXBPF_CUT_*). POOL: the memory comes
	 * from a pool.
	 */
	MXBPF_ACT_ALLOCATED = 28,
	MXBPF_ACT_POOL = 29,
	/*
	 * An allocator reports to the runtime's profiler; arguments: address, bytes (below 0: they are freed),
	 * allocated, reserved, device. Reports of CPU memory from the function's own library do not count, because
	 * its allocator is probed itself. Nor do those that the agent has recorded (MXBPF_AGENT_REPORTED).
	 */
	MXBPF_ACT_REPORT = 30,
	/* An allocator reports that it is out of memory; arguments: bytes asked for, allocated, reserved, device. */
	MXBPF_ACT_FAILED = 33,
	MXBPF_ACT_THROWN = 34, /* an exception starts: an allocation that it leaves has failed */
	/* User annotations; `key` is the runtime's object. */
	MXBPF_ACT_MARK_START = 40,   /* a task, frame or event, by the object's class */
	MXBPF_ACT_MARK_STOP = 41,    /* a task, frame or event ends */
	MXBPF_ACT_MARK_SET = 42,     /* a user counter is set to `size`; `key` is its old value */
	MXBPF_ACT_MARK_ADJUST = 43,  /* a user counter is increased by `size`; `key` is its old value */
	MXBPF_ACT_MARK_INSTANT = 44, /* a marker */
	MXBPF_ACT_MARK_END = 45,     /* the object is destroyed */
	MXBPF_ACT_SEEN = 48,	     /* only count hits of the place that the cookie numbers, in place_hits */
	MXBPF_ACT_KEYED = 47,	     /* the range that the thread has begun last, with row.key_later, has this key */
	MXBPF_ACT_APP = 46,	     /* the program controls its runtime's profiler; name_tag: enum mxbpf_app_call */
};

/* How a span that MXBPF_ACT_OPEN opened ends. */
enum mxbpf_end {
	MXBPF_END_NONE = 0,
	MXBPF_END_PAIR = 1,   /* at a CLOSE_PAIR probe */
	MXBPF_END_KEY = 2,    /* at a CLOSE_KEY probe */
	MXBPF_END_PARENT = 3, /* with the enclosing span */
	MXBPF_END_CUT = 4,    /* at a CLOSE_CUT probe in the function, or unwound by an exception */
	MXBPF_END_NEXT = 5,   /* no end probe: at the thread's next event above its frame */
	MXBPF_END_CHILD = 8,  /* with the first span nested in it, which ends by pair */
};

enum mxbpf_base {
	MXBPF_BASE_NONE = 0, /* no recipe: the field is 0 */
	MXBPF_BASE_ARG1 = 1, /* integer arguments in the order of the SysV ABI */
	MXBPF_BASE_ARG2 = 2,
	MXBPF_BASE_ARG3 = 3,
	MXBPF_BASE_ARG4 = 4,
	MXBPF_BASE_ARG5 = 5,
	MXBPF_BASE_ARG6 = 6,
	MXBPF_BASE_STACK = 7,  /* stack pointer at the function's entry */
	MXBPF_BASE_COOKIE = 8, /* cookie of the probe, a constant of the plan */
};

/*
 * A recipe for one field: v = base; then nderef times v = *(v + off[i]). The last read has `last_bytes` bytes. For
 * example, ARG2 with {8, 88} is *( *(arg2 + 8) + 88 ).
 */
struct mxbpf_fetch {
	__u8 base; /* enum mxbpf_base */
	__u8 nderef;
	__u8 last_bytes; /* size of the last read: 1, 4, or 0 for 8 bytes */
	__u8 pad;
	__s32 off[MXBPF_DEREFS_MAX];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_fetch) == 20);

/* Meaning of the value of the name recipe. */
enum mxbpf_name_type {
	MXBPF_NAMED_NOT = 0,
	MXBPF_NAMED_BYTES = 1,	/* address of a C string, read at entry because it may be gone at return */
	MXBPF_NAMED_STATIC = 2, /* address of a constant in the library; sent as the address in the file */
	MXBPF_NAMED_COOKIE = 3, /* the name belongs to the cookie's function, known to the plan */
	MXBPF_NAMED_OBJECT = 4, /* address of a C++ object's vtable; user space knows its class */
};

/* Details of spans that are read only on request, because they cost time. */
enum mxbpf_detail {
	MXBPF_DETAIL_ARGS = 1 << 0,    /* args_id */
	MXBPF_DETAIL_STACK = 1 << 1,   /* stack_id */
	MXBPF_DETAIL_SEQ = 1 << 2,     /* seq and origin */
	MXBPF_DETAIL_LAYER = 1 << 3,   /* layer_id */
	MXBPF_DETAIL_OUTPUTS = 1 << 4, /* args_id covers outputs too, if ARGS is set and the operator has any */
	MXBPF_DETAIL_THREAD = 1 << 5,  /* one row per thread */
};

#define MXBPF_ITERATION_END_BYTES 16

/* Layout of the arguments of a parameter store's call: its keys and arrays (bpf/kv.bpf.h). */
enum mxbpf_kv_args {
	MXBPF_KV_NOTHING = 0,
	MXBPF_KV_SEND = 1,
	MXBPF_KV_RECEIVE = 2,
	MXBPF_KV_BOTH = 3,
	MXBPF_KV_SERVE = 4,
};

struct mxbpf_row {
	__u8 action; /* enum mxbpf_action */
	__u8 end;    /* enum mxbpf_end */
	__u8 cls;    /* enum mxbpf_class */
	__u8 name_type;
	__u8 at_call_site; /* the spanned function calls (not jumps to) the probed one: its frame is the caller's */
	__u8 unscoped;	   /* the span is not the probed function's own: no stack frame ends it */
	__u8 merge_same;   /* an only child with the same name is merged into its parent */
	__u8 name_tag;	   /* NAMED_OBJECT: bits 48.. of the id, so that rows name one class differently */
	struct mxbpf_fetch name;
	struct mxbpf_fetch key;	   /* object that identifies the span at its end */
	struct mxbpf_fetch device; /* low 32 bits: device type; high 32 bits: ordinal */
	struct mxbpf_fetch size;   /* bytes */
	/*
	 * With --memory. ALLOC and FREE: the block's address, if `key` is not it. ALLOC with END_CUT: where the
	 * address will be stored. POOL: the pool, whose count of reserved bytes is at off[0], and `key` is where
	 * the address will be stored.
	 */
	struct mxbpf_fetch link;
	struct mxbpf_fetch guard;    /* if present and 0, the hit has no effect */
	struct mxbpf_fetch alt_name; /* C string that names a NAMED_OBJECT whose vtable is alt_object */
	__u64 alt_object;	     /* id of that vtable with its image, set by the plan; 0: none */
	__u64 only_id;		     /* if set, only calls of this name get a span, which alt_name names */
	__u32 device_const;	     /* MXBPF_DEVICE() of the row, used instead of the recipe; 0: none */
	__u8 span_flags;	     /* enum mxbpf_span_flag that all its spans have */
	__u8 details;		     /* enum mxbpf_detail that its spans can have */
	__u8 by_caller;		     /* the span is of the probed function's caller (map `callers`) */
	__u8 hides;		     /* calls with a name in cfg_hidden have no effect */
	__u8 leaf;		     /* no probe hits inside the span, so any event of its thread ends it */
	__u8 inside;		     /* enum mxbpf_inside */
	__u8 renamed; /* its operators may be pushed by a custom operator (row.link), which renames them */
	/*
	 * Array operators, for the object in the first argument: offsets of the vectors of inputs and outputs (0:
	 * none), and the distance in bytes from the latter to the vector of request types (0: none).
	 */
	__u8 reqs_after;
	__u16 inputs_off, outputs_off;
	__u8 at_once;  /* operators that are pushed, ready and started at the same moment */
	__u8 step;     /* ACT_STEP: enum mxbpf_step_what; UPDATE counts only an optimizer's operators */
	__u8 kv;       /* enum mxbpf_kv_args */
	__u8 kv_flags; /* enum mxbpf_kv_flag of its records; bits 4..: inline dimensions of an array, set by the plan */
	/*
	 * Sequence number and thread of the node that runs; a negative number means that it has none. Without a
	 * recipe, the running thread's next number.
	 */
	struct mxbpf_fetch seq, seq_thread;
	/* --iterations: a hit whose name begins with this text ends an iteration; "*": any hit, "": none. */
	char iteration_end[MXBPF_ITERATION_END_BYTES];
	struct mxbpf_fetch layer; /* MXBPF_DETAIL_LAYER: address of a C string */
	__u64 bulk_id;		  /* for operators inside: name id of a bulk; 0: the guard tells bulks */
	struct mxbpf_fetch range; /* address of what a range carries */
	__u8 range_from;	  /* enum mxbpf_range_from */
	__u8 by_address;	  /* the vectors hold addresses of arrays */
	__u8 outermost;		  /* no span directly in one of the same class */
	__u8 key_later; /* OPEN: the key of the range comes by ACT_KEYED; CLOSE_PAIR: others have such ends, too */
	__u64 own_before, own_after; /* ACT_REPORT: bytes of its library before and after the function */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_row) == 312);

/* The kind of structure at the address that row.range gives. */
enum mxbpf_range_from {
	MXBPF_RANGE_FROM_NOTHING = 0,
	MXBPF_RANGE_FROM_EVENT = 1, /* NVTX's structure of an event (nvtxEventAttributes_t) */
	MXBPF_RANGE_FROM_INFO = 2,  /* struct mxbpf_range_info (mxbpf_range.h) */
	/* The range's name, which may be one of PyTorch's emit_nvtx(): then row.name is only its beginning. */
	MXBPF_RANGE_FROM_NAME = 3,
};

/* How a row with MXBPF_ACT_OPEN handles operators inside the engine's work. */
enum mxbpf_inside {
	MXBPF_INSIDE_NOT = 0,
	/*
	 * If the engine's work has the operator's name, it is the operator itself and has a span. Otherwise the
	 * work is a bulk, and the operator gets a span in it. If a guard is present and 0, the name is not
	 * compared.
	 */
	MXBPF_INSIDE_NAMED = 1,
	/*
	 * The work is the operator itself or a bulk, as with MXBPF_INSIDE_NAMED. The name to compare is the one that
	 * was noted when the operator was pushed (MXBPF_ACT_NOTE).
	 */
	MXBPF_INSIDE_NOTED = 2,
	/*
	 * The work is the operator itself or a bulk, as with MXBPF_INSIDE_NAMED. The name to compare is in the text
	 * that names the work, at the number of operators with MXBPF_SPAN_PART that ran in the work before. row.name
	 * leads from the work's key to the text.
	 */
	MXBPF_INSIDE_PLACED = 3,
};

/*
 * Bits of a cookie. Bits 0..23 are the function number.
 * At an entry: bit 24, the function can leave by a tail call; bits 32..55, its name id.
 * At a cut: bit 24, the CFA is the word at rbp + offset; bits 25..29, 1 + condition code of the conditional jump
 * there (0: every hit counts); bit 30, a hit counts if the condition holds; bit 31, the cut is in a shared callee;
 * bit 32, the CFA is relative to rbp (else to rsp); bits 33..61, signed CFA offset.
 * In map `callers`: the cut's layout, for the call.
 * Bit 63 in the kernel: the link is shared, without a process filter. Bit 62 there: the link is of a slice. In the plan
 * both are the sign of the offset.
 */
#define MXBPF_COOKIE_SHARED  (1ull << 63)
#define MXBPF_COOKIE_SLICED  (1ull << 62)
#define MXBPF_FUNC_MASK	     0xffffffull
#define MXBPF_FUNC_TAIL	     (1ull << 24)
#define MXBPF_CUT_AT	     (1ull << 24)
#define MXBPF_CUT_COND_SHIFT 25
#define MXBPF_CUT_TAKEN	     (1ull << 30)
#define MXBPF_CUT_MERGED     (1ull << 31)
#define MXBPF_CUT_RBP	     (1ull << 32)
#define MXBPF_CUT_OFF_SHIFT  33
#define MXBPF_FUNCS_MAX	     8192 /* function numbers */

/* Objects of user annotations hold their names, at row.name.off[0]. The runtime cuts long names itself. */
#define MXBPF_MARK_TEXT	    128 /* bytes of a name with its NUL */
#define MXBPF_MARK_CLASSES  3	/* TASK, FRAME, EVENT */
#define MXBPF_MARK_COUNTERS 4096

/* Calls that control the runtime's profiler. The argument selects one of the two meanings. */
enum mxbpf_app_call {
	MXBPF_APP_STATE = 1, /* run, or stop */
	MXBPF_APP_PAUSE = 2, /* pause, or resume */
	MXBPF_APP_DUMP = 3,
};

/* --follow-app: a window is open while the program has its runtime's profiler record. */
struct mxbpf_app {
	__u64 opened, closed; /* number of windows */
	__u64 window_ns;      /* total length of the closed windows */
	__u32 tgid;	      /* set by user space: process whose calls count; 0: none */
	__u32 on;	      /* set by user space: windows may open */
	__u32 runs, paused;   /* state set by the last calls: it records if runs is 1 and paused is 0 */
};

/*
 * Cookie of OMP_JOIN: the registers with the function that is called and with its argument, by their numbers in
 * instructions, and a condition in the layout of a cut's.
 */
#define MXBPF_WORKER_FN_SHIFT	0
#define MXBPF_WORKER_DATA_SHIFT 4
#define MXBPF_WORKER_REG_MASK	15
/*
 * Cookie of OMP_OPEN and OMP_JOIN for LLVM's functions: __kmp_fork_call(location, number, context, n, function,
 * invoker, list of n arguments) and __kmp_invoke_microtask(function, number, number, n, their array). The master
 * calls the latter too.
 */
#define MXBPF_TEAM_FORK (1ull << 16)

/*
 * Self-check of a function's cut, in array map `cut_checks`. User space maps it and judges it. entries == matched +
 * unwound + open. If the cut is wrong, frames are left although no exception was thrown (lost), or the cut is hit
 * without one of the function's frames (foreign). A few foreign hits are calls in progress at activation.
 */
struct mxbpf_cut_check {
	__u64 entries, matched, unwound, lost, foreign;
	__u64 fallen_ns; /* set by user space when the cut proved wrong: frames then end like MXBPF_END_NEXT */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_cut_check) == 48);

/* State of --iterations. All fields have 32 or 64 bits, because both sides change them atomically. */
struct mxbpf_iteration_window {
	__u64 iterations;     /* iterations that have ended */
	__u64 sampled;	      /* iterations inside a window */
	__u64 opened, closed; /* number of windows */
	__u64 opened_at;      /* value of `iterations` when the last window opened */
	__u64 window_ns;      /* total length of the closed windows */
	__u64 wake_at;	      /* set by user space: value of `iterations` at which to wake it */
	__u32 each;	      /* set by user space: iterations per window */
	__u32 left;	      /* iterations left in the open window */
	__u32 on;	      /* set by user space: iterations are counted */
	__u32 armed;	      /* set by user space: all is attached, so the next iteration opens a window */
	__u32 tgid;	      /* process whose iterations count; 0: none yet, or it has exited */
	__u32 pad;
};

/*
 * A slice: a few iterations of one process in which probes record that are not attached otherwise. It opens and closes
 * at hits that end an iteration, or when user space says so. Whoever changes since_ns to 0 sets to_ns.
 */
struct mxbpf_slice {
	__u64 since_ns; /* 0: none is open */
	__u64 from_ns, to_ns;
	__u64 iterations; /* that have ended in it */
	__u32 tgid;
	__u32 left;  /* iterations until it closes */
	__u32 armed; /* set by user space: the next end of an iteration opens it */
	__u32 pad;
};

/* A thread-local variable of a library. */
struct mxbpf_tls {
	__u64 got; /* address of two words: module id, offset in the module's block; 0: none */
	__u64 add; /* added to that offset */
};

/* Where a library is mapped in a process. */
struct mxbpf_image {
	__u64 start, end; /* 0, 0: not mapped */
	__u64 base;	  /* address in the process minus address in the file */
};

#define MXBPF_IMAGES_MAX 4 /* libraries with named classes */

/* A target process; value of map `targets`. */
struct mxbpf_target {
	__u64 static_base;		  /* runtime's library: address in the process minus address in the file */
	struct mxbpf_tls seq, seq_thread; /* a thread's next sequence number; its own number (0: none yet) */
	__u64 undefined;		  /* address of the tensor object that means "undefined" */
	struct mxbpf_image images[MXBPF_IMAGES_MAX]; /* image number i + 1 is entry i */
	__u32 own;   /* 1: it has links of its own, filtered by process; hits of shared links are ignored */
	__u32 build; /* number of the BPF object that watches it: that of its build of a runtime */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_target) == 152);

#endif
