/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a function from a call in it: its frame at the call, and its shape as far as the code shows it. */
#ifndef INSN_CALLER_H
#define INSN_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/elf.h"
#include "insn/cut.h"

#define CALLER_ARGS 6

/*
 * The shape of a function without a name. It passes `given` as second argument to the function it calls. After that it
 * calls through a pointer with its own arguments: hands_on[k] is the number, from 1, of the argument that it passes
 * there as argument k + 1; 0: any.
 */
struct caller_shape {
	uint8_t given;
	uint8_t hands_on[CALLER_ARGS];
};

struct caller {
	uint64_t start_va, end_va; /* the range of its unwind entry */
	uint64_t return_va;	   /* return address of the call */
	uint8_t cfa_base;	   /* enum cut_cfa_base; the frame address at the call is cfa_off away from it */
	int32_t cfa_off;
	bool shaped; /* true if it has the shape */
};

/*
 * Returns 0 if a call instruction begins at call_va, in a function that is entered at the start of its unwind entry.
 * Returns -ENOENT if not (data, the middle of an instruction, a part of a function), -ENOTSUP if its frame is unknown,
 * -EBADMSG, -ENOMEM, or -errno of I/O. shape may be NULL.
 */
int caller_find(struct elf *elf, uint64_t call_va, const struct caller_shape *shape, struct caller *out);

#endif
