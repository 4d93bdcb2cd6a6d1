/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a session that have the agent, for the files of this folder. */
#ifndef FEATURE_AGENTS_LOAD_H
#define FEATURE_AGENTS_LOAD_H

#include "session/priv.h"

#define AGENTS_NAMED_MAX  8 /* processes that are named in notes with what is wrong there */
#define AGENTS_REFUSED_AT 4 /* of them, in warnings */

/* The agent of a process that was found after the first one; NULL: it has none. */
struct agt *agents_other(const struct session *ses, uint32_t tgid);
/*
 * Loads the agent into a process as a client of CUPTI, now or at its next operator. at: where it has mapped the files
 * of the plan; t: the process. Returns the agent, or NULL if that was refused, which is told then.
 */
struct agt *agents_load_gpu(struct session *ses, const struct plan *p, const struct agt_place *at, struct tgt *t,
			    bool was_there);

#endif
