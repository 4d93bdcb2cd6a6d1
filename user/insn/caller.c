// SPDX-License-Identifier: Apache-2.0
#include "insn/caller.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/unwind.h"
#include "insn/priv.h"

#define CODE_BYTES_MAX (1u << 20)
#define REGS	       16
#define SPILLS	       8

/* The known content of a register or a stack word. */
struct value {
	uint8_t arg; /* number of the function's argument; 0: none */
	bool constant;
	uint64_t number;
};

struct state {
	struct value regs[REGS];
	struct {
		struct value v;
		int base; /* register; -1: not used */
		int64_t disp;
	} spills[SPILLS];
	unsigned next_spill;
};

static const ZydisRegister arg_regs[CALLER_ARGS] = {ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
						    ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8,  ZYDIS_REGISTER_R9};

static int reg_no(ZydisRegister r)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15 ? (int)whole - ZYDIS_REGISTER_RAX : -1;
}

static void caller_begin(struct state *s)
{
	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < SPILLS; i++)
		s->spills[i].base = -1;
	for (unsigned k = 0; k < CALLER_ARGS; k++)
		s->regs[reg_no(arg_regs[k])].arg = (uint8_t)(k + 1);
}

/*
 * Forgets caller-saved registers: after a call, and at code that is only reached by a jump, their contents are unknown.
 */
static void forget_scratch(struct state *s)
{
	static const ZydisRegister scratch[] = {ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_RDX,
						ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_R8,
						ZYDIS_REGISTER_R9,  ZYDIS_REGISTER_R10, ZYDIS_REGISTER_R11};

	for (size_t i = 0; i < sizeof(scratch) / sizeof(*scratch); i++)
		s->regs[reg_no(scratch[i])] = (struct value){0};
}

static struct value *spill(struct state *s, const ZydisDecodedOperand *op)
{
	int base = reg_no(op->mem.base);

	if (base != reg_no(ZYDIS_REGISTER_RSP) && base != reg_no(ZYDIS_REGISTER_RBP))
		return NULL;
	if (op->mem.index != ZYDIS_REGISTER_NONE)
		return NULL;
	for (unsigned i = 0; i < SPILLS; i++)
		if (s->spills[i].base == base && s->spills[i].disp == op->mem.disp.value)
			return &s->spills[i].v;
	return NULL;
}

static void store(struct state *s, const ZydisDecodedOperand *op, struct value v)
{
	struct value *known = spill(s, op);
	int base = reg_no(op->mem.base);

	if (known) {
		*known = v;
	} else if (v.arg && op->mem.index == ZYDIS_REGISTER_NONE &&
		   (base == reg_no(ZYDIS_REGISTER_RSP) || base == reg_no(ZYDIS_REGISTER_RBP))) {
		unsigned i = s->next_spill++ % SPILLS;

		s->spills[i].base = base;
		s->spills[i].disp = op->mem.disp.value;
		s->spills[i].v = v;
	}
}

/* Returns the value that a move puts into its first operand. */
static struct value moved(struct state *s, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops)
{
	const struct value *known = NULL;

