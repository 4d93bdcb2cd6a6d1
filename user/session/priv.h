/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a session, for its own files and for the load.c of features. */
#ifndef SESSION_PRIV_H
#define SESSION_PRIV_H

#include <pthread.h>

#include "attach/attach.h"
#include "base/clock.h"
#include "base/hash.h"
#include "feature/agents/agents.h"
#include "job/choose.h"
#include "job/launch.h"
#include "model/feature.h"
#include "record/record.h"
#include "session/agent.h"
#include "session/feature.h"
#include "session/session.h"
#include "source/gpu.h"
#include "source/rings.h"
#include "symbols/symbols.h"
#include "targets/builds.h"
#include "targets/process.h"

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull

struct ses_doing {
	struct tgt_doing doing;
	uint64_t asked_ns; /* time just before the reading; spans that began later are not covered */
};

/* The state of threads with open spans. ses_look() fills it, ses_open_spans() frees it. */
struct ses_look {
	uint64_t since_ns;   /* time since which events are recorded; 0: they are not */
	struct hash spans;   /* (start, tid) -> 1 + index of the thread in doings */
	struct hash threads; /* (tgid, tid) -> 1 + index in doings */
	struct hash left;    /* (start, tid) of spans whose functions have returned without an event */
	struct buf doings;   /* struct ses_doing */
	uint32_t gone;	     /* the target, if it is exiting and has no memory any more; else 0 */
	int err;
};

/* Totals since the start of the session, at the end of an interval. */
struct ses_totals {
	uint64_t window_ns, paused_ns, hits, left_out, iterations, sampled_iterations;
	uint64_t followed, unfollowed, late_libs, late_refused, stranger_hits, stranger_ns, added_ns, thread_ns;
	struct mxbpf_loss losses[SRC_MAX]; /* by the number of the source */
	uint64_t late[SRC_MAX];		   /* records that came late, by the number of the source */
};

/* Traces of parts of the window, see traces.c. Only the thread of ses_wait() uses them, except where it is said. */
struct ses_traces {
	uint64_t until_ns;	/* window time at which the current part ends; UINT64_MAX: there is none */
	struct ses_totals mark; /* at the start of the current part */
	bool writing;		/* a thread writes a part, and uses the members below until it is joined */
	pthread_t thread;
	int fd;	    /* recording of the part */
	int failed; /* code of the first part that could not be written */
};

/*
 * A file with a runtime, the plan of its probes, and the process that mapped it first. Other processes that map the
 * file share the plan. The first target is the one that the user asked for, and the session's description is about it.
 */
struct ses_target {
	struct tgt *tgt; /* NULL: not found yet */
	struct plan plan;
	struct ses_build *build; /* borrowed */
};
#define SES_TARGETS_MAX 16

/* The processes that the user chose, if they are or may become several. Each is followed with its children. */
struct ses_roots {
	struct job *job;
	unsigned alive; /* those that have not ended */
	int ended_fd;	/* epoll: readable when one has ended */
	bool several;	/* false: the user named one process, and the session ends with it */
};

/* --follow-app, for app.c. Only the main thread uses it. */
struct ses_app {
	struct mxbpf_app was; /* state of the program's profiler before probes were attached */
	uint64_t windows;     /* openings and closings that were noted */
};

/* Where libraries of a process look for a tool of NVTX, and the injection library that is loaded for them. */
#define SES_NVTX_MAX 64
struct ses_nvtx {
	uint64_t variables[SES_NVTX_MAX];
	struct agt_beside beside; /* nargs 0: there are none */
};

/* Ranges of NVTX, for nvtx.c. Only the main thread uses it. */
struct ses_nvtx_files {
	bool offered;	       /* a process has, or will have, an injection library for NVTX */
	struct ses_nvtx first; /* of the first process */
	struct hash index;     /* (device, inode) -> 1 + index in files */
	struct buf files;      /* struct nvtx_file: what was found in libraries of all processes */
};

/* What fold.c has counted, and loss.c reads. With the lock. Indices are the numbers of sources. */
struct ses_kept {
	uint64_t folded[SRC_MAX];  /* records in the model */
	uint64_t dropped[SRC_MAX]; /* of them: records that were dropped because there was no memory */
	bool short_of_memory;	   /* there was no memory for a record, or for a name */
};

/* --ops, for ops.c. With the lock. */
struct ses_ops {
	struct hash asked; /* name id -> 1: excluded, 2: shown */
	uint64_t shown;	   /* spans of operators that are shown */
};

/* `now`: the last call of each thread, for open.c. With the lock. */
struct ses_lasts {
	bool wanted;
	struct hash of;	  /* tid -> index in spans */
	struct buf spans; /* struct mxbpf_span */
};

