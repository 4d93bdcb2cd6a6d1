// SPDX-License-Identifier: Apache-2.0
/*
 * LD_PRELOAD: one allocation of the process fails. FAIL_NTH=N: the N-th call of malloc(), calloc(), realloc() and the
 * aligned ones returns NULL, counted over all threads; 0: none. With FAIL_COUNT=FILE the number of calls is written
 * there at exit.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static unsigned long calls, nth;

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("FAIL_NTH");

	nth = text ? strtoul(text, NULL, 10) : 0;
	__atomic_store_n(&calls, 0, __ATOMIC_RELAXED);
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("FAIL_COUNT");
	const unsigned long n = __atomic_load_n(&calls, __ATOMIC_RELAXED);
	FILE *f;

	nth = 0;
	f = path ? fopen(path, "w") : NULL;
	if (f) {
		fprintf(f, "%lu\n", n);
		fclose(f);
	}
}

static bool fails(void)
{
	if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != nth)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return fails() ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *at, size_t bytes)
{
	return fails() ? NULL : __libc_realloc(at, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
	return fails() ? NULL : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return fails() ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **to, size_t alignment, size_t bytes)
{
	if (fails())
		return ENOMEM;
	*to = __libc_memalign(alignment, bytes);
	return *to ? 0 : ENOMEM;
}