	if (insn->mnemonic == ZYDIS_MNEMONIC_XOR && ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[0].reg.value == ops[1].reg.value)
		return (struct value){.constant = true};
	if (insn->mnemonic != ZYDIS_MNEMONIC_MOV)
		return (struct value){0};
	if (ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return (struct value){.constant = true, .number = ops[1].imm.value.u};
	if (insn->operand_width == 64 && ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER && reg_no(ops[1].reg.value) >= 0)
		known = &s->regs[reg_no(ops[1].reg.value)];
	else if (insn->operand_width == 64 && ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY)
		known = spill(s, &ops[1]);
	return known ? *known : (struct value){0};
}

static void written(struct state *s, int reg, struct value v)
{
	s->regs[reg] = v;
	for (unsigned i = 0; i < SPILLS;
	     i++) /* the base register has changed, so the word is no longer at this place */
		if (s->spills[i].base == reg)
			s->spills[i].base = -1;
}

/*
 * Returns true for an instruction of an epilogue. It restores registers of the caller, but the code after it in the
 * file still runs with the frame as before.
 */
static bool epilogue(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_POP || insn->mnemonic == ZYDIS_MNEMONIC_LEAVE ||
	       (insn->mnemonic == ZYDIS_MNEMONIC_ADD && ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		ops[0].reg.value == ZYDIS_REGISTER_RSP);
}

static void caller_step(struct state *s, const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops)
{
	const struct value unknown = {0};
	struct value v = moved(s, insn, ops);

	if (insn->mnemonic == ZYDIS_MNEMONIC_CALL || insn->mnemonic == ZYDIS_MNEMONIC_JMP ||
	    insn->mnemonic == ZYDIS_MNEMONIC_RET) {
		forget_scratch(s);
		return;
	}
	if (epilogue(insn, ops))
		return;
	for (unsigned i = 0; i < insn->operand_count; i++) {
		if (!(ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && reg_no(ops[i].reg.value) >= 0)
			written(s, reg_no(ops[i].reg.value), i ? unknown : v);
		else if (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
			store(s, &ops[i], i ? unknown : v);
	}
}

static bool hands_on(const struct state *s, const struct caller_shape *shape)
{
	for (unsigned k = 0; k < CALLER_ARGS; k++)
		if (shape->hands_on[k] && s->regs[reg_no(arg_regs[k])].arg != shape->hands_on[k])
			return false;
	return true;
}

static bool given(const struct state *s, const struct caller_shape *shape)
{
	const struct value *v = &s->regs[reg_no(arg_regs[1])];

	return v->constant && v->number == shape->given;
}

/*
 * Walks in the order of addresses over all branches. A register that is written anywhere on the way counts as lost.
 * Compilers write a register only once if they reserve it for the whole function.
 */
static int caller_walk(const uint8_t *code, size_t size, size_t call, const struct caller_shape *shape,
		       struct caller *out)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	struct state s;

	caller_begin(&s);
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t at = 0; at < size; at += insn.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, size - at, &insn, ops)))
			break;
		if ((at < call && at + insn.length > call) || (at == call && insn.mnemonic != ZYDIS_MNEMONIC_CALL))
			return -ENOENT;
		if (at == call)
			out->return_va = out->start_va + at + insn.length;
		if (at >= call && (!shape || (at == call && !given(&s, shape))))
			return 0;
		if (at > call && insn.mnemonic == ZYDIS_MNEMONIC_CALL && !insn.raw.imm[0].is_relative &&
		    hands_on(&s, shape)) {
			out->shaped = true;
			return 0;
		}
		caller_step(&s, &insn, ops);
	}
	return out->return_va ? 0 : -ENOENT;
}

/*
 * Finds the frame address at the call. A part of a function that is entered by a jump has a frame at its first
 * instruction already.
 */
static int find_frame(const struct elf *elf, const struct elf_fde *fde, uint64_t call_va, struct caller *out)
{
	const struct elf_cfa *cfa = NULL;
	struct buf cfas = {0};
	int err = elf_fde_cfas(elf, fde, &cfas, NULL);
	size_t i;

	for (i = 0; !err && i < buf_count(&cfas, struct elf_cfa); i++)
		if (buf_at(&cfas, struct elf_cfa, i)->va <= call_va)
			cfa = buf_at(&cfas, struct elf_cfa, i);
	if (!err && (!cfa || buf_at(&cfas, struct elf_cfa, 0)->base != ELF_CFA_RSP ||
		     buf_at(&cfas, struct elf_cfa, 0)->off != 8))
		err = -ENOENT;
	if (!err && cfa->base == ELF_CFA_OTHER)
		err = -ENOTSUP;
	if (!err) {
		out->cfa_base = cfa->base; /* the enums have the same numbers; cut.c asserts it */
		out->cfa_off = cfa->off;
	}
	buf_fini(&cfas);
	return err;
}

int caller_find(struct elf *elf, uint64_t call_va, const struct caller_shape *shape, struct caller *out)
{
	struct elf_fde fde;
	int err = elf_fde_find(elf, call_va, &fde, NULL);
	uint8_t *code;
	size_t size;

	*out = (struct caller){.start_va = fde.start_va, .end_va = fde.end_va};
	size = err ? 0 : (size_t)(fde.end_va - fde.start_va);
	if (err || size > CODE_BYTES_MAX)
		return err ? err : -ENOTSUP;
	err = find_frame(elf, &fde, call_va, out);
	if (err)
		return err;
	code = malloc(size);
	if (!code)
		return -ENOMEM;
	err = elf_read_va(elf, fde.start_va, code, size);
	if (!err)
		err = caller_walk(code, size, (size_t)(call_va - fde.start_va), shape, out);
	free(code);
	return err;
}
