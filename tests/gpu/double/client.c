// SPDX-License-Identifier: Apache-2.0
/*
 * A small client of CUPTI for the tests of the mock. Each command keeps or breaks one rule and prints what came of it
 * as words NAME=VALUE.
 */
#include "double.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BUFFER_BYTES 65536
#define KERNELS	     1000
#define ABSURD_NS    3600000000000ull
#define NAMES	     512

struct params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_bytes;
	uint8_t multiple;
	uint8_t pad[7];
};

extern int cuptiGetVersion(uint32_t *v);
extern int cuptiGetTimestamp(uint64_t *t);
extern int cuptiSubscribe(void **handle, void *callback, void *data);
extern int cuptiSubscribe_v2(void **handle, void *callback, void *data, struct params *p);
extern int cuptiUnsubscribe(void *handle);
extern int cuptiActivityRegisterCallbacks(void *requested, void *completed);
extern int cuptiActivityRegisterTimestampCallback(uint64_t (*f)(void));
extern int cuptiActivityEnable(int kind);
extern int cuptiActivityEnable_v2(void *handle, int kind, void *config);
extern int cuptiActivityEnableAndDump(int kind);
extern int cuptiActivityDisable(int kind);
extern int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t on);
extern int cuptiActivityFlushAll(uint32_t flag);
extern int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record);
extern int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n);
extern int cuptiSetThreadIdType(int type);
extern int cuptiFinalize(void);
extern void gpuops_init(void);
extern uint64_t gpuops_launch(const char *name, uint64_t ns, unsigned on);
extern int gpuops_copy(bool to_device, bool pinned, size_t bytes, int on);
extern int gpuops_copy_peer(size_t bytes, unsigned on);
extern int gpuops_set(size_t bytes, unsigned on);
extern int gpuops_sync(void);
extern int gpuops_sync_event(unsigned on);
extern void gpuops_capture_begin(unsigned on);
extern int gpuops_capture_end(unsigned on);
extern int gpuops_graph_launch(int graph, unsigned on);
extern void gpu_burst(long n);

static const int kinds[] = {KIND_KERNEL,  KIND_COPY,   KIND_PEER, KIND_SET,
			    KIND_RUNTIME, KIND_DRIVER, KIND_SYNC, KIND_OVERHEAD};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the counts */
static struct {
	uint64_t of[KINDS], bytes[KINDS], ns, zero, no_name, absurd, early, context2, graph, poison, wrong_tid,
		backwards, foreign_thread, buffers, changed_names;
	uint64_t last_start;
} seen;
static uint64_t call_start[1 << 16], kernel_start[1 << 16]; /* by correlation id */
static const char *name_at[NAMES];
static char *name_was[NAMES];
static unsigned nnames;
static void *subscriber;
static bool give_null;
static int last_code; /* that ended the last walk through a buffer */

static uint64_t u64(const uint8_t *r, size_t off)
{
	uint64_t v;

	memcpy(&v, r + off, 8);
	return v;
}

static uint32_t u32(const uint8_t *r, size_t off)
{
	uint32_t v;

	memcpy(&v, r + off, 4);
	return v;
}

static void requested(uint8_t **buffer, size_t *size, size_t *records_max)
{
	*size = BUFFER_BYTES;
	*buffer = give_null ? NULL : aligned_alloc(8, BUFFER_BYTES);
	*records_max = 0;
}

static void take_name(const char *name)
{
	unsigned i;

	if (!name) {
		seen.no_name++;
		return;
	}
	for (i = 0; i < nnames && name_at[i] != name; i++)
		;
	if (i == nnames && i < NAMES) {
		name_at[nnames] = name;
		name_was[nnames++] = strdup(name);
	} else if (i < NAMES && strcmp(name_was[i], name)) {
		seen.changed_names++;
	}
}

