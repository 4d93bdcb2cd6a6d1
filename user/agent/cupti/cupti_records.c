// SPDX-License-Identifier: Apache-2.0
/*
 * Buffers of CUPTI and their records. CUPTI asks for buffers and completes them on any thread, also on its own and at
 * exit. So nothing here belongs to a thread: a buffer carries its batch and its cache of names.
 */
#include <string.h>
#include <sys/mman.h>

#include "agent.h"
#include "cupti.h"
#include "cupti_tape.h"

#define BUFFERS	     256	  /* most buffers of the pool; from CUDA 13.0 on each launching thread has one */
#define BUFFER_BYTES (256u << 10) /* of records; CUPTI holds a buffer back until all records in it are complete */
#define RECORD_BYTES 128	  /* mean of records before the first was read */
#define NAMES_CACHED 512	  /* a power of two */
#define CALLS_NAMED  1024	  /* functions of each domain whose names are kept */

struct name {
	const char *address;
	uint32_t text;
	uint32_t pad;
};

struct buffer {
	uint8_t records[BUFFER_BYTES];
	struct mxbpf_agent_batch batch;
	struct name names[NAMES_CACHED];
};

static struct buffer *pool[BUFFERS];
static uint32_t used[BUFFERS]; /* 1: CUPTI has the buffer */
static uint64_t taken_ns[BUFFERS];
/*
 * CUPTI gets this memory if no buffer is free in a version that crashes without one. Several threads may write it at
 * once, so the records in it cannot be read.
 */
static uint8_t *scrap;
static uint64_t delivered;
static uint32_t call_names[2][CALLS_NAMED];

static uint64_t record_bytes, record_count; /* of all records so far, to estimate how many were lost in the scrap */

/* ---- buffers */

