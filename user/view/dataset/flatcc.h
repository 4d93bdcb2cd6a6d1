/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIEW_DATASET_FLATCC_H
#define VIEW_DATASET_FLATCC_H

/*
 * flatcc is compiled with this. When it has no memory, it either ends the program by an assertion or returns an error
 * that nanoarrow does not always look at, and crashes later. Only `export` uses it, which holds nothing that must be
 * given back.
 */
#include <stdio.h>
#include <unistd.h>

#define FLATCC_BUILDER_ASSERT(condition, reason)                                                                       \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "mxbpf: error: out of memory: an Arrow file: %s\n", reason);                   \
			_exit(1);                                                                                      \
		}                                                                                                      \
	} while (0)

#endif
