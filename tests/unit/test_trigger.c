// SPDX-License-Identifier: Apache-2.0
/* Tests conditions of `mxbpf serve --on`: what they may say, and that each fires once, on what it names. */
#include "trigger/priv.h"

#include "mxbpf_step.h"
#include "feature/raised/raised.h"
#include "mxbpf_cost.h"
#include "mxbpf_table.h"
#include "nvml/nvml.h"
#include "rendered.h"

FREES(trg_freed, struct trg, trg_free)

#define PID	 1234
#define NS_PER_S 1000000000ull
#define MS	 1000000ull

static struct trg *parsed(const char *text)
{
	struct err e = {0};
	struct trg *t = NULL;

	if (trg_parse(text, &t, &e))
		printf("# %s\n", e.why);
	return t;
}

static void test_parse(void)
{
	static const char *const good[] = {
		"iteration > 3 * median",
		"iteration>200ms",
		"  iteration  >  2.5*median for 10s ",
		"operator.p99(conv*) > 50ms",
		"operator.max(a(b)) > 1s",
		"operator.avg(aten::mm) > 10us for 1m",
		"memory.live(cpu/0) > 14GiB",
		"gpu.idle > 50% for 60s",
		"finding(data_wait) > 30%",
		"hang 60s",
		"operator.p50(*) > 1ms",
		"raised.count > 3",
		"raised.count(Store*) > 3 for 10s",
		"gpu.idle.max_ns(waits*) > 20ms",
		"memory.devices.peak_bytes(cpu/*) > 1G",
		"gpu.devices.late > 0",
	};
	static const struct {
		const char *text;
		unsigned at; /* character */
	} bad[] = {
		{"", 1},
		{"speed > 3", 1},
		{"iteration", 10},
		{"iteration < 3 * median", 11},
		{"iteration > 3 * mean", 17},
		{"iteration > 0.5 * median", 13},
		{"iteration > nan * median", 13},
		{"iteration > soon", 13},
		{"iteration > 3 * median or more", 24},
		{"operator.p99 > 50ms", 13},
		{"operator.p99() > 50ms", 13},
		{"operator.p99(x > 50ms", 13},
		{"operator.p98(x) > 50ms", 1},
		{"memory.live(cpu/0) > much", 22},
		{"gpu.idle > 50", 12},
		{"gpu.idle > 120%", 12},
		{"raised.counts > 3", 8},
		{"raised.name > 3", 8},
		{"raised.count > -1", 16},
		{"raised.count() > 1", 13},
		{"gpu.nothing.count > 3", 1},
		{"gpu.idle.max_ns > soon", 19},
		{"gpu.idle > 50% for ever", 20},
		{"hang", 5},
		{"hang 60s for 60s", 10},
	};
	char place[32];
	struct trg *t;
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		t = parsed(good[i]);
		CHECK(t);
		trg_free(t);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = {0};

		CHECK(trg_parse(bad[i].text, &t, &e) && e.cls == ERR_USAGE && !t);
		snprintf(place, sizeof(place), "at character %u:", bad[i].at);
		if (!strstr(e.why, place))
			printf("# %s: %s\n", place, e.why);
		CHECK(strstr(e.why, place));
	}
}

/* ---- intervals of one second */

static uint64_t now_ns = 100 * NS_PER_S;
static const pid_t pids[] = {PID};

/* Takes the model. */
static bool fires(struct trg *t, struct mdl *m, bool alive, char why[TRG_WHY_BYTES])
{
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	struct mdl_interval in = {
		.session = &s, .model = m, .pids = pids, .npids = alive, .now_ns = now_ns += NS_PER_S};
	bool fired;

	s.duration_ns = NS_PER_S;
	s.start_mono_ns = in.now_ns - NS_PER_S;
	s.features = feature_raised.bit;
	fired = trg_judge(t, &in, why);
	mdl_free(m);
	return fired;
}

/* Iterations that end in the next interval; `odd` is the duration of the last one, 0: that of the others. */
static struct mdl *iterations(unsigned n, uint64_t each_ns, uint64_t odd_ns)
{
	static uint64_t nr;
	struct mxbpf_iteration it = {.h = {MXBPF_ITERATION, sizeof(it), PID, 0}, .told = MXBPF_STEP_UPDATE};
	struct mdl *m = mdl_new();
	unsigned i;

	for (i = 0; i < n; i++) {
		it.nr = nr++;
		it.dur_ns = odd_ns && i == n - 1 ? odd_ns : each_ns;
		it.h.ts_ns = now_ns + (i + 1) * MS - it.dur_ns;
		CHECK(!mdl_feed(m, &it, sizeof(it)));
	}
	return m;
}

