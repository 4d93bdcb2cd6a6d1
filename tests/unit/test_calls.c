/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that allocations, parallel regions and switches are assigned to the agent's call in which they happened. */
#include "unit.h"

#include "source/calls.h"
#include "mxbpf_sched.h"
#include "mxbpf_omp.h"

#define PID    10
#define TID    11
#define LENDER 7

static struct calls *calls;

static void begin(void)
{
	const uint64_t lenders[MXBPF_LENDERS_MAX] = {LENDER};

	calls_free(calls);
	calls = calls_new(lenders);
	if (!calls)
		abort();
}

static struct mxbpf_span span_of(uint64_t start, uint64_t end, uint64_t name, unsigned flags)
{
	return (struct mxbpf_span){
		.h = {.kind = MXBPF_SPAN, .size = MXBPF_SPAN_BYTES_PLAIN, .tgid = PID, .ts_ns = start},
		.dur_ns = end - start,
		.name_id = name,
		.tid = TID,
		.end_tid = TID,
		.flags = (uint8_t)flags,
	};
}

static void ended(uint64_t start, uint64_t end, uint64_t name)
{
	struct mxbpf_span s = span_of(start, end, name, 0);

	CHECK(!calls_ended(calls, &s));
}

static void ended_by(uint32_t tid, uint64_t start, uint64_t end, uint64_t name)
{
	struct mxbpf_span s = span_of(start, end, name, MXBPF_SPAN_ASYNC);

	s.end_tid = tid;
	CHECK(!calls_ended(calls, &s));
}

static void handed_on(uint64_t start, uint64_t end)
{
	struct mxbpf_span s = span_of(start, end, 0, 0);

	calls_forget(calls, &s);
}

static void is_open(uint64_t start, uint64_t until, uint64_t name)
{
	struct mxbpf_open o = {.h = {.kind = MXBPF_OPEN, .size = sizeof(o), .tgid = PID, .ts_ns = start},
			       .open_ns = until - start,
			       .name_id = name,
			       .tid = TID};

	CHECK(!calls_open(calls, &o));
}

/* Returns the operator of an allocation, or 0 if it has none. */
static uint64_t owner_in(uint32_t tid, uint64_t ns)
{
	struct mxbpf_alloc r = {
		.h = {.kind = MXBPF_ALLOC, .size = sizeof(r), .tgid = PID, .ts_ns = ns}, .bytes = 1, .tid = tid};

	calls_fill(calls, &r.h);
	CHECK(!r.cls == !r.name_id);
	return r.name_id;
}

static uint64_t owner(uint64_t ns)
{
	return owner_in(TID, ns);
}

static void test_ended(void)
{
	TEST("an allocation belongs to the innermost call that was open, and to no call if none was open")
	{
		begin();
		ended(20, 30, 2);
		ended(40, 50, 3);
		ended(10, 60, 1);
		ended(70, 80, 4);
		CHECK(owner(9) == 0 && owner(10) == 1 && owner(20) == 2 && owner(29) == 2 && owner(30) == 1);
		CHECK(owner(35) == 1 && owner(45) == 3 && owner(59) == 1 && owner(60) == 0 && owner(75) == 4);
		CHECK(owner_in(TID + 1, 45) == 0);
	}
	TEST("a call that lends memory owns an allocation only if no other call is around it")
	{
		begin();
		ended(30, 40, LENDER);
		ended(20, 50, LENDER);
		ended(10, 60, 1);
		ended(70, 80, LENDER);
		CHECK(owner(35) == 1 && owner(25) == 1 && owner(75) == LENDER);
		ended(100, 110, LENDER);
		is_open(90, 120, 5);
		CHECK(owner(105) == 5);
	}
	TEST("a call that is reported late, inside a call of the same name, changes nothing")
	{
		begin();
		ended(40, 50, 3);
		ended(20, 30, 1);
		ended(10, 60, 1);
		CHECK(owner(25) == 1 && owner(45) == 3);
	}
	TEST("a call that another thread ended contains no other call, but one that its own thread ended out of order "
	     "does")
	{
		begin();
		ended_by(TID + 1, 10, 30, 1);
		CHECK(owner(20) == 0);
		ended(50, 60, 3);
		ended_by(TID, 40, 70, 2);
		CHECK(owner(55) == 3 && owner(65) == 2);
	}
}

static void test_open(void)
{
	TEST("an open call owns the allocations until the time of the snapshot, except those of calls nested in it")
	{
		begin();
		ended(20, 30, 2);
		is_open(10, 100, 1);
		is_open(50, 100, 3);
		CHECK(owner(5) == 0 && owner(15) == 1 && owner(25) == 2 && owner(40) == 1 && owner(60) == 3);
		CHECK(owner(100) == 0);
		is_open(10, 200, 1);
		ended(50, 120, 3);
		CHECK(owner(110) == 3 && owner(130) == 1);
	}
	TEST("an allocation at a time not yet known is told apart from one outside of any call")
	{
		struct mxbpf_alloc r = {.h = {.kind = MXBPF_ALLOC, .size = sizeof(r), .tgid = PID, .ts_ns = 500}};

		r.tid = TID;
		CHECK(!calls_fill(calls, &r.h));
		calls_known(calls, 500);
		CHECK(!calls_fill(calls, &r.h));
		calls_known(calls, 501);
		CHECK(calls_fill(calls, &r.h) && !r.cls);
	}
	TEST("open calls beyond the limit are counted")
	{
		uint64_t i;

		begin();
		for (i = 1; i <= CALLS_OPEN_MAX; i++)
			is_open(i, 5000, i);
		CHECK(!calls_lost(calls));
		is_open(i, 5000, i);
		CHECK(calls_lost(calls) == 1 && owner(4000) == CALLS_OPEN_MAX);
	}
}

