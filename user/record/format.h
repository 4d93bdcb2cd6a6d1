/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that writer and reader agree on beside include/mxbpf_file.h. Private to user/record. */
#ifndef RECORD_FORMAT_H
#define RECORD_FORMAT_H

#include "record/record.h"

#define REC_META_MAX_BYTES (16u << 20) /* of a META payload */
#define REC_SLOT_MIN_BYTES (64u << 10) /* what a reader accepts as slot size */
#define REC_SLOT_MAX_BYTES (16u << 20)
#define REC_SLOTS_MAX	   (4u << 20)

struct rec_reader;
struct rec_merge;

/* merge.c, for reader.c. events: as rec_reader_events(). */
int merge_each(struct rec_merge *g, bool events, const struct mdl *like, rec_batch_fn fn, void *ctx, struct err *e);
const struct err *merge_error(const struct rec_merge *g);
void merge_free(struct rec_merge *g);

/* reader.c, for merge.c. A reader that is a merge: takes g and the session over, unless it fails. The source of one as
 * it stands. */
int rec_reader_shell(struct rec_merge *g, struct mdl_session *session, const struct view_source *source,
		     struct rec_reader **out, struct err *e);
struct view_source *rec_reader_borrow(struct rec_reader *r);

#endif
