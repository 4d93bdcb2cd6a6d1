// SPDX-License-Identifier: Apache-2.0
#include "view/dataset/arrow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_ipc.h>

#include "base/buf.h"
#include "base/fmt.h"

struct arrow_file {
	const struct out_dir *dir;
	char *at;
	struct out *out; /* NULL until the first batch is written */
	struct ArrowSchema schema;
	struct ArrowArray rows; /* of this batch */
	struct ArrowArrayView view;
	struct ArrowIpcWriter writer; /* valid if out is */
	struct ArrowBuffer notes;
	struct buf text;    /* a text that had to be changed */
	size_t text_bytes;  /* of this batch */
	unsigned cell;	    /* that is filled next */
	ArrowErrorCode bad; /* the first error of a cell */
};

/* nanoarrow returns positive errno. */
static int failed(const struct arrow_file *f, ArrowErrorCode code, const struct ArrowError *why, struct err *e)
{
	if (code == ENOMEM)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	return err_set(e, ERR_RUNTIME, -code, "cannot write %s: %s", f->at,
		       why && *why->message ? why->message : strerror(code));
}

/* ---- schema */

static ArrowErrorCode set_type(struct ArrowSchema *to, enum arrow_type type)
{
	static const enum ArrowType types[] = {
		[ARROW_TEXT] = NANOARROW_TYPE_STRING,
		[ARROW_INT] = NANOARROW_TYPE_INT64,
		[ARROW_REAL] = NANOARROW_TYPE_DOUBLE,
		[ARROW_BOOL] = NANOARROW_TYPE_BOOL,
	};

	if (type == ARROW_TIME)
		return ArrowSchemaSetTypeDateTime(to, NANOARROW_TYPE_TIMESTAMP, NANOARROW_TIME_UNIT_NANO, "UTC");
	return ArrowSchemaSetType(to, types[type]);
}

static ArrowErrorCode set_unit(struct ArrowSchema *to, const char *unit)
{
	struct ArrowBuffer pairs;
	ArrowErrorCode bad = ArrowMetadataBuilderInit(&pairs, NULL);

	if (!bad)
		bad = ArrowMetadataBuilderAppend(&pairs, ArrowCharView("unit"), ArrowCharView(unit));
	if (!bad)
		bad = ArrowSchemaSetMetadata(to, (const char *)pairs.data);
	ArrowBufferReset(&pairs);
	return bad;
}

static ArrowErrorCode set_fields(struct ArrowSchema *schema, const struct arrow_field *fields, unsigned n)
{
	ArrowErrorCode bad = ArrowSchemaSetTypeStruct(schema, n);
	unsigned i;

	for (i = 0; !bad && i < n; i++) {
		bad = set_type(schema->children[i], fields[i].type);
		if (!bad)
			bad = ArrowSchemaSetName(schema->children[i], fields[i].name);
		if (!bad && fields[i].unit)
			bad = set_unit(schema->children[i], fields[i].unit);
	}
	return bad;
}

static ArrowErrorCode start_batch(struct arrow_file *f)
{
	ArrowErrorCode bad = ArrowArrayInitFromSchema(&f->rows, &f->schema, NULL);

	f->text_bytes = 0;
	return bad ? bad : ArrowArrayStartAppending(&f->rows);
}

struct arrow_file *arrow_new(const struct out_dir *dir, const char *at, const struct arrow_field *fields, unsigned n)
{
	struct arrow_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->dir = dir;
	f->at = strdup(at);
	ArrowSchemaInit(&f->schema);
	ArrowBufferInit(&f->notes);
	ArrowArrayViewInitFromType(&f->view, NANOARROW_TYPE_UNINITIALIZED);
	if (!f->at || set_fields(&f->schema, fields, n) || ArrowArrayViewInitFromSchema(&f->view, &f->schema, NULL) ||
	    start_batch(f)) {
		arrow_abort(f);
		return NULL;
	}
	return f;
}

int arrow_note(struct arrow_file *f, const struct arrow_note *note)
{
	if (ArrowMetadataBuilderAppend(&f->notes, ArrowCharView(note->key), ArrowCharView(note->text)))
		return -ENOMEM;
	return ArrowSchemaSetMetadata(&f->schema, (const char *)f->notes.data) ? -ENOMEM : 0;
}

/* ---- cells */

static struct ArrowArray *next_cell(struct arrow_file *f)
{
	return f->rows.children[f->cell++];
}

static void remember(struct arrow_file *f, ArrowErrorCode bad)
{
	f->bad = f->bad ? f->bad : bad;
}

void arrow_null(struct arrow_file *f)
{
	remember(f, ArrowArrayAppendNull(next_cell(f), 1));
}

void arrow_int(struct arrow_file *f, int64_t v)
{
	remember(f, ArrowArrayAppendInt(next_cell(f), v));
}

void arrow_uint(struct arrow_file *f, uint64_t v)
{
	arrow_int(f, v < INT64_MAX ? (int64_t)v : INT64_MAX);
}

