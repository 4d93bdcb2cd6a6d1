// SPDX-License-Identifier: Apache-2.0
/* The text of a screen. Lines are cut at the width; names of the target are written by fmt_safe(). */
#include "top/top.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/steps/steps.h"

#define LINE_BYTES 1024

const char *const top_sort_words[TOP_SORTS] = {"share", "calls", "mean", "minute", "name"};

static const char *const help[] = {
	"Keys",
	"  s, S         sort by the next column, by the one before; r turns the order around",
	"  /            type a part of a name; Enter keeps the filter, Escape removes it",
	"  up, down     one row; page up, page down, Home, End",
	"  space        freeze the screen; the job is measured meanwhile",
	"  ?            this help",
	"  q            leave; nothing stays in the job",
	"",
	"Columns: calls per second; share of one thread's time, its own, without calls in it;",
	"         mean of a call, its own; calls per second and share in the last minute.",
	NULL,
};

struct frame {
	struct buf *out;
	unsigned width, lines;
	int err;
};

static void put_line(struct frame *f, const char *text)
{
	const size_t len = (size_t)(fmt_head(text, f->width) - text);

	f->err = f->err ? f->err : buf_put(f->out, text, len);
	f->err = f->err ? f->err : buf_put(f->out, "\n", 1);
	f->lines++;
}

