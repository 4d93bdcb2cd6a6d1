// SPDX-License-Identifier: Apache-2.0
/* Values of the cells of sheets, and tables for people. */
#include "view/sheet.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "view/priv.h"
#include "view/text/grid.h"

uint64_t view_cell_number(const struct tbl_column *c, const void *row)
{
	const char *at = (const char *)row + c->at;

	switch (c->bytes) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		return *(const uint16_t *)at;
	case 4:
		return *(const uint32_t *)at;
	}
	return *(const uint64_t *)at;
}

double view_cell_double(const struct tbl_column *c, const void *row)
{
	double v;

	memcpy(&v, (const char *)row + c->at, sizeof(v));
	return v;
}

struct view_text view_cell_text(const struct tbl_column *c, const void *row)
{
	uint64_t i;

	if (c->type != TBL_WORD)
		return *(const struct view_text *)((const char *)row + c->at);
	i = view_cell_number(c, row);
	if (i >= c->nwords || !c->words[i])
		return (struct view_text){0};
	return (struct view_text){c->words[i], strlen(c->words[i])};
}

double view_cell_value(const struct tbl_column *c, const void *row)
{
	uint64_t n;

	if (!view_has_value(c, row))
		return NAN;
	if (view_is_double(c))
		return view_cell_double(c, row);
	n = view_cell_number(c, row);
	if (c->flags & TBL_SIGNED)
		return (double)(int64_t)n;
	return n == TBL_UNKNOWN ? NAN : (double)n;
}

bool view_is_text(const struct tbl_column *c)
{
	return c->type <= TBL_WORD;
}

bool view_is_double(const struct tbl_column *c)
{
	return c->type == TBL_SHARE || c->type == TBL_RATIO;
}

bool view_is_there(const struct tbl_column *c, const void *row)
{
	const struct tbl_column *of;

	if (c->type == TBL_WORD)
		return view_cell_text(c, row).len;
	if (view_is_text(c))
		return view_cell_text(c, row).data;
	if (c->type != TBL_OBJECT)
		return view_cell_number(c, row);
	for (of = c->columns; of->bytes; of++)
		if (view_is_there(of, (const char *)row + c->at))
			return true;
	return false;
}

bool view_has_value(const struct tbl_column *c, const void *row)
{
	return (!c->has || *((const bool *)row + c->has)) && !(view_is_double(c) && isnan(view_cell_double(c, row)));
}

static bool is_set(const void *table, uint16_t at)
{
	return !at || *((const bool *)table + at);
}

bool view_has_column(const struct view *s, const struct tbl_column *c, const void *table)
{
	return (c->key || c->type == TBL_PART) && is_set(table, c->when) && view_is_asked(s, c);
}

const struct tbl_column *view_members(const struct view *s, const struct tbl_column *c, struct view_made *made)
{
	if (!c->generate)
		return c->columns;
	made->columns[s ? c->generate(s->in->session, made->columns) : 0] = (struct tbl_column){0};
	return made->columns;
}

const char *view_csv_head(const struct view_sheet *sh, const struct tbl_column *c)
{
	const char *head = c->csv ? c->csv : c->key;

	return sh->csv && head && *head && !view_has_own_row(c) ? head : NULL;
}

bool view_has_own_row(const struct tbl_column *c)
{
	return c->csv && *c->csv && (c->columns || c->generate || c->flags & TBL_OWN_ROW);
}

/* ---- for people */

