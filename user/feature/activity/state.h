/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the feature: its parts and the functions that fold into them. All return 0 or -ENOMEM. */
#ifndef FEATURE_ACTIVITY_STATE_H
#define FEATURE_ACTIVITY_STATE_H

#include "feature/activity/activity.h"
#include "window/window.h"

/* ---- fold_graphs.c: nodes of CUDA graphs, and the spans around their capture */

struct graphs {
	struct hash node_index; /* (node, tgid) -> 1 + index in nodes */
	struct buf nodes;	/* struct node */
	struct buf works;	/* struct graph_work: activities of nodes, until the spans are known */
	struct buf unplaced;	/* struct unplaced: activities that a launch has for want of spans around the node */
	struct buf changed;	/* uint32_t: indices of nodes whose rows are to be made */
	struct hash captured;	/* (tgid, 0) -> launches that made nodes, and are not counted as such yet */
	struct hash row_index;	/* (captured, name, class; process and graph) -> 1 + index in rows */
	struct buf rows;	/* struct mxbpf_agg_gpu_graph */
};

int graphs_fold(struct mdl *m, struct graphs *g, const struct mxbpf_agg_gpu_graph *from);
int graphs_copy(struct graphs *to, const struct graphs *from);
/* `to` goes on with the nodes, whose work begins at 0 there. */
void graphs_move(struct graphs *to, struct graphs *from);
void graphs_clear(struct graphs *g); /* sets the rows to 0 */
void graphs_fini(struct graphs *g);

/* ---- fold_join.c: launches, their activities, and the spans around them */

struct join {
	struct hash row_index; /* (name, layer or graph; process, class and kind) -> struct activity_work * */
	struct buf rows;       /* struct activity_work *, owned */

	bool on;	      /* a sign of a GPU was seen: spans go to their threads */
	struct span *backlog; /* owned: the last spans before that; span n is at n % BACKLOG_MAX */
	uint64_t nbacklog;    /* number of the next span */

	struct hash thread_index; /* (tid, tgid) -> 1 + index in threads */
	struct buf threads;	  /* struct thread, owns its buffers */
	struct buf fresh;	  /* uint32_t: threads that have fresh launches */
	size_t nspans;		  /* of all threads */

	struct hash slot_index; /* (start, tgid) -> 1 + index in slots */
	struct buf slots;	/* struct slot: iterations */
	struct hash last_slots; /* (tgid, 0) -> 1 + index of the last slot of the process */

	struct buf launches;  /* struct launch, a ring: the launch with number n is at n % LAUNCHES_MAX */
	uint64_t nlaunches;   /* number of the next launch */
	uint64_t lost_ns;     /* the latest launch that was forgotten */
	uint64_t first_ns;    /* the first launch */
	struct hash by_edge;  /* (id, tgid and domain) -> 1 + number of the last launch */
	struct hash waiting;  /* (id, tgid and domain) -> 1 + index of the first waiter */
	struct buf waiters;   /* struct waiter */
	uint32_t free_waiter; /* 1 + index; 0: none */

	struct graphs graphs;
};

int join_node(struct mdl *m, struct join *j, const struct mxbpf_graph_node *from);

int join_span(struct mdl *m, struct join *j, const struct mxbpf_span *s);
int join_launch(struct mdl *m, struct join *j, const struct mxbpf_launch *l);
/* `unlaunched` belongs to the row of the activity and is 1 higher until the launch arrives. */
int join_activity(struct mdl *m, struct join *j, const struct mxbpf_activity *a, struct activity_row *row);
int join_window(struct mdl *m, struct join *j);
/* From now on spans are kept for launches. */
int join_on(struct mdl *m, struct join *j);
/* Gives the launches of an iteration to it. */
int join_iteration(const struct mdl *m, struct join *j, uint32_t tgid, uint64_t start_ns, uint64_t end_ns);
bool join_of_iteration(const struct mdl *m, const struct join *j, uint32_t tgid, uint64_t start_ns, uint64_t end_ns,
		       struct mxbpf_gpu_work *work);
int join_move(struct join *to, struct join *from);
void join_fini(struct join *j);

/* ---- launches.c: the latest launches */

struct launched {
	struct buf all;	    /* struct activity_call, as they came */
	struct buf slots;   /* uint32_t: 1 + index of the last launch with an id; 0: free */
	uint64_t first;	    /* number of the first one */
	uint64_t newest_ns; /* latest start of a launch */
	uint64_t lost_ns;   /* latest end of one that was forgotten */
	size_t kept;	    /* what the last forgetting has left */
};

int launched_put(struct launched *s, const struct mxbpf_launch *l);
int launched_copy(struct launched *to, const struct launched *from);
void launched_fini(struct launched *s);
/* Returns the last launch with the ids of `like` that is not later than it, else the first one, else NULL. */
const struct activity_call *launched_find(const struct launched *s, const struct activity_call *like);

/* ---- fold_work.c: the rows */

/* *place receives 1 + the index of the row for the ids of `like`, or 0 if there are too many rows. */
int work_row(struct mdl *m, struct join *j, const struct mxbpf_agg_gpu_work *like, uint32_t *place);
int work_row_of_kind(struct mdl *m, struct join *j, uint32_t tgid, enum mxbpf_gpu_work_of of, uint32_t graph,
		     uint32_t *place);
struct activity_work *work_row_at(const struct join *j, uint32_t place);
/* Returns the counts of a process, or NULL if out of memory. */
struct activity_join *work_counts(struct mdl *m, uint32_t tgid);
extern const struct tbl_def activity_joins_table; /* of struct activity_join */
uint64_t work_less(uint64_t a, uint64_t b);	  /* a - b, or 0 */
void work_add(struct mxbpf_gpu_work *to, const struct mxbpf_gpu_work *from);
void work_sub(struct mxbpf_gpu_work *to, const struct mxbpf_gpu_work *from);
void work_latency_add(struct activity_work *r, uint64_t ns);
void work_latency_sub(struct activity_work *r, uint64_t ns);
void work_clear(struct join *j); /* sets all to 0, and keeps the places of the rows */

int join_fold_work(struct mdl *m, struct join *j, const struct mxbpf_agg_gpu_work *a);
int join_emit(const struct join *j, struct buf *out);
int join_copy(struct join *to, const struct join *from);

/* ---- fold_streams.c: how busy streams and devices were */

struct streams {
	struct hash index; /* (process and device, context and stream) -> 1 + index in rows */
	struct hash whole; /* (process and device, 0) -> 1 + index in rows */
	struct buf rows;   /* struct stream */
};

/* Takes activities of a queue in the order of their starts. */
int streams_take(struct streams *s, const struct win_queue *of, const struct win_work *w, size_t n);
int streams_fold(struct streams *s, const struct mxbpf_agg_gpu_stream *a);
int streams_emit(const struct streams *s, struct buf *out);
int streams_copy(struct streams *to, const struct streams *from);
/* `to` begins with what was busy then. */
int streams_move(struct streams *to, const struct streams *from);
void streams_fini(struct streams *s);

#endif
