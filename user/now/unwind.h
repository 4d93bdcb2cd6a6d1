/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the functions on a thread's stack from its registers and a copy of the stack, by elfutils' libdw on the files
 * that the process has mapped. It does not read the process, which may have ended.
 */
#ifndef NOW_UNWIND_H
#define NOW_UNWIND_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "mxbpf_regs.h"
#include "target/target.h"

struct unwind;

struct unwind_frame {
	uint64_t pc, va;	   /* an address within the call, in the process and in the file */
	const struct tgt_lib *lib; /* NULL: in no known file */
};

/*
 * The caller owns the target, which must outlive *out. named: in which files functions have names, of which it reads
 * more; NULL: in all.
 */
int unwind_open(struct tgt *t, bool (*named)(const void *ctx, const struct tgt_lib *lib), const void *ctx,
		struct unwind **out, struct err *e);
void unwind_close(struct unwind *u); /* NULL is legal */

/*
 * Appends at most max struct unwind_frame, innermost first. Returns false if there are more or unwinding failed. No
 * frame at all may also mean that there is no memory.
 */
bool unwind_stack(struct unwind *u, const struct mxbpf_regs *r, const struct buf *stack, unsigned max,
		  struct buf *frames);

/*
 * Returns the name of the function of a frame without its parameters, not escaped; "": unknown. Borrowed until
 * unwind_close(). It searches all symbols of the file, but once for each address.
 */
const char *unwind_name(struct unwind *u, const struct unwind_frame *f);
size_t unwind_named(const struct unwind *u); /* names that are kept */
/* Returns the address in the file at which the function of a frame begins, or that of the frame if it is not known. */
uint64_t unwind_function(const struct unwind_frame *f);

#endif
