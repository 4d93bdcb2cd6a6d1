/* SPDX-License-Identifier: Apache-2.0 */
/* From addresses to names: functions of the file, and what the loader will bind to its GOT. Read once, then kept. */
#ifndef ELF_NAMES_H
#define ELF_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

/*
 * Name of the function that starts at va (of several the first of .symtab), cut at max - 1 and always terminated.
 * Its length, -ENOENT, -EBADMSG, -ENOMEM, -errno.
 */
int elf_func_name(struct elf *f, uint64_t va, char *name, size_t max);

/* The same of the function that va lies in, by the sizes that the symbols bear; and where it begins. */
int elf_func_around(struct elf *f, uint64_t va, uint64_t *start_va, char *name, size_t max);

/* Name of the symbol whose address the loader writes at va (JUMP_SLOT, GLOB_DAT). As above. */
int elf_import_name(struct elf *f, uint64_t va, char *name, size_t max);

/* The inverse: the slots of a name, at most max of them. How many, -errno. */
int elf_import_slots(struct elf *f, const char *name, uint64_t *slots, unsigned max);

#endif
