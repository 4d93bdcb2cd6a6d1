/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of a process. Each is what a thread does whose calls end iterations. Functions that return int return 0 or
 * -ENOMEM.
 */
#ifndef FEATURE_STEPS_LOOPS_H
#define FEATURE_STEPS_LOOPS_H

#include "feature/steps/lost.h"
#include "feature/steps/parts.h"
#include "feature/steps/steps.h"

/* What a thread does whose calls end iterations. */
struct loop {
	uint32_t tid;
	uint64_t start_ns; /* of the current iteration; 0: not known */
	uint64_t nr;	   /* number of the next iteration that ends */
	/* Calls that can be the end of the iteration. The next backward pass confirms it. */
	bool burst;
	bool called; /* the end of the last such call is not known yet */
	uint64_t burst_key, burst_end_ns;
	uint64_t main_key;   /* key of the optimizer that counts; 0: none yet */
	unsigned foreign;    /* steps of other optimizers since its last step */
	unsigned alone;	     /* steps of optimizers since the last backward pass */
	bool passes;	     /* a backward pass has been seen */
	bool full;	     /* a piece of the current iteration is missing, see PIECES_MAX */
	bool after_lost;     /* records are lost since the last iteration that was kept, so live_bytes may be wrong */
	struct extent ended; /* the last iteration; end_ns 0: none. It waits for spans that ran across its end. */
	struct buf pieces;   /* struct piece, of the last iteration and the current one */
};

struct loops {
	uint32_t tgid;
	uint8_t mode;	    /* enum mxbpf_step_what: what ends its iterations */
	bool passes;	    /* a backward pass has been seen */
	bool waits;	    /* a wait has been seen, so calls that wait have it in them */
	struct buf loops;   /* struct loop */
	int64_t live_bytes; /* allocated less freed since the window began, without these: */
	struct buf moments; /* struct moment, since the last end of an iteration or longer */
};

struct steps_state {
	struct hash processes; /* tgid -> struct loops *, owned */
	struct lost lost;
	struct hash roles;     /* name_id -> enum role */
	struct buf iterations; /* struct mxbpf_iteration */
	size_t unset;	       /* at most so many of the last ones lack live_bytes */
	struct buf told;       /* struct mdl_ended: the iterations that have ended in this window */
	struct hash begun;     /* (tgid, tid) -> number of its first iteration in this model; none: 0 */
	uint64_t resumed_ns;   /* end of the last pause of the session */
	struct buf seen;       /* struct seen, see seen.c */
	bool sliced;	       /* calls of optimizers' operators are seen in slices only */
};

/* Returns NULL if the process is not known; `add` also without memory. */
struct loops *loops_process(const struct steps_state *m, uint32_t tgid);
struct loops *loops_process_add(struct steps_state *m, uint32_t tgid);
/* Returns loop i, or NULL if there are fewer. */
struct loop *loops_at(const struct loops *p, size_t i);
struct loop *loops_of(const struct loops *p, uint32_t tid);
/* Returns NULL without memory, or if there are too many. */
struct loop *loops_add(struct loops *p, uint32_t tid);
void loops_forget(struct loops *p);

/* Notes that memory was allocated or, below 0, freed. */
int loops_alloc(struct loops *p, uint64_t ns, int64_t bytes);
/* Returns the live memory at a time, which is not before an iteration that has not ended. */
int64_t loops_live(const struct loops *p, uint64_t ns);
/*
 * Sets the live memory of those of n iterations that lack it: they are m->iterations or a copy. All allocations before
 * their ends have been noted.
 */
void loops_set_memory(const struct steps_state *m, struct mxbpf_iteration *it, size_t n);
/* Does so for m->iterations, and forgets allocations of which no iteration will ask. */
void loops_settle_memory(struct steps_state *m);

/* Notes a call that can be the end of an iteration. Returns its loop, or NULL. */
struct loop *loops_may_end(struct steps_state *m, struct loops *p, uint8_t what, uint64_t key, uint64_t ns,
			   uint32_t tid);
/* Such calls have ended an iteration, unless they were of another optimizer than the one that counts. */
int loops_end(struct steps_state *m, const struct loops *p, struct loop *l);
bool loops_counts(const struct loop *l);
/* An iteration ends at ns, and the next one begins. */
int loops_boundary(struct steps_state *m, const struct loops *p, struct loop *l, uint64_t ns);
/* The current iteration if it ends at ns. */
struct extent loops_extent(const struct steps_state *m, const struct loops *p, const struct loop *l, uint64_t ns);
/* Returns whether the start and the end of the current iteration, ns, are known. A pause is no part of one. */
bool loops_whole(const struct steps_state *m, const struct loop *l, uint64_t ns);
/* Keeps the iteration that has ended, for whose spans it has waited. */
int loops_settle(struct steps_state *m, const struct loops *p, struct loop *l);
/* Adds an iteration; of too many the oldest are dropped. */
int loops_keep(struct steps_state *m, const struct mxbpf_iteration *it);
/* A backward pass begins or goes on. A thread that ends no iterations works for all loops of its process. */
int loops_pass(struct steps_state *m, struct loops *p, uint32_t tid);
/* A better sign of the ends of iterations was found. Those that were found before it are wrong. */
void loops_mode(struct steps_state *m, struct loops *p, uint8_t mode);

#endif
