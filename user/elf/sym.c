// SPDX-License-Identifier: Apache-2.0
/* Finds symbols by name: through the hash if the file has one, or else by two linear passes (strings, then symbols). */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "elf/elf.h"
#include "elf/image.h"

#define BLOCK_BYTES	(64u << 10)
#define CHAIN_MAX	4096		    /* limit of symbols in one hash bucket; real files have a few */
#define TABLE_MAX_BYTES ((uint64_t)1 << 30) /* limit of a scanned symbol or string table, in bytes; about a second */
#define SAME_TAIL_MAX	65536		    /* limit of strings that end with the name */
#define VERSYM_HIDDEN	0x8000

/* The best symbol so far. A file may have several with one name: old versions, and locals of several sources. */
struct pick {
	struct elf_sym sym;
	int rank; /* 0: none yet */
	bool ambiguous;
};

static void offer(struct pick *p, const Elf64_Sym *s, bool hidden)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);
	int rank = ELF64_ST_BIND(s->st_info) == STB_LOCAL ? 1 : hidden ? 2 : 3;

	if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS || s->st_shndx == SHN_COMMON)
		return;
	/* The values of these are no addresses. */
	if (type == STT_TLS || type == STT_FILE || type == STT_SECTION)
		return;
	if (rank == p->rank && s->st_value != p->sym.va)
		p->ambiguous = true;
	if (rank <= p->rank)
		return;
	p->sym = (struct elf_sym){.va = s->st_value, .size_bytes = s->st_size, .type = (uint8_t)type};
	p->rank = rank;
	p->ambiguous = false;
}

/* Returns 1 if the image has these bytes at va, 0 if it has others, or -errno. */
static int same_bytes(const struct elf *f, uint64_t va, const char *bytes, size_t n)
{
	char buf[512];

	while (n) {
		size_t part = n < sizeof(buf) ? n : sizeof(buf);
		int err = elf_read_va(f, va, buf, part);

		if (err)
			return err;
		if (memcmp(buf, bytes, part))
			return 0;
		va += part;
		bytes += part;
		n -= part;
	}
	return 1;
}

/* Offers dynamic symbol i if it has the name. */
static int try_dynsym(const struct elf *f, uint64_t i, const char *name, struct pick *p)
{
	size_t n = strlen(name) + 1;
	uint16_t version = 0;
	Elf64_Sym s;
	int err = elf_read_va(f, f->symtab_va + i * sizeof(s), &s, sizeof(s));

	if (err)
		return err;
	if (n > f->strtab_bytes || s.st_name > f->strtab_bytes - n)
		return 0;
	err = same_bytes(f, f->strtab_va + s.st_name, name, n);
	if (err <= 0)
		return err;
	if (f->versym_va)
		err = elf_read_va(f, f->versym_va + i * sizeof(version), &version, sizeof(version));
	if (err < 0)
		return err;
	offer(p, &s, version & VERSYM_HIDDEN);
	return 0;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		h = h * 33 + *c;
	return h;
}

static int walk_chain(const struct elf *f, uint64_t chain_va, uint64_t first, const char *name, struct pick *p)
{
	uint32_t want = gnu_hash(name) | 1, got;

	for (uint64_t i = 0; i < CHAIN_MAX; i++) {
		int err = elf_read_va(f, chain_va + i * sizeof(got), &got, sizeof(got));

		if (!err && (got | 1) == want)
			err = try_dynsym(f, first + i, name, p);
		if (err || (got & 1))
			return err;
	}
	return -EBADMSG;
}

static int find_by_gnu_hash(const struct elf *f, const char *name, struct pick *p)
{
	struct {
		uint32_t nbuckets, first_sym, nwords, shift;
	} h;
	uint32_t hash = gnu_hash(name), sym;
	uint64_t word, words_va = f->gnu_hash_va + sizeof(h), buckets_va;
	int err = elf_read_va(f, f->gnu_hash_va, &h, sizeof(h));

	if (err)
		return err;
	if (!h.nbuckets || !h.nwords || (h.nwords & (h.nwords - 1)) || h.shift > 31)
		return -EBADMSG;
	err = elf_read_va(f, words_va + (hash / 64 & (h.nwords - 1)) * sizeof(word), &word, sizeof(word));
	if (err || !(word >> (hash % 64) & word >> ((hash >> h.shift) % 64) & 1))
		return err;
	buckets_va = words_va + (uint64_t)h.nwords * sizeof(word);
	err = elf_read_va(f, buckets_va + (uint64_t)(hash % h.nbuckets) * sizeof(sym), &sym, sizeof(sym));
	if (err || !sym)
		return err;
	if (sym < h.first_sym)
		return -EBADMSG;
	return walk_chain(f, buckets_va + ((uint64_t)h.nbuckets + sym - h.first_sym) * sizeof(sym), sym, name, p);
}

