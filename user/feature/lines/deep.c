// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks that are deeper than a name may be long. A compiler that runs in the program, such as PyTorch's, has more than
 * a hundred frames of its own, and the line of the program that has called it is outside of them.
 */
#include "feature/lines/lines.h"

#include <string.h>

#include "mxbpf_name.h"

#define INNER_BYTES (MXBPF_NAME_BYTES_MAX / 4) /* of the innermost lines, which are kept whatever they are */
#define GAP	    "...\n"

/* A frame that is on the stack only while something is compiled, not while the result runs: file and function. */
static const struct {
	const char *compiler, *file, *function; /* the function begins so; "": any */
} compilers[] = {
	{"PyTorch", "torch/_dynamo/convert_frame.py(", ""},
	{"PyTorch", "torch/_inductor/compile_fx.py(", "compile_fx"},
	{"PyTorch", "torch/_inductor/compile_fx.py(", "fx_codegen_and_compile"},
	{"PyTorch", "torch/_inductor/graph.py(", ""},
	{"PyTorch", "torch/_inductor/scheduler.py(", ""},
	{"PyTorch", "torch/_inductor/async_compile.py(", ""},
	{"PyTorch", "torch/_functorch/aot_autograd.py(", "aot_module_simplified"},
	{"JAX", "jax/_src/compiler.py(", ""},
	{"JAX", "jax/_src/interpreters/mlir.py(", "lower_jaxpr_to_module"},
	{"JAX", "jax/_src/interpreters/partial_eval.py(", "trace_to_jaxpr"},
};

#define IMPORT	"<module>" /* the code of a file, which runs when it is imported */
#define IMPORTS ""	   /* such a line of a compiler's file */

/* "torch/_dynamo/convert_frame.py(12): _compile" */
static const char *compiler_of(const char *line, size_t len)
{
	const char *name = memmem(line, len, "): ", 3);
	size_t i, left = name ? len - (size_t)(name + 3 - line) : 0;

	for (i = 0; name && i < sizeof(compilers) / sizeof(compilers[0]); i++)
		if (memmem(line, len, compilers[i].file, strlen(compilers[i].file))) {
			if (left >= sizeof(IMPORT) - 1 && !memcmp(name + 3, IMPORT, sizeof(IMPORT) - 1))
				return IMPORTS;
			if (left >= strlen(compilers[i].function) &&
			    !memcmp(name + 3, compilers[i].function, strlen(compilers[i].function)))
				return compilers[i].compiler;
		}
	return NULL;
}

/* The length of the first line of a text, with its newline if it has one. */
static size_t line_bytes(const char *text, size_t left)
{
	const char *end = memchr(text, '\n', left);

	return end ? (size_t)(end - text) + 1 : left;
}

const char *lines_compiler(const char *text, size_t left)
{
	const char *compiler = NULL, *found;
	size_t n;

	/* What is inside of an import defines the classes of the compiler, and compiles nothing. */
	for (; left; text += n, left -= n) {
		n = line_bytes(text, left);
		found = compiler_of(text, n);
		compiler = !found ? compiler : *found ? found : NULL;
	}
	return compiler;
}

size_t lines_shorten(char *text, size_t len)
{
	size_t from = 0, to = 0, n;
	bool gap = false, keep;

	if (len <= MXBPF_NAME_BYTES_MAX)
		return len;
	for (; from < len; from += n) {
		n = line_bytes(text + from, len - from);
		keep = from + n <= INNER_BYTES || compiler_of(text + from, n) ||
		       lines_is_program(text + from, n - (text[from + n - 1] == '\n'));
		if (!keep && gap)
			continue;
		if (to + n + sizeof(GAP) > MXBPF_NAME_BYTES_MAX)
			break;
		gap = !keep;
		if (gap) /* it is no longer than the lines that it stands for */
			memcpy(text + to, GAP, sizeof(GAP) - 1);
		else
			memmove(text + to, text + from, n);
		to += gap ? sizeof(GAP) - 1 : n;
	}
	return to && text[to - 1] == '\n' ? to - 1 : to;
}
