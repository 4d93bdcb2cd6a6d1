/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests how BPF pairs starts and ends of spans, on functions of this process: every way in which a start can miss its
 * end, and the counters that report it. In each test the sums of the kernel must equal the sums of the records.
 */

#include "probed_calls.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <ucontext.h>

#include "base/clock.h"

#define RECS_MAX     32768
#define WAIT_NS	     10000000000ull
#define CALLS_NS     200000000ull
#define RING_BYTES   (8u << 20) /* large enough for all records: records are dropped only for their depth */
#define DEEP	     600	/* depth of nested calls; the limit is MXBPF_FRAMES_MAX */
#define DEEP_THREADS 30		/* more than can have all frames open at the same time */
#define NPROBES	     9

/* ---- the profiled runtime: an API with paired calls, operators by key, a wait inside an API call */

PROBED static void wait_all(void)
{
	__asm__ volatile("" ::"i"(2) : "memory");
}

PROBED static void take_bytes(uint64_t bytes)
{
	__asm__ volatile("" ::"r"(bytes), "i"(3) : "memory");
}

PROBED static void give_bytes(uint64_t bytes)
{
	__asm__ volatile("" ::"r"(bytes), "i"(4) : "memory");
}

/* Calls with merge_same: a call counts as part of its caller if it is the caller's only call and has the same name. */
PROBED static void enter_twin(void)
{
	__asm__ volatile("" ::"i"(5) : "memory");
}

PROBED static void exit_twin(void)
{
	__asm__ volatile("" ::"i"(6) : "memory");
}

/* Forces a call instead of a tail jump, as in a function that returns a value. */
#define leave() (on_exit_api(), (void)({ __asm__ volatile("" ::: "memory"); }))

PROBED static void api(int more)
{
	on_enter("api");
	if (more)
		api(more - 1);
	leave();
}

/* Makes nested calls; the innermost one calls work(). */
PROBED static void api_around(int calls, void (*work)(void))
{
	on_enter("around");
	if (calls > 1)
		api_around(calls - 1, work);
	else
		work();
	leave();
}

static jmp_buf back;

PROBED static void api_left_by_a_jump(void)
{
	on_enter("left");
	longjmp(back, 1);
}

PROBED static void api_that_catches(void)
{
	on_enter("caught");
	if (!setjmp(back))
		api_left_by_a_jump();
	leave();
}

PROBED static void api_that_waits(void)
{
	on_enter("waits");
	wait_all();
	leave();
}

PROBED static void api_that_takes(int more)
{
	on_enter("takes");
	take_bytes(100);
	if (more)
		api_that_takes(more - 1);
	give_bytes(30);
	leave();
}

PROBED static void api_that_catches_and_takes(void)
{
	on_enter("caught");
	if (!setjmp(back))
		api_left_by_a_jump();
	take_bytes(7);
	leave();
}

/* ---- a session that profiles these functions */

static const struct adp_probe rows[NPROBES] = {
	{.row = {.action = MXBPF_ACT_OPEN,
		 .end = MXBPF_END_PAIR,
		 .cls = MXBPF_CLASS_API,
		 .at_call_site = 1,
		 .name_type = MXBPF_NAMED_BYTES,
		 .name = {ARG1}}},
	{.row = {.action = MXBPF_ACT_CLOSE_PAIR, .cls = MXBPF_CLASS_API, .at_call_site = 1}},
	{.row = {.action = MXBPF_ACT_OPEN,
		 .end = MXBPF_END_KEY,
		 .cls = MXBPF_CLASS_OPERATOR,
		 .key = {ARG1},
		 .device = {ARG1},
		 .link = {ARG1}}},
	{.row = {.action = MXBPF_ACT_CLOSE_KEY, .cls = MXBPF_CLASS_OPERATOR, .key = {ARG1}}},
	{.row = {.action = MXBPF_ACT_OPEN, .end = MXBPF_END_PARENT, .cls = MXBPF_CLASS_WAIT}},
	{.row = {.action = MXBPF_ACT_ALLOC, .size = {ARG1}}},
	{.row = {.action = MXBPF_ACT_FREE, .size = {ARG1}}},
	{.row = {.action = MXBPF_ACT_OPEN,
		 .end = MXBPF_END_PAIR,
		 .cls = MXBPF_CLASS_WAIT,
		 .at_call_site = 1,
		 .merge_same = 1}},
	{.row = {.action = MXBPF_ACT_CLOSE_PAIR, .cls = MXBPF_CLASS_WAIT, .at_call_site = 1}},
};

