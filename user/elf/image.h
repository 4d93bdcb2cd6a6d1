/* SPDX-License-Identifier: Apache-2.0 */
/* Only for the elf room: the results of elf_open(), shared by the code for segments and for symbols. */
#ifndef ELF_IMAGE_H
#define ELF_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <elf.h>

#include "base/buf.h"
#include "base/hash.h"
#include "elf/elf.h"

struct elf_hdr_row; /* see unwind.c */
struct elf_names;   /* see names.c */
struct elf_cache;   /* see elf.c */
struct elf_word;    /* see hidden.c */

#define ELF_LOADS_MAX  128
#define ELF_NEEDED_MAX 128

/* The part of a PT_LOAD segment that is in the file. */
struct elf_load {
	uint64_t va;
	uint64_t off;
	uint64_t bytes;
	uint32_t flags; /* PF_X, ... */
};

/* A symbol table and its strings, by file offset. */
struct elf_table {
	uint64_t syms_off, nsyms;
	uint64_t strs_off, strs_bytes;
	uint64_t versym_off; /* 0: none */
};

/* The table of functions. elf_each_func() keeps it until elf_forget_tables(). */
struct elf_funcs {
	struct elf_table table;
	Elf64_Sym *syms; /* owned, like strs and starts */
	char *strs;
	uint64_t *starts; /* the first 8 bytes of each function's name; 0: no defined function */
};

struct elf {
	int fd; /* owned; -1: the source reads */
	struct elf_source source;
	bool opened;		 /* elf_close() closes the source */
	struct elf_cache *cache; /* owned */
	uint64_t size_bytes;
	uint64_t shdrs_off;
	uint32_t nshdrs; /* 0: the file has no section headers */
	uint32_t nloads;
	uint64_t end_va; /* end of the segments in memory; zero-initialised variables are not in the file */
	struct elf_load loads[ELF_LOADS_MAX]; /* ascending, without overlap */
	/* From PT_DYNAMIC; 0: absent. */
	uint64_t symtab_va, strtab_va, strtab_bytes, gnu_hash_va, hash_va, versym_va;
	uint64_t rela_va, rela_bytes, rela_relative, jmprel_va, jmprel_bytes;
	uint64_t needed[ELF_NEEDED_MAX]; /* libraries that it is linked with: offsets of their names in strtab */
	unsigned needed_count;
	uint8_t build_id[ELF_BUILD_ID_MAX];
	size_t build_id_bytes;
	uint64_t eh_hdr_va; /* .eh_frame_hdr; 0: none */
	/* Owned, and read on first use. */
	struct elf_hdr_row *eh_rows;
	uint32_t neh_rows;
	struct elf_names *names;
	struct elf_word *words;
	size_t nwords;
	struct elf_funcs funcs;
	struct buf scans;  /* of struct elf_scan */
	struct hash notes; /* (kind, address) -> word */
};

/*
 * Return 0, -ENOENT if the file has no such table, -EBADMSG or -errno. They do not check that the table is inside the
 * file.
 */
int elf_dynsym_table(const struct elf *f, struct elf_table *t);
int elf_symtab_table(const struct elf *f, struct elf_table *t);

/* Reads n bytes at a file offset. Returns 0, -ENODATA if the file ends before, or -errno. */
int elf_pread(const struct elf *f, uint64_t off, void *buf, size_t n);
typedef int (*elf_pread_fn)(const struct elf *f, uint64_t off, void *buf, size_t n);

/* Returns the segment that has all n bytes at va in the file, or NULL. */
const struct elf_load *elf_load_at(const struct elf *f, uint64_t va, uint64_t n);

/* Reads through the cache. Bytes read twice are the same, even if the file has changed. */
int elf_pread_kept(const struct elf *f, uint64_t off, void *buf, size_t n);

/*
 * Calls fn with the file offset of each place in [off, off + bytes) that has these n bytes, at most 1 MiB. A nonzero
 * result of fn ends the search and is returned. Otherwise returns 0 or -errno as elf_pread() does.
 */
int elf_each_match(const struct elf *f, uint64_t off, uint64_t bytes, const void *want, size_t n,
		   int (*fn)(void *ctx, uint64_t off), void *ctx);

/* Reads a C string at a file offset through the cache. Returns like elf_read_str_va(). */
int elf_read_str_kept(const struct elf *f, uint64_t off, char *buf, size_t max);

/* Finds the first section of a type. Returns 0, -ENOENT or -errno. */
int elf_section_of_type(const struct elf *f, uint32_t type, Elf64_Shdr *out);
/* Finds the section of a name shorter than 32 bytes. Returns 0, -ENOENT or -errno. */
int elf_section_named(const struct elf *f, const char *name, Elf64_Shdr *out);

void elf_forget_funcs(struct elf *f);
void elf_forget_scans(struct elf *f);
void elf_names_free(struct elf_names *n);

#endif
