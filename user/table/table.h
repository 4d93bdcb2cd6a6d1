/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table: rows of one struct, found by those of their members that are keys. A description of the columns says how
 * rows are found, added up, copied, and written to a recording and read from it; the outputs of view/ use the same
 * description. Nothing here knows a feature.
 */
#ifndef TABLE_TABLE_H
#define TABLE_TABLE_H

#include "base/buf.h"
#include "mxbpf_table.h"
#include "table/column.h"

struct tbl_def {
	const char *name; /* in recordings; at most MXBPF_TABLE_NAME_BYTES - 1 */
	size_t row_bytes;
	size_t max_rows;     /* with so many rows, keys with TBL_DETAIL become 0 in further ones; 0: no limit */
	bool adds_processes; /* its processes count as seen, even if they have no other rows */
	bool of_process;     /* rows keep their process in a sum of processes, too */
	const struct tbl_column *columns; /* those that are stored have a place in the row */
};

struct tbl {
	const struct tbl_def *def;
	struct buf rows;
	uint32_t *slots; /* owned: 1 + number of a row, by the hash of its keys; 0: empty */
	size_t nslots;	 /* a power of two, or 0 */
};

static inline size_t tbl_count(const struct tbl *t)
{
	return t->rows.len / t->def->row_bytes;
}
static inline void *tbl_at(const struct tbl *t, size_t i)
{
	return t->rows.data + i * t->def->row_bytes;
}

/*
 * Returns the row with the keys of another one, borrowed until the next call. *added: there was none, so its other
 * values are 0. NULL: out of memory.
 */
void *tbl_row(struct tbl *t, const void *like, bool *added);
/*
 * Adds a row to the row with its keys, which is returned, borrowed until the next call. *added: there was none. NULL:
 * out of memory.
 */
void *tbl_add(struct tbl *t, const void *from, bool *added);
/* Adds the values of a row to another one, which keeps its keys. */
void tbl_merge(const struct tbl_def *def, void *to, const void *from);
/* Copies a table into an empty one with the same description, in the same order. 0 or -ENOMEM. */
int tbl_copy(struct tbl *to, const struct tbl *from);
void tbl_fini(struct tbl *t);

/* Returns false if a value is beyond the limit of its column. */
bool tbl_is_within(const struct tbl_def *def, const void *row);
/* Returns the process of a row, or 0 if the table has no key of type TBL_PID. */
uint32_t tbl_process(const struct tbl_def *def, const void *row);

/* Appends all rows with a value as records of kind MXBPF_TABLE, one or more for each process. 0 or -ENOMEM. */
int tbl_emit(const struct tbl *t, struct buf *out);

/* Reads a checked record of kind MXBPF_TABLE. It skips columns that are not in the description; missing ones are 0. */
#define TBL_COLUMNS_MAX MXBPF_TABLE_COLUMNS_MAX
struct tbl_reader {
	const struct tbl_def *def;
	const struct mxbpf_table *chunk;
	uint32_t cells; /* of a row */
	struct tbl_read {
		const struct tbl_column *column;
		uint32_t at;	   /* its first cell in a row */
		unsigned first, n; /* the values that the cells have */
	} reads[TBL_COLUMNS_MAX];
	unsigned nreads;
};
void tbl_reader_open(struct tbl_reader *r, const struct tbl_def *def, const struct mxbpf_table *chunk);
void tbl_reader_row(const struct tbl_reader *r, size_t i, void *row); /* i < chunk->nrows; row has row_bytes */

#endif
