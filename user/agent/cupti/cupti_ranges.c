// SPDX-License-Identifier: Apache-2.0
/*
 * CUPTI's range profiler: each kernel that is launched between ranges_begin() and ranges_end() is a range. The counters
 * are chosen so that one pass measures all of them: then CUPTI executes the kernel once, and neither saves nor restores
 * memory. With `replay`, further counters need several passes.
 */
#include "cupti_metrics.h"

#include <string.h>
#include <sys/mman.h>

#include "fork.h"

#define NOT_SUPPORTED_BASE 1000 /* result of MXBPF_GPU_STEP_SUPPORT: this plus the place of the field */

/* The order is that of the numbers in records; counters[] of user/feature/kernels/sheet.c has the same. */
static const struct {
	const char *name;
	bool replay; /* needs more than one pass beside the others */
} counters[MXBPF_GPU_METRICS] = {
	{"gpu__time_duration.sum", false},
	{"sm__cycles_active.avg.pct_of_peak_sustained_elapsed", false},
	{"sm__warps_active.avg.pct_of_peak_sustained_active", false},
	{"sm__inst_issued.avg.pct_of_peak_sustained_active", false},
	{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", false},
	{"l1tex__t_sector_hit_rate.pct", false},
	{"dram__throughput.avg.pct_of_peak_sustained_elapsed", false},
	{"dram__bytes.sum", false},
	{"lts__t_sector_hit_rate.pct", true},
	{"sm__throughput.avg.pct_of_peak_sustained_elapsed", true},
	{"sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed", true},
	{"lts__throughput.avg.pct_of_peak_sustained_elapsed", true},
};

typedef int (*cupti_fn)(void *params);
static struct {
	cupti_fn init, end, supported, chip;
	cupti_fn host_init, host_end, host_add, host_image_size, host_image, host_passes, host_evaluate;
	cupti_fn enable, disable, config, start, stop, decode, data_size, data_init, data_info;
} f;

static const struct {
	const char *name;
	void *to;
} functions[] = {
	{"cuptiProfilerInitialize", &f.init},
	{"cuptiProfilerDeInitialize", &f.end},
	{"cuptiProfilerDeviceSupported", &f.supported},
	{"cuptiDeviceGetChipName", &f.chip},
	{"cuptiProfilerHostInitialize", &f.host_init},
	{"cuptiProfilerHostDeinitialize", &f.host_end},
	{"cuptiProfilerHostConfigAddMetrics", &f.host_add},
	{"cuptiProfilerHostGetConfigImageSize", &f.host_image_size},
	{"cuptiProfilerHostGetConfigImage", &f.host_image},
	{"cuptiProfilerHostGetNumOfPasses", &f.host_passes},
	{"cuptiProfilerHostEvaluateToGpuValues", &f.host_evaluate},
	{"cuptiRangeProfilerEnable", &f.enable},
	{"cuptiRangeProfilerDisable", &f.disable},
	{"cuptiRangeProfilerSetConfig", &f.config},
	{"cuptiRangeProfilerStart", &f.start},
	{"cuptiRangeProfilerStop", &f.stop},
	{"cuptiRangeProfilerDecodeData", &f.decode},
	{"cuptiRangeProfilerGetCounterDataSize", &f.data_size},
	{"cuptiRangeProfilerCounterDataImageInitialize", &f.data_init},
	{"cuptiRangeProfilerGetCounterDataInfo", &f.data_info},
};

struct image {
	uint8_t *data;
	size_t bytes, room;
};

/* The profiler of the one context that is measured. */
static struct {
	bool initialised, running;
	void *host, *profiler;
	const char *names[MXBPF_GPU_METRICS];
	uint32_t numbers[MXBPF_GPU_METRICS];
	size_t n;
	struct image config, data;
} r;

static int cupti_ranges_fail(struct mxbpf_gpu_metrics *m, enum mxbpf_gpu_metrics_step step, int result)
{
	m->step = step;
	m->result = (uint32_t)result;
	__atomic_store_n(&m->state, MXBPF_GPU_METRICS_FAILED, __ATOMIC_RELEASE);
	return -1;
}

int ranges_find(struct mxbpf_gpu_metrics *m)
{
	struct agent_dso d;
	unsigned i;

	if (!agent_dso_find("libcupti.so", &d))
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_SYMBOLS, 0);
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!agent_dso_get(&d, functions[i].name, functions[i].to))
			return cupti_ranges_fail(m, MXBPF_GPU_STEP_SYMBOLS, 0);
	return 0;
}

