// SPDX-License-Identifier: Apache-2.0
/* The mock of libcudart. Like the real one it initialises CUDA at the first call, and calls the driver. */
#include "double.h"

#include <stdbool.h>

#define INVALID_DEVICE_FUNCTION 98

struct dim3 {
	uint32_t x, y, z;
};

struct config {
	struct dim3 grid, block;
	size_t shared;
	void *stream;
	void *attributes;
	uint32_t nattributes;
};

/* Of libcuda.so.1. */
extern int cuInit(uint32_t flags);
extern int cuLaunchKernel(struct double_function *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
			  uint32_t bz, uint32_t shared, void *stream, void **params, void **extra);
extern int cuLaunchKernelEx(const void *config, struct double_function *f, void **params, void **extra);
extern int cuMemcpyAsync(void *to, const void *from, size_t bytes, void *stream);
extern int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, void *stream);
extern int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t bytes, void *stream);
extern int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t bytes, void *stream);
extern int cuMemcpyHtoD_v2(void *to, const void *from, size_t bytes);
extern int cuMemcpyDtoH_v2(void *to, const void *from, size_t bytes);
extern int cuMemcpyDtoD_v2(void *to, const void *from, size_t bytes);
extern int cuMemcpyPeerAsync(void *to, void *to_ctx, const void *from, void *from_ctx, size_t bytes, void *stream);
extern int cuMemsetD8Async(void *at, uint8_t value, size_t n, void *stream);
extern int cuMemsetD8_v2(void *at, uint8_t value, size_t n);
extern int cuMemAlloc_v2(void **p, size_t bytes);
extern int cuMemFree_v2(void *p);
extern int cuMemAllocAsync(void **p, size_t bytes, void *stream);
extern int cuMemFreeAsync(void *p, void *stream);
extern int cuMemGetInfo_v2(size_t *left, size_t *all);
extern int cuMemAllocHost_v2(void **p, size_t bytes);
extern int cuMemFreeHost(void *p);
extern int cuStreamCreate(void **s, uint32_t flags);
extern int cuStreamDestroy_v2(void *s);
extern int cuStreamSynchronize(void *s);
extern int cuStreamQuery(void *s);
extern int cuStreamWaitEvent(void *s, void *e, uint32_t flags);
extern int cuCtxSynchronize(void);
extern int cuEventCreate(void **e, uint32_t flags);
extern int cuEventRecord(void *e, void *s);
extern int cuEventQuery(void *e);
extern int cuEventSynchronize(void *e);
extern int cuEventDestroy_v2(void *e);
extern int cuStreamBeginCapture_v2(void *s, int mode);
extern int cuStreamEndCapture(void *s, void **g);
extern int cuGraphInstantiateWithFlags(void **exec, void *g, uint64_t flags);
extern int cuGraphLaunch(void *exec, void *s);
extern int cuGraphExecDestroy(void *exec);
extern int cuGraphDestroy(void *g);
extern int cuDeviceGetCount(int *n);
extern int cuDriverGetVersion(int *v);

/* A program can have the runtime in itself, without symbols. */
#ifdef DOUBLE_STATIC
#define RUNTIME_EXPORT
#else
#define RUNTIME_EXPORT DOUBLE_EXPORT
#endif

static __thread int last_error, device;

#define CALL(cbid, call)                                                                                               \
	do {                                                                                                           \
		int result_ = cuInit(0);                                                                               \
		if (!result_) {                                                                                        \
			double_call_begin(DOUBLE_RUNTIME, cbid);                                                       \
			result_ = call;                                                                                \
			double_call_end(result_);                                                                      \
		}                                                                                                      \
		last_error = result_ ? result_ : last_error;                                                           \
		return result_;                                                                                        \
	} while (0)

static int launch(const void *stub, struct dim3 grid, struct dim3 block, size_t shared, void *stream)
{
	struct double_function *f = double_function_of_stub(stub);

	if (!f)
		return INVALID_DEVICE_FUNCTION;
	return cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, (uint32_t)shared, stream, NULL,
			      NULL);
}

RUNTIME_EXPORT int cudaLaunchKernel(const void *stub, struct dim3 grid, struct dim3 block, void **args, size_t shared,
				    void *stream)
{
	CALL(211, launch(stub, grid, block, shared, stream));
}

