// SPDX-License-Identifier: Apache-2.0
/* Sheets: the values of their cells, and the tables for people. */
#include "sink/sheet.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "sink/priv.h"

#define CELL_BYTES 64

uint64_t snk_cell_number(const struct snk_column *c, const void *row)
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

struct snk_text snk_cell_text(const struct snk_column *c, const void *row)
{
	uint64_t i;

	if (c->type != SNK_WORD)
		return *(const struct snk_text *)((const char *)row + c->at);
	i = snk_cell_number(c, row);
	if (i >= c->nwords || !c->words[i])
		return (struct snk_text){0};
	return (struct snk_text){c->words[i], strlen(c->words[i])};
}

bool snk_is_text(const struct snk_column *c)
{
	return c->type == SNK_TEXT || c->type == SNK_KEY || c->type == SNK_NOTE || c->type == SNK_WORD;
}

bool snk_is_there(const struct snk_column *c, const void *row)
{
	const struct snk_column *of;

	if (c->type == SNK_WORD)
		return snk_cell_text(c, row).len;
	if (snk_is_text(c))
		return snk_cell_text(c, row).data;
	if (c->type != SNK_OBJECT)
		return snk_cell_number(c, row);
	for (of = c->columns; of->bytes; of++)
		if (snk_is_there(of, (const char *)row + c->at))
			return true;
	return false;
}

static bool is_set(const void *table, uint16_t at)
{
	return !at || *((const bool *)table + at);
}

bool snk_has_column(const struct snk_column *c, const void *table)
{
	return c->key && is_set(table, c->when);
}

const char *snk_csv_head(const struct snk_sheet *sh, const struct snk_column *c)
{
	const char *head = c->csv ? c->csv : c->key;

	return sh->csv && head && *head && !snk_has_own_row(c) ? head : NULL;
}

bool snk_has_own_row(const struct snk_column *c)
{
	return c->csv && *c->csv && (c->columns || c->flags & SNK_OWN_ROW);
}

/* ---- for people */

static void number_text(const struct snk *s, const struct snk_column *c, uint64_t n, char cell[CELL_BYTES])
{
	const bool below = c->flags & SNK_SIGNED && (int64_t)n < 0;
	char text[CELL_BYTES];

	if ((c->flags & SNK_DASH && !n) || (c->flags & SNK_NULL && n == SNK_UNKNOWN)) {
		strcpy(cell, "-");
		return;
	}
	switch (c->type) {
	case SNK_NS:
		c->flags &SNK_TIGHT ? fmt_tight_ns(n, cell) : fmt_ns(n, cell);
		break;
	case SNK_BYTES:
	case SNK_RATE:
		fmt_bytes(below ? -n : n, text);
		snprintf(cell, CELL_BYTES, "%s%.40s%s", below ? "-" : "", text, c->type == SNK_RATE ? "/s" : "");
		break;
	case SNK_MOMENT:
		snprintf(cell, CELL_BYTES, c->flags & SNK_TIGHT ? "%.*f" : "%.*f s", c->digits,
			 (double)(int64_t)(n - s->in->session->start_mono_ns) / 1e9);
		break;
	case SNK_DEVICE:
		mdl_device_name(s->in->session, (uint32_t)n, cell);
		break;
	default:
		snprintf(cell, CELL_BYTES, "%" PRIu64, n);
	}
}

/* From 99.95 % on, a digit behind the point is one too many. */
static void double_text(const struct snk_column *c, const void *row, char cell[CELL_BYTES])
{
	double v;

	memcpy(&v, (const char *)row + c->at, sizeof(v));
	if (c->type == SNK_SHARE)
		snprintf(cell, CELL_BYTES, "%.*f%%", 100 * v < 99.95 ? c->digits : 0, 100 * v);
	else
		snprintf(cell, CELL_BYTES, isnan(v) ? "-" : "%.*f", c->digits, v);
}

