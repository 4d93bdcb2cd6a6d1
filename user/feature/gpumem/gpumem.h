/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of CUDA that allocate and free memory of GPUs (--gpu with --memory), with the operators around them. */
#ifndef FEATURE_GPUMEM_H
#define FEATURE_GPUMEM_H

#include "model/feature.h"
#include "mxbpf_memory.h"

extern const struct mdl_feature feature_gpumem;
extern const struct view_sheet sheet_gpu_allocs;

/* Appends struct mxbpf_agg_gpu_alloc in no order. Returns 0 or -ENOMEM. */
int gpumem_rows(const struct mdl *m, struct buf *out);
/*
 * Returns what calls of CUDA have allocated on a device of the runtime in the window and not freed, besides segments of
 * its allocator, and the largest free piece of these segments. Numbers are MXBPF_GPU_INSIDE_UNKNOWN if calls are not
 * recorded, or if segments or blocks are older than the window.
 */
struct mxbpf_gpu_inside gpumem_inside(const struct mdl *m, const struct mxbpf_mem_time *t);

#endif
