// SPDX-License-Identifier: Apache-2.0
#include "insn/worker.h"

#include <errno.h>
#include <string.h>

#include "elf/unwind.h"
#include "insn/cfg.h"
#include "insn/priv.h"

#define LOOK_BACK 160 /* bytes before a call of pthread_create that set up its arguments */
#define RDI	  7
#define NOT_A_REG 0xff

struct search {
	struct elf *elf;
	struct worker *out;
	int err;
};

/* Returns the number of a general register in instructions, or NOT_A_REG. */
static uint8_t reg_no(ZydisRegister r)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64 ? (uint8_t)ZydisRegisterGetId(whole) : NOT_A_REG;
}

static bool decode(const struct cfg *g, uint32_t i, ZydisDecodedInstruction *insn, ZydisDecodedOperand *ops)
{
	const struct cfg_op *op = cfg_op(g, i);
	const struct cfg_frag *frag = &g->frags[op->frag];
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(
		ZydisDecoderDecodeFull(&decoder, frag->code + (op->va - frag->fde.start_va), op->len, insn, ops));
}

static bool writes(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *ops, uint8_t reg)
{
	for (unsigned i = 0; i < insn->operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    reg_no(ops[i].reg.value) == reg)
			return true;
	return false;
}

/*
 * Goes back from a call through a register to the start of its straight piece of code, and finds the register that
 * holds the argument there. Returns false if it cannot.
 */
