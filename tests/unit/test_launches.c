// SPDX-License-Identifier: Apache-2.0
/* Tests launches, queues of streams, and the types of work that run at once. */
#include "feature/launches/launches.h"

#include "feature/activity/activity.h"
#include "gpu_records.h"

/* Ids of names. */
enum { NCCL = GPU_NAMES, COPY, GRAPH };

static void put_names(struct buf *b)
{
	put_gpu_names(b);
	put_name(b, NCCL, MXBPF_NAME_SPAN, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
	put_name(b, COPY, MXBPF_NAME_SPAN, "Memcpy HtoD");
	put_name(b, GRAPH, MXBPF_NAME_SPAN, "cudaGraphLaunch");
}

static struct mxbpf_launch *long_launch(struct buf *b, uint64_t at_ns, uint64_t dur_ns)
{
	struct mxbpf_launch *l = launch(b, at_ns);

	l->dur_ns = dur_ns;
	return l;
}

/* ---- results */

static struct launches_row row_of(const struct mdl *m, uint64_t call_id)
{
	struct launches_row none = {.a = {.count = 0}}, row;
	FREED(buf_fini) struct buf all = {0};
	size_t i;

	CHECK(!launches_rows(m, &all));
	for (row = none, i = 0; i < buf_count(&all, row); i++)
		if (buf_at(&all, struct launches_row, i)->a.call_id == call_id)
			row = *buf_at(&all, struct launches_row, i);
	return row;
}

static struct mxbpf_agg_gpu_types types_of(const struct mdl *m)
{
	struct mxbpf_agg_gpu_types types = {.device = 0};
	FREED(buf_fini) struct buf all = {0};

	CHECK(!launches_types(m, &all) && buf_count(&all, types) == 1);
	if (all.len)
		types = *buf_at(&all, struct mxbpf_agg_gpu_types, 0);
	return types;
}

/* Folds the records of a model into another one. */
static struct mdl *recorded(const struct mdl *m)
{
	struct mdl *again = mdl_new();
	FREED(buf_fini) struct buf recs = {0};

	CHECK(!mdl_emit(m, &recs) && !mdl_feed(again, recs.data, recs.len));
	return again;
}

/* ---- launches */

static void put_launches(struct buf *b)
{
	long_launch(b, 0, 100);
	work(b, 0, 300, 380); /* shorter than its call, 200 later */
	long_launch(b, 1000, 60000);
	work(b, 1000, 40000, 400000); /* a slow call, whose work begins before its end */
	long_launch(b, 70000, 10);
	work(b, 70000, 400000, 400200); /* waits for 329,990 */
	long_launch(b, 80000, 500)->call_id =
		GRAPH; /* both activities are shorter than the call, but they are a graph */
	work(b, 80000, 400200, 400300);
	work(b, 80000, 400400, 400500);
	long_launch(b, 500000, 10); /* without work */
}

static void check_launches(const struct mdl *m)
{
	const struct launches_row l = row_of(m, LAUNCH), g = row_of(m, GRAPH);

	CHECK(l.a.count == 3 && l.a.call_ns == 100 + 60000 + 10 && l.a.call_max_ns == 60000 && l.a.slow_calls == 1);
	CHECK(l.a.shorter == 1 && l.a.delay_ns == 200 + 329990 && l.a.delay_max_ns == 329990 && l.a.delayed == 1);
	CHECK(l.hist[mxbpf_bucket(0)] == 1 && l.hist[mxbpf_bucket(200)] == 1);
	CHECK(l.a.queued_ns == 380 + 399000 + 330200 && l.a.queue_max == 2 && !l.a.full_ns);
	CHECK(g.a.count == 1 && !g.a.shorter && g.a.delay_ns == 319700 && g.a.queued_ns == 320500 &&
	      g.a.queue_max == 3);
}

static void test_launches(void)
{
	struct mdl *m = mdl_new(), *late = mdl_new(), *again, *sum, *copy = mdl_new();
	FREED(buf_fini) struct buf b = {0};

	put_names(&b);
	put_launches(&b);
	CHECK(!feed_backwards(late, &b) && !feed(m, &b));
	again = recorded(m);
	sum = mdl_sum(m);
	CHECK(!mdl_copy_to(copy, m));
	check_launches(m);
	check_launches(late);
	check_launches(again);
	check_launches(sum);
	check_launches(copy);
	mdl_free(m);
	mdl_free(late);
	mdl_free(again);
	mdl_free(sum);
	mdl_free(copy);
}

/* ---- a long session */

#define STEP_NS	 1000000ull
#define STEPS	 20000u
#define PER_FEED 500u

/* A launch every ms, whose kernel begins 10.5 ms later: 11 are queued, and one of them runs. */
static void put_step(struct buf *b, uint64_t nr, bool on_host)
{
	if (on_host)
		long_launch(b, nr * STEP_NS, 5000);
	else
		work(b, nr * STEP_NS, nr * STEP_NS + 10500000, nr * STEP_NS + 11200000);
}

static void check_steps(const struct mdl *m, uint64_t n, uint64_t queue_max)
{
	const struct launches_row l = row_of(m, LAUNCH);

	CHECK(l.a.count == n && l.a.delay_ns == n * 10495000 && l.a.queued_ns == n * 11200000);
	CHECK(l.a.queue_max == queue_max && !l.a.shorter && l.a.delayed == n);
}

/* Activities come one second later than launches. */
static void test_long(void)
{
	struct mdl *m = mdl_new(), *next = mdl_new();
	const uint64_t late = 1000, half = STEPS / 2;
	struct mxbpf_agg_gpu_types t;
	FREED(buf_fini) struct buf b = {0};
	uint64_t i, k;

	put_names(&b);
	CHECK(!feed(m, &b));
	for (i = 0; i < STEPS; i += PER_FEED) {
		for (k = i; k < i + PER_FEED; k++) {
			put_step(&b, k, true);
			if (k >= late)
				put_step(&b, k - late, false);
		}
		CHECK(!feed(i < half ? m : next, &b));
		if (i + PER_FEED != half)
			continue;
		check_steps(m, half - late, 12);
		CHECK(!mdl_move(next, m, 0));
		check_steps(m, half - late, 12);
	}
	check_steps(next, half, 12); /* also the first of them, because the queue of then is kept */
	t = types_of(next);
	CHECK(t.count[MXBPF_TYPE_COMPUTE] == half && t.ns[1] == half * 700000);
	mdl_free(m);
	mdl_free(next);
}

/* ---- full queues */

#define BURST 1500u

/* Kernels of 100 ns are launched at once: the first 1,023 leave room. */
static void test_full(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	struct launches_row l;
	FREED(buf_fini) struct buf b = {0};
	uint64_t i;

	put_names(&b);
	for (i = 0; i < BURST; i++) {
		long_launch(&b, i, 1);
		work(&b, i, 10000 + 100 * i, 10100 + 100 * i);
	}
	CHECK(!feed(m, &b));
	l = row_of(m, LAUNCH);
	/* Full from launch 1023 on, until as many have ended as there are more than 1,023. */
	CHECK(l.a.queue_max == BURST && l.a.full_ns == 10000 + 100 * (BURST - 1023) - 1023);
}

/* ---- types */

static void put_types(struct buf *b)
{
	struct mxbpf_activity *a;

	work(b, 0, 0, 100);
	work(b, 1, 50, 150)->track.stream = 9; /* the time in which both run counts once */
	work(b, 2, 100, 210)->name_id = NCCL;
	a = work(b, 3, 200, 250);
	a->cls = MXBPF_ACTIVITY_COPY;
	a->name_id = COPY;
	work(b, 4, 300, 350);
}

static void check_types(const struct mdl *m)
{
	const struct mxbpf_agg_gpu_types t = types_of(m);
	const unsigned compute = 1 << MXBPF_TYPE_COMPUTE, exchange = 1 << MXBPF_TYPE_EXCHANGE;
	const unsigned memory = 1 << MXBPF_TYPE_MEMORY;

	CHECK(t.ns[compute] == 100 + 50 && t.ns[exchange] == 50 && t.ns[memory] == 40 && t.ns[0] == 50);
	CHECK(t.ns[compute | exchange] == 50 && t.ns[exchange | memory] == 10);
	CHECK(!t.ns[compute | memory] && !t.ns[compute | exchange | memory] && t.last_ns - t.first_ns == 350);
	CHECK(t.count[MXBPF_TYPE_COMPUTE] == 3 && t.total_ns[MXBPF_TYPE_COMPUTE] == 250);
	CHECK(t.count[MXBPF_TYPE_EXCHANGE] == 1 && t.total_ns[MXBPF_TYPE_EXCHANGE] == 110);
	CHECK(t.count[MXBPF_TYPE_MEMORY] == 1 && t.total_ns[MXBPF_TYPE_MEMORY] == 50);
}

static void test_types(void)
{
	struct mdl *m = mdl_new(), *late = mdl_new(), *again, *sum;
	FREED(buf_fini) struct buf b = {0};

	put_types(&b);
	put_names(&b);
	CHECK(!feed_backwards(late, &b) && !feed(m, &b));
	again = recorded(m);
	sum = mdl_sum(m);
	check_types(m);
	check_types(late);
	check_types(again);
	check_types(sum);
	mdl_free(m);
	mdl_free(late);
	mdl_free(again);
	mdl_free(sum);
}

/* ---- the latest launches */

#define MANY 300000u /* more than are kept */

static const struct activity_call *call_at(const struct mdl *m, uint64_t launched_ns, uint64_t ns)
{
	return activity_call_of(m, PID, MXBPF_DOMAIN_CUPTI, launched_ns + 1, BASE + ns);
}

static void check_reuse(const struct mdl *m)
{
	const struct activity_call *l = call_at(m, 7, 350);

	CHECK(l && l->start_ns == BASE + 300 && l->end_ns == BASE + 310 && l->call_id == LAUNCH && l->tid == PID);
	CHECK(call_at(m, 7, 600)->start_ns == BASE + 500 && call_at(m, 7, 50)->start_ns == BASE + 100);
	CHECK(!call_at(m, 8, 600) && !activity_call_of(m, PID + 1, MXBPF_DOMAIN_CUPTI, 8, BASE + 600));
	CHECK(!activity_call_of(m, PID, MXBPF_DOMAIN_NONE, 8, BASE + 600) && activity_call_at(m, 2) &&
	      !activity_call_at(m, 3));
}

static void test_latest(void)
{
	struct mdl *m = mdl_new(), *copy = mdl_new(), *next = mdl_new();
	const struct activity_call *l;
	FREED(buf_fini) struct buf b = {0};
	uint64_t number;
	size_t n, i;

	put_names(&b);
	for (i = 0; i < 3; i++)
		launch(&b, 500 - 200 * i)->edge_id = 8;
	CHECK(!feed(m, &b) && !mdl_copy_to(copy, m) && !mdl_move(next, m, 0));
	check_reuse(m);
	check_reuse(copy);
	check_reuse(next);
	for (i = 0; i < MANY; i++) {
		launch(&b, 1000 + i);
		if (i % 1000 == 999)
			CHECK(!feed(m, &b));
	}
	l = activity_calls(m, &n);
	number = activity_call_number(m, &l[n - 1]);
	CHECK(number == MANY + 2 && n >= MANY / 3 && n < MANY && !activity_call_at(m, 2) && !call_at(m, 7, 600));
	CHECK(call_at(m, 1000 + MANY - 1, 1000 + MANY) == &l[n - 1] && activity_call_at(m, number) == &l[n - 1]);
	CHECK(activity_calls_lost_ns(m) >= l[0].start_ns && activity_calls_lost_ns(m) < l[n - 1].start_ns);
	mdl_free(m);
	mdl_free(copy);
	mdl_free(next);
}

int main(void)
{
	TEST("calls that launch have their durations, delays and queues, in whatever order records come, and in "
	     "recordings")
	test_launches();
	TEST("launches of a session of many windows, whose activities are late, are exact, also with --reset")
	test_long();
	TEST("a stream is full while 1,024 launches have not ended")
	test_full();
	TEST("each ns of a GPU counts once for the types of work that run at once")
	test_types();
	TEST("the launch of an activity is the last one with its id that is not later, also in copies, and the oldest "
	     "ones are forgotten")
	test_latest();
	UNIT_MAIN_END;
}
