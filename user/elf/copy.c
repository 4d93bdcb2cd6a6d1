// SPDX-License-Identifier: Apache-2.0
#include "elf/copy.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "elf/image.h"

#define IMAGE_MAX_BYTES (64ull << 30) /* limit of addresses; only what is copied takes memory */

#ifndef SHT_X86_64_UNWIND
#define SHT_X86_64_UNWIND 0x70000001
#endif

/* Sections that are copied whatever their name is, first those with names, and those that are known by name. */
static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM, SHT_STRTAB, SHT_SYMTAB_SHNDX, SHT_DYNAMIC, SHT_X86_64_UNWIND};
#define NAMING_TYPES 4
static const char *const tables[] = {".eh_frame_hdr", ".eh_frame", ".debug_frame"};

/* Copies one part. A part that is outside of the file or does not fit is left out. */
static int copy_put(const struct elf *f, uint64_t off, uint64_t n, size_t max_bytes, struct elf_copy *c)
{
	int err;

	if (off > c->bytes || n > c->bytes - off || n > max_bytes - c->copied)
		return 0;
	c->copied += n;
	err = elf_pread(f, off, (char *)c->image + off, n);
	return err == -ENODATA ? 0 : err;
}

static bool is_wanted(uint32_t type, bool names)
{
	for (size_t i = names ? 0 : NAMING_TYPES; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i] == type)
			return true;
	return false;
}

/*
 * A compressed section is no section in the copy, because a library would unpack it: one megabyte becomes a gigabyte.
 * Linkers compress only the information for debuggers, which is not copied. Call this last, because a section of a
 * hostile file may lie over the headers.
 */
static void forget_compressed(const struct elf *f, struct elf_copy *c)
{
	char *headers = (char *)c->image + f->shdrs_off;
	Elf64_Shdr sh;

	for (uint32_t i = 0; i < f->nshdrs; i++) {
		memcpy(&sh, headers + i * sizeof(sh), sizeof(sh));
		if (sh.sh_flags & SHF_COMPRESSED)
			memset(headers + i * sizeof(sh), 0, sizeof(sh));
	}
}

static int put_sections(const struct elf *f, bool names, size_t max_bytes, struct elf_copy *c)
{
	const char *headers = (const char *)c->image + f->shdrs_off;
	Elf64_Shdr sh;
	int err = 0;

	for (uint32_t i = 0; !err && i < f->nshdrs; i++) {
		memcpy(&sh, headers + i * sizeof(sh), sizeof(sh));
		if (is_wanted(sh.sh_type, names))
			err = copy_put(f, sh.sh_offset, sh.sh_size, max_bytes, c);
	}
	for (size_t i = 0; !err && i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!elf_section_named(f, tables[i], &sh) && sh.sh_type == SHT_PROGBITS)
			err = copy_put(f, sh.sh_offset, sh.sh_size, max_bytes, c);
	forget_compressed(f, c);
	return err;
}

/* Without section headers the tables are somewhere in the segments that are not written to. */
static int put_segments(const struct elf *f, size_t max_bytes, struct elf_copy *c)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < f->nloads; i++)
		if (!(f->loads[i].flags & PF_W))
			err = copy_put(f, f->loads[i].off, f->loads[i].bytes, max_bytes, c);
	return err;
}

void elf_copy_extent(const struct elf *f, uint64_t *start_va, uint64_t *end_va)
{
	Elf64_Ehdr h;
	Elf64_Phdr ph;

	elf_extent(f, start_va, end_va);
	if (elf_pread(f, 0, &h, sizeof(h)))
		return;
	for (uint32_t i = 0; i < h.e_phnum; i++) {
		if (elf_pread(f, h.e_phoff + i * sizeof(ph), &ph, sizeof(ph)))
			return;
		if (ph.p_type != PT_LOAD)
			continue;
		*start_va = ph.p_vaddr & -ph.p_align;
		return;
	}
}

int elf_copy(const struct elf *f, bool names, size_t max_bytes, struct elf_copy *c)
{
	Elf64_Ehdr *h;
	uint64_t phdrs_bytes;
	int err;

	*c = (struct elf_copy){.image = NULL};
	if (f->size_bytes > IMAGE_MAX_BYTES || f->size_bytes < sizeof(*h))
		return -EFBIG;
	c->bytes = (size_t)f->size_bytes;
	c->image = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->image == MAP_FAILED) {
		c->image = NULL;
		return -errno;
	}
	h = c->image;
	err = copy_put(f, 0, sizeof(*h), max_bytes, c);
	phdrs_bytes = h->e_phnum * sizeof(Elf64_Phdr);
	if (!err && (h->e_phoff > c->bytes || phdrs_bytes > c->bytes - h->e_phoff))
		return -EBADMSG; /* the header is another one than at elf_open() */
	err = err ? err : copy_put(f, h->e_phoff, phdrs_bytes, max_bytes, c);
	err = err ? err : copy_put(f, f->shdrs_off, f->nshdrs * sizeof(Elf64_Shdr), max_bytes, c);
	if (!err)
		err = f->nshdrs ? put_sections(f, names, max_bytes, c) : put_segments(f, max_bytes, c);
	/* use the section headers that were checked, even if copied data has overwritten this header */
	h->e_shoff = f->shdrs_off;
	h->e_shnum = (Elf64_Half)f->nshdrs;
	return err;
}

void elf_copy_fini(struct elf_copy *c)
{
	if (c->image)
		munmap(c->image, c->bytes);
	*c = (struct elf_copy){.image = NULL};
}
