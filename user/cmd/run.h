/* SPDX-License-Identifier: Apache-2.0 */
/* A session as a command runs it: signals end it, progress is on stderr, tables of intervals go to stdout or -o FILE.
 */
#ifndef CMD_RUN_H
#define CMD_RUN_H

#include "base/out.h"
#include "cmd/cmd.h"
#include "session/session.h"

struct run {
	const struct cmd_opts *o;
	struct ses_opts so;
	struct session *ses; /* NULL: there was no memory for it */
	int signals;	     /* signalfd; -1: not open */
	struct out *tables;  /* --interval: where they go; NULL: none came yet */
	unsigned ntables;
	uint64_t events; /* that the last line of progress has counted */
};

/* Opens and prepares a session for what o asks for. 0 or -errno with e set; run_free() in any case. */
int run_prepare(struct run *r, const struct cmd_opts *o, const char *recording, struct err *e);
/* ses_wait(), with progress on a terminal. */
void run_wait(struct run *r);
void run_free(struct run *r);

/*
 * signals.c. signals_open: before any thread starts. A launched command gets what was ignored before, so it is launched
 * by then. Returns a signalfd, or -errno with e set. signals_hold: from now on what ends mxbpf is kept for the
 * signalfd. signals_took: one was read from there. signals_results: the window has ended, and a second INT aborts,
 * which tells what is done.
 */
int signals_open(bool launched, struct err *e);
void signals_hold(void);
void signals_took(int sig);
enum signals_done { SIGNALS_STOPPING, SIGNALS_RECORDED, SIGNALS_PRINTED };
void signals_results(const struct run *r, enum signals_done done);

#endif
