/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the insn room only: the control flow of one function, instruction by instruction, from its unwind entries. An
 * edge too many costs a cut, a missing one makes a false one: whatever is not understood ends the attempt.
 */
#ifndef INSN_CFG_H
#define INSN_CFG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "elf/elf.h"
#include "elf/unwind.h"

#define CFG_NONE      UINT32_MAX
#define CFG_FRAGS_MAX 16

enum cfg_kind {
	CFG_PLAIN,
	CFG_JCC,
	CFG_BRANCH, /* conditional, but not a jcc: loop, jrcxz */
	CFG_JMP,
	CFG_JMP_INDIRECT,
	CFG_CALL,
	CFG_CALL_INDIRECT,
	CFG_RET,
	CFG_STOP, /* ud2, hlt, int3 */
	CFG_TAIL, /* no instruction: the function at the other end of a conditional tail call */
	CFG_STRANGE,
};

struct cfg_op {
	uint64_t va;
	uint64_t target_va;	     /* of a direct branch; of an indirect one its rip-relative slot; else 0 */
	uint32_t next, taken, pad;   /* what may come next: after it, by branch, by exception; CFG_NONE */
	uint32_t first_case, ncases; /* by jump table: in cases */
	uint8_t len, kind, cond, level, frag;
	bool emulated, reached;
	bool joined; /* reached other than from the instruction before */
	bool exit;   /* a normal return of the function, by ret or by tail call */
};

/* What one unwind entry covers. */
struct cfg_frag {
	struct elf_fde fde;
	uint8_t *code; /* owned */
	uint32_t first_op, nops;
	struct buf cfas, sites;
	/* Of a callee whose call was merged: this more to the CFA of the function, and there its returns go on. */
	int32_t cfa_add;
	uint32_t return_op;
	bool merged;
};

struct cfg {
	struct elf *elf;
	const struct buf *merges; /* uint64_t: addresses of direct branches whose callees are taken in */
	struct cfg_frag frags[CFG_FRAGS_MAX];
	unsigned nfrags;
	struct buf ops, cases, todo; /* struct cfg_op, uint32_t, uint32_t */
	struct buf tables;	     /* struct cfg_table */
	bool tail_exit;
	char why[160];
};

/* A jump table is believed if nothing comes in between the instructions that say how long it is. */
struct cfg_table {
	uint32_t first_op, jump_op;
};

/* 0; -ENOENT with the reason in why; -EILSEQ; -errno. cfg_fini() in any case. */
int cfg_build(struct cfg *g, struct elf *elf, uint64_t entry_va, const struct buf *merges);
void cfg_fini(struct cfg *g);

static inline struct cfg_op *cfg_op(const struct cfg *g, uint32_t i)
{
	return buf_at(&g->ops, struct cfg_op, i);
}

/* The frame rule at va of a fragment. */
struct elf_cfa cfg_cfa(const struct cfg_frag *frag, uint64_t va);

/* Sets why; returns code. */
int cfg_refuse(struct cfg *g, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Index of the instruction that a jump from op reaches within the function, taking in a part elsewhere; *out CFG_NONE:
 * outside. */
int cfg_land(struct cfg *g, uint32_t op, uint64_t va, uint32_t *out);

/*
 * No other call of the same activation has its frame at the same depth: else its callee, or one that it tail-calls,
 * could be the same function, and a point in it would be passed twice at the same CFA.
 */
bool cfg_only_call(const struct cfg *g, uint32_t i);

/* Fills in the cases of an indirect jump. 0, -ENOENT: not a table that is understood, -errno. table.c */
int cfg_read_table(struct cfg *g, uint32_t jump);

#endif
