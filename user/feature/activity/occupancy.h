/* SPDX-License-Identifier: Apache-2.0 */
/* Theoretical occupancy of kernels. */
#ifndef FEATURE_ACTIVITY_OCCUPANCY_H
#define FEATURE_ACTIVITY_OCCUPANCY_H

#include "mxbpf_track.h"

/*
 * Returns the part of a multiprocessor's warps that can run the kernel at once, between 0 and 1, by the formula of
 * NVIDIA's cuda_occupancy.h. It assumes that all of the shared memory is for blocks. Returns NAN if the device, the
 * shape or the compute capability is not known.
 */
double activity_occupancy(const struct mxbpf_gpu_device *d, const struct mxbpf_agg_activity *a);

#endif
