/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's BPF programs, in the order plan, load, attach, activate, drain, detach. Only this room and ring/ call
 * libbpf. BPF records no event before att_activate(), and the caller activates only after all probes are attached.
 */
#ifndef ATTACH_ATTACH_H
#define ATTACH_ATTACH_H

#include <stdbool.h>

#include "base/err.h"
#include "mxbpf_loss.h"
#include "mxbpf_sched.h"
#include "mxbpf_stack.h"
#include "mxbpf_thread.h"
#include "plan/plan.h"

struct att;

struct att_opts {
	const char *backend;		   /* name of the backend; NULL: the best one that the kernel supports */
	uint32_t ring_bytes;		   /* size of the ring buffer; 0: MXBPF_RING_BYTES */
	unsigned details;		   /* mask of enum mxbpf_detail */
	const struct mxbpf_python *python; /* for MXBPF_DETAIL_STACK; NULL: samples have no Python frames */
	unsigned counters;		   /* mask of counters in the order of ctr_name(), at most MXBPF_COUNTERS_MAX */
	bool follow_app;		   /* recording follows the program's calls to its runtime's own profiler */
	unsigned iterations;		   /* number of iterations in each iteration window; 0: no such windows */
	bool sliced;			   /* the caller may call att_slice_open() */
	bool scans;			   /* the caller may call att_seen_open() */
	bool agent;			   /* an agent records calls, which the programs do not know */
	bool few_calls;			   /* it does so in the processes of this object, whose maps are smaller then */
	bool teams;			   /* the plan has probes for OpenMP parallel regions */
	bool life;			   /* the plan has probes for the lifecycle of operators */
	bool held;			   /* allocations record who made them and their addresses */
	bool sched;			   /* record why and how long threads are off the CPU */
	bool sched_spans;		   /* these records name the open span of the thread */
	bool account;	/* spans carry CPU, run-queue and blocked time if the kernel keeps them: att_accounts() */
	bool samples;	/* the caller will call att_clocks_start() */
	bool verbose;	/* print libbpf's messages on stderr */
	int targets_fd; /* watch_targets_fd(): the map that forks fill; 0: no sharing */
	const struct att *sister; /* another BPF object of the session, for what is measured once; NULL: none */
	uint32_t build; /* distinguishes the objects of a session that share the map: it has one for each build */
};

/* A way to attach probes. Each one is a row of att_backends[]. */
struct att_backend {
	const char *name;    /* for example "uprobe_multi" */
	const char *use;     /* one line for `check` */
	int attach_type;     /* expected attach type of its programs */
	unsigned probes_max; /* limit for one session; 0: no limit */
	int (*supported)(struct err *e);
	bool (*filters)(void); /* true if a probe costs nothing in other processes that map the same library */
	bool shares;	       /* true if it can attach to every process that maps a file (`pid` 0) */
	/*
	 * Attaches one program to n offsets of the file at path in process pid. `fds` has space for n links. Returns
	 * the number of links that it made. On failure it returns -errno and leaves no link behind.
	 */
	int (*attach)(int prog_fd, const char *path, const uint64_t *offs, const uint64_t *cookies, uint32_t n,
		      pid_t pid, int *fds);
	/* Like attach, but the program runs when the functions at these offsets return. NULL: not supported. */
	int (*attach_returns)(int prog_fd, const char *path, const uint64_t *offs, const uint64_t *cookies, uint32_t n,
			      pid_t pid, int *fds);
};
extern const struct att_backend *const att_backends[]; /* best first, NULL-terminated */

/*
 * Returns the backend called `name`, or the best one if name is NULL. Returns NULL and sets e if the kernel does not
 * support it.
 */
const struct att_backend *att_pick(const char *name, struct err *e);

/* A kernel feature as `check` lists it. */
struct att_feature {
	const char *name;
	bool ok;
	bool required;
	char detail[512]; /* the purpose of the feature, or how to get it */
};
/* Tries every feature. Returns the number of rows that it filled. */
unsigned att_features(struct att_feature *rows, unsigned max);
/* Returns false if this thread may not use maps of which it has descriptors. */
bool att_maps_readable(void);

/* Checks that BPF can identify this process from mxbpf's pid namespace. Returns 0 or -ENOTSUP. */
int att_reaches(pid_t tgid, struct err *e);

