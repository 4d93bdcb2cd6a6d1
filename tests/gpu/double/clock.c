// SPDX-License-Identifier: Apache-2.0
/*
 * CUPTI's clock: CLOCK_REALTIME as it was at the first call, with a drift and a step against CLOCK_MONOTONIC if
 * MXBPF_DOUBLE asks for them; or the clock of a client's timestamp callback.
 */
#include "collect.h"

static uint64_t began;	     /* CLOCK_MONOTONIC */
static int64_t real_ahead;   /* of CLOCK_MONOTONIC */
static int64_t client_ahead; /* of CLOCK_MONOTONIC */
static timestamp_fn client;

void clock_start(void)
{
	uint64_t before = double_now(), real = double_clock(CLOCK_REALTIME), after = double_now();

	began = after;
	real_ahead = (int64_t)(real - (before + (after - before) / 2));
}

uint64_t clock_of(uint64_t mono)
{
	int64_t ahead = real_ahead;
	double passed = (double)(int64_t)(mono - began);

	if (client)
		return mono + (uint64_t)client_ahead;
	ahead += (int64_t)(passed * options.drift_ppm / 1e6);
	if (options.step_ns && mono > began + options.step_after_ns)
		ahead += options.step_ns;
	return mono + (uint64_t)ahead;
}

void clock_replace(timestamp_fn f)
{
	uint64_t before = double_now(), there = f ? f() : 0, after = double_now();

	client_ahead = (int64_t)(there - (before + (after - before) / 2));
	client = f;
}
