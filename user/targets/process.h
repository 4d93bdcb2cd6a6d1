/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a session, and the phase of its life in which each of them is. A process is here from the moment
 * that the session has something to remember of it. Only the main thread uses this, except where it is said.
 */
#ifndef TARGETS_PROCESS_H
#define TARGETS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "plan/plan.h"

struct agt;
struct session;
struct ses_agent_of;
struct ses_target;

enum ses_phase {
	SES_SEEN,    /* what its program maps is not known: it is new, or has executed another one */
	SES_WAITS,   /* it has no runtime that can be watched; its loader tells when it maps more */
	SES_HALF,    /* --omp: it has mapped the runtime, but not its dependencies; the next look takes it as it is */
	SES_LATER,   /* it is looked at again when probes can be attached */
	SES_NO_ROOM, /* it is not watched, because there are too many builds or copies */
	SES_PLANNED, /* its plan is known; the agent and the probes are on their way */
	SES_WATCHED, /* its probes are attached */
	SES_ENDED,   /* ses_sweep() has still to remove what belongs to it */
	SES_GONE,    /* only what its records need that come late is known: its build, and its GPU if it is the first */
	SES_PHASES
};

/* Addresses in a process. */
struct ses_place {
	struct mxbpf_target at;
	struct plan_agent_memory memory; /* --agent: where it sees memory */
};

/* --gpu, for feature/agents/load_gpu.c. */
struct ses_gpu_use {
	struct agt *agt;	 /* borrowed: its agent, which is a client of CUPTI; NULL: its GPU is not recorded */
	uint32_t said;		 /* 1 + the last enum mxbpf_gpu_state that the user was told */
	bool decided, undecided; /* it is known, or not yet, whether it uses a GPU; neither: it has not mapped CUDA */
};

struct ses_process {
	struct ses_process *prev, *next; /* in the order in which they were found; change with the lock */
	uint32_t tgid;
	enum ses_phase phase;
	struct ses_target *of;	    /* the last one that fitted it; changes with the lock; NULL: none, or the first */
	struct ses_place *place;    /* owned; NULL: it is neither planned nor watched */
	struct buf late;	    /* struct late_lib *: the libraries of its build that are probed in it */
	bool root;		    /* the user chose it, and it has not ended; changes with the lock */
	int pidfd;		    /* of a root; -1: the session does not end with it */
	struct ses_agent_of *agent; /* feature/agents/load.c: its agent, or one that is on its way; NULL: none */
	struct ses_gpu_use gpu;
	bool counted, told; /* the session has counted it in about.unfollowed, and said why; until it ends */
};

struct ses_processes {
	struct hash of; /* tgid -> struct ses_process *, owned; changes with the lock */
	struct ses_process *first, *last;
	unsigned wrong; /* moves that the table of phases does not have: mistakes of mxbpf */
};

/* NULL: the process is not known. Other threads call this with the lock. */
struct ses_process *ses_process_of(const struct session *ses, uint32_t tgid);
/* Finds or adds a process; the phase of one that was gone begins anew, because its number has come back. NULL: out of
 * memory. */
struct ses_process *ses_process_add(struct session *ses, uint32_t tgid);
/*
 * Moves a process to another phase. A move that the table does not have is a mistake of mxbpf: it is made, because the
 * process is in that phase, and the user is told once.
 */
void ses_process_move(struct session *ses, struct ses_process *p, enum ses_phase to);
bool ses_phase_follows(enum ses_phase from, enum ses_phase to);
/* A process that has not ended is planned from now on: it has this target, and these addresses. 0 or -ENOMEM. */
int ses_process_plan(struct session *ses, struct ses_process *p, struct ses_target *of, const struct ses_place *place);
/* Forgets what is mapped in a process. */
void ses_process_unplan(struct ses_process *p);
/* Forgets a process that has ended, except for what its records need. */
void ses_process_end(struct session *ses, struct ses_process *p);
void ses_processes_free(struct session *ses);

#endif
