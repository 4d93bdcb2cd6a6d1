/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session profiles a running job: it finds the target, plans and attaches probes, folds records into a model, and
 * follows the target's children. It prints nothing, handles no signal and has no static state, so a process can run
 * several. Call these once each, in this order:
 *
 *   ses_open       starts the command, which waits; touches nothing else
 *   ses_prepare    finds the target and plans its probes
 *   ses_start      attaches; the window begins
 *   ses_wait       until the duration has passed, the target has ended, or ui.woken says so
 *   ses_stop       detaches; all records are in the model and in the recording then
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
#include "job/choose.h"
#include "model/model.h"
#include "model/session.h"
#include "plan/plan.h"
#include "target/target.h"

/* SHARED: probes in all processes that map the library; FILTERED: only in children; AUTO: shared once the target forks.
 */
enum ses_follow { SES_FOLLOW_AUTO, SES_FOLLOW_SHARED, SES_FOLLOW_FILTERED };

/*
 * Functions of the C API to probe. WORK: only those that work or wait; a runtime without a C API is refused. USUAL: the
 * same functions, and such a runtime is not refused.
 */
enum ses_api { SES_API_ALL, SES_API_WORK, SES_API_USUAL };

#define SES_NO_LIMIT UINT32_MAX /* ses_opts.max_overhead: every call is recorded, whatever that costs */

/* The command that watches the same process by the agent. */
struct ses_remedy {
	char *command; /* NULL: none is known */
	char *lost;    /* the options that it leaves out, joined by commas; "": none; NULL: not known */
};

/* A process, told apart from later ones with its number. */
struct ses_unfit {
	pid_t pid;
	uint64_t started; /* as of struct tgt_usage */
};

/* --kernel-metrics: hardware counters of kernels whose names have one of these parts. */
struct ses_metrics {
	char pattern[256]; /* parts, joined by commas; "": none */
	unsigned each;	   /* launches of one name; 0: the default */
	bool replay;	   /* also counters for which a kernel is executed several times */
};

/*
 * Options of a session. Each field has the value of the option of that name. The command line checks options against
 * each other; sessions do not.
 */
struct ses_opts {
	struct job_choice choice; /* processes that run; nothing is chosen if there is a command */
	char **command;		  /* NULL: none */
	bool command_to_stderr;	  /* its standard output goes to stderr, because stdout has the results */
	uint64_t duration_ns;	  /* 0: until the target ends or ui.woken returns true */
	uint64_t delay_ns;
	uint64_t interval_ns;	/* window time between two calls of ui.tables; 0: no calls */
	bool reset;		/* tables show only their interval */
	bool only_intervals;	/* with reset: nobody reads calls of the whole session, so its model lacks them */
	const char *recording;	/* path; NULL: no recording */
	const char *trace;	/* path; events are kept beside it until the end; NULL: no trace */
	uint64_t trace_part_ns; /* --trace-every, window time; 0: one trace at the end, of ses_events_fd() */
	uint64_t flight_bytes;	/* the newest events are kept in so much memory, for ses_flight_cut(); 0: none are */
	uint64_t max_bytes;	/* --max-size; 0: the default */
	uint64_t ring_bytes;	/* 0: the default */
	unsigned probes;	/* mask of enum probe_group */
	int api;		/* enum ses_api */
	const char *ops;	/* patterns; NULL: all operators */
	const char *runtime;	/* name of an adapter; NULL: whichever is mapped */
	const char *role;	/* NULL: all */
	const char *backend;	/* NULL: the first that the kernel supports */
	unsigned iterations;	/* N: iterations of a window; 0: --iterations was not given */
	unsigned period;	/* M of --iterations N/M; 0: one window */
	unsigned sample_hz;	/* 0: no samples */
	unsigned details;	/* mask of enum mxbpf_detail */
	uint32_t features;	/* mask of mdl_feature.bit */
	unsigned counters;	/* mask of ctr_name()s */
	bool by_thread;		/* tables need rows for each thread */
	bool by_range;		/* and for each range */
	bool by_process;
	bool wait;   /* wait until the process maps a runtime */
	bool renews; /* the caller starts a new session when this one has used up its tables: see ses_worn() */
	const struct ses_unfit *unfit; /* processes that cannot be the first target; borrowed */
	unsigned nunfit;
	bool no_follow;	 /* do not follow child processes */
	bool closed;	 /* with no_follow: attach to nothing after ses_start() */
	int follow;	 /* enum ses_follow */
	bool follow_app; /* the window is open while the program's own profiler runs */
	bool no_account;
	unsigned max_overhead; /* --max-overhead in permille, or SES_NO_LIMIT; 0: it was not given */
	bool exact;	       /* --exact: the same as SES_NO_LIMIT */
	bool slices;	       /* calls that cost more than max_overhead are recorded in slices */
	bool no_returns;       /* stacks will be read, and a return probe would hide callers */
	bool omp;
	bool life;
	bool memory;
	bool sched;
	const char *gpu_jobs; /* --gpu enters processes that match one of these patterns; NULL: all */
	bool agent;	      /* code inside the process records operators */
	bool gpu;	      /* code inside the process is a client of CUPTI */
	const char *
		cupti; /* with gpu: libcupti to load if the process has none, as it sees the path; NULL: look for one */
	struct ses_metrics metrics; /* --kernel-metrics */
	bool no_bpf;		    /* with gpu and command: no probes; see gpu_only.h, as sessions do not use it */
	struct ses_remedy remedy;   /* not an option: for the message that probes slow the process down; borrowed */
	bool verbose;		    /* send messages of SES_DETAIL, too */
};

