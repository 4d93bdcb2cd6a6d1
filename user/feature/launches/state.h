/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the feature. Launches come out of order, so they are kept for a while, and then counted in the order of
 * time.
 */
#ifndef FEATURE_LAUNCHES_STATE_H
#define FEATURE_LAUNCHES_STATE_H

#include "feature/launches/launches.h"
#include "window/window.h"

/* What is known of the work of a call that launches. */
struct launches_call {
	uint64_t number;		     /* activity_call_number() */
	uint64_t work_start_ns, work_end_ns; /* of the first and of the last activity to begin and to end */
	uint64_t work_ns;		     /* sum of durations */
	struct mxbpf_track track;	     /* of the first activity */
	uint32_t nwork;			     /* activities */
};

/* A stream, and the launches whose work has not ended. Work of a stream ends in the order of its launches. */
#define LAUNCHES_QUEUE_MAX 2048u /* more count as so many */
struct launches_stream {
	uint64_t ends_ns[LAUNCHES_QUEUE_MAX]; /* a ring */
	uint32_t first, n;
	uint64_t full_until_ns; /* the time before counts in a row already */
};

struct launches_device {
	struct mxbpf_agg_gpu_types a;
	uint64_t now_ns;		/* all time before counts already */
	uint64_t until_ns[MXBPF_TYPES]; /* ends of the latest work of each type */
};

struct launches_state {
	struct buf calls;	  /* struct launches_call by number: not counted yet */
	struct hash row_index;	  /* (call and stream, process and device) -> 1 + index in rows */
	struct buf rows;	  /* struct launches_row */
	struct hash stream_index; /* (context and stream, process and device) -> 1 + index in streams */
	struct buf streams;	  /* struct launches_stream */
	struct hash device_index; /* (process and device, 0) -> 1 + index in devices */
	struct buf devices;	  /* struct launches_device */
	struct hash types;	  /* (name_id, 0) -> 1 + enum mxbpf_gpu_type of a kernel */
};

/* fold.c: returns the row for the ids of `like`, or NULL if out of memory. */
struct launches_row *launches_row_of(struct launches_state *t, const struct mxbpf_agg_gpu_launch *like);

/*
 * sweep.c: joins and counts work, which is all that starts before until_ns, and the launches whose work is complete
 * then. UINT64_MAX: all launches that have work. Returns 0 or -ENOMEM.
 */
int launches_sweep(const struct mdl *m, struct launches_state *t, const struct win_work *work, size_t n,
		   uint64_t until_ns);

/* types.c: these take work in the order of its starts. All return 0 or -ENOMEM. */
int launches_types_take(const struct mdl *m, struct launches_state *t, const struct win_work *w);
/* Counts the time until the end of the last work. */
void launches_types_finish(struct launches_state *t);
int launches_types_fold(struct launches_state *t, const struct mxbpf_agg_gpu_types *a);

#endif
