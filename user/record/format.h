/* SPDX-License-Identifier: Apache-2.0 */
/* Private to user/record: limits of writer and reader beyond include/mxbpf_file.h. */
#ifndef RECORD_FORMAT_H
#define RECORD_FORMAT_H

#include "record/record.h"

#define REC_META_MAX_BYTES (16u << 20) /* limit of a META payload */
#define REC_SLOT_MIN_BYTES (64u << 10) /* slot sizes that a reader accepts */
#define REC_SLOT_MAX_BYTES (16u << 20)
#define REC_SLOTS_MAX	   (4u << 20)

struct rec_reader;
struct rec_merge;

/* merge.c, for reader.c. `events` is as in rec_reader_each(). */
int merge_each(struct rec_merge *g, bool events, const struct mdl *like, rec_batch_fn fn, void *ctx, struct err *e);
const struct err *merge_error(const struct rec_merge *g);
void merge_free(struct rec_merge *g);

/*
 * reader.c, for merge.c. rec_reader_shell() makes a reader of a merge; it takes g and the session over unless it fails.
 * rec_reader_borrow() returns the source of a reader.
 */
int rec_reader_shell(struct rec_merge *g, struct mdl_session *session, const struct view_source *source,
		     struct rec_reader **out, struct err *e);
struct view_source *rec_reader_borrow(struct rec_reader *r);

#endif