/*
 * Finds the offsets in the string table where "name\0" is, in ascending order. It may be at any position, because
 * linkers let a name be the tail of a longer one.
 */
static int find_names(const struct elf *f, const struct elf_table *t, const char *name, char *block, struct buf *offs)
{
	size_t n = strlen(name) + 1, kept = 0;
	uint64_t at = 0;

	if (n > BLOCK_BYTES / 2)
		return -ENAMETOOLONG;
	while (at < t->strs_bytes) {
		uint64_t left = t->strs_bytes - at;
		size_t fresh = left < BLOCK_BYTES - kept ? (size_t)left : BLOCK_BYTES - kept;
		int err = elf_pread(f, t->strs_off + at, block + kept, fresh);
		char *hit = block, *end = block + kept + fresh;

		if (err)
			return err;
		while ((hit = memmem(hit, (size_t)(end - hit), name, n))) {
			uint32_t off = (uint32_t)(at - kept + (uint64_t)(hit - block));

			if (buf_count(offs, off) == SAME_TAIL_MAX)
				return -EBADMSG;
			if (buf_put(offs, &off, sizeof(off)))
				return -ENOMEM;
			hit++;
		}
		at += fresh;
		kept = (size_t)(end - block) < n - 1 ? (size_t)(end - block) : n - 1;
		memmove(block, end - kept, kept);
	}
	return 0;
}

