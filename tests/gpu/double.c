// SPDX-License-Identifier: Apache-2.0
/*
 * A double of libcupti that lets facts.py run on a machine without a GPU. tests/gpu.bats runs every check with it
 * once, so that no check fails because of its own mistake when a GPU is available. Its answers say nothing about
 * CUPTI.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_BYTES	     216
#define API_BYTES	     40
#define VERSION		     130001
#define MULTIPLE_SUBSCRIBERS 39
#define MAX_LIMIT_REACHED    12

enum { DRIVER = 4, RUNTIME = 5, KERNEL = 10 };

typedef void (*requested_fn)(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void (*completed_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef void (*callback_fn)(void *data, int domain, uint32_t id, const void *info);

static requested_fn on_requested;
static completed_fn on_completed;
static uint64_t (*timestamp)(void);
static callback_fn callback;
static int subscribed, callbacks;
static uint64_t kinds;
static uint8_t *buffer;
static size_t size, used;
static uint32_t correlation;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the buffer and the correlation id */

static uint64_t now(void)
{
	struct timespec t;

	if (timestamp)
		return timestamp();
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void complete(void)
{
	uint8_t *full = buffer;

	buffer = NULL;
	if (full)
		on_completed(NULL, 0, full, size, used);
	used = 0;
}

static uint8_t *record(uint32_t kind, size_t bytes)
{
	size_t most;
	uint8_t *r;

	if (!(kinds >> kind & 1) || !on_requested)
		return NULL;
	if (buffer && used + bytes > size)
		complete();
	if (!buffer)
		on_requested(&buffer, &size, &most);
	r = buffer + used;
	used += bytes;
	memset(r, 0, bytes);
	memcpy(r, &kind, 4);
	return r;
}

static void put(uint8_t *r, size_t off, uint64_t value, size_t bytes)
{
	if (r)
		memcpy(r + off, &value, bytes);
}

/* Writes the records of a launch: the API call and the kernel. */
void double_launch(int n)
{
	const int leaving = 1;
	uint64_t t;
	uint8_t *r;

	while (n-- > 0) {
		pthread_mutex_lock(&lock);
		t = now();
		correlation++;
		r = record(RUNTIME, API_BYTES);
		put(r, 4, 211, 4);
		put(r, 8, t, 8);
		put(r, 16, t + 1000, 8);
		put(r, 24, (uint64_t)getpid(), 4);
		put(r, 28, (uint64_t)syscall(SYS_gettid), 4);
		put(r, 32, correlation, 4);
		r = record(KERNEL, KERNEL_BYTES);
		put(r, 16, t + 2000, 8);
		put(r, 24, t + 3000, 8);
		put(r, 92, correlation, 4);
		pthread_mutex_unlock(&lock);
		if (callbacks)
			callback(NULL, 2, 211, &leaving);
	}
}

int cuptiGetVersion(uint32_t *v)
{
	*v = VERSION;
	return 0;
}

int cuptiGetTimestamp(uint64_t *t)
{
	*t = now();
	return 0;
}

int cuptiSubscribe(void **subscriber, callback_fn f, void *data)
{
	if (subscribed)
		return MULTIPLE_SUBSCRIBERS;
	subscribed = 1;
	callback = f;
	*subscriber = &subscribed;
	return 0;
}

struct params {
	size_t size;
	const char *name;
	char *holder;
	size_t holder_bytes;
};

int cuptiSubscribe_v2(void **subscriber, callback_fn f, void *data, struct params *p)
{
	if (subscribed)
		strcpy(p->holder, "CUPTI for double");
	return cuptiSubscribe(subscriber, f, data);
}

int cuptiUnsubscribe(void *subscriber)
{
	subscribed = callbacks = 0;
	return 0;
}

int cuptiEnableDomain(uint32_t on, void *subscriber, int domain)
{
	callbacks = (int)on;
	return 0;
}

int cuptiActivityRegisterCallbacks(requested_fn r, completed_fn c)
{
	on_requested = r;
	on_completed = c;
	return 0;
}

int cuptiActivityRegisterTimestampCallback(uint64_t (*f)(void))
{
	timestamp = f;
	return 0;
}

int cuptiActivityEnable(int kind)
{
	kinds |= 1ull << kind;
	return 0;
}

int cuptiActivityDisable(int kind)
{
	kinds &= ~(1ull << kind);
	return 0;
}

int cuptiActivityFlushAll(uint32_t flag)
{
	pthread_mutex_lock(&lock);
	complete();
	pthread_mutex_unlock(&lock);
	return 0;
}

int cuptiActivityGetNextRecord(uint8_t *b, size_t valid, uint8_t **r)
{
	uint32_t kind;
	uint8_t *next = b;

	if (*r) {
		memcpy(&kind, *r, 4);
		next = *r + (kind == KERNEL ? KERNEL_BYTES : API_BYTES);
	}
	if (next >= b + valid)
		return MAX_LIMIT_REACHED;
	*r = next;
	return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	*dropped = 0;
	return 0;
}

int cuptiActivityGetAttribute(int attribute, size_t *bytes, uint8_t *value)
{
	*value = 1;
	return 0;
}

int cuptiSetThreadIdType(int type)
{
	return 0;
}

int cuptiFinalize(void)
{
	kinds = 0;
	subscribed = callbacks = 0;
	return 0;
}
