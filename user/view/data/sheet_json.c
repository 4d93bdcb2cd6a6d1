// SPDX-License-Identifier: Apache-2.0
/* Sheets as members of the JSON document. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "view/data/json.h"

static const char *put_members(struct view *s, const struct view_column *columns, const void *table, const void *row,
			       const char *comma);

static const void *place(const struct view_column *c, const void *row)
{
	return (const char *)row + c->at;
}

static bool has_member(const struct view *s, const struct view_column *c, const void *row)
{
	if (!view_has_value(c, row) && !(c->flags & VIEW_KEEP))
		return false;
	if (c->type == VIEW_PID)
		return ((const struct json *)s)->several;
	if (c->flags & VIEW_OMIT && c->flags & VIEW_NULL && !view_is_text(c))
		return view_cell_number(c, row) != VIEW_UNKNOWN;
	return !(c->flags & VIEW_OMIT) || view_is_there(c, row);
}

static void put_lines(struct view *s, struct view_text text)
{
	const bool deep = ((struct json *)s)->deep;
	const char *before = deep ? "\n      " : "";
	struct view_text line;

	out_puts(s->out, "[");
	for (; view_next_line(&text.data, &text.len, &line.data, &line.len); before = deep ? ",\n      " : ", ") {
		out_puts(s->out, before);
		view_put_json(s->out, line.data, line.len);
	}
	out_puts(s->out, "]");
}

static void put_text(struct view *s, const struct view_column *c, const void *row)
{
	const struct view_text text = view_cell_text(c, row);

	if (c->flags & VIEW_NULL && !text.data)
		out_puts(s->out, "null");
	else if (c->type == VIEW_LINES)
		put_lines(s, text);
	else if (c->type == VIEW_RAW || (c->type == VIEW_KEY && ((const struct view_key *)place(c, row))->number))
		out_write(s->out, text.data, text.len);
	else
		view_put_json(s->out, text.data, text.len);
}

static void put_number(struct view *s, const struct view_column *c, uint64_t n)
{
	if (c->type == VIEW_MOMENT)
		n = json_unix_ns(s, n);
	if (c->type == VIEW_BOOL)
		out_puts(s->out, n ? "true" : "false");
	else if (c->flags & VIEW_SIGNED)
		out_printf(s->out, "%" PRId64, (int64_t)n);
	else
		out_printf(s->out, "%" PRIu64, n);
}

void json_put_object(struct view *s, const struct view_column *columns, const void *table, const void *row)
{
	out_puts(s->out, "{");
	put_members(s, columns, table, row, "");
	out_puts(s->out, "}");
}

static void put_list(struct view *s, const struct view_column *c, const void *table, const struct view_list *list)
{
	size_t i;

	out_puts(s->out, "[");
	for (i = 0; i < list->n; i++) {
		out_puts(s->out, i ? ", " : "");
		json_put_object(s, c->columns, table, (const char *)list->rows + i * c->item_bytes);
	}
	out_puts(s->out, "]");
}

static void put_value(struct view *s, const struct view_column *c, const void *table, const void *row)
{
	struct view_made made;
	uint64_t n;

	if (view_is_text(c))
		return put_text(s, c, row);
	if (c->type == VIEW_OBJECT)
		return json_put_object(s, view_members(s, c, &made), table, place(c, row));
	if (c->type == VIEW_LIST)
		return put_list(s, c, table, place(c, row));
	if (view_is_double(c)) {
		out_printf(s->out, c->flags & VIEW_SIGNIFICANT ? "%.*g" : "%.*f", c->data_digits,
			   view_cell_double(c, row));
		return;
	}
	n = view_cell_number(c, row);
	if (c->type == VIEW_DEVICE)
		json_put_device(s, (uint32_t)n);
	else if (c->flags & VIEW_NULL && n == VIEW_UNKNOWN)
		out_puts(s->out, "null");
	else
		put_number(s, c, n);
}

/* Writes `comma` before the first member. Returns what stands before the next one. */
static const char *put_members(struct view *s, const struct view_column *columns, const void *table, const void *row,
			       const char *comma)
{
	const struct view_column *c;

	for (c = columns; c && c->bytes; c++) {
		if (!view_has_column(s, c, table) || !has_member(s, c, row))
			continue;
		if (c->type == VIEW_PART) {
			comma = put_members(s, c->columns, table, place(c, row), comma);
			continue;
		}
		out_puts(s->out, comma);
		out_puts(s->out, "\"");
		out_puts(s->out, c->key);
		out_puts(s->out, "\": ");
		put_value(s, c, table, row);
		comma = ", ";
	}
	return comma;
}

/* Writes all that stands before the first row. */
static void open_list(struct view *s, const struct view_sheet *sh, const void *table)
{
	struct json *j = (struct json *)s;
	const bool goes_on = j->member && !strcmp(j->member, sh->member);
	const char *comma = ", ";

	if (!goes_on) {
		json_close_tables(s);
		out_printf(s->out, ",\n  \"%s\": %s%s", sh->member, sh->list ? "{" : "[", j->deep ? "\n    " : "");
		comma = sh->list ? put_members(s, sh->totals, table, table, "") : "";
	}
	if (sh->list)
		out_printf(s->out, "%s\"%s\": [", *comma && j->deep ? ",\n    " : comma, sh->list);
	j->member = sh->list ? sh->member : NULL;
}

int view_sheet_json(struct view *s, const struct view_sheet *sh, const void *table)
{
	const struct view_list *list = table;
	const void *row;
	size_t i;

	if (!sh->def && !sh->member)
		return 0;
	((struct json *)s)->deep = sh->at_end;
	if (sh->def)
		json_open_table(s, list->title);
	else
		open_list(s, sh, table);
	for (i = 0; i < list->n; i++) {
		row = view_row(s, sh, table, i);
		if (!row)
			return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
		out_printf(s->out, "%s\n    %s", i ? "," : "", sh->def || sh->at_end ? "  " : "");
		json_put_object(s, sh->columns, table, row);
	}
	out_puts(s->out, sh->at_end ? "]\n  }" : "]");
	if (sh->at_end)
		((struct json *)s)->member = NULL;
	return 0;
}
