/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this feature share. */
#ifndef FEATURE_RANGES_STATE_H
#define FEATURE_RANGES_STATE_H

#include "feature/ranges/ranges.h"

struct ranges_state {
	struct hash index;    /* (tid, tgid) -> 1 + index of a thread */
	struct buf threads;   /* struct thread of fold.c */
	size_t all;	      /* ranges of all threads */
	struct hash numbered; /* processes whose operators have sequence numbers */
};

#endif
