// SPDX-License-Identifier: Apache-2.0
/* Memory of the simulated device. With the word `memory` it has so many MiB, else enough. */
#include "device.h"

#include <pthread.h>

#define BLOCKS_MAX 4096
#define MEMORY_ALL (141ull << 30)

enum { MEMORY_ALLOCATED = 1, MEMORY_FREED = 2 }; /* CUpti_ActivityMemoryOperationType */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block {
	void *at;
	uint64_t bytes;
	uint32_t device;
} blocks[BLOCKS_MAX]; /* those that were not freed */
static unsigned nblocks;
static uint64_t used[DEVICES];

uint64_t memory_all(void)
{
	const uint64_t mib = (uint64_t)double_number("memory", 0, 0);

	return mib ? mib << 20 : MEMORY_ALL;
}

uint64_t memory_free_bytes(uint32_t device)
{
	return memory_all() - used[device];
}

/* What CUPTI has a record of: memory that was allocated or freed. Calls that fail have none. */
static void record(uint32_t type, const void *p, uint64_t bytes, uint32_t device, bool async)
{
	struct double_op op = {.kind = KIND_MEMORY,
			       .type = type,
			       .node = (uintptr_t)p,
			       .bytes = bytes,
			       .to = MEMORY_DEVICE,
			       .async = async,
			       .value = (uint32_t)used[device],
			       .device = device,
			       .context = 1 + device,
			       .stream = async ? DEFAULT_STREAM : UINT32_MAX};

	op.start = op.end = double_now();
	op.correlation = (uint32_t)double_corr();
	device_count(&double_account()->launched[KIND_MEMORY], 1);
	if (device_hooks)
		device_hooks->op(&op);
}

static int take(void **p, size_t bytes)
{
	int result = CUDA_OUT_OF_MEMORY;

	pthread_mutex_lock(&lock);
	if (nblocks < BLOCKS_MAX && bytes <= memory_free_bytes(device_current)) {
		*p = device_alloc(bytes);
		used[device_current] += bytes;
		blocks[nblocks++] = (struct block){*p, bytes, device_current};
		result = 0;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

int memory_alloc(void **p, size_t bytes, bool async)
{
	const int result = take(p, bytes);

	if (!result)
		record(MEMORY_ALLOCATED, *p, bytes, device_current, async);
	return result;
}

static uint64_t give(void *p, uint32_t *device)
{
	uint64_t bytes = 0;
	unsigned i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < nblocks && blocks[i].at != p; i++)
		;
	if (i < nblocks) {
		bytes = blocks[i].bytes;
		*device = blocks[i].device;
		used[*device] -= bytes;
		blocks[i] = blocks[--nblocks];
	}
	pthread_mutex_unlock(&lock);
	return bytes;
}

uint64_t memory_free(void *p, bool async)
{
	uint32_t device = 0;
	const uint64_t bytes = give(p, &device);

	if (bytes)
		record(MEMORY_FREED, p, bytes, device, async);
	return bytes;
}

int memory_create(uint64_t *handle, size_t bytes)
{
	void *p = NULL;
	const int result = take(&p, bytes);

	*handle = (uintptr_t)p;
	return result;
}

void memory_release(uint64_t handle)
{
	uint32_t device;

	give((void *)(uintptr_t)handle, &device);
}
