// SPDX-License-Identifier: Apache-2.0
/* Tests how the profiling overhead is taken out of rows and iterations, with made-up records. */

#include "attach/costs.h"
#include "feature/cost/cost.h"
#include "feature/cost/load_agent.h"
#include "feature/steps/parts.h"
#include "feature/steps/steps.h"
#include "records.h"
#include "source/agent_cost.h"

#define OP    MXBPF_CLASS_OPERATOR
#define UNITS (1000 / MXBPF_COST_UNIT_NS) /* of a cost of 1 us */

static const struct mdl_session session = {.duration_ns = 1000000, .cost = {.scale = 1000, .thread_ns = 200000}};

static void put_span(struct buf *b, uint64_t name_id, uint64_t us, uint64_t self_us, uint32_t cost_us,
		     uint32_t self_cost_us)
{
	struct mxbpf_span s = {
		.h = {MXBPF_SPAN, MXBPF_SPAN_BYTES_PLAIN, 77, 1000},
		.dur_ns = us * 1000,
		.self_ns = self_us * 1000,
		.name_id = name_id,
		.cls = OP,
		.tid = 5,
		.end_tid = 5,
	};
	const struct mxbpf_span_cost cost = {.all = cost_us * UNITS, .self = self_cost_us * UNITS};

	s.h.size = MXBPF_WITH_COST(MXBPF_SPAN_BYTES_PLAIN);
	buf_put(b, &s, MXBPF_SPAN_BYTES_PLAIN);
	buf_put(b, &cost, sizeof(cost));
}

/* A hundred calls of `outer`, each with two of `inner`, and one of `outer` that waits long. */
static struct mdl *model(void)
{
	struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};
	int i;

	put_name(&b, 3, MXBPF_NAME_SPAN, "outer");
	put_name(&b, 5, MXBPF_NAME_SPAN, "inner");
	for (i = 0; i < 100; i++) {
		put_span(&b, 5, 3, 3, 1, 1);
		put_span(&b, 5, 3, 3, 1, 1);
		put_span(&b, 3, 12, 6, 6, 4);
	}
	put_span(&b, 3, 5000, 5000, 6, 6);
	CHECK(!feed(m, &b));
	return m;
}

static bool near(uint64_t ns, uint64_t us)
{
	return ns + us * 30 > us * 1000 && ns < us * 1030; /* units of 16 ns are not exact */
}

static const struct mdl_row *row(struct mdl *m, uint64_t name_id)
{
	return mdl_row_find(m, OP, name_id, 77, 0);
}

/* Returns whether the numbers of a row can be those of real calls. */
static bool can_be(const struct mdl_row *r)
{
	const uint64_t avg = mdl_row_avg(r), p50 = mdl_percentile(r, 0.5), p99 = mdl_percentile(r, 0.99);

	return r->min_ns <= p50 && p50 <= p99 && p99 <= r->max_ns && r->min_ns <= avg && avg <= r->max_ns &&
	       r->max_ns <= r->total_ns && r->self_ns <= r->total_ns &&
	       r->account.runq_ns + r->account.blocked_ns <= r->total_ns &&
	       r->account.nested_runq_ns <= r->account.runq_ns;
}

