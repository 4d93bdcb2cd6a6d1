/* SPDX-License-Identifier: Apache-2.0 */
/* Who allocated the memory of a device, and what of it is live (--memory). */
#ifndef FEATURE_MEMORY_H
#define FEATURE_MEMORY_H

#include "model/feature.h"
#include "mxbpf_memory.h"

extern const struct mdl_feature feature_memory;
extern const struct ses_feature memory_session;
extern const struct cmd_option memory_option;
extern const struct view_sheet sheet_memory, sheet_memory_devices, sheet_memory_totals, sheet_memory_failed;
extern const struct view_trace_feature memory_trace;

#define MEMORY_BLOCKS_MAX (1u << 20) /* live allocations that are kept, 56 bytes each; others count as untracked */
#define MEMORY_OWNERS_MAX (1u << 14) /* further owners are one row with MXBPF_MEM_OWNER_MORE */

/* A live allocation whose record the model has. */
struct memory_block {
	uint64_t addr, bytes;
	const struct mxbpf_mem_owner *holder; /* borrowed */
};

/* Return the i-th device or owner, in no order; NULL behind the last. */
const struct mxbpf_mem_time *memory_device(const struct mdl *m, size_t i);
const struct mxbpf_mem_owner *memory_owner(const struct mdl *m, size_t i);
/* Adds the numbers of an owner to those of another one of the same device. */
void memory_owner_add(struct mxbpf_mem_owner *to, const struct mxbpf_mem_owner *from);
/* Returns the mean of a device's live bytes between two times. */
int64_t memory_mean(const struct mxbpf_mem_time *t, uint64_t start_ns, uint64_t end_ns);
/* Returns the bytes that an allocator which counts itself has reserved and not allocated at its last report. */
uint64_t memory_unused(const struct mxbpf_mem_time *t);
/* Returns what the allocator has allocated less what is known of it: 0, if no event was lost. */
int64_t memory_unexplained(const struct mxbpf_mem_time *t);
/* Iterates live allocations in no order: start with *pos = 0. Returns false at the end. */
bool memory_block(const struct mdl *m, size_t *pos, struct memory_block *out);

#endif
