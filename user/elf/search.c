// SPDX-License-Identifier: Apache-2.0
/* Searches for bytes, block by block. A mapping would raise SIGBUS if the file were cut meanwhile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/image.h"

#define BLOCK_BYTES (1u << 20)

int elf_each_match(const struct elf *f, uint64_t off, uint64_t bytes, const void *want, size_t n,
		   int (*fn)(void *ctx, uint64_t off), void *ctx)
{
	char *block = n && n <= BLOCK_BYTES ? malloc(BLOCK_BYTES) : NULL;
	int ret = block ? 0 : -ENOMEM;

	for (uint64_t at = 0, size; !ret && at <= bytes && n <= bytes - at; at += size - (n - 1)) {
		const char *hit = block;

		size = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
		ret = elf_pread(f, off + at, block, size);
		while (!ret && (hit = memmem(hit, (size_t)(block + size - hit), want, n)))
			ret = fn(ctx, off + at + (uint64_t)(hit++ - block));
	}
	free(block);
	return ret;
}

static int keep_off(void *ctx, uint64_t off)
{
	*(uint64_t *)ctx = off;
	return 1;
}

int elf_find_code(const struct elf *f, const void *want, size_t n, uint64_t *va)
{
	uint64_t off = 0;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < f->nloads; i++) {
		const struct elf_load *l = &f->loads[i];

		ret = l->flags & PF_X ? elf_each_match(f, l->off, l->bytes, want, n, keep_off, &off) : 0;
		if (ret > 0)
			*va = l->va + (off - l->off);
	}
	return ret > 0 ? 0 : ret ? ret : -ENOENT;
}