static bool find_registers(const struct cfg *g, uint32_t call, uint32_t *first, struct worker_point *p)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	uint32_t i = call;

	if (!decode(g, call, &insn, ops) || ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	p->fn = reg_no(ops[0].reg.value);
	p->data = RDI;
	while (i && !cfg_op(g, i)->joined && cfg_op(g, i - 1)->kind == CFG_PLAIN && cfg_op(g, i - 1)->next == i) {
		if (!decode(g, --i, &insn, ops) || writes(&insn, ops, p->fn))
			return false;
		if (!writes(&insn, ops, p->data))
			continue;
		if (insn.mnemonic != ZYDIS_MNEMONIC_MOV || ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
			return false;
		p->data = reg_no(ops[1].reg.value);
	}
	*first = i;
	return p->fn != NOT_A_REG && p->data != NOT_A_REG;
}

static bool add_point(struct worker *w, struct worker_point p)
{
	for (unsigned i = 0; i < w->npoints; i++)
		if (w->points[i].va == p.va)
			return false;
	if (w->npoints == WORKER_POINTS_MAX)
		return false;
	w->points[w->npoints++] = p;
	return true;
}

/*
 * Adds the branches that lead to a piece of code. Returns false if one of them may not be probed, or if the piece is
 * reached otherwise.
 */
static bool add_branches(const struct cfg *g, uint32_t first, struct worker_point p, struct worker *w)
{
	uint32_t n = (uint32_t)buf_count(&g->ops, struct cfg_op);
	unsigned before = w->npoints;

	for (uint32_t i = 0; i < n; i++) {
		const struct cfg_op *op = cfg_op(g, i);
		bool branch = op->kind == CFG_JMP || op->kind == CFG_JCC;

		if (!op->reached || (op->next != first && op->taken != first))
			continue;
		p.va = op->va;
		p.cond = op->kind == CFG_JCC ? (uint8_t)(1 + op->cond) : 0;
		p.cond_taken = op->taken == first;
		if (branch && op->emulated && op->taken != op->next && add_point(w, p))
			continue;
		w->npoints = before;
		return false;
	}
	return w->npoints > before;
}

/* Finds the next call after the work's call, without a branch between them. That call waits for the team. */
static bool find_end(const struct cfg *g, uint32_t call, uint64_t *va)
{
	uint32_t i = cfg_op(g, call)->next;

	while (i != CFG_NONE && cfg_op(g, i)->kind == CFG_PLAIN)
		i = cfg_op(g, i)->next;
	if (i == CFG_NONE || cfg_op(g, i)->kind != CFG_CALL || !cfg_op(g, i)->emulated)
		return false;
	*va = cfg_op(g, i)->va;
	return true;
}

/*
 * If no branch leads to the call, the call itself is probed, which costs more. It belongs to teams that are made for a
 * single piece of work.
 */
static void look_at_call(const struct cfg *g, uint32_t call, struct worker *w)
{
	struct worker_point begin = {.begins = 1}, end = {0}, self;
	unsigned before = w->npoints;
	uint32_t first;

	if (!find_registers(g, call, &first, &begin) || !find_end(g, call, &end.va))
		return;
	self = (struct worker_point){.va = cfg_op(g, call)->va, .begins = 1, .fn = begin.fn, .data = RDI};
	if ((add_branches(g, first, begin, w) || add_point(w, self)) && add_point(w, end))
		return;
	w->npoints = before;
}

static int look_at_function(struct search *s, uint64_t va)
{
	struct cfg g;
	int err = cfg_build(&g, s->elf, va, NULL);

	for (uint32_t i = 0; !err && i < buf_count(&g.ops, struct cfg_op); i++)
		if (cfg_op(&g, i)->reached && cfg_op(&g, i)->kind == CFG_CALL_INDIRECT && !cfg_op(&g, i)->target_va)
			look_at_call(&g, i, s->out);
	cfg_fini(&g);
	return err == -ENOENT || err == -EILSEQ ? 0 : err;
}

/* Finds lea rdx, [rip + start of a function], the third argument of pthread_create. It searches for the bytes only. */
static int on_create(void *ctx, uint64_t call_va)
{
	static const uint8_t lea[] = {0x48, 0x8d, 0x15};
	struct search *s = ctx;
	uint8_t code[LOOK_BACK];
	struct elf_fde fde;
	uint64_t va;
	int32_t disp;

	if (elf_read_va(s->elf, call_va - LOOK_BACK, code, LOOK_BACK))
		return 0;
	for (unsigned at = LOOK_BACK - 7; at; at--) {
		if (memcmp(code + at, lea, sizeof(lea)))
			continue;
		memcpy(&disp, code + at + sizeof(lea), sizeof(disp));
		va = call_va - LOOK_BACK + at + 7 + (uint64_t)(int64_t)disp;
		if (elf_fde_find(s->elf, va, &fde, NULL) || fde.start_va != va)
			continue;
		s->err = look_at_function(s, va);
		return s->err || s->out->npoints;
	}
	return 0;
}

int worker_find(struct elf *elf, struct worker *out, struct err *e)
{
	struct search s = {.elf = elf, .out = out};
	int err;

	memset(out, 0, sizeof(*out));
	err = elf_each_call(elf, "pthread_create", on_create, &s);
	if (s.err || (err < 0 && err != -ENOENT))
		return err_set(e, ERR_TARGET, s.err ? s.err : err, "cannot read its code");
	if (!out->npoints)
		return err_set(e, ERR_TARGET, -ENOENT, "its code does not show where threads begin and end their work");
	return 0;
}

int worker_find_start(struct elf *elf, uint64_t start_va, uint64_t *va, struct err *e)
{
	struct cfg g;
	int err = cfg_build(&g, elf, start_va, NULL);
	bool found = false;

	for (uint32_t i = 1; !err && !found && i < buf_count(&g.ops, struct cfg_op); i++) {
		uint32_t k = i - 1;

		if (!cfg_op(&g, i)->reached || cfg_op(&g, i)->kind != CFG_CALL_INDIRECT)
			continue;
		while (k && cfg_op(&g, k)->kind == CFG_PLAIN && !cfg_op(&g, k + 1)->joined)
			k--;
		found = cfg_op(&g, k)->kind == CFG_CALL;
		*va = cfg_op(&g, k)->target_va;
	}
	cfg_fini(&g);
	if (err || !found)
		return err_set(e, ERR_TARGET, err ? err : -ENOENT, "its code does not show what wakes a team");
	return 0;
}

/* Appends the targets of a function's direct branches that leave it. */
static int branches_of(struct elf *elf, uint64_t start_va, struct buf *out)
{
	struct cfg g;
	int err = cfg_build(&g, elf, start_va, NULL);

	for (uint32_t i = 0; !err && i < buf_count(&g.ops, struct cfg_op); i++) {
		const struct cfg_op *op = cfg_op(&g, i);
		const struct elf_fde *fde = &g.frags[op->frag].fde;
		bool branch = op->kind == CFG_JMP || op->kind == CFG_JCC || op->kind == CFG_CALL;

		if (op->reached && branch && (op->target_va < fde->start_va || op->target_va >= fde->end_va))
			err = buf_put(out, &op->target_va, sizeof(op->target_va)) ? -ENOMEM : 0;
	}
	cfg_fini(&g);
	return err;
}

static bool leads_to(const struct buf *branches, uint64_t va)
{
	for (size_t i = 0; i < buf_count(branches, uint64_t); i++)
		if (*buf_at(branches, uint64_t, i) == va)
			return true;
	return false;
}

/* Returns true if each of these branch targets is va or branches to it. */
static bool all_lead_to(struct elf *elf, const struct buf *branches, uint64_t va)
{
	bool all = true;

	for (size_t i = 0; all && i < buf_count(branches, uint64_t); i++) {
		uint64_t to = *buf_at(branches, uint64_t, i);
		struct buf next = {0};

		all = to == va || (!branches_of(elf, to, &next) && leads_to(&next, va));
		buf_fini(&next);
	}
	return all;
}

int worker_find_end(struct elf *elf, uint64_t start_va, uint64_t *va, struct err *e)
{
	struct buf branches = {0};
	int err = branches_of(elf, start_va, &branches);
	bool found = false;

	for (size_t i = 0; !err && !found && i < buf_count(&branches, uint64_t); i++) {
		*va = *buf_at(&branches, uint64_t, i);
		found = all_lead_to(elf, &branches, *va);
	}
	buf_fini(&branches);
	if (err || !found)
		return err_set(e, ERR_TARGET, err ? err : -ENOENT, "its code does not show what ends a region");
	return 0;
}
