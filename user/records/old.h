/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings of earlier versions. A table had a kind of records for its rows before it was stored by its columns
 * (user/table/). The reader of recordings turns these into records of kind MXBPF_TABLE, so nothing else knows them.
 */
#ifndef RECORDS_OLD_H
#define RECORDS_OLD_H

#include "base/buf.h"

/*
 * Appends records to `to`, with rows of earlier versions as rows of tables. The records are not checked; the result
 * must be checked. `recs` is 8-byte aligned. Returns 0, -ENOMEM or -EBADMSG.
 */
int old_convert(const void *recs, size_t bytes, struct buf *to);

#endif
