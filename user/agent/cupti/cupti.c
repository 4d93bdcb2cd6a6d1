// SPDX-License-Identifier: Apache-2.0
/*
 * Holds CUPTI while mxbpf has a window open. Only one client can hold it, and the job's own profiler comes first: its
 * calls of CUPTI pass through functions of this file, which let go of CUPTI before they go on.
 */
#include "cupti.h"

#include <string.h>
#include <time.h>

#include "agent.h"
#include "cupti_metrics.h"
#include "cupti_tape.h"

#define LIBCUPTI	 "libcupti.so"
#define LIBCUDA		 "libcuda.so.1"
#define NS_PER_MS	 1000000ull
#define WAIT_NS		 20000000000ull /* how long a client waits for the agent to let go */
#define BUFFERS_NS	 1000000000ull	/* how long the agent waits for buffers after it has let go of CUPTI */
#define QUEUE_NS	 2000000000ull	/* how long the agent waits for work that was launched in the window */
#define HURRY_NS	 100000000ull /* instead of QUEUE_NS if a client or the end of the process waits for the agent */
#define QUEUE_FLUSH_NS	 5000000ull   /* interval of flushes during these waits */
#define AGAIN_NS	 5000000000ull
#define UNSEEN_TIMES	 12	/* times AGAIN_NS: longest trace that began before the hooks */
#define CLOCK_ROUNDS	 16	/* readings of the clock; the one that took the shortest time counts */
#define VERSION_MULTIPLE 130200 /* CUDA 13.2: struct cupti_subscriber_params has all its members */

struct cupti cupti;

/* The agent's hold on CUPTI. The thread that changes the phase from HELD to USING or LEAVING may call CUPTI. */
enum phase { IDLE, TAKING, HELD, USING, LEAVING };
static uint32_t phase;
static uint32_t waiting; /* threads that wait for the agent to let go */
static void *subscriber;
static uint64_t held_since_ns;
static uint64_t hooked_ns;	/* when the hooks were set; earlier calls of other clients were not seen */
static uint32_t thread_id_type; /* CUPTI's setting before the agent has changed it */

static const struct {
	const char *name;
	void *to;
	bool needed;
} functions[] = {
	{"cuptiGetVersion", &cupti.get_version, true},
	{"cuptiGetTimestamp", &cupti.get_timestamp, true},
	{"cuptiGetCallbackName", &cupti.get_callback_name, false},
	{"cuptiSubscribe", &cupti.subscribe, true},
	{"cuptiSubscribe_v2", &cupti.subscribe_v2, false},
	{"cuptiUnsubscribe", &cupti.unsubscribe, true},
	{"cuptiEnableCallback", &cupti.enable_callback, false},
	{"cuptiGetGraphNodeId", &cupti.get_node_id, false},
	{"cuptiActivityRegisterCallbacks", &cupti.register_callbacks, true},
	{"cuptiActivityEnable", &cupti.enable, true},
	{"cuptiActivityDisable", &cupti.disable, true},
	{"cuptiActivityEnableDriverApi", &cupti.enable_driver_api, false},
	{"cuptiActivityEnableRuntimeApi", &cupti.enable_runtime_api, false},
	{"cuptiActivityEnableAllSyncRecords", &cupti.enable_all_syncs, false},
	{"cuptiActivityFlushAll", &cupti.flush_all, true},
	{"cuptiActivityGetNextRecord", &cupti.get_next_record, true},
	{"cuptiActivityGetNumDroppedRecords", &cupti.get_dropped, true},
	{"cuptiSetThreadIdType", &cupti.set_thread_id_type, false},
	{"cuptiGetThreadIdType", &cupti.get_thread_id_type, false},
};

static int cupti_fail(struct mxbpf_gpu_shared *g, enum mxbpf_gpu_at at, int result)
{
	g->failed = at;
	g->result = (uint32_t)result;
	__atomic_store_n(&g->state, MXBPF_GPU_FAILED, __ATOMIC_RELEASE);
	return -1;
}

/* ---- CUDA's driver */

