/* SPDX-License-Identifier: Apache-2.0 */
/* A function seen from a call in it: where its frame lies there, and what it is, as far as its code tells. */
#ifndef INSN_CALLER_H
#define INSN_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf.h"
#include "insn/cut.h"

#define CALLER_ARGS 6

/*
 * What a function does that has no name: it gives the called one `given` as its second argument, and behind that calls
 * by pointer with its own arguments: hands_on[k] is the number, from 1, of the one that is argument k + 1 there; 0:
 * any.
 */
struct caller_shape {
	uint8_t given;
	uint8_t hands_on[CALLER_ARGS];
};

struct caller {
	uint64_t start_va, end_va; /* the function: what its unwind entry covers */
	uint64_t return_va;	   /* where the call comes back to */
	uint8_t cfa_base;	   /* enum cut_cfa_base: from where the frame address at the call is cfa_off away */
	int32_t cfa_off;
	bool shaped; /* it was seen to be of the shape */
};

/*
 * 0 if an instruction that calls begins at call_va, in a function that is entered at the start of its unwind entry.
 * -ENOENT: not so (data, the middle of an instruction, a part of a function); -ENOTSUP: its frame cannot be told;
 * -EBADMSG, -ENOMEM, -errno of I/O. shape: NULL if it does not matter.
 */
int caller_find(struct elf *elf, uint64_t call_va, const struct caller_shape *shape, struct caller *out);

#endif
