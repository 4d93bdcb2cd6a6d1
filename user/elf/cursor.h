/* SPDX-License-Identifier: Apache-2.0 */
/* Only for the elf room: reads the image forward, field by field. After an error, all further reads return 0. */
#ifndef ELF_CURSOR_H
#define ELF_CURSOR_H

#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

struct cursor {
	const struct elf *f;
	uint64_t va, end_va; /* reading stops before end_va */
	int err;	     /* 0, -EBADMSG or -errno */
	uint64_t held_va;
	size_t held;
	uint8_t bytes[256];
};

void cursor_init(struct cursor *c, const struct elf *f, uint64_t va, uint64_t end_va);
/* Reads an unsigned little-endian number of n <= 8 bytes. */
uint64_t cursor_u(struct cursor *c, unsigned n);
uint64_t cursor_uleb(struct cursor *c);
int64_t cursor_sleb(struct cursor *c);
/* Reads a pointer in an encoding of .eh_frame (DW_EH_PE_*, but not DW_EH_PE_omit). A value of 0 stays 0. */
uint64_t cursor_ptr(struct cursor *c, uint8_t enc);
void cursor_skip(struct cursor *c, uint64_t n);

#endif
