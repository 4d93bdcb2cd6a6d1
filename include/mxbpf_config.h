/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * What user space tells BPF before a session: the rows of the plan, as read-only data of the BPF object, so that the
 * verifier removes what a row does not use; and what both change while it lasts.
 */
#ifndef MXBPF_CONFIG_H
#define MXBPF_CONFIG_H

#include "mxbpf_event.h"

#define MXBPF_ROWS_MAX	  64 /* program variants of one plan */
#define MXBPF_HIDDEN_MAX  8  /* names that are left out */
#define MXBPF_LENDERS_MAX 8  /* operators that allocate for whom they are called by */
#define MXBPF_DEREFS_MAX  4
#define MXBPF_TARGETS_MAX 1024 /* processes that are looked at at the same time */
#define MXBPF_RING_BYTES  (8u << 20)
#define MXBPF_COUNTED_MAX 4096	/* threads that have perf events at the same time; most of them hit no probe */
#define MXBPF_TEAMS_MAX	  4096	/* parallel regions open at the same time */
#define MXBPF_LIVES_MAX	  16384 /* --life: operators that are pushed and have not ended */
#define MXBPF_WRITERS_MAX 65536 /* variables whose last writer is known */

/* What a probe does when it is hit. */
enum mxbpf_action {
	MXBPF_ACT_NONE = 0,
	MXBPF_ACT_OPEN = 1,	  /* push a span on the thread's stack */
	MXBPF_ACT_CLOSE_PAIR = 2, /* close the innermost open span of the class on this thread */
	MXBPF_ACT_CLOSE_KEY = 3,  /* close the span with (tgid, class, key), wherever it was opened */
	MXBPF_ACT_ALLOC = 4,	  /* bytes taken on a device */
	MXBPF_ACT_FREE = 5,	  /* bytes given back */
	MXBPF_ACT_EDGE = 6,	  /* the innermost open span hands over `link` */
	MXBPF_ACT_CLOSE_CUT = 7,  /* close the span whose frame lies at the hit's CFA (cookie: MXBPF_CUT_*) */
	MXBPF_ACT_RAISE = 8,	  /* the thread begins to unwind: frames that it leaves will see no end of their own */
	MXBPF_ACT_TICK = 9,	  /* nothing but an event of the thread: what it shows to be over ends */
	/* Parallel regions: the master opens one, begins its own work, has ended that (and waits), and leaves it. */
	MXBPF_ACT_OMP_OPEN = 10,
	MXBPF_ACT_OMP_BEGIN = 11, /* cookie: as of CLOSE_CUT */
	MXBPF_ACT_OMP_WAIT = 12,
	MXBPF_ACT_OMP_CLOSE = 13, /* likewise */
	MXBPF_ACT_OMP_JOIN = 14,  /* another thread begins its work in one; cookie: MXBPF_WORKER_* */
	MXBPF_ACT_OMP_LEAVE = 15, /* and has ended it */
	MXBPF_ACT_STEP = 31,	  /* a moment that tells iterations */
	MXBPF_ACT_NOTE = 16,	  /* an operator with a state is pushed: its name, for MXBPF_INSIDE_NOTED */
	/* A thread that runs the program's part of a custom operator pushes an operator: it is that one's. */
	MXBPF_ACT_PUSHED = 17,
	/* --life: an operator with the name is pushed, that writes the variables from *key to *size; one will be, maybe
	 * in a bulk; `key` of the operator `link` is ready to be executed. */
	MXBPF_ACT_LIFE_PUSH = 22,
	MXBPF_ACT_LIFE_CLAIM = 23,
	MXBPF_ACT_LIFE_READY = 24,
	/* --memory: an ALLOC with END_CUT has what it asked for (cookie: as of CLOSE_CUT); it came from a pool. */
	MXBPF_ACT_ALLOCATED = 28,
	MXBPF_ACT_POOL = 29,
	/* An ALLOC if PyTorch's report to its profiler, (address, bytes, allocated, reserved, device), is of the CPU
	 * and no allocator's: those say how many bytes they have allocated. */
	MXBPF_ACT_REPORT = 30,
	/* The program's own marks; objects of the runtime's, by key. */
	MXBPF_ACT_MARK_START = 40,   /* a task, a frame, an event: by the object's class */
	MXBPF_ACT_MARK_STOP = 41,    /* likewise */
	MXBPF_ACT_MARK_SET = 42,     /* a counter gets the value `size`; `key` is the one that it has */
	MXBPF_ACT_MARK_ADJUST = 43,  /* and so much more */
	MXBPF_ACT_MARK_INSTANT = 44, /* a marker */
	MXBPF_ACT_MARK_END = 45,     /* the object is destroyed */
	MXBPF_ACT_APP = 46, /* what the program says to its runtime's profiler: name_tag is an enum mxbpf_app_call */
};

