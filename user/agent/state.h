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

/* All agents of a session. */
struct agts {
	struct agent_bpf *skel;
	struct ring_buffer *ring;
	struct ring_buffer *gpu_ring; /* NULL: without gpu */
	uint64_t gpu_batches;	      /* that were taken from it */
	uint32_t ring_bytes;
	bool gpu;
	pthread_mutex_t lock;
	pthread_cond_t closed;		       /* an agent has been closed */
	struct agt *at[MXBPF_AGENT_PROCESSES]; /* by its number; changed with the lock, read atomically */
	uint64_t opened_ns;
	pthread_mutex_t births; /* for agt_look_born() */
	unsigned closing;	/* guarded by the lock: threads that close agents */
};

/* What a plan's library has for the agent, in one process. */
struct runtime {
	const char *path; /* path that opens the library's inode; borrowed from the plan's target */
	uint64_t entry_off;
	uint64_t clear_offs[ADP_AGENT_CLEARS]; /* 0: the runtime has no such function */
	struct mxbpf_agent_config config;
};

struct agt {
	pid_t pid;
	struct agts *all;
	uint32_t number; /* index in all->at; MXBPF_AGENT_PROCESSES: none */
	struct agt_opts o;
	struct mxbpf_agent_details details; /* what the agent has to read */
	struct tgt *target; /* only while the agent is being loaded without an operator; borrowed then */
	const struct plan *plan;
	struct runtime runtime;
	struct agt_wait wait; /* for an idle process */
	struct err no_chance; /* why agt_open() could not load the agent yet; code 0: it need not wait for that */
	struct agt_injected injected;
	unsigned char *image; /* the shared object with its configuration; the next members belong to it */
	struct agt_inject_opts inject;
	struct inject *injection; /* guarded by the lock, except in the thread that waits */
	uint64_t calls_seen;	  /* guarded by the lock: its calls that have been counted, or were before the window */
	struct err not_armed;	  /* why the injection could not be armed early; code 0: it was, or not tried */
	pid_t helper;		  /* helper process of the script; 0: none */
	struct agent_bpf *skel;	  /* of all agents */
	struct bpf_link *bell;
	struct bpf_link *clear[ADP_AGENT_CLEARS]; /* NULL: the runtime has no such function */
	struct ring_buffer *ring;		  /* of all agents */
	struct shared shared;
	struct keeper keeper; /* of the agent's clock; first by the thread that opens, then by the one that takes */
	struct gate gate;     /* everything that is read of the process's memory passes it */
	uint64_t since_ns;    /* atomic: start of the first activation; earlier calls belong to another session */

	/* A thread of mxbpf that waits for the target's first call. */
	pthread_t waits;
	int cancel_fd; /* ends the wait; -1: no thread waits */
	bool tries;    /* atomic: the thread tries to load the agent without waiting for an operator */
	pthread_mutex_t lock;
	uint64_t active_ns; /* guarded by the lock: value for the agent's since_ns */
	bool synced;	    /* guarded by the lock: active_ns was set */

	/*
	 * A forked child starts the agent itself, at its first call. Until then only the bell is attached, and `family`
	 * is its parent's first page, which tells it whether to start.
	 */
	bool other;   /* not the first process of the session */
	bool newborn; /* it has started the agent, and mxbpf has not told it that it is attached */
	bool unborn;  /* atomic: it has not, or mxbpf has not seen it yet */
	bool told;    /* atomic: its bell is attached, or it has ended */
	struct shared family;
	bool born;	  /* the child has started it, so it may have spilled batches */
	unsigned spilled; /* spilled batches that were taken */
	uint64_t orphans_before;

