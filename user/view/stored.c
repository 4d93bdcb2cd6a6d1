// SPDX-License-Identifier: Apache-2.0
/* Makes the rows of an output from a stored table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/feature.h"
#include "view/priv.h"
#include "view/sheet.h"

struct order {
	const struct view_sheet *sheet;
	const struct view_opts *opts;
	const struct tbl_column *by, *name; /* NULL: not sorted by that */
};

static int stored_compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int stored_by_text(const struct tbl_column *c, const void *a, const void *b)
{
	const struct view_text text_a = view_cell_text(c, a), text_b = view_cell_text(c, b);

	return view_name_cmp(text_a.data, text_a.len, text_b.data, text_b.len);
}

static bool is_number_key(const struct tbl_column *c)
{
	return c->merge == TBL_IS_KEY && c->type != TBL_NAME;
}

static int by_keys(const struct view_sheet *sh, const void *a, const void *b)
{
	const struct tbl_column *c;
	int order = 0;

	for (c = sh->columns; !order && c->bytes; c++)
		order = is_number_key(c) ? stored_compare(view_cell_number(c, a), view_cell_number(c, b)) : 0;
	return order;
}

/* Compares what an output shows of two rows. Returns 0 if nobody can tell them apart. */
static int by_looks(const void *a, const void *b, void *ctx)
{
	const struct view_sheet *sh = ctx;
	const struct tbl_column *c;
	int order = 0;

	for (c = sh->columns; !order && c->bytes; c++)
		order = c->type == TBL_TEXT ? stored_by_text(c, a, b) : 0;
	return order ? order : by_keys(sh, a, b);
}

/* Merges rows that nobody can tell apart. Returns the number of rows that are left. */
static size_t stored_join(const struct view_sheet *sh, char *rows, size_t n)
{
	const size_t bytes = sh->row_bytes;
	size_t i, last = 0;

	qsort_r(rows, n, bytes, by_looks, (void *)sh);
	for (i = 1; i < n; i++) {
		if (!by_looks(rows + last * bytes, rows + i * bytes, (void *)sh))
			tbl_merge(sh->stored, rows + last * bytes, rows + i * bytes);
		else if (++last != i)
			memcpy(rows + last * bytes, rows + i * bytes, bytes);
	}
	return n ? last + 1 : 0;
}

static int by_order(const void *a, const void *b, void *ctx)
{
	const struct order *o = ctx;
	int order = 0;

	if (o->sheet->order)
		return o->sheet->order(a, b, (void *)o->opts);
	if (o->by)
		order = stored_compare(view_cell_number(o->by, b), view_cell_number(o->by, a)) *
			(o->opts->ascending ? -1 : 1);
	if (!order && o->name)
		order = stored_by_text(o->name, a, b);
	return order ? order : by_keys(o->sheet, a, b);
}

static struct order order_of(const struct view *s, const struct view_sheet *sh)
{
	const uint16_t by = s->opts->sort == VIEW_SORT_NAME    ? 0
			    : s->opts->sort == VIEW_SORT_COUNT ? TBL_BY_COUNT
							       : TBL_BY_TIME;
	struct order o = {.sheet = sh, .opts = s->opts};
	const struct tbl_column *c;

	for (c = sh->columns; c->bytes; c++) {
		if (c->flags & by)
			o.by = c;
		if (c->type == TBL_TEXT && c->head && !o.name)
			o.name = c;
	}
	return o;
}

static void fill_all(const struct view *s, const struct view_sheet *sh, const struct view_list *list)
{
	size_t i;

	for (i = 0; sh->fill && i < list->all; i++)
		sh->fill(s, (char *)list->rows + i * sh->row_bytes);
}

int view_make_stored(const struct view *s, const struct view_sheet *sh, void *table)
{
	struct tbl copies[MDL_FEATURE_TABLES];
	const struct tbl *tables = mdl_tables_finished(s->in->model, sh->feature, copies), *t = tables;
	struct order order = order_of(s, sh);
	struct view_list *list = table;
	char *row;
	size_t i;

	while (t && t < tables + MDL_FEATURE_TABLES - 1 && t->def != sh->stored)
		t++;
	list->all = t && t->def == sh->stored ? tbl_count(t) : 0;
	list->rows = row = t ? calloc(list->all + 1, sh->row_bytes) : NULL;
	for (i = 0; row && i < list->all; i++, row += sh->row_bytes) {
		memcpy(row, tbl_at(t, i), sh->stored->row_bytes);
		if (sh->sum_at && !i)
			memcpy((char *)table + sh->sum_at, row, sh->stored->row_bytes);
		else if (sh->sum_at)
			tbl_merge(sh->stored, (char *)table + sh->sum_at, row);
	}
	mdl_tables_fini(copies);
	if (!row)
		return -ENOMEM;
	fill_all(s, sh, list);
	if (sh->joins) {
		list->all = stored_join(sh, list->rows, list->all);
		fill_all(s, sh, list);
	}
	qsort_r(list->rows, list->all, sh->row_bytes, by_order, &order);
	if (sh->finish)
		sh->finish(s, table);
	return 0;
}
