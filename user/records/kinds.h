/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of records, one row each. Whoever checks, writes, reads, merges or names records iterates the row of their
 * kind: a new kind is a struct in include/, a row in kinds.c, and what the model folds it into (folds[] in
 * user/model/model.c). A kind without a row is a newer one: its header is checked, and who does not know it passes it
 * by.
 */
#ifndef RECORDS_KINDS_H
#define RECORDS_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mxbpf_event.h"

enum { KIND_SIZES_MAX = 4, KIND_IDS_MAX = 6, KIND_THREADS_MAX = 2, KIND_TIMES_MAX = 3 };

enum kind_id_flag {
	KIND_ID_SHORT = 1 << 0,	   /* of 16 bits; without, of 64 */
	KIND_ID_OF_MARK = 1 << 1,  /* only of a span with MXBPF_SPAN_USER */
	KIND_ID_OF_NAMED = 1 << 2, /* only of a record of a store with MXBPF_KV_NAMED */
	KIND_ID_RAW = 1 << 3,	   /* BPF's own; user space puts that of a text in its place */
};

/* A field that holds an id. */
struct kind_id {
	uint16_t off;
	uint8_t of;    /* enum mxbpf_name_kind: the table that it is an id of */
	uint8_t flags; /* enum kind_id_flag */
};

/* What a record may have behind its fixed part: items of one size. */
struct kind_tail {
	uint16_t bytes; /* of one; 0: the kind has no tail of items */
	uint16_t max;	/* BPF sends so many at most */
	unsigned (*count)(const struct mxbpf_rec *r);
	struct kind_id id; /* bytes from the item's beginning; of a tail with `ids` */
	bool ids;
	uint8_t ntimes; /* its first words, all times */
};

struct kind {
	const char *name;	       /* as in error messages and tests */
	uint16_t bytes;		       /* of the fixed part, in the shortest form that any recording has */
	uint16_t sent[KIND_SIZES_MAX]; /* sizes that BPF sends, without the tail; 0 behind the last; none: it sends none
					*/
	uint16_t fixed;		       /* where the tail begins */
	struct kind_id ids[KIND_IDS_MAX];   /* `off` 0 behind the last */
	uint16_t threads[KIND_THREADS_MAX]; /* offsets of thread ids of 32 bits, likewise */
	uint16_t times[KIND_TIMES_MAX]; /* offsets of times beside that of the header, likewise. The value 0 is no time
					 */
	uint16_t dur;			/* offset of how long it lasted from the header's time on; 0 none */
	struct kind_tail tail;
	bool of_row; /* begins with the id of a row of a table: belongs to the row before it, or is one */
	bool few;    /* comes from the ring with --stats too, where spans do not */
	bool (*fits)(const struct mxbpf_rec *r); /* whether its fields can be true; NULL: they always can */
	/* Of a kind whose size follows from what is in it: whether `size` bytes are one that BPF sends. */
	bool (*sent_fits)(const struct mxbpf_rec *r, size_t size);
};

/* NULL of a kind that has no row. */
const struct kind *kind_of(const struct mxbpf_rec *r);
const struct kind *kind_numbered(unsigned number);

/* Whether r is a whole record of the size that BPF sends, and fits. */
bool kind_sent(const struct mxbpf_rec *r, size_t size);

/*
 * The record at *pos of `recs` and *pos behind it, for input that nobody has checked yet. NULL at the end, or with *bad
 * where a record does not fit (size 0, unaligned, beyond the end, shorter than its kind; a length beyond the record; a
 * class or bucket out of range). What it returns is safe to read. `recs` is 8-byte aligned.
 */
const struct mxbpf_rec *kind_check_next(const void *recs, size_t bytes, size_t *pos, bool *bad);

/* 0 or -EBADMSG: the same of all of them, once; then kind_next() walks over them. */
int kind_check(const void *recs, size_t bytes);

/* The record at *pos of checked ones, and *pos behind it. NULL at the end. */
static inline const struct mxbpf_rec *kind_next(const void *recs, size_t bytes, size_t *pos)
{
	const struct mxbpf_rec *r = (const void *)((const char *)recs + *pos);

	if (*pos >= bytes)
		return NULL;
	*pos += r->size;
	return r;
}

/* A walk over the ids of a record: {.i = 0}, then kind_next_id() until it is false. Ids of 0 are passed by. */
struct kind_id_walk {
	unsigned i, item;
	uint64_t id;
	uint16_t off; /* where it stands in the record */
	enum mxbpf_name_kind of;
	unsigned flags; /* enum kind_id_flag */
};
bool kind_next_id(const struct mxbpf_rec *r, struct kind_id_walk *w);

/* Thread i of a record, 0: it has none, or no more. The same thread is told once. */
uint32_t kind_thread(const struct mxbpf_rec *r, unsigned i);

/* Adds by_ns to every time of a record; where one is 0 there is none. */
void kind_shift_times(struct mxbpf_rec *r, uint64_t by_ns);

/* When what it tells of had ended. */
uint64_t kind_end_ns(const struct mxbpf_rec *r);

/* A span with all fields, of whatever form it was sent or recorded in. */
struct mxbpf_span kind_span(const struct mxbpf_rec *r);

#endif
