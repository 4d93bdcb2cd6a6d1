/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that calls reported by the agent get their scheduling account and bytes from switches and allocations of
 * their thread.
 */
#include "unit.h"

#include "source/account.h"
#include "mxbpf_sched.h"

#define PID 10
#define TID 11

static struct acc *acc;

static void off(uint32_t tid, uint64_t left, uint64_t woken, uint64_t back, unsigned state, uint16_t to_cpu)
{
	struct mxbpf_sched r = {
		.h = {.kind = MXBPF_SCHED, .size = sizeof(r), .tgid = PID, .ts_ns = left},
		.woken_ns = woken,
		.back_ns = back,
		.tid = tid,
		.left_cpu = 1,
		.back_cpu = to_cpu,
		.state = (uint8_t)state,
	};

	CHECK(!acc_take(acc, &r.h));
}

static void slept(uint64_t left, uint64_t woken, uint64_t back)
{
	off(TID, left, woken, back, MXBPF_SCHED_SLEEPING, 1);
}

static void preempted(uint64_t left, uint64_t back)
{
	off(TID, left, left, back, MXBPF_SCHED_RUNNABLE, 1);
}

static void bytes(uint64_t at, int64_t n)
{
	struct mxbpf_alloc r = {.h = {.kind = MXBPF_ALLOC, .size = MXBPF_ALLOC_BYTES_PLAIN, .tgid = PID, .ts_ns = at},
				.bytes = n,
				.tid = TID};

	CHECK(!acc_take(acc, &r.h));
}

static struct mxbpf_span span_of(uint32_t tid, uint64_t start, uint64_t end, unsigned flags)
{
	struct mxbpf_span s = {
		.h = {.kind = MXBPF_SPAN, .size = MXBPF_SPAN_BYTES_PLAIN, .tgid = PID, .ts_ns = start},
		.dur_ns = end - start,
		.tid = tid,
		.end_tid = tid,
		.flags = (uint8_t)flags,
	};

	CHECK(!acc_fill(acc, &s));
	return s;
}

static struct mxbpf_span span(uint64_t start, uint64_t end)
{
	return span_of(TID, start, end, 0);
}

static bool went(const struct mxbpf_span *s, uint64_t cpu, uint64_t runq, uint64_t blocked)
{
	return s->flags & MXBPF_SPAN_ACCOUNT && s->account.on_cpu_ns == cpu && s->account.runq_ns == runq &&
	       s->account.blocked_ns == blocked;
}

static void begin(bool switches)
{
	acc_free(acc);
	acc = acc_new(switches);
	if (!acc)
		abort();
}

static void test_times(void)
{
	struct mxbpf_span s, outer;

	TEST("a call has the part of a time off CPU that overlaps it")
	{
		begin(true);
		slept(100, 140, 150);
		preempted(200, 230);
		s = span(90, 160);
		CHECK(went(&s, 20, 10, 40) && s.account.nvcsw == 1 && !s.account.nivcsw && s.h.size == sizeof(s));
		s = span(190, 240);
		CHECK(went(&s, 20, 30, 0) && !s.account.nvcsw && s.account.nivcsw == 1);
		s = span(80, 250);
		CHECK(went(&s, 90, 40, 40) && s.nested.runq_ns == 40 && s.nested.blocked_ns == 40 &&
		      s.nested.nvcsw == 1);
	}
	TEST("a call whose thread stays on its CPU has a short record with the account flag set")
	{
		s = span(300, 400);
		CHECK(s.flags & MXBPF_SPAN_ACCOUNT && s.h.size == MXBPF_SPAN_BYTES_PLAIN && s.cpu == 1);
	}
	TEST("a call that starts or ends inside a time off CPU has only the part inside it")
	{
		begin(true);
		slept(100, 140, 150);
		s = span(120, 145);
		CHECK(went(&s, 0, 5, 20));
	}
	TEST("the account of a call separates its directly nested calls from its own time")
	{
		begin(true);
		slept(100, 110, 110);
		slept(120, 140, 140);
		slept(150, 180, 180);
		s = span(95, 112);
		CHECK(went(&s, 7, 0, 10) && !s.nested.blocked_ns);
		s = span(118, 142);
		CHECK(went(&s, 4, 0, 20));
		outer = span(116, 145); /* around the second call only */
		CHECK(went(&outer, 9, 0, 20) && outer.nested.blocked_ns == 20);
		outer = span(90, 200);
		CHECK(went(&outer, 50, 0, 60) && outer.nested.blocked_ns == 30 && outer.nested.nvcsw == 2);
	}
	TEST("a switch of one thread does not count for another thread")
	{
		begin(true);
		slept(100, 110, 110);
		s = span_of(TID + 1, 90, 120, 0);
		CHECK(s.flags & MXBPF_SPAN_ACCOUNT && s.h.size == MXBPF_SPAN_BYTES_PLAIN && s.cpu == MXBPF_CPU_NONE);
	}
	TEST("a call that another thread ends has only elsewhere time")
	{
		s = span_of(TID, 90, 120, MXBPF_SPAN_ASYNC);
		CHECK(went(&s, 0, 0, 0) && s.account.flags == MXBPF_ACCOUNT_PART && s.h.size == sizeof(s));
	}
	TEST("a call has no account without scheduler records")
	{
		begin(false);
		s = span(90, 120);
		CHECK(!(s.flags & MXBPF_SPAN_ACCOUNT) && s.h.size == MXBPF_SPAN_BYTES_PLAIN);
	}
}

