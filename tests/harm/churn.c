/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates and frees all the time, without Python's lock, and checks what it has written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 512
#define BYTES  4096

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Returns a number that depends on the arguments alone, or 0 if a block has other bytes than were written. */
uint64_t churn(uint64_t seed, uint64_t rounds)
{
	struct {
		unsigned char *at;
		size_t bytes;
		unsigned char with;
	} blocks[BLOCKS] = {0};
	uint64_t sum = seed;
	size_t i, k;

	while (rounds--) {
		i = next(&seed) % BLOCKS;
		for (k = 0; k < blocks[i].bytes; k += 61)
			if (blocks[i].at[k] != blocks[i].with)
				return 0;
		free(blocks[i].at);
		blocks[i].bytes = 1 + next(&seed) % BYTES;
		blocks[i].with = (unsigned char)next(&seed);
		blocks[i].at = malloc(blocks[i].bytes);
		if (!blocks[i].at)
			return 0;
		memset(blocks[i].at, blocks[i].with, blocks[i].bytes);
		sum = sum * 31 + blocks[i].with + blocks[i].bytes;
	}
	for (i = 0; i < BLOCKS; i++)
		free(blocks[i].at);
	return sum | 1;
}
