/* SPDX-License-Identifier: Apache-2.0 */
/* A track of each GPU in a timeline that says why it ran nothing. activity/trace.c draws GPUs and calls these. */
#ifndef VIEW_GPU_IDLE_H
#define VIEW_GPU_IDLE_H

#include "base/buf.h"
#include "view/timeline/trace.h"

struct idle_trace {
	struct buf pieces; /* struct mxbpf_gpu_idle, by process, device and time */
	struct buf looks;  /* struct mxbpf_look, by process, thread and time */
};

/* A GPU of a process, and its own process in the timeline. */
struct idle_trace_gpu {
	uint32_t tgid, device, pid;
};

/* Between the passes. Leaves it empty if the form has no such tracks. Returns 0 or -ENOMEM. */
int idle_trace_plan(struct idle_trace *i, const struct view_trace *t);
/* Names the track of a GPU. Returns false if it has none. */
bool idle_trace_track(const struct idle_trace *i, struct view_trace *t, const struct idle_trace_gpu *gpu, size_t place);
void idle_trace_slices(const struct idle_trace *i, struct view_trace *t, const struct idle_trace_gpu *gpu);
void idle_trace_fini(struct idle_trace *i);

#endif
