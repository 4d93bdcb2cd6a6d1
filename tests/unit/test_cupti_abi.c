/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that the offsets by which the agent reads CUPTI's records are those of every release in tests/gpu/abi.txt,
 * which tests/gpu/abi.py makes of NVIDIA's headers.
 */

#include <ctype.h>

#include "agent/cupti/cupti_abi.h"
#include "agent/cupti/cupti_metrics_abi.h"
#include "read_file.h"

#define TABLE  "tests/gpu/abi.txt"
#define HEADER "user/agent/cupti/cupti_abi.h"
#define CALLS  "user/agent/cupti/cupti_metrics_abi.h"

/* `since`: API version of the first release that has the field; 0: all have it. */
static struct known {
	const char *row, *field, *constant;
	long value;
	unsigned since;
	unsigned checked;
} known[] = {
#define IS(row, field, constant, since)                                                                                \
	{                                                                                                              \
		row, field, #constant, constant, since, 0                                                              \
	}
#define AT(row, field, type, member)                                                                                   \
	{                                                                                                              \
		row, field, #member, offsetof(struct type, member), 0, 0                                               \
	}
	IS("CUpti_ActivityKernel", "registersPerThread", CUPTI_KERNEL_REGISTERS, 0),
	IS("CUpti_ActivityKernel", "start", CUPTI_KERNEL_START, 0),
	IS("CUpti_ActivityKernel", "end", CUPTI_KERNEL_END, 0),
	IS("CUpti_ActivityKernel", "deviceId", CUPTI_KERNEL_DEVICE, 0),
	IS("CUpti_ActivityKernel", "contextId", CUPTI_KERNEL_CONTEXT, 0),
	IS("CUpti_ActivityKernel", "streamId", CUPTI_KERNEL_STREAM, 0),
	IS("CUpti_ActivityKernel", "gridX", CUPTI_KERNEL_GRID, 0),
	IS("CUpti_ActivityKernel", "gridY", CUPTI_KERNEL_GRID + 4, 0),
	IS("CUpti_ActivityKernel", "gridZ", CUPTI_KERNEL_GRID + 8, 0),
	IS("CUpti_ActivityKernel", "blockX", CUPTI_KERNEL_BLOCK, 0),
	IS("CUpti_ActivityKernel", "blockY", CUPTI_KERNEL_BLOCK + 4, 0),
	IS("CUpti_ActivityKernel", "blockZ", CUPTI_KERNEL_BLOCK + 8, 0),
	IS("CUpti_ActivityKernel", "staticSharedMemory", CUPTI_KERNEL_STATIC_SHARED, 0),
	IS("CUpti_ActivityKernel", "dynamicSharedMemory", CUPTI_KERNEL_DYNAMIC_SHARED, 0),
	IS("CUpti_ActivityKernel", "correlationId", CUPTI_KERNEL_CORRELATION, 0),
	IS("CUpti_ActivityKernel", "name", CUPTI_KERNEL_NAME, 0),
	IS("CUpti_ActivityKernel", "graphNodeId", CUPTI_KERNEL_GRAPH_NODE, 0),
	IS("CUpti_ActivityKernel", "graphId", CUPTI_KERNEL_GRAPH, 0),
	IS("CUpti_ActivityMemcpy", "copyKind", CUPTI_MEMCPY_COPY, 0),
	IS("CUpti_ActivityMemcpy", "srcKind", CUPTI_MEMCPY_FROM, 0),
	IS("CUpti_ActivityMemcpy", "dstKind", CUPTI_MEMCPY_TO, 0),
	IS("CUpti_ActivityMemcpy", "bytes", CUPTI_MEMCPY_BYTES, 0),
	IS("CUpti_ActivityMemcpy", "start", CUPTI_MEMCPY_START, 0),
	IS("CUpti_ActivityMemcpy", "end", CUPTI_MEMCPY_END, 0),
	IS("CUpti_ActivityMemcpy", "deviceId", CUPTI_MEMCPY_DEVICE, 0),
	IS("CUpti_ActivityMemcpy", "contextId", CUPTI_MEMCPY_CONTEXT, 0),
	IS("CUpti_ActivityMemcpy", "streamId", CUPTI_MEMCPY_STREAM, 0),
	IS("CUpti_ActivityMemcpy", "correlationId", CUPTI_MEMCPY_CORRELATION, 0),
	IS("CUpti_ActivityMemcpy", "graphNodeId", CUPTI_MEMCPY_GRAPH_NODE, 0),
	IS("CUpti_ActivityMemcpy", "graphId", CUPTI_MEMCPY_GRAPH, 14),
	IS("CUpti_ActivityMemcpyPtoP", "copyKind", CUPTI_MEMCPY_COPY, 0),
	IS("CUpti_ActivityMemcpyPtoP", "srcKind", CUPTI_MEMCPY_FROM, 0),
	IS("CUpti_ActivityMemcpyPtoP", "dstKind", CUPTI_MEMCPY_TO, 0),
	IS("CUpti_ActivityMemcpyPtoP", "bytes", CUPTI_MEMCPY_BYTES, 0),
	IS("CUpti_ActivityMemcpyPtoP", "start", CUPTI_MEMCPY_START, 0),
	IS("CUpti_ActivityMemcpyPtoP", "end", CUPTI_MEMCPY_END, 0),
	IS("CUpti_ActivityMemcpyPtoP", "deviceId", CUPTI_MEMCPY_DEVICE, 0),
	IS("CUpti_ActivityMemcpyPtoP", "contextId", CUPTI_MEMCPY_CONTEXT, 0),
	IS("CUpti_ActivityMemcpyPtoP", "streamId", CUPTI_MEMCPY_STREAM, 0),
	IS("CUpti_ActivityMemcpyPtoP", "correlationId", CUPTI_PTOP_CORRELATION, 0),
	IS("CUpti_ActivityMemcpyPtoP", "graphNodeId", CUPTI_PTOP_GRAPH_NODE, 0),
	IS("CUpti_ActivityMemcpyPtoP", "graphId", CUPTI_PTOP_GRAPH, 14),
	IS("CUpti_ActivityMemset", "bytes", CUPTI_MEMSET_BYTES, 0),
	IS("CUpti_ActivityMemset", "start", CUPTI_MEMSET_START, 0),
	IS("CUpti_ActivityMemset", "end", CUPTI_MEMSET_END, 0),
	IS("CUpti_ActivityMemset", "deviceId", CUPTI_MEMSET_DEVICE, 0),
	IS("CUpti_ActivityMemset", "contextId", CUPTI_MEMSET_CONTEXT, 0),
	IS("CUpti_ActivityMemset", "streamId", CUPTI_MEMSET_STREAM, 0),
	IS("CUpti_ActivityMemset", "correlationId", CUPTI_MEMSET_CORRELATION, 0),
	IS("CUpti_ActivityMemset", "memoryKind", CUPTI_MEMSET_TO, 0),
	IS("CUpti_ActivityMemset", "graphNodeId", CUPTI_MEMSET_GRAPH_NODE, 0),
	IS("CUpti_ActivityMemset", "graphId", CUPTI_MEMSET_GRAPH, 14),
	IS("CUpti_ActivityAPI", "cbid", CUPTI_API_CBID, 0),
	IS("CUpti_ActivityAPI", "start", CUPTI_API_START, 0),
	IS("CUpti_ActivityAPI", "end", CUPTI_API_END, 0),
	IS("CUpti_ActivityAPI", "processId", CUPTI_API_PID, 0),
	IS("CUpti_ActivityAPI", "threadId", CUPTI_API_TID, 0),
	IS("CUpti_ActivityAPI", "correlationId", CUPTI_API_CORRELATION, 0),
	IS("CUpti_ActivityAPI", "returnValue", CUPTI_API_RESULT, 0),
	IS("CUpti_ActivitySynchronization", "type", CUPTI_SYNC_TYPE, 0),
	IS("CUpti_ActivitySynchronization", "start", CUPTI_SYNC_START, 0),
	IS("CUpti_ActivitySynchronization", "end", CUPTI_SYNC_END, 0),
	IS("CUpti_ActivitySynchronization", "correlationId", CUPTI_SYNC_CORRELATION, 0),
	IS("CUpti_ActivitySynchronization", "contextId", CUPTI_SYNC_CONTEXT, 0),
	IS("CUpti_ActivitySynchronization", "streamId", CUPTI_SYNC_STREAM, 0),
	IS("CUpti_ActivityOverhead", "overheadKind", CUPTI_OVERHEAD_TYPE, 0),
	IS("CUpti_ActivityOverhead", "start", CUPTI_OVERHEAD_START, 0),
	IS("CUpti_ActivityOverhead", "end", CUPTI_OVERHEAD_END, 0),
	IS("CUpti_SubscriberParams", "structSize", offsetof(struct cupti_subscriber_params, struct_size), 0),
	IS("CUpti_SubscriberParams", "subscriberName", offsetof(struct cupti_subscriber_params, name), 0),
	IS("CUpti_SubscriberParams", "oldSubscriberName", offsetof(struct cupti_subscriber_params, old_name), 0),
	IS("CUpti_SubscriberParams", "oldSubscriberSize", offsetof(struct cupti_subscriber_params, old_name_size), 0),
	IS("CUpti_SubscriberParams", "allowMultipleSubscribers",
	   offsetof(struct cupti_subscriber_params, allow_multiple), 130200),
	AT("CUpti_CallbackData", "callbackSite", cupti_call, site),
	AT("CUpti_CallbackData", "functionParams", cupti_call, params),
	AT("CUpti_CallbackData", "functionReturnValue", cupti_call, result),
	AT("CUpti_CallbackData", "symbolName", cupti_call, symbol),
	AT("CUpti_CallbackData", "context", cupti_call, context),
	AT("CUpti_CallbackData", "contextUid", cupti_call, context_uid),
	AT("CUpti_CallbackData", "correlationData", cupti_call, data),
	AT("CUpti_CallbackData", "correlationId", cupti_call, correlation),
	AT("CUpti_Device_GetChipName_Params", "deviceIndex", cupti_chip_name, device),
	AT("CUpti_Device_GetChipName_Params", "pChipName", cupti_chip_name, name),
	AT("CUpti_Profiler_Initialize_Params", "pPriv", cupti_profiler_init, priv),
	AT("CUpti_Profiler_DeviceSupported_Params", "cuDevice", cupti_supported, device),
	AT("CUpti_Profiler_DeviceSupported_Params", "isSupported", cupti_supported, all),
	AT("CUpti_Profiler_DeviceSupported_Params", "architecture", cupti_supported, architecture),
	AT("CUpti_Profiler_DeviceSupported_Params", "sli", cupti_supported, sli),
	AT("CUpti_Profiler_DeviceSupported_Params", "vGpu", cupti_supported, virtual_gpu),
	AT("CUpti_Profiler_DeviceSupported_Params", "confidentialCompute", cupti_supported, confidential),
	AT("CUpti_Profiler_DeviceSupported_Params", "cmp", cupti_supported, mining),
	AT("CUpti_Profiler_DeviceSupported_Params", "wsl", cupti_supported, wsl),
	AT("CUpti_Profiler_DeviceSupported_Params", "api", cupti_supported, api),
	AT("CUpti_Profiler_Host_Initialize_Params", "profilerType", cupti_host_init, type),
	AT("CUpti_Profiler_Host_Initialize_Params", "pChipName", cupti_host_init, chip),
	AT("CUpti_Profiler_Host_Initialize_Params", "pHostObject", cupti_host_init, host),
	AT("CUpti_Profiler_Host_Deinitialize_Params", "pHostObject", cupti_host_end, host),
	AT("CUpti_Profiler_Host_ConfigAddMetrics_Params", "pHostObject", cupti_host_add, host),
	AT("CUpti_Profiler_Host_ConfigAddMetrics_Params", "ppMetricNames", cupti_host_add, names),
	AT("CUpti_Profiler_Host_ConfigAddMetrics_Params", "numMetrics", cupti_host_add, n),
	AT("CUpti_Profiler_Host_GetConfigImageSize_Params", "pHostObject", cupti_host_image_size, host),
	AT("CUpti_Profiler_Host_GetConfigImageSize_Params", "configImageSize", cupti_host_image_size, bytes),
	AT("CUpti_Profiler_Host_GetConfigImage_Params", "pHostObject", cupti_host_image, host),
	AT("CUpti_Profiler_Host_GetConfigImage_Params", "configImageSize", cupti_host_image, bytes),
	AT("CUpti_Profiler_Host_GetConfigImage_Params", "pConfigImage", cupti_host_image, image),
	AT("CUpti_Profiler_Host_GetNumOfPasses_Params", "configImageSize", cupti_host_passes, bytes),
	AT("CUpti_Profiler_Host_GetNumOfPasses_Params", "pConfigImage", cupti_host_passes, image),
	AT("CUpti_Profiler_Host_GetNumOfPasses_Params", "numOfPasses", cupti_host_passes, passes),
	AT("CUpti_Profiler_Host_EvaluateToGpuValues_Params", "pHostObject", cupti_host_evaluate, host),
	AT("CUpti_Profiler_Host_EvaluateToGpuValues_Params", "pCounterDataImage", cupti_host_evaluate, data),
	AT("CUpti_Profiler_Host_EvaluateToGpuValues_Params", "counterDataImageSize", cupti_host_evaluate, bytes),
	AT("CUpti_Profiler_Host_EvaluateToGpuValues_Params", "rangeIndex", cupti_host_evaluate, range),
	AT("CUpti_Profiler_Host_EvaluateToGpuValues_Params", "ppMetricNames", cupti_host_evaluate, names),
	AT("CUpti_Profiler_Host_EvaluateToGpuValues_Params", "numMetrics", cupti_host_evaluate, n),
	AT("CUpti_Profiler_Host_EvaluateToGpuValues_Params", "pMetricValues", cupti_host_evaluate, values),
	AT("CUpti_RangeProfiler_Enable_Params", "ctx", cupti_range_enable, context),
	AT("CUpti_RangeProfiler_Enable_Params", "pRangeProfilerObject", cupti_range_enable, profiler),
	AT("CUpti_RangeProfiler_Disable_Params", "pRangeProfilerObject", cupti_range_one, profiler),
	AT("CUpti_RangeProfiler_Start_Params", "pRangeProfilerObject", cupti_range_one, profiler),
	AT("CUpti_RangeProfiler_SetConfig_Params", "pRangeProfilerObject", cupti_range_config, profiler),
	AT("CUpti_RangeProfiler_SetConfig_Params", "configSize", cupti_range_config, config_bytes),
	AT("CUpti_RangeProfiler_SetConfig_Params", "pConfig", cupti_range_config, config),
	AT("CUpti_RangeProfiler_SetConfig_Params", "counterDataImageSize", cupti_range_config, data_bytes),
	AT("CUpti_RangeProfiler_SetConfig_Params", "pCounterDataImage", cupti_range_config, data),
	AT("CUpti_RangeProfiler_SetConfig_Params", "range", cupti_range_config, range),
	AT("CUpti_RangeProfiler_SetConfig_Params", "replayMode", cupti_range_config, replay),
	AT("CUpti_RangeProfiler_SetConfig_Params", "maxRangesPerPass", cupti_range_config, ranges_max),
	AT("CUpti_RangeProfiler_SetConfig_Params", "numNestingLevels", cupti_range_config, levels),
	AT("CUpti_RangeProfiler_SetConfig_Params", "minNestingLevel", cupti_range_config, level_min),
	AT("CUpti_RangeProfiler_SetConfig_Params", "passIndex", cupti_range_config, pass),
	AT("CUpti_RangeProfiler_SetConfig_Params", "targetNestingLevel", cupti_range_config, target_level),
	AT("CUpti_RangeProfiler_Stop_Params", "pRangeProfilerObject", cupti_range_stop, profiler),
	AT("CUpti_RangeProfiler_Stop_Params", "passIndex", cupti_range_stop, pass),
	AT("CUpti_RangeProfiler_Stop_Params", "targetNestingLevel", cupti_range_stop, level),
	AT("CUpti_RangeProfiler_Stop_Params", "isAllPassSubmitted", cupti_range_stop, all_passes),
	AT("CUpti_RangeProfiler_DecodeData_Params", "pRangeProfilerObject", cupti_range_decode, profiler),
	AT("CUpti_RangeProfiler_DecodeData_Params", "numOfRangeDropped", cupti_range_decode, dropped),
	AT("CUpti_RangeProfiler_GetCounterDataSize_Params", "pRangeProfilerObject", cupti_range_data_size, profiler),
	AT("CUpti_RangeProfiler_GetCounterDataSize_Params", "pMetricNames", cupti_range_data_size, names),
	AT("CUpti_RangeProfiler_GetCounterDataSize_Params", "numMetrics", cupti_range_data_size, n),
	AT("CUpti_RangeProfiler_GetCounterDataSize_Params", "maxNumOfRanges", cupti_range_data_size, ranges_max),
	AT("CUpti_RangeProfiler_GetCounterDataSize_Params", "maxNumRangeTreeNodes", cupti_range_data_size, nodes_max),
	AT("CUpti_RangeProfiler_GetCounterDataSize_Params", "counterDataSize", cupti_range_data_size, bytes),
	AT("CUpti_RangeProfiler_CounterDataImage_Initialize_Params", "pRangeProfilerObject", cupti_range_data_init,
	   profiler),
	AT("CUpti_RangeProfiler_CounterDataImage_Initialize_Params", "counterDataSize", cupti_range_data_init, bytes),
	AT("CUpti_RangeProfiler_CounterDataImage_Initialize_Params", "pCounterData", cupti_range_data_init, data),
	AT("CUpti_RangeProfiler_GetCounterDataInfo_Params", "pCounterDataImage", cupti_range_data_info, data),
	AT("CUpti_RangeProfiler_GetCounterDataInfo_Params", "counterDataImageSize", cupti_range_data_info, bytes),
	AT("CUpti_RangeProfiler_GetCounterDataInfo_Params", "numTotalRanges", cupti_range_data_info, ranges),
	IS("CUPTI_AutoRange", NULL, CUPTI_RANGE_AUTO, 0),
	IS("CUPTI_KernelReplay", NULL, CUPTI_REPLAY_KERNEL, 0),
	IS("CUPTI_PROFILER_TYPE_RANGE_PROFILER", NULL, CUPTI_PROFILER_RANGES, 0),
	IS("CUPTI_PROFILER_CONFIGURATION_SUPPORTED", NULL, CUPTI_SUPPORTED, 0),
	IS("CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel", NULL, CUPTI_CU_LAUNCH_KERNEL, 0),
	IS("CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz", NULL, CUPTI_CU_LAUNCH_KERNEL_PTSZ, 0),
	IS("CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx", NULL, CUPTI_CU_LAUNCH_KERNEL_EX, 0),
	IS("CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz", NULL, CUPTI_CU_LAUNCH_KERNEL_EX_PTSZ, 0),
	IS("CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel", NULL, CUPTI_CU_LAUNCH_COOPERATIVE, 0),
	IS("CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz", NULL, CUPTI_CU_LAUNCH_COOPERATIVE_PTSZ, 0),
	IS("CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch", NULL, CUPTI_CU_GRAPH_LAUNCH, 0),
	IS("CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz", NULL, CUPTI_CU_GRAPH_LAUNCH_PTSZ, 0),
	IS("CUPTI_SUCCESS", NULL, CUPTI_OK, 0),
	IS("CUPTI_ERROR_MAX_LIMIT_REACHED", NULL, CUPTI_MAX_LIMIT_REACHED, 0),
	IS("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", NULL, CUPTI_MULTIPLE_SUBSCRIBERS, 0),
	IS("CUPTI_ACTIVITY_KIND_MEMCPY", NULL, CUPTI_KIND_MEMCPY, 0),
	IS("CUPTI_ACTIVITY_KIND_MEMSET", NULL, CUPTI_KIND_MEMSET, 0),
	IS("CUPTI_ACTIVITY_KIND_DRIVER", NULL, CUPTI_KIND_DRIVER, 0),
	IS("CUPTI_ACTIVITY_KIND_RUNTIME", NULL, CUPTI_KIND_RUNTIME, 0),
	IS("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", NULL, CUPTI_KIND_KERNEL, 0),
	IS("CUPTI_ACTIVITY_KIND_OVERHEAD", NULL, CUPTI_KIND_OVERHEAD, 0),
	IS("CUPTI_ACTIVITY_KIND_MEMCPY2", NULL, CUPTI_KIND_MEMCPY2, 0),
	IS("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", NULL, CUPTI_KIND_SYNC, 0),
	IS("CUPTI_CB_DOMAIN_DRIVER_API", NULL, CUPTI_DOMAIN_DRIVER, 0),
	IS("CUPTI_CB_DOMAIN_RUNTIME_API", NULL, CUPTI_DOMAIN_RUNTIME, 0),
	IS("CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM", NULL, CUPTI_THREAD_ID_SYSTEM, 0),
	IS("CUPTI_ACTIVITY_FLAG_FLUSH_FORCED", NULL, CUPTI_FLUSH_FORCED, 0),
};
#define ROWS (sizeof(known) / sizeof(known[0]))

