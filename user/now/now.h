/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of a process do at this moment. None of them is stopped: of one that sleeps in the kernel, and has
 * not been woken between the beginning and the end of the look, everything that is read is of the same moment. Of
 * another, nothing is told but its state.
 */
#ifndef NOW_NOW_H
#define NOW_NOW_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "mxbpf_regs.h"
#include "plan/plan.h"
#include "target/target.h"

#define NOW_FRAMES_MAX 128

struct now_frame {
	const char *name;	   /* of the function, hostile; "": not known; borrowed from the look */
	const struct tgt_lib *lib; /* NULL: not known */
	uint64_t va;		   /* in that file; else the address */
	const char *call;	   /* one that is probed: its name in the tables, or of the probe; else NULL */
	bool named;		   /* the former */
	enum mxbpf_class cls;	   /* of that */
	bool python;		   /* of the interpreter itself */
};

struct now_thread {
	pid_t tid;
	char comm[32];
	struct tgt_doing doing;
	bool still;	   /* it slept all the while: the rest holds */
	bool late;	   /* it did so only the next time, after everything else */
	struct buf frames; /* struct now_frame, innermost first */
	bool cut;	   /* there are more, or the way was lost */
	char *python;	   /* lines of a stack as MXBPF_NAME_STACK says; NULL: none */
	pid_t holder;	   /* thread that holds the lock for which it waits; 0: not known */
};

struct now;

/* In this order; all borrowed from the look, until now_free(). The plan is that of the target; both stay the caller's.
 */
int now_begin(struct tgt *t, const struct plan *p, struct now **out, struct err *e); /* what each thread does */
/*
 * The second look. regs: struct mxbpf_regs, in no order, read since now_begin(); those that lack are made up for. How
 * many threads sleep that have moved between the two: now_again() begins anew with them, after which they are taken
 * again. -ENOMEM.
 */
int now_take(struct now *n, const struct buf *regs);
void now_again(struct now *n);
/* Stacks, from what was taken: the process may have gone by now. 0, or why there are none. */
int now_finish(struct now *n, struct err *e);
struct now_thread *now_thread_at(struct now *n, size_t i); /* NULL behind the last */
const char *now_python(const struct now *n);		   /* version; NULL: it runs none, or one that is not known */
void now_free(struct now *n);				   /* NULL is legal */

#endif
