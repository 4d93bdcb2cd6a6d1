// SPDX-License-Identifier: Apache-2.0
/*
 * NCCL, and what PyTorch's process groups call of the CUDA runtime. It is preloaded into a real PyTorch for CUDA, so
 * that both of its classes ProcessGroupNCCL run without a GPU. Memory of the device is that of the process. Nothing is
 * computed. A collective lasts until all ranks of its communicator have called it, and so does what follows it on its
 * stream. The ranks meet in files of the directory MXBPF_DOUBLE_NCCL.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "double.h"

#define NOT_READY 600 /* cudaErrorNotReady */
#define COMMS	  16  /* that one stream can wait for */
#define RANKS_MAX 64
#define VERSION	  22900

struct comm {
	uint64_t id;
	unsigned stream; /* of libgpuops.so */
	int rank, ranks;
	uint32_t *calls; /* of each rank, shared by all ranks */
};

/* A stream or an event waits until each rank has made this number of calls in a communicator. */
struct after {
	struct {
		struct comm *comm;
		uint32_t calls;
	} of[COMMS];
};

struct id {
	char text[128];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct after legacy;    /* the default stream */
static struct after of_device; /* all streams */

static struct after *of_stream(void *stream)
{
	return stream ? stream : &legacy;
}

static void add(struct after *to, struct comm *comm, uint32_t calls)
{
	int i;

	for (i = 0; i < COMMS && to->of[i].comm && to->of[i].comm != comm; i++)
		;
	if (i == COMMS)
		abort();
	to->of[i].comm = comm;
	if (to->of[i].calls < calls)
		to->of[i].calls = calls;
}

static void join(struct after *to, const struct after *from)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < COMMS && from->of[i].comm; i++)
		add(to, from->of[i].comm, from->of[i].calls);
	pthread_mutex_unlock(&lock);
}

/* Returns the counter of a rank that has not come yet, and what it is; NULL: all have. */
static uint32_t *missing(const struct after *a, uint32_t *seen)
{
	for (int i = 0; i < COMMS && a->of[i].comm; i++)
		for (int rank = 0; rank < a->of[i].comm->ranks; rank++) {
			*seen = __atomic_load_n(&a->of[i].comm->calls[rank], __ATOMIC_ACQUIRE);
			if (*seen < a->of[i].calls)
				return &a->of[i].comm->calls[rank];
		}
	return NULL;
}

static int wait_for(const struct after *a)
{
	uint32_t *word, seen;

	while ((word = missing(a, &seen)))
		syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
	return 0;
}

static int query(const struct after *a)
{
	uint32_t seen;

	return missing(a, &seen) ? NOT_READY : 0;
}

/* The runtime. */

#define GIVES(name, ...)                                                                                               \
	DOUBLE_EXPORT int name(__VA_ARGS__);                                                                           \
	int name(__VA_ARGS__)

GIVES(cudaGetDeviceCount, int *n)
{
	*n = 1;
	return 0;
}

GIVES(cudaGetDevice, int *device)
{
	*device = 0;
	return 0;
}

GIVES(cudaSetDevice, int device)
{
	return device ? 101 : 0;
}

GIVES(cudaDriverGetVersion, int *version)
{
	*version = 13000;
	return 0;
}

GIVES(cudaRuntimeGetVersion, int *version)
{
	*version = 13000;
	return 0;
}

GIVES(cudaGetDeviceProperties, void *prop, int device)
{
	static const int capability[] = {9, 0};
	const size_t memory = 1ul << 30;

	memset(prop, 0, 512);
	strcpy(prop, "double");
	memcpy((char *)prop + 288, &memory, sizeof(memory));
	memcpy((char *)prop + 360, capability, sizeof(capability));
	return 0;
}

GIVES(cudaDeviceGetAttribute, int *value, int attribute, int device)
{
	*value = 0;
	return 0;
}

GIVES(cudaDeviceGetStreamPriorityRange, int *least, int *greatest)
{
	*least = *greatest = 0;
	return 0;
}

GIVES(cudaMemGetInfo, size_t *left, size_t *all)
{
	*left = *all = 1ul << 30;
	return 0;
}