static const void *functions[NPROBES];
static struct plan_probe probes[NPROBES];
static struct plan_site sites[NPROBES];
static struct plan plan = {.lib = &self};

/* Groups of probes; a mask. */
enum {
	CALLS = 1,
	OPS = 2,
	WAITS = 4,
	BYTES = 8,
	TWINS = 16,
	ALL = 31,
};

static const unsigned groups[NPROBES] = {CALLS, CALLS, OPS, OPS, WAITS, BYTES, BYTES, TWINS, TWINS};

static struct mxbpf_span spans[RECS_MAX];
static unsigned nspans, nothers, nolder; /* nolder: that ended before the time up to which all had been passed on */
static struct mxbpf_loss loss;
static unsigned open_spans;
static struct ring *ring;
static struct mxbpf_loss loss_before; /* losses of the session when this test began */
static const char *backend;

static void make_plan(void)
{
	const void *const all[NPROBES] = {on_enter,   on_exit_api, op_start,   op_end,	 wait_all,
					  take_bytes, give_bytes,  enter_twin, exit_twin};

	memcpy(functions, all, sizeof(all));
	make_sites(sites, probes, rows, functions, NPROBES);
}

static void take(void *ctx, void *recs, size_t bytes)
{
	const struct mxbpf_rec *r = recs;

	for (; bytes; bytes -= r->size, r = (const void *)((const char *)r + r->size)) {
		nothers += r->kind != MXBPF_SPAN;
		nolder += ring && kind_end_ns(r) < ring_until_ns(ring);
		if (r->kind == MXBPF_SPAN && nspans < RECS_MAX)
			kind_span(r, &spans[nspans++]);
	}
}

static bool receive(struct err *e)
{
	nspans = nothers = nolder = 0;
	return !ring_start(att_ring_fd(att, ATT_CALLS), take, NULL, &ring, e);
}

/* Loads and attaches the probes of the groups in `which`. */
static bool begin(unsigned which, struct err *e)
{
	struct att_opts o = {.backend = backend, .ring_bytes = RING_BYTES};
	static struct plan_site wanted[NPROBES];
	unsigned i, n = 0;

	for (i = 0; i < NPROBES; i++)
		if (groups[i] & which)
			wanted[n++] = sites[i];
	plan.sites.data = (char *)wanted;
	plan.sites.len = n * sizeof(wanted[0]);
	loss_before = (struct mxbpf_loss){0};
	return !att_load(&plan, getpid(), &o, &att, e) && receive(e) &&
	       !att_attach(att, &plan, &plan.target, getpid(), e);
}

static void count_loss(void)
{
	struct mxbpf_loss all;

	att_loss(att, ATT_CALLS, &all);
	loss = (struct mxbpf_loss){.attempted = all.attempted - loss_before.attempted,
				   .stored = ring_received(ring),
				   .dropped = all.dropped - loss_before.dropped,
				   .unmatched = all.unmatched - loss_before.unmatched};
	loss_before = all;
}

/* Collects the results. Call it when no probe can be hit any more. */
static void take_all(void)
{
	ring_stop(ring);
	count_loss();
	open_spans = att_open_spans(att, NULL, NULL);
	CHECK(loss.attempted == loss.stored + loss.dropped && loss.stored == nspans + nothers);
	ring_free(ring);
	ring = NULL;
}

static void end(void)
{
	att_detach(att);
	take_all();
	leave_session();
}

static void begin_or_say(unsigned which)
{
	struct err e = {0};
	const bool begun = begin(which, &e);

	expect_session(begun, &e);
}

/*
 * Runs work() in the session that these tests share: an emulated kernel needs half a minute to verify the programs for
 * each new session. A test that leaves spans open ends the session, so that the next test finds none.
 */
static void watch(void (*work)(void))
{
	struct err e = {0};

	if (!att)
		begin_or_say(ALL);
	else
		CHECK(receive(&e));
	run_recorded(work);
	take_all();
	if (open_spans)
		leave_session();
}

/* Runs work() in a separate session, with the probes of some groups. */
static void watch_alone(void (*work)(void), unsigned which)
{
	if (att)
		leave_session();
	begin_or_say(which);
	att_activate(att, true);
	work();
	end();
}