static struct {
	int (*get_count)(int *count);
	int (*get_name)(char *name, int bytes, int device);
	int (*get_attribute)(int *value, int attribute, int device);
	int (*total_memory)(size_t *bytes, int device);
	int (*driver_version)(int *version);
	int (*get_uuid)(unsigned char uuid[16], int device);	/* of the whole GPU */
	int (*get_uuid_v2)(unsigned char uuid[16], int device); /* of the instance, if MIG divides it */
} driver;

static uint32_t attribute(int device, int number)
{
	int value = 0;

	return driver.get_attribute && !driver.get_attribute(&value, number, device) && value > 0 ? (uint32_t)value : 0;
}

static void describe_device(struct mxbpf_gpu_about *a, int i)
{
	size_t bytes = 0;

	if (driver.get_name)
		driver.get_name(a->name, sizeof(a->name), i);
	if (driver.total_memory && !driver.total_memory(&bytes, i))
		a->memory_bytes = bytes;
	a->multiprocessors = attribute(i, CUDA_MULTIPROCESSORS);
	a->major = attribute(i, CUDA_MAJOR);
	a->minor = attribute(i, CUDA_MINOR);
	a->threads_per_mp = attribute(i, CUDA_THREADS_PER_MP);
	a->blocks_per_mp = attribute(i, CUDA_BLOCKS_PER_MP);
	a->registers_per_mp = attribute(i, CUDA_REGISTERS_PER_MP);
	a->shared_per_mp = attribute(i, CUDA_SHARED_PER_MP);
	a->warp = attribute(i, CUDA_WARP_SIZE);
	a->clock_khz = attribute(i, CUDA_CLOCK_RATE);
	a->pci_domain = attribute(i, CUDA_PCI_DOMAIN);
	a->pci_bus = attribute(i, CUDA_PCI_BUS);
	a->pci_device = attribute(i, CUDA_PCI_DEVICE);
	a->memory_clock_khz = attribute(i, CUDA_MEMORY_CLOCK);
	a->memory_bus_bits = attribute(i, CUDA_MEMORY_BUS);
	a->mps = attribute(i, CUDA_MPS_ENABLED);
	if (!driver.get_uuid || driver.get_uuid(a->whole_uuid, i))
		memset(a->whole_uuid, 0, sizeof(a->whole_uuid));
	if (!driver.get_uuid_v2 || driver.get_uuid_v2(a->uuid, i))
		memcpy(a->uuid, a->whole_uuid, sizeof(a->uuid));
}

/* cuDeviceGetCount() fails until the process has called cuInit(), and changes nothing. */
bool cupti_has_cuda(struct mxbpf_gpu_shared *g)
{
	struct agent_dso d;
	int n = 0, i, version = 0;

	if (g->ndevices)
		return true;
	if (!agent_dso_find(LIBCUDA, &d))
		return false;
	agent_dso_get(&d, "cuDeviceGetCount", &driver.get_count);
	agent_dso_get(&d, "cuDeviceGetName", &driver.get_name);
	agent_dso_get(&d, "cuDeviceGetAttribute", &driver.get_attribute);
	agent_dso_get(&d, "cuDeviceTotalMem_v2", &driver.total_memory);
	agent_dso_get(&d, "cuDriverGetVersion", &driver.driver_version);
	agent_dso_get(&d, "cuDeviceGetUuid", &driver.get_uuid);
	agent_dso_get(&d, "cuDeviceGetUuid_v2", &driver.get_uuid_v2);
	if (!driver.get_count || driver.get_count(&n) || n < 1)
		return false;
	if (driver.driver_version && !driver.driver_version(&version))
		g->driver = (uint32_t)version;
	n = n < MXBPF_GPU_DEVICES ? n : MXBPF_GPU_DEVICES;
	for (i = 0; i < n; i++)
		describe_device(&g->devices[i], i);
	__atomic_store_n(&g->ndevices, (uint32_t)n, __ATOMIC_RELEASE);
	return true;
}

/* ---- other clients */

static void nap_for(uint64_t ns)
{
	const struct timespec t = {.tv_nsec = (long)ns};

	nanosleep(&t, NULL);
}

static void nap(void)
{
	nap_for(NS_PER_MS);
}

