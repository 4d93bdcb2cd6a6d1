// SPDX-License-Identifier: Apache-2.0
/* Rows of sheets become rows of Arrow files. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "view/dataset/dataset.h"

/* ---- columns */

#define ROW struct dataset_lead
const struct tbl_column dataset_lead_columns[] = {
	{"recording", NULL, NULL, TBL_COUNT, AT(recording)},
	{"window_start", NULL, NULL, TBL_MOMENT, AT(start_ns)},
	{"job", NULL, NULL, TBL_TEXT, AT(job)},
	{"runtime", NULL, NULL, TBL_TEXT, AT(runtime)},
	{"mxbpf_version", NULL, NULL, TBL_TEXT, AT(version)},
	{"pid", NULL, NULL, TBL_COUNT, AT(tgid)},
	{0},
};
const struct tbl_column dataset_category_column[] = {{"category", NULL, NULL, TBL_TEXT, AT(category)}, {0}};
const struct tbl_column dataset_of_column[] = {{"of", NULL, NULL, TBL_TEXT, AT(of)}, {0}};
#undef ROW

/* Where columns stand: in the row, in an object, in an object of an object. */
struct within {
	char prefix[DATASET_NAME_BYTES]; /* of names: the objects, from the outermost on */
	uint16_t at, has;
	bool off;
	const struct tbl_column *of; /* the object that may be null as a whole */
	uint16_t of_at;
};

static bool is_taken(const struct dataset_table *t, const char *name)
{
	unsigned i;

	for (i = 0; i < t->n; i++)
		if (!strcmp(t->columns[i].name, name))
			return true;
	return false;
}

/* A name of letters, digits and underscores needs no quotes in SQL. */
static void name_column(char name[DATASET_NAME_BYTES], const char *prefix, const char *key)
{
	char *p;

	snprintf(name, DATASET_NAME_BYTES, "%s%s%s", prefix, *prefix ? "_" : "", key);
	for (p = name; *p; p++)
		*p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '_';
}

static void add_column(struct dataset_table *t, const struct tbl_column *c, const struct within *in, bool lead)
{
	struct dataset_column *to = &t->columns[t->n];

	if (t->n == DATASET_COLUMNS_MAX)
		return;
	name_column(to->name, in->prefix, c->key);
	if (is_taken(t, to->name))
		return;
	to->c = *c;
	to->c.at = (uint16_t)(c->at + in->at);
	to->c.has = (uint16_t)(c->has ? c->has + in->at : in->has);
	to->lead = lead;
	to->off = in->off;
	to->of = in->of;
	to->of_at = in->of_at;
	t->n++;
}

static void add_columns(struct dataset_table *t, const struct tbl_column *columns, const void *table,
			const struct within *in);

/*
 * Members that a session names are left out: all files of a table have the same columns, because not every engine reads
 * others.
 */
static void add_members(struct dataset_table *t, const struct tbl_column *c, const void *table, const struct within *in,
			bool off)
{
	struct within inner = *in;

	inner.at = (uint16_t)(in->at + c->at);
	inner.has = (uint16_t)(c->has ? c->has + in->at : in->has);
	inner.off = off;
	if (c->type == TBL_OBJECT)
		name_column(inner.prefix, in->prefix, c->key);
	if (c->type == TBL_OBJECT && c->flags & TBL_OMIT) {
		inner.of = c;
		inner.of_at = in->at;
	}
	add_columns(t, c->columns, table, &inner);
}

static void add_columns(struct dataset_table *t, const struct tbl_column *columns, const void *table,
			const struct within *in)
{
	const struct tbl_column *c;
	struct within one = *in;

	for (c = columns; c && c->bytes; c++) {
		one.off = in->off || !view_is_asked(&t->d->s, c) ||
			  (c->when && !(table && *((const bool *)table + c->when)));
		if (c->type == TBL_PART || (c->type == TBL_OBJECT && c->key))
			add_members(t, c, table, in, one.off);
		else if (c->type == TBL_PID)
			t->pid = (struct tbl_column){.at = (uint16_t)(c->at + in->at), .bytes = c->bytes};
		else if (c->key && c->type != TBL_LIST)
			add_column(t, c, &one, false);
	}
}

void dataset_table_columns(struct dataset_table *t, const struct tbl_column *columns, const void *table)
{
	add_columns(t, columns, table, &(struct within){0});
}

void dataset_table_lead(struct dataset_table *t, const struct tbl_column *columns)
{
	for (; columns->bytes; columns++)
		add_column(t, columns, &(struct within){0}, true);
}

static struct arrow_field field_of(const struct dataset_column *col)
{
	static const char *const units[TBL_NTYPES] = {[TBL_NS] = "ns", [TBL_BYTES] = "bytes", [TBL_RATE] = "bytes/s"};
	struct arrow_field f = {.name = col->name, .type = ARROW_INT};

	f.unit = units[col->c.type];
	if (view_is_text(&col->c) || col->c.type == TBL_DEVICE)
		f.type = ARROW_TEXT;
	else if (view_is_double(&col->c))
		f.type = ARROW_REAL;
	else if (col->c.type == TBL_BOOL)
		f.type = ARROW_BOOL;
	else if (col->c.type == TBL_MOMENT && !fmt_ends_with(col->name, "_unix_ns"))
		f.type = ARROW_TIME;
	return f;
}

/* ---- rows */

