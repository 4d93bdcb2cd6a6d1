/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares recordings of two versions of a job, A and B: is B faster, where, and is it certain? The result is a struct;
 * outputs print it. docs/diff.md says how "certain" is decided.
 */
#ifndef COMPARE_COMPARE_H
#define COMPARE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "compare/samples.h"
#include "feature/findings/findings.h"

#define CMP_RUNS_MAX 32 /* recordings of one side */
#define CMP_LEVEL                                                                                                      \
	0.01 /* a change is certain if noise makes one that large less often than this, in all rows together */
#define CMP_FLOOR	0.02  /* and if it is at least this large */
#define CMP_FLOOR_BYTES 0.005 /* or this large, of memory */
#define CMP_SHARE	0.01  /* rows that take less of an iteration on both sides are not judged */

enum cmp_which { CMP_A, CMP_B, CMP_SIDES };

/* A recording. The caller owns model and session. */
struct cmp_run {
	const char *path;
	struct mdl *m; /* cmp_run_take() takes the cost of watching out */
	const struct mdl_session *s;
	uint32_t scale;	       /* scale of the cost of watching, as in struct mdl_cost; cmp_share_scale() sets it */
	struct findings found; /* owned by the run, as samples are */
	struct cmp_samples x;
};

struct cmp_sides {
	struct cmp_run *run[CMP_SIDES];
	unsigned n[CMP_SIDES];
};

/*
 * Gives recordings that were made alike the same cost of a watched call. Each recording measures this cost anew, and on
 * a busy machine the results differ by a factor of two, which would look like a change of the job. Call it when all
 * recordings are open, before cmp_run_take().
 */
void cmp_share_scale(const struct cmp_sides *of);

/*
 * Finds the loop of the recording and takes a sample of each row for each iteration. slices: for each piece of time
 * instead, also if there is a loop. Returns 0 or -errno. Call cmp_run_fini() after an error, too.
 */
int cmp_run_take(struct cmp_run *run, bool slices, cmp_events_fn each, void *source);
/*
 * Takes the sums of a JSON result instead. s is filled for the run and owned by the caller, who may give it again to
 * take the result anew. Returns 0 or -errno with e set. cmp_run_fini() either way.
 */
int cmp_json_take(struct cmp_run *run, struct mdl_session *s, bool slices, struct err *e);
void cmp_run_fini(struct cmp_run *run);

enum cmp_verdict {
	CMP_NOISE,   /* "~": the change is not certain */
	CMP_SMALL,   /* the row takes too little time to be judged */
	CMP_CHANGED, /* certain */
	CMP_NEW,     /* only B has it */
	CMP_GONE,    /* only A has it */
};
extern const char *const cmp_verdict_words[];

struct cmp_row {
	enum cmp_kind kind;
	uint64_t key;
	const char *name, *detail; /* borrowed from the samples, hostile; detail: NULL if it has none */
	size_t name_len, detail_len;
	double value[CMP_SIDES]; /* per iteration, in ns or bytes; see cmp_centre() */
	double p90[CMP_SIDES];	 /* 90th percentile over the iterations */
	double calls[CMP_SIDES]; /* per iteration */
	double change;		 /* of B against A, as a share of A; 0 if A has nothing */
	double own;		 /* change without what the operators have in common; the verdict is about this */
	double noise;		 /* smaller changes are not certain; INFINITY: not known */
	bool waits;		 /* an operator that is asleep for most of its time */
	bool recalled; /* it is called another number of times in each iteration; this is counted, so certain */
	double p;      /* p value, corrected for the number of rows */
	enum cmp_verdict verdict;
};

/* Something that differs between the sides and is no row. */
struct cmp_difference {
	const char *key; /* "command" */
	const char *what;
	char *text[CMP_SIDES]; /* owned, hostile */
};

/* A finding that only one side has. */
struct cmp_finding {
	const struct finding *finding; /* borrowed from a run */
	enum cmp_which of;
};