static void test_rows(void)
{
	FREED(model_freed) struct mdl *m = model();
	struct mdl *copy = mdl_new();
	struct mdl_session unknown = session, large = session;
	FREED(buf_fini) struct buf recs = {0};

	TEST("the cost is taken out of the times of rows once, and the times with it are kept")
	{
		CHECK(!cost_take(m, &session) && !cost_take(m, &session));
		CHECK(near(row(m, 5)->total_ns, 400) && row(m, 5)->raw_total_ns == 600000);
		CHECK(near(row(m, 3)->self_ns, 600 - 400 + 5000 - 6) && row(m, 3)->raw_self_ns == 5600000);
		CHECK(near(row(m, 3)->total_ns, 600 + 5000 - 6));
	}
	TEST("a call that waits long keeps its duration but for the cost of a call, and percentiles move with the "
	     "calls")
	{
		CHECK(near(row(m, 3)->max_ns, 4994) && near(mdl_percentile(row(m, 5), 0.5), 2));
		CHECK(row(m, 3)->min_ns < 12000 && row(m, 3)->min_ns > 0);
	}
	TEST("what was taken out stays so in a sum, and sums of rows keep both times")
	{
		CHECK(!mdl_emit(m, &recs) && !feed(copy, &recs) && !cost_take(copy, &session));
		CHECK(row(copy, 5)->total_ns == row(m, 5)->total_ns && row(copy, 5)->raw_total_ns == 600000);
	}
	mdl_free(copy);
	mdl_free(m);
	m = model();
	copy = mdl_new();
	TEST("a recording has the times with the cost, and the cost")
	{
		CHECK(!mdl_emit(m, &recs) && !feed(copy, &recs));
		CHECK(row(copy, 5)->total_ns == 600000 && near(row(copy, 5)->cost_ns, 200));
		CHECK(!cost_take(copy, &session) && near(row(copy, 5)->total_ns, 400));
	}
	mdl_free(copy);
	TEST("without a known cost nothing is taken out, and no time becomes negative")
	{
		unknown.cost.scale = 0;
		large.cost.scale = 4000;
		CHECK(!cost_take(m, &unknown) && row(m, 5)->total_ns == 600000 && !row(m, 5)->raw_total_ns);
		CHECK(!cost_permille(m, &unknown));
		CHECK(!cost_take(m, &large) && can_be(row(m, 5)) && can_be(row(m, 3)));
	}
	TEST("without iterations the job is slower by the cost of its busiest thread")
	{
		CHECK(cost_permille(m, &session) == 250);
	}
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* Calls of one name: mostly short ones, some long, some that waited for a CPU, with costs from nothing to twice the
 * time. */
static void put_calls(struct buf *b, uint64_t *random, unsigned n)
{
	const uint32_t usual = (uint32_t)(1 + next_random(random) % 4000),
		       cost = (uint32_t)(next_random(random) % 2000);
	const bool leaf = next_random(random) % 2, known = next_random(random) % 2;
	struct mxbpf_span s;

	while (n--) {
		const uint64_t cpu_ns =
			usual + next_random(random) % (next_random(random) % 8 ? 1 + usual / 8 : 20 * usual);
		const uint64_t runq_ns = next_random(random) % 16 || !known ? 0 : next_random(random) % 10000000;
		struct mxbpf_span_cost its = {.all = mxbpf_cost_units(cost + next_random(random) % 64)};

		s = (struct mxbpf_span){.h = {MXBPF_SPAN, MXBPF_WITH_COST(MXBPF_SPAN_BYTES_WHOLE), 77, 1000},
					.dur_ns = cpu_ns + runq_ns,
					.self_ns = leaf ? cpu_ns + runq_ns : (cpu_ns + runq_ns) / 2,
					.name_id = 3,
					.cls = OP,
					.tid = 5,
					.end_tid = 5,
					.flags = known ? MXBPF_SPAN_ACCOUNT : 0,
					.account = {.on_cpu_ns = known ? cpu_ns : 0, .runq_ns = runq_ns},
					.nested = {.runq_ns = leaf ? 0 : runq_ns / 2}};
		its.self = leaf ? its.all : its.all / 2;
		buf_put(b, &s, MXBPF_SPAN_BYTES_WHOLE);
		buf_put(b, &its, sizeof(its));
	}
}

static void test_whole(void)
{
	struct mdl_session s = session;
	uint64_t random = 1, none = 0;
	FREED(buf_fini) struct buf b = {0};
	struct mdl *m;
	unsigned i;

	TEST("whatever is taken out of a row, it is still one that calls can have")
	{
		for (i = 0; i < 3000 && !none; i++) {
			m = mdl_new();
			put_name(&b, 3, MXBPF_NAME_SPAN, "op");
			put_calls(&b, &random, 1 + (unsigned)(next_random(&random) % (i % 3 ? 200 : 3)));
			CHECK(!feed(m, &b));
			CHECK(can_be(row(m, 3)));
			s.cost.scale = 1 + (uint32_t)(next_random(&random) % 4000);
			none += cost_take(m, &s) || !can_be(row(m, 3));
			mdl_free(m);
		}
		CHECK(!none);
	}
}

static void test_inside(void)
{
	const struct mdl_session twice = {.duration_ns = 1000000, .cost = {.scale = 2000}};
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};
	int i;

	put_name(&b, 3, MXBPF_NAME_SPAN, "outer");
	put_name(&b, 5, MXBPF_NAME_SPAN, "inner");
	for (i = 0; i < 959; i++)
		put_span(&b, 5, 4, 4, 3, 3);
	put_span(&b, 5, 40, 40, 3, 3);
	CHECK(!feed(m, &b) && !cost_take(m, &twice));
	TEST("no more is taken out of calls than the quick ones of their row show")
	{
		CHECK(row(m, 5)->total_ns >= row(m, 5)->max_ns && row(m, 5)->max_ns > 30000);
		CHECK(mdl_row_avg(row(m, 5)) < 1500);
	}
}

