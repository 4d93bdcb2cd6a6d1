// SPDX-License-Identifier: Apache-2.0
/* A comparison for people: what differs first, then at most three sentences, then a table. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "compare/show.h"
#include "compare/stats.h"
#include "compare/tables.h"

#define NAME_COLUMNS 36
#define SHAPES_SHOWN 6

const char *cmp_percent(double share, char buf[24])
{
	const double percent = 100 * share;

	snprintf(buf, 24, fabs(percent) < 10 ? "%+.1f%%" : "%+.0f%%", fabs(percent) < 0.05 ? 0. : percent);
	return buf;
}

const char *cmp_name(const struct cmp_row *row, char buf[CMP_NAME_BYTES])
{
	size_t len = fmt_safe(buf, CMP_NAME_BYTES, row->name, row->name_len);

	len = len < CMP_NAME_BYTES ? len : CMP_NAME_BYTES - 1;
	if (row->kind == CMP_MEMORY)
		snprintf(buf, CMP_NAME_BYTES, "%s",
			 row->calls[CMP_A] || row->calls[CMP_B] ? "memory.iteration" : "memory.peak");
	if (row->detail && len + 8 < CMP_NAME_BYTES) {
		len += (size_t)snprintf(buf + len, CMP_NAME_BYTES - len, row->kind == CMP_KERNEL ? " grid " : " in ");
		fmt_safe(buf + len, CMP_NAME_BYTES - len, row->detail, row->detail_len);
	}
	return buf;
}

/* ---- sentences */

static const char *value_text(const struct cmp_row *row, enum cmp_which side, char buf[24])
{
	const double v = row->value[side];

	return row->kind == CMP_MEMORY ? fmt_bytes((uint64_t)v, buf) : fmt_ns((uint64_t)v, buf);
}

static void say_layers(const struct cmp_result *r, const struct cmp_row *row, struct buf *b)
{
	unsigned changed, n = cmp_layers(r, row, &changed);

	if (n > 1 && changed)
		buf_printf(b, " in %u of %u layers", changed, n);
}

static void say_most(const struct cmp_result *r, struct buf *b)
{
	const struct cmp_row *it = cmp_iteration(r);
	const double all = it->value[CMP_B] - it->value[CMP_A];
	char name[CMP_NAME_BYTES];
	double sum = 0;
	unsigned i;

	for (i = 0; i < r->nmost; i++)
		sum += (r->most[i]->value[CMP_B] - r->most[i]->value[CMP_A]) / all;
	if (!r->nmost)
		buf_printf(b, "; no single row explains it");
	else
		buf_printf(b, "; %s of it is ", sum > 0.5 ? "most" : "some");
	for (i = 0; i < r->nmost; i++) {
		buf_printf(b, "%s%s", !i ? "" : i + 1 < r->nmost ? ", " : " and ", cmp_name(r->most[i], name));
		say_layers(r, r->most[i], b);
	}
}

static void say_iteration(const struct cmp_result *r, struct buf *b)
{
	const struct cmp_row *it = cmp_iteration(r);
	char a[24], c[24], percent[24];

	if (!it) {
		buf_printf(b, "The recordings have no iterations in common, so rows are per slice of time%s",
			   r->sums && r->few
				   ? "; one JSON result of each side does not tell whether a change is certain"
				   : "");
	} else if (cmp_certain(it)) {
		buf_printf(b, "An iteration takes %s instead of %s (%s, certain)", value_text(it, CMP_B, c),
			   value_text(it, CMP_A, a), cmp_percent(it->own, percent));
		say_most(r, b);
	} else if (r->few && r->sums) {
		buf_printf(b,
			   "An iteration takes %s; before it took %s. JSON results have sums and no single iterations, "
			   "so nobody knows whether this is certain: compare recordings, or several results of each "
			   "side",
			   value_text(it, CMP_B, c), value_text(it, CMP_A, a));
	} else if (r->few) {
		buf_printf(b,
			   "An iteration takes %s; before it took %s. Nothing is certain with fewer than %d iterations",
			   value_text(it, CMP_B, c), value_text(it, CMP_A, a), CMP_LEAST);
	} else {
		buf_printf(b, "An iteration takes %s; before it took %s: the change (%s) is not certain",
			   value_text(it, CMP_B, c), value_text(it, CMP_A, a), cmp_percent(it->change, percent));
	}
}