/* How a span that ACT_OPEN pushed comes to its end. */
enum mxbpf_end {
	MXBPF_END_NONE = 0,
	MXBPF_END_PAIR = 1,   /* by a CLOSE_PAIR probe */
	MXBPF_END_KEY = 2,    /* by a CLOSE_KEY probe */
	MXBPF_END_PARENT = 3, /* with the span that encloses it */
	MXBPF_END_CUT = 4,    /* by a CLOSE_CUT probe inside the function; left by an exception: unwound */
	MXBPF_END_NEXT = 5,   /* no end of its own: by the thread's next event above its frame */
	MXBPF_END_CHILD = 8,  /* with the first span that opens in it, which ends by pair */
};

enum mxbpf_base {
	MXBPF_BASE_NONE = 0, /* field absent: 0 */
	MXBPF_BASE_ARG1 = 1, /* integer arguments in order, SysV */
	MXBPF_BASE_ARG2 = 2,
	MXBPF_BASE_ARG3 = 3,
	MXBPF_BASE_ARG4 = 4,
	MXBPF_BASE_ARG5 = 5,
	MXBPF_BASE_ARG6 = 6,
	MXBPF_BASE_STACK = 7,  /* the stack pointer at function entry */
	MXBPF_BASE_COOKIE = 8, /* the cookie of the probe, a constant of the plan */
};

/*
 * A recipe for one field: v = base; then nderef times v = *(v + off[i]), the last reading
 * `last_bytes`. ARG2 with {8, 88}: *( *(arg2 + 8) + 88 ).
 */
struct mxbpf_fetch {
	__u8 base; /* enum mxbpf_base */
	__u8 nderef;
	__u8 last_bytes; /* of the last dereference: 1, 4, or 0 for all 8 */
	__u8 pad;
	__s32 off[MXBPF_DEREFS_MAX];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_fetch) == 20);

/* What the value of the name recipe is. */
enum mxbpf_name_type {
	MXBPF_NAMED_NOT = 0,
	MXBPF_NAMED_BYTES = 1,	/* address of a C string that may be gone when the call returns: read at entry */
	MXBPF_NAMED_STATIC = 2, /* address of a constant of the library: travels as its address in the file */
	MXBPF_NAMED_COOKIE = 3, /* that of the cookie's function, known to the plan */
	MXBPF_NAMED_OBJECT = 4, /* address of a C++ object's vtable: user space knows its class */
};

/* What of a span is read beyond what every one has; asked for, as it costs. */
enum mxbpf_detail {
	MXBPF_DETAIL_ARGS = 1 << 0,    /* args_id */
	MXBPF_DETAIL_STACK = 1 << 1,   /* stack_id */
	MXBPF_DETAIL_SEQ = 1 << 2,     /* seq and origin */
	MXBPF_DETAIL_LAYER = 1 << 3,   /* layer_id */
	MXBPF_DETAIL_OUTPUTS = 1 << 4, /* args_id tells of what comes out as well; with ARGS where there is such */
	MXBPF_DETAIL_THREAD = 1 << 5,  /* rows are of one thread each */
};

#define MXBPF_ITERATION_END_BYTES 16

