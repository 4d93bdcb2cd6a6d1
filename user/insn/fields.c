// SPDX-License-Identifier: Apache-2.0
#include "insn/fields.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "elf/unwind.h"
#include "insn/walk.h"

#define REGS	  16
#define LOADS_MAX 2 /* loads of a value: from the argument, and from the pointer found there */
#define JUMPS_MAX 512
#define PAIRS_MAX 32
#define SLOTS	  16
#define OFF_MAX	  4096 /* limit of a field's offset */

/*
 * The content of a register: the argument (depth 1), or a value loaded from it in one step (2) or two (3); 0: anything
 * else.
 */
struct value {
	uint8_t depth;
	int32_t off[LOADS_MAX];
};

/* A word of the frame that holds a value, by its distance from the stack pointer between two changes of that. */
struct slot {
	int64_t disp;
	struct value value;
};

struct values {
	struct value reg[REGS];
	struct slot slots[SLOTS];
	bool reached; /* the previous instruction continues here */
};

/* The state at the target of a forward jump. */
struct jump {
	uint64_t va;
	struct values values;
};

/* Distinct offsets of fields. */
struct offsets {
	int32_t off[PAIRS_MAX];
	unsigned n; /* may exceed PAIRS_MAX */
};

struct reader {
	struct walk w;
	struct values now;
	struct jump jumps[JUMPS_MAX];
	unsigned njumps;
	struct offsets words, compared; /* 32-bit words in the argument; 64-bit words that are compared with 0 */
	struct offsets copied;		/* 64-bit words that are copied to where the argument points */
	struct value named;		/* the argument of strncpy; depth 0: none yet */
	unsigned nnamed;
	bool other_named; /* strncpy also gets other values */
};

static void note(struct offsets *o, int64_t off)
{
	if (off < 0 || off >= OFF_MAX)
		return;
	for (unsigned i = 0; i < o->n && i < PAIRS_MAX; i++)
		if (o->off[i] == off)
			return;
	if (o->n < PAIRS_MAX)
		o->off[o->n] = (int32_t)off;
	o->n++;
}

/* Returns the only offset that is there together with the word after it; -1: none or several. */
static int32_t pair_of(const struct offsets *o)
{
	int32_t found = -1;

	for (unsigned i = 0; i < o->n && o->n <= PAIRS_MAX; i++)
		for (unsigned k = 0; k < o->n; k++) {
			if (o->off[k] != o->off[i] + 4)
				continue;
			if (found >= 0)
				return -1;
			found = o->off[i];
		}
	return found;
}

static int reg_number(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64 ? (int)whole - (int)ZYDIS_REGISTER_RAX : -1;
}

static bool same_value(const struct value *a, const struct value *b)
{
	return a->depth == b->depth && !memcmp(a->off, b->off, sizeof(a->off));
}

/* Keeps the values that hold on both paths. */
static void meet(struct values *a, const struct values *b)
{
	if (!a->reached) {
		*a = *b;
		return;
	}
	for (int i = 0; b->reached && i < REGS; i++)
		if (!same_value(&a->reg[i], &b->reg[i]))
			a->reg[i] = (struct value){0};
	for (int i = 0; b->reached && i < SLOTS; i++)
		if (a->slots[i].disp != b->slots[i].disp || !same_value(&a->slots[i].value, &b->slots[i].value))
			a->slots[i].value = (struct value){0};
}

/* Forward jumps carry the known values. Backward jumps are ignored; see fields.h. */
static void jump_to(struct reader *r, uint64_t va)
{
	unsigned i = 0;

	if (va <= r->w.va)
		return;
	while (i < r->njumps && r->jumps[i].va != va)
		i++;
	if (i == JUMPS_MAX)
		return;
	if (i == r->njumps)
		r->jumps[r->njumps++] = (struct jump){.va = va};
	meet(&r->jumps[i].values, &r->now);
}

static void arrive(struct reader *r)
{
	for (unsigned i = 0; i < r->njumps; i++)
		if (r->jumps[i].va == r->w.va)
			meet(&r->now, &r->jumps[i].values);
}

static struct value value_at(const struct reader *r, ZydisRegister reg)
{
	const struct value unknown = {0};
	int n = reg_number(reg);

	return n < 0 || !r->now.reached ? unknown : r->now.reg[n];
}

static struct slot *fields_slot_of(struct reader *r, int64_t disp)
{
	struct slot *empty = NULL;

	for (int i = 0; i < SLOTS; i++) {
		struct slot *s = &r->now.slots[i];

		if (s->value.depth && s->disp == disp)
			return s;
		empty = s->value.depth ? empty : s;
	}
	if (empty)
		empty->disp = disp;
	return empty;
}

