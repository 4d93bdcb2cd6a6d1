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

#define FULL_NS	   (600 * NS_PER_S)
#define ITERATIONS 3 /* in the first slice of a process */
#define RARE	   3 /* hits that are rare take several times their estimate, because caches are cold then */

enum level { LEVEL_ALL, LEVEL_LITTLE, LEVEL_NOTHING };

struct build_state {
	enum level level;
	uint64_t costs[MXBPF_THREADS_MAX]; /* of threads, at the last look */
	uint64_t last_ns;
	double overhead;	     /* of what is attached always, relative to the time without */
	uint64_t retry_at, retry_ns; /* LEVEL_NOTHING: when LEVEL_LITTLE is tried again */
	unsigned nlate;		     /* libraries that were mapped later, at the last record of what rows lack */
	bool told;
};

struct plan_state {
	const struct plan *plan; /* NULL: not used */
	bool *left_out;		 /* owned: by site, what is not attached always */
	bool *slice;		 /* owned: by site, what the next slice leaves out */
	bool *called;		 /* owned: by site, its function was called in a slice */
	uint64_t full_at;	 /* when the next slice attaches all functions */
};

/* A process of a build that has slices. */
struct proc {
	uint32_t tgid;
	struct ses_target *of;
	uint64_t next_ns;	       /* when its next slice is due */
	uint64_t until_ns, iterations; /* up to where its slices stand for */
	unsigned each;		       /* iterations of its next slice */
	double share;		       /* of its time that hits took in the last slice */
	bool seen, measured;
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
		ATTACHED,
		SETTLING,
		CHANGED
	} stage;			 /* CHANGED: a level changed; nothing but its last records is awaited */
	const struct ses_build *awaited; /* SETTLING, CHANGED: whose records are awaited */
	uint64_t awaited_n;		 /* and how many since the start */
	struct proc now;
	bool full;		      /* all functions are attached */
	bool marks;		      /* it is the second part, with what costs little alone: LEVEL_NOTHING */
	struct att_slice was, marked; /* of both parts */
	uint64_t began_ns, attached_ns, forced_ns, closed_ns;
	uint64_t work_ns; /* attaching and detaching both parts took mxbpf */
	uint64_t cost_ns; /* what hits of the first part cost the process */
};

/* ---- load_slice.c */

/* Records of the build that were made up to now belong to what was recorded so far. stage: SETTLING or CHANGED. */
void slice_await(struct slices *s, const struct ses_build *b, int stage);
/* All probes were attached up to now, so the first slices need not look for functions. */
void slice_note_all_called(struct session *ses, struct slices *s, const struct ses_build *b);
/* Both return when to call again, in ns of CLOCK_MONOTONIC. slice_next begins the slice that is due for longest. */
uint64_t slice_watch(struct session *ses, struct slices *s, uint64_t now);
uint64_t slice_next(struct session *ses, struct slices *s, uint64_t now);
struct proc *slices_proc(struct slices *s, uint32_t tgid); /* NULL: it has no slices */
/* What happened in a process since its last record, if all ends of iterations were seen; and such a record. */
struct mxbpf_slice_part slices_since(const struct proc *p, uint64_t end_ns);
void slices_keep(struct session *ses, struct proc *p, struct mxbpf_slice_part *r, uint64_t end_ns);

/* ---- load_slices.c */

double slices_limit(const struct session *ses);			     /* 0.01 is 1 % */
void slices_start_look(struct ses_build *b, struct build_state *st); /* costs count from now on */

#endif
