// SPDX-License-Identifier: Apache-2.0
/*
 * CUPTI's clock: CLOCK_REALTIME as it was at the first call, with a drift and a step against CLOCK_MONOTONIC if
 * MXBPF_DOUBLE asks for them; or the clock of a client's timestamp callback, which need not count nanoseconds.
 */
#include "collect.h"
#include "replay.h"

#include <pthread.h>

#define FIRST_NS 2000000   /* between the first two samples of a client's clock */
#define AGAIN_NS 100000000 /* between later ones */
#define ROUNDS	 8

struct sample {
	uint64_t mono, client;
};

static uint64_t began;	   /* CLOCK_MONOTONIC */
static int64_t real_ahead; /* of CLOCK_MONOTONIC */
static timestamp_fn client;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the samples */
static struct sample first, last;

void clock_start(void)
{
	uint64_t before = double_now(), real = double_clock(CLOCK_REALTIME), after = double_now();

	began = after;
	if (replay_on())
		real = replay_clock() - (uint64_t)(double_number("replay-after", 3, 0) * 1e9);
	real_ahead = (int64_t)(real - (before + (after - before) / 2));
}

/* Of some readings, that which took the shortest time. */
static struct sample take_sample(void)
{
	uint64_t before, ticks, took, best = UINT64_MAX;
	struct sample s = {0};
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		before = double_now();
		ticks = client();
		took = double_now() - before;
		if (took >= best)
			continue;
		best = took;
		s = (struct sample){.mono = before + took / 2, .client = ticks};
	}
	return s;
}

static uint64_t clock_of_client(uint64_t mono)
{
	double rate;
	uint64_t t;

	pthread_mutex_lock(&lock);
	if (double_now() > last.mono + AGAIN_NS)
		last = take_sample();
	rate = (double)(last.client - first.client) / (double)(last.mono - first.mono);
	t = first.client + (uint64_t)(int64_t)((double)(int64_t)(mono - first.mono) * rate);
	pthread_mutex_unlock(&lock);
	return t;
}

uint64_t clock_of(uint64_t mono)
{
	int64_t ahead = real_ahead;
	double passed = (double)(int64_t)(mono - began);

	if (client)
		return clock_of_client(mono);
	ahead += (int64_t)(passed * options.drift_ppm / 1e6);
	if (options.step_ns && mono > began + options.step_after_ns)
		ahead += options.step_ns;
	return mono + (uint64_t)ahead;
}

uint64_t clock_now(void)
{
	return client ? client() : clock_of(double_now());
}

void clock_replace(timestamp_fn f)
{
	const struct timespec nap = {.tv_nsec = FIRST_NS};

	pthread_mutex_lock(&lock);
	client = f;
	first = take_sample();
	nanosleep(&nap, NULL);
	last = take_sample();
	pthread_mutex_unlock(&lock);
}
