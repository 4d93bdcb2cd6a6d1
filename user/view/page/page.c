// SPDX-License-Identifier: Apache-2.0
/* The page: what people read, as HTML. The tables are those of the sheets. */
#include "view/page/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/findings/findings.h"
#include "feature/neighbours/neighbours.h"
#include "view/calls.h"

#define ROWS_MAX 1000 /* rows of a table that are written; the others are counted */

struct page {
	struct view s;
	bool begun; /* the tables have begun */
	struct page_strip strip;
	struct page_memory memory;
};

void page_raw(struct view *s, const char *markup)
{
	page_markup(s->out, markup);
}

static void put_utf8(struct view *s, const char *text, size_t len)
{
	page_text_of(s->out, text, len);
}

void page_words(struct view *s, struct view_text text)
{
	put_utf8(s, text.data, text.len);
}

static void put_words(struct view *s, const char *text)
{
	put_utf8(s, text, text ? strlen(text) : 0);
}

/* ---- the head */

static void make_title(const struct view *s, struct buf *title)
{
	const struct mdl_session *ss = s->in->session;
	const struct mdl_target t = mdl_target_of(ss);

	buf_printf(title, "%s (%" PRIu32 ")", t.comm ? t.comm : "", t.pid);
	if (ss->hostname && *ss->hostname)
		buf_printf(title, " on %s", ss->hostname);
}

static int page_record(struct view *s, const struct mxbpf_rec *r)
{
	struct page *p = (struct page *)s;

	page_strip_take(&p->strip, r);
	if (r->kind == MXBPF_ALLOC)
		page_memory_take(&p->memory, &p->strip, (const struct mxbpf_alloc *)r);
	return 0;
}

static void page_fini(struct view *s)
{
	page_strip_fini(&((struct page *)s)->strip);
	page_memory_fini(&((struct page *)s)->memory);
}

static int page_page_begin(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	struct buf title = {0};
	int err;

	make_title(s, &title);
	err = s->opts->continued ? 0 : page_begin(s->out, title.data, title.len, s->err);
	page_raw(s, "<main>\n<header><h1>");
	put_utf8(s, title.data, title.len);
	buf_fini(&title);
	page_raw(s, "</h1><p class=\"command\"><code>");
	put_words(s, mdl_target_of(ss).cmdline);
	page_raw(s, "</code></p></header>\n");
	page_data_begin(s->out, "data");
	page_data(s);
	page_data_end(s->out);
	page_strip_begin(&((struct page *)s)->strip, ss);
	return err;
}

/* ---- tables */

static bool is_number(const struct tbl_column *c)
{
	return !view_is_text(c) && c->type != TBL_DEVICE && c->type != TBL_BOOL;
}

/* The script sorts by the value, because people see it rounded. */
static void page_put_value(struct view *s, const struct tbl_column *c, const void *row)
{
	const uint64_t n = view_is_double(c) ? 0 : view_cell_number(c, row);

	if (view_is_double(c))
		out_printf(s->out, "%.9g", view_cell_double(c, row));
	else if (c->flags & TBL_SIGNED)
		out_printf(s->out, "%" PRId64, (int64_t)n);
	else if (!(c->flags & TBL_NULL && n == TBL_UNKNOWN))
		out_printf(s->out, "%" PRIu64, n);
}

static void page_put_cell(struct view *s, const struct tbl_column *c, const void *row, bool first)
{
	char cell[TBL_CELL_BYTES];
	const struct view_text text = view_people_text(s, c, row, cell);

	if (is_number(c)) {
		page_raw(s, "<td class=\"n\" data-v=\"");
		page_put_value(s, c, row);
		page_raw(s, "\">");
	} else {
		page_raw(s, first ? "<th scope=\"row\">" : "<td>");
	}
	put_utf8(s, text.data, text.len);
	page_raw(s, first && !is_number(c) ? "</th>" : "</td>");
}

