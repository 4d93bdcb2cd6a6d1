/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time and the memory of calls went that bear no account of their own, because no probe was at their start:
 * by what the scheduler's and the allocator's records say of the same thread at the same time.
 */
#ifndef SOURCE_ACCOUNT_H
#define SOURCE_ACCOUNT_H

#include <stdbool.h>

#include "mxbpf_event.h"

struct acc;

struct acc *acc_new(bool switches); /* switches: those of all threads come; NULL: out of memory */
void acc_free(struct acc *a);	    /* NULL is legal */

/* Keeps what a record of kind MXBPF_SCHED or MXBPF_ALLOC says; of each kind those of a thread come in their order.
 * Other kinds are legal. 0 or -ENOMEM. */
int acc_take(struct acc *a, const struct mxbpf_rec *r);

/*
 * Fills in a span's account and bytes, and makes its record as long as that needs. All records of its thread up to its
 * end were taken, and the spans of its thread come in the order of their ends. 0 or -ENOMEM.
 *
 * Switches and allocations that were lost are missing here; their sources count them. Page faults are not known. A span
 * that ended on another thread has no account: all of its time was elsewhere. Where a thread had more than about a
 * hundred thousand switches or allocations since a span began, its figures are off by one of ten thousand at most.
 */
int acc_fill(struct acc *a, struct mxbpf_span *s);

/* Spans of threads that have ended do not come any more, but for those that have been delivered already. */
void acc_forget_ended(struct acc *a);

#endif
