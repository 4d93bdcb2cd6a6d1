// SPDX-License-Identifier: Apache-2.0
/*
 * Alternates between 15 ms of computing and 5 ms of sleep until a signal ends it: a process on the same CPU waits
 * three times as long as it runs. Prints "on" first.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define BUSY_NS 15000000
#define REST_NS 5000000

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(void)
{
	const struct timespec rest = {.tv_nsec = REST_NS};
	uint64_t until;

	puts("on");
	fflush(stdout);
	for (;;) {
		until = cpu_ns() + BUSY_NS;
		while (cpu_ns() < until)
			;
		nanosleep(&rest, NULL);
	}
}
