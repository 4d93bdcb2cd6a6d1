/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the elf room only: what elf_open() learned, shared by the segment side and the symbol side. */
#ifndef ELF_IMAGE_H
#define ELF_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <elf.h>

#include "base/buf.h"
#include "base/hash.h"
#include "elf/elf.h"

struct elf_hdr_row; /* unwind.c */
struct elf_names;   /* names.c */
struct elf_cache;   /* elf.c */
struct elf_word;    /* hidden.c */

#define ELF_LOADS_MAX 128

/* A PT_LOAD segment, only the part that is in the file. */
struct elf_load {
	uint64_t va;
	uint64_t off;
	uint64_t bytes;
	uint32_t flags; /* PF_X, ... */
};

/* A symbol table and its names, by file offset. */
struct elf_table {
	uint64_t syms_off, nsyms;
	uint64_t strs_off, strs_bytes;
	uint64_t versym_off; /* 0: none */
};

/* The table of functions that elf_each_func() keeps until elf_forget_funcs(). */
struct elf_funcs {
	struct elf_table table;
	Elf64_Sym *syms; /* owned, as strs and starts */
	char *strs;
	uint64_t *starts; /* the first 8 bytes of each function's name; 0: the symbol is no defined function */
};

struct elf {
	int fd;			 /* owned */
	struct elf_cache *cache; /* owned */
	uint64_t size_bytes;
	uint64_t shdrs_off;
	uint32_t nshdrs; /* 0: the file has no section headers */
	uint32_t nloads;
	uint64_t end_va; /* of what the segments take in memory: variables that begin as zeros are not in the file */
	struct elf_load loads[ELF_LOADS_MAX]; /* ascending, no overlap */
	/* From PT_DYNAMIC; 0: absent. */
	uint64_t symtab_va, strtab_va, strtab_bytes, gnu_hash_va, hash_va, versym_va;
	uint64_t rela_va, rela_bytes, rela_relative, jmprel_va, jmprel_bytes;
	uint8_t build_id[ELF_BUILD_ID_MAX];
	size_t build_id_bytes;
	uint64_t eh_hdr_va; /* .eh_frame_hdr; 0: none */
	/* Read when first asked for, owned. */
	struct elf_hdr_row *eh_rows;
	uint32_t neh_rows;
	struct elf_names *names;
	struct elf_word *words;
	size_t nwords;
	struct elf_funcs funcs;
	struct buf scans;  /* of struct elf_scan */
	struct hash notes; /* (kind, address) -> word */
};

/* 0; -ENOENT: the file has none; -EBADMSG, -errno. Bounds within the file are not checked. */
int elf_dynsym_table(const struct elf *f, struct elf_table *t);
int elf_symtab_table(const struct elf *f, struct elf_table *t);

/* n bytes at a file offset: 0, -EIO if the file ends before, -errno. */
int elf_pread(const struct elf *f, uint64_t off, void *buf, size_t n);
typedef int (*elf_pread_fn)(const struct elf *f, uint64_t off, void *buf, size_t n);

/* The segment that has all n bytes at va in the file, or NULL. */
const struct elf_load *elf_load_at(const struct elf *f, uint64_t va, uint64_t n);

/* The same from kept blocks: what is read again is what was read first, even if the file has changed. */
int elf_pread_kept(const struct elf *f, uint64_t off, void *buf, size_t n);

/* A C string at a file offset, kept too: else as elf_read_str_va(). */
int elf_read_str_kept(const struct elf *f, uint64_t off, char *buf, size_t max);

/* First section of a type. 0, -ENOENT, -errno. */
int elf_section_of_type(const struct elf *f, uint32_t type, Elf64_Shdr *out);
/* The one of a name of less than 32 bytes. As above. */
int elf_section_named(const struct elf *f, const char *name, Elf64_Shdr *out);

void elf_forget_scans(struct elf *f);
void elf_names_free(struct elf_names *n);

#endif
