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
	uint64_t cbid_calls[1024]; /* API records by cbid: RUNTIME below 512, DRIVER's first 512 above */
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
	if (!finalize_wanted || *(const int *)info != API_EXIT)
		return;
	finalize_wanted = 0;
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
	if (cbid < 512)
		seen.cbid_calls[cbid + (kind == DRIVER ? 512 : 0)]++;
	if (kind == RUNTIME && napis < KEPT_MAX)
		apis[napis++] = (struct api){AT(uint32_t, r, 32), start};
}

static void take_kernel(const uint8_t *r)
{
	uint64_t start = AT(uint64_t, r, 16), end = AT(uint64_t, r, 24), now = 0;
	const uint64_t minute = 60000000000;

	seen.graph_kernels += AT(uint64_t, r, 144) != 0;
	if (!start || !end) {
		seen.zero_times++;
		return;
	}
	CALL(cuptiGetTimestamp, (uint64_t *), &now);
	if (start > now + minute || start + minute < now)
		seen.absurd_kernels++;
	if (!seen.first_kernel_start || start < seen.first_kernel_start)
		seen.first_kernel_start = start;
	if (end > seen.last_kernel_end)
		seen.last_kernel_end = end;
	if (nkernels < KEPT_MAX)
		kernels[nkernels++] = (struct api){AT(uint32_t, r, 92), start};
}

static void take(const uint8_t *r)
{
	uint32_t kind = AT(uint32_t, r, 0);

	seen.records[kind < KINDS_MAX ? kind : 0]++;
	if (kind == KERNEL)
		take_kernel(r);
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

static void tape_clock(void)
{
	uint64_t t[3];

	t[0] = clock_ns(CLOCK_MONOTONIC);
	if (CALL(cuptiGetTimestamp, (uint64_t *), &t[1]))
		return;
	t[2] = clock_ns(CLOCK_MONOTONIC);
	tape_put(TAPE_CLOCK, t, sizeof(t), NULL, 0);
}

/* From now on all buffers are written to the tape as well. Returns 0, or -1 if the file cannot be written. */
int facts_tape(const char *file)
{
	struct tape_head head = {.version = facts_version(), .pid = (uint32_t)getpid()};

	memcpy(head.magic, TAPE_MAGIC, sizeof(head.magic));
	pthread_mutex_lock(&lock);
	tape = fopen(file, "we");
	if (tape) {
		fwrite(&head, sizeof(head), 1, tape);
		tape_clock();
	}
	pthread_mutex_unlock(&lock);
	return tape ? 0 : -1;
}

/* Ends the tape. Returns its number of bytes, or -1. */
long facts_tape_end(void)
{
	uint32_t size[2];
	long bytes = -1;

	pthread_mutex_lock(&lock);
	if (tape) {
		tape_clock();
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

static void on_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *r = NULL, *last = NULL;
	uint32_t kind;
	size_t dropped = 0;

	pthread_mutex_lock(&lock);
	seen.completed++;
	seen.valid_bytes += valid;
	add_distinct(seen.complete_tid, (uint32_t)syscall(SYS_gettid));
	while (valid && !CALL(cuptiActivityGetNextRecord, (uint8_t *, size_t, uint8_t **), buffer, valid, &r)) {
		kind = last ? AT(uint32_t, last, 0) : 0;
		if (last && kind < KINDS_MAX)
			seen.bytes[kind] = (uint64_t)(r - last);
		take(r);
		if (tape && AT(uint32_t, r, 0) == KERNEL)
			tape_name(r);
		last = r;
	}
	/* The size of the last record is where the buffer ends. */
	kind = last ? AT(uint32_t, last, 0) : 0;
	if (last && kind < KINDS_MAX && !seen.bytes[kind])
		seen.bytes[kind] = (uint64_t)(buffer + valid - last);
	if (tape && valid)
		tape_put(TAPE_BUFFER, buffer, valid, NULL, 0);
	if (!CALL(cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *), context, stream, &dropped))
		seen.dropped += dropped;
	pthread_mutex_unlock(&lock);
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
	finalize_wanted = 1;
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
