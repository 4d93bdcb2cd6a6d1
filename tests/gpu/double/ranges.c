// SPDX-License-Identifier: Apache-2.0
/*
 * The range profiler of the mock of CUPTI, with the automatic ranges and the replay of kernels. Its counters are
 * functions of a kernel's duration, so that a test can say what they must be.
 */
#include "collect.h"
#include "gate.h"

#include <math.h>

#include "../../../user/agent/cupti/cupti_metrics_abi.h"

#ifndef DOUBLE_OLD
#define RANGES_MAX 8

enum { INVALID_OPERATION = 7, INVALID_METRIC = 17 };

/*
 * Values: `per_ns` for each ns of the kernel, or a fixed percentage. `alone`: needs several passes beside others, as
 * CUPTI 13.0 says for GH100.
 */
static const struct {
	const char *name;
	double per_ns, fixed;
	int passes;
} metrics[] = {
	{"gpu__time_duration.sum", 1, 0, 1},
	{"sm__cycles_active.avg.pct_of_peak_sustained_elapsed", 0, 91.25, 1},
	{"sm__warps_active.avg.pct_of_peak_sustained_active", 0, 62.5, 1},
	{"sm__inst_issued.avg.pct_of_peak_sustained_active", 0, 37.125, 1},
	{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 0, 0, 1},
	{"l1tex__t_sector_hit_rate.pct", 0, 33, 1},
	{"dram__throughput.avg.pct_of_peak_sustained_elapsed", 0, 70.5, 1},
	{"dram__bytes.sum", 1000, 0, 1},
	{"lts__t_sector_hit_rate.pct", 0, 44, 2},
	{"sm__throughput.avg.pct_of_peak_sustained_elapsed", 0, 55, 8},
	{"sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed", 0, 22, 2},
	{"lts__throughput.avg.pct_of_peak_sustained_elapsed", 0, 11, 4},
};
#define METRICS (sizeof(metrics) / sizeof(metrics[0]))

struct host {
	size_t wanted; /* mask of metrics */
};

static struct {
	bool initialised, enabled, configured, running;
	size_t wanted, ranges, dropped;
	uint64_t ns[RANGES_MAX]; /* durations of the kernels */
} p;
static struct host hosts[64];
static unsigned nhosts;

struct image {
	uint64_t magic, ranges, ns[RANGES_MAX];
};
#define CONFIG_MAGIC 0x6769666e6f63ull

static int find(const char *name)
{
	unsigned i;

	for (i = 0; i < METRICS && strcmp(metrics[i].name, name) != 0; i++)
		;
	return i < METRICS ? (int)i : -1;
}

static size_t passes_of(size_t wanted)
{
	size_t most = 0;
	unsigned i;

	for (i = 0; i < METRICS; i++)
		if (wanted >> i & 1 && (size_t)metrics[i].passes > most)
			most = (size_t)metrics[i].passes;
	return most;
}

/* A kernel was launched. With several passes the device executes it again, which takes time and leaves no record. */
bool ranges_op(const struct double_op *op)
{
	const size_t passes = passes_of(p.wanted);

	if (!p.running || op->kind != KIND_KERNEL)
		return false;
	account->executed += passes;
	if (p.ranges < RANGES_MAX)
		p.ns[p.ranges++] = op->end - op->start;
	usleep((useconds_t)((op->end - op->start) * passes / 1000 + 1));
	return true;
}

#define SIZED(type, last)                                                                                              \
	if (!s || s->size != CUPTI_SIZE(type, last))                                                                   \
	RETURN(CUPTI_INVALID_PARAMETER)

/* ---- the device */

