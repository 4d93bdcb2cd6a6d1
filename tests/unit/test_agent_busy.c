// SPDX-License-Identifier: Apache-2.0
/*
 * An agent that another mxbpf may listen to. This program plays the word that the kernel counts listeners in, and the
 * time that passes.
 */
#include <sys/uio.h>
#include <time.h>

static ssize_t read_word(pid_t pid, const struct iovec *to, unsigned long nto, const struct iovec *from,
			 unsigned long nfrom, unsigned long flags);
static int sleep_for(const struct timespec *t, struct timespec *left);
#define process_vm_readv read_word
#define nanosleep	 sleep_for
#include "../../user/agent/agent.c"
#undef process_vm_readv
#undef nanosleep

#include "unit.h"

#define FOR_EVER UINT64_MAX

static uint64_t now_ns, held_ns; /* since the first look, and how long the other one listens */

static ssize_t read_word(pid_t pid, const struct iovec *to, unsigned long nto, const struct iovec *from,
			 unsigned long nfrom, unsigned long flags)
{
	const uint16_t listeners = now_ns < held_ns;

	(void)pid;
	(void)nto;
	(void)from;
	(void)nfrom;
	(void)flags;
	memcpy(to->iov_base, &listeners, sizeof(listeners));
	return sizeof(listeners);
}

static int sleep_for(const struct timespec *t, struct timespec *left)
{
	(void)left;
	now_ns += (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
	return 0;
}

static int check(uint64_t held)
{
	const struct agt a = {.pid = 1};
	struct err e = {0};

	now_ns = 0;
	held_ns = held;
	return check_free(&a, &e);
}

int main(void)
{
	TEST("the probe of a killed mxbpf, which the kernel removes 0.2 s later, is waited for")
	{
		CHECK(!check(0) && !now_ns);
		CHECK(!check(200000000) && now_ns >= 200000000 && now_ns < 300000000);
	}
	TEST("an mxbpf that listens on is named after half a second")
	{
		CHECK(check(FOR_EVER) == -EBUSY && now_ns >= 400000000 && now_ns < 1000000000);
	}
	UNIT_MAIN_END;
}
