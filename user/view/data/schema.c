// SPDX-License-Identifier: Apache-2.0
/* The published schema of the JSON document: share/report.schema.in.json with the sheets filled in. */
#include <string.h>

#include "base/json.h"
#include "view/priv.h"
#include "view/sheet.h"

/* Members and $defs replace these lines of the file. */
#define MEMBERS "\n    \"@sheets\": true"
#define DEFS	"\n    \"@defs\": true"

extern const char view_schema_rest[];
__asm__(".section .rodata\n"
	".globl view_schema_rest\n"
	"view_schema_rest:\n"
	".incbin \"share/report.schema.in.json\"\n"
	".byte 0\n"
	".previous\n");

static void put_object(struct json *j, const struct tbl_column *columns);

static void put_type(struct json *j, const char *type)
{
	json_string(j, "type", type);
}

static void put_types(struct json *j, const char *first, const char *second)
{
	json_array(j, "type");
	json_string(j, NULL, first);
	json_string(j, NULL, second);
	json_end(j);
}

static void put_ref(struct json *j, const char *def)
{
	json_printf(j, "$ref", "\"#/$defs/%s\"", def);
}

static void put_help(struct json *j, const char *help)
{
	if (help)
		json_string(j, "description", help);
}

static void put_words(struct json *j, const struct tbl_column *c)
{
	unsigned i;

	json_array(j, "enum");
	for (i = 0; i < c->nwords; i++)
		if (c->words[i] && *c->words[i])
			json_string(j, NULL, c->words[i]);
	json_end(j);
}

/* Writes the type of an array. The items are texts if there are no columns. */
static void put_array(struct json *j, const struct tbl_column *columns, const char *item_help)
{
	put_type(j, "array");
	json_object(j, "items");
	if (columns)
		put_object(j, columns);
	else
		put_type(j, "string");
	put_help(j, item_help);
	json_end(j);
}

static void put_integer(struct json *j, const struct tbl_column *c)
{
	if (c->flags & TBL_NULL && !(c->flags & TBL_OMIT)) {
		put_types(j, "integer", "null");
		json_u64(j, "minimum", 0);
	} else if (c->flags & TBL_SIGNED) {
		put_type(j, "integer");
	} else {
		put_ref(j, "count");
	}
}

static void put_column(struct json *j, const struct tbl_column *c)
{
	if (c->def)
		return put_ref(j, c->def);
	switch (c->type) {
	case TBL_TEXT:
	case TBL_NOTE:
		return c->flags & TBL_NULL && !(c->flags & TBL_OMIT) ? put_types(j, "string", "null")
								     : put_type(j, "string");
	case TBL_KEY:
		return put_types(j, "integer", "string");
	case TBL_WORD:
		return put_words(j, c);
	case TBL_OBJECT:
		return put_object(j, c->columns);
	case TBL_LINES:
		return put_array(j, NULL, NULL);
	case TBL_LIST:
		return put_array(j, c->columns, NULL);
	case TBL_BOOL:
		return c->flags & TBL_OMIT ? json_bool(j, "const", true) : put_type(j, "boolean");
	case TBL_DEVICE:
		return put_ref(j, "device");
	case TBL_SHARE:
	case TBL_RATIO:
		return put_type(j, "number");
	default:
		put_integer(j, c);
	}
}

static bool is_required(const struct tbl_column *c)
{
	return c->key && c->type != TBL_PID && !(c->flags & TBL_OMIT) && !c->when && !c->has && !c->asked;
}

static void put_required(struct json *j, const struct tbl_column *columns)
{
	const struct tbl_column *c;

	for (c = columns; c->bytes; c++)
		if (c->type == TBL_PART)
			put_required(j, c->columns);
		else if (is_required(c))
			json_string(j, NULL, c->key);
}

static void put_properties(struct json *j, const struct tbl_column *columns)
{
	const struct tbl_column *c;

	for (c = columns; c && c->bytes; c++) {
		if (c->type == TBL_PART) {
			put_properties(j, c->columns);
		} else if (c->key) {
			json_line(j, 8);
			json_object(j, c->key);
			put_column(j, c);
			put_help(j, c->help);
			json_end(j);
		}
	}
}

/* Opens the list of required members. */
static void open_object(struct json *j)
{
	put_type(j, "object");
	json_bool(j, "additionalProperties", false);
	json_line(j, 6);
	json_array(j, "required");
}

/* Ends the list of required members. */
static void open_properties(struct json *j)
{
	json_end(j);
	json_line(j, 6);
	json_object(j, "properties");
}

/* Writes the schema of an object with these columns, without its braces. */
static void put_object(struct json *j, const struct tbl_column *columns)
{
	open_object(j);
	put_required(j, columns);
	open_properties(j);
	put_properties(j, columns);
	json_end(j);
}

/*
 * Writes a property of the document: an object with the totals and the lists of all sheets that share the member of
 * `first`. Returns the next sheet.
 */
static const struct view_sheet *const *put_lists(struct json *j, const struct view_sheet *const *first)
{
	const struct view_sheet *const *sh, *const *end;
	const struct tbl_column *c;

	for (end = first; *end && (!(*end)->member || ((*first)->member && !strcmp((*end)->member, (*first)->member)));
	     end++)
		;
	open_object(j);
	for (sh = first; sh < end; sh++) {
		for (c = (*sh)->totals; (*sh)->member && c && c->bytes; c++)
			json_string(j, NULL, c->key);
		if ((*sh)->member)
			json_string(j, NULL, (*sh)->list);
	}
	open_properties(j);
	for (sh = first; sh < end; sh++) {
		if (!(*sh)->member)
			continue;
		put_properties(j, (*sh)->totals);
		json_line(j, 8);
		json_object(j, (*sh)->list);
		put_array(j, (*sh)->columns, (*sh)->row_help);
		put_help(j, (*sh)->list_help);
		json_end(j);
	}
	json_end(j);
	return end;
}

/* Writes a property of the document, which one or more sheets make. Returns the next sheet. */
static const struct view_sheet *const *put_member(struct json *j, const struct view_sheet *const *sh)
{
	const struct view_sheet *const *next = sh + 1;

	json_line(j, 4);
	json_object(j, (*sh)->member);
	put_help(j, (*sh)->help);
	json_line(j, 6);
	if ((*sh)->list)
		next = put_lists(j, sh);
	else
		put_array(j, (*sh)->columns, (*sh)->row_help);
	json_line(j, 4);
	json_end(j);
	return next;
}

static void put_def(struct json *j, const char *name, const struct tbl_column *columns, const char *help)
{
	json_line(j, 4);
	json_object(j, name);
	put_object(j, columns);
	put_help(j, help);
	json_line(j, 4);
	json_end(j);
}

void view_put_schema(struct out *o)
{
	const char *members = strstr(view_schema_rest, MEMBERS), *defs = strstr(view_schema_rest, DEFS);
	struct json properties = {.out = o}, definitions = {.out = o};
	const struct view_sheet *const *sh;

	out_write(o, view_schema_rest, (size_t)(members - view_schema_rest));
	for (sh = view_sheets; *sh;)
		sh = (*sh)->member ? put_member(&properties, sh) : sh + 1;
	members += strlen(MEMBERS);
	out_write(o, members, (size_t)(defs - members));
	for (sh = view_sheets; *sh; sh++)
		if ((*sh)->def)
			put_def(&definitions, (*sh)->def, (*sh)->columns, (*sh)->row_help);
	put_def(&definitions, "account", view_account_columns, VIEW_ACCOUNT_HELP);
	out_puts(o, defs + strlen(DEFS));
}
