/* SPDX-License-Identifier: Apache-2.0 */
/* One file of a data set, in Arrow's IPC format. The library nanoarrow (vendor/nanoarrow) writes it. */
#ifndef VIEW_DATASET_ARROW_H
#define VIEW_DATASET_ARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/out.h"

/* Rows of a batch. Each batch is in memory twice until it is written. */
#define ARROW_BATCH_ROWS  (1u << 16)
#define ARROW_BATCH_BYTES (16u << 20) /* of texts; a batch ends at either limit */

enum arrow_type {
	ARROW_TEXT, /* UTF-8 */
	ARROW_INT,  /* 64 bits with a sign */
	ARROW_REAL,
	ARROW_BOOL,
	ARROW_TIME, /* UTC in ns since 1970 */
};

struct arrow_field {
	const char *name;
	const char *unit; /* NULL: none */
	enum arrow_type type;
};

/* A key and a text about the whole file. */
struct arrow_note {
	const char *key, *text;
};

/* A file that has its name only after arrow_finish(), and none at all without rows. */
struct arrow_file;
/*
 * `at` is its place in the directory, which is borrowed. Everything else is copied. NULL: out of memory.
 */
struct arrow_file *arrow_new(const struct out_dir *dir, const char *at, const struct arrow_field *fields, unsigned n);
/* Adds a note, before the first row ends. Returns 0 or -ENOMEM. */
int arrow_note(struct arrow_file *f, const struct arrow_note *note);

/*
 * Fill the cells of a row, in the order of the fields. A text that is not UTF-8 gets \xNN for each wrong byte. Numbers
 * above INT64_MAX become that. They remember the first error, which arrow_end_row() returns.
 */
void arrow_null(struct arrow_file *f);
void arrow_text(struct arrow_file *f, const char *text, size_t len);
void arrow_int(struct arrow_file *f, int64_t v);
void arrow_uint(struct arrow_file *f, uint64_t v);
void arrow_real(struct arrow_file *f, double v);
/* Ends the row. Returns 0, or -errno with e set. */
int arrow_end_row(struct arrow_file *f, struct err *e);

/* Writes the rest and gives the file its name. Frees f in both cases. Returns 0, or -errno with e set. */
int arrow_finish(struct arrow_file *f, struct err *e);
/* Discards the file. NULL is legal. */
void arrow_abort(struct arrow_file *f);

#endif
