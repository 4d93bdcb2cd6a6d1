/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of the parts of a file that describe its functions: headers, symbols and unwind tables. It is for libraries
 * that would map the file themselves. The process may cut or rewrite the file at any time: a read of a mapping would
 * then raise SIGBUS, or show other bytes than those that were checked.
 */
#ifndef ELF_COPY_H
#define ELF_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

struct elf_copy {
	void *image;   /* as large as the file; what was not copied is 0 and takes no memory */
	size_t bytes;  /* size of the image */
	size_t copied; /* bytes of it that take memory */
};

/*
 * Copies at most max_bytes; a table that does not fit, or that the file no longer has, is left out, and so are symbols
 * if no names are wanted. Returns 0, -EFBIG or -errno. Call elf_copy_fini() in any case.
 */
int elf_copy(const struct elf *f, bool names, size_t max_bytes, struct elf_copy *c);
void elf_copy_fini(struct elf_copy *c);

/* Sets the range of addresses as elf_extent() does, but from the alignment of the first segment on, as libdw has it. */
void elf_copy_extent(const struct elf *f, uint64_t *start_va, uint64_t *end_va);

#endif
