// SPDX-License-Identifier: Apache-2.0
#include "feature/activity/occupancy.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
	{11, 0, true, 4, 256, 128, 1024},
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

static uint64_t threads_of(const struct mxbpf_agg_activity *a)
{
	return (uint64_t)a->block[0] * a->block[1] * a->block[2];
}

static bool activity_is_known(const struct mxbpf_gpu_device *d, const struct mxbpf_agg_activity *a)
{
	return a->shape_ns && threads_of(a) && a->registers && d->warp && d->threads_per_mp && d->blocks_per_mp &&
	       d->registers_per_mp && d->shared_per_mp;
}

#define TAIL_LEAST 0.8 /* part of the places for blocks that all waves together use; below it the tail is named */

static void fill_grid(struct occupancy *o, const struct mxbpf_gpu_device *d, const struct mxbpf_agg_activity *a)
{
	const double blocks = (double)a->grid[0] * a->grid[1] * a->grid[2];

	if (!d->multiprocessors || blocks < 1)
		return;
	o->waves = blocks / ((double)d->multiprocessors * o->blocks);
	o->multiprocessors = blocks < d->multiprocessors ? blocks / d->multiprocessors : 1;
	if (blocks < d->multiprocessors)
		o->grid = OCCUPANCY_GRID_SMALL;
	else if (o->waves > 1 && o->waves / ceil(o->waves) < TAIL_LEAST)
		o->grid = OCCUPANCY_GRID_TAIL;
}

struct occupancy activity_occupancy(const struct mxbpf_gpu_device *d, const struct mxbpf_agg_activity *a)
{
	const struct allocation *by = d ? allocation_of(d) : NULL;
	struct occupancy o = {.share = NAN, .waves = NAN, .multiprocessors = NAN};
	uint64_t warps, warps_max, blocks = UINT64_MAX, per_warp, shared, most[4];
	unsigned i;

	if (!by || !activity_is_known(d, a))
		return o;
	warps = up(threads_of(a), d->warp) / d->warp;
	warps_max = d->threads_per_mp / d->warp;
	per_warp = up((uint64_t)a->registers * d->warp, by->register_unit);
	shared = up((uint64_t)a->static_shared + a->dynamic_shared + by->shared_reserve, by->shared_unit);
	most[0] = d->registers_per_mp / by->partitions / per_warp * by->partitions / warps;
	most[1] = shared ? d->shared_per_mp / shared : UINT64_MAX;
	most[2] = warps_max / warps;
	most[3] = d->blocks_per_mp;
	for (i = 0; i < 4; i++)
		blocks = least(blocks, most[i]);
	/* A kernel that ran has room for one block, so the attributes of the device are wrong. */
	if (!blocks)
		return o;
	for (i = 0; i < 4 && blocks * warps < warps_max; i++)
		o.limits |= (uint8_t)((most[i] == blocks) << i);
	o.blocks = (uint32_t)blocks;
	o.share = (double)(blocks * warps) / (double)warps_max;
	fill_grid(&o, d, a);
	return o;
}

const char *occupancy_limits_text(unsigned limits, char to[OCCUPANCY_TEXT_BYTES])
{
	static const char *const names[] = {"registers", "shared memory", "block size", "blocks per SM"};
	size_t n = 0;
	unsigned i;

	to[0] = 0;
	for (i = 0; i < 4; i++)
		if (limits & 1u << i)
			n += (size_t)snprintf(to + n, OCCUPANCY_TEXT_BYTES - n, "%s%s", n ? ", " : "", names[i]);
	return to;
}

const char *const occupancy_grids[OCCUPANCY_GRIDS] = {
	[OCCUPANCY_GRID_SMALL] = "fewer blocks than SMs",
	[OCCUPANCY_GRID_TAIL] = "last wave",
};