static void test_iteration(void)
{
	FREED(trg_freed) struct trg *t = parsed("iteration > 3 * median");
	char why[TRG_WHY_BYTES];

	CHECK(!fires(t, iterations(10, 5 * MS, 100 * MS), true, why)); /* too few to know the median */
	CHECK(!fires(t, iterations(20, 5 * MS, 0), true, why));
	CHECK(fires(t, iterations(20, 5 * MS, 40 * MS), true, why));
	CHECK(!strcmp(why, "iteration 49 of process 1234 took 40.0 ms, 8.0 times the median"));
	CHECK(!fires(t, iterations(20, 5 * MS, 40 * MS), true, why)); /* it was true before */
	CHECK(!fires(t, iterations(20, 5 * MS, 14 * MS), true, why));
	CHECK(fires(t, iterations(20, 5 * MS, 16 * MS), true, why));
}

static void test_hang(void)
{
	FREED(trg_freed) struct trg *t = parsed("hang 3s");
	char why[TRG_WHY_BYTES];
	unsigned i;

	for (i = 0; i < 10; i++) /* a process that has made no iteration yet, such as one that loads its data */
		CHECK(!fires(t, mdl_new(), true, why));
	CHECK(!fires(t, iterations(5, MS, 0), true, why));
	for (i = 0; i < 3; i++)
		CHECK(!fires(t, mdl_new(), true, why) || i == 2);
	CHECK(!fires(t, mdl_new(), true, why)); /* once */
	CHECK(!fires(t, iterations(5, MS, 0), true, why));
	CHECK(!fires(t, mdl_new(), false, why)); /* it has ended */
	for (i = 0; i < 5; i++)
		CHECK(!fires(t, mdl_new(), true, why));
}

static void test_unseen(void)
{
	const struct mxbpf_partial all = {.h = {MXBPF_PARTIAL, sizeof(all), 0, 0}, .cls = OP};
	FREED(trg_freed) struct trg *t = parsed("hang 3s");
	char why[TRG_WHY_BYTES];
	struct mdl *m;
	unsigned i;

	CHECK(!fires(t, iterations(5, MS, 0), true, why));
	for (i = 0; i < 10; i++) {
		m = mdl_new();
		CHECK(!mdl_feed(m, &all, sizeof(all)) && !fires(t, m, true, why));
	}
}

/* An interval in which iterations are seen in slices alone. slices 0: none; else they end 300 ms before the interval
 * does. */
static struct mdl *sliced(unsigned slices, uint64_t iterations)
{
	const struct mxbpf_partial marks = {
		.h = {MXBPF_PARTIAL, sizeof(marks), 0, 0}, .cls = MXBPF_CLASS_STEP, .flags = MXBPF_PARTIAL_SLICED};
	const struct mxbpf_slice_part slice = {.h = {MXBPF_SLICE, sizeof(slice), PID, now_ns + NS_PER_S - 500 * MS},
					       .slices = slices,
					       .slice_ns = 200 * MS,
					       .seen_iterations = iterations,
					       .all_iterations = iterations};
	struct mdl *m = mdl_new();

	CHECK(!mdl_feed(m, &marks, sizeof(marks)) && (!slices || !mdl_feed(m, &slice, sizeof(slice))));
	return m;
}

/* A slice waits for an iteration. One with iterations says that the loop goes on, one without that it hangs. */
static void test_slices(void)
{
	FREED(trg_freed) struct trg *t = parsed("hang 3s");
	char why[TRG_WHY_BYTES];
	unsigned i;

	CHECK(!fires(t, iterations(5, MS, 0), true, why));
	for (i = 0; i < 20; i++) /* iterations that nobody saw */
		CHECK(!fires(t, sliced(i % 5 == 0, 3), true, why));
	for (i = 0; i < 12; i++) /* the first slice without any is that of i = 2, and that of i = 6 is 4 s later */
		CHECK(fires(t, sliced(i % 4 == 2, 0), true, why) == (i == 6));
	CHECK(!fires(t, sliced(1, 0), true, why)); /* once */
}

static void test_slices_say(void)
{
	FREED(trg_freed) struct trg *t = parsed("hang 3s");
	char why[TRG_WHY_BYTES];
	unsigned i;

	CHECK(!fires(t, iterations(5, MS, 0), true, why));
	for (i = 0; i < 20; i++)
		CHECK(!fires(t, sliced(i % 5 == 0, 3), true, why));
	for (i = 0; i < 3; i++)
		CHECK(!fires(t, sliced(1, 0), true, why));
	CHECK(fires(t, sliced(1, 0), true, why));
	CHECK(!strcmp(why, "process 1234 has made no iteration for at least 3.20 s"));
}

/* Options are read again: what was seen of the loop stays, and a condition that has fired does not fire once more. */
static struct trg *begun_anew(struct trg *t, uint64_t gap_ns)
{
	struct trg *new = parsed("hang 3s");