static bool is_named(const struct cmp_result *r, const struct cmp_row *row)
{
	unsigned i;

	for (i = 0; i < r->nmost; i++)
		if (r->most[i] == row)
			return true;
	return false;
}

static void say_row(const struct cmp_row *row, struct buf *b)
{
	char name[CMP_NAME_BYTES], percent[24];

	buf_printf(b, "%s ", cmp_name(row, name));
	if (row->recalled)
		buf_printf(b, "(%.0f calls instead of %.0f)", row->calls[CMP_B], row->calls[CMP_A]);
	else if (row->verdict == CMP_CHANGED)
		buf_printf(b, "(%s)", cmp_percent(row->own, percent));
	else
		buf_printf(b, "(%s)", cmp_verdict_words[row->verdict]);
}

/* Certain changes that the first sentence does not name, or else what the operators have in common. */
static void say_others(const struct cmp_result *r, struct buf *b)
{
	const struct cmp_row *row;
	char percent[24];
	unsigned n = 0, more = 0;
	size_t i;

	for (i = 0; i < buf_count(&r->rows, *row); i++) {
		row = buf_at(&r->rows, struct cmp_row, i);
		if (!(cmp_certain(row) || row->recalled) || row->kind == CMP_ITERATION || row->kind == CMP_LAYER ||
		    row->kind == CMP_MEMORY || is_named(r, row))
			continue;
		if (n == CMP_NAMED) {
			more++;
			continue;
		}
		buf_printf(b, n++ ? ", " : "Certain %schanges: ", r->nmost ? "other " : "");
		say_row(row, b);
	}
	if (more)
		buf_printf(b, " and %u more", more);
	if (!n && r->drifted)
		buf_printf(b, "All operators changed alike (%s): %s", cmp_percent(r->drift, percent),
			   r->several
				   ? "the machine's speed, or a setting of all operators"
				   : "one recording of each side cannot tell this from another speed of the machine, "
				     "so record each side several times");
}

static void say_memory(const struct cmp_result *r, struct buf *b)
{
	const struct cmp_row *row = NULL, *p = &r->peak;
	char a[24], c[24], percent[24];
	size_t i;

	for (i = 0; i < buf_count(&r->rows, *row); i++) {
		row = buf_at(&r->rows, struct cmp_row, i);
		if (row->kind != CMP_MEMORY || !cmp_certain(row))
			continue;
		buf_printf(b, "An iteration needs %s of memory at most instead of %s (%s, certain)",
			   value_text(row, CMP_B, c), value_text(row, CMP_A, a), cmp_percent(row->own, percent));
		return;
	}
	if (cmp_certain(p))
		buf_printf(b, "Memory reaches %s instead of %s (%s, certain)", value_text(p, CMP_B, c),
			   value_text(p, CMP_A, a), cmp_percent(p->own, percent));
}

void cmp_sentence(const struct cmp_result *r, unsigned nr, struct buf *b)
{
	static void (*const say[CMP_SENTENCES])(const struct cmp_result *r, struct buf *b) = {say_iteration, say_others,
											      say_memory};

	b->len = 0;
	say[nr](r, b);
}

static void put_sentences(struct out *out, const struct cmp_result *r)
{
	struct buf b = {0};
	unsigned i;

	for (i = 0; i < CMP_SENTENCES; i++) {
		cmp_sentence(r, i, &b);
		if (b.len)
			out_printf(out, "%.*s.\n", (int)b.len, b.data);
	}
	if (b.lacks)
		out_fail(out, -ENOMEM);
	buf_fini(&b);
}

/* ---- what differs */

static void put_safe(struct out *out, const char *text)
{
	out_escaped(out, fmt_safe, text, strlen(text));
}

