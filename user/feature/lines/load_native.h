/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the threads of a program without Python stand in, read while it runs. */
#ifndef FEATURE_LINES_LOAD_NATIVE_H
#define FEATURE_LINES_LOAD_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct native;

/*
 * runtime: glob of the basename of the runtime's library. Returns NULL if the process runs Python, has not mapped that
 * library, or cannot be read.
 */
struct native *native_new(pid_t pid, const char *runtime);
void native_free(struct native *n); /* NULL is legal */

/*
 * Calls fn for each thread, or for the main one, at most 64, whose stack leads through the program's own functions. The
 * text has these, innermost first, one a line: "/srv/train: step". The registers of a thread that runs are those of its
 * last entry into the kernel, some milliseconds ago. A stack that does not fit to them is left out.
 */
void native_each_thread(struct native *n, bool main_only,
			void (*fn)(void *ctx, pid_t tid, const char *text, size_t len), void *ctx);

#endif
