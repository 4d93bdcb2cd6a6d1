/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of CUDA that allocate and free memory of GPUs (--gpu with --memory), with the operators around them. */
#ifndef FEATURE_GPUMEM_H
#define FEATURE_GPUMEM_H

#include "model/feature.h"
#include "mxbpf_memory.h"

extern const struct mdl_feature feature_gpumem;
extern const struct view_sheet sheet_gpu_allocs;

/* Such calls of one process, name, GPU and owner, that is the operator around them. */
struct gpumem_row {
	uint64_t name_id;
	uint64_t op_id, stack_id; /* innermost operator around the calls, and its Python stack; 0: none */
	uint64_t count, failed;
	uint64_t alloc_bytes, free_bytes;
	uint64_t total_ns, max_ns;
	uint64_t pool_peak_bytes; /* most bytes of the pool */
	uint32_t tgid, device;
	uint8_t kind; /* enum mxbpf_memory_kind */
};
extern const struct tbl_def gpumem_table; /* of struct gpumem_row */
/*
 * Returns what calls of CUDA have allocated on a device of the runtime in the window and not freed, besides segments of
 * its allocator, and the largest free piece of these segments. Numbers are MXBPF_GPU_INSIDE_UNKNOWN if calls are not
 * recorded, or if segments or blocks are older than the window.
 */
struct mxbpf_gpu_inside gpumem_inside(const struct mdl *m, const struct mxbpf_mem_time *t);

#endif
