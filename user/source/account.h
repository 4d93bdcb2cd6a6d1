/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the scheduling account and the bytes of calls that no probe started: from the scheduler's switches and from
 * the allocations of the same thread at the same time.
 */
#ifndef SOURCE_ACCOUNT_H
#define SOURCE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "mxbpf_event.h"

struct acc;

struct acc *acc_new(bool switches); /* switches: records of them will be taken; NULL: out of memory */
void acc_free(struct acc *a);	    /* NULL is legal */

/* Takes a record of kind MXBPF_SCHED or MXBPF_ALLOC; other kinds are ignored. The records of one kind and thread must
 * come in the order of their times. 0 or -ENOMEM. */
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

/* Frees the data of threads that have ended. Call it when all their spans have been filled in. */
void acc_forget_ended(struct acc *a);

/*
 * The number of threads whose data was freed because there were more than ACC_THREADS_MAX: those without a record or a
 * span for the longest time. A span that was open in such a thread lacks what happened before.
 */
#define ACC_THREADS_MAX 16384
uint64_t acc_forgotten(const struct acc *a);

#endif
