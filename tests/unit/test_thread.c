// SPDX-License-Identifier: Apache-2.0
/* A thread of mxbpf must handle no signals, because otherwise it would get an interrupt that the main thread blocks. */
#include "base/thread.h"

#include "unit.h"

static void *look(void *arg)
{
	pthread_sigmask(SIG_SETMASK, NULL, arg);
	return NULL;
}

int main(void)
{
	sigset_t in_thread, before, after;
	pthread_t thread;

	TEST("a new thread blocks the signals that end mxbpf, and the signal mask of its creator stays unchanged")
	{
		sigemptyset(&in_thread);
		pthread_sigmask(SIG_SETMASK, NULL, &before);
		CHECK(!thread_start(&thread, look, &in_thread) && !pthread_join(thread, NULL));
		pthread_sigmask(SIG_SETMASK, NULL, &after);
		CHECK(sigismember(&in_thread, SIGINT) == 1 && sigismember(&in_thread, SIGTERM) == 1);
		CHECK(sigismember(&before, SIGINT) == sigismember(&after, SIGINT));
	}
	UNIT_MAIN_END;
}
