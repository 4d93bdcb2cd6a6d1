// SPDX-License-Identifier: Apache-2.0
/* The details of an opened row: its calls in the second that is shown, and the rows of another view in it. */
#include "top/priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fmt.h"

#define PARTS_MAX 4096

/* A view whose rows are parts of the row. */
static enum top_view parts_of(const struct top *t, enum top_view v, const struct top_row *row)
{
	if (v == TOP_JOBS)
		return TOP_PROCESSES;
	if (v != TOP_OPERATORS)
		return TOP_OPERATORS;
	return top_job_sum(t, row->job).processes > 1 ? TOP_PROCESSES : TOP_THREADS;
}

static void details_add(struct top_cell *to, const struct top_cell *c)
{
	to->p50_ns = c->calls > to->calls ? c->p50_ns : to->p50_ns; /* the percentile of the part with the most calls */
	to->calls += c->calls;
	to->self_ns += c->self_ns;
	to->total_ns += c->total_ns;
	to->runq_ns += c->runq_ns;
	to->blocked_ns += c->blocked_ns;
	to->max_ns = c->max_ns > to->max_ns ? c->max_ns : to->max_ns;
}

static int by_self(const void *va, const void *vb)
{
	const struct top_cell *a = va, *b = vb;

	return a->self_ns > b->self_ns ? -1 : a->self_ns < b->self_ns;
}

static int by_part(const void *va, const void *vb, void *view)
{
	const uint32_t a = ((const struct top_cell *)va)->rows[*(enum top_view *)view],
		       b = ((const struct top_cell *)vb)->rows[*(enum top_view *)view];

	return a < b ? -1 : a > b;
}

/* Adds up the cells of a row: *sum, and in `parts` one for each row of another view. Returns their number. */
static size_t details_add_up(const struct top *t, enum top_view v, const struct top_row *row, enum top_view of,
			     struct top_cell *parts, struct top_cell *sum)
{
	const uint32_t place = (uint32_t)(row - top_row(t, v, 0)) + 1;
	const struct top_cell *c;
	size_t n = 0, kept = 0, i;

	for (i = 0; i < buf_count(&t->cells, struct top_cell); i++) {
		c = buf_at(&t->cells, struct top_cell, i);
		if (c->rows[v] != place)
			continue;
		details_add(sum, c);
		if (c->rows[of] && n < PARTS_MAX)
			parts[n++] = *c;
	}
	qsort_r(parts, n, sizeof(*parts), by_part, &of);
	for (i = 0; i < n; i++)
		if (kept && parts[kept - 1].rows[of] == parts[i].rows[of])
			details_add(&parts[kept - 1], &parts[i]);
		else
			parts[kept++] = parts[i];
	qsort(parts, kept, sizeof(*parts), by_self);
	return kept;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void put_calls(struct top_lines *f, const struct top *t, enum top_view v, const struct top_row *row,
		      const struct top_cell *sum)
{
	char mean[24], p50[24], longest[24], calls[32];

	if (!sum->calls) {
		top_line(f, "    no call ended in this second");
		return;
	}
	if (v == TOP_OPERATORS)
		top_line(f, "    %s: %s calls in the second, each %s with calls in it, p50 %s, longest %s", row->kind,
			 fmt_count(sum->calls, calls), fmt_ns(sum->total_ns / sum->calls, mean),
			 fmt_ns(sum->p50_ns, p50), fmt_ns(sum->max_ns, longest));
	if (t->account)
		top_line(f, "    of its own time %.0f%% waiting for a CPU, %.0f%% blocked, the rest on a CPU",
			 percent(sum->runq_ns, sum->self_ns), percent(sum->blocked_ns, sum->self_ns));
}

static void put_process(struct top_lines *f, const struct top_row *row)
{
	char resident[24], live[24];

	if (!row->alive)
		top_line(f, "    it has ended");
	else if (row->live_bytes > 0)
		top_line(f, "    %s resident, %s allocated beyond the start", fmt_bytes(row->resident_bytes, resident),
			 fmt_bytes((uint64_t)row->live_bytes, live));
}

static void put_part(struct top_lines *f, const struct top *t, enum top_view of, const struct top_cell *c)
{
	const struct top_row *row = top_row(t, of, c->rows[of] - 1);
	const double window = (double)top_second(t, 0)->window_ns;
	char p50[24], longest[24], who[64] = "";

	if (of == TOP_PROCESSES && row->rank != MDL_NO_NUMBER)
		snprintf(who, sizeof(who), "rank %" PRIu32 ", %" PRIu32 " ", row->rank, row->tgid);
	else if (of != TOP_OPERATORS)
		snprintf(who, sizeof(who), "%" PRIu32 " ", of == TOP_THREADS ? row->tid : row->tgid);
	top_line(f, "    %9.1f/s %6.1f%%  p50 %7s  longest %7s  %s%s", window > 0 ? (double)c->calls * 1e9 / window : 0,
		 window > 0 ? 100 * (double)c->self_ns / window : 0, fmt_tight_ns(c->p50_ns, p50),
		 fmt_tight_ns(c->max_ns, longest), who, row->name ? row->name : "");
}

void top_details(struct top_lines *f, const struct top *t, enum top_view v, const struct top_row *row, unsigned max)
{
	const enum top_view of = parts_of(t, v, row);
	struct top_cell sum = {.calls = 0}, *parts = calloc(PARTS_MAX, sizeof(*parts));
	const unsigned end = f->lines + max;
	const size_t n = parts ? details_add_up(t, v, row, of, parts, &sum) : 0;
	size_t i;

	put_calls(f, t, v, row, &sum);
	if (v == TOP_PROCESSES)
		put_process(f, row);
	if (row->partial)
		top_line(f, "    calls are missing, because --max-overhead left out probes");
	if (row->line[0])
		top_line(f, "    Python: %s", row->line);
	for (i = 0; i < n && f->lines + (i + 1 < n) < end; i++)
		put_part(f, t, of, &parts[i]);
	if (i < n)
		top_line(f, "    and %zu %s more", n - i, top_view_words[of]);
	free(parts);
}
