// SPDX-License-Identifier: Apache-2.0
#include "source/gpu_convert.h"
#include "source/gpu_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/demangle.h"
#include "mxbpf_graph.h"
#include "mxbpf_kernels.h"
#include "mxbpf_roofline.h"
#include "mxbpf_table.h"
#include "agent/agent.h"
#include "records/kinds.h"

#define CALLED_HALF  (1u << 18) /* calls whose correlation is remembered; then the older half is forgotten */
#define CLOCKS_KEPT  4096	/* readings of the clock */
#define NAME_MAX_LEN 4000
#define WAITING_MAX  (1u << 19) /* records that wait for the clock: 44 MiB */
#define EARLY_MAX    (1u << 15) /* of them, records that may wait for their call: each costs time at each look */
#define CONTEXTS_MAX 65536
#define AHEAD_NS     1000000000ull  /* by how much a converted time may be wrong */
#define QUEUED_NS    60000000000ull /* longest time between a launch and its work */
#define GRAPHS_RIGHT 130101	    /* CUDA 13.1 U1 */
#define CALL_NS	     2000000000ull  /* so long a wait waits for the record of its call */
#define MEASURED_MAX 65536	    /* launches whose counters were measured */
#define METRIC_MAX   1e15	    /* a counter has at most this value */
#define RATE_MAX     1e-3	    /* largest difference between the rates of two clocks that were not set */

/* ---- the clock */

static void take_clock(struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	const uint64_t before = (uint64_t)r->clock.before_high << 32 | r->clock.before_low;
	const uint64_t after = (uint64_t)r->clock.after_high << 32 | r->clock.after_low;
	const struct gpu_clock one = {r->start_ns, before + (after - before) / 2};
	const size_t n = buf_count(&c->clocks, struct gpu_clock);

	if (n && one.gpu_ns <= buf_at(&c->clocks, struct gpu_clock, n - 1)->gpu_ns) {
		/* CUPTI's clock was set back, so earlier readings mean nothing for later records. */
		gpu_convert(c, true);
		c->clocks.len = 0;
	}
	if (n >= CLOCKS_KEPT) {
		c->clocks.len -= c->clocks.len / 2 / sizeof(one) * sizeof(one);
		memmove(c->clocks.data, c->clocks.data + (n * sizeof(one) - c->clocks.len), c->clocks.len);
	}
	if (buf_put(&c->clocks, &one, sizeof(one)))
		c->err = -ENOMEM;
}

/* Nanoseconds of CLOCK_MONOTONIC in a unit of CUPTI's clock, between reading i and the next one. */
static double rate_at(const struct gpu_clock *all, size_t i)
{
	return (double)(all[i + 1].ns - all[i].ns) / (double)(all[i + 1].gpu_ns - all[i].gpu_ns);
}

static bool is_near(double rate, double other)
{
	return rate > other * (1 - RATE_MAX) && rate < other * (1 + RATE_MAX);
}

/*
 * The rate between reading i and the next one, or 0 if the clock was set in between: then the rate is neither 1 nor
 * that of a neighbour. It is not 1 if PyTorch's profiler has made the CPU's time stamp counter CUPTI's clock.
 */
static double steady_rate(const struct gpu_clock *all, size_t n, size_t i)
{
	const double rate = rate_at(all, i);

	return is_near(rate, 1) || (i && is_near(rate, rate_at(all, i - 1))) ||
			       (i + 2 < n && is_near(rate, rate_at(all, i + 1)))
		       ? rate
		       : 0;
}

/* The rate for times beside reading i, from the steady piece at its side. */
static double rate_beside(const struct gpu_clock *all, size_t n, size_t i)
{
	double rate = i ? steady_rate(all, n, i - 1) : 0;

	if (!rate && i + 1 < n)
		rate = steady_rate(all, n, i);
	return rate ? rate : 1;
}

/* A clock that a process invents may have any rate. Beyond 2^63 a number would not fit, and means nothing. */
static uint64_t scaled(uint64_t gpu_ns, double rate)
{
	const double ns = (double)gpu_ns * rate;

	return ns < 0x1p63 ? (uint64_t)ns : 1ull << 63;
}

static uint64_t time_from(const struct gpu_clock *from, uint64_t gpu_ns, double rate)
{
	return gpu_ns >= from->gpu_ns ? from->ns + scaled(gpu_ns - from->gpu_ns, rate)
				      : from->ns - scaled(from->gpu_ns - gpu_ns, rate);
}

