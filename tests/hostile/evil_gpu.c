// SPDX-License-Identifier: Apache-2.0
/* Attacks by records of CUPTI, in a job that uses the mock of a GPU. */
#define _GNU_SOURCE
#include "evil.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_US 200
#define HUGE	9000000000000000000ull
#define RECORDS 100

static struct mxbpf_agent_batch b;
static int (*cupti_time)(uint64_t *t);

static uint64_t gpu_now(void)
{
	uint64_t t = 0;

	if (!cupti_time)
		*(void **)&cupti_time = dlsym(dlopen("libcupti.so.12", RTLD_LAZY | RTLD_NOLOAD), "cuptiGetTimestamp");
	cupti_time(&t);
	return t;
}

static char *texts(void)
{
	return evil_shared->gpu_names.texts;
}

static uint32_t name(const char *text)
{
	const uint32_t len = (uint32_t)strlen(text),
		       at = __atomic_fetch_add(&evil_shared->gpu.texts_len, len + 1, __ATOMIC_RELAXED);

	memcpy(texts() + at + 1, text, len + 1);
	return at + 1;
}

static void hand_over(void)
{
	struct mxbpf_gpu_shared *g = &evil_shared->gpu;

	b.what = MXBPF_AGENT_GPU;
	b.slot_use = 0;
	if (b.gpu[0].kind != MXBPF_GPU_CLOCK)
		__atomic_fetch_add(&g->records, b.ncalls, __ATOMIC_RELAXED);
	b.seq = (uint32_t)__atomic_fetch_add(&g->batches, 1, __ATOMIC_RELAXED);
	evil_ring(&b);
}

static void hand_over_clock(uint64_t gpu_ns, uint64_t ns)
{
	b.ncalls = 1;
	b.gpu[0] = (struct mxbpf_gpu_rec){.kind = MXBPF_GPU_CLOCK,
					  .start_ns = gpu_ns,
					  .clock = {.before_high = (uint32_t)(ns >> 32),
						    .before_low = (uint32_t)ns,
						    .after_high = (uint32_t)((ns + 100) >> 32),
						    .after_low = (uint32_t)(ns + 100)}};
	hand_over();
}

/* Kernels that an honest agent could report. */
static void fill(unsigned n)
{
	static uint32_t kernel;
	uint64_t now;
	unsigned i;

	while (__atomic_load_n(&evil_shared->gpu.state, __ATOMIC_ACQUIRE) != MXBPF_GPU_ON)
		usleep(POLL_US);
	kernel = kernel ? kernel : name("evil_kernel");
	now = gpu_now();
	b.ncalls = n;
	for (i = 0; i < n; i++)
		b.gpu[i] = (struct mxbpf_gpu_rec){.kind = MXBPF_GPU_KERNEL,
						  .start_ns = now - 1000 * (n - i),
						  .end_ns = now - 1000 * (n - i) + 500,
						  .name = kernel,
						  .context = 1,
						  .stream = 7,
						  .kernel = {.grid = {1, 1, 1}, .block = {32, 1, 1}}};
}

static void legal(void)
{
	unsigned i;

	for (i = 0; i < 10; i++) {
		fill(RECORDS);
		hand_over();
	}
}

/* The agent stops when mxbpf does not want records any more. */
static void flood(void)
{
	while (__atomic_load_n(&evil_shared->gpu.want, __ATOMIC_ACQUIRE)) {
		fill(MXBPF_AGENT_GPU_BATCH);
		hand_over();
	}
}

static void flood_on(void)
{
	for (;;) {
		fill(MXBPF_AGENT_GPU_BATCH);
		hand_over();
	}
}

/* ---- one forged record among others */

static void forge(void (*how)(struct mxbpf_gpu_rec *r))
{
	fill(10);
	how(&b.gpu[5]);
	hand_over();
}

static void forge_kind(struct mxbpf_gpu_rec *r)
{
	r->kind = 200;
}

static void forge_kind_0(struct mxbpf_gpu_rec *r)
{
	r->kind = 0;
}

static void forge_name(struct mxbpf_gpu_rec *r)
{
	r->name = MXBPF_GPU_TEXTS;
}

/* No name has an end, and what comes behind them has none, either. */
static void forge_unended(struct mxbpf_gpu_rec *r)
{
	memset(texts() + 100000, 'A', EVIL_BYTES - (size_t)(texts() + 100000 - (char *)evil_shared));
	r->name = 100000;
}

