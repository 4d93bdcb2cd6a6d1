// SPDX-License-Identifier: Apache-2.0
/* What calls of CUDA allocated on a device: segments of the runtime's allocator, the free pieces in them, and the rest.
 */
#include "feature/gpumem/gpumem.h"

#include <errno.h>
#include <stdlib.h>

#include "feature/gpumem/regions.h"
#include "feature/memory/memory.h"

struct piece {
	uint64_t addr, bytes;
	bool segment;
};

static int by_address(const void *va, const void *vb)
{
	const struct piece *a = va, *b = vb;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static void sort(struct buf *pieces)
{
	if (pieces->len)
		qsort(pieces->data, buf_count(pieces, struct piece), sizeof(struct piece), by_address);
}

static int take_regions(const struct gpumem_regions *from, const struct mxbpf_mem_time *t, struct buf *to)
{
	const struct gpumem_region *r;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&from->all, *r); i++) {
		r = buf_at(&from->all, const struct gpumem_region, i);
		if (r->bytes && r->tgid == t->h.tgid && r->device == MXBPF_DEVICE_ID(t->device))
			err = buf_put(to, &(struct piece){r->addr, r->bytes, r->segment}, sizeof(struct piece));
	}
	sort(to);
	return err;
}

static int take_blocks(const struct mdl *m, const struct mxbpf_mem_time *t, struct buf *to)
{
	struct memory_block b;
	size_t pos = 0;
	int err = 0;

	while (!err && memory_block(m, &pos, &b))
		if (b.holder->h.tgid == t->h.tgid && b.holder->device == t->device)
			err = buf_put(to, &(struct piece){b.addr, b.bytes, false}, sizeof(struct piece));
	sort(to);
	return err;
}

/*
 * Walks over the blocks of a region, from the *i-th on. Returns the largest piece between them, and adds their bytes.
 * Pieces of a file can overlap; then the sum is too large, and the result is not used.
 */
static uint64_t gpumem_walk(struct piece *region, const struct buf *blocks, size_t *i, uint64_t *used)
{
	const uint64_t end = region->addr + region->bytes;
	uint64_t at = region->addr, largest = 0;
	const struct piece *b;

	for (; *i < buf_count(blocks, *b); ++*i) {
		b = buf_at(blocks, const struct piece, *i);
		if (b->addr >= end)
			break;
		if (b->addr < region->addr)
			continue;
		region->segment = true;
		if (b->addr > at && b->addr - at > largest)
			largest = b->addr - at;
		at = b->addr + b->bytes > at ? b->addr + b->bytes : at;
		add_sat(used, b->bytes);
	}
	return end > at && end - at > largest ? end - at : largest;
}

static void gpumem_fill(struct buf *regions, const struct buf *blocks, const struct mxbpf_mem_time *t,
			struct mxbpf_gpu_inside *to)
{
	uint64_t used = 0, segments = 0, outside = 0, largest = 0, one;
	struct piece *r;
	size_t i, at = 0;

	for (i = 0; i < buf_count(regions, *r); i++) {
		r = buf_at(regions, struct piece, i);
		one = gpumem_walk(r, blocks, &at, &used);
		add_sat(r->segment ? &segments : &outside, r->bytes);
		largest = r->segment && one > largest ? one : largest;
	}
	to->calls_bytes = outside;
	if (t->counted && segments == t->pool_bytes && used == t->total_bytes)
		to->largest_free_bytes = largest;
}

struct mxbpf_gpu_inside gpumem_inside(const struct mdl *m, const struct mxbpf_mem_time *t)
{
	struct mxbpf_gpu_inside to = {
		.h = {.kind = MXBPF_GPU_INSIDE, .size = sizeof(to), .tgid = t->h.tgid},
		.calls_bytes = MXBPF_GPU_INSIDE_UNKNOWN,
		.largest_free_bytes = MXBPF_GPU_INSIDE_UNKNOWN,
		.device = t->device,
	};
	const struct mxbpf_gpu_inside *stored = gpumem_stored(m, t->h.tgid, t->device);
	const struct gpumem_regions *from = gpumem_regions_of(m);
	struct buf regions = {0}, blocks = {0};

	if (stored)
		return *stored;
	if (from && from->on && !from->lost && !take_regions(from, t, &regions) && !take_blocks(m, t, &blocks))
		gpumem_fill(&regions, &blocks, t, &to);
	buf_fini(&regions);
	buf_fini(&blocks);
	return to;
}