	trg_continue(new, t);
	trg_free(t);
	now_ns += gap_ns;
	return new;
}

static void test_anew(void)
{
	FREED(trg_freed) struct trg *t = parsed("hang 3s");
	char why[TRG_WHY_BYTES];
	unsigned i;

	/* It hangs before, for longer than any iteration has taken. */
	CHECK(!fires(t, iterations(5, MS, 0), true, why));
	CHECK(!fires(t, mdl_new(), true, why));
	t = begun_anew(t, 300 * MS);
	CHECK(fires(t, mdl_new(), true, why));
	CHECK(!strcmp(why, "process 1234 has made no iteration for 3.30 s"));
	t = begun_anew(t, 300 * MS);
	CHECK(!fires(t, mdl_new(), true, why));
	/* It makes an iteration each 2 s. One may have ended unseen. */
	CHECK(!fires(t, iterations(1, 2 * NS_PER_S, 0), true, why));
	t = begun_anew(t, 300 * MS);
	for (i = 0; i < 3; i++)
		CHECK(fires(t, mdl_new(), true, why) == (i == 2));
	CHECK(!strcmp(why, "process 1234 has made no iteration for at least 3.00 s"));
	/* A process that has ended meanwhile is forgotten. */
	CHECK(!fires(t, iterations(5, MS, 0), true, why));
	t = begun_anew(t, 300 * MS);
	CHECK(!fires(t, mdl_new(), false, why));
	for (i = 0; i < 5; i++)
		CHECK(!fires(t, mdl_new(), true, why));
}

/* The last interval of a session has no process any more, and nothing is written then. */
static void test_last_interval(void)
{
	FREED(trg_freed) struct trg *t = parsed("hang 1s");
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	struct mdl_interval in = {.session = &s, .model = mdl_new(), .pids = pids, .npids = 1};
	char why[TRG_WHY_BYTES];

	CHECK(!fires(t, iterations(5, MS, 0), true, why));
	s.start_mono_ns = now_ns;
	in.now_ns = now_ns += NS_PER_S;
	trg_see(t, &in);
	CHECK(fires(t, mdl_new(), true, why)); /* it was not said yet */
	mdl_free(in.model);
}

static struct mdl *operators(uint64_t each_ns)
{
	struct mdl *m = mdl_new();

	feed_agg(m, OP, 0, "aten::conv2d", (uint64_t[]){10, 10 * each_ns, 10 * each_ns, each_ns, each_ns});
	feed_agg(m, OP, 0, "aten::mm", (uint64_t[]){10, 100 * NS_PER_S, 100 * NS_PER_S, NS_PER_S, NS_PER_S});
	return m;
}

static void test_operator(void)
{
	FREED(trg_freed) struct trg *t = parsed("operator.max(conv*) > 50ms for 2s");
	char why[TRG_WHY_BYTES];

	CHECK(!fires(t, operators(40 * MS), true, why));
	CHECK(!fires(t, operators(60 * MS), true, why)); /* for one second so far */
	CHECK(fires(t, operators(60 * MS), true, why));
	CHECK(!strcmp(why, "operator aten::conv2d of process 1234 took 60.0 ms"));
	CHECK(!fires(t, operators(60 * MS), true, why));
	CHECK(!fires(t, operators(40 * MS), true, why));
	CHECK(!fires(t, operators(60 * MS), true, why));
	CHECK(!fires(t, operators(40 * MS), true, why)); /* not for long enough */
}

/* Calls that an exception left. */
static struct mdl *raised(uint64_t fetches)
{
	struct raised_row r = {.tgid = PID, .first_ns = NS_PER_S, .last_ns = NS_PER_S, .cls = OP};
	struct mdl *m = mdl_new();

	r.name_id = feed_name(m, "Store::fetch", 12);
	r.count = fetches;
	CHECK(!mdl_table_add(m, &feature_raised, &raised_table, &r));
	r.name_id = feed_name(m, "parse", 5);
	r.count = 100;
	CHECK(!mdl_table_add(m, &feature_raised, &raised_table, &r));
	return m;
}

static void test_column(void)
{
	struct trg *t = parsed("raised.count(Store*) > 3");
	char why[TRG_WHY_BYTES];

	CHECK(!fires(t, raised(3), true, why));
	CHECK(fires(t, raised(4), true, why));
	CHECK(!strcmp(why, "count of Store::fetch of process 1234 is 4"));
	CHECK(!strcmp(trg_word(t), "raised"));
	CHECK(!fires(t, raised(5), true, why));
	CHECK(!fires(t, mdl_new(), true, why));
	CHECK(fires(t, raised(5), true, why));
	trg_free(t);
	t = parsed("raised.count > 99");
	CHECK(fires(t, raised(0), true, why));
	CHECK(!strcmp(why, "count of parse of process 1234 is 100"));
	trg_free(t);
}