static bool cupti_step(enum phase from, enum phase to)
{
	uint32_t was = from;

	return __atomic_compare_exchange_n(&phase, &was, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void let_go(struct mxbpf_gpu_shared *g, enum mxbpf_gpu_state state);

/*
 * Another client is about to use CUPTI. Lets go first. If the agent is just subscribing, the client waits, because
 * otherwise CUPTI would refuse it, and PyTorch never asks a second time.
 */
static void give_way(void)
{
	struct mxbpf_agent_shared *s = agent_shared();
	const uint64_t now = agent_now();

	__atomic_store_n(&cupti_others.last_ns, now, __ATOMIC_RELAXED);
	__atomic_store_n(&cupti_others.seen, true, __ATOMIC_RELEASE);
	if (!s) /* a forked child: the agent does not run here */
		return;
	__atomic_fetch_add(&s->gpu.others, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&waiting, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) != IDLE && agent_now() - now < WAIT_NS) {
		if (cupti_step(HELD, LEAVING))
			let_go(&s->gpu, MXBPF_GPU_YIELDED);
		else
			nap();
	}
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_RELAXED);
}

/*
 * A client looks up functions of another libcupti, as Proton does in that of Triton. The driver has one client in a
 * process, whatever its library is, and later calls of those functions are not seen. So the agent leaves for good.
 */
static void give_way_for_good(void)
{
	__atomic_store_n(&cupti_others.elsewhere, true, __ATOMIC_RELEASE);
	give_way();
}

typedef long (*any_fn)(long a, long b, long c, long d, long e, long f);

enum hook {
	SUBSCRIBE,
	SUBSCRIBE_2,
	REGISTER,
	REGISTER_2,
	ENABLE,
	ENABLE_2,
	DUMP,
	DUMP_2,
	DRIVER_API,
	RUNTIME_API,
	TIMESTAMP,
	ATTRIBUTE,
	ATTRIBUTE_2,
	FINALIZE,
	DISABLE,
	DISABLE_2,
	UNSUBSCRIBE,
	DLSYM,
	HOOKS
};
static struct agent_hook hooks[HOOKS];

static long pass(enum hook n, long a, long b, long c, long d, long e, long f)
{
	return ((any_fn)(uintptr_t)hooks[n].original)(a, b, c, d, e, f);
}

#define ARGS long a, long b, long c, long d, long e, long f
#define GIVES_WAY(name, n)                                                                                             \
	static long name(ARGS)                                                                                         \
	{                                                                                                              \
		give_way();                                                                                            \
		return pass(n, a, b, c, d, e, f);                                                                      \
	}
GIVES_WAY(on_subscribe, SUBSCRIBE)
GIVES_WAY(on_subscribe_2, SUBSCRIBE_2)
GIVES_WAY(on_register, REGISTER)
GIVES_WAY(on_register_2, REGISTER_2)
GIVES_WAY(on_timestamp, TIMESTAMP)
GIVES_WAY(on_attribute, ATTRIBUTE)
GIVES_WAY(on_attribute_2, ATTRIBUTE_2)

/* A kind is the first argument; in functions with _v2 it is the second. The agent waits while others have one enabled.
 */
#define ENABLES(name, n, kind)                                                                                         \
	static long name(ARGS)                                                                                         \
	{                                                                                                              \
		give_way();                                                                                            \
		cupti_others_enable((uint32_t)(kind), true);                                                           \
		return pass(n, a, b, c, d, e, f);                                                                      \
	}
ENABLES(on_enable, ENABLE, a)
ENABLES(on_enable_2, ENABLE_2, b)
ENABLES(on_dump, DUMP, a)
ENABLES(on_dump_2, DUMP_2, b)

static void other_called(void)
{
	__atomic_store_n(&cupti_others.last_ns, agent_now(), __ATOMIC_RELAXED);
}

#define DISABLES(name, n, kind)                                                                                        \
	static long name(ARGS)                                                                                         \
	{                                                                                                              \
		other_called();                                                                                        \
		cupti_others_enable((uint32_t)(kind), false);                                                          \
		return pass(n, a, b, c, d, e, f);                                                                      \
	}
DISABLES(on_disable, DISABLE, a)
DISABLES(on_disable_2, DISABLE_2, b)

