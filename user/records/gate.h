/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate between the memory of a target and everything else. The agent runs inside the target, so whatever it hands
 * over or shares may have been written by code that attacks mxbpf. Each function copies one kind of thing into memory
 * of our own, and checks the copy: kind, size, counts, offsets, times, ids. Nothing else reads what the agent shares.
 *
 * The shared memory is read as a file, never through a mapping. A target that makes it shorter then causes a short
 * read, not a SIGBUS, and reading does not fill its holes with pages.
 *
 * A check that fails breaks the gate: the target does what an honest agent cannot do. A broken gate stays shut: every
 * function fails from then on. All functions may be called from any thread. Those that return int return 0 or -EPROTO
 * unless they say otherwise. Times are CLOCK_MONOTONIC in ns, and at most MXBPF_AGENT_CLOCK_AHEAD_NS ahead of it.
 */
#ifndef RECORDS_GATE_H
#define RECORDS_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mxbpf_agent.h"

#define GATE_TID_MAX (1u << 22) /* PID_MAX_LIMIT of the kernel */

struct gate {
	int fd;				  /* the shared memory, which starts at offset 0; borrowed; -1: none yet */
	uint32_t names, gpu_names, lists; /* atomic: names and lists that were read */
	int state;			  /* atomic: 0: whole; 1: `why` is being written; 2: broken */
	char why[160];
};

/* Breaks the gate, and keeps the first reason, which must have no text of the target. Returns -EPROTO. */
int gate_break(struct gate *g, const char *why, ...) __attribute__((format(printf, 2, 3)));
/* Returns how the target broke the contract, or NULL if it did not. Borrowed. */
const char *gate_why(const struct gate *g);

/* The agent's configuration, copied from its data segment. Sets *bytes to the size of the shared memory. */
int gate_config(struct gate *g, const struct mxbpf_agent_config *c, uint64_t *bytes);

/* What the shared memory begins with, without the places of names. */
struct gate_head {
	uint64_t magic, no_slot, no_name, orphans, unheard_calls, nbeats;
	uint32_t version, registered, numbers, unheard;
};
int gate_head(struct gate *g, struct gate_head *to);
/*
 * The last beats, the oldest first, not checked: any thread may be writing one. Returns their number, at most
 * MXBPF_AGENT_BEATS, or -errno.
 */
int gate_beats(struct gate *g, struct mxbpf_agent_beat *to);

/* A thread's slot, without its calls. */
struct gate_slot {
	uint32_t tid, uses, depth; /* depth: at most MXBPF_AGENT_OPEN */
	uint64_t calls, too_deep, unreadable, truncated;
};
int gate_slot(struct gate *g, unsigned slot, struct gate_slot *to);
/*
 * The batch that a thread fills. Returns the number of its calls. 0 also means that the thread handed the batch over
 * while it was read.
 */
int gate_tail(struct gate *g, unsigned slot, struct mxbpf_agent_batch *to);
/* A batch that a forked child has spilled. Returns the number of its calls, or -EAGAIN if it is not complete. */
int gate_spilled(struct gate *g, unsigned i, struct mxbpf_agent_batch *to);
/* An open call. Returns 1, or 0 if it has ended or changed while it was read. */
int gate_open(struct gate *g, unsigned slot, unsigned level, struct mxbpf_agent_open *to);
/* A batch of calls that the bell's program has copied. */
int gate_batch(struct gate *g, const struct mxbpf_agent_batch *b, size_t bytes);
/* The text of a name, "" for 0 and on failure. Call it once for each name: more names than an agent can have break the
 * gate. */
int gate_name(struct gate *g, uint32_t name, char to[MXBPF_AGENT_NAME_BYTES]);

/*
 * The list at a place, with the number of its words. Its words are as many as its kind allows, and not checked. Call it
 * once for each list: more lists than an agent can have break the gate.
 */
int gate_list(struct gate *g, uint32_t place, enum mxbpf_agent_list kind, uint64_t list[MXBPF_AGENT_LIST_WORDS],
	      uint32_t *n);

/* The state of the client of CUPTI. Its texts are terminated. */
int gate_gpu(struct gate *g, struct mxbpf_gpu_shared *to);
/* Returns NULL, or what is wrong with a record of a GPU. Its times are CUPTI's, so whoever converts them checks them.
 */
const char *gate_gpu_rec(const struct mxbpf_gpu_rec *r);
/* A batch of records of a GPU that the bell's program has copied. */
int gate_gpu_batch(struct gate *g, const struct mxbpf_agent_batch *b, size_t bytes);
/* As gate_name(), for names in records of a GPU. */
int gate_gpu_name(struct gate *g, uint32_t name, char to[MXBPF_GPU_NAME_BYTES]);

#endif
