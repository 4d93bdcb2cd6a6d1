/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a session for a command: signals end it, progress goes to stderr, tables of intervals to stdout or -o FILE. */
#ifndef CMD_RUN_H
#define CMD_RUN_H

#include "base/out.h"
#include "cmd/cmd.h"
#include "session/session.h"

enum run_signal { RUN_USUAL, RUN_TAKEN, RUN_ENDS }; /* USUAL: as without `asked` */

/* A live view, which gets what would be printed. ctx is its own. */
struct run_live {
	void *ctx;
	int fd; /* epoll of what input() reads, to which signals are added; -1: only signals wake the session */
	int (*second)(void *ctx, const struct mdl_session *about, struct mdl *m); /* an exit code; not 0 ends */
	bool (*input)(void *ctx);					/* there may be input; true ends the session */
	bool (*say)(void *ctx, enum ses_level level, const char *text); /* a message; false: it goes to stderr */
	int (*trace)(void *ctx, int fd);				/* as of struct ses_ui */
	/*
	 * A signal. NULL: USR1 pauses the window, USR2 resumes it, and the others end it. With it, signals do not end
	 * mxbpf before the window begins either.
	 */
	enum run_signal (*asked)(void *ctx, int sig);
};

struct run {
	const struct cmd_opts *o;
	struct ses_opts so;
	struct session *ses;	     /* NULL: out of memory */
	int signals;		     /* signalfd; -1: not open */
	const struct run_live *live; /* borrowed; NULL: none */
	struct out *tables;	     /* --interval: the output; NULL: no tables were printed yet */
	unsigned ntables;
	uint64_t events; /* events up to the last line of progress */
	/* --trace-every: parts that have ended, and those that were written. A thread of the session counts. */
	unsigned ntraces, nwritten;
};

/* Opens and prepares a session. live: NULL: none. 0, or -errno with e set. Call run_free() in both cases. */
int run_prepare(struct run *r, const struct cmd_opts *o, const char *recording, const struct run_live *live,
		struct err *e);
/* Attaches. 0, or -errno with e set. */
int run_start(struct run *r, struct err *e);
/* Waits for the end of the window, and shows progress on a terminal. */
void run_wait(struct run *r);
void run_free(struct run *r);
/*
 * traces.c. run_open_events: reads what the session has recorded so far. Sets *r to an owned handle, or returns -errno
 * with e set. run_trace_to: writes the trace of a part of the window to path; fd: its recording. 0, or -errno with e
 * set. run_trace_part: the next one of --trace-every. Prints errors and returns an exit code. run_say_traces: says
 * which files there are.
 */
int run_open_events(int fd, struct rec_reader **r, struct err *e);
int run_trace_to(const struct run *r, int fd, const char *path, struct err *e);
int run_trace_part(struct run *r, int fd);
void run_say_traces(const struct run *r);

/*
 * drop.c: with --drop-privileges, goes on as another user without any capability, in all threads, after run_start().
 * Fails if the results could not be written then. 0, or -errno with e set.
 */
int run_drop(const struct run *r, struct err *e);

/*
 * signals.c. Call signals_open() before any thread starts, and after the command is launched, because a command
 * inherits ignored signals. It returns a signalfd, or -errno with e set. After signals_hold() signals no longer end
 * mxbpf but go to the signalfd. Call signals_took() for each that was read. After signals_results() a second INT aborts
 * mxbpf, and prints how far it got.
 */
int signals_open(bool launched, struct err *e);
void signals_hold(void);
void signals_took(int sig);
enum signals_done { SIGNALS_STOPPING, SIGNALS_RECORDED, SIGNALS_PRINTED };
void signals_results(const struct run *r, enum signals_done done);

#endif
