// SPDX-License-Identifier: Apache-2.0
/* A library for LD_PRELOAD that counts the parallel regions that a program opens in libgomp. */
#define _GNU_SOURCE
#include <dlfcn.h>

unsigned long gomp_regions;

void GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags);

void GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags)
{
	void (*real)(void (*)(void *), void *, unsigned, unsigned) = dlsym(RTLD_NEXT, "GOMP_parallel");

	__atomic_fetch_add(&gomp_regions, 1, __ATOMIC_RELAXED);
	real(fn, data, threads, flags);
}
