/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of Python, or functions of a program without it, that the threads of a job stood in, by the clock. */
#ifndef FEATURE_LINES_H
#define FEATURE_LINES_H

#include "model/feature.h"
#include "mxbpf_lines.h"

#define LINES_LOOK_NS 100000000ull /* between two looks at a thread */

extern const struct mdl_feature feature_lines;
extern const struct ses_feature lines_session;
extern const struct view_sheet sheet_lines;

extern const struct tbl_def lines_table; /* of struct mxbpf_agg_line */

extern const struct tbl_def network_table; /* of struct mxbpf_network */

/* Rows of a model, in no order; *n their number. Borrowed until the next record is folded. */
const struct mxbpf_agg_line *lines_rows(const struct mdl *m, size_t *n);
/* Looks at the connections of ranks, in no order; *n their number. Borrowed as above. */
const struct mxbpf_network *network_rows(const struct mdl *m, size_t *n);
/* Single looks, in no order, the newest 16,384; *n their number. Borrowed as above. */
const struct mxbpf_look *lines_looks(const struct mdl *m, size_t *n);

/* Looks at garbage collectors, in order of time in each process, the newest 16,384; *n their number. As above. */
const struct mxbpf_collector *lines_collectors(const struct mdl *m, size_t *n);

/*
 * The innermost line of a stack that is neither of Python's own library nor of an installed package, nor in a function
 * that a package made from text, and that the process has not got from its parent; if there is none, the innermost
 * line: "/path/train.py(12): step", or of a program without Python "/path/train: step", *len bytes, not terminated.
 * NULL: the stack is not known, or no line of it is. Borrowed from the model.
 */
const char *lines_of_program(const struct mdl *m, uint64_t stack_id, size_t *len);
/* Returns the line as lines_of_program() does, from the text of a stack. */
const char *lines_pick(const char *text, size_t bytes, size_t *len);
/* Returns whether a line of a stack is one of the program, by the same rule. */
bool lines_is_program(const char *line, size_t len);
/* Returns the compiler that runs in a stack ("PyTorch"), or NULL if none does. */
const char *lines_compiler(const char *text, size_t bytes);
/*
 * The outermost line of the stack of a thread that compiles says what is compiled anew and which guard has failed:
 * LINES_GUARD "forward (/path/train.py:12) because 0/1: ..."
 */
#define LINES_GUARD   "torch/_dynamo/guards.py(0): compiles "
#define LINES_BECAUSE " because "
/*
 * Shortens the text of a deep stack to what a name may have: it keeps the innermost lines, and of the others those of
 * the program and those that lines_compiler() knows. A line "..." stands for what it drops. Returns the new length.
 */
size_t lines_shorten(char *text, size_t bytes);

#endif
