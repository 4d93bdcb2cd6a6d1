/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers of a client of CUPTI's mock, and the operations whose records are not complete yet. */
#ifndef DOUBLE_BUFFERS_H
#define DOUBLE_BUFFERS_H

#include "collect.h"

#define CHUNK 1024

struct buffer {
	struct buffer *next;
	uint8_t *data;
	size_t size, used, records, records_max;
	size_t incomplete; /* records */
	struct arena *names;
	uint64_t counts[KINDS], kernel_ns;
	uint64_t closed; /* when it went to the kept ones */
	bool gone;	 /* the client gets it although records are incomplete: these are lost */
	bool handed_over;
};

struct lane {
	struct lane *next;
	struct buffer *b; /* NULL: none is open */
};

/* An operation that was launched, and the place of its record. */
struct waiting {
	struct double_op op;
	struct buffer *in;
	uint8_t *at;
	const char *name;
	uint64_t number; /* of kernels */
};

struct chunk {
	struct chunk *next;
	unsigned from, to;
	struct waiting ops[CHUNK];
};

struct queue {
	uint32_t stream;
	struct chunk *first, *last;
};

#endif
