/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training loop of a PyTorch job on a GPU, as a recording has it. Each step takes 1 ms. Times are in microseconds
 * after the start of the step:
 *
 *   thread   step 0-990
 *              copy_ 10-60 (cudaMemcpyAsync 20-30)
 *              linear 100-200, addmm in it 110-190 (cudaLaunchKernel 120-130)
 *              relu 210-250 (cuLaunchKernel 220-225)
 *              all_reduce 410-435 (cudaLaunchKernelExC 420-430)
 *              zero_ 600-650 (cudaMemsetAsync 610-615)
 *              cudaStreamSynchronize 700-800
 *              cudaGraphLaunch 810-830, in no operator
 *   backward AddmmBackward0 400-480 (cudaLaunchKernel 405-410)
 *   stream 7   copy 40-90, gemm 140-340, relu 340-400, gemm 440-640, set 650-660, gemm 840-860 and relu 860-900 of the
 *              graph, wait 700-800
 *   stream 13  ncclKernel_AllReduce 450-550
 */
#ifndef GPU_TAPE_H
#define GPU_TAPE_H

#include "chrome_tape.h"
#include "mxbpf_track.h"

#define CUDA	 MXBPF_CLASS_CUDA
#define BACKWARD (PID + 1) /* thread of the backward pass */

#define GPU_STEP_US    1000u
#define GPU_COPY_BYTES 4096000u

enum gpu_name {
	N_COPY_OP = 201,
	N_LINEAR,
	N_ADDMM,
	N_RELU_OP,
	N_ALL_REDUCE,
	N_ZERO,
	N_BACKWARD,
	N_MEMCPY_CALL,
	N_LAUNCH_CALL,
	N_DRIVER_CALL,
	N_EXC_CALL,
	N_MEMSET_CALL,
	N_SYNC_CALL,
	N_GRAPH_CALL,
	N_COPY,
	N_SET,
	N_GEMM,
	N_RELU,
	N_NCCL,
	N_SYNC,
	N_DEVICE,
	N_END,
	N_STEP = 1000, /* and the following, one for each step */
};

static inline void gpu_put_names(struct tape *t, unsigned nsteps)
{
	static const char *const texts[] = {
		"aten::copy_",
		"aten::linear",
		"aten::addmm",
		"aten::relu",
		"c10d::all_reduce",
		"aten::zero_",
		"AddmmBackward0",
		"cudaMemcpyAsync",
		"cudaLaunchKernel",
		"cuLaunchKernel",
		"cudaLaunchKernelExC",
		"cudaMemsetAsync",
		"cudaStreamSynchronize",
		"cudaGraphLaunch",
		"Memcpy HtoD (Pinned -> Device)",
		"Memset (Device)",
		"gemm",
		"relu",
		"ncclKernel_AllReduce",
		"Stream Synchronize",
		"NVIDIA H200",
	};
	char text[32];
	unsigned i;

	_Static_assert(sizeof(texts) / sizeof(texts[0]) == N_END - N_COPY_OP, "each name has its text");
	for (i = N_COPY_OP; i < N_END; i++)
		name(t, i, MXBPF_NAME_SPAN, texts[i - N_COPY_OP], strlen(texts[i - N_COPY_OP]));
	for (i = 0; i < nsteps; i++) {
		snprintf(text, sizeof(text), "ProfilerStep#%u", i);
		name(t, N_STEP + i, MXBPF_NAME_SPAN, text, strlen(text));
	}
}

static inline void gpu_put_device(struct tape *t)
{
	struct mxbpf_gpu_device *d = rec_add(t, MXBPF_GPU_DEVICE, sizeof(*d), 0);

	d->h.ts_ns = 0;
	d->name_id = N_DEVICE;
	d->memory_bytes = 150ull << 30;
	d->multiprocessors = 132;
	d->major = 9;
	d->threads_per_mp = 2048;
	d->blocks_per_mp = 32;
	d->registers_per_mp = 65536;
	d->shared_per_mp = 233472;
	d->warp = 32;
}

static inline struct mxbpf_span *gpu_span(struct tape *t, uint8_t cls, uint32_t tid, uint64_t name_id, uint64_t from_us,
					  uint64_t to_us)
{
	struct mxbpf_span *s = span(t, cls, tid, from_us * 1000, to_us * 1000);

	s->name_id = name_id;
	return s;
}

static inline void gpu_call(struct tape *t, uint32_t tid, uint64_t name_id, uint64_t from_us, uint64_t to_us,
			    uint64_t edge_id)
{
	struct mxbpf_launch *l;

	gpu_span(t, CUDA, tid, name_id, from_us, to_us);
	if (!edge_id)
		return;
	l = launch(t, tid, from_us * 1000, edge_id);
	l->dur_ns = (to_us - from_us) * 1000;
	l->call_id = name_id;
}

static inline struct mxbpf_activity *gpu_activity(struct tape *t, uint8_t cls, uint64_t name_id, uint64_t from_us,
						  uint64_t to_us, uint64_t edge_id)
{
	struct mxbpf_activity *a = kernel(t, name_id, edge_id, from_us * 1000, to_us * 1000);

	a->cls = cls;
	if (cls == MXBPF_ACTIVITY_KERNEL) {
		a->grid[0] = 66;
		a->grid[1] = 2;
		a->grid[2] = 1;
		a->block[0] = 128;
		a->block[1] = 2;
		a->block[2] = 1;
		a->registers = 40;
		a->static_shared = 1024;
		a->dynamic_shared = 512;
	}
	return a;
}

