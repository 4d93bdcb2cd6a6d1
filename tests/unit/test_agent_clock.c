/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's clock: mxbpf renews it in a file, and the agent reads it in its memory. Its times are those of
 * CLOCK_MONOTONIC within a microsecond, and where it cannot be used, they come from clock_gettime().
 */
#include "unit.h"

#include <pthread.h>
#include <time.h>

#include "agent/clock.h"
#include "agent/lib/agent.h"
#include "base/clock.h"

#define RENEWALS   60
#define RENEW_MS   20
#define ERROR_NS   1000
#define TORN_READS 20000000
#define FAR	   (1ull << 62)

/* ---- what the agent's object has */

static uint64_t ncalled; /* how often the agent asked the kernel */
static struct agent_gate no_gate;
struct agent_gate *agent_gate = &no_gate;

uint64_t agent_now(void)
{
	ncalled++;
	return clock_ns(CLOCK_MONOTONIC);
}

bool agent_is_pid(long pid)
{
	return pid == getpid();
}

void agent_batch_full(struct mxbpf_agent_slot *t)
{
	t->batch.ncalls = 0;
}

/* ---- tests */

static struct shared file = {.fd = -1};
static struct mxbpf_agent_shared *memory;

static bool open_memory(void)
{
	file.fd = memfd_create("clock", MFD_CLOEXEC);
	if (file.fd < 0 || ftruncate(file.fd, sizeof(*memory)))
		return false;
	memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
	return memory != MAP_FAILED;
}

static void pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000l}, NULL);
}

/* Returns by how much the agent's time lies outside of two times of the kernel, and true in *kernel if it is the
 * kernel's. */
static uint64_t error_ns(bool *kernel)
{
	uint64_t asked = ncalled, before = clock_ns(CLOCK_MONOTONIC), its = agent_clock(&memory->clock),
		 after = clock_ns(CLOCK_MONOTONIC);

	*kernel = ncalled != asked;
	return its < before ? before - its : its > after ? its - after : 0;
}

static void test_error(struct keeper *k)
{
	uint64_t worst = 0, error, counted = 0;
	unsigned i, n;
	bool kernel;

	for (i = 0; i < RENEWALS; i++) {
		keeper_renew(k, &file);
		for (n = 0; n < RENEW_MS; n++) {
			error = error_ns(&kernel);
			counted += !kernel;
			worst = !kernel && error > worst ? error : worst;
			pause_ms(1);
		}
	}
	printf("# %llu of %u times came from the counter, the worst was %llu ns wrong\n", (unsigned long long)counted,
	       RENEWALS * RENEW_MS, (unsigned long long)worst);
	CHECK(worst <= ERROR_NS && counted > RENEWALS);
}

/* Each clock here would give another time than the kernel. */
static void test_unusable(void)
{
	static const struct {
		const char *what;
		int64_t until, base; /* after the counter */
	} cases[] = {{"the clock was never set", INT64_MIN, -1000},
		     {"it has not been renewed", -1, -1000},
		     {"the counter began anew", FAR, 1000000000000},
		     {"the counter began anew, and it was not renewed", -1, 1000000000000}};
	const uint64_t ticks = agent_counter();
	unsigned i;
	bool kernel;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memory->clock = (struct mxbpf_agent_clock){
			.until = cases[i].until == INT64_MIN ? 0 : ticks + (uint64_t)cases[i].until,
			.base = ticks + (uint64_t)cases[i].base,
			.ns = 5,
			.mult = 77};
		CHECK(!error_ns(&kernel) && kernel);
	}
}

static bool ended;

/* Sets that give the time 1 or 2. The fields of a set that is not whole give the time 0. */
static void *rewrite(void *arg)
{
	struct mxbpf_agent_clock *c = &memory->clock;
	uint64_t i;

	(void)arg;
	for (i = 0; !__atomic_load_n(&ended, __ATOMIC_RELAXED); i++) {
		__atomic_store_n(&c->until, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&c->ns, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&c->ns, 1 + (i & 1), __ATOMIC_RELEASE);
		__atomic_store_n(&c->until, FAR + i, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void test_torn(void)
{
	uint64_t i, wrong = 0, ns, asked;
	pthread_t writer;

	memory->clock = (struct mxbpf_agent_clock){.until = 0};
	ended = false;
	if (pthread_create(&writer, NULL, rewrite, NULL))
		abort();
	for (i = 0; i < TORN_READS; i++) {
		asked = ncalled;
		ns = agent_clock(&memory->clock);
		wrong += ncalled == asked && ns != 1 && ns != 2;
	}
	__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
	pthread_join(writer, NULL);
	CHECK(!wrong);
}

static void test_backwards(void)
{
	struct mxbpf_agent_slot t = {.tid = 1};
	const uint64_t ahead = clock_ns(CLOCK_MONOTONIC) + 3600000000000ull;

	memory->clock = (struct mxbpf_agent_clock){.until = FAR, .ns = ahead};
	CHECK(agent_time(memory, &t) == ahead);
	memory->clock = (struct mxbpf_agent_clock){.until = 0};
	CHECK(agent_time(memory, &t) == ahead);
	memory->clock = (struct mxbpf_agent_clock){.until = FAR, .ns = ahead - 5};
	CHECK(agent_time(memory, &t) == ahead);
	memory->clock.ns = ahead + 5;
	CHECK(agent_time(memory, &t) == ahead + 5);
}

/* A counter that goes on while CLOCK_MONOTONIC stands still, as in a suspended machine. */
static void test_suspended(struct keeper *k)
{
	unsigned i;

	for (i = 0; i < 3; i++, pause_ms(RENEW_MS))
		keeper_renew(k, &file);
	CHECK(memory->clock.until);
	k->counter -= 10000000000ull;
	keeper_renew(k, &file);
	CHECK(!memory->clock.until);
	for (i = 0; i < 3; i++, pause_ms(RENEW_MS))
		keeper_renew(k, &file);
	CHECK(memory->clock.until);
	k->counter += 10000000000ull; /* it has begun anew */
	keeper_renew(k, &file);
	CHECK(!memory->clock.until);
}

int main(void)
{
	struct keeper k;

	if (!open_memory())
		return 1;
	keeper_open(&k, getpid());
	TEST("where the clock cannot be used, the kernel's is read")
	test_unusable();
	TEST("a reader never mixes two settings of the clock")
	test_torn();
	TEST("time never runs backwards on a thread, whatever the clock does")
	test_backwards();
	memory->clock = (struct mxbpf_agent_clock){.until = 0};
	if (!k.usable) {
		puts("# the kernel does not take its time from the CPU's counter: the rest is not tested");
		UNIT_MAIN_END;
	}
	TEST("the agent's times are those of CLOCK_MONOTONIC within a microsecond")
	test_error(&k);
	TEST("after a suspend, or when the counter begins anew, the clock is set only when its rate is known again")
	test_suspended(&k);
	UNIT_MAIN_END;
}
