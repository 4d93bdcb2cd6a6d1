/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which range encloses a call, by records made by hand. */

#include "feature/backward/backward.h"
#include "feature/ranges/ranges.h"
#include "records.h"

enum { OUTER = 11, INNER = 13, OP = 15, SCHEMA = 17, TID = 5 };

static void start(struct buf *b, uint64_t name, uint64_t ns, uint32_t tid, uint16_t depth)
{
	const struct mxbpf_range r = {.h = {MXBPF_RANGE, sizeof(r), 77, ns},
				      .name_id = name,
				      .tid = tid,
				      .cls = MXBPF_CLASS_EVENT,
				      .depth = depth};

	buf_put(b, &r, sizeof(r));
}

static void span(struct buf *b, uint64_t name, uint64_t from, uint64_t to, uint32_t tid)
{
	const struct mxbpf_span s = {.h = {MXBPF_SPAN, MXBPF_WITH_COST(MXBPF_SPAN_BYTES_PLAIN), 77, from},
				     .dur_ns = to - from,
				     .self_ns = to - from,
				     .name_id = name,
				     .tid = tid,
				     .end_tid = tid,
				     .cls = name == OP ? MXBPF_CLASS_OPERATOR : MXBPF_CLASS_EVENT,
				     .flags = name == OP ? 0 : MXBPF_SPAN_USER};

	buf_put(b, &s, s.h.size);
}

/* Returns the number of calls in the row of a name and a range; range 0: in no range. */
static uint64_t calls(struct mdl *m, unsigned cls, uint64_t name, uint64_t range)
{
	size_t n, i;
	const int err = mdl_settle(m);
	const struct mdl_row *const *rows = mdl_rows(m, cls, &n);
	uint64_t sum = 0;

	CHECK(!err);
	for (i = 0; i < n; i++)
		if (rows[i]->name_id == name && rows[i]->range_id == range)
			sum += rows[i]->count;
	return sum;
}

static struct mdl *model(void)
{
	struct mdl *m = mdl_new();

	mdl_tell_ranges(m);
	return m;
}

static void test_innermost(void)
{
	FREED(model_freed) struct mdl *m = model();
	FREED(buf_fini) struct buf b = {0};

	TEST("a call is in the innermost range of its thread that is open from its start to its end")
	{
		span(&b, OP, 50, 60, TID);
		start(&b, OUTER, 100, TID, 0);
		span(&b, OP, 110, 120, TID);
		start(&b, INNER, 130, TID, 1);
		span(&b, OP, 140, 150, TID);
		span(&b, OP, 140, 150, TID + 1);
		span(&b, INNER, 130, 160, TID);
		span(&b, OP, 170, 180, TID);
		span(&b, OUTER, 100, 200, TID);
		span(&b, OP, 210, 220, TID);
		CHECK(!feed(m, &b));
		CHECK(calls(m, MXBPF_CLASS_OPERATOR, OP, 0) == 3);
		CHECK(calls(m, MXBPF_CLASS_OPERATOR, OP, OUTER) == 2);
		CHECK(calls(m, MXBPF_CLASS_OPERATOR, OP, INNER) == 1);
		CHECK(calls(m, MXBPF_CLASS_EVENT, INNER, OUTER) == 1 && calls(m, MXBPF_CLASS_EVENT, OUTER, 0) == 1);
	}
	TEST("calls and ranges of another source that come late find the ranges of their time")
	{
		span(&b, OP, 145, 146, TID);
		span(&b, OP, 116, 117, TID); /* it waits for the range, which comes behind it */
		start(&b, INNER, 114, TID, MXBPF_RANGE_APART);
		span(&b, INNER, 114, 118, TID);
		span(&b, OP, 115, 116, TID);
		span(&b, OP, 119, 120, TID);
		CHECK(!feed(m, &b));
		CHECK(calls(m, MXBPF_CLASS_OPERATOR, OP, INNER) == 4 && calls(m, MXBPF_CLASS_OPERATOR, OP, OUTER) == 3);
	}
}

static void test_unbalanced(void)
{
	FREED(model_freed) struct mdl *m = model();
	FREED(buf_fini) struct buf b = {0};
	unsigned i;

	TEST("a range whose end was not seen is over at the next push at its depth")
	{
		start(&b, OUTER, 100, TID, 0);
		start(&b, INNER, 200, TID, 0);
		span(&b, INNER, 200, 300, TID);
		span(&b, OP, 310, 320, TID);
		CHECK(!feed(m, &b));
		CHECK(calls(m, MXBPF_CLASS_OPERATOR, OP, 0) == 1);
	}
	TEST("ranges beyond the limit are forgotten, but not those that are open")
	{
		start(&b, OUTER, 1000, TID, 0);
		for (i = 0; i < 20000; i++) {
			start(&b, INNER, 2000 + 10 * i, TID, 1);
			span(&b, INNER, 2000 + 10 * i, 2005 + 10 * i, TID);
		}
		span(&b, OP, 300000, 300001, TID);
		CHECK(!feed(m, &b));
		CHECK(calls(m, MXBPF_CLASS_OPERATOR, OP, OUTER) == 1);
		CHECK(calls(m, MXBPF_CLASS_EVENT, INNER, OUTER) == 20000);
	}
}