/* Returns the number behind ` FIELD=` of a row, or -1 if the row does not have it. */
static long offset_in(const char *row, const char *field)
{
	char word[64];
	const char *at;

	snprintf(word, sizeof(word), " %s=", field);
	at = strstr(row, word);
	return at ? strtol(at + strlen(word), NULL, 10) : -1;
}

static void check_row(const char *row, const char *release, unsigned version)
{
	size_t name = strcspn(row, " "), i;
	long found;

	if (!strncmp(row, "CUpti_", 6))
		while (isdigit((unsigned char)row[name - 1]))
			name--;
	for (i = 0; i < ROWS; i++) {
		if (strlen(known[i].row) != name || strncmp(known[i].row, row, name))
			continue;
		known[i].checked++;
		if (known[i].field)
			found = offset_in(row, known[i].field);
		else
			found = strtol(row + name, NULL, 10);
		if (found == (version < known[i].since ? -1 : known[i].value))
			continue;
		printf("# CUDA %s: %.*s.%s is %ld, not %ld\n", release, (int)name, row,
		       known[i].field ? known[i].field : "", found, known[i].value);
		CHECK(0);
	}
}

static unsigned check_table(void)
{
	FREED(file_closed) FILE *f = fopen(TABLE, "r");
	FREED(memory_freed) char *line = NULL;
	char release[32] = "";
	unsigned version = 0, releases = 0;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		if (!strncmp(line, "release ", 8)) {
			CHECK(sscanf(line, "release %31s %u", release, &version) == 2);
			CHECK(version >= CUPTI_VERSION_MIN);
			releases++;
		} else if (*line == 'C') {
			check_row(line, release, version);
		}
	}
	return releases;
}

