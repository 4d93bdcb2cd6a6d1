// SPDX-License-Identifier: Apache-2.0
#include "insn/fork.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "elf/unwind.h"
#include "insn/priv.h"

#define FUNC_BYTES_MAX (1u << 20)
#define LOOKS_MAX      256 /* limit of functions that are read, for the sake of hostile files */

struct call {
	uint64_t va, target_va;
	uint64_t behind_va; /* the next branch, if it is emulated; 0: none */
};

struct search {
	struct elf *elf;
	struct fork *out;
	uint64_t opens_va;   /* during the search for calls of `forks` */
	uint64_t fork_in_va; /* the call of it in `opens` */
	unsigned looks;
};

/* Returns the address after a leading endbr64, where some compilers let unwind entries begin. */
static uint64_t body_of(struct elf *elf, uint64_t va)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t code[sizeof(endbr64)];
	struct elf_fde fde;

	if (elf_read_va(elf, va, code, sizeof(code)) || memcmp(code, endbr64, sizeof(code)) ||
	    elf_fde_find(elf, va + sizeof(code), &fde, NULL) || fde.start_va != va + sizeof(code))
		return va;
	return fde.start_va;
}

static bool is_branch(const ZydisDecodedInstruction *insn)
{
	return insn->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || insn->meta.category == ZYDIS_CATEGORY_RET;
}

/* Appends the direct calls in a piece of code, in order. */
static int calls_in(const uint8_t *code, size_t n, uint64_t va, struct buf *out)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	struct call call;
	bool behind = false;
	int err = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t at = 0; !err && at < n; at += insn.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, n - at, &insn, ops)))
			return -EILSEQ;
		if (!is_branch(&insn))
			continue;
		if (behind && insn_cost_of(&insn) == INSN_EMULATED)
			buf_at(out, struct call, buf_count(out, struct call) - 1)->behind_va = va + at;
		behind = insn.mnemonic == ZYDIS_MNEMONIC_CALL && ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
		if (!behind)
			continue;
		call = (struct call){.va = va + at, .target_va = va + at + insn.length + ops[0].imm.value.u};
		err = buf_put(out, &call, sizeof(call));
	}
	return err;
}

/* Appends the direct calls of the function that covers va. */
static int calls_of(struct elf *elf, uint64_t va, struct buf *out)
{
	struct elf_fde fde;
	uint8_t *code;
	int err = elf_fde_find(elf, va, &fde, NULL);

	if (err)
		return err;
	if (fde.end_va - fde.start_va > FUNC_BYTES_MAX)
		return -E2BIG;
	code = malloc(fde.end_va - fde.start_va + 1);
	if (!code)
		return -ENOMEM;
	err = elf_read_va(elf, fde.start_va, code, fde.end_va - fde.start_va);
	err = err ? err : calls_in(code, fde.end_va - fde.start_va, fde.start_va, out);
	free(code);
	return err;
}

/*
 * Finds the branch after the call at va. Returns -ENOENT if the bytes only look like a call, or if there is no such
 * branch.
 */
static int find_behind(struct elf *elf, uint64_t va, uint64_t *behind_va)
{
	struct buf calls = {0};
	int err = calls_of(elf, va, &calls);

	*behind_va = 0;
	for (size_t i = 0; !err && i < buf_count(&calls, struct call); i++)
		if (buf_at(&calls, struct call, i)->va == va)
			*behind_va = buf_at(&calls, struct call, i)->behind_va;
	buf_fini(&calls);
	return err ? err : *behind_va ? 0 : -ENOENT;
}

static int add_point(struct search *s, uint64_t va, struct fork_points *p)
{
	bool room = p->n < FORK_POINTS_MAX && s->looks++ < LOOKS_MAX;
	int err = room ? find_behind(s->elf, va, &p->va[p->n]) : -E2BIG;

	p->n += !err;
	return err == -ENOENT || err == -EILSEQ ? 0 : err;
}

static int on_fork(void *ctx, uint64_t va)
{
	struct search *s = ctx;
	struct elf_fde fde;

	if (elf_fde_find(s->elf, va, &fde, NULL))
		return 0;
	if (fde.start_va != s->opens_va)
		return add_point(s, va, &s->out->forked);
	s->fork_in_va = va;
	return 0;
}

/*
 * Skips calls in the forking function itself. They run the master's part, which is seen where the master ends the
 * region.
 */
static int on_invoke(void *ctx, uint64_t va)
{
	struct search *s = ctx;
	struct elf_fde fde;

	if (elf_fde_find(s->elf, va, &fde, NULL) || fde.start_va == s->out->fork_va)
		return 0;
	return add_point(s, va, &s->out->invoked);
}

static int on_join(void *ctx, uint64_t va)
{
	struct search *s = ctx;

	return add_point(s, va, &s->out->joined);
}

static bool calls_it(const struct buf *calls, uint64_t target_va)
{
	for (size_t i = 0; i < buf_count(calls, struct call); i++)
		if (buf_at(calls, struct call, i)->target_va == target_va)
			return true;
	return false;
}

/* Finds the first function that both call; in `opens`, after the call that forks. */
static int find_join(struct search *s, uint64_t ends_va)
{
	struct buf opens = {0}, ends = {0};
	uint64_t va = 0;
	int err = calls_of(s->elf, s->opens_va, &opens);

	err = err ? err : calls_of(s->elf, ends_va, &ends);
	for (size_t i = 0; !err && !va && i < buf_count(&opens, struct call); i++) {
		const struct call *c = buf_at(&opens, struct call, i);

		va = c->va > s->fork_in_va && calls_it(&ends, c->target_va) ? c->target_va : 0;
	}
	buf_fini(&opens);
	buf_fini(&ends);
	if (err || !va)
		return err;
	s->out->join_va = body_of(s->elf, va);
	return elf_each_call_at(s->elf, va, on_join, s);
}

static int find_body(struct elf *elf, const char *name, uint64_t *va, struct err *e)
{
	struct elf_sym sym;
	int err = elf_find_sym(elf, name, &sym, e);

	if (!err)
		*va = body_of(elf, sym.va);
	return err;
}

int fork_find(struct elf *elf, const struct fork_names *names, struct fork *out, struct err *e)
{
	struct search s = {.elf = elf, .out = out};
	uint64_t ends_va;
	int err;

	memset(out, 0, sizeof(*out));
	err = find_body(elf, names->forks, &out->fork_va, e);
	err = err ? err : find_body(elf, names->invokes, &out->invoke_va, e);
	err = err ? err : find_body(elf, names->opens, &s.opens_va, e);
	err = err ? err : find_body(elf, names->ends, &ends_va, e);
	if (err)
		return err;
	err = elf_each_call(elf, names->forks, on_fork, &s);
	err = err ? err : elf_each_call(elf, names->invokes, on_invoke, &s);
	if (!err && s.fork_in_va)
		err = find_join(&s, ends_va);
	if (err || !out->joined.n || !out->invoked.n)
		return err_set(e, ERR_TARGET, err ? err : -ENOENT,
			       "its code does not show where threads begin and end their work");
	return 0;
}
