// SPDX-License-Identifier: Apache-2.0
/* Tests what is made of the driver's files and of NVML, whose functions are played here. */
#include "nvml/priv.h"

#include <math.h>

#include "base/clock.h"
#include "unit.h"

#define NS_PER_S 1000000000ull

/* ---- names */

static void put_file(const char *folder, const char *gpu, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, gpu);
	CHECK(!mkdir(path, 0700));
	snprintf(path, sizeof(path), "%s/%s/information", folder, gpu);
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

static void test_names(void)
{
	char folder[] = "/tmp/test_nvml.XXXXXX", command[64];
	struct nvml_list l = {.n = 0};

	CHECK(mkdtemp(folder));
	put_file(folder, "0001:0a:00.0", "Model: \t\t NVIDIA L4\nIRQ:   \t\t 7\nGPU UUID: \t GPU-b\n");
	put_file(folder, "0000:c1:00.0",
		 "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-?"
		 "?"
		 "?"
		 "?-?\n");
	put_file(folder, "nonsense", "Model: \t\t none\n");
	nvml_read_names(folder, &l);
	nvml_read_names(folder, &l); /* again: they are the same */
	CHECK(l.n == 2 && l.gpus[0].index == 0 && l.gpus[1].index == 1);
	CHECK(!l.gpus[0].domain && l.gpus[0].bus == 0xc1 && !strcmp(l.gpus[0].model, "NVIDIA H200"));
	CHECK(!*l.gpus[0].uuid); /* the driver does not know it yet */
	CHECK(l.gpus[1].domain == 1 && l.gpus[1].bus == 0x0a && !strcmp(l.gpus[1].uuid, "GPU-b"));
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK(!system(command));
	nvml_read_names(folder, &l);
	CHECK(l.n == 2);
}

/* ---- a driver with GPUs that do what these say */

static unsigned ngpus = 2, lost; /* lost: bits */
static nvmlSample_t samples[2][16];
static unsigned nsamples[2], value[2], nprocesses;

static unsigned number(nvmlDevice_t d)
{
	return (unsigned)(uintptr_t)d - 1;
}

static int error_of(nvmlDevice_t d)
{
	return lost >> number(d) & 1 ? 15 : 0;
}

static int play_shutdown(void)
{
	return 0;
}

static int play_count(unsigned *n)
{
	*n = ngpus;
	return 0;
}

static int play_handle(unsigned index, nvmlDevice_t *d)
{
	*d = (nvmlDevice_t)(uintptr_t)(index + 1);
	return 0;
}

static int play_text(nvmlDevice_t d, char *text, unsigned cap)
{
	snprintf(text, cap, "GPU-%u", number(d));
	return error_of(d);
}

static int play_pci(nvmlDevice_t d, nvmlPciInfo_t *to)
{
	to->bus = 7 + number(d);
	return error_of(d);
}

static int play_utilization(nvmlDevice_t d, nvmlUtilization_t *to)
{
	to->gpu = value[number(d)];
	return error_of(d);
}

static int play_samples(nvmlDevice_t d, int type, unsigned long long after_us, int *value_type, unsigned *n,
			nvmlSample_t *to)
{
	const unsigned gpu = number(d);

	CHECK(type == NVML_GPU_UTILIZATION && *n >= 16);
	*value_type = 1;
	*n = nsamples[gpu];
	memcpy(to, samples[gpu], sizeof(samples[gpu]));
	return nsamples[gpu] ? error_of(d) : 6;
}

static int play_processes(nvmlDevice_t d, unsigned *n, void *to)
{
	nvmlProcessInfo_t *p = to;
	unsigned i;

	if (nprocesses > *n) {
		*n = nprocesses;
		return 7; /* NVML_ERROR_INSUFFICIENT_SIZE: nothing was written */
	}
	for (i = 0; i < nprocesses; i++)
		p[i] = (nvmlProcessInfo_t){.pid = 100 + i, .memory = i ? 1u << 20 : NVML_VALUE_NOT_AVAILABLE};
	*n = nprocesses;
	return error_of(d);
}

static int play_memory(nvmlDevice_t d, nvmlMemory_t *to)
{
	*to = (nvmlMemory_t){.total = 100, .free = 60, .used = 40};
	return error_of(d);
}

static int play_memory_v2(nvmlDevice_t d, nvmlMemory_v2_t *to)
{
	CHECK(to->version == 0x2000028); /* nvmlMemory_v2 of nvml.h */
	*to = (nvmlMemory_v2_t){.total = 100, .reserved = 10, .free = 60, .used = 30};
	return number(d) ? 3 : error_of(d); /* NVML_ERROR_NOT_SUPPORTED */
}

/* The second GPU is divided: of its places for instances, only these two are taken. */
static int play_max_instances(nvmlDevice_t d, unsigned *n)
{
	*n = 7;
	return number(d) ? 0 : 3; /* NVML_ERROR_NOT_SUPPORTED */
}

static int play_instance(nvmlDevice_t d, unsigned index, nvmlDevice_t *instance)
{
	*instance = (nvmlDevice_t)(uintptr_t)(index + 10);
	CHECK(number(d) == 1);
	return index == 2 || index == 6 ? 0 : 6; /* NVML_ERROR_NOT_FOUND */
}

static int play_instance_id(nvmlDevice_t instance, unsigned *id)
{
	*id = number(instance);
	return 0;
}

static struct nvml_driver driver;
static struct nvml_list list;

static void begin(void)
{
	lost = nprocesses = nsamples[0] = nsamples[1] = value[0] = value[1] = 0;
	memset(&list, 0, sizeof(list));
	memset(&driver, 0, sizeof(driver));
	driver.lib = &driver; /* so that none is loaded */
	driver.calls = (struct nvml_calls){
		.init = play_shutdown,
		.shutdown = play_shutdown,
		.count = play_count,
		.handle = play_handle,
		.uuid = play_text,
		.name = play_text,
		.pci = play_pci,
		.utilization = play_utilization,
		.samples = play_samples,
		.processes = play_processes,
	};
}

