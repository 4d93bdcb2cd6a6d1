/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads tables of a SQLite database, for the formats that are one. The database may be forged. Only tables are read:
 * nothing that the file defines runs, neither views, triggers, virtual tables nor computed columns. Columns differ
 * between versions of the profilers, so a column that a table does not have is read as unknown.
 */
#ifndef IMPORT_SQLITE_H
#define IMPORT_SQLITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct db;
struct db_row;

/* Returns whether a file begins as a database does. */
bool db_is(const void *head, size_t n);
/* Opens a database read-only, without its path. Returns 0, or -errno with e set. */
int db_open(int fd, struct db **db, struct err *e);
void db_close(struct db *db);

bool db_has(struct db *db, const char *table);
/* Returns whether a file is a database with this table: by its first bytes alone it cannot be told. */
bool db_fd_has(int fd, const char *table);

/*
 * Calls `take` for each row of a table, with n columns in this order. A table that does not exist has no rows. Returns
 * 0, the first error of `take`, or -errno with e set.
 */
int db_each(struct db *db, const char *table, const char *const *columns, unsigned n,
	    int (*take)(void *ctx, const struct db_row *row), void *ctx, struct err *e);

/* A cell. False, or NULL: the cell is unknown, or of another type. What is returned is valid until `take` returns. */
bool db_int(const struct db_row *row, unsigned column, int64_t *value);
bool db_real(const struct db_row *row, unsigned column, double *value);
const char *db_text(const struct db_row *row, unsigned column, size_t *len);
const void *db_blob(const struct db_row *row, unsigned column, size_t *len);
/* A number of 64 bits; 0 if it is unknown. */
uint64_t db_u64(const struct db_row *row, unsigned column);

/* The table that has the texts to which other tables refer. */
int db_texts(struct db *db, const char *table, const char *id, const char *value, struct err *e);
/* Returns the text of an id, valid until the next call, or NULL if there is none. */
const char *db_text_of(struct db *db, int64_t id, size_t *len);

#endif
