/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of the join that several files see. */
#ifndef FEATURE_ACTIVITY_JOIN_H
#define FEATURE_ACTIVITY_JOIN_H

#include "feature/activity/state.h"

#define LAUNCHES_MAX (1u << 18) /* remembered launches: 44 MiB; more than a second at 200,000 a second */
#define CREDITS_MAX  12		/* spans of different rows around a launch */
#define NONE	     UINT64_MAX

struct span {
	uint64_t start_ns, end_ns;
	uint64_t max_end_ns; /* latest end of this span and those that came before it in the thread */
	uint64_t name_id, layer_id, stack_id;
	uint32_t tgid, tid;
	uint8_t cls, user;
};

struct moment {
	uint64_t ns, launch; /* launch: its number */
};

struct thread {
	uint32_t tgid;
	struct buf spans;	 /* struct span, as they came */
	struct buf fresh;	 /* struct moment: launches that have not looked at the spans */
	struct buf launches;	 /* struct moment, by time */
	size_t first;		 /* of launches: the first one that is remembered */
	uint64_t lost_spans_ns;	 /* latest end of a span that was forgotten */
	uint64_t lost_launch_ns; /* latest launch that was forgotten */
};

struct launch {
	uint64_t edge_id, edge_of;
	uint64_t ts_ns;
	uint64_t previous;		 /* 1 + number of the launch before with the same id; 0: none */
	uint64_t owner_start, owner_end; /* of the span that has the launch as its own */
	uint64_t latency_ns;		 /* NONE: no activity has come */
	struct mxbpf_gpu_work work;	 /* of this launch, in this model */
	uint32_t slot;			 /* 1 + index of the slot of its iteration; 0: none */
	uint32_t own;			 /* place of the row that has the launch as its own; 0: none */
	uint32_t own_stack;		 /* place of the row of the owner's Python stack; 0: none */
	uint32_t credits[CREDITS_MAX];	 /* places of the rows whose total has the launch */
	uint8_t ncredits, rank;
	bool works; /* an activity has come */
	bool moved; /* an earlier model has its latency */
	bool graph; /* the row of its graph has it */
};

/* An iteration, and the work that was launched in it. */
struct slot {
	uint64_t start_ns, end_ns;
	struct mxbpf_gpu_work work;
	uint32_t previous; /* 1 + index of the slot before of the same process; 0: none */
};

/* Returns the process of a launch. */
static inline uint32_t tgid_of(const struct launch *l)
{
	return (uint32_t)(l->edge_of >> 16);
}

static inline struct thread *thread_at(const struct join *j, size_t i)
{
	return buf_at(&j->threads, struct thread, i);
}

/* Returns a launch by its number, or NULL if it was forgotten. */
static inline struct launch *launch_at(const struct join *j, uint64_t number)
{
	if (number >= j->nlaunches || j->nlaunches - number > LAUNCHES_MAX)
		return NULL;
	return buf_at(&j->launches, struct launch, number % LAUNCHES_MAX);
}

/* Returns the index of the first moment, from `low` on, that is not before ns. */
size_t join_first_moment(const struct buf *moments, size_t low, uint64_t ns);
/* fold_iterations.c: gives a launch to an iteration that has ended, if it lies in one of the last ones. */
void join_find_slot(struct join *j, uint32_t tgid, const struct moment *moment);
void join_forget_slots(struct join *j);

#endif
