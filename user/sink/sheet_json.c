// SPDX-License-Identifier: Apache-2.0
/* Sheets as members of the one JSON document. */
#include <inttypes.h>
#include <string.h>

#include "sink/json.h"

static const char *put_members(struct snk *s, const struct snk_column *columns, const void *table, const void *row);

static const void *place(const struct snk_column *c, const void *row)
{
	return (const char *)row + c->at;
}

static bool has_member(const struct snk *s, const struct snk_column *c, const void *row)
{
	if (c->type == SNK_PID)
		return ((const struct json *)s)->several;
	if (c->flags & SNK_OMIT && c->flags & SNK_NULL && !snk_is_text(c))
		return snk_cell_number(c, row) != SNK_UNKNOWN;
	return !(c->flags & SNK_OMIT) || snk_is_there(c, row);
}

static void put_text(struct snk *s, const struct snk_column *c, const void *row)
{
	const struct snk_text text = snk_cell_text(c, row);

	if (c->flags & SNK_NULL && !text.data)
		out_puts(s->out, "null");
	else if (c->type == SNK_KEY && ((const struct snk_key *)place(c, row))->number)
		out_write(s->out, text.data, text.len);
	else
		snk_put_json(s->out, text.data, text.len);
}

static void put_number(struct snk *s, const struct snk_column *c, uint64_t n)
{
	if (c->type == SNK_MOMENT)
		n = json_unix_ns(s, n);
	if (c->type == SNK_BOOL)
		out_puts(s->out, n ? "true" : "false");
	else if (c->flags & SNK_SIGNED)
		out_printf(s->out, "%" PRId64, (int64_t)n);
	else
		out_printf(s->out, "%" PRIu64, n);
}

void json_put_object(struct snk *s, const struct snk_column *columns, const void *table, const void *row)
{
	out_puts(s->out, "{");
	put_members(s, columns, table, row);
	out_puts(s->out, "}");
}

static void put_list(struct snk *s, const struct snk_column *c, const void *table, const struct snk_list *list)
{
	size_t i;

	out_puts(s->out, "[");
	for (i = 0; i < list->n; i++) {
		out_puts(s->out, i ? ", " : "");
		json_put_object(s, c->columns, table, (const char *)list->rows + i * c->item_bytes);
	}
	out_puts(s->out, "]");
}

static void put_value(struct snk *s, const struct snk_column *c, const void *table, const void *row)
{
	uint64_t n;

	if (snk_is_text(c))
		return put_text(s, c, row);
	if (c->type == SNK_OBJECT)
		return json_put_object(s, c->columns, table, place(c, row));
	if (c->type == SNK_LIST)
		return put_list(s, c, table, place(c, row));
	n = snk_cell_number(c, row);
	if (c->type == SNK_DEVICE)
		json_put_device(s, (uint32_t)n);
	else if (c->flags & SNK_NULL && n == SNK_UNKNOWN)
		out_puts(s->out, "null");
	else
		put_number(s, c, n);
}

/* Each with what stands before it: "", or a comma. Returns what stands before the next. */
static const char *put_members(struct snk *s, const struct snk_column *columns, const void *table, const void *row)
{
	const struct snk_column *c;
	const char *comma = "";

	for (c = columns; c && c->bytes; c++) {
		if (!snk_has_column(c, table) || !has_member(s, c, row))
			continue;
		out_printf(s->out, "%s\"%s\": ", comma, c->key);
		put_value(s, c, table, row);
		comma = ", ";
	}
	return comma;
}

/* Up to the bracket of the list. */
static void open_list(struct snk *s, const struct snk_sheet *sh, const void *table)
{
	struct json *j = (struct json *)s;
	const bool goes_on = j->member && !strcmp(j->member, sh->member);
	const char *comma = ", ";

	if (!goes_on) {
		json_close_tables(s);
		out_printf(s->out, ",\n  \"%s\": %s", sh->member, sh->list ? "{" : "[");
		comma = sh->list ? put_members(s, sh->totals, table, table) : "";
	}
	if (sh->list)
		out_printf(s->out, "%s\"%s\": [", comma, sh->list);
	j->member = sh->list ? sh->member : NULL;
}

int snk_sheet_json(struct snk *s, const struct snk_sheet *sh, const void *table)
{
	const struct snk_list *list = table;
	size_t i;

	if (sh->def)
		json_open_table(s, list->title);
	else
		open_list(s, sh, table);
	for (i = 0; i < list->n; i++) {
		out_printf(s->out, "%s\n    %s", i ? "," : "", sh->def ? "  " : "");
		json_put_object(s, sh->columns, table, snk_row(sh, table, i));
	}
	out_puts(s->out, "]");
	return 0;
}
