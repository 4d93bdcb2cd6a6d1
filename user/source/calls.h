/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the agent's call that was open when something happened on its thread. BPF does not see these calls, so records
 * of allocations, parallel regions and switches come without them. The calls of a thread arrive when they end, an inner
 * call before the one around it, and some are still open. The search therefore takes the innermost of the ended and the
 * open calls. Any thread may call these functions.
 */
#ifndef SOURCE_CALLS_H
#define SOURCE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "mxbpf_config.h"
#include "mxbpf_event.h"
#include "mxbpf_table.h"

#define CALLS_OPEN_MAX 1024 /* limit of open calls that are kept per thread */

struct calls;

/* lenders: ids of operators that allocate for their caller; 0: none. Returns NULL if there is no memory. */
struct calls *calls_new(const uint64_t lenders[MXBPF_LENDERS_MAX]);
void calls_free(struct calls *c); /* NULL is legal */

/* Adds a call that has ended. Calls of a thread must come in the order of their ends. Returns 0 or -ENOMEM. */
int calls_ended(struct calls *c, const struct mxbpf_span *s);
/* Adds a call that was open at least until a moment. Returns 0 or -ENOMEM. */
int calls_open(struct calls *c, const struct mxbpf_open *o);
/* States that all calls that were open before this moment have been added. */
void calls_known(struct calls *c, uint64_t until_ns);

/*
 * Sets the call of a record of kind MXBPF_ALLOC, MXBPF_TEAM or MXBPF_SCHED as a probe would: the innermost open call,
 * or the span that BPF has set if that is inside the call. Does not change other records. Returns false if the calls of
 * that moment are not complete yet; try again later.
 */
bool calls_fill(struct calls *c, struct mxbpf_rec *r);

/*
 * Stores the ids of the calls of a thread that were open at a moment, outermost first; with more than max calls, those
 * of the inner ones. Returns their number. *known: false if the calls of that moment are not complete yet.
 */
unsigned calls_around(struct calls *c, uint32_t tid, uint32_t tgid, uint64_t ns, uint64_t *ids, unsigned max,
		      bool *known);

/* Frees calls that only moments before the end of this span could need. */
void calls_forget(struct calls *c, const struct mxbpf_span *s);

/* Returns the number of calls that were not kept because more than CALLS_OPEN_MAX were open on their thread. */
uint64_t calls_lost(struct calls *c);

#endif
