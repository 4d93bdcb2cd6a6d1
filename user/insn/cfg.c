// SPDX-License-Identifier: Apache-2.0
#include "insn/cfg.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insn/callee.h"
#include "insn/flow.h"
#include "insn/priv.h"

#define CODE_MAX_BYTES (256u << 10) /* limit of one fragment */

#define LEVEL_FREES    1
#define LEVEL_INDIRECT 4 /* a call through a pointer that cannot throw according to the exception table */

int cfg_refuse(struct cfg *g, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(g->why, sizeof(g->why), fmt, args);
	va_end(args);
	return code;
}

static int refuse_at(struct cfg *g, int code, const char *what, uint64_t va)
{
	return cfg_refuse(g, code, "%s at 0x%llx", what, (unsigned long long)va);
}

/* ---- instructions */

static enum cfg_kind branch_kind(const ZydisDecodedInstruction *i)
{
	bool relative = i->raw.imm[0].is_relative;

	if (i->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return CFG_STRANGE;
	if (i->meta.category == ZYDIS_CATEGORY_CALL)
		return relative ? CFG_CALL : CFG_CALL_INDIRECT;
	if (i->mnemonic == ZYDIS_MNEMONIC_JMP)
		return relative ? CFG_JMP : CFG_JMP_INDIRECT;
	if (!relative || i->mnemonic == ZYDIS_MNEMONIC_XBEGIN)
		return CFG_STRANGE;
	if (i->opcode_map == ZYDIS_OPCODE_MAP_0F ? (i->opcode & 0xf0) == 0x80 : (i->opcode & 0xf0) == 0x70)
		return CFG_JCC;
	return CFG_BRANCH;
}

static enum cfg_kind kind_of(const ZydisDecodedInstruction *i)
{
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
		return branch_kind(i);
	case ZYDIS_CATEGORY_RET:
		return i->mnemonic == ZYDIS_MNEMONIC_RET && i->meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR ? CFG_RET
													  : CFG_STRANGE;
	default:
		break;
	}
	if (i->mnemonic == ZYDIS_MNEMONIC_UD0 || i->mnemonic == ZYDIS_MNEMONIC_UD1 ||
	    i->mnemonic == ZYDIS_MNEMONIC_UD2 || i->mnemonic == ZYDIS_MNEMONIC_HLT ||
	    i->mnemonic == ZYDIS_MNEMONIC_INT3)
		return CFG_STOP;
	return i->raw.imm[0].is_relative || i->mnemonic == ZYDIS_MNEMONIC_XABORT ? CFG_STRANGE : CFG_PLAIN;
}

static void cfg_describe(struct cfg_op *op, const ZydisDecodedInstruction *i)
{
	op->len = i->length;
	op->kind = (uint8_t)kind_of(i);
	op->cond = i->opcode & 0xf;
	op->emulated = insn_cost_of(i) == INSN_EMULATED;
	op->next = op->taken = op->pad = CFG_NONE;
	if (i->raw.imm[0].is_relative)
		op->target_va = op->va + i->length + (uint64_t)i->raw.imm[0].value.s;
	else if ((op->kind == CFG_CALL_INDIRECT || op->kind == CFG_JMP_INDIRECT) && i->raw.modrm.mod == 0 &&
		 i->raw.modrm.rm == 5)
		op->target_va = op->va + i->length + (uint64_t)i->raw.disp.value;
}

static int decode_frag(struct cfg *g, struct cfg_frag *frag)
{
	size_t size = frag->fde.end_va - frag->fde.start_va, at = 0;
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	frag->first_op = (uint32_t)buf_count(&g->ops, struct cfg_op);
	while (at < size) {
		struct cfg_op op = {.va = frag->fde.start_va + at, .frag = (uint8_t)(frag - g->frags)};

		/* The last instruction may not cross the end, because the decoder gets no bytes after it. */
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, frag->code + at, size - at, &insn)))
			return refuse_at(g, -EILSEQ, "no instruction", op.va);
		cfg_describe(&op, &insn);
		if (buf_put(&g->ops, &op, sizeof(op)))
			return -ENOMEM;
		at += insn.length;
	}
	frag->nops = (uint32_t)buf_count(&g->ops, struct cfg_op) - frag->first_op;
	return 0;
}