static void test_bytes(void)
{
	struct mxbpf_span s;

	TEST("bytes count as self bytes of the innermost call and as bytes of all calls around it")
	{
		begin(false);
		bytes(5, 1);
		bytes(20, 100);
		bytes(30, -40);
		bytes(60, 7);
		s = span(15, 40);
		CHECK(s.alloc_bytes == 60 && s.self_alloc_bytes == 60);
		s = span(10, 70);
		CHECK(s.alloc_bytes == 67 && s.self_alloc_bytes == 7);
		s = span(80, 90);
		CHECK(!s.alloc_bytes && !s.self_alloc_bytes);
	}
}

#define MANY 1000000

static void test_limits(void)
{
	struct mxbpf_span s, inner;
	uint64_t i, blocked = 0;

	TEST("a call with a million switches counts each of them, and the compacted history loses at most 0.01 %")
	{
		begin(true);
		for (i = 0; i < MANY; i++) {
			bytes(10 * i + 1, 3);
			slept(10 * i + 2, 10 * i + 5, 10 * i + 6);
			inner = span(10 * i, 10 * i + 8);
			blocked += inner.account.blocked_ns;
			CHECK(inner.alloc_bytes == 3);
		}
		CHECK(blocked == 3ull * MANY);
		s = span(0, 10ull * MANY);
		CHECK(s.account.blocked_ns == 3ull * MANY && s.account.runq_ns == MANY && s.account.nvcsw == MANY);
		CHECK(s.nested.blocked_ns == 3ull * MANY && s.alloc_bytes == 3ll * MANY && !s.self_alloc_bytes);
		s = span(10 * 777 + 9, 10ull * MANY); /* long ago, in the part of the history that is thinned out */
		CHECK(s.account.nvcsw >= MANY - MANY / 10000 && s.account.nvcsw <= MANY);
	}
	TEST("a thread that has ended is forgotten after its calls have come, and its thread id can be reused")
	{
		struct mxbpf_sched last = {
			.h = {.kind = MXBPF_SCHED, .size = sizeof(last), .tgid = PID, .ts_ns = 500},
			.woken_ns = 500,
			.back_ns = 500,
			.tid = TID,
			.flags = MXBPF_SCHED_LAST,
		};

		begin(true);
		slept(100, 110, 110);
		CHECK(!acc_take(acc, &last.h));
		s = span(90, 120);
		CHECK(went(&s, 20, 0, 10));
		acc_forget_ended(acc);
		s = span(90, 120);
		CHECK(s.h.size == MXBPF_SPAN_BYTES_PLAIN && s.cpu == MXBPF_CPU_NONE);
		slept(600, 605, 605);
		s = span(590, 610);
		CHECK(went(&s, 15, 0, 5));
	}
}

static void test_many_threads(void)
{
	struct mxbpf_span s;
	uint32_t tid;

	TEST("the least recently used threads beyond the limit are forgotten and counted")
	{
		begin(true);
		for (tid = 1; tid <= ACC_THREADS_MAX; tid++)
			off(tid, 100, 110, 110, MXBPF_SCHED_SLEEPING, 1);
		CHECK(!acc_forgotten(acc));
		s = span_of(1, 90, 120, 0); /* makes thread 1 recently used */
		CHECK(went(&s, 20, 0, 10));
		off(tid, 100, 110, 110, MXBPF_SCHED_SLEEPING, 1);
		CHECK(acc_forgotten(acc) == ACC_THREADS_MAX / 2);
		s = span_of(1, 90, 120, 0);
		CHECK(went(&s, 20, 0, 10));
		s = span_of(2, 90, 120, 0);
		CHECK(s.h.size == MXBPF_SPAN_BYTES_PLAIN);
		s = span_of(tid, 90, 120, 0);
		CHECK(went(&s, 20, 0, 10));
	}
}

int main(void)
{
	test_times();
	test_bytes();
	test_limits();
	test_many_threads();
	acc_free(acc);
	UNIT_MAIN_END;
}