static void *map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static bool cupti_records_take(uint32_t i)
{
	uint32_t no = 0;

	return __atomic_compare_exchange_n(&used[i], &no, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static struct buffer *take_buffer(struct mxbpf_gpu_shared *g)
{
	const uint32_t n = g && g->buffers_max && g->buffers_max < BUFFERS ? g->buffers_max : BUFFERS;
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (!cupti_records_take(i))
			continue;
		if (!pool[i]) {
			pool[i] = map(sizeof(*pool[i]));
			if (pool[i] && g)
				__atomic_fetch_add(&g->buffers, 1, __ATOMIC_RELAXED);
		}
		__atomic_store_n(&taken_ns[i], agent_now(), __ATOMIC_RELAXED);
		if (pool[i])
			return pool[i];
		__atomic_store_n(&used[i], 0, __ATOMIC_RELEASE);
		return NULL;
	}
	return NULL;
}

static uint8_t *take_scrap(void)
{
	uint8_t *at = __atomic_load_n(&scrap, __ATOMIC_ACQUIRE), *none = NULL;

	if (at)
		return at;
	at = map(BUFFER_BYTES);
	if (at && !__atomic_compare_exchange_n(&scrap, &none, at, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		munmap(at, BUFFER_BYTES);
		at = none;
	}
	return at;
}

static struct mxbpf_gpu_shared *shared_gpu(void)
{
	struct mxbpf_agent_shared *s = agent_shared();

	return s ? &s->gpu : NULL;
}

void cupti_on_requested(uint8_t **buffer, size_t *bytes, size_t *records_max)
{
	struct mxbpf_gpu_shared *g = shared_gpu();
	struct buffer *b = take_buffer(g);

	*bytes = BUFFER_BYTES;
	*records_max = 0; /* as many as fit */
	*buffer = b ? b->records : NULL;
	if (b || (g && g->version >= CUPTI_VERSION_NULL_OK))
		return; /* CUPTI counts records for which it gets no buffer as dropped */
	*buffer = take_scrap();
}

bool cupti_has_buffers(void)
{
	uint32_t i;

	for (i = 0; i < BUFFERS; i++)
		if (__atomic_load_n(&used[i], __ATOMIC_ACQUIRE))
			return true;
	return false;
}

uint64_t cupti_oldest_buffer(void)
{
	uint64_t oldest = UINT64_MAX, ns;
	uint32_t i;

	for (i = 0; i < BUFFERS; i++) {
		ns = __atomic_load_n(&taken_ns[i], __ATOMIC_RELAXED);
		if (__atomic_load_n(&used[i], __ATOMIC_ACQUIRE) && ns && ns < oldest)
			oldest = ns;
	}
	return oldest == UINT64_MAX ? 0 : oldest;
}

void cupti_trim(void)
{
	uint32_t i;

	for (i = 0; i < BUFFERS; i++)
		if (pool[i] && cupti_records_take(i)) {
			madvise(pool[i], sizeof(*pool[i]), MADV_DONTNEED);
			__atomic_store_n(&used[i], 0, __ATOMIC_RELEASE);
		}
}

void cupti_forget_buffers(void)
{
	memset(used, 0, sizeof(used));
}

/* ---- names */

static bool same(const char *kept, const char *text)
{
	return !strncmp(kept, text, MXBPF_GPU_NAME_BYTES - 1);
}

static uint32_t add_text(struct mxbpf_agent_shared *s, const char *text, uint32_t len)
{
	uint32_t at = __atomic_load_n(&s->gpu.texts_len, __ATOMIC_RELAXED);

	do {
		if (at + len + 2 > MXBPF_GPU_TEXTS)
			return 0;
	} while (!__atomic_compare_exchange_n(&s->gpu.texts_len, &at, at + len + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	at++; /* the first byte is not used */
	memcpy(s->gpu_names.texts + at, text, len);
	s->gpu_names.texts[at + len] = '\0';
	return at;
}

/* Finds a text by its content, because CUPTI uses an address again for another name. */
static uint32_t intern(const char *text)
{
	struct mxbpf_agent_shared *s = agent_shared();
	uint64_t h = 0xcbf29ce484222325ull;
	uint32_t len, at = 0, was, i;

	if (!s)
		return 0;
	len = (uint32_t)strnlen(text, MXBPF_GPU_NAME_BYTES - 1);
	for (i = 0; i < len; i++)
		h = (h ^ (uint8_t)text[i]) * 0x100000001b3ull;
	h ^= h >> 32;
	for (i = 0; i < MXBPF_GPU_NAMES; i++) {
		uint32_t *place = &s->gpu_names.names[(h + i) & (MXBPF_GPU_NAMES - 1)];

		was = __atomic_load_n(place, __ATOMIC_ACQUIRE);
		if (!was) {
			at = at ? at : add_text(s, text, len);
			if (!at)
				break;
			if (__atomic_compare_exchange_n(place, &was, at, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
				return at;
		}
		if (same(s->gpu_names.texts + was, text))
			return was;
	}
	__atomic_fetch_add(&s->gpu.no_name, 1, __ATOMIC_RELAXED);
	return 0;
}

uint32_t cupti_name(const char *text)
{
	return intern(text);
}

static uint32_t kernel_name(struct buffer *b, const char *text)
{
	const char *texts = agent_gate->shared->gpu_names.texts;
	const uint64_t at = (uint64_t)(uintptr_t)text;
	struct name *n = &b->names[(at ^ at >> 9) & (NAMES_CACHED - 1)];

	if (!text)
		return intern("");
	if (n->address == text && n->text && same(texts + n->text, text))
		return n->text;
	n->text = intern(text);
	n->address = text;
	return n->text;
}

/* Copies the name of a function without the version that CUPTI appends: "cudaLaunchKernel_v7000". */
static const char *without_version(const char *text, char copy[128])
{
	const size_t n = strlen(text);
	size_t i = n;

	while (i && text[i - 1] >= '0' && text[i - 1] <= '9')
		i--;
	if (n - i < 4 || i < 2 || text[i - 1] != 'v' || text[i - 2] != '_' || i - 2 > 127)
		return text;
	memcpy(copy, text, i - 2);
	copy[i - 2] = '\0';
	return copy;
}

static uint32_t call_name(bool driver, uint32_t cbid)
{
	const char *text = NULL;
	char copy[128];
	uint32_t name = cbid < CALLS_NAMED ? __atomic_load_n(&call_names[driver][cbid], __ATOMIC_RELAXED) : 0;

	if (name)
		return name;
	if (!cupti.get_callback_name ||
	    cupti.get_callback_name(driver ? CUPTI_DOMAIN_DRIVER : CUPTI_DOMAIN_RUNTIME, cbid, &text) || !text)
		text = driver ? "driver call" : "runtime call";
	name = intern(without_version(text, copy));
	if (cbid < CALLS_NAMED)
		__atomic_store_n(&call_names[driver][cbid], name, __ATOMIC_RELAXED);
	return name;
}

/* ---- records */

static uint8_t u8(const uint8_t *r, unsigned off)
{
	return r[off];
}

static uint16_t u16(const uint8_t *r, unsigned off)
{
	uint16_t value;

	memcpy(&value, r + off, sizeof(value));
	return value;
}

static uint32_t u32(const uint8_t *r, unsigned off)
{
	uint32_t value;

	memcpy(&value, r + off, sizeof(value));
	return value;
}

static uint64_t u64(const uint8_t *r, unsigned off)
{
	uint64_t value;

	memcpy(&value, r + off, sizeof(value));
	return value;
}

/* Block dimensions fit in 16 bits, because a device has at most 1024 threads in a block. CUPTI uses 32 bits. */
static uint16_t short_of(uint32_t value)
{
	return value < UINT16_MAX ? (uint16_t)value : UINT16_MAX;
}

static void read_kernel(struct buffer *b, const uint8_t *r, struct mxbpf_gpu_rec *to)
{
	const char *name = (const char *)(uintptr_t)u64(r, CUPTI_KERNEL_NAME);
	unsigned i;

	*to = (struct mxbpf_gpu_rec){
		.kind = MXBPF_GPU_KERNEL,
		.start_ns = u64(r, CUPTI_KERNEL_START),
		.end_ns = u64(r, CUPTI_KERNEL_END),
		.name = kernel_name(b, name),
		.correlation = u32(r, CUPTI_KERNEL_CORRELATION),
		.device = u32(r, CUPTI_KERNEL_DEVICE),
		.context = u32(r, CUPTI_KERNEL_CONTEXT),
		.stream = u32(r, CUPTI_KERNEL_STREAM),
		.graph_node = u64(r, CUPTI_KERNEL_GRAPH_NODE),
		.graph = u32(r, CUPTI_KERNEL_GRAPH),
		.kernel = {.static_shared = u32(r, CUPTI_KERNEL_STATIC_SHARED),
			   .dynamic_shared = u32(r, CUPTI_KERNEL_DYNAMIC_SHARED),
			   .registers = u16(r, CUPTI_KERNEL_REGISTERS)},
	};
	for (i = 0; i < 3; i++) {
		to->kernel.grid[i] = u32(r, CUPTI_KERNEL_GRID + 4 * i);
		to->kernel.block[i] = short_of(u32(r, CUPTI_KERNEL_BLOCK + 4 * i));
	}
}

/* Returns the graph of a record. In CUDA 11.0 these records end before it. */
static uint32_t graph_of(const struct mxbpf_gpu_shared *g, const uint8_t *r, unsigned off)
{
	return g->version >= CUPTI_VERSION_GRAPHS ? u32(r, off) : 0;
}

static void read_copy(const struct mxbpf_gpu_shared *g, const uint8_t *r, bool between_devices,
		      struct mxbpf_gpu_rec *to)
{
	*to = (struct mxbpf_gpu_rec){
		.kind = MXBPF_GPU_COPY,
		.start_ns = u64(r, CUPTI_MEMCPY_START),
		.end_ns = u64(r, CUPTI_MEMCPY_END),
		.bytes = u64(r, CUPTI_MEMCPY_BYTES),
		.correlation = u32(r, between_devices ? CUPTI_PTOP_CORRELATION : CUPTI_MEMCPY_CORRELATION),
		.device = u32(r, CUPTI_MEMCPY_DEVICE),
		.context = u32(r, CUPTI_MEMCPY_CONTEXT),
		.stream = u32(r, CUPTI_MEMCPY_STREAM),
		.graph_node = u64(r, between_devices ? CUPTI_PTOP_GRAPH_NODE : CUPTI_MEMCPY_GRAPH_NODE),
		.graph = graph_of(g, r, between_devices ? CUPTI_PTOP_GRAPH : CUPTI_MEMCPY_GRAPH),
		.copy = {.copy = u8(r, CUPTI_MEMCPY_COPY),
			 .from = u8(r, CUPTI_MEMCPY_FROM),
			 .to = u8(r, CUPTI_MEMCPY_TO)},
	};
}

static void read_set(const struct mxbpf_gpu_shared *g, const uint8_t *r, struct mxbpf_gpu_rec *to)
{
	*to = (struct mxbpf_gpu_rec){
		.kind = MXBPF_GPU_SET,
		.start_ns = u64(r, CUPTI_MEMSET_START),
		.end_ns = u64(r, CUPTI_MEMSET_END),
		.bytes = u64(r, CUPTI_MEMSET_BYTES),
		.correlation = u32(r, CUPTI_MEMSET_CORRELATION),
		.device = u32(r, CUPTI_MEMSET_DEVICE),
		.context = u32(r, CUPTI_MEMSET_CONTEXT),
		.stream = u32(r, CUPTI_MEMSET_STREAM),
		.graph_node = u64(r, CUPTI_MEMSET_GRAPH_NODE),
		.graph = graph_of(g, r, CUPTI_MEMSET_GRAPH),
		.copy = {.to = (uint8_t)u16(r, CUPTI_MEMSET_TO)},
	};
}

static void read_call(const uint8_t *r, bool driver, struct mxbpf_gpu_rec *to)
{
	*to = (struct mxbpf_gpu_rec){
		.kind = driver ? MXBPF_GPU_DRIVER : MXBPF_GPU_CALL,
		.start_ns = u64(r, CUPTI_API_START),
		.end_ns = u64(r, CUPTI_API_END),
		.name = call_name(driver, u32(r, CUPTI_API_CBID)),
		.correlation = u32(r, CUPTI_API_CORRELATION),
		.call = {.pid = u32(r, CUPTI_API_PID),
			 .tid = u32(r, CUPTI_API_TID),
			 .cbid = u32(r, CUPTI_API_CBID),
			 .result = u32(r, CUPTI_API_RESULT)},
	};
}

static void read_sync(const uint8_t *r, struct mxbpf_gpu_rec *to)
{
	*to = (struct mxbpf_gpu_rec){
		.kind = MXBPF_GPU_SYNC,
		.start_ns = u64(r, CUPTI_SYNC_START),
		.end_ns = u64(r, CUPTI_SYNC_END),
		.correlation = u32(r, CUPTI_SYNC_CORRELATION),
		.context = u32(r, CUPTI_SYNC_CONTEXT),
		.stream = u32(r, CUPTI_SYNC_STREAM),
		.sync = {.type = u32(r, CUPTI_SYNC_TYPE)},
	};
}

static void read_overhead(const uint8_t *r, struct mxbpf_gpu_rec *to)
{
	*to = (struct mxbpf_gpu_rec){
		.kind = MXBPF_GPU_OVERHEAD,
		.start_ns = u64(r, CUPTI_OVERHEAD_START),
		.end_ns = u64(r, CUPTI_OVERHEAD_END),
		.sync = {.type = u32(r, CUPTI_OVERHEAD_TYPE)},
	};
}

static void read_memory(const uint8_t *r, struct mxbpf_gpu_rec *to)
{
	const uint64_t size = u64(r, CUPTI_MEMORY_POOL_SIZE), in_use = u64(r, CUPTI_MEMORY_POOL_USED);
	const bool own = u32(r, CUPTI_MEMORY_POOL) == CUPTI_POOL_LOCAL;

	*to = (struct mxbpf_gpu_rec){
		.kind = MXBPF_GPU_MEMORY,
		.start_ns = u64(r, CUPTI_MEMORY_TIME),
		.end_ns = u64(r, CUPTI_MEMORY_TIME),
		.bytes = u64(r, CUPTI_MEMORY_BYTES),
		.graph_node = u64(r, CUPTI_MEMORY_ADDRESS),
		.correlation = u32(r, CUPTI_MEMORY_CORRELATION),
		.device = u32(r, CUPTI_MEMORY_DEVICE),
		.context = u32(r, CUPTI_MEMORY_CONTEXT),
		.stream = u32(r, CUPTI_MEMORY_STREAM),
		.memory = {.freed = u32(r, CUPTI_MEMORY_OPERATION) == CUPTI_MEMORY_RELEASE,
			   .kind = (uint8_t)u32(r, CUPTI_MEMORY_KIND),
			   .pool = u32(r, CUPTI_MEMORY_POOL) != 0,
			   .size_high = own ? (uint32_t)(size >> 32) : 0,
			   .size_low = own ? (uint32_t)size : 0,
			   .used_high = own ? (uint32_t)(in_use >> 32) : 0,
			   .used_low = own ? (uint32_t)in_use : 0},
	};
}

/* Returns false if the record is of a kind that the agent did not enable. */
static bool read_record(struct mxbpf_gpu_shared *g, struct buffer *b, const uint8_t *r, struct mxbpf_gpu_rec *to)
{
	switch (u32(r, 0)) {
	case CUPTI_KIND_KERNEL:
		read_kernel(b, r, to);
		return true;
	case CUPTI_KIND_MEMCPY:
	case CUPTI_KIND_MEMCPY2:
		read_copy(g, r, u32(r, 0) == CUPTI_KIND_MEMCPY2, to);
		return true;
	case CUPTI_KIND_MEMSET:
		read_set(g, r, to);
		return true;
	case CUPTI_KIND_RUNTIME:
	case CUPTI_KIND_DRIVER:
		read_call(r, u32(r, 0) == CUPTI_KIND_DRIVER, to);
		return true;
	case CUPTI_KIND_SYNC:
		read_sync(r, to);
		return true;
	case CUPTI_KIND_OVERHEAD:
		read_overhead(r, to);
		return true;
	case CUPTI_KIND_MEMORY2:
		read_memory(r, to);
		return true;
	default:
		return false;
	}
}

void cupti_send_batch(struct mxbpf_gpu_shared *g, struct mxbpf_agent_batch *b)
{
	b->slot_use = 0;
	b->our_tid = 0;
	b->what = MXBPF_AGENT_GPU;
	/* Counts the records before mxbpf can read them, so it never has more than were counted. */
	if (b->gpu[0].kind != MXBPF_GPU_CLOCK && b->gpu[0].kind != MXBPF_GPU_NODE && b->gpu[0].kind != MXBPF_GPU_METRIC)
		__atomic_fetch_add(&g->records, b->ncalls, __ATOMIC_RELAXED);
	b->seq = (uint32_t)__atomic_fetch_add(&g->batches, 1, __ATOMIC_RELAXED);
	agent_hand_over(b);
	b->ncalls = 0;
}

void cupti_send(struct mxbpf_gpu_shared *g, const struct mxbpf_gpu_rec *r)
{
	struct mxbpf_agent_batch b;

	cupti_tape_clock((uint64_t)r->clock.before_high << 32 | r->clock.before_low, r->start_ns,
			 (uint64_t)r->clock.after_high << 32 | r->clock.after_low);
	b.ncalls = 1;
	b.gpu[0] = *r;
	cupti_send_batch(g, &b);
}

static void count_read(size_t bytes, uint64_t records)
{
	__atomic_fetch_add(&record_bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&record_count, records, __ATOMIC_RELAXED);
}

/* Estimates how many of the records in so many bytes were not read, at least one, and adds them. */
static void count_unread(__u64 *sum, size_t bytes, uint64_t read)
{
	const uint64_t n = __atomic_load_n(&record_count, __ATOMIC_RELAXED);
	const uint64_t mean = n ? __atomic_load_n(&record_bytes, __ATOMIC_RELAXED) / n : 0;
	const uint64_t all = bytes / (mean ? mean : RECORD_BYTES);

	__atomic_fetch_add(sum, bytes ? (all > read ? all - read : 1) : 0, __ATOMIC_RELAXED);
}

static void read_buffer(struct mxbpf_gpu_shared *g, struct buffer *b, size_t valid)
{
	struct mxbpf_agent_batch *batch = &b->batch;
	uint64_t n = 0, unknown = 0;
	uint8_t *r = NULL;
	int err = CUPTI_MAX_LIMIT_REACHED;

	cupti_tape_buffer(b->records, valid);
	cupti_graphs_send(g); /* the nodes of the kernels in the buffer come before them */
	batch->ncalls = 0;
	while (valid && !(err = cupti.get_next_record(b->records, valid, &r))) {
		if (!read_record(g, b, r, &batch->gpu[batch->ncalls])) {
			unknown++;
			continue;
		}
		n++;
		if (++batch->ncalls == MXBPF_AGENT_GPU_BATCH)
			cupti_send_batch(g, batch);
	}
	if (batch->ncalls)
		cupti_send_batch(g, batch);
	if (err == CUPTI_MAX_LIMIT_REACHED)
		count_read(valid, n + unknown);
	else if (r) /* the size of the last record is not known, because no other follows */
		count_read((size_t)(r - b->records), n + unknown - 1);
	if (err != CUPTI_MAX_LIMIT_REACHED)
		count_unread(&g->unreadable, valid - (r ? (size_t)(r - b->records) : 0), r != NULL);
	__atomic_fetch_add(&g->unknown, unknown, __ATOMIC_RELAXED);
	__atomic_fetch_add(&delivered, n + unknown, __ATOMIC_RELAXED);
}

void cupti_on_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	struct mxbpf_gpu_shared *g = shared_gpu();
	uint32_t i;

	(void)context, (void)stream, (void)bytes;
	for (i = 0; i < BUFFERS && (!pool[i] || pool[i]->records != buffer); i++)
		;
	if (g && i < BUFFERS)
		read_buffer(g, pool[i], valid);
	else if (g)
		count_unread(&g->scrapped, valid, 0);
	if (i == BUFFERS)
		return;
	__atomic_store_n(&taken_ns[i], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&used[i], 0, __ATOMIC_RELEASE);
}

uint64_t cupti_delivered(void)
{
	return __atomic_load_n(&delivered, __ATOMIC_RELAXED);
}