DOUBLE_EXPORT int cuptiProfilerInitialize(struct cupti_profiler_init *s)
{
	GATE("");
	SIZED(cupti_profiler_init, priv);
	p.initialised = true;
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiProfilerDeInitialize(struct cupti_profiler_init *s)
{
	GATE("");
	SIZED(cupti_profiler_init, priv);
	p.initialised = false;
	RETURN(CUPTI_OK);
}

/* unprofiled=N: the Nth field refuses. */
DOUBLE_EXPORT int cuptiProfilerDeviceSupported(struct cupti_supported *s)
{
	const int refuses = (int)double_number("unprofiled", 1, 0);
	int *fields;

	GATE("%d", s->device);
	SIZED(cupti_supported, api);
	fields = &s->architecture;
	for (int i = 0; i < 6; i++)
		fields[i] = refuses == i + 1 ? 1 : CUPTI_SUPPORTED;
	s->all = refuses ? 1 : CUPTI_SUPPORTED;
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiDeviceGetChipName(struct cupti_chip_name *s)
{
	GATE("%zu", s->device);
	SIZED(cupti_chip_name, name);
	s->name = "GH100";
	RETURN(CUPTI_OK);
}

/* ---- the host's part */

DOUBLE_EXPORT int cuptiProfilerHostInitialize(struct cupti_host_init *s)
{
	GATE("%s", s->chip);
	SIZED(cupti_host_init, host);
	s->host = &hosts[nhosts++ % 64];
	*(struct host *)s->host = (struct host){0};
	RETURN(p.initialised ? CUPTI_OK : INVALID_OPERATION);
}

DOUBLE_EXPORT int cuptiProfilerHostDeinitialize(struct cupti_host_end *s)
{
	GATE("");
	SIZED(cupti_host_end, host);
	RETURN(CUPTI_OK);
}

/* A name ends with a comma in MXBPF_DOUBLE=lacks=NAME: this chip lacks it. */
DOUBLE_EXPORT int cuptiProfilerHostConfigAddMetrics(struct cupti_host_add *s)
{
	const char *lacks = double_option("lacks");
	struct host *h;
	size_t i;
	int one;

	GATE("%zu", s->n);
	SIZED(cupti_host_add, n);
	h = s->host;
	for (i = 0; i < s->n; i++) {
		one = find(s->names[i]);
		if (one < 0 || (lacks && !strncmp(lacks, s->names[i], strcspn(lacks, ","))))
			RETURN(INVALID_METRIC);
		h->wanted |= 1u << one;
	}
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiProfilerHostGetConfigImageSize(struct cupti_host_image_size *s)
{
	GATE("");
	SIZED(cupti_host_image_size, bytes);
	s->bytes = sizeof(struct image);
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiProfilerHostGetConfigImage(struct cupti_host_image *s)
{
	struct image *image;

	GATE("");
	SIZED(cupti_host_image, image);
	if (s->bytes != sizeof(*image))
		RETURN(CUPTI_INVALID_PARAMETER);
	image = (struct image *)(void *)s->image;
	*image = (struct image){.magic = CONFIG_MAGIC, .ranges = ((struct host *)s->host)->wanted};
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiProfilerHostGetNumOfPasses(struct cupti_host_passes *s)
{
	GATE("");
	SIZED(cupti_host_passes, passes);
	s->passes = passes_of(((struct image *)(void *)s->image)->ranges);
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiProfilerHostEvaluateToGpuValues(struct cupti_host_evaluate *s)
{
	const struct image *data;
	size_t i;
	int one;

	GATE("%zu", s->range);
	SIZED(cupti_host_evaluate, values);
	data = (const struct image *)(const void *)s->data;
	if (s->range >= data->ranges)
		RETURN(CUPTI_INVALID_PARAMETER);
	for (i = 0; i < s->n; i++) {
		one = find(s->names[i]);
		if (one < 0 || !(p.wanted >> one & 1))
			RETURN(INVALID_METRIC);
		s->values[i] = metrics[one].fixed + metrics[one].per_ns * (double)data->ns[s->range];
	}
	RETURN(CUPTI_OK);
}

/* ---- ranges */

DOUBLE_EXPORT int cuptiRangeProfilerEnable(struct cupti_range_enable *s)
{
	GATE("");
	SIZED(cupti_range_enable, profiler);
	if (!p.initialised || p.enabled || !s->context)
		RETURN(INVALID_OPERATION);
	p.enabled = true;
	s->profiler = &p;
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiRangeProfilerDisable(struct cupti_range_one *s)
{
	GATE("");
	SIZED(cupti_range_one, profiler);
	if (!p.enabled)
		RETURN(INVALID_OPERATION);
	p.enabled = p.configured = p.running = false;
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiRangeProfilerGetCounterDataSize(struct cupti_range_data_size *s)
{
	GATE("%zu", s->n);
	SIZED(cupti_range_data_size, bytes);
	s->bytes = sizeof(struct image);
	RETURN(p.enabled ? CUPTI_OK : INVALID_OPERATION);
}

DOUBLE_EXPORT int cuptiRangeProfilerCounterDataImageInitialize(struct cupti_range_data_init *s)
{
	GATE("");
	SIZED(cupti_range_data_init, data);
	memset(s->data, 0, sizeof(struct image));
	RETURN(p.enabled ? CUPTI_OK : INVALID_OPERATION);
}

static struct image *data_image;

DOUBLE_EXPORT int cuptiRangeProfilerSetConfig(struct cupti_range_config *s)
{
	const struct image *config;

	GATE("");
	SIZED(cupti_range_config, target_level);
	config = (const struct image *)(const void *)s->config;
	if (!p.enabled || config->magic != CONFIG_MAGIC || s->range != CUPTI_RANGE_AUTO ||
	    s->replay != CUPTI_REPLAY_KERNEL || s->ranges_max != 1 || s->levels != 1 || s->level_min != 1)
		RETURN(CUPTI_INVALID_PARAMETER);
	p.wanted = config->ranges;
	p.configured = true;
	data_image = (struct image *)(void *)s->data;
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiRangeProfilerStart(struct cupti_range_one *s)
{
	GATE("");
	SIZED(cupti_range_one, profiler);
	if (!p.configured || p.running)
		RETURN(INVALID_OPERATION);
	p.running = true;
	p.ranges = p.dropped = 0;
	RETURN(CUPTI_OK);
}

/* slow-stop=MS: as if CUPTI had much memory to save and to restore. */
DOUBLE_EXPORT int cuptiRangeProfilerStop(struct cupti_range_stop *s)
{
	GATE("");
	SIZED(cupti_range_stop, all_passes);
	if (!p.running)
		RETURN(INVALID_OPERATION);
	p.running = false;
	s->all_passes = 1;
	usleep((useconds_t)(1000 * double_number("slow-stop", 100, 0)));
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiRangeProfilerDecodeData(struct cupti_range_decode *s)
{
	GATE("");
	SIZED(cupti_range_decode, dropped);
	if (!p.configured || p.running)
		RETURN(INVALID_OPERATION);
	data_image->ranges = p.ranges ? 1 : 0;
	data_image->ns[0] = p.ns[0];
	s->dropped = p.ranges > 1 ? p.ranges - 1 : 0;
	account->ranges += p.ranges;
	account->ranges_mixed += p.ranges > 1;
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiRangeProfilerGetCounterDataInfo(struct cupti_range_data_info *s)
{
	GATE("");
	SIZED(cupti_range_data_info, ranges);
	s->ranges = ((const struct image *)(const void *)s->data)->ranges;
	RETURN(CUPTI_OK);
}
#endif
