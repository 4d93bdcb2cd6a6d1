// SPDX-License-Identifier: Apache-2.0
/* Tests the timer and the waits of the thread that loads the agent. */
#include "../../user/agent/remote.c"

#include "unit.h"

int main(void)
{
	const struct timespec ticks = {.tv_nsec = 4 * TIMER_NS};
	struct remote_timer timer = {0};
	struct remote r = {0};
	int status;

	TEST("the timer ends a wait whose time is over, and interrupts nothing else")
	{
		r.tid = fork();
		if (!r.tid) {
			pause();
			_exit(0);
		}
		CHECK(!remote_timer_start(&timer));
		r.deadline_ns = clock_ns(CLOCK_MONOTONIC);
		CHECK(!nanosleep(&ticks, NULL)); /* stands for a request that a sandbox holds back */
		CHECK(wait_stop(&r, &status) == -ETIMEDOUT);
		CHECK(!nanosleep(&ticks, NULL));
		remote_timer_stop(&timer);
		kill(r.tid, SIGKILL);
		waitpid(r.tid, &status, 0);
	}
	UNIT_MAIN_END;
}
