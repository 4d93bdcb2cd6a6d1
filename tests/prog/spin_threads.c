// SPDX-License-Identifier: Apache-2.0
/* usage: spin_threads N. Keeps N threads that end and are replaced without pause; prints "ready" when all have run. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *live(void *arg)
{
	return arg;
}

/*
 * A keeper starts the next short-lived thread when the last one is gone, and waits at the barrier after its first one.
 */
static void *keep(void *all_ran)
{
	pthread_t t;
	int first = 1;

	for (;;) {
		if (pthread_create(&t, NULL, live, NULL))
			continue;
		pthread_join(t, NULL);
		if (first)
			pthread_barrier_wait(all_ran);
		first = 0;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int i, n = argc > 1 ? atoi(argv[1]) : 4;
	pthread_barrier_t all_ran;
	pthread_t t;

	if (n < 1)
		return 2;
	pthread_barrier_init(&all_ran, NULL, (unsigned int)n + 1);
	for (i = 0; i < n; i++) {
		if (pthread_create(&t, NULL, keep, &all_ran))
			return 1;
	}
	pthread_barrier_wait(&all_ran);
	puts("ready");
	fflush(stdout);
	pthread_join(t, NULL);
	return 0;
}
