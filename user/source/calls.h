/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the agent's calls was open when something happened in its thread. No program in the kernel sees these calls,
 * so records of allocations, parallel regions and switches come without them. The calls of a thread arrive when they
 * end, the inner one before the outer one, and some are still open: where a call is needed, it is the innermost one
 * of the ended and of the open ones. Any thread may call these functions.
 */
#ifndef SOURCE_CALLS_H
#define SOURCE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "mxbpf_config.h"
#include "mxbpf_event.h"
#include "mxbpf_table.h"

#define CALLS_OPEN_MAX 1024 /* open calls of a thread that are kept */

struct calls;

/* lenders: names of operators that allocate for the one around them; 0: none. NULL: out of memory. */
struct calls *calls_new(const uint64_t lenders[MXBPF_LENDERS_MAX]);
void calls_free(struct calls *c); /* NULL is legal */

/* A call has ended. Calls of a thread come in the order of their ends. 0 or -ENOMEM. */
int calls_ended(struct calls *c, const struct mxbpf_span *s);
/* A call was open from its start until a moment at least. 0 or -ENOMEM. */
int calls_open(struct calls *c, const struct mxbpf_open *o);
/* All calls that were open at some time before this moment have been told. */
void calls_known(struct calls *c, uint64_t until_ns);

/*
 * Fills in the call that a record of kind MXBPF_ALLOC, MXBPF_TEAM or MXBPF_SCHED was in, as a probe would have done:
 * the innermost one that was open, or the span that BPF has put there if that is in the call. Other records stay as
 * they are. Returns whether there is nothing left to learn: false if the calls of that moment were not known yet.
 */
bool calls_fill(struct calls *c, struct mxbpf_rec *r);

/* Nothing will be asked about moments before the end of this call. */
void calls_forget(struct calls *c, const struct mxbpf_span *s);

/* Calls that were not kept, as more than CALLS_OPEN_MAX of their thread were open. */
uint64_t calls_lost(struct calls *c);

#endif
