/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the python room only. */
#ifndef PYTHON_PRIV_H
#define PYTHON_PRIV_H

#include <stdint.h>

#include "base/hash.h"
#include "python/python.h"

/*
 * The line of an instruction by the table of its code object: 0 if the instruction has none, or the table is damaged.
 * instr: in bytes from the first one; first: line of the function.
 */
typedef uint32_t (*py_line_fn)(const uint8_t *table, size_t bytes, uint32_t first, uint32_t instr);
uint32_t py_line_lnotab(const uint8_t *table, size_t bytes, uint32_t first, uint32_t instr);   /* 3.8, 3.9 */
uint32_t py_line_ranges(const uint8_t *table, size_t bytes, uint32_t first, uint32_t instr);   /* 3.10 */
uint32_t py_line_location(const uint8_t *table, size_t bytes, uint32_t first, uint32_t instr); /* from 3.11 on */

/* A minor version of CPython 3: offsets in its structures. */
struct py_layout {
	unsigned minor;
	const char *version;
	struct mxbpf_python walk; /* tls is found in the process */
	py_line_fn line;
	bool self_described; /* the process has a table of its offsets: _Py_DebugOffsets */
	uint16_t runtime_interp;
	uint16_t interp_states;
	uint16_t state_next;
	uint16_t code_first; /* line of the function */
	uint16_t code_name, code_file, code_lines;
	uint16_t wide_text; /* of a string that is not ASCII */
};
const struct py_layout *py_layout_of(unsigned minor); /* NULL: not known */

struct py {
	struct tgt *t;
	const struct tgt_lib *lib;
	struct py_layout l; /* as it is in this process */
	uint64_t runtime;   /* addresses: _PyRuntime, the types of code objects, strings and bytes */
	uint64_t code_type, text_type, bytes_type;
	struct hash codes; /* (address, print) -> struct code *, owned */
};

/* A word of the process. False: it is not there. */
bool py_word(const struct py *p, uint64_t addr, uint64_t *word);

/* The file that has the interpreter, and its addresses in *p. NULL: there is none; e is set if a file was refused. */
struct tgt_lib *py_find_interpreter(struct py *p, struct err *e);
/* The minor version of Python 3; 0: not known. */
unsigned py_minor(const struct py *p, const struct tgt_lib *lib);

/* The print of what a code object holds. False: there is none at that address. */
bool py_code_print(const struct py *p, uint64_t code, uint64_t *print);

#define PY_COOKIE "xdebugpy" /* the first 8 bytes of _PyRuntime from 3.13 on, before the offsets */

/*
 * Takes the offsets that the process describes itself. -ENOTSUP: they do not fit what BPF reads at one time, or the
 * interpreter has no global lock.
 */
int py_describe(struct py *p, struct err *e);

#endif
