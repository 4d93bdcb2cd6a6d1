// SPDX-License-Identifier: Apache-2.0
#include "feature/activity/occupancy.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a multiprocessor hands out its resources, by compute capability. */
struct allocation {
	uint16_t major, minor;
	bool any_minor;
	uint16_t partitions;	 /* parts of a multiprocessor, each with its own registers */
	uint16_t register_unit;	 /* registers for a warp are a multiple of this */
	uint16_t shared_unit;	 /* bytes of shared memory for a block are a multiple of this */
	uint16_t shared_reserve; /* bytes that the system takes of each block's shared memory */
};
/* clang-format off */
static const struct allocation allocations[] = {
	/* major, minor, any, partitions, register_unit, shared_unit, shared_reserve */
	{3, 0, true, 4, 256, 256, 0},
	{5, 0, true, 4, 256, 256, 0},
	{6, 0, false, 2, 256, 256, 0},
	{6, 0, true, 4, 256, 256, 0},
	{7, 0, true, 4, 256, 256, 0},
	{8, 0, true, 4, 256, 128, 1024},
	{9, 0, true, 4, 256, 128, 1024},
	{10, 0, true, 4, 256, 128, 1024},
	{12, 0, true, 4, 256, 128, 1024},
};
/* clang-format on */

static const struct allocation *allocation_of(const struct mxbpf_gpu_device *d)
{
	size_t i;

	for (i = 0; i < sizeof(allocations) / sizeof(allocations[0]); i++)
		if (allocations[i].major == d->major && (allocations[i].any_minor || allocations[i].minor == d->minor))
			return &allocations[i];
	return NULL;
}

static uint64_t up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

double activity_occupancy(const struct mxbpf_gpu_device *d, const struct mxbpf_agg_activity *a)
{
	const struct allocation *by = d ? allocation_of(d) : NULL;
	const uint64_t threads = (uint64_t)a->block[0] * a->block[1] * a->block[2];
	uint64_t warps, warps_max, blocks, per_warp, shared;

	if (!by || !a->shape_ns || !threads || !a->registers || !d->warp || !d->threads_per_mp || !d->blocks_per_mp ||
	    !d->registers_per_mp || !d->shared_per_mp)
		return NAN;
	warps = up(threads, d->warp) / d->warp;
	warps_max = d->threads_per_mp / d->warp;
	per_warp = up((uint64_t)a->registers * d->warp, by->register_unit);
	shared = up((uint64_t)a->static_shared + a->dynamic_shared + by->shared_reserve, by->shared_unit);
	blocks = least(d->blocks_per_mp, warps_max / warps);
	blocks = least(blocks, d->registers_per_mp / by->partitions / per_warp * by->partitions / warps);
	if (shared)
		blocks = least(blocks, d->shared_per_mp / shared);
	/* A kernel that ran has room for one block, so the attributes of the device are wrong. */
	return blocks ? (double)(blocks * warps) / (double)warps_max : NAN;
}
