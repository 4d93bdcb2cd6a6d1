/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the file offset of a probe on the test program itself. */
#ifndef OFFSET_OF_H
#define OFFSET_OF_H

#include "unit.h"

/* Returns the offset of `at` in the file behind /proc/self/exe, or 0 if `at` is no code of this program. */
static inline uint64_t offset_of(const void *at)
{
	uint64_t start, end, off, found = 0, va = (uintptr_t)at;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " r-xp %" SCNx64, &start, &end, &off) == 3 && va >= start &&
		    va < end)
			found = va - start + off;
	if (f)
		fclose(f);
	return found;
}

#endif
