/* SPDX-License-Identifier: Apache-2.0 */
/* The resident memory of the processes of a job over time. user/feature/lines/load.c reads it with each look. */
#ifndef FEATURE_RESIDENT_H
#define FEATURE_RESIDENT_H

#include "model/feature.h"
#include "mxbpf_lines.h"

extern const struct mdl_feature feature_resident;

#define RESIDENT_READINGS 256 /* that are kept of a process; of more, each two become one, the smaller */

/* The memory of a process. Its readings are in order of time. */
struct resident {
	uint32_t tgid;
	uint32_t n;    /* readings */
	uint64_t each; /* a reading is the least of so many, the last one of `last` */
	uint64_t last;
	struct mxbpf_resident at[RESIDENT_READINGS];
};

/* Returns the i-th process, in no order; NULL behind the last. Borrowed until the next record is folded. */
const struct resident *resident_at(const struct mdl *m, size_t i);

#endif