static uint64_t end_ns(const struct mxbpf_span *s)
{
	return s->h.ts_ns + s->dur_ns;
}

static bool inside(const struct mxbpf_span *in, const struct mxbpf_span *out)
{
	return in->h.ts_ns > out->h.ts_ns && end_ns(in) < end_ns(out);
}

/* Returns true if each of the first n spans is inside the one that ended after it. */
static bool each_inside_next(unsigned n)
{
	unsigned i;

	for (i = 1; i < n; i++)
		if (!inside(&spans[i - 1], &spans[i]))
			return false;
	return true;
}

static void in_thread(void *(*f)(void *))
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, f, NULL));
	CHECK(!pthread_join(t, NULL));
}

#include "pair_calls.h"

/*
 * Returns the name of a test on this backend. Two buffers, because a test's name is printed when the next test begins.
 */
static const char *by(const char *promise)
{
	static char names[2][200];
	static unsigned k;

	k ^= 1;
	snprintf(names[k], sizeof(names[k]), "%s (%s)", promise, backend);
	return names[k];
}

static void say_what_came(void)
{
	printf("# %u spans; %llu attempted, %llu stored, %llu dropped, %llu unmatched, %u open\n", (unsigned)nspans,
	       (unsigned long long)loss.attempted, (unsigned long long)loss.stored, (unsigned long long)loss.dropped,
	       (unsigned long long)loss.unmatched, (unsigned)open_spans);
}

#include "deep_calls.h"

static void test_pairs(void)
{
	TEST(by("the self time of a call does not include its nested call"))
	{
		watch(two_deep);
		CHECK(nspans == 2 && inside(&spans[0], &spans[1]));
		CHECK(spans[0].self_ns == spans[0].dur_ns && spans[1].self_ns == spans[1].dur_ns - spans[0].dur_ns);
		CHECK(!loss.unmatched && !loss.dropped && !open_spans);
	}
	TEST(by("calls beyond the maximum depth are dropped, and all other calls keep their own ends"))
	{
		watch(too_deep);
		CHECK(nspans == MXBPF_FRAMES_MAX + 1 && loss.dropped == DEEP - MXBPF_FRAMES_MAX);
		CHECK(each_inside_next(MXBPF_FRAMES_MAX));
		CHECK(!loss.unmatched && !open_spans);
	}
	TEST(by("calls nested up to the maximum depth are all recorded"))
	{
		watch(as_deep_as_there_is_room);
		CHECK(nspans == MXBPF_FRAMES_MAX + 1 && !loss.dropped && !loss.unmatched && !open_spans);
		CHECK(each_inside_next(MXBPF_FRAMES_MAX));
	}
	TEST(by("a call that is left by a jump does not take the end of its caller"))
	{
		watch(jump);
		CHECK(nspans == 2 && spans[0].flags == MXBPF_SPAN_UNWOUND && !spans[1].flags);
		CHECK(spans[0].h.ts_ns > spans[1].h.ts_ns && loss.unmatched == 1 && !open_spans);
	}
	TEST(by("calls in which a thread changes its stack each have a record, and ends that belong to none are "
		"unmatched"))
	{
		watch(switch_to_lower_stack);
		CHECK(nswitches == 2 * SWITCHES && nspans == 5 * SWITCHES && !open_spans);
		CHECK(loss.unmatched == 2 * SWITCHES && !loss.dropped);
		watch(switch_to_higher_stack);
		CHECK(nswitches == 2 * SWITCHES && nspans == 5 * SWITCHES && !open_spans);
		CHECK(loss.unmatched == 4 * SWITCHES && !loss.dropped);
	}
	TEST(by("a wait ends with the call around it, and a wait outside of any call is unmatched"))
	{
		watch(wait_in_api);
		CHECK(nspans == 2 && spans[0].cls == MXBPF_CLASS_WAIT && spans[1].cls == MXBPF_CLASS_API);
		CHECK(!spans[0].flags && end_ns(&spans[0]) == end_ns(&spans[1]) && loss.unmatched == 1);
	}
}

static void test_keys(void)
{
	TEST(by("an object that starts again before its end gives one span and one unmatched start"))
	{
		watch(key_again);
		CHECK(nspans == 1 && loss.unmatched == 1 && !open_spans);
	}
}

