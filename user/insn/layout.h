/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where data lies, as the code that reads it says: offsets that depend on the build are taken from it or, if it is not
 * of the one known form, not at all.
 */
#ifndef INSN_LAYOUT_H
#define INSN_LAYOUT_H

#include <stdint.h>

#include "base/err.h"
#include "elf/elf.h"

/* A variable that each thread has its own of, by way of __tls_get_addr. */
struct layout_tls {
	uint64_t got_va; /* of the two words that the loader writes: number of the module, offset in its block */
	uint64_t add;	 /* what the code adds to that address */
};

/* Of the 8 bytes of such a variable that the function reads first. 0, -EILSEQ; else -errno. */
int layout_tls(struct elf *elf, const struct elf_sym *func, struct layout_tls *out, struct err *e);

/*
 * Of autograd's Node, by its operator(): the number and the thread of the operator that made it, which are handed to a
 * profiler. 0, -EILSEQ; else -errno.
 */
int layout_node(struct elf *elf, const struct elf_sym *func, int32_t *number_off, int32_t *thread_off, struct err *e);

/*
 * Of torch's RecordFunction, by its constructor and its before(): the number that before() is handed, where the
 * constructor puts -1; and the thread, which the constructor makes zero and which lies before the handle that it counts
 * up. Both are thus inside of every such object. 0, -EILSEQ; else -errno.
 */
int layout_record(struct elf *elf, const struct elf_sym *constructor, const struct elf_sym *before, int32_t *number_off,
		  int32_t *thread_off, struct err *e);

/*
 * Of a method with a hidden result: the field of its object from where it loads on by n known offsets. 0, -EILSEQ; else
 * -errno.
 */
int layout_chain(struct elf *elf, const struct elf_sym *func, const int32_t *known, unsigned n, int32_t *field_off,
		 struct err *e);

/* Of a function whose result is a variable of its library: where that lies. 0, -EILSEQ; else -errno. */
int layout_result(struct elf *elf, const struct elf_sym *func, uint64_t *va, struct err *e);

/*
 * Of a method that stores its argument in its object, in four bytes, and sets a byte of it to 0 or to 1: which these
 * are. 0, -EILSEQ; else -errno.
 */
int layout_state(struct elf *elf, const struct elf_sym *func, int32_t *arg_off, int32_t *flag_off, struct err *e);

/* Of a tensor: its key set, by an operator that joins those of its tensors. 0, -EILSEQ; else -errno. */
int layout_tensor(struct elf *elf, const struct elf_sym *func, uint32_t *keys_off, struct err *e);

#endif
