/* SPDX-License-Identifier: Apache-2.0 */
/* A session, for the files of this room. */
#ifndef SESSION_PRIV_H
#define SESSION_PRIV_H

#include <pthread.h>

#include "agent/agent.h"
#include "attach/attach.h"
#include "base/clock.h"
#include "base/hash.h"
#include "record/record.h"
#include "session/launch.h"
#include "session/feature.h"
#include "session/session.h"
#include "source/rings.h"
#include "symbols/symbols.h"

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull

struct ses_doing {
	struct tgt_doing doing;
	uint64_t asked_ns; /* before that was read: what began later is not judged by it */
};

/* What threads with open spans do, from ses_look() to ses_open_spans(). */
struct ses_look {
	uint64_t since_ns;   /* when events began to be taken; 0: none are */
	struct hash spans;   /* (start, tid) -> 1 + index of what their threads do */
	struct hash threads; /* (tgid, tid) -> the same */
	struct hash left;    /* (start, tid) of spans whose functions had been left, although no event had told so */
	struct buf doings;   /* struct ses_doing */
	uint32_t gone;	     /* the target, if it has no memory any more: its threads are ending; else 0 */
	int err;
};

/* Where an interval ended, counted from the start of the session. */
struct ses_totals {
	uint64_t window_ns, paused_ns, hits, left_out, iterations, sampled_iterations;
	uint64_t followed, unfollowed, late_libs, late_refused, stranger_hits, stranger_ns;
	struct mxbpf_loss losses[SRC_MAX]; /* of each source, */
	uint64_t late[SRC_MAX];		   /* and what came late */
};

/* One of the libraries that a probe with each_lib is for. */
struct late_lib {
	struct tgt_lib lib; /* a copy of its own: whoever had it mapped first may have gone */
	struct plan plan;   /* no sites: it is not probed */
};

struct late {
	struct late_lib **libs; /* owned */
	unsigned nlibs, nattached;
	struct hash in;	    /* (tgid, index): it is probed there */
	struct hash beyond; /* (inode, device) of those that there was no room for */
};

/*
 * A file with a runtime, how it is probed, and the process that had it first. Other processes that map the file share
 * the plan. The first target is the one that was asked for: what the session says of itself is of it.
 */
struct ses_target {
	struct tgt *tgt; /* NULL: not found yet */
	struct plan plan;
};
#define SES_TARGETS_MAX 9

/* The windows of --iterations that were seen, for the agent's calls: it records before and behind them as well. */
#define SES_CUTS_MAX 64
struct ses_cuts {
	struct {
		uint64_t from_ns, to_ns; /* to_ns UINT64_MAX: it is open */
	} last[SES_CUTS_MAX];		 /* the n-th is at n % SES_CUTS_MAX */
	unsigned n;
	unsigned left; /* iterations that the last one still takes */
};

