// SPDX-License-Identifier: Apache-2.0
/*
 * A mock of NVML (libnvidia-ml.so.1) with the GPUs of the mock of CUDA. The file that MXBPF_DOUBLE_NVML names is
 * read at each call, so that a test can change what the GPUs do: "word=value" with blanks in between. README.md lists
 * the words.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS, UNINITIALIZED, INVALID, NOT_SUPPORTED, NOT_FOUND = 6, INSUFFICIENT = 7, NO_DRIVER = 9, LOST = 15 };
#define GPUS	     8
#define PCI_BUS(i)   (25 + (i)) /* as in driver.c */
#define SAMPLE_US    100000ull
#define SAMPLES_KEPT 100

struct nvmlDevice_st {
	unsigned index, instance; /* instance: of MIG; 0: the whole GPU */
};
static struct nvmlDevice_st gpus[GPUS] = {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}};
static struct nvmlDevice_st instances[GPUS];
static unsigned opened;

/* The value of a word, or of the word with the number of the GPU behind it, which counts more. */
static long word(const char *name, int gpu, long otherwise)
{
	const char *path = getenv("MXBPF_DOUBLE_NVML");
	FILE *f = path ? fopen(path, "r") : NULL;
	char own[64], at[64];
	long value = otherwise, n;

	snprintf(own, sizeof(own), "%s%d", name, gpu);
	while (f && fscanf(f, " %63[^= \n]=%ld", at, &n) == 2) {
		if (!strcmp(at, name) && value == otherwise)
			value = n;
		if (gpu >= 0 && !strcmp(at, own))
			value = n;
	}
	if (f)
		fclose(f);
	return value;
}

static int begin(const struct nvmlDevice_st *d)
{
	while (word("hang", d ? (int)d->index : -1, 0))
		usleep(10000);
	if (!opened)
		return UNINITIALIZED;
	return d && word("lost", (int)d->index, 0) ? LOST : SUCCESS;
}

/* A thread that hangs in the library has its lock, for which functions at exit() wait. */
static void __attribute__((destructor)) end(void)
{
	begin(NULL);
}

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
	opened = 1;
	if (!begin(NULL) && word("devices", -1, 1))
		return SUCCESS;
	opened = 0;
	return NO_DRIVER;
}

EXPORT int nvmlShutdown(void);
int nvmlShutdown(void)
{
	const int err = begin(NULL);

	opened = 0;
	return err;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetCount_v2(unsigned *n)
{
	*n = (unsigned)word("devices", -1, 1);
	return begin(NULL);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvmlDevice_st **d);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvmlDevice_st **d)
{
	if (index >= GPUS)
		return INVALID;
	*d = &gpus[index];
	return begin(*d);
}

EXPORT int nvmlDeviceGetUUID(const struct nvmlDevice_st *d, char *text, unsigned cap);
int nvmlDeviceGetUUID(const struct nvmlDevice_st *d, char *text, unsigned cap)
{
	if (d->instance)
		snprintf(text, cap, "MIG-%02x00000%u-0000-4000-0000-00000000000%u", d->instance, d->index, d->index);
	else
		snprintf(text, cap, "GPU-0000000%u-0000-4000-0000-00000000000%u", d->index, d->index);
	return begin(d);
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(const struct nvmlDevice_st *d, unsigned *n);
int nvmlDeviceGetMaxMigDeviceCount(const struct nvmlDevice_st *d, unsigned *n)
{
	*n = word("instance", (int)d->index, 0) ? 7 : 0;
	return begin(d);
}

/* Only the last one exists. */
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(const struct nvmlDevice_st *d, unsigned i, struct nvmlDevice_st **to);
int nvmlDeviceGetMigDeviceHandleByIndex(const struct nvmlDevice_st *d, unsigned i, struct nvmlDevice_st **to)
{
	const unsigned instance = (unsigned)word("instance", (int)d->index, 0);

	if (i != 6 || !instance)
		return NOT_FOUND;
	*to = &instances[d->index];
	**to = (struct nvmlDevice_st){d->index, instance};
	return begin(d);
}

EXPORT int nvmlDeviceGetGpuInstanceId(const struct nvmlDevice_st *d, unsigned *id);
int nvmlDeviceGetGpuInstanceId(const struct nvmlDevice_st *d, unsigned *id)
{
	*id = 7 + d->instance;
	return d->instance ? begin(d) : INVALID;
}

EXPORT int nvmlDeviceGetComputeInstanceId(const struct nvmlDevice_st *d, unsigned *id);
int nvmlDeviceGetComputeInstanceId(const struct nvmlDevice_st *d, unsigned *id)
{
	*id = 0;
	return d->instance ? begin(d) : INVALID;
}

EXPORT int nvmlDeviceGetName(const struct nvmlDevice_st *d, char *text, unsigned cap);
int nvmlDeviceGetName(const struct nvmlDevice_st *d, char *text, unsigned cap)
{
	snprintf(text, cap, "Mock GPU");
	return begin(d);
}

struct pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
};
EXPORT int nvmlDeviceGetPciInfo_v3(const struct nvmlDevice_st *d, struct pci *to);
int nvmlDeviceGetPciInfo_v3(const struct nvmlDevice_st *d, struct pci *to)
{
	*to = (struct pci){.bus = PCI_BUS(d->index)};
	return begin(d);
}

