// SPDX-License-Identifier: Apache-2.0
#include "elf/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/image.h"

/* Limits far above real files. A file that exceeds them counts as damaged, so that it cannot keep mxbpf busy. */
#define PHDRS_MAX	1024
#define DYNS_MAX	4096
#define NOTES_MAX_BYTES (64u << 10)
#define UPX_TAIL_BYTES	64 /* its header is at the end of the file */

/*
 * Unwind tables and names are read in small pieces close to each other. Without a cache, system calls would dominate
 * the cost.
 */
#define CACHE_BLOCKS	  128
#define CACHE_BLOCK_BYTES 4096

struct elf_cache {
	uint64_t block[CACHE_BLOCKS]; /* 1 + number of the block in the file; 0: empty */
	uint8_t bytes[CACHE_BLOCKS][CACHE_BLOCK_BYTES];
};

int elf_pread(const struct elf *f, uint64_t off, void *buf, size_t n)
{
	char *at = buf;

	if (off > f->size_bytes || n > f->size_bytes - off)
		return -ENODATA;
	while (n) {
		ssize_t got =
			f->source.pread ? f->source.pread(f->source.ctx, at, n, off) : pread(f->fd, at, n, (off_t)off);

		if (got < 0 && f->source.pread)
			return (int)got;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return -ENODATA;
		at += got;
		off += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

/* Returns NULL and sets *err if the block cannot be read up to the end of the file. */
static const uint8_t *cached_block(const struct elf *f, uint64_t number, int *err)
{
	struct elf_cache *c = f->cache;
	size_t slot = number % CACHE_BLOCKS, n = CACHE_BLOCK_BYTES;

	if (c->block[slot] == number + 1)
		return c->bytes[slot];
	if (f->size_bytes - number * CACHE_BLOCK_BYTES < n)
		n = (size_t)(f->size_bytes - number * CACHE_BLOCK_BYTES);
	c->block[slot] = 0;
	*err = elf_pread(f, number * CACHE_BLOCK_BYTES, c->bytes[slot], n);
	if (*err)
		return NULL;
	c->block[slot] = number + 1;
	return c->bytes[slot];
}

int elf_pread_kept(const struct elf *f, uint64_t off, void *buf, size_t n)
{
	char *at = buf;
	int err = 0;

	if (off > f->size_bytes || n > f->size_bytes - off)
		return -ENODATA;
	if (n > CACHE_BLOCK_BYTES / 4)
		return elf_pread(f, off, buf, n);
	while (n) {
		size_t in = off % CACHE_BLOCK_BYTES, part = CACHE_BLOCK_BYTES - in < n ? CACHE_BLOCK_BYTES - in : n;
		const uint8_t *block = cached_block(f, off / CACHE_BLOCK_BYTES, &err);

		if (!block)
			return err;
		memcpy(at, block + in, part);
		at += part;
		off += part;
		n -= part;
	}
	return 0;
}

/* Reads a structure that a header announces. If it is missing, the file is damaged. */
static int read_promised(const struct elf *f, uint64_t off, void *buf, size_t n)
{
	int err = elf_pread(f, off, buf, n);

	return err == -ENODATA ? -EBADMSG : err;
}

const struct elf_load *elf_load_at(const struct elf *f, uint64_t va, uint64_t n)
{
	for (uint32_t i = 0; i < f->nloads; i++) {
		const struct elf_load *l = &f->loads[i];
		uint64_t at = va - l->va;

		if (va >= l->va && at < l->bytes && n <= l->bytes - at)
			return l;
	}
	return NULL;
}

static int open_file(int fd, const struct elf_source *source, struct elf *f, struct err *e)
{
	struct stat st;

	if (source) {
		f->source = *source;
		f->size_bytes = source->size_bytes;
		return 0;
	}
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0 || fstat(f->fd, &st) < 0)
		return err_set(e, ERR_RUNTIME, -errno, "cannot open the ELF file: %s", strerror(errno));
	/* A pipe or a device could block or never end. */
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_TARGET, -ENOEXEC, "not an ELF file: not a regular file");
	f->size_bytes = (uint64_t)st.st_size;
	return 0;
}