static void test_busy(void)
{
	const struct mdl_session once = {.duration_ns = 1000000, .cost = {.scale = 1000}};
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};
	struct mxbpf_span s;
	int i;

	put_name(&b, 5, MXBPF_NAME_SPAN, "op");
	for (i = 0; i < 100; i++) {
		const struct mxbpf_span_cost cost = {.all = 3 * UNITS, .self = 3 * UNITS};

		s = (struct mxbpf_span){.h = {MXBPF_SPAN, MXBPF_WITH_COST(MXBPF_SPAN_BYTES_WHOLE), 77, 1000},
					.dur_ns = i % 10 ? 4000 : 44000,
					.self_ns = i % 10 ? 4000 : 44000,
					.name_id = 5,
					.cls = OP,
					.tid = 5,
					.end_tid = 5,
					.flags = MXBPF_SPAN_ACCOUNT,
					.account = {.on_cpu_ns = 4000, .runq_ns = i % 10 ? 0 : 40000}};
		buf_put(&b, &s, MXBPF_SPAN_BYTES_WHOLE);
		buf_put(&b, &cost, sizeof(cost));
	}
	CHECK(!feed(m, &b) && !cost_take(m, &once));
	TEST("beside a busy neighbour a call waits for a CPU in half of its time with the cost, and without it")
	{
		CHECK(row(m, 5)->raw_total_ns == 800000 && near(row(m, 5)->total_ns, 200));
		CHECK(near(row(m, 5)->account.runq_ns, 100) && near(mdl_on_cpu_ns(row(m, 5)), 100));
		CHECK(mdl_percentile(row(m, 5), 0.5) < 1200 && row(m, 5)->max_ns > 9500 && row(m, 5)->max_ns < 12000);
	}
}

static void put_piece(struct buf *b, uint64_t from, uint64_t to, unsigned part, uint64_t cost, uint64_t before)
{
	const struct piece p = {.start_ns = from,
				.end_ns = to,
				.tid = 5,
				.part = (uint8_t)part,
				.busy = part == MXBPF_PART_OPERATOR,
				.self_cost_ns = cost,
				.before_cost_ns = before};

	buf_put(b, &p, sizeof(p));
}

static uint64_t sum_of(const struct mxbpf_iteration *it)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < MXBPF_STEP_PARTS; i++)
		sum += it->part_ns[i];
	return sum;
}

static void test_iterations(void)
{
	const struct extent x = {.start_ns = 1000, .end_ns = 11000, .tid = 5, .told = MXBPF_STEP_UPDATE};
	const struct mdl_cost half = {.scale = 500};
	struct mxbpf_iteration it, other;
	FREED(buf_fini) struct buf pieces = {0};

	put_piece(&pieces, 2000, 5000, MXBPF_PART_OPERATOR, 1000, 600);
	put_piece(&pieces, 5500, 7000, MXBPF_PART_WAIT, 200, 200);
	put_piece(&pieces, 7100, 7500, MXBPF_STEP_PARTS, 100, 100); /* an annotation */
	CHECK(!parts_make(&pieces, 77, &x, 0, &it));
	other = it;
	TEST("the cost of an iteration is taken out of the parts in which it was, which still add up")
	{
		CHECK(it.flags & MXBPF_ITERATION_COST && sum_of(&it) == 10000);
		parts_take_cost(&it, &half, 1);
		CHECK(it.raw_ns == 10000 && it.dur_ns == 8900 && sum_of(&it) == it.dur_ns);
		CHECK(it.part_ns[MXBPF_PART_OPERATOR] == 2500 && it.part_ns[MXBPF_PART_WAIT] == 1400);
		CHECK(it.part_ns[MXBPF_PART_OUTSIDE] == 5500 - 500);
		parts_take_cost(&it, &half, 1);
		CHECK(it.dur_ns == 8900);
	}
	TEST("a thread that runs for less time waits for a CPU for less time")
	{
		struct mxbpf_iteration busy = other;

		busy.runq_ns[MXBPF_PART_OPERATOR] = 2000;
		parts_take_cost(&busy, &half, 1);
		/* 1,100 ns of cost in 8,000 ns on CPU: as much of the 2,000 ns */
		CHECK(busy.dur_ns == 8900 - 275 && busy.part_ns[MXBPF_PART_OPERATOR] == 2500 - 275);
		CHECK(sum_of(&busy) == busy.dur_ns);
	}
	TEST("a factor scales the cost, and what a part lacks is taken from the others")
	{
		CHECK(parts_cost(&other, &half) == 1100);
		parts_take_cost(&other, &half, 8);
		CHECK(other.dur_ns == 10000 - 8800 && sum_of(&other) == other.dur_ns && !parts_cost(&other, &half));
	}
}

