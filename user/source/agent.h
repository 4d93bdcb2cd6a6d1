/* SPDX-License-Identifier: Apache-2.0 */
/* The source that reads from the agent inside a process. */
#ifndef SOURCE_AGENT_H
#define SOURCE_AGENT_H

#include "agent/agent.h"
#include "source/calls.h"
#include "source/source.h"

/*
 * Adds the source. `a` and `calls` are borrowed until the hub is freed; tgid is that of the process. `calls` learns of
 * each call before the watermark passes it; it may be NULL. owners: records of memory have room for their owner.
 * Returns NULL if there is no memory.
 */
struct src_agent_opts {
	uint32_t tgid;
	struct calls *calls;
	bool owners;
};
struct src *src_add_agent(struct src_hub *h, struct agt *a, const struct src_agent_opts *o);
uint64_t src_agent_memory(const struct src *s); /* records of memory so far; src_loss() counts them as well */
/*
 * Stop recording until agt_activate(). src_agent_stop() does so at once. Call src_agent_settle() soon after it: that
 * tells `calls` of all calls that were open at that moment or had ended. Call both from one thread.
 */
void src_agent_stop(struct src *s);
void src_agent_settle(struct src *s);

#endif
