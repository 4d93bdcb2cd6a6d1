/* SPDX-License-Identifier: Apache-2.0 */
/* Finds members of objects by functions that do one thing with them. */
#ifndef INSN_MEMBERS_H
#define INSN_MEMBERS_H

#include <stdint.h>

#include "base/err.h"
#include "elf/elf.h"

/* What a function does with the member. `of` is the beginning of the name of a function that it calls. */
enum members_how {
	MEMBERS_RETURNED,   /* returns that of its first argument, and does nothing else */
	MEMBERS_BEHIND,	    /* returns that of an object to which a member of its first argument points */
	MEMBERS_FIRST,	    /* passes its address to `of` as first argument */
	MEMBERS_SECOND,	    /* passes its address to `of` as second argument */
	MEMBERS_BYTE,	    /* passes the byte to `of` as first argument */
	MEMBERS_SUBTRACTED, /* subtracts it from the result of `of` */
	MEMBERS_TESTED,	    /* compares it with 0, as 64 bits, before any other member */
	MEMBERS_STORED,	    /* stores its second and third argument there, in 32 bits each */
	MEMBERS_TEXT,	    /* reads it first of its second argument: a pointer, and a length behind it */
};

/* Returns 0, -EILSEQ if the code has another form, or another -errno. */
int members_find(struct elf *elf, const struct elf_sym *func, enum members_how how, const char *of, int32_t *off,
		 struct err *e);

#endif
