// SPDX-License-Identifier: Apache-2.0
/* Text cells of CSV. */
#include "view/priv.h"

#include <stdio.h>
#include <string.h>

void view_csv_text(struct out *o, const char *text, size_t len)
{
	if (!len)
		return;
	out_puts(o, "\"");
	view_put_csv(o, text, len);
	out_puts(o, "\"");
}

/* Writes a comma and one cell of lines, joined by semicolons as in folded stacks. */
void view_csv_lines(struct out *o, const char *text, size_t len)
{
	const char *line, *mark = ",\"";
	size_t n;

	if (!len) {
		out_puts(o, ",");
		return;
	}
	for (; view_next_line(&text, &len, &line, &n); mark = ";") {
		out_puts(o, mark);
		view_put_csv(o, line, n);
	}
	out_puts(o, "\"");
}

/* Writes the name of the table. In a distributed job the role comes first: "worker operator". */
void view_csv_table(struct view *s, const char *table, uint32_t tgid)
{
	const struct mdl_process *p = tgid ? mdl_process_of(s->in->session, tgid) : NULL;
	const char *role = p ? p->role : s->in->session->shown_role;
	char text[128];

	bool whole = !role || !*role || !strcmp(table, "loss") || !strcmp(table, "window") || !strcmp(table, "machine");

	snprintf(text, sizeof(text), "%s%s%s", whole ? "" : role, whole ? "" : " ", table);
	view_csv_text(s->out, text, strlen(text));
}