struct session {
	const struct ses_opts *o;
	const struct ses_window *window; /* when events are taken */
	struct ses_ui ui;
	struct plan_opts want; /* of probes */
	unsigned details;      /* of spans: enum mxbpf_detail */
	unsigned counters;     /* mask of ctr_name()s that are counted */
	struct launch launch;  /* the command; pid 0: none */
	struct late late;
	struct follow *follow; /* NULL: nothing but the target is seen */
	struct ses_target targets[SES_TARGETS_MAX];
	unsigned ntargets;    /* at least 1: the first may be still to be found */
	struct tgt *launcher; /* it has no runtime, and started the target; borrowed from waiting, NULL: none */
	struct tgt *waiting;  /* --wait: for a runtime in this process, which becomes the target then; NULL */
	struct att *att;
	struct agt *agent;	  /* --agent; NULL: none was asked for, or it is not in yet */
	struct err agent_failed;  /* why it did not come into the command; read after the sources have ended */
	struct src *agent_source; /* NULL without agent */
	struct acc *accounts;	  /* of the agent's calls; only the hub's thread uses it; NULL without agent */
	struct calls *calls;	  /* which of the agent's calls records were in; NULL: no record is asked for that */
	uint64_t stopped_ns;	  /* atomic: when the agent was told to record no more; 0: it never was */
	bool agent_records;	  /* it was told to */
	uint64_t callless;	  /* atomic: records of which that was not known in time */
	struct ses_cuts cuts;	  /* --iterations: likewise */
	struct buf steps;	  /* likewise: ends of iterations, until the agent's calls of their time are there */
	struct buf joined;	  /* the agent's batch with its accounts; only the hub's thread uses it */
	struct src_hub *hub;	  /* of the sources below, from att_load() on */
	struct src *rings[ATT_RINGS]; /* NULL: was not asked for */
	pthread_mutex_t lock;	      /* a source's thread holds it while it folds a batch: model, fresh, folded */
	struct mdl *model;	      /* of the whole session; others only with the lock or after ses_stop() */
	struct mdl *fresh;	      /* --reset: of what came in this interval, without names; NULL: not asked for */
	uint64_t folded[SRC_MAX];     /* records in the model, by the number of their source */
	struct rec_writer *writer;    /* the sources' threads' until ses_stop(); NULL: nothing is kept */
	struct sym *symbols;	      /* names of what comes; likewise */
	struct hash asked;	      /* --ops: name id -> 1 if it is left out, 2 if not; likewise */
	uint64_t shown;		      /* --ops: spans of operators that were not left out; likewise */
	int write_error;	      /* first error of the writer or the model; likewise */
	bool wants_lasts;	      /* `now`: the last call of each thread; likewise */
	struct hash last_of;	      /* tid -> index */
	struct buf lasts;	      /* struct mxbpf_span */
	struct mdl_session about;     /* its account of itself, for every output */
	bool ended;		      /* by ui.woken or with the target; during --delay: before the window began */
	struct ses_totals mark;	      /* --reset: where the last interval ended */
	uint64_t intervals;	      /* that are behind us */
	int failed;		      /* code of the ui.tables that failed */
	uint64_t paused_at_ns;	      /* when the present pause began; 0: none */
	uint64_t prepared_mono_ns;    /* when the session began, for --verbose */

	/* the machine */
	struct mach *machine;
	struct buf readings; /* the records of the last one; with the lock */
	uint64_t nreadings, reading_ns;

	/* --follow-app */
	struct mxbpf_app app_was; /* before it was attached to */
	uint64_t app_windows;	  /* that have opened or closed, and were said */

	/* --iterations */
	bool sampling;	  /* all is attached */
	bool warned;	  /* that there are none */
	uint64_t windows; /* that have closed and were dealt with */

	uint64_t sched_ended; /* --sched: records of threads that were off the CPU when events ceased to be taken */

	/* --stats */
	struct mdl *beside; /* --stats-check: of what the kernel added up, the model being of events; else NULL */
	struct buf going;   /* without --reset: accounts of devices as they stand, not in the model yet */
	uint64_t ngoing;    /* records in them */
};

/*
 * What is told to whoever runs the session. Details are told only if they were asked for. Any thread may tell.
 */
__attribute__((format(printf, 2, 3))) void ses_warn(const struct session *ses, const char *format, ...);
__attribute__((format(printf, 2, 3))) void ses_stage(const struct session *ses, const char *format, ...);
__attribute__((format(printf, 2, 3))) void ses_note(const struct session *ses, const char *format, ...);
__attribute__((format(printf, 2, 3))) void ses_detail(const struct session *ses, const char *format, ...);

/* Sleeps until a moment of CLOCK_MONOTONIC (UINT64_MAX: none), a sighting, ui.wake_fd or the end of the target: true if
 * the session shall end. */
bool ses_interrupted(struct session *ses, uint64_t until_ns);

