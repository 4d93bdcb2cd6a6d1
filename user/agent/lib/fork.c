// SPDX-License-Identifier: Apache-2.0
/*
 * PyTorch's list of callbacks has a mutex. A child that is forked while another thread holds it can never take it, and
 * hangs at its first operator if the list has changed since the forking thread's last one. So no thread forks while the
 * agent changes the list, and a thread that forks reads the changed list first.
 *
 * The loader has locks of this kind, too. The agent's client of CUPTI takes them in a thread of its own, often just
 * when the program has used CUDA for the first time and forks the workers of its loader.
 */
#include "fork.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent.h"

/*
 * The longest waits. After them both sides go on, so that no program waits for ever, but then a child can hang. On a
 * busy machine the fork of a large process alone takes several hundred milliseconds.
 */
#define FORK_WAITS_NS 1000000000ull  /* a thread that forks waits for the agent */
#define WAITS_FOR_NS  10000000000ull /* the agent waits for a thread that forks */
#define NAP_NS	      100000	     /* between two tries: the other thread may need this CPU */
#define SCOPE_UNUSED  4		     /* at::RecordScope::CUSTOM_CLASS: the agent has no callback for it */
#define RESULT_BYTES  8192	     /* more than any at::StepCallbacks, which is empty for that scope */

static int held;
static int nforks; /* threads that wait to fork; the agent lets them go first */
static __thread bool mine __attribute__((tls_model("initial-exec"))); /* this thread is forking, and has set `held` */

static __thread bool in_loader
	__attribute__((tls_model("initial-exec"))); /* this thread has set `held` for the loader */

extern int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *dso);

bool agent_fork_try(void)
{
	int nobody = 0;

	return __atomic_compare_exchange_n(&held, &nobody, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static bool stop_within(uint64_t ns, bool forks)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	const uint64_t until = agent_now() + ns;

	while ((!forks && __atomic_load_n(&nforks, __ATOMIC_RELAXED)) || !agent_fork_try()) {
		if (agent_now() > until)
			return false;
		agent_call(SYS_futex, (long)&held, FUTEX_WAIT, 1, (long)&nap, 0, 0); /* returns at once if it is 0 */
	}
	return true;
}

bool agent_fork_stop(void)
{
	return stop_within(WAITS_FOR_NS, false);
}

void agent_fork_go(void)
{
	__atomic_store_n(&held, 0, __ATOMIC_RELEASE);
}

/* Waits for the agent, then reads the list of callbacks, so that PyTorch need not take its mutex in the child. */
static void before(void)
{
	_Alignas(64) char result[RESULT_BYTES];

	__atomic_fetch_add(&nforks, 1, __ATOMIC_RELAXED);
	mine = stop_within(FORK_WAITS_NS, true);
	__atomic_fetch_sub(&nforks, 1, __ATOMIC_RELAXED);
	if (mxbpf_agent_config.step_callbacks && mxbpf_agent_config.registered)
		((void (*)(void *, uint64_t))mxbpf_agent_config.step_callbacks)(result, SCOPE_UNUSED);
}

static void parent(void)
{
	if (mine)
		agent_fork_go();
	mine = false;
}

static void child(void)
{
	__atomic_store_n(&nforks, 0, __ATOMIC_RELAXED);
	agent_fork_go();
	mine = in_loader = false;
}

bool agent_fork_enter_loader(void)
{
	if (mine || in_loader)
		return false;
	in_loader = agent_fork_stop();
	return in_loader;
}

void agent_fork_leave_loader(bool entered)
{
	if (!entered)
		return;
	in_loader = false;
	agent_fork_go();
}

void agent_fork_watch(void)
{
	static bool watched; /* a child inherits both */

	if (!watched)
		watched = !__register_atfork(before, parent, child, NULL);
}
