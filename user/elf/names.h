/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds names for addresses: functions of the file, and symbols that the loader binds to the GOT. The tables are read
 * once.
 */
#ifndef ELF_NAMES_H
#define ELF_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

/*
 * Copies the name of the function that starts at va, cut at max - 1 and always terminated. If there are several, it
 * takes the first of .symtab. Returns its length, -ENOENT, -EBADMSG, -ENOMEM or -errno.
 */
int elf_func_name(struct elf *f, uint64_t va, char *name, size_t max);

/*
 * Finds the function that contains va, by the sizes of the symbols. Also sets its start. Returns like elf_func_name().
 */
int elf_func_around(struct elf *f, uint64_t va, uint64_t *start_va, char *name, size_t max);

/*
 * Copies the name of the symbol whose address the loader writes at va (JUMP_SLOT, GLOB_DAT). Returns like
 * elf_func_name().
 */
int elf_import_name(struct elf *f, uint64_t va, char *name, size_t max);

/* Finds the GOT slots of a name, at most max of them. Returns their number or -errno. */
int elf_import_slots(struct elf *f, const char *name, uint64_t *slots, unsigned max);

/* Returns true if the file is linked with the library that has this file name, or a longer one: libc10.so.1.13.0. */
bool elf_needs(struct elf *f, const char *library);

#endif