/* roles.c: whether --role takes a process; notes what one is in its job, the first and each that joins. */
bool ses_role_fits(const struct session *ses, const struct tgt *t);
int ses_role_note(struct session *ses, const struct tgt *t);
void ses_role_join(struct session *ses, uint32_t tgid);
int ses_describe_host(struct mdl_session *s);
/*
 * fold.c: records of a source, which it did not deliver by itself, into the model and the recording. From any thread,
 * without the lock.
 */
void ses_fold(struct session *ses, enum att_ring ring, void *recs, size_t bytes);
/* The same of what a source delivers: a src_fn. */
void ses_on_batch(void *session, unsigned number, void *recs, size_t bytes);
/*
 * loss.c: the loss of each source, and their sum. ses_loss_now: as it stands; `s` gets sources of its own.
 * ses_loss_end: when the sources have ended; ses_loss_close: then so many spans were closed on this side, which no
 * source sent, and about.open_spans is known. 0 or -ENOMEM.
 */
int ses_loss_now(const struct session *ses, struct mdl_session *s);
int ses_loss_end(struct session *ses);
void ses_loss_close(struct session *ses, unsigned left);
/* What was lost before an interval began is taken off. */
void ses_loss_subtract(struct mdl_session *s, const struct ses_totals *from);

/*
 * follow.c: what happens to the processes that are looked at, and to those that will be.
 * ses_await: runs the command until it maps a runtime; then there is the first target, and it waits. ERR_TARGET if it
 * ends before. ses_follow: the same for children and late libraries of a target that is attached. ses_go_on: lets go on
 * what waits. ses_sight: reads what was seen.
 */
int ses_await(struct session *ses, struct err *e);
/* The same for a process that runs, if that was asked for: else, or if it has a runtime, at once. */
int ses_await_pid(struct session *ses, struct err *e);
/* Before a target is attached to: its children are seen from now on. Not an error if nothing is to be followed. */
int ses_follow_open(struct session *ses, struct err *e);
struct watch *ses_follow_watch(const struct session *ses); /* NULL: nothing is followed; borrowed */
int ses_follow_plans(struct session *ses, int (*fn)(struct session *ses, struct plan *p, struct err *e), struct err *e);
bool ses_follows(const struct session *ses); /* whether children are looked at, now */
pid_t ses_root(const struct session *ses);   /* what was launched, or named: the ancestor of all that is followed */
int ses_follow(struct session *ses, struct err *e);
void ses_go_on(struct session *ses);
void ses_sight(struct session *ses);
void ses_sweep(struct session *ses);	     /* takes away what is left of processes that have ended; now and then */
int ses_sight_fd(const struct session *ses); /* -1: none */
int ses_more(struct session *ses, struct err *e); /* att_more() to all of them */
void ses_follow_free(struct session *ses);

/*
 * share.c: whether processes share links, and what of it is to be told. ses_share_start: after att_load(), before
 * att_attach(). ses_share_at_fork: before a child of a process with links of its own is attached to.
 */
int ses_share_start(struct session *ses, struct err *e);
int ses_share_at_fork(struct session *ses, struct err *e);
/* A process ran so long, while events were taken, before its probes were active. */
void ses_share_gap(struct session *ses, uint32_t tgid, uint64_t gap_ns);
/* What strangers pay, as of now. While probes are attached. */
void ses_share_account(const struct session *ses, struct mdl_session *s);

/*
 * late.c: libraries that a process may map at any time. Looks at what one has mapped by now; a forked child has
 * its parent's; one has ended.
 */
bool ses_late_wanted(const struct session *ses);
void ses_late_look(struct session *ses, struct tgt *t);
void ses_late_fork(struct session *ses, pid_t child, pid_t parent);
int ses_late_share(struct session *ses, struct err *e);
void ses_late_leave(struct session *ses, pid_t tgid);
void ses_late_free(struct session *ses);

/* pause.c */
void ses_close_pause(struct session *ses);

/*
 * When events are taken. pause.c has the window of most sessions, which is open from start to end. ses_rests: no event
 * is taken at the moment, and the window does not grow. ses_window_account: as account() of struct ses_window.
 */
