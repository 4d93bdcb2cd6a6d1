// SPDX-License-Identifier: Apache-2.0
/* The state of the driver: initialisation, functions of the device, calls and their correlation ids. */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>

#define FUNCTIONS	4096 /* a power of two */
#define DEPTH_MAX	4
#define PAGEABLE_PER_US 5000 /* bytes copied per microsecond */
#define PINNED_PER_US	25000
#define DEVICE_PER_US	1000000
#define INJECTION_MAX	1023 /* bytes of a path; libcuda ignores a longer one */

enum state { NEW, READY, OVER, FORKED };

struct thread {
	struct double_call calls[DEPTH_MAX];
	int depth;
	uint64_t next_ns;
	const char *symbol; /* of the next call */
	const void *params;
};

static struct double_account account;
static enum state state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the functions */
static struct double_function *functions[FUNCTIONS], *stubs[FUNCTIONS];
static uint32_t correlation, nevents;
static __thread struct thread self;

DOUBLE_EXPORT struct double_account *double_account(void)
{
	return &account;
}

int driver_ready(void)
{
	switch (__atomic_load_n(&state, __ATOMIC_ACQUIRE)) {
	case READY:
		return 0;
	case OVER:
		return CUDA_DEINITIALIZED;
	default:
		return CUDA_NOT_INITIALIZED;
	}
}

/* Returns 1 if CUDA can be used, 0 if it was not initialised yet, -1 after exit() and -2 in a forked child. */
DOUBLE_EXPORT int double_initialised(void)
{
	enum state s = __atomic_load_n(&state, __ATOMIC_ACQUIRE);

	return s == READY ? 1 : s == OVER ? -1 : s == FORKED ? -2 : 0;
}

/* Returns 0, or -1 if another mock of CUPTI is attached. */
DOUBLE_EXPORT int double_attach(const struct double_hooks *hooks)
{
	if (device_hooks && device_hooks != hooks)
		return -1;
	device_hooks = hooks;
	return 0;
}

void *driver_self(void)
{
	Dl_info info;

	dladdr((void *)double_attach, &info);
	return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

static void forked(void)
{
	state = state == NEW ? NEW : FORKED;
	if (device_hooks && device_hooks->forked)
		device_hooks->forked();
}

static void over(void)
{
	if (state != READY)
		return;
	__atomic_store_n(&state, OVER, __ATOMIC_RELEASE);
}

/* For programs that end by _exit(), which write no account otherwise. */
DOUBLE_EXPORT void double_write_account(void)
{
	account_write(&account);
}

/* Runs behind the exit handlers, so the account has what they did. */
static void __attribute__((destructor)) at_end(void)
{
	if (state == OVER)
		account_write(&account);
}

static void inject(const char *path)
{
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*start)(void) = object ? (int (*)(void))dlsym(object, "InitializeInjection") : NULL;

	if (!start)
		fprintf(stderr, "GPU double: CUDA_INJECTION64_PATH: %s\n", dlerror());
	else if (!start())
		fprintf(stderr, "GPU double: InitializeInjection of %s failed\n", path);
}

static void initialise(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");

	correlation = (uint32_t)double_number("correlation", 4294967200.0, 0);
	pthread_atfork(NULL, NULL, forked);
	atexit(over);
	__atomic_store_n(&state, READY, __ATOMIC_RELEASE);
	if (path && *path && strlen(path) <= INJECTION_MAX)
		inject(path);
}

DOUBLE_EXPORT int cuInit(uint32_t flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int fail = (int)double_number("cuInit", 999, 0);

	if (fail)
		return fail;
	pthread_once(&once, initialise);
	return driver_ready();
}

DOUBLE_EXPORT void double_call_begin(uint32_t domain, uint32_t cbid)
{
	struct double_call *c = &self.calls[self.depth < DEPTH_MAX ? self.depth : DEPTH_MAX - 1];

	if (!self.depth++)
		c->correlation = __atomic_add_fetch(&correlation, 1, __ATOMIC_RELAXED);
	else
		c->correlation = self.calls[0].correlation;
	c->domain = domain;
	c->cbid = cbid;
	c->symbol = self.symbol;
	c->params = self.params;
	c->device = device_current;
	self.symbol = NULL;
	self.params = NULL;
	c->depth = self.depth;
	device_count(domain == DOUBLE_RUNTIME ? &account.calls_runtime : &account.calls_driver, 1);
	c->start = double_now();
	if (device_hooks)
		device_hooks->enter(c);
}

