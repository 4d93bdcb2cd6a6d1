// SPDX-License-Identifier: Apache-2.0
/*
 * Calls of CUDA, shared by all runtimes: those of each runtime library (libcudart) that a process has mapped, and the
 * launches of the driver (libcuda), if Triton is loaded, whose compiled code calls it directly. If no libcudart is
 * mapped, because it is linked statically, all calls of the driver are probed. A call of the runtime makes calls of the
 * driver; only the outermost call has a span.
 *
 * Functions of libcudart and libcuda are C. They neither throw nor call functions of the program on the calling thread:
 * host functions of a stream (cudaLaunchHostFunc) run on a thread of the driver. Their ends have no instruction that
 * the kernel emulates, and those of libcuda jump through a table, so there are no cuts, and return probes end the
 * spans.
 */
#include "adapter/adapter.h"

/*
 * A function, and its variants for streams of their own per thread (_ptsz, _ptds) and for later interfaces (_v2). All
 * have the name of the function.
 */
// clang-format off
#define PLAIN(f)  {#f, #f}
#define PTSZ(f)	  {#f, #f}, {#f "_ptsz", #f}
#define PTDS(f)	  {#f, #f}, {#f "_ptds", #f}
#define V2(f)	  {#f "_v2", #f}
#define V2PTSZ(f) {#f "_v2", #f}, {#f "_v2_ptsz", #f}
#define V2PTDS(f) {#f "_v2", #f}, {#f "_v2_ptds", #f}
// clang-format on

#define RUNTIME_LAUNCHES                                                                                               \
	PTSZ(cudaLaunchKernel), PTSZ(cudaLaunchKernelExC), PTSZ(cudaLaunchCooperativeKernel), PTSZ(cudaGraphLaunch),   \
		PLAIN(cudaLaunchCooperativeKernelMultiDevice)

static const struct adp_member runtime_launches[] = {RUNTIME_LAUNCHES, {NULL, NULL}};

static const struct adp_member runtime_calls[] = {
	RUNTIME_LAUNCHES,
	PTSZ(cudaLaunchHostFunc),
	PTDS(cudaMemcpy),
	PTSZ(cudaMemcpyAsync),
	PLAIN(cudaMemcpyPeer),
	PLAIN(cudaMemcpyPeerAsync),
	PTDS(cudaMemcpy2D),
	PTSZ(cudaMemcpy2DAsync),
	PTDS(cudaMemcpy3D),
	PTSZ(cudaMemcpy3DAsync),
	PTDS(cudaMemcpyToSymbol),
	PTSZ(cudaMemcpyToSymbolAsync),
	PTDS(cudaMemcpyFromSymbol),
	PTSZ(cudaMemcpyFromSymbolAsync),
	PTSZ(cudaMemcpyBatchAsync),
	PTSZ(cudaMemPrefetchAsync),
	PTDS(cudaMemset),
	PTSZ(cudaMemsetAsync),
	PTDS(cudaMemset2D),
	PTSZ(cudaMemset2DAsync),
	PTSZ(cudaStreamSynchronize),
	PLAIN(cudaDeviceSynchronize),
	PLAIN(cudaEventSynchronize),
	PTSZ(cudaStreamWaitEvent),
	PLAIN(cudaMalloc),
	PTSZ(cudaMallocAsync),
	PTSZ(cudaMallocFromPoolAsync),
	PLAIN(cudaMallocManaged),
	PLAIN(cudaMallocHost),
	PLAIN(cudaHostAlloc),
	PLAIN(cudaHostRegister),
	PLAIN(cudaFree),
	PTSZ(cudaFreeAsync),
	PLAIN(cudaFreeHost),
	{NULL, NULL},
};

#define DRIVER_LAUNCHES                                                                                                \
	PTSZ(cuLaunchKernel), PTSZ(cuLaunchKernelEx), PTSZ(cuLaunchCooperativeKernel), PTSZ(cuGraphLaunch),            \
		PLAIN(cuLaunchCooperativeKernelMultiDevice)

