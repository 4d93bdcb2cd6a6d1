// SPDX-License-Identifier: Apache-2.0
/*
 * A comparison in Markdown, for the summary of a CI job and for comments of a review: a heading with the verdict, the
 * sentences, the table with certain changes first, and what differs besides times.
 *
 * Names come from the job, so they are data: none may begin a link, a tag or another cell, or mention a person.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "compare/show.h"
#include "compare/tables.h"

/*
 * A name as code. Most names need no escapes, so that they can be read where nothing renders them, such as in the log
 * of a job.
 */
static void put_code(struct out *out, const char *name)
{
	if (!strpbrk(name, "`|\\")) {
		out_printf(out, "`%s`", name);
		return;
	}
	out_puts(out, "<code>");
	for (; *name; name++)
		out_printf(out, strchr("`|\\<>&*_[]~@#:.$", *name) ? "&#%d;" : "%c", *name);
	out_puts(out, "</code>");
}

/* Renderers make links of these words, even in the middle of a text. */
static bool begins_link(const char *text, size_t len)
{
	return *text == '@' || (len > 2 && (!memcmp(text, "://", 3) || !memcmp(text, "ww.", 3)));
}

/* A text with names in it. A comment parts what would be a link. */
static void put_escaped(struct out *out, const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (text[i] && strchr("\\`*_[]<>|~&#!$", text[i]))
			out_puts(out, "\\");
		out_write(out, text + i, 1);
		if (begins_link(text + i, len - i))
			out_puts(out, "<!-- -->");
	}
}

/* Long command lines are cut short. */
static void put_safe(struct out *out, const char *text)
{
	char safe[CMP_NAME_BYTES];
	const bool longer = fmt_safe(safe, sizeof(safe), text, strlen(text)) >= sizeof(safe);

	put_escaped(out, safe, strlen(safe));
	out_puts(out, longer ? "..." : "");
}

/* ---- what a reader sees first */

static bool any_certain(const struct cmp_result *r)
{
	size_t i;

	for (i = 0; i < buf_count(&r->rows, struct cmp_row); i++)
		if (cmp_certain(buf_at(&r->rows, struct cmp_row, i)))
			return true;
	return cmp_certain(&r->peak);
}

static void put_heading(struct out *out, const struct cmp_result *r)
{
	const struct cmp_row *it = cmp_iteration(r);
	char percent[24];

	if (it && cmp_certain(it))
		out_printf(out, "### mxbpf: %s (%s, certain)\n\n", it->own > 0 ? "slower" : "faster",
			   cmp_percent(it->own, percent));
	else
		out_printf(out, "### mxbpf: %s\n\n", any_certain(r) ? "certain changes" : "no certain change");
}

static void put_sentences(struct out *out, const struct cmp_result *r)
{
	struct buf b = {0};
	unsigned i;

	for (i = 0; i < CMP_SENTENCES; i++) {
		cmp_sentence(r, i, &b);
		if (!b.len)
			continue;
		put_escaped(out, b.data, b.len);
		out_puts(out, ".\n");
	}
	if (b.lacks)
		out_fail(out, -ENOMEM);
	buf_fini(&b);
}

/* ---- the table */

static void put_row(void *ctx, const struct cmp_row *row)
{
	const char *bold = cmp_certain(row) ? "**" : "";
	struct out *out = ctx;
	struct cmp_cells c;

	cmp_cells(row, &c);
	out_puts(out, "| ");
	put_code(out, c.name);
	out_printf(out, " | %s | %s | %s%s%s | %s | %s | %s |\n", c.value[CMP_A], c.value[CMP_B], bold, c.percent, bold,
		   c.noise, strcmp(c.mark, "~") ? c.mark : "not certain", c.calls);
}

static void put_table(struct out *out, const struct cmp_result *r, unsigned top)
{
	size_t left;

	out_printf(out, "\n| %s | A | B | change | noise | certain | calls |\n|:--|--:|--:|--:|--:|:--|--:|\n",
		   r->iterations ? "per iteration" : "per slice of time");
	left = cmp_each_row(r, top, put_row, out);
	if (left)
		out_printf(out, "\n%zu more rows (`--top 0` shows all).\n", left);
}

/* ---- the rest */

static void put_differences(struct out *out, const struct cmp_result *r)
{
	const struct cmp_difference *d;
	size_t i;

	for (i = 0; i < buf_count(&r->differences, *d); i++) {
		d = buf_at(&r->differences, struct cmp_difference, i);
		out_printf(out, "%s* %s: ", i ? "" : "\nWhat else differs:\n\n", d->what);
		put_safe(out, d->text[CMP_A]);
		out_puts(out, " -> ");
		put_safe(out, d->text[CMP_B]);
		out_puts(out, "\n");
	}
}

static void put_losses(struct out *out, const struct cmp_sides *of)
{
	uint64_t lost, all;
	unsigned side, i;

	for (side = 0; side < CMP_SIDES; side++) {
		for (i = 0, lost = all = 0; i < of->n[side]; i++) {
			lost += of->run[side][i].s->loss.dropped;
			all += of->run[side][i].s->loss.attempted;
		}
		out_printf(out, side ? ", of B %.3g%%.\n" : "Lost events: of A %.3g%%",
			   all ? 100 * (double)lost / (double)all : 0);
	}
}

int cmp_put_markdown(struct out *out, const struct cmp_result *r, const struct cmp_sides *of, unsigned top,
		     struct err *e)
{
	out_puts(out, CMP_MARKDOWN_MAGIC "\n");
	if (r->tables && r->tables->one) {
		/* Each line begins with a word of mxbpf, so no name ends the block. */
		out_puts(out, "```text\n");
		cmp_put_tables(out, r->tables, top);
		out_puts(out, "```\n");
		return 0;
	}
	put_heading(out, r);
	put_sentences(out, r);
	put_table(out, r, top);
	put_differences(out, r);
	out_printf(out,
		   "\nA change is certain if noise makes one that large in less than %g%% of the cases, in all rows "
		   "together. %s\n",
		   100 * CMP_LEVEL, cmp_about_times(r));
	put_losses(out, of);
	cmp_put_notes(out, r, of);
	return 0;
}
