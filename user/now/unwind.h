/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the registers of a thread and a copy of its stack to the functions that it is in: elfutils' libdw, on the very
 * files that the process has mapped. Nothing of the process is read any more, so it may have gone.
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
	uint64_t pc, va;	   /* within the call; the same in the file */
	const struct tgt_lib *lib; /* NULL: in no file that is known */
	const char *name;	   /* of the function, hostile, borrowed until unwind_close(); "": not known */
};

/* The target stays the caller's and has to outlive *out. */
int unwind_open(struct tgt *t, struct unwind **out, struct err *e);
void unwind_close(struct unwind *u); /* NULL is legal */

/* Appends struct unwind_frame, innermost first, at most max. False: there are more, or the way was lost. 0 frames: out
 * of memory too. */
bool unwind_stack(struct unwind *u, const struct mxbpf_regs *r, const struct buf *stack, unsigned max,
		  struct buf *frames);

#endif
