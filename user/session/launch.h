/* SPDX-License-Identifier: Apache-2.0 */
/* The command that mxbpf starts itself: as who called sudo, with that user's environment, in its own terminal group. */
#ifndef SESSION_LAUNCH_H
#define SESSION_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "base/err.h"

struct launch {
	pid_t pid;  /* 0: none */
	int pidfd;  /* polls readable at its end */
	int go;	    /* while the child waits to become the command; then -1 */
	int failed; /* what hinders it comes from here; likewise */
};

/* A child that has not run the command yet; to_stderr: its standard output goes there, where mxbpf's is for results.
 * Before any thread is started and any signal blocked. */
int launch_prepare(struct launch *l, char **argv, bool to_stderr, struct err *e);
/* Lets it run the command; returns when that has begun. ERR_TARGET if it cannot. */
int launch_go(struct launch *l, const char *name, struct err *e);
/* A signal came to mxbpf: the command gets it, unless the terminal has given it one already. */
void launch_forward(const struct launch *l, const struct signalfd_siginfo *sig);
/* Waits for its end, forwarding what `signals` gets. Its exit code, 128 + signal if one ended it. */
int launch_wait(struct launch *l, int signals);
/* A child that has not run the command never will. */
void launch_fini(struct launch *l);

#endif