static bool is_mov_64(const struct reader *r)
{
	return r->w.insn.mnemonic == ZYDIS_MNEMONIC_MOV && r->w.ops[0].size == 64;
}

/* Handles a store: of a value to the frame, or to where the argument points. */
static void store(struct reader *r)
{
	const ZydisDecodedOperand *to = &r->w.ops[0], *from = &r->w.ops[1];
	struct value v = {0};
	struct slot *s;

	if (to->type != ZYDIS_OPERAND_TYPE_MEMORY || !(to->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	if (is_mov_64(r) && from->type == ZYDIS_OPERAND_TYPE_REGISTER)
		v = value_at(r, from->reg.value);
	/* After the store the register points to what the field points to. */
	if (is_mov_64(r) && from->type == ZYDIS_OPERAND_TYPE_REGISTER && value_at(r, to->mem.base).depth == 1 &&
	    reg_number(from->reg.value) >= 0)
		r->now.reg[reg_number(from->reg.value)] =
			(struct value){.depth = 2, .off = {(int32_t)to->mem.disp.value}};
	if (v.depth == 2 && value_at(r, to->mem.base).depth == 2)
		note(&r->copied, v.off[0]);
	if (to->mem.base != ZYDIS_REGISTER_RSP)
		return;
	s = fields_slot_of(r, to->mem.disp.value);
	if (s)
		s->value = v;
}

/* Notes which words of the argument the instruction reads. */
static void fields_look(struct reader *r)
{
	for (unsigned i = 0; i < r->w.insn.operand_count_visible; i++) {
		const ZydisDecodedOperand *op = &r->w.ops[i];

		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type != ZYDIS_MEMOP_TYPE_MEM ||
		    op->mem.index != ZYDIS_REGISTER_NONE || value_at(r, op->mem.base).depth != 1)
			continue;
		if (op->size == 32)
			note(&r->words, op->mem.disp.value);
		if (op->size == 64 && r->w.insn.mnemonic == ZYDIS_MNEMONIC_CMP && !i &&
		    r->w.ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && !r->w.ops[1].imm.value.s)
			note(&r->compared, op->mem.disp.value);
	}
}

/* Follows mov reg, reg and mov reg, [value + disp]. Any other write makes a register unknown. */
static struct value moved(struct reader *r)
{
	const ZydisDecodedOperand *from = &r->w.ops[1];
	struct value v = {0};

	if (!is_mov_64(r))
		return v;
	if (from->type == ZYDIS_OPERAND_TYPE_REGISTER)
		return value_at(r, from->reg.value);
	if (from->type != ZYDIS_OPERAND_TYPE_MEMORY || from->mem.index != ZYDIS_REGISTER_NONE ||
	    from->mem.segment == ZYDIS_REGISTER_FS)
		return v;
	if (from->mem.base == ZYDIS_REGISTER_RSP)
		return fields_slot_of(r, from->mem.disp.value) ? fields_slot_of(r, from->mem.disp.value)->value : v;
	v = value_at(r, from->mem.base);
	if (!v.depth || v.depth > LOADS_MAX)
		return (struct value){0};
	v.off[v.depth++ - 1] = (int32_t)from->mem.disp.value;
	return v;
}

static void call(struct reader *r)
{
	static const ZydisRegister lost[] = {ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_RDX,
					     ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_R8,
					     ZYDIS_REGISTER_R9,	 ZYDIS_REGISTER_R10, ZYDIS_REGISTER_R11};
	struct value text = value_at(r, ZYDIS_REGISTER_RSI);

	if (text.depth == LOADS_MAX + 1 && walk_calls(&r->w, "strncpy")) {
		r->other_named |= r->nnamed && !same_value(&text, &r->named);
		r->named = text;
		r->nnamed++;
	}
	for (size_t i = 0; i < sizeof(lost) / sizeof(*lost); i++)
		r->now.reg[reg_number(lost[i])] = (struct value){0};
}

static void write_regs(struct reader *r)
{
	const struct value unknown = {0};
	struct value v = moved(r);

	for (unsigned i = 0; i < r->w.insn.operand_count; i++) {
		const ZydisDecodedOperand *op = &r->w.ops[i];
		int n = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? reg_number(op->reg.value) : -1;

		if (n >= 0 && (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			r->now.reg[n] = i ? unknown : v;
		if (n == reg_number(ZYDIS_REGISTER_RSP) && (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			memset(r->now.slots, 0, sizeof(r->now.slots));
	}
}

static void fields_step(struct reader *r)
{
	ZydisInstructionCategory c = r->w.insn.meta.category;
	ZyanU64 to;

	arrive(r);
	fields_look(r);
	store(r);
	if (c == ZYDIS_CATEGORY_CALL) {
		call(r);
		return;
	}
	if ((c == ZYDIS_CATEGORY_COND_BR || c == ZYDIS_CATEGORY_UNCOND_BR) &&
	    r->w.ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	    ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&r->w.insn, &r->w.ops[0], r->w.va, &to)))
		jump_to(r, to);
	if (c == ZYDIS_CATEGORY_UNCOND_BR || c == ZYDIS_CATEGORY_RET)
		r->now = (struct values){.reached = false};
	else
		write_regs(r);
}

static int read_code(struct elf *elf, const struct elf_sym *func, struct reader **out, struct err *e)
{
	struct reader *r = *out = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	err = walk_begin(&r->w, elf, func, e);
	if (err)
		return err;
	r->now.reached = true;
	r->now.reg[reg_number(ZYDIS_REGISTER_RSI)].depth = 1;
	while (walk_next(&r->w))
		fields_step(r);
	return 0;
}

static void done(struct reader *r)
{
	if (r)
		free(r->w.code);
	free(r);
}

int fields_of_block(struct elf *elf, const struct elf_sym *func, struct fields_block *out, struct err *e)
{
	struct reader *r;
	int err = read_code(elf, func, &r, e);
	int32_t location = err ? -1 : pair_of(&r->words);

	if (!err && (r->nnamed < 2 || r->other_named))
		err = err_set(e, ERR_TARGET, -EILSEQ, "its code does not show where an operator's name is");
	/* Some compilers move both words at once. */
	if (!err && location < 0 && r->copied.n == 1)
		location = r->copied.off[0];
	if (!err && location < 0)
		err = err_set(e, ERR_TARGET, -EILSEQ, "its code does not show where an operator's device is");
	if (!err)
		*out = (struct fields_block){r->named.off[0], r->named.off[1], location};
	done(r);
	return err;
}

static int handle(const struct offsets *words, const struct offsets *compared, struct fields_handle *out, struct err *e)
{
	out->location_off = pair_of(words);
	if (out->location_off < 0 || compared->n > FIELDS_COMPARED_MAX)
		return err_set(e, ERR_TARGET, -EILSEQ, "its code does not show where an allocation's device is");
	out->ncompared = compared->n;
	memcpy(out->compared_off, compared->off, sizeof(out->compared_off));
	return 0;
}

int fields_of_handle(struct elf *elf, const struct elf_sym *func, struct fields_handle *out, struct err *e)
{
	struct reader *r;
	int err = read_code(elf, func, &r, e);

	if (!err)
		err = handle(&r->words, &r->compared, out, e);
	done(r);
	return err;
}

/* Computes the distance of an operand from the CFA, where stack arguments begin. */
static bool from_cfa(const struct buf *cfas, uint64_t va, const ZydisDecodedOperand *op, int64_t *off)
{
	const struct elf_cfa *c = (const struct elf_cfa *)cfas->data;
	size_t i = buf_count(cfas, struct elf_cfa);

	while (i > 0 && c[i - 1].va > va)
		i--;
	if (!i || op->mem.index != ZYDIS_REGISTER_NONE)
		return false;
	c += i - 1;
	if ((c->base == ELF_CFA_RSP && op->mem.base == ZYDIS_REGISTER_RSP) ||
	    (c->base == ELF_CFA_RBP && op->mem.base == ZYDIS_REGISTER_RBP)) {
		*off = op->mem.disp.value - c->off;
		return *off >= 0;
	}
	return false;
}

int fields_of_handle_copy(struct elf *elf, const struct elf_sym *func, struct fields_handle *out, struct err *e)
{
	struct offsets words = {.n = 0}, compared = {.n = 0};
	struct buf cfas = {0};
	struct elf_fde fde;
	struct walk w;
	int64_t off;
	int err = walk_begin(&w, elf, func, e);

	if (!err)
		err = elf_fde_find(elf, func->va, &fde, e);
	if (!err)
		err = elf_fde_cfas(elf, &fde, &cfas, e);
	while (!err && walk_next(&w)) {
		for (unsigned i = 0; i < w.insn.operand_count_visible; i++) {
			const ZydisDecodedOperand *op = &w.ops[i];

			if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || !from_cfa(&cfas, w.va, op, &off))
				continue;
			if (op->size == 32)
				note(&words, off);
			if (op->size == 64 && w.insn.mnemonic == ZYDIS_MNEMONIC_CMP && !i)
				note(&compared, off);
		}
	}
	free(w.code);
	buf_fini(&cfas);
	return err ? err : handle(&words, &compared, out, e);
}
