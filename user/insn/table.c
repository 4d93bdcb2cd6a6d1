// SPDX-License-Identifier: Apache-2.0
/*
 * Reads jump tables. It follows the consecutive instructions before the jump and tracks each register, until the target
 * is "entry i of the table at T" and i was compared with a constant on the way. It accepts only what is proved this
 * way, because a missing case would hide a path.
 */
#include <errno.h>
#include <string.h>

#include "insn/cfg.h"
#include "insn/priv.h"

#define LOOK_BACK 64   /* limit in instructions */
#define CASES_MAX 4096 /* limit of one table; a function may have 16 times as many */

enum known {
	KNOWN_NOTHING, /* value number `id`, with unknown content */
	KNOWN_ADDRESS, /* base */
	KNOWN_SCALED,  /* id * scale */
	KNOWN_ENTRY,   /* entry `id` of the table at base, whose entries have `scale` bytes */
	KNOWN_TARGET,  /* base + entry `id` of the table at base, whose entries have 4 bytes */
};

struct value {
	enum known known;
	uint8_t scale;
	uint32_t id;
	uint32_t since; /* the first instruction that this relies on */
	uint64_t base;
};

#define NREGS 16

struct follow {
	struct cfg *g;
	struct value regs[NREGS];
	uint32_t at, next_id;
	/* The last comparison with a constant, while its flags are valid. */
	bool compared;
	uint32_t cmp_id, cmp_at;
	uint64_t cmp_imm;
	/* A word of the frame that was compared, until anything is written. */
	bool word_known;
	ZydisRegister word_base;
	int64_t word_disp;
	struct value word;
	/* Value bound_id is below bound since instruction bound_at. */
	uint32_t bound_id, bound_at;
	uint64_t bound;
};

struct decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

static struct value fresh(struct follow *f)
{
	return (struct value){.known = KNOWN_NOTHING, .id = f->next_id++, .since = f->at};
}

/* Returns the value of the register or of the register it is a part of; NULL: no general register. */
static struct value *reg_value(struct follow *f, ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64)
		return NULL;
	return &f->regs[ZydisRegisterGetId(whole)];
}

static bool is_frame_word(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.index == ZYDIS_REGISTER_NONE &&
	       (op->mem.base == ZYDIS_REGISTER_RBP || op->mem.base == ZYDIS_REGISTER_RSP);
}

static bool is_known_word(const struct follow *f, const ZydisDecodedOperand *op)
{
	return f->word_known && is_frame_word(op) && op->mem.base == f->word_base && op->mem.disp.value == f->word_disp;
}

/* Recognizes base + index * scale + disp as an entry of a table: one part is an address, the other a scaled value. */
static bool table_entry(struct follow *f, const ZydisDecodedOperand *op, struct value *out)
{
	const struct value *base = reg_value(f, op->mem.base), *index = reg_value(f, op->mem.index);
	struct value v = {.known = KNOWN_ENTRY, .scale = op->mem.scale, .since = f->at};
	const struct value *swap = base;

	if (op->mem.segment == ZYDIS_REGISTER_FS || op->mem.segment == ZYDIS_REGISTER_GS || !index)
		return false;
	if (index->known == KNOWN_ADDRESS && op->mem.scale == 1) {
		base = index;
		index = swap;
	}
	if (!index || (base && base->known != KNOWN_ADDRESS) || (!base && op->mem.base != ZYDIS_REGISTER_NONE))
		return false;
	if (index->known == KNOWN_SCALED)
		v.scale = (uint8_t)(op->mem.scale == 1 || swap == index ? index->scale : 0);
	else if (index->known != KNOWN_NOTHING)
		return false;
	v.id = index->id;
	v.base = (base ? base->base : 0) + (uint64_t)op->mem.disp.value;
	if (base && base->since < v.since)
		v.since = base->since;
	if (index->known == KNOWN_SCALED && index->since < v.since)
		v.since = index->since;
	*out = v;
	return v.scale * 8 == op->size;
}

static struct value loaded(struct follow *f, const ZydisDecodedOperand *op)
{
	struct value v;

	if (is_known_word(f, op))
		return f->word;
	return table_entry(f, op, &v) ? v : fresh(f);
}

static struct value address_of(struct follow *f, const struct decoded *d)
{
	const ZydisDecodedOperand *op = &d->ops[1];
	struct value v = fresh(f), *index = reg_value(f, op->mem.index);

