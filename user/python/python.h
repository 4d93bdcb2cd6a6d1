/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python interpreter of a process: where it keeps its frames (CPython 3.8 to 3.15), the text of a stack that BPF
 * walked, and where it accepts a script (3.14 and later). It only reads memory of the process. It checks what it reads,
 * and refuses unknown layouts instead of guessing.
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
 * Opens the interpreter of t. ERR_TARGET means that there is none, that its version is unknown, or that its data is not
 * where that version has it. The caller owns t, which must outlive *out.
 */
int py_open(struct tgt *t, struct py **out, struct err *e);
void py_close(struct py *p); /* NULL is legal */
/*
 * Sets the end of the path of the file whose frames are between the call of a module and the module's work. Stacks then
 * name such modules. Borrowed; NULL: none. Call it before the first stack is read.
 */
void py_set_module_file(struct py *p, const char *file);

const char *py_version(const struct py *p); /* "3.11" */
/* Returns buf: the version of the interpreter in a process, known or not: "3.11.4", "3.8", "" if there is none. */
#define PY_RELEASE_BYTES 24
const char *py_release(struct tgt *t, char buf[PY_RELEASE_BYTES]);
/* Returns the file with the interpreter; borrowed from its target. */
const struct tgt_lib *py_lib(const struct py *p);
/* Returns the offsets for BPF, borrowed. Interpreters with equal offsets have the same layout. */
const struct mxbpf_python *py_offsets(const struct py *p);

/* Address of the function int (void) that says whether the interpreter is ending; 0: its file does not name it. */
uint64_t py_is_finalizing(const struct py *p);

/*
 * Reads the Python stack of a thread that does not run; its base is fs_base. It checks what BPF checks. Returns 0, or
 * -ENOENT if the thread runs no Python or its stack is unreadable.
 */
int py_thread_stack(const struct py *p, uint64_t fs_base, struct mxbpf_stack *s);

/* A thread that runs Python, as its state says at one moment. */
struct py_thread {
	uint64_t fs_base; /* as py_thread_stack() takes it */
	uint64_t frame;	  /* address of its innermost frame, or of what points to it */
	uint64_t handled; /* address of the innermost exception that it handles, in the interpreter's list of them */
	int id;		  /* as its own namespace numbers it; 0: before CPython 3.11 nothing says */
	bool main;	  /* the process's main thread; before CPython 3.11, the first one that ran Python */
};

/*
 * Returns ERR_TARGET if stacks of this process may be wrong from now on: an interpreter before 3.12 that has made
 * another one. py_open() checks it, too.
 */
int py_check(const struct py *p, struct err *e);

/*
 * Calls fn for each thread that runs Python, in whichever of its interpreters it is, the newest first, at most 256 of
 * them. The list is read while the process runs: a thread that comes or goes meanwhile may be missing.
 */
void py_each_thread(const struct py *p, void (*fn)(void *ctx, const struct py_thread *t), void *ctx);

/* Reads the stack of such a thread soon after, as py_thread_stack() does. The thread may run meanwhile. */
int py_stack_of(const struct py *p, const struct py_thread *t, struct mxbpf_stack *s);
/*
 * Returns the number (base/exception.h) of the built-in exception that the thread handles at this moment, or that its
 * exception descends from; 0: it handles none. Exceptions that end a loop do not count.
 */
uint8_t py_handles(const struct py *p, const struct py_thread *t);

/*
 * Reads a part of such a stack, the innermost first: *next is 0 for the first part, and is set for the next one, which
 * there is if s->cut is set. Returns what py_stack_of() does.
 */
int py_stack_part(const struct py *p, const struct py_thread *t, uint64_t *next, struct mxbpf_stack *s);

/*
 * Writes the text of a stack in the form of MXBPF_NAME_STACK: at most `max` bytes (more than 8) in complete lines,
 * without a NUL. Returns its length. *lost counts frames whose code object was freed; their line says so.
 */
size_t py_stack_text(struct py *p, const struct mxbpf_stack *s, char *text, size_t max, unsigned *lost);

/* What the interpreter calls for each line (traces) and for each call (profiles) of its main thread. */
#define PY_TYPE_BYTES 256
struct py_tracing {
	bool traces, profiles;
	char tracer[PY_TYPE_BYTES], profiler[PY_TYPE_BYTES]; /* type of the object that is called with; hostile */
};
void py_tracing(const struct py *p, struct py_tracing *out); /* nothing is on where the version does not tell */

/*
 * What the garbage collector does: py_find_collector() once, then py_collector() as often as needed, which is one read.
 * Returns false if the place of its state is not known, as in 3.15.
 */
struct py_collector {
	bool runs; /* a collection runs, on whichever thread; the other ones that run Python wait for it */
	uint64_t collections[3]; /* of each generation that have ended, the youngest first */
};
void py_find_collector(struct py *p);
bool py_collector(const struct py *p, struct py_collector *c);

#define PY_NAME_BYTES 64
#define PY_LOCKS_MAX  64

/* A lock (threading.Lock, RLock) that a frame has in a variable, in an attribute of one, or in a `with` statement. */
struct py_lock {
	uint64_t object;
	uint64_t futex;		      /* address on which threads sleep that wait for it */
	uint64_t owner;		      /* base of the thread that has an RLock; 0: none */
	bool recursive;		      /* an RLock */
	bool with;		      /* the frame is in a `with` statement of the lock */
	unsigned frame;		      /* in py_locks.stack */
	char name[2 * PY_NAME_BYTES]; /* "self.guard"; "": not known */
};
struct py_locks {
	char thread[PY_NAME_BYTES]; /* name of the thread in Python; "": not known */
	struct mxbpf_stack stack;
	struct py_lock list[PY_LOCKS_MAX];
	unsigned n;
};
/*
 * Reads the locks that a sleeping thread knows. It looks at no more than *objects objects, and subtracts their number.
 * Returns -ENOENT before CPython 3.11, and from 3.14 on.
 */
int py_thread_locks(struct py *p, uint64_t fs_base, unsigned *objects, struct py_locks *to);

/*
 * Finds the innermost frame of a function in a file whose path ends so, and copies one of its local variables: a
 * string, or "NAME (FILE:LINE)" of a code object. The thread may run meanwhile. Returns false if there is none.
 */
struct py_function {
	const char *file, *name;
};
bool py_local(const struct py *p, const struct py_thread *t, struct py_function of, const char *local, char *text,
	      size_t max);

/*
 * Where an interpreter accepts a request to execute a script (PEP 768). The addresses are in the process, in memory
 * that stays mapped while the program runs.
 */
struct py_exec {
	unsigned minor;	      /* minor version of Python 3 */
	uint64_t pending;     /* 32 bits; 1 requests the execution of a script */
	uint64_t path;	      /* path of the script, NUL-terminated */
	uint64_t path_bytes;  /* size of the buffer for the path */
	uint64_t breaker;     /* one byte; when any of its bits is set, the thread checks for requests soon */
	uint8_t breaker_bits; /* those to set */
};

/*
 * Finds the main thread of the interpreter of t. ERR_TARGET means that there is none or that it executes no scripts:
 * before 3.14, free-threaded 3.15, ending, with a second interpreter, or with remote debugging disabled.
 */
int py_exec_find(struct tgt *t, struct py_exec *x, struct err *e);

#endif
