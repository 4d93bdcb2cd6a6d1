/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that failed for lack of memory, and who held the memory then. */
#ifndef FEATURE_MEMORY_FAILED_H
#define FEATURE_MEMORY_FAILED_H

#include "model/feature.h"
#include "mxbpf_memory.h"

#define MEMORY_FAILED_MAX  16 /* failures that are kept: the first ones, and the last one */
#define MEMORY_HOLDERS_MAX 32 /* holders of a failure that are kept: those with the most */

struct memory_failure {
	struct mxbpf_mem_failed f;
	struct mxbpf_mem_holder holders[MEMORY_HOLDERS_MAX]; /* the one with the most first */
	unsigned nholders;
};
struct memory_failed {
	struct buf list; /* struct memory_failure, by time */
	uint64_t n;	 /* all of them */
};

/* Keeps a failure with the owners that hold memory of its device now. Without --memory there are none. 0 or -ENOMEM. */
int memory_failed_add(struct mdl *m, struct memory_failed *to, const struct mxbpf_alloc *a);
/* Folds MXBPF_MEM_FAILED, and MXBPF_MEM_HOLDER of the failure before it. 0 or -ENOMEM. */
int memory_failed_fold(struct mdl *m, struct memory_failed *to, const struct mxbpf_rec *rec);
int memory_failed_emit(const struct memory_failed *of, struct buf *out);
/* Adds those of another model. */
int memory_failed_copy(struct memory_failed *to, const struct memory_failed *from);
void memory_failed_fini(struct memory_failed *f);

/* NULL: there is none. Borrowed until the next record is folded. */
const struct memory_failed *memory_failures(const struct mdl *m);

#endif