/* The first argument is a function of CUDA. The second, of one byte, says whether to enable it. */
#define SWITCHES(name, n, kind)                                                                                        \
	static long name(ARGS)                                                                                         \
	{                                                                                                              \
		if ((uint8_t)b)                                                                                        \
			give_way();                                                                                    \
		else                                                                                                   \
			other_called();                                                                                \
		cupti_others_enable_function(kind, (uint32_t)a, (uint8_t)b);                                           \
		return pass(n, a, b, c, d, e, f);                                                                      \
	}
SWITCHES(on_driver_api, DRIVER_API, CUPTI_KIND_DRIVER)
SWITCHES(on_runtime_api, RUNTIME_API, CUPTI_KIND_RUNTIME)

static long on_finalize(ARGS)
{
	give_way();
	cupti_others_end();
	return pass(FINALIZE, a, b, c, d, e, f);
}

/*
 * What this client has enabled stays enabled, and CUPTI does not say who did it: a trace may be that of another client,
 * which need not have subscribed.
 */
static long on_unsubscribe(ARGS)
{
	other_called();
	return pass(UNSUBSCRIBE, a, b, c, d, e, f);
}

#define HOOK(n, function, by) [n] = {.name = function, .instead = (uint64_t)(uintptr_t)by}
static struct agent_hook hooks[HOOKS] = {
	HOOK(SUBSCRIBE, "cuptiSubscribe", on_subscribe),
	HOOK(SUBSCRIBE_2, "cuptiSubscribe_v2", on_subscribe_2),
	HOOK(REGISTER, "cuptiActivityRegisterCallbacks", on_register),
	HOOK(REGISTER_2, "cuptiActivityRegisterCallbacks_v2", on_register_2),
	HOOK(ENABLE, "cuptiActivityEnable", on_enable),
	HOOK(ENABLE_2, "cuptiActivityEnable_v2", on_enable_2),
	HOOK(DUMP, "cuptiActivityEnableAndDump", on_dump),
	HOOK(DUMP_2, "cuptiActivityEnableAndDump_v2", on_dump_2),
	HOOK(DRIVER_API, "cuptiActivityEnableDriverApi", on_driver_api),
	HOOK(RUNTIME_API, "cuptiActivityEnableRuntimeApi", on_runtime_api),
	HOOK(TIMESTAMP, "cuptiActivityRegisterTimestampCallback", on_timestamp),
	HOOK(ATTRIBUTE, "cuptiActivitySetAttribute", on_attribute),
	HOOK(ATTRIBUTE_2, "cuptiActivitySetAttribute_v2", on_attribute_2),
	HOOK(FINALIZE, "cuptiFinalize", on_finalize),
	HOOK(DISABLE, "cuptiActivityDisable", on_disable),
	HOOK(DISABLE_2, "cuptiActivityDisable_v2", on_disable_2),
	HOOK(UNSUBSCRIBE, "cuptiUnsubscribe", on_unsubscribe),
	HOOK(DLSYM, "dlsym", agent_dlsym),
};

static void find_hooks(const struct agent_dso *d)
{
	unsigned i;

	for (i = 0; i < DLSYM; i++)
		hooks[i].original = agent_dso_symbol(d, hooks[i].name);
	hooks[DLSYM].original = agent_dlsym_begin(hooks, DLSYM, give_way_for_good);
}

static void watch_others(struct mxbpf_gpu_shared *g)
{
	const int err = agent_dso_hook(hooks, HOOKS, LIBCUPTI);

	hooked_ns = hooked_ns ? hooked_ns : agent_now();
	if (err)
		__atomic_store_n(&g->unhooked, (uint32_t)-err, __ATOMIC_RELAXED);
}

/* ---- the library */

int cupti_open(struct mxbpf_gpu_shared *g)
{
	struct agent_dso d;
	unsigned i;
	int err;

	if (cupti.get_version)
		return 0;
	if (!agent_dso_find(LIBCUPTI, &d) && (!cupti_load(g) || !agent_dso_find(LIBCUPTI, &d)))
		return cupti_fail(g, MXBPF_GPU_AT_LIBRARY, 0);
	memcpy(g->path, d.path, sizeof(g->path));
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (!agent_dso_get(&d, functions[i].name, functions[i].to) && functions[i].needed) {
			memset(&cupti, 0, sizeof(cupti));
			return cupti_fail(g, MXBPF_GPU_AT_SYMBOL, 0);
		}
	}
	err = cupti.get_version(&g->version);
	if (err || g->version < CUPTI_VERSION_MIN) {
		memset(&cupti, 0, sizeof(cupti));
		return cupti_fail(g, MXBPF_GPU_AT_VERSION, err);
	}
	find_hooks(&d);
	cupti_tape_begin(g->version);
	return 0;
}

