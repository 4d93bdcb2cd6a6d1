// SPDX-License-Identifier: Apache-2.0
/*
 * A comparison as a page: the sentences and what differs, the rows side by side, and data that the page's script draws:
 * both distributions of iterations, and a flame graph of the differences.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/json.h"
#include "compare/show.h"
#include "compare/stats.h"
#include "compare/tables.h"
#include "view/page/frame.h"

#define ROWS_MAX   1000
#define SHAPES_MAX 200
#define VALUES_MAX 2000 /* iterations of a side that are drawn; of more, evenly spaced ones in order of their times */
#define STACKS_MAX 3000 /* of a side, of each kind */

static const char *const letters[CMP_SIDES] = {[CMP_A] = "A", [CMP_B] = "B"};

static void html_put_text(struct out *out, const char *text)
{
	page_text_of(out, text, strlen(text));
}

static void begin_section(struct out *out, const char *title)
{
	page_markup(out, "<section class=\"sheet\"><h2>");
	html_put_text(out, title);
	page_markup(out, "</h2>\n");
}

/* A column of a table. n: the page's script sorts it by number. */
struct head {
	const char *text, *help;
	bool n;
};

static void begin_table(struct out *out, const struct head *heads, size_t n)
{
	size_t i;

	page_markup(out, "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>");
	for (i = 0; i < n; i++) {
		page_markup(out, heads[i].n ? "<th scope=\"col\" class=\"n\"" : "<th scope=\"col\"");
		if (heads[i].help) {
			page_markup(out, " title=\"");
			html_put_text(out, heads[i].help);
			page_markup(out, "\"");
		}
		page_markup(out, ">");
		html_put_text(out, heads[i].text);
		page_markup(out, "</th>");
	}
	page_markup(out, "</tr></thead><tbody>\n");
}
#define BEGIN_TABLE(out, heads) begin_table(out, heads, sizeof(heads) / sizeof((heads)[0]))

static void end_table(struct out *out)
{
	page_markup(out, "</tbody></table></div>\n");
}

static void html_put_cell(struct out *out, const char *text, size_t len)
{
	page_markup(out, "<td>");
	page_text_of(out, text, len);
	page_markup(out, "</td>");
}

static void put_name_cell(struct out *out, const char *text, size_t len)
{
	page_markup(out, "<th scope=\"row\">");
	page_text_of(out, text, len);
	page_markup(out, "</th>");
}

/* v: the value by which the page's script sorts; NAN: none. */
static void put_number_cell(struct out *out, double v, const char *text)
{
	page_markup(out, "<td class=\"n\" data-v=\"");
	if (isfinite(v))
		out_printf(out, "%.9g", v);
	page_markup(out, "\">");
	html_put_text(out, text);
	page_markup(out, "</td>");
}

/* ---- sentences and what differs */

static void put_sentences(struct out *out, const struct cmp_result *r)
{
	struct buf b = {0};
	unsigned i;

	begin_section(out, "What changed");
	for (i = 0; i < CMP_SENTENCES; i++) {
		cmp_sentence(r, i, &b);
		if (!b.len)
			continue;
		page_markup(out, "<p class=\"sentence\">");
		page_text_of(out, b.data, b.len);
		page_markup(out, ".</p>\n");
	}
	if (r->rows.len && !r->common && r->events)
		page_markup(out, "<p class=\"sentence\">No operator is on both sides.</p>\n");
	page_markup(out, "</section>\n");
	if (b.lacks)
		out_fail(out, -ENOMEM);
	buf_fini(&b);
}

static void put_differences(struct out *out, const struct cmp_result *r)
{
	static const struct head heads[] = {{"what", NULL, false}, {"A", NULL, false}, {"B", NULL, false}};
	const struct cmp_difference *d;
	unsigned side;
	size_t i;

	if (!r->differences.len)
		return;
	begin_section(out, "What else differs");
	BEGIN_TABLE(out, heads);
	for (i = 0; i < buf_count(&r->differences, *d); i++) {
		d = buf_at(&r->differences, struct cmp_difference, i);
		page_markup(out, "<tr>");
		put_name_cell(out, d->what, strlen(d->what));
		for (side = 0; side < CMP_SIDES; side++)
			html_put_cell(out, d->text[side], strlen(d->text[side]));
		page_markup(out, "</tr>\n");
	}
	end_table(out);
	page_markup(out, "</section>\n");
}

