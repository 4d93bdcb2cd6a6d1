/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that other profilers wrote. Each is read once, and becomes a recording in a scratch file, from which everything
 * else reads it as it reads a recording of mxbpf. So tables, findings, comparisons, merges and exports need no code for
 * them. What a format does not have is unknown in the recording, never 0.
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "record/record.h"

/* Returns the name of the format ("PyTorch trace") by the first bytes of a file, or NULL if it is none of these. */
const char *import_format(int fd);

/* Is told how far a long reading is: events so far, and of how many, or 0 while that is not known. */
struct import_progress {
	void (*tell)(void *ctx, uint64_t events, uint64_t of);
	void *ctx;
};

/*
 * Reads the file, and opens the recording that it becomes. `path` is for messages, and for the name of the session. A
 * file that ends in the middle gives what is before, with a note that says so. progress: NULL: nobody is told. Returns
 * 0, or -errno with e set.
 */
int import_open(int fd, const char *path, const struct import_progress *progress, struct rec_reader **r, struct err *e);

#endif