/* ---- subscription */

static void read_clock(struct mxbpf_gpu_shared *g)
{
	uint64_t before, after, ns, best = UINT64_MAX;
	struct mxbpf_gpu_rec r = {.kind = MXBPF_GPU_CLOCK};
	unsigned i;

	for (i = 0; i < CLOCK_ROUNDS; i++) {
		before = agent_now();
		if (cupti.get_timestamp(&ns))
			return;
		after = agent_now();
		if (after - before >= best)
			continue;
		best = after - before;
		r.start_ns = ns;
		r.clock.before_high = (uint32_t)(before >> 32);
		r.clock.before_low = (uint32_t)before;
		r.clock.after_high = (uint32_t)(after >> 32);
		r.clock.after_low = (uint32_t)after;
	}
	cupti_send(g, &r);
}

/*
 * The calls of CUDA that mxbpf uses: those that start work on the GPU, those that wait for it, and those that allocate.
 * A program calls others far more often, and each would have a record. From CUDA 12.5 on, single functions of the
 * driver can be disabled, and from CUDA 12.6 on those of the runtime. Their kind is enabled first: in a context that
 * exists already, CUPTI 13.0 makes no record of a function that was enabled alone.
 */
static struct calls {
	uint32_t want, kind, domain, gives;
	int (**one)(uint32_t cbid, uint8_t enable);
	bool (*used)(void); /* if single functions cannot be disabled, the kind is where this is true; NULL: always */
	size_t prefix;	    /* length of "cuda" or "cu" */
	bool on;
} calls[] = {
	{MXBPF_GPU_WANT_DRIVER, CUPTI_KIND_DRIVER, CUPTI_DOMAIN_DRIVER, MXBPF_GPU_DRIVER, &cupti.enable_driver_api,
	 cupti_driver_used, 2, false},
	{MXBPF_GPU_WANT_CALLS, CUPTI_KIND_RUNTIME, CUPTI_DOMAIN_RUNTIME, MXBPF_GPU_CALL, &cupti.enable_runtime_api,
	 NULL, 4, false},
};
#define DOMAINS (sizeof(calls) / sizeof(calls[0]))

