// SPDX-License-Identifier: Apache-2.0
/*
 * The view of any table. Its columns and cells are made from the description of the table. The model of an interval has
 * what happened in this interval alone, so numbers that add up become rates without the interval before.
 */
#include "top/priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "view/sheet.h"

#define TABLES_MAX 64
#define TABLE_ROWS 1000 /* the largest ones, in the order of the table */
#define WIDTH_MAX  40	/* of a text */

struct taking {
	struct view s;
	struct top *t;
	size_t n;
	const struct tbl_column *name; /* the first text of a row; NULL: it has none */
	const struct tbl_column *columns[TOP_TABLE_COLUMNS];
};

/* ---- columns */

/* Rates come first, and then the name of the row, because a narrow screen cuts what is behind them. */
static unsigned order_of(const struct taking *k, const struct tbl_column *c)
{
	return view_adds_up(c) ? 0 : c == k->name ? 1 : view_is_below(c) ? 3 : 2;
}

static void arrange(struct taking *k, const struct view_flat *flat)
{
	struct top_table_columns *to = &k->t->table.columns;
	const struct tbl_column *c;
	unsigned order, i;

	for (i = 0; i < flat->n && !k->name; i++)
		if (view_is_text(&flat->columns[i]) && !view_is_below(&flat->columns[i]))
			k->name = &flat->columns[i];
	memset(to, 0, sizeof(*to));
	k->t->table.rates = false;
	for (order = 0; order < 4; order++)
		for (i = 0; i < flat->n && to->n < TOP_TABLE_COLUMNS; i++) {
			c = &flat->columns[i];
			if (order_of(k, c) != order)
				continue;
			k->columns[to->n] = c;
			k->t->table.rates |= !order;
			snprintf(to->of[to->n].head, sizeof(to->of->head), "%s%s", c->head,
				 !order && c->type == TBL_COUNT ? "/s" : "");
			to->of[to->n].number = !view_is_text(c) && c->type != TBL_DEVICE;
			to->of[to->n++].below = view_is_below(c);
		}
}

/* Other columns than in the second before: the cells of earlier rows are not theirs. */
static bool table_is_other(const struct top_table_columns *a, const struct top_table_columns *b)
{
	unsigned i;

	for (i = 0; i < a->n && a->n == b->n; i++)
		if (strcmp(a->of[i].head, b->of[i].head) != 0)
			return true;
	return a->n != b->n;
}

/*
 * The column by which a table is sorted at first: the first share of the second, else the first number that is no time
 * of day.
 */
static unsigned first_number(const struct taking *k)
{
	const struct top_table_columns *columns = &k->t->table.columns;
	unsigned i, number = 0, share = columns->n;

	for (i = columns->n; i--;) {
		if (columns->of[i].number && k->columns[i]->type != TBL_MOMENT)
			number = i;
		if (view_adds_up(k->columns[i]) && k->columns[i]->type == TBL_NS)
			share = i;
	}
	return share < columns->n ? share : number;
}

/* ---- rows */

static void put_rate(const struct tbl_column *c, double rate, char text[TOP_VALUE_BYTES])
{
	char bytes[24];

	if (c->type == TBL_NS)
		snprintf(text, TOP_VALUE_BYTES, "%.1f%%", rate / 1e7);
	else if (c->type == TBL_BYTES)
		snprintf(text, TOP_VALUE_BYTES, "%s%s/s", rate < 0 ? "-" : "", fmt_bytes(whole(fabs(rate)), bytes));
	else
		snprintf(text, TOP_VALUE_BYTES, "%.1f", rate);
}

static void take_cell(const struct taking *k, const struct tbl_column *c, const void *row, struct top_value *to)
{
	const uint64_t window_ns = k->s.in->session->duration_ns;
	const bool known = !view_is_text(c) && view_is_known(&k->s, c, row);
	char cell[TBL_CELL_BYTES];
	struct view_text text;

	to->number = known ? view_cell_value(c, row) : 0;
	if (known && window_ns && view_adds_up(c)) {
		to->number *= 1e9 / (double)window_ns;
		put_rate(c, to->number, to->text);
		return;
	}
	text = known || view_is_text(c) ? view_people_text(&k->s, c, row, cell) : view_word(NULL);
	fmt_safe(to->text, sizeof(to->text), text.data ? text.data : "-", text.data ? text.len : 1);
}

/*
 * The keys of a stored row. Of a row that was made, its process, its device and its name. Rows in which these are the
 * same are told apart by their order.
 */
static uint64_t key_of(const struct taking *k, const struct view_sheet *sh, const void *row)
{
	uint64_t key = HASH_SEED;
	const struct tbl_column *c;
	struct view_text name;

	for (c = sh->columns; c->bytes; c++)
		if (!view_is_text(c) &&
		    (c->merge == TBL_IS_KEY || c->type == TBL_PID || c->type == TBL_DEVICE || c->label))
			key = hash_text(key, (const char *)row + c->at, c->bytes);
	name = k->name && !sh->stored ? view_cell_text(k->name, row) : view_word("");
	return hash_text(key, name.data ? name.data : "", name.data ? name.len : 0);
}

static struct top_row *row_of(struct top *t, uint64_t key)
{
	struct top_row *row;
	uint64_t n = 0;

	do
		row = top_row_put(t, TOP_TABLE, key, n++);
	while (row && top_part_now(t, row)->calls);
	if (row && !row->values)
		row->values = calloc(t->table.columns.n, sizeof(*row->values));
	return row && row->values ? row : NULL;
}

