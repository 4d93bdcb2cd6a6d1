/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of functions in a stopped thread of another process. To the thread, each call looks like a signal handler: the
 * kernel itself restores every register when the function returns, whether or not a tracer is still there. So the
 * target lives on if mxbpf is killed at any moment.
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
#define REMOTE_TEXT_BYTES 192	/* of a string argument, with its NUL */

struct remote {
	/* The caller sets these. */
	pid_t pid, tid;
	uint64_t restorer;    /* address of __restore_rt in the target */
	int signal;	      /* with which the thread was stopped; pending during a call, it tells the call's end */
	bool own_signal;      /* this process has sent it; else a BPF program has */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; after that a wait gives up */
	/* The thread as it was stopped. */
	struct user_regs_struct regs;
	uint64_t mask;
	uint64_t frame; /* address of the signal frame on its stack */
	uint64_t text;	/* address of REMOTE_TEXT_BYTES for a string, which calls do not overwrite */
	size_t xstate_bytes;
	uint8_t xstate[REMOTE_XSTATE_MAX];
	int resume_with; /* the signal that the next resume hands back to the thread; 0: none */
};

/* Interrupts waits of this thread every few ms, so that they can give up. All other signals are blocked until stop. */
struct remote_timer {
	void *id; /* the first one of a process is 0 */
	bool made;
	unsigned char old_mask[128];
};
int remote_timer_start(struct remote_timer *t);
void remote_timer_stop(struct remote_timer *t);

/*
 * Waits until the seized thread is stopped by r->signal. 0; -ESRCH: it has ended; -ETIMEDOUT: it was not stopped in
 * time, and runs. Other signals are passed on to it.
 */
int remote_wait_hit(struct remote *r);

/* Reads the state of the stopped thread. 0 or -errno. */
int remote_begin(struct remote *r, struct err *e);
/*
 * If the stopped thread was in this system call, which the signal has interrupted, the call begins anew when the thread
 * goes on, with its own arguments. After remote_begin(). False: it is in none, or in another one.
 */
bool remote_begin_anew(struct remote *r, int32_t syscall_nr);
/* Puts the signal frame below its stack, where the caller knows that there is room. 0 or -errno. */
int remote_put_frame(struct remote *r, struct err *e);

/* Puts a string at r->text. 0 or -errno. */
int remote_put_text(struct remote *r, const char *text);

/*
 * Calls fn(args[0], ..., args[3]) in the stopped thread, which is stopped with its old registers afterwards. If
 * syscall_nr >= 0, *result is what the first system call of the function returned, which has to be that one. -EFAULT:
 * the function crashed, and the registers were restored from here; -ETIMEDOUT: it has not returned yet.
 */
int remote_call(struct remote *r, uint64_t fn, const uint64_t args[4], int syscall_nr, int64_t *result, struct err *e);

/* Lets the thread go. 0; -ESRCH: it has ended. */
int remote_end(struct remote *r);

#endif
