// SPDX-License-Identifier: Apache-2.0
/* Asks NVML. Each call can take any time: see nvml.h. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "nvml/priv.h"

/* The loader finds it where it finds the libraries of mxbpf; sudo and capabilities of files make it ignore
 * LD_LIBRARY_PATH. */
#define LIBRARY	   "libnvidia-ml.so.1"
#define RETRY_NS   60000000000ull /* the driver may be installed or loaded later */
#define SAMPLE_NS  2000000000ull  /* a sample tells of no longer time: what is missing is not known */
#define SILENT_NS  3000000000ull  /* without a sample for so long, the driver's last value counts */
#define UNKNOWN_NS 5000000000ull  /* that value counts for no longer */
#define OF_GPU_MAX 256		  /* processes */
/* The third version of the function wrote 32 bytes for each process in drivers 535.43 to 535.86. */
#define PROCESS_BYTES_MAX 32

static const struct {
	const char *names[3];
	size_t at;
	bool optional;
} functions[] = {
	{{"nvmlInit_v2"}, offsetof(struct nvml_calls, init), false},
	{{"nvmlShutdown"}, offsetof(struct nvml_calls, shutdown), false},
	{{"nvmlDeviceGetCount_v2"}, offsetof(struct nvml_calls, count), false},
	{{"nvmlDeviceGetHandleByIndex_v2"}, offsetof(struct nvml_calls, handle), false},
	{{"nvmlDeviceGetUUID"}, offsetof(struct nvml_calls, uuid), false},
	{{"nvmlDeviceGetName"}, offsetof(struct nvml_calls, name), false},
	{{"nvmlDeviceGetPciInfo_v3"}, offsetof(struct nvml_calls, pci), false},
	{{"nvmlDeviceGetUtilizationRates"}, offsetof(struct nvml_calls, utilization), false},
	{{"nvmlDeviceGetSamples"}, offsetof(struct nvml_calls, samples), true},
	{{"nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3"},
	 offsetof(struct nvml_calls, processes),
	 true},
	{{"nvmlDeviceGetMemoryInfo"}, offsetof(struct nvml_calls, memory), true},
	{{"nvmlDeviceGetMemoryInfo_v2"}, offsetof(struct nvml_calls, memory_v2), true},
	{{"nvmlDeviceGetMaxMigDeviceCount"}, offsetof(struct nvml_calls, max_instances), true},
	{{"nvmlDeviceGetMigDeviceHandleByIndex"}, offsetof(struct nvml_calls, instance), true},
	{{"nvmlDeviceGetGpuInstanceId"}, offsetof(struct nvml_calls, gpu_instance), true},
	{{"nvmlDeviceGetComputeInstanceId"}, offsetof(struct nvml_calls, compute_instance), true},
};

static bool find_functions(struct nvml_driver *d)
{
	const char *const *name;
	void *fn;
	size_t i;

	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		for (name = functions[i].names, fn = NULL; *name && !fn; name++)
			fn = dlsym(d->lib, *name);
		if (!fn && !functions[i].optional)
			return false;
		memcpy((char *)&d->calls + functions[i].at, &fn, sizeof(fn));
	}
	return true;
}

static bool driver_load(struct nvml_driver *d)
{
	if (d->lib)
		return true;
	d->lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!d->lib)
		return false;
	if (find_functions(d))
		return true;
	dlclose(d->lib);
	d->lib = NULL;
	return false;
}

/* A GPU whose place is not known would be mistaken for another one. */
static void add_device(struct nvml_driver *d, struct nvml_list *l, unsigned index)
{
	struct nvml_device *to = &d->devices[d->ndevices];
	nvmlPciInfo_t pci = {.domain = 0};
	struct nvml_gpu *g;
	char text[NVML_TEXT_BYTES];

	*to = (struct nvml_device){.told_ns = 0};
	if (d->calls.handle(index, &to->handle) || d->calls.pci(to->handle, &pci))
		return;
	g = nvml_gpu_at(l, pci.domain, pci.bus, pci.device);
	if (!g)
		return;
	g->index = index;
	to->gpu = (uint32_t)(g - l->gpus);
	if (!d->calls.uuid(to->handle, text, sizeof(text)))
		snprintf(g->uuid, sizeof(g->uuid), "%.*s", NVML_TEXT_BYTES - 1, text);
	if (!d->calls.name(to->handle, text, sizeof(text)))
		snprintf(g->model, sizeof(g->model), "%.*s", NVML_TEXT_BYTES - 1, text);
	d->ndevices++;
}

static void driver_start(struct nvml_driver *d, struct nvml_list *l, uint64_t now_ns)
{
	unsigned n = 0, i;

	if (now_ns < d->retry_ns)
		return;
	d->retry_ns = now_ns + RETRY_NS;
	d->ndevices = 0;
	if (!driver_load(d) || d->calls.init())
		return;
	d->on = true;
	if (d->calls.count(&n))
		n = 0;
	for (i = 0; i < n && d->ndevices < NVML_GPUS_MAX; i++)
		add_device(d, l, i);
}

void nvml_driver_stop(struct nvml_driver *d)
{
	if (d->on)
		d->calls.shutdown();
	d->on = false;
	d->retry_ns = 0;
}

/* ---- how busy a GPU was */

static void driver_add(struct nvml_gpu *g, uint64_t ns, double percent)
{
	if (!(percent >= 0))
		percent = 0;
	if (percent > NVML_UTILIZATION_MAX)
		percent = NVML_UTILIZATION_MAX;
	g->seen_ns += ns;
	g->busy_ns += (uint64_t)((double)ns * percent / NVML_UTILIZATION_MAX);
}

