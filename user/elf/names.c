// SPDX-License-Identifier: Apache-2.0
#include "elf/names.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "elf/image.h"

#define BLOCK_BYTES (64u << 10)
#define FUNCS_MAX   (4u << 20)		/* limit of functions; the largest library seen has 0.4 million */
#define TABLE_MAX   ((uint64_t)1 << 30) /* limit of a symbol or relocation table, in bytes */
#define IMPORTS_MAX (1u << 20)
#define DIGIT_BITS  16
#define DIGITS	    (1u << DIGIT_BITS)
#define NAME_BYTES  512 /* limit of a symbol's name; the end of a longer name is not compared */

struct func {
	uint64_t va;
	uint64_t name_off; /* file offset */
	uint32_t rank;	   /* position in the tables */
	uint32_t size_bytes;
};

struct elf_names {
	struct buf funcs;    /* struct func, ascending by (va, rank) */
	struct hash imports; /* slot -> index in .dynsym */
};

/* Sorts by one digit of the address. Functions with the same digit keep their order. */
static void sort_by_digit(const struct func *from, struct func *to, size_t n, unsigned shift, size_t *first)
{
	size_t at = 0;

	memset(first, 0, DIGITS * sizeof(*first));
	for (size_t i = 0; i < n; i++)
		first[from[i].va >> shift & (DIGITS - 1)]++;
	for (size_t d = 0; d < DIGITS; d++) {
		size_t count = first[d];

		first[d] = at;
		at += count;
	}
	for (size_t i = 0; i < n; i++)
		to[first[from[i].va >> shift & (DIGITS - 1)]++] = from[i];
}

/*
 * Sorts by (va, rank). The input is in the order of ranks. A radix sort, because qsort() took 9 % of the planning time
 * of a large library. Returns 0 or -ENOMEM.
 */
static int sort_funcs(struct buf *funcs)
{
	size_t n = buf_count(funcs, struct func), *first = malloc(DIGITS * sizeof(*first));
	struct func *all = (struct func *)funcs->data, *room = malloc(funcs->len + 1);
	int err = first && room ? 0 : -ENOMEM;
	uint64_t bits = 0;

	for (size_t i = 0; i < n; i++)
		bits |= all[i].va;
	_Static_assert(64 % (2 * DIGIT_BITS) == 0, "after the last digit they are where they were");
	for (unsigned shift = 0; !err && shift < 64 && bits >> shift; shift += 2 * DIGIT_BITS) {
		sort_by_digit(all, room, n, shift, first);
		sort_by_digit(room, all, n, shift + DIGIT_BITS, first);
	}
	free(first);
	free(room);
	return err;
}

static int add_func(struct buf *funcs, const Elf64_Sym *s, const Elf64_Shdr *strs)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);
	struct func fn = {.va = s->st_value,
			  .rank = (uint32_t)buf_count(funcs, fn),
			  .size_bytes = s->st_size < UINT32_MAX ? (uint32_t)s->st_size : UINT32_MAX};

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || s->st_shndx == SHN_UNDEF || !s->st_value)
		return 0;
	if (s->st_name >= strs->sh_size)
		return -EBADMSG;
	if (fn.rank == FUNCS_MAX)
		return -EBADMSG;
	fn.name_off = strs->sh_offset + s->st_name;
	return buf_put(funcs, &fn, sizeof(fn));
}

static int add_table(const struct elf *f, const Elf64_Shdr *syms, const Elf64_Shdr *strs, char *block,
		     struct buf *funcs)
{
	uint64_t left = syms->sh_size, at = syms->sh_offset;

	if (left > TABLE_MAX || syms->sh_entsize != sizeof(Elf64_Sym))
		return -EBADMSG;
	while (left >= sizeof(Elf64_Sym)) {
		size_t n = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
		int err = elf_pread(f, at, block, n);

		n -= n % sizeof(Elf64_Sym);
		for (size_t i = 0; !err && i < n; i += sizeof(Elf64_Sym))
			err = add_func(funcs, (const Elf64_Sym *)(block + i), strs);
		if (err)
			return err;
		at += n;
		left -= n;
	}
	return 0;
}

static int add_tables(const struct elf *f, uint32_t type, char *block, struct buf *funcs)
{
	Elf64_Shdr syms, strs;
	int err = elf_section_of_type(f, type, &syms);

	if (err)
		return err == -ENOENT ? 0 : err;
	if (syms.sh_link >= f->nshdrs)
		return -EBADMSG;
	err = elf_pread(f, f->shdrs_off + (uint64_t)syms.sh_link * sizeof(strs), &strs, sizeof(strs));
	if (!err && (strs.sh_type != SHT_STRTAB || strs.sh_offset > f->size_bytes))
		err = -EBADMSG;
	return err ? err : add_table(f, &syms, &strs, block, funcs);
}

static int add_relocs(const struct elf *f, uint64_t va, uint64_t bytes, char *block, struct hash *imports)
{
	const size_t whole = BLOCK_BYTES / sizeof(Elf64_Rela) * sizeof(Elf64_Rela);

	if (bytes > TABLE_MAX)
		return -EBADMSG;
	while (bytes >= sizeof(Elf64_Rela)) {
		size_t n = bytes < whole ? (size_t)(bytes - bytes % sizeof(Elf64_Rela)) : whole;
		int err = elf_read_va(f, va, block, n);

		for (size_t i = 0; !err && i < n; i += sizeof(Elf64_Rela)) {
			const Elf64_Rela *r = (const Elf64_Rela *)(block + i);
			uint64_t type = ELF64_R_TYPE(r->r_info), *index;

			if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
				continue;
			if (imports->len == IMPORTS_MAX)
				return -EBADMSG;
			index = hash_put(imports, r->r_offset, 0);
			if (!index)
				return -ENOMEM;
			*index = ELF64_R_SYM(r->r_info);
		}
		if (err)
			return err;
		va += n;
		bytes -= n;
	}
	return 0;
}

