// SPDX-License-Identifier: Apache-2.0
/* Sheets as members of the JSON document. */
#include <errno.h>
#include <string.h>

#include "view/data/json.h"

static void put_members(struct document *d, const struct tbl_column *columns, const void *table, const void *row);

static const void *sheet_json_place(const struct tbl_column *c, const void *row)
{
	return (const char *)row + c->at;
}

static bool has_member(const struct document *d, const struct tbl_column *c, const void *row)
{
	if (!view_has_value(c, row) && !(c->flags & TBL_KEEP))
		return false;
	if (c->type == TBL_PID)
		return d->several;
	if (c->flags & TBL_OMIT && c->flags & TBL_NULL && !view_is_text(c))
		return view_cell_number(c, row) != TBL_UNKNOWN;
	return !(c->flags & TBL_OMIT) || view_is_there(c, row);
}

static void put_lines(struct document *d, const char *key, struct view_text text)
{
	struct view_text line;

	json_array(&d->json, key);
	while (view_next_line(&text.data, &text.len, &line.data, &line.len)) {
		if (d->deep)
			json_line(&d->json, 6);
		json_text(&d->json, NULL, line.data, line.len);
	}
	json_end(&d->json);
}

static void sheet_json_put_text(struct document *d, const struct tbl_column *c, const void *row)
{
	const struct view_text text = view_cell_text(c, row);

	if (c->flags & TBL_NULL && !text.data)
		json_null(&d->json, c->key);
	else if (c->type == TBL_LINES)
		put_lines(d, c->key, text);
	else if (c->type == TBL_RAW ||
		 (c->type == TBL_KEY && ((const struct view_key *)sheet_json_place(c, row))->number))
		json_raw(&d->json, c->key, text.data, text.len);
	else
		json_text(&d->json, c->key, text.data, text.len);
}

/* No device is null here, and "-" in tables. */
static void sheet_json_put_device(struct document *d, const char *key, uint32_t device)
{
	char name[48];

	mdl_device_name(d->s.in->session, device, name);
	if (MXBPF_DEVICE_TYPE(device))
		json_string(&d->json, key, name);
	else
		json_null(&d->json, key);
}

static uint64_t unix_ns(const struct document *d, uint64_t mono_ns)
{
	const struct mdl_session *ss = d->s.in->session;

	return ss->start_unix_ns + (mono_ns - ss->start_mono_ns);
}

static void sheet_json_put_number(struct document *d, const struct tbl_column *c, uint64_t n)
{
	if (c->type == TBL_DEVICE)
		return sheet_json_put_device(d, c->key, (uint32_t)n);
	if (c->flags & TBL_NULL && n == TBL_UNKNOWN)
		return json_null(&d->json, c->key);
	if (c->type == TBL_MOMENT)
		n = unix_ns(d, n);
	if (c->type == TBL_BOOL)
		json_bool(&d->json, c->key, n);
	else if (c->flags & TBL_SIGNED)
		json_i64(&d->json, c->key, (int64_t)n);
	else
		json_u64(&d->json, c->key, n);
}

static void put_object(struct document *d, const char *key, const struct tbl_column *columns, const void *table,
		       const void *row)
{
	json_object(&d->json, key);
	put_members(d, columns, table, row);
	json_end(&d->json);
}

static void put_list(struct document *d, const struct tbl_column *c, const void *table, const struct view_list *list)
{
	size_t i;

	json_array(&d->json, c->key);
	for (i = 0; i < list->n; i++)
		put_object(d, NULL, c->columns, table, (const char *)list->rows + i * c->item_bytes);
	json_end(&d->json);
}

static void put_member(struct document *d, const struct tbl_column *c, const void *table, const void *row)
{
	struct view_made made;

	if (c->type == TBL_PART)
		put_members(d, c->columns, table, sheet_json_place(c, row));
	else if (view_is_text(c))
		sheet_json_put_text(d, c, row);
	else if (c->type == TBL_OBJECT)
		put_object(d, c->key, view_members(&d->s, c, &made), table, sheet_json_place(c, row));
	else if (c->type == TBL_LIST)
		put_list(d, c, table, sheet_json_place(c, row));
	else if (view_is_double(c))
		json_printf(&d->json, c->key, c->flags & TBL_SIGNIFICANT ? "%.*g" : "%.*f", c->data_digits,
			    view_cell_double(c, row));
	else
		sheet_json_put_number(d, c, view_cell_number(c, row));
}

static void put_members(struct document *d, const struct tbl_column *columns, const void *table, const void *row)
{
	const struct tbl_column *c;

	for (c = columns; c && c->bytes; c++)
		if (view_has_column(&d->s, c, table) && has_member(d, c, row))
			put_member(d, c, table, row);
}

/* Opens the list of a sheet among the tables. */
static void open_table(struct document *d, const char *title)
{
	json_line(&d->json, 4);
	json_key(&d->json, title, strlen(title));
	json_array(&d->json, NULL);
}

/* Opens the list of a sheet that follows the tables. Lists with the same member share an object. */
static void open_list(struct document *d, const struct view_sheet *sh, const void *table)
{
	struct json *j = &d->json;
	const bool goes_on = d->member && !strcmp(d->member, sh->member);

	if (!goes_on) {
		document_close_tables(d);
		json_line(j, 2);
	}
	if (!sh->list)
		return json_array(j, sh->member);
	if (!goes_on) {
		json_object(j, sh->member);
		if (d->deep)
			json_line(j, 4);
		put_members(d, sh->totals, table, table);
	}
	if (d->deep)
		json_line(j, 4);
	json_array(j, sh->list);
	d->member = sh->member;
}

int view_sheet_json(struct view *s, const struct view_sheet *sh, const void *table)
{
	struct document *d = (struct document *)s;
	const struct view_list *list = table;
	const void *row;
	size_t i;

	if (!sh->def && !sh->member)
		return 0;
	d->deep = sh->at_end;
	if (sh->def)
		open_table(d, list->title);
	else
		open_list(d, sh, table);
	for (i = 0; i < list->n; i++) {
		row = view_row(s, sh, table, i);
		if (!row)
			return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
		json_line(&d->json, sh->def || sh->at_end ? 6 : 4);
		put_object(d, NULL, sh->columns, table, row);
	}
	json_end(&d->json);
	if (sh->at_end) {
		json_line(&d->json, 2);
		json_end(&d->json);
		d->member = NULL;
	}
	return 0;
}
