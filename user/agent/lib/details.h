/* SPDX-License-Identifier: Apache-2.0 */
/* What is read at the start of a call, if mxbpf wants it. Both return a place in words[], or 0 if there is none. */
#ifndef AGENT_LIB_DETAILS_H
#define AGENT_LIB_DETAILS_H

#include "agent.h"

/* The arguments of a call. rf: the RecordFunction, which a callback that needs arguments has been given. */
uint32_t agent_args(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, const void *rf);

/*
 * The Python stack of the calling thread. *top becomes a hash of its innermost frame. outer: the call around this one,
 * or NULL; if it began in the same frame, at the same instruction, it has the same stack.
 */
uint32_t agent_stack(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, const struct mxbpf_agent_open *outer,
		     __u64 *top);

#endif