/* ---- fragments */

static int add_frag(struct cfg *g, const struct elf_fde *fde, const struct cfg_frag *like, struct cfg_frag **out)
{
	uint64_t size = fde->end_va - fde->start_va, off;
	struct cfg_frag *frag = &g->frags[g->nfrags];
	int err;

	if (g->nfrags == CFG_FRAGS_MAX)
		return cfg_refuse(g, -ENOENT, "it has more than %d parts", CFG_FRAGS_MAX);
	for (unsigned i = 0; i < g->nfrags; i++)
		if (g->frags[i].fde.start_va == fde->start_va)
			return refuse_at(g, -ENOENT, "a part that belongs to two functions", fde->start_va);
	if (fde->signal_frame)
		return cfg_refuse(g, -ENOENT, "it is a signal frame");
	if (!size || size > CODE_MAX_BYTES)
		return cfg_refuse(g, -ENOENT, "it has %llu bytes of code", (unsigned long long)size);
	if (elf_exec_off(g->elf, fde->start_va, &off))
		return cfg_refuse(g, -ENOENT, "its code is not in an executable segment");
	g->nfrags++;
	*frag = (struct cfg_frag){.fde = *fde, .return_op = CFG_NONE};
	if (like) {
		frag->cfa_add = like->cfa_add;
		frag->return_op = like->return_op;
		frag->merged = like->merged;
	}
	frag->code = malloc(size);
	if (!frag->code)
		return -ENOMEM;
	err = elf_read_va(g->elf, fde->start_va, frag->code, size);
	if (!err)
		err = elf_fde_cfas(g->elf, fde, &frag->cfas, NULL);
	if (!err)
		err = elf_fde_call_sites(g->elf, fde, &frag->sites, NULL);
	if (err)
		return refuse_at(g, err, "cannot read the code or unwind entry", fde->start_va);
	*out = frag;
	return decode_frag(g, frag);
}

struct elf_cfa cfg_cfa(const struct cfg_frag *frag, uint64_t va)
{
	size_t lo = 0, hi = buf_count(&frag->cfas, struct elf_cfa);

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (buf_at(&frag->cfas, struct elf_cfa, mid)->va <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? *buf_at(&frag->cfas, struct elf_cfa, lo - 1) : (struct elf_cfa){.base = ELF_CFA_OTHER};
}

/* Returns true if the stack is as at the function's entry. A jump out of the function is then a tail call. */
static bool at_entry_depth(const struct elf_cfa *cfa)
{
	return cfa->base == ELF_CFA_RSP && cfa->off == 8;
}

/* Returns true if both fragments belong to one activation, so that one is a part of the other. */
static bool same_context(const struct cfg_frag *a, const struct cfg_frag *b)
{
	return a->cfa_add == b->cfa_add && a->return_op == b->return_op;
}

static struct cfg_frag *frag_at(struct cfg *g, const struct cfg_frag *like, uint64_t va)
{
	for (unsigned i = 0; i < g->nfrags; i++)
		if (va >= g->frags[i].fde.start_va && va < g->frags[i].fde.end_va && same_context(&g->frags[i], like))
			return &g->frags[i];
	return NULL;
}

static int op_at(struct cfg *g, const struct cfg_frag *frag, uint64_t va, uint32_t *out)
{
	uint32_t lo = frag->first_op, hi = frag->first_op + frag->nops;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (cfg_op(g, mid)->va < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == frag->first_op + frag->nops || cfg_op(g, lo)->va != va)
		return refuse_at(g, -EILSEQ, "a branch into the middle of an instruction", va);
	*out = lo;
	return 0;
}

/*
 * Decides if the code at va is another part of the function that jumps there. It is if no unwind entry starts there, if
 * the stack is not as at a call, or if its name says so. Then both parts must agree on the frame.
 */
static int find_part(struct cfg *g, const struct cfg_frag *frag, const struct cfg_op *op, uint64_t va,
		     struct elf_fde *fde, bool *part)
{
	struct elf_cfa from = cfg_cfa(frag, op->va), to;
	struct cfg_frag there = {0};
	struct callee callee;
	int err = callee_at(g->elf, va, &callee);

