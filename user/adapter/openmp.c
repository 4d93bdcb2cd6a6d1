// SPDX-License-Identifier: Apache-2.0
/*
 * Probes for OpenMP parallel regions, shared by all runtimes: GCC's library, which MXNet and PyTorch include or use,
 * and LLVM's library, which is also Intel's and can replace GCC's.
 */
#include "adapter/adapter.h"

static const struct adp_team teams[] = {
	{.lib_globs = {"libgomp*.so*"}, .opens = "GOMP_parallel", .ends = "GOMP_parallel_end"},
	{.lib_globs = {"libomp.so*", "libomp-*.so*", "libiomp5*.so*"},
	 .opens = "__kmpc_fork_call",
	 .ends = "GOMP_parallel_end",
	 .forks = "__kmp_fork_call",
	 .invokes = "__kmp_invoke_microtask"},
	{.opens = NULL},
};

const struct adp_probe adapter_openmp = {
	.name = "openmp.team",
	.group = PROBE_OMP,
	.optional = true,
	.any_build = true,
	.teams = teams,
};
