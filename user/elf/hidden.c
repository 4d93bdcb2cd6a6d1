// SPDX-License-Identifier: Apache-2.0
#include "elf/hidden.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "elf/image.h"
#include "elf/unwind.h"

#define BLOCK_BYTES (1u << 20)
#define TEXT_MAX    256
#define RELOCS_MAX  (16u << 20) /* the largest library seen has 1.5 million */
#define FOUND_MAX   64		/* limit of places with the same address */
#define LEA_BYTES   7
#define FUNC_MAX    (1u << 20)
#define ENTRY_CFA   8 /* offset of the CFA from rsp in a function that was just called */

/* A word of the image that the loader sets to an address in the image. */
struct elf_word {
	uint64_t va, value;
};

/* Distinct addresses. n may exceed FOUND_MAX, and then some are missing. */
struct found {
	uint64_t va[FOUND_MAX];
	unsigned n;
};

static void hidden_add(struct found *f, uint64_t va)
{
	for (unsigned i = 0; i < f->n && i < FOUND_MAX; i++)
		if (f->va[i] == va)
			return;
	if (f->n < FOUND_MAX)
		f->va[f->n] = va;
	f->n++;
}

static int hidden_fail(struct err *e, int err, const char *what, const char *name)
{
	return err_set(e, ERR_TARGET, err, "%s %s: %s", what, name,
		       err == -ENOENT	  ? "none in the library"
		       : err == -ENOTUNIQ ? "more than one"
					  : strerror(-err));
}

/* ---- words that the loader sets, read once */

static int cmp_word(const void *a, const void *b)
{
	const struct elf_word *x = a, *y = b;

	return x->va < y->va ? -1 : x->va > y->va;
}

static int put_word(const struct elf *f, const Elf64_Rela *r, struct buf *words)
{
	struct elf_word w = {.va = r->r_offset, .value = (uint64_t)r->r_addend};
	Elf64_Sym s;
	int err;

	if (ELF64_R_TYPE(r->r_info) != R_X86_64_RELATIVE) {
		if (ELF64_R_TYPE(r->r_info) != R_X86_64_64 && ELF64_R_TYPE(r->r_info) != R_X86_64_GLOB_DAT)
			return 0;
		err = elf_read_kept_va(f, f->symtab_va + ELF64_R_SYM(r->r_info) * sizeof(s), &s, sizeof(s));
		if (err)
			return err == -ENOENT || err == -ENODATA ? -EBADMSG : err;
		if (s.st_shndx == SHN_UNDEF)
			return 0;
		w.value += s.st_value;
	}
	if (buf_count(words, struct elf_word) == RELOCS_MAX)
		return -EBADMSG;
	return buf_put(words, &w, sizeof(w));
}

static int read_words(struct elf *f)
{
	const size_t whole = BLOCK_BYTES / sizeof(Elf64_Rela) * sizeof(Elf64_Rela);
	uint64_t va = f->rela_va, left = f->rela_va ? f->rela_bytes : 0;
	struct buf words = {0};
	char *block;
	int err = 0;

	if (f->words)
		return 0;
	block = malloc(BLOCK_BYTES);
	if (!block)
		return -ENOMEM;
	while (!err && left >= sizeof(Elf64_Rela)) {
		size_t n = left < whole ? (size_t)(left - left % sizeof(Elf64_Rela)) : whole;

		err = elf_read_va(f, va, block, n);
		for (size_t i = 0; !err && i < n; i += sizeof(Elf64_Rela))
			err = put_word(f, (const Elf64_Rela *)(block + i), &words);
		va += n;
		left -= n;
	}
	free(block);
	if (!err && !words.len)
		err = -ENOENT;
	if (err) {
		buf_fini(&words);
		return err == -ENODATA ? -EBADMSG : err;
	}
	f->words = (struct elf_word *)words.data;
	f->nwords = buf_count(&words, struct elf_word);
	qsort(f->words, f->nwords, sizeof(*f->words), cmp_word);
	return 0;
}

static const struct elf_word *word_at(const struct elf *f, uint64_t va)
{
	const struct elf_word key = {.va = va};

	return bsearch(&key, f->words, f->nwords, sizeof(key), cmp_word);
}

static void words_with(const struct elf *f, uint64_t value, struct found *out)
{
	for (size_t i = 0; i < f->nwords; i++)
		if (f->words[i].value == value)
			hidden_add(out, f->words[i].va);
}

/* ---- texts */

struct text_search {
	uint64_t off, va; /* the file offset `off` is mapped at va */
	struct found *out;
};

