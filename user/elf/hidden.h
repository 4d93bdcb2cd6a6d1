/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds functions that the file does not name, through the tables that C++ needs at run time and the texts that
 * functions refer to. A result always begins an entry of the unwind table with the frame of a function that was just
 * called.
 */
#ifndef ELF_HIDDEN_H
#define ELF_HIDDEN_H

#include <stdint.h>

#include "base/err.h"
#include "elf/elf.h"

/*
 * Finds the function in a slot of the virtual table of a class, given by the mangled name in its type_info
 * ("N3foo11StorageImplE"). Uses the table without an offset to the object. Returns 0, -ENOENT, -ENOTUNIQ, -EBADMSG,
 * -ENOMEM, or -errno of I/O.
 */
int elf_find_virtual(struct elf *f, const char *class_name, unsigned slot, struct elf_sym *sym, struct err *e);

/*
 * Finds the address of the functions in that table, to which objects of the class point. Returns like
 * elf_find_virtual().
 */
int elf_find_vtable(struct elf *f, const char *class_name, uint64_t *va, struct err *e);

/* Finds the only function that takes the address of this text. Returns like elf_find_virtual(). */
int elf_find_text_user(struct elf *f, const char *text, struct elf_sym *sym, struct err *e);

/*
 * Finds the only function whose address another function takes, in its code or from a table that the loader fills.
 * Returns like elf_find_virtual().
 */
int elf_find_taken(struct elf *f, const struct elf_sym *by, struct elf_sym *sym, struct err *e);

#endif