/* Between readings at which the clock was set, the nearer one counts. */
uint64_t gpu_time(const struct gpu_convert *c, uint64_t gpu_ns)
{
	const struct gpu_clock *all = buf_at(&c->clocks, const struct gpu_clock, 0);
	size_t n = buf_count(&c->clocks, struct gpu_clock), low = 0, high = n, mid;
	double rate;

	if (!n)
		return gpu_ns;
	while (low < high) {
		mid = low + (high - low) / 2;
		if (all[mid].gpu_ns <= gpu_ns)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return time_from(&all[0], gpu_ns, rate_beside(all, n, 0));
	if (low == n)
		return time_from(&all[n - 1], gpu_ns, rate_beside(all, n, n - 1));
	rate = steady_rate(all, n, low - 1);
	if (rate)
		return time_from(&all[low - 1], gpu_ns, rate);
	if (gpu_ns - all[low - 1].gpu_ns <= all[low].gpu_ns - gpu_ns)
		return time_from(&all[low - 1], gpu_ns, low > 1 ? rate_beside(all, low, low - 1) : 1);
	return time_from(&all[low], gpu_ns, low + 1 < n ? rate_beside(&all[low], n - low, 0) : 1);
}

/* ---- names */

/* Returns the id of a text, and delivers it the first time. The key is any number that stands for it. */
static uint64_t id_of(struct gpu_convert *c, uint64_t key, uint64_t space, const char *text)
{
	uint64_t *known = hash_put(&c->names, key, space);

	if (!known) {
		c->err = -ENOMEM;
		return 0;
	}
	if (!*known) {
		*known = *text ? plan_hash(text) : MXBPF_NAME_UNNAMED;
		if (*text &&
		    kind_put_name(&c->texts, MXBPF_NAME_SPAN, c->tgid, *known, text, strnlen(text, NAME_MAX_LEN)))
			c->err = -ENOMEM;
	}
	return *known;
}

enum { SPACE_NAME, SPACE_COPY, SPACE_SET, SPACE_SYNC, SPACE_DEVICE };

static bool gpu_convert_begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

bool gpu_launches(const char *call)
{
	static const char *const starts[] = {"cudaLaunch", "cudaMemcpy",	 "cudaMemset",	    "cudaGraphLaunch",
					     "cuLaunch",   "cuMemcpy",		 "cuMemset",	    "cuGraphLaunch",
					     "hipLaunch",  "hipExtModuleLaunch", "hipModuleLaunch", "hipMemcpy",
					     "hipMemset",  "hipGraphLaunch"};
	unsigned i;

	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (gpu_convert_begins(call, starts[i]))
			return true;
	return false;
}

static int note_alloc(struct gpu_convert *c, uint32_t name, enum gpu_alloc_kind kind)
{
	uint64_t *at = kind ? hash_put(&c->allocs, name, 0) : NULL;

	if (at)
		*at = kind;
	return kind && !at ? -ENOMEM : 0;
}

static uint64_t gpu_convert_name_of(struct gpu_convert *c, uint32_t name)
{
	const uint64_t *known = hash_get(&c->names, name, SPACE_NAME);
	uint64_t id = known ? *known : 0;
	char text[MXBPF_GPU_NAME_BYTES], *readable;

	c->unnamed += !name;
	if (id)
		return id;
	c->from.name(c->from.ctx, name, text);
	if ((gpu_launches(text) && !hash_put(&c->starts, name, 0)) || note_alloc(c, name, gpu_allocates(text)) ||
	    (strstr(text, "Query") && !hash_put(&c->asks, name, 0)))
		c->err = -ENOMEM;
	readable = demangle(text);
	id = id_of(c, name, SPACE_NAME, readable ? readable : text);
	free(readable);
	return id;
}

/* Names as PyTorch's profiler writes them. */
static uint64_t activity_name(struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	const unsigned copy = gpu_known(gpu_copies, r->copy.copy), from = gpu_known(gpu_memories, r->copy.from),
		       to = gpu_known(gpu_memories, r->copy.to), sync = gpu_known(gpu_syncs, r->sync.type);
	char text[GPU_NAME_BYTES];

	switch (r->kind) {
	case MXBPF_GPU_COPY:
		gpu_copy_name(text, copy, from, to);
		return id_of(c, (uint64_t)copy << 16 | from << 8 | to, SPACE_COPY, text);
	case MXBPF_GPU_SET:
		gpu_set_name(text, to);
		return id_of(c, to, SPACE_SET, text);
	case MXBPF_GPU_SYNC:
		return id_of(c, sync, SPACE_SYNC, gpu_syncs[sync]);
	default:
		return gpu_convert_name_of(c, r->name);
	}
}

/* ---- calls */

static void remember(struct gpu_convert *c, const struct mxbpf_gpu_rec *r, uint64_t start_ns, bool asks)
{
	struct hash full = c->called;
	uint64_t *at;

	if (full.len >= CALLED_HALF) {
		c->called = c->before;
		c->before = full;
		hash_clear(&c->called);
	}
	at = hash_put(&c->called, r->correlation, asks);
	if (at)
		*at = start_ns;
	else
		c->err = -ENOMEM;
}

static const uint64_t *called_as(const struct gpu_convert *c, uint32_t correlation, bool asks)
{
	const uint64_t *at = hash_get(&c->called, correlation, asks);

	return at ? at : hash_get(&c->before, correlation, asks);
}

static const uint64_t *called_at(const struct gpu_convert *c, uint32_t correlation)
{
	const uint64_t *at = called_as(c, correlation, false);

	return at ? at : called_as(c, correlation, true);
}

bool gpu_has_calls(const struct mxbpf_gpu_shared *g)
{
	return g->enabled & 1u << MXBPF_GPU_CALL && g->enabled & 1u << MXBPF_GPU_DRIVER;
}

/*
 * Returns true if this record of a wait may be that of a query. CUPTI has the same record for both, and only the call
 * tells them apart. From CUDA 12.6 on queries have no record of their call, because the agent does not choose it.
 */
static bool may_ask(const struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	return r->kind == MXBPF_GPU_SYNC && (r->sync.type == MXBPF_SYNC_EVENT || r->sync.type == MXBPF_SYNC_STREAM) &&
	       !called_as(c, r->correlation, false);
}

static bool is_query(const struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	return may_ask(c, r) && (c->has_calls || called_as(c, r->correlation, true));
}

bool gpu_graphs_wrong(const struct mxbpf_gpu_shared *g)
{
	return g->version < GRAPHS_RIGHT && (g->subscriptions > 1 || g->others);
}

/* Returns true if the launch of this work is not known, because its correlation id is that of another. */
static bool is_unjoined(const struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	return c->graphs_wrong && r->graph && r->kind <= MXBPF_GPU_SET;
}

/* Returns the time of the call that launched this work, or NULL. */
static const uint64_t *launched_at(const struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	return is_unjoined(c, r) ? NULL : called_at(c, r->correlation);
}

static void gpu_convert_put(struct gpu_convert *c, const void *r, size_t bytes)
{
	if (!buf_put(&c->recs, r, bytes)) {
		c->stored++;
		return;
	}
	c->err = -ENOMEM;
	c->lost++;
}

static void put_call(struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	const uint64_t start_ns = gpu_time(c, r->start_ns), end_ns = gpu_time(c, r->end_ns);
	const uint32_t tid = c->foreign_tids ? 0 : c->from.thread(c->from.ctx, r->call.tid);
	const uint64_t dur_ns = end_ns > start_ns ? end_ns - start_ns : 1;
	const uint64_t *alloc;
	const struct mxbpf_span s = {
		.h = {.kind = MXBPF_SPAN, .size = MXBPF_SPAN_BYTES_PLAIN, .tgid = c->tgid, .ts_ns = start_ns},
		.dur_ns = dur_ns,
		.self_ns = dur_ns,
		.name_id = gpu_convert_name_of(c, r->name),
		.tid = tid,
		.end_tid = tid,
		.cls = MXBPF_CLASS_CUDA,
	};
	const struct mxbpf_launch l = {
		.h = {.kind = MXBPF_LAUNCH, .size = sizeof(l), .tgid = c->tgid, .ts_ns = start_ns},
		.edge_id = r->correlation,
		.tid = tid,
		.domain = MXBPF_DOMAIN_CUPTI,
		.dur_ns = dur_ns,
		.call_id = s.name_id,
	};

	c->calls++;
	remember(c, r, start_ns, hash_get(&c->asks, r->name, 0));
	c->threadless += !tid;
	gpu_convert_put(c, &s, s.h.size);
	alloc = c->has_memory ? hash_get(&c->allocs, r->name, 0) : NULL;
	if (alloc)
		gpu_alloc_called(c, r, s.name_id, tid, (enum gpu_alloc_kind) * alloc);
	if (tid && hash_get(&c->starts, r->name, 0) && !hash_get(&c->measured, r->correlation, 0))
		gpu_convert_put(c, &l, sizeof(l));
}

/* ---- activities */

/* Records of waits name a context and no device. */
static uint32_t gpu_convert_device_of(struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	uint64_t *at;

	if (r->kind == MXBPF_GPU_SYNC) {
		at = hash_get(&c->contexts, r->context, 0);
		return at ? (uint32_t)*at : 0;
	}
	at = c->contexts.len < CONTEXTS_MAX ? hash_put(&c->contexts, r->context, 0) : NULL;
	if (at)
		*at = r->device;
	return r->device;
}

static void put_activity(struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	const uint64_t start_ns = gpu_time(c, r->start_ns), end_ns = gpu_time(c, r->end_ns);
	const uint64_t *called_ns = launched_at(c, r);
	const uint32_t edge = is_unjoined(c, r) ? 0 : r->correlation;
	struct mxbpf_activity a = {
		.h = {.kind = MXBPF_ACTIVITY, .size = sizeof(a), .tgid = c->tgid, .ts_ns = start_ns},
		.dur_ns = end_ns > start_ns ? end_ns - start_ns : 0,
		.name_id = activity_name(c, r),
		.bytes = r->bytes,
		.edge_id = edge,
		.track = {.device = gpu_convert_device_of(c, r), .context = r->context, .stream = r->stream},
		.domain = edge ? MXBPF_DOMAIN_CUPTI : MXBPF_DOMAIN_NONE,
		.cls = r->kind,
		.graph = r->graph,
		.graph_node = r->graph_node,
	};

	if (r->kind == MXBPF_GPU_KERNEL) {
		memcpy(a.grid, r->kernel.grid, sizeof(a.grid));
		memcpy(a.block, r->kernel.block, sizeof(a.block));
		a.registers = r->kernel.registers;
		a.static_shared = r->kernel.static_shared;
		a.dynamic_shared = r->kernel.dynamic_shared;
	} else if (r->kind == MXBPF_GPU_SYNC) {
		a.sync_type = (__u8)r->sync.type;
		a.domain = MXBPF_DOMAIN_NONE; /* the call of the same correlation waited; it launched nothing */
		a.edge_id = 0;
	} else {
		a.copy = r->copy.copy;
		a.from = r->copy.from;
		a.to = r->copy.to;
	}
	c->activities++;
	c->unjoined += is_unjoined(c, r);
	c->early += called_ns && r->kind != MXBPF_GPU_SYNC && start_ns < *called_ns;
	gpu_convert_put(c, &a, sizeof(a));
}

void gpu_put_device(struct gpu_convert *c, uint32_t device, const struct mxbpf_gpu_about *about)
{
	char name[sizeof(about->name) + 1] = {0};
	const struct mxbpf_gpu_limits limits = {
		.h = {.kind = MXBPF_GPU_LIMITS, .size = sizeof(limits), .tgid = c->tgid},
		.device = device,
		.memory_clock_khz = about->memory_clock_khz,
		.memory_bus_bits = about->memory_bus_bits,
	};
	struct mxbpf_gpu_device r = {
		.h = {.kind = MXBPF_GPU_DEVICE, .size = sizeof(r), .tgid = c->tgid},
		.memory_bytes = about->memory_bytes,
		.device = device,
		.multiprocessors = about->multiprocessors,
		.major = (__u16)about->major,
		.minor = (__u16)about->minor,
		.threads_per_mp = about->threads_per_mp,
		.blocks_per_mp = about->blocks_per_mp,
		.registers_per_mp = about->registers_per_mp,
		.shared_per_mp = about->shared_per_mp,
		.warp = about->warp,
		.clock_khz = about->clock_khz,
		.pci_domain = about->pci_domain,
		.pci_bus = (__u8)about->pci_bus,
		.pci_device = (__u8)about->pci_device,
		.mps = about->mps == 1,
	};

	memcpy(r.uuid, about->uuid, sizeof(r.uuid));
	memcpy(r.whole_uuid, about->whole_uuid, sizeof(r.whole_uuid));
	memcpy(name, about->name, sizeof(about->name));
	r.name_id = id_of(c, device, SPACE_DEVICE, name);
	gpu_convert_put(c, &r, sizeof(r));
	gpu_convert_put(c, &limits, sizeof(limits));
}

/* ---- records */

static bool is_beyond(const struct gpu_convert *c, uint64_t ns)
{
	return ns < c->since_ns || (c->until_ns && ns >= c->until_ns);
}

/* So many records wait for a reading of the clock that none may come. */
static void leave_out(struct gpu_convert *c)
{
	c->unmeasured++;
	c->taken++;
}

/* Its time is that of the system. A node of a thread that is not known is as if nobody had captured it. */
static void put_node(struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	const struct mxbpf_graph_node n = {
		.h = {.kind = MXBPF_GRAPH_NODE, .size = sizeof(n), .tgid = c->tgid, .ts_ns = r->start_ns},
		.node = r->graph_node,
		.original = r->bytes,
		.tid = c->foreign_tids ? 0 : c->from.thread(c->from.ctx, r->call.tid),
	};

	if (n.tid && n.node)
		gpu_convert_put(c, &n, sizeof(n));
}

/* Its time is that of the system, too. A value that no counter can have is left out. */
static void put_metric(struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	double value;
	struct mxbpf_kernel_metric k = {
		.h = {.kind = MXBPF_KERNEL_METRIC, .size = sizeof(k), .tgid = c->tgid, .ts_ns = r->start_ns},
		.name_id = gpu_convert_name_of(c, r->name),
		.held_ns = r->end_ns > r->start_ns ? r->end_ns - r->start_ns : 0,
		.edge_id = r->correlation,
		.tid = c->from.thread(c->from.ctx, r->metric.tid),
		.device = r->device,
		.passes = r->metric.passes,
		.number = (uint16_t)r->metric.number,
		.first = r->metric.first != 0,
	};

	if (c->measured.len < MEASURED_MAX && !hash_put(&c->measured, r->correlation, 0))
		c->err = -ENOMEM;
	memcpy(&value, &r->bytes, sizeof(value));
	if (r->metric.number >= MXBPF_KERNEL_COUNTERS || !(value >= 0 && value < METRIC_MAX) ||
	    is_beyond(c, r->start_ns) || r->start_ns > clock_ns(CLOCK_MONOTONIC))
		return;
	k.milli = (uint64_t)(value * 1000 + 0.5);
	gpu_convert_put(c, &k, sizeof(k));
}

void gpu_take(struct gpu_convert *c, const struct mxbpf_gpu_rec *recs, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (recs[i].kind == MXBPF_GPU_CLOCK)
			take_clock(c, &recs[i]);
		else if (recs[i].kind == MXBPF_GPU_NODE)
			put_node(c, &recs[i]);
		else if (recs[i].kind == MXBPF_GPU_METRIC)
			put_metric(c, &recs[i]);
		else if (buf_count(&c->waiting, struct mxbpf_gpu_rec) >= WAITING_MAX)
			leave_out(c);
		else if (!buf_put(&c->waiting, &recs[i], sizeof(recs[i])))
			c->taken++;
		else
			c->err = -ENOMEM;
}

/* What a call outside of the window launched is outside, too, and what a call in the window launched is not. */
static bool is_outside(struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	const uint64_t start_ns = gpu_time(c, r->start_ns), *called_ns;

	if (r->kind == MXBPF_GPU_CALL || r->kind == MXBPF_GPU_DRIVER) {
		if (is_beyond(c, start_ns))
			remember(c, r, start_ns, false);
		return is_beyond(c, start_ns);
	}
	called_ns = launched_at(c, r);
	return called_ns ? is_beyond(c, *called_ns) : is_beyond(c, start_ns);
}

static bool is_far(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) > QUEUED_NS;
}

