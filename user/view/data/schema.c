// SPDX-License-Identifier: Apache-2.0
/* The published schema of the JSON document: share/report.schema.in.json with the sheets filled in. */
#include <string.h>

#include "view/priv.h"
#include "view/sheet.h"

/* These lines of the file are replaced by members and by $defs. */
#define MEMBERS "    \"@sheets\": true,\n"
#define DEFS	"    \"@defs\": true,\n"

extern const char view_schema_rest[];
__asm__(".section .rodata\n"
	".globl view_schema_rest\n"
	"view_schema_rest:\n"
	".incbin \"share/report.schema.in.json\"\n"
	".byte 0\n"
	".previous\n");

static void put_string(struct out *o, const char *key, const char *text)
{
	if (!text)
		return;
	out_printf(o, ", \"%s\": ", key);
	view_put_json(o, text, strlen(text));
}

static void put_words(struct out *o, const struct view_column *c)
{
	const char *comma = "";
	unsigned i;

	out_puts(o, "\"enum\": [");
	for (i = 0; i < c->nwords; i++) {
		if (!c->words[i] || !*c->words[i])
			continue;
		out_printf(o, "%s\"%s\"", comma, c->words[i]);
		comma = ", ";
	}
	out_puts(o, "]");
}

static void put_object(struct out *o, const struct view_column *columns);

static void put_type(struct out *o, const struct view_column *c)
{
	const bool null = c->flags & VIEW_NULL && !(c->flags & VIEW_OMIT);

	if (c->def) {
		out_printf(o, "\"$ref\": \"#/$defs/%s\"", c->def);
		return;
	}
	switch (c->type) {
	case VIEW_TEXT:
	case VIEW_NOTE:
		out_puts(o, null ? "\"type\": [\"string\", \"null\"]" : "\"type\": \"string\"");
		break;
	case VIEW_KEY:
		out_puts(o, "\"type\": [\"integer\", \"string\"]");
		break;
	case VIEW_WORD:
		put_words(o, c);
		break;
	case VIEW_OBJECT:
		put_object(o, c->columns);
		break;
	case VIEW_LINES:
		out_puts(o, "\"type\": \"array\", \"items\": { \"type\": \"string\" }");
		break;
	case VIEW_LIST:
		out_puts(o, "\"type\": \"array\", \"items\": { ");
		put_object(o, c->columns);
		out_puts(o, " }");
		break;
	case VIEW_BOOL:
		out_puts(o, c->flags & VIEW_OMIT ? "\"const\": true" : "\"type\": \"boolean\"");
		break;
	case VIEW_DEVICE:
		out_puts(o, "\"$ref\": \"#/$defs/device\"");
		break;
	case VIEW_SHARE:
	case VIEW_RATIO:
		out_puts(o, "\"type\": \"number\"");
		break;
	default:
		out_puts(o, null		     ? "\"type\": [\"integer\", \"null\"], \"minimum\": 0"
			    : c->flags & VIEW_SIGNED ? "\"type\": \"integer\""
						     : "\"$ref\": \"#/$defs/count\"");
	}
}

static bool is_required(const struct view_column *c)
{
	return c->key && c->type != VIEW_PID && !(c->flags & VIEW_OMIT) && !c->when && !c->has && !c->asked;
}

static const char *put_required(struct out *o, const struct view_column *columns, const char *comma)
{
	const struct view_column *c;

	for (c = columns; c->bytes; c++) {
		if (c->type == VIEW_PART) {
			comma = put_required(o, c->columns, comma);
		} else if (is_required(c)) {
			out_printf(o, "%s\"%s\"", comma, c->key);
			comma = ", ";
		}
	}
	return comma;
}