static bool make_room(struct image *i, size_t bytes)
{
	void *at;

	i->bytes = bytes;
	if (bytes <= i->room)
		return true;
	if (i->data)
		munmap(i->data, i->room);
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	i->data = at == MAP_FAILED ? NULL : at;
	i->room = i->data ? bytes : 0;
	return i->data;
}

/* ---- the counters */

static void end_host(void)
{
	struct cupti_host_end end = {.size = sizeof(end), .host = r.host};

	if (r.host)
		f.host_end(&end);
	r.host = NULL;
}

static int begin_host(const char *chip)
{
	struct cupti_host_init init = {.size = sizeof(init), .type = CUPTI_PROFILER_RANGES, .chip = chip};
	int err;

	end_host();
	err = f.host_init(&init);
	r.host = err ? NULL : init.host;
	return err;
}

/* Makes the configuration of the first n names. *passes receives how often a kernel has to be executed for them. */
static int configure(const char *chip, size_t n, size_t *passes)
{
	struct cupti_host_add add = {.size = sizeof(add), .names = r.names, .n = n};
	struct cupti_host_image_size size = {.size = sizeof(size)};
	struct cupti_host_image image = {.size = sizeof(image)};
	struct cupti_host_passes count = {.size = sizeof(count)};
	int err = begin_host(chip);

	add.host = size.host = image.host = r.host;
	err = err ? err : f.host_add(&add);
	err = err ? err : f.host_image_size(&size);
	if (err || !make_room(&r.config, size.bytes))
		return err ? err : -1;
	image.bytes = count.bytes = r.config.bytes;
	image.image = count.image = r.config.data;
	err = f.host_image(&image);
	err = err ? err : f.host_passes(&count);
	*passes = count.passes;
	return err;
}

/* Chooses the counters. A chip may lack some, or need more passes for them than other chips: these are left out. */
static int cupti_ranges_choose(struct mxbpf_gpu_metrics *m, const char *chip)
{
	size_t passes = 0;
	unsigned i;
	int err = begin_host(chip);

	if (err)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_HOST, err);
	r.n = 0;
	m->mask = 0;
	for (i = 0; i < MXBPF_GPU_METRICS; i++) {
		if (counters[i].replay && !m->replay)
			continue;
		r.names[r.n] = counters[i].name;
		r.numbers[r.n] = i;
		if (configure(chip, r.n + 1, &passes) || !passes || (passes > 1 && !m->replay))
			continue;
		m->mask |= 1u << i;
		r.n++;
	}
	if (!r.n)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_METRICS, 0);
	err = configure(chip, r.n, &passes);
	m->passes = (uint32_t)passes;
	return err ? cupti_ranges_fail(m, MXBPF_GPU_STEP_IMAGE, err) : 0;
}

/* ---- the context */

static int check_device(struct mxbpf_gpu_metrics *m, uint32_t device)
{
	struct cupti_supported s = {
		.size = CUPTI_SIZE(cupti_supported, api), .device = (int)device, .api = CUPTI_PROFILER_RANGES};
	const int err = f.supported(&s);
	const int fields[] = {s.architecture, s.sli, s.virtual_gpu, s.confidential, s.mining, s.wsl};
	int i;

	if (err)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_SUPPORT, err);
	for (i = 0; i < 6 && fields[i] == CUPTI_SUPPORTED; i++)
		;
	return s.all == CUPTI_SUPPORTED ? 0 : cupti_ranges_fail(m, MXBPF_GPU_STEP_SUPPORT, NOT_SUPPORTED_BASE + i);
}

static int prepare_data(struct mxbpf_gpu_metrics *m)
{
	struct cupti_range_data_size size = {.size = sizeof(size),
					     .profiler = r.profiler,
					     .names = r.names,
					     .n = r.n,
					     .ranges_max = 1,
					     .nodes_max = 1};
	const int err = f.data_size(&size);

	if (err)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_DATA, err);
	return make_room(&r.data, size.bytes) ? 0 : cupti_ranges_fail(m, MXBPF_GPU_STEP_MEMORY, 0);
}

