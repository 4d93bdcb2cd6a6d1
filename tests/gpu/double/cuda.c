// SPDX-License-Identifier: Apache-2.0
/* The mock of libcuda.so.1: the driver's functions on the simulated device. driver.c has what lies behind them. */
#include "device.h"
#include "driver.h"

#include <dlfcn.h>

struct config {
	uint32_t grid[3], block[3], shared;
	void *stream;
	void *attributes;
	uint32_t nattributes;
};

/* cuLaunchKernel_params and cuLaunchKernelEx_params */
struct launch {
	struct double_function *f;
	uint32_t grid[3], block[3], shared;
	void *stream;
	void **params, **extra;
};
struct launch_ex {
	const struct config *config;
	struct double_function *f;
	void **params, **extra;
};

#define CALL(cbid, body)                                                                                               \
	do {                                                                                                           \
		int result_ = driver_ready();                                                                          \
		if (result_)                                                                                           \
			return result_;                                                                                \
		double_call_begin(DOUBLE_DRIVER, cbid);                                                                \
		body;                                                                                                  \
		return double_call_end(result_);                                                                       \
	} while (0)

DOUBLE_EXPORT int cuLaunchKernel(struct double_function *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx,
				 uint32_t by, uint32_t bz, uint32_t shared, void *stream, void **params, void **extra)
{
	const struct launch l = {f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, extra};

	driver_launches(f, &l);
	CALL(307, result_ = driver_launch(f, l.grid, l.block, shared, stream));
}

DOUBLE_EXPORT int cuLaunchCooperativeKernel(struct double_function *f, uint32_t gx, uint32_t gy, uint32_t gz,
					    uint32_t bx, uint32_t by, uint32_t bz, uint32_t shared, void *stream,
					    void **params)
{
	const struct launch l = {f, {gx, gy, gz}, {bx, by, bz}, shared, stream, params, NULL};

	driver_launches(f, &l);
	CALL(477, result_ = driver_launch(f, l.grid, l.block, shared, stream));
}

DOUBLE_EXPORT int cuLaunchKernelEx(const struct config *c, struct double_function *f, void **params, void **extra)
{
	const struct launch_ex l = {c, f, params, extra};

	driver_launches(f, &l);
	CALL(652, result_ = driver_launch(f, c->grid, c->block, c->shared, c->stream));
}

DOUBLE_EXPORT int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, void *stream)
{
	CALL(277, driver_copy(to, from, bytes, stream, true));
}

DOUBLE_EXPORT int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t bytes, void *stream)
{
	CALL(279, driver_copy(to, from, bytes, stream, true));
}

DOUBLE_EXPORT int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t bytes, void *stream)
{
	CALL(281, driver_copy(to, from, bytes, stream, true));
}

DOUBLE_EXPORT int cuMemcpyAsync(void *to, const void *from, size_t bytes, void *stream)
{
	CALL(306, driver_copy(to, from, bytes, stream, true));
}

DOUBLE_EXPORT int cuMemcpyHtoD_v2(void *to, const void *from, size_t bytes)
{
	CALL(276, driver_copy(to, from, bytes, NULL, false));
}

DOUBLE_EXPORT int cuMemcpyDtoH_v2(void *to, const void *from, size_t bytes)
{
	CALL(278, driver_copy(to, from, bytes, NULL, false));
}

DOUBLE_EXPORT int cuMemcpyDtoD_v2(void *to, const void *from, size_t bytes)
{
	CALL(280, driver_copy(to, from, bytes, NULL, true));
}

DOUBLE_EXPORT int cuMemcpyPeerAsync(void *to, void *to_ctx, const void *from, void *from_ctx, size_t bytes,
				    void *stream)
{
	CALL(319, driver_copy_peer(bytes, stream));
}

DOUBLE_EXPORT int cuMemsetD8Async(void *at, uint8_t value, size_t n, void *stream)
{
	CALL(216, driver_set(at, value, n, stream));
}

DOUBLE_EXPORT int cuMemsetD32Async(void *at, uint32_t value, size_t n, void *stream)
{
	CALL(220, driver_set(at, value, 4 * n, stream));
}

DOUBLE_EXPORT int cuMemsetD8_v2(void *at, uint8_t value, size_t n)
{
	CALL(249, driver_set(at, value, n, NULL));
}

DOUBLE_EXPORT int cuMemAlloc_v2(void **p, size_t bytes)
{
	CALL(243, result_ = memory_alloc(p, bytes, false));
}

