// SPDX-License-Identifier: Apache-2.0
/* The gate of CUPTI's mock: attaches it to libcuda, checks that it may be called, fails on demand, writes the log. */
#include "gate.h"
#include "collect.h"
#include "replay.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>

#ifndef DEFAULT_VERSION
#define DEFAULT_VERSION 130001
#endif

struct options options;
struct double_account *account;
uint32_t version = DEFAULT_VERSION;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int (*initialised)(void);
static int log_fd = -1;
static bool misbehaves; /* MXBPF_DOUBLE is set */

static const struct double_hooks hooks = {
	.enter = cupti_enter, .leave = cupti_leave, .op = cupti_op, .forked = collect_forked, .node = cupti_node};

/* Words for errors that a machine or another tool causes, and the function that returns them. */
static const struct {
	const char *word, *function;
	int result;
} causes[] = {
	{"permissions", "cuptiActivityEnable", 35},
	{"permissions-virtual", "cuptiActivityEnable", 40},
	{"virtual", "cuptiActivityEnable", 33},
	{"mig", "cuptiActivityEnable", 43},
	{"mps", "cuptiActivityEnable", 31},
	{"confidential", "cuptiActivityEnable", 41},
	{"cmp", "cuptiActivityEnable", 42},
	{"sli", "cuptiActivityEnable", 44},
	{"wsl", "cuptiActivityEnable", 45},
	{"compute-sanitizer", "cuptiSubscribe", 39},
	{"other-tool", "cuptiSubscribe", 39},
	{"old-profiler", "cuptiActivityEnable", 36},
	{"legacy-device", "cuptiActivityEnable", 38},
	{"version", "cuptiSubscribe", 34},
	{"incompatible", "cuptiActivityEnable", 14},
	{"not-supported", "cuptiActivityEnable", 27},
	{"hardware-busy", "cuptiActivityEnable", 26},
	{"out-of-memory", "cuptiActivityEnable", 8},
	{"not-initialized", "cuptiSubscribe", 15},
	{"unknown", "cuptiSubscribe", 999},
	{"no-privilege-subscribe", "cuptiSubscribe", 35},
};