static struct view_text label_text(const struct mdl_labels *l, enum mdl_label_text i)
{
	return view_word(l && l->texts[i] && *l->texts[i] ? l->texts[i] : NULL);
}

static void fill_lead(struct dataset_table *t, uint32_t tgid)
{
	const struct mdl_session *s = t->d->s.in->session;
	const uint32_t pid = tgid ? tgid : s->pid;
	const struct mdl_labels *l = mdl_labels_of(s, pid);
	const char *runtime = mdl_runtime_of(s, pid);

	if (t->lead.recording && t->lead.tgid == pid)
		return;
	t->lead.recording = t->d->recording;
	t->lead.start_ns = s->start_mono_ns;
	t->lead.tgid = pid;
	t->lead.job = label_text(l, MDL_JOB);
	t->lead.runtime = view_word(*runtime ? runtime : NULL);
	t->lead.version = view_word(s->mxbpf_version);
}

/* A value is null where the JSON leaves it out or has null. */
static bool is_null(const struct dataset_column *col, const void *row)
{
	const struct tbl_column *c = &col->c;

	if (col->off || !view_has_value(c, row))
		return true;
	if (col->of && !view_is_there(col->of, (const char *)row + col->of_at))
		return true;
	if (view_is_text(c))
		return !view_cell_text(c, row).data || (c->flags & TBL_OMIT && !view_is_there(c, row));
	if (view_is_double(c))
		return isnan(view_cell_double(c, row));
	if (c->flags & TBL_NULL)
		return view_cell_number(c, row) == TBL_UNKNOWN;
	return c->flags & TBL_OMIT && !view_is_there(c, row);
}

static void table_put_device(const struct dataset_table *t, struct arrow_file *f, uint32_t device)
{
	char name[48];

	if (!MXBPF_DEVICE_TYPE(device))
		return arrow_null(f);
	mdl_device_name(t->d->s.in->session, device, name);
	arrow_text(f, name, strlen(name));
}

static void table_put_cell(const struct dataset_table *t, struct arrow_file *f, const struct dataset_column *col,
			   const void *row)
{
	const struct mdl_session *s = t->d->s.in->session;
	const struct tbl_column *c = &col->c;
	struct view_text text;
	uint64_t n;

	if (is_null(col, row))
		return arrow_null(f);
	if (view_is_text(c)) {
		text = view_cell_text(c, row);
		return arrow_text(f, text.data, text.len);
	}
	if (view_is_double(c))
		return arrow_real(f, view_cell_double(c, row));
	n = view_cell_number(c, row);
	if (c->type == TBL_DEVICE)
		table_put_device(t, f, (uint32_t)n);
	else if (c->type == TBL_MOMENT)
		arrow_int(f, (int64_t)(s->start_unix_ns + (n - s->start_mono_ns)));
	else if (c->flags & TBL_SIGNED)
		arrow_int(f, (int64_t)n);
	else
		arrow_uint(f, n);
}

static int no_memory(const struct dataset_table *t)
{
	return err_set(t->d->s.err, ERR_RUNTIME, -ENOMEM, "out of memory");
}

int dataset_table_begin(struct dataset_table *t, struct dataset *d, const char *name)
{
	t->d = d;
	t->name = name;
	t->to = dataset_nparts(d);
	t->files = calloc(t->to, sizeof(struct arrow_file *));
	return t->files ? 0 : no_memory(t);
}

static int open_file(struct dataset_table *t, size_t part)
{
	struct arrow_field fields[DATASET_COLUMNS_MAX];
	const char *where = buf_at(&t->d->parts, struct dataset_part, part)->path;
	const struct arrow_note note = {"mxbpf_version", t->d->s.in->session->mxbpf_version};
	struct arrow_file *f;
	unsigned i;
	char *at;

	for (i = 0; i < t->n; i++)
		fields[i] = field_of(&t->columns[i]);
	if (asprintf(&at, "%s/%s/%016llx.arrow", t->name, where, (unsigned long long)t->d->recording) < 0)
		return no_memory(t);
	f = t->files[part] = arrow_new(t->d->s.opts->dir, at, fields, t->n);
	free(at);
	return f && !(note.text && arrow_note(f, &note)) ? 0 : no_memory(t);
}

int dataset_table_row(struct dataset_table *t, const void *row)
{
	return dataset_table_row_of(t, t->pid.bytes ? (uint32_t)view_cell_number(&t->pid, row) : 0, row);
}

int dataset_table_row_of(struct dataset_table *t, uint32_t tgid, const void *row)
{
	const size_t part = dataset_part_of(t->d, tgid);
	const struct dataset_column *col;

	if (part < t->from || part >= t->to)
		return 0;
	if (!t->files[part] && open_file(t, part))
		return -ENOMEM;
	fill_lead(t, tgid);
	for (col = t->columns; col < t->columns + t->n; col++)
		table_put_cell(t, t->files[part], col, col->lead ? (const void *)&t->lead : row);
	return arrow_end_row(t->files[part], t->d->s.err);
}

int dataset_table_end(struct dataset_table *t, int err)
{
	size_t i;

	for (i = 0; t->files && i < dataset_nparts(t->d); i++) {
		if (err)
			arrow_abort(t->files[i]);
		else if (t->files[i])
			err = arrow_finish(t->files[i], t->d->s.err);
	}
	free(t->files);
	memset(t, 0, sizeof(*t));
	return err;
}