static void take_kernel(const uint8_t *r)
{
	uint64_t start = u64(r, 16), now = double_clock(CLOCK_REALTIME);
	uint32_t correlation = u32(r, 92) & 0xffff;

	take_name((const char *)(uintptr_t)u64(r, 104));
	seen.context2 += u32(r, 44) == 2;
	seen.graph += u32(r, 156) != 0;
	seen.poison += r[160] == 0xa5;
	if (!start) {
		seen.zero++;
		return;
	}
	seen.ns += u64(r, 24) - start;
	seen.absurd += start > now + ABSURD_NS || start + ABSURD_NS < now;
	seen.backwards += start < seen.last_start;
	seen.last_start = start;
	kernel_start[correlation] = start;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *r = NULL, *last = NULL;

	pthread_mutex_lock(&lock);
	seen.buffers++;
	seen.foreign_thread += syscall(SYS_gettid) != getpid();
	while (!(last_code = cuptiActivityGetNextRecord(buffer, valid, &r))) {
		if (last)
			seen.bytes[u32(last, 0)] = (uint64_t)(r - last);
		last = r;
		seen.of[u32(r, 0)]++;
		if (u32(r, 0) == KIND_KERNEL)
			take_kernel(r);
		if (u32(r, 0) != KIND_RUNTIME)
			continue;
		call_start[u32(r, 32) & 0xffff] = u64(r, 8);
		seen.wrong_tid += u32(r, 28) != (uint32_t)getpid();
	}
	pthread_mutex_unlock(&lock);
	free(buffer);
}

static uint64_t clock_of_client(void)
{
	return double_clock(CLOCK_REALTIME);
}

static int begin(void)
{
	size_t i;
	int err = cuptiSubscribe(&subscriber, NULL, NULL);

	if (err)
		return err;
	cuptiSetThreadIdType(1);
	cuptiActivityRegisterCallbacks(requested, completed);
	for (i = 0; !err && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		err = cuptiActivityEnable(kinds[i]);
	return err;
}

static void end(void)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		cuptiActivityDisable(kinds[i]);
	cuptiActivityFlushAll(1);
	cuptiUnsubscribe(subscriber);
}

static void work(void)
{
	int i, graph;

	for (i = 0; i < KERNELS; i++) {
		gpuops_launch(i & 1 ? "odd" : "even", 1000, (unsigned)i & 1);
		if (i == KERNELS / 2) {
			gpuops_sync();
			cuptiActivityFlushAll(0);
		}
	}
	gpuops_copy(true, false, 4096, 0);
	gpuops_copy_peer(4096, 0);
	gpuops_set(4096, 0);
	gpuops_sync_event(0);
	gpuops_capture_begin(2);
	gpuops_launch("in_graph", 1000, 2);
	gpuops_launch("in_graph", 1000, 2);
	graph = gpuops_capture_end(2);
	gpuops_graph_launch(graph, 2);
	gpuops_sync();
}

static void print(void)
{
	size_t dropped = 0, i;

	for (i = 0; i < sizeof(call_start) / sizeof(call_start[0]); i++)
		seen.early += kernel_start[i] && kernel_start[i] < call_start[i];
	cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
#define SAY(what) printf(#what "=%lu ", (unsigned long)seen.what)
	printf("kernels=%lu copies=%lu peers=%lu sets=%lu runtime=%lu driver=%lu syncs=%lu ", seen.of[KIND_KERNEL],
	       seen.of[KIND_COPY], seen.of[KIND_PEER], seen.of[KIND_SET], seen.of[KIND_RUNTIME], seen.of[KIND_DRIVER],
	       seen.of[KIND_SYNC]);
	printf("dropped=%lu kernel_bytes=%lu ", (unsigned long)dropped, seen.bytes[KIND_KERNEL]);
	SAY(ns);
	SAY(zero);
	SAY(no_name);
	SAY(absurd);
	SAY(early);
	SAY(context2);
	SAY(graph);
	SAY(poison);
	SAY(wrong_tid);
	SAY(backwards);
	SAY(foreign_thread);
	SAY(changed_names);
	puts("");
	fflush(stdout);
}

/* Keeps all rules. */
static int collect(void)
{
	int err = begin();

	if (err) {
		printf("error=%d\n", err);
		return 0;
	}
	work();
	end();
	print();
	return 0;
}

/* Flushes nothing before exit. */
static int leave(void)
{
	atexit(print); /* runs behind the handlers of the mock */
	begin();
	work();
	return 0;
}

