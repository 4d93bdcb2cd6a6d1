/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds which spans of a thread are nested, from records in the order of their starts: self times, memory of spans, and
 * the Python stack in which each span began. Passes records on in batches, each span in the batch of its end.
 */
#ifndef IMPORT_NEST_H
#define IMPORT_NEST_H

#include <stddef.h>
#include <stdint.h>

#include "mxbpf_event.h"

/* A span of this class is a frame of Python with its text as the name: it is part of stacks, and not passed on. */
#define NEST_FRAME MXBPF_CLASS_NONE

struct nest;

struct nest_out {
	/* Passes a batch on; returns 0 or -errno. */
	int (*batch)(void *ctx, void *recs, size_t bytes);
	/* The id of a stack: names of frames, the innermost first; 0 without memory. */
	uint64_t (*stack)(void *ctx, const uint64_t *frames, size_t n);
	void *ctx;
};

struct nest *nest_new(const struct nest_out *out); /* NULL: out of memory */
int nest_put(struct nest *n, struct mxbpf_rec *r);
int nest_end(struct nest *n);		  /* passes on what is left */
uint64_t nest_lost(const struct nest *n); /* spans of threads beyond the limit of threads */
void nest_free(struct nest *n);		  /* NULL is legal */

#endif
