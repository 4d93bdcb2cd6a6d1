/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of record kinds, one row per kind. The ring, the writer and reader of recordings, merging and naming all
 * use the row of a record's kind. To add a kind, add a struct in include/, a row in kinds.c and a fold in the `kinds`
 * of its feature; docs/internals.md has the recipe. A kind without a row comes from a newer version: readers check its
 * header and skip it.
 */
#ifndef RECORDS_KINDS_H
#define RECORDS_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mxbpf_event.h"
#include "mxbpf_table.h"
#include "mxbpf_queue.h"
#include "mxbpf_track.h"

enum { KIND_SIZES_MAX = 4, KIND_IDS_MAX = 6, KIND_THREADS_MAX = 2, KIND_TIMES_MAX = 3 };

enum kind_id_flag {
	KIND_ID_SHORT = 1 << 0,	   /* the field has 16 bits instead of 64 */
	KIND_ID_OF_MARK = 1 << 1,  /* only valid in a span with MXBPF_SPAN_USER */
	KIND_ID_OF_NAMED = 1 << 2, /* only valid in a KV record with MXBPF_KV_NAMED */
	KIND_ID_RAW = 1 << 3,	   /* BPF's own id, which user space replaces by the id of a text */
};

/* A field that holds an id of a name. */
struct kind_id {
	uint16_t off;
	uint8_t of;    /* enum mxbpf_name_kind: the table of names that the id belongs to */
	uint8_t flags; /* enum kind_id_flag */
};

/* The tail of a record: items of equal size behind the fixed part. */
struct kind_tail {
	uint16_t bytes; /* per item; 0: the kind has no tail */
	uint16_t max;	/* largest number of items that BPF sends */
	unsigned (*count)(const struct mxbpf_rec *r);
	bool ids;	   /* each item holds the id below */
	struct kind_id id; /* offset from the beginning of the item */
	uint8_t ntimes;	   /* the first words of each item are times */
};

/* Offsets are in bytes from the beginning of the record. Lists end with an offset or a size of 0. */
struct kind {
	const char *name;	       /* unique, for messages and tests */
	uint16_t bytes;		       /* smallest size of the fixed part in any recording */
	uint16_t sent[KIND_SIZES_MAX]; /* sizes that BPF sends, without the tail; empty for kinds of user space */
	uint16_t fixed;		       /* offset of the tail */
	struct kind_id ids[KIND_IDS_MAX];
	uint16_t threads[KIND_THREADS_MAX]; /* thread ids, 32 bits */
	uint16_t times[KIND_TIMES_MAX];	    /* times besides that of the header, in ns; a value of 0 is no time */
	uint16_t dur;			    /* duration from the header's time on, in ns; 0: the kind has none */
	uint16_t end;			    /* one of times: the end of the event; 0: see dur */
	uint16_t track;			    /* struct mxbpf_track; 0: the record belongs to its first thread, if any */
	struct kind_tail tail;
	bool cells;	 /* a table: its columns say which cells are ids and times */
	bool of_row;	 /* starts with the id of a table row: the record is that row or belongs to it */
	bool counts;	 /* says what was lost, so it is folded even if there is no memory for others */
	bool of_process; /* the record belongs to one process, in a sum of processes as well */
	bool (*fits)(const struct mxbpf_rec *r);		   /* checks field values; NULL: any value is valid */
	bool (*sent_fits)(const struct mxbpf_rec *r, size_t size); /* replaces `sent` if the size depends on content */
};

/* Returns NULL if the kind has no row. */
const struct kind *kind_of(const struct mxbpf_rec *r);
const struct kind *kind_numbered(unsigned number);

/* Returns true if r is a complete, valid record of `size` bytes as BPF sends it. */
bool kind_sent(const struct mxbpf_rec *r, size_t size);

/*
 * Checks the record at *pos and advances *pos. Returns NULL at the end. Returns NULL and sets *bad if the record is not
 * valid: its size is 0, unaligned, beyond the end or too small for its kind, an inner length exceeds the record, or a
 * class or bucket is out of range. `recs` is 8-byte aligned.
 */
const struct mxbpf_rec *kind_check_next(const void *recs, size_t bytes, size_t *pos, bool *bad);

/* Checks all records once. Returns 0 or -EBADMSG. After it, kind_next() may walk over them. */
int kind_check(const void *recs, size_t bytes);

/* Returns the record at *pos of checked records and advances *pos. Returns NULL at the end. */
static inline const struct mxbpf_rec *kind_next(const void *recs, size_t bytes, size_t *pos)
{
	const struct mxbpf_rec *r;

	if (*pos >= bytes) /* an empty batch may be NULL */
		return NULL;
	r = (const void *)((const char *)recs + *pos);
	*pos += r->size;
	return r;
}

/*
 * Iterates the ids of a checked record: start with {0} and call kind_next_id() until it returns false. It skips ids of
 * 0 and fields that a shorter form of the record lacks.
 */
struct kind_id_walk {
	unsigned i, item;
	uint64_t id;
	uint16_t off; /* offset of the field in the record */
	enum mxbpf_name_kind of;
	unsigned flags; /* enum kind_id_flag */
};
bool kind_next_id(const struct mxbpf_rec *r, struct kind_id_walk *w);

/* Returns thread i of the record, or 0 if there is none. Each thread is returned once. */
uint32_t kind_thread(const struct mxbpf_rec *r, unsigned i);

/* Where a timeline draws a record: on a thread of the host or a stream of a device. */
struct kind_track {
	uint32_t tgid;
	enum kind_track_of { KIND_TRACK_THREAD = 1, KIND_TRACK_STREAM } of;
	uint32_t a, b, c; /* THREAD: tid, 0, 0. STREAM: device, context, stream */
};

/* Returns false if the record has no track: it has neither thread nor stream, or its thread is unknown. */
bool kind_track(const struct mxbpf_rec *r, struct kind_track *track);

/* Adds by_ns to every time in the record that is not 0. */
void kind_shift_times(struct mxbpf_rec *r, uint64_t by_ns);

/* Returns the time when the event was over: the end of a span, or the time of a record without end or duration. */
uint64_t kind_end_ns(const struct mxbpf_rec *r);

/*
 * Sets all fields of a span, whatever form was sent or recorded. Missing fields are 0; with MXBPF_SPAN_ACCOUNT the
 * account is complete; missing performance counters are MXBPF_COUNTER_NONE.
 */
void kind_span(const struct mxbpf_rec *r, struct mxbpf_span *s);
/* Return an activity and a launch with all fields set. Fields that a shorter record lacks are 0. */
struct mxbpf_activity kind_activity(const struct mxbpf_rec *r);
struct mxbpf_launch kind_launch(const struct mxbpf_rec *r);

/*
 * Appends a record that gives an id its text, of which at most MXBPF_TEXT_BYTES_MAX bytes are taken. tgid: the process,
 * if the id is that of a thread. Returns 0 or -ENOMEM.
 */
struct buf;
int kind_put_name(struct buf *out, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text, size_t len);

#endif