static int open_device(struct mxbpf_gpu_metrics *m, void *context, uint32_t device)
{
	struct cupti_profiler_init init = {.size = sizeof(init)};
	struct cupti_chip_name chip = {.size = sizeof(chip), .device = device};
	struct cupti_range_enable enable = {.size = sizeof(enable), .context = context};
	int err = f.init(&init);

	if (err)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_INIT, err);
	r.initialised = true;
	if (check_device(m, device))
		return -1;
	err = f.chip(&chip);
	if (err || !chip.name)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_CHIP, err);
	strncpy(m->chip, chip.name, sizeof(m->chip) - 1);
	if (cupti_ranges_choose(m, chip.name))
		return -1;
	err = f.enable(&enable);
	if (err)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_ENABLE, err);
	r.profiler = enable.profiler;
	return prepare_data(m);
}

int ranges_open(struct mxbpf_gpu_metrics *m, void *context, uint32_t device)
{
	const bool entered = agent_fork_enter_loader(); /* CUPTI loads libnvperf_host.so */
	const int err = open_device(m, context, device);

	agent_fork_leave_loader(entered);
	return err;
}

void ranges_close(void)
{
	struct cupti_range_one one = {.size = sizeof(one), .profiler = r.profiler};
	struct cupti_range_stop stop = {.size = CUPTI_SIZE(cupti_range_stop, all_passes), .profiler = r.profiler};
	struct cupti_profiler_init end = {.size = sizeof(end)};

	if (r.running)
		f.stop(&stop);
	if (r.profiler)
		f.disable(&one);
	end_host();
	if (r.initialised)
		f.end(&end);
	r.profiler = NULL;
	r.initialised = r.running = false;
}

/* ---- a launch */

int ranges_begin(struct mxbpf_gpu_metrics *m)
{
	struct cupti_range_data_init init = {
		.size = sizeof(init), .profiler = r.profiler, .bytes = r.data.bytes, .data = r.data.data};
	struct cupti_range_config c = {.size = CUPTI_SIZE(cupti_range_config, target_level),
				       .profiler = r.profiler,
				       .config_bytes = r.config.bytes,
				       .config = r.config.data,
				       .data_bytes = r.data.bytes,
				       .data = r.data.data,
				       .range = CUPTI_RANGE_AUTO,
				       .replay = CUPTI_REPLAY_KERNEL,
				       .ranges_max = 1,
				       .levels = 1,
				       .level_min = 1};
	struct cupti_range_one start = {.size = sizeof(start), .profiler = r.profiler};
	int err = f.data_init(&init);

	if (err)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_DATA, err);
	err = f.config(&c);
	if (err)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_CONFIG, err);
	err = f.start(&start);
	if (err)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_START, err);
	r.running = true;
	return 0;
}

static int evaluate(struct mxbpf_gpu_metrics *m, double values[MXBPF_GPU_METRICS])
{
	double all[MXBPF_GPU_METRICS] = {0};
	struct cupti_host_evaluate e = {.size = sizeof(e),
					.host = r.host,
					.data = r.data.data,
					.bytes = r.data.bytes,
					.names = r.names,
					.n = r.n,
					.values = all};
	const int err = f.host_evaluate(&e);
	size_t i;

	if (err)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_VALUES, err);
	for (i = 0; i < r.n; i++)
		values[r.numbers[i]] = all[i];
	return 0;
}

int ranges_end(struct mxbpf_gpu_metrics *m, double values[MXBPF_GPU_METRICS], size_t *ranges)
{
	struct cupti_range_stop stop = {.size = CUPTI_SIZE(cupti_range_stop, all_passes), .profiler = r.profiler};
	struct cupti_range_decode decode = {.size = sizeof(decode), .profiler = r.profiler};
	struct cupti_range_data_info info = {.size = sizeof(info), .data = r.data.data, .bytes = r.data.bytes};
	int err = f.stop(&stop);

	if (err)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_STOP, err);
	r.running = false;
	err = f.decode(&decode);
	err = err ? err : f.data_info(&info);
	if (err)
		return cupti_ranges_fail(m, MXBPF_GPU_STEP_DECODE, err);
	*ranges = info.ranges + decode.dropped;
	return *ranges == 1 && info.ranges == 1 ? evaluate(m, values) : 0;
}
