// SPDX-License-Identifier: Apache-2.0
/*
 * A small CUPTI client for facts.py, which loads it into its own process with ctypes. It needs no header and links
 * only against libc; it finds the libcupti that the process has mapped. Only facts.py uses it, with one process per
 * check.
 *
 * The offsets in records are valid for all versions of the structures from CUDA 11.0 to 13.4. Every function that
 * returns int returns CUPTI's result code, or -1 if libcupti lacks the function.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KINDS_MAX	      64
#define THREADS_MAX	      16
#define GAPS_MAX	      4
#define KEPT_MAX	      65536
#define SUBSCRIBER_NAME_BYTES 128
#define TAPE_NAMES	      4096
#define CBIDS		      1024 /* the driver of CUDA 13 has about 800 */
#define MAX_LIMIT_REACHED     12   /* CUPTI_ERROR_MAX_LIMIT_REACHED: the regular end of a buffer */

enum { DRIVER = 4, RUNTIME = 5, KERNEL = 10 }; /* CUpti_ActivityKind */
enum { DOMAIN_RUNTIME = 2, API_EXIT = 1 };

/* facts.py has the same structure. Times are in ns; those in records are on CUPTI's clock. */
struct facts_seen {
	uint64_t records[KINDS_MAX];   /* by kind */
	uint64_t bytes[KINDS_MAX];     /* size of the kind's last record that was followed by another one */
	uint64_t requested, completed; /* numbers of buffers */
	uint64_t valid_bytes, dropped;
	uint64_t zero_times;	   /* kernels whose start or end is 0 */
	uint64_t early_kernels;	   /* kernels that begin before the API call with their correlation id */
	uint64_t unjoined_kernels; /* kernels without such a call */
	uint64_t absurd_kernels;   /* kernels more than a minute away from CUPTI's current time */
	uint64_t graph_kernels;	   /* kernels with a graph node */
	uint64_t timestamp_calls;
	uint64_t first_kernel_start, last_kernel_end, first_api_start, last_api_end;
	uint32_t api_thread[THREADS_MAX];			      /* distinct thread ids in API records */
	uint32_t request_tid[THREADS_MAX], complete_tid[THREADS_MAX]; /* distinct gettid() in the callbacks */
	uint32_t api_pid, pad;
	uint64_t cbid_calls[2][CBIDS]; /* API records by cbid, of the runtime and of the driver */
	uint64_t cbids_beyond;	       /* API records whose cbid has no room there */
	uint64_t unreadable;	       /* buffers whose end CUPTI refuses to read, as behind an incomplete record */
	uint64_t unreadable_bytes;
};

struct api {
	uint32_t correlation;
	uint64_t start;
};

struct subscriber_params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_size;
	uint8_t multiple;
	uint8_t pad[7];
};

int facts_launch(long n, uint64_t ns, void *stream);

static struct facts_seen seen;
static struct api *apis, *kernels;
static size_t napis, nkernels;
static size_t buffer_bytes = 1 << 20;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *cupti, *subscriber;
static char path[1024];
static volatile int finalize_wanted, finalize_result = -1;
static int offset_clock;
static FILE *tape;
static int launch_by_runtime;

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int find_cupti(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	if (!name || strncmp(name, "/libcupti.so", 12))
		return 0;
	snprintf(path, sizeof(path), "%s", info->dlpi_name);
	return 1;
}

/* Returns the path of the mapped libcupti, or NULL. The path stays valid. */
const char *facts_open(const char *bring)
{
	if (!dl_iterate_phdr(find_cupti, NULL) && bring && *bring)
		snprintf(path, sizeof(path), "%s", bring);
	cupti = *path ? dlopen(path, RTLD_NOW) : NULL;
	return cupti ? path : NULL;
}

#include "double/tape.h"

