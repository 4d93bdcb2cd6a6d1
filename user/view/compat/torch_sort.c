// SPDX-License-Identifier: Apache-2.0
/* Names of keys in sort_by of torch.profiler, for --sort. */
#include <stddef.h>

#include "view/view.h"

/* No row has memory of a device, so all of these keys compare equal where no row has time on one either. */
#define SUMS_OF(device)                                                                                                \
	{device "_time", VIEW_SORT_AVG_DEVICE}, {device "_time_total", VIEW_SORT_DEVICE},                              \
		{"self_" device "_time_total", VIEW_SORT_SELF_DEVICE}, {device "_memory_usage", VIEW_SORT_DEVICE},     \
	{                                                                                                              \
		"self_" device "_memory_usage", VIEW_SORT_DEVICE                                                       \
	}

const struct view_sort_alias view_sort_aliases[] = {
	{"cpu_time_total", VIEW_SORT_TOTAL},
	{"self_cpu_time_total", VIEW_SORT_SELF},
	{"cpu_time", VIEW_SORT_AVG},
	{"cpu_memory_usage", VIEW_SORT_ALLOC},
	{"self_cpu_memory_usage", VIEW_SORT_SELF_ALLOC},
	SUMS_OF("cuda"),
	SUMS_OF("xpu"),
	SUMS_OF("privateuse1"),
	SUMS_OF("device"),
	{NULL, VIEW_SORT_NKEYS},
};
