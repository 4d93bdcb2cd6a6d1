/* SPDX-License-Identifier: Apache-2.0 */
/* Only for the insn room: what a call may do, according to the callee's name and the caller's exception table. */
#ifndef INSN_CALLEE_H
#define INSN_CALLEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

enum callee_kind {
	CALLEE_PLAIN,	/* returns, and may throw unless the exception table excludes that */
	CALLEE_NOTHROW, /* returns and never throws */
	CALLEE_STOPS,	/* ends the program */
	CALLEE_THROWS,	/* leaves by an exception only */
	CALLEE_TWICE,	/* returns more than once: setjmp, vfork */
};

struct callee {
	enum callee_kind kind;
	uint8_t level; /* FLOW_LEVEL_WORK if the callee is unknown */
	bool import;   /* a stub of the procedure linkage table: the loader decides which function it reaches */
	bool cold;     /* named as the cold part of a function */
};

/* Describes the callee of a branch to va. Returns 0, -ENOMEM, -EBADMSG, or -errno of I/O. */
int callee_at(struct elf *elf, uint64_t va, struct callee *out);

/* Describes the callee of a branch through the GOT slot at va. Returns like callee_at(). */
int callee_of_slot(struct elf *elf, uint64_t va, struct callee *out);

/*
 * Finds the function of this file that a branch to va reaches. For a stub it is the function of that name, unless
 * another library's comes first in the process. Returns 0, -ENOENT or -errno.
 */
int callee_in_file(struct elf *elf, uint64_t va, uint64_t *out_va);

/*
 * Copies the name of the function that a call of va reaches; for a stub, that of the import. Returns like
 * elf_func_name().
 */
int callee_name(struct elf *elf, uint64_t va, char *name, size_t max);

#endif
