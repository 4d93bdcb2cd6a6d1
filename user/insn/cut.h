/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exit cut: a few emulated instructions of a function. Each normal return passes exactly one of them, exactly once,
 * when the work is done, and nothing after them can throw. The cut gives a C++ function an end without a return probe,
 * which the first exception would turn into std::terminate.
 */
#ifndef INSN_CUT_H
#define INSN_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "elf/elf.h"

#define CUT_POINTS_MAX 4
#define CUT_PARTS_MAX  16

enum cut_cfa_base {
	CUT_CFA_RSP = 1,
	CUT_CFA_RBP = 2,
	CUT_CFA_AT_RBP = 3, /* the word at rbp + cfa_off */
};

struct cut_point {
	uint64_t va;	    /* an emulated instruction, but never that of the entry probe */
	uint8_t cond;	    /* 0: every hit counts; else 1 + the condition code (low nibble) of the jcc at va */
	uint8_t cond_taken; /* 1: a hit counts if the condition holds, 0: if it does not */
	uint8_t cfa_base;   /* enum cut_cfa_base */
	uint8_t merged;	    /* in a callee: a hit counts only if a frame of this function is open at exactly this CFA */
	int32_t cfa_off;    /* CFA of the probed function = base + cfa_off, before the instruction executes */
};

/* A piece of code. */
struct cut_part {
	uint64_t va, bytes;
};

struct cut {
	struct cut_point points[CUT_POINTS_MAX];
	unsigned npoints;
	struct cut_part parts[CUT_PARTS_MAX]; /* the code that was decoded: that of the function comes first */
	unsigned nparts;
	/*
	 * What may follow the cut: 0 nothing, 1 free or unlock, 2 loops of these, 3 destructors, 4 a call through a
	 * pointer that cannot throw.
	 */
	unsigned level;
	bool tail_exit; /* it can leave by a tail call, so a frame at an equal CFA may still belong to it */
	char why[160];	/* if npoints == 0: why there is no cut */
};

/*
 * Finds the cut of a function. Returns 0, -ENOENT if there is none, -EILSEQ if the code cannot be decoded, or -errno
 * (damaged file, I/O, memory). On failure, out->why and e have the reason. The result is deterministic. The file must
 * be the mapped one.
 */
int cut_find(struct elf *elf, uint64_t entry_va, struct cut *out, struct err *e);

/*
 * Allows cuts of this file before calls of a function that never throws and does no work worth timing. Call it before
 * cut_find(), which remembers what callees do. Returns 0 or -ENOMEM.
 */
int cut_allow(struct elf *elf, const char *symbol);

#endif
