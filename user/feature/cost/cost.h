/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What watching costs. The costs of rows and iterations are sums of estimates. cost_take() takes them out of the times,
 * scaled by what the session has measured at its end.
 */
#ifndef FEATURE_COST_H
#define FEATURE_COST_H

#include "model/feature.h"
#include "model/session.h"
#include "mxbpf_cost.h"

extern const struct mdl_feature feature_cost;
extern const struct ses_feature cost_session;

/*
 * Takes the cost out of the times of all rows and iterations, once. Call it at the end of a window; records that are
 * folded later are not corrected. Does nothing if the cost is not known. Returns 0 or -ENOMEM.
 */
int cost_take(struct mdl *m, const struct mdl_session *s);

/* Takes the cost out of the times of a single call, as cost_take() did before for the rows of `m`. */
void cost_take_span(const struct mdl *m, struct mxbpf_span *span, const struct mdl_session *s);

/*
 * Returns whether a row lacks calls because --max-overhead left out probes. of_many: the row has calls of many names (a
 * thread, a device).
 */
bool cost_is_partial(const struct mdl *m, const struct mdl_row *row, bool of_many);
bool cost_has_partial(const struct mdl *m); /* such rows can exist */
/* Iterations may have ended unseen, because the probes that see it were left out. Those in slices may be there. */
bool cost_lacks_iterations(const struct mdl *m);
/* Allocations of memory were recorded in slices only, so what is live is not known. */
bool cost_lacks_memory(const struct mdl *m);

bool cost_has_slices(const struct mdl *m); /* calls were recorded in slices, or are from now on */

/* The slices of a process in this model, added up. Returns false if there are none. */
bool cost_slices_of(const struct mdl *m, uint32_t tgid, struct mxbpf_slice_part *sum);
struct mxbpf_slice_part cost_slices_all(const struct mdl *m); /* the same of all processes; slices is 0 if none ended */
/*
 * How many times the calls of a row in slices the process made in the time for which they stand, on average. 1: the row
 * has all its calls, or what it lacks is not known.
 */
double cost_row_scale(const struct mdl *m, const struct mdl_row *row);
/*
 * The number of iterations that the process made, divided by the number of those in slices. found: how many of its
 * iterations the model has.
 */
double cost_iterations_scale(const struct mdl *m, uint32_t tgid, uint64_t found);
/* Slices with iterations in order of time, *n their number. NULL: the process has none. Borrowed. */
const struct cost_point *cost_points(const struct mdl *m, uint32_t tgid, unsigned *n);
/* The time of an iteration of the process between slices, if those were counted; else 0. */
double cost_free_iteration(const struct mdl *m, uint32_t tgid);
/*
 * Adds the calls between slices to all rows, once, and takes the parts of iterations from those in slices alone. Call
 * it after cost_take(), at the end of a window. Returns 0 or -ENOMEM.
 */
int cost_estimate(struct mdl *m, const struct mdl_session *s);
/* The row without what cost_estimate() added to it. */
struct mdl_row cost_recorded(const struct mdl_row *r);

enum cost_base { COST_ITERATIONS, COST_TIME, COST_BASES }; /* of what a row in slices is a part */
enum cost_of { COST_SLICED, COST_LITTLE };		   /* a row, see MXBPF_PARTIAL_LITTLE */

#define COST_POINTS 64 /* of more slices, each two become one */

/* Sums over one slice, or over several slices in a row. */
struct cost_point {
	uint64_t from_ns, to_ns;
	uint64_t iterations;
	uint64_t calls, passes; /* of operators; of these, nodes of backward passes */
};

/* The slices of a process. */
struct cost_slices {
	struct mxbpf_slice_part all;
	uint64_t end_ns; /* up to which they stand for it */
	double n;
	double base[2][COST_BASES];	       /* of what was recorded since the last slice, by enum cost_of */
	double base_squares[2][COST_BASES];    /* of slices */
	uint64_t free_ns, free_iterations;     /* between slices, while nothing was recorded */
	struct cost_point points[COST_POINTS]; /* in order of time; not in recordings of an interval's sums */
	unsigned npoints, each, last;	       /* a point is of so many slices, the last one of `last` */
};

/* partial.c and estimate.c: what the feature does with its records; see struct mdl_feature. */
struct cost_state {
	double within[MXBPF_CLASS_MAX]; /* scale of the estimates in calls of a class, by cost_take(); 0: not known yet
					 */
	struct hash index;		/* (name_id, class) -> 1 + place in partial */
	struct buf partial;		/* struct mxbpf_partial */
	struct hash slices_of;		/* tgid -> 1 + place in slices */
	struct buf slices;		/* struct cost_slices, one for each process */
};
int cost_partial_fold(struct mdl *m, const struct mxbpf_rec *rec);
int cost_partial_emit(const struct mdl *m, struct buf *out);
int cost_partial_copy(struct mdl *to, const struct mdl *from);
int cost_partial_move(struct mdl *to, struct mdl *from, uint64_t now_ns);
void cost_partial_fini(struct mdl *m);
const struct mxbpf_partial *cost_partial_of(const struct mdl *m, const struct mdl_row *row); /* NULL: it is whole */
bool cost_is_little(const struct mdl *m, const struct mdl_row *row);
/* Not even what costs little is recorded between slices now. */
bool cost_misses_iterations(const struct mdl *m);
const struct cost_slices *cost_slices_find(const struct mdl *m, uint32_t tgid); /* NULL: it has no slices */
int cost_slice_fold(struct mdl *m, const struct mxbpf_rec *rec);
int cost_estimate_fold(struct mdl *m, const struct mxbpf_rec *rec);
int cost_estimate_emit(const struct mdl_row *r, struct buf *out);
void cost_estimate_add(struct mdl_row *r, const struct mdl_estimate *e);

/* Iterations with and without watching, of the process with the most time in iterations. */
struct cost_iterations {
	uint64_t n;
	uint64_t watched_ns, unwatched_ns; /* on average; unwatched is an estimate */
};
/*
 * Returns n 0 if there are none, if the cost was not taken out, or if calls are in slices, because the iterations that
 * are known are rather those of slices. Call it after cost_take().
 */
struct cost_iterations cost_of_iterations(struct mdl *m);
/*
 * Returns by how much watching slows the job down: in permille of an iteration without it, or else of the time that the
 * busiest thread has without it. 0 if the cost is not known.
 */
uint32_t cost_permille(struct mdl *m, const struct mdl_session *s);

#endif
