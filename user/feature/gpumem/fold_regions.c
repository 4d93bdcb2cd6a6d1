// SPDX-License-Identifier: Apache-2.0
/*
 * Tells segments of the runtime's allocator from other memory that calls of CUDA allocate. An allocator takes a segment
 * because it needs a block, which it places at the segment's start. Calls come seconds after reports, or before them.
 */
#include "feature/gpumem/regions.h"

#include <errno.h>

#define REGIONS_MAX 65536
#define SOON_NS	    1000000000ull /* from the start of a call to the report of the block */

static bool is_soon(uint64_t start_ns, uint64_t report_ns)
{
	return report_ns >= start_ns && report_ns - start_ns < SOON_NS;
}

static struct gpumem_region *region_at(const struct gpumem_regions *r, uint64_t addr, uint32_t tgid)
{
	const uint64_t *at = hash_get(&r->index, addr, tgid);

	return at ? buf_at(&r->all, struct gpumem_region, *at) : NULL;
}

static int gpumem_fold_regions_add(struct gpumem_regions *r, const struct gpumem_region *one)
{
	struct gpumem_region *to = region_at(r, one->addr, one->tgid);
	uint64_t *at;

	if (to) {
		*to = *one;
		return 0;
	}
	if (buf_count(&r->all, *one) >= REGIONS_MAX) {
		r->lost = true;
		return 0;
	}
	at = hash_put(&r->index, one->addr, one->tgid);
	if (!at)
		return -ENOMEM;
	*at = buf_count(&r->all, *one);
	return buf_put(&r->all, one, sizeof(*one));
}

int gpumem_regions_call(struct gpumem_regions *r, const struct mxbpf_gpu_alloc *a)
{
	const struct gpumem_region one = {a->addr, a->bytes, a->h.ts_ns, a->h.tgid, a->device, false};
	struct gpumem_region with = one, *to;
	const uint64_t *grown;

	if (a->flags & (MXBPF_GPU_ALLOC_FAILED | MXBPF_GPU_ALLOC_POOL))
		return 0;
	if (a->flags & MXBPF_GPU_ALLOC_FREED) {
		to = region_at(r, a->addr, a->h.tgid);
		if (to)
			to->bytes = 0;
		return 0;
	}
	if (a->kind != MXBPF_MEMORY_DEVICE || !a->bytes)
		return 0;
	grown = hash_get(&r->grown, a->addr, a->h.tgid);
	with.segment = grown && is_soon(a->h.ts_ns, *grown);
	return gpumem_fold_regions_add(r, &with);
}

int gpumem_regions_report(struct gpumem_regions *r, const struct mxbpf_alloc *a)
{
	struct gpumem_region *of;
	uint64_t *pool, *grown, before;

	if (a->h.size < sizeof(*a) || !a->pool_bytes || a->flags || !a->addr)
		return 0;
	of = region_at(r, a->addr, a->h.tgid);
	if (of && of->bytes && is_soon(of->start_ns, a->h.ts_ns))
		of->segment = true;
	pool = hash_put(&r->pools, a->h.tgid, a->device);
	if (!pool)
		return -ENOMEM;
	before = *pool;
	*pool = a->pool_bytes;
	if (before == a->pool_bytes)
		return 0;
	if (r->grown.len >= REGIONS_MAX) {
		r->lost = true;
		return 0;
	}
	grown = hash_put(&r->grown, a->addr, a->h.tgid);
	if (!grown)
		return -ENOMEM;
	*grown = a->h.ts_ns;
	return 0;
}

int gpumem_regions_copy(struct gpumem_regions *to, const struct gpumem_regions *from)
{
	to->on = from->on;
	to->lost = from->lost;
	if (hash_copy(&to->grown, &from->grown) || hash_copy(&to->pools, &from->pools))
		return -ENOMEM;
	return mdl_items_copy(&to->index, &to->all, &from->index, &from->all);
}

void gpumem_regions_fini(struct gpumem_regions *r)
{
	hash_fini(&r->grown);
	hash_fini(&r->pools);
	mdl_items_fini(&r->index, &r->all);
}
