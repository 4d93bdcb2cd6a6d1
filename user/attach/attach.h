/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BPF in the kernel: plan -> load -> attach -> activate -> drain -> detach. This room and
 * ring/ alone see libbpf. Until att_activate() no event is taken; until everything is attached nothing is activated.
 */
#ifndef ATTACH_ATTACH_H
#define ATTACH_ATTACH_H

#include <stdbool.h>

#include "base/err.h"
#include "mxbpf_loss.h"
#include "mxbpf_sched.h"
#include "mxbpf_stack.h"
#include "mxbpf_stats.h"
#include "mxbpf_thread.h"
#include "plan/plan.h"

struct att;

struct att_opts {
	const char *backend;		   /* name of the one to use; NULL: the best that the kernel has */
	uint32_t ring_bytes;		   /* 0: MXBPF_RING_BYTES */
	unsigned details;		   /* mask of enum mxbpf_detail */
	const struct mxbpf_python *python; /* with MXBPF_DETAIL_STACK; for samples, if there is one */
	enum mxbpf_stats stats;
	uint32_t stats_rows; /* 0: MXBPF_STATS_ROWS_MAX */
	unsigned counters;   /* mask of ctr_name()s, at most MXBPF_COUNTERS_MAX */
	bool follow_app;     /* windows open and close with what the target says to its runtime's own profiler */
	unsigned iterations; /* of a window that opens and closes with iterations; 0: it does not */
	bool teams;	     /* parallel regions are among what is probed */
	bool life;	     /* lives of operators are */
	bool held;	     /* allocations say who made them, and where they are */
	bool sched;	     /* what becomes of threads off the CPU */
	bool sched_spans;    /* and in which span they were */
	bool account;	     /* spans bear their account, where the kernel keeps one: att_accounts() */
	bool samples;	     /* att_clocks_start() will be called */
	bool verbose;	     /* libbpf's own messages on stderr */
	int targets_fd;	     /* watch_targets_fd(): the map that forks fill; 0: none */
};

/* A way of attaching; one row of att_backends[]. */
struct att_backend {
	const char *name;    /* "uprobe_multi" */
	const char *use;     /* what it does, for `check` */
	int attach_type;     /* that its programs are loaded with */
	unsigned probes_max; /* of one session; 0: any number */
	int (*supported)(struct err *e);
	bool (*filters)(void); /* whether other processes on the same library are left alone */
	bool shares;	       /* it can attach to all processes that map a file: `pid` 0 */
	/*
	 * Attaches one program to n offsets of the file at path for process pid. fds has room for n links; returns how
	 * many it made, or -errno: then none is left.
	 */
	int (*attach)(int prog_fd, const char *path, const uint64_t *offs, const uint64_t *cookies, uint32_t n,
		      pid_t pid, int *fds);
};
extern const struct att_backend *const att_backends[]; /* best first, NULL-terminated */

/* The backend of that name, or with NULL the best, if the kernel supports it; else NULL with e set. */
const struct att_backend *att_pick(const char *name, struct err *e);

/* A feature of the kernel as `check` lists it. */
struct att_feature {
	const char *name;
	bool ok;
	bool required;
	char detail[512]; /* what it is for, or the remedy */
};
/* Tries every feature; returns how many rows were filled. */
unsigned att_features(struct att_feature *rows, unsigned max);

/* Whether BPF can tell a process from here: pid namespaces. 0 or -ENOTSUP. */
int att_reaches(pid_t tgid, struct err *e);

int att_load(const struct plan *p, pid_t tgid, const struct att_opts *o, struct att **out, struct err *e);
/*
 * Once for each process, where things lie as `at` says; the rows of the plan have to be those of att_load(). The
 * process gets links of its own, which the kernel filters by process, or, after att_share(), uses those that are
 * shared.
 */
int att_attach(struct att *a, const struct plan *p, const struct mxbpf_target *at, pid_t tgid, struct err *e);
/* The sites of a plan_late() as well, in a process that is attached; 0: in all, after att_share(). */
int att_add(struct att *a, const struct plan *p, pid_t tgid, struct err *e);
/*
 * Attaches a plan by links without a process filter: BPF tells targets from strangers. Processes that have links of
 * their own keep them, and their hits count once. Call it for each plan that is in use.
 */
int att_share(struct att *a, const struct plan *p, struct err *e);
bool att_shares(const struct att *a);
/* BPF made a forked child a target already: what user space does for one. */
void att_join(struct att *a, pid_t tgid);
/* Probe hits of shared links in processes that are no targets, and what one took; call it while probes are attached. */
struct att_strangers {
	uint64_t hits;
	uint64_t hit_ns; /* measured on this process, a lower bound; 0: there were none, or it could not be measured */
};
struct att_strangers att_strangers(struct att *a);
/* Whether a process is attached and, unless out is NULL, where things lie in it. From any thread. */
bool att_has(const struct att *a, pid_t tgid, struct mxbpf_target *out);
/*
 * Closes the links of a process that has ended or has become another program: BPF has forgotten it already. With `wait`
 * no hit comes from them any more on return.
 */