/* Of a call of a store of parameters, where its keys and arrays are (bpf/kv.bpf.h). */
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
	__u8 at_call_site; /* the probed function is called, not jumped to, by the spanned one (on_enter/on_exit): the
			    * spanned frame is the caller's */
	__u8 unscoped;	   /* the span is not the probed function's own: no frame of the stack ends it */
	__u8 merge_same;   /* an only child of the same name is not a span of its own */
	__u8 name_tag;	   /* NAMED_OBJECT: bits 48.. of the id, so that rows name one class differently */
	struct mxbpf_fetch name;
	struct mxbpf_fetch key;	   /* object by which the span ends */
	struct mxbpf_fetch device; /* low 32 bits device type, high 32 bits ordinal */
	struct mxbpf_fetch size;   /* bytes */
	/* ALLOC and FREE, with --memory: the address, where `key` does not tell it; of an ALLOC with END_CUT where it
	 * will stand. POOL: the pool, and in off[0] where in it stands what it has taken; `key` is where the address
	 * will stand. */
	struct mxbpf_fetch link;
	struct mxbpf_fetch guard;    /* present and 0: the hit has no effect */
	struct mxbpf_fetch alt_name; /* NAMED_OBJECT with the vtable alt_object: address of a C string instead */
	__u64 alt_object;	     /* as in an id, with its image; set by the plan; 0 none */
	__u64 only_id;		     /* calls of another name have no effect, and alt_name is the span's; 0 none */
	__u32 device_const;	     /* MXBPF_DEVICE() where no recipe is needed; 0 none */
	__u8 span_flags;	     /* enum mxbpf_span_flag that its spans bear from the start */
	__u8 details;		     /* enum mxbpf_detail that its spans can have */
	__u8 by_caller;		     /* the spanned function is the one that calls the probed one: map callers */
	__u8 hides;		     /* calls named by cfg_hidden have no effect */
	__u8 leaf;    /* nothing that is probed runs inside: without an end, any event of its thread is it */
	__u8 inside;  /* enum mxbpf_inside */
	__u8 renamed; /* its spans may be those of operators that a custom one pushed (row.link), which have other names
		       */
	/* In the object of the first argument: MXNet's vectors of arrays that go in and come out (0: there are none),
	 * and so many bytes behind the latter what of it is wanted (0: nothing says so). */
	__u8 reqs_after;
	__u16 inputs_off, outputs_off;
	__u8 at_once;  /* its spans are operators that are pushed, ready and started at the same moment */
	__u8 step;     /* ACT_STEP: enum mxbpf_step_what; of UPDATE, only calls of an optimizer's operators are */
	__u8 kv;       /* enum mxbpf_kv_args */
	__u8 kv_flags; /* enum mxbpf_kv_flag that its records bear; bits 4.. set by the plan: dimensions of an array
			* that lie in itself */
	/* Number and thread of the node that it runs, negative: it has none. Absent: the running thread's next one. */
	struct mxbpf_fetch seq, seq_thread;
	char iteration_end[MXBPF_ITERATION_END_BYTES]; /* --iterations: a hit whose name begins so, "*" any, ends one;
							  "": none */
	struct mxbpf_fetch layer;		       /* MXBPF_DETAIL_LAYER: address of a C string */
	__u64 bulk_id;	 /* of an operator inside: work of several is called so; 0: the guard says which is */
	__u8 by_address; /* what the vectors of arrays hold is addresses of these */
	__u8 pad[7];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_row) == 280);

/* How a row sees operators from within the work that the engine has for a thread: MXBPF_ACT_OPEN with these. */
enum mxbpf_inside {
	MXBPF_INSIDE_NOT = 0,
	/* The engine's work is the operator itself if it bears its name: then it has a span already. Else it is work
	 * of several operators, and this one has a span in that. With a guard that is 0 it needs no look at the name.
	 */
	MXBPF_INSIDE_NAMED = 1,
	/* Likewise; what it is called was noted (MXBPF_ACT_NOTE) when it was pushed. */
	MXBPF_INSIDE_NOTED = 2,
	/* Likewise; what it is called stands in what the work is called (which row.name leads to from its key), by how
	 * many of MXBPF_SPAN_PART ran in that before. */
	MXBPF_INSIDE_PLACED = 3,
};

/*
 * Cookies. Bits 0..23: number of the function. At an entry: 24 it can leave by a tail call, 32..55 its name id. At a
 * cut: 24 the CFA is the word at rbp + offset, 25..29 1 + condition code of the jcc there (0: every hit counts), 30 a
 * hit counts if the condition holds, 31 in a callee, 32 CFA from rbp (else rsp), 33..62 CFA offset, signed. Map
 * callers: as at a cut, of the call. Bit 63 of a cookie in the kernel: its link is shared, which no process filter
 * narrows; in the plan it is the sign of the offset.
 */
#define MXBPF_COOKIE_SHARED  (1ull << 63)
#define MXBPF_FUNC_MASK	     0xffffffull
#define MXBPF_FUNC_TAIL	     (1ull << 24)
#define MXBPF_CUT_AT	     (1ull << 24)
#define MXBPF_CUT_COND_SHIFT 25
#define MXBPF_CUT_TAKEN	     (1ull << 30)
#define MXBPF_CUT_MERGED     (1ull << 31)
#define MXBPF_CUT_RBP	     (1ull << 32)
#define MXBPF_CUT_OFF_SHIFT  33
#define MXBPF_FUNCS_MAX	     8192 /* numbered functions */

