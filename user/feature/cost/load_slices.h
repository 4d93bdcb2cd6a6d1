/* SPDX-License-Identifier: Apache-2.0 */
/* What load_slices.c (levels, processes) and load_slice.c (the slice that is under way) share. See slices.h. */
#ifndef FEATURE_COST_LOAD_SLICES_H
#define FEATURE_COST_LOAD_SLICES_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/slice.h"
#include "base/buf.h"
#include "feature/cost/slices.h"
#include "mxbpf_cost.h"
#include "session/priv.h"

#define ITERATIONS 3		   /* in the first slice of a process */
#define RESCAN_NS  (60 * NS_PER_S) /* between two looks for functions that are called, at least */
#define OWN_SHARE  100 /* they take mxbpf at most one part in so many of a CPU, and so does attaching at 1 % */
#define FAILED_NS  (600 * NS_PER_S) /* before a slice is tried again that could not be attached */

/*
 * Which probes stay attached between slices. LEVEL_LITTLE: those that cost little. LEVEL_MARKS: only those that see
 * iterations end; between slices they just count. LEVEL_NOTHING: none, so the number of iterations is an estimate.
 */
enum level { LEVEL_ALL, LEVEL_LITTLE, LEVEL_MARKS, LEVEL_NOTHING };

struct build_state {
	enum level level;
	uint64_t costs[MXBPF_THREADS_MAX]; /* of threads, at the last look */
	uint64_t last_ns;
	double overhead;	     /* of what is attached always, relative to the time without */
	uint64_t retry_at, retry_ns; /* from LEVEL_MARKS on: when LEVEL_LITTLE is tried again */
	unsigned nlate;		     /* libraries that were mapped later, at the last record of what rows lack */
	bool told;
	bool failed;		/* all probes were attached, and cost more than the limit */
	bool strangers;		/* strangers paid more than the limit, so all probes are not attached again */
	uint64_t stranger_hits; /* at the last look */
	unsigned nlooks;	/* at its cost */
	unsigned over;		/* the last of them that were above the limit */
};

struct plan_state {
	const struct plan *plan; /* NULL: not used */
	bool *left_out;		 /* owned: by site, what is not attached always */
	bool *slice;		 /* owned: by site, what the next slice leaves out */
	bool *called;		 /* owned: by site, its function is called, as a scan has seen */
	uint64_t *guards;	 /* owned: see plan_guards(), of functions that were not called yet; NULL: not known */
	uint32_t guarded;	 /* the process with these guards */
	bool scanned;
	uint64_t scan_at; /* when the next scan is due */
	double overhead;  /* of all its probes, as scans say, relative to the time without */
	double little;	  /* the same of those that cost little, */
	double by_agent;  /* and of the agent */
};

/* A process of a build that has slices. */
struct proc {
	uint32_t tgid;
	struct ses_target *of;
	uint64_t next_ns;		       /* when its next slice is due */
	uint64_t until_ns, iterations;	       /* up to where its slices stand for */
	uint64_t looked_ns, looked_iterations; /* at its last slice */
	uint64_t iteration_ns;		       /* of one, without watching; 0: none ended */
	double share;			       /* of its time that hits took in the last slice */
	bool seen, measured;
	bool counted; /* iterations of a slice were */
};

struct slices {
	struct build_state builds[SES_BUILDS_MAX];
	struct plan_state plans[SES_TARGETS_MAX];
	struct buf procs; /* struct proc */
	uint64_t nsettled;
	uint64_t next_ns;     /* of any process */
	uint64_t interval_ns; /* when this interval began */
	/* The slice that is under way. */
	enum {
		IDLE,
		SCANNING,
		ATTACHED,
		SETTLING,
		CHANGED
	} stage;			 /* CHANGED: a level changed; nothing but its last records is awaited */
	const struct ses_build *awaited; /* SETTLING, CHANGED: whose records are awaited */
	uint64_t awaited_n;		 /* and how many since the start */
	struct proc now;
	struct scan *scan;	      /* SCANNING; owned */
	bool blind;		      /* the slice begins and ends by time: iterations are too long, or none ends */
	bool marks;		      /* it is the second part, with what costs little alone: at LEVEL_NOTHING */
	struct att_slice was, marked; /* of both parts */
	uint64_t began_ns, attached_ns, closed_ns;
	uint64_t attach_ns;	/* the same as held_ns, of the last slice's first part alone */
	unsigned nmeasured;	/* slices in which programs were measured */
	uint64_t work_ns;	/* CPU time of mxbpf for attaching and detaching both parts */
	uint64_t held_ns;	/* time of the process for the same */
	uint64_t scan_ns;	/* time of the process for a scan before this slice */
	uint64_t cost_ns;	/* what hits of the first part cost the process */
	uint64_t costs_from_ns; /* all its hits had cost so much before the slice */
};

/* ---- load_slice.c */

/* Records of the build that were made up to now belong to what was recorded so far. stage: SETTLING or CHANGED. */
void slice_await(struct slices *s, const struct ses_build *b, int stage);
/* Both return when to call again, in ns of CLOCK_MONOTONIC. slice_next begins the slice that is due for longest. */
uint64_t slice_watch(struct session *ses, struct slices *s, uint64_t now);
uint64_t slice_next(struct session *ses, struct slices *s, uint64_t now);
/* Notes how long iterations of a process take without a slice; it has counted them since the last look or slice. */
void slices_note_speed(const struct slices *s, struct proc *p);
struct proc *slices_proc(struct slices *s, uint32_t tgid); /* NULL: it has no slices */
/* What happened in a process since its last record, if all ends of iterations were seen; and such a record. */
struct mxbpf_slice_part slices_since(const struct proc *p, uint64_t end_ns);
void slices_keep(struct session *ses, struct proc *p, struct mxbpf_slice_part *r, uint64_t end_ns);

/* ---- load_scan.c */

/* Begins to look which functions a process calls. Returns false if there is no memory. */
bool scan_begin(struct slices *s, const struct proc *p, const struct ses_target *targets);
/* Goes on with it. Returns when to call it again; the stage is IDLE if it has ended. */
uint64_t scan_watch(struct session *ses, struct slices *s, uint64_t now);
/* Notes functions that the process has called for the first time since the last look. */
void scan_first_calls(struct slices *s, const struct ses_target *targets);
/* Ends the scan, if there is one, with what it has found so far. */
void scan_end(struct session *ses, struct slices *s, uint64_t now);
void scan_free(struct slices *s);

/* ---- load_slices.c */

/* What hits take in truth, as a share of the time without them; share: by the estimates, of the time with them. */
double slices_weigh(double share);

/* A scan has ended: attaches all probes of its build if they fit into the limit, unless they did not when they were. */
void slices_scanned(struct session *ses, struct slices *s, const struct plan_state *of, struct ses_build *b);
/* The session ends: what was recorded of a build whose probes are all attached is complete. */
void slices_end_all(struct session *ses, struct slices *s);
double slices_limit(const struct session *ses);			     /* 0.01 is 1 % */
void slices_start_look(struct ses_build *b, struct build_state *st); /* costs count from now on */

#endif
