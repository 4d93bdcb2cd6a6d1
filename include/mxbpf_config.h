/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * The config ABI, user space -> BPF: the rows of the plan, as read-only data of the BPF object, so that
 * the verifier removes what a row does not use; and the maps that user space reads beside the ring.
 */
#ifndef MXBPF_CONFIG_H
#define MXBPF_CONFIG_H

#include "mxbpf_event.h"
#include "mxbpf_life.h"
#include "mxbpf_stack.h"

#define MXBPF_ROWS_MAX	      64 /* program variants of one plan */
#define MXBPF_HIDDEN_MAX      8	 /* names that are left out */
#define MXBPF_LENDERS_MAX     8	 /* operators that allocate for whom they are called by */
#define MXBPF_DEREFS_MAX      4
#define MXBPF_TARGETS_MAX     1024 /* processes that are looked at at the same time */
#define MXBPF_THREADS_MAX     1024 /* threads of the target that hit a probe at the same time */
#define MXBPF_SLOT_FRAMES     32   /* open spans that a slot has room for; a power of two */
#define MXBPF_THREAD_SLOTS    16   /* slots of one thread, which takes them as its calls nest; a power of two */
#define MXBPF_FRAMES_MAX      (MXBPF_THREAD_SLOTS * MXBPF_SLOT_FRAMES) /* open spans of one thread */
#define MXBPF_SLOTS_DEEP      440 /* slots for frames beyond the first 32 of a thread, shared by all threads */
#define MXBPF_SLOTS_MAX	      (MXBPF_THREADS_MAX + MXBPF_SLOTS_DEEP)
#define MXBPF_KEYS_MAX	      16384	/* open spans that end by key */
#define MXBPF_BLOCKS_MAX      (1 << 18) /* allocations whose size only their address tells */
#define MXBPF_NAME_PART_BYTES 256
#define MXBPF_NAME_PARTS_MAX  (MXBPF_NAME_BYTES_MAX / MXBPF_NAME_PART_BYTES)
#define MXBPF_NAMES_MAX	      8192  /* parts of names known to BPF */
#define MXBPF_TENSORS_MAX     16384 /* kinds of tensors, and of arguments (in parts), known to BPF */
#define MXBPF_ARGS_KNOWN_MAX  16384
#define MXBPF_RING_BYTES      (8u << 20)
#define MXBPF_COUNTED_MAX     4096  /* threads that have perf events at the same time; most of them hit no probe */
#define MXBPF_TEAMS_MAX	      4096  /* parallel regions open at the same time */
#define MXBPF_TEAM_DEPTH_MAX  4	    /* of these, one within the other on a thread */
#define MXBPF_LIVES_MAX	      16384 /* --life: operators that are pushed and have not ended */
#define MXBPF_WRITERS_MAX     65536 /* variables whose last writer is known */
#define MXBPF_WRITES_MAX      512   /* of these, those of one operator */

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
	MXBPF_ACT_TEAM_OPEN = 10,
	MXBPF_ACT_TEAM_BEGIN = 11, /* cookie: as of CLOSE_CUT */
	MXBPF_ACT_TEAM_WAIT = 12,
	MXBPF_ACT_TEAM_CLOSE = 13, /* likewise */
	MXBPF_ACT_TEAM_JOIN = 14,  /* another thread begins its work in one; cookie: MXBPF_WORKER_* */
	MXBPF_ACT_TEAM_LEAVE = 15, /* and has ended it */
	MXBPF_ACT_STEP = 31,	   /* a moment that tells iterations */
	MXBPF_ACT_NOTE = 16,	   /* an operator with a state is pushed: its name, for MXBPF_INSIDE_NOTED */
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

#define MXBPF_MARK_BYTES 16

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
	char mark[MXBPF_MARK_BYTES]; /* --iterations: a hit whose name begins so, "*" any, ends one; "": none */
	struct mxbpf_fetch layer;    /* MXBPF_DETAIL_LAYER: address of a C string */
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
 * What is known of an operator with a state when it is pushed, and not when it runs: map `noted`. Its state is that of
 * its backward operator too, what it writes to is not.
 */
struct mxbpf_noted_key {
	__u64 state, output; /* addresses: output of what holds the bytes of the first array that it writes to */
	__u32 tgid;
	__u16 ninputs, noutputs;
};
struct mxbpf_noted {
	__u64 name_id, layer_id;
};
#define MXBPF_NOTED_MAX 8192

/* Map `pushed`: operators that custom ones pushed, by the engine's object for them. Value: name id of the custom one.
 */
struct mxbpf_pushed_key {
	__u64 opr;
	__u64 tgid;
};

