/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `mxbpf serve` share. */
#ifndef CMD_SERVE_H
#define CMD_SERVE_H

#include "cmd/run.h"
#include "metrics/metrics.h"
#include "trigger/trigger.h"

#define SERVE_DUMPS 4 /* that are under way at most, with room to spare */

/* Why the last seconds are written. */
struct serve_dump {
	char word[32], why[TRG_WHY_BYTES]; /* word: for the name of the file; why: untrusted */
	char pids[1024];		   /* of a hang: "12,13", whose threads are shown; "": none */
};

struct serve {
	struct run *run; /* borrowed */
	struct met *metrics;
	int wake;	   /* epoll of the timer */
	int timer;	   /* timerfd for the watchdog of the service manager; -1: none */
	bool reload, ends; /* a signal asked for it */

	struct trg *on[CMD_ON_MAX];
	struct buf pids, text; /* pids: pid_t of the processes that are watched */
	bool detached;	       /* nothing is watched any more */
	bool failed;	       /* the text file could not be written the last time */
	/* A thread of the session counts those that were written. */
	struct serve_dump dumps[SERVE_DUMPS];
	unsigned ndumps, nwritten;
};

/* serve_files.c: writes the last seconds of a recording. Called in a thread of the session. Returns an exit code. */
int serve_write(struct serve *s, int fd, const struct serve_dump *d);

#endif
