// SPDX-License-Identifier: Apache-2.0
#include "insn/layout.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "insn/walk.h"

#define LOADS_MAX 8
#define FLAGS_MAX 4
#define OFF_MAX	  4096 /* limit of a field's offset */

/* Recognizes mov REG, [BASE + disp] of 8 bytes. */
static bool is_load(const struct walk *w, ZydisRegister base, int64_t *disp)
{
	const ZydisDecodedOperand *from = &w->ops[1];

	if (w->insn.mnemonic != ZYDIS_MNEMONIC_MOV || w->ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    from->type != ZYDIS_OPERAND_TYPE_MEMORY || from->size != 64 || from->mem.base != base ||
	    from->mem.index != ZYDIS_REGISTER_NONE || from->mem.segment == ZYDIS_REGISTER_FS)
		return false;
	*disp = from->mem.disp.has_displacement ? from->mem.disp.value : 0;
	return true;
}

/* Finds lea rdi, [rip + GOT]; call __tls_get_addr; mov reg, [rax + disp], without a branch in between. */
static bool find_tls(struct walk *w, struct layout_tls *out)
{
	bool called = false;
	int64_t disp;

	while (walk_next(w)) {
		if (!called && w->insn.mnemonic == ZYDIS_MNEMONIC_LEA && walk_is_reg(&w->ops[0], ZYDIS_REGISTER_RDI)) {
			if (w->ops[1].mem.base != ZYDIS_REGISTER_RIP ||
			    !ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&w->insn, &w->ops[1], w->va, &out->got_va)))
				return false;
		} else if (!called && walk_calls(w, "__tls_get_addr")) {
			called = true;
		} else if (called && is_load(w, ZYDIS_REGISTER_RAX, &disp)) {
			out->add = (uint64_t)disp;
			return out->got_va && disp >= 0;
		} else if (called || w->insn.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE) {
			return false;
		}
	}
	return false;
}

int layout_tls(struct elf *elf, const struct elf_sym *func, struct layout_tls *out, struct err *e)
{
	struct walk w;
	int err = walk_begin(&w, elf, func, e);

	*out = (struct layout_tls){0};
	if (!err && !find_tls(&w, out))
		err = err_set(e, ERR_TARGET, -EILSEQ, "its code has an unknown form: found no thread-local variable");
	free(w.code);
	return err;
}

static uint32_t reg_bit(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64 ? 1u << (whole - ZYDIS_REGISTER_RAX) : 0;
}

/*
 * Tracks the registers that hold one value. Ignores what an epilogue restores, because other code jumps to the
 * instructions after it.
 */
