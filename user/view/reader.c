// SPDX-License-Identifier: Apache-2.0
/* For readers of tables that know no table: metrics, conditions, the live view and comparisons. */
#include <stdio.h>
#include <string.h>

#include "feature/cost/cost.h"
#include "view/sheet.h"

const char *view_sheet_name(const struct view_sheet *sh, char name[VIEW_SHEET_BYTES])
{
	if (!sh->member || sh->of_class || sh->by_range)
		return NULL;
	snprintf(name, VIEW_SHEET_BYTES, "%s%s%s", sh->member, sh->list ? "." : "", sh->list ? sh->list : "");
	return name;
}

const struct view_sheet *view_sheet_find(const char *name, size_t len)
{
	const struct view_sheet *const *sh;
	char own[VIEW_SHEET_BYTES];

	for (sh = view_sheets; *sh; sh++)
		if (view_sheet_name(*sh, own) && strlen(own) == len && !memcmp(own, name, len))
			return *sh;
	return NULL;
}

void view_sheet_list(bool (*fits)(const struct view_sheet *), char *to, size_t size)
{
	const struct view_sheet *const *sh, *before = NULL;
	char name[VIEW_SHEET_BYTES];
	size_t len = 0, from;

	for (sh = view_sheets; *sh && len < size; sh++) {
		if (!view_sheet_name(*sh, name) || !fits(*sh))
			continue;
		from = before && !strcmp(before->member, (*sh)->member) ? strlen(before->member) : 0;
		len += (size_t)snprintf(to + len, size - len, "%s%s", len ? ", " : "", name + from);
		before = *sh;
	}
}

uint32_t view_row_process(const struct view_sheet *sh, const void *row)
{
	const struct tbl_column *c;

	for (c = sh->columns; c->bytes; c++)
		if (c->type == TBL_PID || (c->key && !strcmp(c->key, "pid")))
			return (uint32_t)view_cell_number(c, row);
	return 0;
}

bool view_adds_up(const struct tbl_column *c)
{
	return (c->merge == TBL_SUM || c->metric) &&
	       (c->type == TBL_COUNT || c->type == TBL_NS || c->type == TBL_BYTES);
}

bool view_is_known(const struct view *s, const struct tbl_column *c, const void *row)
{
	return view_is_asked(s, c) && view_has_value(c, row) &&
	       !(c->metric && c->metric->of_calls && cost_lacks_iterations(s->in->model)) &&
	       (view_is_double(c) || c->flags & TBL_SIGNED || view_cell_number(c, row) != TBL_UNKNOWN);
}