void att_leave(struct att *a, pid_t tgid, bool wait);
/* The same for a process that BPF takes for a target. */
void att_drop(struct att *a, pid_t tgid);
/* Makes room in the maps: takes out what is of this process, which has gone (0: none), and of windows that are over. */
void att_forget(struct att *a, pid_t tgid);
/* When events began to be taken; 0: none are. */
uint64_t att_active_since_ns(const struct att *a);
/* Off and on again: what was open before is unmatched, and no end that comes after closes it. */
bool att_accounts(const struct att *a);
void att_activate(struct att *a, bool on);
/*
 * With att_opts.iterations, att_attach() attaches only what tells the end of one, and instead of att_activate():
 * att_more attaches the rest to one process, att_less detaches the rest from all. att_set_iteration_window says whether
 * iterations count, which closes an open window when it ends, and wakes whoever polls att_windows_fd() at that many
 * of them, and whenever a window has closed; arm: the next end opens one.
 */
int att_more(struct att *a, const struct plan *p, pid_t tgid, struct err *e);
void att_less(struct att *a);
void att_set_iteration_window(struct att *a, bool on, bool arm, uint64_t wake_at);
/* As of one moment, the open window's time in window_ns. */
struct mxbpf_iteration_window att_iteration_window(const struct att *a);
/*
 * With att_opts.follow_app, instead of att_activate(): whose calls open and close windows, and whether they may. An
 * open one is closed with !on; with `on` one opens at once if the last calls, or at first `now`, say so. What it does
 * is told at att_windows_fd().
 */
void att_app_start(struct att *a, pid_t tgid, const struct mxbpf_app *now);
void att_app(struct att *a, bool on);
/* As of one moment, the open window's time in window_ns. */
struct mxbpf_app att_app_windows(const struct att *a);
int att_windows_fd(const struct att *a); /* borrowed */
void att_windows_take(struct att *a);
/* With att_opts.counters: readable when there are new threads, whose events att_births_take() begins to count. */
int att_births_fd(const struct att *a); /* borrowed; -1: none */
void att_births_take(struct att *a);
/* From now on, while it is active: a sample of each thread of the targets that runs, hz times a second. Until detach.
 */
int att_clocks_start(struct att *a, unsigned hz, struct err *e);
/* Removes every probe; events already in the ring stay readable. Safe to call twice. */
void att_detach(struct att *a);
void att_free(struct att *a); /* detaches; NULL is legal */

/* For ring/: borrowed fds and maps, valid until att_free(). */
enum att_ring { ATT_CALLS, ATT_SWITCHES, ATT_SAMPLES, ATT_RINGS };
int att_ring_fd(const struct att *a, enum att_ring ring); /* -1: what comes there was not asked for */
int att_names_fd(const struct att *a);
int att_args_fd(const struct att *a);
int att_tensors_fd(const struct att *a);
/* What BPF saw under a stack_id of its own. 0, -ENOENT. */
int att_read_stack(const struct att *a, uint64_t id, struct mxbpf_stack *s);
/* Reads what BPF counted for one ring. The counts are exact when no probe runs. `stored` is 0: the consumer counts it.
 */
void att_loss(const struct att *a, enum att_ring ring, struct mxbpf_loss *loss);
uint64_t att_hits(const struct att *a); /* the number of probe hits */
/*
 * With att_opts.sched, after deactivation: what threads have been doing since they were last switched, as records, how
 * many.
 */
unsigned att_sched_end(struct att *a, void (*fn)(void *ctx, struct mxbpf_sched *r), void *ctx);
/* Whether the function of a frame is known to have been left. */
typedef bool (*att_left_fn)(void *ctx, const struct mxbpf_frame *f);
/*
 * Spans that an exception left, or that have no end of their own, and that no later event of their thread closed, as
 * records. They last until the exception was thrown, or until_ns if that was not seen. Returns how many were given to
 * fn. After detach.
 */
unsigned att_left_spans(const struct att *a, uint64_t until_ns, att_left_fn left, void *left_ctx,
			void (*fn)(void *ctx, const struct mxbpf_span *s), void *ctx);
/*
 * Spans open at this moment over all threads, those of att_left_spans() among them; how many. fn (NULL: none) gets
 * each. At any time: what changes while it is read is left out, and what fn gets was so at one moment.
 */
struct att_open {
	const struct mxbpf_frame *frame; /* a copy; borrowed */
	uint32_t tgid;
	unsigned level; /* frames of its thread around it */
	bool async;	/* its function has returned: its thread may do anything else */
};
typedef void (*att_open_fn)(void *ctx, const struct att_open *o);
unsigned att_open_spans(const struct att *a, att_open_fn fn, void *ctx);
/*
 * The self-check of the cuts: functions whose cut is found not to hold fall back for good, their spans end with their
 * thread's next event. fn gets each new one once, with how many spans had ended by then. At any time, now and then.
 */
void att_check_cuts(struct att *a, const struct plan *p, void (*fn)(void *ctx, const char *name, uint64_t spans),
		    void *ctx);
/*
 * With att_opts.stats: rows and accounts of devices as the kernel made them since the last call; each row once for each
 * of its stripes. `keep` leaves the accounts in the kernel, where they go on. No program is adding to what fn gets, but
 * for accounts that are kept. 0 or -errno.
 */
int att_take_rows(struct att *a, void (*fn)(void *ctx, const struct mxbpf_stat_key *key, const struct mxbpf_stat *row),
		  void *ctx);
int att_take_mems(struct att *a, bool keep,
		  void (*fn)(void *ctx, const struct mxbpf_stat_mem_key *key, const struct mxbpf_stat_mem *mem),
		  void *ctx);
/* Bytes of kernel memory that the maps take. */
uint64_t att_map_bytes(const struct att *a);

#endif