/*
 * A time that is far from now would hold other records up, or push them out. One that is far from its launch is wrong:
 * CUPTI below 13.3 can take a wrong base for the times of the GPU, 1e14 ns off.
 */
static bool is_possible(const struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	const uint64_t start_ns = gpu_time(c, r->start_ns), end_ns = gpu_time(c, r->end_ns);
	const uint64_t latest_ns = clock_ns(CLOCK_MONOTONIC) + AHEAD_NS;
	const bool is_work = r->kind != MXBPF_GPU_CALL && r->kind != MXBPF_GPU_DRIVER;
	const uint64_t *called_ns = is_work ? launched_at(c, r) : NULL;

	return r->start_ns && r->end_ns && start_ns < latest_ns && end_ns < latest_ns &&
	       (!called_ns || !is_far(start_ns, *called_ns));
}

static void convert(struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	if (!is_possible(c, r)) {
		c->unmeasured++;
	} else if (is_outside(c, r)) {
		c->outside++;
	} else if (is_query(c, r)) {
		c->queries++;
	} else if (r->kind == MXBPF_GPU_OVERHEAD) {
		c->overheads++;
	} else if (r->kind == MXBPF_GPU_DRIVER && called_at(c, r->correlation)) {
		c->nested++;
	} else if (r->kind == MXBPF_GPU_CALL || r->kind == MXBPF_GPU_DRIVER) {
		put_call(c, r);
	} else if (r->kind > 0 && r->kind <= MXBPF_GPU_SYNC) {
		put_activity(c, r);
	} else if (r->kind == MXBPF_GPU_MEMORY) {
		gpu_put_alloc(c, r);
	}
}

