/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an attached agent, for the files that take its records. */
#ifndef AGENT_STATE_H
#define AGENT_STATE_H

#include <bpf/libbpf.h>
#include <pthread.h>

#include "agent.skel.h"
#include "agent/agent.h"
#include "agent/clock.h"
#include "agent/shared.h"
#include "agent/threads.h"
#include "agent/waiting.h"
#include "base/hash.h"
#include "records/gate.h"

/* Number of a slot's calls that were taken before they were handed over. */
struct taken {
	uint32_t uses, seq, calls;
};

/* What the slots of all threads counted. */
struct agt_sums {
	uint64_t calls, too_deep, unreadable, truncated;
};

struct agt {
	pid_t pid;
	struct agt_opts o;
	struct mxbpf_agent_details details; /* what the agent has to read */
	struct tgt *target; /* borrowed, like the plan; only while agt_open() runs */
	const struct plan *plan;
	struct agt_wait wait; /* for an idle process */
	struct err no_chance; /* why agt_open() could not load the agent yet; code 0: it need not wait for that */
	struct agt_injected injected;
	unsigned char *image; /* the shared object with its configuration; the next members belong to it */
	struct agt_inject_opts inject;
	struct inject *injection;
	struct err not_armed; /* why the injection could not be armed early; code 0: it was, or not tried */
	pid_t helper;	      /* helper process of the script; 0: none */
	struct agent_bpf *skel;
	struct bpf_link *bell;
	struct bpf_link *clear[ADP_AGENT_CLEARS]; /* NULL: the runtime has no such function */
	struct ring_buffer *ring;
	struct shared shared;
	struct keeper keeper; /* of the agent's clock; first by the thread that opens, then by the one that takes */
	struct gate gate;     /* everything that is read of the process's memory passes it */
	uint64_t since_ns;    /* atomic: start of the first activation; earlier calls belong to another session */

	/* A thread of mxbpf that waits for the target's first call. */
	pthread_t waits;
	int cancel_fd; /* ends the wait; -1: no thread waits */
	pthread_mutex_t lock;
	uint64_t active_ns; /* guarded by the lock: value for the agent's since_ns */

	bool in; /* atomic: the agent is loaded, and mxbpf is attached to it */
	unsigned ncpus;
	uint64_t opened_ns, no_slot_before;
	struct agt_sums before; /* when mxbpf attached: the counts go on from session to session */
	struct taken taken[MXBPF_AGENT_THREADS];
	uint64_t received;		   /* atomic: calls that were passed on; every one was counted by the agent */
	uint64_t batches;		   /* that were taken from the ring */
	struct hash tids;		   /* threads that began calls which other threads ended */
	struct mxbpf_agent_batch tail;	   /* copy of a batch that is being filled */
	struct threads threads;		   /* thread ids of the process */
	struct mxbpf_agent_batch numbered; /* copy of a batch with our thread ids */
	struct ring_buffer *gpu_ring;	   /* NULL: without gpu */
	uint64_t gpu_batches;		   /* that were taken from it */
	uint32_t gpu_want;		   /* guarded by the lock: mask of enum mxbpf_gpu_want */
	struct agt_gpu_sums gpu_before;	   /* when mxbpf attached */
	struct hash gpu_threads;	   /* thread ids that were seen in the process -> 1 */
	uint64_t gpu_threads_ns;	   /* when they were listed */
	agt_gpu_fn gpu_fn;		   /* set during agt_take_gpu() */
	void *gpu_ctx;
	agt_calls_fn fn; /* set during agt_take() */
	void *ctx;
};

static inline bool agt_is_in(const struct agt *a)
{
	return __atomic_load_n(&a->in, __ATOMIC_ACQUIRE);
}

/* take.c: receives the calls' ring buffer; adds up what was counted so far. */
int agt_on_batch(void *ctx, void *data, size_t bytes);
void agt_sum(struct agt *a, struct agt_sums *to);
/* Breaks the gate if the bell's program has seen a batch that cannot be. */
void agt_check_bell(struct agt *a);

/* gpu.c */
int agt_gpu_open(struct agt *a, struct err *e);
void agt_gpu_close(struct agt *a);
/* The shared memory was opened just now. */
void agt_gpu_opened(struct agt *a);
/* Tells the agent what mxbpf wants of it; with the lock held. */
void agt_gpu_tell(struct agt *a);

#endif