static void test_spans(void)
{
	struct mxbpf_team team = {.h = {.kind = MXBPF_TEAM, .size = sizeof(team), .tgid = PID, .ts_ns = 25},
				  .tid = TID};
	struct mxbpf_sched off = {.h = {.kind = MXBPF_SCHED, .size = sizeof(off), .tgid = PID, .ts_ns = 25},
				  .tid = TID};

	TEST("a parallel region and a time off CPU refer to their call by name, class and start")
	{
		begin();
		ended(20, 30, LENDER);
		ended(10, 40, 1);
		CHECK(calls_fill(calls, &team.h) && team.name_id == LENDER && team.span_start_ns == 20);
		CHECK(team.cls == MXBPF_CLASS_OPERATOR);
		CHECK(calls_fill(calls, &off.h) && off.span_name_id == LENDER && off.span_start_ns == 20);
		CHECK(off.span_cls == MXBPF_CLASS_OPERATOR);
	}
	TEST("a span assigned by BPF is kept if it began inside the call, and replaced if the call began inside the "
	     "span")
	{
		off.span_name_id = 99;
		off.span_start_ns = 22;
		off.span_cls = MXBPF_CLASS_KERNEL;
		CHECK(calls_fill(calls, &off.h) && off.span_name_id == 99 && off.span_cls == MXBPF_CLASS_KERNEL);
		off.span_start_ns = 15;
		CHECK(calls_fill(calls, &off.h) && off.span_name_id == LENDER && off.span_start_ns == 20);
	}
}

/* ---- many calls, compared with a linear search */

#define MANY 20000

static struct {
	uint64_t start, end;
} all[MANY];
static unsigned nall;
static uint64_t now, seed = 1;

static unsigned next_random(unsigned below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % below;
}

/* Makes a call that contains other calls. The name of each call is its start time. */
static void make(unsigned depth)
{
	uint64_t start = now += 1 + next_random(3);
	unsigned n = depth < 40 ? next_random(depth < 3 ? 6 : 2) : 0;

	while (n-- && nall < MANY - 100)
		make(depth + 1);
	now += 1 + next_random(3);
	ended(start, now, start);
	all[nall].start = start;
	all[nall++].end = now;
}

static uint64_t truth(uint64_t ns)
{
	uint64_t best = 0;
	unsigned i;

	for (i = 0; i < nall; i++)
		if (all[i].start <= ns && ns < all[i].end && all[i].start > best)
			best = all[i].start;
	return best;
}

static void test_many(void)
{
	unsigned i, from = 0, checks = 0;
	uint64_t ns;

	TEST("each moment belongs to the right call, even among many calls of which the older ones are forgotten")
	{
		begin();
		now = 100;
		while (nall < MANY - 100) {
			unsigned first = nall;

			make(0);
			for (i = 0; i < 4; i++, checks++) {
				ns = all[first].start + next_random((unsigned)(now + 2 - all[first].start));
				CHECK(owner(ns) == truth(ns));
			}
			for (; from + 500 < nall; from++)
				handed_on(all[from].start, all[from].end);
		}
		CHECK(checks > 1000 && owner(all[0].start) != all[0].start);
	}
	TEST("calls that were handed on are forgotten")
	{
		for (; from < nall; from++)
			handed_on(all[from].start, all[from].end);
		calls_known(calls, now + 1);
		CHECK(owner(now - 1) == 0);
	}
}

/* Checks the calls of TID that were open at a moment, outermost first. */
static bool around_is(uint64_t ns, unsigned max, unsigned n, const uint64_t *ids)
{
	uint64_t got[8];
	bool known;

	return calls_around(calls, TID, PID, ns, got, max, &known) == n &&
	       (!n || !memcmp(got, ids, n * sizeof(*ids))) && known == (n || ns < 100);
}

static void test_around(void)
{
	TEST("a sample gets all calls that were open, ended or not, outermost first")
	{
		begin();
		is_open(5, 100, 9);
		ended(20, 30, 2);
		ended(40, 50, 3);
		ended(10, 60, 1);
		calls_known(calls, 100);
		CHECK(around_is(25, 8, 3, (uint64_t[]){9, 1, 2}));
		CHECK(around_is(35, 8, 2, (uint64_t[]){9, 1}));
		CHECK(around_is(70, 8, 1, (uint64_t[]){9}));
		CHECK(around_is(3, 8, 0, NULL) && around_is(200, 8, 0, NULL));
		CHECK(around_is(45, 2, 2, (uint64_t[]){1, 3})); /* the inner ones, if there is no room for more */
	}
}

int main(void)
{
	test_around();
	test_ended();
	test_open();
	test_spans();
	test_many();
	calls_free(calls);
	UNIT_MAIN_END;
}
