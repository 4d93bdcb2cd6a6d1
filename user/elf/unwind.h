/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the file says for unwinding: where functions begin and end, where each keeps its frame, and which calls
 * have a landing pad. The only map of the code that stripped files keep. Same bounds as elf.h; the table of
 * functions is read once and kept until elf_close().
 */
#ifndef ELF_UNWIND_H
#define ELF_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "elf/elf.h"

/* A frame description entry. A function may have several: the part that is seldom run has its own. */
struct elf_fde {
	uint64_t start_va, end_va;
	uint64_t lsda_va; /* 0: none */
	uint64_t code_align;
	int64_t data_align;
	uint64_t cie_insns_va, cie_end_va; /* of the frame instructions: common ones, then its own */
	uint64_t insns_va, insns_end_va;
	uint8_t ptr_enc;
	bool signal_frame;
};

enum elf_cfa_base {
	ELF_CFA_OTHER = 0, /* an expression, or a register other than these */
	ELF_CFA_RSP = 1,
	ELF_CFA_RBP = 2,
	ELF_CFA_AT_RBP = 3, /* the word at rbp + off: of a function that aligns its stack by more than the ABI does */
};

/* From va on, the canonical frame address (the stack pointer before the call) is base + off. */
struct elf_cfa {
	uint64_t va;
	int32_t off;
	uint8_t base; /* enum elf_cfa_base */
};

/* Calls within [start_va, end_va) unwind to pad_va; 0: they leave the function. A call in no site must not throw. */
struct elf_call_site {
	uint64_t start_va, end_va, pad_va;
};

/* The entry that covers va. 0, -ENOENT none, -ENOTSUP other form of table, -EBADMSG, -ENOMEM, -errno of I/O. */
int elf_fde_find(struct elf *f, uint64_t va, struct elf_fde *out, struct err *e);

/* Appends struct elf_cfa, ascending, the first at start_va. 0, -EBADMSG, -ENOMEM. */
int elf_fde_cfas(const struct elf *f, const struct elf_fde *fde, struct buf *cfas, struct err *e);

/* Appends struct elf_call_site, ascending, without overlap; nothing without an LSDA. 0, -EBADMSG, -ENOMEM. */
int elf_fde_call_sites(const struct elf *f, const struct elf_fde *fde, struct buf *sites, struct err *e);

#endif
