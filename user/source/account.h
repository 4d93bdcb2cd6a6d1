/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the account (CPU, run-queue and blocked time) and the bytes of calls that no probe saw start, from the
 * scheduler switches and allocations of the same thread in the same time.
 */
#ifndef SOURCE_ACCOUNT_H
#define SOURCE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "mxbpf_event.h"

struct acc;

struct acc *acc_new(bool switches); /* switches: the caller will pass switch records. NULL: out of memory */
void acc_free(struct acc *a);	    /* NULL is legal */

/*
 * Takes a record of kind MXBPF_SCHED or MXBPF_ALLOC, and ignores other kinds. Records of one kind and thread must come
 * in the order of their times. Returns 0 or -ENOMEM.
 */
int acc_take(struct acc *a, const struct mxbpf_rec *r);

/*
 * Sets a span's account and bytes, and the size of its record to match. All records of the span's thread up to its end
 * must have been passed to acc_take(), and the spans of a thread must come in the order of their ends. Returns 0 or
 * -ENOMEM.
 *
 * Lost switches and allocations are missing in the sums; their sources count them. Page faults are unknown. A span that
 * ended on another thread gets no account. If a thread had more than about 100,000 switches or allocations since the
 * start of the span, the sums are wrong by at most 0.01 %.
 */
int acc_fill(struct acc *a, struct mxbpf_span *s);

/* Frees the data of threads that have ended. Call it after all their spans were passed to acc_fill(). */
void acc_forget_ended(struct acc *a);

/*
 * Returns how many threads lost their data because there were more than ACC_THREADS_MAX. The least recently used
 * threads lose theirs. A span open at that time lacks what happened before.
 */
#define ACC_THREADS_MAX 16384
uint64_t acc_forgotten(const struct acc *a);

#endif
