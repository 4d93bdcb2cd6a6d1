// SPDX-License-Identifier: Apache-2.0
#include "dso.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fork.h"

#define PAGE	     4096ull
#define HASH_SYMBOLS 1 /* words of a GNU hash table: number of buckets, first symbol, words of the filter */
#define HASH_FILTER  2
#define HASH_HEADER  4
#define OBJECTS_SEEN 1024 /* objects of which it is known whether they import a hooked function */

/* ---- one object */

const char *agent_dso_base(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

/* The loader of glibc has added the bias to the addresses in most objects, but not in the vdso. */
static uint64_t address(const struct agent_dso *d, uint64_t value)
{
	return value >= d->from && value < d->to ? value : value + d->bias;
}

static void read_dynamic(struct agent_dso *d, const Elf64_Dyn *dyn)
{
	uint64_t rela_bytes = 0, plt_bytes = 0;

	for (; dyn->d_tag != DT_NULL; dyn++) {
		const uint64_t value = dyn->d_un.d_val;

		if (dyn->d_tag == DT_SYMTAB)
			d->symbols = (const void *)address(d, value);
		else if (dyn->d_tag == DT_STRTAB)
			d->strings = (const void *)address(d, value);
		else if (dyn->d_tag == DT_GNU_HASH)
			d->hash = (const void *)address(d, value);
		else if (dyn->d_tag == DT_RELA)
			d->rela = (const void *)address(d, value);
		else if (dyn->d_tag == DT_JMPREL)
			d->plt = (const void *)address(d, value);
		else if (dyn->d_tag == DT_RELASZ)
			rela_bytes = value;
		else if (dyn->d_tag == DT_PLTRELSZ)
			plt_bytes = value;
		else if (dyn->d_tag == DT_RELACOUNT)
			d->nrelative = value;
	}
	d->nrela = d->rela ? rela_bytes / sizeof(*d->rela) : 0;
	d->nplt = d->plt ? plt_bytes / sizeof(*d->plt) : 0;
}

static bool dso_describe(const struct dl_phdr_info *info, struct agent_dso *d)
{
	const Elf64_Dyn *dyn = NULL;
	unsigned i;

	*d = (struct agent_dso){.bias = info->dlpi_addr, .from = UINT64_MAX};
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const uint64_t at = d->bias + ph->p_vaddr;

		if (ph->p_type == PT_DYNAMIC)
			dyn = (const void *)at;
		if (ph->p_type != PT_LOAD)
			continue;
		d->from = at < d->from ? at : d->from;
		d->to = at + ph->p_memsz > d->to ? at + ph->p_memsz : d->to;
	}
	if (!dyn)
		return false;
	d->dynamic = dyn;
	strncpy(d->path, info->dlpi_name ? info->dlpi_name : "", sizeof(d->path) - 1);
	read_dynamic(d, dyn);
	return d->symbols && d->strings;
}

int agent_dso_each(int (*fn)(struct dl_phdr_info *info, size_t bytes, void *ctx), void *ctx)
{
	const bool entered = agent_fork_enter_loader();
	const int ret = dl_iterate_phdr(fn, ctx);

	agent_fork_leave_loader(entered);
	return ret;
}

struct search {
	const char *begin;
	struct agent_dso *out;
};

static int on_object(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
	const struct search *s = ctx;

	(void)bytes;
	return !strncmp(agent_dso_base(info->dlpi_name), s->begin, strlen(s->begin)) && dso_describe(info, s->out);
}

bool agent_dso_find(const char *begin, struct agent_dso *out)
{
	struct search s = {begin, out};

	return agent_dso_each(on_object, &s) != 0;
}

static int on_any(struct dl_phdr_info *info, size_t bytes, void *is)
{
	struct agent_dso d;

	(void)bytes;
	return dso_describe(info, &d) && (*(bool (**)(const struct agent_dso *))is)(&d);
}

bool agent_dso_any(bool (*is)(const struct agent_dso *d))
{
	return agent_dso_each(on_any, &is) != 0;
}

bool agent_dso_needs(const struct agent_dso *d, const char *library)
{
	const Elf64_Dyn *dyn;

	for (dyn = d->dynamic; dyn->d_tag != DT_NULL; dyn++)
		if (dyn->d_tag == DT_NEEDED && !strcmp(d->strings + dyn->d_un.d_val, library))
			return true;
	return false;
}

