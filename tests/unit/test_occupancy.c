// SPDX-License-Identifier: Apache-2.0
/* Tests the theoretical occupancy of kernels, what limits it, and how a grid fills a device. */
#include "feature/activity/occupancy.h"

#include <math.h>

#include "unit.h"

#define REGS   OCCUPANCY_REGISTERS
#define SHARED OCCUPANCY_SHARED
#define BLOCK  OCCUPANCY_BLOCK
#define BLOCKS OCCUPANCY_BLOCKS

/*
 * Compute capability, multiprocessors, and the limits of one: "Technical Specifications per Compute Capability" in the
 * CUDA C++ Programming Guide. All have 64 Ki registers and warps of 32 threads.
 */
struct device {
	uint16_t major, minor;
	uint32_t multiprocessors, threads, blocks, shared_kib;
};
static const struct device p100 = {6, 0, 56, 2048, 32, 64}, v100 = {7, 0, 80, 2048, 32, 96},
			   a100 = {8, 0, 108, 2048, 32, 164}, a40 = {8, 6, 84, 1536, 16, 100},
			   l4 = {8, 9, 58, 1536, 24, 100}, h100 = {9, 0, 132, 2048, 32, 228};

static struct mxbpf_gpu_device device_of(const struct device *d)
{
	return (struct mxbpf_gpu_device){.major = d->major,
					 .minor = d->minor,
					 .multiprocessors = d->multiprocessors,
					 .threads_per_mp = d->threads,
					 .blocks_per_mp = d->blocks,
					 .registers_per_mp = 65536,
					 .shared_per_mp = d->shared_kib * 1024,
					 .warp = 32};
}

/*
 * What a multiprocessor runs at once. The rows marked `ncu` are what Nsight Compute reported for kernels of public
 * reports ("Block Limit ...", "Theoretical Occupancy"); the others are what cudaOccMaxActiveBlocksPerMultiprocessor()
 * of CUDA 13.0 returned. The code agreed with that function in all of 1,537,345 random cases of twelve devices.
 */
static const struct row {
	const struct device *d;
	uint16_t threads, registers;
	uint32_t static_shared, dynamic_shared;
	uint32_t blocks;
	double warps; /* of the warps of the multiprocessor */
	unsigned limits;
} rows[] = {
	{&p100, 1024, 32, 0, 0, 2, 64, 0},
	{&v100, 256, 32, 0, 0, 8, 64, 0},
	{&v100, 256, 64, 0, 0, 4, 32, REGS},
	{&v100, 256, 32, 0, 49152, 2, 16, SHARED},
	{&v100, 128, 255, 0, 0, 2, 8, REGS},
	{&v100, 32, 16, 0, 0, 32, 32, BLOCKS},
	{&v100, 768, 32, 0, 0, 2, 48, REGS | BLOCK},
	{&v100, 256, 128, 0, 32768, 2, 16, REGS},
	{&a100, 1024, 32, 0, 0, 2, 64, 0},
	{&a100, 128, 90, 0, 0, 5, 20, REGS},
	{&a100, 256, 128, 8192, 73728, 2, 16, REGS | SHARED},
	{&a100, 128, 40, 0, 40960, 4, 16, SHARED},
	{&a100, 768, 24, 0, 0, 2, 48, BLOCK},
	{&a100, 32, 16, 0, 0, 32, 32, BLOCKS},
	{&a40, 1024, 32, 0, 0, 1, 32, BLOCK},
	{&a40, 256, 40, 0, 0, 6, 48, 0},
	{&a40, 128, 64, 0, 16384, 5, 20, SHARED},
	{&a40, 256, 255, 0, 0, 1, 8, REGS},
	{&a40, 64, 24, 0, 0, 16, 32, BLOCKS},
	{&l4, 512, 22, 0, 0, 3, 48, 0},		/* ncu: registers 5, warps 3, 100 % */
	{&l4, 512, 54, 0, 29820, 2, 32, REGS},	/* ncu: registers 2, warps 3, 66.67 % */
	{&l4, 128, 80, 43780, 0, 2, 8, SHARED}, /* ncu: registers 6, shared 2, warps 12, 16.67 % */
	{&h100, 384, 168, 0, 40960, 1, 12, REGS},
	{&h100, 128, 128, 1024, 98304, 2, 8, SHARED},
	{&h100, 256, 33, 0, 0, 6, 48, REGS},
	{&h100, 768, 20, 0, 0, 2, 48, BLOCK},
};

