// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdbool.h>

#include "elf/elf.h"
#include "insn/priv.h"

#define CODE_BYTES   192
#define BEFORE_MOST  32 /* instructions before the test of the guard */
#define BRANCH_MOST  4	/* from the test to the branch */
#define ADDRESS_MOST 6	/* from there to the guard's address */

/* Instructions in the order of addresses. */
struct walker {
	uint8_t code[CODE_BYTES];
	size_t at, size;
	uint64_t va; /* of insn */
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static bool begin(struct walker *w, const struct elf *f, uint64_t va)
{
	*w = (struct walker){.size = CODE_BYTES, .va = va};
	while (w->size && elf_read_va(f, va, w->code, w->size))
		w->size /= 2; /* the segment ends */
	return ZYAN_SUCCESS(ZydisDecoderInit(&w->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
}

static bool next(struct walker *w)
{
	w->va += w->insn.length;
	w->at += w->insn.length;
	return w->at < w->size &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(&w->decoder, w->code + w->at, w->size - w->at, &w->insn, w->ops));
}

static bool leaves(const ZydisDecodedInstruction *i)
{
	return i->meta.category == ZYDIS_CATEGORY_CALL || i->meta.category == ZYDIS_CATEGORY_RET ||
	       i->meta.category == ZYDIS_CATEGORY_UNCOND_BR || i->meta.category == ZYDIS_CATEGORY_COND_BR;
}

/* Returns the address relative to the code that an operand has, or 0. */
static uint64_t address_of(const struct walker *w, unsigned op)
{
	ZyanU64 va;

	if (op >= w->insn.operand_count_visible || w->ops[op].type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    w->ops[op].mem.base != ZYDIS_REGISTER_RIP ||
	    !ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&w->insn, &w->ops[op], w->va, &va)))
		return 0;
	return va;
}

/* Returns the address of the byte that the instruction reads, or 0. */
static uint64_t byte_read(const struct walker *w)
{
	const bool compares = w->insn.mnemonic == ZYDIS_MNEMONIC_CMP;

	if (compares || w->insn.mnemonic == ZYDIS_MNEMONIC_MOVZX || w->insn.mnemonic == ZYDIS_MNEMONIC_MOV)
		return w->ops[!compares].size == 8 ? address_of(w, !compares) : 0;
	return 0;
}

/* Returns the address where the code goes on that makes the variable, or 0. */
static uint64_t maker(struct walker *w)
{
	ZyanU64 to;
	unsigned i;

	for (i = 0; i < BRANCH_MOST && next(w); i++) {
		if (w->insn.mnemonic == ZYDIS_MNEMONIC_JNZ)
			return w->va + w->insn.length;
		if (w->insn.mnemonic == ZYDIS_MNEMONIC_JZ)
			return ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&w->insn, &w->ops[0], w->va, &to)) ? to : 0;
		if (leaves(&w->insn))
			return 0;
	}
	return 0;
}

int insn_guard(const struct elf *f, uint64_t va, uint64_t *guard_va)
{
	struct walker w;
	uint64_t guard = 0;
	unsigned i;

	if (!begin(&w, f, va))
		return -ENOENT;
	for (i = 0; !guard && i < BEFORE_MOST && next(&w) && !leaves(&w.insn); i++)
		guard = byte_read(&w);
	va = guard ? maker(&w) : 0;
	if (!va || !begin(&w, f, va))
		return -ENOENT;
	for (i = 0; i < ADDRESS_MOST && next(&w) && !leaves(&w.insn); i++)
		if (w.insn.mnemonic == ZYDIS_MNEMONIC_LEA && address_of(&w, 1) == guard) {
			*guard_va = guard;
			return 0;
		}
	return -ENOENT;
}
