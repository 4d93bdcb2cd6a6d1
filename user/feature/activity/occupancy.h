/* SPDX-License-Identifier: Apache-2.0 */
/* Theoretical occupancy of kernels, and what limits it. */
#ifndef FEATURE_ACTIVITY_OCCUPANCY_H
#define FEATURE_ACTIVITY_OCCUPANCY_H

#include <stdint.h>

#include "mxbpf_track.h"

/* What limits the number of blocks that a multiprocessor runs at once. Several resources can allow equally few. */
enum occupancy_limit {
	OCCUPANCY_REGISTERS = 1 << 0,
	OCCUPANCY_SHARED = 1 << 1, /* shared memory */
	OCCUPANCY_BLOCK = 1 << 2,  /* threads of a block: no further block of this size fits */
	OCCUPANCY_BLOCKS = 1 << 3, /* the blocks of a multiprocessor are too small */
	OCCUPANCY_LIMITS = 1 << 4,
};

/* How the blocks of a launch fill the device. */
enum occupancy_grid {
	OCCUPANCY_GRID_FILLS = 0,
	OCCUPANCY_GRID_SMALL = 1, /* there are fewer blocks than multiprocessors */
	OCCUPANCY_GRID_TAIL = 2,  /* the last wave leaves much of the device unused */
	OCCUPANCY_GRIDS = 3,
};

struct occupancy {
	double share;	 /* of a multiprocessor's warps that can run the kernel at once, 0 to 1; NAN: unknown */
	uint32_t blocks; /* that a multiprocessor runs at once */
	uint8_t limits;	 /* enum occupancy_limit; 0: share is 1 or unknown */
	uint8_t grid;	 /* enum occupancy_grid */
	double waves;	 /* blocks of the launch for each block that can run on the device at once; NAN: unknown */
	double multiprocessors; /* part of the device that has a block in the first wave, 0 to 1; NAN: unknown */
};

/*
 * Computes occupancy by the formula of NVIDIA's cuda_occupancy.h. It assumes that all of the shared memory is for
 * blocks, and that a kernel uses no more than one barrier. All is unknown if the device, the shape or the compute
 * capability is not known; what depends on the grid is unknown if the number of multiprocessors is.
 */
struct occupancy activity_occupancy(const struct mxbpf_gpu_device *d, const struct mxbpf_agg_activity *a);

#define OCCUPANCY_TEXT_BYTES 64
/* Writes the names of limits: "registers, shared memory". Returns to. */
const char *occupancy_limits_text(unsigned limits, char to[OCCUPANCY_TEXT_BYTES]);
extern const char *const occupancy_grids[OCCUPANCY_GRIDS];

#endif