/* Objects that mark something: their names are within them, at row.name.off[0], and cut there by the runtime itself. */
#define MXBPF_MARK_TEXT	    128 /* bytes of a name, with its NUL */
#define MXBPF_MARK_CLASSES  3	/* TASK, FRAME, EVENT */
#define MXBPF_MARK_COUNTERS 4096

/* What a call says to the profiler; the argument decides between two. */
enum mxbpf_app_call {
	MXBPF_APP_STATE = 1, /* run, or stop */
	MXBPF_APP_PAUSE = 2, /* pause, or resume */
	MXBPF_APP_DUMP = 3,
};

/* --follow-app. The window is open while the program has its runtime's profiler record. */
struct mxbpf_app {
	__u64 opened, closed; /* windows */
	__u64 window_ns;      /* sum of the closed ones */
	__u32 tgid;	      /* user space: whose calls count; 0: nobody's */
	__u32 on;	      /* user space: windows may open */
	__u32 runs, paused;   /* as the last calls have it: it records with the one and without the other */
};

/* Of TEAM_JOIN: registers, by their numbers in instructions, with the function that is called and its argument. And the
 * condition, as at a cut. */
#define MXBPF_WORKER_FN_SHIFT	0
#define MXBPF_WORKER_DATA_SHIFT 4
#define MXBPF_WORKER_REG_MASK	15
/*
 * Of TEAM_OPEN and TEAM_JOIN, instead: hits are of LLVM's functions __kmp_fork_call(location, number, context, n,
 * function, invoker, list of n arguments) and __kmp_invoke_microtask(function, number, number, n, their array). The
 * master passes the latter too.
 */
#define MXBPF_TEAM_FORK (1ull << 16)

/*
 * The self-check of a function's cut; array map `cut_checks`, mapped into user space, which judges it. entries ==
 * matched + unwound + open. Where the cut does not hold, frames are found left that nothing has thrown through (lost),
 * or it is hit where none of its frames is (foreign; a few are in flight at activation).
 */
struct mxbpf_cut_check {
	__u64 entries, matched, unwound, lost, foreign;
	__u64 fallen_ns; /* set by user space: from then on its frames end as with MXBPF_END_NEXT. 0: it holds */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_cut_check) == 48);

/* --iterations. Fields of 64 and 32 bits, as both sides change them atomically. */
struct mxbpf_iteration_window {
	__u64 iterations;     /* that have ended */
	__u64 sampled;	      /* of these, those that lay in a window */
	__u64 opened, closed; /* windows */
	__u64 opened_at;      /* `iterations` when the last one was */
	__u64 window_ns;      /* sum of the closed ones */
	__u64 wake_at;	      /* user space: wake me at this many `iterations` */
	__u32 each;	      /* user space: iterations of a window */
	__u32 left;	      /* that the open window still takes */
	__u32 on;	      /* user space: whether iterations count */
	__u32 armed;	      /* user space: all is attached, the next end of an iteration opens a window */
	__u32 tgid;	      /* whose iterations; 0: none that is still there has ended one */
	__u32 pad;
};

/* A variable that each thread has its own of. */
struct mxbpf_tls {
	__u64 got; /* address of two words: number of its module, offset in the module's block; 0: none */
	__u64 add; /* to that offset */
};

/* Where a library lies in a process. */
struct mxbpf_image {
	__u64 start, end; /* 0, 0: it is not mapped */
	__u64 base;	  /* address in the process - address in the file */
};

#define MXBPF_IMAGES_MAX 4 /* libraries whose objects are named */

/* Value of map `targets`. */
struct mxbpf_target {
	__u64 static_base;		  /* address in the process - address in the file, of the runtime's library */
	struct mxbpf_tls seq, seq_thread; /* a thread's next sequence number, its own number (0: none yet) */
	__u64 undefined;		  /* address of the tensor that stands for none */
	struct mxbpf_image images[MXBPF_IMAGES_MAX]; /* number i + 1 */
	__u64 own; /* it has links of its own, with the kernel's process filter, and hits of shared ones do not count */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_target) == 152);

#endif