	if (op->mem.base == ZYDIS_REGISTER_RIP) {
		v.known = KNOWN_ADDRESS;
		v.base = cfg_op(f->g, f->at)->va + d->insn.length + (uint64_t)op->mem.disp.value;
	} else if (index && op->mem.base == ZYDIS_REGISTER_NONE && !op->mem.disp.value &&
		   index->known == KNOWN_NOTHING) {
		v.known = KNOWN_SCALED;
		v.scale = op->mem.scale;
		v.id = index->id;
	}
	return v;
}

static struct value sum(struct follow *f, const struct value *a, const struct value *b)
{
	const struct value *entry = a->known == KNOWN_ENTRY ? a : b, *address = entry == a ? b : a;
	struct value v = fresh(f);

	if (entry->known != KNOWN_ENTRY || entry->scale != 4 || address->known != KNOWN_ADDRESS ||
	    address->base != entry->base)
		return v;
	v = *entry;
	v.known = KNOWN_TARGET;
	if (address->since < v.since)
		v.since = address->since;
	return v;
}

/* Returns the result of an instruction in its first operand, a register. */
static struct value result(struct follow *f, const struct decoded *d)
{
	const ZydisDecodedOperand *from = &d->ops[1];
	struct value *to = reg_value(f, d->ops[0].reg.value), *other;

	/* Writing part of a register keeps the rest. */
	if (d->ops[0].size < 32)
		return fresh(f);
	switch (d->insn.mnemonic) {
	case ZYDIS_MNEMONIC_LEA:
		return address_of(f, d);
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		if (from->type == ZYDIS_OPERAND_TYPE_MEMORY)
			return loaded(f, from);
		other = from->type == ZYDIS_OPERAND_TYPE_REGISTER ? reg_value(f, from->reg.value) : NULL;
		return other ? *other : fresh(f);
	case ZYDIS_MNEMONIC_CDQE:
		return *to;
	case ZYDIS_MNEMONIC_ADD:
		other = from->type == ZYDIS_OPERAND_TYPE_REGISTER ? reg_value(f, from->reg.value) : NULL;
		return other && d->ops[0].size == 64 ? sum(f, to, other) : fresh(f);
	default:
		return fresh(f);
	}
}

static void note_compare(struct follow *f, const struct decoded *d)
{
	const ZydisDecodedOperand *op = &d->ops[0];
	struct value *v = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? reg_value(f, op->reg.value) : NULL;

	f->compared = false;
	if (d->insn.mnemonic != ZYDIS_MNEMONIC_CMP || d->ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return;
	if (!v && is_frame_word(op)) {
		f->word_known = true;
		f->word_base = op->mem.base;
		f->word_disp = op->mem.disp.value;
		f->word = fresh(f);
		v = &f->word;
	}
	if (!v || v->known != KNOWN_NOTHING || d->ops[1].imm.value.s < 0)
		return;
	f->compared = true;
	f->cmp_id = v->id;
	f->cmp_at = f->at;
	f->cmp_imm = d->ops[1].imm.value.u;
}

/*
 * The branch is not taken. If "above" is false, the value is at most the constant; if "above or equal" is false, it is
 * below.
 */
static void note_branch(struct follow *f, const struct cfg_op *op)
{
	if (op->kind != CFG_JCC || !f->compared || (op->cond != 0x7 && op->cond != 0x3))
		return;
	f->bound_id = f->cmp_id;
	f->bound_at = f->cmp_at;
	f->bound = f->cmp_imm + (op->cond == 0x7);
}

static bool writes_flags(const ZydisDecodedInstruction *i)
{
	return i->cpu_flags &&
	       (i->cpu_flags->modified | i->cpu_flags->set_0 | i->cpu_flags->set_1 | i->cpu_flags->undefined) &
		       (ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_ZF);
}

static void note_writes(struct follow *f, const struct decoded *d)
{
	bool first_is_reg = d->insn.operand_count && d->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER;
	struct value *to = first_is_reg ? reg_value(f, d->ops[0].reg.value) : NULL, v = {0};
	bool masks = d->insn.mnemonic == ZYDIS_MNEMONIC_AND && d->ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		     d->ops[1].imm.value.s >= 0 && d->ops[0].size >= 32;

	if (to)
		v = result(f, d);
	for (unsigned o = 0; o < d->insn.operand_count; o++) {
		struct value *reg;

		if (!(d->ops[o].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (d->ops[o].type == ZYDIS_OPERAND_TYPE_MEMORY)
			f->word_known = false;
		reg = d->ops[o].type == ZYDIS_OPERAND_TYPE_REGISTER ? reg_value(f, d->ops[o].reg.value) : NULL;
		if (!reg)
			continue;
		*reg = reg == to ? v : fresh(f);
		f->word_known &= reg != reg_value(f, f->word_base);
	}
	if (to && masks && (d->ops[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) {
		f->bound_id = to->id;
		f->bound_at = f->at;
		f->bound = d->ops[1].imm.value.u + 1;
	}
}

static void table_forget(struct follow *f)
{
	for (unsigned r = 0; r < NREGS; r++)
		f->regs[r] = fresh(f);
	f->compared = f->word_known = false;
}

static int table_step(struct follow *f, const ZydisDecoder *decoder)
{
	const struct cfg_op *op = cfg_op(f->g, f->at);
	const struct cfg_frag *frag = &f->g->frags[op->frag];
	struct decoded d;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, frag->code + (op->va - frag->fde.start_va), op->len, &d.insn,
						 d.ops)))
		return -EILSEQ;
	if (op->kind != CFG_PLAIN) {
		note_branch(f, op);
		if (op->kind != CFG_JCC)
			table_forget(f);
		return 0;
	}
	note_writes(f, &d);
	if (writes_flags(&d.insn))
		note_compare(f, &d);
	return 0;
}

/* Finds the value of the jump's target. */
static bool jump_value(struct follow *f, const ZydisDecoder *decoder, uint32_t jump, struct value *out)
{
	const struct cfg_op *op = cfg_op(f->g, jump);
	const struct cfg_frag *frag = &f->g->frags[op->frag];
	const struct value *v;
	struct decoded d;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, frag->code + (op->va - frag->fde.start_va), op->len, &d.insn,
						 d.ops)))
		return false;
	f->at = jump;
	if (d.ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
		return table_entry(f, &d.ops[0], out);
	v = d.ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? reg_value(f, d.ops[0].reg.value) : NULL;
	if (!v)
		return false;
	*out = *v;
	return true;
}

