// SPDX-License-Identifier: Apache-2.0
/* Why there are no records of the GPU, and what to do about it. */
#include <stdio.h>
#include <string.h>

#include "session/priv.h"

/* CUptiResult. The texts follow "CUPTI refuses: ". */
static const struct {
	uint32_t result;
	const char *why;
} results[] = {
	{1, "it found an invalid parameter; this is an error in mxbpf, please report it"},
	{2, "it found an invalid device; set CUDA_VISIBLE_DEVICES to devices that exist"},
	{6, "the operation is not allowed now; end the other tool that uses CUPTI"},
	{8, "its request for memory failed; free memory of the host"},
	{9, "the device has a hardware error; look at nvidia-smi"},
	{14, "calls of two interfaces of CUPTI are mixed in this process; end the other profiler of the process"},
	{15, "it is not initialised, because its version does not fit the driver; choose another with --cupti PATH"},
	{20, "the driver does not support it; update the driver, or choose an older libcupti with --cupti PATH"},
	{27, "the device or the driver does not support it; use a libcupti of the driver's version with --cupti PATH"},
	{28, "the device does not support it"},
	{35, "only administrators may profile this GPU: load the nvidia module with "
	     "NVreg_RestrictProfilingToAdminUsers=0, or give the process CAP_SYS_ADMIN"},
	{36, "an older profiling interface is in use in this process; end the other tool"},
	{38, "this GPU needs a newer libcupti; choose one with --cupti PATH"},
	{39,
	 "another client holds it: a profiler in the process, nsys, ncu, cuda-gdb or the compute sanitizer; end it"},
	{40, "the virtual GPU does not allow profiling; ask its administrator to enable it for this machine"},
	{41, "confidential computing is on, which forbids profiling; turn it off for this GPU"},
	{42, "this model of GPU does not support profiling (CMP)"},
	{43, "the GPU is divided by MIG and this part does not allow profiling; use a part with all compute slices, or "
	     "turn MIG off"},
	{44, "the GPUs are coupled by SLI, which forbids profiling; turn SLI off"},
	{45, "profiling is not possible in this version of WSL; update WSL and the driver"},
	{999,
	 "an unknown error, as under MPS or the compute sanitizer; stop the MPS daemon or run without the sanitizer"},
};

static const char *result_text(uint32_t result)
{
	unsigned i;

	for (i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i].result == result)
			return results[i].why;
	return "a result that mxbpf does not know; try a libcupti of the driver's version with --cupti PATH";
}

static const char *place(uint32_t failed)
{
	switch (failed) {
	case MXBPF_GPU_AT_VERSION:
		return "its version cannot be used";
	case MXBPF_GPU_AT_SUBSCRIBE:
		return "CUPTI accepts no client";
	case MXBPF_GPU_AT_REGISTER:
		return "CUPTI takes no buffers";
	case MXBPF_GPU_AT_ENABLE:
		return "CUPTI cannot record kernels";
	default:
		return "CUPTI failed";
	}
}

static const char *failed_text(const struct mxbpf_gpu_shared *g, char buf[512])
{
	const uint32_t failed = g->failed, result = g->result;

	if (failed == MXBPF_GPU_AT_LIBRARY)
		snprintf(buf, 512,
			 "no record of the GPU: the process has no libcupti, and %.200s cannot be loaded; install "
			 "nvidia-cuda-cupti of the process's CUDA version, or name a file with --cupti PATH",
			 g->library[0] ? g->library : "libcupti.so");
	else if (failed == MXBPF_GPU_AT_SYMBOL)
		snprintf(buf, 512,
			 "no record of the GPU: %.200s lacks a function that mxbpf needs; name another with "
			 "--cupti PATH",
			 g->path);
	else if (failed == MXBPF_GPU_AT_VERSION && !result)
		snprintf(buf, 512,
			 "no record of the GPU: %.200s is older than CUDA 11.0 (version %u); name a newer one with "
			 "--cupti PATH",
			 g->path, g->version);
	else if (failed == MXBPF_GPU_AT_THREAD)
		snprintf(buf, 512, "no record of the GPU: the agent could not start its thread: %s",
			 strerror((int)result));
	else
		snprintf(buf, 512, "no record of the GPU: %s (error %u): %s", place(failed), result,
			 result_text(result));
	return buf;
}

const char *ses_gpu_why(const struct mxbpf_gpu_shared *g, char buf[512])
{
	switch (__atomic_load_n(&g->state, __ATOMIC_ACQUIRE)) {
	case MXBPF_GPU_NO_CUDA:
		snprintf(buf, 512, "no record of the GPU: the process has not initialised CUDA; mxbpf goes on looking");
		return buf;
	case MXBPF_GPU_SUBSCRIBING:
		snprintf(buf, 512, "no record of the GPU: CUPTI has not answered yet");
		return buf;
	case MXBPF_GPU_BUSY:
		snprintf(
			buf, 512,
			"no record of the GPU: another client%s%.64s%s holds CUPTI, such as a profiler in the process, "
			"nsys, ncu or cuda-gdb, possibly until the process ends; mxbpf asks again every 5 s",
			g->holder[0] ? " (" : "", g->holder, g->holder[0] ? ")" : "");
		return buf;
	case MXBPF_GPU_YIELDED:
		snprintf(
			buf, 512,
			"the program's own profiler uses CUPTI now, so mxbpf has let go of it; kernels from now on are "
			"missing until that profiler is done");
		return buf;
	default:
		return failed_text(g, buf);
	}
}