static int cmp_off(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int read_version(const struct elf *f, const struct elf_table *t, uint64_t i, uint16_t *version)
{
	*version = 0;
	return t->versym_off ? elf_pread(f, t->versym_off + i * sizeof(*version), version, sizeof(*version)) : 0;
}

static int find_syms(const struct elf *f, const struct elf_table *t, char *block, const struct buf *offs,
		     struct pick *p)
{
	const uint64_t per_block = BLOCK_BYTES / sizeof(Elf64_Sym);

	for (uint64_t at = 0; at < t->nsyms; at += per_block) {
		size_t n = (size_t)(t->nsyms - at < per_block ? t->nsyms - at : per_block);
		int err = elf_pread(f, t->syms_off + at * sizeof(Elf64_Sym), block, n * sizeof(Elf64_Sym));

		for (size_t i = 0; !err && i < n; i++) {
			uint16_t version;
			Elf64_Sym s;

			memcpy(&s, block + i * sizeof(s), sizeof(s));
			if (!bsearch(&s.st_name, offs->data, buf_count(offs, uint32_t), sizeof(uint32_t), cmp_off))
				continue;
			err = read_version(f, t, at + i, &version);
			if (!err)
				offer(p, &s, version & VERSYM_HIDDEN);
		}
		if (err)
			return err;
	}
	return 0;
}

static int scan(const struct elf *f, const struct elf_table *t, const char *name, struct pick *p)
{
	struct buf offs = {0};
	char *block;
	int err;

	if (t->strs_bytes > TABLE_MAX_BYTES || t->nsyms > TABLE_MAX_BYTES / sizeof(Elf64_Sym))
		return -EBADMSG;
	block = malloc(BLOCK_BYTES);
	if (!block)
		return -ENOMEM;
	err = find_names(f, t, name, block, &offs);
	if (!err && offs.len)
		err = find_syms(f, t, block, &offs, p);
	buf_fini(&offs);
	free(block);
	return err;
}

int elf_section_of_type(const struct elf *f, uint32_t type, Elf64_Shdr *out)
{
	for (uint32_t i = 0; i < f->nshdrs; i++) {
		int err = elf_pread(f, f->shdrs_off + (uint64_t)i * sizeof(*out), out, sizeof(*out));

		if (err)
			return err;
		if (out->sh_type == type)
			return 0;
	}
	return -ENOENT;
}

/* Without a GNU hash, only the old hash or the section header has the number of symbols. */
static int count_dynsyms(const struct elf *f, uint64_t *n)
{
	uint32_t words[2]; /* nbucket, nchain; there is one chain link per symbol */
	Elf64_Shdr sh;
	int err;

	if (f->hash_va) {
		err = elf_read_va(f, f->hash_va, words, sizeof(words));
		*n = err ? 0 : words[1];
		return err;
	}
	err = elf_section_of_type(f, SHT_DYNSYM, &sh);
	*n = err ? 0 : sh.sh_size / sizeof(Elf64_Sym);
	return err;
}

int elf_dynsym_table(const struct elf *f, struct elf_table *t)
{
	const struct elf_load *syms, *strs, *versyms = NULL;
	int err;

	*t = (struct elf_table){.strs_bytes = f->strtab_bytes};
	if (!f->symtab_va || !f->strtab_va)
		return -ENOENT;
	err = count_dynsyms(f, &t->nsyms);
	if (err)
		return err;
	if (!t->nsyms || !t->strs_bytes)
		return -ENOENT;
	syms = elf_load_at(f, f->symtab_va, t->nsyms * sizeof(Elf64_Sym));
	strs = elf_load_at(f, f->strtab_va, t->strs_bytes);
	if (f->versym_va)
		versyms = elf_load_at(f, f->versym_va, t->nsyms * sizeof(uint16_t));
	if (!syms || !strs || (f->versym_va && !versyms))
		return -EBADMSG;
	t->syms_off = syms->off + (f->symtab_va - syms->va);
	t->strs_off = strs->off + (f->strtab_va - strs->va);
	t->versym_off = versyms ? versyms->off + (f->versym_va - versyms->va) : 0;
	return 0;
}

static int scan_dynsym(const struct elf *f, const char *name, struct pick *p)
{
	struct elf_table t;
	int err = elf_dynsym_table(f, &t);

	return err ? (err == -ENOENT ? 0 : err) : scan(f, &t, name, p);
}

static int find_dynamic(const struct elf *f, const char *name, struct pick *p)
{
	if (!f->symtab_va || !f->strtab_va)
		return 0;
	return f->gnu_hash_va ? find_by_gnu_hash(f, name, p) : scan_dynsym(f, name, p);
}

int elf_symtab_table(const struct elf *f, struct elf_table *t)
{
	Elf64_Shdr sym, str;
	int err = elf_section_of_type(f, SHT_SYMTAB, &sym);

	*t = (struct elf_table){0};
	if (err)
		return err;
	if (sym.sh_link >= f->nshdrs || sym.sh_entsize != sizeof(Elf64_Sym))
		return -EBADMSG;
	err = elf_pread(f, f->shdrs_off + (uint64_t)sym.sh_link * sizeof(str), &str, sizeof(str));
	if (err)
		return err;
	if (str.sh_type != SHT_STRTAB)
		return -EBADMSG;
	t->syms_off = sym.sh_offset;
	t->nsyms = sym.sh_size / sizeof(Elf64_Sym);
	t->strs_off = str.sh_offset;
	t->strs_bytes = str.sh_size;
	return 0;
}

/* The result of a scan of .symtab for a name. pick.rank is 0 if the name was not found. */
struct elf_scan {
	char *name; /* owned */
	struct pick pick;
};

void elf_forget_scans(struct elf *f)
{
	for (size_t i = 0; i < buf_count(&f->scans, struct elf_scan); i++)
		free(buf_at(&f->scans, struct elf_scan, i)->name);
	buf_fini(&f->scans);
}

/*
 * Scans .symtab and keeps the result. A scan reads 100 MB of a large library, and callers ask for the same names again.
 */
static int find_static(struct elf *f, const char *name, struct pick *p)
{
	struct elf_scan made = {.pick = *p};
	struct elf_table t;
	int err;

	for (size_t i = 0; i < buf_count(&f->scans, struct elf_scan); i++) {
		const struct elf_scan *s = buf_at(&f->scans, struct elf_scan, i);

		if (strcmp(s->name, name))
			continue;
		*p = s->pick;
		return 0;
	}
	err = elf_symtab_table(f, &t);
	if (err)
		return err == -ENOENT ? 0 : err;
	err = scan(f, &t, name, &made.pick);
	if (err)
		return err;
	*p = made.pick;
	made.name = strdup(name);
	if (made.name && !buf_put(&f->scans, &made, sizeof(made)))
		return 0;
	free(made.name);
	return -ENOMEM;
}

int elf_find_sym(struct elf *f, const char *name, struct elf_sym *sym, struct err *e)
{
	struct pick p = {.rank = 0};
	int err = find_dynamic(f, name, &p);

	if (!err && !p.rank)
		err = find_static(f, name, &p);
	/* A table that a header announces is missing. */
	if (err == -ENOENT || err == -ENODATA)
		err = -EBADMSG;
	if (err)
		return err_set(e, ERR_TARGET, err, "cannot look up %s in the symbol tables: %s", name, strerror(-err));
	if (!p.rank)
		return err_set(e, ERR_TARGET, -ENOENT, "no symbol %s", name);
	if (p.ambiguous)
		return err_set(e, ERR_TARGET, -ENOTUNIQ, "more than one symbol %s", name);
	*sym = p.sym;
	return 0;
}
