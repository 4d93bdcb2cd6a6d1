/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a file that does not name them: by the tables that C++ needs at run time, and by the texts that they
 * refer to. What is found begins an entry of the unwind table with the frame of a function that was just called.
 */
#ifndef ELF_HIDDEN_H
#define ELF_HIDDEN_H

#include <stdint.h>

#include "base/err.h"
#include "elf/elf.h"

/*
 * The function in a slot of the virtual table of the class of this name ("N5mxnet11StorageImplE", as in its type_info):
 * of the table with no offset to the object. 0, -ENOENT, -ENOTUNIQ, -EBADMSG, -ENOMEM, -errno of I/O.
 */
int elf_find_virtual(struct elf *f, const char *class_name, unsigned slot, struct elf_sym *sym, struct err *e);

/* Where the functions of that table begin: what objects of the class point to. As above. */
int elf_find_vtable(struct elf *f, const char *class_name, uint64_t *va, struct err *e);

/* The one function that takes the address of this text. As above. */
int elf_find_text_user(struct elf *f, const char *text, struct elf_sym *sym, struct err *e);

/*
 * The one function whose address another one takes, of those that it takes at all: from its code or from a table of
 * addresses that the loader writes. As above.
 */
int elf_find_taken(struct elf *f, const struct elf_sym *by, struct elf_sym *sym, struct err *e);

#endif