/* Each sample tells of the time since the one before. The first ones tell of a time before anybody asked. */
static bool take_samples(struct nvml_driver *d, struct nvml_device *from, struct nvml_gpu *g)
{
	unsigned n = NVML_SAMPLES_MAX, i;
	int type = 0;
	bool any = false;
	uint64_t ns;
	const nvmlSample_t *s;

	if (!d->calls.samples ||
	    d->calls.samples(from->handle, NVML_GPU_UTILIZATION, from->told_us, &type, &n, d->samples))
		return false;
	for (i = 0; i < n && i < NVML_SAMPLES_MAX; i++) {
		s = &d->samples[i];
		if (s->us <= from->told_us)
			continue;
		ns = (s->us - from->told_us) * 1000;
		if (from->told_ns && from->told_us && ns <= SAMPLE_NS)
			driver_add(g, ns, type == NVML_VALUE_TYPE_DOUBLE ? s->value.d : (double)s->value.u);
		from->told_us = s->us;
		any = true;
	}
	return any;
}

/* Without samples: the driver's last value, which is of the last second at most. */
static bool take_value(const struct nvml_driver *d, const struct nvml_device *from, struct nvml_gpu *g, uint64_t now_ns)
{
	const uint64_t ns = from->told_ns ? now_ns - from->told_ns : 0;
	nvmlUtilization_t u;

	if (d->calls.utilization(from->handle, &u))
		return false;
	driver_add(g, ns < UNKNOWN_NS ? ns : UNKNOWN_NS, u.gpu);
	return true;
}

static void take_busy(struct nvml_driver *d, struct nvml_device *from, struct nvml_gpu *g, uint64_t now_ns)
{
	const bool had_samples = from->told_us;

	if (take_samples(d, from, g))
		from->told_ns = now_ns;
	else if ((!had_samples || now_ns - from->told_ns > SILENT_NS) && take_value(d, from, g, now_ns))
		*from = (struct nvml_device){.handle = from->handle, .gpu = from->gpu, .told_ns = now_ns};
}

/* ---- who uses it */

static void take_processes(const struct nvml_driver *d, const struct nvml_device *from, struct nvml_list *l)
{
	nvmlProcessInfo_t p[OF_GPU_MAX * PROCESS_BYTES_MAX / sizeof(nvmlProcessInfo_t)] = {{.pid = 0}};
	unsigned n = OF_GPU_MAX, i;

	if (!d->calls.processes || d->calls.processes(from->handle, &n, p))
		return;
	for (i = 0; i < n && i < OF_GPU_MAX && l->nprocesses < NVML_PROCESSES_MAX; i++)
		l->processes[l->nprocesses++] = (struct nvml_process){
			.gpu = from->gpu,
			.pid = p[i].pid,
			.memory_bytes = p[i].memory == NVML_VALUE_NOT_AVAILABLE ? 0 : p[i].memory,
		};
}

/* Drivers before 510 have the first version alone. */
static void take_memory(const struct nvml_driver *d, const struct nvml_device *from, struct nvml_gpu *g)
{
	nvmlMemory_v2_t v2 = {.version = NVML_MEMORY_V2};
	nvmlMemory_t v1 = {.total = 0};

	g->total_bytes = g->driver_bytes = g->used_bytes = 0;
	if (d->calls.memory_v2 && !d->calls.memory_v2(from->handle, &v2)) {
		g->total_bytes = v2.total;
		g->driver_bytes = v2.reserved;
		g->used_bytes = v2.used;
	} else if (d->calls.memory && !d->calls.memory(from->handle, &v1)) {
		g->total_bytes = v1.total;
		g->used_bytes = v1.used;
	}
}

/* ---- how it is divided */

static void take_instances(const struct nvml_driver *d, const struct nvml_device *from, struct nvml_list *l)
{
	const struct nvml_calls *c = &d->calls;
	struct nvml_instance *to;
	nvmlDevice_t instance;
	unsigned n = 0, i;

	if (!c->max_instances || !c->instance || !c->gpu_instance || !c->compute_instance ||
	    c->max_instances(from->handle, &n))
		return;
	for (i = 0; i < n && l->ninstances < NVML_INSTANCES_MAX; i++) {
		to = &l->instances[l->ninstances];
		*to = (struct nvml_instance){.gpu = from->gpu};
		/* Numbers of instances have gaps. */
		if (c->instance(from->handle, i, &instance) || c->gpu_instance(instance, &to->gpu_instance) ||
		    c->compute_instance(instance, &to->compute_instance) ||
		    c->uuid(instance, to->uuid, sizeof(to->uuid)))
			continue;
		to->uuid[sizeof(to->uuid) - 1] = '\0';
		l->ninstances++;
	}
}

/* A driver that was unloaded, or lost all its GPUs, is asked again from the start. */
void nvml_driver_look(struct nvml_driver *d, struct nvml_list *l, uint64_t now_ns)
{
	struct nvml_device *from;
	unsigned i, n = 0;

	l->nprocesses = l->ninstances = 0;
	if (!d->on)
		driver_start(d, l, now_ns);
	if (d->on && (d->calls.count(&n) || !d->ndevices)) {
		d->calls.shutdown();
		d->on = false;
	}
	for (i = 0; d->on && i < d->ndevices; i++) {
		from = &d->devices[i];
		take_busy(d, from, &l->gpus[from->gpu], now_ns);
		take_processes(d, from, l);
		take_memory(d, from, &l->gpus[from->gpu]);
		take_instances(d, from, l);
	}
}
