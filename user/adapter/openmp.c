// SPDX-License-Identifier: Apache-2.0
/* What runtimes share: the parallel regions of GCC's OpenMP library, which MXNet and PyTorch bring or use. */
#include "adapter/adapter.h"

const struct adp_probe adapter_openmp = {
	.name = "openmp.team",
	.group = PROBE_TEAM,
	.optional = true,
	.any_build = true,
	.lib_glob = "libgomp*.so*",
	.team = {.opens = "GOMP_parallel", .ends = "GOMP_parallel_end"},
};