DOUBLE_EXPORT int cuMemFree_v2(void *p)
{
	CALL(245, driver_free(p));
}

DOUBLE_EXPORT int cuMemAllocAsync(void **p, size_t bytes, void *stream)
{
	CALL(598, result_ = memory_alloc(p, bytes, true));
}

DOUBLE_EXPORT int cuMemFreeAsync(void *p, void *stream)
{
	CALL(600, memory_free(p, true));
}

DOUBLE_EXPORT int cuMemCreate(uint64_t *handle, size_t bytes, const void *what, uint64_t flags)
{
	CALL(549, result_ = memory_create(handle, bytes));
}

DOUBLE_EXPORT int cuMemRelease(uint64_t handle)
{
	CALL(550, memory_release(handle));
}

DOUBLE_EXPORT int cuMemMap(uint64_t at, size_t bytes, size_t offset, uint64_t handle, uint64_t flags)
{
	CALL(551, (void)handle);
}

DOUBLE_EXPORT int cuMemUnmap(uint64_t at, size_t bytes)
{
	CALL(552, (void)at);
}

DOUBLE_EXPORT int cuMemGetInfo_v2(size_t *left, size_t *all)
{
	CALL(242, *left = memory_free_bytes(device_current); *all = memory_all());
}

DOUBLE_EXPORT int cuMemAllocHost_v2(void **p, size_t bytes)
{
	CALL(294, *p = device_alloc_pinned(bytes));
}

DOUBLE_EXPORT int cuMemHostAlloc(void **p, size_t bytes, uint32_t flags)
{
	CALL(39, *p = device_alloc_pinned(bytes));
}

DOUBLE_EXPORT int cuMemFreeHost(void *p)
{
	CALL(38, device_free_pinned(p));
}

DOUBLE_EXPORT int cuStreamCreate(void **s, uint32_t flags)
{
	CALL(124, *s = device_stream_new());
}

DOUBLE_EXPORT int cuStreamDestroy_v2(void *s)
{
	CALL(326, device_stream_free(s));
}

DOUBLE_EXPORT int cuStreamSynchronize(void *s)
{
	CALL(126, driver_wait(SYNC_STREAM, device_stream(s), NULL));
}

DOUBLE_EXPORT int cuCtxSynchronize(void)
{
	CALL(17, driver_wait(SYNC_CONTEXT, NULL, NULL));
}

DOUBLE_EXPORT int cuCtxSynchronize_v2(void *context)
{
	CALL(800, driver_wait(SYNC_CONTEXT, NULL, NULL));
}

DOUBLE_EXPORT int cuStreamQuery(void *s)
{
	CALL(125, result_ = driver_query(SYNC_STREAM, device_stream(s), NULL));
}

DOUBLE_EXPORT int cuEventSynchronize(struct event *e)
{
	CALL(121, driver_wait(SYNC_EVENT, NULL, e));
}

DOUBLE_EXPORT int cuStreamWaitEvent(void *s, struct event *e, uint32_t flags)
{
	CALL(295, driver_wait(SYNC_WAIT, device_stream(s), e));
}

DOUBLE_EXPORT int cuEventCreate(struct event **e, uint32_t flags)
{
	CALL(118, *e = driver_event_new());
}

DOUBLE_EXPORT int cuEventRecord(struct event *e, void *s)
{
	CALL(119, e->at = device_stream(s)->free_at);
}

DOUBLE_EXPORT int cuEventQuery(const struct event *e)
{
	CALL(120, result_ = driver_query(SYNC_EVENT, NULL, e));
}

DOUBLE_EXPORT int cuEventDestroy_v2(struct event *e)
{
	CALL(325, free(e));
}

DOUBLE_EXPORT int cuStreamBeginCapture_v2(void *s, int mode)
{
	CALL(539, device_stream(s)->capture = calloc(1, sizeof(struct graph)));
}

DOUBLE_EXPORT int cuStreamEndCapture(void *s, struct graph **g)
{
	CALL(497, *g = device_stream(s)->capture; device_stream(s)->capture = NULL);
}

DOUBLE_EXPORT int cuGraphInstantiateWithFlags(struct graph **exec, struct graph *g, uint64_t flags)
{
	CALL(643, *exec = device_graph_copy(g));
}

DOUBLE_EXPORT int cuGraphLaunch(struct graph *exec, void *s)
{
	CALL(514, device_graph_run(device_stream(s), exec));
}

