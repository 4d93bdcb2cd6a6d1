/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that test_attach_kernel.c profiles. That file includes this one after the functions that it probes. */
#ifndef PAIR_CALLS_H
#define PAIR_CALLS_H

#include "mxbpf_thread.h"

static void two_deep(void)
{
	api(1);
}

static void jump(void)
{
	api_that_catches();
}

static void wait_in_api(void)
{
	api_that_waits();
	wait_all(); /* no call is open here: nothing would end it */
}

static void key_again(void)
{
	op_start(0x1000);
	op_start(0x1000);
	op_end(0x1000);
}

static void *start_ops(void *arg)
{
	op_start(0x1000);
	op_start(0x2000);
	return NULL;
}

static void end_elsewhere(void)
{
	in_thread(start_ops);
	op_end(0x1000);
}

static void take_in_calls(void)
{
	take_bytes(1); /* outside of any call: counts for none */
	api_that_takes(1);
}

static void take_after_a_jump(void)
{
	api_that_catches_and_takes();
}

/* Allocates in a deeper stack frame than op_start(), so that the allocation counts as nested in that operator. */
PROBED static void take_deeper(void)
{
	take_bytes(50);
	__asm__ volatile("" ::: "memory");
}

PROBED static void start_op_and_take(void)
{
	op_start(0x1000);
	take_deeper();
	__asm__ volatile("" ::: "memory");
}

/* The allocation after start_op_and_take() comes when the operator's function has returned. */
static void *take_in_op(void *arg)
{
	on_enter("outer");
	start_op_and_take();
	take_bytes(3);
	leave();
	return NULL;
}

static void take_and_end_elsewhere(void)
{
	in_thread(take_in_op);
	op_end(0x1000);
}

static void *leave_open(void *arg)
{
	on_enter("never left");
	return NULL;
}

static void exit_inside(void)
{
	in_thread(leave_open);
}

static void in_flight(void)
{
	op_end(0x3000);
	on_exit_api();
	op_start(0x4000);
	on_enter("not left");
}

/* Pauses the session while unseen() runs. */
static void pause_during(void (*unseen)(void))
{
	att_activate(att, false);
	unseen();
	att_activate(att, true);
}

static void end_both(void)
{
	op_end(0x1000);
	on_exit_api();
}

static void nothing(void)
{
}

static void ends_in_a_pause(void)
{
	on_enter("before");
	op_start(0x1000);
	pause_during(end_both);
	api(0);
	op_start(0x1000);
	op_end(0x1000);
}

static void ends_after_a_pause(void)
{
	on_enter("before");
	op_start(0x1000);
	pause_during(nothing);
	op_end(0x1000);
	on_exit_api();
}

static void calls_across_a_pause(void)
{
	on_enter("before");
	pause_during(nothing);
	wait_all(); /* BPF has forgotten its call because of the pause */
	api(0);
	on_exit_api();
}

static void full_before_a_pause(void)
{
	unsigned i;

	for (i = 0; i < DEEP; i++)
		on_enter("before");
	pause_during(nothing);
	api(1);
}

static void twin_before_a_pause(void)
{
	enter_twin();
	enter_twin();
	exit_twin();
	pause_during(nothing);
	exit_twin();
}

static void links_across_a_pause(void)
{
	op_start(0x1000);
	op_end(0x1000);
	pause_during(nothing);
	op_start(0x1000);
	op_end(0x1000);
}

static atomic_int hits;
static pthread_barrier_t all_hit;

static void *hit_and_stay(void *arg)
{
	on_enter("thread");
	on_exit_api();
	hits++;
	pthread_barrier_wait(&all_hit);
	return NULL;
}

static void more_threads_than_slots(void)
{
	static pthread_t threads[MXBPF_THREADS_MAX + 20];
	const unsigned n = sizeof(threads) / sizeof(threads[0]);
	pthread_attr_t small;
	unsigned i;

	pthread_barrier_init(&all_hit, NULL, n);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (i = 0; i < n; i++)
		if (pthread_create(&threads[i], &small, hit_and_stay, NULL))
			abort(); /* the other threads would wait forever */
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&small);
	pthread_barrier_destroy(&all_hit);
}

