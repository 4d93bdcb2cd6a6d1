// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's own thread, which is the client of CUPTI. It does what mxbpf asks for in the shared memory, and sleeps
 * when nothing is wanted. If no mxbpf is attached, nothing is wanted.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent.h"
#include "cupti.h"
#include "fork.h"

__asm__(".symver pthread_create,pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_attr_setstacksize,pthread_attr_setstacksize@GLIBC_2.2.5");

#define NS_PER_MS   1000000ull
#define FLUSH_MS    100
#define SECOND_NS   1000000000ull
#define EXIT_NS	    1000000000ull /* longest delay of the process's end if CUPTI does not return */
#define AGAIN_MS    5000
#define STACK_BYTES (256u << 10)
/* Timestamps were wrong after 25 million records in one version of CUPTI. After these, the agent subscribes anew. */
#define RECORDS_MAX 20000000ull

int __cxa_atexit(void (*fn)(void *), void *arg, void *dso);

static bool asked_at_exit, at_exit, again_at_exit; /* flush_at_exit() is registered */
static bool exits;				   /* the process ends: no attempt to hold CUPTI is made any more */

/* ---- what mxbpf wants */

static uint32_t wanted(const struct mxbpf_gpu_shared *g)
{
	const bool heard = agent_is_heard() && !__atomic_load_n(&exits, __ATOMIC_ACQUIRE);

	return heard ? __atomic_load_n(&g->want, __ATOMIC_ACQUIRE) : 0;
}

/* Sleeps until the time has passed, or mxbpf has changed what it wants. timeout_ns 0: no limit. */
static void sleep_on(struct mxbpf_gpu_shared *g, uint32_t want, uint64_t timeout_ns)
{
	const struct timespec t = {.tv_sec = (time_t)(timeout_ns / SECOND_NS),
				   .tv_nsec = (long)(timeout_ns % SECOND_NS)};

	agent_call(SYS_futex, (long)&g->want, FUTEX_WAIT, want, timeout_ns ? (long)&t : 0, 0, 0);
}

/* ---- the thread */

/* Runs when the process ends. CUPTI still has records, but after this it has no device any more. */
static void flush_at_exit(void *unused)
{
	struct mxbpf_agent_shared *s = agent_shared();

	(void)unused;
	__atomic_store_n(&exits, true, __ATOMIC_RELEASE);
	if (!s || !cupti_is_held())
		return;
	cupti_has_cuda(&s->gpu);
	cupti_release(&s->gpu, MXBPF_GPU_OFF, EXIT_NS);
}

/*
 * A child that is forked while another thread is in __cxa_atexit() inherits its lock, and hangs as soon as it registers
 * something itself. If a thread forks now, the next call tries again.
 */
static bool register_at_exit(void)
{
	const bool entered = agent_fork_enter_loader();
	const bool registered = entered && !__cxa_atexit(flush_at_exit, NULL, NULL);

	agent_fork_leave_loader(entered);
	return registered;
}

/*
 * Tries to hold CUPTI. The first handler is for a process that never gets CUPTI: the agent must not call CUPTI while
 * such a process ends.
 */
static void gpu_hold(struct mxbpf_gpu_shared *g)
{
	if (__atomic_load_n(&exits, __ATOMIC_ACQUIRE))
		return;
	if (!asked_at_exit)
		asked_at_exit = register_at_exit();
	if (!cupti_open(g) && !cupti_hold(g) && !at_exit)
		at_exit = register_at_exit(); /* runs before CUPTI's own handlers */
}

/*
 * cuInit() calls this, so that the first kernel is recorded. NVIDIA's own samples subscribe at this moment, too. The
 * devices are not known before cuInit() has returned. If CUPTI refuses, the agent's thread asks again.
 */
void agent_gpu_hold(struct mxbpf_gpu_shared *g)
{
	cupti_forget();
	gpu_hold(g);
	if (__atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == MXBPF_GPU_FAILED) /* as it may before CUDA is initialised */
		__atomic_store_n(&g->state, MXBPF_GPU_OFF, __ATOMIC_RELEASE);
}

static bool may_try_again(const struct mxbpf_gpu_shared *g, uint64_t tried_ns)
{
	const uint64_t again_ns = (g->again_ms ? g->again_ms : AGAIN_MS) * NS_PER_MS;
	const uint64_t now = agent_now(), last = __atomic_load_n(&cupti_others.last_ns, __ATOMIC_RELAXED);

	return now - tried_ns >= again_ns && now - last >= again_ns && !cupti_others_record();
}

