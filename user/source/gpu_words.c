// SPDX-License-Identifier: Apache-2.0
#include "source/gpu_words.h"

#include <stddef.h>
#include <stdio.h>

const char *const gpu_memories[] = {"Unknown", "Pageable",	"Pinned",	  "Device", "Array",
				    "Managed", "Device Static", "Managed Static", NULL};
const char *const gpu_copies[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
				  "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP", NULL};
const char *const gpu_syncs[] = {"Synchronize",	       "Event Synchronize",   "Stream Wait Event",
				 "Stream Synchronize", "Context Synchronize", NULL};

unsigned gpu_known(const char *const *words, uint64_t number)
{
	unsigned i = 0;

	while (i < number && words[i])
		i++;
	return words[i] ? i : 0;
}

void gpu_copy_name(char name[GPU_NAME_BYTES], unsigned copy, unsigned from, unsigned to)
{
	snprintf(name, GPU_NAME_BYTES, "Memcpy %s (%s -> %s)", gpu_copies[copy], gpu_memories[from], gpu_memories[to]);
}

void gpu_set_name(char name[GPU_NAME_BYTES], unsigned to)
{
	snprintf(name, GPU_NAME_BYTES, "Memset (%s)", gpu_memories[to]);
}
