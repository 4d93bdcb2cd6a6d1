// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <signal.h>

int thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	sigdelset(&all, SIGSYS); /* the seccomp filter sends it; a thread that blocks it would end mxbpf */
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = -pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}