static void number_text(const struct view *s, const struct tbl_column *c, uint64_t n, char cell[TBL_CELL_BYTES])
{
	const bool below = c->flags & TBL_SIGNED && (int64_t)n < 0;
	char text[TBL_CELL_BYTES];

	if ((c->flags & TBL_DASH && !n) || (c->flags & TBL_NULL && n == TBL_UNKNOWN)) {
		strcpy(cell, "-");
		return;
	}
	switch (c->type) {
	case TBL_NS:
		c->flags &TBL_TIGHT ? fmt_tight_ns(n, cell) : fmt_ns(n, cell);
		break;
	case TBL_BYTES:
	case TBL_RATE:
		fmt_bytes(below ? -n : n, text);
		snprintf(cell, TBL_CELL_BYTES, "%s%.40s%s", below ? "-" : "", text, c->type == TBL_RATE ? "/s" : "");
		break;
	case TBL_MOMENT:
		snprintf(cell, TBL_CELL_BYTES, c->flags & TBL_TIGHT ? "%.*f" : "%.*f s", c->digits,
			 (double)(int64_t)(n - s->in->session->start_mono_ns) / 1e9);
		break;
	case TBL_DEVICE:
		mdl_device_name(s->in->session, (uint32_t)n, cell);
		break;
	default:
		snprintf(cell, TBL_CELL_BYTES, c->flags & TBL_SIGNED ? "%" PRId64 : "%" PRIu64, n);
	}
}

/* From 99.95 % on, a decimal place would make the text too wide. */
static void double_text(const struct tbl_column *c, const void *row, char cell[TBL_CELL_BYTES])
{
	const double v = view_cell_double(c, row);

	if (c->type == TBL_SHARE)
		snprintf(cell, TBL_CELL_BYTES, "%.*f%%", 100 * v < 99.95 ? c->digits : 0, 100 * v);
	else
		snprintf(cell, TBL_CELL_BYTES, isnan(v) ? "-" : "%.*f", c->digits, v);
}

static bool is_unknown(const struct tbl_column *c, const void *row)
{
	if (c->type == TBL_RATIO)
		return isnan(view_cell_double(c, row));
	return c->flags & TBL_NULL && view_cell_number(c, row) == TBL_UNKNOWN;
}

struct view_text view_people_text(const struct view *s, const struct tbl_column *c, const void *row,
				  char cell[TBL_CELL_BYTES])
{
	if (view_is_text(c))
		return view_cell_text(c, row);
	if (!view_has_value(c, row))
		return view_word("-");
	if (c->cell && !is_unknown(c, row))
		c->cell((const char *)row + c->at, cell);
	else if (view_is_double(c))
		double_text(c, row, cell);
	else
		number_text(s, c, view_cell_number(c, row), cell);
	return view_word(cell);
}

static int add_cell(const struct view *s, struct view_grid *g, const struct tbl_column *c, const void *row)
{
	char cell[TBL_CELL_BYTES];
	const struct view_text text = view_people_text(s, c, row, cell);

	return view_grid_add(g, text.data, text.len);
}

/* Members inherit the conditions of their part or object. */
static void inherit(struct tbl_column *member, const struct tbl_column *of, uint16_t at)
{
	if (of->shown)
		member->shown = of->shown;
	if (of->has && !member->has)
		member->has = (uint16_t)(of->has + at);
}

void view_flatten(const struct view *s, struct view_flat *flat, const struct tbl_column *columns, uint16_t at)
{
	const struct tbl_column *c;
	struct view_made made;
	struct tbl_column *to;
	unsigned first;

	for (c = columns; c && c->bytes && flat->n < VIEW_COLUMNS_MAX; c++) {
		if (!view_is_asked(s, c))
			continue;
		if (c->type == TBL_PART || (c->type == TBL_OBJECT && !c->csv)) {
			first = flat->n;
			view_flatten(s, flat, view_members(s, c, &made), (uint16_t)(at + c->at));
			for (; first < flat->n; first++)
				inherit(&flat->columns[first], c, at);
		} else if (!c->columns && !c->generate) {
			to = &flat->columns[flat->n++];
			*to = *c;
			to->at = (uint16_t)(c->at + at);
			to->has = (uint16_t)(c->has ? c->has + at : 0);
		}
	}
}

void view_row_columns(const struct view_sheet *sh, struct view_flat *flat)
{
	const struct tbl_column *c;

	flat->n = 0;
	for (c = sh->columns; c->bytes; c++)
		if (c->type != TBL_OBJECT)
			view_flatten(NULL, flat, (const struct tbl_column[2]){*c}, 0);
}

bool view_is_below(const struct tbl_column *c)
{
	return c->flags & TBL_BELOW || c->type == TBL_NOTE || c->type == TBL_LINES || c->type == TBL_RAW;
}

