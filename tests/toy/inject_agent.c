// SPDX-License-Identifier: Apache-2.0
/* The library that the injection tests load. It counts its starts and destroys every vector register. */
#include <stdint.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED volatile uint64_t agent_calls, agent_arg;

EXPORTED void agent_start(uint64_t arg);
EXPORTED void agent_start(uint64_t arg)
{
	void *some = malloc(12345);

	__asm__ volatile("vpcmpeqd %%xmm0, %%xmm0, %%xmm0\n vpcmpeqd %%xmm7, %%xmm7, %%xmm7\n vzeroall" ::: "memory");
	free(some);
	agent_arg = arg;
	agent_calls++;
}
