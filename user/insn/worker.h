/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the threads of an OpenMP pool. A library gives each thread the same function. It calls the work through a
 * pointer, and then a function of the library that waits for the others. libgomp names neither, so the code's shape
 * shows where the work begins and ends.
 */
#ifndef INSN_WORKER_H
#define INSN_WORKER_H

#include <stdint.h>

#include "elf/elf.h"

#define WORKER_POINTS_MAX 12

/* An instruction that may be probed. */
struct worker_point {
	uint64_t va;
	uint8_t begins;	    /* 1: the work begins after it; 0: the work is over */
	uint8_t cond;	    /* as in struct cut_point */
	uint8_t cond_taken; /* as in struct cut_point */
	uint8_t fn, data;   /* numbers of registers in instructions: the function to call and its argument */
};

struct worker {
	struct worker_point points[WORKER_POINTS_MAX];
	unsigned npoints;
};

/* Returns 0, -ENOENT if there is no such function, or -errno. e is set on failure. */
int worker_find(struct elf *elf, struct worker *out, struct err *e);

/*
 * Finds the function that start_va calls right before it calls the work through a register. Returns like worker_find().
 */
int worker_find_start(struct elf *elf, uint64_t start_va, uint64_t *va, struct err *e);

/*
 * Finds the library's function that ends the part of a master: the one that start_va branches to, and that the other
 * branch targets of start_va also branch to. Returns like worker_find().
 */
int worker_find_end(struct elf *elf, uint64_t start_va, uint64_t *va, struct err *e);

#endif
