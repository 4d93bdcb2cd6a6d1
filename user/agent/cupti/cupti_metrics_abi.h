/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structures of CUPTI's range profiler that the agent uses, as in CUDA 13.0. The first member of each says how many
 * bytes of it the caller knows. tests/gpu/abi.txt has the offsets of all members, and test_cupti_abi compares them.
 */
#ifndef AGENT_LIB_CUPTI_METRICS_ABI_H
#define AGENT_LIB_CUPTI_METRICS_ABI_H

#include <stddef.h>
#include <stdint.h>

/* The size that CUPTI expects: without padding behind the last member. */
#define CUPTI_SIZE(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))

enum { CUPTI_RANGE_AUTO = 1 };	    /* CUpti_ProfilerRange */
enum { CUPTI_REPLAY_KERNEL = 2 };   /* CUpti_ProfilerReplayMode */
enum { CUPTI_PROFILER_RANGES = 0 }; /* CUpti_ProfilerType, CUpti_Profiler_API */
enum { CUPTI_SUPPORTED = 3 };	    /* CUpti_Profiler_Support_Level */

/* CUpti_CallbackData of the domains DRIVER and RUNTIME. */
enum { CUPTI_SITE_ENTER = 0, CUPTI_SITE_EXIT = 1 };
struct cupti_call {
	uint32_t site, pad;
	const char *function;
	const void *params;
	const int *result;
	const char *symbol; /* of a launch: the name of the kernel */
	void *context;
	uint32_t context_uid, pad2;
	uint64_t *data;
	uint32_t correlation;
};

/* CUpti_driver_api_trace_cbid of calls that launch. */
enum {
	CUPTI_CU_LAUNCH_KERNEL = 307,
	CUPTI_CU_LAUNCH_KERNEL_PTSZ = 442,
	CUPTI_CU_LAUNCH_COOPERATIVE = 477,
	CUPTI_CU_LAUNCH_COOPERATIVE_PTSZ = 478,
	CUPTI_CU_GRAPH_LAUNCH = 514,
	CUPTI_CU_GRAPH_LAUNCH_PTSZ = 515,
	CUPTI_CU_LAUNCH_KERNEL_EX = 652,
	CUPTI_CU_LAUNCH_KERNEL_EX_PTSZ = 653,
};

/* cuLaunchKernel_params and cuLaunchKernelEx_params. */
struct cuda_launch {
	void *function;
	uint32_t grid[3], block[3], shared, pad;
	void *stream;
};
struct cuda_launch_attribute { /* CUlaunchAttribute */
	uint32_t id, pad;
	uint32_t value[16];
};
struct cuda_launch_config { /* CUlaunchConfig */
	uint32_t grid[3], block[3], shared, pad;
	void *stream;
	const struct cuda_launch_attribute *attributes;
	uint32_t n;
};
struct cuda_launch_ex {
	const struct cuda_launch_config *config;
	void *function;
};
enum { CUDA_ATTRIBUTE_COOPERATIVE = 2 };

/* ---- cupti_target.h, cupti_profiler_target.h */

struct cupti_chip_name { /* CUpti_Device_GetChipName_Params */
	size_t size;
	void *priv;
	size_t device;
	const char *name;
};
struct cupti_profiler_init { /* CUpti_Profiler_Initialize_Params, CUpti_Profiler_DeInitialize_Params */
	size_t size;
	void *priv;
};
struct cupti_supported { /* CUpti_Profiler_DeviceSupported_Params */
	size_t size;
	void *priv;
	int device, all, architecture, sli, virtual_gpu, confidential, mining, wsl, api;
};

/* ---- cupti_profiler_host.h */

struct cupti_host_init { /* CUpti_Profiler_Host_Initialize_Params */
	size_t size;
	void *priv;
	int type, pad;
	const char *chip;
	const uint8_t *availability;
	void *host;
};
struct cupti_host_end { /* CUpti_Profiler_Host_Deinitialize_Params */
	size_t size;
	void *priv, *host;
};
struct cupti_host_add { /* CUpti_Profiler_Host_ConfigAddMetrics_Params */
	size_t size;
	void *priv, *host;
	const char *const *names;
	size_t n;
};
struct cupti_host_image_size { /* CUpti_Profiler_Host_GetConfigImageSize_Params */
	size_t size;
	void *priv, *host;
	size_t bytes;
};
struct cupti_host_image { /* CUpti_Profiler_Host_GetConfigImage_Params */
	size_t size;
	void *priv, *host;
	size_t bytes;
	uint8_t *image;
};
struct cupti_host_passes { /* CUpti_Profiler_Host_GetNumOfPasses_Params */
	size_t size;
	void *priv;
	size_t bytes;
	uint8_t *image;
	size_t passes;
};
struct cupti_host_evaluate { /* CUpti_Profiler_Host_EvaluateToGpuValues_Params */
	size_t size;
	void *priv, *host;
	const uint8_t *data;
	size_t bytes, range;
	const char *const *names;
	size_t n;
	double *values;
};

/* ---- cupti_range_profiler.h */

struct cupti_range_enable { /* CUpti_RangeProfiler_Enable_Params */
	size_t size;
	void *priv, *context, *profiler;
};
struct cupti_range_one { /* CUpti_RangeProfiler_Disable_Params and _Start_Params */
	size_t size;
	void *priv, *profiler;
};
struct cupti_range_config { /* CUpti_RangeProfiler_SetConfig_Params */
	size_t size;
	void *priv, *profiler;
	size_t config_bytes;
	const uint8_t *config;
	size_t data_bytes;
	uint8_t *data;
	int range, replay;
	size_t ranges_max;
	uint16_t levels, level_min;
	size_t pass;
	uint16_t target_level;
};
struct cupti_range_stop { /* CUpti_RangeProfiler_Stop_Params */
	size_t size;
	void *priv, *profiler;
	size_t pass, level;
	uint8_t all_passes;
};
struct cupti_range_decode { /* CUpti_RangeProfiler_DecodeData_Params */
	size_t size;
	void *priv, *profiler;
	size_t dropped;
};
struct cupti_range_data_size { /* CUpti_RangeProfiler_GetCounterDataSize_Params */
	size_t size;
	void *priv, *profiler;
	const char *const *names;
	size_t n, ranges_max;
	uint32_t nodes_max, pad;
	size_t bytes;
};
struct cupti_range_data_init { /* CUpti_RangeProfiler_CounterDataImage_Initialize_Params */
	size_t size;
	void *priv, *profiler;
	size_t bytes;
	uint8_t *data;
};
struct cupti_range_data_info { /* CUpti_RangeProfiler_GetCounterDataInfo_Params */
	size_t size;
	void *priv;
	const uint8_t *data;
	size_t bytes, ranges;
};

#endif
