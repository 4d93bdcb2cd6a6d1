// SPDX-License-Identifier: Apache-2.0
/*
 * NVIDIA's driver answers anything: the input is what its functions return and write, one after the other. They keep
 * what NVML promises of sizes, and nothing else; texts have no end. The first byte leaves optional functions out.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nvml/priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LOOKS 4

static const uint8_t *input, *input_end;

/* Fills n bytes with the next ones of the input, and the rest with the last one. */
static void fill(void *to, size_t n)
{
	const size_t have = (size_t)(input_end - input), some = n < have ? n : have;

	memset(to, 0xff, n);
	memcpy(to, input, some);
	input += some;
}

static uint8_t byte(void)
{
	return input < input_end ? *input++ : 0;
}

static int code(void)
{
	return byte() == 0xee;
}

static int on_any(void)
{
	return code();
}

static int on_number(unsigned *n)
{
	*n = byte();
	if (*n == 0xff)
		fill(n, sizeof(*n));
	return code();
}

static int of_number(nvmlDevice_t d, unsigned *n)
{
	(void)d;
	return on_number(n);
}

static int on_handle(unsigned index, nvmlDevice_t *d)
{
	*d = (nvmlDevice_t)(uintptr_t)(index + 1);
	return code();
}

static int on_text(nvmlDevice_t d, char *text, unsigned cap)
{
	const unsigned n = byte();

	(void)d;
	memset(text, 'x', cap);
	fill(text, n < cap ? n : cap);
	return code();
}

static int on_pci(nvmlDevice_t d, nvmlPciInfo_t *to)
{
	(void)d;
	to->domain = byte() & 1;
	to->bus = byte();
	to->device = byte();
	return code();
}

static int on_utilization(nvmlDevice_t d, nvmlUtilization_t *to)
{
	(void)d;
	fill(to, sizeof(*to));
	return code();
}

static int on_samples(nvmlDevice_t d, int type, unsigned long long after_us, int *value_type, unsigned *n,
		      nvmlSample_t *to)
{
	const unsigned some = byte() % 8 < *n ? (byte() & 7) : 0;

	(void)d;
	(void)type;
	(void)after_us;
	*value_type = byte() % 8;
	fill(to, some * sizeof(*to));
	*n = byte() == 0xdd ? 100000 : some; /* more than there is room for */
	return code();
}

static int on_processes(nvmlDevice_t d, unsigned *n, void *to)
{
	const unsigned some = byte() < *n ? (byte() & 15) : 0;

	(void)d;
	fill(to, some * sizeof(nvmlProcessInfo_t));
	*n = byte() == 0xdd ? 100000 : some;
	return code();
}

static int on_memory(nvmlDevice_t d, nvmlMemory_t *to)
{
	(void)d;
	fill(to, sizeof(*to));
	return code();
}

static int on_memory_v2(nvmlDevice_t d, nvmlMemory_v2_t *to)
{
	(void)d;
	fill(to, sizeof(*to));
	return code();
}

static int on_instance(nvmlDevice_t d, unsigned index, nvmlDevice_t *instance)
{
	(void)d;
	(void)index;
	*instance = d;
	return code();
}

static void open_driver(struct nvml_driver *d, unsigned without)
{
	d->lib = d; /* it is loaded */
	d->calls = (struct nvml_calls){.init = on_any,
				       .shutdown = on_any,
				       .count = on_number,
				       .handle = on_handle,
				       .uuid = on_text,
				       .name = on_text,
				       .pci = on_pci,
				       .utilization = on_utilization,
				       .samples = without & 1 ? NULL : on_samples,
				       .processes = without & 2 ? NULL : on_processes,
				       .memory = without & 4 ? NULL : on_memory,
				       .memory_v2 = without & 8 ? NULL : on_memory_v2,
				       .max_instances = without & 16 ? NULL : of_number,
				       .instance = on_instance,
				       .gpu_instance = of_number,
				       .compute_instance = of_number};
}

static void check(const struct nvml_list *l)
{
	unsigned i;

	if (l->n > NVML_GPUS_MAX || l->nprocesses > NVML_PROCESSES_MAX || l->ninstances > NVML_INSTANCES_MAX)
		abort();
	for (i = 0; i < l->n; i++)
		if (strnlen(l->gpus[i].uuid, NVML_TEXT_BYTES) == NVML_TEXT_BYTES ||
		    strnlen(l->gpus[i].model, NVML_TEXT_BYTES) == NVML_TEXT_BYTES ||
		    l->gpus[i].busy_ns > l->gpus[i].seen_ns)
			abort();
	for (i = 0; i < l->nprocesses; i++)
		if (l->processes[i].gpu >= l->n)
			abort();
	for (i = 0; i < l->ninstances; i++)
		if (l->instances[i].gpu >= l->n || strnlen(l->instances[i].uuid, NVML_TEXT_BYTES) == NVML_TEXT_BYTES)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nvml_driver *d = calloc(1, sizeof(*d));
	struct nvml_list *l = calloc(1, sizeof(*l));
	unsigned i;

	if (!d || !l)
		abort();
	input = data;
	input_end = data + size;
	open_driver(d, byte());
	for (i = 0; i < LOOKS; i++) {
		nvml_driver_look(d, l, 1 + 1000000000ull * i * (1 + byte()));
		check(l);
	}
	nvml_driver_stop(d);
	free(d);
	free(l);
	return 0;
}
