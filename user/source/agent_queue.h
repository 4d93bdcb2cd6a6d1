/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that were taken from the agents and wait to become records, in the order in which they were taken. Beyond
 * AGENT_QUEUE_BYTES the oldest ones are given up, a quarter of the queue at once, so that the time of which nothing is
 * known is one piece. What says where an iteration ends is kept.
 */
#ifndef SOURCE_AGENT_QUEUE_H
#define SOURCE_AGENT_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "mxbpf_agent.h"

#define AGENT_QUEUE_BYTES (64u << 20)

/* Calls of a process, or what is known of a moment. 0 stands for what is not known. */
struct agent_item {
	struct agent_item *next;
	void *proc;	   /* whose calls; borrowed, and not used by the queue */
	uint64_t at_ns;	   /* the calls in `opens` were open then */
	struct buf opens;  /* belongs to the item */
	uint64_t until_ns; /* all calls that ended before were put before this item */
	/* Calls of this time are lost, of any thread and process: so many, if they were given up in the queue. */
	uint64_t lost_from_ns, lost_to_ns, lost;
	bool ends_lost; /* what says where an iteration ends may be among them */
	uint32_t n;
	struct mxbpf_agent_call calls[];
};

struct agent_queue {
	/* Returns true if a call is kept when its batch is given up. first: it is the first one of a batch. */
	bool (*keeps)(void *proc, const struct mxbpf_agent_call *c, bool first);
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t changed;
	struct agent_item *head, **tail;
	size_t bytes;
	uint64_t put, taken; /* items so far */
	uint64_t given_up;   /* calls so far */
	bool ended;
};

/* keeps: see struct agent_queue; it is called by the thread that puts. */
void agent_queue_init(struct agent_queue *q, bool (*keeps)(void *proc, const struct mxbpf_agent_call *c, bool first));
/* Returns an item with room for n calls, or NULL. */
struct agent_item *agent_item_new(void *proc, uint32_t n);
void agent_item_free(struct agent_item *i);
/* Takes the item over. */
void agent_queue_put(struct agent_queue *q, struct agent_item *i);
/* Waits until there is an item. Returns false if there is none, and none will come. */
bool agent_queue_wait(struct agent_queue *q);
/* Returns the oldest item, which the caller frees, or NULL. */
struct agent_item *agent_queue_take(struct agent_queue *q);
/* Number of items that were put so far; of those that were taken. */
uint64_t agent_queue_nput(struct agent_queue *q);
uint64_t agent_queue_ntaken(struct agent_queue *q);
uint64_t agent_queue_given_up(struct agent_queue *q); /* calls; from any thread */
/* Ends waiting. Items can still be put and taken. */
void agent_queue_end(struct agent_queue *q);
void agent_queue_fini(struct agent_queue *q);

#endif
