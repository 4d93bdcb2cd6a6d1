// SPDX-License-Identifier: Apache-2.0
/*
 * Chooses launches whose hardware counters are measured. CUPTI calls back before and after each launch of the driver.
 * While a thread launches a measured kernel, launches of other threads wait: CUPTI would measure them, too, and with
 * several passes would execute them several times. Whatever fails ends the measurement, and the program goes on.
 */
#include "cupti_metrics.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent.h"

#define NAMES		  256	     /* names whose launches are counted; a power of two */
#define LAUNCH_NS	  5000000ull /* how long a launch of another thread may last until this one is not measured */
#define OTHERS_NS	  10000000000ull /* how long launches of other threads wait for a measured one */
#define LIMIT_NS	  2000000000ull	 /* a launch that takes longer is the last one */
#define EACH		  5		 /* launches of one name, if mxbpf does not say */
#define ALL		  50		 /* launches of all names */
#define CAPTURE_NS	  1000000000ull	 /* so long after a node was captured, some thread may still be capturing */
#define STREAM_PER_THREAD ((void *)2)	 /* CU_STREAM_PER_THREAD */
#define MARK		  0x6d78627000000000ull /* in what CUPTI keeps between the callbacks of a call, with the generation */
#define NS_PER_MS	  1000000ull

static struct {
	int (*get_device)(int *device);
	int (*is_capturing)(void *stream, int *status);
} driver;

static uint32_t busy;	    /* 1: a thread measures a launch, or the measurement ends */
static uint32_t launching;  /* threads that are in a call that launches */
static uint32_t generation; /* how often the callbacks were turned on; marks the calls that began since */
static bool watched;	    /* the callbacks are on */
static uint32_t lock;	    /* guards the batch */
static struct mxbpf_agent_batch batch;

/* Only the thread that has set `busy` uses these. */
static bool opened, measures;
static bool unrecorded; /* records of kernels are off during a measurement */
static void *context;
static uint64_t begun_ns;
static uint32_t *counted; /* points to the count of the kernel's name */
static struct mxbpf_gpu_rec launch;
static struct {
	uint64_t hash;
	uint32_t n;
} names[NAMES];

static const uint32_t cbids[] = {
	CUPTI_CU_LAUNCH_KERNEL,		CUPTI_CU_LAUNCH_KERNEL_PTSZ, CUPTI_CU_LAUNCH_KERNEL_EX,
	CUPTI_CU_LAUNCH_KERNEL_EX_PTSZ, CUPTI_CU_LAUNCH_COOPERATIVE, CUPTI_CU_LAUNCH_COOPERATIVE_PTSZ,
	CUPTI_CU_GRAPH_LAUNCH,		CUPTI_CU_GRAPH_LAUNCH_PTSZ,
};
#define CBIDS (sizeof(cbids) / sizeof(cbids[0]))

static uint32_t cupti_metrics_state_of(const struct mxbpf_gpu_metrics *m)
{
	return __atomic_load_n(&m->state, __ATOMIC_ACQUIRE);
}

static void set_state(struct mxbpf_gpu_metrics *m, enum mxbpf_gpu_metrics_state state)
{
	__atomic_store_n(&m->state, state, __ATOMIC_RELEASE);
}