static const struct adp_member driver_launches[] = {DRIVER_LAUNCHES, {NULL, NULL}};

static const struct adp_member driver_calls[] = {
	DRIVER_LAUNCHES,
	PTSZ(cuLaunchHostFunc),
	PTDS(cuMemcpy),
	PTSZ(cuMemcpyAsync),
	V2PTDS(cuMemcpyHtoD),
	V2PTSZ(cuMemcpyHtoDAsync),
	V2PTDS(cuMemcpyDtoH),
	V2PTSZ(cuMemcpyDtoHAsync),
	V2PTDS(cuMemcpyDtoD),
	V2PTSZ(cuMemcpyDtoDAsync),
	PTDS(cuMemcpyPeer),
	PTSZ(cuMemcpyPeerAsync),
	V2PTDS(cuMemcpy2D),
	V2PTSZ(cuMemcpy2DAsync),
	V2PTDS(cuMemcpy3D),
	V2PTSZ(cuMemcpy3DAsync),
	PTSZ(cuMemPrefetchAsync),
	V2PTDS(cuMemsetD8),
	PTSZ(cuMemsetD8Async),
	V2PTDS(cuMemsetD16),
	PTSZ(cuMemsetD16Async),
	V2PTDS(cuMemsetD32),
	PTSZ(cuMemsetD32Async),
	PTSZ(cuStreamSynchronize),
	PLAIN(cuCtxSynchronize),
	PLAIN(cuEventSynchronize),
	PTSZ(cuStreamWaitEvent),
	V2(cuMemAlloc),
	PTSZ(cuMemAllocAsync),
	PTSZ(cuMemAllocFromPoolAsync),
	PLAIN(cuMemAllocManaged),
	V2(cuMemAllocHost),
	PLAIN(cuMemHostAlloc),
	V2(cuMemHostRegister),
	V2(cuMemFree),
	PTSZ(cuMemFreeAsync),
	PLAIN(cuMemFreeHost),
	{NULL, NULL},
};

/* PyTorch's wheels have given the library a name with a hash: libcudart-d0da41ae.so.11.0. */
#define RUNTIME_GLOB "libcudart*.so*"
#define RUNTIME	     .each_lib = "*/" RUNTIME_GLOB
#define DRIVER	     .each_lib = "*/libcuda.so*"
#define CALLS                                                                                                          \
	.group = PROBE_CUDA, .optional = true, .any_build = true, .returns = true, .title = "CUDA call",               \
	.row = {.action = MXBPF_ACT_OPEN,                                                                              \
		.end = MXBPF_END_CUT,                                                                                  \
		.cls = MXBPF_CLASS_CUDA,                                                                               \
		.name_type = MXBPF_NAMED_COOKIE,                                                                       \
		.name = {.base = MXBPF_BASE_COOKIE},                                                                   \
		.outermost = 1,                                                                                        \
		.details = MXBPF_DETAIL_STACK}
#define COUNTS .group = PROBE_LAUNCH, .optional = true, .any_build = true, .row = {.action = MXBPF_ACT_COUNT}

const struct adp_probe adapter_cuda[] = {
	{.name = "cuda.call", RUNTIME, CALLS, .family = {.members = runtime_calls}},
	{.name = "cuda.driver", DRIVER, .unless_lib = RUNTIME_GLOB, CALLS, .family = {.members = driver_calls}},
	{.name = "cuda.driver_launch",
	 DRIVER,
	 .with_lib = "libtriton*.so*",
	 CALLS,
	 .family = {.members = driver_launches}},
	{.name = "cuda.count", RUNTIME, COUNTS, .family = {.members = runtime_launches}},
	{.name = "cuda.driver_count",
	 DRIVER,
	 .unless_lib = RUNTIME_GLOB,
	 COUNTS,
	 .family = {.members = driver_launches}},
	{.name = NULL},
};