static int table_take_row(struct taking *k, const struct view_sheet *sh, const void *row)
{
	struct top_table_columns *columns = &k->t->table.columns;
	struct top_row *to = row_of(k->t, key_of(k, sh, row));
	const struct top_row *process;
	unsigned i, width;

	if (!to) {
		k->t->table.left_out++;
		return 0;
	}
	for (i = 0; i < columns->n; i++) {
		take_cell(k, k->columns[i], row, &to->values[i]);
		width = (unsigned)fmt_columns(to->values[i].text);
		width = width < WIDTH_MAX ? width : WIDTH_MAX;
		columns->of[i].width = width > columns->of[i].width ? width : columns->of[i].width;
		if (k->columns[i] == k->name && !to->name)
			to->name = strdup(to->values[i].text);
	}
	to->name = to->name ? to->name : strdup("");
	to->tgid = view_row_process(sh, row);
	process = top_row_find(k->t, TOP_PROCESSES, to->tgid, 0);
	to->job = process ? process->job : 0;
	top_part_now(k->t, to)->calls = 1; /* it is there in this second */
	return to->name ? 0 : -ENOMEM;
}

static int table_take_sheet(struct view *s, const struct view_sheet *sh, const void *table)
{
	struct taking *k = (struct taking *)s;
	const struct top_table_columns before = k->t->table.columns;
	struct view_flat flat = {.n = 0};
	const struct view_list *list = table;
	const void *row;
	int err = 0;

	view_people_columns(s, &flat, sh->columns, table);
	arrange(k, &flat);
	if (table_is_other(&before, &k->t->table.columns)) {
		top_rows_clear(k->t, TOP_TABLE);
		k->t->table.sort = first_number(k);
	}
	for (k->n = 0; !err && flat.n && k->n < list->n; k->n++) {
		row = view_row(s, sh, table, k->n);
		err = row ? table_take_row(k, sh, row) : -ENOMEM;
	}
	return err;
}

/* ---- which table */

/* Goes to the table that follows in the outputs, or to the one before. */
static void table_go(struct top *t)
{
	char name[VIEW_SHEET_BYTES];
	unsigned n = 0, at = 0;

	for (; view_sheets[n]; n++)
		at = view_sheets[n] == t->table.of ? n : at;
	do
		at = (at + n + (unsigned)t->table.step) % n;
	while (!view_sheet_name(view_sheets[at], name));
	t->table.of = view_sheets[at];
	t->table.columns.n = 0;
	top_rows_clear(t, TOP_TABLE);
}

int top_take_table(struct top *t, const struct mdl_interval *in)
{
	static const struct view_ops ops = {.name = "top", .people = true, .sheet = table_take_sheet};
	static const struct view_opts opts = {.top = TABLE_ROWS};
	const struct view_input input = {.session = in->session, .model = in->model};
	struct err e = {0};
	struct taking k = {.s = {.ops = &ops, .in = &input, .opts = &opts, .err = &e}, .t = t};
	unsigned tries = TABLES_MAX;
	int err = 0;

	if (!t->table.shown)
		return 0;
	do {
		if (t->table.step)
			table_go(t);
		k.name = NULL;
		err = view_write_sheet(&k.s, t->table.of);
	} while (!err && !k.n && t->table.step && --tries);
	t->table.step = 0;
	return err;
}

/* ---- the text */

const char *top_table_name(const struct top *t, char name[TOP_TABLE_NAME_BYTES])
{
	return t->table.of ? view_sheet_name(t->table.of, name) : "";
}

bool top_table_has(const struct top *t, const struct top_row *r)
{
	return (t->table.rates ? r->minute.calls : r->second.calls) > 0;
}

/* A row that is not in the table in this second has no numbers. */
static const char *text_of(const struct top *t, const struct top_row *r, unsigned i)
{
	if (!r)
		return t->table.columns.of[i].head;
	return t->table.columns.of[i].number && r->second.calls <= 0 ? "-" : r->values[i].text;
}

void top_table_line(const struct top *t, const struct top_row *r, char *to, size_t max)
{
	const struct top_table_columns *columns = &t->table.columns;
	char cut[TOP_VALUE_BYTES];
	const char *text, *end;
	unsigned i, width, pad;
	bool number, last = false;
	size_t len = 0;

	to[0] = '\0';
	for (i = 0; i < columns->n && len < max && !last; i++) {
		text = text_of(t, r, i);
		number = columns->of[i].number;
		last = i + 1 == columns->n || columns->of[i + 1].below;
		width = (unsigned)strlen(columns->of[i].head);
		width = width > columns->of[i].width ? width : columns->of[i].width;
		end = last && !number ? text + strlen(text) : fmt_head(text, width); /* a text at the end is not cut */
		snprintf(cut, sizeof(cut), "%.*s", (int)(end - text), text);
		pad = last && !number ? 0 : width - (unsigned)fmt_columns(cut);
		len += (size_t)snprintf(to + len, max - len, "%*s%s%*s%s", number ? (int)pad : 0, "", cut,
					number ? 0 : (int)pad, "", last ? "" : "  ");
	}
}

void top_table_details(struct top_lines *f, const struct top *t, const struct top_row *row, unsigned max)
{
	const char *head;
	unsigned i;

	for (i = 0; i < t->table.columns.n && i < max; i++) {
		head = t->table.columns.of[i].head;
		top_line(f, "    %s%s%s", head, *head ? ": " : "", text_of(t, row, i));
	}
}

/* Compares by the column of the table by which it is sorted: the largest number first, texts from a to z. */
int top_table_compare(const struct top *t, const struct top_row *a, const struct top_row *b)
{
	const unsigned i = t->table.sort;
	const double x = a->second.calls > 0 ? a->values[i].number : 0,
		     y = b->second.calls > 0 ? b->values[i].number : 0;

	if (!t->table.columns.of[i].number)
		return strcmp(a->values[i].text, b->values[i].text);
	return x > y ? -1 : x < y;
}
