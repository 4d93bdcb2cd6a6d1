/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that calls of CUDA allocated in the window and have not freed: segments of the runtime's allocator, and
 * others. */
#ifndef FEATURE_GPUMEM_REGIONS_H
#define FEATURE_GPUMEM_REGIONS_H

#include "model/feature.h"
#include "mxbpf_memory.h"

struct gpumem_region {
	uint64_t addr, bytes, start_ns;
	uint32_t tgid, device; /* device: ordinal in the process */
	bool segment;	       /* the allocator placed a block at its start just after the call */
};
struct gpumem_regions {
	struct hash index; /* (address, process) -> place in all */
	struct buf all;	   /* struct gpumem_region; bytes 0: freed */
	struct hash grown; /* (address, process) -> when the allocator placed a block there, having reserved more */
	struct hash pools; /* (process, device) -> bytes reserved at the last report */
	bool on;	   /* calls are recorded */
	bool lost;	   /* there were too many, or they belong to a later interval now */
};

/* Fold a call that allocated or freed, and a report of the allocator. They come in any order. Return 0 or -ENOMEM. */
int gpumem_regions_call(struct gpumem_regions *r, const struct mxbpf_gpu_alloc *a);
int gpumem_regions_report(struct gpumem_regions *r, const struct mxbpf_alloc *a);
int gpumem_regions_copy(struct gpumem_regions *to, const struct gpumem_regions *from);
void gpumem_regions_fini(struct gpumem_regions *r);

/* The numbers of a device in a model that was made from rows. NULL: it was not. */
const struct mxbpf_gpu_inside *gpumem_stored(const struct mdl *m, uint32_t tgid, uint32_t device);
/* The regions of a model, some of which may be freed; they are not known if they are not `on`. NULL: there are none. */
const struct gpumem_regions *gpumem_regions_of(const struct mdl *m);

#endif
