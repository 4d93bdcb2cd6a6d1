/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live session, as `mxbpf --pid` and `mxbpf record` share it: prepare (nothing touched) -> start (probes in, active)
 * -> wait -> stop (probes out, everything folded) -> results.
 */
#ifndef CMD_LIVE_H
#define CMD_LIVE_H

#include <pthread.h>

#include "attach/attach.h"
#include "base/clock.h"
#include "base/hash.h"
#include "cmd/cmd.h"
#include "cmd/launch.h"
#include "model/model.h"
#include "model/session.h"
#include "plan/plan.h"
#include "record/record.h"
#include "ring/ring.h"
#include "symbols/symbols.h"
#include "target/target.h"

struct live_doing {
	struct tgt_doing doing;
	uint64_t asked_ns; /* before that was read: what began later is not judged by it */
};

/* What threads with open spans do, from live_look() to live_open_spans(). */
struct live_look {
	uint64_t since_ns;   /* when events began to be taken; 0: none are */
	struct hash spans;   /* (start, tid) -> 1 + index of what their threads do */
	struct hash threads; /* (tgid, tid) -> the same */
	struct hash left;    /* (start, tid) of spans whose functions had been left, although no event had told so */
	struct buf doings;   /* struct live_doing */
	uint32_t gone;	     /* the target, if it has no memory any more: its threads are ending; else 0 */
	int err;
};

/* Where a dump ended, counted from the start of the session. */
struct live_mark {
	uint64_t window_ns, paused_ns, hits, left_out, iterations, sampled_iterations;
	uint64_t followed, unfollowed, late_libs, late_refused, stranger_hits, stranger_ns;
	struct mxbpf_loss loss;
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

struct live {
	const struct cmd_opts *o;
	const char *recording; /* path of the recording; NULL: none, or a scratch file for the trace */
	struct plan_opts want; /* of probes */
	unsigned details;      /* of spans: enum mxbpf_detail */
	unsigned counters;     /* mask of ctr_name()s that are counted */
	struct launch launch;  /* the command; pid 0: none */
	struct late late;
	struct follow *follow; /* NULL: nothing but the target is seen */
	struct tgt *target;
	struct tgt *launcher; /* it has no runtime, and started the target; borrowed from waiting, NULL: none */
	struct tgt *waiting;  /* --wait: for a runtime in this process, which becomes the target then; NULL */
	struct plan plan;
	struct att *att;
	struct ring *ring;
	pthread_mutex_t lock;	   /* the ring's second thread holds it while it folds a chunk: model, fresh, folded */
	struct mdl *model;	   /* of the whole session; others only with the lock or after live_stop() */
	struct mdl *fresh;	   /* --reset: of what came since the last dump, without names; NULL: not asked for */
	uint64_t folded;	   /* records in the model */
	struct rec_writer *writer; /* the ring's second thread's until live_stop(); NULL: nothing is kept */
	struct sym *symbols;	   /* names of what comes; likewise */
	struct hash asked;	   /* --ops: name id -> 1 if it is left out, 2 if not; likewise */
	uint64_t shown;		   /* --ops: spans of operators that were not left out; likewise */
	int write_error;	   /* first error of the writer or the model; likewise */
	bool wants_lasts;	   /* `now`: the last call of each thread; likewise */
	struct hash last_of;	   /* tid -> index */
	struct buf lasts;	   /* struct mxbpf_span */
	struct mdl_session session;
	bool ended;	       /* by a signal or with the target; during --delay: before the window began */
	int signals;	       /* signalfd: INT, TERM, HUP; USR1 and USR2 for pauses */
	struct live_mark mark; /* --reset: where the last dump ended */
	struct out *tables;    /* --interval: where the dumps go; NULL: none came yet */
	unsigned ndumps;
	uint64_t dumped;	   /* intervals that are behind us */
	int dump_code;		   /* exit code of a dump that failed */
	uint64_t paused_at_ns;	   /* when the present pause began; 0: none */
	uint64_t prepared_mono_ns; /* when the session began, for --verbose */

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

	uint64_t sched_ended; /* --sched: records of live_sched_end() */

