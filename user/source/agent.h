/* SPDX-License-Identifier: Apache-2.0 */
/* The source that is the agent inside a process. */
#ifndef SOURCE_AGENT_H
#define SOURCE_AGENT_H

#include "agent/agent.h"
#include "source/source.h"

/* a is borrowed until the hub is freed; tgid: of the process, for the records. NULL: out of memory. */
struct src *src_add_agent(struct src_hub *h, struct agt *a, uint32_t tgid);

#endif