DOUBLE_EXPORT int double_call_end(int result)
{
	struct double_call *c;

	self.depth--;
	c = &self.calls[self.depth < DEPTH_MAX ? self.depth : DEPTH_MAX - 1];
	c->end = double_now();
	c->result = result;
	if (device_hooks)
		device_hooks->leave(c);
	return result;
}

DOUBLE_EXPORT uint64_t double_corr(void)
{
	return self.depth ? self.calls[0].correlation : 0;
}

uint64_t device_called(void)
{
	return self.depth ? self.calls[0].start : double_now();
}

/* Sets the duration of the calling thread's next operation. */
DOUBLE_EXPORT void double_next_ns(uint64_t ns)
{
	self.next_ns = ns;
}

/* Returns when the default stream of the thread's device runs out of work (CLOCK_MONOTONIC). */
DOUBLE_EXPORT uint64_t double_free_at(void)
{
	return device_stream(NULL)->free_at;
}

/* Sets the device of the calling thread. */
DOUBLE_EXPORT void double_set_device(uint32_t device)
{
	device_current = device < DEVICES ? device : 0;
}

static uint64_t take_ns(uint64_t otherwise)
{
	uint64_t ns = self.next_ns;

	self.next_ns = 0;
	return ns ? ns : otherwise;
}

static uint32_t hash(const char *text)
{
	uint32_t h = 2166136261u;

	while (*text)
		h = (h ^ (uint8_t)*text++) * 16777619u;
	return h;
}

void driver_launches(const struct double_function *f, const void *params)
{
	self.symbol = f && f->magic == DOUBLE_FUNCTION_MAGIC ? f->name : NULL;
	self.params = params;
}

static uint32_t place(const void *stub)
{
	return (uint32_t)((uintptr_t)stub >> 4) & (FUNCTIONS - 1);
}

/* Returns the function of this name, which is made at its first use. Its properties follow from the name. */
DOUBLE_EXPORT struct double_function *double_function(const char *name)
{
	uint32_t h = hash(name);
	struct double_function *f, **at = &functions[h & (FUNCTIONS - 1)];

	pthread_mutex_lock(&lock);
	for (f = *at; f && strcmp(f->name, name); f = f->next)
		;
	if (!f) {
		f = calloc(1, sizeof(*f));
		f->magic = DOUBLE_FUNCTION_MAGIC;
		f->name = strdup(name);
		f->ns = 5000 + h % 45 * 1000;
		f->registers = 16 + h % 112;
		f->shared = h % 4 * 4096;
		f->next = *at;
		*at = f;
	}
	pthread_mutex_unlock(&lock);
	return f;
}

DOUBLE_EXPORT void double_register_stub(const void *stub, const char *name)
{
	struct double_function *f = double_function(name);

	pthread_mutex_lock(&lock);
	if (!f->stub) {
		f->stub = stub;
		f->next_stub = stubs[place(stub)];
		stubs[place(stub)] = f;
	}
	pthread_mutex_unlock(&lock);
}

/* Returns the function of a host stub; a pointer to a struct double_function is its own stub. NULL: unknown. */
DOUBLE_EXPORT struct double_function *double_function_of_stub(const void *stub)
{
	struct double_function *f;

	pthread_mutex_lock(&lock);
	for (f = stubs[place(stub)]; f && f->stub != stub; f = f->next_stub)
		;
	pthread_mutex_unlock(&lock);
	if (!f && stub && !((uintptr_t)stub & 15) && *(const uint64_t *)stub == DOUBLE_FUNCTION_MAGIC)
		f = (struct double_function *)(uintptr_t)stub;
	return f;
}

int driver_launch(const struct double_function *f, const uint32_t *grid, const uint32_t *block, uint32_t shared,
		  void *stream)
{
	struct double_op op = {.kind = KIND_KERNEL, .dynamic = shared};

	if (!f || f->magic != DOUBLE_FUNCTION_MAGIC)
		return CUDA_INVALID_HANDLE;
	op.name = f->name;
	op.registers = f->registers;
	op.shared = f->shared;
	op.correlation = (uint32_t)double_corr();
	memcpy(op.grid, grid, sizeof(op.grid));
	memcpy(op.block, block, sizeof(op.block));
	device_run(device_stream(stream), &op, take_ns(f->ns));
	return 0;
}

static unsigned copy_kind(unsigned from, unsigned to)
{
	if (from == MEMORY_DEVICE)
		return to == MEMORY_DEVICE ? COPY_DTOD : COPY_DTOH;
	return to == MEMORY_DEVICE ? COPY_HTOD : COPY_HTOH;
}

