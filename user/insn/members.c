// SPDX-License-Identifier: Apache-2.0
#include "insn/members.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "insn/walk.h"

#define OFF_MAX	   65536 /* limit of a member's offset */
#define SUB_WITHIN 4	 /* instructions after the call */

static bool is_member(const ZydisDecodedOperand *op, ZydisRegister base, int32_t *off)
{
	const int64_t disp = op->mem.disp.has_displacement ? op->mem.disp.value : 0;

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.base == ZYDIS_REGISTER_NONE ||
	    op->mem.base == ZYDIS_REGISTER_RIP || op->mem.base == ZYDIS_REGISTER_RSP ||
	    (base != ZYDIS_REGISTER_NONE && op->mem.base != base) || op->mem.index != ZYDIS_REGISTER_NONE ||
	    op->mem.segment == ZYDIS_REGISTER_FS || disp < 0 || disp > OFF_MAX)
		return false;
	*off = (int32_t)disp;
	return true;
}

static ZydisRegister members_whole(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER
		       ? ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value)
		       : ZYDIS_REGISTER_NONE;
}

static bool find_returned(struct walk *w, unsigned loads, int32_t *off)
{
	ZydisRegister from = ZYDIS_REGISTER_RDI;
	unsigned n = 0;

	while (walk_next(w) && w->insn.mnemonic != ZYDIS_MNEMONIC_RET) {
		if (w->insn.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
			continue;
		if ((w->insn.mnemonic != ZYDIS_MNEMONIC_MOV && w->insn.mnemonic != ZYDIS_MNEMONIC_MOVZX) ||
		    members_whole(&w->ops[0]) == ZYDIS_REGISTER_NONE || !is_member(&w->ops[1], from, off) ||
		    (++n < loads && w->ops[1].size != 64))
			return false;
		from = members_whole(&w->ops[0]);
	}
	return n == loads && from == ZYDIS_REGISTER_RAX && w->insn.mnemonic == ZYDIS_MNEMONIC_RET;
}

/* Follows addresses of members, or bytes of them, in registers. A call leaves only those that a function keeps. */
struct followed {
	ZydisMnemonic begins; /* LEA: addresses; MOVZX: bytes */
	int32_t off[16];
	uint32_t known; /* bit k: off[k] */
};

static int members_bit(ZydisRegister reg)
{
	return reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15 ? (int)(reg - ZYDIS_REGISTER_RAX) : -1;
}

static void members_follow(const struct walk *w, struct followed *f)
{
	const uint32_t kept = 1u << 3 | 1u << 5 | 0xf000; /* rbx, rbp, r12 to r15 */
	const int to = members_bit(members_whole(&w->ops[0])), from = members_bit(members_whole(&w->ops[1]));
	const bool copies = w->insn.mnemonic == ZYDIS_MNEMONIC_MOV && from >= 0 && f->known & 1u << from;
	int32_t off = copies ? f->off[from] : 0;
	unsigned i;
	int bit;

	for (i = 0; i < w->insn.operand_count; i++) {
		bit = members_bit(members_whole(&w->ops[i]));
		if (bit >= 0 && w->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			f->known &= ~(1u << bit);
	}
	if (w->insn.meta.category == ZYDIS_CATEGORY_CALL)
		f->known &= kept;
	if (to < 0 || !(copies || (w->insn.mnemonic == f->begins && is_member(&w->ops[1], ZYDIS_REGISTER_NONE, &off))))
		return;
	f->off[to] = off;
	f->known |= 1u << to;
}

static bool find_passed(struct walk *w, ZydisRegister arg, ZydisMnemonic begins, const char *callee, int32_t *off)
{
	struct followed f = {.begins = begins};
	const int bit = members_bit(arg);

	while (walk_next(w)) {
		if (f.known & 1u << bit && walk_calls(w, callee)) {
			*off = f.off[bit];
			return true;
		}
		members_follow(w, &f);
	}
	return false;
}

static bool find_tested(struct walk *w, int32_t *off)
{
	while (walk_next(w))
		if (w->insn.mnemonic == ZYDIS_MNEMONIC_CMP && w->ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		    !w->ops[1].imm.value.u && w->ops[0].size == 64 && is_member(&w->ops[0], ZYDIS_REGISTER_NONE, off))
			return true;
	return false;
}

static bool find_subtracted(struct walk *w, const char *callee, int32_t *off)
{
	unsigned after = 0;

	while (walk_next(w)) {
		if (walk_calls(w, callee))
			after = SUB_WITHIN + 1;
		else if (after && w->insn.mnemonic == ZYDIS_MNEMONIC_SUB &&
			 walk_is_reg(&w->ops[0], ZYDIS_REGISTER_RAX) && is_member(&w->ops[1], ZYDIS_REGISTER_NONE, off))
			return true;
		after -= after > 0;
	}
	return false;
}

static bool find_stored(struct walk *w, int32_t *off)
{
	bool first = false, second = false;
	int32_t next = 0;

	while (!(first && second) && walk_next(w) && w->insn.meta.category != ZYDIS_CATEGORY_CALL) {
		if (w->insn.mnemonic != ZYDIS_MNEMONIC_MOV)
			continue;
		if (walk_is_reg(&w->ops[1], ZYDIS_REGISTER_ESI))
			first |= is_member(&w->ops[0], ZYDIS_REGISTER_RDI, off);
		else if (walk_is_reg(&w->ops[1], ZYDIS_REGISTER_EDX))
			second |= is_member(&w->ops[0], ZYDIS_REGISTER_RDI, &next);
	}
	return first && second && next == *off + 4;
}

static bool find_text(struct walk *w, int32_t *off)
{
	int32_t at[2] = {0};
	unsigned n = 0;

	while (n < 2 && walk_next(w) && w->insn.meta.category != ZYDIS_CATEGORY_CALL)
		if (w->insn.mnemonic == ZYDIS_MNEMONIC_MOV && w->ops[1].size == 64 &&
		    is_member(&w->ops[1], ZYDIS_REGISTER_RSI, &at[n]))
			n++;
	*off = at[0];
	return n == 2 && at[1] == at[0] + 8;
}

static bool find_member(struct walk *w, enum members_how how, const char *of, int32_t *off)
{
	switch (how) {
	case MEMBERS_RETURNED:
		return find_returned(w, 1, off);
	case MEMBERS_BEHIND:
		return find_returned(w, 2, off);
	case MEMBERS_FIRST:
		return find_passed(w, ZYDIS_REGISTER_RDI, ZYDIS_MNEMONIC_LEA, of, off);
	case MEMBERS_SECOND:
		return find_passed(w, ZYDIS_REGISTER_RSI, ZYDIS_MNEMONIC_LEA, of, off);
	case MEMBERS_BYTE:
		return find_passed(w, ZYDIS_REGISTER_RDI, ZYDIS_MNEMONIC_MOVZX, of, off);
	case MEMBERS_TESTED:
		return find_tested(w, off);
	case MEMBERS_SUBTRACTED:
		return find_subtracted(w, of, off);
	case MEMBERS_STORED:
		return find_stored(w, off);
	case MEMBERS_TEXT:
		return find_text(w, off);
	}
	return false;
}

int members_find(struct elf *elf, const struct elf_sym *func, enum members_how how, const char *of, int32_t *off,
		 struct err *e)
{
	struct walk w;
	int err = walk_begin(&w, elf, func, e);

	if (!err && !find_member(&w, how, of, off))
		err = err_set(e, ERR_TARGET, -EILSEQ, "its code has an unknown form");
	free(w.code);
	return err;
}
