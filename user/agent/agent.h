/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent inside a process, seen from mxbpf. These functions load it, receive its batches, and read what it has
 * written. It records nothing before agt_activate(), and nothing after mxbpf has ended, however that ends.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/inject.h"
#include "mxbpf_agent.h"
#include "mxbpf_loss.h"
#include "plan/plan.h"

struct agt;
/* All agents of a session. They share a ring. */
struct agts;

#define AGT_RING_BYTES	   (16u << 20) /* bytes of unread batches; a power of two */
#define AGT_GPU_RING_BYTES (64u << 20)

/* Sums over CUPTI's records, from the agent and from BPF; struct mxbpf_gpu_shared explains the fields. */
struct agt_gpu_sums {
	uint64_t records, dropped, scrapped, unreadable, unknown, no_name, subscriptions, held_ns;
	uint64_t flushes; /* of CUPTI's buffers, made by the agent */
	uint64_t unsent;  /* records dropped because the ring buffer was full */
};

/*
 * Checks that the agent supports the runtime of a plan, without touching the process. calls: also checks that it can
 * record operators. Returns 0, or -errno with e set.
 */
int agt_usable(const struct plan *p, struct tgt *t, bool calls, struct err *e);
/* A process other than the plan's that has mapped the same files. */
struct agt_place {
	pid_t pid;
	uint64_t load_bias;		 /* of the plan's library */
	uint64_t undefined;		 /* see struct mxbpf_target */
	struct plan_agent_memory memory; /* see plan_agent_entries() */
};
/* Returns the place of the plan's own process. */
struct agt_place agt_place_of(const struct plan *p, struct tgt *t);

struct agt_opts {
	bool calls;		  /* record operators */
	bool gpu;		  /* subscribe to CUPTI, see agt_gpu_want() */
	const char *cupti;	  /* with gpu: path of the libcupti to load if the process has none; NULL: none */
	const char *kernels;	  /* with gpu: parts of names of kernels to measure; NULL or "": none. Borrowed. */
	unsigned kernel_launches; /* launches to measure of each kernel; 0: the default */
	bool kernel_replay;
	bool memory;  /* record memory; requires agent_memory of the plan */
	bool numbers; /* record sequence numbers, unless the plan has no_seq */
	bool args;    /* record the arguments of operators; the plan has MXBPF_DETAIL_ARGS */
	/* Record the Python stacks of operators, and with `memory` those of memory; NULL: none. Borrowed. */
	const struct mxbpf_python *python;
	bool stacks_of_memory;
	uint64_t is_finalizing;		 /* with python: see py_is_finalizing(); 0: there are no stacks */
	const struct agt_beside *beside; /* an object to load after the agent; NULL: none. Borrowed. */
	/*
	 * mxbpf has launched the process. The agent is loaded at the first call of an operator, before it runs.
	 * agt_load() returns without waiting for that.
	 */
	bool launched;
	/*
	 * The process has just mapped the runtime's library. The agent is loaded once operators are called, however
	 * late. agt_load() returns without waiting for that. Earlier calls of operators are missed.
	 */
	bool patient;
	/*
	 * For another process than that of the plan, with `patient`: first tries what agt_load() does without
	 * `patient`, in a thread, see agt_tries().
	 */
	bool eager;
	/* For a forked child that has started the agent itself, without `gpu`: loads it once more, at an operator. */
	bool anew;
	bool children; /* forked children of the process start the agent themselves, and the session follows them */
	/*
	 * With `launched` or `patient`, or if agt_waits(): reports the result of loading, NULL for success. It is
	 * called in another thread, at most once, and not at all if no operator was called before agt_detach().
	 */
	void (*on_entry)(void *ctx, const struct err *e);
	void *ctx;
};
/*
 * Opens the state that all agents of a session share. ring_bytes 0: AGT_RING_BYTES. gpu: an agent will subscribe to
 * CUPTI. Returns 0, or -errno with e set.
 */
int agts_open(uint32_t ring_bytes, bool gpu, struct agts **out, struct err *e);
void agts_close(struct agts *s); /* after agt_close() of all agents; NULL is allowed */
/* Passes on batches handed over since the last call. Returns true if there are more. One thread at a time. */
bool agts_take(struct agts *s);
/*
 * Passes on all remaining batches, after agts_detach(). agts_take() instead stops after a number of batches, so that a
 * process that hands over faster than mxbpf reads cannot hold it up.
 */
void agts_drain(struct agts *s);
void agts_detach(struct agts *s);	  /* agt_detach() of all agents, many at a time */
uint64_t agts_lost(const struct agts *s); /* calls that were lost because the ring was full */

/*
 * Makes the agent of a process known, and touches nothing. t is the process of the plan; p and t are borrowed until
 * agt_close(), which is needed after an error too. other: the process; NULL: it is t. Returns 0, or -errno with e set.
 */
int agt_open(struct agts *all, const struct plan *p, struct tgt *t, const struct agt_place *other,
	     const struct agt_opts *o, struct agt **out, struct err *e);
/*
 * Loads the agent into the process, or finds a loaded one, and attaches to it. If no operator is called for a moment
 * and no thread waits where the agent can be loaded, it returns 0 and loads the agent at the first operator, as with
 * `patient`. Another process than that of the plan needs `launched` or `patient`. If it is a forked child with the
 * agent of its parent, nothing is loaded: it starts the agent itself.
 */
