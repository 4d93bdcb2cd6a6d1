// SPDX-License-Identifier: Apache-2.0
/* Conditions on a column of a table: TABLE.COLUMN(NAME) > VALUE. Tables and columns have the names of JSON. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/cost/cost.h"
#include "trigger/priv.h"

static bool is_number(const struct tbl_column *c)
{
	return c->key && !c->generate &&
	       (c->type == TBL_COUNT || c->type == TBL_NS || c->type == TBL_BYTES || c->type == TBL_RATE ||
		c->type == TBL_SHARE || c->type == TBL_RATIO);
}

bool trg_find_table(struct trg *t, const char *table, size_t n)
{
	t->sheet = view_sheet_find(table, n);
	return t->sheet;
}

bool trg_find_column(struct trg *t, const char *column, size_t n, char numbers[TRG_WHY_BYTES])
{
	struct view_flat flat;
	size_t len = 0;
	unsigned i;

	numbers[0] = '\0';
	view_row_columns(t->sheet, &flat);
	for (i = 0; i < flat.n; i++) {
		if (!is_number(&flat.columns[i]))
			continue;
		t->column = flat.columns[i];
		if (strlen(t->column.key) == n && !strncmp(t->column.key, column, n))
			return true;
		if (len < TRG_WHY_BYTES)
			len += (size_t)snprintf(numbers + len, TRG_WHY_BYTES - len, "%s%s", len ? ", " : "",
						t->column.key);
	}
	return false;
}

/* ---- judging */

struct look {
	struct view s;
	const struct trg *t;
	char *why;
	bool found;
};

static bool is_above(const struct trg *t, const void *row)
{
	const enum tbl_type type = t->column.type;
	const bool whole = type == TBL_NS || type == TBL_BYTES || type == TBL_RATE;

	return view_cell_value(&t->column, row) > (whole ? (double)t->limit : t->share);
}

/* Returns true if no name is asked for, or a text or the device of the row matches. `first`: the first of these texts.
 */
static bool is_named(const struct look *l, const struct view_sheet *sh, const void *row, char first[128])
{
	struct view_flat flat = {.n = 0};
	char cell[TBL_CELL_BYTES], name[128];
	struct view_text text;
	bool matches = !l->t->name[0];
	unsigned i;

	first[0] = '\0';
	view_flatten(&l->s, &flat, sh->columns, 0);
	for (i = 0; i < flat.n; i++) {
		if (!(flat.columns[i].key || flat.columns[i].head) ||
		    !(view_is_text(&flat.columns[i]) || flat.columns[i].type == TBL_DEVICE) ||
		    view_is_below(&flat.columns[i]) || !view_has_value(&flat.columns[i], row))
			continue;
		text = view_people_text(&l->s, &flat.columns[i], row, cell);
		fmt_utf8(name, sizeof(name), text.data ? text.data : "", text.len);
		if (!first[0])
			memcpy(first, name, sizeof(name));
		matches |= !fnmatch(l->t->name, name, 0);
	}
	return matches;
}

static int look_at_rows(struct view *s, const struct view_sheet *sh, const void *table)
{
	struct look *l = (struct look *)s;
	const struct view_list *list = table;
	const struct tbl_column *c = &l->t->column;
	char first[128], cell[TBL_CELL_BYTES], process[32] = "";
	struct view_text text;
	const void *row;
	size_t i;

	for (i = 0; i < list->n && !l->found && view_has_column(s, c, table); i++) {
		row = view_row(s, sh, table, i);
		if (!row)
			return -1;
		if (!is_above(l->t, row) || !is_named(l, sh, row, first))
			continue;
		l->found = true;
		if (view_row_process(sh, row))
			snprintf(process, sizeof(process), " of process %" PRIu32, view_row_process(sh, row));
		text = view_people_text(s, c, row, cell);
		snprintf(l->why, TRG_WHY_BYTES, "%s of %s%s is %.*s", c->key, first[0] ? first : sh->member, process,
			 (int)text.len, text.data);
	}
	return 0;
}

bool trg_judge_column(const struct trg *t, const struct mdl_interval *in, char why[TRG_WHY_BYTES])
{
	static const struct view_ops ops = {.name = "condition", .sheet = look_at_rows};
	static const struct view_opts opts;
	const struct view_input input = {.session = in->session, .model = in->model};
	struct err e = {0};
	struct look l = {.s = {.ops = &ops, .in = &input, .opts = &opts, .err = &e}, .t = t, .why = why};

	if (cost_lacks_memory(in->model) && !strcmp(t->sheet->member, "memory"))
		return false;
	return !view_write_sheet(&l.s, t->sheet) && l.found;
}
