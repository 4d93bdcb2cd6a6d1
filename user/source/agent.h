/* SPDX-License-Identifier: Apache-2.0 */
/* The source that reads from the agents of a session. */
#ifndef SOURCE_AGENT_H
#define SOURCE_AGENT_H

#include "agent/agent.h"
#include "source/calls.h"
#include "source/source.h"

/* What calls of a name say about iterations. */
enum src_agent_role {
	SRC_AGENT_PLAIN,
	SRC_AGENT_ENDS,	    /* its end can be that of an iteration */
	SRC_AGENT_CONFIRMS, /* the first one after such a call makes sure of it */
};
/*
 * Adds the source. `all` and `calls` are borrowed until the hub is freed. `calls` learns of each call before the
 * watermark passes it; it may be NULL. owners: records of memory have room for their owner. Returns NULL if there is no
 * memory.
 */
struct src_agent_opts {
	struct calls *calls;
	bool owners;
	bool stacks; /* records of memory have room for their stack, too */
	/*
	 * Returns the id of a list of the agent, for args_id or stack_id of a record; 0: none. It is called in the
	 * source's thread, once for each list, before a record with the id is delivered.
	 */
	uint64_t (*list_id)(void *ctx, uint32_t tgid, unsigned kind, const uint64_t *list, uint32_t n);
	void *ctx;
	/* Calls that say where iterations end are kept when others are given up. NULL: none do. */
	enum src_agent_role (*role)(const char *name);
};
struct src *src_add_agent(struct src_hub *h, struct agts *all, const struct src_agent_opts *o);
/* Records so far, of all that src_loss() counts: of memory, and of calls with arguments and with a stack. */
struct src_agent_counts {
	uint64_t memory, args, stacks;
};
struct src_agent_counts src_agent_counts(const struct src *s);
/*
 * A process gets the agent, or has ended: the source then has all its calls, and does not need the agent any more. Call
 * these and the functions below from one thread. `a` is borrowed until src_agent_leave(), or until the hub is freed.
 * Returns 0 or -ENOMEM.
 */
int src_agent_join(struct src *s, struct agt *a);
void src_agent_leave(struct src *s, struct agt *a);
/* Starts recording in all processes. */
void src_agent_start(struct src *s);
/*
 * Stop recording until src_agent_start(). src_agent_stop() does so at once. Call src_agent_settle() soon after it: that
 * tells `calls` of all calls that were open at that moment or had ended.
 */
void src_agent_stop(struct src *s);
void src_agent_settle(struct src *s);

#endif