static int check_ident(const struct elf *f, Elf64_Ehdr *h, struct err *e)
{
	int err = elf_pread(f, 0, h->e_ident, EI_NIDENT);

	if (err && err != -ENODATA)
		return err_set(e, ERR_RUNTIME, err, "cannot read the ELF file: %s", strerror(-err));
	if (err || memcmp(h->e_ident, ELFMAG, SELFMAG))
		return err_set(e, ERR_TARGET, -ENOEXEC, "not an ELF file");
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
		return err_set(e, ERR_TARGET, -ENOTSUP, "a %s ELF file: only 64-bit little-endian is supported",
			       h->e_ident[EI_CLASS] == ELFCLASS32 ? "32-bit" : "big-endian");
	return 0;
}

static int read_header(struct elf *f, Elf64_Ehdr *h, struct err *e)
{
	int err = check_ident(f, h, e);

	if (err)
		return err;
	err = read_promised(f, 0, h, sizeof(*h));
	if (err)
		return err_set(e, ERR_TARGET, err, "damaged ELF file: header cut short");
	if (h->e_machine != EM_X86_64)
		return err_set(e, ERR_TARGET, -ENOTSUP, "an ELF file for machine %u: only x86-64 is supported",
			       h->e_machine);
	if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
		return err_set(e, ERR_TARGET, -ENOTSUP, "neither an executable nor a shared library (ELF type %u)",
			       h->e_type);
	if (!h->e_phnum || h->e_phnum > PHDRS_MAX || h->e_phentsize != sizeof(Elf64_Phdr))
		return err_set(e, ERR_TARGET, -EBADMSG, "damaged ELF file: %u program headers of %u bytes", h->e_phnum,
			       h->e_phentsize);
	if (!h->e_shoff || !h->e_shnum)
		return 0;
	if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff > f->size_bytes ||
	    h->e_shnum > (f->size_bytes - h->e_shoff) / sizeof(Elf64_Shdr))
		return err_set(e, ERR_TARGET, -EBADMSG, "damaged ELF file: section headers outside the file");
	f->shdrs_off = h->e_shoff;
	f->nshdrs = h->e_shnum;
	return 0;
}

static int add_load(struct elf *f, const Elf64_Phdr *p)
{
	const struct elf_load *last = f->nloads ? &f->loads[f->nloads - 1] : NULL;

	if (p->p_vaddr + p->p_memsz > f->end_va && p->p_vaddr + p->p_memsz >= p->p_vaddr)
		f->end_va = p->p_vaddr + p->p_memsz;
	if (!p->p_filesz)
		return 0;
	if (p->p_offset > f->size_bytes || p->p_filesz > f->size_bytes - p->p_offset)
		return -EBADMSG;
	if (p->p_memsz < p->p_filesz || p->p_vaddr + p->p_memsz < p->p_vaddr || f->nloads == ELF_LOADS_MAX)
		return -EBADMSG;
	/* The loader requires ascending segments. If segments overlapped, an address would have two meanings. */
	if (last && p->p_vaddr < last->va + last->bytes)
		return -EBADMSG;
	f->loads[f->nloads++] =
		(struct elf_load){.va = p->p_vaddr, .off = p->p_offset, .bytes = p->p_filesz, .flags = p->p_flags};
	return 0;
}

static size_t padded(uint32_t n)
{
	return ((size_t)n + 3) & ~(size_t)3;
}

size_t elf_build_id_of_notes(const void *notes, size_t n, uint8_t id[ELF_BUILD_ID_MAX])
{
	const uint8_t *at = notes;
	Elf64_Nhdr h;

	while (n >= sizeof(h)) {
		size_t name, desc;

		memcpy(&h, at, sizeof(h));
		at += sizeof(h);
		n -= sizeof(h);
		name = padded(h.n_namesz);
		/* The last description may lack its padding. */
		if (name > n || h.n_descsz > n - name)
			return 0;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == sizeof("GNU") && !memcmp(at, "GNU", sizeof("GNU")) &&
		    h.n_descsz && h.n_descsz <= ELF_BUILD_ID_MAX) {
			memcpy(id, at + name, h.n_descsz);
			return h.n_descsz;
		}
		desc = padded(h.n_descsz);
		if (desc > n - name)
			return 0;
		at += name + desc;
		n -= name + desc;
	}
	return 0;
}

static int read_notes(struct elf *f, const Elf64_Phdr *p)
{
	size_t n = p->p_filesz < NOTES_MAX_BYTES ? (size_t)p->p_filesz : NOTES_MAX_BYTES;
	void *notes;
	int err;

	if (f->build_id_bytes || !n)
		return 0;
	notes = malloc(n);
	if (!notes)
		return -ENOMEM;
	err = read_promised(f, p->p_offset, notes, n);
	if (!err)
		f->build_id_bytes = elf_build_id_of_notes(notes, n, f->build_id);
	free(notes);
	return err;
}

