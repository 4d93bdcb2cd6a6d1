// SPDX-License-Identifier: Apache-2.0
#include "import/sqlite.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/sqlite_fd.h"

#define HEAP_BYTES   (32ll << 20) /* of SQLite */
#define CELL_BYTES   (4 << 20)	  /* longest row */
#define TEXTS_BYTES  (8u << 20)	  /* of texts that are kept */
#define TEXTS_MAX    (1u << 17)
#define OPS_EACH     1000 /* of SQLite's machine, between two looks at the limit */
#define OPS_LEAST    20000000ull
#define OPS_PER_BYTE 4 /* a row takes fewer than this for each of its bytes; a forged file can have circles */
#define HEAD_BYTES   100

struct db {
	sqlite3 *sqlite;
	uint64_t ops, ops_most;
	sqlite3_stmt *text_of;
	struct hash known; /* id of a text -> 1 + its place in `texts` */
	struct buf texts;  /* each: its length in 4 bytes, and its bytes */
};

struct db_row {
	sqlite3_stmt *stmt;
	unsigned n;
	const int *at; /* column of the statement, or -1 */
};

/* ---- opening */

bool db_is(const void *head, size_t n)
{
	static const char magic[] = "SQLite format 3";

	return n >= HEAD_BYTES && !memcmp(head, magic, sizeof(magic));
}

/* Tables are read, and nothing else is done. */
static int authorize(void *ctx, int action, const char *a, const char *b, const char *c, const char *from)
{
	const bool reads = action == SQLITE_SELECT || action == SQLITE_READ ||
			   (action == SQLITE_PRAGMA && !strcmp(a, "table_info"));

	return reads && !from ? SQLITE_OK : SQLITE_DENY;
}

static int db_progress(void *ctx)
{
	struct db *db = ctx;

	db->ops += OPS_EACH;
	return db->ops > db->ops_most;
}

static void db_limit(struct db *db, uint64_t bytes)
{
	static const int limits[][2] = {
		{SQLITE_LIMIT_LENGTH, CELL_BYTES}, {SQLITE_LIMIT_SQL_LENGTH, 65536},
		{SQLITE_LIMIT_COLUMN, 512},	   {SQLITE_LIMIT_EXPR_DEPTH, 16},
		{SQLITE_LIMIT_VDBE_OP, 25000},	   {SQLITE_LIMIT_FUNCTION_ARG, 8},
		{SQLITE_LIMIT_COMPOUND_SELECT, 2}, {SQLITE_LIMIT_ATTACHED, 0},
		{SQLITE_LIMIT_TRIGGER_DEPTH, 1},   {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64},
		{SQLITE_LIMIT_WORKER_THREADS, 0},
	};
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		sqlite3_limit(db->sqlite, limits[i][0], limits[i][1]);
	db->ops_most = OPS_LEAST + OPS_PER_BYTE * bytes;
	sqlite3_progress_handler(db->sqlite, OPS_EACH, db_progress, db);
}

static void harden(struct db *db, uint64_t bytes)
{
	sqlite3_hard_heap_limit64(HEAP_BYTES);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	db_limit(db, bytes);
	sqlite3_set_authorizer(db->sqlite, authorize, db);
}

static uint32_t big_endian(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The header says how many pages there are, if the number was written with the last change. */
static int check_size(int fd, uint64_t bytes, struct err *e)
{
	unsigned char head[HEAD_BYTES];
	uint64_t page, whole;

	if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) || !db_is(head, sizeof(head)))
		return err_set(e, ERR_RUNTIME, -EINVAL, "it is no SQLite database");
	page = (uint64_t)head[16] << 8 | head[17];
	page = page == 1 ? 65536 : page;
	whole = page * big_endian(head + 28);
	if (big_endian(head + 24) == big_endian(head + 92) && bytes < whole)
		return err_set(e, ERR_RUNTIME, -EINVAL, "it is truncated: it has %llu of %llu bytes",
			       (unsigned long long)bytes, (unsigned long long)whole);
	return 0;
}

static int db_fail(struct db *db, struct err *e)
{
	if (db->ops > db->ops_most)
		return err_set(e, ERR_RUNTIME, -EINVAL, "the database is damaged: its tables have no end");
	return err_set(e, ERR_RUNTIME, -EINVAL, "the database cannot be read: %s", sqlite3_errmsg(db->sqlite));
}

