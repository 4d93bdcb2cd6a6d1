/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the target: what the files of the shared object share. It uses libc alone, and of that what glibc 2.17 has. */
#ifndef AGENT_LIB_AGENT_H
#define AGENT_LIB_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mxbpf_agent.h"

/* What the agent does, one row each. */
struct agent_module {
	const char *name;
	int (*start)(void); /* -errno; once more after a stop is legal */
	void (*stop)(void); /* called by any thread that finds nobody listening */
};
extern const struct agent_module agent_torch;

extern struct mxbpf_agent_config mxbpf_agent_config;
extern volatile uint16_t mxbpf_agent_switch;

/*
 * The shared memory; NULL in a child that was forked, until it is attached to by itself: the kernel clears the page
 * that this stands on, so it holds however the child came to be.
 */
struct agent_gate {
	struct mxbpf_agent_shared *volatile shared;
};
extern struct agent_gate *agent_gate;

/* The calling thread's slot, taken at its first call; NULL: there is none for it. Who records nothing for want of one
 * counts the call in no_slot. */
extern __thread struct mxbpf_agent_slot *agent_slot __attribute__((tls_model("initial-exec")));
struct mxbpf_agent_slot *agent_take_slot(struct mxbpf_agent_shared *s);

uint64_t agent_now(void);
/* Where the text of a name stands in the shared memory; 0: there was no room. */
uint32_t agent_name(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, const char *text);
/* One call has ended. */
void agent_record(struct mxbpf_agent_slot *t, const struct mxbpf_agent_call *c);

#endif