void driver_copy(const void *to, const void *from, size_t bytes, void *stream, bool async)
{
	struct stream *s = device_stream(stream);
	struct double_op op = {.kind = KIND_COPY, .bytes = bytes, .async = async};
	uint64_t per_us = PINNED_PER_US;

	op.from = (uint8_t)device_memory_kind(from);
	op.to = (uint8_t)device_memory_kind(to);
	op.copy = (uint8_t)copy_kind(op.from, op.to);
	op.correlation = (uint32_t)double_corr();
	if (op.from == MEMORY_PAGEABLE || op.to == MEMORY_PAGEABLE)
		per_us = PAGEABLE_PER_US;
	else if (op.copy == COPY_DTOD)
		per_us = DEVICE_PER_US;
	device_run(s, &op, take_ns(1000 + bytes * 1000 / per_us));
	if (!async)
		device_sleep_until(op.end);
}

void driver_copy_peer(size_t bytes, void *stream)
{
	struct double_op op = {.kind = KIND_PEER, .bytes = bytes, .async = 1, .copy = COPY_PTOP, .to_device = 1};

	op.from = op.to = MEMORY_DEVICE;
	op.correlation = (uint32_t)double_corr();
	device_run(device_stream(stream), &op, take_ns(1000 + bytes * 1000 / DEVICE_PER_US));
}

void driver_set(const void *at, uint32_t value, size_t bytes, void *stream)
{
	struct double_op op = {.kind = KIND_SET, .bytes = bytes, .value = value};

	op.to = (uint8_t)device_memory_kind(at);
	op.correlation = (uint32_t)double_corr();
	device_run(device_stream(stream), &op, take_ns(1000 + bytes * 1000 / DEVICE_PER_US));
}

static void record_wait(struct double_op *op, const struct stream *s, const struct event *e)
{
	op->correlation = (uint32_t)double_corr();
	op->stream = s ? s->id : UINT32_MAX; /* CUPTI_SYNCHRONIZATION_INVALID_VALUE */
	op->event = e ? e->id : UINT32_MAX;
	op->context = s ? s->context : 1 + device_current;
	op->end = double_now();
	device_count(&account.launched[KIND_SYNC], 1);
	if (device_hooks)
		device_hooks->op(op);
}

void driver_wait(uint32_t type, struct stream *s, const struct event *e)
{
	struct double_op op = {.kind = KIND_SYNC, .type = type, .start = double_now()};
	uint64_t until = e ? e->at : s ? s->free_at : device_free_at();

	if (type == SYNC_WAIT)
		s->free_at = until > s->free_at ? until : s->free_at;
	else
		device_sleep_until(until);
	record_wait(&op, s, e);
}

void driver_free(void *p)
{
	device_sleep_until(device_free_at());
	memory_free(p, false);
}

int driver_query(uint32_t type, struct stream *s, const struct event *e)
{
	struct double_op op = {.kind = KIND_SYNC, .type = type, .start = double_now()};

	op.unready = (e ? e->at : s->free_at) > op.start;
	record_wait(&op, s, e);
	return op.unready ? CUDA_NOT_READY : 0;
}

struct event *driver_event_new(void)
{
	struct event *e = calloc(1, sizeof(*e));

	e->id = __atomic_add_fetch(&nevents, 1, __ATOMIC_RELAXED);
	return e;
}

void *driver_context(void)
{
	return state == READY ? &account : NULL;
}

int driver_place(int device)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	int i;

	for (i = 0; list && i < device; i++)
		list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL;
	return list && *list ? atoi(list) : device;
}

int driver_attribute(int attribute, int device)
{
	switch (attribute) {
	case 1: /* MAX_THREADS_PER_BLOCK */
		return 1024;
	case 10: /* WARP_SIZE */
		return 32;
	case 13: /* CLOCK_RATE, kHz */
		return 1980000;
	case 16: /* MULTIPROCESSOR_COUNT */
		return double_option("instance") ? 16 : 132;
	case 33: /* PCI_BUS_ID */
		return 25 + driver_place(device);
	case 36: /* MEMORY_CLOCK_RATE, kHz */
		return 3201000;
	case 37: /* GLOBAL_MEMORY_BUS_WIDTH, bits */
		return 6144;
	case 39: /* MAX_THREADS_PER_MULTIPROCESSOR */
		return 2048;
	case 75: /* COMPUTE_CAPABILITY_MAJOR */
		return 9;
	case 12: /* MAX_REGISTERS_PER_BLOCK */
	case 82: /* MAX_REGISTERS_PER_MULTIPROCESSOR */
		return 65536;
	case 81: /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
		return 233472;
	case 106: /* MAX_BLOCKS_PER_MULTIPROCESSOR */
		return 32;
	case 133: /* MPS_ENABLED */
		return double_option("shared") != NULL;
	default:
		return 0;
	}
}