static int add_cell(const struct snk *s, struct snk_grid *g, const struct snk_column *c, const void *row)
{
	struct snk_text text;
	char cell[CELL_BYTES];

	switch (c->type) {
	case SNK_TEXT:
	case SNK_KEY:
	case SNK_WORD:
		text = snk_cell_text(c, row);
		return snk_grid_add(g, text.data, text.len);
	case SNK_SHARE:
	case SNK_RATIO:
		double_text(c, row, cell);
		break;
	default:
		number_text(s, c, snk_cell_number(c, row), cell);
	}
	return snk_grid_add(g, cell, strlen(cell));
}

void snk_flatten(struct snk_flat *flat, const struct snk_column *columns, uint16_t at)
{
	const struct snk_column *c;

	for (c = columns; c->bytes && flat->n < SNK_COLUMNS_MAX; c++)
		if (c->type == SNK_OBJECT && !c->csv) {
			snk_flatten(flat, c->columns, (uint16_t)(at + c->at));
		} else if (!c->columns) {
			flat->columns[flat->n] = *c;
			flat->columns[flat->n++].at += at;
		}
}

/* Whether people see it, of this table. */
static bool is_seen(const struct snk_column *c, const void *table)
{
	return c->head && is_set(table, c->when) && is_set(table, c->shown);
}

static int add_row(const struct snk *s, struct snk_grid *g, const struct snk_column *columns, const void *table,
		   const void *row)
{
	const struct snk_column *c;
	struct snk_text note;
	int err = 0;

	for (c = columns; !err && c->bytes; c++)
		if (is_seen(c, table) && c->type != SNK_NOTE)
			err = add_cell(s, g, c, row);
	for (c = columns; !err && c->bytes; c++) {
		note = c->head && c->type == SNK_NOTE ? snk_cell_text(c, row) : (struct snk_text){0};
		err = note.len ? snk_grid_note(g, note.data, note.len) : 0;
	}
	return err;
}

static void open_grid(struct snk_grid *g, const struct snk_column *columns, const void *table)
{
	const struct snk_column *c;

	for (c = columns; c->bytes; c++)
		if (is_seen(c, table) && c->type != SNK_NOTE)
			g->cols[g->ncols++] = (struct snk_grid_col){
				.head = c->head,
				.left = snk_is_text(c) || c->type == SNK_DEVICE,
				.name_min = c->name_min,
			};
}

int snk_sheet_print(struct snk *s, const struct snk_sheet *sh, const void *table, const char *prefix)
{
	const unsigned width = (s->opts->width ? s->opts->width : SNK_WIDTH) - (unsigned)strlen(prefix);
	const struct snk_list *list = table;
	const size_t n = sh->people_max && !s->opts->top && list->n > sh->people_max ? sh->people_max : list->n;
	struct snk_grid g = {.prefix = prefix};
	struct snk_flat flat = {0};
	int err = 0;
	size_t i;

	snk_flatten(&flat, sh->columns, 0);
	sh->above(s, table, prefix);
	open_grid(&g, flat.columns, table);
	for (i = 0; !err && i < n; i++)
		err = add_row(s, &g, flat.columns, table, snk_row(sh, table, i));
	if (!err && n)
		snk_grid_print(&g, width, s->out);
	snk_grid_fini(&g);
	if (sh->below)
		sh->below(s, table, prefix);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}

void snk_put_rows(struct snk *s, const struct snk_list *t)
{
	out_printf(s->out, "%zu row%s%s", t->all, t->all == 1 ? "" : "s",
		   t->n < t->all ? ", not all of them shown" : "");
}

void snk_put_shown(struct snk *s, const struct snk_list *t, const char *row)
{
	if (t->n < t->all)
		out_printf(s->out, "%zu %ss, of which %zu are shown\n", t->all, row, t->n);
	else if (t->n)
		out_printf(s->out, "%zu %s%s\n", t->n, row, t->n == 1 ? "" : "s");
	else
		out_puts(s->out, "nothing seen\n");
}
