// SPDX-License-Identifier: Apache-2.0
/*
 * An "operator library": what a library with CUDA kernels does on behalf of an operator. Programs call it by ctypes, so
 * that the launches happen inside real operators of PyTorch and MXNet.
 */
#include "double.h"

#include <pthread.h>
#include <stdbool.h>

#define DEVICES	   8
#define STREAMS	   16
#define GRAPHS	   16
#define SLOTS	   64
#define COPY_BYTES (64u << 20)

struct dim3 {
	uint32_t x, y, z;
};

extern int cuInit(uint32_t flags);
extern int cuLaunchKernel(struct double_function *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
			  uint32_t bz, uint32_t shared, void *stream, void **params, void **extra);
extern int cudaLaunchKernel(const void *stub, struct dim3 grid, struct dim3 block, void **args, size_t shared,
			    void *stream);
extern int cudaLaunchKernelExC(const void *config, const void *stub, void **args);
extern int cudaSetDevice(int d);
extern int cudaMalloc(void **p, size_t bytes);
extern int cudaMallocHost(void **p, size_t bytes);
extern int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
extern int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
extern int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, void *stream);
extern int cudaMemsetAsync(void *at, int value, size_t bytes, void *stream);
extern int cudaStreamCreate(void **s);
extern int cudaStreamSynchronize(void *s);
extern int cudaStreamQuery(void *s);
extern int cudaStreamIsCapturing(void *s, int *status);
extern int cudaGetLastError(void);
extern int cudaPeekAtLastError(void);
extern int cudaGetDevice(int *d);
extern int cuCtxSynchronize_v2(void *context);
extern int cudaDeviceSynchronize(void);
extern int cudaEventCreate(void **e);
extern int cudaEventRecord(void *e, void *s);
extern int cudaEventSynchronize(void *e);
extern int cudaEventQuery(void *e);
extern int cudaEventDestroy(void *e);
extern int cudaStreamWaitEvent(void *s, void *e, uint32_t flags);
extern int cudaStreamBeginCapture(void *s, int mode);
extern int cudaStreamEndCapture(void *s, void **g);
extern int cudaGraphInstantiate(void **exec, void *g, uint64_t flags);
extern int cudaGraphLaunch(void *exec, void *s);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all below */
static void *streams[DEVICES][STREAMS], *graphs[GRAPHS];
static unsigned ngraphs;
static __thread unsigned device;
static void *device_memory, *pinned_memory, *pageable_memory;

/*
 * Host functions of kernels. nvcc makes such functions with the mangled name of the kernel, and a launch through the
 * runtime names its kernel by their address.
 */