/*
 * Three passes: calls of the runtime, calls of the driver, and activities, so that each finds what it is joined with. A
 * record that ended after the last reading of the clock waits for the next one. A call of the driver waits for one more
 * reading, because the runtime's call around it ends later. So does the record of a wait without its call, which may be
 * in a buffer that CUPTI holds back; it waits longer, but only EARLY_MAX of them do.
 */
static unsigned pass_of(const struct mxbpf_gpu_rec *r)
{
	return r->kind == MXBPF_GPU_CALL ? 0 : r->kind == MXBPF_GPU_DRIVER ? 1 : 2;
}

static bool is_early(const struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	const size_t nclocks = buf_count(&c->clocks, struct gpu_clock);
	const uint64_t now = nclocks ? buf_at(&c->clocks, const struct gpu_clock, nclocks - 1)->ns : 0;

	return ((c->has_calls && may_ask(c, r) && !called_at(c, r->correlation)) || gpu_alloc_waits(c, r)) &&
	       gpu_time(c, r->end_ns) + CALL_NS > now;
}

void gpu_convert(struct gpu_convert *c, bool all)
{
	const size_t nclocks = buf_count(&c->clocks, struct gpu_clock),
		     n = buf_count(&c->waiting, struct mxbpf_gpu_rec);
	const struct gpu_clock *clocks = buf_at(&c->clocks, const struct gpu_clock, 0);
	const uint64_t last = nclocks ? clocks[nclocks - 1].gpu_ns : 0;
	const uint64_t until[3] = {last, nclocks > 1 ? clocks[nclocks - 2].gpu_ns : 0, last};
	struct mxbpf_gpu_rec *r = buf_at(&c->waiting, struct mxbpf_gpu_rec, 0);
	size_t i, kept = 0, early = 0;
	unsigned pass;

	for (pass = 0; pass < 3; pass++)
		for (i = 0; i < n; i++) {
			if (!r[i].kind || pass_of(&r[i]) != pass || (!all && r[i].end_ns >= until[pass]))
				continue;
			if (!all && early < EARLY_MAX && is_early(c, &r[i])) {
				early++;
				continue;
			}
			convert(c, &r[i]);
			r[i].kind = 0;
		}
	for (i = 0; i < n; i++)
		if (r[i].kind)
			r[kept++] = r[i];
	c->waiting.len = kept * sizeof(*r);
}

void gpu_convert_fini(struct gpu_convert *c)
{
	buf_fini(&c->clocks);
	buf_fini(&c->waiting);
	hash_fini(&c->names);
	hash_fini(&c->starts);
	hash_fini(&c->asks);
	hash_fini(&c->called);
	hash_fini(&c->before);
	hash_fini(&c->contexts);
	hash_fini(&c->allocs);
	hash_fini(&c->allocating);
	hash_fini(&c->measured);
	buf_fini(&c->alloc_calls);
	buf_fini(&c->texts);
	buf_fini(&c->recs);
}
