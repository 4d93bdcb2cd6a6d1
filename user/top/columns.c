// SPDX-License-Identifier: Apache-2.0
/* The columns of the tables, and the order of rows. */
#include "top/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"

#define TEXT_BYTES  64
#define JOB_COLUMNS 16
#define ALL	    ((1u << TOP_TABLE) - 1)
#define BIT(v)	    (1u << (v))
#define LOOPS	    (BIT(TOP_PROCESSES) | BIT(TOP_JOBS))

const char *const top_view_words[TOP_VIEWS] = {"operators", "threads", "processes", "jobs", "table"};

#define VALUE(name, expression)                                                                                        \
	static double name(const struct top_row *r)                                                                    \
	{                                                                                                              \
		return (double)(expression);                                                                           \
	}
VALUE(calls, r->second.calls)
VALUE(iterations, r->second.iterations)
VALUE(share, r->second.share)
VALUE(mean, r->second.avg_ns)
VALUE(cpu, r->second.cpu)
VALUE(memory, r->resident_bytes)
VALUE(minute_calls, r->minute.calls)
VALUE(minute_iterations, r->minute.iterations)
VALUE(minute_share, r->minute.share)
VALUE(rank, r->rank == MDL_NO_NUMBER ? -1 : (double)r->rank)
VALUE(pid, r->tgid)
VALUE(tid, r->tid)
VALUE(processes, r->processes)

#define TEXT(name, format, ...)                                                                                        \
	static const char *name##_text(const struct top *t, const struct top_row *r, char buf[TEXT_BYTES])             \
	{                                                                                                              \
		snprintf(buf, TEXT_BYTES, format, __VA_ARGS__);                                                        \
		return buf;                                                                                            \
	}
TEXT(calls, "%.1f", r->second.calls)
TEXT(iterations, "%.3g", r->second.iterations)
TEXT(share, "%.1f%%", 100 * r->second.share)
TEXT(cpu, "%.0f%%", 100 * r->second.cpu)
TEXT(minute_calls, "%.1f/s", r->minute.calls)
TEXT(minute_iterations, "%.3g/s", r->minute.iterations)
TEXT(minute_share, "%.1f%%", 100 * r->minute.share)
TEXT(pid, "%" PRIu32, r->tgid)
TEXT(tid, "%" PRIu32, r->tid)
TEXT(processes, "%" PRIu32, r->processes)

static const char *mean_text(const struct top *t, const struct top_row *r, char buf[TEXT_BYTES])
{
	return r->second.avg_ns ? fmt_tight_ns(r->second.avg_ns, buf) : "-";
}

static const char *memory_text(const struct top *t, const struct top_row *r, char buf[TEXT_BYTES])
{
	return r->alive ? fmt_bytes(r->resident_bytes, buf) : "ended";
}

static const char *rank_text(const struct top *t, const struct top_row *r, char buf[TEXT_BYTES])
{
	snprintf(buf, TEXT_BYTES, "%" PRIu32, r->rank);
	return r->rank == MDL_NO_NUMBER ? "-" : buf;
}

static const char *job_text(const struct top *t, const struct top_row *r, char buf[TEXT_BYTES])
{
	return r->job ? top_row(t, TOP_JOBS, r->job - 1)->name : "-";
}

static const char *name_text(const struct top *t, const struct top_row *r, char buf[TEXT_BYTES])
{
	return r->name ? r->name : "[unknown]";
}

/* The columns. A narrow screen has no rates of the last minute. */
const struct top_column top_columns[] = {
	{"calls", "calls/s", 9, 0, BIT(TOP_OPERATORS) | BIT(TOP_THREADS), false, calls, calls_text},
	{"iterations", "iter/s", 7, 0, LOOPS, false, iterations, iterations_text},
	{"share", "share", 7, 0, ALL, false, share, share_text},
	{"mean", "mean", 8, 0, BIT(TOP_OPERATORS), false, mean, mean_text},
	{"CPU", "CPU", 6, 0, LOOPS, false, cpu, cpu_text},
	{"memory", "memory", 9, 0, LOOPS, false, memory, memory_text},
	{"calls in the minute", "1m calls", 11, 70, BIT(TOP_OPERATORS) | BIT(TOP_THREADS), false, minute_calls,
	 minute_calls_text},
	{"iterations in the minute", "1m iter", 8, 70, LOOPS, false, minute_iterations, minute_iterations_text},
	{"share in the minute", "1m share", 8, 70, ALL, false, minute_share, minute_share_text},
	{"rank", "rank", 5, 0, BIT(TOP_PROCESSES), false, rank, rank_text},
	{"processes", "procs", 6, 0, BIT(TOP_JOBS), false, processes, processes_text},
	{"pid", "pid", 8, 0, BIT(TOP_THREADS) | BIT(TOP_PROCESSES), false, pid, pid_text},
	{"thread", "thread", 8, 0, BIT(TOP_THREADS), false, tid, tid_text},
	{"job", "job", JOB_COLUMNS, 0, ALL & ~BIT(TOP_JOBS), true, NULL, job_text},
	{"name", "name", 0, 0, ALL, false, NULL, name_text},
	{0},
};

bool top_view_shows(const struct top *t, enum top_view v)
{
	return v < TOP_JOBS || (v == TOP_JOBS && top_rows(t, TOP_JOBS) > 1);
}

bool top_column_shows(const struct top *t, const struct top_choice *c, const struct top_column *column)
{
	const bool jobs = top_rows(t, TOP_JOBS) > 1 && !t->job && c->view != TOP_JOBS;

	return column->views & BIT(c->view) && c->width >= column->least + (jobs && column->least ? JOB_COLUMNS : 0) &&
	       (!column->of_jobs || jobs);
}

void top_choice_init(struct top_choice *c)
{
	unsigned i, v;

	for (i = 0; top_columns[i].word; i++)
		if (top_columns[i].value == share)
			for (v = 0; v < TOP_VIEWS; v++)
				c->sort[v] = i;
}

struct order {
	const struct top *t;
	const struct top_choice *c;
};

static int columns_by_text(const struct top *t, const struct top_column *column, const struct top_row *a,
			   const struct top_row *b)
{
	char x[TEXT_BYTES], y[TEXT_BYTES];

	return strcmp(column->text(t, a, x), column->text(t, b, y));
}

/* Puts the largest value first, but texts from a to z. Equal rows keep their order from second to second. */
static int columns_compare(const void *va, const void *vb, void *vorder)
{
	const struct top_row *a = *(const struct top_row *const *)va, *b = *(const struct top_row *const *)vb;
	const struct order *o = vorder;
	const struct top_column *column = &top_columns[o->c->sort[o->c->view]];
	const double x = column->value ? column->value(a) : 0, y = column->value ? column->value(b) : 0;
	int first = o->c->view == TOP_TABLE ? top_table_compare(o->t, a, b)
		    : column->value	    ? (x > y ? -1 : x < y)
					    : columns_by_text(o->t, column, a, b);

	first = o->c->ascending ? -first : first;
	return first ? first : a->id < b->id ? -1 : a->id > b->id;
}

void top_sort(const struct top *t, const struct top_choice *c, const struct top_row **rows, size_t n)
{
	struct order o = {t, c};

	if (n)
		qsort_r(rows, n, sizeof(*rows), columns_compare, &o);
}