static void forge_long(struct mxbpf_gpu_rec *r)
{
	memset(texts() + 100000, 'A', MXBPF_GPU_NAME_BYTES);
	texts()[100000 + MXBPF_GPU_NAME_BYTES] = '\0';
	r->name = 100000;
}

#define FORGED(what)                                                                                                   \
	static void gpu_##what(void)                                                                                   \
	{                                                                                                              \
		forge(forge_##what);                                                                                   \
	}
FORGED(kind)
FORGED(kind_0)
FORGED(name)
FORGED(unended)
FORGED(long)

/* ---- what CUPTI may say, too, because the agent does not check it */

static void gpu_times(void)
{
	static const uint64_t times[][2] = {{0, 0},
					    {0, UINT64_MAX},
					    {UINT64_MAX, 0},
					    {UINT64_MAX, UINT64_MAX},
					    {1, UINT64_MAX},
					    {1ull << 63, 1},
					    {5, 4},
					    {1ull << 62, (1ull << 62) + 1},
					    {UINT64_MAX - 1, 1000}};
	const unsigned n = sizeof(times) / sizeof(times[0]);
	unsigned i, kind;

	for (kind = MXBPF_GPU_KERNEL; kind <= MXBPF_GPU_OVERHEAD; kind++) {
		fill(n);
		for (i = 0; i < n; i++) {
			b.gpu[i].kind = (uint8_t)kind;
			b.gpu[i].start_ns = times[i][0];
			b.gpu[i].end_ns = times[i][1];
		}
		hand_over();
	}
}

static void gpu_backward(void)
{
	fill(10);
	b.gpu[5].end_ns = b.gpu[5].start_ns - 1000;
	hand_over();
}

/* Each reading sets the clock back, and records wait for it. */
static void gpu_clocks(void)
{
	uint64_t gpu_ns = gpu_now();

	for (;;) {
		fill(RECORDS);
		hand_over();
		hand_over_clock(gpu_ns--, evil_now());
	}
}

static void gpu_clocks_random(void)
{
	for (;;) {
		fill(10);
		hand_over();
		hand_over_clock(evil_random(), evil_random());
		usleep(100);
	}
}

/* All numbers differ. */
static void gpu_many(void)
{
	uint32_t number = 0;
	unsigned i;

	for (;;) {
		fill(MXBPF_AGENT_GPU_BATCH);
		for (i = 0; i < MXBPF_AGENT_GPU_BATCH; i++, number++) {
			b.gpu[i].kind = i % 5 ? (uint8_t)(i % 5) : MXBPF_GPU_NODE;
			b.gpu[i].correlation = number;
			b.gpu[i].device = number % MXBPF_GPU_DEVICES;
			b.gpu[i].context = b.gpu[i].stream = b.gpu[i].graph = number;
			b.gpu[i].graph_node = b.gpu[i].bytes = evil_random();
			if (b.gpu[i].kind == MXBPF_GPU_COPY || b.gpu[i].kind == MXBPF_GPU_SET)
				b.gpu[i].copy.copy = b.gpu[i].copy.from = b.gpu[i].copy.to = (uint8_t)number;
		}
		hand_over();
	}
}

static void gpu_devices(void)
{
	uint32_t number = 0;
	unsigned i;

	for (;;) {
		fill(MXBPF_AGENT_GPU_BATCH);
		for (i = 0; i < MXBPF_AGENT_GPU_BATCH; i++)
			b.gpu[i].device = number++;
		hand_over();
	}
}

static void gpu_words(void)
{
	unsigned i;

	fill(9);
	for (i = 0; i < 9; i++) {
		b.gpu[i].kind = (uint8_t)(MXBPF_GPU_COPY + i % 3);
		memset(&b.gpu[i].copy, 0xff, sizeof(b.gpu[i].copy));
		if (b.gpu[i].kind == MXBPF_GPU_SYNC)
			b.gpu[i].sync.type = UINT32_MAX;
	}
	hand_over();
}

/* Calls of CUDA by threads that do not exist or belong to others. */
static void gpu_calls(void)
{
	const uint32_t launch = name("cudaLaunchKernel");
	uint32_t tid = 0;
	unsigned i;

	for (;;) {
		fill(MXBPF_AGENT_GPU_BATCH);
		for (i = 0; i < MXBPF_AGENT_GPU_BATCH; i++) {
			b.gpu[i].kind = MXBPF_GPU_CALL;
			b.gpu[i].name = launch;
			b.gpu[i].correlation = tid;
			b.gpu[i].call.pid = 1;
			b.gpu[i].call.tid = tid++;
		}
		hand_over();
		usleep(1000);
	}
}

/* ---- names */

/*
 * A mangled name of 2^depth parts in a few hundred bytes: void f(p<int>, S<S, S>, ...), where each S is the type
 * before.
 */
static void gpu_bomb(void)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char text[MXBPF_GPU_NAME_BYTES] = "_Z1f1pIiiE", number[4] = "";
	unsigned depth;

	for (depth = 1; depth <= 200; depth++) {
		number[0] = digits[depth <= 36 ? depth - 1 : (depth - 1) / 36];
		number[1] = depth <= 36 ? '\0' : digits[(depth - 1) % 36];
		strcat(text, "S_IS");
		strcat(text, number);
		strcat(text, "_S");
		strcat(text, number);
		strcat(text, "_E");
		fill(1);
		b.gpu[0].name = name(text);
		if (depth >= 16 && depth % 4 == 0)
			hand_over();
	}
}