/* ---- symbols */

static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

uint64_t agent_dso_symbol(const struct agent_dso *d, const char *name)
{
	const uint32_t h = hash_of(name), *buckets, *chain;
	uint32_t i;

	if (!d->hash || !d->hash[0])
		return 0;
	buckets = d->hash + HASH_HEADER + 2 * d->hash[HASH_FILTER];
	chain = buckets + d->hash[0];
	i = buckets[h % d->hash[0]];
	if (i < d->hash[HASH_SYMBOLS])
		return 0;
	for (;; i++) {
		const Elf64_Sym *s = &d->symbols[i];
		const uint32_t link = chain[i - d->hash[HASH_SYMBOLS]];

		if ((link | 1) == (h | 1) && s->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s->st_info) == STT_FUNC &&
		    !strcmp(d->strings + s->st_name, name))
			return d->bias + s->st_value;
		if (link & 1)
			return 0;
	}
}

bool agent_dso_get(const struct agent_dso *d, const char *name, void *to)
{
	const uint64_t at = agent_dso_symbol(d, name);

	memcpy(to, &at, sizeof(at));
	return at;
}

struct first {
	const char *name;
	uint64_t at;
};

static int on_exporter(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
	struct first *f = ctx;
	struct agent_dso d;

	(void)bytes;
	f->at = dso_describe(info, &d) ? agent_dso_symbol(&d, f->name) : 0;
	return f->at != 0;
}

uint64_t agent_dso_first(const char *name)
{
	struct first f = {name, 0};

	agent_dso_each(on_exporter, &f);
	return f.at;
}