/* --interval and --reset, for interval.c. Only the main thread uses it. */
struct ses_interval {
	struct ses_totals mark; /* --reset: the end of the last interval */
	uint64_t n;		/* intervals that have ended */
	int failed;		/* code of ui.tables if it failed */
	bool ends;		/* features make the last readings of the interval */
};

struct session {
	struct ses_opts opts;		 /* those of the caller, without options that were refused: ses_refuse() */
	const struct ses_opts *o;	 /* points to opts, for all who only read them */
	const struct ses_window *window; /* when events are recorded */
	struct ses_ui ui;
	struct plan_opts want; /* probes to plan */
	unsigned details;      /* mask of enum mxbpf_detail, of spans of the first build */
	struct launch launch;  /* the command; pid 0: none */
	struct ses_nvtx_files nvtx;
	struct follow *follow; /* NULL: only the target is watched */
	struct ses_target targets[SES_TARGETS_MAX];
	unsigned ntargets;				 /* at least 1; the first may not be found yet */
	struct ses_build builds[SES_BUILDS_MAX], *first; /* first: the first of them */
	unsigned nbuilds;				 /* atomic: at least 1 */
	struct ses_processes processes;
	struct tgt *named; /* the process that the user named, while it has no runtime itself; NULL: it is the target */
	struct ses_roots roots;
	struct ses_agent agent;
	struct agents agents;
	struct src_hub *hub; /* set after att_load() */
	pthread_mutex_t
		lock;	   /* protects what follows, up to `lasts`; a source's thread holds it while it folds a batch */
	struct mdl *model; /* of the whole session */
	struct mdl *fresh; /* --reset: model of this interval, without names; NULL: not requested */
	struct ses_kept kept;
	struct rec_writer *writer; /* NULL: records are not kept */
	struct ses_ops ops;
	int write_error; /* first error of the writer or the model */
	struct ses_lasts lasts;
	struct mdl_session about; /* the session's description, for every output */
	bool ended;		  /* ses_wait() returns; during --delay: no window begins */
	bool worn;		  /* see ses_worn() */
	struct ses_interval interval;
	struct ses_traces traces;
	bool pause_asked;	   /* before the window, which begins with a pause then */
	uint64_t paused_at_ns;	   /* when this pause began; 0: not paused */
	uint64_t prepared_mono_ns; /* when the session began, for --verbose */
	struct ses_app app;
	void *states[MDL_FEATURES_MAX]; /* see ses_state(); by place in mdl_features[]; owned */
};

/*
 * Send a message to the user: a warning, the start of a stage, a note, a detail for --verbose. Any thread may call
 * these.
 */
__attribute__((format(printf, 2, 3))) void ses_warn(const struct session *ses, const char *format, ...);
__attribute__((format(printf, 2, 3))) void ses_stage(const struct session *ses, const char *format, ...);
__attribute__((format(printf, 2, 3))) void ses_note(const struct session *ses, const char *format, ...);
__attribute__((format(printf, 2, 3))) void ses_detail(const struct session *ses, const char *format, ...);
/*
 * Decides what happens when an option cannot be served, for the reason in *e. If the process is the reason
 * (ERR_TARGET), the session goes on without the option: this writes a warning and a note, clears *e and returns 0.
 * Otherwise returns e->code.
 */
int ses_refuse(struct session *ses, struct err *e);

/*
 * Sleeps until a time of CLOCK_MONOTONIC (UINT64_MAX: forever), a sighting, ui.wake_fd or the end of the target.
 * Returns true if the session has to end.
 */
bool ses_interrupted(struct session *ses, uint64_t until_ns);

/*
 * fold.c. ses_fold: folds records into the model and the recording that the session made itself, in the name of a
 * source of their build. From any thread, without the lock.
 */
void ses_fold(struct ses_build *b, enum att_ring ring, void *recs, size_t bytes);
/* Folds a batch that a source delivers; a src_fn. */
void ses_on_batch(void *session, unsigned number, void *recs, size_t bytes);
/*
 * loss.c: the loss of each source, and their sum. ses_loss_now: the loss so far; `s` gets its own array of sources.
 * ses_loss_end: the loss after the sources have ended. ses_loss_close: adds `left` spans that the session closed
 * itself, when about.open_spans is known. 0 or -ENOMEM.
 */
int ses_loss_now(const struct session *ses, struct mdl_session *s);
int ses_loss_end(struct session *ses);
void ses_loss_close(struct session *ses, unsigned left);
/* Subtracts the loss before the interval. */
void ses_loss_subtract(struct mdl_session *s, const struct ses_totals *from);