static int burst(void)
{
	begin();
	gpu_burst(1000000);
	gpuops_sync();
	end();
	print();
	return 0;
}

static int before_cuinit(void)
{
	uint32_t v;

	return cuptiGetVersion(&v);
}

static int forked(void)
{
	uint32_t v;
	int status;
	pid_t child = fork();

	if (!child)
		_exit(cuptiGetVersion(&v));
	waitpid(child, &status, 0);
	printf("signal=%d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return 0;
}

static void say(const char *what, int result)
{
	printf("%s=%d ", what, result);
}

static int second(void)
{
	char holder[64] = "";
	void *other;
	struct params first = {.size = sizeof(first), .name = "the first"};
	struct params p = {.size = sizeof(p), .name = "the second", .old_name = holder, .old_bytes = sizeof(holder)};
	uint32_t v;

	cuptiGetVersion(&v);
	if (v < 130200)
		first.size = p.size = offsetof(struct params, multiple);
	say("first", cuptiSubscribe_v2(&subscriber, NULL, NULL, &first));
	say("second", cuptiSubscribe(&other, NULL, NULL));
	say("named", cuptiSubscribe_v2(&other, NULL, NULL, &p));
	say("leave", cuptiUnsubscribe(subscriber));
	say("again", cuptiSubscribe(&other, NULL, NULL));
	printf("holder=%s\n", holder);
	return 0;
}

static int mixed(void)
{
	say("subscribe", cuptiSubscribe(&subscriber, NULL, NULL));
	say("v1", cuptiActivityEnable(KIND_KERNEL));
	say("v2", cuptiActivityEnable_v2(subscriber, KIND_KERNEL, NULL));
	say("disable", cuptiActivityDisable(KIND_KERNEL));
	say("leave", cuptiUnsubscribe(subscriber));
	say("subscribe", cuptiSubscribe(&subscriber, NULL, NULL));
	say("v2", cuptiActivityEnable_v2(subscriber, KIND_KERNEL, NULL));
	say("v1", cuptiActivityEnable(KIND_KERNEL));
	puts("");
	return 0;
}

static int null_buffer(void)
{
	give_null = true;
	return collect();
}

static int clock_twice(void)
{
	begin();
	cuptiActivityRegisterTimestampCallback(clock_of_client);
	work();
	cuptiActivityFlushAll(1);
	printf("once=%lu ", (unsigned long)seen.absurd);
	cuptiActivityRegisterTimestampCallback(clock_of_client);
	work();
	cuptiActivityFlushAll(1);
	printf("twice=%lu ", (unsigned long)seen.absurd);
	cuptiActivityRegisterTimestampCallback(clock_of_client);
	work();
	cuptiActivityFlushAll(1);
	printf("thrice=%lu\n", (unsigned long)seen.absurd);
	return 0;
}

static int graph_level(void)
{
	begin();
	cuptiActivityEnable(KIND_GRAPH);
	cuptiActivityDisable(KIND_GRAPH);
	work();
	end();
	print();
	return 0;
}

static void other_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	printf("other=%d ", valid > 0);
}

static int replaced(void)
{
	begin();
	cuptiActivityRegisterCallbacks(requested, other_completed);
	gpuops_launch("kernel", 1000, 0);
	gpuops_sync();
	end();
	printf("kernels=%lu\n", seen.of[KIND_KERNEL]);
	return 0;
}

static int thread_ids(void)
{
	begin();
	cuptiSetThreadIdType(0);
	work();
	end();
	printf("runtime=%lu wrong_tid=%lu\n", seen.of[KIND_RUNTIME], seen.wrong_tid);
	return 0;
}

static int dump(void)
{
	begin();
	cuptiActivityEnable(KIND_DEVICE);
	cuptiActivityFlushAll(1);
	printf("enable=%lu ", seen.of[KIND_DEVICE]);
	cuptiActivityEnableAndDump(KIND_DEVICE);
	cuptiActivityFlushAll(1);
	printf("dump=%lu\n", seen.of[KIND_DEVICE]);
	return 0;
}

