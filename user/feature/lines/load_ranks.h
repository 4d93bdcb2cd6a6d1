/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes of this machine are other ranks of a distributed job. */
#ifndef FEATURE_LINES_LOAD_RANKS_H
#define FEATURE_LINES_LOAD_RANKS_H

#include <sys/types.h>

#include "plan/probe.h"
#include "target/target.h"

struct ranks;

/* adp: of the runtime, or NULL. Returns NULL if the process has ended, may not be read, or there is no memory. */
struct ranks *ranks_new(pid_t pid, const struct adp *adp);
void ranks_free(struct ranks *r); /* NULL is legal */
/*
 * Calls fn for each process that is another rank of the job, and may call it again for the same one: those that were
 * told to meet at the same place, else children of the same parent with the same command line, apart from its digits.
 * `thorough` looks at all processes of the machine, which is necessary for ranks that have another parent.
 */
void ranks_each(struct ranks *r, bool thorough, void (*fn)(void *ctx, pid_t pid), void *ctx);

/* The place of a rank in its job, as in struct mxbpf_agg_line. Numbers that are not known are 0. */
struct ranks_place {
	uint16_t number;
	uint8_t local_ranks;
};
struct ranks_place ranks_place(const struct tgt *t);

#endif