/* Functions of the driver that give memory to a range of addresses, as PyTorch's expandable segments and NCCL do. */
static bool maps_memory(const char *name)
{
	static const char *const names[] = {"MemCreate", "MemRelease", "MemMap", "MemUnmap"};
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static bool is_used(const char *name)
{
	static const char *const begin[] = {"Launch", "GraphLaunch", "Memcpy", "Memset",	 "MemPrefetch",
					    "Malloc", "HostAlloc",   "Free",   "StreamWaitEvent"};
	unsigned i;

	for (i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
		if (!strncmp(name, begin[i], strlen(begin[i])))
			return true;
	return strstr(name, "Synchronize");
}

static bool enable_calls(struct calls *c, uint32_t want)
{
	const bool can_choose = *c->one && cupti.get_callback_name, maps = want & MXBPF_GPU_WANT_MEMORY;
	const char *name;
	uint32_t cbid;

	c->on = (can_choose || !c->used || c->used()) && !cupti.enable(c->kind);
	for (cbid = 1; c->on && can_choose && cbid < CUPTI_CALLS_MAX; cbid++) {
		if (cupti.get_callback_name((int)c->domain, cbid, &name) || !name || strlen(name) < c->prefix)
			continue;
		name += c->prefix;
		if (!is_used(name) && !(maps && maps_memory(name)))
			(*c->one)(cbid, 0);
	}
	return c->on;
}

/* Disabling the kind also ends what CUPTI does at functions that were not disabled one by one. */
static void disable_calls(struct calls *c)
{
	if (c->on)
		cupti.disable(c->kind);
	c->on = false;
}

static const struct {
	uint32_t want, kind, gives;
} kinds[] = {
	{MXBPF_GPU_WANT_KERNELS, CUPTI_KIND_KERNEL, MXBPF_GPU_KERNEL},
	{MXBPF_GPU_WANT_KERNELS, CUPTI_KIND_MEMCPY, MXBPF_GPU_COPY},
	{MXBPF_GPU_WANT_KERNELS, CUPTI_KIND_MEMCPY2, MXBPF_GPU_COPY},
	{MXBPF_GPU_WANT_KERNELS, CUPTI_KIND_MEMSET, MXBPF_GPU_SET},
	{MXBPF_GPU_WANT_KERNELS, CUPTI_KIND_SYNC, MXBPF_GPU_SYNC},
	{MXBPF_GPU_WANT_KERNELS, CUPTI_KIND_OVERHEAD, MXBPF_GPU_OVERHEAD},
	{MXBPF_GPU_WANT_MEMORY, CUPTI_KIND_MEMORY2, MXBPF_GPU_MEMORY},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Enables the kinds that mxbpf wants. A device or version may lack some, which is no failure if there are others. */
static int enable_kinds(struct mxbpf_gpu_shared *g)
{
	uint32_t want = __atomic_load_n(&g->want, __ATOMIC_RELAXED), enabled = 0;
	int err = 0, one;
	unsigned i;

	for (i = 0; i < DOMAINS; i++) /* first, so that no kernel is recorded without its launch */
		if (want & calls[i].want && enable_calls(&calls[i], want))
			enabled |= 1u << calls[i].gives;
	for (i = 0; i < KINDS; i++) {
		if (!(want & kinds[i].want) ||
		    (kinds[i].kind == CUPTI_KIND_MEMORY2 && g->version < CUPTI_VERSION_MEMORY))
			continue;
		one = cupti.enable(kinds[i].kind);
		err = one ? one : err;
		if (!one)
			enabled |= 1u << kinds[i].gives;
	}
	g->enabled = enabled;
	return want & MXBPF_GPU_WANT_KERNELS && !(enabled & 1u << MXBPF_GPU_KERNEL) ? err : 0;
}

/* Enables kinds for a library that calls the driver and was loaded after the window began. */
static void enable_late(struct mxbpf_gpu_shared *g)
{
	static uint64_t looked;
	const uint64_t changes = agent_dso_changes();
	unsigned i;

	for (i = 0; i < DOMAINS && looked != changes; i++)
		if (g->want & calls[i].want && !(g->enabled & 1u << calls[i].gives) && enable_calls(&calls[i], g->want))
			g->enabled |= 1u << calls[i].gives;
	looked = changes;
}

static void disable_kinds(const struct mxbpf_gpu_shared *g)
{
	unsigned i;

	for (i = 0; i < KINDS; i++)
		if (g->enabled & 1u << kinds[i].gives)
			cupti.disable(kinds[i].kind);
	for (i = 0; i < DOMAINS; i++)
		disable_calls(&calls[i]);
}

/* Sets CUPTI's options. restore_options() puts back those that other clients can see. */
static void set_options(struct mxbpf_gpu_shared *g)
{
	if (!cupti.get_thread_id_type || cupti.get_thread_id_type(&thread_id_type))
		thread_id_type = CUPTI_THREAD_ID_DEFAULT;
	g->foreign_tids = !cupti.set_thread_id_type || cupti.set_thread_id_type(CUPTI_THREAD_ID_SYSTEM);
	if (cupti.enable_all_syncs) /* a program may query so often that records of it would push others out */
		cupti.enable_all_syncs(0);
}

static void restore_options(void)
{
	if (cupti.set_thread_id_type)
		cupti.set_thread_id_type(thread_id_type);
	if (cupti.enable_all_syncs)
		cupti.enable_all_syncs(1); /* the default; CUPTI does not tell what was set */
}

/* Asks for the name of the client that holds CUPTI, in a way that does not make the agent a client. */
static void ask_holder(struct mxbpf_gpu_shared *g)
{
	struct cupti_subscriber_params p = {
		.struct_size = g->version < VERSION_MULTIPLE ? offsetof(struct cupti_subscriber_params, allow_multiple)
							     : sizeof(p),
		.name = "mxbpf",
		.old_name = g->holder,
		.old_name_size = sizeof(g->holder)};
	void *by_chance = NULL;

	memset(g->holder, 0, sizeof(g->holder));
	if (cupti.subscribe_v2 && !cupti.subscribe_v2(&by_chance, NULL, NULL, &p))
		cupti.unsubscribe(by_chance);
	g->holder[sizeof(g->holder) - 1] = '\0';
}

/* Sets the state and undoes the subscription. */
static int give_up(struct mxbpf_gpu_shared *g, enum mxbpf_gpu_at at, int result, bool subscribed)
{
	if (!subscribed && result == CUPTI_MULTIPLE_SUBSCRIBERS) {
		if (at == MXBPF_GPU_AT_SUBSCRIBE)
			ask_holder(g);
		g->failed = at;
		g->result = (uint32_t)result;
		__atomic_store_n(&g->state, MXBPF_GPU_BUSY, __ATOMIC_RELEASE);
	} else {
		cupti_fail(g, at, result);
	}
	if (subscribed) {
		restore_options();
		cupti.unsubscribe(subscriber);
	}
	__atomic_store_n(&phase, IDLE, __ATOMIC_RELEASE);
	return -1;
}

/*
 * Returns true if another client may have a trace. A client need not subscribe for it: Kineto only registers callbacks
 * and enables kinds, and CUPTI accepts another subscriber meanwhile. Its callbacks stay registered when the trace has
 * ended. If the end was not seen, a client that has made no call for a while is idle.
 */
static bool is_others(struct mxbpf_gpu_shared *g)
{
	const uint64_t again_ns = g->again_ms ? g->again_ms * NS_PER_MS : AGAIN_NS, now = agent_now();
	const uint64_t last_ns = __atomic_load_n(&cupti_others.last_ns, __ATOMIC_RELAXED);
	const uint64_t since_ns = last_ns > hooked_ns ? last_ns : hooked_ns;
	const bool ended = __atomic_load_n(&cupti_others.ended, __ATOMIC_RELAXED);
	const bool quiet = now - since_ns >= (ended ? 1 : UNSEEN_TIMES) * again_ns;

	memset(g->holder, 0, sizeof(g->holder));
	if (!cupti_is_registered(g->holder, sizeof(g->holder)))
		return false;
	return cupti_others_record() || !quiet;
}

/*
 * Triton's Proton brings a libcupti of its own. Once another one was used in the process, the driver refuses it, even
 * if the agent has left.
 */
static bool uses_elsewhere(const struct agent_dso *d)
{
	return !strncmp(agent_dso_base(d->path), "libproton.", strlen("libproton."));
}

int cupti_hold(struct mxbpf_gpu_shared *g)
{
	const uint64_t begun = agent_now();
	uint64_t subscribed;
	int err;

	watch_others(g);
	if (!cupti_step(IDLE, TAKING))
		return -1;
	if (__atomic_load_n(&cupti_others.elsewhere, __ATOMIC_ACQUIRE) || agent_dso_any(uses_elsewhere))
		return give_up(g, MXBPF_GPU_AT_ELSEWHERE, CUPTI_MULTIPLE_SUBSCRIBERS, false);
	if (is_others(g))
		return give_up(g, MXBPF_GPU_AT_REGISTER, CUPTI_MULTIPLE_SUBSCRIBERS, false);
	__atomic_store_n(&g->state, MXBPF_GPU_SUBSCRIBING, __ATOMIC_RELEASE);
	err = cupti.subscribe(&subscriber, (void *)cupti_on_callback, NULL);
	if (err)
		return give_up(g, MXBPF_GPU_AT_SUBSCRIBE, err, false);
	subscribed = agent_now();
	g->subscribe_ns = subscribed - begun;
	set_options(g);
	err = cupti.register_callbacks(cupti_on_requested, cupti_on_completed);
	if (err)
		return give_up(g, MXBPF_GPU_AT_REGISTER, err, true);
	read_clock(g);
	err = enable_kinds(g);
	if (err) {
		disable_kinds(g);
		return give_up(g, MXBPF_GPU_AT_ENABLE, err, true);
	}
	cupti_graphs_watch(g, subscriber, true);
	cupti_metrics_watch(g, subscriber, true);
	held_since_ns = agent_now();
	g->enable_ns = held_since_ns - subscribed;
	g->failed = MXBPF_GPU_AT_NONE;
	g->result = 0;
	__atomic_fetch_add(&g->subscriptions, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&g->state, MXBPF_GPU_ON, __ATOMIC_RELEASE);
	__atomic_store_n(&phase, HELD, __ATOMIC_RELEASE);
	return 0;
}

/* Asks how many records were dropped at each flush. CUPTI may drop records without ever completing a buffer. */
static void flush(struct mxbpf_gpu_shared *g, uint32_t flag)
{
	size_t dropped = 0;

	cupti.flush_all(flag);
	if (cupti.get_dropped && !cupti.get_dropped(NULL, 0, &dropped))
		__atomic_fetch_add(&g->dropped, dropped, __ATOMIC_RELAXED);
	__atomic_fetch_add(&g->flushes, 1, __ATOMIC_RELAXED);
}

/*
 * Waits for work that was launched in the window and is still queued, often a whole step. Its records are complete when
 * it has ended. A forced flush hands over only what is complete by then, so the caller makes it last.
 */
static void await_queue(struct mxbpf_gpu_shared *g)
{
	const uint64_t begun = agent_now();

	flush(g, 0);
	while (cupti_has_buffers() &&
	       agent_now() - begun < (__atomic_load_n(&waiting, __ATOMIC_RELAXED) ? HURRY_NS : QUEUE_NS)) {
		nap_for(QUEUE_FLUSH_NS);
		flush(g, 0);
	}
}

/* Gives CUPTI back. The phase is LEAVING. CUPTI is not finalised, which would race with threads that use it. */
static void let_go(struct mxbpf_gpu_shared *g, enum mxbpf_gpu_state state)
{
	const uint64_t begun = agent_now();
	uint64_t forced;

	cupti_metrics_watch(g, subscriber, false);
	cupti_graphs_watch(g, subscriber, false);
	disable_kinds(g);
	await_queue(g);
	flush(g, CUPTI_FLUSH_FORCED);
	forced = agent_now();
	while (cupti_has_buffers() && agent_now() - forced < BUFFERS_NS) /* threads of CUPTI may complete them */
		nap();
	read_clock(g);
	restore_options();
	cupti.unsubscribe(subscriber);
	subscriber = NULL;
	g->stop_ns = agent_now() - begun;
	g->oldest_ns = 0;
	__atomic_fetch_add(&g->held_ns, begun - held_since_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&g->state, state, __ATOMIC_RELEASE);
	__atomic_store_n(&phase, IDLE, __ATOMIC_RELEASE);
}

void cupti_release(struct mxbpf_gpu_shared *g, enum mxbpf_gpu_state state, uint64_t limit_ns)
{
	const uint64_t begun = agent_now();
	const bool hurries = limit_ns < QUEUE_NS;

	__atomic_fetch_add(&waiting, hurries, __ATOMIC_RELAXED);
	while (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) != IDLE && agent_now() - begun < limit_ns)
		if (cupti_step(HELD, LEAVING))
			let_go(g, state);
		else
			nap();
	__atomic_fetch_sub(&waiting, hurries, __ATOMIC_RELAXED);
	cupti_trim();
}

bool cupti_is_held(void)
{
	return __atomic_load_n(&phase, __ATOMIC_ACQUIRE) != IDLE;
}

void cupti_flush(struct mxbpf_gpu_shared *g, bool tick)
{
	watch_others(g);
	if (!cupti_step(HELD, USING))
		return;
	if (tick)
		enable_late(g);
	cupti_graphs_send(g);
	cupti_metrics_tick(g, subscriber);
	flush(g, 0);
	__atomic_store_n(&g->oldest_ns, cupti_oldest_buffer(), __ATOMIC_RELAXED);
	read_clock(g);
	__atomic_store_n(&phase, HELD, __ATOMIC_RELEASE);
}

void cupti_forget(void)
{
	__atomic_store_n(&phase, IDLE, __ATOMIC_RELEASE);
	__atomic_store_n(&waiting, 0, __ATOMIC_RELAXED);
	cupti_forget_buffers();
	cupti_graphs_forget();
	cupti_metrics_forget();
}