static void feed_iteration(struct mdl *m, uint32_t tid, uint64_t nr, uint64_t us, uint64_t cost_us, uint64_t runq_us)
{
	struct mxbpf_iteration it = {
		.h = {.kind = MXBPF_ITERATION, .size = sizeof(it), .tgid = tid, .ts_ns = 1000000 + nr * 20000000},
		.dur_ns = us * 1000,
		.nr = nr,
		.tid = tid,
		.flags = MXBPF_ITERATION_PARTS | MXBPF_ITERATION_COST,
	};

	it.part_ns[MXBPF_PART_OPERATOR] = it.dur_ns;
	it.cost_ns[MXBPF_PART_OPERATOR] = cost_us * 1000;
	it.runq_ns[MXBPF_PART_OPERATOR] = runq_us * 1000;
	CHECK(!mdl_fold_all(m, &it, sizeof(it)));
}

/*
 * Beside other work a few iterations of 400 us wait for 10 ms, and watching makes them wait more: all of them together
 * shrink by a half. Of the many that did not wait, their own cost goes, 260 us, and little more.
 */
static void test_shrink(void)
{
	const struct mdl_cost measured = {.scale = 1000, .shrink = 500, .thread = 5};
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct mxbpf_iteration *it;
	uint64_t left_ns = 0, raw_ns = 0;
	size_t n, i;

	for (i = 0; i < 100; i++)
		feed_iteration(m, 5, i, 400, 260, 0);
	for (; i < 105; i++)
		feed_iteration(m, 5, i, 10400, 260, 0);
	feed_iteration(m, 6, 0, 9000, 300, 0); /* of another loop, which nobody measured */
	feed_iteration(m, 6, 1, 100, 150, 0);  /* its estimate is too high */
	CHECK(!steps_take_cost(m, &measured));
	it = steps_iterations(m, &n);
	CHECK(n == 107);
	TEST("iterations shrink together as much as was measured, and none of them to nothing")
	{
		for (i = 0; i < n; i++) {
			CHECK(it[i].dur_ns > 0);
			if (it[i].tid != 5)
				continue;
			left_ns += it[i].dur_ns;
			raw_ns += it[i].raw_ns;
			CHECK(it[i].dur_ns > 90000);
		}
		CHECK(left_ns > raw_ns / 2 && left_ns < raw_ns * 2 / 3);
	}
	TEST("iterations of a thread that was not measured lose their own cost alone")
	{
		for (i = 0; i < n; i++)
			CHECK(it[i].tid != 6 || it[i].raw_ns == 100000 ||
			      (it[i].dur_ns > 8699000 && it[i].dur_ns < 8701000));
	}
}

static struct mxbpf_span ended(struct agent_costs *c, uint32_t tid, uint64_t start_ns, uint64_t dur_ns)
{
	struct mxbpf_span s = {.h.ts_ns = start_ns, .dur_ns = dur_ns, .tid = tid};

	agent_costs_fill(c, &s);
	return s;
}