uint64_t agent_dso_of_libc(const char *name)
{
	static const char *const libraries[] = {"libc.so.6", "libdl.so.2"};
	struct agent_dso d;
	uint64_t at = 0;
	unsigned i;

	for (i = 0; !at && i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (agent_dso_find(libraries[i], &d))
			at = agent_dso_symbol(&d, name);
	return at;
}

/* ---- import tables */

/* An object, by the address of its tables. */
struct seen {
	const Elf64_Sym *symbols;
	bool imports; /* a hooked function */
};

static struct seen seen[OBJECTS_SEEN];
static unsigned nseen;
static uint64_t seen_adds, seen_subs;
static uint64_t changes; /* how often the loader's list of objects has changed */
static bool settled;	 /* the last walk through the objects found nothing to do */

struct hooking {
	const struct agent_hook *hooks;
	unsigned n;
	struct agent_dso of; /* the library of the hooked functions */
	bool wrote;	     /* to an import table */
	int err;
};

/* Compares the counts of loaded and unloaded objects with those of the last walk, and ends this walk. */
static int on_first(struct dl_phdr_info *info, size_t bytes, void *same)
{
	if (bytes < offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
		return 1;
	*(bool *)same = info->dlpi_adds == seen_adds && info->dlpi_subs == seen_subs;
	seen_adds = info->dlpi_adds;
	seen_subs = info->dlpi_subs;
	return 1;
}

/* Returns true if the object imports a hooked function. Imported symbols stand before those in the hash table. */
static bool imports(const struct hooking *h, const struct agent_dso *d)
{
	const uint32_t n = d->hash && d->hash[0] ? d->hash[HASH_SYMBOLS] : 0;
	uint32_t i;
	unsigned k;

	for (i = 1; i < n; i++)
		for (k = 0; k < h->n; k++)
			if (d->symbols[i].st_shndx == SHN_UNDEF &&
			    !strcmp(d->strings + d->symbols[i].st_name, h->hooks[k].name))
				return true;
	return false;
}

static bool is_importer(const struct hooking *h, const struct agent_dso *d)
{
	unsigned i;

	for (i = 0; i < nseen; i++)
		if (seen[i].symbols == d->symbols)
			return seen[i].imports;
	if (nseen == OBJECTS_SEEN)
		return imports(h, d);
	seen[nseen] = (struct seen){d->symbols, imports(h, d)};
	return seen[nseen++].imports;
}

static const char *read_hex(const char *text, uint64_t *value)
{
	unsigned digit;

	for (*value = 0;; text++) {
		digit = (unsigned)(*text | 0x20);
		if (digit >= '0' && digit <= '9')
			digit -= '0';
		else if (digit >= 'a' && digit <= 'f')
			digit -= 'a' - 10;
		else
			return text;
		*value = *value << 4 | digit;
	}
}

/* Reads "FROM-TO rwxp ...". Returns the protection if the mapping contains the address, else -1. */
static int protection_in(const char *line, uint64_t at)
{
	uint64_t from, to;
	const char *p = read_hex(read_hex(line, &from) + 1, &to);

	if (at < from || at >= to)
		return -1;
	return (p[1] == 'r' ? PROT_READ : 0) | (p[2] == 'w' ? PROT_WRITE : 0) | (p[3] == 'x' ? PROT_EXEC : 0);
}

/* Finds the protection of a page. Returns -1 if it is not mapped. Only the beginning of a line is needed. */
static int protection(uint64_t at)
{
	char line[64], c[256];
	const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	unsigned len = 0;
	int prot = -1;
	ssize_t n, i;

	while (fd >= 0 && prot < 0 && (n = read(fd, c, sizeof(c))) > 0)
		for (i = 0; i < n && prot < 0; i++) {
			if (c[i] != '\n') {
				if (len < sizeof(line) - 1)
					line[len++] = c[i];
				continue;
			}
			line[len] = '\0';
			len = 0;
			prot = protection_in(line, at);
		}
	if (fd >= 0)
		close(fd);
	return prot;
}

/*
 * Writes an entry of an import table. The loader makes the table read-only after it has filled it, so a table that can
 * be written is not protected afterwards: the loader may still be at work.
 */
static int write_entry(uint64_t *entry, uint64_t value)
{
	const uint64_t page = (uint64_t)(uintptr_t)entry & ~(PAGE - 1);
	const int prot = protection(page);

	if (prot < 0)
		return -EFAULT;
	if (!(prot & PROT_WRITE) && mprotect((void *)page, PAGE, prot | PROT_WRITE))
		return -errno;
	__atomic_store_n(entry, value, __ATOMIC_RELEASE);
	return prot & PROT_WRITE || !mprotect((void *)page, PAGE, prot) ? 0 : -errno;
}

/* An entry that is not bound yet leads into the object itself. */
static void hook_entry(struct hooking *h, const struct agent_dso *d, const Elf64_Rela *r)
{
	const Elf64_Sym *s = &d->symbols[ELF64_R_SYM(r->r_info)];
	uint64_t *entry = (uint64_t *)(d->bias + r->r_offset), value;
	unsigned k;
	int err;

	if (s->st_shndx != SHN_UNDEF)
		return;
	for (k = 0; k < h->n && strcmp(d->strings + s->st_name, h->hooks[k].name); k++)
		;
	if (k == h->n || !h->hooks[k].original)
		return;
	value = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
	if (value == h->hooks[k].instead || (value != h->hooks[k].original && (value < d->from || value >= d->to)))
		return;
	h->wrote = true;
	err = write_entry(entry, h->hooks[k].instead);
	h->err = h->err ? h->err : err;
}

static int on_importer(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
	struct hooking *h = ctx;
	struct agent_dso d;
	size_t i;

	(void)bytes;
	if (!dso_describe(info, &d) || d.from == h->of.from || !is_importer(h, &d))
		return 0;
	for (i = d.nrelative; i < d.nrela; i++)
		if (ELF64_R_TYPE(d.rela[i].r_info) == R_X86_64_GLOB_DAT)
			hook_entry(h, &d, &d.rela[i]);
	for (i = 0; i < d.nplt; i++)
		if (ELF64_R_TYPE(d.plt[i].r_info) == R_X86_64_JUMP_SLOT)
			hook_entry(h, &d, &d.plt[i]);
	return 0;
}

int agent_dso_hook(const struct agent_hook *hooks, unsigned n, const char *begin)
{
	struct hooking h = {.hooks = hooks, .n = n};
	bool same = false;

	agent_dso_each(on_first, &same);
	changes += !same;
	if (same && settled)
		return 0;
	nseen = same ? nseen : 0;
	settled = false;
	if (!agent_dso_find(begin, &h.of))
		return 0;
	agent_dso_each(on_importer, &h);
	settled = !h.wrote && !h.err;
	return h.err;
}

uint64_t agent_dso_changes(void)
{
	return changes;
}
