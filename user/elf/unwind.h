/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind information of a file: where functions begin and end, where each has its frame, and which calls have a
 * landing pad. Stripped files keep no other map of their code. The bounds of elf.h apply. The table of functions is
 * read once and kept until elf_close().
 */
#ifndef ELF_UNWIND_H
#define ELF_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "elf/elf.h"

/* A frame description entry. A function may have several, because its cold part has one of its own. */
struct elf_fde {
	uint64_t start_va, end_va;
	uint64_t lsda_va; /* 0: none */
	uint64_t code_align;
	int64_t data_align;
	uint64_t cie_insns_va, cie_end_va; /* frame instructions: the common ones, then those of this entry */
	uint64_t insns_va, insns_end_va;
	uint8_t ptr_enc;
	bool signal_frame;
	bool personality; /* a routine handles exceptions in it */
};

enum elf_cfa_base {
	ELF_CFA_OTHER = 0, /* an expression, or another register */
	ELF_CFA_RSP = 1,
	ELF_CFA_RBP = 2,
	ELF_CFA_AT_RBP = 3, /* the word at rbp + off, in functions that align their stack more than the ABI requires */
};

/* From va on, the canonical frame address (the stack pointer before the call) is base + off. */
struct elf_cfa {
	uint64_t va;
	int32_t off;
	uint8_t base; /* enum elf_cfa_base */
};

/*
 * Calls within [start_va, end_va) unwind to pad_va. pad_va 0 means that exceptions leave the function. A call outside
 * all sites must not throw.
 */
struct elf_call_site {
	uint64_t start_va, end_va, pad_va;
};

/*
 * Finds the entry that covers va. Returns 0, -ENOENT for none, -ENOTSUP for another form of table, -EBADMSG, -ENOMEM,
 * or -errno of I/O.
 */
int elf_fde_find(struct elf *f, uint64_t va, struct elf_fde *out, struct err *e);

/*
 * Returns true if exceptions may begin or be handled in this file: it imports the functions that throw, or an entry
 * has a personality routine. Also true if that cannot be read.
 */
bool elf_has_exceptions(struct elf *f);

/* Appends struct elf_cfa in ascending order; the first is at start_va. Returns 0, -EBADMSG or -ENOMEM. */
int elf_fde_cfas(const struct elf *f, const struct elf_fde *fde, struct buf *cfas, struct err *e);

/*
 * Appends struct elf_call_site in ascending order without overlap, and nothing without an LSDA. Returns 0, -EBADMSG or
 * -ENOMEM.
 */
int elf_fde_call_sites(const struct elf *f, const struct elf_fde *fde, struct buf *sites, struct err *e);

#endif
