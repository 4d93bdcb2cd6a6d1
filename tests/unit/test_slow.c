// SPDX-License-Identifier: Apache-2.0
/* Tests which calls count as slow and what is shown as their cause. */

#include "feature/slow/slow.h"
#include "mxbpf_sched.h"
#include "records.h"

#define US	 1000ull
#define MS	 1000000ull
#define TYPICAL	 (100 * US)
#define FAULT_NS 500
#define CALLS	 100

static uint64_t now_ns = 5000 * MS;

static struct mxbpf_span call(uint64_t name_id, uint64_t dur_ns)
{
	struct mxbpf_span s = {
		.h = {.kind = MXBPF_SPAN, .size = sizeof(s), .tgid = 77, .ts_ns = now_ns},
		.name_id = name_id,
		.dur_ns = dur_ns,
		.self_ns = dur_ns,
		.tid = 78,
		.end_tid = 78,
		.cls = MXBPF_CLASS_OPERATOR,
		.flags = MXBPF_SPAN_ACCOUNT,
		.account = {.on_cpu_ns = dur_ns},
	};

	now_ns += dur_ns;
	return s;
}

static void put(struct mdl *m, struct mxbpf_span s)
{
	CHECK(!mdl_feed(m, &s, sizeof(s)));
}

/* Returns a model in which an operator has taken about the same time CALLS times. */
static struct mdl *steady(uint64_t name_id)
{
	struct mdl *m = mdl_new();
	unsigned i;

	for (i = 0; i < CALLS; i++)
		put(m, call(name_id, TYPICAL + i));
	return m;
}

/* Returns the only slow call, or an empty one if there is not exactly one. */
static struct slow_call only(struct mdl *m)
{
	FREED(memory_freed) struct slow_call *all = NULL;
	struct slow_call one = {0};
	size_t n;

	CHECK(!slow_calls(m, FAULT_NS, &all, &n) && n == 1);
	if (n == 1)
		one = all[0];
	return one;
}

static size_t count(struct mdl *m)
{
	FREED(memory_freed) struct slow_call *all = NULL;
	size_t n;

	CHECK(!slow_calls(m, FAULT_NS, &all, &n));
	return n;
}

static void test_causes(void)
{
	static const struct {
		struct mxbpf_account account;
		enum slow_cause cause;
		uint64_t ns;
	} cases[] = {
		{{.on_cpu_ns = 5 * MS}, SLOW_COMPUTED, 5 * MS - TYPICAL},
		{{.on_cpu_ns = 5 * MS, .minflt = 100}, SLOW_COMPUTED, 5 * MS - TYPICAL},
		{{.on_cpu_ns = 5 * MS, .minflt = 9000}, SLOW_FAULTED, 5 * MS - TYPICAL},
		{{.on_cpu_ns = 1 * MS, .runq_ns = 3 * MS, .blocked_ns = 1 * MS, .nivcsw = 2}, SLOW_RUNNABLE, 3 * MS},
		{{.on_cpu_ns = 1 * MS, .blocked_ns = 4 * MS, .nvcsw = 2}, SLOW_BLOCKED, 4 * MS},
		{{.on_cpu_ns = 1 * MS, .blocked_ns = 4 * MS, .nvcsw = 2, .majflt = 3}, SLOW_READ, 4 * MS},
		{{.on_cpu_ns = 1 * MS, .flags = MXBPF_ACCOUNT_PART}, SLOW_ELSEWHERE, 4 * MS},
	};
	struct mxbpf_span s;
	struct slow_call slow;
	struct mdl *m;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		m = steady(3);
		s = call(3, 5 * MS);
		s.account = cases[i].account;
		put(m, s);
		slow = only(m);
		CHECK(slow.cause == cases[i].cause && slow.span.dur_ns == 5 * MS && slow.span.h.ts_ns == s.h.ts_ns);
		/* The median is only as exact as its bucket. */
		CHECK(slow.cause_ns + TYPICAL / 8 >= cases[i].ns && slow.cause_ns <= cases[i].ns + TYPICAL / 8);
		mdl_free(m);
	}
}

