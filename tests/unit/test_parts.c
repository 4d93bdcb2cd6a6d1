// SPDX-License-Identifier: Apache-2.0
/* Tests into which parts the time of iterations goes, without a target. Times are in us. */
#include "feature/steps/steps.h"
#include "records.h"

#define TGID  77
#define LOOP  77 /* the thread that runs the iterations */
#define OTHER 78
#define THIRD 79
#define TOTAL 10000 /* duration of the iteration that is judged */

enum { NONE, STEP, MM, EXCHANGE, STORE, PASS };

static struct mdl *model;

static void span(uint64_t name_id, uint32_t tid, uint64_t start, uint64_t dur, uint8_t flags)
{
	struct mxbpf_span s = {
		.h = {.kind = MXBPF_SPAN, .size = sizeof(s), .tgid = TGID, .ts_ns = (TOTAL + start) * 1000},
		.dur_ns = dur * 1000,
		.name_id = name_id,
		.tid = tid,
		.end_tid = tid,
		.cls = MXBPF_CLASS_OPERATOR,
		.flags = flags,
	};

	CHECK(!mdl_fold(model, &s.h));
}

/* Begins a model in which an iteration begins at 0, and frees the one before. */
static void begin(void)
{
	struct buf b = {0};

	mdl_free(model);
	model = mdl_new();
	put_name(&b, STEP, MXBPF_NAME_SPAN, "Optimizer.step#SGD.step");
	put_name(&b, MM, MXBPF_NAME_SPAN, "aten::mm");
	put_name(&b, EXCHANGE, MXBPF_NAME_SPAN, "gloo:all_reduce");
	put_name(&b, STORE, MXBPF_NAME_SPAN, "KVStoreDistDefaultPush");
	put_name(&b, PASS, MXBPF_NAME_SPAN, "autograd::engine::evaluate_function: MmBackward0");
	CHECK(!feed(model, &b));
	span(STEP, LOOP, -10ull, 10, MXBPF_SPAN_USER);
}

/* Ends the iteration at TOTAL. Returns it. */
static const struct mxbpf_iteration *end(void)
{
	const struct mxbpf_iteration *it;
	size_t n;

	span(STEP, LOOP, TOTAL - 10, 10, MXBPF_SPAN_USER);
	CHECK(!mdl_fold_end(model));
	it = steps_iterations(model, &n);
	CHECK(n == 1 && it->dur_ns == TOTAL * 1000 && it->flags & MXBPF_ITERATION_PARTS);
	return it;
}

static bool are(const struct mxbpf_iteration *it, uint64_t wait, uint64_t kvstore, uint64_t own, uint64_t outside)
{
	const uint64_t want[MXBPF_STEP_PARTS] = {[MXBPF_PART_WAIT] = wait,
						 [MXBPF_PART_KVSTORE] = kvstore,
						 [MXBPF_PART_OPERATOR] = own,
						 [MXBPF_PART_OUTSIDE] = outside};
	unsigned i;

	for (i = 0; i < MXBPF_STEP_PARTS; i++)
		if (it->part_ns[i] != want[i] * 1000) {
			printf("# part %u: %llu us, not %llu\n", i, (unsigned long long)it->part_ns[i] / 1000,
			       (unsigned long long)want[i]);
			return false;
		}
	return true;
}

static void test_exchanges(void)
{
	const uint8_t async = MXBPF_SPAN_USER | MXBPF_SPAN_ASYNC;

	TEST("a thread that goes on when an exchange with other processes has ended has waited for it")
	{
		begin();
		span(MM, LOOP, 0, 1000, 0);
		span(EXCHANGE, LOOP, 900, 7000, async); /* until 7900 */
		span(MM, LOOP, 8000, 1000, 0);
		CHECK(are(end(), 0, 6900, 2000, 1100));
	}
	TEST("a thread that is woken before the end of the exchange is recorded has waited for it")
	{
		begin();
		span(MM, LOOP, 0, 1000, 0);
		span(MM, LOOP, 8000, 10, 0);
		span(MM, LOOP, 8020, 980, 0);
		span(EXCHANGE, LOOP, 900, 7500, async); /* until 8400 */
		CHECK(are(end(), 0, 7000, 1990, 1010));
	}
	TEST("a program that computes beside an exchange does not wait for it")
	{
		begin();
		span(MM, LOOP, 0, 1000, 0);
		span(EXCHANGE, LOOP, 900, 2000, async); /* until 2900 */
		span(MM, LOOP, 8000, 1000, 0);
		CHECK(are(end(), 0, 0, 2000, 8000));
		begin();
		span(MM, LOOP, 0, 1000, 0);
		span(MM, LOOP, 3000, 1000, 0);
		span(MM, LOOP, 6000, 3000, 0);
		span(EXCHANGE, LOOP, 900, 7500, async); /* until 8400, within an operator */
		CHECK(are(end(), 0, 0, 5000, 5000));
	}
	TEST("the last of several exchanges ends the wait for all of them")
	{
		begin();
		span(MM, LOOP, 0, 1000, 0);
		span(EXCHANGE, LOOP, 500, 2500, async);
		span(EXCHANGE, LOOP, 900, 5100, async);
		span(EXCHANGE, LOOP, 950, 7000, async); /* until 7950 */
		span(MM, LOOP, 8000, 1000, 0);
		CHECK(are(end(), 0, 6950, 2000, 1050));
	}
	TEST("an exchange on the thread itself is an exchange, and an operator that exchanges counts as running")
	{
		begin();
		span(STORE, LOOP, 1000, 5000, 0);
		CHECK(end()->busy_ns == 5000 * 1000ull && are(end(), 0, 5000, 0, 5000));
	}
}