static void follow_copies(const struct walk *w, uint32_t *regs)
{
	bool copy = w->insn.mnemonic == ZYDIS_MNEMONIC_MOV && w->ops[0].size == 64 &&
		    w->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER && reg_bit(w->ops[1].reg.value) & *regs;
	unsigned i;

	if (w->insn.mnemonic == ZYDIS_MNEMONIC_POP)
		return;
	for (i = 0; i < w->insn.operand_count; i++)
		if (w->ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    w->ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			*regs &= ~reg_bit(w->ops[i].reg.value);
	if (w->insn.meta.category == ZYDIS_CATEGORY_CALL)
		*regs &= reg_bit(ZYDIS_REGISTER_RBX) | reg_bit(ZYDIS_REGISTER_RBP) | reg_bit(ZYDIS_REGISTER_R12) |
			 reg_bit(ZYDIS_REGISTER_R13) | reg_bit(ZYDIS_REGISTER_R14) | reg_bit(ZYDIS_REGISTER_R15);
	if (copy && w->ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
		*regs |= reg_bit(w->ops[0].reg.value);
}

struct node_loads {
	ZydisRegister to[LOADS_MAX];
	int64_t off[LOADS_MAX];
	unsigned n;
	ZydisRegister handed; /* the register that was copied to the second argument */
};

/* Where a function keeps one of its arguments: in registers, and in one word of its stack frame. */
struct kept {
	uint32_t regs;
	ZydisRegister frame; /* base of that word; ZYDIS_REGISTER_NONE: it is in no such word */
	int64_t at;
};

static bool is_word_of(const ZydisDecodedOperand *op, const struct kept *k)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->size == 64 && k->frame != ZYDIS_REGISTER_NONE &&
	       op->mem.base == k->frame && op->mem.index == ZYDIS_REGISTER_NONE && op->mem.disp.value == k->at;
}

static void follow_kept(const struct walk *w, struct kept *k)
{
	const ZydisDecodedOperand *to = &w->ops[0], *from = &w->ops[1];
	const bool mov = w->insn.mnemonic == ZYDIS_MNEMONIC_MOV;
	const bool spills = mov && to->type == ZYDIS_OPERAND_TYPE_MEMORY && to->size == 64 &&
			    (to->mem.base == ZYDIS_REGISTER_RBP || to->mem.base == ZYDIS_REGISTER_RSP) &&
			    from->type == ZYDIS_OPERAND_TYPE_REGISTER && reg_bit(from->reg.value) & k->regs;
	const bool loads = mov && to->type == ZYDIS_OPERAND_TYPE_REGISTER && is_word_of(from, k);

	follow_copies(w, &k->regs);
	if (spills && k->frame == ZYDIS_REGISTER_NONE) {
		k->frame = to->mem.base;
		k->at = to->mem.disp.value;
	}
	if (loads)
		k->regs |= reg_bit(to->reg.value);
}

/*
 * Finds the loads from the object, which is the second argument, between the construction of the record object and the
 * call of its before().
 */
static bool find_node_loads(struct walk *w, struct node_loads *l)
{
	struct kept self = {.regs = reg_bit(ZYDIS_REGISTER_RSI), .frame = ZYDIS_REGISTER_NONE};
	const ZydisDecodedOperand *from = &w->ops[1];
	bool made = false;
	int64_t disp;

	for (; walk_next(w); follow_kept(w, &self)) {
		bool mov = w->insn.mnemonic == ZYDIS_MNEMONIC_MOV;

		if (walk_calls(w, "_ZN2at14RecordFunctionC")) {
			made = true;
		} else if (made && walk_calls(w, "_ZN2at14RecordFunction6beforeE")) {
			return true;
		} else if (made && from->type == ZYDIS_OPERAND_TYPE_MEMORY && reg_bit(from->mem.base) & self.regs &&
			   is_load(w, from->mem.base, &disp) && disp) {
			if (l->n == LOADS_MAX)
				return false;
			l->to[l->n] = w->ops[0].reg.value;
			l->off[l->n++] = disp;
		} else if (made && mov && walk_is_reg(&w->ops[0], ZYDIS_REGISTER_RSI)) {
			l->handed = from->type == ZYDIS_OPERAND_TYPE_REGISTER ? from->reg.value : ZYDIS_REGISTER_NONE;
		}
	}
	return false;
}

static bool is_field(int64_t off)
{
	return off > 0 && off < OFF_MAX && off % 8 == 0;
}

int layout_node(struct elf *elf, const struct elf_sym *func, int32_t *number_off, int32_t *thread_off, struct err *e)
{
	struct node_loads l = {0};
	struct walk w;
	int err = walk_begin(&w, elf, func, e);
	unsigned number = 0;

	if (!err && (!find_node_loads(&w, &l) || l.n != 2 || l.to[0] == l.to[1]))
		err = -EILSEQ;
	if (!err) {
		number = l.to[1] == l.handed;
		if (l.to[number] != l.handed || !is_field(l.off[0]) || !is_field(l.off[1]))
			err = -EILSEQ;
	}
	free(w.code);
	if (err)
		return err == -EILSEQ
			       ? err_set(e, ERR_TARGET, err, "its code has an unknown form: found no sequence number")
			       : err;
	*number_off = (int32_t)l.off[number];
	*thread_off = (int32_t)l.off[!number];
	return 0;
}

/* ---- the profiler's record object */

#define RECORD_STORES_MAX 16

/* The stores of a constructor to its object. */
struct stores {
	int64_t minus_one[RECORD_STORES_MAX]; /* offsets of words */
	int64_t zero[RECORD_STORES_MAX], zero_end[RECORD_STORES_MAX];
	int64_t counted; /* offset of the result of an atomic counter; 0: none */
	unsigned nminus_one, nzero;
};

/* Recognizes a store to a field of the object in `self`. */
static bool is_store(const struct walk *w, uint32_t self, unsigned bits)
{
	const ZydisDecodedOperand *to = &w->ops[0];

	return to->type == ZYDIS_OPERAND_TYPE_MEMORY && to->size == bits && reg_bit(to->mem.base) & self &&
	       to->mem.index == ZYDIS_REGISTER_NONE && to->mem.disp.has_displacement &&
	       w->insn.operand_count_visible == 2 && !(to->actions & ZYDIS_OPERAND_ACTION_MASK_READ);
}

static bool is_zeroing(const struct walk *w)
{
	return (w->insn.mnemonic == ZYDIS_MNEMONIC_PXOR || w->insn.mnemonic == ZYDIS_MNEMONIC_XORPS) &&
	       walk_is_reg(&w->ops[1], w->ops[0].reg.value);
}

static void note_store(const struct walk *w, uint32_t self, ZydisRegister zero, uint32_t counted, struct stores *s)
{
	int64_t to = w->ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY ? w->ops[0].mem.disp.value : 0;
	bool imm = w->ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	bool wide = is_store(w, self, 128) && zero != ZYDIS_REGISTER_NONE && walk_is_reg(&w->ops[1], zero);
	bool word = is_store(w, self, 64);

	if (word && imm && w->ops[1].imm.value.s == -1 && s->nminus_one < RECORD_STORES_MAX)
		s->minus_one[s->nminus_one++] = to;
	if ((wide || (word && imm && !w->ops[1].imm.value.s)) && s->nzero < RECORD_STORES_MAX) {
		s->zero[s->nzero] = to;
		s->zero_end[s->nzero++] = to + (wide ? 16 : 8);
	}
	if (word && w->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER && reg_bit(w->ops[1].reg.value) & counted)
		s->counted = to;
}

static void read_stores(struct walk *w, struct stores *s)
{
	uint32_t self = reg_bit(ZYDIS_REGISTER_RDI), counted = 0;
	ZydisRegister zero = ZYDIS_REGISTER_NONE;

	while (walk_next(w)) {
		note_store(w, self, zero, counted, s);
		if (is_zeroing(w))
			zero = w->ops[0].reg.value;
		else if (walk_is_reg(&w->ops[0], zero) || w->insn.meta.category == ZYDIS_CATEGORY_CALL)
			zero = ZYDIS_REGISTER_NONE;
		follow_copies(w, &self);
		follow_copies(w, &counted);
		if (w->insn.mnemonic == ZYDIS_MNEMONIC_XADD)
			counted = reg_bit(w->ops[1].reg.value);
	}
}

static bool has_minus_one(const struct stores *s, int64_t off)
{
	unsigned i = 0;

	while (i < s->nminus_one && s->minus_one[i] != off)
		i++;
	return i < s->nminus_one;
}

/* Finds where the last argument is stored. Its register depends on how the name before it is passed. */
static bool find_number(struct walk *w, const struct stores *s, int64_t *off)
{
	uint32_t self = reg_bit(ZYDIS_REGISTER_RDI),
		 arg[2] = {reg_bit(ZYDIS_REGISTER_RSI), reg_bit(ZYDIS_REGISTER_RDX)};
	unsigned i;

	*off = 0;
	while (walk_next(w)) {
		for (i = 0; i < 2; i++) {
			if (is_store(w, self, 64) && w->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    reg_bit(w->ops[1].reg.value) & arg[i] && has_minus_one(s, w->ops[0].mem.disp.value)) {
				if (*off && *off != w->ops[0].mem.disp.value)
					return false;
				*off = w->ops[0].mem.disp.value;
			}
			follow_copies(w, &arg[i]);
		}
		follow_copies(w, &self);
	}
	return is_field(*off);
}

static bool find_thread(const struct stores *s, int64_t *off)
{
	unsigned i;

	*off = s->counted - 8;
	for (i = 0; i < s->nzero; i++)
		if (s->zero[i] <= *off && *off + 8 <= s->zero_end[i])
			return is_field(*off);
	return false;
}

int layout_record(struct elf *elf, const struct elf_sym *constructor, const struct elf_sym *before, int32_t *number_off,
		  int32_t *thread_off, struct err *e)
{
	struct stores s = {.counted = 0};
	int64_t number = 0, thread = 0;
	struct walk w;
	int err = walk_begin(&w, elf, constructor, e);

	if (!err)
		read_stores(&w, &s);
	free(w.code);
	if (err)
		return err;
	err = walk_begin(&w, elf, before, e);
	if (!err && (!find_number(&w, &s, &number) || !find_thread(&s, &thread) || number >= thread))
		err = err_set(e, ERR_TARGET, -EILSEQ,
			      "its code has an unknown form: found no field for a call's number");
	free(w.code);
	if (!err) {
		*number_off = (int32_t)number;
		*thread_off = (int32_t)thread;
	}
	return err;
}

/* Registers that pass arguments, after the object's. */
static const ZydisRegister arg_regs[] = {ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX, ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8,
					 ZYDIS_REGISTER_R9};
#define NARG_REGS (sizeof(arg_regs) / sizeof(arg_regs[0]))

/* Finds the two neighbouring arguments that are stored in two neighbouring words of the object, and no others. */
static bool find_pair(struct walk *w, int64_t *off)
{
	uint32_t self = reg_bit(ZYDIS_REGISTER_RDI), args[NARG_REGS];
	int64_t at[NARG_REGS] = {0};
	unsigned i, npairs = 0;

	for (i = 0; i < NARG_REGS; i++)
		args[i] = reg_bit(arg_regs[i]);
	while (walk_next(w)) {
		for (i = 0; i < NARG_REGS; i++) {
			if (is_store(w, self, 64) && w->ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    reg_bit(w->ops[1].reg.value) & args[i]) {
				if (at[i] && at[i] != w->ops[0].mem.disp.value)
					return false;
				at[i] = w->ops[0].mem.disp.value;
			}
			follow_copies(w, &args[i]);
		}
		follow_copies(w, &self);
	}
	for (i = 0; i + 1 < NARG_REGS; i++)
		if (at[i] && at[i + 1] == at[i] + 8) {
			*off = at[i];
			npairs++;
		}
	return npairs == 1 && is_field(*off);
}

int layout_inputs(struct elf *elf, const struct elf_sym *func, uint32_t *inputs_off, struct err *e)
{
	int64_t off = 0;
	struct walk w;
	int err = walk_begin(&w, elf, func, e);

	if (!err && !find_pair(&w, &off))
		err = err_set(e, ERR_TARGET, -EILSEQ, "its code has an unknown form: found no field for arguments");
	free(w.code);
	*inputs_off = (uint32_t)off;
	return err;
}

#define NUMBER_OFF   8	/* of the tag in a boxed value, whose word is at 0; and of the number in a type */
#define VECTOR_BYTES 24 /* three pointers */
#define TAGS_MIN     12 /* no version has fewer tags before that of a list */
#define TAGS_MAX     32
#define KINDS_MAX    64

/* Recognizes cmp dword [BASE + 8], NUMBER. */
static bool is_number(const struct walk *w, ZydisRegister base, int64_t *number)
{
	const ZydisDecodedOperand *at = &w->ops[0];

	if (w->insn.mnemonic != ZYDIS_MNEMONIC_CMP || at->type != ZYDIS_OPERAND_TYPE_MEMORY || at->size != 32 ||
	    at->mem.base != base || at->mem.disp.value != NUMBER_OFF || w->ops[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	*number = w->ops[1].imm.value.s;
	return true;
}

/*
 * Finds the comparison of the tag; the load of the type from the list, which is the word of the value; and the
 * comparison of the type's number.
 */
static bool find_list(struct walk *w, int64_t *tag, int64_t *elements, int64_t *kind)
{
	ZydisRegister list = ZYDIS_REGISTER_NONE, type = ZYDIS_REGISTER_NONE;
	int64_t disp;

	while (walk_next(w)) {
		if (type != ZYDIS_REGISTER_NONE && is_number(w, type, kind)) {
			return *tag >= TAGS_MIN && *tag < TAGS_MAX && is_field(*elements) && *kind > 0 &&
			       *kind < KINDS_MAX;
		} else if (!*tag && is_number(w, ZYDIS_REGISTER_RDI, tag)) {
			continue;
		} else if (is_load(w, ZYDIS_REGISTER_RDI, &disp) && !disp) {
			list = w->ops[0].reg.value;
		} else if (*tag && list != ZYDIS_REGISTER_NONE && is_load(w, list, &disp)) {
			*elements = disp - VECTOR_BYTES;
			type = w->ops[0].reg.value;
		} else if (w->insn.meta.category == ZYDIS_CATEGORY_CALL) {
			return false;
		}
	}
	return false;
}

int layout_list(struct elf *elf, const struct elf_sym *func, struct layout_list *out, struct err *e)
{
	int64_t tag = 0, off = 0, kind = 0;
	struct walk w;
	int err = walk_begin(&w, elf, func, e);

	if (!err && !find_list(&w, &tag, &off, &kind))
		err = err_set(e, ERR_TARGET, -EILSEQ, "its code has an unknown form: found no lists of values");
	free(w.code);
	*out = (struct layout_list){(uint32_t)tag, (uint32_t)off, (uint32_t)kind};
	return err;
}

/* Finds the field that is loaded first and then followed. `this` is the second argument. */
static bool find_chain(struct walk *w, const int32_t *known, unsigned n, int64_t *field)
{
	ZydisRegister self = ZYDIS_REGISTER_NONE, at = ZYDIS_REGISTER_NONE;
	unsigned step = 0;
	int64_t disp;

	while (walk_next(w)) {
		if (self == ZYDIS_REGISTER_NONE && w->insn.mnemonic == ZYDIS_MNEMONIC_MOV &&
		    walk_is_reg(&w->ops[1], ZYDIS_REGISTER_RSI)) {
			self = w->ops[0].reg.value;
		} else if (self != ZYDIS_REGISTER_NONE && is_load(w, self, &disp)) {
			*field = disp;
			at = w->ops[0].reg.value;
			step = 0;
		} else if (at != ZYDIS_REGISTER_NONE && is_load(w, at, &disp)) {
			if (disp != known[step])
				return false;
			at = w->ops[0].reg.value;
			if (++step == n)
				return true;
		}
	}
	return false;
}

int layout_chain(struct elf *elf, const struct elf_sym *func, const int32_t *known, unsigned n, int32_t *field_off,
		 struct err *e)
{
	int64_t field = 0;
	struct walk w;
	int err = walk_begin(&w, elf, func, e);

	if (!err && (!find_chain(&w, known, n, &field) || !is_field(field)))
		err = err_set(e, ERR_TARGET, -EILSEQ, "its code has an unknown form: found no field of its object");
	free(w.code);
	if (!err)
		*field_off = (int32_t)field;
	return err;
}

/* A register that was loaded from the address in another register. It holds an object, such as that of a tensor. */
struct held {
	ZydisRegister reg;
	int64_t field; /* that was read from the object; 0: none */
};

/* Returns the one of n objects that a register holds, or NULL. */
static struct held *find_held(struct held *all, unsigned n, ZydisRegister reg)
{
	while (n && all[n - 1].reg != reg)
		n--;
	return n ? &all[n - 1] : NULL;
}

/*
 * Finds the first field that is read from two objects. An object is what `mov A, [a]` loads, and `mov` or `or` with
 * [A + field] reads its field. It does not matter when the code joins the two values.
 */
static bool find_keys(struct walk *w, int64_t *off)
{
	struct held all[LOADS_MAX], *of;
	unsigned n = 0, i;
	int64_t disp;

	while (walk_next(w)) {
		const ZydisDecodedOperand *from = &w->ops[1];
		const bool mov = w->insn.mnemonic == ZYDIS_MNEMONIC_MOV;

		if ((!mov && w->insn.mnemonic != ZYDIS_MNEMONIC_OR) || w->ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    from->type != ZYDIS_OPERAND_TYPE_MEMORY || from->size != 64 ||
		    from->mem.index != ZYDIS_REGISTER_NONE || from->mem.segment == ZYDIS_REGISTER_FS)
			continue;
		disp = from->mem.disp.has_displacement ? from->mem.disp.value : 0;
		of = find_held(all, n, from->mem.base);
		for (i = 0; of && is_field(disp) && i < n; i++)
			if (&all[i] != of && all[i].field == disp) {
				*off = disp;
				return true;
			}
		if (of && is_field(disp) && !of->field)
			of->field = disp;
		if (mov && !disp && n < LOADS_MAX)
			all[n++] = (struct held){w->ops[0].reg.value, 0};
	}
	return false;
}

int layout_tensor(struct elf *elf, const struct elf_sym *func, uint32_t *keys_off, struct err *e)
{
	struct walk w;
	int64_t off = 0;
	int err = walk_begin(&w, elf, func, e);

	if (!err && !find_keys(&w, &off))
		err = err_set(e, ERR_TARGET, -EILSEQ, "its code has an unknown form: found no key sets of tensors");
	free(w.code);
	*keys_off = (uint32_t)off;
	return err;
}

/* Finds mov rax, [rip + V], which appears again right before a return, for no other variable. */
static bool find_result(struct walk *w, uint64_t *va)
{
	ZyanU64 at;
	int64_t disp;
	unsigned n = 0;

	while (walk_next(w)) {
		if (!is_load(w, ZYDIS_REGISTER_RIP, &disp) || !walk_is_reg(&w->ops[0], ZYDIS_REGISTER_RAX) ||
		    !ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&w->insn, &w->ops[1], w->va, &at)))
			continue;
		if (n && at != *va)
			break;
		*va = at;
		n++;
	}
	return n >= 2;
}

int layout_result(struct elf *elf, const struct elf_sym *func, uint64_t *va, struct err *e)
{
	struct walk w;
	int err = walk_begin(&w, elf, func, e);

	if (!err && !find_result(&w, va))
		err = err_set(e, ERR_TARGET, -EILSEQ, "its code has an unknown form: found no returned variable");
	free(w.code);
	return err;
}

/* Bytes of an object that are set to constants. */
struct flags {
	int64_t off[FLAGS_MAX];
	bool set[FLAGS_MAX][2];
	unsigned n;
};

static bool is_field_of_object(const ZydisDecodedOperand *to, unsigned bits)
{
	return to->type == ZYDIS_OPERAND_TYPE_MEMORY && to->size == bits && to->mem.disp.has_displacement &&
	       to->mem.base != ZYDIS_REGISTER_RSP && to->mem.base != ZYDIS_REGISTER_RIP &&
	       to->mem.index == ZYDIS_REGISTER_NONE;
}

static bool note_flag(struct flags *f, int64_t off, uint64_t v)
{
	unsigned i = 0;

	while (i < f->n && f->off[i] != off)
		i++;
	if (i == FLAGS_MAX)
		return false;
	f->off[i] = off;
	f->set[i][v] = true;
	f->n = i < f->n ? f->n : i + 1;
	return true;
}

/* Finds mov R, esi; mov dword [this + A], R; mov byte [this + F], 0; mov byte [this + F], 1. */
static bool find_state(struct walk *w, int64_t *arg, struct flags *flags)
{
	ZydisRegister copy = ZYDIS_REGISTER_NONE;
	unsigned stores = 0;

	while (walk_next(w)) {
		const ZydisDecodedOperand *to = &w->ops[0], *from = &w->ops[1];

		if (w->insn.mnemonic != ZYDIS_MNEMONIC_MOV)
			continue;
		if (copy == ZYDIS_REGISTER_NONE && walk_is_reg(from, ZYDIS_REGISTER_ESI) &&
		    to->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			copy = to->reg.value;
		} else if (is_field_of_object(to, 32) && copy != ZYDIS_REGISTER_NONE && walk_is_reg(from, copy)) {
			*arg = to->mem.disp.value;
			stores++;
		} else if (is_field_of_object(to, 8) && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
			   (from->imm.value.u > 1 || !note_flag(flags, to->mem.disp.value, from->imm.value.u))) {
			return false;
		}
	}
	return stores == 1;
}

int layout_state(struct elf *elf, const struct elf_sym *func, int32_t *arg_off, int32_t *flag_off, struct err *e)
{
	struct flags flags = {.n = 0};
	int64_t arg = 0, flag = 0;
	unsigned i, both = 0;
	struct walk w;
	int err = walk_begin(&w, elf, func, e);

	if (!err && !find_state(&w, &arg, &flags))
		err = -EILSEQ;
	for (i = 0; i < flags.n; i++)
		if (flags.set[i][0] && flags.set[i][1]) {
			flag = flags.off[i];
			both++;
		}
	free(w.code);
	if (!err && (both != 1 || arg <= 0 || arg >= OFF_MAX || flag <= 0 || flag >= OFF_MAX))
		err = -EILSEQ;
	*arg_off = (int32_t)arg;
	*flag_off = (int32_t)flag;
	return err == -EILSEQ ? err_set(e, ERR_TARGET, err, "its code has an unknown form: found no state field") : err;
}