	*part = false;
	if (err || callee.import)
		return err;
	err = elf_fde_find(g->elf, va, fde, NULL);
	if (err)
		return err == -ENOENT ? 0 : err;
	*part = fde->start_va != va || !at_entry_depth(&from) || callee.cold;
	if (!*part)
		return 0;
	err = elf_fde_cfas(g->elf, fde, &there.cfas, NULL);
	to = cfg_cfa(&there, va);
	buf_fini(&there.cfas);
	if (!err && (from.base != to.base || (from.base != ELF_CFA_OTHER && from.off != to.off)))
		return refuse_at(g, -ENOENT, "a jump out of the function with another stack depth", op->va);
	return err;
}

int cfg_land(struct cfg *g, uint32_t i, uint64_t va, uint32_t *out)
{
	const struct cfg_op op = *cfg_op(g, i);
	struct cfg_frag *frag = &g->frags[op.frag], *there = frag_at(g, frag, va);
	struct elf_fde fde;
	bool part;
	int err;

	*out = CFG_NONE;
	if (!there) {
		err = find_part(g, frag, &op, va, &fde, &part);
		if (!err && part)
			err = add_frag(g, &fde, frag, &there);
		if (err)
			return err;
	}
	if (!there)
		return 0;
	err = op_at(g, there, va, out);
	/* The entry probe would count such a jump as a call. */
	if (!err && *out == 0)
		return refuse_at(g, -ENOENT, "it jumps back to its own start", op.va);
	return err;
}

/* ---- successors */

static int reach(struct cfg *g, uint32_t from, uint32_t to)
{
	struct cfg_op *op = cfg_op(g, to);

	if (to != from + 1)
		op->joined = true;
	if (op->reached)
		return 0;
	op->reached = true;
	return buf_put(&g->todo, &to, sizeof(to));
}

static int go_next(struct cfg *g, uint32_t i)
{
	struct cfg_op *op = cfg_op(g, i);
	const struct cfg_frag *frag = &g->frags[op->frag];

	if (i + 1 < frag->first_op + frag->nops) {
		op->next = i + 1;
		return reach(g, i, i + 1);
	}
	/* A call at the end of the code does not return. */
	if (op->kind == CFG_CALL || op->kind == CFG_CALL_INDIRECT)
		return 0;
	return refuse_at(g, -ENOENT, "it runs off its end", op->va);
}

static int go_taken(struct cfg *g, uint32_t i, uint32_t to)
{
	cfg_op(g, i)->taken = to;
	return reach(g, i, to);
}

static bool to_be_merged(const struct cfg *g, uint64_t va)
{
	for (size_t i = 0; g->merges && i < buf_count(g->merges, uint64_t); i++)
		if (*buf_at(g->merges, uint64_t, i) == va)
			return true;
	return false;
}

/* Merges the callee of a direct branch. *out is its first instruction, or CFG_NONE to treat the branch as a call. */
static int merge_callee(struct cfg *g, uint32_t i, uint32_t *out)
{
	const struct cfg_op op = *cfg_op(g, i);
	struct cfg_frag like = g->frags[op.frag], *there;
	struct elf_cfa cfa = cfg_cfa(&like, op.va);
	struct elf_fde fde = {0};
	uint64_t va;
	int err;

	*out = CFG_NONE;
	like.merged = true;
	if (op.kind == CFG_CALL) {
		if (cfa.base != ELF_CFA_RSP || i + 1 == like.first_op + like.nops)
			return 0;
		like.cfa_add += cfa.off;
		like.return_op = i + 1;
	}
	err = callee_in_file(g->elf, op.target_va, &va);
	if (!err)
		err = elf_fde_find(g->elf, va, &fde, NULL);
	if (err || fde.start_va != va)
		return err == -ENOENT ? 0 : err;
	/* Each place in the code may have only one meaning. */
	for (unsigned k = 0; k < g->nfrags; k++)
		if (g->frags[k].fde.start_va == fde.start_va && (k == 0 || !same_context(&g->frags[k], &like)))
			return 0;
	there = frag_at(g, &like, va);
	err = there ? 0 : add_frag(g, &fde, &like, &there);
	*out = err ? CFG_NONE : there->first_op;
	return err;
}

/* Handles a tail call: the other function takes over, and the caller sees one call. */
static int cfg_leave(struct cfg *g, uint32_t i, const struct callee *callee)
{
	struct cfg_op *op = cfg_op(g, i);
	uint32_t return_op = g->frags[op->frag].return_op;

	if (callee->kind == CALLEE_TWICE)
		return refuse_at(g, -ENOENT, "a call that returns more than once", op->va);
	op->level = callee->level;
	if (callee->kind == CALLEE_STOPS || callee->kind == CALLEE_THROWS)
		return 0;
	if (return_op != CFG_NONE)
		return go_taken(g, i, return_op);
	g->tail_exit = true;
	op->exit = true;
	return 0;
}

static int leave_by_jump(struct cfg *g, uint32_t i, uint64_t va)
{
	struct elf_cfa cfa = cfg_cfa(&g->frags[cfg_op(g, i)->frag], cfg_op(g, i)->va);
	struct callee callee;
	uint64_t off;
	int err = callee_at(g->elf, va, &callee);

	if (err)
		return err;
	if (!at_entry_depth(&cfa) || elf_exec_off(g->elf, va, &off))
		return refuse_at(g, -ENOENT, "a jump out of the function", cfg_op(g, i)->va);
	return cfg_leave(g, i, &callee);
}

/* Everything in a merged callee counts as work, because a cut before it would be too early however little it does. */
static int go_merged(struct cfg *g, uint32_t i, uint32_t to)
{
	cfg_op(g, i)->level = FLOW_LEVEL_WORK;
	return go_taken(g, i, to);
}

static int visit_jmp(struct cfg *g, uint32_t i)
{
	const struct cfg_op op = *cfg_op(g, i);
	uint32_t to = CFG_NONE;
	int err = to_be_merged(g, op.va) ? merge_callee(g, i, &to) : 0;

	if (!err && to != CFG_NONE) {
		g->tail_exit |= g->frags[op.frag].return_op == CFG_NONE;
		return go_merged(g, i, to);
	}
	if (!err)
		err = cfg_land(g, i, op.target_va, &to);
	if (err)
		return err;
	return to == CFG_NONE ? leave_by_jump(g, i, op.target_va) : go_taken(g, i, to);
}

static int visit_conditional(struct cfg *g, uint32_t i)
{
	const struct cfg_op op = *cfg_op(g, i);
	struct cfg_op tail = {.va = op.va, .kind = CFG_TAIL, .frag = op.frag, .reached = true};
	uint32_t to;
	int err = go_next(g, i);

	if (!err)
		err = cfg_land(g, i, op.target_va, &to);
	if (err)
		return err;
	if (to != CFG_NONE)
		return go_taken(g, i, to);
	to = (uint32_t)buf_count(&g->ops, struct cfg_op);
	tail.next = tail.taken = tail.pad = CFG_NONE;
	tail.joined = true;
	if (buf_put(&g->ops, &tail, sizeof(tail)))
		return -ENOMEM;
	cfg_op(g, i)->taken = to;
	return leave_by_jump(g, to, op.target_va);
}

static int visit_jmp_indirect(struct cfg *g, uint32_t i)
{
	const struct cfg_op op = *cfg_op(g, i);
	struct elf_cfa cfa = cfg_cfa(&g->frags[op.frag], op.va);
	struct callee callee = {.level = FLOW_LEVEL_WORK};
	int err = cfg_read_table(g, i);

	for (uint32_t k = 0; !err && k < cfg_op(g, i)->ncases; k++)
		err = reach(g, CFG_NONE - 1, *buf_at(&g->cases, uint32_t, cfg_op(g, i)->first_case + k));
	if (err != -ENOENT || g->why[0])
		return err;
	if (!at_entry_depth(&cfa))
		return refuse_at(g, -ENOENT, "an indirect jump of unknown form", op.va);
	err = op.target_va ? callee_of_slot(g->elf, op.target_va, &callee) : 0;
	return err ? err : cfg_leave(g, i, &callee);
}

static const struct elf_call_site *site_of(const struct cfg_frag *frag, uint64_t va)
{
	size_t lo = 0, hi = buf_count(&frag->sites, struct elf_call_site);

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct elf_call_site *s = buf_at(&frag->sites, const struct elf_call_site, mid);

		if (va >= s->start_va && va < s->end_va)
			return s;
		if (va < s->start_va)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

/*
 * Judges a call by the callee's name first, and then by the exception table. Compilers give neighbouring calls one
 * site, so a call inside a site need not throw. In a gap between sites, a call through a pointer is nearly always a
 * destructor, but a direct call may be any noexcept function. Without any site, all calls are in gaps: no exception
 * leaves the function.
 */
static void judge_call(const struct cfg_frag *frag, const struct cfg_op *op, struct callee *callee, uint64_t *pad_va)
{
	const struct elf_call_site *site = site_of(frag, op->va + op->len - 1);

	*pad_va = 0;
	if (callee->kind == CALLEE_NOTHROW || callee->kind == CALLEE_STOPS)
		return;
	if (site)
		*pad_va = site->pad_va;
	else if (frag->sites.len && callee->kind == CALLEE_PLAIN && op->kind == CFG_CALL_INDIRECT && !op->target_va)
		callee->level = LEVEL_INDIRECT;
}

static int go_pad(struct cfg *g, uint32_t i, uint64_t pad_va)
{
	uint32_t pad;
	int err = cfg_land(g, i, pad_va, &pad);

	if (err)
		return err;
	if (pad == CFG_NONE)
		return refuse_at(g, -ENOENT, "a landing pad outside the function", pad_va);
	cfg_op(g, i)->pad = pad;
	return reach(g, i, pad);
}

static int call_callee(struct cfg *g, const struct cfg_op *op, struct callee *callee)
{
	const struct elf_fde *fde = &g->frags[op->frag].fde;

	*callee = (struct callee){.level = FLOW_LEVEL_WORK};
	if (op->kind == CFG_CALL_INDIRECT)
		return op->target_va ? callee_of_slot(g->elf, op->target_va, callee) : 0;
	if (op->target_va > fde->start_va && op->target_va < fde->end_va)
		return refuse_at(g, -ENOENT, "a call into its own middle", op->va);
	return callee_at(g->elf, op->target_va, callee);
}

static int visit_call(struct cfg *g, uint32_t i)
{
	const struct cfg_op op = *cfg_op(g, i);
	struct callee callee;
	uint32_t to = CFG_NONE;
	uint64_t pad_va;
	int err = call_callee(g, &op, &callee);

	if (!err && to_be_merged(g, op.va))
		err = merge_callee(g, i, &to);
	if (err)
		return err;
	if (callee.kind == CALLEE_TWICE)
		return refuse_at(g, -ENOENT, "a call that returns more than once", op.va);
	judge_call(&g->frags[op.frag], &op, &callee, &pad_va);
	if (pad_va)
		err = go_pad(g, i, pad_va);
	if (err)
		return err;
	if (to != CFG_NONE) {
		cfg_op(g, i + 1)->joined = true;
		return go_merged(g, i, to);
	}
	cfg_op(g, i)->level = callee.level;
	return callee.kind == CALLEE_STOPS || callee.kind == CALLEE_THROWS ? 0 : go_next(g, i);
}

static int visit_ret(struct cfg *g, uint32_t i)
{
	uint32_t return_op = g->frags[cfg_op(g, i)->frag].return_op;

	if (return_op != CFG_NONE)
		return go_taken(g, i, return_op);
	cfg_op(g, i)->exit = true;
	return 0;
}

static int visit_stop(struct cfg *g, uint32_t i)
{
	return 0;
}

static int visit_strange(struct cfg *g, uint32_t i)
{
	return refuse_at(g, -ENOENT, "an unsupported instruction", cfg_op(g, i)->va);
}

static int (*const visits[])(struct cfg *g, uint32_t i) = {
	[CFG_PLAIN] = go_next,
	[CFG_JCC] = visit_conditional,
	[CFG_BRANCH] = visit_conditional,
	[CFG_JMP] = visit_jmp,
	[CFG_JMP_INDIRECT] = visit_jmp_indirect,
	[CFG_CALL] = visit_call,
	[CFG_CALL_INDIRECT] = visit_call,
	[CFG_RET] = visit_ret,
	[CFG_STOP] = visit_stop,
	[CFG_STRANGE] = visit_strange,
};

/* Conclusions from consecutive instructions hold only if no jump leads into the middle of them. */
static int check_tables(struct cfg *g)
{
	for (size_t t = 0; t < buf_count(&g->tables, struct cfg_table); t++) {
		const struct cfg_table *table = buf_at(&g->tables, const struct cfg_table, t);

		for (uint32_t i = table->first_op + 1; i <= table->jump_op; i++)
			if (cfg_op(g, i)->joined)
				return refuse_at(g, -ENOENT, "an indirect jump of unknown form",
						 cfg_op(g, table->jump_op)->va);
	}
	return 0;
}

bool cfg_only_call(const struct cfg *g, uint32_t i)
{
	const struct cfg_op *op = cfg_op(g, i);
	const struct cfg_frag *frag = &g->frags[op->frag];
	struct elf_cfa cfa = cfg_cfa(frag, op->va), other;

	for (uint32_t k = 0; k < buf_count(&g->ops, struct cfg_op); k++) {
		const struct cfg_op *o = cfg_op(g, k);

		if (k == i || !o->reached || (o->kind != CFG_CALL && o->kind != CFG_CALL_INDIRECT) ||
		    !same_context(frag, &g->frags[o->frag]))
			continue;
		if (o->level <= LEVEL_FREES || o->level == FLOW_LEVEL_THROW)
			continue;
		other = cfg_cfa(&g->frags[o->frag], o->va);
		if (other.base != cfa.base || other.off == cfa.off)
			return false;
	}
	return true;
}

static int check_merges(struct cfg *g)
{
	for (uint32_t i = 0; i < buf_count(&g->ops, struct cfg_op); i++)
		if (cfg_op(g, i)->kind == CFG_CALL && cfg_op(g, i)->taken != CFG_NONE && !cfg_only_call(g, i))
			return refuse_at(g, -ENOENT, "a callee that may be called twice", cfg_op(g, i)->va);
	return 0;
}

int cfg_build(struct cfg *g, struct elf *elf, uint64_t entry_va, const struct buf *merges)
{
	struct cfg_frag *frag;
	struct elf_fde fde;
	int err;

	memset(g, 0, sizeof(*g));
	g->elf = elf;
	g->merges = merges;
	err = elf_fde_find(elf, entry_va, &fde, NULL);
	if (err == -ENOENT || (!err && fde.start_va != entry_va))
		return cfg_refuse(g, -ENOENT, "no unwind entry begins at 0x%llx", (unsigned long long)entry_va);
	if (err)
		return cfg_refuse(g, err, "cannot read the unwind tables: %s", strerror(-err));
	err = add_frag(g, &fde, NULL, &frag);
	if (!err)
		err = reach(g, CFG_NONE - 1, 0);
	while (!err && g->todo.len) {
		uint32_t i;

		g->todo.len -= sizeof(i);
		memcpy(&i, g->todo.data + g->todo.len, sizeof(i));
		err = visits[cfg_op(g, i)->kind](g, i);
	}
	if (!err)
		err = check_tables(g);
	return err ? err : check_merges(g);
}

void cfg_fini(struct cfg *g)
{
	for (unsigned i = 0; i < g->nfrags; i++) {
		free(g->frags[i].code);
		buf_fini(&g->frags[i].cfas);
		buf_fini(&g->frags[i].sites);
	}
	buf_fini(&g->ops);
	buf_fini(&g->cases);
	buf_fini(&g->todo);
	buf_fini(&g->tables);
}
