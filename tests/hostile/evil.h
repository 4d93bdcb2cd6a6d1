/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that attacks mxbpf through the agent that mxbpf has loaded into it. Each attack is a function with a name.
 * It runs in a thread of its own, which begins when mxbpf records.
 */
#ifndef HOSTILE_EVIL_H
#define HOSTILE_EVIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mxbpf_agent.h"

#define EVIL_BYTES ((sizeof(struct mxbpf_agent_shared) + 4095) & ~(size_t)4095)

struct attack {
	const char *name;
	void (*run)(void);
	bool early; /* runs before the job is ready, in the job's thread, without an agent */
	bool gpu;   /* waits until mxbpf wants records of CUPTI, too */
};

/* The last one has no name. */
extern const struct attack evil_calls[], evil_memory[], evil_gpu[], evil_files[];

/* The arguments of evil(). */
extern const char *evil_object;		       /* path of the agent's shared object */
extern const char *evil_file;		       /* path of a file of another user */
extern struct mxbpf_agent_shared *evil_shared; /* NULL in early attacks */

uint64_t evil_now(void);
uint32_t evil_tid(void);
uint64_t evil_random(void);
void evil_ring(const struct mxbpf_agent_batch *b);
/* The configuration of the agent that mxbpf has loaded. */
struct mxbpf_agent_config *evil_config(void);
/* The name in the agent's memory, added as the agent does. */
uint32_t evil_name(const char *text);
/* The slot of the attack's thread, which is a free one that it has taken as the agent does. */
struct mxbpf_agent_slot *evil_slot(void);
/* Fills the batch with n calls that an honest agent could write, and the next number of the slot. */
void evil_fill(struct mxbpf_agent_batch *b, unsigned n);
/* Hands the batch over and counts its calls. */
void evil_hand_over(struct mxbpf_agent_batch *b);
/* The attack has begun: the test reads this line. */
void evil_began(void);
/* Waits for the end of the process. */
void evil_wait(void);

#endif
