/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds which spans of a thread are nested, from records in the order of their starts: self times, memory of spans, and
 * the Python stack in which each span began, from spans of functions of Python. Passes records on in batches, each span
 * in the batch of its end.
 */
#ifndef IMPORT_NEST_H
#define IMPORT_NEST_H

#include <stddef.h>
#include <stdint.h>

#include "mxbpf_event.h"

struct nest;

struct nest_out {
	/* Passes a batch on; returns 0 or -errno. */
	int (*batch)(void *ctx, void *recs, size_t bytes);
	/* The id of a stack: names of frames, the innermost first; 0 without memory. */
	uint64_t (*stack)(void *ctx, const uint64_t *frames, size_t n);
	void *ctx;
};

struct nest *nest_new(const struct nest_out *out); /* NULL: out of memory */
/* Times are rounded: a nested span may end so much later than the one around it. */
void nest_rounded(struct nest *n, uint64_t ns);
int nest_put(struct nest *n, struct mxbpf_rec *r);
int nest_end(struct nest *n); /* passes on what is left */
/* By how much nested spans exceed those around them, because they overlap: the sum of all self times is so much too
 * large.
 */
uint64_t nest_over_ns(const struct nest *n);
uint64_t nest_lost(const struct nest *n); /* spans beyond the limits of threads and of overlapping ones */
void nest_free(struct nest *n);		  /* NULL is legal */

#endif
