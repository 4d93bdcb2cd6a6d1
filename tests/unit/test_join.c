// SPDX-License-Identifier: Apache-2.0
/* Tests how backward nodes are joined to the forward operators that made them. */
#include "feature/backward/backward.h"
#include "model/model.h"

#include "unit.h"

#define OP     MXBPF_CLASS_OPERATOR
#define SEQ(n) MXBPF_SEQ(1, n)

/* Ids of names. */
enum { CONV = 11, CONVOLUTION = 13, MUL = 15, CONV_BACKWARD = 17, MUL_BACKWARD = 19 };

struct call {
	uint64_t name_id, start_ns, dur_ns, seq, origin;
	bool backward;
	uint64_t stack_id;
	uint32_t tgid; /* 0 means 77 */
};

static void feed(struct mdl *m, const struct call *c)
{
	struct mxbpf_span s = {
		.h = {MXBPF_SPAN, sizeof(s), c->tgid ? c->tgid : 77, c->start_ns},
		.dur_ns = c->dur_ns,
		.name_id = c->name_id,
		.cls = OP,
		.flags = (uint8_t)(MXBPF_SPAN_SEQ | (c->backward ? MXBPF_SPAN_BACKWARD : 0)),
		.stack_id = c->stack_id,
		.seq = c->seq,
		.origin = c->origin,
	};

	CHECK(!mdl_feed(m, &s, sizeof(s)));
}

static size_t njoins(struct mdl *m)
{
	const struct tbl *joins = mdl_table_of(m, &feature_backward, &backward_table);

	return joins ? tbl_count(joins) : 0;
}

static struct backward_row of(struct mdl *m, uint64_t name_id, uint32_t tgid)
{
	const struct tbl *joins = mdl_table_of(m, &feature_backward, &backward_table);
	const struct backward_row *j;
	size_t i;

	for (i = 0; i < njoins(m); i++) {
		j = tbl_at(joins, i);
		if (j->name_id == name_id && j->tgid == tgid)
			return *j;
	}
	return (struct backward_row){0};
}

/* conv2d { convolution } makes node 48, which runs twice; mul makes node 49, which never runs. */
static void forward_and_backward(struct mdl *m, uint32_t tgid, uint64_t at_ns)
{
	feed(m, &(struct call){CONVOLUTION, at_ns + 10, 30, SEQ(48), 0, false, 0, tgid});
	feed(m, &(struct call){CONV, at_ns, 50, SEQ(48), 0, false, 0, tgid});
	feed(m, &(struct call){MUL, at_ns + 60, 5, SEQ(49), 0, false, 0, tgid});
	feed(m, &(struct call){CONV_BACKWARD, at_ns + 100, 70, SEQ(48), 0, true, 0, tgid});
	feed(m, &(struct call){CONV_BACKWARD, at_ns + 200, 80, SEQ(48), 0, true, 0, tgid});
}

static void check_one(struct mdl *m, uint32_t tgid, uint64_t times)
{
	struct backward_row j = of(m, CONVOLUTION, tgid);

	CHECK(njoins(m) == 1 && j.count == times && j.total_ns == 30 * times && j.bwd_count == 2 * times &&
	      j.bwd_total_ns == 150 * times && !j.deep_count);
}

static void test_innermost(void)
{
	struct mdl *m = mdl_new(), *again = mdl_new(), *sum;
	FREED(buf_fini) struct buf recs = {0};

	forward_and_backward(m, 77, 1000);
	check_one(m, 77, 1);
	CHECK(!mdl_emit(m, &recs) && !mdl_feed(again, recs.data, recs.len));
	check_one(again, 77, 1);
	CHECK(!mdl_feed(again, recs.data, recs.len));
	check_one(again, 77, 2);
	forward_and_backward(m, 78, 1000);
	CHECK(njoins(m) == 2);
	sum = mdl_sum(m);
	check_one(sum, 0, 2);
	mdl_free(m);
	mdl_free(again);
	mdl_free(sum);
}

/*
 * mul makes node 48. While 48 runs with create_graph, conv makes 49. 49 runs: a second derivative, in which 51 is made
 * and runs: a third one.
 */
static void test_deep(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	struct backward_row j;

	feed(m, &(struct call){MUL, 1000, 10, SEQ(48), 0, false, 7, 0});
	feed(m, &(struct call){CONV, 2010, 10, SEQ(49), SEQ(48), false, 8, 0});
	feed(m, &(struct call){MUL_BACKWARD, 2000, 100, SEQ(48), 0, true, 8, 0});
	feed(m, &(struct call){CONVOLUTION, 3010, 10, SEQ(51), SEQ(49), false, 9, 0});
	feed(m, &(struct call){CONV_BACKWARD, 3000, 200, SEQ(49), 0, true, 9, 0});
	feed(m, &(struct call){CONV_BACKWARD, 4000, 400, SEQ(51), 0, true, 9, 0});
	j = of(m, MUL, 77);
	CHECK(njoins(m) == 1 && j.count == 1 && j.total_ns == 10 && j.bwd_count == 1 && j.bwd_total_ns == 100 &&
	      j.deep_count == 2 && j.deep_total_ns == 600);
	CHECK(!mdl_tally(m, OP, MXBPF_TALLY_UNJOINED));
}

