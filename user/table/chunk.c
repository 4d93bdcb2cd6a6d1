// SPDX-License-Identifier: Apache-2.0
/* Tables in recordings: records of kind MXBPF_TABLE, which say what their columns are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "table/priv.h"

static bool is_process(const struct tbl_column *c)
{
	return c->merge == TBL_IS_KEY && c->type == TBL_PID;
}

uint32_t tbl_process(const struct tbl_def *def, const void *row)
{
	const struct tbl_column *c;

	for (c = def->columns; c->bytes; c++)
		if (is_process(c))
			return (uint32_t)tbl_get(c, row, 0);
	return 0;
}

/* The process of the rows is in the head of the record. */
static bool is_written(const struct tbl_column *c)
{
	return c->merge != TBL_MADE && !is_process(c);
}

static const char *chunk_name_of(const struct tbl_column *c)
{
	return c->key ? c->key : c->stored;
}

/* ---- writing */

/* A row with its place, so that rows of one process keep their order. */
struct place {
	uint32_t process;
	size_t i;
};

static int by_process(const void *va, const void *vb)
{
	const struct place *a = va, *b = vb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->i < b->i ? -1 : a->i > b->i;
}

/* The values of a column that a record has. */
struct part {
	unsigned first, n;
};

/* Without the zeros at both ends, if the column is sparse. */
static struct part part_of(const struct tbl_column *c, const void *row)
{
	struct part p = {0, tbl_nvalues(c)};

	while (c->flags & TBL_SPARSE && p.n > 1 && !tbl_get(c, row, p.n - 1))
		p.n--;
	while (c->flags & TBL_SPARSE && p.n > 1 && !tbl_get(c, row, p.first)) {
		p.first++;
		p.n--;
	}
	return p;
}

static bool is_sparse(const struct tbl_def *def)
{
	const struct tbl_column *c = def->columns;

	while (c->bytes && !(c->flags & TBL_SPARSE))
		c++;
	return c->bytes;
}

/* Sets *ncols, and *bytes to the size of a row. */
static int put_columns(const struct tbl_def *def, const void *row, struct buf *out, uint16_t *ncols, size_t *bytes)
{
	struct mxbpf_table_column to;
	const struct tbl_column *c;
	struct part p;
	int err = 0;

	for (*bytes = 0, c = def->columns; !err && c->bytes; c++) {
		if (!is_written(c))
			continue;
		p = part_of(c, row);
		to = (struct mxbpf_table_column){
			.nvalues = (uint16_t)p.n,
			.id_of = (uint8_t)(c->type == TBL_NAME ? 1 + c->name_kind : 0),
			.flags = (uint8_t)(c->type == TBL_MOMENT ? MXBPF_TABLE_TIME : 0),
			.first = p.first,
		};
		strncpy(to.name, chunk_name_of(c), sizeof(to.name) - 1);
		err = buf_put(out, &to, sizeof(to));
		++*ncols;
		*bytes += p.n * sizeof(uint64_t);
	}
	return err;
}

static int chunk_put_row(const struct tbl_def *def, const void *row, struct buf *out)
{
	const struct tbl_column *c;
	struct part p;
	uint64_t v;
	unsigned i;
	int err = 0;

	for (c = def->columns; !err && c->bytes; c++) {
		p = part_of(c, row);
		for (i = 0; !err && is_written(c) && i < p.n; i++) {
			v = tbl_get(c, row, p.first + i);
			err = buf_put(out, &v, sizeof(v));
		}
	}
	return err;
}

/* Writes rows from `from` on, of one process and as many as a record holds. Returns their number, or -ENOMEM. */
static ssize_t put_chunk(const struct tbl *t, const struct place *from, size_t n, struct buf *out)
{
	const size_t begin = out->len;
	struct mxbpf_table head = {.h = {.kind = MXBPF_TABLE, .tgid = from->process}}, *at;
	size_t bytes, i;

	strncpy(head.name, t->def->name, sizeof(head.name) - 1);
	if (buf_put(out, &head, sizeof(head)) || put_columns(t->def, tbl_at(t, from->i), out, &head.ncols, &bytes))
		return -ENOMEM;
	for (i = 0; i < n && from[i].process == from->process; i++) {
		if (out->len - begin + bytes > MXBPF_TABLE_BYTES_MAX)
			break;
		if (chunk_put_row(t->def, tbl_at(t, from[i].i), out))
			return -ENOMEM;
	}
	at = buf_place(out, begin);
	at->ncols = head.ncols;
	at->nrows = (uint16_t)i;
	at->h.size = (uint16_t)(out->len - begin);
	return (ssize_t)i;
}

static bool has_values(const struct tbl_def *def, const void *row)
{
	const struct tbl_column *c;
	bool any = false;
	unsigned i;

	for (c = def->columns; !any && c->bytes; c++)
		for (i = 0; c->merge > TBL_IS_KEY && i < tbl_nvalues(c); i++)
			any |= tbl_get(c, row, i) != 0;
	return any;
}

int tbl_emit(const struct tbl *t, struct buf *out)
{
	struct place *places = calloc(tbl_count(t) + 1, sizeof(*places));
	size_t n = 0, i;
	ssize_t put = 0;

	if (!places)
		return -ENOMEM;
	for (i = 0; i < tbl_count(t); i++)
		if (has_values(t->def, tbl_at(t, i)))
			places[n++] = (struct place){tbl_process(t->def, tbl_at(t, i)), i};
	qsort(places, n, sizeof(*places), by_process);
	for (i = 0; put >= 0 && i < n; i += (size_t)put)
		put = put_chunk(t, places + i, is_sparse(t->def) ? 1 : n - i, out);
	free(places);
	return put < 0 ? (int)put : 0;
}

/* ---- reading */

static const struct tbl_column *column_named(const struct tbl_def *def, const struct mxbpf_table_column *like)
{
	const uint64_t n = (uint64_t)like->first + like->nvalues;
	const struct tbl_column *c;

	for (c = def->columns; c->bytes; c++)
		if (is_written(c) && (c->flags & TBL_SPARSE ? n <= tbl_nvalues(c) : n == tbl_nvalues(c)) &&
		    !strcmp(chunk_name_of(c), like->name))
			return c;
	return NULL;
}

void tbl_reader_open(struct tbl_reader *r, const struct tbl_def *def, const struct mxbpf_table *chunk)
{
	const struct mxbpf_table_column *from;
	const struct tbl_column *c;

	*r = (struct tbl_reader){.def = def, .chunk = chunk};
	for (from = chunk->columns; from < chunk->columns + chunk->ncols; from++) {
		c = column_named(def, from);
		if (c)
			r->reads[r->nreads++] = (struct tbl_read){c, r->cells, from->first, from->nvalues};
		r->cells += from->nvalues;
	}
}

static uint64_t within(const struct tbl_column *c, uint64_t v)
{
	return c->limit && v > c->limit ? 0 : v;
}

void tbl_reader_row(const struct tbl_reader *r, size_t i, void *row)
{
	const __u64 *cells = mxbpf_table_cells(r->chunk) + i * r->cells;
	const struct tbl_column *c;
	const struct tbl_read *from;
	unsigned n;

	memset(row, 0, r->def->row_bytes);
	for (c = r->def->columns; c->bytes; c++)
		if (is_process(c))
			tbl_set(c, row, 0, r->chunk->h.tgid);
	for (from = r->reads; from < r->reads + r->nreads; from++)
		for (n = 0; n < from->n; n++)
			tbl_set(from->column, row, from->first + n, within(from->column, cells[from->at + n]));
}