/* These tests leave spans open. */
static void test_open_at_the_end(void)
{
	TEST(by("an operator that another thread ends is recorded after its own thread is gone, and one that never "
		"ends is open once"))
	{
		watch_alone(end_elsewhere, OPS);
		CHECK(nspans == 1 && (spans[0].flags & MXBPF_SPAN_ASYNC) && spans[0].tid != spans[0].end_tid);
		CHECK(!loss.unmatched && open_spans == 1);
	}
	TEST(by("a thread that ends inside a call leaves the call unmatched"))
	{
		/* BPF may learn of the thread's end only after the join; until then the call is open. */
		watch_alone(exit_inside, CALLS);
		CHECK(!nspans && loss.unmatched + open_spans == 1);
	}
	TEST(by("an end without a recorded start is unmatched, and a start without an end is open"))
	{
		watch_alone(in_flight, CALLS | OPS);
		CHECK(!nspans && loss.unmatched == 2 && open_spans == 2);
	}
}

static bool took(const struct mxbpf_span *s, int64_t all, int64_t own)
{
	return s->alloc_bytes == all && s->self_alloc_bytes == own;
}

static void test_bytes(void)
{
	TEST(by("bytes allocated and freed count as self bytes of the innermost call and as bytes of all calls around "
		"it"))
	{
		watch(take_in_calls);
		CHECK(nspans == 2 && nothers == 5 && took(&spans[0], 70, 70) && took(&spans[1], 140, 70));
	}
	TEST(by("bytes of a caller do not count for a nested call that was left by a jump"))
	{
		watch(take_after_a_jump);
		CHECK(nspans == 2 && spans[0].flags == MXBPF_SPAN_UNWOUND && took(&spans[0], 0, 0));
		CHECK(took(&spans[1], 7, 7));
	}
	TEST(by("an operator that another thread ends keeps the bytes that its own thread allocated in it"))
	{
		watch(take_and_end_elsewhere);
		CHECK(nspans == 2 && took(&spans[0], 53, 3));
		CHECK((spans[1].flags & MXBPF_SPAN_ASYNC) && took(&spans[1], 50, 50));
	}
}

static void test_pauses(void)
{
	TEST(by("calls that are open when a pause begins are unmatched, and take no end of a later call"))
	{
		watch(ends_in_a_pause);
		CHECK(nspans == 2 && spans[0].cls == MXBPF_CLASS_API && spans[1].cls == MXBPF_CLASS_OPERATOR);
		CHECK(spans[0].self_ns == spans[0].dur_ns && !spans[0].flags && !spans[1].flags);
		CHECK(loss.unmatched == 2 && !loss.dropped && !open_spans);
	}
	TEST(by("an end after a pause closes no call from before the pause"))
	{
		watch(ends_after_a_pause);
		CHECK(!nspans && loss.unmatched == 3 && !open_spans); /* operator, call, end of the call */
	}
	TEST(by("calls inside a call from before a pause are recorded, and a wait inside that call is unmatched"))
	{
		watch(calls_across_a_pause);
		CHECK(nspans == 1 && spans[0].self_ns == spans[0].dur_ns);
		CHECK(loss.unmatched == 3 && !open_spans);
	}
	TEST(by("a call stack that was full before a pause is empty after it"))
	{
		watch(full_before_a_pause);
		CHECK(nspans == 2 && inside(&spans[0], &spans[1]));
		CHECK(loss.dropped == DEEP - MXBPF_FRAMES_MAX && loss.unmatched == MXBPF_FRAMES_MAX);
	}
	TEST(by("a call that ended before a pause is kept even if the call around it might have merged it"))
	{
		watch(twin_before_a_pause);
		CHECK(nspans == 1 && spans[0].cls == MXBPF_CLASS_WAIT && !spans[0].flags);
		CHECK(loss.unmatched == 2 && !open_spans);
	}
	TEST(by("a link from before a pause is not joined to an operator that starts after it"))
	{
		watch(links_across_a_pause);
		CHECK(nspans == 2 && (uint32_t)spans[0].link == 0x1000 && spans[1].link != spans[0].link);
	}
}