static int is_known(const char *constant, size_t bytes)
{
	size_t i;

	for (i = 0; i < ROWS; i++)
		if (!strncmp(known[i].constant, constant, bytes) && !isalnum((unsigned char)known[i].constant[bytes]))
			return 1;
	return 0;
}

/* Checks that each constant of the header whose name begins like this is compared with the table. */
static void check_header(const char *header, const char *prefix)
{
	FREED(memory_freed) char *text = read_file(header);
	char *at = text;
	unsigned n = 0;
	size_t bytes;

	while ((at = strstr(at, prefix)) != NULL) {
		bytes = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
		if (!strncmp(at + bytes, " = ", 3)) {
			n++;
			if (!is_known(at, bytes)) {
				printf("# %.*s is not compared with %s\n", (int)bytes, at, TABLE);
				CHECK(0);
			}
		}
		at += bytes;
	}
	CHECK(n >= 3);
}

int main(void)
{
	size_t i;

	TEST("each offset and constant that the agent uses is that of every CUDA release from 11.0 to 13.5")
	{
		CHECK(check_table() >= 24);
		for (i = 0; i < ROWS; i++)
			CHECK(known[i].checked > 0);
		CHECK(sizeof(struct cupti_subscriber_params) == 40);
	}
	TEST("no offset that the agent uses is missing from that comparison")
	{
		static const char *const prefixes[] = {"CUPTI_KERNEL_",	 "CUPTI_MEMCPY_", "CUPTI_PTOP_",
						       "CUPTI_MEMSET_",	 "CUPTI_API_",	  "CUPTI_SYNC_",
						       "CUPTI_OVERHEAD_"};

		for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
			check_header(HEADER, prefixes[i]);
		check_header(CALLS, "CUPTI_CU_");
	}
	UNIT_MAIN_END;
}
