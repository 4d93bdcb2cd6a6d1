/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of calls that nest hundreds deep. test_attach_kernel.c includes this file after the functions that it probes.
 */
#ifndef DEEP_CALLS_H
#define DEEP_CALLS_H

#include "mxbpf_event.h"
#include "mxbpf_thread.h"

static void too_deep(void)
{
	api(DEEP - 1);
	api(0);
}

static void as_deep_as_there_is_room(void)
{
	api(MXBPF_FRAMES_MAX - 1);
	api(0);
}

static unsigned nflagged(unsigned flags)
{
	unsigned i, n = 0;

	for (i = 0; i < nspans; i++)
		n += spans[i].flags == flags;
	return n;
}

static void jump_back(void)
{
	longjmp(back, 1);
}

/* Makes `calls` nested calls; the outermost one catches the jump, and all others are left. */
static void jump_over(int calls)
{
	on_enter("caught");
	if (!setjmp(back))
		api_around(calls - 1, jump_back);
	leave();
}

static void deep_jump(void)
{
	jump_over(MXBPF_FRAMES_MAX);
}

static void deeper_jump(void)
{
	api_around(1, deep_jump);
	api(0);
}

static void take_100_bytes(void)
{
	take_bytes(100);
}

static void take_deep(void)
{
	api_around(MXBPF_FRAMES_MAX, take_100_bytes);
}

static void end_op(void)
{
	op_end(0x1000);
}

/* The operator ends while calls nested in it are still open. */
static void end_op_below(void)
{
	op_start(0x1000);
	api_around(MXBPF_FRAMES_MAX - 1, end_op);
}

static void *nest(void *arg)
{
	api(MXBPF_FRAMES_MAX - 1);
	return NULL;
}

static void *nest_for_ever(void *arg)
{
	unsigned i;

	for (i = 0; i < MXBPF_FRAMES_MAX; i++)
		on_enter("never left");
	return NULL;
}

static void nest_in_turn(void)
{
	unsigned i;

	for (i = 0; i < DEEP_THREADS; i++)
		in_thread(nest);
}

static void nest_for_ever_in_turn(void)
{
	unsigned i;

	for (i = 0; i < DEEP_THREADS; i++)
		in_thread(nest_for_ever);
	in_thread(nest);
}

static pthread_barrier_t all_deep;

static void wait_for_all(void)
{
	pthread_barrier_wait(&all_deep);
}

static void *nest_with_all(void *arg)
{
	api_around(MXBPF_FRAMES_MAX, wait_for_all);
	return NULL;
}

static void nest_at_once(void)
{
	pthread_t threads[DEEP_THREADS];
	unsigned i;

	pthread_barrier_init(&all_deep, NULL, DEEP_THREADS);
	for (i = 0; i < DEEP_THREADS; i++)
		if (pthread_create(&threads[i], NULL, nest_with_all, NULL))
			abort(); /* the other threads would wait forever */
	for (i = 0; i < DEEP_THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&all_deep);
	in_thread(nest);
}
static void test_deep(void)
{
	TEST(by("each call that a jump over hundreds of calls leaves is marked as unwound, and the catching call keeps "
		"its end"))
	{
		watch(deep_jump);
		CHECK(nspans == MXBPF_FRAMES_MAX && nflagged(MXBPF_SPAN_UNWOUND) == MXBPF_FRAMES_MAX - 1);
		CHECK(!spans[nspans - 1].flags && spans[0].h.ts_ns > spans[nspans - 1].h.ts_ns);
		CHECK(loss.unmatched == MXBPF_FRAMES_MAX - 1 && !loss.dropped && !open_spans);
	}
	TEST(by("a jump over dropped calls does not take the end of a later call"))
	{
		watch(deeper_jump);
		CHECK(nspans == MXBPF_FRAMES_MAX + 1 && loss.dropped == 1 && !open_spans);
		CHECK(nflagged(0) == 3 && loss.unmatched == MXBPF_FRAMES_MAX - 2);
	}
	TEST(by("bytes allocated hundreds of calls deep count as self bytes of the innermost call and as bytes of all "
		"calls around it"))
	{
		watch(take_deep);
		CHECK(nspans == MXBPF_FRAMES_MAX && spans[0].self_alloc_bytes == 100);
		CHECK(!spans[nspans - 1].self_alloc_bytes && spans[nspans - 1].alloc_bytes == 100);
	}
	TEST(by("an operator that ends by key inside hundreds of open calls keeps its own end"))
	{
		watch(end_op_below);
		CHECK(nspans == MXBPF_FRAMES_MAX && nflagged(MXBPF_SPAN_UNWOUND) == MXBPF_FRAMES_MAX - 1);
		CHECK(spans[nspans - 1].cls == MXBPF_CLASS_OPERATOR && !spans[nspans - 1].flags);
		CHECK(loss.unmatched == 2 * (MXBPF_FRAMES_MAX - 1) && !loss.dropped && !open_spans);
	}
	TEST(by("each of several deep threads in sequence reuses the slots that the previous thread released"))
	{
		watch(nest_in_turn);
		CHECK(nspans == DEEP_THREADS * MXBPF_FRAMES_MAX && !loss.dropped && !loss.unmatched && !open_spans);
	}
}

static void test_deep_alone(void)
{
	TEST(by("a thread that ends inside hundreds of calls releases their slots"))
	{
		watch_alone(nest_for_ever_in_turn, CALLS);
		CHECK(nspans == MXBPF_FRAMES_MAX && !loss.dropped);
		CHECK(loss.unmatched + open_spans == DEEP_THREADS * MXBPF_FRAMES_MAX);
	}
	TEST(by("deep threads that find no free slot drop the calls beyond it, and all other calls keep their own "
		"ends"))
	{
		const unsigned room = DEEP_THREADS * MXBPF_SLOT_FRAMES + MXBPF_SLOTS_DEEP * MXBPF_SLOT_FRAMES;

		watch_alone(nest_at_once, CALLS);
		CHECK(nspans == room + MXBPF_FRAMES_MAX && loss.dropped == DEEP_THREADS * MXBPF_FRAMES_MAX - room);
		CHECK(nflagged(0) == nspans && !loss.unmatched && !open_spans);
		say_what_came();
	}
}

#endif