/* ---- rows */

static void put_value_cell(struct out *out, const struct cmp_row *row, double v)
{
	char text[24];

	if (v <= 0)
		put_number_cell(out, v, "-");
	else
		put_number_cell(out, v,
				row->kind == CMP_MEMORY ? fmt_bytes((uint64_t)v, text) : fmt_ns((uint64_t)v, text));
}

static bool is_judged(const struct cmp_row *row)
{
	return row->verdict == CMP_NOISE || row->verdict == CMP_CHANGED;
}

static void put_change_cells(struct out *out, const struct cmp_row *row)
{
	const double change = is_judged(row) ? row->own : row->change;
	char text[24];

	if (row->value[CMP_A] > 0 && row->value[CMP_B] > 0)
		put_number_cell(out, change, cmp_percent(change, text));
	else
		put_number_cell(out, NAN, "-");
	snprintf(text, sizeof(text), row->noise < 10 ? "%.1f%%" : ">1000%%", 100 * row->noise);
	put_number_cell(out, is_judged(row) ? row->noise : NAN, is_judged(row) ? text : "-");
	page_markup(out, "<td class=\"verdict\">");
	html_put_text(out, row->verdict == CMP_NOISE   ? "~"
			   : row->verdict == CMP_SMALL ? ""
						       : cmp_verdict_words[row->verdict]);
	page_markup(out, "</td>");
}

static void html_put_row(struct out *out, const struct cmp_row *row)
{
	const bool more = row->verdict == CMP_CHANGED ? row->own > 0 : row->verdict == CMP_NEW;
	const bool calls = row->kind == CMP_OPERATOR || row->kind == CMP_KERNEL || row->kind == CMP_LAYER;
	char name[CMP_NAME_BYTES], text[24];
	unsigned side;

	page_markup(out, !cmp_certain(row) ? "<tr>" : more ? "<tr class=\"more\">" : "<tr class=\"less\">");
	cmp_name(row, name);
	put_name_cell(out, name, strlen(name));
	for (side = 0; side < CMP_SIDES; side++)
		put_value_cell(out, row, row->value[side]);
	put_change_cells(out, row);
	for (side = 0; side < CMP_SIDES; side++)
		put_value_cell(out, row, row->p90[side]);
	for (side = 0; side < CMP_SIDES; side++) {
		snprintf(text, sizeof(text), "%.3g", row->calls[side]);
		put_number_cell(out, calls ? row->calls[side] : NAN, calls ? text : "");
	}
	page_markup(out, "</tr>\n");
}

static void html_put_rows(struct out *out, const struct cmp_result *r, unsigned top)
{
	static const struct head heads[] = {
		{"row", "an operator without calls in it, a part of an iteration, a kernel, or memory", false},
		{"A", "what an iteration takes: the mean between the 10th and the 60th percentile", true},
		{"B", "what an iteration takes: the mean between the 10th and the 60th percentile", true},
		{"change", "of B against A; of an operator without what all operators have in common", true},
		{"noise", "a change up to this is not certain", true},
		{"certain", "changed, new (only B has it), gone (only A has it), ~: not certain; nothing: not judged",
		 false},
		{"A p90", "90th percentile of the iterations", true},
		{"B p90", "90th percentile of the iterations", true},
		{"A calls", "of an iteration", true},
		{"B calls", "of an iteration", true},
	};
	const size_t most = top && top < ROWS_MAX ? top : ROWS_MAX;
	const struct cmp_row *row;
	size_t i, shown = 0, left = 0;

	begin_section(out, r->iterations ? "Per iteration, side by side" : "Per slice of time, side by side");
	page_markup(
		out,
		"<p class=\"help\">~: not certain. A certain change is larger than the noise in all rows together. ");
	page_markup(out, cmp_about_times(r));
	page_markup(out, "</p>\n");
	BEGIN_TABLE(out, heads);
	for (i = 0; i < buf_count(&r->rows, *row); i++) {
		row = buf_at(&r->rows, struct cmp_row, i);
		if (row->kind == CMP_LAYER && !cmp_certain(row))
			continue;
		if (shown++ < most)
			html_put_row(out, row);
		else
			left++;
	}
	if (r->peak.value[CMP_A] > 0 || r->peak.value[CMP_B] > 0)
		html_put_row(out, &r->peak);
	end_table(out);
	if (left)
		out_printf(out, "%zu more rows are in the result as JSON.\n", left);
	cmp_put_common(out, r);
	page_markup(out, "</section>\n");
}

