// SPDX-License-Identifier: Apache-2.0
/* Tests why GPUs ran nothing: each cause is planted, and busy time and causes make up the whole time exactly. */
#include "feature/idle/idle.h"

#include "feature/lines/lines.h"
#include "feature/steps/steps.h"
#include "mxbpf_sched.h"
#include "gpu_records.h"

#define OP MXBPF_CLASS_OPERATOR

/* Ids of names. */
enum { COPY = GPU_NAMES, CONV, LOSS, LOADER, SYNC, GLOO, STACK, NEXT_STACK };

static void put_names(struct buf *b)
{
	put_gpu_names(b);
	put_name(b, COPY, MXBPF_NAME_SPAN, "Memcpy HtoD");
	put_name(b, CONV, MXBPF_NAME_SPAN, "conv");
	put_name(b, LOSS, MXBPF_NAME_SPAN, "loss");
	put_name(b, LOADER, MXBPF_NAME_SPAN, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
	put_name(b, SYNC, MXBPF_NAME_SPAN, "cudaStreamSynchronize");
	put_name(b, GLOO, MXBPF_NAME_SPAN, "gloo:all_reduce");
	put_name(b, STACK, MXBPF_NAME_STACK, "/job/train.py(12): step");
	put_name(b, NEXT_STACK, MXBPF_NAME_STACK, "/job/train.py(14): step");
}

/* ---- results */

static uint64_t ns_of(const struct mdl *m, unsigned cause, uint64_t name_id)
{
	const struct mxbpf_agg_gpu_idle *r;
	struct buf all = {0};
	uint64_t ns = 0;
	size_t i;

	CHECK(!idle_rows(m, &all));
	for (i = 0; i < buf_count(&all, *r); i++) {
		r = buf_at(&all, struct mxbpf_agg_gpu_idle, i);
		ns += r->cause == cause && (!name_id || r->name_id == name_id) ? r->ns : 0;
	}
	buf_fini(&all);
	return ns;
}

/* Returns the time of all rows, which is that between the first and the last work. */
static uint64_t whole(const struct mdl *m)
{
	const struct mxbpf_agg_gpu_idle *r;
	uint64_t ns = 0, seen_ns = 0;
	struct buf all = {0};
	size_t i;

	CHECK(!idle_rows(m, &all));
	for (i = 0; i < buf_count(&all, *r); i++) {
		r = buf_at(&all, struct mxbpf_agg_gpu_idle, i);
		ns += r->ns;
		seen_ns += r->last_ns - r->first_ns;
	}
	buf_fini(&all);
	CHECK(ns == seen_ns);
	return ns;
}

static bool is_same(const struct mdl *a, const struct mdl *b)
{
	unsigned cause;

	for (cause = 0; cause < MXBPF_IDLE_CAUSES; cause++)
		if (ns_of(a, cause, 0) != ns_of(b, cause, 0))
			return false;
	return whole(a) == whole(b);
}

/* ---- causes */

static void put_host_causes(struct buf *b)
{
	struct mxbpf_span *s;

	launch(b, 0); /* the first work: no time before it counts */
	work(b, 0, 100, 200);
	/* [200, 480): data until 400, the program until 450, then a launch */
	call(b, OP, LOADER, 150, 400)->flags = MXBPF_SPAN_USER;
	call(b, OP, CONV, 210, 300); /* it makes a batch */
	launch(b, 450);
	work(b, 450, 480, 600);
	/* [600, 810): an operator, which launches at 790 */
	call(b, OP, CONV, 600, 800);
	call(b, MXBPF_CLASS_CUDA, LAUNCH, 790, 800);
	launch(b, 790);
	work(b, 790, 810, 900);
	/* [900, 1110): an operator that waits for a CPU for a quarter of its time, and sleeps for a half of it */
	s = call(b, OP, CONV, 900, 1100);
	s->flags = MXBPF_SPAN_ACCOUNT;
	s->account.runq_ns = 50;
	s->account.blocked_ns = 100;
	launch(b, 1100);
	work(b, 1100, 1110, 1200);
	/* [1200, 1310): waited since 1150, until 1210; without this, 50 ns more would have been beside the kernel */
	call(b, OP, LOSS, 1140, 1215);
	call(b, MXBPF_CLASS_CUDA, SYNC, 1150, 1210);
	launch(b, 1300);
	work(b, 1300, 1310, 1400);
}

static void put_device_causes(struct buf *b)
{
	struct mxbpf_activity *a;
	struct mxbpf_span *s;

	/* [1400, 1510): a copy, and then a kernel that was launched beside it */
	launch(b, 1390);
	a = work(b, 1390, 1400, 1500);
	a->cls = MXBPF_ACTIVITY_COPY;
	a->name_id = COPY;
	launch(b, 1450);
	work(b, 1450, 1510, 1600);
	/* [1600, 1700): the stream 9 waits for an event */
	a = work(b, 1605, 1605, 1606);
	a->cls = MXBPF_ACTIVITY_SYNC;
	a->sync_type = MXBPF_SYNC_STREAM_WAITS;
	a->track.stream = 9;
	launch(b, 1610);
	work(b, 1610, 1700, 1800)->track.stream = 9;
	/* [1800, 1920): an exchange on another thread until 1900, for which the program waits */
	s = call(b, OP, GLOO, 1790, 1900);
	s->tid = s->end_tid = 99;
	launch(b, 1910);
	work(b, 1910, 1920, 2000);
	/* [2000, 2050): nobody knows */
	work(b, 0, 2050, 2100)->domain = MXBPF_DOMAIN_NONE;
	/* [2100, 2210): another thread launches for the main one */
	call(b, OP, LOSS, 2090, 2190);
	launch(b, 2200)->tid = HELPER;
	work(b, 2200, 2210, 2300);
}

static void check_causes(const struct mdl *m)
{
	CHECK(ns_of(m, MXBPF_IDLE_DATA, LOADER) == 200 && ns_of(m, MXBPF_IDLE_DATA, 0) == 200);
	CHECK(ns_of(m, MXBPF_IDLE_OPERATOR, CONV) == 190 + 50);
	CHECK(ns_of(m, MXBPF_IDLE_OPERATOR, LOSS) == 90 && ns_of(m, MXBPF_IDLE_OPERATOR, 0) == 330);
	CHECK(ns_of(m, MXBPF_IDLE_RUNQ, CONV) == 50 && ns_of(m, MXBPF_IDLE_BLOCKED, CONV) == 100);
	CHECK(ns_of(m, MXBPF_IDLE_HOST, LOSS) == 60 && ns_of(m, MXBPF_IDLE_HOST, 0) == 60);
	CHECK(ns_of(m, MXBPF_IDLE_COPY, COPY) == 100);
	CHECK(ns_of(m, MXBPF_IDLE_EVENT, 0) == 80);
	CHECK(ns_of(m, MXBPF_IDLE_COLLECTIVE, GLOO) == 100);
	CHECK(ns_of(m, MXBPF_IDLE_UNKNOWN, 0) == 50);
	CHECK(ns_of(m, MXBPF_IDLE_PYTHON, 0) == 50 + 40 + 10 + 10 + 10);
	CHECK(ns_of(m, MXBPF_IDLE_LAUNCH, 0) == 30 + 20 + 10 + 10 + 10 + 10 + 10 + 10);
	CHECK(ns_of(m, MXBPF_IDLE_BUSY, 0) == 100 + 120 + 4 * 90 + 100 + 80 + 50 + 90);
	CHECK(whole(m) == 2200);
}

static void test_causes(void)
{
	struct mdl *m = mdl_new(), *late = mdl_new(), *again = mdl_new(), *sum;
	struct buf b = {0}, recs = {0};

	put_names(&b);
	CHECK(!feed(m, &b));
	put_host_causes(&b);
	put_device_causes(&b);
	put_names(&b);
	CHECK(!feed_backwards(late, &b) && !feed(m, &b));
	check_causes(m);
	check_causes(late);
	CHECK(!mdl_emit(m, &recs) && !mdl_feed(again, recs.data, recs.len));
	check_causes(again);
	sum = mdl_sum(m);
	check_causes(sum);
	mdl_free(sum);
	buf_fini(&recs);
	buf_fini(&b);
	mdl_free(m);
	mdl_free(late);
	mdl_free(again);
}

/* ---- a long session */

#define STEP_NS	 1000000ull
#define STEPS	 20000u
#define PER_FEED 500u

/* A kernel, a wait for data, the program, a launch. */
static void put_step(struct buf *b, uint64_t nr, bool on_host)
{
	const uint64_t at_ns = nr * STEP_NS;

	struct mxbpf_iteration *it;

	if (on_host) {
		it = rec(b, MXBPF_ITERATION, sizeof(*it), at_ns);
		it->dur_ns = STEP_NS;
		it->nr = nr;
		it->told = MXBPF_STEP_OPTIMIZER;
		call(b, MXBPF_CLASS_DATA, LOADER, at_ns + 200000, at_ns + 600000);
		launch(b, at_ns + 900000);
	} else if (nr) {
		work(b, at_ns - STEP_NS + 900000, at_ns, at_ns + 300000);
	} else {
		work(b, 0, at_ns, at_ns + 300000)->domain = MXBPF_DOMAIN_NONE;
	}
}

/* Checks the times of each iteration, and their number. The last one can be incomplete. */
static void check_iterations(const struct mdl *m, size_t n)
{
	struct idle_results all = {0};
	const struct mxbpf_gpu_step *s;
	uint64_t ns;
	size_t i, k;

	CHECK(!idle_results(m, &all) && buf_count(&all.steps, *s) == n);
	for (i = 0; i + 1 < n; i++) {
		s = buf_at(&all.steps, struct mxbpf_gpu_step, i);
		for (ns = 0, k = 0; k < MXBPF_IDLE_CAUSES; k++)
			ns += s->ns[k];
		CHECK(ns == STEP_NS && s->ns[MXBPF_IDLE_BUSY] == 300000 && s->ns[MXBPF_IDLE_DATA] == 300000);
	}
	idle_results_fini(&all);
}

static void check_steps(const struct mdl *m, uint64_t n)
{
	CHECK(ns_of(m, MXBPF_IDLE_DATA, LOADER) == n * 300000);
	CHECK(ns_of(m, MXBPF_IDLE_PYTHON, 0) == n * 300000);
	CHECK(ns_of(m, MXBPF_IDLE_LAUNCH, LAUNCH) == n * 100000);
	CHECK(whole(m) == n * STEP_NS + 300000);
}

/* Activities come one second later than what the host did. */
static void test_long(void)
{
	struct mdl *m = mdl_new(), *copy = mdl_new(), *next = mdl_new();
	const uint64_t late = 1000, half = STEPS / 2;
	struct buf b = {0};
	uint64_t i, k;

	put_names(&b);
	put_step(&b, 0, false);
	CHECK(!feed(m, &b));
	for (i = 0; i < STEPS; i += PER_FEED) {
		for (k = i; k < i + PER_FEED; k++) {
			put_step(&b, k, true);
			if (k > late)
				put_step(&b, k - late, false);
		}
		CHECK(!feed(i < half ? m : next, &b));
		if (i + PER_FEED != half)
			continue;
		check_steps(m, half - 1 - late);
		check_iterations(m, half - late);
		CHECK(!mdl_copy_to(copy, m) && is_same(m, copy));
		CHECK(!mdl_move(next, m, 0));
		check_steps(m, half - 1 - late);
	}
	CHECK(ns_of(next, MXBPF_IDLE_DATA, LOADER) == half * 300000);
	CHECK(whole(next) == half * STEP_NS);
	check_iterations(next, half - late);
	buf_fini(&b);
	mdl_free(m);
	mdl_free(copy);
	mdl_free(next);
}

/* ---- lines */

static void test_lines(void)
{
	struct mdl *m = mdl_new();
	struct buf b = {0}, all = {0};
	const struct mxbpf_agg_gpu_idle *r;
	struct mxbpf_look *l;
	uint64_t looks = 0, before_ns = 0;
	size_t i;

	put_names(&b);
	work(&b, 0, 0, 100);
	call(&b, OP, CONV, 490, 520)->stack_id = NEXT_STACK;
	launch(&b, 500);
	work(&b, 500, 510, 600);
	for (i = 0; i < 3; i++) { /* one while the kernel runs, two while nothing does */
		l = rec(&b, MXBPF_LOOK, sizeof(*l), 50 + 100 * i);
		l->tid = PID;
		l->stack_id = STACK;
	}
	CHECK(!feed(m, &b) && !idle_rows(m, &all));
	for (i = 0; i < buf_count(&all, *r); i++) {
		r = buf_at(&all, struct mxbpf_agg_gpu_idle, i);
		looks += r->cause == MXBPF_IDLE_PYTHON && r->stack_id == STACK && !r->ns ? r->looks : 0;
		before_ns += r->cause == MXBPF_IDLE_PYTHON && r->stack_id == NEXT_STACK ? r->ns : 0;
	}
	CHECK(looks == 2 && before_ns == 390 && ns_of(m, MXBPF_IDLE_PYTHON, 0) == 390);
	buf_fini(&all);
	buf_fini(&b);
	mdl_free(m);
}

/* ---- whether the program had a CPU */

static void off_cpu(struct buf *b, uint32_t tid, uint64_t left_ns, uint64_t woken_ns, uint64_t back_ns)
{
	struct mxbpf_off_cpu *o = rec(b, MXBPF_OFF_CPU, sizeof(*o), left_ns);

	o->woken_ns = BASE + woken_ns;
	o->back_ns = BASE + back_ns;
	o->tid = tid;
}

/* [100, 1000) is Python code, and [1100, 1300) an operator. */
static void put_own_and_operator(struct buf *b)
{
	put_names(b);
	launch(b, 0);
	work(b, 0, 0, 100);
	launch(b, 1000);
	work(b, 1000, 1000, 1100);
	call(b, OP, CONV, 1100, 1300);
	launch(b, 1300);
	work(b, 1300, 1300, 1400);
}

static void put_off(struct buf *b)
{
	off_cpu(b, HELPER, 100, 900, 1000); /* of another thread */
	off_cpu(b, PID, 200, 500, 600);
	off_cpu(b, PID, 50, 50, 110); /* it had not slept */
	off_cpu(b, PID, 1150, 1200, 1260);
	off_cpu(b, PID, 990, 1020, 1020);
}

static void check_divided(const struct mdl *m)
{
	CHECK(ns_of(m, MXBPF_IDLE_OWN_CPU, 0) == 90 + 390 && ns_of(m, MXBPF_IDLE_OWN_BLOCKED, 0) == 310);
	CHECK(ns_of(m, MXBPF_IDLE_OWN_RUNQ, 0) == 110 && !ns_of(m, MXBPF_IDLE_PYTHON, 0));
	CHECK(ns_of(m, MXBPF_IDLE_OPERATOR, CONV) == 90 && ns_of(m, MXBPF_IDLE_BLOCKED, CONV) == 50);
	CHECK(ns_of(m, MXBPF_IDLE_RUNQ, CONV) == 60 && whole(m) == 1400);
}

static void test_divided(void)
{
	struct mdl *m = mdl_new(), *late = mdl_new(), *again = mdl_new(), *copy = mdl_new();
	struct buf b = {0}, recs = {0};

	put_off(&b);
	put_own_and_operator(&b);
	CHECK(!feed(m, &b));
	check_divided(m);
	put_own_and_operator(&b);
	put_off(&b);
	CHECK(!feed_backwards(late, &b));
	check_divided(late);
	CHECK(!mdl_copy_to(copy, m));
	check_divided(copy);
	CHECK(!mdl_emit(m, &recs) && !mdl_feed(again, recs.data, recs.len));
	check_divided(again);
	buf_fini(&b);
	buf_fini(&recs);
	mdl_free(m);
	mdl_free(late);
	mdl_free(again);
	mdl_free(copy);
}

/* The switches of --sched say the same. */
static void test_sched(void)
{
	struct mdl *m = mdl_new();
	struct mxbpf_sched *s;
	struct buf b = {0};

	put_own_and_operator(&b);
	s = rec(&b, MXBPF_SCHED, sizeof(*s), 200);
	s->woken_ns = BASE + 500;
	s->back_ns = BASE + 600;
	s->tid = PID;
	s->state = MXBPF_SCHED_SLEEPING;
	CHECK(!feed(m, &b));
	CHECK(ns_of(m, MXBPF_IDLE_OWN_CPU, 0) == 500 && ns_of(m, MXBPF_IDLE_OWN_BLOCKED, 0) == 300);
	CHECK(ns_of(m, MXBPF_IDLE_OWN_RUNQ, 0) == 100 && !ns_of(m, MXBPF_IDLE_PYTHON, 0));
	buf_fini(&b);
	mdl_free(m);
}

static void test_undivided(void)
{
	struct mdl *without = mdl_new(), *lost = mdl_new();
	struct buf b = {0};
	unsigned i;

	put_own_and_operator(&b);
	CHECK(!feed(without, &b));
	CHECK(ns_of(without, MXBPF_IDLE_PYTHON, 0) == 900 && ns_of(without, MXBPF_IDLE_OPERATOR, CONV) == 200);
	for (i = 0; i < 4097; i++) /* more than are kept before the first sign of a GPU */
		off_cpu(&b, HELPER, 150, 150, 160);
	put_own_and_operator(&b);
	CHECK(!feed(lost, &b));
	CHECK(ns_of(lost, MXBPF_IDLE_PYTHON, 0) == 60 && ns_of(lost, MXBPF_IDLE_OWN_CPU, 0) == 840);
	buf_fini(&b);
	mdl_free(without);
	mdl_free(lost);
}

/* ---- sessions without --gpu */

static void test_without(void)
{
	struct mdl *m = mdl_new();
	struct buf b = {0};

	mdl_without_devices(m);
	put_names(&b);
	put_host_causes(&b);
	CHECK(!feed(m, &b) && !ns_of(m, MXBPF_IDLE_OPERATOR, 0) && whole(m) == 1300);
	buf_fini(&b);
	mdl_free(m);
}

int main(void)
{
	TEST("each ns in which a GPU runs nothing has one cause, in whatever order records come, and in recordings")
	test_causes();
	TEST("causes of a session of many windows, whose activities are late, are exact, also in copies and with "
	     "--reset, and those of each iteration are, too")
	test_long();
	TEST("samples of the thread tell the Python line of a cause, and the stack of the next call that of the "
	     "program's code")
	test_lines();
	TEST("Python code and operators are divided by when their thread had no CPU, in whatever order "
	     "records "
	     "come, and in recordings and copies")
	test_divided();
	TEST("switches of --sched divide Python code, too")
	test_sched();
	TEST("where switches are not known, or were forgotten, Python code is not divided")
	test_undivided();
	TEST("a session without --gpu keeps no spans for GPUs")
	test_without();
	UNIT_MAIN_END;
}
