// SPDX-License-Identifier: Apache-2.0
/* Tests what rows of calls in slices are estimated to be, with made-up slices of known numbers. */
#include "feature/cost/cost.h"
#include "feature/steps/steps.h"
#include "records.h"

#define OP	 MXBPF_CLASS_OPERATOR
#define ADD	 3
#define EXCHANGE 5
#define START_NS 1000000
#define SLICE_NS 1000

static void put_calls(struct buf *b, uint32_t tgid, uint64_t name_id, unsigned n, uint64_t each_ns)
{
	const struct mxbpf_span s = {
		.h = {MXBPF_SPAN, MXBPF_SPAN_BYTES_PLAIN, tgid, START_NS},
		.dur_ns = each_ns,
		.self_ns = each_ns,
		.alloc_bytes = -8,
		.name_id = name_id,
		.cls = OP,
		.tid = tgid,
		.end_tid = tgid,
	};

	while (n--)
		buf_put(b, &s, MXBPF_SPAN_BYTES_PLAIN);
}

/* Two iterations in a slice, which stands for 20. end_ns: of the slice, from the start of the window. */
static void put_slice(struct buf *b, uint32_t tgid, uint64_t end_ns, uint64_t iterations)
{
	const struct mxbpf_slice_part s = {
		.h = {MXBPF_SLICE, sizeof(s), tgid, START_NS + end_ns - SLICE_NS},
		.slices = 1,
		.slice_ns = SLICE_NS,
		.seen_ns = SLICE_NS,
		.all_ns = 10000,
		.seen_iterations = iterations,
		.all_iterations = 10 * iterations,
		.marks_ns = 10000,
		.marks_iterations = 10 * iterations,
	};

	buf_put(b, &s, sizeof(s));
}

static void put_partial(struct buf *b, uint64_t name_id, unsigned cls, unsigned flags)
{
	const struct mxbpf_partial p = {
		.h = {MXBPF_PARTIAL, sizeof(p), 0, 0},
		.name_id = name_id,
		.cls = (uint8_t)cls,
		.flags = (uint8_t)(MXBPF_PARTIAL_SLICED | flags),
	};

	buf_put(b, &p, sizeof(p));
}

/* One slice has 4 calls of 1 us, the other 8 of 0.5 us. Exchanges are recorded between slices, too. */
static void put_process(struct buf *b, uint32_t tgid, uint64_t iterations)
{
	put_calls(b, tgid, ADD, 4, 1000);
	put_calls(b, tgid, EXCHANGE, 20, 100);
	put_slice(b, tgid, 10000, iterations);
	put_calls(b, tgid, ADD, 8, 500);
	put_calls(b, tgid, EXCHANGE, 20, 100);
	put_slice(b, tgid, 20000, iterations);
}

static struct mdl *model(unsigned processes, uint64_t iterations)
{
	struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};
	unsigned i;

	put_name(&b, ADD, MXBPF_NAME_SPAN, "add");
	put_name(&b, EXCHANGE, MXBPF_NAME_SPAN, "exchange");
	put_partial(&b, EXCHANGE, OP, MXBPF_PARTIAL_LITTLE);
	put_partial(&b, 0, OP, 0);
	put_partial(&b, 0, MXBPF_CLASS_STEP, MXBPF_PARTIAL_OVER);
	for (i = 0; i < processes; i++)
		put_process(&b, 77 + i, iterations);
	CHECK(!feed(m, &b));
	return m;
}

static struct mdl_session window(uint64_t ns)
{
	return (struct mdl_session){.start_mono_ns = START_NS, .duration_ns = ns};
}

/*
 * In 4 of 40 iterations there were 12 calls, that is 3 for each; the slices differ from that by -2 and 2. So half the
 * interval is 1.96 * sqrt((4 + 4) * 2 / 1) = 7.84 calls of 12. Both slices have 4 us, so the time is exact.
 */