extern const struct ses_window ses_one_window;
bool ses_rests(const struct session *ses);
void ses_window_account(const struct session *ses, struct mdl_session *s);

/* app.c, for --follow-app. ses_app_check: whether mxbpf can tell when the program's profiler runs. */
extern const struct ses_window ses_app_window;
int ses_app_check(struct session *ses, const struct ses_target *of, struct err *e);

/* interval.c: ends an interval if the time has come; in window time, when the next one ends (UINT64_MAX: never). */
uint64_t ses_interval_due(struct session *ses, uint64_t window_ns);

/*
 * open.c: ses_look() while spans are open and events are taken; ses_open_spans(), with the lock, appends a
 * struct mxbpf_open for each that was open until now_ns, and lets go of the look. Their names are still to be learned.
 */
void ses_look(struct session *ses, struct ses_look *k);
void ses_open_spans(struct session *ses, struct ses_look *k, uint64_t now_ns, struct buf *recs);
bool ses_was_left(void *look, const struct mxbpf_frame *f); /* an att_left_fn */

/* Keeps the last call of each thread of the target, if that is wanted. */
void ses_note_last(struct session *ses, const struct mxbpf_rec *r);

/* Gives the model the names of records, with the lock. */
void ses_learn_locked(struct session *ses, void *recs, size_t bytes);
/* Gives the model one name, with the lock. */
void ses_add_name(struct session *ses, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text);

/* stats.c: what the kernel has added up since the last call, into the models. last: there is no more. Not with the
 * lock. */
void ses_take_stats(struct session *ses, bool last);

/* ops.c: whether a record, whose names are known, stays with --ops; what it says of spans that do not is taken
 * out. */
bool ses_ops_keeps(struct session *ses, struct mxbpf_rec *r);
/* Whether --ops leaves out a name, which then is known to stand for so many calls. */
bool ses_ops_leave(struct session *ses, unsigned cls, uint64_t name_id, uint64_t count);
/* At the start: says so if no function of the plan matches. */
void ses_ops_warn(const struct session *ses);
/* An empty model for what was asked for. For mdl_free(); NULL: -ENOMEM. */
struct mdl *ses_new_model(const struct session *ses);

/* fold.c: records of this side, which are no events, into models and recording. err: why there are not all. */
void ses_keep(struct session *ses, const void *recs, size_t bytes, int err);
/* Counts n records of a source as stored that have no fold. err: as in ses_keep(). */
void ses_took(struct session *ses, unsigned number, uint64_t n, int err);

/*
 * agent.c. ses_agent: whether there is an agent for the runtime. ses_agent_open: brings it in, silent, and adds its
 * source to the hub; 0, also if none was asked for, or -errno with e set. ses_agent_take: it records, or does not.
 */
int ses_agent(struct session *ses, const struct ses_target *of, struct err *e);
int ses_agent_open(struct session *ses, struct err *e);
void ses_agent_take(struct session *ses, bool on);
/* Soon after it was told to record no more, when the time of that has been taken. */
void ses_agent_settle(struct session *ses);
/* With the agent: puts the operator into a record of BPF's that it was in. */
void ses_agent_fill(struct session *ses, struct mxbpf_rec *r);
/* After the last record: warns of what the agent could not see. */
void ses_agent_end(struct session *ses);
/*
 * Processes a batch of a source before it is folded. The agent's calls get their accounts from the records of the other
 * sources, which are kept for that. Returns whether the batch is to be folded; *recs is borrowed until the next call.
 */
bool ses_agent_join(struct session *ses, unsigned number, void **recs, size_t *bytes);

/* describe.c: everything but times and counts; a note for every output. 0 or -ENOMEM. */
int ses_describe(struct session *ses);
__attribute__((format(printf, 3, 4))) int ses_add_note(struct mdl_session *s, const char *name, const char *fmt, ...);

#endif
