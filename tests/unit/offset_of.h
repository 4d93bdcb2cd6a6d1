/* SPDX-License-Identifier: Apache-2.0 */
/* Where a probe on this very program goes. */
#ifndef OFFSET_OF_H
#define OFFSET_OF_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

/* Of code of this program in the file behind /proc/self/exe; 0 if it is none of it. */
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
