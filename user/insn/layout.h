/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds offsets of data by the code that reads the data, because they depend on the build. Code of an unknown form
 * gives no result.
 */
#ifndef INSN_LAYOUT_H
#define INSN_LAYOUT_H

#include <stdint.h>

#include "base/err.h"
#include "elf/elf.h"

/* A thread-local variable that is accessed through __tls_get_addr. */
struct layout_tls {
	uint64_t got_va; /* address of two words that the loader writes: number of the module, offset in its block */
	uint64_t add;	 /* added by the code to that address */
};

/* Finds the 8-byte thread-local variable that the function reads first. Returns 0, -EILSEQ or another -errno. */
int layout_tls(struct elf *elf, const struct elf_sym *func, struct layout_tls *out, struct err *e);

/*
 * Finds the sequence number and the thread of an autograd node, which the node's operator() passes to a profiler.
 * Returns 0, -EILSEQ or another -errno.
 */
int layout_node(struct elf *elf, const struct elf_sym *func, int32_t *number_off, int32_t *thread_off, struct err *e);

/*
 * Finds fields of a profiler's record object by its constructor and its before(). number_off is the field of the number
 * that before() gets; the constructor stores -1 there. thread_off is a field that the constructor zeroes, before the
 * handle that it counts up. So both are inside every such object. Returns 0, -EILSEQ or another -errno.
 */
int layout_record(struct elf *elf, const struct elf_sym *constructor, const struct elf_sym *before, int32_t *number_off,
		  int32_t *thread_off, struct err *e);

/*
 * Finds the field of a profiler's record object in which func stores the array of a call's arguments: two arguments of
 * its own, an address and a number, at inputs_off and behind it. Returns 0, -EILSEQ or another -errno.
 */
int layout_inputs(struct elf *elf, const struct elf_sym *func, uint32_t *inputs_off, struct err *e);

/* The layout of a list in a boxed value. */
struct layout_list {
	uint32_t tag;	       /* of a boxed value that is a list */
	uint32_t elements_off; /* of its elements, a vector; the address of their type is behind it */
	uint32_t kind;	       /* the number, at offset 8 of that type, of the type that the method asks for */
};

/*
 * Finds the layout of lists in a method of a boxed value that asks whether it is a list of one type. Returns 0, -EILSEQ
 * or another -errno.
 */
int layout_list(struct elf *elf, const struct elf_sym *func, struct layout_list *out, struct err *e);

/*
 * Finds the field of an object from which a method with a hidden result loads through n known offsets. Returns 0,
 * -EILSEQ or another -errno.
 */
int layout_chain(struct elf *elf, const struct elf_sym *func, const int32_t *known, unsigned n, int32_t *field_off,
		 struct err *e);

/* Finds the library's variable that a function returns. Returns 0, -EILSEQ or another -errno. */
int layout_result(struct elf *elf, const struct elf_sym *func, uint64_t *va, struct err *e);

/*
 * Finds the fields of a method that stores its argument in four bytes of its object and sets one byte of it to 0 or 1.
 * Returns 0, -EILSEQ or another -errno.
 */
int layout_state(struct elf *elf, const struct elf_sym *func, int32_t *arg_off, int32_t *flag_off, struct err *e);

/*
 * Finds the key set of a tensor by an operator that joins the key sets of its tensors. Returns 0, -EILSEQ or another
 * -errno.
 */
int layout_tensor(struct elf *elf, const struct elf_sym *func, uint32_t *keys_off, struct err *e);

#endif
