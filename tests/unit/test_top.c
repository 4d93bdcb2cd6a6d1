// SPDX-License-Identifier: Apache-2.0
/* Tests the rows of the live view over many seconds. tests/top.bats has the screen. */

#include "feature/raised/raised.h"
#include "feature/sample/sample.h"
#include "feature/threads/threads.h"
#include "records.h"
#include "top/top.h"
#include "view/sheet.h"

#define SECOND_NS 1000000000ull
#define MS	  1000000ull

static struct mdl_session session(void)
{
	static char comm[] = "job", empty[] = "";

	return (struct mdl_session){
		.pid = 77, .comm = comm, .cmdline = empty, .hostname = empty, .duration_ns = SECOND_NS};
}

static struct mxbpf_span call(uint32_t tgid, uint64_t name_id, uint64_t start_ns)
{
	return (struct mxbpf_span){
		.h = {.kind = MXBPF_SPAN, .size = sizeof(struct mxbpf_span), .tgid = tgid, .ts_ns = start_ns},
		.name_id = name_id,
		.dur_ns = MS,
		.self_ns = MS,
		.tid = tgid,
		.end_tid = tgid,
		.cls = MXBPF_CLASS_OPERATOR,
	};
}

/* A second with one call of each of n names from `first` on, in process tgid. */
static void second(struct top *t, uint32_t tgid, uint64_t first, unsigned n)
{
	const struct mdl_session s = session();
	struct mdl_interval in = {.session = &s, .model = mdl_new()};
	struct mxbpf_span span;
	FREED(buf_fini) struct buf recs = {0};
	unsigned i;

	for (i = 0; i < n; i++) {
		span = call(tgid, first + i, SECOND_NS + i * MS);
		buf_put(&recs, &span, sizeof(span));
	}
	CHECK(in.model && !feed(in.model, &recs));
	CHECK(!top_take(t, &in));
	mdl_free(in.model);
}

static size_t shown(const struct top *t, enum top_view v)
{
	struct top_choice c = {.view = v, .width = 80, .height = 24};
	struct top_page page = {.rows = 0};
	size_t n;

	top_choice_init(&c);
	CHECK(!top_frame(t, &c, &page));
	n = page.rows;
	buf_fini(&page.text);
	return n;
}

static void test_room(void)
{
	FREED(top_fini) struct top t = {.one_job = true};
	unsigned i;

	second(&t, 77, 1000, TOP_ROWS_MAX - 100);
	CHECK(shown(&t, TOP_OPERATORS) == TOP_ROWS_MAX - 100);
	CHECK(t.left_out == 0);
	second(&t, 77, 100000, 300);
	CHECK(t.left_out == 200);
	for (i = 0; i < TOP_SECONDS; i++)
		second(&t, 77, 0, 0);
	CHECK(shown(&t, TOP_OPERATORS) == 0);
	second(&t, 77, 200000, TOP_ROWS_MAX - 100);
	CHECK(shown(&t, TOP_OPERATORS) == TOP_ROWS_MAX - 100);
	CHECK(t.left_out == 0);
}

static void test_frozen(void)
{
	FREED(top_fini) struct top t = {.one_job = true};
	const struct top_row *row;

	second(&t, 77, 1000, 1);
	t.frozen = true;
	second(&t, 77, 1000, 1);
	second(&t, 77, 1000, 2);
	row = top_row_find(&t, TOP_PROCESSES, 77, 0);
	CHECK(row && row->second.calls == 1 && row->minute.calls == 1);
	CHECK(shown(&t, TOP_OPERATORS) == 1);
	t.frozen = false;
	second(&t, 77, 1000, 4);
	row = top_row_find(&t, TOP_PROCESSES, 77, 0);
	CHECK(row && row->second.calls == 4 && row->minute.calls == 2);
	CHECK(shown(&t, TOP_OPERATORS) == 4);
}

static void test_jobs(void)
{
	FREED(top_fini) struct top t = {0};
	uint32_t pid;

	for (pid = 1; pid <= TOP_JOBS_MAX + 10; pid++)
		second(&t, (1u << 30) + pid, 1000, 1); /* no such process is alive */
	CHECK(top_rows(&t, TOP_JOBS) == TOP_JOBS_MAX);
	CHECK(!strcmp(top_row(&t, TOP_JOBS, TOP_JOBS_MAX - 1)->name, "[further jobs]"));
	CHECK(top_row(&t, TOP_JOBS, TOP_JOBS_MAX - 1)->parts[(t.n - 1) % TOP_SECONDS].calls == 1);
	CHECK(shown(&t, TOP_PROCESSES) == TOP_SECONDS);
}

