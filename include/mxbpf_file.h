/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording: what `mxbpf record` writes and `report` and `export` read. Little-endian.
 *
 *   [file header][meta chunk][pad to slot_bytes][slot 0][slot 1]...[slot n-1][end chunks]
 *
 * A slot holds whole chunks one after another, padded with zeros; it needs no other slot: the names that
 * its records use stand in it, before their first use. So the file can be cut at any byte, and with
 * --max-size the oldest slot is overwritten, and what remains is readable. Everything carries a CRC-32 (zlib).
 * The end chunks (aggregates, meta again with the final window and loss) exist when the session ended
 * orderly; header.flags says so. Without them the reader folds the spans and reports an incomplete file.
 */
#ifndef MXBPF_FILE_H
#define MXBPF_FILE_H

#include "mxbpf_event.h"
#include "mxbpf_loss.h"

#define MXBPF_FILE_MAGIC "MXBPFREC"
/*
 * The version of the format. A reader refuses a newer major version. A minor version adds kinds of records, or fields
 * behind those that a record has: a reader skips kinds and fields that it does not know, and takes fields that an older
 * recording lacks for 0. So every reader reads every minor version.
 *   1.0  the first
 *   1.1  activities of devices and their edges: MXBPF_ACTIVITY, MXBPF_LAUNCH, MXBPF_AGG_ACTIVITY (mxbpf_track.h)
 *   1.2  calls that an exception left: MXBPF_AGG_RAISED (mxbpf_raised.h)
 */
#define MXBPF_FILE_MAJOR  1
#define MXBPF_FILE_MINOR  2
#define MXBPF_SLOT_BYTES  (256u << 10)
#define MXBPF_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */

enum mxbpf_file_flag {
	MXBPF_FILE_COMPLETE = 1 << 0, /* end chunks were written and synced */
};

struct mxbpf_file_header {
	char magic[8];
	__u16 major, minor;
	__u32 header_bytes; /* sizeof this */
	__u64 flags;
	__u64 slots_off; /* where slot 0 begins, multiple of slot_bytes */
	__u64 slot_bytes;
	__u64 end_off; /* of the end chunks; 0 while incomplete */
	__u64 reserved;
	__u32 pad;
	__u32 crc; /* of the bytes before it */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_file_header) == 64);

enum mxbpf_chunk_kind {
	MXBPF_CHUNK_META = 1, /* JSON text, schema in user/record/meta.c */
	MXBPF_CHUNK_DATA = 2, /* records; sorted by nothing */
	MXBPF_CHUNK_AGG = 3,  /* names and sums of the whole window, as mdl_emit() makes them */
	MXBPF_CHUNK_END = 4,  /* empty; the last one */
};

struct mxbpf_chunk {
	__u32 magic;
	__u16 kind;
	__u16 pad;
	__u32 payload_bytes;	/* behind this header; multiple of 8, META padded with NUL */
	__u32 crc;		/* of this header with crc = 0, then the payload */
	__u64 seq;		/* rising over the session, by one a chunk */
	__u64 dropped;		/* records in slots overwritten so far (--max-size) */
	struct mxbpf_loss loss; /* as known when the chunk was written */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_chunk) == 80);

#endif
