/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a pool: a library gives each the same function, which calls what there is to do through a pointer, and
 * then one of the library's own that waits for the others. Where that begins and ends, found by the code's shape: the
 * library (libgomp) names neither.
 */
#ifndef INSN_WORKER_H
#define INSN_WORKER_H

#include <stdint.h>

#include "elf/elf.h"

#define WORKER_POINTS_MAX 12

/* An instruction that may be probed. */
struct worker_point {
	uint64_t va;
	uint8_t begins;	    /* the work begins behind it, else it is over */
	uint8_t cond;	    /* as in struct cut_point */
	uint8_t cond_taken; /* likewise */
	uint8_t fn, data;   /* registers, by their numbers in instructions: what will be called, and its argument */
};

struct worker {
	struct worker_point points[WORKER_POINTS_MAX];
	unsigned npoints;
};

/* 0; -ENOENT: there is no such function; -errno. e is set whenever it is not 0. */
int worker_find(struct elf *elf, struct worker *out, struct err *e);

/* Which function start_va calls right before it calls, through a register, what there is to do. As above. */
int worker_find_start(struct elf *elf, uint64_t start_va, uint64_t *va, struct err *e);

/*
 * Of functions that end what a master began, the one of the library's own that does it: the one that start_va branches
 * to, and what else that branches to does as well. As above.
 */
int worker_find_end(struct elf *elf, uint64_t start_va, uint64_t *va, struct err *e);

#endif