static int read_dynamic(struct elf *f, const Elf64_Phdr *p)
{
	const struct {
		int64_t tag;
		uint64_t *dst;
	} wanted[] = {
		{DT_SYMTAB, &f->symtab_va}, {DT_STRTAB, &f->strtab_va},	     {DT_STRSZ, &f->strtab_bytes},
		{DT_HASH, &f->hash_va},	    {DT_GNU_HASH, &f->gnu_hash_va},  {DT_VERSYM, &f->versym_va},
		{DT_RELA, &f->rela_va},	    {DT_RELASZ, &f->rela_bytes},     {DT_RELACOUNT, &f->rela_relative},
		{DT_JMPREL, &f->jmprel_va}, {DT_PLTRELSZ, &f->jmprel_bytes},
	};
	size_t n = (size_t)(p->p_filesz / sizeof(Elf64_Dyn));
	Elf64_Dyn *dyn;
	int err;

	if (!n)
		return 0;
	if (n > DYNS_MAX)
		return -EBADMSG;
	dyn = malloc(n * sizeof(*dyn));
	if (!dyn)
		return -ENOMEM;
	/* Reads by address, as the loader does. */
	err = elf_read_va(f, p->p_vaddr, dyn, n * sizeof(*dyn));
	if (err == -ENOENT || err == -ENODATA)
		err = -EBADMSG;
	for (size_t i = 0; !err && i < n && dyn[i].d_tag != DT_NULL; i++) {
		for (size_t w = 0; w < sizeof(wanted) / sizeof(*wanted); w++)
			if (dyn[i].d_tag == wanted[w].tag)
				*wanted[w].dst = dyn[i].d_un.d_val;
		if (dyn[i].d_tag == DT_NEEDED && f->needed_count < ELF_NEEDED_MAX)
			f->needed[f->needed_count++] = dyn[i].d_un.d_val;
	}
	free(dyn);
	return err;
}

static int note_eh_hdr(struct elf *f, const Elf64_Phdr *p)
{
	f->eh_hdr_va = p->p_vaddr;
	return 0;
}

/* One row per relevant kind of program header. A row may need the results of earlier rows. */
static const struct {
	uint32_t type;
	int (*read)(struct elf *f, const Elf64_Phdr *p);
	const char *what;
} segment_kinds[] = {
	{PT_LOAD, add_load, "PT_LOAD"},
	{PT_NOTE, read_notes, "PT_NOTE"},
	{PT_DYNAMIC, read_dynamic, "PT_DYNAMIC"},
	{PT_GNU_EH_FRAME, note_eh_hdr, "PT_GNU_EH_FRAME"},
};

static int read_kind(struct elf *f, const Elf64_Phdr *ph, size_t n, size_t kind, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		int err = ph[i].p_type == segment_kinds[kind].type ? segment_kinds[kind].read(f, &ph[i]) : 0;

		if (err)
			return err_set(e, ERR_TARGET, err, "damaged ELF file: program header %zu (%s): %s", i,
				       segment_kinds[kind].what, strerror(-err));
	}
	return 0;
}

static int read_segments(struct elf *f, const Elf64_Ehdr *h, struct err *e)
{
	Elf64_Phdr *ph = calloc(h->e_phnum, sizeof(*ph));
	int err;

	if (!ph)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	err = read_promised(f, h->e_phoff, ph, h->e_phnum * sizeof(*ph));
	if (err)
		err_set(e, ERR_TARGET, err, "damaged ELF file: program headers outside the file");
	for (size_t k = 0; !err && k < sizeof(segment_kinds) / sizeof(*segment_kinds); k++)
		err = read_kind(f, ph, h->e_phnum, k, e);
	free(ph);
	return err;
}

static int open_either(int fd, const struct elf_source *source, struct elf **out, struct err *e)
{
	struct elf *f = calloc(1, sizeof(*f));
	Elf64_Ehdr h;
	int err;

	*out = NULL;
	if (!f)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	f->fd = -1;
	f->cache = calloc(1, sizeof(*f->cache));
	err = f->cache ? open_file(fd, source, f, e) : err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (!err)
		err = read_header(f, &h, e);
	if (!err)
		err = read_segments(f, &h, e);
	if (err) {
		elf_close(f);
		return err;
	}
	f->opened = true;
	*out = f;
	return 0;
}

int elf_open(int fd, struct elf **out, struct err *e)
{
	return open_either(fd, NULL, out, e);
}