/* A second, or several in one, with a table of n threads. A model has what happened since the one before. */
static void second_of_threads(struct top *t, unsigned seconds, const struct thread_use *threads, unsigned n)
{
	struct mdl_session s = session();
	struct mdl_interval in = {.session = &s, .model = mdl_new()};

	s.duration_ns = seconds * SECOND_NS;
	s.features = THREADS_BIT;
	while (n--)
		CHECK(in.model && !mdl_table_add(in.model, &feature_threads, &threads_table, &threads[n]));
	CHECK(!top_take(t, &in));
	mdl_free(in.model);
}

/* The lines of the table that is shown, without what is above its headings. */
static const char *lines_of(const struct top *t, struct top_page *page)
{
	struct top_choice c = {.view = TOP_TABLE, .width = 120, .height = 24, .bare = true};

	CHECK(!top_frame(t, &c, page) && !buf_put(&page->text, "", 1));
	return strchr(page->text.data, '\n') + 1;
}

static void test_table(void)
{
	static const struct thread_use first[] = {{77, 1, 500 * MS, 0, 10}, {77, 2, 100 * MS, 0, 10}},
				       then[] = {{77, 1, 200 * MS, 0, 10}, {77, 3, 1600 * MS, 0, 10}};
	FREED(top_fini) struct top t = {.one_job = true, .table = {.of = &sheet_threads}};
	struct top_page page = {.rows = 0};
	unsigned i;

	second_of_threads(&t, 1, first, 2);
	CHECK(!top_rows(&t, TOP_TABLE)); /* it is made only if it is shown */
	t.table.shown = true;
	second_of_threads(&t, 1, first, 2);
	CHECK(!strcmp(lines_of(&t, &page), " CPU time  run queue  thread  tid  CPUs  runs/s\n"
					   "    50.0%       0.0%  -         1  0.50      10\n"
					   "    10.0%       0.0%  -         2  0.10      10\n"));
	second_of_threads(&t, 2, then, 2); /* one is new, one does nothing, and one does less than before */
	CHECK(!strcmp(lines_of(&t, &page), " CPU time  run queue  thread  tid  CPUs  runs/s\n"
					   "    80.0%       0.0%  -         3  0.80       5\n"
					   "    10.0%       0.0%  -         1  0.10       5\n"
					   "        -          -  -         -     -       -\n"));
	for (i = 0; i < TOP_SECONDS; i++)
		second_of_threads(&t, 1, then, 1);
	CHECK(shown(&t, TOP_TABLE) == 1);
	buf_fini(&page.text);
}

/* Goes through tables of a second in which three have rows, in the order of the outputs. */
static void test_next_table(void)
{
	static const struct sample_row sample = {.count = 1, .tgid = 77};
	static const struct raised_row raised = {.count = 1, .tgid = 77};
	static const struct thread_use thread = {77, 1, 500 * MS, 0, 10};
	static const struct {
		int step;
		const struct view_sheet *to;
	} steps[] = {{1, &sheet_sample}, {1, &sheet_raised},  {1, &sheet_threads}, {-1, &sheet_raised},
		     {0, &sheet_raised}, {-1, &sheet_sample}, {-1, &sheet_threads}};
	struct mdl_session s = session();
	struct mdl_interval in = {.session = &s, .model = mdl_new()};
	FREED(top_fini) struct top t = {.one_job = true, .table.shown = true};
	unsigned i;

	s.features = THREADS_BIT | RAISED_BIT;
	s.sample_hz = 99;
	CHECK(in.model && !mdl_table_add(in.model, &feature_sample, &sample_table, &sample) &&
	      !mdl_table_add(in.model, &feature_raised, &raised_table, &raised) &&
	      !mdl_table_add(in.model, &feature_threads, &threads_table, &thread));
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		t.table.step = steps[i].step;
		CHECK(!top_take(&t, &in) && t.table.of == steps[i].to && top_rows(&t, TOP_TABLE) == 1);
	}
	mdl_free(in.model);
}

int main(void)
{
	TEST("a table shows rates of the second, new rows at once, and rows that did nothing for a minute more")
	test_table();
	TEST("the next table and the one before are the next ones with rows")
	test_next_table();
	TEST("names of earlier minutes make room for new ones, and what has no room is loss")
	test_room();
	TEST("a frozen screen keeps its second, and the minute goes on")
	test_frozen();
	TEST("processes of more jobs than there are rows for share the last row")
	test_jobs();
	UNIT_MAIN_END;
}