static int launch_ex(const struct config *c, const void *stub)
{
	struct double_function *f = double_function_of_stub(stub);
	struct {
		struct dim3 grid, block;
		uint32_t shared;
		void *stream, *attributes;
		uint32_t nattributes;
	} config = {c->grid, c->block, (uint32_t)c->shared, c->stream, NULL, 0};

	return f ? cuLaunchKernelEx(&config, f, NULL, NULL) : INVALID_DEVICE_FUNCTION;
}

RUNTIME_EXPORT int cudaLaunchKernelExC(const struct config *c, const void *stub, void **args)
{
	CALL(430, launch_ex(c, stub));
}

extern int cuModuleLoadData(void **module, const void *image);
extern int cuModuleGetFunction(struct double_function **f, void *module, const char *name);

/* Kernels of the runtime without nvcc, from CUDA 12.8 on: cudaLaunchKernel() takes a cudaKernel_t, too. */
#ifndef DOUBLE_OLD
RUNTIME_EXPORT int cudaLibraryLoadData(void **library, const void *code, void *jit, void *jit_values, uint32_t njit,
				       void *options, void *values, uint32_t noptions)
{
	return cuModuleLoadData(library, code);
}

RUNTIME_EXPORT int cudaLibraryGetKernel(void **kernel, void *library, const char *name)
{
	return cuModuleGetFunction((struct double_function **)kernel, library, name);
}
#endif

static int copy(void *to, const void *from, size_t bytes, int kind)
{
	switch (kind) {
	case 1: /* cudaMemcpyHostToDevice */
		return cuMemcpyHtoD_v2(to, from, bytes);
	case 2:
		return cuMemcpyDtoH_v2(to, from, bytes);
	case 3:
		return cuMemcpyDtoD_v2(to, from, bytes);
	default:
		return cuMemcpyAsync(to, from, bytes, NULL);
	}
}

RUNTIME_EXPORT int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	CALL(31, copy(to, from, bytes, kind));
}

static int copy_async(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	switch (kind) {
	case 1: /* cudaMemcpyHostToDevice */
		return cuMemcpyHtoDAsync_v2(to, from, bytes, stream);
	case 2:
		return cuMemcpyDtoHAsync_v2(to, from, bytes, stream);
	case 3:
		return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
	default:
		return cuMemcpyAsync(to, from, bytes, stream);
	}
}

RUNTIME_EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	CALL(41, copy_async(to, from, bytes, kind, stream));
}

RUNTIME_EXPORT int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
				       void *stream)
{
	CALL(161, cuMemcpyPeerAsync(to, NULL, from, NULL, bytes, stream));
}

RUNTIME_EXPORT int cudaMemset(void *at, int value, size_t bytes)
{
	CALL(49, cuMemsetD8_v2(at, (uint8_t)value, bytes));
}

RUNTIME_EXPORT int cudaMemsetAsync(void *at, int value, size_t bytes, void *stream)
{
	CALL(51, cuMemsetD8Async(at, (uint8_t)value, bytes, stream));
}

RUNTIME_EXPORT int cudaMalloc(void **p, size_t bytes)
{
	CALL(20, cuMemAlloc_v2(p, bytes));
}

RUNTIME_EXPORT int cudaFree(void *p)
{
	CALL(22, p ? cuMemFree_v2(p) : 0);
}

RUNTIME_EXPORT int cudaMallocAsync(void **p, size_t bytes, void *stream)
{
	CALL(373, cuMemAllocAsync(p, bytes, stream));
}

RUNTIME_EXPORT int cudaFreeAsync(void *p, void *stream)
{
	CALL(375, cuMemFreeAsync(p, stream));
}

RUNTIME_EXPORT int cudaMemGetInfo(size_t *left, size_t *all)
{
	CALL(30, cuMemGetInfo_v2(left, all));
}

RUNTIME_EXPORT int cudaMallocHost(void **p, size_t bytes)
{
	CALL(25, cuMemAllocHost_v2(p, bytes));
}

RUNTIME_EXPORT int cudaHostAlloc(void **p, size_t bytes, uint32_t flags)
{
	CALL(27, cuMemAllocHost_v2(p, bytes));
}

RUNTIME_EXPORT int cudaFreeHost(void *p)
{
	CALL(26, cuMemFreeHost(p));
}

RUNTIME_EXPORT int cudaStreamCreate(void **s)
{
	CALL(129, cuStreamCreate(s, 0));
}

