/* SPDX-License-Identifier: Apache-2.0 */
/* The source that is the agent inside a process. */
#ifndef SOURCE_AGENT_H
#define SOURCE_AGENT_H

#include "agent/agent.h"
#include "source/calls.h"
#include "source/source.h"

/*
 * a is borrowed until the hub is freed; tgid: of the process, for the records. calls learns of each call before the
 * watermark has passed it; borrowed likewise, NULL: nobody asks. NULL: out of memory.
 */
struct src *src_add_agent(struct src_hub *h, struct agt *a, uint32_t tgid, struct calls *calls);
/*
 * The agent records no more, until agt_activate(). src_agent_stop does that at once; src_agent_settle, soon behind it,
 * lets calls learn of what was open at that moment, and of all that had ended. From one thread.
 */
void src_agent_stop(struct src *s);
void src_agent_settle(struct src *s);

#endif
