// SPDX-License-Identifier: Apache-2.0
/* Attacks by the shared memory: what it is, where it lies, how long it stays, and what mxbpf has written there. */
#define _GNU_SOURCE
#include "evil.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define POLL_US 200

static void die(const char *what)
{
	fprintf(stderr, "evil: %s: %s\n", what, strerror(errno));
	_exit(1);
}

/* ---- an agent that mxbpf has not loaded */

static uint64_t runtime_symbol(const char *name)
{
	void *lib = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);

	return lib ? (uint64_t)(uintptr_t)dlsym(lib, name) : 0;
}

/* Loads a copy of the agent as mxbpf would. */
static struct mxbpf_agent_config *load_fake(void)
{
	const int to = memfd_create("mxbpf-agent", 0), from = open(evil_object, O_RDONLY | O_CLOEXEC);
	struct mxbpf_agent_config *config;
	char bytes[4096], path[32];
	void *object;
	ssize_t n;

	if (to < 0 || from < 0)
		die(evil_object);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)n) != n)
			die("write");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
	object = dlopen(path, RTLD_NOW);
	if (!object)
		die("dlopen");
	config = dlsym(object, MXBPF_AGENT_CONFIG);
	config->add_callback = runtime_symbol("_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
	config->remove_callback = runtime_symbol("_ZN2at14removeCallbackEm");
	config->name = runtime_symbol("_ZNK2at14RecordFunction4nameEv");
	return config;
}

static void look_started(struct mxbpf_agent_shared *s)
{
	s->magic = MXBPF_AGENT_MAGIC;
	s->version = MXBPF_AGENT_VERSION;
	s->pid = (uint32_t)getpid();
	s->registered = 1;
	s->gpu.thread = 1;
}

/* Memory in a file of this process. Returns the file. */
static int own_memory(struct mxbpf_agent_shared **s)
{
	const int fd = memfd_create("evil", 0);

	if (fd < 0 || ftruncate(fd, (off_t)EVIL_BYTES))
		die("memfd");
	*s = mmap(NULL, EVIL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*s == MAP_FAILED)
		die("mmap");
	look_started(*s);
	return fd;
}

static void fake_legal(void)
{
	struct mxbpf_agent_shared *s;

	own_memory(&s);
	load_fake()->shared = (uint64_t)(uintptr_t)s;
}

static void fake_magic(void)
{
	struct mxbpf_agent_shared *s;

	own_memory(&s);
	s->magic++;
	s->slots[3].calls = 9000000000000000000ull;
	load_fake()->shared = (uint64_t)(uintptr_t)s;
}

static void fake_unmapped(void)
{
	void *at = mmap(NULL, EVIL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	munmap(at, EVIL_BYTES);
	load_fake()->shared = (uint64_t)(uintptr_t)at;
}

static void fake_unaligned(void)
{
	struct mxbpf_agent_shared *s;

	own_memory(&s);
	load_fake()->shared = (uint64_t)(uintptr_t)s + 8;
}

static void fake_kernel(void)
{
	load_fake()->shared = 0xfffffffffffff000ull;
}

static void fake_error(void)
{
	load_fake()->error = INT64_MIN;
}

/* The file ends behind the first page. */
static void fake_short(void)
{
	struct mxbpf_agent_shared *s;
	const int fd = own_memory(&s);

	load_fake()->shared = (uint64_t)(uintptr_t)s;
	if (ftruncate(fd, 4096))
		die("ftruncate");
}

static int victim;

static void *truncate_soon(void *memory)
{
	const struct mxbpf_agent_shared *s = memory;

	while (!__atomic_load_n(&s->since_ns, __ATOMIC_ACQUIRE) && !__atomic_load_n(&s->gpu.want, __ATOMIC_ACQUIRE))
		usleep(POLL_US);
	evil_began();
	if (ftruncate(victim, 0))
		fprintf(stderr, "evil: ftruncate: %s\n", strerror(errno));
	return NULL;
}

/* The file disappears when mxbpf has mapped it. */
static void fake_truncated(void)
{
	struct mxbpf_agent_shared *s;
	pthread_t thread;

	victim = own_memory(&s);
	load_fake()->shared = (uint64_t)(uintptr_t)s;
	pthread_create(&thread, NULL, truncate_soon, s);
}

/* The file of another user, which looks like the memory of an agent, and which this process may only read. */
static void fake_file(void)
{
	struct mxbpf_agent_shared *s;
	int fd = open(evil_file, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || ftruncate(fd, (off_t)EVIL_BYTES))
		die(evil_file);
	s = mmap(NULL, EVIL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		die("mmap");
	look_started(s);
	s->since_ns = 0x5555555555555555ull;
	memset(s->gpu.library, 'L', sizeof(s->gpu.library));
	munmap(s, EVIL_BYTES);
	close(fd);
	fd = open(evil_file, O_RDONLY | O_CLOEXEC);
	s = mmap(NULL, EVIL_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		die("mmap");
	close(fd);
	load_fake()->shared = (uint64_t)(uintptr_t)s;
}

/* ---- the memory of an agent that mxbpf has loaded */

/* Only root may open it in this way. */
static void shared_truncated(void)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%" PRIxPTR "-%" PRIxPTR, (uintptr_t)evil_shared,
		 (uintptr_t)evil_shared + EVIL_BYTES);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0))
		fprintf(stderr, "evil: impossible: %s\n", strerror(errno));
}