static void put_differences(struct out *out, const struct cmp_result *r)
{
	const struct cmp_difference *d;
	size_t i;

	for (i = 0; i < buf_count(&r->differences, *d); i++) {
		d = buf_at(&r->differences, struct cmp_difference, i);
		out_printf(out, "%s%s: ", i ? "           " : "differs    ", d->what);
		put_safe(out, d->text[CMP_A]);
		out_puts(out, " -> ");
		put_safe(out, d->text[CMP_B]);
		out_puts(out, "\n");
	}
	if (r->rows.len && !r->common && r->events)
		out_printf(out, "%sno operator is on both sides\n", i ? "           " : "differs    ");
	if (i || !r->common)
		out_puts(out, "\n");
}

/* ---- the table */

static const char *tight(const struct cmp_row *row, double v, char buf[24])
{
	char *blank;

	if (v <= 0)
		return strcpy(buf, "-");
	if (row->kind != CMP_MEMORY)
		return fmt_tight_ns((uint64_t)v, buf);
	fmt_bytes((uint64_t)v, buf);
	blank = strchr(buf, ' ');
	if (blank)
		memmove(blank, blank + 1, strlen(blank));
	return buf;
}

static const char *mark(const struct cmp_row *row)
{
	if (row->recalled && !cmp_certain(row))
		return "calls";
	return row->verdict == CMP_NOISE ? "~" : row->verdict == CMP_SMALL ? "" : cmp_verdict_words[row->verdict];
}

void cmp_put_name(struct out *out, char *name, size_t columns)
{
	const bool longer = fmt_columns(name) > columns;

	if (longer)
		*(char *)fmt_head(name, columns - 1) = '\0';
	out_printf(out, "%s%s%*s", name, longer ? fmt_ellipsis() : "", (int)(columns - fmt_columns(name) - longer), "");
}

void cmp_cells(const struct cmp_row *row, struct cmp_cells *c)
{
	const bool judged = row->verdict == CMP_NOISE || row->verdict == CMP_CHANGED;

	*c = (struct cmp_cells){.percent = "-", .noise = "-", .mark = mark(row)};
	cmp_name(row, c->name);
	tight(row, row->value[CMP_A], c->value[CMP_A]);
	tight(row, row->value[CMP_B], c->value[CMP_B]);
	if (row->value[CMP_A] > 0 && row->value[CMP_B] > 0)
		cmp_percent(judged ? row->own : row->change, c->percent);
	if (judged && isfinite(row->noise))
		snprintf(c->noise, sizeof(c->noise), row->noise < 10 ? "%.1f%%" : ">1000%%", 100 * row->noise);
	if (row->kind < CMP_OPERATOR || row->kind == CMP_MEMORY)
		return;
	if (fabs(row->calls[CMP_A] - row->calls[CMP_B]) < 0.005 * row->calls[CMP_A])
		snprintf(c->calls, sizeof(c->calls), "%.3g", row->calls[CMP_A]);
	else
		snprintf(c->calls, sizeof(c->calls), "%.3g -> %.3g", row->calls[CMP_A], row->calls[CMP_B]);
}

static void text_put_row(void *out, const struct cmp_row *row)
{
	struct cmp_cells c;

	cmp_cells(row, &c);
	cmp_put_name(out, c.name, NAME_COLUMNS);
	out_printf(out, " %9s %9s %8s %7s %-7s%s%s\n", c.value[CMP_A], c.value[CMP_B], c.percent, c.noise, c.mark,
		   *c.calls ? "  " : "", c.calls);
}

static bool is_shown(const struct cmp_row *row)
{
	return row->kind != CMP_LAYER || cmp_certain(row);
}

size_t cmp_each_row(const struct cmp_result *r, unsigned top, void (*fn)(void *, const struct cmp_row *), void *ctx)
{
	const struct cmp_row *row;
	size_t i, shown = 0, left = 0;

	for (i = 0; i < buf_count(&r->rows, *row); i++) {
		row = buf_at(&r->rows, struct cmp_row, i);
		if (!is_shown(row))
			continue;
		if (top && shown == top) {
			left++;
			continue;
		}
		fn(ctx, row);
		shown++;
	}
	if (r->peak.value[CMP_A] > 0 || r->peak.value[CMP_B] > 0)
		fn(ctx, &r->peak);
	return left;
}

const char *cmp_about_times(const struct cmp_result *r)
{
	if (r->traced)
		return r->mixed ? "Times of traces contain what their profilers cost, and those of mxbpf do not."
				: "Times contain what the profiler cost.";
	return r->sums ? "Times are without profiling overhead."
		       : "Times are without profiling overhead and without waiting for a CPU.";
}

