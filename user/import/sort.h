/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts records by time. What does not fit into a few MiB of memory goes into a scratch file in sorted runs, which are
 * merged at the end.
 */
#ifndef IMPORT_SORT_H
#define IMPORT_SORT_H

#include <stdint.h>

#include "mxbpf_event.h"

struct sort;

/* `fd`: an empty scratch file, borrowed. NULL: out of memory. */
struct sort *sort_new(int fd);
/*
 * Takes a copy. Records of one time stand in the order of `order`, and those of one order as they came. Returns 0 or
 * -errno.
 */
int sort_put(struct sort *s, uint64_t order, const struct mxbpf_rec *r);
/* Calls fn for each record in order. It may change the record. Returns 0, the first error of fn, or -errno. */
int sort_each(struct sort *s, int (*fn)(void *ctx, struct mxbpf_rec *r), void *ctx);
void sort_free(struct sort *s); /* NULL is legal */

#endif
