// SPDX-License-Identifier: Apache-2.0
/* Tests spans with details: they have separate rows, in the model and in recordings. */

#include "mxbpf_config.h"
#include "record/record.h"
#include "records.h"

#define OP MXBPF_CLASS_OPERATOR

static void put_span(struct buf *b, uint32_t tgid, uint64_t name_id, uint64_t args_id, uint64_t stack_id)
{
	struct mxbpf_span s = {
		.h = {MXBPF_SPAN, sizeof(s), tgid, 1000},
		.dur_ns = 100,
		.self_ns = 60,
		.name_id = name_id,
		.cls = OP,
		.alloc_bytes = 8,
		.args_id = args_id,
		.stack_id = stack_id,
	};

	buf_put(b, &s, sizeof(s));
}

/* Returns the number of calls in the row of these three ids; an id of 0 means none. */
static uint64_t calls(struct mdl *m, uint64_t name_id, uint64_t args_id, uint64_t stack_id)
{
	const struct mdl_row *const *rows;
	size_t n, i;

	rows = mdl_rows(m, OP, &n);
	for (i = 0; i < n; i++)
		if (rows[i]->name_id == name_id && rows[i]->args_id == args_id && rows[i]->stack_id == stack_id &&
		    rows[i]->id ==
			    mdl_group_id(&(struct mxbpf_group){
				    .name_id = name_id, .args_id = args_id, .stack_id = stack_id, .layer_id = 0}))
			return rows[i]->count;
	return 0;
}

static void check_rows(struct mdl *m, uint64_t times)
{
	size_t n;

	mdl_rows(m, OP, &n);
	CHECK(n == 5);
	CHECK(calls(m, 5, 0, 0) == times && calls(m, 5, 7, 0) == 2 * times && calls(m, 5, 0, 7) == times &&
	      calls(m, 5, 7, 9) == times && calls(m, 3, 7, 0) == times);
	CHECK(!strcmp(mdl_name(m, 5, NULL), "mm"));
	CHECK(mdl_text(m, MXBPF_NAME_ARGS, 7, NULL) && !strcmp(mdl_text(m, MXBPF_NAME_ARGS, 7, NULL), "[[8]]\n[]\n[]"));
	CHECK(mdl_text(m, MXBPF_NAME_STACK, 7, NULL) && !strcmp(mdl_text(m, MXBPF_NAME_STACK, 7, NULL), "a.py(1): f"));
	CHECK(!mdl_text(m, MXBPF_NAME_STACK, 9, NULL) && !mdl_text(m, MXBPF_NAME_ARGS, 0, NULL));
}

static void test_rows(struct buf *b)
{
	FREED(model_freed) struct mdl *m = mdl_new(), *sum = NULL, *again = mdl_new();
	FREED(buf_fini) struct buf recs = {0};
	uint32_t tgid;

	for (tgid = 1; tgid <= 2; tgid++) {
		put_span(b, tgid, 5, 0, 0);
		put_span(b, tgid, 5, 7, 0);
		put_span(b, tgid, 5, 7, 0);
		put_span(b, tgid, 5, 0, 7);
		put_span(b, tgid, 5, 7, 9);
		put_span(b, tgid, 3, 7, 0);
	}
	put_name(b, 5, MXBPF_NAME_SPAN, "mm");
	put_name(b, 7, MXBPF_NAME_ARGS, "[[8]]\n[]\n[]");
	put_name(b, 7, MXBPF_NAME_STACK, "a.py(1): f");
	CHECK(!feed(m, b));
	sum = mdl_sum(m);
	check_rows(sum, 2);
	CHECK(!mdl_emit(sum, &recs) && !feed(again, &recs));
	check_rows(again, 2);
	CHECK(!mdl_emit(again, &recs) && !feed(again, &recs));
	check_rows(again, 4);
}

/* finish: write the final tables; otherwise the reader folds the spans. */
static void test_recording(struct buf *b, bool finish)
{
	char hostname[] = "host", empty[] = "";
	const struct mdl_session s = {.mxbpf_version = empty,
				      .comm = empty,
				      .cmdline = empty,
				      .hostname = hostname,
				      .details = MXBPF_DETAIL_ARGS};
	FREED(model_freed) struct mdl *again = mdl_new(), *m = mdl_new();
	struct rec_reader *r = NULL;
	struct rec_writer *w = NULL;
	struct mxbpf_loss loss = {0};
	struct err e = {0};

	put_name(b, 5, MXBPF_NAME_SPAN, "mm");
	put_name(b, 7, MXBPF_NAME_ARGS, "[[8]]\n[]\n[]");
	put_name(b, 7, MXBPF_NAME_STACK, "a.py(1): f");
	CHECK(!feed(m, b));
	put_span(b, 1, 5, 0, 0);
	put_span(b, 1, 5, 7, 0);
	put_span(b, 1, 5, 7, 0);
	put_span(b, 1, 5, 0, 7);
	put_span(b, 1, 5, 7, 9);
	put_span(b, 1, 3, 7, 0);
	CHECK(!rec_writer_open(memfd_create("test_groups", MFD_CLOEXEC), 0, &s, &w, &e));
	CHECK(!rec_writer_append(w, b->data, b->len, m, &loss));
	CHECK(!feed(m, b));
	CHECK(!finish || !rec_writer_finish(w, m, &s, &e));
	CHECK(!rec_reader_open(rec_writer_fd(w), &r, &e) && !rec_reader_model(r, again, &e));
	check_rows(again, 1);
	CHECK(rec_reader_session(r)->details == MXBPF_DETAIL_ARGS);
	rec_reader_close(r);
	rec_writer_free(w);
}

static void test_bound(struct buf *b)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	uint64_t i, total = 0;
	const struct mdl_row *const *rows;
	size_t n;

	for (i = 1; i <= MDL_GROUPED_MAX + 10; i++) {
		put_span(b, 1, 5, i, 0);
		put_span(b, 1, 5, i, 0);
		CHECK(!feed(m, b));
	}
	rows = mdl_rows(m, OP, &n);
	CHECK(n == MDL_GROUPED_MAX + 1);
	for (i = 0; i < n; i++)
		total += rows[i]->count;
	CHECK(total == 2 * (MDL_GROUPED_MAX + 10));
	CHECK(calls(m, 5, 0, 0) == 20 && mdl_tally(m, OP, MXBPF_TALLY_UNGROUPED) == 20);
}

int main(void)
{
	FREED(buf_fini) struct buf b = {0};

	TEST("spans with different arguments or stacks have separate rows, also in sums and emitted records")
	test_rows(&b);
	TEST("a recording gives separate rows, both from its final tables and from its spans")
	{
		test_recording(&b, true);
		test_recording(&b, false);
	}
	TEST("spans beyond the maximum number of detailed rows are counted in the row of their name")
	test_bound(&b);
	UNIT_MAIN_END;
}
