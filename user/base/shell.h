// SPDX-License-Identifier: Apache-2.0
/* Command lines for the user to copy. */
#ifndef MXBPF_BASE_SHELL_H
#define MXBPF_BASE_SHELL_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Appends a word so that a shell reads it as it is. */
void shell_put_quoted(struct buf *b, const char *word);

/*
 * Returns true if the user called this program by its name alone and sudo would not find it. sudo searches only the
 * system's folders, and pip installs programs elsewhere. path (size bytes) then has the program's path.
 */
bool shell_hidden_from_sudo(char *path, size_t size);

#endif