	/* --stats */
	struct mdl *beside; /* --stats-check: of what the kernel added up, the model being of events; else NULL */
	struct buf going;   /* without --reset: accounts of devices as they stand, not in the model yet */
	uint64_t ngoing;    /* records in them */
};

/* 0 or -errno with e set. live_free() in any case. */
int live_prepare(struct live *l, const struct cmd_opts *o, const char *recording, struct err *e);
int live_start(struct live *l, struct err *e);
/* Until -d has passed, a signal came or the target ended. Shows progress on a terminal. */
void live_wait(struct live *l);
int live_stop(struct live *l, struct err *e);
/* Sleeps until a moment of CLOCK_MONOTONIC (UINT64_MAX: none), a sighting, a signal or the end of the target: true at
 * the last two. */
bool live_interrupted(struct live *l, uint64_t until_ns);
void live_free(struct live *l);
/*
 * live_signals.c. open: before any thread starts; a command gets what was ignored before, so behind
 * launch_prepare(). hold: signals that end mxbpf are kept for
 * l->signals, or end it at once again. took: one was read from there. results: the window has ended, and a second INT
 * aborts, which tells what is done.
 */
int live_signals_open(struct live *l, struct err *e);
void live_signals_hold(struct live *l, bool on);
void live_signals_took(int sig);
enum live_done { LIVE_STOPPING, LIVE_RECORDED, LIVE_PRINTED };
void live_signals_results(const struct live *l, enum live_done done);
/* live_roles.c: whether --role takes a process; notes what one is in its job, the first and each that joins. */
bool live_role_fits(const struct live *l, const struct tgt *t);
int live_role_note(struct live *l, const struct tgt *t);
void live_role_join(struct live *l, uint32_t tgid);
int live_describe_host(struct mdl_session *s);
/* Records of this chunk into the model and the recording. From any thread, without the lock. */
void live_fold(struct live *l, void *recs, size_t bytes);

/*
 * live_follow.c: what happens to the processes that are looked at, and to those that will be.
 * live_await: runs the command until it maps a runtime; then l->target and l->plan, and it waits. ERR_TARGET if it ends
 * before. live_follow: the same for children and late libraries of a target that is attached. live_go_on: lets go on
 * what waits. live_sight: reads what was seen.
 */
int live_await(struct live *l, struct err *e);
/* The same for a process that runs, if that was asked for: else, or if it has a runtime, at once. */
int live_await_pid(struct live *l, struct err *e);
/* Before a target is attached to: its children are seen from now on. Not an error if nothing is to be followed. */
int live_follow_open(struct live *l, struct err *e);
struct watch *live_follow_watch(const struct live *l); /* NULL: nothing is followed; borrowed */
int live_follow_plans(struct live *l, int (*fn)(struct live *l, struct plan *p, struct err *e), struct err *e);
pid_t live_root(const struct live *l); /* what was launched, or named: the ancestor of all that is followed */
int live_follow(struct live *l, struct err *e);
void live_go_on(struct live *l);
void live_sight(struct live *l);
void live_sweep(struct live *l);	      /* takes away what is left of processes that have ended; now and then */
int live_sight_fd(const struct live *l);      /* -1: none */
int live_more(struct live *l, struct err *e); /* att_more() to all of them */
void live_follow_free(struct live *l);

/*
 * live_share.c: whether processes share links, and what of it is to be told. live_share_start: after att_load(), before
 * att_attach(). live_share_at_fork: before a child of a process with links of its own is attached to.
 */
int live_share_start(struct live *l, struct err *e);
int live_share_at_fork(struct live *l, struct err *e);
/* A process ran so long, while events were taken, before its probes were active. */
void live_share_gap(struct live *l, uint32_t tgid, uint64_t gap_ns);
/* What strangers pay, as of now. While probes are attached. */
void live_share_account(const struct live *l, struct mdl_session *s);

/*
 * live_late.c: libraries that a process may map at any time. Looks at what one has mapped by now; a forked child has
 * its parent's; one has ended.
 */
bool live_late_wanted(const struct live *l);
void live_late_look(struct live *l, struct tgt *t);
void live_late_fork(struct live *l, pid_t child, pid_t parent);
int live_late_share(struct live *l, struct err *e);
void live_late_leave(struct live *l, pid_t tgid);
void live_late_free(struct live *l);

/* live_pause.c: time since the start, without pauses. */
uint64_t live_window_ns(const struct live *l);
/* Pauses or goes on if the signal says so; false: it says something else. */
bool live_pause_signal(struct live *l, int sig);
void live_close_pause(struct live *l);

/*
 * live_iterations.c, for --iterations. live_iterations: reads what was told at live_marks_fd() (-1: none), attaches and
 * detaches. live_iterations_account: of a session whose duration is the time since the start without pauses, makes that
 * of its windows.
 */
int live_marks_fd(const struct live *l);
void live_iterations_start(struct live *l);
void live_iterations(struct live *l);
void live_iterations_pause(struct live *l, bool pause);
void live_iterations_account(const struct live *l, struct mdl_session *s);
void live_iterations_warn(struct live *l);

/*
 * live_app.c, for --follow-app: the window is open while the program has its runtime's profiler record. live_app_check:
 * whether that can be told at all. live_app: reads what was told at live_marks_fd().
 */
int live_app_check(struct live *l, struct err *e);
void live_app_start(struct live *l);
void live_app(struct live *l);
void live_app_account(const struct live *l, struct mdl_session *s); /* as live_iterations_account() */

/* live_dump.c: the tables as they stand on stdout. An exit code. Not in a signal handler, not on the ring's threads. */
int live_dump(struct live *l);
/* Dumps if the time has come; in window time, when the next one is due (UINT64_MAX: never). Ends the session if stdout
 * takes no more: l->dump_code. */
uint64_t live_dump_due(struct live *l, uint64_t window_ns);

/*
 * live_open.c: live_look() while spans are open and events are taken; live_open_spans(), with the lock, appends a
 * struct mxbpf_open for each that was open until now_ns, and lets go of the look. Their names are still to be learned.
 */
void live_look(struct live *l, struct live_look *k);
void live_open_spans(struct live *l, struct live_look *k, uint64_t now_ns, struct buf *recs);
bool live_was_left(void *look, const struct mxbpf_frame *f); /* an att_left_fn */

/* Keeps the last call of each thread of the target, if that is wanted. */
void live_note_last(struct live *l, const struct mxbpf_rec *r);

/* Gives the model the names of records, with the lock. */
void live_learn(struct live *l, void *recs, size_t bytes);
/* Gives the model one name, with the lock. */
void live_add_name(struct live *l, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text);

/* live_stats.c: what the kernel has added up since the last call, into the models. last: there is no more. Not with the
 * lock. */
void live_take_stats(struct live *l, bool last);

/* live_sched.c: what threads are in the middle of when events cease to be taken, into the model. Not with the lock. */
void live_sched_end(struct live *l);

/* live_ops.c: whether a record, whose names are known, stays with --ops; what it says of spans that do not is taken
 * out. */
bool live_ops_keeps(struct live *l, struct mxbpf_rec *r);
/* Whether --ops leaves out a name, which then is known to stand for so many calls. */
bool live_ops_leave(struct live *l, unsigned cls, uint64_t name_id, uint64_t count);
/* At the start: says so if no function of the plan matches. At the end: the exit code if nothing that came did. */
void live_ops_warn(const struct live *l);
int live_ops_code(const struct live *l);
struct mdl *live_model(const struct live *l); /* an empty one, for what was asked for. For mdl_free(); NULL: -ENOMEM */

/* live_counters.c: what --counters counts, before anything is touched; its names, for the session. */
int live_counters_choose(struct live *l, struct err *e);
int live_counters_describe(struct live *l);

/* live_machine.c. live_machine_read: resumed: what came since the last reading is not in the window. */
int live_machine_start(struct live *l, struct err *e);
void live_machine_read(struct live *l, bool resumed);
void live_machine_end(struct live *l);

/* live_stopped.c: whether threads of the target are stopped, and by whom: "process 12 (python) is stopped ...". */
#define LIVE_STOPPED_BYTES 256
bool live_stopped(const struct live *l, char text[LIVE_STOPPED_BYTES]);

/* live.c: records of this side, which are no events, into models and recording. err: why there are not all. */
void live_keep(struct live *l, const void *recs, size_t bytes, int err);

/* live_omp.c: whether parallel regions can be seen, if that was asked for. 0 or -errno with e set. */
int live_omp(struct live *l, struct err *e);
/* live_life.c: likewise lives of operators. */
int live_life(struct live *l, struct err *e);

/* live_held.c: the same of who holds memory. */
int live_held(struct live *l, struct err *e);

/* live_session.c: everything but times and counts. 0 or -ENOMEM. */
int live_describe(struct live *l);

static inline uint64_t live_now_ns(clockid_t clock)
{
	return clock_ns(clock);
}

#endif
