/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the insn room only: the code of a function, as it stands there. */
#ifndef INSN_WALK_H
#define INSN_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "elf/elf.h"
#include "insn/priv.h"

/* A function, instruction by instruction in the order of addresses. */
struct walk {
	struct elf *elf;
	uint8_t *code; /* owned */
	size_t size, at;
	uint64_t va; /* of insn */
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
};

/* At the function's start; walk_next() goes to what follows. free(w->code) in any case. 0 or -errno. */
int walk_begin(struct walk *w, struct elf *elf, const struct elf_sym *func, struct err *e);
bool walk_next(struct walk *w);

bool walk_is_reg(const ZydisDecodedOperand *op, ZydisRegister reg);

/* Whether this is a call of a function whose name begins so. */
bool walk_calls(struct walk *w, const char *begin);

#endif