#define HOST_FUNCTION(symbol)                                                                                          \
	DOUBLE_EXPORT void symbol(void);                                                                               \
	DOUBLE_EXPORT void __attribute__((noinline)) symbol(void)                                                      \
	{                                                                                                              \
		__asm__ volatile("" ::"r"(#symbol));                                                                   \
	}
HOST_FUNCTION(_ZN6gpuops6gemm_kILi128ELi64EEEvPKfS2_Pf)
HOST_FUNCTION(_ZN6gpuops11relu_kernelEPfi)

static void register_stubs(void)
{
#define REGISTER(symbol) double_register_stub((const void *)symbol, #symbol)
	REGISTER(_ZN6gpuops6gemm_kILi128ELi64EEEvPKfS2_Pf);
	REGISTER(_ZN6gpuops11relu_kernelEPfi);
}

static void start(void)
{
	cuInit(0);
	register_stubs();
	cudaMalloc(&device_memory, COPY_BYTES);
	cudaMallocHost(&pinned_memory, COPY_BYTES);
	pageable_memory = malloc(COPY_BYTES);
}

/* Initialises CUDA and allocates memory. All other functions do it when they are first called. */
DOUBLE_EXPORT void gpuops_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
}

/* Selects the device of the calling thread. */
DOUBLE_EXPORT void gpuops_device(unsigned d)
{
	gpuops_init();
	device = d % DEVICES;
	cudaSetDevice((int)device);
}

/* Returns stream i of the thread's device; 0 is the default stream. */
static void *stream(unsigned i)
{
	gpuops_init();
	i %= STREAMS;
	pthread_mutex_lock(&lock);
	if (i && !streams[device][i])
		cudaStreamCreate(&streams[device][i]);
	pthread_mutex_unlock(&lock);
	return streams[device][i];
}

static const void *stub_of(struct double_function *f)
{
	return f->stub ? f->stub : f;
}

/* Launches a kernel of this name that lasts ns, or as long as follows from its name if ns is 0. Returns its duration.
 */
DOUBLE_EXPORT uint64_t gpuops_launch(const char *name, uint64_t ns, unsigned on)
{
	void *s = stream(on);
	struct double_function *f = double_function(name);
	struct dim3 grid = {128, 2, 1}, block = {256, 1, 1};

	double_next_ns(ns);
	return cudaLaunchKernel(stub_of(f), grid, block, NULL, 1024, s) ? 0 : ns ? ns : f->ns;
}

/* Does the same through cudaLaunchKernelExC(). */
DOUBLE_EXPORT uint64_t gpuops_launch_ex(const char *name, uint64_t ns, unsigned on)
{
	void *s = stream(on);
	struct double_function *f = double_function(name);
	const struct {
		struct dim3 grid, block;
		size_t shared;
		void *stream, *attributes;
		uint32_t nattributes;
	} config = {{64, 1, 1}, {512, 1, 1}, 0, s, NULL, 0};

	double_next_ns(ns);
	return cudaLaunchKernelExC(&config, stub_of(f), NULL) ? 0 : ns ? ns : f->ns;
}

/* Does the same through the driver, as Triton does. */
DOUBLE_EXPORT uint64_t gpuops_launch_driver(const char *name, uint64_t ns, unsigned on)
{
	void *s = stream(on);
	struct double_function *f = double_function(name);

	double_next_ns(ns);
	return cuLaunchKernel(f, 32, 1, 1, 128, 1, 1, 0, s, NULL, NULL) ? 0 : ns ? ns : f->ns;
}

/* Launches a kernel with the calls of the runtime that PyTorch makes around each launch, and a query. */
DOUBLE_EXPORT uint64_t gpuops_launch_torch(const char *name, uint64_t ns, unsigned on)
{
	uint64_t lasts;
	int i;

	cudaGetDevice(&i);
	cudaStreamIsCapturing(stream(on), &i);
	lasts = gpuops_launch(name, ns, on);
	cudaGetLastError();
	cudaPeekAtLastError();
	cudaStreamQuery(stream(on));
	return lasts;
}

struct task {
	const char *name;
	uint64_t ns;
	uint32_t stream, kernels;
};

/* Launches the kernels of a struct task; for MXEnginePushSyncND(), which calls it on a worker of MXNet's engine. */
DOUBLE_EXPORT void gpuops_task(void *context, const struct task *t)
{
	uint32_t i;

	for (i = 0; i < t->kernels; i++)
		gpuops_launch(t->name, t->ns, t->stream);
}

/* Launches n kernels of 100 ns back to back, with four names in turn. */
DOUBLE_EXPORT void gpu_burst(long n)
{
	static const char *const names[] = {"burst_a", "burst_b", "burst_c", "burst_d"};
	struct dim3 grid = {1, 1, 1}, block = {32, 1, 1};
	const void *stubs[4];
	long i;

	gpuops_init();
	for (i = 0; i < 4; i++)
		stubs[i] = double_function(names[i]);
	for (i = 0; i < n; i++) {
		double_next_ns(100);
		cudaLaunchKernel(stubs[i & 3], grid, block, NULL, 0, NULL);
	}
}

/* Copies at most 64 MiB from the host to the device or back, and waits for it if on is negative. */
DOUBLE_EXPORT int gpuops_copy(bool to_device, bool pinned, size_t bytes, int on)
{
	void *s = stream(on < 0 ? 0 : (unsigned)on), *host = pinned ? pinned_memory : pageable_memory;
	void *to = to_device ? device_memory : host, *from = to_device ? host : device_memory;

	bytes = bytes < COPY_BYTES ? bytes : COPY_BYTES;
	return on < 0 ? cudaMemcpy(to, from, bytes, to_device ? 1 : 2)
		      : cudaMemcpyAsync(to, from, bytes, to_device ? 1 : 2, s);
}

DOUBLE_EXPORT int gpuops_copy_inside(size_t bytes, unsigned on)
{
	void *s = stream(on);

	return cudaMemcpyAsync(device_memory, device_memory, bytes, 3, s);
}

DOUBLE_EXPORT int gpuops_copy_peer(size_t bytes, unsigned on)
{
	void *s = stream(on);

	return cudaMemcpyPeerAsync(device_memory, 1, device_memory, 0, bytes, s);
}

DOUBLE_EXPORT int gpuops_set(size_t bytes, unsigned on)
{
	void *s = stream(on);

	return cudaMemsetAsync(device_memory, 0, bytes, s);
}

DOUBLE_EXPORT int gpuops_sync_stream(unsigned on)
{
	return cudaStreamSynchronize(stream(on));
}

DOUBLE_EXPORT int gpuops_sync(void)
{
	gpuops_init();
	return cudaDeviceSynchronize();
}

DOUBLE_EXPORT int gpuops_query(unsigned on)
{
	return cudaStreamQuery(stream(on));
}

DOUBLE_EXPORT int gpuops_query_event(unsigned on)
{
	void *s = stream(on), *e;
	int err;

	cudaEventCreate(&e);
	cudaEventRecord(e, s);
	err = cudaEventQuery(e);
	cudaEventDestroy(e);
	return err;
}

/* Waits as the headers of CUDA 13 do. */
DOUBLE_EXPORT int gpuops_sync_driver(void)
{
	gpuops_init();
	return cuCtxSynchronize_v2(NULL);
}

DOUBLE_EXPORT int gpuops_sync_event(unsigned on)
{
	void *s = stream(on), *e;
	int err;

	cudaEventCreate(&e);
	cudaEventRecord(e, s);
	err = cudaEventSynchronize(e);
	cudaEventDestroy(e);
	return err;
}

/* Lets a stream of the thread's device wait for what the default stream of another device has to do. */
DOUBLE_EXPORT int gpuops_wait_for_device(unsigned on, unsigned other)
{
	const unsigned mine = device;
	void *e;
	int err;

	gpuops_device(other);
	cudaEventCreate(&e);
	cudaEventRecord(e, NULL);
	gpuops_device(mine);
	err = cudaStreamWaitEvent(stream(on), e, 0);
	cudaEventDestroy(e);
	return err;
}

/* Begins to record what is launched on a stream as a graph. */
DOUBLE_EXPORT void gpuops_capture_begin(unsigned on)
{
	cudaStreamBeginCapture(stream(on), 0);
}

/* Ends that. Returns the number of the graph for gpuops_graph_launch(), or -1 if there are too many. */
DOUBLE_EXPORT int gpuops_capture_end(unsigned on)
{
	void *g = NULL, *exec = NULL;
	int i = -1;

	cudaStreamEndCapture(stream(on), &g);
	cudaGraphInstantiate(&exec, g, 0);
	pthread_mutex_lock(&lock);
	if (ngraphs < GRAPHS) {
		i = (int)ngraphs++;
		graphs[i] = exec;
	}
	pthread_mutex_unlock(&lock);
	return i;
}

DOUBLE_EXPORT int gpuops_graph_launch(int graph, unsigned on)
{
	return cudaGraphLaunch(graphs[graph], stream(on));
}