/* Prints by how many ns CUPTI's clock has moved against CLOCK_MONOTONIC within 100 ms, rounded to us. */
static int watch_clock(void)
{
	const struct timespec nap = {.tv_nsec = 100000000};
	uint64_t first, last, before, after;

	cuptiGetTimestamp(&first); /* the first call takes longer */
	before = double_now();
	cuptiGetTimestamp(&first);
	nanosleep(&nap, NULL);
	after = double_now();
	cuptiGetTimestamp(&last);
	printf("moved_us=%ld\n", (long)(last - first - (after - before)) / 1000);
	return 0;
}

/* A kernel runs on while a hundred before and behind it have ended. */
static int incomplete(void)
{
	uint64_t begun;
	int i;

	begin();
	for (i = 0; i < 200; i++) {
		gpuops_launch("short", 1000, 0);
		if (i == 99)
			gpuops_launch("long", 3600000000000ull, 1);
	}
	begun = double_now();
	while (double_now() < begun + 10000000) /* the device needs 203 us */
		;
	cuptiActivityFlushAll(0);
	printf("held=%lu ", seen.buffers);
	cuptiActivityFlushAll(1);
	printf("kernels=%lu runtime=%lu code=%d\n", seen.of[KIND_KERNEL], seen.of[KIND_RUNTIME], last_code);
	fflush(stdout);
	return 0;
}

/* Leaves without disabling anything. */
static int left(void)
{
	begin();
	return cuptiUnsubscribe(subscriber);
}

/* Of the driver only cuLaunchKernel is recorded. */
/* A function that is enabled alone, and then its kind with all others disabled one by one. */
static int filter(void)
{
	unsigned long alone;
	uint32_t i;

	begin();
	cuptiActivityDisable(KIND_DRIVER);
	cuptiActivityEnableDriverApi(307, 1);
	work();
	cuptiActivityFlushAll(1);
	alone = seen.of[KIND_DRIVER];
	cuptiActivityEnableDriverApi(307, 0);
	cuptiActivityEnable(KIND_DRIVER);
	for (i = 1; i < 1024; i++)
		if (i != 307)
			cuptiActivityEnableDriverApi(i, 0);
	work();
	end();
	printf("alone=%lu chosen=%lu\n", alone, seen.of[KIND_DRIVER] - alone);
	return 0;
}

static int finalize(void)
{
	begin();
	work();
	cuptiFinalize();
	printf("kernels=%lu subscribe=%d\n", seen.of[KIND_KERNEL], cuptiSubscribe(&subscriber, NULL, NULL));
	return 0;
}

/* Takes what a tape has, until there was nothing for half a second. */
static int replay(void)
{
	const struct timespec nap = {.tv_nsec = 50000000};
	uint64_t last = 0;
	int idle;

	begin();
	for (idle = 0; idle < 10; idle++) {
		nanosleep(&nap, NULL);
		cuptiActivityFlushAll(0);
		pthread_mutex_lock(&lock);
		if (seen.buffers != last)
			idle = 0;
		last = seen.buffers;
		pthread_mutex_unlock(&lock);
	}
	end();
	print();
	printf("names=%u first=%s\n", nnames, nnames ? name_was[0] : "");
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} commands[] = {
	{"collect", collect},
	{"leave", leave},
	{"burst", burst},
	{"before-cuinit", before_cuinit},
	{"fork", forked},
	{"second", second},
	{"mixed", mixed},
	{"null-buffer", null_buffer},
	{"clock", clock_twice},
	{"graph", graph_level},
	{"replaced", replaced},
	{"thread-ids", thread_ids},
	{"dump", dump},
	{"watch-clock", watch_clock},
	{"finalize", finalize},
	{"filter", filter},
	{"replay", replay},
	{"left", left},
	{"incomplete", incomplete},
};

int main(int argc, char **argv)
{
	size_t i;

	if (argc > 1 && strcmp(argv[1], "before-cuinit"))
		gpuops_init();
	for (i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, argv[1]))
			return commands[i].run();
	fprintf(stderr, "usage: client COMMAND\n");
	return 2;
}
