/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file that a view has written. */
#ifndef READ_FILE_H
#define READ_FILE_H

#include "unit.h"

/* Returns the whole file, NUL-terminated, or "" if it cannot be read. The caller frees it. */
static inline char *read_file(const char *path)
{
	FREED(file_closed) FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t cap = 0;

	if (!f || getdelim(&text, &cap, 0, f) < 0) {
		free(text);
		text = strdup("");
	}
	return text;
}

#endif
