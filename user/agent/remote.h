/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of functions in a stopped thread of another process. Each call looks like a signal handler to the thread:
 * the kernel restores every register when the function returns, whether or not a tracer is still there. So the
 * target survives if mxbpf is killed at any moment.
 */
#ifndef AGENT_REMOTE_H
#define AGENT_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/err.h"

#define REMOTE_XSTATE_MAX 16384 /* bytes; 11,008 with AMX */
#define REMOTE_TEXT_BYTES 192	/* bytes of a string argument, with its NUL */

struct remote {
	/* Set by the caller. */
	pid_t pid, tid;
	uint64_t restorer;    /* address of __restore_rt in the target */
	int signal;	      /* signal that stopped the thread; pending during a call, it marks the call's end */
	bool own_signal;      /* true: sent by this process; false: sent by a BPF program */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; waits give up after it */
	/* State of the thread at the stop. */
	struct user_regs_struct regs;
	uint64_t mask;
	uint64_t frame; /* address of the signal frame on the thread's stack */
	uint64_t text;	/* address of REMOTE_TEXT_BYTES for a string, which calls do not overwrite */
	size_t xstate_bytes;
	uint8_t xstate[REMOTE_XSTATE_MAX];
	int resume_with; /* signal that the next resume passes to the thread; 0: none */
	bool away;	 /* a function was called and has not returned, so the registers are not the thread's own */
	bool anew;	 /* remote_begin_anew() has changed the registers, which were these: */
	struct user_regs_struct interrupted;
};

/*
 * Interrupts the waits of this thread for the other one every few ms, so that they can give up, and nothing else: a
 * request that a sandbox holds back would fail with EINTR. All signals are blocked until remote_timer_stop().
 */
struct remote_timer {
	void *id; /* may be 0: that is the first timer of a process */
	bool made;
	unsigned char old_mask[128];
};
int remote_timer_start(struct remote_timer *t);
void remote_timer_stop(struct remote_timer *t);

/*
 * Waits until the seized thread is stopped by r->signal, and passes other signals on to it. Returns 0; -ESRCH: the
 * thread has ended; -ETIMEDOUT: the thread was not stopped in time and still runs.
 */
int remote_wait_hit(struct remote *r);

/* Reads the registers of the stopped thread. Returns 0 or -errno. */
int remote_begin(struct remote *r, struct err *e);
/*
 * Restarts an interrupted system call: if the stopped thread was in this call, it makes the call again, with the
 * same arguments, when it goes on. Call this after remote_begin(). Returns false if the thread was in another call
 * or in none.
 */
bool remote_begin_anew(struct remote *r, int32_t syscall_nr);
/* Writes the signal frame below the thread's stack. The caller knows that there is room. Returns 0 or -errno. */
int remote_put_frame(struct remote *r, struct err *e);

/* Writes a string to r->text. Returns 0 or -errno. */
int remote_put_text(struct remote *r, const char *text);

/*
 * Calls fn(args[0], ..., args[3]) in the stopped thread, which is afterwards stopped with its old registers again.
 * If syscall_nr >= 0, *result is the result of the first system call in fn, which must be that one. -EFAULT: the
 * function crashed, and mxbpf restored the registers; -ETIMEDOUT: the function still runs.
 */
int remote_call(struct remote *r, uint64_t fn, const uint64_t args[4], int syscall_nr, int64_t *result, struct err *e);

/*
 * Lets the thread go. A system call that was to begin anew fails instead, as it would have without a tracer, if a
 * signal handler runs now. Returns 0, or -ESRCH if the thread has ended.
 */
int remote_end(struct remote *r);

#endif