/* Tag of a name that is two others with "::" between them: its bytes are their ids. */
#define MXBPF_NAME_TAG_PAIR 0xffff

/*
 * A NAMED_OBJECT id, the same in every process: the vtable's address in its file, the row's tag above it, the number of
 * the image above that, with the static bit and this one. Image 0: in none that the plan knows, address in the process.
 */
#define MXBPF_NAME_OBJECT_BIT  (1ull << 62)
#define MXBPF_NAME_TAG_SHIFT   48
#define MXBPF_NAME_TAG_MASK    0x3f
#define MXBPF_NAME_IMAGE_SHIFT 54
#define MXBPF_NAME_IMAGE_MASK  0xff
#define MXBPF_NAME_ADDR_MASK   ((1ull << MXBPF_NAME_TAG_SHIFT) - 1)

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
struct mxbpf_sampling {
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

struct mxbpf_name_key {
	__u64 id;
	__u64 part;
};

struct mxbpf_name_part {
	__u32 len;  /* bytes in text */
	__u16 more; /* another part follows */
	__u16 tag;  /* row.name_tag of the row that read it */
	char text[MXBPF_NAME_PART_BYTES];
};

/* ---- MXBPF_DETAIL_ARGS: arguments of a function, by its number in map `func_args` */

#define MXBPF_ARGS_MAX	     30
#define MXBPF_ARG_SLOTS	     32 /* words in which arguments are passed: six registers, then the stack */
#define MXBPF_ARG_REGS	     6
#define MXBPF_ARG_LIST_MAX   30 /* tensors of a list that are looked at; of a longer one torch.profiler shows none */
#define MXBPF_ARG_WORDS_MAX  256
#define MXBPF_IMPL_WORDS     21 /* of a tensor, up to its key set */
#define MXBPF_ARG_WORDS_PART (MXBPF_NAME_PART_BYTES / 8)
#define MXBPF_TENSOR_DIMS    15
#define MXBPF_NO_STORAGE     (~0u) /* cfg_tensor_storage_word: not known */
/* Of an operator of MXNet's: both with a mark between them are less than MXBPF_ARG_WORDS_MAX. */
#define MXBPF_NDARRAYS_IN_MAX  192
#define MXBPF_NDARRAYS_OUT_MAX 48

/* What an argument is. Those that may be absent are none then. */
enum mxbpf_arg_kind {
	MXBPF_ARG_OTHER = 0, /* shown as "" */
	MXBPF_ARG_SCALAR = 1,
	MXBPF_ARG_SCALARS = 2,
	MXBPF_ARG_TENSOR = 3,	   /* address of one */
	MXBPF_ARG_TENSOR_OPT = 4,  /* address of one and a byte that says whether it is there */
	MXBPF_ARG_TENSORS = 5,	   /* two words: address of the first, number */
	MXBPF_ARG_TENSORS_REF = 6, /* address of c10::IListRef */
	MXBPF_ARG_VECTOR = 7,	   /* address of a vector of tensors, each an argument of its own */
	MXBPF_ARG_STACK = 8,	   /* the same of c10::IValue */
};

struct mxbpf_arg {
	__u8 kind;    /* enum mxbpf_arg_kind */
	__u8 slot;    /* where it begins */
	__u8 opt;     /* a scalar or scalars: enum mxbpf_arg_opt */
	__u8 opt_off; /* of the byte that says whether it is there */
};

enum mxbpf_arg_opt {
	MXBPF_ARG_ALWAYS = 0,
	MXBPF_ARG_IF_HERE = 1,	/* the byte lies opt_off behind the slot's beginning */
	MXBPF_ARG_IF_THERE = 2, /* behind the address in the slot */
};

struct mxbpf_func_args {
	__u8 n; /* 0: its arguments are not known */
	__u8 nslots;
	__u8 pad[6];
	struct mxbpf_arg args[MXBPF_ARGS_MAX];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_func_args) == 128);

/*
 * What was found, as words that are interned like a name's bytes (map `args`): an element an argument. Others are the
 * id of a tensor (map `tensors`).
 */
enum mxbpf_arg_word {
	MXBPF_WORD_OTHER = 0,
	MXBPF_WORD_SCALAR = 1,
	MXBPF_WORD_SCALARS = 2,
	MXBPF_WORD_UNREADABLE = 3, /* a tensor */
	MXBPF_WORD_LONG_LIST = 4,
	MXBPF_WORD_OUTPUTS = 5,	 /* what follows comes out */
	MXBPF_WORD_UNKNOWN = 6,	 /* a tensor whose shape is known only when the operator has run */
	MXBPF_WORD_UNWANTED = 7, /* one that could come out, and is not made */
	MXBPF_WORD_LIST = 0x100, /* and the number of the words that follow and are its elements */
};