static void test_values(void)
{
	struct mxbpf_range r = {.h = {MXBPF_RANGE, sizeof(r), 77, 100},
				.name_id = OUTER,
				.schema_id = SCHEMA,
				.tid = TID,
				.data = {.values = {7, 4096, 2}, .nvalues = 3}};
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};
	uint64_t v = 0;

	TEST("a number of a payload is found by its name, of a range that is found by its span")
	{
		const struct mxbpf_span s = {
			.h = {MXBPF_SPAN, sizeof(s), 77, 100}, .dur_ns = 5, .tid = TID, .flags = MXBPF_SPAN_USER};
		const struct mxbpf_range *at;

		put_name(&b, SCHEMA, MXBPF_NAME_SPAN, "u comm\nu Message size [bytes]\ne op\t0=Sum\t2=Max");
		buf_put(&b, &r, sizeof(r));
		CHECK(!feed(m, &b));
		at = ranges_start(m, &s);
		CHECK(at && at->name_id == OUTER && ranges_around(m, 77, TID, 101, 102) == at);
		CHECK(at && ranges_value(m, at, "Message size [bytes]", &v) && v == 4096);
		CHECK(at && ranges_value(m, at, "op", &v) && v == 2 && !ranges_value(m, at, "o", &v));
		r.data.nvalues = 2; /* a target that lies */
		CHECK(!ranges_value(m, &r, "op", &v));
	}
}

/* A range of emit_nvtx() with a number in its name. */
static void emitted(struct buf *b, uint64_t name, uint64_t ns, uint64_t seq)
{
	const struct mxbpf_range r = {.h = {MXBPF_RANGE, sizeof(r), 77, ns},
				      .name_id = name,
				      .tid = TID,
				      .cls = MXBPF_CLASS_EVENT,
				      .data = {.values = {seq}, .nvalues = 1, .type = MXBPF_RANGE_SEQ}};

	buf_put(b, &r, sizeof(r));
	span(b, name, ns, ns + 10, TID);
}

static void test_numbers(void)
{
	struct mxbpf_span op = {.h = {MXBPF_SPAN, sizeof(op), 77, 500},
				.dur_ns = 1,
				.name_id = OP,
				.tid = TID,
				.cls = MXBPF_CLASS_OPERATOR,
				.seq = MXBPF_SEQ(1, 9),
				.flags = MXBPF_SPAN_SEQ};
	const struct tbl *joins;
	const struct backward_row *j;
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};

	put_name(&b, OUTER, MXBPF_NAME_SPAN, "aten::mm");
	put_name(&b, INNER, MXBPF_NAME_SPAN, "MmBackward0");
	put_name(&b, SCHEMA, MXBPF_NAME_SPAN, "autograd::engine::evaluate_function: MmBackward0");
	TEST("ranges of emit_nvtx join nodes with their operators, and those of the engine and without number do not")
	{
		emitted(&b, OUTER, 100, 0);
		emitted(&b, OUTER, 120, 1);
		emitted(&b, SCHEMA, 140, 1);
		emitted(&b, INNER, 150, 1);
		emitted(&b, INNER, 170, 0);
		emitted(&b, OUTER, 190, UINT64_MAX);
		CHECK(!feed(m, &b));
		joins = mdl_table_of(m, &feature_backward, &backward_table);
		j = tbl_at(joins, 0);
		CHECK(tbl_count(joins) == 1 && j->name_id == OUTER && j->count == 2 && j->bwd_count == 2);
		CHECK(tbl_count(joins) == 1 && j->total_ns == 20 && j->bwd_total_ns == 20);
	}
	TEST("if operators have numbers themselves, ranges with numbers are not joined again")
	{
		buf_put(&b, &op, sizeof(op));
		emitted(&b, OUTER, 600, 7);
		emitted(&b, INNER, 620, 7);
		CHECK(!feed(m, &b));
		joins = mdl_table_of(m, &feature_backward, &backward_table);
		j = tbl_at(joins, 0);
		CHECK(tbl_count(joins) == 1 && j->count == 2 && j->bwd_count == 2);
	}
}

int main(void)
{
	test_numbers();
	test_innermost();
	test_unbalanced();
	test_values();
	UNIT_MAIN_END;
}