#define CALL(name, type, ...)                                                                                          \
	({                                                                                                             \
		int(*f) type = (int(*) type)dlsym(cupti, #name);                                                       \
		f ? f(__VA_ARGS__) : -1;                                                                               \
	})

int facts_has(const char *name)
{
	return dlsym(cupti, name) != NULL;
}

uint32_t facts_version(void)
{
	uint32_t v = 0;

	CALL(cuptiGetVersion, (uint32_t *), &v);
	return v;
}

/*
 * NVIDIA requires cuptiFinalize() to be called at the exit of a CUDA call. The first field of the callback data tells
 * if this is an entry or an exit.
 */
static void on_callback(void *data, int domain, uint32_t id, const void *info)
{
	if (*(const int *)info != API_EXIT || !__atomic_exchange_n(&finalize_wanted, 0, __ATOMIC_ACQ_REL))
		return;
	finalize_result = CALL(cuptiFinalize, (void));
}

int facts_subscribe(void)
{
	return CALL(cuptiSubscribe, (void **, void *, void *), &subscriber, (void *)on_callback, NULL);
}

/* Writes the name of the current subscriber into `holder`, which has SUBSCRIBER_NAME_BYTES bytes. */
int facts_subscribe_v2(int multiple, char *holder)
{
	struct subscriber_params p = {.name = "mxbpf facts", .old_name = holder, .old_size = SUBSCRIBER_NAME_BYTES};

	memset(holder, 0, SUBSCRIBER_NAME_BYTES);
	/* Before CUDA 13.2 the structure lacks the last field. */
	p.size = facts_version() >= 130200 ? sizeof(p) : offsetof(struct subscriber_params, multiple);
	p.multiple = (uint8_t)multiple;
	return CALL(cuptiSubscribe_v2, (void **, void *, void *, void *), &subscriber, (void *)on_callback, NULL, &p);
}

int facts_unsubscribe(void)
{
	return CALL(cuptiUnsubscribe, (void *), subscriber);
}

static void add_distinct(uint32_t *list, uint32_t id)
{
	int i;

	for (i = 0; i < THREADS_MAX && list[i] && list[i] != id; i++)
		;
	if (i < THREADS_MAX)
		list[i] = id;
}

static void on_requested(uint8_t **buffer, size_t *size, size_t *records_max)
{
	*records_max = 0;
	*size = buffer_bytes;
	if (posix_memalign((void **)buffer, 8, *size))
		*size = 0;
	pthread_mutex_lock(&lock);
	seen.requested++;
	add_distinct(seen.request_tid, (uint32_t)syscall(SYS_gettid));
	pthread_mutex_unlock(&lock);
}

#define AT(type, record, off) (*(const type *)((record) + (off)))

static void take_api(const uint8_t *r, uint32_t kind)
{
	uint32_t cbid = AT(uint32_t, r, 4);
	uint64_t start = AT(uint64_t, r, 8), end = AT(uint64_t, r, 16);

	seen.api_pid = AT(uint32_t, r, 24);
	add_distinct(seen.api_thread, AT(uint32_t, r, 28));
	if (!seen.first_api_start || start < seen.first_api_start)
		seen.first_api_start = start;
	if (end > seen.last_api_end)
		seen.last_api_end = end;
	if (cbid < CBIDS)
		seen.cbid_calls[kind == DRIVER][cbid]++;
	else
		seen.cbids_beyond++;
	if ((kind == RUNTIME || !launch_by_runtime) && napis < KEPT_MAX)
		apis[napis++] = (struct api){AT(uint32_t, r, 32), start};
}

static void take_kernel(const uint8_t *r, uint64_t now)
{
	uint64_t start = AT(uint64_t, r, 16), end = AT(uint64_t, r, 24);
	const uint64_t minute = 60000000000;

	seen.graph_kernels += AT(uint64_t, r, 144) != 0;
	if (!start || !end) {
		seen.zero_times++;
		return;
	}
	if (start > now + minute || start + minute < now)
		seen.absurd_kernels++;
	if (!seen.first_kernel_start || start < seen.first_kernel_start)
		seen.first_kernel_start = start;
	if (end > seen.last_kernel_end)
		seen.last_kernel_end = end;
	if (nkernels < KEPT_MAX)
		kernels[nkernels++] = (struct api){AT(uint32_t, r, 92), start};
}

static void take(const uint8_t *r, uint64_t now)
{
	uint32_t kind = AT(uint32_t, r, 0);

	seen.records[kind < KINDS_MAX ? kind : 0]++;
	if (kind == KERNEL)
		take_kernel(r, now);
	else if (kind == RUNTIME || kind == DRIVER)
		take_api(r, kind);
}

static void tape_put(uint32_t type, const void *head, size_t head_bytes, const void *body, size_t bytes)
{
	struct tape_chunk c = {type, (uint32_t)(head_bytes + bytes)};
	static const char zeros[8];

	fwrite(&c, sizeof(c), 1, tape);
	fwrite(head, 1, head_bytes, tape);
	fwrite(body, 1, bytes, tape);
	fwrite(zeros, 1, -c.bytes & 7, tape);
}

/* Writes the name of a kernel, unless the tape has this text for this address. */
static void tape_name(const uint8_t *r)
{
	static struct {
		uint64_t address;
		char *text;
	} known[TAPE_NAMES];
	uint64_t address = AT(uint64_t, r, 104);
	const char *text = (const char *)(uintptr_t)address;
	size_t i = (address >> 4) % TAPE_NAMES;

	if (!text || (known[i].address == address && !strcmp(known[i].text, text)))
		return;
	free(known[i].text);
	known[i].address = address;
	known[i].text = strdup(text);
	tape_put(TAPE_NAME, &address, sizeof(address), text, strlen(text) + 1);
}

/* Reads CUPTI's clock for the tape. Returns 0 if it can be read. `lock` must not be held. */
static int read_clock(uint64_t *t)
{
	t[0] = clock_ns(CLOCK_MONOTONIC);
	if (CALL(cuptiGetTimestamp, (uint64_t *), &t[1]))
		return -1;
	t[2] = clock_ns(CLOCK_MONOTONIC);
	return 0;
}

/* From now on all buffers are written to the tape as well. Returns 0, or -1 if the file cannot be written. */
int facts_tape(const char *file)
{
	struct tape_head head = {.version = facts_version(), .pid = (uint32_t)getpid()};
	uint64_t t[3];
	int err = read_clock(t);

	memcpy(head.magic, TAPE_MAGIC, sizeof(head.magic));
	pthread_mutex_lock(&lock);
	tape = fopen(file, "we");
	if (tape) {
		fwrite(&head, sizeof(head), 1, tape);
		if (!err)
			tape_put(TAPE_CLOCK, t, sizeof(t), NULL, 0);
	}
	pthread_mutex_unlock(&lock);
	return tape ? 0 : -1;
}

/* Ends the tape. Returns its number of bytes, or -1. */
long facts_tape_end(void)
{
	uint32_t size[2];
	uint64_t t[3];
	long bytes = -1;
	int err = read_clock(t);

	pthread_mutex_lock(&lock);
	if (tape) {
		if (!err)
			tape_put(TAPE_CLOCK, t, sizeof(t), NULL, 0);
		for (size[0] = 0; size[0] < KINDS_MAX; size[0]++) {
			size[1] = (uint32_t)seen.bytes[size[0]];
			if (size[1])
				tape_put(TAPE_SIZE, size, sizeof(size), NULL, 0);
		}
		bytes = ftell(tape);
		if (fclose(tape))
			bytes = -1;
		tape = NULL;
	}
	pthread_mutex_unlock(&lock);
	return bytes;
}

/*
 * Takes the records of a buffer. CUPTI calls on_requested() under a lock of its own, and that takes `lock`; so CUPTI
 * must never be called while `lock` is held.
 */
static void take_all(uint8_t *buffer, size_t valid, uint8_t **records, size_t n, uint64_t now)
{
	uint32_t kind;
	size_t i;

	for (i = 0; i < n; i++) {
		kind = AT(uint32_t, records[i], 0);
		if (i + 1 < n && kind < KINDS_MAX)
			seen.bytes[kind] = (uint64_t)(records[i + 1] - records[i]);
		take(records[i], now);
		if (tape && kind == KERNEL)
			tape_name(records[i]);
	}
	if (tape && valid)
		tape_put(TAPE_BUFFER, buffer, valid, NULL, 0);
}

static void on_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	size_t dropped = 0, n = 0, rest = 0, most = valid / 8 + 1;
	uint8_t **records = malloc(most * sizeof(*records)), *r = NULL;
	uint64_t now = 0;
	uint32_t kind;
	int err = MAX_LIMIT_REACHED;

	while (records && valid && n < most) {
		err = CALL(cuptiActivityGetNextRecord, (uint8_t *, size_t, uint8_t **), buffer, valid, &r);
		if (err)
			break;
		records[n++] = r;
	}
	if (CALL(cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *), context, stream, &dropped))
		dropped = 0;
	CALL(cuptiGetTimestamp, (uint64_t *), &now);
	pthread_mutex_lock(&lock);
	seen.completed++;
	seen.valid_bytes += valid;
	seen.dropped += dropped;
	add_distinct(seen.complete_tid, (uint32_t)syscall(SYS_gettid));
	take_all(buffer, valid, records, n, now);
	if (n) {
		kind = AT(uint32_t, records[n - 1], 0);
		rest = (size_t)(buffer + valid - records[n - 1]);
		/* The size of the last record is where the buffer ends, if all of it could be read. */
		if (kind < KINDS_MAX && !seen.bytes[kind] && err == MAX_LIMIT_REACHED)
			seen.bytes[kind] = rest;
		if (kind < KINDS_MAX && seen.bytes[kind] <= rest)
			rest -= seen.bytes[kind];
	} else {
		rest = valid;
	}
	if (err != MAX_LIMIT_REACHED && rest) {
		seen.unreadable++;
		seen.unreadable_bytes += rest;
	}
	pthread_mutex_unlock(&lock);
	free(records);
	free(buffer);
}

