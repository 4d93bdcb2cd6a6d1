/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent inside a process, from outside: loads it, listens to it, and reads what it has written. It is silent until
 * agt_activate(), and again when nobody listens any more, however this process ends.
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

#define AGT_RING_BYTES (16u << 20) /* of batches that nobody has read yet; a power of two */

/* Whether the agent knows the runtime of a plan, before anything is touched. 0, or -errno with e set. */
int agt_usable(const struct plan *p, struct tgt *t, struct err *e);
struct agt_opts {
	uint32_t ring_bytes; /* 0: AGT_RING_BYTES */
	bool numbers;	     /* calls have the numbers that join forward and backward, if the plan has no no_seq */
	/* mxbpf has launched the process. The agent comes in at the first operator that is called, before that runs;
	 * until then agt_open() does not wait. */
	bool launched;
	/* The process has just mapped its library. The agent comes in when operators are called, however late; until
	 * then agt_open() does not wait. Operators that are called before are not seen. */
	bool patient;
	/* With either: what came of that, NULL if all went well. Called in another thread, at most once; not if no
	 * operator was called before agt_detach(). */
	void (*on_entry)(void *ctx, const struct err *e);
	void *ctx;
};
/* Loads the agent into a process, or finds the one that is there, and listens to it. */
int agt_open(const struct plan *p, struct tgt *t, const struct agt_opts *o, struct agt **out, struct err *e);
/* What it took. With `launched` or `patient`: after on_entry(), or agt_detach(). */
const struct agt_injected *agt_injected(const struct agt *a);
/* With `numbers`: calls have none from some time on, as what was read as one could not be one. */
bool agt_numbers_wrong(const struct agt *a);
/* From now on, or no more: calls that begin from now on are recorded when they end. */
void agt_activate(struct agt *a, bool on);
/* Nobody listens any more. Calls that have ended can still be read. */
void agt_detach(struct agt *a);
/* When the program took out the agent's callbacks with all others, as at::clearCallbacks() does: what it calls from
 * then on is not seen. 0: it has not. */
uint64_t agt_cleared_ns(const struct agt *a);
void agt_close(struct agt *a); /* detaches; NULL is legal */

/*
 * Gives fn all batches that were handed over since the last call, and, with `tails`, the calls that were not: first of
 * each thread at most. calls is borrowed. From one thread at a time.
 */
typedef void (*agt_calls_fn)(void *ctx, const struct mxbpf_agent_call *calls, unsigned n);
void agt_take(struct agt *a, bool tails, agt_calls_fn fn, void *ctx);
/* Each call that is open, of those that would be recorded. level: open calls of its thread around it. outlived: a call
 * around it has ended. o is borrowed. */
typedef void (*agt_open_fn)(void *ctx, const struct mxbpf_agent_open *o, uint32_t tid, unsigned level, bool outlived);
void agt_opens(struct agt *a, agt_open_fn fn, void *ctx);
/* A name as the agent has it; "" if it has none. Never freed before the agent is closed. */
const char *agt_name(const struct agt *a, uint32_t name);
/* What was recorded, and what of it is known to be lost. `stored` is 0: who takes the calls counts them. Any thread. */
void agt_loss(const struct agt *a, struct mxbpf_loss *loss);
/* The most memory that the agent takes inside the process, in bytes. */
uint64_t agt_memory_max(void);

#endif
