/* SPDX-License-Identifier: Apache-2.0 */
/* The command that mxbpf launches: as the user who called sudo, with that user's environment, in mxbpf's process group.
 */
#ifndef JOB_LAUNCH_H
#define JOB_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "base/err.h"

struct launch {
	pid_t pid;  /* 0: none */
	int pidfd;  /* readable when the command has ended */
	int go;	    /* open while the child waits to execute the command; then -1 */
	int failed; /* the child's error comes from here; open as long as go */
	/* Called in the child, which may replace texts of the command's environment; NULL: not called. */
	void (*in_child)(char **env);
};

/* Starts a child that waits before it executes the command. to_stderr: the command's standard output goes to stderr,
 * because stdout has results. Call before any thread starts and any signal is blocked. */
int launch_prepare(struct launch *l, char **argv, bool to_stderr, struct err *e);
/* Lets the child execute the command, and returns when it has. ERR_TARGET if it cannot. */
int launch_go(struct launch *l, const char *name, struct err *e);
/* Forwards a signal to the command, unless the terminal has sent it there, too. */
void launch_forward(const struct launch *l, const struct signalfd_siginfo *sig);
/* Waits for the end of the command, and forwards signals from the signalfd. Its exit code, or 128 + signal. */
int launch_wait(struct launch *l, int signals);
/* If the child still waits, it exits without executing the command. */
void launch_fini(struct launch *l);

#endif