int facts_register(size_t bytes)
{
	if (bytes)
		buffer_bytes = bytes;
	apis = apis ? apis : calloc(KEPT_MAX, sizeof(*apis));
	kernels = kernels ? kernels : calloc(KEPT_MAX, sizeof(*kernels));
	if (!apis || !kernels)
		return -1;
	return CALL(cuptiActivityRegisterCallbacks, (void *, void *), (void *)on_requested, (void *)on_completed);
}

int facts_enable(int kind)
{
	return CALL(cuptiActivityEnable, (int), kind);
}

int facts_enable_and_dump(int kind)
{
	return CALL(cuptiActivityEnableAndDump, (int), kind);
}

int facts_disable(int kind)
{
	return CALL(cuptiActivityDisable, (int), kind);
}

/* Enables or disables records of one function of the runtime (0) or of the driver (1). */
int facts_enable_api(int driver, uint32_t cbid, int on)
{
	uint8_t enable = (uint8_t)on;

	return driver ? CALL(cuptiActivityEnableDriverApi, (uint32_t, uint8_t), cbid, enable)
		      : CALL(cuptiActivityEnableRuntimeApi, (uint32_t, uint8_t), cbid, enable);
}

/* Returns the name of a function of the runtime (0) or of the driver (1), or NULL. */
const char *facts_api_name(int driver, uint32_t cbid)
{
	const char *name = NULL;

	return CALL(cuptiGetCallbackName, (int, uint32_t, const char **), driver ? 1 : DOMAIN_RUNTIME, cbid, &name)
		       ? NULL
		       : name;
}

