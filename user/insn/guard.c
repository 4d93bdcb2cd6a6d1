// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include "insn/walk.h"

#define CODE_BYTES   192
#define BEFORE_MOST  32 /* instructions before the test of the guard */
#define BRANCH_MOST  4	/* from the test to the branch */
#define ADDRESS_MOST 6	/* from there to the instruction with the guard's address */

static bool leaves(const ZydisDecodedInstruction *i)
{
	return i->meta.category == ZYDIS_CATEGORY_CALL || i->meta.category == ZYDIS_CATEGORY_RET ||
	       i->meta.category == ZYDIS_CATEGORY_UNCOND_BR || i->meta.category == ZYDIS_CATEGORY_COND_BR;
}

/* Returns the address relative to the code that an operand has, or 0. */
static uint64_t address_of(const struct walk *w, unsigned op)
{
	ZyanU64 va;

	if (op >= w->insn.operand_count_visible || w->ops[op].type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    w->ops[op].mem.base != ZYDIS_REGISTER_RIP ||
	    !ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&w->insn, &w->ops[op], w->va, &va)))
		return 0;
	return va;
}

/* Returns the address of the byte that the instruction reads, or 0. */
static uint64_t byte_read(const struct walk *w)
{
	const bool compares = w->insn.mnemonic == ZYDIS_MNEMONIC_CMP;

	if (compares || w->insn.mnemonic == ZYDIS_MNEMONIC_MOVZX || w->insn.mnemonic == ZYDIS_MNEMONIC_MOV)
		return w->ops[!compares].size == 8 ? address_of(w, !compares) : 0;
	return 0;
}

/* Finds the byte that the code tests first, and where the code goes on if it is 0. Returns the latter, or 0. */
static uint64_t find_test(struct walk *w, uint64_t *byte_va)
{
	ZyanU64 to;
	unsigned i;

	*byte_va = 0;
	for (i = 0; !*byte_va && i < BEFORE_MOST && walk_next(w) && !leaves(&w->insn); i++)
		*byte_va = byte_read(w);
	for (i = 0; *byte_va && i < BRANCH_MOST && walk_next(w); i++) {
		if (w->insn.mnemonic == ZYDIS_MNEMONIC_JNZ)
			return w->va + w->insn.length;
		if (w->insn.mnemonic == ZYDIS_MNEMONIC_JZ)
			return ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&w->insn, &w->ops[0], w->va, &to)) ? to : 0;
		if (leaves(&w->insn))
			return 0;
	}
	return 0;
}

/* Returns whether the code takes an address before it calls anything. */
static bool takes(struct walk *w, uint64_t va)
{
	unsigned i;

	for (i = 0; i < ADDRESS_MOST && walk_next(w) && !leaves(&w->insn); i++)
		if (w->insn.mnemonic == ZYDIS_MNEMONIC_LEA && address_of(w, 1) == va)
			return true;
	return false;
}

int insn_guard(struct elf *f, uint64_t va, uint64_t *guard_va)
{
	struct elf_sym code = {.va = va, .size_bytes = CODE_BYTES};
	struct walk w;
	bool found = false;

	code.va = walk_begin(&w, f, &code, NULL) ? 0 : find_test(&w, guard_va);
	free(w.code);
	if (!code.va)
		return -ENOENT;
	found = !walk_begin(&w, f, &code, NULL) && takes(&w, *guard_va);
	free(w.code);
	return found ? 0 : -ENOENT;
}
