/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only for the insn room: the control flow of a function, instruction by instruction, from its unwind entries. An edge
 * too many costs a cut, and a missing edge makes a false cut. So the attempt ends at anything that is not understood.
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
	CFG_BRANCH, /* conditional, but no jcc: loop, jrcxz */
	CFG_JMP,
	CFG_JMP_INDIRECT,
	CFG_CALL,
	CFG_CALL_INDIRECT,
	CFG_RET,
	CFG_STOP, /* ud2, hlt, int3 */
	CFG_TAIL, /* no instruction: the function that a conditional tail call reaches */
	CFG_STRANGE,
};

struct cfg_op {
	uint64_t va;
	uint64_t target_va;	     /* of a direct branch; of an indirect one, its rip-relative slot; otherwise 0 */
	uint32_t next, taken, pad;   /* possible successors: next, by branch, by exception; or CFG_NONE */
	uint32_t first_case, ncases; /* successors by jump table, in `cases` */
	uint8_t len, kind, cond, level, frag;
	bool emulated, reached;
	bool joined; /* reached from elsewhere than the instruction before */
	bool exit;   /* a normal return of the function, by ret or tail call */
};

/* The code of one unwind entry. */
struct cfg_frag {
	struct elf_fde fde;
	uint8_t *code; /* owned */
	uint32_t first_op, nops;
	struct buf cfas, sites;
	/*
	 * For a merged callee: the distance of its CFA from that of the function, and the instruction where its returns
	 * continue.
	 */
	int32_t cfa_add;
	uint32_t return_op;
	bool merged;
};

struct cfg {
	struct elf *elf;
	const struct buf *merges; /* uint64_t: addresses of direct branches whose callees are merged */
	struct cfg_frag frags[CFG_FRAGS_MAX];
	unsigned nfrags;
	struct buf ops, cases, todo; /* struct cfg_op, uint32_t, uint32_t */
	struct buf tables;	     /* struct cfg_table */
	bool tail_exit;
	char why[160];
};

/* A jump table is trusted only if no jump leads between the instructions that show its length. */
struct cfg_table {
	uint32_t first_op, jump_op;
};

/* Builds the graph. Returns 0, -ENOENT with the reason in `why`, -EILSEQ or -errno. Call cfg_fini() in any case. */
int cfg_build(struct cfg *g, struct elf *elf, uint64_t entry_va, const struct buf *merges);
void cfg_fini(struct cfg *g);

static inline struct cfg_op *cfg_op(const struct cfg *g, uint32_t i)
{
	return buf_at(&g->ops, struct cfg_op, i);
}

/* Returns the frame rule at va of a fragment. */
struct elf_cfa cfg_cfa(const struct cfg_frag *frag, uint64_t va);

/* Sets `why` and returns code. */
int cfg_refuse(struct cfg *g, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * Finds the instruction that a jump from op reaches within the function, adding another part of the function if
 * necessary. *out is CFG_NONE if the jump leaves the function.
 */
int cfg_land(struct cfg *g, uint32_t op, uint64_t va, uint32_t *out);

/*
 * Returns true if no other call of the activation has its frame at the same depth. Otherwise its callee, or one that it
 * tail-calls, could be the same function, and a run would pass a point in it twice at the same CFA.
 */
bool cfg_only_call(const struct cfg *g, uint32_t i);

/* table.c: sets the cases of an indirect jump. Returns 0, -ENOENT if it does not understand the table, or -errno. */
int cfg_read_table(struct cfg *g, uint32_t jump);

#endif
