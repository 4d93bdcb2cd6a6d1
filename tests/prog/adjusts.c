// SPDX-License-Identifier: Apache-2.0
/*
 * usage: adjusts LIBMXNET THREADS CALLS
 * Prints "ready PID", waits for SIGUSR1, and then adds 1 to one counter of MXNet's profiler, CALLS times on each of
 * THREADS threads.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 16

static int (*adjust)(void *counter, int64_t by);
static void *counter;

static void *adds(void *calls)
{
	for (long i = 0; i < *(long *)calls; i++)
		adjust(counter, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	void *lib = argc == 4 ? dlopen(argv[1], RTLD_NOW) : NULL, *domain = NULL;
	int threads = argc == 4 ? atoi(argv[2]) : 0, sig;
	long calls = argc == 4 ? atol(argv[3]) : 0;
	int (*make_domain)(const char *name, void **out);
	int (*make_counter)(void *domain, const char *name, void **out);
	pthread_t t[THREADS_MAX];
	sigset_t go;

	if (!lib || threads < 1 || threads > THREADS_MAX) {
		fprintf(stderr, "adjusts: %s\n", argc == 4 && !lib ? dlerror() : "usage: LIBMXNET THREADS CALLS");
		return 1;
	}
	*(void **)&make_domain = dlsym(lib, "MXProfileCreateDomain");
	*(void **)&make_counter = dlsym(lib, "MXProfileCreateCounter");
	*(void **)&adjust = dlsym(lib, "MXProfileAdjustCounter");
	if (make_domain("load", &domain) || make_counter(domain, "shared", &counter))
		return 1;
	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, NULL);
	printf("ready %d\n", getpid());
	fflush(stdout);
	sigwait(&go, &sig);
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, adds, &calls);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	return 0;
}