int agt_load(struct agt *a, struct err *e);
/* With `eager`: true until it is decided whether the agent has to wait for an operator. */
bool agt_tries(const struct agt *a);
bool agt_has_entered(const struct agt *a); /* the agent is loaded, and mxbpf is attached to it */
pid_t agt_pid(const struct agt *a);
/* After agt_load() without `launched` and `patient`: why the agent has to wait for an operator, or NULL. Borrowed. */
const char *agt_waits(const struct agt *a);
/* Cost and route of the loading. If the agent is loaded later, call this only after on_entry() or agt_detach(). */
const struct agt_injected *agt_injected(const struct agt *a);
/* With `numbers`: true if the agent read an impossible sequence number. Calls after it have no numbers. */
bool agt_numbers_wrong(struct agt *a);
/* Starts or stops recording. A call is recorded if it begins while recording is on. */
void agt_activate(struct agt *a, bool on);
/* Starts recording in a process that joins others which record already: for the same time as `like`. */
void agt_activate_like(struct agt *a, struct agt *like);
/* Reads the last beats, see gate_beats(). rest: the agent records only beats from now on, until agt_detach(). */
int agt_beats(struct agt *a, bool rest, struct mxbpf_agent_beat *to);
/* Detaches from the agent. Calls that have ended can still be read. */
void agt_detach(struct agt *a);
/* Time at which the program removed all callbacks, the agent's too. Later calls are missed. 0: not removed. */
uint64_t agt_cleared_ns(const struct agt *a);
void agt_close(struct agt *a); /* detaches first; NULL is allowed */
/* Closes the agent in a thread of its own, then frees `owned`. agts_close() waits for that thread. */
void agt_close_later(struct agt *a, void *owned);

/* Sets who gets an agent's calls, in the thread that takes them, each thread's in order. `calls` is borrowed. */
typedef void (*agt_calls_fn)(void *ctx, const struct mxbpf_agent_call *calls, unsigned n);
void agt_receive(struct agt *a, agt_calls_fn fn, void *ctx);
/* The process has ended. Call it before the last agt_tails(). */
void agt_ended(struct agt *a);
/* Attaches to the agent of a forked child if it has started by now. Returns false if no such start is awaited. */
bool agt_births(struct agt *a);
/* Renews the clock by which the agent converts the CPU's counter. Call it every 20 ms. */
void agt_renew(struct agt *a);
/* Passes on the calls that were not handed over yet. Call agts_take() before. */
void agt_tails(struct agt *a);
/*
 * Visits each open call that would be recorded. level: number of open calls around it in its thread. outlived: an
 * enclosing call has already ended. o is borrowed.
 */
typedef void (*agt_open_fn)(void *ctx, const struct mxbpf_agent_open *o, uint32_t tid, unsigned level, bool outlived);
void agt_opens(struct agt *a, agt_open_fn fn, void *ctx);
/*
 * Copies a list of the agent into `list`, and sets *n to the number of its words. place: index of the list in the
 * agent's shared words. Call it once for each list. Returns 0, or -ENOENT if there is none.
 */
int agt_list(struct agt *a, uint32_t place, enum mxbpf_agent_list kind, uint64_t list[MXBPF_AGENT_LIST_WORDS],
	     uint32_t *n);
/* Writes the text of a name of the agent to `to`, or "". Call it once for each name. */
void agt_name(struct agt *a, uint32_t name, char to[MXBPF_AGENT_NAME_BYTES]);
/*
 * Returns how the process broke the agent's contract: it has written what the agent does not write. NULL: it did not.
 * Nothing is read from it any more then. Borrowed.
 */
const char *agt_broken(const struct agt *a);
/*
 * Adds up the calls recorded and lost, without agts_lost(). `stored` is 0, because the receiver of the calls counts
 * them. Any thread may call this.
 */
void agt_loss(struct agt *a, struct mxbpf_loss *loss);
/*
 * The GPU. agt_gpu() copies the agent's state; it returns false if the agent is not loaded yet or its process has
 * broken the contract. agt_gpu_want() starts and stops its client of CUPTI: a mask of enum mxbpf_gpu_want.
 */
bool agt_gpu(struct agt *a, struct mxbpf_gpu_shared *to);
void agt_gpu_want(struct agt *a, uint32_t want);
/* Starts or stops measuring counters of kernels, if agt_opts.kernels names some. */
void agt_gpu_measure(struct agt *a, bool on);
/* Returns false if the process has ended. */
bool agt_alive(const struct agt *a);
/*
 * Sets who gets the records of an agent, in the thread that takes them; fn NULL: nobody. Times are in the clock of
 * CUPTI. Call it while no thread is in agts_take_gpu().
 */
typedef void (*agt_gpu_fn)(void *ctx, const struct mxbpf_gpu_rec *recs, unsigned n);
void agt_receive_gpu(struct agt *a, agt_gpu_fn fn, void *ctx);
/*
 * Passes on records of all agents that were handed over since the last call, but only a limited number at once. Returns
 * true if more may be left. Only one thread at a time may call this.
 */
bool agts_take_gpu(struct agts *s);
/* The agent's sums since mxbpf attached. */
void agt_gpu_count(struct agt *a, struct agt_gpu_sums *sums);
/* Writes the text of a name in a record to `to`, or "". Call it once for each name. */
void agt_gpu_name(struct agt *a, uint32_t name, char to[MXBPF_GPU_NAME_BYTES]);
/* Converts the process's own id of a thread to mxbpf's. Returns 0 if there is no such thread. */
uint32_t agt_thread(struct agt *a, uint32_t its);

/* Returns the most memory that the agent can use inside the process, in bytes. */
uint64_t agt_memory_max(void);

#endif
