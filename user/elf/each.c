// SPDX-License-Identifier: Apache-2.0
/* Walks over all of a table: for rows that stand for a family of functions, not for one. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf.h"
#include "elf/image.h"

#define TABLE_MAX_BYTES ((uint64_t)512 << 20)

/* Owned copy of a piece of the file, one NUL behind it. NULL with *err. */
static char *copy(const struct elf *f, uint64_t off, uint64_t bytes, int *err)
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

static int walk(const struct elf_table *t, const Elf64_Sym *syms, const char *strs, const char *prefix,
		int (*fn)(void *ctx, const char *name, const struct elf_sym *sym), void *ctx)
{
	size_t n = strlen(prefix);
	int ret = 0;

	for (uint64_t i = 0; !ret && i < t->nsyms; i++) {
		const Elf64_Sym *s = &syms[i];
		struct elf_sym sym = {s->st_value, s->st_size, ELF64_ST_TYPE(s->st_info)};

		if (sym.type != STT_FUNC || s->st_shndx == SHN_UNDEF || s->st_name >= t->strs_bytes)
			continue;
		if (!strncmp(strs + s->st_name, prefix, n))
			ret = fn(ctx, strs + s->st_name, &sym);
	}
	return ret;
}

void elf_forget_funcs(struct elf *f)
{
	free(f->funcs.syms);
	free(f->funcs.strs);
	f->funcs = (struct elf_funcs){.syms = NULL};
}

/* PyTorch's table takes 90 MB and is walked for each of ten families. */
static int read_funcs(struct elf *f)
{
	struct elf_funcs *all = &f->funcs;
	int err = elf_symtab_table(f, &all->table);

	if (err == -ENOENT)
		err = elf_dynsym_table(f, &all->table);
	if (!err && all->table.nsyms > TABLE_MAX_BYTES / sizeof(Elf64_Sym))
		err = -EBADMSG;
	if (!err)
		all->syms = (Elf64_Sym *)copy(f, all->table.syms_off, all->table.nsyms * sizeof(Elf64_Sym), &err);
	if (!err)
		all->strs = copy(f, all->table.strs_off, all->table.strs_bytes, &err);
	if (err)
		elf_forget_funcs(f);
	return err;
}

int elf_each_func(struct elf *f, const char *prefix, int (*fn)(void *ctx, const char *name, const struct elf_sym *sym),
		  void *ctx)
{
	int err = f->funcs.syms ? 0 : read_funcs(f);

	return err ? err : walk(&f->funcs.table, f->funcs.syms, f->funcs.strs, prefix, fn, ctx);
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
		data = copy(f, sh.sh_offset, sh.sh_size, &ret);
	for (uint64_t at = 0; !ret && at < sh.sh_size;) {
		size_t len = strlen(data + at);

		ret = fn(ctx, data + at, len);
		at += len + 1;
	}
	free(data);
	return ret;
}