int att_load(const struct plan *p, pid_t tgid, const struct att_opts *o, struct att **out, struct err *e);
/*
 * Attaches the plan to one process. Call it once per process. `at` has the addresses of that process, and the rows of
 * the plan must be those of att_load(). The process gets links of its own, which the kernel filters by process. After
 * att_share() it uses the shared links.
 */
int att_attach(struct att *a, const struct plan *p, const struct mxbpf_target *at, pid_t tgid, struct err *e);
/*
 * Adds the probes of a plan_late() to a process that is already attached. After att_share(), tgid 0 means all
 * processes.
 */
int att_add(struct att *a, const struct plan *p, pid_t tgid, struct err *e);
/* Removes the probes of a plan_late() from all processes. */
void att_remove(struct att *a, const struct plan *p);
/* Returns how often the functions of a plan_late() were called, as far as their rows count or open spans. */
uint64_t att_entries(const struct att *a, const struct plan *p);
/*
 * Attach the probes of plans again without those for which sites[] is true, by the number of the site. Call them while
 * nothing is recorded: att_leave_out() for each plan, whose array is borrowed until the next call with it or the end
 * (NULL: nothing is left out), att_detach_planned(), and att_again() for each process. 0 or -errno. Processes that come
 * later lack the same probes. only_counts: functions that end iterations count them, and are recorded in slices.
 */
int att_leave_out(struct att *a, const struct plan *p, const bool *sites, bool only_counts);
void att_detach_planned(struct att *a);
int att_again(struct att *a, const struct plan *p, pid_t tgid, struct err *e);
/*
 * Attaches a plan by links without a process filter: BPF then tells targets from other processes. A process that
 * already has links of its own keeps them, and each of its hits counts once. Call it for each plan in use.
 */
int att_share(struct att *a, const struct plan *p, struct err *e);
/* Announces a process that will be attached soon. Until then its hits of shared links do not count as a stranger's. */
void att_expect(struct att *a, pid_t tgid);
bool att_shares(const struct att *a);
/* Does what user space must do for a forked child process that BPF has already made a target. */
void att_join(struct att *a, pid_t tgid);
/*
 * Counts hits of shared links in processes that are no targets, and the cost of one. Call it while probes are attached.
 */
struct att_strangers {
	uint64_t hits;
	uint64_t hit_ns; /* cost of one hit, a lower bound; 0: no hits, or not measured */
};
struct att_strangers att_strangers(struct att *a);
/*
 * Returns true if the process is attached, and copies its addresses to out unless that is NULL. Any thread may call it.
 */
bool att_has(const struct att *a, pid_t tgid, struct mxbpf_target *out);
/*
 * Closes the links of a process that has ended or has called exec. BPF has already forgotten such a process. With
 * `wait` no more hits arrive from these links after the call returns.
 */
void att_leave(struct att *a, pid_t tgid, bool wait);
/* Does what att_leave() does, for a process that BPF still treats as a target. */
void att_drop(struct att *a, pid_t tgid);
/* Frees entries in the maps: those of process tgid, which has ended (0: none), and those of windows that are over. */
void att_forget(struct att *a, pid_t tgid);
/* Returns the time when recording started, or 0 if recording is off. */
uint64_t att_active_since_ns(const struct att *a);
/* Returns true if spans carry their account: the user asked for it and the kernel keeps it. */
bool att_accounts(const struct att *a);
/*
 * Turns recording on or off. After a pause, spans that were open before it count as unmatched, and no later end closes
 * them.
 */
void att_activate(struct att *a, bool on);
/*
 * Functions for att_opts.iterations, which replace att_activate(). att_attach() then attaches only the probes that see
 * iterations end. att_more() attaches the other probes to one process, and att_less() detaches them from all processes.
 * att_set_iteration_window() turns counting on or off, and turning it off closes an open window. With `arm`, the next
 * end of an iteration opens a window. att_windows_fd() becomes readable when `wake_at` iterations are counted, and
 * whenever a window closes.
 */
int att_more(struct att *a, const struct plan *p, pid_t tgid, struct err *e);
void att_less(struct att *a);
void att_set_iteration_window(struct att *a, bool on, bool arm, uint64_t wake_at);
/* Returns a snapshot whose window_ns includes the time of the open window. */
struct mxbpf_iteration_window att_iteration_window(const struct att *a);
/*
 * Functions for att_opts.follow_app, which replace att_activate(). att_app_start() names the process whose profiler
 * calls open and close windows, and the state of that profiler. att_app() allows windows or forbids them. Forbidding
 * closes an open window, and allowing opens one at once if the profiler is running. Windows that open or close make
 * att_windows_fd() readable.
 */