GIVES(cudaMalloc, void **p, size_t bytes)
{
	*p = aligned_alloc(512, (bytes + 511) & ~511ul);
	return *p ? 0 : 2;
}

GIVES(cudaFree, void *p)
{
	free(p);
	return 0;
}

GIVES(cudaStreamCreateWithPriority, void **stream, unsigned flags, int priority)
{
	*stream = calloc(1, sizeof(struct after));
	return *stream ? 0 : 2;
}

GIVES(cudaStreamCreateWithFlags, void **stream, unsigned flags)
{
	return cudaStreamCreateWithPriority(stream, flags, 0);
}

GIVES(cudaStreamDestroy, void *stream)
{
	return 0;
}

GIVES(cudaStreamIsCapturing, void *stream, int *status)
{
	*status = 0;
	return 0;
}

GIVES(cudaStreamGetCaptureInfo, void *stream, int *status)
{
	*status = 0;
	return 0;
}

GIVES(cudaThreadExchangeStreamCaptureMode, int *mode)
{
	return 0;
}

GIVES(cudaEventCreateWithFlags, void **event, unsigned flags)
{
	*event = calloc(1, sizeof(struct after));
	return *event ? 0 : 2;
}

GIVES(cudaEventDestroy, void *event)
{
	free(event);
	return 0;
}

GIVES(cudaEventRecord, void *event, void *stream)
{
	memset(event, 0, sizeof(struct after));
	join(event, of_stream(stream));
	return 0;
}

GIVES(cudaEventRecordWithFlags, void *event, void *stream, unsigned flags)
{
	return cudaEventRecord(event, stream);
}

GIVES(cudaEventQuery, void *event)
{
	return query(event);
}

GIVES(cudaEventSynchronize, void *event)
{
	return wait_for(event);
}

GIVES(cudaEventElapsedTime, float *ms, void *first, void *last)
{
	*ms = 1;
	return 0;
}

GIVES(cudaStreamWaitEvent, void *stream, void *event, unsigned flags)
{
	join(of_stream(stream), event);
	return 0;
}

GIVES(cudaStreamQuery, void *stream)
{
	return query(of_stream(stream));
}

GIVES(cudaStreamSynchronize, void *stream)
{
	return wait_for(of_stream(stream));
}

GIVES(cudaDeviceSynchronize, void)
{
	return wait_for(&of_device);
}

GIVES(cudaMemcpyAsync, void *to, const void *from, size_t bytes, int kind, void *stream)
{
	memcpy(to, from, bytes);
	return 0;
}

GIVES(cudaMemsetAsync, void *at, int value, size_t bytes, void *stream)
{
	memset(at, value, bytes);
	return 0;
}

GIVES(cudaGetLastError, void)
{
	return 0;
}

GIVES(cudaPeekAtLastError, void)
{
	return 0;
}

/*
 * NCCL. A program that has libgpuops.so and the ranges of NCCL (tests/nvtx/nccl.c) gives their functions, and says when
 * the kernels end that it launches next.
 */

static struct {
	void (*start)(void);
	void (*init)(uint64_t comm, int ranks, int rank);
	int (*push)(const char *name, uint64_t comm, size_t bytes, int first, int second);
	void (*pop)(void);
	uint64_t (*launch)(const char *kernel, uint64_t ns, unsigned stream);
} use;
DOUBLE_EXPORT uint64_t nccl_double_end_ns;

DOUBLE_EXPORT void nccl_double_use(void *const functions[5]);
void nccl_double_use(void *const functions[5])
{
	memcpy(&use, functions, sizeof(use));
	use.start();
}

static void run(const char *call, const char *kernel, size_t bytes, int first, const struct comm *c)
{
	const uint64_t now = double_now();

	if (!use.launch)
		return;
	use.push(call, c->id, bytes, first, 0);
	use.launch(kernel, nccl_double_end_ns > now + 1000000 ? nccl_double_end_ns - now : 1000000, c->stream);
	use.pop();
}

GIVES(ncclGetVersion, int *version)
{
	*version = VERSION;
	return 0;
}