static void page_put_notes(struct view *s, const struct view_flat *flat, const void *row)
{
	const struct tbl_column *c;
	struct view_text note;

	for (c = flat->columns; c->bytes; c++) {
		note = view_is_below(c) ? view_cell_text(c, row) : (struct view_text){0};
		if (!note.len)
			continue;
		page_raw(s, "<pre class=\"note\">");
		put_utf8(s, note.data, note.len);
		page_raw(s, "</pre>");
	}
}

static void page_put_row(struct view *s, const struct view_flat *flat, const void *row)
{
	const struct tbl_column *c;
	bool notes = false;

	page_raw(s, "<tr>");
	for (c = flat->columns; c->bytes; c++) {
		if (view_is_below(c))
			notes |= view_cell_text(c, row).len;
		else
			page_put_cell(s, c, row, c == flat->columns);
	}
	if (notes) {
		page_raw(s, "<td>");
		page_put_notes(s, flat, row);
		page_raw(s, "</td>");
	}
	page_raw(s, "</tr>\n");
}

static void put_headings(struct view *s, const struct view_flat *flat)
{
	const struct tbl_column *c;

	page_raw(s, "<thead><tr>");
	for (c = flat->columns; c->bytes; c++) {
		if (view_is_below(c))
			continue;
		page_raw(s, is_number(c) ? "<th scope=\"col\" class=\"n\"" : "<th scope=\"col\"");
		if (c->help) {
			page_raw(s, " title=\"");
			put_words(s, c->help);
			page_raw(s, "\"");
		}
		page_raw(s, ">");
		put_words(s, c->head);
		page_raw(s, "</th>");
	}
	page_raw(s, "</tr></thead>\n");
}

/*
 * Writes explanations of the columns. The script shows them above the headings. Without it, or by keyboard, they
 * unfold.
 */
static void put_explanations(struct view *s, const struct view_flat *flat)
{
	const struct tbl_column *c;
	bool any = false;

	for (c = flat->columns; c->bytes; c++) {
		if (!c->help || view_is_below(c))
			continue;
		page_raw(s, any ? "" : "<details class=\"columns\"><summary>columns</summary><dl>");
		any = true;
		page_raw(s, "<dt>");
		put_words(s, c->head);
		page_raw(s, "</dt><dd>");
		put_words(s, c->help);
		page_raw(s, "</dd>");
	}
	page_raw(s, any ? "</dl></details>\n" : "");
}

/* Text that people read above or below a table. */
static void put_block(struct view *s, void (*put)(struct view *s, const void *table, const char *prefix),
		      const void *table)
{
	if (!put)
		return;
	page_raw(s, "<pre class=\"said\">");
	put(s, table, "");
	page_raw(s, "</pre>\n");
}

static void page_put_rows(struct view *s, const struct view_sheet *sh, const void *table)
{
	const struct view_list *list = table;
	const size_t n = list->n < ROWS_MAX ? list->n : ROWS_MAX;
	struct view_flat flat = {0};
	const void *row;
	size_t i;

	view_people_columns(s, &flat, sh->columns, table);
	if (!n || !flat.n)
		return;
	page_raw(s, "<div class=\"scroll\" tabindex=\"0\"><table>\n");
	put_headings(s, &flat);
	page_raw(s, "<tbody>\n");
	for (i = 0; i < n; i++) {
		row = view_row(s, sh, table, i);
		if (row)
			page_put_row(s, &flat, row);
	}
	page_raw(s, "</tbody></table></div>\n");
	put_explanations(s, &flat);
	if (list->all > n)
		out_printf(s->out, "%zu more rows are in the result as JSON.\n", list->all - n);
}

static const char *title_of(const struct view_sheet *sh, const void *table)
{
	const struct view_list *list = table;

	return list->title ? list->title : sh->title ? sh->title : sh->member;
}

static const struct tbl_column *column_of(const struct view_sheet *sh, const char *key)
{
	const struct tbl_column *c = sh->columns;

	while (!c->key || strcmp(c->key, key))
		c++;
	return c;
}

struct view_text page_text(const struct view_sheet *sh, const void *row, const char *key)
{
	return view_cell_text(column_of(sh, key), row);
}

uint64_t page_number(const struct view_sheet *sh, const void *row, const char *key)
{
	return view_cell_number(column_of(sh, key), row);
}

