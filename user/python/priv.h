/* SPDX-License-Identifier: Apache-2.0 */
/* Only for the python room. */
#ifndef PYTHON_PRIV_H
#define PYTHON_PRIV_H

#include <stdint.h>

#include "base/hash.h"
#include "python/python.h"

/*
 * Returns the line of an instruction by the table of its code object, or 0 if the instruction has none or the table is
 * damaged. `instr` counts bytes from the first instruction, and `first` is the line of the function.
 */
typedef uint32_t (*py_line_fn)(const uint8_t *table, size_t bytes, uint32_t first, uint32_t instr);
uint32_t py_line_lnotab(const uint8_t *table, size_t bytes, uint32_t first, uint32_t instr);   /* 3.8, 3.9 */
uint32_t py_line_ranges(const uint8_t *table, size_t bytes, uint32_t first, uint32_t instr);   /* 3.10 */
uint32_t py_line_location(const uint8_t *table, size_t bytes, uint32_t first, uint32_t instr); /* 3.11 and later */

enum { PY_PART_RUNTIME, PY_PART_INTERP, PY_PART_STATE, PY_PART_FRAME, PY_PART_CODE, PY_PARTS };

/* The offsets in the structures of a minor version of CPython 3. */
struct py_layout {
	unsigned minor;
	const char *version;
	struct mxbpf_python walk; /* without tls, which is found in the process */
	py_line_fn line;
	/* First words of the parts of the process's own table of its offsets (_Py_DebugOffsets). 0: it has no table. */
	uint8_t described[PY_PARTS];
	uint8_t described_thread; /* word of the state's thread in its part */
	uint16_t runtime_interp;  /* the newest interpreter */
	uint16_t interp_next, interp_states;
	uint16_t state_next;
	uint16_t code_first; /* line of the function */
	uint16_t code_name, code_file, code_lines;
	uint16_t wide_text; /* text of a string that is not ASCII */
};
const struct py_layout *py_layout_of(unsigned minor); /* NULL: unknown version */

struct py {
	struct tgt *t;
	const struct tgt_lib *lib;
	struct py_layout l;	 /* as it is in this process */
	const char *module_file; /* borrowed; NULL: none */
	uint64_t runtime;	 /* addresses of _PyRuntime and of the types of code objects, strings and bytes */
	uint64_t code_type, text_type, bytes_type;
	uint64_t collector; /* address of its flag that a garbage collection runs; 0: not known */
	uint32_t number;    /* of its main thread, as its own namespace numbers it */
	struct hash codes;  /* (address, print) -> struct code *, owned */
	size_t codes_bytes;
};

/* Reads a word of the process. Returns false if it is not mapped. */
bool py_word(const struct py *p, uint64_t addr, uint64_t *word);

/*
 * Finds the file with the interpreter, and sets the addresses in *p. Returns NULL if there is none; e is set if a file
 * was refused.
 */
struct tgt_lib *py_find_interpreter(struct py *p, struct err *e);
/* Returns the minor version of Python 3, or 0 if it is unknown. */
unsigned py_minor(const struct py *p, const struct tgt_lib *lib);

/*
 * Reads the state of a thread, and *next, the address of the next one. Returns false at the end of the list, or if it
 * is not mapped.
 */
bool py_read_state(const struct py *p, uint64_t state, struct py_thread *t, uint64_t *next);

/* Reads the address of the state with which a thread runs; its base is fs_base. Returns false if it has none. */
bool py_current_state(const struct py *p, uint64_t fs_base, uint64_t *state);

/* Returns the innermost frame of a thread from its state, or 0 if it runs no Python. */
uint64_t py_top_frame(const struct py *p, uint64_t of_state);

/* Copies a string object, cut and with '?' for control characters. Returns false if it is none. */
bool py_string(const struct py *p, uint64_t addr, char text[PY_NAME_BYTES]);

/* Computes the print (a hash of the content) of a code object. Returns false if there is none at that address. */
bool py_code_print(const struct py *p, uint64_t code, uint64_t *print);

/* Copies the name of a class without its Python module, or "" if the object is no class. */
void py_class_name(const struct py *p, uint64_t type, char name[PY_TYPE_BYTES]);

/* Removes the directories of installed packages, as the runtimes' own profilers do. */
const char *py_short_file(const char *file);
/* Returns the innermost frame of a thread, or 0 if it runs no Python. */
uint64_t py_top_frame(const struct py *p, uint64_t of_state);
/* Returns true if an object of that type is alive at the address. */
bool py_lives(const struct py *p, uint64_t addr, uint64_t type);
/* Returns the text of a string object, at most `max` characters. NULL: it is no string, or there is no memory. Owned.
 */
char *py_read_text(const struct py *p, uint64_t addr, size_t max);

#define PY_COOKIE "xdebugpy" /* the first 8 bytes of _PyRuntime from 3.13 on, before the offsets */

/* Returns true if PY_VERSION_HEX is that of a release. The table of a preview may differ. */
static inline bool py_is_release(uint64_t hex, unsigned minor)
{
	return hex >> 16 == (3u << 8 | minor) && (hex & 0xf0) == 0xf0;
}

/*
 * Reads the offsets that the process describes itself. Returns -ENOTSUP if they are outside of what BPF reads at once.
 */
int py_describe(struct py *p, struct err *e);

#endif
