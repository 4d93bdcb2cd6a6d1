/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware counters of chosen kernels, in the program's own launches. cupti_metrics.c chooses the launches,
 * cupti_ranges.c calls CUPTI's range profiler. Nothing of it is called unless mxbpf wants it.
 */
#ifndef AGENT_LIB_CUPTI_METRICS_H
#define AGENT_LIB_CUPTI_METRICS_H

#include "cupti.h"
#include "cupti_metrics_abi.h"

/*
 * Call it when CUPTI is held (on) or about to be given back. In the second case it waits until a launch that is being
 * measured has returned.
 */
void cupti_metrics_watch(struct mxbpf_gpu_shared *g, void *subscriber, bool on);
/* CUPTI calls this before and after a call of the driver that launches. */
void cupti_metrics_on_call(struct mxbpf_gpu_shared *g, uint32_t cbid, const struct cupti_call *call);
/* While CUPTI is held: hands over what was measured, and ends the callbacks when nothing more will be. */
void cupti_metrics_tick(struct mxbpf_gpu_shared *g, void *subscriber);
void cupti_metrics_forget(void);

/* ---- cupti_ranges.c: one thread at a time. All but ranges_find() need a current context. */

/* Finds the functions. Only the agent's thread calls it. Returns 0, or -1 with `step` and `result` set. */
int ranges_find(struct mxbpf_gpu_metrics *m);
/* Prepares a context and the list of counters. Returns 0 or -1; then ranges_close() is needed, too. */
int ranges_open(struct mxbpf_gpu_metrics *m, void *context, uint32_t device);
/* From now on, the next kernel is measured. Returns 0 or -1. */
int ranges_begin(struct mxbpf_gpu_metrics *m);
/*
 * Reads the counters of the kernel that was launched. values[i] is that of counter i, if mask has that bit. *ranges is
 * the number of kernels that were measured: values are set if it is 1. Returns 0 or -1.
 */
int ranges_end(struct mxbpf_gpu_metrics *m, double values[MXBPF_GPU_METRICS], size_t *ranges);
void ranges_close(void);

#endif
