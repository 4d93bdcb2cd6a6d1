/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what the threads of a process are doing now, without stopping them. If a thread sleeps in the kernel and is not
 * woken during the look, all data of it are from one moment. For any other thread only the state is reported.
 */
#ifndef NOW_NOW_H
#define NOW_NOW_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "mxbpf_regs.h"
#include "plan/plan.h"
#include "python/python.h"
#include "target/target.h"

#define NOW_FRAMES_MAX 128

struct now_frame {
	const char *name;	   /* name of the function, not escaped; "": unknown; borrowed from the look */
	const struct tgt_lib *lib; /* NULL: unknown */
	uint64_t va;		   /* address in that file, or in the process if lib is NULL */
	const char *call;	   /* for a probed call, its name in the tables or that of the probe; otherwise NULL */
	bool named;		   /* `call` is a name in the tables */
	enum mxbpf_class cls;	   /* class of the call */
	bool python;		   /* a frame of the interpreter itself */
};

struct now_thread {
	pid_t tid;
	char comm[32];
	struct tgt_doing doing;
	bool still;		/* it slept during the look, so all data are valid */
	bool late;		/* it slept only during the second look, after all other threads */
	struct buf frames;	/* struct now_frame, innermost first */
	bool cut;		/* frames are missing: there are more, or unwinding failed */
	char *python;		/* lines in the form of MXBPF_NAME_STACK; NULL: none */
	struct py_locks *locks; /* of Python, which its frames know; NULL: it waits for none. Owned. */
	uint64_t futex;		/* of the lock for which it waits without a time limit; 0: none */
	uint64_t fs_base;	/* base of the thread; 0: not known */
	pid_t holder;		/* thread that holds the lock it waits for; 0: unknown */
};

#define NOW_COLLECTIVE "collective" /* its operation is not known */

/*
 * PyTorch's watching thread removes what GPUs have done after a second at the latest. What is younger than this may be
 * done, unless another rank waits in the same collective, or in a later one, for so long.
 */
#define NOW_PENDING_NS 2000000000ull

/* The collective in which a process waits for other ranks. */
struct now_collective {
	const char *name;     /* "all_reduce"; borrowed from the plan, or NOW_COLLECTIVE */
	bool numbered;	      /* its number in the group is known */
	uint64_t number;      /* counts from 0 or 1, as the process group does */
	uint32_t rank, ranks; /* in its group; ranks 0: not known */
	uint64_t age_ns;      /* of one that GPUs have not done: how long ago it was called; otherwise 0 */
	char group[64];	      /* name of the group, not escaped; "": not known */
	pid_t tid;	      /* thread that executes it, waits for it or watches over it */
};

struct now;

/*
 * Call these in this order. Results are borrowed from the look until now_free(). The plan is that of the target; the
 * caller owns both.
 */
int now_begin(struct tgt *t, const struct plan *p, struct now **out, struct err *e); /* reads what each thread does */
/*
 * The second look. `regs` has struct mxbpf_regs in any order, read after now_begin(); missing ones are estimated.
 * Returns how many sleeping threads moved between the looks. now_again() then starts over for these, and now_take()
 * reads them again. Returns -ENOMEM without memory.
 */
int now_take(struct now *n, const struct buf *regs);
void now_again(struct now *n);
/* Unwinds the stacks from the copied data; the process may have ended. Returns 0, or why there are no stacks. */
int now_finish(struct now *n, struct err *e);
/*
 * After now_finish(): returns true if a sleeping thread executes or awaits a collective. Of several, *c is the one with
 * the smallest number, because the others of its group come after it. If there is none, it is the oldest one that GPUs
 * have not done. Reads the process. e: why collectives on GPUs cannot be seen, if code of them is unknown.
 */
bool now_collective(struct now *n, struct now_collective *c, struct err *e);
/*
 * After now_finish(): finds threads that wait for each other's locks of Python for ever, or one that waits for a lock
 * which it has itself. Reads no more of the process.
 */
#define NOW_DEADLOCK_MAX 8
struct now_wait {
	const struct now_thread *thread, *holder; /* borrowed from the look */
	char lock[2 * PY_NAME_BYTES];		  /* name of a variable that has it; "": not known */
	bool guessed;				  /* nothing says that the holder has it; see deadlock.c */
	const char *line;			  /* where it waits, not terminated; borrowed */
	size_t line_len;
	char *held_line; /* where the holder is in the frame that has the lock; NULL: not known; owned */
};
struct now_deadlock {
	struct now_wait waits[NOW_DEADLOCK_MAX]; /* each holder is the next thread, the last one's the first */
	unsigned n;				 /* 0: there is none */
};
void now_deadlock(struct now *n, struct now_deadlock *d); /* now_deadlock_fini() afterwards */
void now_deadlock_fini(struct now_deadlock *d);
struct now_thread *now_thread_at(struct now *n, size_t i); /* NULL after the last */
const char *now_python(const struct now *n);		   /* version; NULL: no Python, or an unknown version */
const char *now_no_python(const struct now *n); /* why its Python has no stacks; NULL: it has them, or no Python */
void now_free(struct now *n);			/* NULL is legal */

/*
 * Appends the Python stacks of all threads of a process as text, the oldest thread first. It reads memory while the
 * process runs, and stops nothing. module_file as for py_set_module_file(). 0, or -errno with e set.
 */
int now_python_text(struct tgt *t, const char *module_file, struct buf *out, struct err *e);

#endif
