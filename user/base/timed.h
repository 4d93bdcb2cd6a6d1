/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time, sorted without comparisons. */
#ifndef BASE_TIMED_H
#define BASE_TIMED_H

#include "base/buf.h"

struct timed {
	uint64_t ns;
	uint64_t what; /* the caller's: a number or an address */
};

/*
 * Sorts a buffer of struct timed by ns, fewer than 2^32. Equal ones keep their order. `spare` is memory that the caller
 * keeps from call to call. Returns 0, or -ENOMEM, and then the order is any.
 */
int timed_sort(struct buf *timed, struct buf *spare);

#endif