static void test_passes(void)
{
	TEST("a thread that goes on when a backward pass on another thread has ended has waited for it")
	{
		begin();
		span(MM, LOOP, 0, 1000, 0);
		span(PASS, OTHER, 1100, 2000, 0);
		span(PASS, OTHER, 3200, 4700, 0); /* until 7900 */
		span(MM, LOOP, 8000, 1000, 0);
		CHECK(are(end(), 6800, 0, 2000, 1200));
	}
	TEST("a thread that computes beside a backward pass of another thread does not wait for it")
	{
		begin();
		span(MM, LOOP, 2000, 1000, 0);
		span(PASS, OTHER, 1000, 7000, 0);
		span(MM, LOOP, 8000, 1000, 0);
		CHECK(are(end(), 0, 0, 2000, 8000));
	}
	TEST("an exchange after the backward pass on another thread is an exchange")
	{
		begin();
		span(MM, LOOP, 0, 1000, 0);
		span(PASS, OTHER, 1100, 2900, 0);
		span(EXCHANGE, OTHER, 2000, 5900, MXBPF_SPAN_USER | MXBPF_SPAN_ASYNC); /* until 7900 */
		span(MM, LOOP, 8000, 1000, 0);
		CHECK(are(end(), 2900, 3900, 2000, 1200));
	}
}

/* Iterations of TOTAL from number `from` to number `to`, with backward passes or, as with --max-overhead, without. */
static void iterations(uint64_t from, uint64_t to, bool passes)
{
	uint64_t i;

	for (i = from; i < to; i++) {
		if (passes)
			span(PASS, LOOP, i * TOTAL + 1000, 2000, 0);
		span(STEP, LOOP, i * TOTAL + 9000, 10, MXBPF_SPAN_USER);
	}
	CHECK(!mdl_fold_end(model));
}

static void lose(uint64_t from_us, uint64_t to_us, uint32_t flags)
{
	const struct mxbpf_lost r = {.h = {.kind = MXBPF_LOST, .size = sizeof(r), .ts_ns = (TOTAL + from_us) * 1000},
				     .to_ns = (TOTAL + to_us) * 1000,
				     .lost = 100,
				     .flags = flags};

	CHECK(!mdl_fold(model, &r.h));
}

static void test_lost(void)
{
	const struct mxbpf_iteration *it;
	size_t n, i, nlost = 0, long_ones = 0;

	TEST("an iteration with lost calls keeps its duration and has no parts, and the next one is not longer")
	{
		begin();
		iterations(0, 10, true);
		lose(10 * TOTAL + 2000, 12 * TOTAL + 4000, 0);
		iterations(10, 20, true);
		it = steps_iterations(model, &n);
		CHECK(n == 20);
		for (i = 0; i < n; i++) {
			CHECK(i == 0 || it[i].dur_ns == TOTAL * 1000);
			CHECK(!!(it[i].flags & MXBPF_ITERATION_LOST) == (i >= 10 && i <= 12));
			CHECK(!!(it[i].flags & MXBPF_ITERATION_PARTS) != (i >= 10 && i <= 12));
		}
	}
	TEST("where ends of iterations are lost, no iteration is made of two")
	{
		begin();
		iterations(0, 10, true);
		lose(10 * TOTAL + 2000, 12 * TOTAL + 4000, MXBPF_LOST_ENDS);
		iterations(12, 20, true); /* two ends and what is between are lost */
		it = steps_iterations(model, &n);
		CHECK(n >= 16);
		for (i = 0; i < n; i++) {
			long_ones += it[i].dur_ns > TOTAL * 1000;
			nlost += !!(it[i].flags & MXBPF_ITERATION_LOST);
		}
		CHECK(!long_ones && nlost == 1); /* the first one after it: what memory is alive may be wrong */
	}
}