static void shared_emptied(void)
{
	if (madvise(evil_shared, EVIL_BYTES, MADV_REMOVE))
		fprintf(stderr, "evil: impossible: %s\n", strerror(errno));
}

static void shared_random(void)
{
	uint8_t *bytes = (uint8_t *)evil_shared;
	struct mxbpf_agent_slot *t;
	unsigned i;

	for (;;) {
		for (i = 0; i < 20000; i++) /* without what mxbpf has set, and without slots of the job */
			bytes[64 + evil_random() % (EVIL_BYTES - 64)] = (uint8_t)evil_random();
		t = &evil_shared->slots[evil_random() % MXBPF_AGENT_THREADS];
		t->tid = (uint32_t)evil_random();
		t->depth = evil_random() % 600;
		t->batch.ncalls = evil_random() % 400;
		t->calls += evil_random() >> 2;
		usleep(1000);
	}
}

static void shared_magic(void)
{
	evil_shared->magic++;
}

static void shared_version(void)
{
	evil_shared->version = 99;
}

static void since_0(void)
{
	evil_shared->since_ns = 0;
}

static void since_back(void)
{
	evil_shared->since_ns = 1;
}

static void want_back(void)
{
	evil_shared->gpu.want = UINT32_MAX;
	evil_shared->gpu.want = 0;
}

/* mxbpf has read the address before. */
static void config_changed(void)
{
	evil_config()->shared = 0x1000;
}

const struct attack evil_memory[] = {
	{.name = "fake-legal", .run = fake_legal, .early = true},
	{.name = "fake-magic", .run = fake_magic, .early = true},
	{.name = "fake-unmapped", .run = fake_unmapped, .early = true},
	{.name = "fake-unaligned", .run = fake_unaligned, .early = true},
	{.name = "fake-kernel", .run = fake_kernel, .early = true},
	{.name = "fake-error", .run = fake_error, .early = true},
	{.name = "fake-short", .run = fake_short, .early = true},
	{.name = "fake-truncated", .run = fake_truncated, .early = true},
	{.name = "fake-file", .run = fake_file, .early = true},
	{.name = "shared-truncated", .run = shared_truncated},
	{.name = "shared-emptied", .run = shared_emptied},
	{.name = "shared-random", .run = shared_random},
	{.name = "shared-random-gpu", .run = shared_random, .gpu = true},
	{.name = "shared-magic", .run = shared_magic},
	{.name = "shared-version", .run = shared_version},
	{.name = "since-0", .run = since_0},
	{.name = "since-back", .run = since_back},
	{.name = "want-back", .run = want_back, .gpu = true},
	{.name = "config-changed", .run = config_changed},
	{.name = NULL},
};