/* What the device did. Edges of the step are edge + 1 to edge + 7. */
static inline void gpu_put_activities(struct tape *t, uint64_t at, uint64_t edge)
{
	struct mxbpf_activity *a;

	a = gpu_activity(t, MXBPF_ACTIVITY_COPY, N_COPY, at + 40, at + 90, edge + 1);
	a->bytes = GPU_COPY_BYTES;
	a->copy = MXBPF_COPY_HTOD;
	a->from = MXBPF_MEMORY_PINNED;
	a->to = MXBPF_MEMORY_DEVICE;
	gpu_activity(t, MXBPF_ACTIVITY_KERNEL, N_GEMM, at + 140, at + 340, edge + 2);
	gpu_activity(t, MXBPF_ACTIVITY_KERNEL, N_RELU, at + 340, at + 400, edge + 3);
	gpu_activity(t, MXBPF_ACTIVITY_KERNEL, N_NCCL, at + 450, at + 550, edge + 4)->track.stream = 13;
	gpu_activity(t, MXBPF_ACTIVITY_KERNEL, N_GEMM, at + 440, at + 640, edge + 5);
	a = gpu_activity(t, MXBPF_ACTIVITY_SET, N_SET, at + 650, at + 660, edge + 6);
	a->bytes = 65536;
	a->to = MXBPF_MEMORY_DEVICE;
	gpu_activity(t, MXBPF_ACTIVITY_SYNC, N_SYNC, at + 700, at + 800, 0)->sync_type = MXBPF_SYNC_STREAM;
	a = gpu_activity(t, MXBPF_ACTIVITY_KERNEL, N_GEMM, at + 840, at + 860, edge + 7);
	a->graph = 3;
	a->graph_node = 17;
	a = gpu_activity(t, MXBPF_ACTIVITY_KERNEL, N_RELU, at + 860, at + 900, edge + 7);
	a->graph = 3;
	a->graph_node = 18;
}

/* What CUPTI reports of the step. */
static inline void gpu_put_calls(struct tape *t, unsigned step)
{
	const uint64_t at = (uint64_t)step * GPU_STEP_US, edge = 100 + 10ull * step;

	gpu_put_activities(t, at, edge);
	gpu_call(t, PID, N_MEMCPY_CALL, at + 20, at + 30, edge + 1);
	gpu_call(t, PID, N_LAUNCH_CALL, at + 120, at + 130, edge + 2);
	gpu_call(t, PID, N_DRIVER_CALL, at + 220, at + 225, edge + 3);
	gpu_call(t, BACKWARD, N_LAUNCH_CALL, at + 405, at + 410, edge + 5);
	gpu_call(t, PID, N_EXC_CALL, at + 420, at + 430, edge + 4);
	gpu_call(t, PID, N_MEMSET_CALL, at + 610, at + 615, edge + 6);
	gpu_call(t, PID, N_SYNC_CALL, at + 700, at + 800, 0);
	gpu_call(t, PID, N_GRAPH_CALL, at + 810, at + 830, edge + 7);
}

static inline void gpu_put_operators(struct tape *t, unsigned step)
{
	const uint64_t at = (uint64_t)step * GPU_STEP_US;
	struct mxbpf_span *s;

	gpu_span(t, OP, PID, N_COPY_OP, at + 10, at + 60);
	gpu_span(t, OP, PID, N_ADDMM, at + 110, at + 190);
	gpu_span(t, OP, PID, N_LINEAR, at + 100, at + 200)->self_ns = 20 * 1000;
	gpu_span(t, OP, PID, N_RELU_OP, at + 210, at + 250);
	gpu_span(t, OP, BACKWARD, N_BACKWARD, at + 400, at + 480);
	gpu_span(t, OP, PID, N_ALL_REDUCE, at + 410, at + 435);
	gpu_span(t, OP, PID, N_ZERO, at + 600, at + 650);
	s = gpu_span(t, OP, PID, N_STEP + step, at, at + 990);
	s->flags = MXBPF_SPAN_USER;
	s->self_ns = 725 * 1000; /* less the operators on this thread */
}

/* CUPTI hands over its records later than the agent its calls: here one step late, and out of order. */
static inline struct tape gpu_tape(unsigned nsteps)
{
	struct tape t = tape_new();
	unsigned i;

	t.session.trace_form = (char *)"kineto";
	t.session.class_title[OP] = (char *)"operator";
	t.session.class_title[CUDA] = (char *)"CUDA call";
	t.session.duration_ns = nsteps * GPU_STEP_US * 1000ull;
	gpu_put_names(&t, nsteps);
	gpu_put_device(&t);
	for (i = 0; i < nsteps; i++) {
		gpu_put_operators(&t, i);
		if (i)
			gpu_put_calls(&t, i - 1);
	}
	gpu_put_calls(&t, nsteps - 1);
	return t;
}

#endif