static void text_put_table(struct out *out, const struct cmp_result *r, unsigned top)
{
	size_t left;

	out_printf(out, "\n%-36s %9s %9s %8s %7s %-7s  %s\n", r->iterations ? "per iteration" : "per slice of time",
		   "A", "B", "change", "noise", "certain", "calls");
	left = cmp_each_row(r, top, text_put_row, out);
	if (left)
		out_printf(out, "%zu more rows (--top 0 shows all)\n", left);
	out_printf(out, "\n~: not certain. A certain change is larger than the noise in all rows together.\n%s\n",
		   cmp_about_times(r));
}

static void put_findings(struct out *out, const struct cmp_result *r)
{
	const struct cmp_finding *f;
	size_t i;

	for (i = 0; i < buf_count(&r->findings, *f); i++) {
		f = buf_at(&r->findings, struct cmp_finding, i);
		out_printf(out, "%s", i ? "" : "\n");
		out_printf(out, "%s  ", f->of == CMP_B ? "new finding " : "gone finding");
		out_escaped(out, fmt_safe, f->finding->text.data, f->finding->text.len);
		out_puts(out, ".\n");
	}
}

static void put_shapes(struct out *out, const struct cmp_result *r)
{
	const size_t n = buf_count(&r->shapes, struct cmp_new_shape);
	const struct cmp_new_shape *s;
	size_t i;

	for (i = 0; i < n && i < SHAPES_SHOWN; i++) {
		s = buf_at(&r->shapes, struct cmp_new_shape, i);
		out_printf(out, "%s%s  ", i ? "" : "\n", s->of == CMP_B ? "new shape   " : "gone shape  ");
		out_escaped(out, fmt_safe, s->shape->name, s->shape->name_len);
		out_puts(out, " ");
		out_escaped(out, fmt_safe, s->shape->args, s->shape->args_len);
		out_puts(out, "\n");
	}
	if (n > SHAPES_SHOWN)
		out_printf(out, "%zu more shapes (JSON has all)\n", n - SHAPES_SHOWN);
}

void cmp_put_common(struct out *out, const struct cmp_result *r)
{
	if (r->controls)
		out_printf(out, "Changes of operators are without the %+.1f%% that %u operators have in common%s.\n",
			   100 * r->drift, r->controls,
			   r->delayed ? "; the fastest iterations do not have it, so something delayed the others"
				      : "");
	else if (r->sums)
		out_puts(out, "JSON results do not tell what the operators have in common.\n");
	else if (r->common)
		out_puts(out, "What the operators have in common is not known: too few of them tell it.\n");
}

void cmp_put_notes(struct out *out, const struct cmp_result *r, const struct cmp_sides *of)
{
	char a[32], b[32];

	if (r->iterations)
		out_printf(out, "%s iterations in %u %s%s -> %s in %u\n", fmt_count(r->count[CMP_A], a), of->n[CMP_A],
			   r->sums ? "result" : "recording", of->n[CMP_A] > 1 ? "s" : "", fmt_count(r->count[CMP_B], b),
			   of->n[CMP_B]);
	cmp_put_common(out, r);
	if (r->mixed)
		out_printf(
			out,
			"Different profilers made them: calls that only one counts are left out, and a difference of "
			"less than %d us in each call is not certain.\n",
			CMP_PROFILER_US);
	if (!r->events)
		out_puts(out, "A recording has no single calls, so there are no rows of operators.\n");
	if (r->left_out)
		out_puts(out, "Some rows are left out: there are too many.\n");
}

int cmp_put_text(struct out *out, const struct cmp_result *r, const struct cmp_sides *of, unsigned top, struct err *e)
{
	put_differences(out, r);
	if (r->tables && r->tables->one) {
		cmp_put_tables(out, r->tables, top);
		return 0;
	}
	put_sentences(out, r);
	text_put_table(out, r, top);
	cmp_put_notes(out, r, of);
	if (r->tables)
		cmp_put_tables(out, r->tables, top);
	put_findings(out, r);
	put_shapes(out, r);
	return 0;
}