static const char *put_properties(struct out *o, const struct view_column *columns, const char *comma)
{
	const struct view_column *c;

	for (c = columns; c->bytes; c++) {
		if (c->type == VIEW_PART) {
			comma = put_properties(o, c->columns, comma);
		} else if (c->key) {
			out_printf(o, "%s\n        \"%s\": { ", comma, c->key);
			put_type(o, c);
			put_string(o, "description", c->help);
			out_puts(o, " }");
			comma = ",";
		}
	}
	return comma;
}

/* The schema of an object with these columns, without its braces. */
static void put_object(struct out *o, const struct view_column *columns)
{
	out_puts(o, "\"type\": \"object\", \"additionalProperties\": false,\n      \"required\": [");
	put_required(o, columns, "");
	out_puts(o, "],\n      \"properties\": {");
	put_properties(o, columns, "");
	out_puts(o, " }");
}

static void put_rows(struct out *o, const struct view_sheet *sh)
{
	out_puts(o, "\"type\": \"array\", \"items\": {\n      ");
	put_object(o, sh->columns);
	put_string(o, "description", sh->row_help);
	out_puts(o, " }");
}

/* Writes a property for each total and each list of the sheets that share the member of `first`, or with `names` only
 * the names. Returns the next sheet. */
static const struct view_sheet *const *put_lists(struct out *o, const struct view_sheet *const *first, bool names)
{
	const struct view_sheet *const *sh;
	const struct view_column *c;
	const char *comma = "";

	for (sh = first; *sh && (!(*sh)->member || !strcmp((*sh)->member, (*first)->member)); sh++) {
		if (!(*sh)->member)
			continue;
		for (c = (*sh)->totals; c && c->bytes; c++) {
			out_printf(o, names ? "%s\"%s\"" : "%s\n        \"%s\": { ", comma, c->key);
			comma = ", ";
			if (names)
				continue;
			put_type(o, c);
			put_string(o, "description", c->help);
			out_puts(o, " }");
		}
		out_printf(o, names ? "%s\"%s\"" : "%s\n        \"%s\": { ", comma, (*sh)->list);
		comma = ", ";
		if (names)
			continue;
		put_rows(o, *sh);
		put_string(o, "description", (*sh)->list_help);
		out_puts(o, " }");
	}
	return sh;
}

/* Writes a property of the document, which one or more sheets make. Returns the next sheet. */
static const struct view_sheet *const *put_member(struct out *o, const struct view_sheet *const *sh)
{
	out_printf(o, "    \"%s\": {\n      \"description\": ", (*sh)->member);
	view_put_json(o, (*sh)->help, strlen((*sh)->help));
	out_puts(o, ",\n      ");
	if (!(*sh)->list) {
		put_rows(o, *sh++);
	} else {
		out_puts(o, "\"type\": \"object\", \"additionalProperties\": false,\n      \"required\": [");
		put_lists(o, sh, true);
		out_puts(o, "],\n      \"properties\": {");
		sh = put_lists(o, sh, false);
		out_puts(o, " }");
	}
	out_puts(o, "\n    },\n");
	return sh;
}

static void put_def(struct out *o, const char *name, const struct view_column *columns, const char *help)
{
	out_printf(o, "    \"%s\": {\n      ", name);
	put_object(o, columns);
	put_string(o, "description", help);
	out_puts(o, "\n    },\n");
}

void view_put_schema(struct out *o)
{
	const char *members = strstr(view_schema_rest, MEMBERS), *defs = strstr(view_schema_rest, DEFS);
	const struct view_sheet *const *sh;

	out_write(o, view_schema_rest, (size_t)(members - view_schema_rest));
	for (sh = view_sheets; *sh;)
		sh = (*sh)->member ? put_member(o, sh) : sh + 1;
	members += strlen(MEMBERS);
	out_write(o, members, (size_t)(defs - members));
	for (sh = view_sheets; *sh; sh++)
		if ((*sh)->def)
			put_def(o, (*sh)->def, (*sh)->columns, (*sh)->row_help);
	put_def(o, "account", view_account_columns, VIEW_ACCOUNT_HELP);
	out_puts(o, defs + strlen(DEFS));
}
