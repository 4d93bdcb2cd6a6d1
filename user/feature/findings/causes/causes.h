/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causes. Each file of this folder is one cause, or a few that share their facts: make_NAME() reads the tables into its
 * struct in struct cause_facts, and rules_NAME says it (see feature/findings/findings.h). A struct that is zeroed says
 * that nothing was found.
 */
#ifndef FEATURE_FINDINGS_CAUSES_CAUSES_H
#define FEATURE_FINDINGS_CAUSES_CAUSES_H

#include <stdbool.h>
#include <stdint.h>

#include "feature/findings/line.h"

#define CAUSE_PROCESSES 64

/* collector.c: the garbage collector of a process. All times in ns, all shares between 0 and 1. */
struct cause_collector {
	uint32_t tgid;
	double share;		  /* of the window, by looks at the interpreter's state; 0: too little to say */
	uint64_t window_ns;	  /* between the first look and the last one */
	uint64_t all, young;	  /* collections of all objects, and of the young generations */
	uint64_t longest_ns;	  /* of a collection; two without a look between them count as one */
	uint64_t slow, slow_with; /* slow iterations; of these, with a collection */
	struct fact_line line;	  /* of the main thread, in which most collections begin */
};

struct cause_facts {
	struct cause_collector collector;
	/* The share of each process, also of ranks that are not profiled; tgid 0: no more. */
	struct {
		uint32_t tgid;
		double share;
	} collecting[CAUSE_PROCESSES];
};

struct facts;
/* Returns in which share of the time the garbage collector of a process runs; 0: it is not known. */
double causes_collecting(const struct facts *f, uint32_t tgid);

#endif
