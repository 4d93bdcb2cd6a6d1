// SPDX-License-Identifier: Apache-2.0
#include "view/dataset/dataset.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "view/calls.h"

static int dataset_begin(struct view *s)
{
	struct dataset *d = (struct dataset *)s;

	if (dataset_parts_init(d))
		return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	return dataset_records(d);
}

static int dataset_put_rows(struct dataset_table *t, const struct view_sheet *sh, const void *table)
{
	const struct view_list *list = table;
	const void *row;
	int err = 0;
	size_t i;

	for (i = 0; !err && i < list->n; i++) {
		row = view_row(&t->d->s, sh, table, i);
		err = row ? dataset_table_row(t, row) : err_set(t->d->s.err, ERR_RUNTIME, -ENOMEM, "out of memory");
	}
	return err;
}

/* The calls of all classes are one table, and each class comes by itself. */
static int begin_calls(struct dataset_table *t, struct dataset *d, const char *name, const struct tbl_column *columns,
		       const void *table)
{
	int err = 0;

	if (!t->d) {
		err = dataset_table_begin(t, d, name);
		dataset_table_lead(t, dataset_lead_columns);
		dataset_table_lead(t, dataset_category_column);
		dataset_table_columns(t, columns, table);
	}
	t->lead.category = view_word(mdl_category(((const struct view_calls *)table)->of->cls));
	return err;
}

static int put_calls(struct dataset *d, const struct view_sheet *sh, const void *table)
{
	int err = begin_calls(&d->calls, d, "calls", sh->columns, table);

	return err ? err : dataset_put_rows(&d->calls, sh, table);
}

/* A performance counter of a row of calls, or a ratio of two. */
struct counter {
	struct view_text name, counter;
	uint32_t device, tgid;
	uint64_t value;
	double ratio;
};

#define ROW struct counter
static const struct tbl_column counter_columns[] = {
	{"name", NULL, NULL, TBL_TEXT, AT(name)},
	{"device", NULL, NULL, TBL_DEVICE, AT(device)},
	{NULL, NULL, NULL, TBL_PID, AT(tgid)},
	{"counter", NULL, NULL, TBL_TEXT, AT(counter)},
	{"value", NULL, NULL, TBL_COUNT, AT(value), TBL_NULL},
	{"ratio", NULL, NULL, TBL_RATIO, AT(ratio)},
	{0},
};
#undef ROW

static int put_counters_of(struct dataset *d, const struct view_call *call)
{
	struct view_made made;
	unsigned n = view_counter_columns(d->s.in->session, made.columns), i;
	int err = 0;

	for (i = 0; !err && call->counted && i < n; i++) {
		const struct tbl_column *c = &made.columns[i];
		const bool ratio = view_is_double(c);
		const struct counter row = {
			.name = call->name,
			.counter = view_word(c->key),
			.device = call->device,
			.tgid = call->tgid,
			.value = ratio ? TBL_UNKNOWN : view_cell_number(c, &call->counters),
			.ratio = ratio ? view_cell_double(c, &call->counters) : NAN,
		};

		err = dataset_table_row(&d->counters, &row);
	}
	return err;
}

static int put_counters(struct dataset *d, const struct view_sheet *sh, const void *table)
{
	const struct view_list *list = table;
	int err = begin_calls(&d->counters, d, "counters", counter_columns, table);
	const void *row;
	size_t i;

	for (i = 0; !err && i < list->n; i++) {
		row = view_row(&d->s, sh, table, i);
		err = row ? put_counters_of(d, row) : err_set(d->s.err, ERR_RUNTIME, -ENOMEM, "out of memory");
	}
	return err;
}

/* The name of a table, and of the list `key` in its rows; NULL: of the table itself. */
static void name_table(char name[DATASET_NAME_BYTES], const struct view_sheet *sh, const char *key)
{
	const char *list = sh->list ? sh->list : "";

	snprintf(name, DATASET_NAME_BYTES, "%s%s%s%s%s", sh->def ? sh->def : sh->member, *list ? "_" : "", list,
		 key ? "_" : "", key ? key : "");
}

static int begin_table(struct dataset *d, const char *name)
{
	int err = dataset_table_begin(&d->table, d, name);

	if (!err)
		dataset_table_lead(&d->table, dataset_lead_columns);
	return err;
}

