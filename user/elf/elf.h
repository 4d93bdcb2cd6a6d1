/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded reader of ELF files. It does not trust the file, which may change while it is read: it uses pread, checks
 * every field, and limits time and memory. It reads 64-bit little-endian files only, and names the format of others in
 * an error.
 */
#ifndef ELF_ELF_H
#define ELF_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define ELF_BUILD_ID_MAX 64

struct elf;

#define ELF_SYM_FUNC 2 /* STT_FUNC */

struct elf_sym {
	uint64_t va;
	uint64_t size_bytes; /* 0: unknown */
	uint8_t type;	     /* STT_FUNC, ... */
};

/*
 * Opens a file and duplicates fd. Returns -ENOEXEC for a file that is no ELF file, -EBADMSG for a damaged one, -ENOTSUP
 * for another class or machine, and -errno for an I/O error.
 */
int elf_open(int fd, struct elf **out, struct err *e);
/*
 * A regular file that somebody else reads. pread() returns a number of bytes or -errno. The file is closed by
 * elf_close(), or at once if elf_open_from() fails.
 */
struct elf_source {
	void *ctx;
	ssize_t (*pread)(void *ctx, void *buf, size_t n, uint64_t off);
	void (*close)(void *ctx);
	uint64_t size_bytes;
};
int elf_open_from(const struct elf_source *source, struct elf **out, struct err *e);
void elf_close(struct elf *f); /* NULL is legal */

/* Copies the build-id in binary. Returns its length, or 0 if the file has none. */
size_t elf_build_id(const struct elf *f, uint8_t id[ELF_BUILD_ID_MAX]);

/*
 * Finds a defined symbol by its exact name. It uses the GNU hash of .dynsym if there is one, so that a library of 150
 * MB need not be scanned. Otherwise it scans .dynsym and .symtab. The default version wins over older ones, and global
 * over local. Returns 0, -ENOENT, -EBADMSG, or -ENOTUNIQ if several equal candidates have different addresses.
 */
int elf_find_sym(struct elf *f, const char *name, struct elf_sym *sym, struct err *e);

/*
 * Calls fn for every defined function whose name begins with prefix: those of .symtab (including locals) if there is
 * one, or else of .dynsym. If fn returns non-zero, the walk ends and returns that value. Returns -ENOENT without a
 * symbol table.
 */
int elf_each_func(struct elf *f, const char *prefix, int (*fn)(void *ctx, const char *name, const struct elf_sym *sym),
		  void *ctx);
/*
 * Frees the tables that were read on first use: functions, names, imports, rows for unwinding and words of pointers. Of
 * PyTorch's largest library they take 115 MB. Without this call they are kept until elf_close(). The next function that
 * needs a table reads it again.
 */
void elf_forget_tables(struct elf *f);

/*
 * Returns a word that the caller owns for an address in the file. It starts as 0 and lives until elf_close(). The
 * caller chooses `kind`, so that it can keep several words per address. Borrowed until the next call. NULL: out of
 * memory.
 */
uint64_t *elf_note(struct elf *f, unsigned kind, uint64_t va);

/*
 * Calls fn for every NUL-terminated string of .rodata in order, including data that is no text. fn can end the walk as
 * in elf_each_func().
 */
int elf_each_string(struct elf *f, int (*fn)(void *ctx, const char *text, size_t len), void *ctx);

/*
 * Calls fn for every direct call (e8) of a function that the file exports: calls of the function or of its stub in the
 * procedure linkage table. It also reports bytes that only look like a call, in data or inside an instruction. fn can
 * end the walk as in elf_each_func().
 */
int elf_each_call(struct elf *f, const char *name, int (*fn)(void *ctx, uint64_t va), void *ctx);
/* Calls fn for every direct call (e8) of the function at an address, without stubs. */
int elf_each_call_at(struct elf *f, uint64_t va, int (*fn)(void *ctx, uint64_t va), void *ctx);

/* Sets *va to the first place in executable segments that has these n bytes. Returns 0, -ENOENT or -errno. */
int elf_find_code(const struct elf *f, const void *want, size_t n, uint64_t *va);

/* Sets *off to the file offset of an address inside a PT_LOAD segment with PF_X. Returns 0 or -ENOENT. */
int elf_exec_off(const struct elf *f, uint64_t va, uint64_t *off);

/*
 * Copies n bytes of the file's image at an address of any PT_LOAD. Returns 0, -ENOENT outside, or -ENODATA if the file
 * is short.
 */
int elf_read_va(const struct elf *f, uint64_t va, void *buf, size_t n);

/*
 * Does what elf_read_va() does, for small reads close to each other. Bytes once read stay the same, even if the file
 * changes.
 */
int elf_read_kept_va(const struct elf *f, uint64_t va, void *buf, size_t n);

/*
 * Copies a C string of the image, cut at max - 1 and always terminated. Returns its length without the NUL, or -errno.
 */
int elf_read_str_va(const struct elf *f, uint64_t va, char *buf, size_t max);

/* Sets the range of addresses that the file occupies in memory. */
void elf_extent(const struct elf *f, uint64_t *start_va, uint64_t *end_va);

/* Sets *va to the address of a file offset inside a PT_LOAD. Returns 0 or -ENOENT. */
int elf_off_va(const struct elf *f, uint64_t off, uint64_t *va);

/* Returns true if the file ends like a file that UPX has packed. */
bool elf_is_upx(const struct elf *f);

/* Finds NT_GNU_BUILD_ID in the notes of a file or of a process's memory. Returns its length or 0. */
size_t elf_build_id_of_notes(const void *notes, size_t n, uint8_t id[ELF_BUILD_ID_MAX]);

#endif