/* Relative relocations come first and have no symbol. In a large library they are 98 of 100. */
static int add_imports(const struct elf *f, char *block, struct hash *imports)
{
	uint64_t skip = f->rela_relative < TABLE_MAX ? f->rela_relative * sizeof(Elf64_Rela) : 0;
	int err = add_relocs(f, f->jmprel_va, f->jmprel_va ? f->jmprel_bytes : 0, block, imports);

	if (skip > f->rela_bytes)
		skip = 0;
	return err ? err : add_relocs(f, f->rela_va + skip, f->rela_va ? f->rela_bytes - skip : 0, block, imports);
}

void elf_names_free(struct elf_names *n)
{
	if (!n)
		return;
	buf_fini(&n->funcs);
	hash_fini(&n->imports);
	free(n);
}

static int read_names(struct elf *f)
{
	struct elf_names *n = calloc(1, sizeof(*n));
	char *block = malloc(BLOCK_BYTES);
	int err = n && block ? 0 : -ENOMEM;

	if (!err)
		err = add_tables(f, SHT_SYMTAB, block, &n->funcs);
	if (!err)
		err = add_tables(f, SHT_DYNSYM, block, &n->funcs);
	if (!err)
		err = add_imports(f, block, &n->imports);
	if (!err)
		err = sort_funcs(&n->funcs);
	free(block);
	if (err) {
		elf_names_free(n);
		return err == -ENOENT || err == -ENODATA ? -EBADMSG : err;
	}
	f->names = n;
	return 0;
}

/* Returns the index of the first function that begins at or after va. */
static size_t func_from(const struct buf *funcs, uint64_t va)
{
	size_t lo = 0, hi = buf_count(funcs, struct func);

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (buf_at(funcs, const struct func, mid)->va < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static const struct func *func_at(const struct buf *funcs, uint64_t va)
{
	size_t i = func_from(funcs, va);

	if (i == buf_count(funcs, struct func) || buf_at(funcs, const struct func, i)->va != va)
		return NULL;
	return buf_at(funcs, const struct func, i);
}

int elf_func_name(struct elf *f, uint64_t va, char *name, size_t max)
{
	const struct func *fn;
	int err = f->names ? 0 : read_names(f);

	if (err || !max)
		return err ? err : -EINVAL;
	name[0] = '\0';
	fn = func_at(&f->names->funcs, va);
	if (!fn)
		return -ENOENT;
	return elf_read_str_kept(f, fn->name_off, name, max);
}

int elf_func_around(struct elf *f, uint64_t va, uint64_t *start_va, char *name, size_t max)
{
	const struct func *fn;
	int err = f->names ? 0 : read_names(f);
	size_t i;

	if (err || !max)
		return err ? err : -EINVAL;
	name[0] = '\0';
	i = va == UINT64_MAX ? 0 : func_from(&f->names->funcs, va + 1);
	if (!i)
		return -ENOENT;
	fn = func_at(&f->names->funcs, buf_at(&f->names->funcs, const struct func, i - 1)->va);
	if (va - fn->va >= fn->size_bytes && va != fn->va)
		return -ENOENT;
	*start_va = fn->va;
	return elf_read_str_kept(f, fn->name_off, name, max);
}

/* Copies a text of the dynamic string table. Returns its length or -errno. */
static int dynstr_text(struct elf *f, uint64_t off, char *text, size_t max)
{
	const struct elf_load *strs = off < f->strtab_bytes ? elf_load_at(f, f->strtab_va, f->strtab_bytes) : NULL;

	if (!strs)
		return -EBADMSG;
	return elf_read_str_kept(f, strs->off + (f->strtab_va - strs->va) + off, text, max);
}

/* Copies the name of dynamic symbol `index`. */
static int dynsym_name(struct elf *f, uint64_t index, char *name, size_t max)
{
	Elf64_Sym s;

	if (elf_read_kept_va(f, f->symtab_va + index * sizeof(s), &s, sizeof(s)))
		return -EBADMSG;
	return dynstr_text(f, s.st_name, name, max);
}

bool elf_needs(struct elf *f, const char *library)
{
	char text[NAME_BYTES];
	unsigned i;
	int n;

	for (i = 0; i < f->needed_count; i++) {
		n = dynstr_text(f, f->needed[i], text, sizeof(text));
		if (n > 0 && !strncmp(text, library, (size_t)n) && (!library[n] || library[n] == '.'))
			return true;
	}
	return false;
}

int elf_import_name(struct elf *f, uint64_t va, char *name, size_t max)
{
	int err = f->names ? 0 : read_names(f);
	const uint64_t *index;

	if (err || !max)
		return err ? err : -EINVAL;
	name[0] = '\0';
	index = hash_get(&f->names->imports, va, 0);
	return index ? dynsym_name(f, *index, name, max) : -ENOENT;
}

int elf_import_slots(struct elf *f, const char *name, uint64_t *slots, unsigned max)
{
	int err = f->names ? 0 : read_names(f), len;
	const struct hash_entry *e;
	char text[NAME_BYTES];
	size_t pos = 0;
	unsigned n = 0;

	while (!err && n < max && (e = hash_next(&f->names->imports, &pos))) {
		len = dynsym_name(f, e->val, text, sizeof(text));
		if (len > 0 && !strcmp(text, name))
			slots[n++] = e->a;
	}
	return err ? err : (int)n;
}