static int dataset_put_table(struct dataset *d, const struct view_sheet *sh, const void *table)
{
	char name[DATASET_NAME_BYTES];
	int err;

	name_table(name, sh, NULL);
	err = begin_table(d, name);
	dataset_table_columns(&d->table, sh->columns, table);
	err = err ? err : dataset_put_rows(&d->table, sh, table);
	return dataset_table_end(&d->table, err);
}

/* Values of the whole table are a table with one row. */
static int put_totals(struct dataset *d, const struct view_sheet *sh, const void *table)
{
	char name[DATASET_NAME_BYTES];
	int err;

	snprintf(name, sizeof(name), "%s_totals", sh->member);
	err = begin_table(d, name);
	dataset_table_columns(&d->table, sh->totals, table);
	err = err ? err : dataset_table_row(&d->table, table);
	return dataset_table_end(&d->table, err);
}

/* Returns a column of this name or type, or NULL. */
static const struct tbl_column *dataset_find(const struct view_sheet *sh, const char *key, enum tbl_type type)
{
	const struct tbl_column *c = sh->columns;

	while (c->bytes && (key ? !c->key || strcmp(c->key, key) : c->type != type))
		c++;
	return c->bytes ? c : NULL;
}

/* The items of a list in the rows are rows of a table, with the name of the row that has the list. */
static int put_list(struct dataset *d, const struct view_sheet *sh, const void *table, const struct tbl_column *c)
{
	const struct tbl_column *of = dataset_find(sh, "name", 0), *pid = dataset_find(sh, NULL, TBL_PID);
	struct dataset_table *t = &d->table;
	const struct view_list *rows = table, *items;
	char name[DATASET_NAME_BYTES];
	const void *row;
	size_t i, k;
	int err;

	name_table(name, sh, c->key);
	err = begin_table(d, name);
	dataset_table_lead(t, dataset_of_column);
	dataset_table_columns(t, c->columns, NULL);
	for (i = 0; !err && i < rows->n; i++) {
		row = view_row(&d->s, sh, table, i);
		if (!row)
			err = err_set(d->s.err, ERR_RUNTIME, -ENOMEM, "out of memory");
		else if (of)
			t->lead.of = view_cell_text(of, row);
		items = row ? (const void *)((const char *)row + c->at) : NULL;
		for (k = 0; items && !err && k < items->n; k++)
			err = dataset_table_row_of(t, pid ? (uint32_t)view_cell_number(pid, row) : 0,
						   (const char *)items->rows + k * c->item_bytes);
	}
	return dataset_table_end(t, err);
}

static int sheet(struct view *s, const struct view_sheet *sh, const void *table)
{
	struct dataset *d = (struct dataset *)s;
	const struct tbl_column *c;
	int err;

	if (sh == &sheet_counters)
		return put_counters(d, sh, table);
	if (!sh->def && !sh->member)
		return 0;
	if (sh->of_class)
		return put_calls(d, sh, table);
	err = dataset_put_table(d, sh, table);
	for (c = sh->columns; !err && c->bytes; c++)
		if (c->type == TBL_LIST && c->key)
			err = put_list(d, sh, table, c);
	return err || !sh->totals ? err : put_totals(d, sh, table);
}

static int dataset_end(struct view *s)
{
	struct dataset *d = (struct dataset *)s;
	int err = view_write_sheet(s, &sheet_machine);

	if (d->calls.d)
		err = dataset_table_end(&d->calls, err);
	if (d->counters.d)
		err = dataset_table_end(&d->counters, err);
	return err ? err : dataset_about(d);
}

static void dataset_fini(struct view *s)
{
	struct dataset *d = (struct dataset *)s;

	if (d->calls.d)
		dataset_table_end(&d->calls, -ECANCELED);
	if (d->counters.d)
		dataset_table_end(&d->counters, -ECANCELED);
	dataset_parts_fini(d);
}

static const char *const suffixes[] = {".arrow", NULL};

const struct view_ops view_arrow = {
	.name = "arrow",
	.help = "directory of Arrow files for DuckDB, ClickHouse, pandas and Polars: every table and every call",
	.suffixes = suffixes,
	.mark = "_mxbpf", /* readers of data sets ignore names that begin so */
	.needs_records = true,
	.by_process = true,
	.state_bytes = sizeof(struct dataset),
	.begin = dataset_begin,
	.table = view_calls_table,
	.sheet = sheet,
	.end = dataset_end,
	.fini = dataset_fini,
};
