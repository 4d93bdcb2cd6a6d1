// SPDX-License-Identifier: Apache-2.0
#include "insn/insn.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "insn/priv.h"

struct decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static int decode(const uint8_t *code, size_t size, struct decoded *d)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, size, &d->insn, d->ops)))
		return -EILSEQ;
	return 0;
}

/* Decodes without operands, for a walk over a whole function. */
static int decode_light(const ZydisDecoder *decoder, const uint8_t *code, size_t size, ZydisDecodedInstruction *insn)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, code, size, insn)) ? 0 : -EILSEQ;
}

static bool has_prefix(const ZydisDecodedInstruction *i, uint8_t value)
{
	for (unsigned p = 0; p < i->raw.prefix_count; p++)
		if (i->raw.prefixes[p].value == value)
			return true;
	return false;
}

/* jcc, jmp rel, call rel: the kernel emulates these. */
static bool is_branch(const ZydisDecodedInstruction *i)
{
	if (i->opcode_map == ZYDIS_OPCODE_MAP_0F)
		return i->opcode >= 0x80 && i->opcode <= 0x8f;
	return i->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
	       ((i->opcode >= 0x70 && i->opcode <= 0x7f) || i->opcode == 0xeb || i->opcode == 0xe9 ||
		i->opcode == 0xe8);
}

/*
 * The kernel looks only at the opcode byte and ignores the encoding. On Linux 6.18 it executes a probed vpshufd (70) as
 * a conditional jump.
 */
static bool not_legacy(const ZydisDecodedInstruction *i)
{
	return i->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
}

/* es, cs, ss, ds, lock: the kernel refuses these, and then the whole link fails. */
static bool prefix_refused(const ZydisDecodedInstruction *i)
{
	static const uint8_t refused[] = {0x26, 0x2e, 0x36, 0x3e, 0xf0};

	for (size_t p = 0; p < sizeof(refused); p++)
		if (has_prefix(i, refused[p]))
			return true;
	return false;
}

static bool branch_of_16_bits(const ZydisDecodedInstruction *i)
{
	return is_branch(i) && has_prefix(i, 0x66);
}

/*
 * Linux rewrites any 5-byte nop into a call, which overwrites the red zone of a leaf function. Newer kernels also treat
 * a jump to the next instruction, and lea and mov of a register to itself, as nops.
 */
static bool nop_of_5_bytes(const ZydisDecodedInstruction *i)
{
	if (i->length != 5)
		return false;
	return i->mnemonic == ZYDIS_MNEMONIC_NOP || (i->mnemonic == ZYDIS_MNEMONIC_JMP && !i->raw.imm[0].value.s) ||
	       (i->mnemonic == ZYDIS_MNEMONIC_LEA && i->raw.disp.size && !i->raw.disp.value) ||
	       (i->mnemonic == ZYDIS_MNEMONIC_MOV && i->raw.modrm.mod == 3 && i->raw.modrm.reg == i->raw.modrm.rm);
}

/* xchg with r8: Linux 6.18 takes its opcode 90 for a nop and skips the exchange. */
static bool nop_that_is_none(const ZydisDecodedInstruction *i)
{
	return i->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && i->opcode == 0x90 && i->mnemonic == ZYDIS_MNEMONIC_XCHG;
}

