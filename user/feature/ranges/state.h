/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this feature share. */
#ifndef FEATURE_RANGES_STATE_H
#define FEATURE_RANGES_STATE_H

#include "feature/ranges/ranges.h"

struct ranges_state {
	struct hash index;	  /* (tid, tgid) -> 1 + index of a thread */
	struct buf threads;	  /* struct thread of fold.c */
	size_t all;		  /* ranges of all threads */
	struct hash numbered;	  /* processes whose operators have sequence numbers */
	struct hash kernel_index; /* (name_id, range_id and process) -> 1 + index in kernels */
	struct buf kernels;	  /* struct mxbpf_agg_range */
};

/* kernels.c: the hooks of struct mdl_feature. */
int ranges_fold_kernel(struct mdl *m, const struct mxbpf_rec *rec);
int ranges_emit(const struct mdl *m, struct buf *out);
int ranges_copy(struct mdl *to, const struct mdl *from);

#endif