/* pause.c. Between ses_hold() and ses_release() nothing is recorded. No output names it as a pause. */
void ses_close_pause(struct session *ses);
void ses_hold(struct session *ses);
void ses_release(struct session *ses);

/*
 * Windows: the times in which events are recorded. pause.c has the window of most sessions, which is open from start to
 * end. ses_rests: returns true if no event is recorded now and the window does not grow. ses_window_account: calls
 * account() of struct ses_window.
 */
extern const struct ses_window ses_one_window;
bool ses_rests(const struct session *ses);
void ses_window_account(const struct session *ses, struct mdl_session *s);

/* app.c, for --follow-app. ses_app_check: checks that mxbpf can see when the program's profiler runs. */
extern const struct ses_window ses_app_window;
int ses_app_check(struct session *ses, const struct ses_target *of, struct err *e);

/* interval.c: ends the interval if it is due. Returns when the next one ends, in window time (UINT64_MAX: never). */
uint64_t ses_interval_due(struct session *ses, uint64_t window_ns);
/*
 * ses_about_now: copies the description as of now, with the lock; the copy owns only its sources. 0 or -ENOMEM.
 * ses_totals_of: what a description has counted. ses_about_since: leaves what was counted after `from`.
 */
int ses_about_now(const struct session *ses, struct mdl_session *s);
void ses_totals_of(const struct mdl_session *s, struct ses_totals *t);
void ses_about_since(struct mdl_session *s, const struct ses_totals *from);

/*
 * traces.c. ses_traces_open: the window begins; 0, or -errno with e set. ses_traces_due: ends the part if it is due,
 * and returns when the current one ends, in window time (UINT64_MAX: there is none). ses_traces_end: after the last
 * record.
 */
int ses_traces_open(struct session *ses, struct err *e);
uint64_t ses_traces_due(struct session *ses, uint64_t window_ns);
void ses_traces_end(struct session *ses);

/*
 * open.c. Call ses_look() while events are taken. Later ses_open_spans(), with the lock, appends a struct mxbpf_open
 * for each span that was open until now_ns, and frees the look. The caller has to learn the names of these records.
 */
void ses_look(struct session *ses, struct ses_look *k);
void ses_open_spans(struct session *ses, struct ses_look *k, uint64_t now_ns, struct buf *recs);
bool ses_was_left(void *look, const struct mxbpf_frame *f); /* an att_left_fn */

/*
 * nvtx.c: finds libraries of a running process that can still be given a tool of NVTX. The agent brings it along.
 * ses_nvtx_note: says whose ranges cannot be seen in the first process. ses_nvtx_beside: NULL: nothing comes along.
 */
void ses_nvtx_find(struct session *ses, struct tgt *t, struct ses_nvtx *n);
void ses_nvtx_note(struct session *ses, const struct ses_target *of);
const struct agt_beside *ses_nvtx_beside(const struct ses_nvtx *n);
void ses_nvtx_free(struct session *ses);
/* `now`: keeps the last call of each thread. */
void ses_note_last(struct session *ses, const struct mxbpf_rec *r);

/* Adds the names of records to the model. With the lock. */
void ses_learn_locked(struct session *ses, void *recs, size_t bytes);
/* Learns the names of a record and the text of its stack, and gives it the text as stack_id. Without the lock. */
uint64_t ses_learn_stack(struct session *ses, struct mxbpf_rec *r, const char *text, size_t len);
/* Adds one name to the model. With the lock. */
void ses_add_name(struct session *ses, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text);

/*
 * ops.c: returns true if --ops keeps a record. The names of the record must be known. Removes excluded spans from it.
 */
bool ses_ops_keeps(struct session *ses, struct mxbpf_rec *r);
/* At the start: warns if no function of the plan matches. */
void ses_ops_warn(const struct session *ses);
/* Returns an empty model with the requested kinds of rows, for mdl_free(). NULL: out of memory. */
struct mdl *ses_new_model(const struct session *ses);

/* fold.c: folds records that are no events of a source. err: error of the caller, which is kept for the end. */
void ses_keep(struct session *ses, const void *recs, size_t bytes, int err);
/* Call after the last record. Says what was dropped because there was no memory. */
void ses_tell_memory(struct session *ses);
/* Counts n records of a source as stored although they are not folded. err: as in ses_keep(). */
void ses_took(struct session *ses, unsigned number, uint64_t n, int err);

/* describe.c: fills ses->about except for times and counts. ses_add_note: adds a note for every output. 0 or -ENOMEM.
 */
int ses_describe(struct session *ses);
int ses_describe_build(struct ses_build *b); /* adds what a further build has */
__attribute__((format(printf, 3, 4))) int ses_add_note(struct mdl_session *s, const char *name, const char *fmt, ...);

#endif