/* ---- findings and shapes of one side */

static void put_findings(struct out *out, const struct cmp_result *r)
{
	static const struct head heads[] = {{"only in", NULL, false}, {"finding", NULL, false}, {"seen", NULL, false}};
	const struct cmp_finding *f;
	size_t i;

	if (!r->findings.len)
		return;
	begin_section(out, "Findings that came and went");
	BEGIN_TABLE(out, heads);
	for (i = 0; i < buf_count(&r->findings, *f); i++) {
		f = buf_at(&r->findings, struct cmp_finding, i);
		page_markup(out, "<tr>");
		put_name_cell(out, f->of == CMP_B ? "B: new" : "A: gone", f->of == CMP_B ? 6 : 7);
		html_put_cell(out, f->finding->text.data, f->finding->text.len);
		html_put_cell(out, f->finding->evidence.data, f->finding->evidence.len);
		page_markup(out, "</tr>\n");
	}
	end_table(out);
	page_markup(out, "</section>\n");
}

static void put_shapes(struct out *out, const struct cmp_result *r)
{
	static const struct head heads[] = {
		{"only in", NULL, false}, {"operator", NULL, false}, {"shapes", NULL, false}};
	const size_t n = buf_count(&r->shapes, struct cmp_new_shape);
	const struct cmp_new_shape *s;
	size_t i;

	if (!n)
		return;
	begin_section(out, "Shapes that came and went");
	BEGIN_TABLE(out, heads);
	for (i = 0; i < n && i < SHAPES_MAX; i++) {
		s = buf_at(&r->shapes, struct cmp_new_shape, i);
		page_markup(out, "<tr>");
		put_name_cell(out, letters[s->of], 1);
		html_put_cell(out, s->shape->name, s->shape->name_len);
		html_put_cell(out, s->shape->args, s->shape->args_len);
		page_markup(out, "</tr>\n");
	}
	end_table(out);
	if (n > SHAPES_MAX)
		out_printf(out, "%zu more shapes are in the result as JSON.\n", n - SHAPES_MAX);
	page_markup(out, "</section>\n");
}

/* ---- recordings: what they are, what watching cost, and what they lost */

static void put_recording(struct out *out, enum cmp_which side, const struct cmp_run *run)
{
	const double lost = (double)run->s->loss.dropped, of = (double)run->s->loss.attempted;
	char text[64];

	page_markup(out, "<tr>");
	put_name_cell(out, letters[side], 1);
	html_put_cell(out, run->path, strlen(run->path));
	put_number_cell(out, (double)run->s->duration_ns, fmt_ns(run->s->duration_ns, text));
	fmt_count(run->x.count, text);
	put_number_cell(out, run->x.iterations ? (double)run->x.count : NAN, run->x.iterations ? text : "-");
	snprintf(text, sizeof(text), "%.1f%%", 100 * run->found.facts.watching);
	put_number_cell(out, run->found.facts.watching, run->s->cost.scale ? text : "not known");
	snprintf(text, sizeof(text), "%.0f of %.0f", lost, of);
	put_number_cell(out, lost, text);
	html_put_cell(out, run->s->incomplete ? "cut off" : "complete", run->s->incomplete ? 7 : 8);
	page_markup(out, "</tr>\n");
}

static void put_recordings(struct out *out, const struct cmp_result *r, const struct cmp_sides *of)
{
	static const struct head heads[] = {{"side", NULL, false},
					    {"recording", NULL, false},
					    {"window", NULL, true},
					    {"iterations", NULL, true},
					    {"overhead", "of profiling, which is taken out of all times", true},
					    {"lost events", NULL, true},
					    {"end", NULL, false}};
	unsigned side, i;

	begin_section(out, "Recordings, cost and loss");
	BEGIN_TABLE(out, heads);
	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < of->n[side]; i++)
			put_recording(out, (enum cmp_which)side, &of->run[side][i]);
	end_table(out);
	if (!r->events)
		page_markup(out, "<p>A recording has no single calls, so there are no rows of operators.</p>\n");
	if (r->left_out)
		page_markup(out, "<p>Some rows are left out: there are too many.</p>\n");
	page_markup(out, "</section>\n");
}