DOUBLE_EXPORT int cuGraphExecDestroy(struct graph *exec)
{
	CALL(516, device_graph_free(exec));
}

DOUBLE_EXPORT int cuGraphDestroy(struct graph *g)
{
	CALL(517, device_graph_free(g));
}

DOUBLE_EXPORT int cuDriverGetVersion(int *v)
{
	*v = (int)double_number("driver", 13000, 13000);
	return 0;
}

DOUBLE_EXPORT int cuDeviceGetCount(int *n)
{
	int err = driver_ready();

	*n = (int)double_number("devices", 1, 1);
	return err;
}

DOUBLE_EXPORT int cuDeviceGet(int *device, int i)
{
	int err = driver_ready();

	*device = i;
	return err ? err : i < (int)double_number("devices", 1, 1) ? 0 : CUDA_INVALID_DEVICE;
}

DOUBLE_EXPORT int cuDeviceGetName(char *name, int bytes, int device)
{
	snprintf(name, (size_t)bytes, "Mock H200 %d", driver_place(device));
	return driver_ready();
}

/* As nvml.c has it. */
DOUBLE_EXPORT int cuDeviceGetUuid(uint8_t uuid[16], int device)
{
	memset(uuid, 0, 16);
	uuid[3] = uuid[15] = (uint8_t)driver_place(device);
	uuid[6] = 0x40;
	return driver_ready();
}

/* With MXBPF_DOUBLE=instance=N each device is the instance N of its GPU. */
DOUBLE_EXPORT int cuDeviceGetUuid_v2(uint8_t uuid[16], int device)
{
	const int err = cuDeviceGetUuid(uuid, device);

	uuid[0] = (uint8_t)double_number("instance", 1, 0);
	return err;
}

DOUBLE_EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	*bytes = memory_all();
	return driver_ready();
}

DOUBLE_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	*value = driver_attribute(attribute, device);
	return driver_ready();
}

DOUBLE_EXPORT int cuCtxGetCurrent(void **context)
{
	*context = driver_context();
	return driver_ready();
}

DOUBLE_EXPORT int cuCtxGetDevice(int *device)
{
	*device = (int)device_current;
	return driver_ready();
}

/* The real one has a callback, too, but the mock's clients do not look at it. */
DOUBLE_EXPORT int cuStreamIsCapturing(void *s, int *status)
{
	*status = device_stream(s)->capture != NULL;
	return driver_ready();
}

DOUBLE_EXPORT int cuCtxSetCurrent(void *context)
{
	return driver_ready();
}

DOUBLE_EXPORT int cuDevicePrimaryCtxGetState(int device, uint32_t *flags, int *active)
{
	*flags = 0;
	*active = 1;
	return 0;
}

DOUBLE_EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
	return cuCtxGetCurrent(context);
}

/* A module is the name of its only function: the mock runs no code. */
DOUBLE_EXPORT int cuModuleLoadData(void **module, const void *image)
{
	static const char entry[] = ".entry ";
	const char *name = strstr(image, entry);

	*module = name ? strndup(name + strlen(entry), strcspn(name + strlen(entry), "(")) : NULL;
	return name ? driver_ready() : CUDA_NOT_FOUND;
}

DOUBLE_EXPORT int cuModuleGetFunction(struct double_function **f, const char *module, const char *name)
{
	if (strcmp(module, name))
		return CUDA_NOT_FOUND;
	*f = double_function(name);
	return driver_ready();
}

DOUBLE_EXPORT int cuGetErrorName(int error, const char **name)
{
	*name = error ? "CUDA_ERROR_OF_DOUBLE" : "CUDA_SUCCESS";
	return 0;
}

DOUBLE_EXPORT int cuGetErrorString(int error, const char **text)
{
	*text = error ? "an error of the GPU double" : "no error";
	return 0;
}

DOUBLE_EXPORT int cuGetProcAddress_v2(const char *name, void **f, int version, uint64_t flags, int *status)
{
	static const char *const endings[] = {"_v2", ""};
	char full[128];
	unsigned i;

	*f = NULL;
	for (i = 0; i < 2 && !*f; i++) {
		snprintf(full, sizeof(full), "%s%s", name, endings[i]);
		*f = dlsym(driver_self(), full);
	}
	if (status)
		*status = *f ? 0 : 1; /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
	return *f ? 0 : CUDA_NOT_FOUND;
}

DOUBLE_EXPORT int cuGetProcAddress(const char *name, void **f, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, f, version, flags, NULL);
}
