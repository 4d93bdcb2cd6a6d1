/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes instructions (with Zydis) to place probes. The kernel silently accepts an offset in the middle of an
 * instruction, and the target then computes wrong results. Therefore only offsets from this room are ever attached.
 * x86-64 only; no other room knows about instructions.
 */
#ifndef INSN_INSN_H
#define INSN_INSN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The cost of a probe on an instruction. */
enum insn_cost {
	INSN_EMULATED = 0, /* the kernel emulates the instruction: one trap */
	INSN_STEPPED = 1,  /* single-stepped: ten times the cost on virtual machines */
	INSN_REFUSED = 2,  /* attaching fails, corrupts the target (5-byte nop, AVX) or counts wrong (rep) */
};

struct insn_entry {
	uint32_t delta_bytes; /* from the function's start to the probed instruction */
	enum insn_cost cost;
	char text[64]; /* text of that instruction, such as "push rbp" */
};

/*
 * Finds where to probe a function's entry: at its first instruction, or at a later emulated one if the instructions
 * before it keep arguments and stack pointer, and no branch of the function leads to it or in between. code/size is the
 * whole function, which is needed for branch targets; va is its address. Returns 0, -EILSEQ if the code cannot be
 * decoded, or -ENOTSUP if no instruction may be probed.
 */
int insn_place_entry(const uint8_t *code, size_t size, uint64_t va, struct insn_entry *out, struct err *e);

/*
 * Returns 1 if an instruction starts at delta, by linear decoding from the start; 0 if not; -EILSEQ if it cannot decode
 * the code up to it.
 */
int insn_is_boundary(const uint8_t *code, size_t size, size_t delta);

/* Finds the cost and length of one instruction. Returns 0 or -EILSEQ. */
int insn_classify(const uint8_t *code, size_t size, enum insn_cost *cost, uint32_t *len);

/*
 * Finds the guard of a static variable that a function makes in its first call: a byte that each call tests before it
 * branches or calls anything. While it is 0, no call has got farther. va: of the function, or of a later instruction
 * before the test. Returns 0, or -ENOENT if the function does not begin like that.
 */
struct elf;
int insn_guard(struct elf *f, uint64_t va, uint64_t *guard_va);

#endif
