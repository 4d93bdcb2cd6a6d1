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
 * Whether the user called this program by its name alone, and sudo would not find it, because it looks into the folders
 * of the system only. That is so for a program that pip installed. Then path (of size bytes) has the program's path.
 */
bool shell_hidden_from_sudo(char *path, size_t size);

#endif
