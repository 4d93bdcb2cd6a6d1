/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the agent's object, which runs inside the target. It uses only libc, and only what glibc
 * 2.17 has.
 */
#ifndef AGENT_LIB_AGENT_H
#define AGENT_LIB_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mxbpf_agent.h"

/* The parts of the agent; one row for each runtime. */
struct agent_module {
	const char *name;
	unsigned bit;	    /* enum mxbpf_agent_module */
	int (*start)(void); /* returns 0 or -errno; may be called again after stop */
	void (*stop)(void); /* called by any thread that finds no mxbpf attached */
};
extern const struct agent_module agent_record_function, agent_gpu;
/* Tries to hold CUPTI in the calling thread, before the module agent_gpu is started. */
void agent_gpu_hold(struct mxbpf_gpu_shared *g);

extern struct mxbpf_agent_config mxbpf_agent_config;
extern volatile uint16_t mxbpf_agent_switch;

/*
 * A page that the kernel clears in every child (MADV_WIPEONFORK), whatever call made the child. A kernel that cannot do
 * so, as gVisor, copies it: then `pid` says whose memory it is.
 */
struct agent_gate {
	struct mxbpf_agent_shared *volatile shared;
	long pid; /* 0: the kernel clears the page */
};
extern struct agent_gate *agent_gate;

/*
 * Slot of the calling thread, taken at its first call; NULL: none. Code that cannot record for lack of a slot
 * counts the call in no_slot.
 */
extern __thread struct mxbpf_agent_slot *agent_slot __attribute__((tls_model("initial-exec")));
extern __thread struct agent_gate *agent_slot_gate __attribute__((tls_model("initial-exec")));
/* In a forked child, the thread that called fork() still has the slot of its parent, whose memory is not there. */
static inline struct mxbpf_agent_slot *agent_own_slot(void)
{
	return agent_slot_gate == agent_gate ? agent_slot : NULL;
}
struct mxbpf_agent_slot *agent_take_slot(struct mxbpf_agent_shared *s);
/* Returns the slot of the calling thread, and takes one if it has none. Counts what cannot be recorded for lack of one.
 */
struct mxbpf_agent_slot *agent_my_slot(struct mxbpf_agent_shared *s);

uint64_t agent_now(void);
long agent_call(long nr, long a, long b, long c, long d, long e, long f); /* a system call: its result or -errno */
/* Returns the shared memory, or NULL in a forked child until mxbpf attaches to that child. */
struct mxbpf_agent_shared *agent_shared(void);
/*
 * Starts the agent in a forked child, which has inherited its callbacks, if mxbpf records in the parent and wants the
 * children. Returns the shared memory, or NULL; then the call that is just beginning is counted in the parent's.
 */
struct mxbpf_agent_shared *agent_inherit(void);
/* Returns true if somebody wants what the agent hands over: mxbpf is attached, or it goes into a file. */
bool agent_is_heard(void);
void agent_hand_over(const struct mxbpf_agent_batch *b);
/* Returns the offset of a name's text in the shared memory, or 0 if there is no room. */
uint32_t agent_name(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, const char *text);
/* Records a call that has ended. */
void agent_record(struct mxbpf_agent_slot *t, const struct mxbpf_agent_call *c);

#endif
