// SPDX-License-Identifier: Apache-2.0
/* Finds the callers of a function by searching for its address in the displacements of call instructions. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf.h"
#include "elf/image.h"
#include "elf/names.h"

#define BLOCK_BYTES (1u << 20)
#define CALL_BYTES  5
#define PLT_MAX	    (64u << 20)
#define SLOTS_MAX   8
#define TARGETS_MAX 16

struct targets {
	uint64_t va[TARGETS_MAX];
	unsigned n; /* may exceed TARGETS_MAX; then the search is incomplete and fails */
};

static void add_target(struct targets *t, uint64_t va)
{
	if (t->n < TARGETS_MAX)
		t->va[t->n] = va;
	t->n++;
}

/* Finds stubs of the form [endbr64] [bnd] jmp *slot(%rip). A caller may use each start address of such a stub. */
static void stubs_in(const uint8_t *code, uint64_t bytes, uint64_t va, uint64_t slot, struct targets *t)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

	for (uint64_t at = 0; at + 6 <= bytes; at++) {
		uint64_t start = at;
		int32_t disp;

		if (code[at] != 0xff || code[at + 1] != 0x25)
			continue;
		memcpy(&disp, code + at + 2, sizeof(disp));
		if (va + at + 6 + (uint64_t)(int64_t)disp != slot)
			continue;
		add_target(t, va + start);
		if (start && code[start - 1] == 0xf2)
			add_target(t, va + --start);
		if (start >= sizeof(endbr64) && !memcmp(code + start - sizeof(endbr64), endbr64, sizeof(endbr64)))
			add_target(t, va + start - sizeof(endbr64));
	}
}

static int add_stubs(struct elf *f, const char *section, const uint64_t *slots, unsigned nslots, struct targets *t)
{
	Elf64_Shdr sh;
	uint8_t *code;
	int err = elf_section_named(f, section, &sh);

	if (err)
		return err == -ENOENT ? 0 : err;
	if (sh.sh_size > PLT_MAX)
		return -EBADMSG;
	code = malloc(sh.sh_size + 1);
	if (!code)
		return -ENOMEM;
	err = elf_pread(f, sh.sh_offset, code, sh.sh_size);
	for (unsigned i = 0; !err && i < nslots; i++)
		stubs_in(code, sh.sh_size, sh.sh_addr, slots[i], t);
	free(code);
	return err;
}

static int find_targets(struct elf *f, const char *name, struct targets *t)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got"};
	uint64_t slots[SLOTS_MAX];
	struct elf_sym sym;
	int n = elf_import_slots(f, name, slots, SLOTS_MAX), err = n < 0 ? n : 0;

	if (!elf_find_sym(f, name, &sym, NULL))
		add_target(t, sym.va);
	for (unsigned i = 0; !err && i < sizeof(sections) / sizeof(*sections); i++)
		err = add_stubs(f, sections[i], slots, (unsigned)n, t);
	if (n == SLOTS_MAX || t->n > TARGETS_MAX)
		err = -E2BIG;
	return err ? err : t->n ? 0 : -ENOENT;
}

/* Finds calls that begin within the block. The code continues for CALL_BYTES - 1 bytes after it. */
static int calls_in(const uint8_t *code, size_t bytes, uint64_t va, const struct targets *t,
		    int (*fn)(void *ctx, uint64_t va), void *ctx)
{
	const uint8_t *at = code;
	int ret = 0;

	while (!ret && at < code + bytes && (at = memchr(at, 0xe8, bytes - (size_t)(at - code)))) {
		uint64_t call = va + (uint64_t)(at - code);
		int32_t disp;

		memcpy(&disp, at + 1, sizeof(disp));
		for (unsigned i = 0; !ret && i < t->n; i++)
			if (call + CALL_BYTES + (uint64_t)(int64_t)disp == t->va[i])
				ret = fn(ctx, call);
		at++;
	}
	return ret;
}

static int each_call(struct elf *f, const struct targets *t, int (*fn)(void *ctx, uint64_t va), void *ctx)
{
	uint8_t *block = malloc(BLOCK_BYTES + CALL_BYTES - 1);
	int ret = block ? 0 : -ENOMEM;

	for (unsigned i = 0; !ret && i < f->nloads; i++) {
		const struct elf_load *l = &f->loads[i];

		if (!(l->flags & PF_X))
			continue;
		for (uint64_t at = 0; !ret && at + CALL_BYTES <= l->bytes; at += BLOCK_BYTES) {
			uint64_t left = l->bytes - at;
			size_t n = left < BLOCK_BYTES + CALL_BYTES - 1 ? (size_t)left : BLOCK_BYTES + CALL_BYTES - 1;

			ret = elf_pread(f, l->off + at, block, n);
			if (!ret)
				ret = calls_in(block, n - (CALL_BYTES - 1), l->va + at, t, fn, ctx);
		}
	}
	free(block);
	return ret;
}

int elf_each_call(struct elf *f, const char *name, int (*fn)(void *ctx, uint64_t va), void *ctx)
{
	struct targets t = {.n = 0};
	int err = find_targets(f, name, &t);

	return err ? err : each_call(f, &t, fn, ctx);
}

int elf_each_call_at(struct elf *f, uint64_t va, int (*fn)(void *ctx, uint64_t va), void *ctx)
{
	return each_call(f, &(struct targets){.va = {va}, .n = 1}, fn, ctx);
}
