/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruction decoding (Zydis) for placing probes. The kernel accepts an offset in the middle of an
 * instruction without a word and the target then computes wrong results, so an offset that does not come
 * from here is never attached. x86-64 only; nothing outside this room knows it.
 */
#ifndef INSN_INSN_H
#define INSN_INSN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* What the kernel does with a probe on an instruction. */
enum insn_cost {
	INSN_EMULATED = 0, /* a trap alone */
	INSN_STEPPED = 1,  /* single-stepped: ten times that on virtual machines */
	INSN_REFUSED = 2,  /* attach fails, or would corrupt the target (5-byte nop, AVX) or count wrong (rep) */
};

struct insn_entry {
	uint32_t delta_bytes; /* from the function's start to the instruction to probe */
	enum insn_cost cost;
	char text[64]; /* that instruction, "push rbp" */
};

/*
 * Where to probe a function's entry: its first instruction, or a later emulated one if everything before
 * it leaves the arguments and the stack pointer as at entry and no branch of the function leads to it or
 * between. code/size: the whole function from its start (for branch targets), va its address.
 * 0; -EILSEQ undecodable; -ENOTSUP nothing that may be probed.
 */
int insn_place_entry(const uint8_t *code, size_t size, uint64_t va, struct insn_entry *out, struct err *e);

/*
 * 1 if an instruction starts at delta by linear decoding from the start, 0 if not, -EILSEQ undecodable before or at it.
 */
int insn_is_boundary(const uint8_t *code, size_t size, size_t delta);

/* Cost class of one instruction's bytes; *len its length. -EILSEQ. */
int insn_classify(const uint8_t *code, size_t size, enum insn_cost *cost, uint32_t *len);

#endif