static void gpu_names_many(void)
{
	char *t = texts();
	uint32_t at, i;

	fill(1);
	for (i = 1; i < MXBPF_GPU_TEXTS; i++)
		t[i] = i % 4000 ? (char)('a' + evil_random() % 26) : '\0';
	t[MXBPF_GPU_TEXTS - 1] = '\0';
	evil_shared->gpu.texts_len = MXBPF_GPU_TEXTS - 1;
	for (at = 1; at + MXBPF_AGENT_GPU_BATCH < MXBPF_GPU_TEXTS; at += MXBPF_AGENT_GPU_BATCH) {
		fill(MXBPF_AGENT_GPU_BATCH);
		for (i = 0; i < MXBPF_AGENT_GPU_BATCH; i++)
			b.gpu[i].name = at + i;
		hand_over();
		usleep(100);
	}
}

static void *take_ends(void *end)
{
	volatile char *e = end;

	for (;;)
		*e = *e ? '\0' : 'A';
	return NULL;
}

/* The only end of the names comes and goes while mxbpf reads them. Nothing behind it is mapped. */
static void gpu_name_changes(void)
{
	pthread_t thread;
	unsigned i;

	fill(1);
	memset(texts() + 100000, 'A', EVIL_BYTES - (size_t)(texts() + 100000 - (char *)evil_shared));
	pthread_create(&thread, NULL, take_ends, texts() + MXBPF_GPU_TEXTS - 1);
	for (i = 0; i < 200; i++) {
		fill(1);
		b.gpu[0].name = MXBPF_GPU_TEXTS - 201 + i;
		hand_over();
		usleep(1000);
	}
}

static void gpu_escapes(void)
{
	fill(3);
	b.gpu[0].name = name("\033]0;evil\007\033[2J\xff\xfe");
	b.gpu[1].name = name("_Z\033[31m\n\r");
	b.gpu[2].name = name("\"},{\"evil\": [\\</script>\xe2\x80\xae%s%n");
	hand_over();
}

/* ---- batches and the state of the client */

static void gpu_batch_long(void)
{
	fill(MXBPF_AGENT_GPU_BATCH);
	b.what = MXBPF_AGENT_GPU;
	b.ncalls = MXBPF_AGENT_GPU_BATCH + 1;
	evil_ring(&b);
	b.ncalls = UINT32_MAX;
	evil_ring(&b);
}

static void gpu_random(void)
{
	uint32_t *words = (uint32_t *)b.gpu;
	size_t i;

	fill(1);
	for (;;) {
		for (i = 0; i < sizeof(b.gpu) / 4; i++)
			words[i] = (uint32_t)evil_random();
		for (i = 0; i < MXBPF_AGENT_GPU_BATCH; i++)
			b.gpu[i].kind = (uint8_t)(1 + evil_random() % 8);
		b.ncalls = evil_random() % (MXBPF_AGENT_GPU_BATCH + 1);
		hand_over();
		usleep(100);
	}
}

static void gpu_ndevices(void)
{
	fill(1);
	evil_shared->gpu.ndevices = 4000000000u;
}