RUNTIME_EXPORT int cudaStreamCreateWithFlags(void **s, uint32_t flags)
{
	CALL(198, cuStreamCreate(s, flags));
}

RUNTIME_EXPORT int cudaStreamDestroy(void *s)
{
	CALL(201, cuStreamDestroy_v2(s));
}

RUNTIME_EXPORT int cudaStreamSynchronize(void *s)
{
	CALL(131, cuStreamSynchronize(s));
}

RUNTIME_EXPORT int cudaStreamWaitEvent(void *s, void *e, uint32_t flags)
{
	CALL(147, cuStreamWaitEvent(s, e, flags));
}

RUNTIME_EXPORT int cudaDeviceSynchronize(void)
{
	CALL(165, cuCtxSynchronize());
}

RUNTIME_EXPORT int cudaEventCreate(void **e)
{
	CALL(133, cuEventCreate(e, 0));
}

RUNTIME_EXPORT int cudaEventCreateWithFlags(void **e, uint32_t flags)
{
	CALL(134, cuEventCreate(e, flags));
}

RUNTIME_EXPORT int cudaEventRecord(void *e, void *s)
{
	CALL(135, cuEventRecord(e, s));
}

RUNTIME_EXPORT int cudaEventQuery(void *e)
{
	CALL(138, cuEventQuery(e));
}

RUNTIME_EXPORT int cudaEventSynchronize(void *e)
{
	CALL(137, cuEventSynchronize(e));
}

RUNTIME_EXPORT int cudaEventDestroy(void *e)
{
	CALL(136, cuEventDestroy_v2(e));
}

RUNTIME_EXPORT int cudaStreamBeginCapture(void *s, int mode)
{
	CALL(315, cuStreamBeginCapture_v2(s, mode));
}

RUNTIME_EXPORT int cudaStreamEndCapture(void *s, void **g)
{
	CALL(319, cuStreamEndCapture(s, g));
}

RUNTIME_EXPORT int cudaGraphInstantiate(void **exec, void *g, uint64_t flags)
{
	CALL(443, cuGraphInstantiateWithFlags(exec, g, flags));
}

RUNTIME_EXPORT int cudaGraphLaunch(void *exec, void *s)
{
	CALL(311, cuGraphLaunch(exec, s));
}

RUNTIME_EXPORT int cudaGraphExecDestroy(void *exec)
{
	CALL(313, cuGraphExecDestroy(exec));
}

RUNTIME_EXPORT int cudaGraphDestroy(void *g)
{
	CALL(314, cuGraphDestroy(g));
}

RUNTIME_EXPORT int cudaGetDevice(int *d)
{
	CALL(17, (*d = device, 0));
}

RUNTIME_EXPORT int cudaSetDevice(int d)
{
	CALL(16, (device = d, double_set_device((uint32_t)d), 0));
}

RUNTIME_EXPORT int cudaGetDeviceCount(int *n)
{
	CALL(3, cuDeviceGetCount(n));
}

/* CUPTI has records of these, too; they neither initialise CUDA nor change the last error. */
static int asked(uint32_t cbid, int result)
{
	if (double_initialised() != 1)
		return result;
	double_call_begin(DOUBLE_RUNTIME, cbid);
	return double_call_end(result);
}

RUNTIME_EXPORT int cudaGetLastError(void)
{
	int error = last_error;

	last_error = 0;
	return asked(10, error);
}

RUNTIME_EXPORT int cudaPeekAtLastError(void)
{
	return asked(11, last_error);
}

RUNTIME_EXPORT int cudaStreamIsCapturing(void *s, int *status)
{
	*status = 0;
	return asked(317, 0);
}

RUNTIME_EXPORT int cudaStreamQuery(void *s)
{
	CALL(132, cuStreamQuery(s));
}

RUNTIME_EXPORT const char *cudaGetErrorString(int error)
{
	return error ? "an error of the GPU double" : "no error";
}

RUNTIME_EXPORT int cudaDriverGetVersion(int *v)
{
	return cuDriverGetVersion(v);
}

RUNTIME_EXPORT int cudaRuntimeGetVersion(int *v)
{
	*v = 12080;
	return 0;
}

RUNTIME_EXPORT void __cudaRegisterFunction(void **fatbin, const void *stub, char *device_function, const char *name,
					   int limit, void *tid, void *bid, void *block, void *grid, int *warp)
{
	double_register_stub(stub, name);
}
