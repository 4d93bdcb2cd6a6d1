// SPDX-License-Identifier: Apache-2.0
/* Why there are no records of the GPU, and what to do about it. */
#include <stdio.h>
#include <string.h>

#include "feature/activity/activity.h"
#include "session/priv.h"

/* CUptiResult. The texts follow "CUPTI refuses: ". */
static const struct {
	uint32_t result;
	const char *why;
} results[] = {
	{1, "a parameter is not valid for this version; choose a libcupti of the driver's version with --cupti PATH"},
	{2, "a device is not valid; set CUDA_VISIBLE_DEVICES to devices that exist"},
	{3, "the process has no valid CUDA context; wait until it has used the GPU, and try again"},
	{7, "another profiler is at work; end it and try again"},
	{8, "there is not enough memory; free some of the host's and of the GPU's"},
	{9, "the hardware that counts events has failed; look at the kernel's log and nvidia-smi"},
	{14, "two families of CUPTI's functions are mixed in this process; end the process's other profiler"},
	{15, "it cannot reach the driver; choose a libcupti of the driver's version with --cupti PATH"},
	{21, "it does not know a kind of record; choose a newer libcupti with --cupti PATH"},
	{23, "it is disabled, because another profiler is enabled; end that and try again"},
	{26, "another tool uses the hardware that counts events (nsys, ncu, DCGM); end it, or pause DCGM's profiling"},
	{27, "the machine or the device does not support it; update the driver, or choose another libcupti with "
	     "--cupti PATH"},
	{31, "the GPU is shared by MPS, which does not allow this; stop the MPS daemon"},
	{33, "a virtual GPU does not support it; use a machine with the whole GPU"},
	{34, "the version of CUDA that compiled the program does not fit; choose the libcupti of that version with "
	     "--cupti PATH"},
	{35, "only administrators may profile this GPU; load the module nvidia with "
	     "NVreg_RestrictProfilingToAdminUsers=0, or give the process CAP_SYS_ADMIN"},
	{36, "the process uses an older profiling interface; end its other profiler"},
	{38, "this GPU needs a newer interface; choose a newer libcupti with --cupti PATH"},
	{39,
	 "another client holds it: a profiler in the process, nsys, ncu, cuda-gdb or the compute sanitizer; end it"},
	{40, "the hypervisor does not allow it for this virtual GPU; ask its administrator"},
	{41, "confidential computing does not allow it; turn that off for this GPU"},
	{42, "NVIDIA's processors for mining (CMP) do not support it; use another GPU"},
	{43, "the GPU is divided by MIG, which does not support it; turn MIG off, or use a GPU without it"},
	{44, "GPUs that are coupled by SLI do not support it; turn SLI off"},
	{45, "this version of WSL does not support it; update WSL and the driver"},
	{999, "there is an internal error, as under the compute sanitizer; run the program without other tools"},
};

const char *ses_gpu_result(uint32_t result)
{
	unsigned i;

	for (i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i].result == result)
			return results[i].why;
	return "a result that mxbpf does not know; try a libcupti of the driver's version with --cupti PATH";
}

static const char *activity_load_place(uint32_t failed)
{
	static const char *const places[] = {[MXBPF_GPU_AT_VERSION] = "its version cannot be used",
					     [MXBPF_GPU_AT_SUBSCRIBE] = "CUPTI accepts no client",
					     [MXBPF_GPU_AT_REGISTER] = "CUPTI takes no buffers",
					     [MXBPF_GPU_AT_ENABLE] = "CUPTI cannot record kernels"};

	return failed <= MXBPF_GPU_AT_ENABLE && places[failed] ? places[failed] : "CUPTI failed";
}

static bool is_divided(const struct mxbpf_gpu_shared *g)
{
	uint32_t i;

	for (i = 0; i < g->ndevices && i < MXBPF_GPU_DEVICES; i++)
		if (memcmp(g->devices[i].uuid, g->devices[i].whole_uuid, sizeof(g->devices[i].uuid)))
			return true;
	return false;
}

static const char *failed_text(const struct mxbpf_gpu_shared *g, char buf[512])
{
	const uint32_t failed = g->failed, result = g->result;

	if (failed == MXBPF_GPU_AT_LIBRARY && g->library[0])
		snprintf(buf, 512,
			 "no record of the GPU: the process has no libcupti, and %.200s cannot be loaded; install "
			 "nvidia-cuda-cupti of the process's CUDA version, or name a file with --cupti PATH",
			 g->library);
	else if (failed == MXBPF_GPU_AT_LIBRARY)
		snprintf(
			buf, 512,
			"no record of the GPU: the process has no libcupti, and none that is not newer than the driver "
			"(CUDA %u.%u) was found by the loader, nor beside %.150s%s; install nvidia-cuda-cupti of the "
			"process's CUDA version, or name a file with --cupti PATH",
			g->driver / 1000, g->driver % 1000 / 10,
			g->path[0] ? g->path : "a libcudart, which is not mapped",
			g->path[0] ? ", in cuda_cupti/lib and in extras/CUPTI/lib64" : "");
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
		snprintf(buf, 512, "no record of the GPU: %s (error %u): %s%s", activity_load_place(failed), result,
			 ses_gpu_result(result),
			 is_divided(g) ? "; the process uses an instance of a GPU that MIG divides" : "");
	return buf;
}

const char *ses_gpu_why(const struct mxbpf_gpu_shared *g, char buf[512])
{
	switch (__atomic_load_n(&g->state, __ATOMIC_ACQUIRE)) {
	case MXBPF_GPU_OFF:
		snprintf(buf, 512, "no record of the GPU: the process has ended before CUPTI was asked for records");
		return buf;
	case MXBPF_GPU_NO_CUDA:
		snprintf(buf, 512, "no record of the GPU: the process has not initialised CUDA; mxbpf goes on looking");
		return buf;
	case MXBPF_GPU_SUBSCRIBING:
		snprintf(buf, 512, "no record of the GPU: CUPTI has not answered yet");
		return buf;
	case MXBPF_GPU_BUSY:
		if (g->failed == MXBPF_GPU_AT_ELSEWHERE)
			snprintf(
				buf, 512,
				"no record of the GPU: the program has a profiler that uses another libcupti than "
				"%.200s, as Triton's Proton does. The driver serves one of them in a process, so mxbpf "
				"leaves it to that profiler",
				g->path);
		else if (g->failed == MXBPF_GPU_AT_REGISTER)
			snprintf(
				buf, 512,
				"no record of the GPU: another client (%.64s) holds CUPTI: its buffers are registered, "
				"and it may have a trace; mxbpf waits until it sees the end of a trace, or no call of "
				"CUPTI by that client for 60 s",
				g->holder);
		else
			snprintf(buf, 512,
				 "no record of the GPU: another client%s%.64s%s holds CUPTI, such as a profiler in the "
				 "process, "
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

const char *ses_gpu_unjoined(const struct mxbpf_gpu_shared *g, uint64_t n, char buf[512])
{
	snprintf(buf, 512,
		 "%llu activities of CUDA graphs are not joined to their launches: CUPTI %u gives wrong ids of these "
		 "once "
		 "it was used before in the process; CUDA 13.1 U1 and later do not",
		 (unsigned long long)n, g->version);
	return buf;
}