static void test_not_slow(void)
{
	FREED(model_freed) struct mdl *m = steady(3);
	struct mxbpf_span s = call(3, 2 * TYPICAL - TYPICAL / 4);

	put(m, s); /* less than twice as long */
	s = call(3, 5 * MS);
	s.flags |= MXBPF_SPAN_UNWOUND; /* its end was missed */
	put(m, s);
	s = call(3, 5 * MS);
	s.flags = 0; /* it has no account */
	put(m, s);
	s = call(3, 5 * MS);
	s.cls = MXBPF_CLASS_WAIT;
	put(m, s);
	put(m, call(5, 5 * MS)); /* the first call of its row: no median is known */
	CHECK(!count(m));
}

/* Of two kinds of calls, one call in ten takes 20 times as long. */
static void test_kinds(void)
{
	FREED(model_freed) struct mdl *m = steady(3);
	struct slow_call slow;
	struct mxbpf_span s;
	unsigned i;

	for (i = 0; i < 400; i++)
		put(m, call(3, i % 10 ? TYPICAL : 20 * TYPICAL));
	CHECK(!count(m));
	put(m, call(3, 60 * TYPICAL)); /* three times as long as its kind */
	slow = only(m);
	CHECK(slow.span.dur_ns == 60 * TYPICAL && slow.median_ns > 17 * TYPICAL && slow.median_ns < 23 * TYPICAL);
	mdl_free(m);

	m = steady(3);
	for (i = 0; i < 400; i++)
		put(m, call(3, i % 10 ? TYPICAL : 20 * TYPICAL));
	s = call(3, 20 * TYPICAL); /* it lasts as long as the second kind, and computes as long as the first */
	s.account.on_cpu_ns = TYPICAL;
	s.account.runq_ns = 19 * TYPICAL;
	put(m, s);
	slow = only(m);
	CHECK(slow.cause == SLOW_RUNNABLE && slow.median_ns < 2 * TYPICAL);
}

static void test_short(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	unsigned i;

	for (i = 0; i < CALLS; i++)
		put(m, call(3, 2 * US));
	put(m, call(3, 20 * US)); /* ten times as long, but too short to matter */
	CHECK(!count(m));
}

/* A call that seemed slow may turn out to be typical. */
static void test_new_median(void)
{
	FREED(model_freed) struct mdl *m = steady(3);
	unsigned i;

	put(m, call(3, MS));
	CHECK(count(m) == 1);
	for (i = 0; i < 3 * CALLS; i++)
		put(m, call(3, MS));
	CHECK(!count(m));
}

static void test_nested(void)
{
	FREED(model_freed) struct mdl *m = steady(3);
	struct mxbpf_span inner, outer;
	unsigned i;

	for (i = 0; i < CALLS; i++)
		put(m, call(5, 2 * TYPICAL));
	outer = call(5, 5 * MS);
	inner = outer;
	inner.name_id = 3;
	inner.h.ts_ns += 10 * US;
	inner.dur_ns -= 20 * US;
	inner.account = (struct mxbpf_account){.on_cpu_ns = TYPICAL, .runq_ns = inner.dur_ns - TYPICAL, .nivcsw = 1};
	outer.account = inner.account;
	outer.account.on_cpu_ns += 20 * US;
	put(m, inner);
	put(m, outer);
	CHECK(only(m).row->name_id == 3);
	inner.tid++; /* on another thread it does not explain the outer call */
	put(m, inner);
	CHECK(count(m) == 2);
}

/* The list is bounded and keeps the slowest calls. */
static void test_bounded(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(memory_freed) struct slow_call *all = NULL;
	struct mxbpf_span s;
	size_t n, i;

	for (i = 0; i < 20 * SLOW_MAX; i++)
		put(m, call(3, TYPICAL));
	for (i = 0; i < 2 * SLOW_MAX; i++) {
		s = call(3, MS + i * 10 * US);
		s.account.on_cpu_ns = TYPICAL; /* many that compute would be a kind of their own */
		put(m, s);
	}
	CHECK(!slow_calls(m, FAULT_NS, &all, &n) && n == SLOW_MAX);
	for (i = 0; i < n; i++)
		CHECK(all[i].span.dur_ns == MS + (2 * SLOW_MAX - 1 - i) * 10 * US);
}

