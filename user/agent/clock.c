// SPDX-License-Identifier: Apache-2.0
#include "agent/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define SOURCE	   "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define LEAST_NS   5000000   /* a shorter interval does not give an exact rate */
#define VALID_NS   100000000 /* several times the interval between two renewals */
#define STEER_NS   100000000 /* time over which a small error is corrected */
#define STEP_NS	   1000	     /* a larger error is corrected at once */
#define RATE_ERROR 1e-4	     /* largest difference between the rates of two intervals */
#define READINGS   5

static bool is_kernels_clock(void)
{
	char name[8] = "";
	int fd = open(SOURCE, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof(name));

	if (fd >= 0)
		close(fd);
	return n == 4 && !memcmp(name, "tsc\n", 4);
}

/* Returns true if the process is in our time namespace. In another one CLOCK_MONOTONIC has another offset. */
static bool has_our_time(pid_t pid)
{
	char path[32], its[64] = "", ours[64] = "";
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/ns/time", pid);
	n = readlink(path, its, sizeof(its) - 1);
	return n == readlink("/proc/self/ns/time", ours, sizeof(ours) - 1) && !strcmp(its, ours);
}

static uint64_t counter(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* Reads both clocks at the same moment, as far as possible: the reading that took least time counts. */
static void read_both(uint64_t *ticks, uint64_t *ns)
{
	uint64_t before, after, mono, least = UINT64_MAX;
	unsigned i;

	for (i = 0; i < READINGS; i++) {
		before = counter();
		mono = clock_ns(CLOCK_MONOTONIC);
		after = counter();
		if (after - before >= least)
			continue;
		least = after - before;
		*ticks = before + least / 2;
		*ns = mono;
	}
}

void keeper_open(struct keeper *k, pid_t pid)
{
	*k = (struct keeper){.usable = is_kernels_clock() && has_our_time(pid)};
	if (k->usable)
		read_both(&k->counter, &k->ns);
}

/* Writes the clock. The agent does not use it while `until` is 0, so that is cleared first and written last. */
static void write_clock(const struct keeper *k, const struct shared *s)
{
	SHARED_SET(s, clock.until, 0);
	if (!k->clock.until)
		return;
	shared_write(s, offsetof(struct mxbpf_agent_shared, clock.base), &k->clock.base,
		     sizeof(k->clock) - offsetof(struct mxbpf_agent_clock, base));
	SHARED_SET(s, clock.until, k->clock.until);
}

/*
 * Returns the time with which the new parameters begin. A small error is corrected by a slightly different rate, so
 * that the agent's clock makes no step.
 */
static uint64_t begin_with(const struct keeper *k, uint64_t ticks, uint64_t ns, double *rate)
{
	const struct mxbpf_agent_clock *c = &k->clock;
	uint64_t agents;
	int64_t error;

	if (ticks < c->base || ticks >= c->until)
		return ns;
	agents = c->ns + ((ticks - c->base) * c->mult >> MXBPF_AGENT_CLOCK_SHIFT);
	error = (int64_t)(ns - agents);
	if (error > STEP_NS || error < -STEP_NS)
		return ns;
	*rate *= 1 + (double)error / STEER_NS;
	return agents;
}

void keeper_renew(struct keeper *k, const struct shared *s)
{
	const double before = k->rate;
	uint64_t ticks, ns, begin;
	double rate;

	if (!k->usable || s->fd < 0)
		return;
	read_both(&ticks, &ns);
	if (ticks > k->counter && ns - k->ns < LEAST_NS)
		return;
	/* The counter goes on while the machine is suspended, or begins anew. Then the rates differ. */
	rate = ticks > k->counter ? (double)(ns - k->ns) / (double)(ticks - k->counter) : 0;
	k->counter = ticks;
	k->ns = ns;
	k->rate = rate;
	if (rate > 0 && before > rate * (1 - RATE_ERROR) && before < rate * (1 + RATE_ERROR)) {
		begin = begin_with(k, ticks, ns, &rate);
		k->clock = (struct mxbpf_agent_clock){.until = ticks + (uint64_t)(VALID_NS / rate),
						      .base = ticks,
						      .ns = begin,
						      .mult = (uint64_t)(rate * (1ull << MXBPF_AGENT_CLOCK_SHIFT))};
	} else {
		k->clock = (struct mxbpf_agent_clock){.until = 0};
	}
	write_clock(k, s);
}
