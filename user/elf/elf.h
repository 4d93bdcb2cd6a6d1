/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded reader of ELF files. The file is hostile and may change while it is read: everything by
 * pread, every field checked, bounded time and memory. 64-bit little-endian only; others are named, not read.
 */
#ifndef ELF_ELF_H
#define ELF_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ELF_BUILD_ID_MAX 64

struct elf;

#define ELF_SYM_FUNC 2 /* STT_FUNC */

struct elf_sym {
	uint64_t va;
	uint64_t size_bytes; /* 0: the file does not say */
	uint8_t type;	     /* STT_FUNC, ... */
};

/* Takes a duplicate of fd. -ENOEXEC not ELF, -EBADMSG damaged, -ENOTSUP other class or machine, -errno of I/O. */
int elf_open(int fd, struct elf **out, struct err *e);
void elf_close(struct elf *f); /* NULL is legal */

/* Build-id in binary; returns its length, 0 if the file has none. */
size_t elf_build_id(const struct elf *f, uint8_t id[ELF_BUILD_ID_MAX]);

/*
 * A defined symbol by exact name: .dynsym through its GNU hash where there is one (no scan of a 150 MB
 * library), else .dynsym and .symtab by scan. The default version before older ones, global before local.
 * 0, -ENOENT, -EBADMSG; -ENOTUNIQ: several equally good at different addresses (locals), never a guess.
 */
int elf_find_sym(struct elf *f, const char *name, struct elf_sym *sym, struct err *e);

/*
 * Every defined function whose name begins with prefix, of .symtab if the file has one (locals too), else of .dynsym.
 * fn returns 0 to go on; another value ends the walk and is returned. -ENOENT: no symbol table.
 */
int elf_each_func(struct elf *f, const char *prefix, int (*fn)(void *ctx, const char *name, const struct elf_sym *sym),
		  void *ctx);
/* The table that elf_each_func() has read is kept, as it is mostly asked several times, until this or elf_close(). */
void elf_forget_funcs(struct elf *f);

/*
 * Returns the caller's own word for an address in the file. It is 0 at first and lives until elf_close(). kind is a
 * number that the caller chooses, so that it can keep several words for one address. Borrowed until the next call;
 * NULL: out of memory.
 */
uint64_t *elf_note(struct elf *f, unsigned kind, uint64_t va);

/* Every NUL-terminated string of .rodata, in order; what is no text is passed as it is. As above. */
int elf_each_string(struct elf *f, int (*fn)(void *ctx, const char *text, size_t len), void *ctx);

/*
 * Every direct call (e8) in the file of a function that it exports, straight or by a stub of the procedure linkage
 * table. What only looks like one, in data or inside another instruction, is given as well. As above.
 */
int elf_each_call(struct elf *f, const char *name, int (*fn)(void *ctx, uint64_t va), void *ctx);
/* Straight, of the one at an address. */
int elf_each_call_at(struct elf *f, uint64_t va, int (*fn)(void *ctx, uint64_t va), void *ctx);

/* File offset of a virtual address inside a PT_LOAD segment with PF_X. 0 or -ENOENT. */
int elf_exec_off(const struct elf *f, uint64_t va, uint64_t *off);

/* Copies n bytes of the file's image at a virtual address of any PT_LOAD. 0, -ENOENT outside, -EIO short. */
int elf_read_va(const struct elf *f, uint64_t va, void *buf, size_t n);

/* As elf_read_va(), for small reads near each other: what was read first stays, even if the file changes. */
int elf_read_kept_va(const struct elf *f, uint64_t va, void *buf, size_t n);

/* A C string of the file's image; returns its length without NUL (cut at max - 1), always terminated; -errno. */
int elf_read_str_va(const struct elf *f, uint64_t va, char *buf, size_t max);

/* Virtual addresses that the file takes in memory, from its first byte to behind its last. */
void elf_extent(const struct elf *f, uint64_t *start_va, uint64_t *end_va);

/* Virtual address of the byte at a file offset inside a PT_LOAD. 0 or -ENOENT. */
int elf_off_va(const struct elf *f, uint64_t off, uint64_t *va);

/* Whether the file ends as UPX leaves what it packs. */
bool elf_is_upx(const struct elf *f);

/* Parses the notes of an image for NT_GNU_BUILD_ID; used for files and for a process's memory. Length or 0. */
size_t elf_build_id_of_notes(const void *notes, size_t n, uint8_t id[ELF_BUILD_ID_MAX]);

#endif