/* The terminal shows the advice only with --advice; here it unfolds. */
static void put_advice(struct view *s, const struct view_sheet *sh, const void *table)
{
	const struct view_list *list = table;
	size_t i;

	for (i = 0; i < list->n; i++) {
		page_raw(s, "<details class=\"advice\"><summary>");
		page_words(s, page_text(sh, view_row(s, sh, table, i), "text"));
		page_raw(s, ": what to do</summary><p>");
		page_words(s, page_text(sh, view_row(s, sh, table, i), "advice"));
		page_raw(s, "</p></details>\n");
	}
}

/* Findings come first, then iterations and GPUs over time, then the tables. */
static int begin_tables(struct page *p)
{
	if (p->begun)
		return 0;
	p->begun = true;
	page_raw(&p->s, "<section class=\"plots\" hidden><h2>Over time</h2></section>\n");
	return page_idle(&p->s) ? err_set(p->s.err, ERR_RUNTIME, -ENOMEM, "out of memory") : 0;
}

/* Writes the parts between the tables and the end of the page. */
static int page_put_parts(struct page *p)
{
	struct view *s = &p->s;

	page_raw(s, "<section class=\"flames\" hidden><h2>Where the time goes</h2></section>\n");
	page_data_begin(s->out, "memory");
	page_memory_put(&p->memory, s, &p->strip);
	page_data_end(s->out);
	page_raw(s, "<section class=\"held\"");
	page_raw(s, s->in->session->held ? "" : " hidden");
	page_raw(s, "><h2>Memory over time</h2><div class=\"curves\"></div>\n");
	if (s->in->session->held && page_memory_holders(s))
		return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	page_raw(s, "</section>\n");
	page_data_begin(s->out, "strip");
	page_strip_put(&p->strip, s);
	page_data_end(s->out);
	page_raw(s, "<section class=\"strips\" hidden><h2>Threads and streams</h2></section>\n");
	return 0;
}

static int sheet(struct view *s, const struct view_sheet *sh, const void *table)
{
	const struct view_list *list = table;
	struct page *p = (struct page *)s;

	if ((!sh->above && !sh->print) || (!list->n && !sh->print && !list->empty_too))
		return 0;
	if (!sh->first && begin_tables(p))
		return p->s.err->code;
	page_raw(s, "<section class=\"sheet\"><h2>");
	put_words(s, title_of(sh, table));
	page_raw(s, "</h2>\n");
	if (sh->help && !sh->of_class) {
		page_raw(s, "<p class=\"help\">");
		put_words(s, sh->help);
		page_raw(s, "</p>\n");
	}
	if (sh->print) {
		page_raw(s, "<pre class=\"said\">");
		sh->print(s, table);
		page_raw(s, "</pre>\n");
	} else {
		put_block(s, sh->above, table);
		page_put_rows(s, sh, table);
		put_block(s, sh->below, table);
	}
	if (sh == &sheet_findings)
		put_advice(s, sh, table);
	page_raw(s, "</section>\n");
	return 0;
}

static int page_page_end(struct view *s)
{
	int err;

	err = begin_tables((struct page *)s);
	err = err ? err : page_put_parts((struct page *)s);
	err = err ? err : view_write_sheet(s, &sheet_machine);
	err = err ? err : view_write_sheet(s, &sheet_neighbours);
	page_raw(s, "<section class=\"about\"><h2>Window, cost and loss</h2><pre class=\"said\">");
	view_footer(s, "");
	page_raw(s, "</pre></section>\n</main>\n");
	page_end(s->out);
	return err;
}

static const char *const magic[] = {"<meta name=\"generator\" content=\"mxbpf\">", NULL};

const struct view_ops view_page = {
	.name = "html",
	.help = "one page with findings, plots and all tables, for a browser",
	.magic = magic,
	.details = true,
	.state_bytes = sizeof(struct page),
	.people = true,
	.reads_records = true,
	.begin = page_page_begin,
	.record = page_record,
	.table = view_calls_table,
	.sheet = sheet,
	.end = page_page_end,
	.fini = page_fini,
};
