// SPDX-License-Identifier: Apache-2.0
#include "insn/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/names.h"
#include "insn/callee.h"

#define FUNC_BYTES_MAX 8192

int walk_begin(struct walk *w, struct elf *elf, const struct elf_sym *func, struct err *e)
{
	*w = (struct walk){.elf = elf, .size = func->size_bytes < FUNC_BYTES_MAX ? func->size_bytes : FUNC_BYTES_MAX};
	w->va = func->va;
	w->code = malloc(w->size + 1);
	if (!w->code)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (elf_read_va(elf, func->va, w->code, w->size))
		return err_set(e, ERR_TARGET, -EIO, "cannot read its code");
	ZydisDecoderInit(&w->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return 0;
}

bool walk_next(struct walk *w)
{
	w->va += w->insn.length;
	w->at += w->insn.length;
	return w->at < w->size &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(&w->decoder, w->code + w->at, w->size - w->at, &w->insn, w->ops));
}

bool walk_is_reg(const ZydisDecodedOperand *op, ZydisRegister reg)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->reg.value == reg;
}

bool walk_calls(struct walk *w, const char *begin)
{
	ZyanU64 to;
	char name[256] = "";
	int len = -ENOENT;

	if (w->insn.mnemonic != ZYDIS_MNEMONIC_CALL ||
	    !ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&w->insn, &w->ops[0], w->va, &to)))
		return false;
	if (w->ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		len = callee_name(w->elf, to, name, sizeof(name));
	else if (w->ops[0].type == ZYDIS_OPERAND_TYPE_MEMORY && w->ops[0].mem.base == ZYDIS_REGISTER_RIP)
		len = elf_import_name(w->elf, to, name, sizeof(name));
	return len > 0 && !strncmp(name, begin, strlen(begin));
}