/* The kernel steps each iteration: a rep stos of 16 made 16 hits on Linux 6.18. */
static bool repeated(const ZydisDecodedInstruction *i)
{
	return i->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

/*
 * The kernel refuses traps, port I/O and mov to ss. It single-steps pushf and syscall, and the trap flag in the pushed
 * word then crashes the target (both seen on Linux 6.18).
 */
static bool unsafe_opcode(const ZydisDecodedInstruction *i)
{
	static const struct {
		ZydisOpcodeMap map;
		uint8_t first, last;
	} refused[] = {
		{ZYDIS_OPCODE_MAP_DEFAULT, 0x6c, 0x6f}, {ZYDIS_OPCODE_MAP_DEFAULT, 0x8e, 0x8e},
		{ZYDIS_OPCODE_MAP_DEFAULT, 0x9c, 0x9c}, {ZYDIS_OPCODE_MAP_DEFAULT, 0xcc, 0xcf},
		{ZYDIS_OPCODE_MAP_DEFAULT, 0xe4, 0xe7}, {ZYDIS_OPCODE_MAP_DEFAULT, 0xec, 0xef},
		{ZYDIS_OPCODE_MAP_DEFAULT, 0xf1, 0xf1}, {ZYDIS_OPCODE_MAP_DEFAULT, 0xf4, 0xf4},
		{ZYDIS_OPCODE_MAP_DEFAULT, 0xfa, 0xfb}, {ZYDIS_OPCODE_MAP_0F, 0x05, 0x05},
		{ZYDIS_OPCODE_MAP_0F, 0x07, 0x07},	{ZYDIS_OPCODE_MAP_0F, 0x34, 0x35},
	};

	for (size_t r = 0; r < sizeof(refused) / sizeof(*refused); r++)
		if (i->opcode_map == refused[r].map && i->opcode >= refused[r].first && i->opcode <= refused[r].last)
			return true;
	return false;
}

static bool push_of_register(const ZydisDecodedInstruction *i)
{
	if (i->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT || i->opcode < 0x50 || i->opcode > 0x57)
		return false;
	return i->length == 1 || (i->length == 2 && i->raw.prefixes[0].value == 0x41);
}

/* Only opcode 90, because kernels differ in which longer nops they emulate. */
static bool nop_of_1_byte(const ZydisDecodedInstruction *i)
{
	return i->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && i->opcode == 0x90;
}

/* The first matching row decides. Without one, the kernel single-steps the instruction. */
static const struct {
	bool (*matches)(const ZydisDecodedInstruction *i);
	enum insn_cost cost;
} rules[] = {
	{not_legacy, INSN_REFUSED},	{prefix_refused, INSN_REFUSED},	  {branch_of_16_bits, INSN_REFUSED},
	{nop_of_5_bytes, INSN_REFUSED}, {nop_that_is_none, INSN_REFUSED}, {unsafe_opcode, INSN_REFUSED},
	{repeated, INSN_REFUSED},	{is_branch, INSN_EMULATED},	  {push_of_register, INSN_EMULATED},
	{nop_of_1_byte, INSN_EMULATED},
};

enum insn_cost insn_cost_of(const ZydisDecodedInstruction *i)
{
	for (size_t r = 0; r < sizeof(rules) / sizeof(*rules); r++)
		if (rules[r].matches(i))
			return rules[r].cost;
	return INSN_STEPPED;
}

int insn_classify(const uint8_t *code, size_t size, enum insn_cost *cost, uint32_t *len)
{
	struct decoded d;
	int err = decode(code, size, &d);

	if (err)
		return err;
	*cost = insn_cost_of(&d.insn);
	*len = d.insn.length;
	return 0;
}

int insn_is_boundary(const uint8_t *code, size_t size, size_t delta)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	size_t at = 0;

	if (delta >= size)
		return 0;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (; at <= delta; at += insn.length) {
		if (decode_light(&decoder, code + at, size - at, &insn))
			return -EILSEQ;
		if (at == delta)
			return 1;
	}
	return 0;
}

static bool is_padding(const ZydisDecodedInstruction *i)
{
	return i->mnemonic == ZYDIS_MNEMONIC_ENDBR64 || i->mnemonic == ZYDIS_MNEMONIC_NOP;
}

static bool may_write(ZydisRegister reg)
{
	static const ZydisRegister entry_state[] = {
		ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX, ZYDIS_REGISTER_RCX,
		ZYDIS_REGISTER_R8,  ZYDIS_REGISTER_R9,	ZYDIS_REGISTER_RSP,
	};
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	for (size_t r = 0; r < sizeof(entry_state) / sizeof(*entry_state); r++)
		if (whole == entry_state[r])
			return false;
	return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64 ||
	       ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_FLAGS;
}

static bool compares(const struct decoded *d)
{
	return d->insn.mnemonic == ZYDIS_MNEMONIC_CMP || d->insn.mnemonic == ZYDIS_MNEMONIC_TEST;
}

