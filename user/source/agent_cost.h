/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent costs the calls that it records. Nothing in the process adds it up, so this file does, from an
 * estimate for one call: the runtime's slow path to a callback, and the callback itself.
 */
#ifndef SOURCE_AGENT_COST_H
#define SOURCE_AGENT_COST_H

#include "mxbpf_cost.h"

struct agent_costs;
struct agent_costs *agent_costs_new(void); /* NULL: out of memory */
void agent_costs_free(struct agent_costs *c);
/* Fills the cost of a call. Calls come in the order of their ends. */
void agent_costs_fill(struct agent_costs *c, struct mxbpf_span *s);

#endif