/* torch, too, shows backward calls of any order with the stack of the forward operator. */
static void test_stacks(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct mdl_row *const *rows;
	size_t n, i;

	feed(m, &(struct call){MUL, 1000, 10, SEQ(48), 0, false, 7, 0});
	feed(m, &(struct call){CONV, 2010, 10, SEQ(49), SEQ(48), false, 8, 0});
	feed(m, &(struct call){MUL_BACKWARD, 2000, 100, SEQ(48), 0, true, 8, 0});
	feed(m, &(struct call){CONV_BACKWARD, 3000, 200, SEQ(49), 0, true, 9, 0});
	feed(m, &(struct call){CONV_BACKWARD, 3000, 200, SEQ(60), 0, true, 7, 0});
	rows = mdl_rows(m, OP, &n);
	CHECK(n == 4);
	for (i = 0; i < n; i++)
		CHECK(rows[i]->stack_id == 7);
}

static void test_unknown(void)
{
	struct mdl *m = mdl_new(), *next = mdl_new();
	uint64_t i;

	feed(m, &(struct call){MUL_BACKWARD, 100, 5, SEQ(3), 0, true, 0, 0});
	CHECK(of(m, MUL_BACKWARD, 77).bwd_count == 1 && !of(m, MUL_BACKWARD, 77).count);
	CHECK(mdl_tally(m, OP, MXBPF_TALLY_UNJOINED) == 1);
	feed(m, &(struct call){MUL, 150, 5, SEQ(4), SEQ(3), false, 0, 0});
	feed(m, &(struct call){CONV_BACKWARD, 200, 7, SEQ(4), 0, true, 0, 0});
	CHECK(of(m, MUL_BACKWARD, 77).deep_total_ns == 7 && njoins(m) == 1);
	for (i = 0; i <= BACKWARD_MAKERS_MAX; i++)
		feed(m, &(struct call){MUL, 1000 + 10 * i, 10, SEQ(1000 + i), 0, false, 0, 0});
	feed(m, &(struct call){MUL_BACKWARD, 100, 5, SEQ(1000), 0, true, 0, 0});
	CHECK(!of(m, MUL, 77).count && mdl_tally(m, OP, MXBPF_TALLY_UNJOINED) == 3);
	feed(m, &(struct call){MUL_BACKWARD, 100, 5, SEQ(1002), 0, true, 0, 0});
	feed(m, &(struct call){MUL_BACKWARD, 100, 5, SEQ(1000) + BACKWARD_MAKERS_MAX, 0, true, 0, 0});
	feed(m, &(struct call){MUL_BACKWARD, 100, 5, SEQ(1002), 0, true, 0, 78});
	CHECK(of(m, MUL, 77).bwd_count == 2 && mdl_tally(m, OP, MXBPF_TALLY_UNJOINED) == 4);
	CHECK(!mdl_move(next, m, 0));
	feed(next, &(struct call){MUL_BACKWARD, 100, 5, SEQ(1003), 0, true, 0, 0});
	CHECK(of(next, MUL, 77).bwd_count == 1 && !mdl_tally(next, OP, MXBPF_TALLY_UNJOINED));
	mdl_free(next);
	mdl_free(m);
}

/* A hostile file may claim that nodes make each other. */
static void test_circle(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();

	feed(m, &(struct call){MUL, 1000, 10, SEQ(48), SEQ(49), false, 0, 0});
	feed(m, &(struct call){MUL, 1000, 10, SEQ(49), SEQ(48), false, 0, 0});
	feed(m, &(struct call){MUL_BACKWARD, 2000, 10, SEQ(48), 0, true, 0, 0});
	CHECK(of(m, MUL_BACKWARD, 77).bwd_count == 1 && mdl_tally(m, OP, MXBPF_TALLY_UNJOINED) == 1);
}

int main(void)
{
	TEST("a node belongs to the innermost operator that made it, also in sums and emitted records")
	test_innermost();
	TEST("nodes made inside a backward node count as deeper nodes of the first forward operator")
	test_deep();
	TEST("a call in the backward pass has the stack of its forward operator")
	test_stacks();
	TEST("the number of remembered operators is limited and survives interval tables, and other nodes are counted")
	test_unknown();
	TEST("nodes that claim to have made each other cause no endless loop")
	test_circle();
	UNIT_MAIN_END;
}