static void line(struct frame *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void line(struct frame *f, const char *fmt, ...)
{
	char raw[LINE_BYTES], safe[LINE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	fmt_safe(safe, sizeof(safe), raw, strlen(raw));
	put_line(f, safe);
}

/* ---- the job */

/* One character for each second, the newest last. */
static void put_spark(const struct top *t, char *text, size_t max, unsigned columns)
{
	static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
					     "\u2585", "\u2586", "\u2587", "\u2588"};
	static const char ascii[] = "_.:-=+*#";
	const bool utf8 = (unsigned char)*fmt_ellipsis() >= 0x80;
	uint64_t most = 1, n;
	size_t len = 0;
	unsigned i, k = columns < TOP_SECONDS ? columns : TOP_SECONDS;

	k = t->n < k ? (unsigned)t->n : k;
	for (i = 0; i < TOP_SECONDS; i++)
		most = t->seconds[i].iterations > most ? t->seconds[i].iterations : most;
	text[0] = '\0';
	for (i = k; i && len + 4 < max; i--) {
		n = t->seconds[(t->n - i) % TOP_SECONDS].iterations * 7 / most;
		len += utf8 ? (size_t)snprintf(text + len, max - len, "%s", blocks[n])
			    : (size_t)snprintf(text + len, max - len, "%c", ascii[n]);
	}
}

static void put_parts(const struct top_second *s, char *text, size_t max)
{
	uint8_t order[MXBPF_STEP_PARTS];
	const unsigned n = s->known_ns ? steps_large_parts(s->part_ns, s->known_ns, order) : 0;
	size_t len = 0;
	unsigned i;

	text[0] = '\0';
	for (i = 0; i < n && len < max; i++)
		len += (size_t)snprintf(text + len, max - len, "%s%.0f%% %s", i ? ", " : "",
					100.0 * (double)s->part_ns[order[i]] / (double)s->known_ns,
					steps_part_words[order[i]]);
}

static void put_job(struct frame *f, const struct top *t, const struct top_choice *c)
{
	const struct top_second *s = top_last(t);
	char spark[4 * TOP_SECONDS + 8], parts[400], each[24] = "", live[24];

	line(f, "%s%s   watching adds %.1f%% of a CPU, mxbpf uses %.1f%%", t->title, c->frozen ? "   FROZEN" : "",
	     s->window_ns ? 100.0 * (double)s->added_ns / (double)s->window_ns : 0.0,
	     s->window_ns ? 100.0 * (double)t->own_ns / (double)s->window_ns : 0.0);
	put_spark(t, spark, sizeof(spark), f->width > 40 ? f->width - 40 : 0);
	line(f, "%.3g iterations/s now, %.3g in the minute  %s", top_iterations(t, 1), top_iterations(t, TOP_SECONDS),
	     spark);
	put_parts(s, parts, sizeof(parts));
	if (s->iterations)
		line(f, "%s each%s%s", fmt_ns(s->iteration_ns / s->iterations, each), parts[0] ? ": " : "", parts);
	else
		line(f, "no iteration ended in this second");
	if (t->live_bytes > 0)
		line(f, "memory beyond the start: %s", fmt_bytes((uint64_t)t->live_bytes, live));
	line(f, "%s", t->finding[0] ? t->finding : "mxbpf found nothing that holds the job up");
	if (s->lost || t->left_out)
		line(f, "LOSS  %llu events dropped, %llu calls of too many names", (unsigned long long)s->lost,
		     (unsigned long long)t->left_out);
	if (c->said)
		line(f, "%s", c->said);
}

/* ---- the table */

static double value(const struct top_row *r, enum top_sort by)
{
	switch (by) {
	case TOP_BY_CALLS:
		return r->second.calls;
	case TOP_BY_AVG:
		return (double)r->second.avg_ns;
	case TOP_BY_MINUTE:
		return r->minute.share;
	default:
		return r->second.share;
	}
}

static int order(const void *va, const void *vb, void *chosen)
{
	const struct top_choice *choice = chosen;
	const struct top_row *const *a = va, *const *b = vb;
	int less;

	if (choice->sort == TOP_BY_NAME)
		less = strcmp((*b)->name, (*a)->name);
	else
		less = value(*a, choice->sort) < value(*b, choice->sort)   ? -1
		       : value(*a, choice->sort) > value(*b, choice->sort) ? 1
									   : strcmp((*b)->name, (*a)->name);
	return choice->ascending ? less : -less;
}

/* Rows that did something in the last minute and fit the filter. Returns their number; *rows is owned by the caller. */
static size_t pick(struct top *t, const struct top_choice *c, struct top_row ***rows)
{
	size_t n = buf_count(&t->rows, struct top_row), i, k = 0;
	struct top_row *r;

	*rows = calloc(n + 1, sizeof(struct top_row *));
	for (i = 0; *rows && i < n; i++) {
		r = buf_at(&t->rows, struct top_row, i);
		if (r->minute.calls > 0 && (!c->filter[0] || strcasestr(r->name, c->filter)))
			(*rows)[k++] = r;
	}
	if (k)
		qsort_r(*rows, k, sizeof(struct top_row *), order, (void *)c);
	return k;
}

static void put_row(struct frame *f, const struct top_row *r)
{
	char avg[24];

	line(f, "%9.1f %6.1f%% %8s  %9.1f/s %6.1f%%  %s", r->second.calls, 100 * r->second.share,
	     r->second.avg_ns ? fmt_tight_ns(r->second.avg_ns, avg) : "-", r->minute.calls, 100 * r->minute.share,
	     r->name);
}

int top_frame(struct top *t, const struct top_choice *c, struct buf *out, unsigned *head, unsigned *rows)
{
	struct frame f = {.out = out, .width = c->width};
	struct top_row **all = NULL;
	size_t n, i;

	*head = *rows = 0;
	if (!top_last(t)) {
		line(&f, "%s", c->said ? c->said : "attaching ...");
		return f.err;
	}
	put_job(&f, t, c);
	line(&f, "sorted by %s%s%s%s%s; ? lists the keys", top_sort_words[c->sort], c->ascending ? ", ascending" : "",
	     c->typing || c->filter[0] ? "; only names with " : "", c->filter, c->typing ? "_" : "");
	for (i = 0; c->help && help[i]; i++)
		line(&f, "%s", help[i]);
	if (c->help)
		return f.err;
	*head = f.lines;
	line(&f, "  calls/s   share     mean    in the last minute  name");
	n = pick(t, c, &all);
	if (!all)
		return -ENOMEM;
	*rows = (unsigned)n;
	for (i = c->first; i < n && f.lines < c->height; i++)
		put_row(&f, all[i]);
	free(all);
	return f.err;
}
