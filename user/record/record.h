/* SPDX-License-Identifier: Apache-2.0 */
/* Writer and reader of recordings. include/mxbpf_file.h defines the format. */
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/model.h"
#include "model/session.h"
#include "view/view.h"

/* ---- writer; it is not thread-safe */

struct rec_writer;

#define REC_MAX_BYTES_DEFAULT (2ull << 30)

/*
 * Takes fd (of out_create() or out_scratch()) over, also on error. max_bytes 0 means the default; at least 4 slots are
 * used. Writes the header and the META chunk.
 */
int rec_writer_open(int fd, uint64_t max_bytes, const struct mdl_session *s, struct rec_writer **w, struct err *e);

/* The file is read by this process alone, so rec_writer_finish() does not sync it. */
void rec_writer_scratch(struct rec_writer *w);

/*
 * Appends checked records (a chunk of a ring) as a DATA chunk. The first use of a name or thread in a slot puts a NAME
 * record from the model before it. `loss` is the current loss. After the first error (disk full) it ignores all calls
 * and returns the error; what was written stays readable. Each record must follow the one before in memory, from `recs`
 * on, and stay there until rec_writer_end().
 */
void rec_writer_begin(struct rec_writer *w, const void *recs, const struct mxbpf_loss *loss);
int rec_writer_add(struct rec_writer *w, const struct mxbpf_rec *r, const struct mdl *names);
int rec_writer_end(struct rec_writer *w);
/* Appends all records of a batch at once. */
int rec_writer_append(struct rec_writer *w, const void *recs, size_t bytes, const struct mdl *names,
		      const struct mxbpf_loss *loss);

uint64_t rec_writer_cut_records(const struct rec_writer *w); /* records overwritten because of max_bytes */

/*
 * Writes the end chunks from the model and the final session, syncs, and marks the file complete. Returns 0 or the
 * first error.
 */
int rec_writer_finish(struct rec_writer *w, const struct mdl *m, const struct mdl_session *s, struct err *e);
/* Returns the fd for reading the recording back; borrowed. */
int rec_writer_fd(const struct rec_writer *w);
void rec_writer_free(struct rec_writer *w); /* closes the fd; NULL is legal */

/* ---- reader */

struct rec_reader;

/*
 * Opens a recording and duplicates fd. Errors of class ERR_RUNTIME are "not an mxbpf recording", "written by a newer
 * mxbpf (format 2.0)" and "damaged at offset N, in ...: what is left". A cut file can be opened; session.incomplete is
 * then set. A file with damaged end chunks can be opened too: its events are folded again, and rec_reader_damage() says
 * so.
 */
int rec_reader_open(int fd, struct rec_reader **r, struct err *e);
void rec_reader_close(struct rec_reader *r);

/* Borrowed. */
const struct mdl_session *rec_reader_session(const struct rec_reader *r);

/*
 * Reads and checks what rec_reader_open() has not: the events of a complete file. Returns 0, or -errno with
 * rec_reader_damage() set; the tables are then still usable.
 */
int rec_reader_verify(struct rec_reader *r);
/* Borrowed. code 0: no damage is known. */
const struct err *rec_reader_damage(const struct rec_reader *r);

/*
 * Merges several recordings and takes the readers over, also on error. Name and boot id tell hosts apart, and times of
 * day align their clocks. Returns ERR_RUNTIME if the recordings do not fit together.
 */
int rec_reader_merge(struct rec_reader **parts, unsigned n, struct rec_reader **out, struct err *e);

/*
 * Passes checked batches to fn that make up the recording's model: the AGG section of a complete file, or else its
 * events. With `events`, it always passes the events. A negative result of fn ends it. `like` says what the model tells
 * apart.
 */
typedef int (*rec_batch_fn)(void *ctx, const void *recs, size_t bytes);
int rec_reader_each(struct rec_reader *r, bool events, const struct mdl *like, rec_batch_fn fn, void *ctx,
		    struct err *e);

/*
 * Folds the recording into an empty model: the AGG section of a complete file, or else its spans. Names are always
 * included.
 */
int rec_reader_model(struct rec_reader *r, struct mdl *m, struct err *e);

/* Folds the events of the recording into an empty model, even if it has tables. */
int rec_reader_events(struct rec_reader *r, struct mdl *m, struct err *e);

/* Returns a source of DATA records in the order of writing, chunk by chunk. Borrowed until rec_reader_close(). */
struct view_source *rec_reader_source(struct rec_reader *r);
/*
 * Returns why rewind() or next() of the source failed ("damaged at offset N"); code 0 without an error. Borrowed until
 * rec_reader_close().
 */
const struct err *rec_reader_error(const struct rec_reader *r);

/*
 * tail.c: writes the last ns of a recording's events into fd as a recording of their own, whose tables and window are
 * of these alone; its loss is that of the whole recording. Takes fd over, also on error. 0, or -errno with e set.
 */
int rec_write_tail(struct rec_reader *r, uint64_t ns, int fd, struct err *e);

/* ---- metadata as JSON (chunk META) */

/* Returns owned text, or NULL without memory. */
char *rec_meta_write(const struct mdl_session *s);
/* Fills *s. The caller frees *s, also after an error. */
int rec_meta_read(const char *json, size_t len, struct mdl_session *s, struct err *e);

#endif
