// SPDX-License-Identifier: Apache-2.0
/*
 * A mock of Kineto, the profiler inside PyTorch, as a client of CUPTI. Like libtorch_cpu.so it is linked against
 * libcupti with all imports bound at load and read-only afterwards.
 *
 * Before the middle of 2026 Kineto subscribes when it is first used, once and for the life of the process. Each trace
 * only registers its callbacks and enables kinds. If that one subscription fails, no trace ever has records of the GPU.
 * With KINETO_USE_DAEMON in the environment, as under dynolog, it does not subscribe. The newer Kineto never does; with
 * TEARDOWN_CUPTI=1 it subscribes at the start of each trace, and unsubscribes at its end.
 */
#include "double.h"

#include <pthread.h>
#include <stdbool.h>

#define BUFFER_BYTES (4u << 20)
#define SLACK_TICKS  1000000000ull /* about half a second */
#define PARTS_MAX    4096

extern int cuptiSubscribe(void **handle, void *callback, void *data);
extern int cuptiUnsubscribe(void *handle);
extern int cuptiActivityRegisterCallbacks(void *requested, void *completed);
extern int cuptiActivityRegisterTimestampCallback(uint64_t (*f)(void));
extern int cuptiActivityEnable(int kind);
extern int cuptiActivityDisable(int kind);
extern int cuptiActivityFlushAll(uint32_t flag);
extern int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record);
extern int cuptiGetTimestamp(uint64_t *t);

/* libkineto_dlsym.so has no imports of CUPTI. Like XLA it looks each function up when it first calls it. */
#ifdef DOUBLE_BY_DLSYM
#include <dlfcn.h>

static void *look_up(const char *name)
{
	void *lib = dlopen("libcupti.so.12", RTLD_NOW), *at = lib ? dlsym(lib, name) : NULL;

	if (!at)
		double_abort("no-function", "%s", name);
	return at;
}