static void check_add(const struct mdl *m, uint32_t tgid, unsigned times)
{
	const struct mdl_row *r = mdl_row_find(m, OP, ADD, tgid, 0);

	CHECK(r && r->count == 120 * times && r->total_ns == 80000 * times && r->self_ns == 80000 * times);
	CHECK(r->estimate.count == 108 * times && r->estimate.self_ns == 72000 * times);
	CHECK(r->estimate.count_error == 78 * times && r->estimate.self_error_ns == 0);
	CHECK(r->alloc_bytes == -960 * (int64_t)times && mdl_percentile(r, 0.99) > 900);
	r = mdl_row_find(m, OP, EXCHANGE, tgid, 0);
	CHECK(r && r->count == 40 * times && !r->estimate.count && !cost_is_partial(m, r, false));
}

static void test_known(void)
{
	const struct mdl_session s = window(20000), longer = window(30000);
	struct mdl *m = model(1, 2), *copy = mdl_new();
	const struct mdl_row *r;
	struct mdl_row seen;

	TEST("a row in slices has the calls of the whole window and their error, and others have what they had")
	{
		CHECK(!mdl_copy_to(copy, m));
		CHECK(!cost_estimate(m, &s) && !cost_estimate(m, &s));
		check_add(m, 77, 1);
		CHECK(!cost_estimate(copy, &s));
		check_add(copy, 77, 1);
	}
	TEST("what was recorded is told, too")
	{
		seen = cost_recorded(mdl_row_find(m, OP, ADD, 77, 0));
		CHECK(seen.count == 12 && seen.total_ns == 8000 && seen.self_ns == 8000 && seen.alloc_bytes == -96);
		CHECK(!seen.estimate.count);
	}
	mdl_free(m);
	mdl_free(copy);
	TEST("without iterations time is what slices stand for, and the rest of the window is like the part before")
	{
		m = model(1, 0);
		CHECK(!cost_estimate(m, &longer));
		r = mdl_row_find(m, OP, ADD, 77, 0);
		CHECK(r->count == 180 && r->self_ns == 120000 && r->estimate.count_error == 118); /* 0.653 of 180 */
		CHECK(cost_slices_all(m).all_ns == 30000 && cost_slices_all(m).slices == 2);
		mdl_free(m);
	}
}

static void test_sum(void)
{
	const struct mdl_session s = window(20000);
	FREED(model_freed) struct mdl *m = model(2, 2);
	struct mdl *sum;

	TEST("a sum of processes has the sum of their estimates, and the iterations of both")
	{
		CHECK(!cost_estimate(m, &s));
		sum = mdl_sum(m);
		CHECK(sum != NULL);
		check_add(sum, 0, 2);
		CHECK(cost_slices_all(sum).all_iterations == 80 && cost_slices_all(sum).slices == 4);
		mdl_free(sum);
	}
}

static void put_iteration(struct buf *b, uint64_t from_ns, uint64_t ns)
{
	const struct mxbpf_iteration it = {
		.h = {MXBPF_ITERATION, sizeof(it), 77, START_NS + from_ns},
		.dur_ns = ns,
		.tid = 77,
		.told = MXBPF_STEP_BACKWARD,
		.flags = MXBPF_ITERATION_PARTS,
		.part_ns = {[MXBPF_PART_OUTSIDE] = ns},
	};

	buf_put(b, &it, sizeof(it));
}

static void test_parts(void)
{
	const struct mdl_session s = window(20000);
	FREED(model_freed) struct mdl *m = model(1, 2);
	const struct mxbpf_iteration *it;
	FREED(buf_fini) struct buf b = {0};
	size_t n;

	TEST("only iterations in slices have parts")
	{
		put_iteration(&b, 8500, 500);
		put_iteration(&b, 9000, 500);
		put_iteration(&b, 9500, 500);
		put_iteration(&b, 10000, 500);
		put_iteration(&b, 19500, 500);
		CHECK(!feed(m, &b) && !cost_estimate(m, &s));
		it = steps_iterations(m, &n);
		CHECK(n == 5 && !it[0].flags && it[1].flags && it[2].flags && !it[3].flags && it[4].flags);
	}
}

int main(void)
{
	test_known();
	test_sum();
	test_parts();
	UNIT_MAIN_END;
}