static void test_agent(void)
{
	const uint32_t each = mxbpf_cost_units(MXBPF_AGENT_CALL_NS);
	struct agent_costs *c = agent_costs_new();
	struct mxbpf_span s;
	uint32_t tid;

	TEST("a call that the agent records has the cost of the calls in it, and of no others")
	{
		CHECK(!ended(c, 1, 100, 50).cost.all); /* a leaf of 30 ns is 30 ns */
		CHECK(!ended(c, 1, 210, 10).cost.all && !ended(c, 1, 230, 10).cost.self);
		CHECK(!ended(c, 2, 205, 30).cost.all); /* of another thread */
		s = ended(c, 1, 200, 100);
		CHECK(s.cost.all == 2 * each && s.cost.self == 2 * each && s.cost.before == each);
		CHECK(ended(c, 1, 90, 300).cost.all == 4 * each);
	}
	TEST("numbers of threads, which a process chooses, take a limited amount of memory")
	{
		for (tid = 10; tid < 100000; tid++)
			s = ended(c, tid, 100, 50);
		CHECK(!s.cost.before && ended(c, 1, 500, 50).cost.before == each);
	}
	agent_costs_free(c);
}

static void put_block(struct mxbpf_beat *b, uint64_t mean)
{
	b->blocks++;
	b->means += mean;
	b->squares += mean * mean;
	b->products += mean * b->last_mean;
	b->last_mean = mean;
}

static void test_drift(void)
{
	struct mxbpf_beat steady = {0}, noisy = {0}, slow = {0};
	unsigned i, random = 1;
	double one;

	for (i = 0; i < 400; i++) {
		random = random * 1103515245 + 12345;
		put_block(&steady, 1000000);
		put_block(&noisy, random >> 16 & 1 ? 1500000 : 500000);
		put_block(&slow, i / 100 % 2 ? 1500000 : 500000);
	}
	TEST("a mean of a few blocks is as wrong as the machine's speed drifts, if it drifts slowly")
	{
		CHECK(att_beat_drift2(&steady, 10) == 0);
		one = att_beat_drift2(&noisy, 10) * 10; /* the square of the relative deviation of one block */
		CHECK(one > 0.15 && one < 0.4);
		CHECK(att_beat_drift2(&slow, 10) > 0.24 && att_beat_drift2(&slow, 10) < 0.26);
		CHECK(att_beat_drift2(&slow, 0) == 0);
	}
}

/* Returns the sum of 3 beats, 1 ms apart and with 0.5 ms of CPU time each, if the process overwrote the last one. */
static struct mxbpf_beat beats(struct mxbpf_agent_beat overwritten)
{
	const struct mxbpf_agent_beat b[] = {
		{.ns = 1000000, .cpu_ns = 500000, .tid = 7}, {.ns = 2000000, .cpu_ns = 1000000, .tid = 7}, overwritten};
	const struct agent_beats_of of = {.tid = 7, .from_ns = 1, .now_ns = 3000000};
	struct mxbpf_beat sum = {0};

	agent_beats_add(b, 3, &of, &sum);
	return sum;
}

static void test_forged(void)
{
	static const struct mxbpf_agent_beat
		honest = {.ns = 3000000, .cpu_ns = 1500000, .tid = 7},
		forged[] = {
			{.ns = 1, .cpu_ns = 1500000, .tid = 7},
			{.ns = UINT64_MAX, .cpu_ns = 1500000, .tid = 7},
			{.ns = 3000000, .cpu_ns = 1, .tid = 7},
			{.ns = 3000000, .cpu_ns = UINT64_MAX, .tid = 7},
			{.ns = 3000000, .cpu_ns = 1500000, .tid = 8},
			{.ns = 3000000, .cpu_ns = 1500000, .tid = 7, .registered = UINT32_MAX},
		};
	struct mxbpf_beat sum = beats(honest);
	unsigned i;

	TEST("a process that overwrites the times of its steps cannot make the cost of the agent anything it likes")
	{
		CHECK(sum.n == 2 && sum.ns == 2000000 && sum.cpu_ns == 1000000);
		for (i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
			sum = beats(forged[i]);
			CHECK(sum.n <= 2 && sum.ns <= 2000000 && sum.cpu_ns <= 1000000);
			CHECK(sum.n == 1 || i == 5);
		}
	}
}

int main(void)
{
	test_rows();
	test_whole();
	test_inside();
	test_busy();
	test_iterations();
	test_shrink();
	test_agent();
	test_drift();
	test_forged();
	UNIT_MAIN_END;
}