static void test_limits(void)
{
	struct err e = {0};

	TEST(by("calls of threads beyond the slots are dropped and counted"))
	{
		watch_alone(more_threads_than_slots, CALLS);
		/*
		 * Each hit of a thread without a slot counts as dropped: BPF cannot know which hits would have made a
		 * span.
		 */
		CHECK(nspans == MXBPF_THREADS_MAX - 1 && loss.dropped == 2 * 21 && !loss.unmatched);
		say_what_came();
	}
	TEST(by("calls before activation and after deactivation are not recorded"))
	{
		CHECK(begin(CALLS, &e));
		CHECK(*(const uint8_t *)functions[0] == 0xcc);
		api(3);
		att_activate(att, true);
		att_activate(att, false);
		api(3);
		end();
		CHECK(!nspans && !loss.attempted && !loss.unmatched);
		CHECK(*(const uint8_t *)functions[0] != 0xcc);
	}
}

/* Calls while the ring is read several times, and then none until it was read again. */
static void calls_and_silence(void)
{
	const uint64_t begun_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t silent_ns;

	for (; ring_until_ns(ring) < begun_ns + CALLS_NS && clock_ns(CLOCK_MONOTONIC) < begun_ns + WAIT_NS;
	     usleep(1000))
		api(1);
	silent_ns = clock_ns(CLOCK_MONOTONIC);
	while (ring_until_ns(ring) < silent_ns && clock_ns(CLOCK_MONOTONIC) < silent_ns + WAIT_NS)
		usleep(1000);
	CHECK(ring_until_ns(ring) >= silent_ns);
}

static void test_watermark(void)
{
	TEST(by("the time up to which a ring was read goes on without records, and later records are not older"))
	{
		watch(calls_and_silence);
		CHECK(nspans > 10 && nolder <= 1); /* a hypervisor can stop a CPU in a hit for longer than is allowed */
	}
}

static void test_threads(void)
{
	TEST(by("threads that end the same call at the same time lose no call"))
	{
		watch(threads_on_one_row);
		CHECK(nspans == 4 * 250 * 2);
	}
	TEST(by("threads that begin while others are preempted in a hit lose no call"))
	{
		watch(threads_that_preempt_hits);
		CHECK(nspans == 2 * (ORDINARY_THREADS + URGENT_THREADS) && !loss.dropped);
		if (loss.dropped)
			say_what_came();
	}
}

static void name_them(void)
{
	static const unsigned lengths[] = {1, 7, 8, 9, 254, 255, 256, 510, 511, 600};
	static char name[MXBPF_NAME_BYTES_MAX], text[MXBPF_NAME_BYTES_MAX];
	unsigned i, k, tag, last;
	int n;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (last = 'y'; last <= 'z'; last++) {
			for (k = 0; k < lengths[i]; k++)
				name[k] = (char)('a' + (k + i) % 23);
			name[lengths[i] - 1] = (char)last;
			name[lengths[i]] = 0;
			on_enter(name);
			leave();
			n = ring_read_name(att_names_fd(att), plan_hash(name), text, &tag);
			CHECK(n == (int)lengths[i] && !memcmp(text, name, lengths[i]));
		}
	}
}

static void test_names(void)
{
	TEST(by("names of any length are stored completely and have the ids that user space computes"))
	watch(name_them);
}

#define MANY 33

static void test_too_many_for_perf(void)
{
	struct plan_site more[MANY];
	struct plan large = {.lib = &self, .sites = {.data = (char *)more, .len = sizeof(more)}};
	struct att_opts o = {.backend = "perf"};
	struct err e = {0};
	unsigned i;

	for (i = 0; i < MANY; i++)
		more[i] = sites[i % NPROBES];
	TEST("a plan with too many probes for perf is refused with a remedy before any probe is written")
	{
		CHECK(att_load(&large, getpid(), &o, &att, &e) == -E2BIG && e.cls == ERR_PRIVILEGE);
		CHECK(strstr(e.why, "33 probes") && strstr(e.why, "--probes"));
		CHECK(*(const uint8_t *)functions[0] != 0xcc);
	}
}

int main(void)
{
	char name[600];
	int i;

	make_plan();
	for (i = 0; att_backends[i]; i++) {
		struct err e = {0};

		backend = att_backends[i]->name;
		if (att_backends[i]->supported(&e)) {
			snprintf(name, sizeof(name), "spans are paired by %s # SKIP %s", backend, e.why);
			TEST(name) continue;
		}
		test_pairs();
		test_deep();
		test_keys();
		test_bytes();
		test_pauses();
		test_watermark();
		test_threads();
		test_names();
		test_deep_alone();
		test_open_at_the_end();
		test_limits();
	}
	if (att_pick("perf", NULL))
		test_too_many_for_perf();
	UNIT_MAIN_END;
}