/* Tries to hold CUPTI. Returns the time of the attempt. */
static uint64_t try(struct mxbpf_gpu_shared *g)
{
	if (!cupti_has_cuda(g)) {
		__atomic_store_n(&g->state, MXBPF_GPU_NO_CUDA, __ATOMIC_RELEASE);
		return agent_now();
	}
	gpu_hold(g);
	return agent_now();
}

/* Holds CUPTI until mxbpf wants something else, or another client has come. */
static void serve(struct mxbpf_gpu_shared *g, uint32_t want)
{
	const uint64_t first = cupti_delivered(), flush_ns = (g->flush_ms ? g->flush_ms : FLUSH_MS) * NS_PER_MS;
	uint64_t clock_ns = agent_now(), now;
	bool tick;

	while (wanted(g) == want && cupti_is_held()) {
		sleep_on(g, want, flush_ns);
		now = agent_now();
		cupti_has_cuda(g);
		if (!again_at_exit) /* so that it runs before what cuInit() has registered since */
			again_at_exit = register_at_exit();
		tick = now - clock_ns >= SECOND_NS;
		clock_ns = tick ? now : clock_ns;
		cupti_flush(g, tick);
		if (cupti_delivered() - first >= (g->records_max ? g->records_max : RECORDS_MAX))
			break;
	}
	if (cupti_is_held())
		cupti_release(g, MXBPF_GPU_OFF, UINT64_MAX);
}

static void work(struct mxbpf_gpu_shared *g, uint32_t want)
{
	uint64_t tried_ns = 0;
	uint32_t state;

	while (wanted(g) == want) {
		state = __atomic_load_n(&g->state, __ATOMIC_ACQUIRE);
		if (cupti_is_held())
			tried_ns = agent_now();
		else if (state == MXBPF_GPU_FAILED)
			sleep_on(g, want, SECOND_NS);
		else if (!tried_ns || state == MXBPF_GPU_NO_CUDA || state == MXBPF_GPU_OFF ||
			 may_try_again(g, tried_ns))
			tried_ns = try(g);
		if (cupti_is_held())
			serve(g, want);
		else
			sleep_on(g, want, FLUSH_MS * NS_PER_MS);
	}
	if (!__atomic_load_n(&exits, __ATOMIC_ACQUIRE)) /* the last state says why there are no records */
		__atomic_store_n(&g->state, MXBPF_GPU_OFF, __ATOMIC_RELEASE);
}

static void *lib_gpu_run(void *ctx)
{
	struct mxbpf_gpu_shared *g = ctx;
	uint32_t want;

	prctl(PR_SET_NAME, "mxbpf-gpu");
	for (;;) {
		want = wanted(g);
		if (want)
			work(g, want);
		else
			sleep_on(g, __atomic_load_n(&g->want, __ATOMIC_ACQUIRE), 0);
	}
	return NULL;
}

/* All signals are blocked in the thread, because those of the process belong to its own threads. */
static int start(uint64_t wanted)
{
	struct mxbpf_agent_shared *s = agent_shared();
	pthread_attr_t attr;
	pthread_t thread;
	const uint64_t all = ~0ull;
	uint64_t before = 0;
	uint32_t none = 0;
	int err;

	(void)wanted;
	if (!__atomic_compare_exchange_n(&s->gpu.thread, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return 0;
	if (s->gpu.state == MXBPF_GPU_FAILED && s->gpu.failed == MXBPF_GPU_AT_THREAD)
		s->gpu.state = MXBPF_GPU_OFF;
	if (s->gpu.state == MXBPF_GPU_OFF)
		cupti_forget();
	agent_fork_watch();
	agent_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof(all), 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = -pthread_create(&thread, &attr, lib_gpu_run, &s->gpu);
	agent_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof(before), 0, 0);
	if (err) {
		s->gpu.failed = MXBPF_GPU_AT_THREAD;
		s->gpu.result = (uint32_t)-err;
		if (s->gpu.state == MXBPF_GPU_OFF) /* else CUPTI is held since cuInit(), until the process ends */
			s->gpu.state = MXBPF_GPU_FAILED;
		__atomic_store_n(&s->gpu.thread, 0, __ATOMIC_RELEASE); /* the next start tries again */
	}
	return err;
}

static void stop(void)
{
}

const struct agent_module agent_gpu = {"gpu", MXBPF_AGENT_MODULE_GPU, start, stop};