static const struct {
	uint32_t domain, cbid;
	const char *name;
} cbids[] = {
	{DOUBLE_RUNTIME, 3, "cudaGetDeviceCount_v3020"},
	{DOUBLE_RUNTIME, 10, "cudaGetLastError_v3020"},
	{DOUBLE_RUNTIME, 11, "cudaPeekAtLastError_v3020"},
	{DOUBLE_RUNTIME, 16, "cudaSetDevice_v3020"},
	{DOUBLE_RUNTIME, 17, "cudaGetDevice_v3020"},
	{DOUBLE_RUNTIME, 20, "cudaMalloc_v3020"},
	{DOUBLE_RUNTIME, 22, "cudaFree_v3020"},
	{DOUBLE_RUNTIME, 25, "cudaMallocHost_v3020"},
	{DOUBLE_RUNTIME, 26, "cudaFreeHost_v3020"},
	{DOUBLE_RUNTIME, 27, "cudaHostAlloc_v3020"},
	{DOUBLE_RUNTIME, 31, "cudaMemcpy_v3020"},
	{DOUBLE_RUNTIME, 41, "cudaMemcpyAsync_v3020"},
	{DOUBLE_RUNTIME, 49, "cudaMemset_v3020"},
	{DOUBLE_RUNTIME, 51, "cudaMemsetAsync_v3020"},
	{DOUBLE_RUNTIME, 129, "cudaStreamCreate_v3020"},
	{DOUBLE_RUNTIME, 131, "cudaStreamSynchronize_v3020"},
	{DOUBLE_RUNTIME, 132, "cudaStreamQuery_v3020"},
	{DOUBLE_RUNTIME, 133, "cudaEventCreate_v3020"},
	{DOUBLE_RUNTIME, 134, "cudaEventCreateWithFlags_v3020"},
	{DOUBLE_RUNTIME, 135, "cudaEventRecord_v3020"},
	{DOUBLE_RUNTIME, 136, "cudaEventDestroy_v3020"},
	{DOUBLE_RUNTIME, 137, "cudaEventSynchronize_v3020"},
	{DOUBLE_RUNTIME, 138, "cudaEventQuery_v3020"},
	{DOUBLE_RUNTIME, 147, "cudaStreamWaitEvent_v3020"},
	{DOUBLE_RUNTIME, 161, "cudaMemcpyPeerAsync_v4000"},
	{DOUBLE_RUNTIME, 165, "cudaDeviceSynchronize_v3020"},
	{DOUBLE_RUNTIME, 198, "cudaStreamCreateWithFlags_v5000"},
	{DOUBLE_RUNTIME, 201, "cudaStreamDestroy_v5050"},
	{DOUBLE_RUNTIME, 211, "cudaLaunchKernel_v7000"},
	{DOUBLE_RUNTIME, 311, "cudaGraphLaunch_v10000"},
	{DOUBLE_RUNTIME, 313, "cudaGraphExecDestroy_v10000"},
	{DOUBLE_RUNTIME, 314, "cudaGraphDestroy_v10000"},
	{DOUBLE_RUNTIME, 315, "cudaStreamBeginCapture_v10000"},
	{DOUBLE_RUNTIME, 317, "cudaStreamIsCapturing_v10000"},
	{DOUBLE_RUNTIME, 319, "cudaStreamEndCapture_v10000"},
	{DOUBLE_RUNTIME, 373, "cudaMallocAsync_v11020"},
	{DOUBLE_RUNTIME, 375, "cudaFreeAsync_v11020"},
	{DOUBLE_RUNTIME, 430, "cudaLaunchKernelExC_v11060"},
	{DOUBLE_RUNTIME, 443, "cudaGraphInstantiate_v12000"},
	{DOUBLE_DRIVER, 17, "cuCtxSynchronize"},
	{DOUBLE_DRIVER, 38, "cuMemFreeHost"},
	{DOUBLE_DRIVER, 39, "cuMemHostAlloc"},
	{DOUBLE_DRIVER, 118, "cuEventCreate"},
	{DOUBLE_DRIVER, 119, "cuEventRecord"},
	{DOUBLE_DRIVER, 120, "cuEventQuery"},
	{DOUBLE_DRIVER, 121, "cuEventSynchronize"},
	{DOUBLE_DRIVER, 124, "cuStreamCreate"},
	{DOUBLE_DRIVER, 125, "cuStreamQuery"},
	{DOUBLE_DRIVER, 126, "cuStreamSynchronize"},
	{DOUBLE_DRIVER, 216, "cuMemsetD8Async"},
	{DOUBLE_DRIVER, 220, "cuMemsetD32Async"},
	{DOUBLE_DRIVER, 242, "cuMemGetInfo_v2"},
	{DOUBLE_DRIVER, 243, "cuMemAlloc_v2"},
	{DOUBLE_DRIVER, 245, "cuMemFree_v2"},
	{DOUBLE_DRIVER, 249, "cuMemsetD8_v2"},
	{DOUBLE_DRIVER, 276, "cuMemcpyHtoD_v2"},
	{DOUBLE_DRIVER, 277, "cuMemcpyHtoDAsync_v2"},
	{DOUBLE_DRIVER, 278, "cuMemcpyDtoH_v2"},
	{DOUBLE_DRIVER, 279, "cuMemcpyDtoHAsync_v2"},
	{DOUBLE_DRIVER, 280, "cuMemcpyDtoD_v2"},
	{DOUBLE_DRIVER, 281, "cuMemcpyDtoDAsync_v2"},
	{DOUBLE_DRIVER, 294, "cuMemAllocHost_v2"},
	{DOUBLE_DRIVER, 295, "cuStreamWaitEvent"},
	{DOUBLE_DRIVER, 306, "cuMemcpyAsync"},
	{DOUBLE_DRIVER, 307, "cuLaunchKernel"},
	{DOUBLE_DRIVER, 319, "cuMemcpyPeerAsync"},
	{DOUBLE_DRIVER, 325, "cuEventDestroy_v2"},
	{DOUBLE_DRIVER, 326, "cuStreamDestroy_v2"},
	{DOUBLE_DRIVER, 477, "cuLaunchCooperativeKernel"},
	{DOUBLE_DRIVER, 497, "cuStreamEndCapture"},
	{DOUBLE_DRIVER, 514, "cuGraphLaunch"},
	{DOUBLE_DRIVER, 516, "cuGraphExecDestroy"},
	{DOUBLE_DRIVER, 517, "cuGraphDestroy"},
	{DOUBLE_DRIVER, 539, "cuStreamBeginCapture_v2"},
	{DOUBLE_DRIVER, 549, "cuMemCreate"},
	{DOUBLE_DRIVER, 550, "cuMemRelease"},
	{DOUBLE_DRIVER, 551, "cuMemMap"},
	{DOUBLE_DRIVER, 552, "cuMemUnmap"},
	{DOUBLE_DRIVER, 598, "cuMemAllocAsync"},
	{DOUBLE_DRIVER, 600, "cuMemFreeAsync"},
	{DOUBLE_DRIVER, 643, "cuGraphInstantiateWithFlags"},
	{DOUBLE_DRIVER, 652, "cuLaunchKernelEx"},
	{DOUBLE_DRIVER, 800, "cuCtxSynchronize_v2"},
};

const char *gate_cbid(uint32_t domain, uint32_t cbid)
{
	size_t i;

	for (i = 0; i < sizeof(cbids) / sizeof(cbids[0]); i++)
		if (cbids[i].domain == domain && cbids[i].cbid == cbid)
			return cbids[i].name;
	return NULL;
}