/* The agent writes only the first device. */
static void gpu_about(void)
{
	unsigned i;

	fill(1);
	memset(evil_shared->gpu.devices, 0xee, sizeof(evil_shared->gpu.devices));
	for (i = 0; i < MXBPF_GPU_DEVICES; i++)
		evil_shared->gpu.devices[i].name[0] = '\033';
	evil_shared->gpu.ndevices = MXBPF_GPU_DEVICES;
}

static void gpu_sums(void)
{
	struct mxbpf_gpu_shared *g = &evil_shared->gpu;

	fill(1);
	g->records = g->dropped = g->scrapped = g->unreadable = g->unknown = g->no_name = HUGE;
	g->subscriptions = g->held_ns = HUGE;
}

static void gpu_sums_back(void)
{
	struct mxbpf_gpu_shared *g = &evil_shared->gpu;

	fill(1);
	g->records = g->dropped = 0;
	g->scrapped = g->unknown = g->held_ns = UINT64_MAX;
}

/* The agent's thread changes the state, too. */
static void gpu_state(void)
{
	fill(1);
	for (;;) {
		evil_shared->gpu.state = 4000000000u;
		evil_shared->gpu.failed = evil_shared->gpu.result = UINT32_MAX;
		usleep(1000);
	}
}

static void gpu_held(void)
{
	fill(1);
	for (;;)
		evil_shared->gpu.state = MXBPF_GPU_ON; /* mxbpf waits at its end until CUPTI is free */
}

static void strings(int c)
{
	struct mxbpf_gpu_shared *g = &evil_shared->gpu;

	fill(1);
	for (;;) {
		memset(g->path, c, sizeof(g->path));
		memset(g->holder, c, sizeof(g->holder));
		memset(g->library, c, sizeof(g->library));
		g->state = MXBPF_GPU_BUSY;
		g->failed = MXBPF_GPU_AT_SUBSCRIBE;
		usleep(1000);
	}
}

static void gpu_strings(void)
{
	strings('A');
}

static void gpu_strings_escape(void)
{
	strings('\033');
}

const struct attack evil_gpu[] = {
	{.name = "gpu-legal", .run = legal, .gpu = true},
	{.name = "gpu-flood", .run = flood, .gpu = true},
	{.name = "gpu-flood-on", .run = flood_on, .gpu = true},
	{.name = "gpu-kind", .run = gpu_kind, .gpu = true},
	{.name = "gpu-kind-0", .run = gpu_kind_0, .gpu = true},
	{.name = "gpu-name-beyond", .run = gpu_name, .gpu = true},
	{.name = "gpu-name-unended", .run = gpu_unended, .gpu = true},
	{.name = "gpu-name-long", .run = gpu_long, .gpu = true},
	{.name = "gpu-name-changes", .run = gpu_name_changes, .gpu = true},
	{.name = "gpu-name-bomb", .run = gpu_bomb, .gpu = true},
	{.name = "gpu-name-escapes", .run = gpu_escapes, .gpu = true},
	{.name = "gpu-names-many", .run = gpu_names_many, .gpu = true},
	{.name = "gpu-times", .run = gpu_times, .gpu = true},
	{.name = "gpu-backward", .run = gpu_backward, .gpu = true},
	{.name = "gpu-clocks", .run = gpu_clocks, .gpu = true},
	{.name = "gpu-clocks-random", .run = gpu_clocks_random, .gpu = true},
	{.name = "gpu-many", .run = gpu_many, .gpu = true},
	{.name = "gpu-devices", .run = gpu_devices, .gpu = true},
	{.name = "gpu-words", .run = gpu_words, .gpu = true},
	{.name = "gpu-calls", .run = gpu_calls, .gpu = true},
	{.name = "gpu-batch-long", .run = gpu_batch_long, .gpu = true},
	{.name = "gpu-random", .run = gpu_random, .gpu = true},
	{.name = "gpu-ndevices", .run = gpu_ndevices, .gpu = true},
	{.name = "gpu-about", .run = gpu_about, .gpu = true},
	{.name = "gpu-sums", .run = gpu_sums, .gpu = true},
	{.name = "gpu-sums-back", .run = gpu_sums_back, .gpu = true},
	{.name = "gpu-state", .run = gpu_state, .gpu = true},
	{.name = "gpu-held", .run = gpu_held, .gpu = true},
	{.name = "gpu-strings", .run = gpu_strings, .gpu = true},
	{.name = "gpu-strings-escape", .run = gpu_strings_escape, .gpu = true},
	{.name = NULL},
};
