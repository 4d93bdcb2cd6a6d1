/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENED_ELF_H
#define OPENED_ELF_H

#include "elf/elf.h"
#include "unit.h"

FREES(elf_closed, struct elf, elf_close)

/* Returns NULL if the file cannot be read, or if path is NULL. The caller closes it. */
static inline struct elf *opened_elf(const char *path)
{
	struct elf *elf = NULL;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return NULL;
	elf_open(fd, &elf, NULL);
	close(fd);
	return elf;
}

#endif