void arrow_real(struct arrow_file *f, double v)
{
	remember(f, ArrowArrayAppendDouble(next_cell(f), v));
}

void arrow_text(struct arrow_file *f, const char *text, size_t len)
{
	const size_t most = 4 * len + 1; /* \xNN for each byte */

	if (!fmt_is_utf8(text, len)) {
		f->text.len = 0;
		if (!buf_add(&f->text, most)) {
			remember(f, ENOMEM);
			text = "";
			len = 0;
		} else {
			len = fmt_exact(f->text.data, most, text, len);
			text = f->text.data;
		}
	}
	f->text_bytes += len;
	remember(f, ArrowArrayAppendString(next_cell(f), (struct ArrowStringView){text, (int64_t)len}));
}

/* ---- batches */

static ArrowErrorCode arrow_take(struct ArrowIpcOutputStream *stream, const void *data, int64_t n, int64_t *taken,
				 struct ArrowError *why)
{
	struct out *out = stream->private_data;

	out_write(out, data, (size_t)n);
	*taken = n;
	return NANOARROW_OK; /* out_commit() reports the error */
}

static void release_nothing(struct ArrowIpcOutputStream *stream)
{
	stream->release = NULL;
}

static int start_file(struct arrow_file *f, struct err *e)
{
	struct ArrowIpcOutputStream stream = {.write = arrow_take, .release = release_nothing};
	struct ArrowError why = {""};
	ArrowErrorCode bad;
	struct out *out;

	if (out_dir_file(f->dir, f->at, &out, e))
		return e->code;
	stream.private_data = out;
	bad = ArrowIpcWriterInit(&f->writer, &stream);
	if (bad) {
		out_abort(out);
		return failed(f, bad, NULL, e);
	}
	f->out = out;
	bad = ArrowIpcWriterStartFile(&f->writer, &why);
	if (!bad)
		bad = ArrowIpcWriterWriteSchema(&f->writer, &f->schema, &why);
	return bad ? failed(f, bad, &why, e) : 0;
}

/* nanoarrow leaves the bits behind the last one of a bitmap as they were in memory. */
static void clear_rest(struct ArrowArray *cells)
{
	struct ArrowBitmap *valid = ArrowArrayValidityBitmap(cells);

	if (valid->size_bits % 8)
		valid->buffer.data[valid->size_bits / 8] &= (uint8_t)((1u << valid->size_bits % 8) - 1);
}

static int write_batch(struct arrow_file *f, struct err *e)
{
	struct ArrowError why = {""};
	ArrowErrorCode bad;
	int64_t i;

	if (!f->out && start_file(f, e))
		return e->code;
	for (i = 0; i < f->rows.n_children; i++)
		clear_rest(f->rows.children[i]);
	bad = ArrowArrayFinishBuildingDefault(&f->rows, &why);
	if (!bad)
		bad = ArrowArrayViewSetArray(&f->view, &f->rows, &why);
	if (!bad)
		bad = ArrowIpcWriterWriteArrayView(&f->writer, &f->view, &why);
	ArrowArrayRelease(&f->rows);
	if (!bad)
		bad = start_batch(f);
	if (bad)
		return failed(f, bad, &why, e);
	return out_error(f->out) ? out_flush(f->out, e) : 0; /* whose message has the whole path */
}

int arrow_end_row(struct arrow_file *f, struct err *e)
{
	ArrowErrorCode bad = f->bad ? f->bad : ArrowArrayFinishElement(&f->rows);

	f->cell = 0;
	if (bad)
		return failed(f, bad, NULL, e);
	if (f->rows.length < ARROW_BATCH_ROWS && f->text_bytes < ARROW_BATCH_BYTES)
		return 0;
	return write_batch(f, e);
}

int arrow_finish(struct arrow_file *f, struct err *e)
{
	struct ArrowError why = {""};
	ArrowErrorCode bad = 0;
	struct out *out;
	int ret = f->rows.length ? write_batch(f, e) : 0;

	if (!ret && f->out) {
		bad = ArrowIpcWriterWriteArrayView(&f->writer, NULL, &why);
		if (!bad)
			bad = ArrowIpcWriterFinalizeFile(&f->writer, &why);
		if (bad)
			ret = failed(f, bad, &why, e);
	}
	if (!ret && f->out) {
		out = f->out;
		f->out = NULL;
		ArrowIpcWriterReset(&f->writer);
		ret = out_commit(out, e);
	}
	arrow_abort(f);
	return ret;
}

void arrow_abort(struct arrow_file *f)
{
	if (!f)
		return;
	if (f->out)
		ArrowIpcWriterReset(&f->writer);
	out_abort(f->out);
	if (f->rows.release)
		ArrowArrayRelease(&f->rows);
	ArrowArrayViewReset(&f->view);
	if (f->schema.release)
		ArrowSchemaRelease(&f->schema);
	ArrowBufferReset(&f->notes);
	buf_fini(&f->text);
	free(f->at);
	free(f);
}