/* A shape that only one side has, of an operator that both have. */
struct cmp_new_shape {
	const struct cmp_shape *shape; /* borrowed from a run */
	enum cmp_which of;
};

#define CMP_NAMED 3
/* That a profiler adds to a call at most: torch.profiler adds 1 us, with shapes and stacks 3.8 us (docs/kineto.md). */
#define CMP_PROFILER_US 4
struct cmp_result {
	bool iterations;	   /* false: rows are per slice of time, because a recording has no iterations */
	bool events;		   /* every recording has single calls; false: there are no rows of operators */
	bool few;		   /* a recording has too few iterations for any certainty */
	bool sums;		   /* JSON results: nothing is known of single iterations */
	bool several;		   /* both sides have several recordings, so what differs between recordings is known */
	bool common;		   /* an operator is on both sides */
	bool traced;		   /* another profiler made a side: its times contain what that cost */
	bool mixed;		   /* not all were made by the same profiler, and profilers count differently */
	uint64_t count[CMP_SIDES]; /* iterations */
	double wall_ns[CMP_SIDES]; /* median of an iteration, with waiting for a CPU */
	struct buf rows;	   /* struct cmp_row: the iteration first, then by how much they change */
	struct cmp_row peak;	   /* memory at most in the window; value 0 on both sides: not known */
	double drift;		   /* change that the operators have in common; NAN: too few tell it */
	unsigned controls;	   /* operators from which it is computed; 0: it is not known */
	bool alike;		   /* most of these operators changed by about as much */
	bool delayed;		   /* the fastest iterations lack this change, so other processes delayed the rest */
	bool drifted;		   /* the operators changed alike by more than their noise, and nothing else did */
	/* Rows that make up most of the change of an iteration, if it is certain. */
	const struct cmp_row *most[CMP_NAMED];
	unsigned nmost;
	struct buf differences;		 /* struct cmp_difference */
	struct buf findings;		 /* struct cmp_finding */
	struct buf shapes;		 /* struct cmp_new_shape */
	uint64_t left_out;		 /* calls of rows beyond CMP_SERIES_MAX */
	const struct cmp_tables *tables; /* set by the caller, who owns them; NULL: not compared */
};

/* Compares; the runs must stay while the result is used. 0 or -ENOMEM; cmp_result_fini() either way. */
int cmp_compare(const struct cmp_sides *of, struct cmp_result *r);
void cmp_result_fini(struct cmp_result *r);

/* Returns the row of the iteration, or NULL. */
const struct cmp_row *cmp_iteration(const struct cmp_result *r);
static inline bool cmp_certain(const struct cmp_row *row)
{
	return row->verdict >= CMP_CHANGED;
}
/* Returns how many layers an operator has, and in how many of them it has certainly changed. */
unsigned cmp_layers(const struct cmp_result *r, const struct cmp_row *op, unsigned *changed);

/* ---- limits of --fail-on */

struct cmp_limit {
	const char *text; /* borrowed */
	enum cmp_metric { CMP_OF_ITERATION, CMP_OF_PEAK, CMP_OF_MEMORY, CMP_OF_PART, CMP_OF_OPERATOR } metric;
	const char *name; /* of a part; borrowed */
	size_t name_len;
	bool below; /* broken by a change below the share, not above */
	double share;
};

/* Parses "iteration > +5%". Returns 0, or -EINVAL with e set: it names the place. */
int cmp_limit_parse(const char *text, struct cmp_limit *l, struct err *e);
/* Returns the row that breaks the limit, or NULL. *known: false if the comparison has no such row. */
const struct cmp_row *cmp_limit_broken(const struct cmp_limit *l, const struct cmp_result *r, bool *known);

/* context.c: fills r->differences, r->findings and r->shapes. 0 or -ENOMEM. */
int cmp_context(const struct cmp_sides *of, struct cmp_result *r);

#endif