/* flag 1: also flush buffers with incomplete records. */
int facts_flush(int flag)
{
	return CALL(cuptiActivityFlushAll, (uint32_t), (uint32_t)flag);
}

/*
 * Finalizes CUPTI at the exit of the next CUDA runtime call. facts_finalized() returns the result, or -1 before that.
 */
int facts_finalize(void)
{
	finalize_result = -1;
	__atomic_store_n(&finalize_wanted, 1, __ATOMIC_RELEASE);
	return CALL(cuptiEnableDomain, (uint32_t, void *, int), 1, subscriber, DOMAIN_RUNTIME);
}

int facts_finalized(void)
{
	return finalize_result;
}

/* A function for a uprobe. */
__attribute__((noinline)) int facts_probed(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

/* 0: default; 1: thread ids of the system; 2: all bits of pthread_self(). */
int facts_thread_ids(int type)
{
	return CALL(cuptiSetThreadIdType, (int), type);
}

/* Returns the value of an attribute of one byte, or the negated result code. */
int facts_attribute(int attribute)
{
	size_t size = 1;
	uint8_t value = 0;
	int err = CALL(cuptiActivityGetAttribute, (int, size_t *, void *), attribute, &size, &value);

	return err ? -abs(err) : value;
}

/* Sets an attribute of `bytes` bytes. Returns the result code. */
int facts_set_attribute(int attribute, size_t value, size_t bytes)
{
	return CALL(cuptiActivitySetAttribute, (int, size_t *, void *), attribute, &bytes, &value);
}

static uint64_t on_timestamp(void)
{
	__atomic_fetch_add(&seen.timestamp_calls, 1, __ATOMIC_RELAXED);
	return clock_ns(offset_clock ? CLOCK_MONOTONIC : CLOCK_REALTIME);
}

/*
 * Makes CUPTI read its times from CLOCK_MONOTONIC (1) or CLOCK_REALTIME (0). Never use this in another program's
 * process.
 */
int facts_timestamp_callback(int monotonic)
{
	offset_clock = monotonic;
	return CALL(cuptiActivityRegisterTimestampCallback, (void *), (void *)on_timestamp);
}

/*
 * Measures CUPTI's clock minus CLOCK_MONOTONIC and minus CLOCK_REALTIME in the narrowest of 100 brackets, and the
 * width of that bracket.
 */
int facts_clock(int64_t *less_monotonic, int64_t *less_realtime, uint64_t *bracket)
{
	uint64_t a, b, t, real;
	int i, err = 0;

	*bracket = UINT64_MAX;
	for (i = 0; i < 100 && !err; i++) {
		a = clock_ns(CLOCK_MONOTONIC);
		err = CALL(cuptiGetTimestamp, (uint64_t *), &t);
		b = clock_ns(CLOCK_MONOTONIC);
		real = clock_ns(CLOCK_REALTIME);
		if (err || b - a >= *bracket)
			continue;
		*bracket = b - a;
		*less_monotonic = (int64_t)(t - (a + b) / 2);
		*less_realtime = (int64_t)(t - real);
	}
	return err;
}

static int by_correlation(const void *a, const void *b)
{
	const struct api *x = a, *y = b;

	return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

/* Joins the kernels seen since the last facts_clear() with the API calls that launched them. */
static void join(void)
{
	struct api *call;
	size_t i;

	qsort(apis, napis, sizeof(*apis), by_correlation);
	seen.early_kernels = seen.unjoined_kernels = 0;
	for (i = 0; i < nkernels; i++) {
		call = bsearch(&kernels[i], apis, napis, sizeof(*apis), by_correlation);
		seen.unjoined_kernels += !call;
		seen.early_kernels += call && kernels[i].start < call->start;
	}
}

/* The result is valid until the next facts_seen() or facts_clear(). */
const struct facts_seen *facts_seen(void)
{
	static struct facts_seen copy;

	pthread_mutex_lock(&lock);
	if (apis)
		join();
	copy = seen;
	pthread_mutex_unlock(&lock);
	return &copy;
}

void facts_clear(void)
{
	pthread_mutex_lock(&lock);
	memset(&seen, 0, sizeof(seen));
	napis = nkernels = 0;
	pthread_mutex_unlock(&lock);
}

size_t facts_seen_bytes(void)
{
	return sizeof(struct facts_seen);
}

/* ---- CUDA without PyTorch */

/* Lasts for a number of ns of the GPU's clock. */
static const char ptx[] = ".version 6.4\n.target sm_%s\n.address_size 64\n"
			  ".visible .entry facts_kernel(.param .u64 ns)\n{\n"
			  ".reg .pred p;\n.reg .u64 begin, now, most;\n"
			  "ld.param.u64 most, [ns];\n"
			  "setp.eq.u64 p, most, 0;\n@p bra done;\n"
			  "mov.u64 begin, %%globaltimer;\n"
			  "again:\nmov.u64 now, %%globaltimer;\nsub.u64 now, now, begin;\n"
			  "setp.lt.u64 p, now, most;\n@p bra again;\n"
			  "done:\nret;\n}\n";

struct dim3 {
	uint32_t x, y, z;
};

static void *driver, *runtime, *function, *kernel, *graph_stream, *graph_run;
static int (*launch_kernel)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void *,
			    void **, void **);
static int (*launch_runtime)(const void *, struct dim3, struct dim3, void **, size_t, void *);
static int (*synchronize)(void);
static void (*next_ns)(uint64_t); /* the mock runs no PTX */

#define IN(library, name, type, ...)                                                                                   \
	({                                                                                                             \
		int(*f) type = (int(*) type)dlsym(library, #name);                                                     \
		f ? f(__VA_ARGS__) : -1;                                                                               \
	})

/*
 * Makes the kernel known to the runtime, too, so that launches are calls of the runtime, as most are. From CUDA 12.8
 * on; before, launches are calls of the driver.
 */
static void load_for_runtime(const char *text)
{
	static void *library;

	if (IN(runtime, cudaLibraryLoadData,
	       (void **, const void *, void *, void *, uint32_t, void *, void *, uint32_t), &library, text, NULL, NULL,
	       0, NULL, NULL, 0) ||
	    IN(runtime, cudaLibraryGetKernel, (void **, void *, const char *), &kernel, library, "facts_kernel"))
		return;
	launch_runtime = (int (*)(const void *, struct dim3, struct dim3, void **, size_t, void *))dlsym(
		runtime, "cudaLaunchKernel");
	launch_by_runtime = launch_runtime != NULL;
}

/* Initialises CUDA and loads a kernel. Returns NULL, or the step that failed. */
const char *facts_cuda(const char *driver_path, const char *runtime_path)
{
	static const char *const targets[] = {"75", "50"};
	static char text[sizeof(ptx) + 8];
	void *module = NULL;
	unsigned i;

	driver = dlopen(driver_path, RTLD_NOW | RTLD_GLOBAL);
	runtime = dlopen(runtime_path, RTLD_NOW | RTLD_GLOBAL);
	if (!driver || !runtime)
		return dlerror();
	if (IN(runtime, cudaFree, (void *), NULL))
		return "cudaFree(NULL), which initialises CUDA";
	for (i = 0; i < 2 && !function; i++) {
		snprintf(text, sizeof(text), ptx, targets[i]);
		if (!IN(driver, cuModuleLoadData, (void **, const void *), &module, text))
			IN(driver, cuModuleGetFunction, (void **, void *, const char *), &function, module,
			   "facts_kernel");
	}
	launch_kernel = (int (*)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void *,
				 void **, void **))dlsym(driver, "cuLaunchKernel");
	synchronize = (int (*)(void))dlsym(runtime, "cudaDeviceSynchronize");
	next_ns = (void (*)(uint64_t))dlsym(driver, "double_next_ns");
	if (!function || !launch_kernel || !synchronize)
		return "cuModuleLoadData of a kernel in PTX";
	load_for_runtime(text);
	if (launch_by_runtime && (facts_launch(1, 0, NULL) || synchronize()))
		launch_by_runtime = 0;
	return NULL;
}

/* 1: launches are calls of the runtime; 0: of the driver. */
int facts_by_runtime(void)
{
	return launch_by_runtime;
}

/* Launches n kernels that last `ns`. Returns the first error. */
int facts_launch(long n, uint64_t ns, void *stream)
{
	const struct dim3 one = {1, 1, 1};
	void *params[] = {&ns};
	int err = 0;

	for (; n > 0 && !err; n--) {
		if (next_ns)
			next_ns(ns ? ns : 100);
		err = launch_by_runtime ? launch_runtime(kernel, one, one, params, 0, stream)
					: launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
	}
	return err;
}

int facts_sync(void)
{
	return synchronize();
}

/* Captures a graph of n kernels, which facts_replay() launches. Returns an error. */
int facts_capture(long n)
{
	void *graph = NULL;
	int err = graph_stream ? 0 : IN(runtime, cudaStreamCreate, (void **), &graph_stream);

	/* cudaStreamCaptureModeRelaxed: other threads go on. */
	err = err ? err : IN(runtime, cudaStreamBeginCapture, (void *, int), graph_stream, 2);
	err = err ? err : facts_launch(n, 0, graph_stream);
	err = err ? err : IN(runtime, cudaStreamEndCapture, (void *, void **), graph_stream, &graph);
	return err ? err
	       : dlsym(runtime, "cudaGraphInstantiateWithFlags")
		       ? IN(runtime, cudaGraphInstantiateWithFlags, (void **, void *, uint64_t), &graph_run, graph, 0)
		       : IN(runtime, cudaGraphInstantiate, (void **, void *, uint64_t), &graph_run, graph, 0);
}

int facts_replay(long n)
{
	int err = 0;

	for (; n > 0 && !err; n--)
		err = IN(runtime, cudaGraphLaunch, (void *, void *), graph_run, graph_stream);
	return err;
}

/* Copies bytes to the device and back. Returns an error. */
int facts_copy(size_t bytes)
{
	static void *device;
	void *host = malloc(bytes);
	int err = device ? 0 : IN(runtime, cudaMalloc, (void **, size_t), &device, bytes);

	err = err ? err : IN(runtime, cudaMemcpy, (void *, const void *, size_t, int), device, host, bytes, 1);
	err = err ? err : IN(runtime, cudaMemcpy, (void *, const void *, size_t, int), host, device, bytes, 2);
	free(host);
	return err;
}

/* Returns the bytes of the GPU's memory that are in use, or 0 if that is unknown. */
size_t facts_memory(void)
{
	size_t unused = 0, total = 0;

	return IN(runtime, cudaMemGetInfo, (size_t *, size_t *), &unused, &total) ? 0 : total - unused;
}