static void *call_often(void *arg)
{
	unsigned i;

	pthread_barrier_wait(&all_hit);
	for (i = 0; i < 250; i++)
		api(1);
	return NULL;
}

static void threads_on_one_row(void)
{
	pthread_t threads[4];
	unsigned i;

	pthread_barrier_init(&all_hit, NULL, 4);
	for (i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, call_often, NULL))
			abort();
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&all_hit);
}

#define ORDINARY_THREADS 300
#define URGENT_THREADS	 300

static void *call_once(void *arg)
{
	api(1);
	return NULL;
}

/* Each inherits its CPU. */
static void *begin_all_the_time(void *arg)
{
	unsigned i;

	for (i = 0; i < ORDINARY_THREADS; i++)
		in_thread(call_once);
	return NULL;
}

static void run_on(const cpu_set_t *allowed, bool first)
{
	cpu_set_t one;
	int cpu = first ? 0 : CPU_SETSIZE - 1;

	while (!CPU_ISSET(cpu, allowed))
		cpu += first ? 1 : -1;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

/*
 * Ordinary threads begin on one CPU, one after another, and a thread with real-time priority preempts them at any
 * moment, begins there, and makes its first hit before they go on. Where the kernel preempts programs, dozens of
 * these threads begin while another one is inside its first hit (seen on Linux 6.18).
 */
static void threads_that_preempt_hits(void)
{
	const struct sched_param prio = {.sched_priority = 1};
	pthread_attr_t attr;
	pthread_t ordinary, urgent;
	cpu_set_t allowed, one;
	unsigned i;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	run_on(&allowed, true);
	pthread_getaffinity_np(pthread_self(), sizeof(one), &one);
	if (pthread_create(&ordinary, NULL, begin_all_the_time, NULL))
		abort();
	run_on(&allowed, false);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &prio);
	for (i = 0; i < URGENT_THREADS; i++) {
		if (pthread_create(&urgent, &attr, call_once, NULL))
			abort();
		pthread_join(urgent, NULL);
	}
	pthread_join(ordinary, NULL);
	pthread_attr_destroy(&attr);
	pthread_setaffinity_np(pthread_self(), sizeof(allowed), &allowed);
}

/* ---- calls that a thread leaves for another stack and returns to, as coroutines do */

#define SWITCHES    5
#define STACK_BYTES (256 << 10)

static char stacks[3][STACK_BYTES] __attribute__((aligned(4096))); /* the thread has the second one */
static ucontext_t here, there;
static unsigned nswitches;

PROBED static void go_there(void)
{
	CHECK(!swapcontext(&here, &there));
	nswitches++;
}

PROBED static void go_back(void)
{
	CHECK(!swapcontext(&there, &here));
}

/* On the other stack: a call that the thread leaves and returns to, and one that it does not leave. */
static void call_there(void)
{
	for (;; go_back()) {
		api_around(1, go_back);
		api(0);
	}
}

static void *call_and_switch(void *other)
{
	int i;

	CHECK(!getcontext(&there));
	there.uc_stack = (stack_t){.ss_sp = other, .ss_size = STACK_BYTES};
	makecontext(&there, call_there, 0);
	for (i = 0; i < SWITCHES; i++) {
		api_around(1, go_there);
		api(0);
		api_around(1, go_there);
	}
	return NULL;
}

static void switch_to(void *other)
{
	pthread_attr_t attr;
	pthread_t t;

	nswitches = 0;
	CHECK(!pthread_attr_init(&attr) && !pthread_attr_setstack(&attr, stacks[1], STACK_BYTES));
	CHECK(!pthread_create(&t, &attr, call_and_switch, other) && !pthread_join(t, NULL));
	pthread_attr_destroy(&attr);
}

static void switch_to_lower_stack(void)
{
	switch_to(stacks[0]);
}

static void switch_to_higher_stack(void)
{
	switch_to(stacks[2]);
}

#endif