#define BY_DLSYM(f)                                                                                                    \
	(*({                                                                                                           \
		static void *at;                                                                                       \
		at = at ? at : look_up(#f);                                                                            \
		(__typeof__(&f))at;                                                                                    \
	}))
#define cuptiSubscribe			       BY_DLSYM(cuptiSubscribe)
#define cuptiUnsubscribe		       BY_DLSYM(cuptiUnsubscribe)
#define cuptiActivityRegisterCallbacks	       BY_DLSYM(cuptiActivityRegisterCallbacks)
#define cuptiActivityRegisterTimestampCallback BY_DLSYM(cuptiActivityRegisterTimestampCallback)
#define cuptiActivityEnable		       BY_DLSYM(cuptiActivityEnable)
#define cuptiActivityDisable		       BY_DLSYM(cuptiActivityDisable)
#define cuptiActivityFlushAll		       BY_DLSYM(cuptiActivityFlushAll)
#define cuptiActivityGetNextRecord	       BY_DLSYM(cuptiActivityGetNextRecord)
#endif

enum { MODE_ONCE = 0, MODE_EACH_TRACE = 1, MODE_CLOCK_EACH_TRACE = 2, MODE_NEVER = 3 };

static const int kinds[] = {KIND_KERNEL, KIND_COPY, KIND_SET, KIND_RUNTIME, KIND_SYNC, KIND_OVERHEAD};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all below */
static uint8_t *parts[PARTS_MAX];			 /* buffers that CUPTI has */
static int mode = MODE_NEVER, tried, clock_registered;
static void *subscriber;
static bool traces;
static uint64_t kernels, calls, others, foreign, absurd, begun; /* begun: ticks */

/* Kineto's clock is the time stamp counter of the CPU, which does not count nanoseconds. */
static uint64_t clock_of_kineto(void)
{
	return __builtin_ia32_rdtsc();
}

static void requested(uint8_t **buffer, size_t *size, size_t *records_max)
{
	unsigned i;

	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*size = BUFFER_BYTES;
	*records_max = 0;
	pthread_mutex_lock(&lock);
	for (i = 0; i < PARTS_MAX && parts[i]; i++)
		;
	if (i < PARTS_MAX)
		parts[i] = *buffer;
	pthread_mutex_unlock(&lock);
}

/* Returns true if this buffer is one of ours. The lock is held. */
static bool take_part(const uint8_t *buffer)
{
	unsigned i;

	for (i = 0; i < PARTS_MAX; i++)
		if (parts[i] == buffer) {
			parts[i] = NULL;
			return true;
		}
	return false;
}

static void count(const uint8_t *r)
{
	uint64_t times[2], now = clock_of_kineto();
	uint32_t kind;

	memcpy(&kind, r, 4);
	if (kind == KIND_RUNTIME)
		calls++;
	else if (kind != KIND_KERNEL)
		others++;
	if (kind != KIND_KERNEL)
		return;
	kernels++;
	memcpy(times, r + 16, sizeof(times));
	absurd += times[0] + SLACK_TICKS < begun || times[1] < times[0] || times[1] > now + SLACK_TICKS;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *r = NULL;

	pthread_mutex_lock(&lock);
	if (!take_part(buffer)) {
		foreign++;
		pthread_mutex_unlock(&lock);
		return;
	}
	while (!cuptiActivityGetNextRecord(buffer, valid, &r))
		count(r);
	pthread_mutex_unlock(&lock);
	free(buffer);
}

static void callback(void *data, int domain, uint32_t id, const void *info)
{
}

DOUBLE_EXPORT void kineto_mode(int m)
{
	mode = m;
}

/* Subscribes as this version of Kineto does. Returns 0, or the error of CUPTI. */
static int subscribe(void)
{
	const bool older = mode == MODE_ONCE || mode == MODE_CLOCK_EACH_TRACE;

	if (older ? getenv("KINETO_USE_DAEMON") != NULL : mode == MODE_NEVER && !getenv("TEARDOWN_CUPTI"))
		return 0;
	if (older && tried)
		return subscriber ? 0 : -1; /* the one subscription failed in an earlier trace */
	tried = 1;
	subscriber = NULL;
	return cuptiSubscribe(&subscriber, callback, NULL);
}

/* Starts a trace. Returns 0, or the error of CUPTI. The order of the calls is that of Kineto: the clock comes first. */
DOUBLE_EXPORT int kineto_start(void)
{
	size_t i;
	int err;

	traces = false;
	err = subscribe();
	if (err)
		return err;
	pthread_mutex_lock(&lock);
	kernels = calls = others = foreign = absurd = 0;
	begun = clock_of_kineto();
	pthread_mutex_unlock(&lock);
	if (!clock_registered || mode == MODE_CLOCK_EACH_TRACE) {
		clock_registered = 1;
		err = cuptiActivityRegisterTimestampCallback(clock_of_kineto);
	}
	err = err ? err : cuptiActivityRegisterCallbacks(requested, completed);
	traces = !err;
	for (i = 0; !err && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		err = cuptiActivityEnable(kinds[i]);
	return err;
}

/* Ends the trace. Returns the number of its kernels, or a CUPTI error as a negative number. */
DOUBLE_EXPORT long kineto_stop(void)
{
	size_t i;
	int err = 0;

	if (!traces)
		return -1;
	traces = false;
	for (i = 0; !err && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		err = cuptiActivityDisable(kinds[i]);
	if (!err)
		err = cuptiActivityFlushAll(1);
	if (subscriber && (mode == MODE_EACH_TRACE || mode == MODE_NEVER)) {
		cuptiUnsubscribe(subscriber);
		subscriber = NULL;
	}
	return err ? -err : (long)kernels;
}

/* Counts of the last trace: calls of the runtime, other records, buffers of somebody else, kernels that were outside
 * of the trace.
 */
DOUBLE_EXPORT long kineto_calls(void)
{
	return (long)calls;
}

DOUBLE_EXPORT long kineto_others(void)
{
	return (long)others;
}

DOUBLE_EXPORT long kineto_foreign(void)
{
	return (long)foreign;
}

DOUBLE_EXPORT long kineto_absurd(void)
{
	return (long)absurd;
}

/* Another client, which only subscribes. */
static void *second;

DOUBLE_EXPORT int kineto_second_subscribe(void)
{
	return cuptiSubscribe(&second, callback, NULL);
}

DOUBLE_EXPORT int kineto_second_leave(void)
{
	void *was = second;

	second = NULL;
	return cuptiUnsubscribe(was);
}
