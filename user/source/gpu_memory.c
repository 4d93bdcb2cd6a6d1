// SPDX-License-Identifier: Apache-2.0
/*
 * Calls of CUDA that allocate and free memory. CUPTI has one record of the call, with its time and its result, and one
 * of the memory, with its bytes and its kind. Both have the same correlation id. A call that fails has no record of
 * memory. Calls that give memory to a range of addresses (cuMemCreate, cuMemMap and their opposites) need no record of
 * memory: where there is one, it follows.
 */
#include "source/gpu_convert.h"

#include <errno.h>
#include <string.h>

#include "mxbpf_memory.h"

#define CALLS_MAX 65536 /* calls that wait for the record of their memory; then all are forgotten */

struct gpu_alloc_call {
	uint64_t start_ns, dur_ns, name_id;
	uint32_t tid;
	bool maps; /* the call has been put already */
};

enum gpu_alloc_kind gpu_allocates(const char *call)
{
	static const struct {
		const char *begins;
		enum gpu_alloc_kind kind;
	} calls[] = {{"cudaMalloc", GPU_ALLOC_PLAIN},	  {"cudaFree", GPU_ALLOC_PLAIN},
		     {"cudaHostAlloc", GPU_ALLOC_PLAIN},  {"cuMemAlloc", GPU_ALLOC_PLAIN},
		     {"cuMemHostAlloc", GPU_ALLOC_PLAIN}, {"cuMemFree", GPU_ALLOC_PLAIN},
		     {"cuMemCreate", GPU_ALLOC_MAPS},	  {"cuMemMap", GPU_ALLOC_MAPS},
		     {"cuMemRelease", GPU_ALLOC_UNMAPS},  {"cuMemUnmap", GPU_ALLOC_UNMAPS}};
	unsigned i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strncmp(call, calls[i].begins, strlen(calls[i].begins)))
			return calls[i].kind;
	return GPU_ALLOC_NOT;
}

static void gpu_memory_put(struct gpu_convert *c, const struct mxbpf_gpu_alloc *a)
{
	if (!buf_put(&c->recs, a, sizeof(*a))) {
		c->stored++;
		return;
	}
	c->err = -ENOMEM;
	c->lost++;
}

static struct mxbpf_gpu_alloc alloc_of(const struct gpu_convert *c, const struct gpu_alloc_call *call)
{
	return (struct mxbpf_gpu_alloc){
		.h = {.kind = MXBPF_GPU_ALLOC,
		      .size = sizeof(struct mxbpf_gpu_alloc),
		      .tgid = c->tgid,
		      .ts_ns = call->start_ns},
		.dur_ns = call->dur_ns,
		.name_id = call->name_id,
		.tid = call->tid,
	};
}

void gpu_alloc_called(struct gpu_convert *c, const struct mxbpf_gpu_rec *r, uint64_t name_id, uint32_t tid,
		      enum gpu_alloc_kind kind)
{
	const uint64_t start_ns = gpu_time(c, r->start_ns), end_ns = gpu_time(c, r->end_ns);
	const struct gpu_alloc_call call = {start_ns, end_ns > start_ns ? end_ns - start_ns : 1, name_id, tid,
					    kind != GPU_ALLOC_PLAIN};
	struct mxbpf_gpu_alloc a;
	uint64_t *at;

	if (r->call.result || call.maps) {
		a = alloc_of(c, &call);
		a.result = r->call.result;
		a.flags = r->call.result	     ? MXBPF_GPU_ALLOC_FAILED
			  : kind == GPU_ALLOC_UNMAPS ? MXBPF_GPU_ALLOC_FREED
						     : 0;
		gpu_memory_put(c, &a);
	}
	if (r->call.result)
		return;
	if (buf_count(&c->alloc_calls, struct gpu_alloc_call) >= CALLS_MAX) {
		hash_clear(&c->allocating);
		c->alloc_calls.len = 0;
	}
	at = hash_put(&c->allocating, r->correlation, 0);
	if (!at || buf_put(&c->alloc_calls, &call, sizeof(call)))
		c->err = -ENOMEM;
	else
		*at = buf_count(&c->alloc_calls, struct gpu_alloc_call);
}

bool gpu_alloc_waits(const struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	return r->kind == MXBPF_GPU_MEMORY && !hash_get(&c->allocating, r->correlation, 0);
}

void gpu_put_alloc(struct gpu_convert *c, const struct mxbpf_gpu_rec *r)
{
	const struct gpu_alloc_call none = {.start_ns = gpu_time(c, r->start_ns)}, *call = &none;
	const uint64_t *at = hash_get(&c->allocating, r->correlation, 0);
	struct mxbpf_gpu_alloc a;

	if (at && *at)
		call = buf_at(&c->alloc_calls, const struct gpu_alloc_call, *at - 1);
	a = alloc_of(c, call);
	a.dur_ns = call->maps ? 0 : a.dur_ns;
	a.addr = r->graph_node;
	a.bytes = r->bytes;
	a.device = r->device;
	a.kind = r->memory.kind;
	a.flags = (r->memory.freed ? MXBPF_GPU_ALLOC_FREED : 0) | (r->memory.pool ? MXBPF_GPU_ALLOC_POOL : 0) |
		  (call->maps ? MXBPF_GPU_ALLOC_MORE : 0);
	a.pool_bytes = (uint64_t)r->memory.size_high << 32 | r->memory.size_low;
	a.pool_used_bytes = (uint64_t)r->memory.used_high << 32 | r->memory.used_low;
	c->memory++;
	gpu_memory_put(c, &a);
}
