// SPDX-License-Identifier: Apache-2.0
/* Tests the rows of the live view over many seconds. tests/top.bats has the screen. */
#include <stdio.h>
#include <stdlib.h>

#include "records.h"
#include "top/top.h"
#include "unit.h"

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

int main(void)
{
	TEST("names of earlier minutes make room for new ones, and what has no room is loss")
	test_room();
	TEST("a frozen screen keeps its second, and the minute goes on")
	test_frozen();
	TEST("processes of more jobs than there are rows for share the last row")
	test_jobs();
	UNIT_MAIN_END;
}
