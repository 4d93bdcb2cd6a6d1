// SPDX-License-Identifier: Apache-2.0
/* What outputs say about --kernel-metrics: what was measured, what it cost, and why something was not measured. */
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/activity/activity.h"
#include "feature/kernels/kernels.h"
#include "session/priv.h"

#define NOT_SUPPORTED_BASE 1000 /* of `result`: see enum mxbpf_gpu_metrics_step */

static const char *const steps[] = {
	[MXBPF_GPU_STEP_SYMBOLS] = "this CUPTI has no range profiler, which CUDA 12.6 brought; install a newer "
				   "nvidia-cuda-cupti, or name a libcupti with --cupti PATH",
	[MXBPF_GPU_STEP_CALLBACK] = "cuptiEnableCallback",
	[MXBPF_GPU_STEP_INIT] = "cuptiProfilerInitialize",
	[MXBPF_GPU_STEP_SUPPORT] = "cuptiProfilerDeviceSupported",
	[MXBPF_GPU_STEP_CHIP] = "cuptiDeviceGetChipName",
	[MXBPF_GPU_STEP_HOST] = "cuptiProfilerHostInitialize, which needs libnvperf_host.so beside libcupti,",
	[MXBPF_GPU_STEP_METRICS] = "CUPTI knows none of the counters for this chip; a newer libcupti may",
	[MXBPF_GPU_STEP_IMAGE] = "cuptiProfilerHostGetConfigImage",
	[MXBPF_GPU_STEP_ENABLE] = "cuptiRangeProfilerEnable",
	[MXBPF_GPU_STEP_DATA] = "cuptiRangeProfilerCounterDataImageInitialize",
	[MXBPF_GPU_STEP_CONFIG] = "cuptiRangeProfilerSetConfig",
	[MXBPF_GPU_STEP_START] = "cuptiRangeProfilerStart",
	[MXBPF_GPU_STEP_STOP] = "cuptiRangeProfilerStop",
	[MXBPF_GPU_STEP_DECODE] = "cuptiRangeProfilerDecodeData",
	[MXBPF_GPU_STEP_VALUES] = "cuptiProfilerHostEvaluateToGpuValues",
	[MXBPF_GPU_STEP_RECORDS] = "cuptiActivityEnable, so kernels may have no records any more,",
	[MXBPF_GPU_STEP_MEMORY] = "there was no memory for the counters",
};

/* The fields of CUPTI's answer, in their order. */
static const char *const unsupported[] = {
	"the GPU is older than compute capability 7.5",
	"GPUs that are coupled by SLI are not supported; turn SLI off",
	"the virtual GPU does not support it, or its administrator has not enabled it",
	"confidential computing does not allow it; turn that off for this GPU",
	"NVIDIA's processors for mining (CMP) do not support it",
	"this version of WSL does not support it; update WSL and the driver",
	"CUPTI does not say why",
};

static const char *const refused[MXBPF_GPU_REFUSALS] = {
	[MXBPF_GPU_REFUSED_COOPERATIVE] = "cooperative",
	[MXBPF_GPU_REFUSED_COMMUNICATES] = "of kernels that by their name wait for others",
	[MXBPF_GPU_REFUSED_CAPTURED] = "captured for a graph, or just after that",
	[MXBPF_GPU_REFUSED_CONTEXT] = "on another GPU than the first one",
	[MXBPF_GPU_REFUSED_BUSY] = "while another thread launched",
	[MXBPF_GPU_REFUSED_MIXED] = "that CUPTI did not keep apart",
	[MXBPF_GPU_REFUSED_LIMIT] = "of more kernels than 256",
};

static const char *failed(const struct mxbpf_gpu_metrics *m, char buf[512])
{
	const char *step = steps[m->step] ? steps[m->step] : "CUPTI";
	const uint32_t field = m->result - NOT_SUPPORTED_BASE;

	if (m->step == MXBPF_GPU_STEP_SUPPORT && m->result >= NOT_SUPPORTED_BASE)
		snprintf(buf, 512, "%s", unsupported[field < 6 ? field : 6]);
	else if (!m->result)
		snprintf(buf, 512, "%s", step);
	else
		snprintf(buf, 512, "%s failed (error %u): %s", step, m->result, ses_gpu_result(m->result));
	return buf;
}

static void append(char buf[1024], const char *text)
{
	const size_t n = strlen(buf);

	snprintf(buf + n, 1024 - n, "%s", text);
}

static void put_refused(const struct mxbpf_gpu_metrics *m, char buf[1024])
{
	const char *before = "; not measured: launches ";
	char one[128];
	unsigned i;

	for (i = 0; i < MXBPF_GPU_REFUSALS; i++) {
		if (!m->refused[i])
			continue;
		snprintf(one, sizeof(one), "%s%s (%u)", before, refused[i], m->refused[i]);
		append(buf, one);
		before = ", ";
	}
}

static void put_measured(const struct mxbpf_gpu_metrics *m, char buf[1024])
{
	char setup[24], held[24], longest[24];

	snprintf(buf, 1024,
		 "kernel metrics: %u launches were measured on a %.31s; each kernel ran %u time%s. The launches were "
		 "held up "
		 "for %s in all and for %s at most; preparing the first one took %s of that",
		 m->measured, m->chip, m->passes, m->passes == 1 ? "" : "s", fmt_ns(m->held_ns, held),
		 fmt_ns(m->longest_ns, longest), fmt_ns(m->setup_ns, setup));
}

const char *ses_metrics_note(const struct mxbpf_gpu_shared *g, char buf[1024])
{
	const struct mxbpf_gpu_metrics *m = &g->metrics;
	char why[512];

	*buf = '\0';
	if (m->measured)
		put_measured(m, buf);
	else if (m->state == MXBPF_GPU_METRICS_FAILED)
		snprintf(buf, 1024, "kernel metrics: no launch was measured: %s", failed(m, why));
	else
		snprintf(buf, 1024,
			 "kernel metrics: no launch was measured: none outside of a CUDA graph had '%.100s' in the "
			 "symbol of "
			 "its kernel",
			 m->pattern);
	if (m->measured && m->state == MXBPF_GPU_METRICS_FAILED) {
		append(buf, "; then the measurement ended: ");
		append(buf, failed(m, why));
	}
	if (m->state == MXBPF_GPU_METRICS_SLOW)
		append(buf, "; the last one took so long that no other was measured");
	if (m->state == MXBPF_GPU_METRICS_DONE)
		append(buf, "; the limit of launches in all was reached");
	put_refused(m, buf);
	return buf;
}
