/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of the join that several files see. */
#ifndef FEATURE_ACTIVITY_JOIN_H
#define FEATURE_ACTIVITY_JOIN_H

#include "feature/activity/state.h"

#define LAUNCHES_MAX (1u << 18) /* remembered launches: 50 MiB; more than a second at 200,000 a second */
#define CREDITS_MAX  18		/* rows of spans around a launch */
#define CREDIT_ROOF  (1u << 31) /* of a credit: the row is one of feature/roofline */
#define NONE	     UINT64_MAX

struct span {
	uint64_t start_ns, end_ns;
	uint64_t max_end_ns; /* latest end of this span and those that came before it in the thread */
	uint64_t name_id, layer_id, stack_id, args_id;
	uint32_t tgid, tid;
	uint8_t cls, user;
	bool launched; /* a launch is in it */
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
	struct mxbpf_gpu_work self;	 /* the part of it that belongs to no operator that captured a graph */
	uint32_t tid;
	uint32_t slot;		       /* 1 + index of the slot of its iteration; 0: none */
	uint32_t own;		       /* place of the row that has the launch as its own; 0: none */
	uint32_t own_stack;	       /* place of the row of the owner's Python stack; 0: none */
	uint32_t own_roof;	       /* place of the row of the owner's shapes; 0: none */
	uint32_t credits[CREDITS_MAX]; /* places of the rows whose total has the launch */
	uint8_t ncredits, rank;
	bool works; /* an activity has come */
	bool moved; /* an earlier model has its latency */
	bool graph; /* the row of its graph has it */
	bool node;  /* no launch: it is the one of a node */
};

/* A node of a CUDA graph. Its work is that of all launches of the graph. */
struct node {
	struct launch l;	   /* the spans around its capture; ts_ns NONE: the capture was not seen */
	struct mxbpf_gpu_work put; /* the part of its work that its row has */
	uint64_t since;		   /* number of the next launch when the node came */
	uint32_t tid, graph;	   /* graph: that of its activities */
	uint32_t row;		   /* 1 + index of its row; 0: none */
	bool changed;		   /* its row is to be made */
};

/* An activity of a node. */
struct work {
	uint64_t start_ns;
	struct mxbpf_gpu_work sum;
	uint64_t kernel_id; /* its name, if it is a kernel; else 0 */
	uint64_t node;
	uint32_t graph;
	bool placed; /* the operator that captured the node has it */
};

struct graph_work {
	struct work work;
	struct activity_row *row;
	uint64_t edge_id;
	uint32_t tgid;
	uint16_t domain;
};

/* An activity that a launch has, because no span around the capture had come. */
struct unplaced {
	struct mxbpf_gpu_work sum;
	uint64_t edge_id, ts_ns; /* of the launch */
	uint64_t node;		 /* index of the node */
	uint32_t launch;	 /* index of the launch */
};

#define NODE_BIT (1ull << 63) /* in moment.launch: the other bits are the index of a node */

/* An iteration, and the work that was launched in it. */
struct slot {
	uint64_t start_ns, end_ns;
	struct mxbpf_gpu_work work;
	uint32_t previous; /* 1 + index of the slot before of the same process; 0: none */
};

/* Moves a member from `from` to `to`. It is zero in `from` then. */
#define MOVE(member)                                                                                                   \
	do {                                                                                                           \
		to->member = from->member;                                                                             \
		memset(&from->member, 0, sizeof(from->member));                                                        \
	} while (0)

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

static inline struct node *node_at(const struct join *j, uint64_t number)
{
	return buf_at(&j->graphs.nodes, struct node, number & ~NODE_BIT);
}

/* Returns the launch or the node of a moment, or NULL if it was forgotten, or if the node has another moment. */
static inline struct launch *launch_of_moment(const struct join *j, const struct moment *m)
{
	struct launch *l;

	if (!(m->launch & NODE_BIT))
		return launch_at(j, m->launch);
	l = &node_at(j, m->launch)->l;
	return l->ts_ns == m->ns ? l : NULL;
}

/* A node is remembered for ever, but spans look for it as long as for a launch of that time. */
static inline bool is_kept(const struct join *j, const struct moment *m)
{
	if (m->launch & NODE_BIT)
		return j->nlaunches - node_at(j, m->launch)->since <= LAUNCHES_MAX;
	return launch_at(j, m->launch);
}

/* fold_join.c */
/* What belongs to the launch alone, and not to an operator that captured it. */
void join_give_self(struct join *j, struct launch *l, const struct mxbpf_gpu_work *sum);
void join_take_self(struct join *j, struct launch *l, const struct mxbpf_gpu_work *sum);
/* *t receives the thread, or NULL if there are too many. */
int join_thread(struct join *j, uint32_t tgid, uint32_t tid, struct thread **t);
/* A launch or a node that has to look at the spans. */
int join_fresh(struct join *j, struct thread *t, const struct moment *moment);
/* Returns the launch of an activity, or NULL if it has not come. */
struct launch *join_launch_of(const struct join *j, const struct graph_work *w);
/* Gives an activity to its launch, or lets it wait for that. */
int join_work(struct mdl *m, struct join *j, const struct graph_work *w);

/* fold_graphs.c */
/* Takes an activity of a known node. Returns 1 if it did, 0 if the node is not known, or -ENOMEM. */
int graphs_take(struct mdl *m, struct join *j, const struct graph_work *w);
bool graphs_full(const struct join *j);
/* A span around the capture of a node has come. Returns 0 or -ENOMEM. */
int graphs_touch(struct join *j, struct launch *of_node);
/* Gives the work of graphs to the operators that captured it, and to the launches. */
int graphs_settle(struct mdl *m, struct join *j);

/* Returns the index of the first moment, from `low` on, that is not before ns. */
size_t join_first_moment(const struct buf *moments, size_t low, uint64_t ns);
/* fold_iterations.c: gives a launch to an iteration that has ended, if it lies in one of the last ones. */
void join_find_slot(struct join *j, uint32_t tgid, const struct moment *moment);
void join_forget_slots(struct join *j);

#endif