/* ---- data */

static int by_value(const void *va, const void *vb)
{
	const float *a = va, *b = vb;

	return *a < *b ? -1 : *a > *b;
}

static const struct cmp_series *iterations_of(const struct cmp_samples *x)
{
	const struct cmp_series *s;
	size_t i;

	for (i = 0; i < buf_count(&x->series, *s); i++) {
		s = buf_at(&x->series, struct cmp_series, i);
		if (s->kind == CMP_ITERATION)
			return s;
	}
	return NULL;
}

static void put_iterations(struct json *j, const struct cmp_sides *of, unsigned side)
{
	const struct cmp_series *s;
	struct buf all = {0};
	size_t i, n;

	for (i = 0; i < of->n[side]; i++) {
		s = iterations_of(&of->run[side][i].x);
		if (s && buf_put(&all, s->value, of->run[side][i].x.n * sizeof(*s->value)))
			break;
	}
	n = buf_count(&all, float);
	if (n)
		qsort(all.data, n, sizeof(float), by_value);
	json_array(j, "iterations");
	for (i = 0; i < n && i < VALUES_MAX; i++)
		json_printf(j, NULL, "%.0f", (double)*buf_at(&all, float, n > VALUES_MAX ? i * n / VALUES_MAX : i));
	json_end(j);
	buf_fini(&all);
}

static void put_side(struct json *j, const struct cmp_result *r, const struct cmp_sides *of, unsigned side)
{
	const struct cmp_run *run;
	unsigned i;

	json_line(j, 0);
	json_object(j, NULL);
	json_string(j, "side", letters[side]);
	if (r->iterations)
		put_iterations(j, of, side);
	json_array(j, "runs");
	for (i = 0; i < of->n[side]; i++) {
		run = &of->run[side][i];
		json_object(j, NULL);
		json_printf(j, "units", "%.9g",
			    r->iterations ? (double)run->x.count : (double)run->s->duration_ns / 1e9);
		page_stacks(j, run->m, STACKS_MAX / of->n[side]);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void put_data(struct out *out, const struct cmp_result *r, const struct cmp_sides *of)
{
	struct json j = {.out = out, .tight = true};
	unsigned side;

	page_data_begin(out, "diff");
	json_object(&j, NULL);
	json_string(&j, "unit", r->iterations ? "iteration" : "second");
	json_array(&j, "sides");
	for (side = 0; side < CMP_SIDES; side++)
		put_side(&j, r, of, side);
	json_end(&j);
	json_end(&j);
	page_data_end(out);
}

/* ---- the page */

static void make_title(const struct cmp_sides *of, struct buf *b)
{
	unsigned side, i;

	for (side = 0; side < CMP_SIDES; side++) {
		buf_printf(b, side ? ", %s: " : "%s: ", letters[side]);
		for (i = 0; i < of->n[side]; i++)
			buf_printf(b, "%s%s", i ? " " : "", of->run[side][i].path);
	}
}

int cmp_put_html(struct out *out, const struct cmp_result *r, const struct cmp_sides *of, unsigned top, struct err *e)
{
	struct buf title = {0};
	int err;

	make_title(of, &title);
	err = page_begin(out, title.data, title.len, e);
	page_markup(out, "<main>\n<header><h1>");
	page_text_of(out, title.data, title.len);
	page_markup(out, "</h1></header>\n");
	buf_fini(&title);
	put_data(out, r, of);
	put_sentences(out, r);
	put_differences(out, r);
	html_put_rows(out, r, top);
	page_markup(out, "<section class=\"spread\" hidden><h2>How long iterations took</h2></section>\n");
	put_findings(out, r);
	put_shapes(out, r);
	if (r->tables && (r->tables->one || r->tables->nmost)) {
		begin_section(out, "Other tables");
		page_markup(out, "<pre class=\"said\">");
		cmp_put_tables(out, r->tables, top);
		page_markup(out, "</pre></section>\n");
	}
	page_markup(out, "<section class=\"flames\" hidden><h2>Where the difference is</h2></section>\n");
	put_recordings(out, r, of);
	page_markup(out, "</main>\n");
	page_end(out);
	return err;
}