static void test_unseen_passes(void)
{
	const struct mxbpf_iteration *it;
	size_t n, i, before;

	TEST("iterations are found again after backward passes are not seen any more, and none is longer than it was")
	{
		begin();
		iterations(0, 10, true);
		steps_iterations(model, &before);
		CHECK(before >= 9);
		iterations(10, 100, false);
		it = steps_iterations(model, &n);
		CHECK(n >= before + 50 && n < before + 90);
		for (i = 0; i < n; i++)
			CHECK(it[i].dur_ns <= TOTAL * 1000);
		iterations(100, 110, true);
		steps_iterations(model, &before);
		CHECK(before >= n + 9 && before <= n + 10);
	}
}

static void test_loops(void)
{
	const struct mxbpf_iteration *it;
	size_t n, i, of[2] = {0};

	TEST("two threads with optimizers of one class are two loops, and threads that end no iterations work for both")
	{
		begin();
		/* LOOP: each 10000, from -10 on; OTHER: each 3000. Both have passes of their own. */
		for (i = 0; i < 4; i++) {
			span(MM, THIRD, i * 10000 + 500, 1000, 0);
			span(PASS, LOOP, i * 10000 + 5000, 10, 0);
			span(STEP, LOOP, i * 10000 + 9990, 10, MXBPF_SPAN_USER);
		}
		for (i = 0; i < 13; i++) {
			span(PASS, OTHER, i * 3000 + 1000, 10, 0);
			span(STEP, OTHER, i * 3000 + 2990, 10, MXBPF_SPAN_USER);
		}
		CHECK(!mdl_fold_end(model));
		it = steps_iterations(model, &n);
		CHECK(n == 4 + 12);
		for (i = 0; i < n; i++) {
			CHECK(it[i].tid == LOOP ? it[i].dur_ns == 10000 * 1000 : it[i].dur_ns == 3000 * 1000);
			CHECK(it[i].nr == of[it[i].tid == OTHER]++);
			CHECK(it[i].tid == OTHER || it[i].busy_ns == 1010 * 1000);
		}
		CHECK(of[0] == 4 && of[1] == 12);
	}
	TEST("backward passes on a thread without iterations do not make it a loop")
	{
		begin();
		for (i = 0; i < 4; i++) {
			span(PASS, THIRD, i * 10000 + 5000, 10, 0);
			span(STEP, LOOP, i * 10000 + 9990, 10, MXBPF_SPAN_USER);
		}
		CHECK(!mdl_fold_end(model));
		it = steps_iterations(model, &n);
		CHECK(n == 4);
		for (i = 0; i < n; i++)
			CHECK(it[i].tid == LOOP && it[i].dur_ns == 10000 * 1000);
	}
}

/* The model borrows the records of a batch until its end. */
static void memory(uint64_t at, int64_t bytes)
{
	static struct mxbpf_alloc records[128];
	static size_t n;
	struct mxbpf_alloc *a = &records[n++ % 128];

	*a = (struct mxbpf_alloc){
		.h = {.kind = MXBPF_ALLOC, .size = MXBPF_ALLOC_BYTES_PLAIN, .tgid = TGID, .ts_ns = (TOTAL + at) * 1000},
		.bytes = bytes,
		.tid = LOOP,
		.device = 1 << 16,
	};
	CHECK(!mdl_fold(model, &a->h));
}

static void test_memory(void)
{
	const struct mxbpf_iteration *it;
	size_t n, i, batch, wrong = 0;

	TEST("live memory is that at the end of an iteration, wherever batches of records begin and end")
	{
		for (batch = 1; batch < 8; batch++) {
			begin();
			for (i = 0; i < 40; i++) {
				memory(i * TOTAL + 2000, 4096);
				span(PASS, LOOP, i * TOTAL + 3000, 2000, 0);
				memory(i * TOTAL + 6000, -4000);
				span(STEP, LOOP, i * TOTAL + TOTAL - 10, 10, MXBPF_SPAN_USER);
				memory(i * TOTAL + TOTAL + 500, -96);
				if (i % batch == 0)
					CHECK(!mdl_fold_end(model));
			}
			CHECK(!mdl_fold_end(model));
			it = steps_iterations(model, &n);
			CHECK(n == 40);
			for (i = 0; i < n; i++)
				wrong += it[i].live_bytes != 96;
		}
		CHECK(!wrong);
	}
}

int main(void)
{
	test_lost();
	test_loops();
	test_memory();
	test_unseen_passes();
	test_exchanges();
	test_passes();
	mdl_free(model);
	return unit_end();
}
