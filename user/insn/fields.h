/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds fields of a function's argument by the code that reads them, for builds with an unknown layout. A field is
 * reported only if the code shows it in more than one place and no other field could be meant.
 */
#ifndef INSN_FIELDS_H
#define INSN_FIELDS_H

#include <stdint.h>

#include "base/err.h"
#include "elf/elf.h"

/* Fields of a block that is the second argument. */
struct fields_block {
	int32_t object_off;   /* offset of a pointer in the block */
	int32_t name_off;     /* offset of the name behind that pointer; the function passes the name to strncpy */
	int32_t location_off; /* offset of two adjacent 32-bit words */
};

/* Returns 0, -EILSEQ, or another -errno. */
int fields_of_block(struct elf *elf, const struct elf_sym *func, struct fields_block *out, struct err *e);

#define FIELDS_COMPARED_MAX 2

/* Fields of an allocation. */
struct fields_handle {
	int32_t location_off;			   /* two adjacent 32-bit words */
	int32_t compared_off[FIELDS_COMPARED_MAX]; /* 64-bit words that are compared with 0 */
	unsigned ncompared;
};

/*
 * The handle is the second argument, or its copy is at the start of the stack arguments. Return 0, -EILSEQ or another
 * -errno.
 */
int fields_of_handle(struct elf *elf, const struct elf_sym *func, struct fields_handle *out, struct err *e);
int fields_of_handle_copy(struct elf *elf, const struct elf_sym *func, struct fields_handle *out, struct err *e);

#endif
