// SPDX-License-Identifier: Apache-2.0
/*
 * Tries CUPTI's range profiler step by step, as the agent uses it, and prints the result of each call. Needs a GPU and
 * libcupti of CUDA 12.6 or later, and neither headers nor a compiler for the GPU.
 *
 * usage: metrics_try [--libcupti PATH] [--callbacks] [--activities] [--mode N] [--replay] [--launches N]
 *   --activities  enable records of kernels and of the driver's launches meanwhile, as mxbpf does
 *   --mode N      1: without records of kernels while one is measured; 2: since the profiler was enabled; 3: as 1, and
 * the profiler is enabled for each launch anew
 *   --replay      also measure what needs several passes, so that the kernel is replayed
 * The kernel adds 1 to each of 64 million floats, so it reads 256 MiB and writes 256 MiB. If a replay left its traces,
 * the floats are not the number of launches.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../user/agent/cupti/cupti_metrics_abi.h"

#define FLOATS	     (64u << 20)
#define THREADS	     256
#define METRICS_MAX  16
#define BUFFER_BYTES (1u << 20)

static const char ptx[] =
	".version 6.4\n.target sm_75\n.address_size 64\n"
	".visible .entry add_one(.param .u64 place)\n{\n"
	".reg .b32 %r<5>;\n.reg .b64 %d<5>;\n.reg .f32 %f<3>;\n"
	"ld.param.u64 %d1, [place];\ncvta.to.global.u64 %d2, %d1;\n"
	"mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.s32 %r4, %r1, %r2, %r3;\n"
	"mul.wide.u32 %d3, %r4, 4;\nadd.s64 %d4, %d2, %d3;\n"
	"ld.global.f32 %f1, [%d4];\nadd.f32 %f2, %f1, 0f3F800000;\nst.global.f32 [%d4], %f2;\nret;\n}\n";

static const char *const single[] =
	{
		"gpu__time_duration.sum",
		"sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
		"sm__warps_active.avg.pct_of_peak_sustained_active",
		"sm__inst_issued.avg.pct_of_peak_sustained_active",
		"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
		"l1tex__t_sector_hit_rate.pct",
		"dram__throughput.avg.pct_of_peak_sustained_elapsed",
		"dram__bytes.sum",
		NULL,
},
			 *const replayed[] = {
				 "sm__throughput.avg.pct_of_peak_sustained_elapsed",
				 "lts__t_sector_hit_rate.pct",
				 "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed",
				 "dram__bytes_read.sum",
				 NULL,
};

static void *cuda, *cupti, *host, *profiler, *context, *function, *subscriber;
static const char *names[METRICS_MAX];
static size_t nnames, image_bytes, data_bytes, passes;
static uint8_t *image, *data;
static uint64_t place; /* of the floats */
static int profiled, launches = 3, records, failures;
static bool started, activities, by_callback;
static int mode, calls;
static double began;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static const char *text_of(int result)
{
	int (*get)(int, const char **) = (int (*)(int, const char **))dlsym(cupti, "cuptiGetResultString");
	const char *text = "";

	return get && !get(result, &text) ? text : "";
}

static int said(const char *what, int result, double since)
{
	printf("%-58s %4d %-40s %9.2f ms\n", what, result, text_of(result), now() - since);
	failures += result != 0;
	return result;
}

/* Calls a function of CUPTI that takes a structure. */
static int call(const char *name, void *params)
{
	int (*f)(void *) = (int (*)(void *))dlsym(cupti, name);
	const double t = now();

	return said(name, f ? f(params) : -1, t);
}