struct mxbpf_tensor {
	__u16 dtype;
	__u8 ndim;
	__u8 strided;  /* it has strides */
	__u16 storage; /* MXNet's: 0 dense, 1 rows of it, 2 compressed rows */
	__u16 pad;
	__s64 dims[2 * MXBPF_TENSOR_DIMS]; /* ndim sizes, then as many strides */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_tensor) == 248);

/* Scratch of one thread, by its slot; map `arg_scratch`. */
struct mxbpf_arg_scratch {
	__u64 slots[MXBPF_ARG_SLOTS];
	__u64 words[MXBPF_ARG_WORDS_MAX];
	__u64 impl[MXBPF_IMPL_WORDS];
	__u64 n; /* words */
	struct mxbpf_tensor tensor;
	__u64 reqs; /* of MXNet's: slots say which arrays are wanted */
	struct mxbpf_name_part part;
};

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

/* One that is open. Map `teams`; begins without workers, who add to it. */
struct mxbpf_team_open {
	__u64 start_ns;
	__u64 name_id, span_start_ns; /* as in struct mxbpf_team */
	__u64 late_ns, late_runq_ns, work_ns, cpu_ns, runq_ns, spun_ns;
	__u64 until_ns; /* sum of the moments at which they had ended their work, from start_ns */
	__u32 tid;
	__u32 joined, left;
	__u32 flags;
	__u8 cls;
	__u8 pad[7];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_team_open) == 104);

/* A thread at a moment, to tell what it did since. */
struct mxbpf_team_moment {
	__u64 ns; /* 0: there was none */
	__u64 cpu;
	struct mxbpf_account_start account;
};

/* What a thread has to do with regions, by its slot; map `team_threads`. */
struct mxbpf_team_thread {
	struct mxbpf_team_key work; /* of the region that it works for, */
	__u64 work_start_ns;	    /* and when that began; 0: for none */
	__u64 work_sp;		    /* where it was when it began its work */
	struct mxbpf_team_moment began, idle;
	__u32 tid;
	__u32 depth; /* of the regions that it is master of */
	__u32 over;  /* open ones beyond those that there is room for */
	__u32 pad;
	struct mxbpf_team_master {
		struct mxbpf_team_key key;
		__u64 sp, end_sp;		       /* where it was opened; where it is being left, 0: not yet */
		__u64 start_ns;			       /* 0: it is not looked at */
		struct mxbpf_team_moment began, waits; /* began: until it does, when it was opened */
		__u64 late_runq_ns, spun_ns;	       /* before that */
		__u64 cpu_ns, runq_ns;		       /* between the two */
		__u64 flags;			       /* enum mxbpf_team_flag */
	} regions[MXBPF_TEAM_DEPTH_MAX];
	struct mxbpf_team_open scratch;
};

/* ---- --life */

/* In frame.flags beside enum mxbpf_span_flag. */
#define MXBPF_FRAME_AT_ONCE (1u << 8) /* row.at_once */
#define MXBPF_FRAME_BULK    (1u << 9) /* the span is a bulk: an operator that ran in it has a span of its own */

/* An object of a process, and which of its turns: an operator that is not temporary may be pushed many times ahead. */
struct mxbpf_life_key {
	__u64 object;
	__u64 turn;
	__u32 tgid;
	__u32 pad;
};

/* Of an operator: how many times it was pushed and became ready. What is pushed first is ready first. */
struct mxbpf_life_turns {
	__u64 pushed, ready;
};

struct mxbpf_life_open {
	__u64 pushed_ns, dispatch_ns, ready_ns; /* 0, UNKNOWN, 0: not seen */
	__u32 push_tid, ready_tid;
};

/* Who writes a variable last. */
struct mxbpf_writer {
	__u64 op_id, within_id;
	__u32 slot;    /* of the thread that said so */
	__u32 claimed; /* its operator was not pushed yet */
};

/* Of a process: which operator ended last. */
struct mxbpf_life_last {
	__u64 end_ns, op_id;
};

/* Of a thread, by its slot. */
struct mxbpf_life_thread {
	__u64 pushed_ns;	    /* when it last pushed */
	__u64 wait_ns;		    /* of which wait the writer is, by its start */
	struct mxbpf_writer writer; /* op_id 0: not seen */
	struct mxbpf_life rec;	    /* scratch */
	struct mxbpf_wait wait;	    /* scratch */
};