int db_open(int fd, struct db **to, struct err *e)
{
	struct db *db = calloc(1, sizeof(*db));
	struct stat st;
	char name[16];
	int err;

	*to = NULL;
	if (!db || sqlite_fd_register() || fstat(fd, &st)) {
		free(db);
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	}
	err = check_size(fd, (uint64_t)st.st_size, e);
	snprintf(name, sizeof(name), "%d", fd);
	if (!err && sqlite3_open_v2(name, &db->sqlite, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, SQLITE_FD_VFS))
		err = err_set(e, ERR_RUNTIME, -EINVAL, "the database cannot be opened");
	if (err) {
		db_close(db);
		return err;
	}
	harden(db, (uint64_t)st.st_size);
	*to = db;
	return 0;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	sqlite3_finalize(db->text_of);
	sqlite3_close(db->sqlite);
	hash_fini(&db->known);
	buf_fini(&db->texts);
	free(db);
}

/* ---- tables */

/* A table of the file itself has pages; a virtual table has none. */
static int find_table(struct db *db, const char *table, bool *found)
{
	static const char sql[] = "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?1";
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db->sqlite, sql, -1, &stmt, NULL);

	*found = false;
	if (rc == SQLITE_OK) {
		sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
		rc = sqlite3_step(stmt);
		*found = rc == SQLITE_ROW && sqlite3_column_int(stmt, 0) > 0;
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -EINVAL;
}

bool db_has(struct db *db, const char *table)
{
	bool found;

	return !find_table(db, table, &found) && found;
}

bool db_fd_has(int fd, const char *table)
{
	struct db *db;
	bool has;

	if (db_open(fd, &db, NULL))
		return false;
	has = db_has(db, table);
	db_close(db);
	return has;
}

