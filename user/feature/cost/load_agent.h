/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FEATURE_COST_LOAD_AGENT_H
#define FEATURE_COST_LOAD_AGENT_H

#include "session/priv.h"

/*
 * Returns the beat of a phase so far: the times between two steps of an optimizer on the thread with most of them. n is
 * 0 if there are none. cost_ns is not set. rest: in this phase the agent records nothing else; it begins with the call.
 */
struct mxbpf_beat agent_beat(struct session *ses, struct agent_phase *p, bool rest);

#endif
