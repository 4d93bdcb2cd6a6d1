/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python interpreter of a process: where it keeps its frames (CPython 3.8 to 3.13), the text of a stack that BPF
 * has walked, and where it can be asked to execute a script (from 3.14 on). Read from the process's memory alone; what
 * is read is checked to be what it should be, and what is not known is refused, never guessed.
 */
#ifndef PYTHON_PYTHON_H
#define PYTHON_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "mxbpf_stack.h"
#include "target/target.h"

struct py;

/*
 * The interpreter that t runs, ready to walk. ERR_TARGET: there is none, it is of a version that is not known, or what
 * it keeps is not where that version has it. t stays the caller's and has to outlive *out.
 */
int py_open(struct tgt *t, struct py **out, struct err *e);
void py_close(struct py *p); /* NULL is legal */

const char *py_version(const struct py *p); /* "3.11" */
/* The file that the interpreter is in; borrowed from its target. */
const struct tgt_lib *py_lib(const struct py *p);
/* For BPF; equal ones are of one layout. Borrowed. */
const struct mxbpf_python *py_offsets(const struct py *p);

/*
 * The Python stack of a thread that does not move: its base is fs_base. What it has is checked as in BPF's. 0, -ENOENT:
 * it runs no Python, or that cannot be read.
 */
int py_thread_stack(const struct py *p, uint64_t fs_base, struct mxbpf_stack *s);

/*
 * The text of a stack as MXBPF_NAME_STACK says, at most `max` bytes (whole lines; more than 8 of them), not terminated.
 * Returns its length. *lost: frames whose code objects are not there any more; they have a line that says so.
 */
size_t py_stack_text(struct py *p, const struct mxbpf_stack *s, char *text, size_t max, unsigned *lost);

/*
 * Where an interpreter takes the request to execute a script (PEP 768). All are addresses in the process, in memory
 * that stays mapped as long as the program runs.
 */
struct py_exec {
	unsigned minor;	     /* of Python 3 */
	uint64_t pending;    /* 32 bits; 1: a script is to be executed */
	uint64_t path;	     /* of the script, terminated by NUL */
	uint64_t path_bytes; /* room for it */
	uint64_t breaker;    /* a byte; with PY_EXEC_STOP_BIT the thread looks for requests soon */
};
#define PY_EXEC_STOP_BIT (1u << 5)

/*
 * The main thread of the interpreter that t runs. ERR_TARGET: there is none, or it executes no scripts: before 3.14,
 * free-threaded, ending, with another interpreter beside the main one, or with remote debugging disabled.
 */
int py_exec_find(struct tgt *t, struct py_exec *x, struct err *e);

#endif
