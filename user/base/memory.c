// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The memory of a process is one for all sessions in it, so these are the only variables of their kind. All atomic. */
static uint64_t limit; /* 0: none */
static uint64_t room;  /* bytes that may be taken at most; at most the limit */
static uint64_t used;  /* bytes that are taken */
static uint64_t refused;

void mem_limit(uint64_t bytes)
{
	__atomic_store_n(&limit, bytes, __ATOMIC_RELAXED);
	mem_measure(false);
}

uint64_t mem_limit_bytes(void)
{
	return __atomic_load_n(&limit, __ATOMIC_RELAXED);
}

void mem_allow(int64_t bytes)
{
	if (!mem_limit_bytes())
		return;
	__atomic_fetch_add(&limit, (uint64_t)bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&room, (uint64_t)bytes, __ATOMIC_RELAXED);
}

/* Resident memory, in bytes; 0 if it cannot be read. */
static uint64_t resident(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%*u %llu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void mem_trim(void)
{
	malloc_trim(0);
}

void mem_measure(bool collecting)
{
	const uint64_t all = mem_limit_bytes(), taken = mem_used(), now = all ? resident() : 0;
	const uint64_t besides = now > taken ? now - taken : 0, kept = all / 8;
	uint64_t left = all > besides ? all - besides : 0;

	if (collecting)
		left = left > kept ? left - kept : 0;
	else if (left < taken + kept)
		left = taken + kept;
	__atomic_store_n(&room, left, __ATOMIC_RELAXED);
}

static _Thread_local bool insists;

void mem_insist(bool on)
{
	insists = on;
}

/* Returns false, and counts it, if less than this is left. */
static bool base_memory_take(size_t bytes)
{
	const uint64_t now = __atomic_add_fetch(&used, bytes, __ATOMIC_RELAXED);

	if (insists || !mem_limit_bytes() || now <= __atomic_load_n(&room, __ATOMIC_RELAXED))
		return true;
	__atomic_fetch_sub(&used, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
	return false;
}

static void give(size_t bytes)
{
	__atomic_fetch_sub(&used, bytes, __ATOMIC_RELAXED);
}

uint64_t mem_used(void)
{
	return __atomic_load_n(&used, __ATOMIC_RELAXED);
}

uint64_t mem_refused(void)
{
	return __atomic_load_n(&refused, __ATOMIC_RELAXED);
}

/* malloc() returns more than it was asked for. That counts, too, so that mem_free() needs no size. */
static void *count_real(void *at, size_t taken)
{
	__atomic_fetch_add(&used, malloc_usable_size(at) - taken, __ATOMIC_RELAXED);
	return at;
}

void *mem_alloc(size_t bytes)
{
	return base_memory_take(bytes) ? count_real(malloc(bytes), bytes) : NULL;
}

void *mem_zalloc(size_t bytes)
{
	return base_memory_take(bytes) ? count_real(calloc(1, bytes), bytes) : NULL;
}

/* The old and the new piece exist at the same time, as far as realloc() copies. */
void *mem_resize(void *at, size_t bytes)
{
	const size_t before = malloc_usable_size(at);
	void *new;

	if (!base_memory_take(bytes))
		return NULL;
	new = realloc(at, bytes);
	if (new)
		give(before);
	return new ? count_real(new, bytes) : count_real(NULL, bytes);
}

void mem_free(void *at)
{
	give(malloc_usable_size(at));
	free(at);
}