/* A match begins with the NUL before the text. */
static int on_text(void *ctx, uint64_t off)
{
	const struct text_search *s = ctx;

	hidden_add(s->out, s->va + (off - s->off) + 1);
	return 0;
}

/* Searches [off, off + bytes) of the file, which is mapped at va. */
static int find_text_in(const struct elf *f, uint64_t off, uint64_t bytes, uint64_t va, const char *want, size_t n,
			struct found *out)
{
	struct text_search s = {off, va, out};

	return elf_each_match(f, off, bytes, want, n, on_text, &s);
}

/* Finds the text in read-only data. The end of a longer text does not count. */
static int find_text(const struct elf *f, const char *text, struct found *out)
{
	size_t n = strlen(text) + 2;
	char want[TEXT_MAX + 2] = "";
	Elf64_Shdr sh;
	int err = elf_section_named(f, ".rodata", &sh);

	if (n > sizeof(want))
		return -ENAMETOOLONG;
	memcpy(want + 1, text, n - 1);
	if (!err && sh.sh_type != SHT_NOBITS && elf_load_at(f, sh.sh_addr, sh.sh_size)) {
		err = find_text_in(f, sh.sh_offset, sh.sh_size, sh.sh_addr, want, n, out);
		return err ? err : out->n ? 0 : -ENOENT;
	}
	/* Without section headers, read-only data may be between the code or in a segment of its own. */
	err = err == -ENOENT ? 0 : err;
	for (uint32_t i = 0; !err && i < f->nloads; i++)
		if (!(f->loads[i].flags & PF_W))
			err = find_text_in(f, f->loads[i].off, f->loads[i].bytes, f->loads[i].va, want, n, out);
	return err ? err : out->n ? 0 : -ENOENT;
}

/* ---- functions */

/* Finds the function that begins at va (at_start) or whose code contains va. */
static int func_of(struct elf *f, uint64_t va, bool at_start, struct elf_sym *sym)
{
	struct buf cfas = {0};
	const struct elf_cfa *first;
	struct elf_fde fde;
	uint64_t off;
	int err = elf_fde_find(f, va, &fde, NULL);

	if (!err)
		err = elf_fde_cfas(f, &fde, &cfas, NULL);
	first = (const struct elf_cfa *)cfas.data;
	/* A cold part of a function has an entry of its own, whose first frame is that of the running function. */
	if (!err && ((at_start && fde.start_va != va) || !cfas.len || first->base != ELF_CFA_RSP ||
		     first->off != ENTRY_CFA || elf_exec_off(f, fde.start_va, &off)))
		err = -ENOENT;
	buf_fini(&cfas);
	if (!err)
		*sym = (struct elf_sym){fde.start_va, fde.end_va - fde.start_va, ELF_SYM_FUNC};
	return err;
}

static bool no_offset_to_object(const struct elf *f, uint64_t va)
{
	uint64_t offset;

	return !word_at(f, va) && !elf_read_kept_va(f, va, &offset, sizeof(offset)) && !offset;
}

/*
 * A type_info is the address of its own virtual table and that of the name. A virtual table is an offset, the type_info
 * and the functions.
 */
static int find_vtable(struct elf *f, const char *class_name, struct found *tables)
{
	struct found texts = {.n = 0}, names = {.n = 0}, uses = {.n = 0};
	int err = find_text(f, class_name, &texts);
	unsigned i;

	if (!err)
		err = read_words(f);
	for (i = 0; !err && i < texts.n && i < FOUND_MAX; i++)
		words_with(f, texts.va[i], &names);
	for (i = 0; !err && i < names.n && i < FOUND_MAX; i++)
		words_with(f, names.va[i] - 8, &uses);
	if (!err && (texts.n > FOUND_MAX || names.n > FOUND_MAX || uses.n > FOUND_MAX))
		err = -ENOTUNIQ;
	for (i = 0; !err && i < uses.n; i++) {
		const struct elf_word *first = word_at(f, uses.va[i] + 8);
		uint64_t off;

		if (first && no_offset_to_object(f, uses.va[i] - 8) && !elf_exec_off(f, first->value, &off))
			hidden_add(tables, uses.va[i] + 8);
	}
	return err;
}

static int one_vtable(struct elf *f, const char *class_name, uint64_t *va)
{
	struct found tables = {.n = 0};
	int err = find_vtable(f, class_name, &tables);

	if (!err && tables.n != 1)
		err = tables.n ? -ENOTUNIQ : -ENOENT;
	*va = err ? 0 : tables.va[0];
	return err;
}

int elf_find_vtable(struct elf *f, const char *class_name, uint64_t *va, struct err *e)
{
	int err = one_vtable(f, class_name, va);

	return err ? hidden_fail(e, err, "virtual table of", class_name) : 0;
}