/*
 * Returns true if a probe after this instruction sees the same arguments and memory as one before it. Of instructions
 * that read memory, only comparisons qualify, because they change only flags.
 */
static bool keeps_entry_state(const struct decoded *d)
{
	ZydisInstructionCategory c = d->insn.meta.category;

	if (is_padding(&d->insn))
		return true;
	if (c != ZYDIS_CATEGORY_DATAXFER && c != ZYDIS_CATEGORY_LOGICAL && c != ZYDIS_CATEGORY_BINARY &&
	    d->insn.mnemonic != ZYDIS_MNEMONIC_LEA)
		return false;
	for (unsigned o = 0; o < d->insn.operand_count; o++) {
		const ZydisDecodedOperand *op = &d->ops[o];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.type != ZYDIS_MEMOP_TYPE_AGEN && !compares(d))
			return false;
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    !may_write(op->reg.value))
			return false;
	}
	return true;
}

/* Jump tables have an index; a single pointer is relative to the instruction. */
static bool through_pointer(const ZydisDecodedInstruction *insn)
{
	return insn->raw.modrm.mod == 0 && insn->raw.modrm.rm == 5;
}

/*
 * Returns true if a branch of the function may lead into (0, to], because a probe at `to` would then count wrong.
 * Branches with an unknown target count as leading there, except with only_padding: no indirect jump leads to a nop.
 * A jump through one pointer of the library's data is a tail call.
 */
static bool comes_back(const uint8_t *code, size_t size, size_t to, bool only_padding)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t at = 0; at < size; at += insn.length) {
		int64_t target;

		if (decode_light(&decoder, code + at, size - at, &insn))
			return true;
		if (insn.mnemonic == ZYDIS_MNEMONIC_JMP && !insn.raw.imm[0].is_relative && !only_padding &&
		    !through_pointer(&insn))
			return true;
		if (!insn.raw.imm[0].is_relative)
			continue;
		target = (int64_t)(at + insn.length) + insn.raw.imm[0].value.s;
		if (target > 0 && target <= (int64_t)to)
			return true;
	}
	return false;
}

static void insn_describe(const struct decoded *d, uint64_t va, struct insn_entry *out)
{
	ZydisFormatter formatter;

	out->cost = insn_cost_of(&d->insn);
	ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
	if (!ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &d->insn, d->ops, d->insn.operand_count_visible,
							  out->text, sizeof(out->text), va, NULL)))
		out->text[0] = '\0';
}

/* Returns the offset of the first emulated instruction that sees the state of the entry, or 0. */
static size_t find_slide(const uint8_t *code, size_t size, bool *only_padding)
{
	struct decoded d;
	size_t at = 0;

	*only_padding = true;
	while (!decode(code + at, size - at, &d)) {
		if (insn_cost_of(&d.insn) == INSN_EMULATED)
			return at;
		if (!keeps_entry_state(&d))
			break;
		*only_padding &= is_padding(&d.insn);
		at += d.insn.length;
	}
	return 0;
}

int insn_place_entry(const uint8_t *code, size_t size, uint64_t va, struct insn_entry *out, struct err *e)
{
	bool only_padding;
	struct decoded d;
	size_t slide;

	memset(out, 0, sizeof(*out));
	if (decode(code, size, &d))
		return err_set(e, ERR_TARGET, -EILSEQ, "no instruction at the function's start (0x%llx)",
			       (unsigned long long)va);
	insn_describe(&d, va, out);
	if (out->cost == INSN_EMULATED)
		return 0;
	slide = find_slide(code, size, &only_padding);
	if (slide && !comes_back(code, size, slide, only_padding) && !decode(code + slide, size - slide, &d)) {
		out->delta_bytes = (uint32_t)slide;
		insn_describe(&d, va + slide, out);
		return 0;
	}
	if (out->cost == INSN_REFUSED)
		return err_set(e, ERR_TARGET, -ENOTSUP, "the first instruction (%s) cannot be probed safely",
			       out->text);
	return 0;
}
