// SPDX-License-Identifier: Apache-2.0
/*
 * For tests/bench/gpu_cost.py: keeps a buffer of records, gives it to the callbacks of the agent, and rings the agent's
 * bell.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "double.h"

#define BYTES (256u << 10) /* of a buffer, as the agent gives them */

int cuptiSubscribe(void **subscriber, void *callback, void *data);
int cuptiUnsubscribe(void *subscriber);
int cuptiActivityRegisterCallbacks(void (*requested)(uint8_t **, size_t *, size_t *),
				   void (*completed)(void *, uint32_t, uint8_t *, size_t, size_t));
int cuptiActivityEnable(int kind);
int cuptiActivityDisable(int kind);
int cuptiActivityFlushAll(uint32_t flag);
int cuptiFinalize(void);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record);

typedef void (*requested_fn)(uint8_t **buffer, size_t *bytes, size_t *most);
typedef void (*completed_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);
void double_callbacks(requested_fn *requested, completed_fn *completed);

static const int kinds[] = {KIND_KERNEL, KIND_COPY, KIND_SET, KIND_SYNC, KIND_RUNTIME, KIND_DRIVER};
static void *subscriber;
static uint8_t kept[BYTES]; /* the first full buffer */
static size_t kept_bytes;

static void requested(uint8_t **buffer, size_t *bytes, size_t *most)
{
	*buffer = aligned_alloc(8, BYTES);
	*bytes = BYTES;
	*most = 0;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	(void)context, (void)stream, (void)bytes;
	if (valid > kept_bytes) {
		kept_bytes = valid;
		memcpy(kept, buffer, valid);
	}
	free(buffer);
}

/* Keeps a buffer of records of a burst. Returns its number of records, or -1. */
DOUBLE_EXPORT long client_keep(void (*burst)(long n), void (*sync)(void))
{
	uint8_t *r = NULL;
	unsigned i;
	long n = 0;

	if (cuptiSubscribe(&subscriber, NULL, NULL) || cuptiActivityRegisterCallbacks(requested, completed))
		return -1;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		cuptiActivityEnable(kinds[i]);
	burst(20000);
	sync();
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		cuptiActivityDisable(kinds[i]);
	cuptiActivityFlushAll(1);
	cuptiUnsubscribe(subscriber);
	cuptiFinalize(); /* forgets the callbacks, for which the agent would wait */
	while (kept_bytes && !cuptiActivityGetNextRecord(kept, kept_bytes, &r))
		n++;
	return n;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Gives the kept records to the client that holds CUPTI now, n times. Returns the CPU time in its callbacks in ns. */
DOUBLE_EXPORT uint64_t client_give(unsigned n)
{
	requested_fn request;
	completed_fn complete;
	uint64_t spent = 0, begun;
	size_t bytes, most;
	uint8_t *buffer;

	double_callbacks(&request, &complete);
	while (n--) {
		request(&buffer, &bytes, &most);
		memcpy(buffer, kept, kept_bytes);
		begun = cpu_ns();
		complete(NULL, 0, buffer, bytes, kept_bytes);
		spent += cpu_ns() - begun;
	}
	return spent;
}

/* Returns the CPU time of n calls of the bell in ns. */
DOUBLE_EXPORT uint64_t ring(void (*bell)(const void *batch), const void *batch, unsigned n)
{
	const uint64_t begun = cpu_ns();

	while (n--)
		bell(batch);
	return cpu_ns() - begun;
}