static void give_up_cpu(void)
{
	agent_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

static bool cupti_metrics_take(uint32_t *word)
{
	return !__atomic_exchange_n(word, 1, __ATOMIC_ACQ_REL);
}

static void cupti_metrics_leave(uint32_t *word)
{
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

/* ---- records */

static void send(struct mxbpf_gpu_shared *g)
{
	while (!cupti_metrics_take(&lock))
		give_up_cpu();
	if (batch.ncalls)
		cupti_send_batch(g, &batch);
	cupti_metrics_leave(&lock);
}

static void put_values(struct mxbpf_gpu_shared *g, const double values[MXBPF_GPU_METRICS])
{
	uint32_t i;

	while (!cupti_metrics_take(&lock))
		give_up_cpu();
	if (batch.ncalls + MXBPF_GPU_METRICS > MXBPF_AGENT_GPU_BATCH)
		cupti_send_batch(g, &batch);
	launch.metric.first = 1;
	for (i = 0; i < MXBPF_GPU_METRICS; i++) {
		if (!(g->metrics.mask & 1u << i))
			continue;
		launch.metric.number = i;
		memcpy(&launch.bytes, &values[i], sizeof(launch.bytes));
		batch.gpu[batch.ncalls++] = launch;
		launch.metric.first = 0;
	}
	cupti_metrics_leave(&lock);
}

/* ---- the choice */

static char small(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool has_word(const char *text, const char *word)
{
	size_t i;

	for (; *text; text++) {
		for (i = 0; word[i] && small(text[i]) == word[i]; i++)
			;
		if (!word[i])
			return true;
	}
	return false;
}

/* CUPTI waits until a measured kernel has ended. One that waits for another kernel might never end. */
static bool communicates(const char *name)
{
	static const char *const words[] = {
		"nccl",		"nvshmem",    "all_reduce", "allreduce",      "all_gather",
		"allgather",	"all_to_all", "alltoall",   "reduce_scatter", "reducescatter",
		"cross_device", "multimem",   "deep_ep",    "symm_mem",	      "symmetric_memory",
		"barrier",	"grid_sync",  "gridsync",   "cooperative",    "persist",
	};
	unsigned i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (has_word(name, words[i]))
			return true;
	return false;
}

/* The pattern has parts of names, separated by commas. */
static bool is_chosen(const char *pattern, const char *name)
{
	const char *p = pattern, *at;
	size_t n;

	for (; *p; p += n + (p[n] == ',')) {
		n = strcspn(p, ",");
		for (at = name; n && *at; at++)
			if (!strncmp(at, p, n))
				return true;
	}
	return false;
}

/* Returns the count of the name's launches, or NULL if there are too many names. */
static uint32_t *count_of(const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull;
	unsigned i;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
	h |= 1;
	for (i = 0; i < NAMES; i++) {
		const unsigned at = ((unsigned)(h >> 32) + i) & (NAMES - 1);

		if (!names[at].hash)
			names[at].hash = h;
		if (names[at].hash == h)
			return &names[at].n;
	}
	return NULL;
}

struct call {
	void *stream;
	bool cooperative;
};

static bool is_cooperative(const struct cuda_launch_config *c)
{
	uint32_t i;

	for (i = 0; c->attributes && i < c->n; i++)
		if (c->attributes[i].id == CUDA_ATTRIBUTE_COOPERATIVE && c->attributes[i].value[0])
			return true;
	return false;
}

/* Returns false if the call launches no single kernel. */
static bool read_call(uint32_t cbid, const struct cupti_call *call, struct call *c)
{
	const struct cuda_launch *plain = call->params;
	const struct cuda_launch_ex *ex = call->params;

	*c = (struct call){0};
	switch (cbid) {
	case CUPTI_CU_LAUNCH_COOPERATIVE:
	case CUPTI_CU_LAUNCH_COOPERATIVE_PTSZ:
		c->cooperative = true;
		return call->symbol;
	case CUPTI_CU_LAUNCH_KERNEL:
	case CUPTI_CU_LAUNCH_KERNEL_PTSZ:
		c->stream = plain->stream;
		break;
	case CUPTI_CU_LAUNCH_KERNEL_EX:
	case CUPTI_CU_LAUNCH_KERNEL_EX_PTSZ:
		c->stream = ex->config->stream;
		c->cooperative = is_cooperative(ex->config);
		break;
	default:
		return false;
	}
	if (!c->stream && (cbid == CUPTI_CU_LAUNCH_KERNEL_PTSZ || cbid == CUPTI_CU_LAUNCH_KERNEL_EX_PTSZ))
		c->stream = STREAM_PER_THREAD;
	return call->symbol && call->params;
}

/*
 * Returns true if a stream is captured. A measurement waits for the context, and that would make a capture fail, also
 * that of another thread.
 */
static bool is_captured(const struct call *c)
{
	const uint64_t captured_ns = cupti_graphs_last();
	int status = 0;

	return !driver.is_capturing || driver.is_capturing(c->stream, &status) || status ||
	       (captured_ns && agent_now() - captured_ns < CAPTURE_NS);
}

static void cupti_metrics_refuse(struct mxbpf_gpu_metrics *m, enum mxbpf_gpu_metrics_refused why)
{
	__atomic_fetch_add(&m->refused[why], 1, __ATOMIC_RELAXED);
}

/* Returns true if the launch is to be measured. Then `busy` is set. */
static bool cupti_metrics_choose(struct mxbpf_gpu_metrics *m, uint32_t cbid, const struct cupti_call *call)
{
	struct call c;
	uint32_t *n;
	bool is_full;

	if (!__atomic_load_n(&m->active, __ATOMIC_RELAXED) || !read_call(cbid, call, &c) ||
	    !is_chosen(m->pattern, call->symbol))
		return false;
	if (c.cooperative || communicates(call->symbol)) {
		cupti_metrics_refuse(m, c.cooperative ? MXBPF_GPU_REFUSED_COOPERATIVE : MXBPF_GPU_REFUSED_COMMUNICATES);
		return false;
	}
	if (!cupti_metrics_take(&busy)) {
		cupti_metrics_refuse(m, MXBPF_GPU_REFUSED_BUSY);
		return false;
	}
	n = cupti_metrics_state_of(m) <= MXBPF_GPU_METRICS_ON ? count_of(call->symbol) : NULL;
	is_full = n && *n >= (m->each ? m->each : EACH);
	if (n && !is_full && opened && call->context != context)
		cupti_metrics_refuse(m, MXBPF_GPU_REFUSED_CONTEXT);
	else if (n && !is_full && is_captured(&c))
		cupti_metrics_refuse(m, MXBPF_GPU_REFUSED_CAPTURED);
	else if (n && !is_full) {
		++*n;
		counted = n;
		return true;
	} else if (!n && cupti_metrics_state_of(m) <= MXBPF_GPU_METRICS_ON)
		cupti_metrics_refuse(m, MXBPF_GPU_REFUSED_LIMIT);
	cupti_metrics_leave(&busy);
	return false;
}

/* ---- a launch */

/*
 * Turns records of kernels off and on. CUPTI makes a record without times of a kernel that it measures, and holds
 * buffers back until the measurement has ended. So the measured kernel gets no record. The records of others do not
 * change (seen with CUPTI 13.0.85).
 */
static void record_kernels(struct mxbpf_gpu_shared *g, bool on)
{
	const bool left = on && !watched; /* CUPTI was given back meanwhile, and the kind belongs to others now */
	int err;

	if (on == !unrecorded || left || !(g->enabled & 1u << MXBPF_GPU_KERNEL))
		return;
	err = on ? cupti.enable(CUPTI_KIND_KERNEL) : cupti.disable(CUPTI_KIND_KERNEL);
	unrecorded = !on;
	if (!err || cupti_metrics_state_of(&g->metrics) == MXBPF_GPU_METRICS_FAILED)
		return;
	g->metrics.step = MXBPF_GPU_STEP_RECORDS;
	g->metrics.result = (uint32_t)err;
	set_state(&g->metrics, MXBPF_GPU_METRICS_FAILED);
}

static void close_ranges(void)
{
	if (opened)
		ranges_close();
	opened = measures = false;
	context = NULL;
}

/* Waits for threads that began to launch before `busy` was set. Returns false if one takes too long. */
static bool is_alone(void)
{
	const uint64_t since_ns = agent_now();

	while (__atomic_load_n(&launching, __ATOMIC_ACQUIRE) > 1) {
		if (agent_now() - since_ns > LAUNCH_NS)
			return false;
		give_up_cpu();
	}
	return true;
}

static bool open_ranges(struct mxbpf_gpu_metrics *m, void *its)
{
	int device = 0;

	if (opened)
		return true;
	opened = true;
	context = its;
	if (driver.get_device)
		driver.get_device(&device);
	launch.device = (uint32_t)device;
	if (ranges_open(m, its, (uint32_t)device))
		return false;
	set_state(m, MXBPF_GPU_METRICS_ON);
	m->setup_ns = agent_now() - begun_ns;
	return true;
}

static void cupti_metrics_begin(struct mxbpf_gpu_shared *g, const struct cupti_call *call)
{
	struct mxbpf_gpu_metrics *m = &g->metrics;

	begun_ns = agent_now();
	if (!is_alone()) {
		--*counted;
		cupti_metrics_refuse(m, MXBPF_GPU_REFUSED_BUSY);
		cupti_metrics_leave(&busy);
		return;
	}
	record_kernels(g, false);
	if (!open_ranges(m, call->context) || ranges_begin(m)) {
		close_ranges();
		record_kernels(g, true);
		m->held_ns += agent_now() - begun_ns;
		cupti_metrics_leave(&busy);
		return;
	}
	measures = true;
	launch = (struct mxbpf_gpu_rec){.kind = MXBPF_GPU_METRIC,
					.start_ns = begun_ns,
					.name = cupti_name(call->symbol),
					.correlation = call->correlation,
					.context = call->context_uid,
					.device = launch.device};
	launch.metric.passes = m->passes;
	launch.metric.tid = (uint32_t)agent_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* Ends the measurement of a launch that has just returned. */
static void cupti_metrics_end(struct mxbpf_gpu_shared *g, const struct cupti_call *call)
{
	struct mxbpf_gpu_metrics *m = &g->metrics;
	const uint64_t limit_ns = m->limit_ms ? m->limit_ms * NS_PER_MS : LIMIT_NS;
	double values[MXBPF_GPU_METRICS] = {0};
	size_t ranges = 0;
	int err = ranges_end(m, values, &ranges);
	uint64_t ns;

	measures = false;
	record_kernels(g, true);
	launch.end_ns = agent_now();
	ns = launch.end_ns - launch.start_ns;
	m->held_ns += ns;
	m->longest_ns = ns > m->longest_ns ? ns : m->longest_ns;
	if (!err && ranges != 1) {
		cupti_metrics_refuse(m, MXBPF_GPU_REFUSED_MIXED);
	} else if (!err && !(call->result && *call->result)) {
		put_values(g, values);
		send(g); /* before the record of the call */
		m->measured++;
	}
	if (!err && m->measured >= (m->all ? m->all : ALL))
		set_state(m, MXBPF_GPU_METRICS_DONE);
	else if (!err && ns - (m->measured <= 1 ? m->setup_ns : 0) > limit_ns)
		set_state(m, MXBPF_GPU_METRICS_SLOW);
	if (cupti_metrics_state_of(m) > MXBPF_GPU_METRICS_ON)
		close_ranges();
	cupti_metrics_leave(&busy);
}

/* ---- callbacks */

static void cupti_metrics_enter(void)
{
	const uint64_t since_ns = agent_now();

	for (;;) {
		__atomic_fetch_add(&launching, 1, __ATOMIC_ACQ_REL);
		if (!__atomic_load_n(&busy, __ATOMIC_ACQUIRE) || agent_now() - since_ns > OTHERS_NS)
			return;
		__atomic_fetch_sub(&launching, 1, __ATOMIC_ACQ_REL);
		while (__atomic_load_n(&busy, __ATOMIC_ACQUIRE) && agent_now() - since_ns <= OTHERS_NS)
			give_up_cpu();
	}
}

static bool is_launch(uint32_t cbid)
{
	unsigned i;

	for (i = 0; i < CBIDS && cbids[i] != cbid; i++)
		;
	return i < CBIDS;
}

void cupti_metrics_on_call(struct mxbpf_gpu_shared *g, uint32_t cbid, const struct cupti_call *call)
{
	static uint64_t owner; /* address of the data of the call that is measured */
	const uint64_t mark = MARK | __atomic_load_n(&generation, __ATOMIC_ACQUIRE);

	if (!is_launch(cbid) || !call->data)
		return;
	if (call->site == CUPTI_SITE_ENTER) {
		cupti_metrics_enter();
		*call->data = mark;
		if (cupti_metrics_state_of(&g->metrics) <= MXBPF_GPU_METRICS_ON &&
		    cupti_metrics_choose(&g->metrics, cbid, call)) {
			owner = (uint64_t)(uintptr_t)call->data;
			cupti_metrics_begin(g, call);
		}
		return;
	}
	if (*call->data != mark) /* it began before the callbacks were on */
		return;
	*call->data = 0;
	if (measures && owner == (uint64_t)(uintptr_t)call->data)
		cupti_metrics_end(g, call);
	__atomic_fetch_sub(&launching, 1, __ATOMIC_ACQ_REL);
}

static void enable(struct mxbpf_gpu_metrics *m, void *subscriber, bool on)
{
	unsigned i;
	int err;

	for (i = 0; i < CBIDS; i++) {
		err = cupti.enable_callback(on, subscriber, CUPTI_DOMAIN_DRIVER, cbids[i]);
		if (err && on && i < 2) {
			m->step = MXBPF_GPU_STEP_CALLBACK;
			m->result = (uint32_t)err;
			set_state(m, MXBPF_GPU_METRICS_FAILED);
		}
	}
	watched = on;
}

static void begin_watch(struct mxbpf_gpu_shared *g, void *subscriber)
{
	struct mxbpf_gpu_metrics *m = &g->metrics;
	struct agent_dso d;

	if (!(__atomic_load_n(&g->want, __ATOMIC_RELAXED) & MXBPF_GPU_WANT_METRICS) ||
	    cupti_metrics_state_of(m) > MXBPF_GPU_METRICS_ON)
		return;
	if (!cupti.enable_callback || !agent_dso_find("libcuda.so.1", &d)) {
		m->step = MXBPF_GPU_STEP_SYMBOLS;
		set_state(m, MXBPF_GPU_METRICS_FAILED);
		return;
	}
	agent_dso_get(&d, "cuCtxGetDevice", &driver.get_device);
	agent_dso_get(&d, "cuStreamIsCapturing", &driver.is_capturing);
	if (ranges_find(m))
		return;
	__atomic_store_n(&launching, 0, __ATOMIC_RELEASE);
	__atomic_fetch_add(&generation, 1, __ATOMIC_ACQ_REL);
	cupti_metrics_leave(&busy);
	if (cupti_metrics_state_of(m) == MXBPF_GPU_METRICS_OFF) /* another session of mxbpf begins */
		memset(names, 0, sizeof(names));
	set_state(m, MXBPF_GPU_METRICS_WAITING);
	enable(m, subscriber, true);
}

/* Waits for a launch that is being measured. If it does not return in time, the measurement stays as it is. */
static void end_watch(struct mxbpf_gpu_shared *g, void *subscriber)
{
	const uint64_t since_ns = agent_now();
	bool taken = cupti_metrics_take(&busy);

	while (!taken && agent_now() - since_ns < OTHERS_NS) {
		give_up_cpu();
		taken = cupti_metrics_take(&busy);
	}
	enable(&g->metrics, subscriber, false);
	if (taken) {
		close_ranges();
		cupti_metrics_leave(&busy);
	}
	send(g);
}

void cupti_metrics_watch(struct mxbpf_gpu_shared *g, void *subscriber, bool on)
{
	if (on)
		begin_watch(g, subscriber);
	else if (watched)
		end_watch(g, subscriber);
}

void cupti_metrics_tick(struct mxbpf_gpu_shared *g, void *subscriber)
{
	if (watched && cupti_metrics_state_of(&g->metrics) > MXBPF_GPU_METRICS_ON)
		end_watch(g, subscriber);
	else if (watched)
		send(g);
}

void cupti_metrics_forget(void)
{
	watched = opened = measures = unrecorded = false;
	cupti_metrics_leave(&busy);
	cupti_metrics_leave(&lock);
	batch.ncalls = 0;
	launching = 0;
}
