/* SPDX-License-Identifier: Apache-2.0 */
/* The source that reads from the agents of a session. */
#ifndef SOURCE_AGENT_H
#define SOURCE_AGENT_H

#include "agent/agent.h"
#include "source/calls.h"
#include "source/source.h"

/*
 * Adds the source. `all` and `calls` are borrowed until the hub is freed. `calls` learns of each call before the
 * watermark passes it; it may be NULL. owners: records of memory have room for their owner. Returns NULL if there is no
 * memory.
 */
struct src_agent_opts {
	struct calls *calls;
	uint32_t device; /* of records of memory */
	bool owners;
};
struct src *src_add_agent(struct src_hub *h, struct agts *all, const struct src_agent_opts *o);
/*
 * A process gets the agent, or has ended: the source then has all its calls, and does not need the agent any more. Call
 * these and the functions below from one thread. `a` is borrowed until src_agent_leave(), or until the hub is freed.
 * Returns 0 or -ENOMEM.
 */
int src_agent_join(struct src *s, struct agt *a);
void src_agent_leave(struct src *s, struct agt *a);
uint64_t src_agent_memory(const struct src *s); /* records of memory so far; src_loss() counts them as well */
/* Starts recording in all processes. */
void src_agent_start(struct src *s);
/*
 * Stop recording until src_agent_start(). src_agent_stop() does so at once. Call src_agent_settle() soon after it: that
 * tells `calls` of all calls that were open at that moment or had ended.
 */
void src_agent_stop(struct src *s);
void src_agent_settle(struct src *s);

#endif
