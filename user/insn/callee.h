/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the insn room only: what a call may do, from the callee's name and from the caller's exception table. */
#ifndef INSN_CALLEE_H
#define INSN_CALLEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

enum callee_kind {
	CALLEE_PLAIN,	/* returns, and may throw unless the exception table excludes it */
	CALLEE_NOTHROW, /* returns and never throws */
	CALLEE_STOPS,	/* ends the program */
	CALLEE_THROWS,	/* leaves by an exception only */
	CALLEE_TWICE,	/* returns more than once: setjmp, vfork */
};

struct callee {
	enum callee_kind kind;
	uint8_t level; /* FLOW_LEVEL_WORK if nothing is known */
	bool import;   /* a stub of the procedure linkage table: which function it reaches, the loader decides */
	bool cold;     /* named as a function's part that is seldom run */
};

/* What a branch to va reaches. 0, -ENOMEM, -EBADMSG, -errno of I/O. */
int callee_at(struct elf *elf, uint64_t va, struct callee *out);

/* What a branch through the GOT slot at va reaches. */
int callee_of_slot(struct elf *elf, uint64_t va, struct callee *out);

/*
 * The function of this file that a branch to va reaches: va itself, or behind a stub the one of that name, unless
 * another library's comes first in the process. 0, -ENOENT, -errno.
 */
int callee_in_file(struct elf *elf, uint64_t va, uint64_t *out_va);

/* Name of the function that a call of va reaches, behind a stub the import's. As elf_func_name(). */
int callee_name(struct elf *elf, uint64_t va, char *name, size_t max);

#endif