GIVES(ncclGetUniqueId, struct id *id)
{
	static unsigned n;

	snprintf(id->text, sizeof(id->text), "comm-%d-%u", getpid(), __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED));
	return 0;
}

GIVES(ncclCommInitRankConfig, struct comm **out, int ranks, struct id id, int rank, void *config)
{
	static unsigned comms;
	const size_t bytes = RANKS_MAX * sizeof(uint32_t);
	const char *dir = getenv("MXBPF_DOUBLE_NCCL");
	struct comm *c = calloc(1, sizeof(*c));
	char path[4096];
	int fd, i;

	id.text[sizeof(id.text) - 1] = '\0';
	snprintf(path, sizeof(path), "%s/%s", dir ? dir : ".", id.text);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (!c || ranks > RANKS_MAX || fd < 0 || ftruncate(fd, (off_t)bytes))
		return 2; /* ncclSystemError */
	c->calls = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (c->calls == MAP_FAILED)
		return 2;
	c->rank = rank;
	c->ranks = ranks;
	c->stream = __atomic_add_fetch(&comms, 1, __ATOMIC_RELAXED);
	for (i = 0; id.text[i]; i++)
		c->id = c->id * 31 + (uint8_t)id.text[i];
	if (use.init)
		use.init(c->id, ranks, rank);
	*out = c;
	return 0;
}

GIVES(ncclCommInitRank, struct comm **out, int ranks, struct id id, int rank)
{
	return ncclCommInitRankConfig(out, ranks, id, rank, NULL);
}

GIVES(ncclCommGetAsyncError, struct comm *c, int *error)
{
	*error = 0;
	return 0;
}

GIVES(ncclCommCount, struct comm *c, int *n)
{
	*n = c->ranks;
	return 0;
}

GIVES(ncclCommUserRank, struct comm *c, int *rank)
{
	*rank = c->rank;
	return 0;
}

static int collective(struct comm *c, void *stream)
{
	uint32_t *calls = &c->calls[c->rank], n = __atomic_add_fetch(calls, 1, __ATOMIC_RELEASE);

	pthread_mutex_lock(&lock);
	add(of_stream(stream), c, n);
	add(&of_device, c, n);
	pthread_mutex_unlock(&lock);
	syscall(SYS_futex, calls, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	return 0;
}

GIVES(ncclAllReduce, const void *from, void *to, size_t n, int type, int op, struct comm *c, void *stream)
{
	run("ncclAllReduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 4 * n, op, c);
	return collective(c, stream);
}

GIVES(ncclBroadcast, const void *from, void *to, size_t n, int type, int root, struct comm *c, void *stream)
{
	run("ncclBroadcast", "ncclDevKernel_Broadcast_RING_LL", 4 * n, root, c);
	return collective(c, stream);
}

GIVES(ncclBcast, void *at, size_t n, int type, int root, struct comm *c, void *stream)
{
	return ncclBroadcast(at, at, n, type, root, c, stream);
}

GIVES(ncclAllGather, const void *from, void *to, size_t n, int type, struct comm *c, void *stream)
{
	run("ncclAllGather", "ncclDevKernel_AllGather_RING_LL", 4 * n, 0, c);
	return collective(c, stream);
}

/* Those that succeed without doing anything. */
#define NOTHING(name)                                                                                                  \
	DOUBLE_EXPORT int name(void);                                                                                  \
	int name(void)                                                                                                 \
	{                                                                                                              \
		return 0;                                                                                              \
	}
NOTHING(ncclGroupStart)
NOTHING(ncclGroupEnd)
NOTHING(ncclCommDestroy)
NOTHING(ncclCommAbort)
NOTHING(ncclCommFinalize)
NOTHING(ncclCommRegister)
NOTHING(ncclCommDeregister)

/* PyTorch imports these from the mock of CUPTI, which does not have them. */
NOTHING(cuptiActivityEnableCudaEventDeviceTimestamps)
NOTHING(cuptiActivityPopExternalCorrelationId)
NOTHING(cuptiActivityPushExternalCorrelationId)
