/* SPDX-License-Identifier: Apache-2.0 */
/* Only for the insn room: the instructions of a function in the order of addresses. */
#ifndef INSN_WALK_H
#define INSN_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "elf/elf.h"
#include "insn/priv.h"

/* A walk over a function. */
struct walk {
	struct elf *elf;
	uint8_t *code; /* owned */
	size_t size, at;
	uint64_t va; /* address of insn */
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

/* Starts at the function's start; walk_next() advances. free(w->code) in any case. Returns 0 or -errno. */
int walk_begin(struct walk *w, struct elf *elf, const struct elf_sym *func, struct err *e);
bool walk_next(struct walk *w);

bool walk_is_reg(const ZydisDecodedOperand *op, ZydisRegister reg);

/* Returns true if this is a call of a function whose name begins with `begin`. */
bool walk_calls(struct walk *w, const char *begin);

#endif
