/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session looks at a running job: it finds the target, plans and attaches probes, folds what comes into a model, and
 * follows the target's children. It prints nothing, handles no signal and has no static state, so that a process can
 * run several. Call, in this order, and each once:
 *
 *   ses_open       launches the command, which waits; else touches nothing
 *   ses_prepare    finds the target and plans its probes
 *   ses_start      attaches; the window begins
 *   ses_wait       until the duration has passed, the target has ended, or ui.woken says so
 *   ses_stop       detaches; all that came is in the model and in the recording
 *   ses_free
 *
 * All of them, and what ui calls, run in the thread that calls them, unless it is said.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/model.h"
#include "model/session.h"
#include "plan/plan.h"
#include "target/target.h"

/* Whether the probes of children are shared with all processes that map the library; AUTO: once the target forks. */
enum ses_follow { SES_FOLLOW_AUTO, SES_FOLLOW_SHARED, SES_FOLLOW_FILTERED };

/* What a session is asked for. Each field is the value of the option of that name. */
struct ses_opts {
	int pid;		/* 0: none, there is a command */
	char **command;		/* NULL: none */
	bool command_to_stderr; /* what the command prints is not to be mixed with the results */
	uint64_t duration_ns;	/* 0: until the target ends or ui.woken says so */
	uint64_t delay_ns;
	uint64_t interval_ns;  /* of window time, between two calls of ui.tables; 0: none */
	bool reset;	       /* tables of an interval tell of that alone */
	const char *recording; /* path; NULL: none is kept */
	const char *trace;     /* path of what is made of the events at the end, which are kept beside it; NULL: none */
	uint64_t max_bytes;    /* of events that are kept; 0: the default */
	uint64_t ring_bytes;   /* 0: the default */
	unsigned probes;       /* mask of enum probe_group */
	const char *api;       /* "work": only functions of the C API that work or wait; NULL: all */
	const char *ops;       /* patterns; NULL: all operators */
	const char *runtime;   /* name of an adapter; NULL: whichever is mapped */
	const char *role;      /* NULL: all */
	const char *backend;   /* NULL: the best that the kernel has */
	unsigned iterations;   /* of a window; 0: no such windows */
	unsigned period;       /* of which one window is */
	unsigned sample_hz;    /* 0: no samples */
	unsigned details;      /* mask of enum mxbpf_detail */
	uint32_t features;     /* bits of struct mdl_feature_option */
	unsigned counters;     /* mask of ctr_name()s */
	bool by_thread;	       /* the tables ask for rows of threads */
	bool by_process;
	bool wait;	 /* for a runtime in the process, if it has none */
	bool no_follow;	 /* children are not looked at */
	int follow;	 /* enum ses_follow */
	bool follow_app; /* the window is open while the program has its runtime's profiler record */
	bool no_account;
	bool omp;
	bool life;
	bool memory;
	bool sched;
	bool agent; /* operators are seen by code inside the process instead of probes */
	bool stats; /* the kernel adds up, and sends no events */
	bool stats_check;
	bool verbose; /* SES_DETAIL is told, too */
};

enum ses_level {
	SES_WARNING, /* a number is missing or less than was asked for */
	SES_STAGE,   /* what begins now lasts until something ends it: waiting, the window */
	SES_NOTE,    /* how the session goes on */
	SES_DETAIL,  /* what --verbose adds; told only with ses_opts.verbose */
};

/* What a session calls. A function may be NULL. Nothing is borrowed beyond the call. */
struct ses_ui {
	void *ctx;
	/* One line of text, without a line feed. It may have words of the target, which are not escaped. From any
	 * thread. */
	void (*tell)(void *ctx, enum ses_level level, const char *text);
	/* Before the window begins: from now on there are results to lose. */
	void (*begins)(void *ctx);
	/* About once a second in the window. */
	void (*second)(void *ctx);
	/* An interval has ended: a description and a model of its own, which go when it returns. Not 0: the session
	 * ends, and ses_failed() is that code. */
	int (*tables)(void *ctx, const struct mdl_session *about, struct mdl *m);
	/* wake_fd is readable. true: the session ends. */
	bool (*woken)(void *ctx);
	int wake_fd; /* borrowed; -1: none. ses_wake_by() may set it later. */
};

struct session;

/* 0 or -errno with e set; *ses is NULL then only if there is no memory for it. o is borrowed until ses_free(). */
int ses_open(const struct ses_opts *o, const struct ses_ui *ui, struct session **ses, struct err *e);
void ses_wake_by(struct session *ses, int fd);
int ses_prepare(struct session *ses, struct err *e);
int ses_start(struct session *ses, struct err *e);
void ses_wait(struct session *ses);
/* -errno with e set if not everything was folded or written. */
int ses_stop(struct session *ses, struct err *e);
void ses_free(struct session *ses);

/* In the window: what happens from now on is not taken and not part of the window, until it goes on. */
void ses_pause(struct session *ses, bool pause);
/* Calls ui.tables for the interval that goes on, or for the last one after ses_stop(). Returns its code. */
int ses_interval(struct session *ses);
int ses_failed(const struct session *ses); /* code of the ui.tables that ended the session, or 0 */

/* The command: a signal came to this process, and is the command's, too, unless its terminal has sent it one. */
void ses_forward(const struct session *ses, const struct signalfd_siginfo *sig);
bool ses_launched(const struct session *ses); /* there is a command that has not been waited for */
/*
 * Lets the command go on and waits for its end; signals that `signals` gets are forwarded. Its exit code, or 128 +
 * signal if one ended it; -1: it does not run.
 */
int ses_wait_command(struct session *ses, int signals);

/* What it knows. All is borrowed from the session, and the model belongs to its threads until ses_stop(). */
const struct mdl_session *ses_about(const struct session *ses); /* its loss is complete after ses_stop() */
struct mdl *ses_model(const struct session *ses);
struct mdl *ses_model_beside(const struct session *ses); /* --stats-check: of what the kernel added up; else NULL */
struct tgt *ses_target(const struct session *ses);	 /* NULL: none was found */
const struct plan *ses_plan(const struct session *ses);	 /* of the target */
int ses_events_fd(const struct session *ses);		 /* after ses_stop(): events that were kept, as a recording */
uint64_t ses_window_ns(const struct session *ses);	 /* without pauses */
void ses_loss(const struct session *ses, struct mxbpf_loss *loss); /* of all sources, as of now */
/* Whether threads of the target are stopped, and by whom: "process 12 (python) is stopped ...". */
#define SES_STOPPED_BYTES 256
bool ses_stopped(const struct session *ses, char text[SES_STOPPED_BYTES]);
/* --ops, after ses_stop(): whether it left out everything, and what is nearest to it. */
#define SES_NEAREST_BYTES 300
bool ses_ops_matched(const struct session *ses, char nearest[SES_NEAREST_BYTES]);

/*
 * For `now`. ses_keep_lasts: before ses_start(). ses_opens: appends a struct mxbpf_open for each call that was open
 * until at_ns; ses_learn: gives the model the names of such records. ses_last: the last call of a thread that ended;
 * NULL.
 */
void ses_keep_lasts(struct session *ses);
void ses_opens(struct session *ses, uint64_t at_ns, struct buf *opens);
void ses_learn(struct session *ses, void *recs, size_t bytes);
const struct mxbpf_span *ses_last(const struct session *ses, pid_t tid);

#endif
