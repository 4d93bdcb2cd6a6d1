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
	bool stacks; /* records of memory have room for their stack, too */
	/*
	 * Returns the id of a list of the agent, for args_id or stack_id of a record; 0: none. It is called in the
	 * source's thread, once for each list, before a record with the id is delivered.
	 */
	uint64_t (*list_id)(void *ctx, uint32_t tgid, unsigned kind, const uint64_t *list, uint32_t n);
	void *ctx;
};
struct src *src_add_agent(struct src_hub *h, struct agt *a, const struct src_agent_opts *o);
/* Records so far, of all that src_loss() counts: of memory, and of calls with arguments and with a stack. */
struct src_agent_counts {
	uint64_t memory, args, stacks;
};
struct src_agent_counts src_agent_counts(const struct src *s);
/*
 * Stop recording until agt_activate(). src_agent_stop() does so at once. Call src_agent_settle() soon after it: that
 * tells `calls` of all calls that were open at that moment or had ended. Call both from one thread.
 */
void src_agent_stop(struct src *s);
void src_agent_settle(struct src *s);

#endif