/* Finds which of a table's columns are the wanted ones. Computed columns are not listed. */
static int db_columns(struct db *db, const char *table, const char *const *columns, unsigned n, int *at)
{
	sqlite3_stmt *stmt = NULL;
	char *sql = sqlite3_mprintf("PRAGMA table_info(\"%w\")", table);
	int rc = sql ? sqlite3_prepare_v2(db->sqlite, sql, -1, &stmt, NULL) : SQLITE_NOMEM;
	const char *name;
	unsigned want;

	sqlite3_free(sql);
	for (want = 0; want < n; want++)
		at[want] = -1;
	while (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
		name = (const char *)sqlite3_column_text(stmt, 1);
		for (want = 0; name && want < n; want++)
			if (!sqlite3_stricmp(name, columns[want]))
				at[want] = 1;
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_OK ? 0 : -EINVAL;
}

/* Selects the columns that exist. `at` becomes their places in the statement. */
static int db_select(struct db *db, const char *table, const char *const *columns, unsigned n, int *at,
		     sqlite3_stmt **stmt)
{
	struct buf sql = {0};
	unsigned i;
	int place = 0, err = db_columns(db, table, columns, n, at);

	err = err ? err : buf_printf(&sql, "SELECT ");
	for (i = 0; i < n && !err; i++)
		if (at[i] >= 0) {
			at[i] = place++;
			err = buf_printf(&sql, "%s\"%s\"", at[i] ? ", " : "", columns[i]);
		}
	err = err ? err : buf_printf(&sql, "%s FROM \"%s\" NOT INDEXED", place ? "" : "0", table);
	if (!err && sqlite3_prepare_v2(db->sqlite, sql.data, (int)sql.len, stmt, NULL) != SQLITE_OK)
		err = -EINVAL;
	buf_fini(&sql);
	return err;
}

int db_each(struct db *db, const char *table, const char *const *columns, unsigned n,
	    int (*take)(void *ctx, const struct db_row *row), void *ctx, struct err *e)
{
	int at[64], err, rc = SQLITE_DONE;
	struct db_row row = {.n = n, .at = at};
	bool found;

	err = n <= sizeof(at) / sizeof(at[0]) ? find_table(db, table, &found) : -EINVAL;
	if (!err && !found)
		return 0;
	err = err ? err : db_select(db, table, columns, n, at, &row.stmt);
	if (err) {
		sqlite3_finalize(row.stmt);
		return db_fail(db, e);
	}
	while (!err && (rc = sqlite3_step(row.stmt)) == SQLITE_ROW)
		err = take(ctx, &row);
	if (!err && rc != SQLITE_DONE)
		err = db_fail(db, e);
	sqlite3_finalize(row.stmt);
	return err;
}

/* ---- cells */

static int type_of(const struct db_row *row, unsigned column)
{
	return column < row->n && row->at[column] >= 0 ? sqlite3_column_type(row->stmt, row->at[column]) : SQLITE_NULL;
}

bool db_int(const struct db_row *row, unsigned column, int64_t *value)
{
	if (type_of(row, column) != SQLITE_INTEGER)
		return false;
	*value = sqlite3_column_int64(row->stmt, row->at[column]);
	return true;
}

bool db_real(const struct db_row *row, unsigned column, double *value)
{
	const int type = type_of(row, column);

	if (type != SQLITE_FLOAT && type != SQLITE_INTEGER)
		return false;
	*value = sqlite3_column_double(row->stmt, row->at[column]);
	return true;
}

const void *db_blob(const struct db_row *row, unsigned column, size_t *len)
{
	const int type = type_of(row, column);
	const void *at;

	*len = 0;
	if (type != SQLITE_BLOB && type != SQLITE_TEXT)
		return NULL;
	at = sqlite3_column_blob(row->stmt, row->at[column]);
	*len = at ? (size_t)sqlite3_column_bytes(row->stmt, row->at[column]) : 0;
	return at;
}

const char *db_text(const struct db_row *row, unsigned column, size_t *len)
{
	const char *at;

	*len = 0;
	if (type_of(row, column) != SQLITE_TEXT)
		return NULL;
	at = (const char *)sqlite3_column_text(row->stmt, row->at[column]);
	*len = at ? (size_t)sqlite3_column_bytes(row->stmt, row->at[column]) : 0;
	return at;
}

uint64_t db_u64(const struct db_row *row, unsigned column)
{
	int64_t value;

	return db_int(row, column, &value) ? (uint64_t)value : 0;
}

/* ---- texts */

int db_texts(struct db *db, const char *table, const char *id, const char *value, struct err *e)
{
	const char *const columns[] = {id, value};
	int rc, at[2];
	char *sql;

	if (!db_has(db, table) || db_columns(db, table, columns, 2, at) || at[0] < 0 || at[1] < 0)
		return 0;
	sql = sqlite3_mprintf("SELECT \"%w\" FROM \"%w\" NOT INDEXED WHERE \"%w\" = ?1", value, table, id);
	rc = sql ? sqlite3_prepare_v2(db->sqlite, sql, -1, &db->text_of, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return rc == SQLITE_OK ? 0 : db_fail(db, e);
}

static const char *kept_text(struct db *db, uint64_t place, size_t *len)
{
	const char *at = db->texts.data + place;
	uint32_t n;

	memcpy(&n, at, sizeof(n));
	*len = n;
	return at + sizeof(n);
}

/* Most events refer to few texts. What does not fit is looked up again. */
static void keep_text(struct db *db, int64_t id, const char *text, size_t len)
{
	const uint32_t n = (uint32_t)len;
	const size_t place = db->texts.len;
	uint64_t *known;

	if (db->known.len >= TEXTS_MAX || place + sizeof(n) + len + 1 > TEXTS_BYTES)
		return;
	known = hash_put(&db->known, (uint64_t)id, 0);
	if (known && !buf_put(&db->texts, &n, sizeof(n)) && !buf_put(&db->texts, text, len) &&
	    !buf_put(&db->texts, "", 1))
		*known = 1 + place;
}

const char *db_text_of(struct db *db, int64_t id, size_t *len)
{
	const uint64_t *known = hash_get(&db->known, (uint64_t)id, 0);
	const char *text = NULL;

	*len = 0;
	if (known && *known)
		return kept_text(db, *known - 1, len);
	if (!db->text_of)
		return NULL;
	sqlite3_reset(db->text_of);
	sqlite3_bind_int64(db->text_of, 1, id);
	if (sqlite3_step(db->text_of) == SQLITE_ROW) {
		text = (const char *)sqlite3_column_text(db->text_of, 0);
		*len = text ? (size_t)sqlite3_column_bytes(db->text_of, 0) : 0;
	}
	if (text)
		keep_text(db, id, text, *len);
	return text;
}