static void test_memory(void)
{
	FREED(trg_freed) struct trg *t = parsed("memory.live(cpu/*) > 1M");
	char why[TRG_WHY_BYTES];
	struct mxbpf_mem a = {.h = {MXBPF_MEM, sizeof(a), PID, 0},
			      .device = MXBPF_DEVICE(1, 0),
			      .allocs = 1,
			      .alloc_bytes = 2 << 20,
			      .live_bytes = 2 << 20,
			      .peak_bytes = 2 << 20};
	struct mdl *m = mdl_new();

	CHECK(!mdl_feed(m, &a, sizeof(a)) && fires(t, m, true, why));
	CHECK(!strcmp(why, "process 1234 holds 2.00 MiB on cpu/0"));
	trg_free(t);
	t = parsed("memory.live(gpu/*) > 1M");
	m = mdl_new();
	CHECK(!mdl_feed(m, &a, sizeof(a)) && !fires(t, m, true, why));
}

/* Without an agent, GPUs are those that the driver gives the watched processes. */
static void test_driver(void)
{
	static struct nvml_list gpus = {.n = 2, .nprocesses = 2, .processes = {{0, PID, 0}, {1, PID + 1, 0}}};
	FREED(trg_freed) struct trg *t = parsed("gpu.idle > 50% for 2s");
	struct mdl_session s = {.duration_ns = NS_PER_S};
	const pid_t pid = PID;
	/* Percent of each interval in which GPU 0 is busy; 200: the driver says nothing in it. GPU 1 is of others. */
	static const unsigned busy[] = {90, 10, 10, 10, 90, 10, 200, 200, 200, 200, 200, 200, 200};
	static const bool expected[] = {false, false, true, false, false, false, true};
	struct mdl_interval in = {.session = &s, .pids = &pid, .npids = 1, .gpus = &gpus};
	char why[TRG_WHY_BYTES];
	size_t i;

	for (i = 0; i < sizeof(busy) / sizeof(busy[0]); i++) {
		in.now_ns = (10 + i) * NS_PER_S;
		in.model = mdl_new();
		gpus.gpus[0].seen_ns = busy[i] > 100 ? 0 : NS_PER_S;
		gpus.gpus[0].busy_ns = gpus.gpus[0].seen_ns / 100 * busy[i];
		gpus.gpus[1].seen_ns = NS_PER_S;
		CHECK(trg_judge(t, &in, why) == (i < sizeof(expected) && expected[i]));
		CHECK(!expected[i % sizeof(expected)] || i >= sizeof(expected) ||
		      !strcmp(why, "GPUs did nothing in 90 % of the time"));
		mdl_free(in.model);
	}
	CHECK(!t->since_ns); /* what the driver said last is too old */
}

/* Findings of several jobs on one machine are not those of all of them together. */
static void test_findings(void)
{
	static const struct mdl_found found[] = {
		{.job = "job_name=\"one\"", .key = "data_wait", .share = 0.1, .text = "waits"},
		{.job = "job_name=\"two\"", .key = "throttled", .share = 0.9, .text = "throttled"},
		{.job = "job_name=\"two\"", .key = "data_wait", .share = 0.4, .text = "waits for data"},
	};
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	struct mdl_interval in = {.session = &s, .model = mdl_new(), .found = found, .nfound = 3};
	FREED(trg_freed) struct trg *t = parsed("finding(data_*) > 30%");
	char why[TRG_WHY_BYTES];

	CHECK(trg_judge(t, &in, why) && !strcmp(why, "job_name=\"two\": waits for data"));
	in.nfound = 2;
	CHECK(!trg_judge(t, &in, why));
	mdl_free(in.model);
}

int main(void)
{
	TEST("conditions are read, and what is wrong is shown with its place")
	test_parse();
	TEST("an iteration that takes a multiple of the median fires once, with its number")
	test_iteration();
	TEST("a hang fires once, and neither before the first iteration nor after the end")
	test_hang();
	TEST("a job is not said to hang if what ends its iterations is not probed any more")
	test_unseen();
	test_slices();
	TEST("slices say for how long a job hangs at least, and not since when an iteration was seen")
	test_slices_say();
	TEST("a hang goes on when the options are read again, and an iteration may have ended meanwhile")
	test_anew();
	test_last_interval();
	TEST("an operator fires once it is slow for long enough, and again only after it was not")
	test_operator();
	TEST("a column of a table fires once a row that matches is above the limit")
	test_column();
	TEST("memory of a device above its limit fires")
	test_memory();
	TEST("idle GPUs of the watched processes fire without an agent, as long as the driver answers")
	test_driver();
	TEST("a finding is that of a job, and names it")
	test_findings();
	UNIT_MAIN_END;
}
