/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of what a function is handed, as its code reads them: for builds whose layout is not known. What is given was
 * seen in the code in more than one place, and there is nothing else that it could be; if not, nothing is given.
 */
#ifndef INSN_FIELDS_H
#define INSN_FIELDS_H

#include <stdint.h>

#include "base/err.h"
#include "elf/elf.h"

/* Of a block that is the second argument. */
struct fields_block {
	int32_t object_off;   /* a pointer, */
	int32_t name_off;     /* and behind that the text that the function hands to strncpy */
	int32_t location_off; /* two words of 32 bits side by side */
};

/* 0, -EILSEQ; else -errno. */
int fields_of_block(struct elf *elf, const struct elf_sym *func, struct fields_block *out, struct err *e);

#define FIELDS_COMPARED_MAX 2

/* Of an allocation. */
struct fields_handle {
	int32_t location_off;			   /* two words of 32 bits side by side */
	int32_t compared_off[FIELDS_COMPARED_MAX]; /* words of 64 bits that are compared with 0 */
	unsigned ncompared;
};

/* That is the second argument; or lies, as its copy, where arguments on the stack begin. As above. */
int fields_of_handle(struct elf *elf, const struct elf_sym *func, struct fields_handle *out, struct err *e);
int fields_of_handle_copy(struct elf *elf, const struct elf_sym *func, struct fields_handle *out, struct err *e);

#endif