static void test_records(void)
{
	FREED(model_freed) struct mdl *m = steady(3), *copy = mdl_new();
	struct mxbpf_span s = call(3, 5 * MS);
	struct slow_call a, b;
	FREED(buf_fini) struct buf recs = {0};

	s.account = (struct mxbpf_account){.on_cpu_ns = MS, .runq_ns = 4 * MS, .nivcsw = 7};
	put(m, s);
	CHECK(!mdl_emit(m, &recs) && !feed(copy, &recs));
	a = only(m);
	b = only(copy);
	CHECK(!memcmp(&a.span, &b.span, sizeof(a.span)) && a.median_ns == b.median_ns && a.cause == b.cause);
}

struct off {
	struct mxbpf_sched r;
	struct mxbpf_sched_slice slices[3];
};

/*
 * Returns a time off CPU in the middle of s: a sleep of 1 ms in a system call, then a run-queue wait of 2 ms while two
 * other threads ran, one of them twice.
 */
static struct off off_in(const struct mxbpf_span *s, int syscall)
{
	const uint64_t left = s->h.ts_ns + MS, woken = left + MS, back = woken + 2 * MS;
	struct off o = {
		.r = {.h = {MXBPF_SCHED, sizeof(o), 77, left},
		      .woken_ns = woken,
		      .back_ns = back,
		      .tid = 78,
		      .by_tid = 99,
		      .by_comm = "waker",
		      .syscall = syscall,
		      .back_cpu = 3,
		      .state = MXBPF_SCHED_SLEEPING,
		      .nslices = 3},
		.slices = {{back - 400 * US, back, 55, 55, "hog"},
			   {back - 1200 * US, back - 400 * US, 66, 66, "one long turn"},
			   {woken, back - 1200 * US, 55, 55, "hog"}},
	};

	return o;
}

/* The scheduler's records may arrive before or after the span. */
static void test_by(void)
{
	struct mdl *m;
	struct mxbpf_span s;
	struct slow_call slow;
	struct off o, other;
	int after;

	for (after = 0; after < 2; after++) {
		m = steady(3);
		s = call(3, 9 * MS);
		s.account =
			(struct mxbpf_account){.on_cpu_ns = 6 * MS, .runq_ns = 2 * MS, .blocked_ns = MS, .nvcsw = 1};
		o = off_in(&s, 202); /* futex */
		other = o;
		other.r.tid = 79;
		other.r.back_ns += MS;
		if (after)
			put(m, s);
		CHECK(!mdl_feed(m, &other, sizeof(other)) && !mdl_feed(m, &o, sizeof(o)));
		if (!after)
			put(m, s);
		slow = only(m);
		CHECK(!strcmp(slow.span.kept.comm, "hog") && slow.span.kept.ns == 1200 * US);
		CHECK(slow.span.kept.tid == 55 && slow.span.kept.cpu == 3);
		CHECK(slow.span.slept.what == MXBPF_SCHED_FUTEX && slow.span.slept.ns == MS);
		CHECK(!strcmp(slow.span.slept.comm, "waker") && slow.span.slept.tid == 99);
		mdl_free(m);
	}
	m = steady(3);
	s = call(3, 5 * MS);
	now_ns += 20 * MS;
	o = off_in(&s, 202);
	put(m, call(3, 5 * MS)); /* a later call */
	CHECK(!mdl_feed(m, &o, sizeof(o)));
	slow = only(m);
	CHECK(!slow.span.kept.ns && !slow.span.slept.ns);
	mdl_free(m);
}

int main(void)
{
	TEST("the cause of a slow call is the largest part beyond the median of its row")
	test_causes();
	TEST("a call near the median, without account or end, of a wait class, or first in its row is not slow")
	test_not_slow();
	TEST("a call of a row with several kinds of calls is judged within the kind that computes as long")
	test_kinds();
	TEST("a call too short to matter is not slow")
	test_short();
	TEST("a call that has become typical is not slow any more")
	test_new_median();
	TEST("only the nested call that explains the others is shown")
	test_nested();
	TEST("the slowest calls are kept, up to the maximum number")
	test_bounded();
	TEST("the CPU's users and the sleep of a slow call come from its own times off CPU, in any order of records")
	test_by();
	TEST("slow calls are among the emitted records")
	test_records();
	UNIT_MAIN_END;
}
