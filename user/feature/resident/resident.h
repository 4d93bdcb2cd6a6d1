/* SPDX-License-Identifier: Apache-2.0 */
/* The resident memory of the processes of a job over time. user/feature/lines/load.c reads it with each look. */
#ifndef FEATURE_RESIDENT_H
#define FEATURE_RESIDENT_H

#include <sys/types.h>

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

/* Reads the memory of a process again and again. What takes longer to read is read less often. Zeroed is a new one. */
struct resident_reader {
	struct mxbpf_resident last;
	uint64_t counts_ns, private_ns; /* when these are read again */
	bool forked;
};
/* Reads it into r->last. Returns false if the process has ended. */
bool resident_read(struct resident_reader *r, pid_t pid, bool rank);

/* Returns the i-th process, in no order; NULL behind the last. Borrowed until the next record is folded. */
const struct resident *resident_at(const struct mdl *m, size_t i);
/* Returns the memory that processes have touched, a row for each stack of each, in no order. Borrowed as above. */
const struct mxbpf_touched *resident_touched(const struct mdl *m, size_t *n);

#endif