	bool in; /* atomic: the agent is loaded, and mxbpf is attached to it */
	unsigned ncpus;
	uint64_t opened_ns, no_slot_before;
	struct agt_sums before; /* when mxbpf attached: the counts go on from session to session */
	struct taken taken[MXBPF_AGENT_THREADS];
	uint64_t received;		   /* atomic: calls that were passed on; every one was counted by the agent */
	uint64_t batches;		   /* that were taken from the ring */
	struct hash tids;		   /* threads that began calls which other threads ended */
	struct mxbpf_agent_batch tail;	   /* copy of a batch that is being filled */
	struct mxbpf_agent_batch spill;	   /* copy of a spilled batch, which may come while a tail is read */
	struct threads threads;		   /* thread ids of the process */
	struct mxbpf_agent_batch numbered; /* copy of a batch with our thread ids */
	uint32_t gpu_want;		   /* guarded by the lock: mask of enum mxbpf_gpu_want */
	uint32_t gpu_measures;		   /* 1: counters of kernels are measured; guarded as gpu_want is */
	struct agt_gpu_sums gpu_before;	   /* when mxbpf attached */
	struct hash gpu_threads;	   /* thread ids that were seen in the process -> 1 */
	uint64_t gpu_threads_ns;	   /* when they were listed */
	agt_gpu_fn gpu_fn;		   /* NULL: nobody gets its records */
	void *gpu_ctx;
	agt_calls_fn fn; /* gets the calls */
	void *ctx;
};

static inline bool agt_is_in(const struct agt *a)
{
	return __atomic_load_n(&a->in, __ATOMIC_ACQUIRE);
}

static inline bool agt_is_unborn(const struct agt *a)
{
	return __atomic_load_n(&a->unborn, __ATOMIC_ACQUIRE);
}

/* all.c. agt_at: the agent with a number, or NULL. agts_load: loads the programs. Returns 0, or -errno with e set. */
struct agt *agt_at(struct agts *s, unsigned number);
int agts_load(struct agts *s, struct err *e);
/* Gives an agent its number. Returns 0 or -E2BIG. */
int agts_enter(struct agts *s, struct agt *a);
void agts_leave(struct agt *a);

/* take.c: receives the calls' ring buffer; adds up what was counted so far. */
int agt_on_batch(void *ctx, void *data, size_t bytes);
void agt_sum(struct agt *a, struct agt_sums *to);
/* runtime.c. t: the process that the plan was made for. Returns 0, or -errno with e set. */
int agt_find_runtime(const struct plan *p, struct tgt *t, const struct agt_place *at, bool calls, struct runtime *r,
		     struct err *e);
/*
 * object.c. agt_symbol: the address of a symbol in the agent's object; 0, or -errno with e set. agt_file_off: the file
 * offset of such an address. agt_find_mapped: where a process has mapped an agent's object; 0: it has not.
 */
int agt_symbol(const char *name, uint64_t *va, struct err *e);
uint64_t agt_file_off(uint64_t va);
uint64_t agt_find_mapped(pid_t pid);
/* Writes a path that opens the object that the process has mapped. Returns 0 or -ENOENT. */
int agt_image_path(const struct agt *a, char path[96]);
/*
 * Returns true if that object is identical to the one in this mxbpf. In another one, functions have other addresses,
 * and calling them would end the process.
 */
bool agt_is_same(const struct agt *a);
/* What the agent has to read at the start of a call in that process. */
struct mxbpf_agent_details agt_details(const struct plan *p, const struct agt_place *at, const struct agt_opts *o);
/* agent.c: the steps of attaching. They return 0, or -errno with e set. */
int agt_read_config(struct agt *a, struct mxbpf_agent_config *config, uint64_t *bytes, struct err *e);
int agt_open_shared(struct agt *a, struct err *e); /* reads it only; agt_take_shared() then makes it this session's */
void agt_take_shared(struct agt *a);
int agt_listen(struct agt *a, struct err *e);
int agt_watch_clears(struct agt *a, const struct runtime *r, struct err *e);
void agt_go_in(struct agt *a); /* the agent records from now on, if the window is open */
/*
 * child.c. agt_will_start: the process is a forked child that starts, or has started, the agent itself.
 * agt_await_birth: waits for that.
 */
bool agt_will_start(struct agt *a);
int agt_await_birth(struct agt *a, struct err *e);
/* child.c: attaches to the agent that a forked child has started by now, if any. */
void agt_look_born(struct agt *a);
/* Breaks the gate if the bell's BPF program has seen an impossible batch. */
void agt_check_bell(struct agt *a);

/* gpu.c */
int agts_gpu_open(struct agts *s, struct err *e);
void agt_gpu_close(struct agt *a);
/* The shared memory was opened just now. */
void agt_gpu_opened(struct agt *a);
/* Tells the agent what mxbpf wants of it; with the lock held. */
void agt_gpu_tell(struct agt *a);

#endif
