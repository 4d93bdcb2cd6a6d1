// SPDX-License-Identifier: Apache-2.0
/*
 * usage: switches CPU [LIBRARY]
 * Measures the cost of a thread switch: two threads on one CPU pass a byte back and forth. With LIBRARY, that of a
 * runtime, the process looks like one of its programs. Prints "ready PID" and then, for each line on stdin, the time
 * of one switch with its wake-up in ns, the best of several groups.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define GROUPS 40
#define ROUNDS 2500

static int there[2], back[2];

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void *answer(void *arg)
{
	char c;

	while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
		;
	return NULL;
}

int main(int argc, char **argv)
{
	double began, ns, best;
	cpu_set_t one;
	pthread_t t;
	char c = 0;
	int g, i;

	CPU_ZERO(&one);
	CPU_SET(argc > 1 ? atoi(argv[1]) : 0, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || pipe(there) || pipe(back))
		return 1;
	if (argc > 2 && !dlopen(argv[2], RTLD_NOW)) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (pthread_create(&t, NULL, answer, NULL))
		return 1;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (getchar() == '\n') {
		for (best = 1e18, g = 0; g < GROUPS; g++) {
			began = now_ns();
			for (i = 0; i < ROUNDS; i++)
				if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
					return 1;
			ns = (now_ns() - began) / (2.0 * ROUNDS);
			best = ns < best ? ns : best;
		}
		printf("%.0f\n", best);
		fflush(stdout);
	}
	return 0;
}