static int read_cases(struct cfg *g, uint32_t jump, const struct value *v, uint64_t n)
{
	uint32_t first = (uint32_t)buf_count(&g->cases, uint32_t);

	if (first + n > 16 * CASES_MAX)
		return -ENOENT;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t raw = 0;
		uint32_t to;
		int err = elf_read_va(g->elf, v->base + i * v->scale, &raw, v->scale);

		if (err)
			return err == -ENOENT || err == -EIO ? -ENOENT : err;
		if (v->known == KNOWN_TARGET)
			raw = v->base + (uint64_t)(int64_t)(int32_t)raw;
		err = cfg_land(g, jump, raw, &to);
		if (err)
			return err;
		if (to == CFG_NONE)
			return cfg_refuse(g, -ENOENT, "a jump table that leads out of the function at 0x%llx",
					  (unsigned long long)cfg_op(g, jump)->va);
		if (buf_put(&g->cases, &to, sizeof(to)))
			return -ENOMEM;
	}
	cfg_op(g, jump)->first_case = first;
	cfg_op(g, jump)->ncases = (uint32_t)n;
	return 0;
}

static int table_put_table(struct cfg *g, const struct follow *f, const struct value *v, uint32_t jump)
{
	struct cfg_table t = {v->since < f->bound_at ? v->since : f->bound_at, jump};

	return buf_put(&g->tables, &t, sizeof(t));
}

int cfg_read_table(struct cfg *g, uint32_t jump)
{
	uint32_t first = g->frags[cfg_op(g, jump)->frag].first_op;
	struct follow f = {.g = g, .bound_id = CFG_NONE};
	struct value v;
	ZydisDecoder decoder;
	int err = 0;

	if (first + LOOK_BACK < jump)
		first = jump - LOOK_BACK;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	f.at = first;
	table_forget(&f);
	for (; !err && f.at < jump; f.at++)
		err = table_step(&f, &decoder);
	if (err || !jump_value(&f, &decoder, jump, &v))
		return err ? err : -ENOENT;
	if (!(v.known == KNOWN_TARGET || (v.known == KNOWN_ENTRY && v.scale == 8)) || v.id != f.bound_id || !f.bound ||
	    f.bound > CASES_MAX)
		return -ENOENT;
	err = read_cases(g, jump, &v, f.bound);
	return err ? err : table_put_table(g, &f, &v, jump);
}
