/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_WHOLE_H
#define BASE_WHOLE_H

#include <stdint.h>

/* Returns a number without its fraction: 0 if it is negative, UINT64_MAX if it is larger than that. */
static inline uint64_t whole(double n)
{
	return n < 0 ? 0 : n < 0x1p64 ? (uint64_t)n : UINT64_MAX;
}

#endif