static void read_options(void)
{
	const char *v = getenv("MXBPF_DOUBLE_VERSION"), *path = getenv("MXBPF_DOUBLE_LOG");
	const char *tape = getenv("MXBPF_DOUBLE_TAPE");

	if (tape && *tape)
		version = replay_open(tape);
	if (v && *v)
		version = (uint32_t)strtoul(v, NULL, 10);
	if (path && *path)
		log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	misbehaves = getenv("MXBPF_DOUBLE") != NULL;
	options.drop = (uint64_t)double_number("drop", 10, 0);
	options.zero = (uint64_t)double_number("zero", 10, 0);
	options.early = (uint64_t)double_number("early", 10, 0);
	options.no_name = (uint64_t)double_number("no-name", 10, 0);
	options.lose = (uint64_t)double_number("lose", 10, 0);
	options.lose_calls = (uint64_t)double_number("lose-calls", 10, 0);
	options.spoil = (uint64_t)double_number("spoil", 20e6, 0);
	options.drift_ppm = double_number("drift", 100, 0);
	options.step_ns = (int64_t)double_number("step", 1e9, 0);
	options.step_after_ns = (uint64_t)(double_number("step-after", 1, 1) * 1e9);
	options.base_ns = (uint64_t)(int64_t)double_number("base", -1e14, 0);
	options.late = double_option("late") != NULL;
	options.at_exit = double_option("at-exit") != NULL;
	options.lost_at_exit = double_option("lost-at-exit") != NULL;
	options.reuse_names = double_option("reuse-names") != NULL;
	options.lock_order = double_option("lock-order") != NULL;
}

static void prepare(void)
{
	read_options();
	clock_start();
}

/* Finds libcuda and attaches to it. */
static void attach(const char *function)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	struct double_account *(*account_of)(void);

	if (!cuda)
		double_abort("before-cuinit", "%s was called, but the process has no libcuda.so.1", function);
	initialised = (int (*)(void))dlsym(cuda, "double_initialised");
	account_of = (struct double_account * (*)(void)) dlsym(cuda, "double_account");
	if (!initialised || !account_of)
		double_abort("libcuda", "%s was called beside a libcuda.so.1 that is not of the mock", function);
	account = account_of();
}

static void use(const char *function)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*attach_hooks)(const struct double_hooks *) =
		(int (*)(const struct double_hooks *))dlsym(cuda, "double_attach");

	if (attach_hooks(&hooks))
		double_abort("two-libraries", "%s of a second libcupti was called in this process", function);
}

static int failure_of(const char *function)
{
	size_t i;
	int err;

	if (!misbehaves)
		return 0;
	err = (int)double_number(function, 999, 0);

	for (i = 0; !err && i < sizeof(causes) / sizeof(causes[0]); i++)
		if (!strncmp(causes[i].function, function, strlen(causes[i].function)) &&
		    strstr(function, "Subscribe") && double_option(causes[i].word))
			err = causes[i].result;
	return err;
}

int gate_failure_of_kind(int kind)
{
	char word[40];
	size_t i;
	int err;

	snprintf(word, sizeof(word), "enable-%d", kind);
	err = (int)double_number(word, 999, 0);
	for (i = 0; !err && i < sizeof(causes) / sizeof(causes[0]); i++)
		if (!strcmp(causes[i].function, "cuptiActivityEnable") && double_option(causes[i].word))
			err = causes[i].result;
	return err;
}

int gate_enter(const char *function)
{
	pthread_once(&once, prepare);
	if (!initialised)
		attach(function);
	switch (initialised()) {
	case 0:
		double_abort("before-cuinit", "%s was called before cuInit()", function);
	case -1:
		return CUPTI_NOT_INITIALIZED; /* CUDA is torn down */
	case -2:
		double_abort("fork", "%s was called in a child of the process that uses CUDA", function);
	}
	if (!strncmp(function, "cuptiSubscribe", 14) || !strncmp(function, "cuptiActivityEnable", 19))
		use(function);
	return failure_of(function);
}

void gate_log(const char *function, const char *args, int result, uint64_t began)
{
	char line[300], code[16] = "";
	int n;

	if (log_fd < 0)
		return;
	if (result >= 0)
		snprintf(code, sizeof(code), "%d", result);
	n = snprintf(line, sizeof(line), "%lu.%09lu %d %s(%s) %s\n", (unsigned long)(began / 1000000000),
		     (unsigned long)(began % 1000000000), (int)syscall(SYS_gettid), function, args, code);
	if (write(log_fd, line, (size_t)n) < 0)
		log_fd = -1;
}

/* Registered behind libcuda's handler, so it runs before CUDA is torn down. */
void gate_at_exit(void)
{
	static int registered;

	if (!__atomic_exchange_n(&registered, 1, __ATOMIC_RELAXED))
		atexit(collect_exit);
}