void view_people_columns(const struct view *s, struct view_flat *flat, const struct tbl_column *columns,
			 const void *table)
{
	struct tbl_column one;
	unsigned n = 0, i, k;

	view_flatten(s, flat, columns, 0);
	for (i = 0; i < flat->n; i++) {
		one = flat->columns[i];
		if (!one.head || !is_set(table, one.when) || !is_set(table, one.shown))
			continue;
		for (k = n++; k && flat->columns[k - 1].place > one.place; k--)
			flat->columns[k] = flat->columns[k - 1];
		flat->columns[k] = one;
	}
	flat->columns[n] = (struct tbl_column){0};
	flat->n = n;
}

static int add_row(const struct view *s, struct view_grid *g, const struct tbl_column *columns, const void *row)
{
	const struct tbl_column *c;
	struct view_text note;
	int err = row ? 0 : -ENOMEM;

	for (c = columns; !err && c->bytes; c++)
		if (!view_is_below(c))
			err = add_cell(s, g, c, row);
	for (c = columns; !err && c->bytes; c++) {
		note = view_is_below(c) ? view_cell_text(c, row) : (struct view_text){0};
		err = note.len ? view_grid_note(g, note.data, note.len) : 0;
	}
	return err;
}

static void open_grid(struct view_grid *g, const struct tbl_column *columns)
{
	const struct tbl_column *c;

	for (c = columns; c->bytes && g->ncols < VIEW_GRID_COLS_MAX; c++)
		if (!view_is_below(c))
			g->cols[g->ncols++] = (struct view_grid_col){
				.head = c->head,
				.left = view_is_text(c) || c->type == TBL_DEVICE,
				.name_min = c->name_min,
			};
}

int view_sheet_print(struct view *s, const struct view_sheet *sh, const void *table, const char *prefix)
{
	const unsigned width = (s->opts->width ? s->opts->width : VIEW_WIDTH) - (unsigned)strlen(prefix);
	const struct view_list *list = table;
	const size_t max = !sh->people_max  ? list->n
			   : s->opts->top   ? s->opts->top
			   : s->opts->brief ? VIEW_BRIEF_WORST
					    : sh->people_max;
	const size_t n = list->n < max ? list->n : max;
	struct view_grid g = {.prefix = prefix};
	struct view_flat flat = {0};
	int err = 0;
	size_t i;

	view_people_columns(s, &flat, sh->columns, table);
	s->hinted = !s->opts->brief || list->n >= list->all;
	if (sh->above)
		sh->above(s, table, prefix);
	g.begins = flat.columns[0].flags & TBL_BEGINS;
	open_grid(&g, flat.columns);
	for (i = 0; !err && i < n; i++)
		err = add_row(s, &g, flat.columns, view_row(s, sh, table, i));
	if (!err && n)
		view_grid_print(&g, width, s->out);
	view_grid_fini(&g);
	if (sh->below)
		sh->below(s, table, prefix);
	if (!s->hinted) /* neither of them has said how many rows are left out */
		out_printf(s->out, "%s%zu more row%s%s\n", prefix, list->all - list->n,
			   list->all - list->n == 1 ? "" : "s", view_hint(s));
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}

const char *view_hint(struct view *s)
{
	s->hinted = true;
	return s->opts->brief && !s->opts->top ? " (--top 0 shows all)" : "";
}

void view_put_rows(struct view *s, const struct view_list *t)
{
	out_printf(s->out, "%zu row%s", t->all, t->all == 1 ? "" : "s");
	if (t->n < t->all)
		out_printf(s->out, ", of which %zu are shown%s", t->n, view_hint(s));
}

void view_put_shown(struct view *s, const struct view_list *t, const char *row)
{
	if (t->n < t->all)
		out_printf(s->out, "%zu %ss, of which %zu are shown%s\n", t->all, row, t->n, view_hint(s));
	else if (t->n)
		out_printf(s->out, "%zu %s%s\n", t->n, row, t->n == 1 ? "" : "s");
	else
		out_puts(s->out, "nothing seen\n");
}
