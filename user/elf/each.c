// SPDX-License-Identifier: Apache-2.0
/* Walks over whole tables, for rows that stand for a family of functions. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf.h"
#include "elf/image.h"

#define TABLE_MAX_BYTES ((uint64_t)512 << 20)

/* Returns an owned copy of a part of the file, with one NUL after it. On failure returns NULL and sets *err. */
static char *each_copy(const struct elf *f, uint64_t off, uint64_t bytes, int *err)
{
	char *data;

	*err = bytes > TABLE_MAX_BYTES ? -EBADMSG : 0;
	data = *err ? NULL : malloc(bytes + 1);
	if (!*err && !data)
		*err = -ENOMEM;
	if (!*err)
		*err = elf_pread(f, off, data, bytes);
	if (*err) {
		free(data);
		return NULL;
	}
	data[bytes] = '\0';
	return data;
}

/* Returns the first n bytes of a name (at most 8) as a word, padded with NULs. */
static uint64_t start_of(const char *name, size_t n)
{
	char text[sizeof(uint64_t)] = "";
	uint64_t word;

	memcpy(text, name, strnlen(name, n < sizeof(text) ? n : sizeof(text)));
	memcpy(&word, text, sizeof(word));
	return word;
}

/* Compares the first 8 bytes of each name first. They are in one array, while the names take up to 60 MB. */
static int each_walk(const struct elf_funcs *all, const char *prefix,
		     int (*fn)(void *ctx, const char *name, const struct elf_sym *sym), void *ctx)
{
	size_t n = strlen(prefix);
	uint64_t start = start_of(prefix, n), mask = n < sizeof(start) ? ((uint64_t)1 << 8 * n) - 1 : ~(uint64_t)0;
	int ret = 0;

	for (uint64_t i = 0; !ret && i < all->table.nsyms; i++) {
		const Elf64_Sym *s = &all->syms[i];
		struct elf_sym sym = {s->st_value, s->st_size, STT_FUNC};

		if (all->starts[i] && (all->starts[i] & mask) == start && !strncmp(all->strs + s->st_name, prefix, n))
			ret = fn(ctx, all->strs + s->st_name, &sym);
	}
	return ret;
}

void elf_forget_funcs(struct elf *f)
{
	free(f->funcs.syms);
	free(f->funcs.strs);
	free(f->funcs.starts);
	f->funcs = (struct elf_funcs){.syms = NULL};
}

static int read_starts(struct elf_funcs *all)
{
	all->starts = calloc(all->table.nsyms + 1, sizeof(*all->starts));
	if (!all->starts)
		return -ENOMEM;
	for (uint64_t i = 0; i < all->table.nsyms; i++) {
		const Elf64_Sym *s = &all->syms[i];

		if (ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx != SHN_UNDEF &&
		    s->st_name < all->table.strs_bytes)
			all->starts[i] = start_of(all->strs + s->st_name, sizeof(*all->starts));
	}
	return 0;
}

/* Reads the table once: in the largest library it takes 90 MB, and ten families of functions walk over it. */
static int read_funcs(struct elf *f)
{
	struct elf_funcs *all = &f->funcs;
	int err = elf_symtab_table(f, &all->table);

	if (err == -ENOENT)
		err = elf_dynsym_table(f, &all->table);
	if (!err && all->table.nsyms > TABLE_MAX_BYTES / sizeof(Elf64_Sym))
		err = -EBADMSG;
	if (!err)
		all->syms = (Elf64_Sym *)each_copy(f, all->table.syms_off, all->table.nsyms * sizeof(Elf64_Sym), &err);
	if (!err)
		all->strs = each_copy(f, all->table.strs_off, all->table.strs_bytes, &err);
	if (!err)
		err = read_starts(all);
	if (err)
		elf_forget_funcs(f);
	return err;
}

int elf_each_func(struct elf *f, const char *prefix, int (*fn)(void *ctx, const char *name, const struct elf_sym *sym),
		  void *ctx)
{
	int err = f->funcs.syms ? 0 : read_funcs(f);

	return err ? err : each_walk(&f->funcs, prefix, fn, ctx);
}

int elf_section_named(const struct elf *f, const char *name, Elf64_Shdr *out)
{
	char text[32] = "";
	Elf64_Ehdr eh;
	Elf64_Shdr names;
	int err = f->nshdrs ? elf_pread(f, 0, &eh, sizeof(eh)) : -ENOENT;

	if (err || eh.e_shstrndx >= f->nshdrs)
		return err ? err : -ENOENT;
	err = elf_pread(f, f->shdrs_off + (uint64_t)eh.e_shstrndx * sizeof(names), &names, sizeof(names));
	for (uint32_t i = 0; !err && i < f->nshdrs; i++) {
		err = elf_pread(f, f->shdrs_off + (uint64_t)i * sizeof(*out), out, sizeof(*out));
		if (err || out->sh_name > names.sh_size || strlen(name) + 1 > names.sh_size - out->sh_name)
			continue;
		err = elf_pread(f, names.sh_offset + out->sh_name, text, strlen(name) + 1);
		if (!err && !memcmp(text, name, strlen(name) + 1))
			return 0;
	}
	return err ? err : -ENOENT;
}

int elf_each_string(struct elf *f, int (*fn)(void *ctx, const char *text, size_t len), void *ctx)
{
	char *data = NULL;
	Elf64_Shdr sh;
	int ret = elf_section_named(f, ".rodata", &sh);

	if (!ret)
		data = each_copy(f, sh.sh_offset, sh.sh_size, &ret);
	for (uint64_t at = 0; !ret && at < sh.sh_size;) {
		size_t len = strlen(data + at);

		ret = fn(ctx, data + at, len);
		at += len + 1;
	}
	free(data);
	return ret;
}