/* --memory: the allocation that a thread is in, by its slot; map `allocating`. */
struct mxbpf_allocating {
	__u64 sp;    /* at its function's entry; 0: there is none */
	__u64 place; /* where its address will stand */
	__u64 pool;  /* where it stands what its pool has taken; 0: it came from none */
	__s64 bytes;
	__u64 scope_id, label_id;
	__u32 device;
	__u32 tid;
};

/* What becomes of a finished span and of an allocation. */
enum mxbpf_stats {
	MXBPF_STATS_OFF = 0,   /* a record in the ring */
	MXBPF_STATS_ON = 1,    /* added to its row in the kernel; the ring tells of new rows alone (MXBPF_GROUP) */
	MXBPF_STATS_CHECK = 2, /* both, to compare them */
};

#define MXBPF_STATS_STRIPES_MAX 8	   /* copies of a row, by CPU; a power of two */
#define MXBPF_STATS_ROWS_MAX	(1u << 14) /* over all stripes; each takes memory when it is first needed */
#define MXBPF_STATS_DEVICES_MAX (1u << 12)

struct mxbpf_stat_key {
	__u64 name_id, args_id, stack_id, layer_id;
	__u32 tgid, device;
	__u8 cls; /* enum mxbpf_class */
	__u8 stripe;
	__u8 traits; /* enum mxbpf_trait */
	__u8 pad;
	__u32 tid; /* with MXBPF_DETAIL_THREAD, else 0 */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_stat_key) == 48);

/* A row begins as zeros. */
struct mxbpf_stat {
	__u64 total_ns, self_ns;
	__u64 max_ns;
	__u64 min_ns_inv; /* ~min_ns, so that it rises as well */
	__s64 alloc_bytes, self_alloc_bytes;
	__u64 unwound;		     /* spans with MXBPF_SPAN_UNWOUND */
	__u64 first_ns_inv, last_ns; /* of spans with MXBPF_SPAN_USER: ~ of the first start, the last end */
	struct mxbpf_account_sum account;
	struct mxbpf_counter_sum counters;
	__u64 hist[MXBPF_HIST_BUCKETS]; /* their sum is how many there were */
};

struct mxbpf_stat_mem_key {
	__u32 tgid, device;
};

/* As struct mxbpf_mem. */
struct mxbpf_stat_mem {
	__u64 allocs, frees;
	__u64 alloc_bytes, free_bytes;
	__u64 live_bytes, peak_bytes;
	__u64 low_bytes_inv; /* ~low_bytes */
	__u64 empty;	     /* of no bytes: they count for nothing but the records' account */
};

/* ---- --sched */

#define MXBPF_SCHED_RING_BYTES	(8u << 20)
#define MXBPF_SCHED_THREADS_MAX 8192 /* a power of two */
#define MXBPF_SCHED_KEPT	32   /* a power of two */

/*
 * A thread of a target, in array map `sched_threads`, mapped into user space: it stands at its id in the machine's
 * first pid namespace, modulo the size, or a little behind. A hash map's look-ups would be most of what a switch costs.
 */
#define MXBPF_SCHED_TRIES 4
#define MXBPF_SCHED_FREE  0u
#define MXBPF_SCHED_GONE  (~0u) /* free, and what is looked for may stand behind it */
struct mxbpf_sched_thread {
	__u32 id;      /* that one, or one of the two */
	__u32 slot;    /* of struct mxbpf_thread; 0: it has none */
	__u64 back_ns; /* when it got the CPU that it has or had */
	__u64 left_ns; /* 0: it has it, or nobody knows */
	__u64 ran_ns;  /* before that */
	__u64 span_start_ns, span_name_id;
	__u64 woken_ns; /* the last time; 0: not seen */
	__u32 tgid, tid;
	__s32 syscall;
	__u32 taker_tid, waker_tid;
	char taker_comm[16], waker_comm[16];
	__u16 cpu;
	__u8 state, span_cls;
	__u8 flags;	  /* enum mxbpf_sched_flag, of leaving */
	__u8 waker_flags; /* of waking */
	__u8 pad[6];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sched_thread) == 120);

/* Value of map `sched_cpus`: what ran there lately. */
struct mxbpf_sched_cpu {
	__u64 since_ns; /* of the last switch */
	__u64 nkept;	/* ever */
	__u64 counts[MXBPF_COUNT_MAX];
	struct mxbpf_sched_slice kept[MXBPF_SCHED_KEPT];
	/* Scratch: a struct mxbpf_sched with its slices. */
	__u64 rec[(sizeof(struct mxbpf_sched) + MXBPF_SCHED_SLICES_MAX * sizeof(struct mxbpf_sched_slice)) / 8];
};

#endif