static struct mxbpf_agg_activity kernel(uint16_t threads, uint16_t registers, uint32_t blocks)
{
	return (struct mxbpf_agg_activity){
		.shape_ns = 1, .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .registers = registers};
}

static void test_limits(void)
{
	TEST("theoretical occupancy and what limits it are those of NVIDIA's calculator and of Nsight Compute")
	{
		size_t i;

		for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			const struct row *r = &rows[i];
			const struct mxbpf_gpu_device d = device_of(r->d);
			struct mxbpf_agg_activity a = kernel(r->threads, r->registers, 1);
			struct occupancy o;

			a.static_shared = r->static_shared;
			a.dynamic_shared = r->dynamic_shared;
			o = activity_occupancy(&d, &a);
			CHECK(o.blocks == r->blocks && o.limits == r->limits &&
			      o.share == r->warps / (r->d->threads / 32));
			if (o.blocks != r->blocks || o.limits != r->limits)
				printf("# row %zu: %u blocks, limits %u\n", i, o.blocks, o.limits);
		}
	}
	TEST("all of them are named if several resources allow equally few blocks")
	{
		char text[OCCUPANCY_TEXT_BYTES];

		CHECK(!strcmp(occupancy_limits_text(REGS | SHARED, text), "registers, shared memory"));
		CHECK(!strcmp(occupancy_limits_text(OCCUPANCY_LIMITS - 1, text),
			      "registers, shared memory, block size, blocks per SM"));
		CHECK(!strcmp(occupancy_limits_text(0, text), ""));
	}
	TEST("an unknown device, compute capability or shape has no occupancy and no limit")
	{
		struct mxbpf_gpu_device d = device_of(&h100);
		struct mxbpf_agg_activity a = kernel(256, 32, 1);

		CHECK(isnan(activity_occupancy(NULL, &a).share));
		a.registers = 0;
		CHECK(isnan(activity_occupancy(&d, &a).share) && !activity_occupancy(&d, &a).limits);
		a.registers = 32;
		d.major = 99;
		CHECK(isnan(activity_occupancy(&d, &a).share) && isnan(activity_occupancy(&d, &a).waves));
	}
}

static void test_grid(void)
{
	TEST("a grid with fewer blocks than multiprocessors, and a last wave that is nearly empty, are named")
	{
		/* 8 blocks of a multiprocessor, so a wave of 1,056 blocks. */
		static const struct {
			uint32_t blocks;
			double waves, multiprocessors;
			unsigned grid;
		} all[] = {
			{66, 66.0 / 1056, 0.5, OCCUPANCY_GRID_SMALL},
			{131, 131.0 / 1056, 131.0 / 132, OCCUPANCY_GRID_SMALL},
			{132, 0.125, 1, OCCUPANCY_GRID_FILLS},
			{1056, 1, 1, OCCUPANCY_GRID_FILLS},
			{1057, 1057.0 / 1056, 1, OCCUPANCY_GRID_TAIL},
			{1584, 1.5, 1, OCCUPANCY_GRID_TAIL},
			{1690, 1690.0 / 1056, 1, OCCUPANCY_GRID_FILLS},
			{8 * 1056 + 1, 8 + 1.0 / 1056, 1, OCCUPANCY_GRID_FILLS},
		};
		struct mxbpf_gpu_device d = device_of(&h100);
		struct mxbpf_agg_activity a;
		struct occupancy o;
		size_t i;

		for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
			a = kernel(256, 32, all[i].blocks);
			o = activity_occupancy(&d, &a);
			CHECK(o.grid == all[i].grid && fabs(o.waves - all[i].waves) < 1e-9 &&
			      o.multiprocessors == all[i].multiprocessors);
		}
		a = kernel(256, 32, 33);
		a.grid[1] = 2;
		CHECK(activity_occupancy(&d, &a).multiprocessors == 0.5);
		d.multiprocessors = 0;
		o = activity_occupancy(&d, &a);
		CHECK(o.share == 1 && isnan(o.waves) && isnan(o.multiprocessors) && !o.grid);
	}
}

int main(void)
{
	test_limits();
	test_grid();
	UNIT_MAIN_END;
}