#define CUPTI(name, type, ...)                                                                                         \
	({                                                                                                             \
		int(*f) type = (int(*) type)dlsym(cupti, #name);                                                       \
		const double t = now();                                                                                \
		said(#name, f ? f(__VA_ARGS__) : -1, t);                                                               \
	})
#define CUDA(name, type, ...)                                                                                          \
	({                                                                                                             \
		int(*f) type = (int(*) type)dlsym(cuda, #name);                                                        \
		f ? f(__VA_ARGS__) : -1;                                                                               \
	})

/* ---- the range profiler */

static int prepare_host(const char *chip)
{
	struct cupti_host_init h = {.size = CUPTI_SIZE(cupti_host_init, host), .chip = chip};
	struct cupti_host_add add = {.size = sizeof(add)};
	struct cupti_host_image_size size = {.size = sizeof(size)};
	struct cupti_host_image get = {.size = sizeof(get)};
	struct cupti_host_passes count = {.size = sizeof(count)};

	if (call("cuptiProfilerHostInitialize", &h))
		return -1;
	host = add.host = size.host = get.host = h.host;
	add.names = names; /* in one call, else each gets passes of its own */
	add.n = nnames;
	if (call("cuptiProfilerHostConfigAddMetrics", &add))
		return -1;
	if (call("cuptiProfilerHostGetConfigImageSize", &size))
		return -1;
	image_bytes = get.bytes = count.bytes = size.bytes;
	image = get.image = count.image = calloc(1, image_bytes);
	if (call("cuptiProfilerHostGetConfigImage", &get) || call("cuptiProfilerHostGetNumOfPasses", &count))
		return -1;
	passes = count.passes;
	printf("  configuration %zu bytes, passes %zu\n", image_bytes, passes);
	return 0;
}

static int prepare_data(void)
{
	struct cupti_range_data_init init = {
		.size = sizeof(init), .profiler = profiler, .bytes = data_bytes, .data = data};
	struct cupti_range_config c = {.size = CUPTI_SIZE(cupti_range_config, target_level),
				       .profiler = profiler,
				       .config_bytes = image_bytes,
				       .config = image,
				       .data_bytes = data_bytes,
				       .data = data,
				       .range = CUPTI_RANGE_AUTO,
				       .replay = CUPTI_REPLAY_KERNEL,
				       .ranges_max = 1,
				       .levels = 1,
				       .level_min = 1};

	return call("cuptiRangeProfilerCounterDataImageInitialize", &init) || call("cuptiRangeProfilerSetConfig", &c);
}

static int prepare(void)
{
	struct cupti_profiler_init init = {.size = sizeof(init)};
	struct cupti_supported s = {.size = CUPTI_SIZE(cupti_supported, api)};
	struct cupti_chip_name chip = {.size = sizeof(chip)};
	struct cupti_range_enable enable = {.size = sizeof(enable), .context = context};
	struct cupti_range_data_size size = {.size = sizeof(size), .names = names, .ranges_max = 1, .nodes_max = 1};

	call("cuptiProfilerInitialize", &init);
	call("cuptiProfilerDeviceSupported", &s);
	printf("  supported %d (3: yes): architecture %d sli %d vgpu %d confidential %d mining %d wsl %d\n", s.all,
	       s.architecture, s.sli, s.virtual_gpu, s.confidential, s.mining, s.wsl);
	if (call("cuptiDeviceGetChipName", &chip))
		return -1;
	printf("  chip %s\n", chip.name);
	if (prepare_host(chip.name) || call("cuptiRangeProfilerEnable", &enable))
		return -1;
	profiler = size.profiler = enable.profiler;
	size.n = nnames;
	if (call("cuptiRangeProfilerGetCounterDataSize", &size))
		return -1;
	data_bytes = size.bytes;
	data = calloc(1, data_bytes);
	printf("  counter data %zu bytes\n", data_bytes);
	return 0;
}

static void record_kernels(bool on)
{
	if (!activities)
		return;
	if (on)
		CUPTI(cuptiActivityEnable, (int), 10);
	else
		CUPTI(cuptiActivityDisable, (int), 10);
}

static void begin(void)
{
	struct cupti_range_one one = {.size = sizeof(one)};

	if (mode == 1 || (mode == 2 && !profiler))
		record_kernels(false);
	if (!profiler && prepare()) {
		launches = profiled; /* no more */
		return;
	}
	one.profiler = profiler;
	began = now();
	started = !prepare_data() && !call("cuptiRangeProfilerStart", &one);
}

static void end(void)
{
	struct cupti_range_stop stop = {.size = CUPTI_SIZE(cupti_range_stop, all_passes), .profiler = profiler};
	struct cupti_range_decode decode = {.size = sizeof(decode), .profiler = profiler};
	struct cupti_range_data_info info = {.size = sizeof(info), .data = data, .bytes = data_bytes};
	double values[METRICS_MAX] = {0};
	struct cupti_host_evaluate e = {.size = sizeof(e),
					.host = host,
					.data = data,
					.bytes = data_bytes,
					.names = names,
					.n = nnames,
					.values = values};
	size_t i;

	started = false;
	call("cuptiRangeProfilerStop", &stop);
	printf("  all passes %d\n", stop.all_passes);
	call("cuptiRangeProfilerDecodeData", &decode);
	call("cuptiRangeProfilerGetCounterDataInfo", &info);
	printf("  ranges %zu, dropped %zu\n", info.ranges, decode.dropped);
	if (info.ranges)
		call("cuptiProfilerHostEvaluateToGpuValues", &e);
	printf("  launch %d was profiled in %.2f ms\n", ++profiled, now() - began);
	for (i = 0; i < nnames && info.ranges; i++)
		printf("    %-66s %.6g\n", names[i], values[i]);
	if (mode == 1)
		record_kernels(true);
}

static void finish(void)
{
	struct cupti_range_one one = {.size = sizeof(one), .profiler = profiler};
	struct cupti_host_end h = {.size = sizeof(h), .host = host};
	struct cupti_profiler_init init = {.size = sizeof(init)};

	if (profiler)
		call("cuptiRangeProfilerDisable", &one);
	if (host)
		call("cuptiProfilerHostDeinitialize", &h);
	call("cuptiProfilerDeInitialize", &init);
}

/* ---- callbacks and records, as the agent has them */

static void on_call(void *unused, uint32_t domain, uint32_t cbid, const struct cupti_call *info)
{
	(void)unused;
	if (domain != 1 || (cbid != CUPTI_CU_LAUNCH_KERNEL && cbid != CUPTI_CU_LAUNCH_KERNEL_PTSZ))
		return;
	printf("callback: function %u site %u symbol %s context %p (the current one is %p) correlation %u\n", cbid,
	       info->site, info->symbol ? info->symbol : "NULL", info->context, context, info->correlation);
	if (info->site == CUPTI_SITE_ENTER && !(++calls % 2) && profiled < launches)
		begin();
	else if (info->site == CUPTI_SITE_EXIT && started)
		end();
}

static void on_requested(uint8_t **buffer, size_t *size, size_t *records_max)
{
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*size = BUFFER_BYTES;
	*records_max = 0;
}

static void on_completed(void *c, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	int (*next)(uint8_t *, size_t, uint8_t **) =
		(int (*)(uint8_t *, size_t, uint8_t **))dlsym(cupti, "cuptiActivityGetNextRecord");
	uint8_t *r = NULL;
	uint32_t kind, correlation;
	uint64_t start, stop;

	(void)c, (void)stream, (void)bytes;
	int err = 12;

	printf("buffer with %zu bytes\n", valid);
	while (valid && next && !(err = next(buffer, valid, &r))) {
		memcpy(&kind, r, 4);
		if (kind != 10) {
			printf("record of kind %u\n", kind);
			continue;
		}
		memcpy(&start, r + 16, 8);
		memcpy(&stop, r + 24, 8);
		memcpy(&correlation, r + 92, 4);
		printf("record of a kernel: correlation %u, %llu ns\n", correlation,
		       (unsigned long long)(stop - start));
		records++;
	}
	printf("end of the buffer: %d (12: regular)\n", err);
	free(buffer);
}

static void listen(void)
{
	static const uint32_t cbids[] = {CUPTI_CU_LAUNCH_KERNEL, CUPTI_CU_LAUNCH_KERNEL_PTSZ};
	unsigned i;

	CUPTI(cuptiSubscribe, (void **, void *, void *), &subscriber, (void *)on_call, NULL);
	for (i = 0; i < 2; i++)
		CUPTI(cuptiEnableCallback, (uint32_t, void *, int, uint32_t), 1, subscriber, 1, cbids[i]);
	if (!activities)
		return;
	CUPTI(cuptiActivityRegisterCallbacks, (void *, void *), (void *)on_requested, (void *)on_completed);
	CUPTI(cuptiActivityEnable, (int), 10);
	CUPTI(cuptiActivityEnableDriverApi, (uint32_t, uint8_t), CUPTI_CU_LAUNCH_KERNEL, 1);
}

/* ---- the program */

static int start_cuda(void)
{
	void *module;
	int device, err = CUDA(cuInit, (unsigned), 0);

	err = err ? err : CUDA(cuDeviceGet, (int *, int), &device, 0);
	err = err ? err : CUDA(cuDevicePrimaryCtxRetain, (void **, int), &context, device);
	err = err ? err : CUDA(cuCtxSetCurrent, (void *), context);
	err = err ? err : CUDA(cuModuleLoadData, (void **, const void *), &module, ptx);
	err = err ? err : CUDA(cuModuleGetFunction, (void **, void *, const char *), &function, module, "add_one");
	err = err ? err : CUDA(cuMemAlloc_v2, (uint64_t *, size_t), &place, 4ul * FLOATS);
	err = err ? err : CUDA(cuMemsetD8_v2, (uint64_t, unsigned char, size_t), place, 0, 4ul * FLOATS);
	return err ? err : CUDA(cuCtxSynchronize, (void));
}

static int launch(void)
{
	void *params[] = {&place};
	const double t = now();
	int err = CUDA(cuLaunchKernel,
		       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
			void **),
		       function, FLOATS / THREADS, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL);

	err = err ? err : CUDA(cuCtxSynchronize, (void));
	printf("launch: %d, %.2f ms\n", err, now() - t);
	return err;
}

static bool check(int expected)
{
	float *floats = malloc(4ul * FLOATS);
	size_t i, wrong = 0;
	int err = CUDA(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), floats, place, 4ul * FLOATS);

	for (i = 0; !err && i < FLOATS; i++)
		wrong += floats[i] != (float)expected;
	printf("memory: copy %d, %zu of %u floats are not %d (the first is %g)\n", err, wrong, FLOATS, expected,
	       floats[0]);
	free(floats);
	return !err && !wrong;
}

static int run(void)
{
	int i, e, err = 0;

	for (i = 0; i < (by_callback ? 2 * launches + 2 : launches + 2) && !err; i++) {
		if (i && !by_callback && profiled < launches)
			begin();
		err = launch();
		if (started && !by_callback)
			end();
	}
	if (activities)
		CUPTI(cuptiActivityFlushAll, (uint32_t), 0);
	finish();
	for (e = 0; activities && e < 2; e++)
		CUPTI(cuptiActivityFlushAll, (uint32_t), (uint32_t)e);
	if (subscriber)
		CUPTI(cuptiUnsubscribe, (void *), subscriber);
	printf("%d launches, %d profiled in %zu passes each, %d records of kernels, %d calls failed\n", i, profiled,
	       passes, records, failures);
	return check(i) && !failures && profiled ? 0 : 1;
}

static void add(const char *const *list)
{
	for (; *list; list++)
		names[nnames++] = *list;
}

int main(int argc, char **argv)
{
	const char *path = "libcupti.so.13";
	int i, err;

	setvbuf(stdout, NULL, _IOLBF, 0);
	add(single);
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--libcupti") && i + 1 < argc)
			path = argv[++i];
		else if (!strcmp(argv[i], "--launches") && i + 1 < argc)
			launches = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--mode") && i + 1 < argc)
			mode = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--callbacks"))
			by_callback = true;
		else if (!strcmp(argv[i], "--activities"))
			activities = by_callback = true;
		else if (!strcmp(argv[i], "--replay"))
			add(replayed);
	}
	cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	cupti = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!cuda || !cupti) {
		fprintf(stderr, "metrics_try: %s\n", dlerror());
		return 2;
	}
	err = start_cuda();
	if (err) {
		fprintf(stderr, "metrics_try: CUDA: error %d\n", err);
		return 2;
	}
	if (by_callback)
		listen();
	return run();
}