enum ses_level {
	SES_WARNING, /* a result is missing or incomplete */
	SES_STAGE,   /* a stage begins that Ctrl-C ends: waiting, or the window */
	SES_NOTE,    /* progress */
	SES_DETAIL,  /* only with ses_opts.verbose */
};

/* Functions that a session calls; NULL: none. Their arguments are valid only during the call. */
struct ses_ui {
	void *ctx;
	/* A line of text without line feed. Text from the target in it is not escaped. Called from any thread. */
	void (*tell)(void *ctx, enum ses_level level, const char *text);
	/* The window begins, so from now on there are results. */
	void (*begins)(void *ctx);
	/* About once a second in the window. */
	void (*second)(void *ctx);
	/* An interval has ended. If it returns anything but 0, the session ends, and ses_failed() returns that. */
	int (*tables)(void *ctx, const struct mdl_session *about, struct mdl *m);
	/*
	 * A part of the window has ended that has a trace of its own: ses_opts.trace_part_ns, ses_trace_next(). fd: a
	 * recording of its events, borrowed. Called from a thread of its own, one call at a time. Returns 0 or a code
	 * for ses_traces_failed().
	 */
	int (*trace)(void *ctx, int fd);
	/* Called when wake_fd is readable. Returns true to end the session. */
	bool (*woken)(void *ctx);
	int wake_fd; /* borrowed; -1: none. ses_wake_by() may set it later. */
};

struct session;

/* 0, or -errno with e set; call ses_free() even then. *ses is NULL if there was no memory. o is borrowed until
 * ses_free(). */
int ses_open(const struct ses_opts *o, const struct ses_ui *ui, struct session **ses, struct err *e);
void ses_wake_by(struct session *ses, int fd);
int ses_prepare(struct session *ses, struct err *e);
int ses_start(struct session *ses, struct err *e);
void ses_wait(struct session *ses);
/* 0, or -errno with e set if not everything was folded or written. */
int ses_stop(struct session *ses, struct err *e);
void ses_free(struct session *ses);

/* Pauses or resumes the window. Events in a pause are not recorded, and its time is not part of the window. */
void ses_pause(struct session *ses, bool pause);
/* Calls ui.tables for the current interval, or after ses_stop() for the last one. Returns its code. */
int ses_interval(struct session *ses);
int ses_failed(const struct session *ses); /* code of ui.tables if it ended the session, or 0 */

/* Makes a trace of the next ns of the window. False: one is being made already. In the thread of ses_wait(). */
bool ses_trace_next(struct session *ses, uint64_t ns);
/* With flight_bytes: hands the events that are kept to ui.trace, and begins anew. In the thread of ses_wait(). */
void ses_flight_cut(struct session *ses);
int ses_traces_failed(
	const struct session *ses); /* after ses_stop(): the first code of ui.trace that was not 0, or 0 */

/*
 * With ses_opts.renews, after ses_wait(): the window has ended because processes are not followed for lack of room,
 * while processes that have all ended take the room of a build or of a copy of a library; or because what is left of
 * processes that have ended takes much memory.
 */
bool ses_worn(const struct session *ses);

/* Forwards a signal to the command, unless the terminal has sent it there, too. */
void ses_forward(const struct session *ses, const struct signalfd_siginfo *sig);
bool ses_launched(const struct session *ses); /* true if there is a command that ses_wait_command() has to wait for */
/*
 * Resumes the command and waits for its end; forwards signals from the signalfd. Returns its exit code, or 128 +
 * signal; -1: it never ran.
 */
int ses_wait_command(struct session *ses, int signals);

/* Getters. All pointers are borrowed. Do not use the model before ses_stop(): the session's threads change it. */
const struct mdl_session *ses_about(const struct session *ses); /* the loss is complete after ses_stop() */
struct mdl *ses_model(const struct session *ses);
struct tgt *ses_target(const struct session *ses);	/* NULL: not found */
const struct plan *ses_plan(const struct session *ses); /* of the target */
int ses_events_fd(const struct session *ses);		/* after ses_stop(): a recording of the events that were kept */
uint64_t ses_window_ns(const struct session *ses);	/* without pauses */
/* Calls fn for each process that is watched now, with the plan of its library. Before ses_stop(). */
void ses_each_process(const struct session *ses, void (*fn)(void *ctx, uint32_t tgid, const struct plan *p), void *ctx);
void ses_loss(const struct session *ses, struct mxbpf_loss *loss); /* of all sources, so far */
/*
 * Returns true if threads of the target are stopped, and writes what stopped them: "process 12 (python) is stopped
 * ...".
 */
#define SES_STOPPED_BYTES 256
bool ses_stopped(const struct session *ses, char text[SES_STOPPED_BYTES]);
/* --ops, after ses_stop(): returns false if no operator matched, and then writes the nearest names to `nearest`. */
#define SES_NEAREST_BYTES 300
bool ses_ops_matched(const struct session *ses, char nearest[SES_NEAREST_BYTES]);

/*
 * For `now`. Call ses_keep_lasts() before ses_start(). ses_opens: appends a struct mxbpf_open for each call that was
 * open until at_ns. ses_learn: adds the names of such records to the model. ses_last: the last call of a thread that
 * ended; NULL: none.
 */
void ses_keep_lasts(struct session *ses);
void ses_opens(struct session *ses, uint64_t at_ns, struct buf *opens);
void ses_learn(struct session *ses, void *recs, size_t bytes);
const struct mxbpf_span *ses_last(const struct session *ses, pid_t tid);

#endif