int elf_find_virtual(struct elf *f, const char *class_name, unsigned slot, struct elf_sym *sym, struct err *e)
{
	const struct elf_word *word;
	uint64_t va;
	int err = one_vtable(f, class_name, &va);

	word = err ? NULL : word_at(f, va + 8ull * slot);
	if (!err)
		err = word ? func_of(f, word->value, true, sym) : -ENOENT;
	return err ? hidden_fail(e, err, "virtual table of", class_name) : 0;
}

/* Finds lea reg, [rip + disp] of one of the texts. */
static void users_in(const uint8_t *code, size_t bytes, uint64_t va, const struct found *texts, struct found *users)
{
	for (size_t at = 0; at + LEA_BYTES <= bytes; at++) {
		int32_t disp;

		if ((code[at] & 0xfb) != 0x48 || code[at + 1] != 0x8d || (code[at + 2] & 0xc7) != 5)
			continue;
		memcpy(&disp, code + at + 3, sizeof(disp));
		for (unsigned i = 0; i < texts->n && i < FOUND_MAX; i++)
			if (va + at + LEA_BYTES + (uint64_t)(int64_t)disp == texts->va[i])
				hidden_add(users, va + at);
	}
}

static int each_user(const struct elf *f, const struct found *texts, struct found *users)
{
	uint8_t *block = malloc(BLOCK_BYTES + LEA_BYTES - 1);
	int err = block ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < f->nloads; i++) {
		const struct elf_load *l = &f->loads[i];

		for (uint64_t at = 0; (l->flags & PF_X) && !err && at < l->bytes; at += BLOCK_BYTES) {
			uint64_t left = l->bytes - at;
			size_t n = left < BLOCK_BYTES + LEA_BYTES - 1 ? (size_t)left : BLOCK_BYTES + LEA_BYTES - 1;

			err = elf_pread(f, l->off + at, block, n);
			if (!err)
				users_in(block, n, l->va + at, texts, users);
		}
	}
	free(block);
	return err;
}

/*
 * Returns the function that contains the places. Places outside of functions do not count. There must be exactly one.
 */
static int one_func(struct elf *f, const struct found *places, bool at_start, struct elf_sym *sym)
{
	struct found funcs = {.n = 0};
	struct elf_sym s;

	if (places->n > FOUND_MAX)
		return -ENOTUNIQ;
	for (unsigned i = 0; i < places->n; i++) {
		int err = func_of(f, places->va[i], at_start, &s);

		if (err && err != -ENOENT)
			return err;
		if (err)
			continue;
		hidden_add(&funcs, s.va);
		*sym = s;
	}
	return funcs.n == 1 ? 0 : funcs.n ? -ENOTUNIQ : -ENOENT;
}

int elf_find_text_user(struct elf *f, const char *text, struct elf_sym *sym, struct err *e)
{
	struct found texts = {.n = 0}, users = {.n = 0};
	int err = find_text(f, text, &texts);

	if (!err)
		err = texts.n > FOUND_MAX ? -ENOTUNIQ : each_user(f, &texts, &users);
	if (!err)
		err = one_func(f, &users, false, sym);
	return err ? hidden_fail(e, err, "function with the text", text) : 0;
}

int elf_find_taken(struct elf *f, const struct elf_sym *by, struct elf_sym *sym, struct err *e)
{
	size_t n = by->size_bytes < FUNC_MAX ? (size_t)by->size_bytes : FUNC_MAX, at;
	struct found taken = {.n = 0};
	uint8_t *code = malloc(n + 1);
	int err = code ? elf_read_va(f, by->va, code, n) : -ENOMEM;

	if (!err)
		err = read_words(f);
	for (at = 0; !err && at + LEA_BYTES <= n; at++) {
		const struct elf_word *word;
		int32_t disp;
		uint64_t va;

		if ((code[at] & 0xfb) != 0x48 || (code[at + 1] != 0x8d && code[at + 1] != 0x8b) ||
		    (code[at + 2] & 0xc7) != 5)
			continue;
		memcpy(&disp, code + at + 3, sizeof(disp));
		va = by->va + at + LEA_BYTES + (uint64_t)(int64_t)disp;
		word = code[at + 1] == 0x8b ? word_at(f, va) : NULL;
		if (code[at + 1] == 0x8d || word)
			hidden_add(&taken, word ? word->value : va);
	}
	free(code);
	if (!err)
		err = one_func(f, &taken, true, sym);
	return err ? hidden_fail(e, err, "function whose address is taken by", "another") : 0;
}
