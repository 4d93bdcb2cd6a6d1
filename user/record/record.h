/* SPDX-License-Identifier: Apache-2.0 */
/* Writer and reader of recordings; the format is include/mxbpf_file.h. */
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/model.h"
#include "model/session.h"
#include "view/view.h"

/* ---- writer. Not thread-safe: one thread at a time. */

struct rec_writer;

#define REC_MAX_BYTES_DEFAULT (2ull << 30)

/* Takes fd (from out_create() or out_scratch()), also on error. max_bytes: 0 for the default; at least 4 slots are
 * used. Writes header and meta. */
int rec_writer_open(int fd, uint64_t max_bytes, const struct mdl_session *s, struct rec_writer **w, struct err *e);

/*
 * Appends checked records (a ring's chunk) as a DATA chunk, preceded in each slot by NAME records of the names and
 * threads they use, taken from the model. loss: as known now. After the first error (disk full) everything is ignored
 * and the error returned; what was written stays readable. One by one: each record stands in memory right behind the
 * one before, from `recs` on, and stays there until the end.
 */
void rec_writer_begin(struct rec_writer *w, const void *recs, const struct mxbpf_loss *loss);
int rec_writer_add(struct rec_writer *w, const struct mxbpf_rec *r, const struct mdl *names);
int rec_writer_end(struct rec_writer *w);
/* All of them. */
int rec_writer_append(struct rec_writer *w, const void *recs, size_t bytes, const struct mdl *names,
		      const struct mxbpf_loss *loss);

uint64_t rec_writer_cut_records(const struct rec_writer *w); /* overwritten by max_bytes */

/* End chunks from the model and the final session, sync, complete flag. 0 or the first error. */
int rec_writer_finish(struct rec_writer *w, const struct mdl *m, const struct mdl_session *s, struct err *e);
/* The fd for reading back what was written; borrowed. */
int rec_writer_fd(const struct rec_writer *w);
void rec_writer_free(struct rec_writer *w); /* closes; NULL is legal */

/* ---- reader */

struct rec_reader;

/*
 * Takes a duplicate of fd. Clear errors, ERR_RUNTIME: "not an mxbpf recording", "written by a newer mxbpf
 * (format 2.0)", "damaged at offset N, in ...: what is left". A cut file opens: session.incomplete. So does one whose
 * end chunks are damaged, whose events are folded again; then rec_reader_damage() says so.
 */
int rec_reader_open(int fd, struct rec_reader **r, struct err *e);
void rec_reader_close(struct rec_reader *r);

/* Borrowed. */
const struct mdl_session *rec_reader_session(const struct rec_reader *r);

/*
 * Reads and checks all that rec_reader_open() has not: the events of a complete file. 0, or -errno with
 * rec_reader_damage(): without them the tables are whole.
 */
int rec_reader_verify(struct rec_reader *r);
/* Borrowed; code 0: nothing is known to be damaged. */
const struct err *rec_reader_damage(const struct rec_reader *r);

/*
 * Several as one, that takes the readers over, also on error: hosts apart by name and boot, their clocks side by side
 * by their times of day. ERR_RUNTIME if they do not fit together.
 */
int rec_reader_merge(struct rec_reader **parts, unsigned n, struct rec_reader **out, struct err *e);

/*
 * Hands on, as checked batches, what makes the recording's model: the AGG section if the file is complete, else its
 * events; or its events in any case. A negative return of fn ends it. like: what the model tells apart.
 */
typedef int (*rec_batch_fn)(void *ctx, const void *recs, size_t bytes);
int rec_reader_each(struct rec_reader *r, bool events, const struct mdl *like, rec_batch_fn fn, void *ctx,
		    struct err *e);

/*
 * Folds the recording into an empty model: the AGG section if the file is complete, else its spans; names in any case.
 */
int rec_reader_model(struct rec_reader *r, struct mdl *m, struct err *e);

/* The same from the events that were kept, whether there are tables or not. */
int rec_reader_events(struct rec_reader *r, struct mdl *m, struct err *e);

/* The DATA records in order of writing, chunk by chunk. Borrowed by the caller until rec_reader_close(). */
struct view_source *rec_reader_source(struct rec_reader *r);
/* Why the source's rewind() or next() failed ("damaged at offset N"); code 0 while it did not. Borrowed likewise. */
const struct err *rec_reader_error(const struct rec_reader *r);

/* ---- metadata as JSON (chunk META) */

/* Owned text; NULL: out of memory. */
char *rec_meta_write(const struct mdl_session *s);
/* Fills *s (fini by the caller also on error). */
int rec_meta_read(const char *json, size_t len, struct mdl_session *s, struct err *e);

#endif