static void look(uint64_t s)
{
	nvml_driver_look(&driver, &list, s * NS_PER_S);
}

static void put_sample(unsigned gpu, uint64_t ms, unsigned percent)
{
	samples[gpu][nsamples[gpu]++] = (nvmlSample_t){.us = ms * 1000, .value.u = percent};
}

static bool is_near(uint64_t a, uint64_t b)
{
	return a + 10 >= b && b + 10 >= a;
}

static void test_instances(void)
{
	begin();
	driver.calls.max_instances = play_max_instances;
	driver.calls.instance = play_instance;
	driver.calls.gpu_instance = driver.calls.compute_instance = play_instance_id;
	look(1);
	look(2);
	CHECK(list.ninstances == 2 && list.instances[0].gpu == 1 && list.instances[0].gpu_instance == 11 &&
	      list.instances[1].gpu_instance == 15 && !strcmp(list.instances[1].uuid, "GPU-15"));
	driver.calls.gpu_instance = NULL; /* an old driver */
	look(3);
	CHECK(!list.ninstances);
}

static void test_memory(void)
{
	begin();
	look(1);
	CHECK(!list.gpus[0].total_bytes);
	driver.calls.memory = play_memory;
	driver.calls.memory_v2 = play_memory_v2;
	look(2);
	CHECK(list.gpus[0].total_bytes == 100 && list.gpus[0].driver_bytes == 10 && list.gpus[0].used_bytes == 30);
	CHECK(list.gpus[1].total_bytes == 100 && !list.gpus[1].driver_bytes && list.gpus[1].used_bytes == 40);
	lost = 3;
	look(3);
	CHECK(!list.gpus[0].total_bytes && !list.gpus[1].used_bytes);
}

static void test_samples(void)
{
	begin();
	put_sample(0, 1000, 100);
	put_sample(0, 1200, 100);
	look(1); /* of a time before anybody asked */
	CHECK(list.n == 2 && !list.gpus[0].seen_ns && list.gpus[0].bus == 7 && !strcmp(list.gpus[0].uuid, "GPU-0"));
	nsamples[0] = 0;
	put_sample(0, 1200, 100); /* again */
	put_sample(0, 1400, 50);
	put_sample(0, 1900, 20);
	look(2);
	CHECK(list.gpus[0].seen_ns == 700000000 && is_near(list.gpus[0].busy_ns, 200000000));
	/* A value that is missing is not known, and one beyond 100 is not believed. */
	nsamples[0] = 0;
	put_sample(0, 60000, 100);
	put_sample(0, 60100, 4000000000u);
	look(3);
	CHECK(list.gpus[0].seen_ns == 800000000 && is_near(list.gpus[0].busy_ns, 300000000));
}

static void test_values(void)
{
	begin();
	value[1] = 40;
	look(10);
	CHECK(!list.gpus[1].seen_ns);
	look(11);
	look(13);
	CHECK(list.gpus[1].seen_ns == 3 * NS_PER_S && is_near(list.gpus[1].busy_ns, 6 * NS_PER_S / 5));
	look(1000); /* a driver that did not answer */
	CHECK(list.gpus[1].seen_ns == 8 * NS_PER_S);
	/* Samples that stop, because the clock was set back: the values count. */
	put_sample(0, 5000000, 0);
	look(1001);
	nsamples[0] = 0;
	look(1002);
	CHECK(list.gpus[0].seen_ns == 8 * NS_PER_S);
	value[0] = 100;
	look(1005);
	CHECK(list.gpus[0].seen_ns == 12 * NS_PER_S && is_near(list.gpus[0].busy_ns, 4 * NS_PER_S));
}

static void test_lost(void)
{
	begin();
	value[0] = value[1] = 100;
	nprocesses = 2;
	look(1);
	CHECK(list.nprocesses == 4 && list.processes[0].pid == 100 && !list.processes[0].memory_bytes);
	CHECK(list.processes[3].gpu == 1 && list.processes[3].memory_bytes == 1u << 20);
	lost = 1;
	look(2);
	CHECK(!list.gpus[0].seen_ns && list.gpus[1].seen_ns == NS_PER_S && list.nprocesses == 2);
	nprocesses = 100000;
	look(3);
	CHECK(!list.nprocesses);
}

static void test_thread(void)
{
	static struct nvml_list seen;
	struct nvml *n = nvml_open();

	CHECK(n);
	nvml_take(n, true, &seen);
	nvml_take(n, false, &seen);
	nvml_take(n, true, &seen);
	nvml_refresh(n, 10000);
	nvml_refresh(NULL, 10000);
	CHECK(nvml_close(n));
	nvml_take(NULL, true, &seen);
	CHECK(!seen.n && !seen.nprocesses);
	CHECK(nvml_close(NULL));
}

int main(void)
{
	TEST("names of GPUs come from the driver's files, in the order of the PCI bus")
	test_names();
	TEST("each sample counts for the time since the one before, and what is missing counts for nothing")
	test_samples();
	TEST("without samples the driver's value counts, for a bounded time")
	test_values();
	TEST("a GPU that is lost takes nothing from the others, and the number of processes is bounded")
	test_lost();
	TEST("instances of MIG are listed anew at each look, and places without one are no instances")
	test_instances();
	TEST("memory is that of the function which tells the driver's part apart, else that of the older one")
	test_memory();
	TEST("the thread ends, whether or not there is a driver")
	test_thread();
	UNIT_MAIN_END;
}
