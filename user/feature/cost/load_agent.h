/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FEATURE_COST_LOAD_AGENT_H
#define FEATURE_COST_LOAD_AGENT_H

#include "attach/costs.h"
#include "session/priv.h"

/* A time in which the agent records or rests. */
struct agent_phase {
	uint64_t from_ns;
	uint32_t tid;		      /* its thread; 0: not known yet */
	uint64_t runq_at_ns, runq_ns; /* a moment, and how long the thread had waited for a CPU until then */
};

/*
 * Returns the beat of a phase so far: the times between two steps of an optimizer on the thread with most of them. n is
 * 0 if there are none. cost_ns is not set. rest: in this phase the agent records nothing else; it begins with the call.
 */
struct mxbpf_beat agent_beat(struct session *ses, struct agent_phase *p, bool rest);

/* The beats that count. */
struct agent_beats_of {
	uint32_t tid;
	bool rest;		  /* those of the phase in which the agent records nothing else */
	uint64_t from_ns, now_ns; /* CLOCK_MONOTONIC */
};

/*
 * Adds the times between the n beats of a thread to a sum. The process may have written anything: the time between two
 * beats is left out if the second one is not later, lies in the future, or has more CPU time than time.
 */
void agent_beats_add(const struct mxbpf_agent_beat *b, int n, const struct agent_beats_of *of, struct mxbpf_beat *sum);

#endif