EXPORT int nvmlDeviceGetUtilizationRates(const struct nvmlDevice_st *d, unsigned percent[2]);
int nvmlDeviceGetUtilizationRates(const struct nvmlDevice_st *d, unsigned percent[2])
{
	percent[0] = (unsigned)word("busy", (int)d->index, 0);
	percent[1] = 0;
	return begin(d);
}

struct sample {
	unsigned long long us, value;
};
EXPORT int nvmlDeviceGetSamples(const struct nvmlDevice_st *d, int type, unsigned long long after, int *value_type,
				unsigned *n, struct sample *to);
int nvmlDeviceGetSamples(const struct nvmlDevice_st *d, int type, unsigned long long after, int *value_type,
			 unsigned *n, struct sample *to)
{
	struct timespec t;
	unsigned long long us, first;
	unsigned i;

	clock_gettime(CLOCK_REALTIME, &t);
	us = ((unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000) / SAMPLE_US * SAMPLE_US;
	if (type != 1 || word("no_samples", (int)d->index, 0))
		return NOT_SUPPORTED;
	if (*n < SAMPLES_KEPT)
		return INSUFFICIENT;
	first = us - (SAMPLES_KEPT - 1) * SAMPLE_US;
	if (first <= after)
		first = after / SAMPLE_US * SAMPLE_US + SAMPLE_US;
	*value_type = 1;
	for (i = 0; first + i * SAMPLE_US <= us; i++)
		to[i] = (struct sample){first + i * SAMPLE_US, (unsigned long long)word("busy", (int)d->index, 0)};
	*n = i;
	return i ? begin(d) : NOT_FOUND;
}

struct process {
	unsigned pid;
	unsigned long long memory;
	unsigned instance, compute_instance;
};

/* Process 1 stands for all others. */
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(const struct nvmlDevice_st *d, unsigned *n, struct process *to);
int nvmlDeviceGetComputeRunningProcesses_v2(const struct nvmlDevice_st *d, unsigned *n, struct process *to)
{
	const struct {
		long pid, mib;
	} all[] = {{word("pid", (int)d->index, 0), word("memory", (int)d->index, 1)},
		   {word("others", (int)d->index, 0) ? 1 : 0, word("others", (int)d->index, 0)}};
	const unsigned room = *n;
	unsigned i, count = 0;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!all[i].pid)
			continue;
		if (count >= room)
			return INSUFFICIENT;
		to[count++] = (struct process){(unsigned)all[i].pid, (unsigned long long)all[i].mib << 20, ~0u, ~0u};
	}
	*n = count;
	return begin(d);
}

struct memory {
	unsigned long long total, free, used;
};
EXPORT int nvmlDeviceGetMemoryInfo(const struct nvmlDevice_st *d, struct memory *to);
int nvmlDeviceGetMemoryInfo(const struct nvmlDevice_st *d, struct memory *to)
{
	to->total = (unsigned long long)word("total", (int)d->index, 0) << 20;
	to->used = (unsigned long long)(word("used", (int)d->index, 0) + word("reserved", (int)d->index, 0)) << 20;
	to->free = to->total - to->used;
	return to->total ? begin(d) : NOT_SUPPORTED;
}

struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};
EXPORT int nvmlDeviceGetMemoryInfo_v2(const struct nvmlDevice_st *d, struct memory_v2 *to);
int nvmlDeviceGetMemoryInfo_v2(const struct nvmlDevice_st *d, struct memory_v2 *to)
{
	struct memory all;
	const int err = nvmlDeviceGetMemoryInfo(d, &all);

	if (to->version != (sizeof(*to) | 2 << 24) || word("old", -1, 0))
		return NOT_SUPPORTED;
	to->total = all.total;
	to->free = all.free;
	to->reserved = (unsigned long long)word("reserved", (int)d->index, 0) << 20;
	to->used = all.used - to->reserved;
	return err;
}
