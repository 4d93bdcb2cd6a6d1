// SPDX-License-Identifier: Apache-2.0
#include "feature/threads/threads.h"

#include <math.h>
#include <stdio.h>

#include "base/fmt.h"
#include "view/priv.h"
#include "view/sheet.h"

#define ROWS_MAX 16384 /* further threads are in the row of those that were not read */

struct row {
	struct thread_use t;
	struct view_text name;
	double cpus, runs_per_s;
};

struct table {
	struct view_list list;
	struct thread_use sum;
};

/* Per nanosecond of the window; NAN: an incomplete recording does not tell how long that is. */
static double rate(const struct view *s, uint64_t n)
{
	return s->in->session->duration_ns ? (double)n / (double)s->in->session->duration_ns : NAN;
}

static void threads_fill(const struct view *s, void *row)
{
	struct row *r = row;

	r->cpus = rate(s, r->t.cpu_ns);
	r->runs_per_s = rate(s, r->t.runs) * 1e9;
	r->name = view_word(r->t.tid ? mdl_thread_name(s->in->model, r->t.tgid, r->t.tid) : "[ended or not read]");
}

static void threads_above(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;
	char ns[24];

	out_printf(s->out, "%sThreads: %s of CPU time, %.2f CPUs in the mean, in ", prefix, fmt_ns(t->sum.cpu_ns, ns),
		   rate(s, t->sum.cpu_ns));
	view_put_rows(s, &t->list);
	out_puts(s->out, "\n");
}

static bool threads_when(const struct view *s)
{
	return mdl_asked(s->in->session, &feature_threads);
}

static void runs_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	snprintf(cell, TBL_CELL_BYTES, "%.0f", *(const double *)value);
}

#define ROW struct row
static const struct tbl_column columns[] = {
	{"name", NULL, "thread", TBL_TEXT, AT(name), TBL_NULL | TBL_MANY, .label = "thread_name",
	 .help = "name of the thread"},
	{"tid", NULL, "tid", TBL_COUNT, KEY_AT(t.tid), .flags = TBL_DETAIL,
	 .help = "its number; 0: threads that ended between two readings, and threads that were not read"},
	PID_COLUMN(t.tgid, .merge = TBL_IS_KEY),
	{"cpu_ns", "thread_cpu_ns", "CPU time", TBL_NS, SUM_AT(t.cpu_ns), .flags = TBL_BY_TIME,
	 .metric = METRIC("mxbpf_thread_cpu_seconds", "CPU time of threads, by their names"), .help = "on a CPU"},
	{"cpus", NULL, "CPUs", TBL_RATIO, AT(cpus), .digits = 2, .data_digits = 4,
	 .help = "CPUs that it kept busy, in the mean of the window"},
	{"runq_ns", "thread_runq_ns", "run queue", TBL_NS, SUM_AT(t.runq_ns), .flags = TBL_DASH,
	 .help = "ready to run, and waited for a CPU; 0 for tid 0"},
	{"runs", NULL, NULL, TBL_COUNT, SUM_AT(t.runs), .flags = TBL_BY_COUNT,
	 .help = "how often it got a CPU; 0 for tid 0"},
	{NULL, NULL, "runs/s", TBL_RATIO, AT(runs_per_s), .cell = runs_cell,
	 .help = "how often it got a CPU in a second of the window"},
	{0},
};

const struct tbl_def threads_table = {.name = "threads",
				      .row_bytes = sizeof(struct thread_use),
				      .max_rows = ROWS_MAX,
				      .of_process = true,
				      .columns = columns};

const struct view_sheet sheet_threads = {
	.title = "Threads",
	.help = "What each thread of the processes did with CPUs, as the kernel counts it.",
	.member = "threads",
	.csv = "threads",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.when = threads_when,
	.stored = &threads_table,
	.feature = &feature_threads,
	.sum_at = offsetof(struct table, sum),
	.fill = threads_fill,
	.above = threads_above,
	.left_out = "threads",
};
