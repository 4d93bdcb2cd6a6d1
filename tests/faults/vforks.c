// SPDX-License-Identifier: Apache-2.0
/* LD_PRELOAD: a thread of the process waits in vfork(), because the child neither executes a program nor ends. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void *wait_for_child(void *unused)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	if (!vfork())
		for (;;)
			pause();
	return unused;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, wait_for_child, NULL))
		abort();
}
