/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source that reads from agents has two threads. One takes batches and puts them into a queue, so that the rings
 * are read in time whatever else happens. The other turns them into records and delivers those.
 */
#ifndef SOURCE_AGENT_PRIV_H
#define SOURCE_AGENT_PRIV_H

#include <pthread.h>

#include "base/buf.h"
#include "base/hash.h"
#include "source/agent.h"
#include "source/agent_queue.h"

/* A process with the agent. */
struct proc {
	struct agent_source *of;
	struct agt *agt; /* borrowed */
	uint32_t tgid;
	/* Used with the lock `ordering`. */
	struct hash names; /* the agent's number of a name -> its id */
	struct hash lists; /* (place, kind) of a list of the agent -> 1 + its id */
	struct hash roles; /* guarded by `naming`: the agent's number of a name -> enum src_agent_role */
	bool ended;	   /* of calls that are given up: an end was kept, and nothing yet that confirms it */
};

/* A call that was open at one moment. */
struct still_open {
	struct proc *of;
	struct mxbpf_agent_open call;
	uint32_t tid;
	unsigned level;
};

/*
 * The main thread adds and removes processes, with the lock and that of the list, and reads the list without one. The
 * locks are taken in this order: lock, ordering, list_lock.
 */
struct agent_source {
	struct agts *all; /* borrowed */
	struct src *src;
	struct calls *calls; /* finds the call of records from other sources; borrowed, NULL: not needed */
	bool owners;	     /* records of memory have room for their owner */
	bool stacks;	     /* and for their stack */
	uint64_t (*list_id)(void *ctx, uint32_t tgid, unsigned kind, const uint64_t *list, uint32_t n);
	void *list_ctx;
	enum src_agent_role (*role)(const char *name);
	pthread_mutex_t naming; /* for a moment only */
	struct agent_queue queue;
	pthread_t reader, orderer;
	int stop_fd; /* readable: the reader must end; -1: the threads do not run */

	pthread_mutex_t list_lock; /* for a moment only */
	struct buf procs;	   /* struct proc *, owned */
	struct mxbpf_loss gone;	   /* loss of processes that were removed */

	pthread_mutex_t lock; /* protects reading the agents, and these members */
	size_t next_birth;    /* where to look for a birth next */
	uint64_t looked_ns;   /* time of the last read of open calls and unfinished batches */
	size_t fresh_bytes;   /* of calls that were put into the queue since then */
	uint64_t ring_lost;   /* calls that the ring had lost by the last reading */

	uint64_t stopped_ns; /* atomic: time of src_agent_stop() while src_agent_settle() is still due; 0: not due */
	struct buf stopped;  /* used by the main thread: struct still_open, calls that were open at stopped_ns */

	pthread_mutex_t ordering; /* protects taking items from the queue, and these members */
	struct buf spans;	  /* of calls not yet delivered, as they came */
	size_t nspans;
	struct buf order, spare; /* struct timed: ends and addresses of spans; memory for sorting */
	struct buf moments;	 /* struct moment, unsorted: memory not yet delivered */
	struct hash blocks;	 /* address of a live block, its process and device -> its bytes */
	struct buf texts;	 /* names of one delivery */
	struct buf recs;	 /* other records of one delivery */
	uint64_t list[MXBPF_AGENT_LIST_WORDS];

	uint64_t stored, lost;		/* atomic; lost counts calls for which there was no memory */
	uint64_t unsized;		/* atomic: blocks whose size was not kept; their frees have none */
	uint64_t unlisted;		/* atomic: lists that could not be read */
	struct src_agent_counts counts; /* atomic */
	uint64_t twins;			/* atomic: copies of open calls, which the agent did not record itself */
	uint64_t until_ns;		/* atomic: all calls that ended before were delivered */
};

/* agent_order.c. The first function may be called by any thread, the others with the lock `ordering`. */
/* What a name says. One that was in no call so far may say anything. */
enum src_agent_role agent_role(struct proc *p, uint32_t name);
/* Takes an item of the queue: its calls wait until what it tells makes sure that none is missing before them. */
void agent_order(struct agent_source *a, const struct agent_item *i);
/* Delivers all calls that wait, because no more come. */
void agent_order_rest(struct agent_source *a);
/* Appends the record of a call that is open to those that are delivered next. */
void agent_order_open(struct proc *p, const struct mxbpf_agent_open *o, uint32_t tid, unsigned level, uint64_t now);

#endif