int elf_open_from(const struct elf_source *source, struct elf **out, struct err *e)
{
	const int err = open_either(-1, source, out, e);

	if (err)
		source->close(source->ctx);
	return err;
}

void elf_forget_tables(struct elf *f)
{
	free(f->eh_rows);
	free(f->words);
	elf_names_free(f->names);
	elf_forget_funcs(f);
	f->eh_rows = NULL;
	f->neh_rows = 0;
	f->words = NULL;
	f->nwords = 0;
	f->names = NULL;
}

void elf_close(struct elf *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	if (f->opened && f->source.close)
		f->source.close(f->source.ctx);
	elf_forget_tables(f);
	elf_forget_scans(f);
	hash_fini(&f->notes);
	free(f->cache);
	free(f);
}

uint64_t *elf_note(struct elf *f, unsigned kind, uint64_t va)
{
	return hash_put(&f->notes, va, kind);
}

size_t elf_build_id(const struct elf *f, uint8_t id[ELF_BUILD_ID_MAX])
{
	memcpy(id, f->build_id, f->build_id_bytes);
	return f->build_id_bytes;
}

int elf_exec_off(const struct elf *f, uint64_t va, uint64_t *off)
{
	const struct elf_load *l = elf_load_at(f, va, 1);

	if (!l || !(l->flags & PF_X))
		return -ENOENT;
	*off = l->off + (va - l->va);
	return 0;
}

bool elf_is_upx(const struct elf *f)
{
	static const char magic[] = {'U', 'P', 'X', '!'};
	char tail[UPX_TAIL_BYTES];

	return f->size_bytes >= sizeof(tail) && !elf_pread(f, f->size_bytes - sizeof(tail), tail, sizeof(tail)) &&
	       memmem(tail, sizeof(tail), magic, sizeof(magic));
}

void elf_extent(const struct elf *f, uint64_t *start_va, uint64_t *end_va)
{
	*start_va = f->nloads ? f->loads[0].va : 0;
	*end_va = f->nloads ? f->end_va : 0;
}

int elf_off_va(const struct elf *f, uint64_t off, uint64_t *va)
{
	for (uint32_t i = 0; i < f->nloads; i++) {
		const struct elf_load *l = &f->loads[i];

		if (off < l->off || off - l->off >= l->bytes)
			continue;
		*va = l->va + (off - l->off);
		return 0;
	}
	return -ENOENT;
}

int elf_read_va(const struct elf *f, uint64_t va, void *buf, size_t n)
{
	const struct elf_load *l = elf_load_at(f, va, n);

	return l ? elf_pread(f, l->off + (va - l->va), buf, n) : -ENOENT;
}

int elf_read_kept_va(const struct elf *f, uint64_t va, void *buf, size_t n)
{
	const struct elf_load *l = elf_load_at(f, va, n);

	return l ? elf_pread_kept(f, l->off + (va - l->va), buf, n) : -ENOENT;
}

/* Reads a string in [off, end_off) through `read`. */
static int read_str(const struct elf *f, elf_pread_fn read, uint64_t off, uint64_t end_off, char *buf, size_t max)
{
	size_t len = 0;

	if (!max)
		return -EINVAL;
	buf[0] = '\0';
	if (off >= end_off)
		return -ENOENT;
	if (max > INT32_MAX)
		max = INT32_MAX;
	if (max - 1 > end_off - off)
		max = (size_t)(end_off - off) + 1;
	/* Most strings are short, so do not read the whole of a large buffer. */
	while (len < max - 1) {
		size_t n = max - 1 - len < 128 ? max - 1 - len : 128;
		int err = read(f, off + len, buf + len, n);
		char *end = err ? NULL : memchr(buf + len, '\0', n);

		if (err)
			buf[0] = '\0';
		if (err || end)
			return err ? err : (int)(end - buf);
		len += n;
	}
	buf[len] = '\0';
	return (int)len;
}

int elf_read_str_va(const struct elf *f, uint64_t va, char *buf, size_t max)
{
	const struct elf_load *l = elf_load_at(f, va, 1);

	if (max)
		buf[0] = '\0';
	if (!max || !l)
		return max ? -ENOENT : -EINVAL;
	return read_str(f, elf_pread, l->off + (va - l->va), l->off + l->bytes, buf, max);
}

int elf_read_str_kept(const struct elf *f, uint64_t off, char *buf, size_t max)
{
	return read_str(f, elf_pread_kept, off, f->size_bytes, buf, max);
}