void att_app_start(struct att *a, pid_t tgid, const struct mxbpf_app *now);
void att_app(struct att *a, bool on);
/* Returns a snapshot whose window_ns includes the time of the open window. */
struct mxbpf_app att_app_windows(const struct att *a);
int att_windows_fd(const struct att *a); /* borrowed */
void att_windows_take(struct att *a);
/*
 * With att_opts.counters, this fd is readable when there are new threads. att_births_take() starts counters for them.
 */
int att_births_fd(const struct att *a); /* borrowed; -1: no counters */
void att_births_take(struct att *a);
/* Samples each running thread of the targets hz times a second while recording is on. Stops at detach. */
int att_clocks_start(struct att *a, unsigned hz, struct err *e);
/*
 * Samples again on CPUs that came back after they went offline, or have come online, since the last call. Calls fn for
 * each of them, with 0 or with -errno if there will be no samples from it. Call it a second after the last time, or
 * later.
 */
void att_clocks_check(struct att *a, void (*fn)(void *ctx, unsigned cpu, int err), void *ctx);
/* Removes all probes. Events in the ring stay readable. It is safe to call this twice. */
void att_detach(struct att *a);
void att_free(struct att *a); /* detaches first; NULL is legal */

/* For ring/: fds and maps, borrowed until att_free(). */
enum att_ring { ATT_CALLS, ATT_SWITCHES, ATT_SAMPLES, ATT_RINGS };
int att_ring_fd(const struct att *a, enum att_ring ring); /* -1: the options do not need this ring */
int att_names_fd(const struct att *a);
int att_args_fd(const struct att *a);
int att_tensors_fd(const struct att *a);
/* Reads the stack that BPF stored under stack_id `id`. Returns 0 or -ENOENT. */
int att_read_stack(const struct att *a, uint64_t id, struct mxbpf_stack *s);
/*
 * Reads the loss counts of one ring. They are exact once no probe runs. `stored` stays 0 because the consumer counts
 * it.
 */
void att_loss(const struct att *a, enum att_ring ring, struct mxbpf_loss *loss);
uint64_t att_ring_full(const struct att *a); /* spans that found the ring of calls full */
uint64_t att_hits(const struct att *a);	     /* number of probe hits */
/*
 * With att_opts.sched: passes the current state of every thread to fn as a record. Call it after deactivation. Returns
 * the number of records.
 */
unsigned att_sched_end(struct att *a, void (*fn)(void *ctx, struct mxbpf_sched *r), void *ctx);
/* Returns true if the function of this frame is known to have returned or unwound. */
typedef bool (*att_left_fn)(void *ctx, const struct mxbpf_frame *f);
/*
 * Passes spans to fn that an exception unwound or that have no end of their own, if no later event of their thread
 * closed them. Such a span ends when the exception was thrown, or at until_ns if the throw was not seen. Call it after
 * detach. Returns the number of spans.
 */
unsigned att_left_spans(const struct att *a, uint64_t until_ns, att_left_fn left, void *left_ctx,
			void (*fn)(void *ctx, const struct mxbpf_span *s), void *ctx);
/*
 * Passes each open span of all threads to fn, including those of att_left_spans(). fn may be NULL. May be called at any
 * time: fn gets consistent copies, and frames that change during the read are skipped. Returns the number of spans.
 */
struct att_open {
	const struct mxbpf_frame *frame; /* a copy, borrowed during the call */
	uint32_t tgid;
	unsigned level; /* number of open spans around it on its thread */
	bool async;	/* the function has returned and its thread may run anything else */
};
typedef void (*att_open_fn)(void *ctx, const struct att_open *o);
unsigned att_open_spans(const struct att *a, att_open_fn fn, void *ctx);
/*
 * Passes the open spans that are still on their thread's stack to fn, without those that end by a key on another
 * thread.
 */
void att_open_on_threads(const struct att *a, att_open_fn fn, void *ctx);
/*
 * Checks the cuts (the probed instructions where a function ends). A function whose cut misses ends falls back for
 * good: its spans then end at the next event of their thread. fn gets each such function once, with its number of
 * finished spans. May be called at any time; call it regularly.
 */
void att_check_cuts(struct att *a, const struct plan *p, void (*fn)(void *ctx, const char *name, uint64_t spans),
		    void *ctx);
/* Returns the bytes of kernel memory that the maps occupy. */
uint64_t att_map_bytes(const struct att *a);

#endif
