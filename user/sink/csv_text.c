// SPDX-License-Identifier: Apache-2.0
/* Texts of spreadsheets. */
#include "sink/priv.h"

#include <stdio.h>
#include <string.h>

void snk_csv_text(struct out *o, const char *text, size_t len)
{
	if (!len)
		return;
	out_puts(o, "\"");
	snk_put_csv(o, text, len);
	out_puts(o, "\"");
}

/* One cell more: lines with semicolons between, as of folded stacks. */
void snk_csv_lines(struct out *o, const char *text, size_t len)
{
	const char *line, *mark = ",\"";
	size_t n;

	if (!len) {
		out_puts(o, ",");
		return;
	}
	for (; snk_next_line(&text, &len, &line, &n); mark = ";") {
		out_puts(o, mark);
		snk_put_csv(o, line, n);
	}
	out_puts(o, "\"");
}

/* "worker operator": of a job, whose rows they are. */
void snk_csv_table(struct snk *s, const char *table, uint32_t tgid)
{
	const struct mdl_process *p = tgid ? mdl_process_of(s->in->session, tgid) : NULL;
	const char *role = p ? p->role : s->in->session->shown_role;
	char text[128];

	bool whole = !role || !*role || !strcmp(table, "loss") || !strcmp(table, "window") || !strcmp(table, "machine");

	snprintf(text, sizeof(text), "%s%s%s", whole ? "" : role, whole ? "" : " ", table);
	snk_csv_text(s->out, text, strlen(text));
}
