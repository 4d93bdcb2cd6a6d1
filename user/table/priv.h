/* SPDX-License-Identifier: Apache-2.0 */
/* Values of stored columns. Only for this room. */
#ifndef TABLE_PRIV_H
#define TABLE_PRIV_H

#include "table/table.h"

/* Values of more than 8 bytes are arrays of 64-bit numbers. */
static inline unsigned tbl_nvalues(const struct tbl_column *c)
{
	return c->bytes > sizeof(uint64_t) ? c->bytes / sizeof(uint64_t) : 1;
}

static inline uint64_t tbl_get(const struct tbl_column *c, const void *row, unsigned i)
{
	const char *at = (const char *)row + c->at + i * sizeof(uint64_t);
	const uint64_t v = c->bytes == 1   ? *(const uint8_t *)at
			   : c->bytes == 2 ? *(const uint16_t *)at
			   : c->bytes == 4 ? *(const uint32_t *)at
					   : *(const uint64_t *)at;

	return v;
}

static inline void tbl_set(const struct tbl_column *c, void *row, unsigned i, uint64_t v)
{
	char *at = (char *)row + c->at + i * sizeof(uint64_t);

	switch (c->bytes) {
	case 1:
		*(uint8_t *)at = (uint8_t)v;
		break;
	case 2:
		*(uint16_t *)at = (uint16_t)v;
		break;
	case 4:
		*(uint32_t *)at = (uint32_t)v;
		break;
	default:
		*(uint64_t *)at = v;
	}
}

#endif
