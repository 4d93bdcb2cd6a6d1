// SPDX-License-Identifier: Apache-2.0
/*
 * What other clients have enabled. As in CUPTI, enabling a kind or a function twice is undone by disabling it once, a
 * function that was not enabled can be disabled, and disabling a kind ends the records of its functions as well.
 */
#include "cupti.h"

#include <string.h>

#define WORDS (CUPTI_CALLS_MAX / 64)

struct cupti_others cupti_others;

static struct {
	uint64_t kinds, driver[WORDS], runtime[WORDS]; /* sets of bits */
} on;

static void cupti_others_set(uint64_t *bits, uint32_t n, bool enable)
{
	const uint64_t bit = 1ull << n % 64;

	if (enable)
		__atomic_fetch_or(&bits[n / 64], bit, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&bits[n / 64], ~bit, __ATOMIC_RELAXED);
}

static uint64_t any(const uint64_t *bits)
{
	uint64_t found = 0;
	unsigned i;

	for (i = 0; i < WORDS; i++)
		found |= __atomic_load_n(&bits[i], __ATOMIC_RELAXED);
	return found;
}

static uint64_t *functions(uint32_t kind)
{
	return kind == CUPTI_KIND_DRIVER ? on.driver : kind == CUPTI_KIND_RUNTIME ? on.runtime : NULL;
}

bool cupti_others_record(void)
{
	return __atomic_load_n(&on.kinds, __ATOMIC_RELAXED) || any(on.driver) || any(on.runtime);
}

static void changed(void)
{
	__atomic_store_n(&cupti_others.ended, !cupti_others_record(), __ATOMIC_RELAXED);
}

void cupti_others_enable(uint32_t kind, bool enable)
{
	uint64_t *of = functions(kind);
	unsigned i;

	cupti_others_set(&on.kinds, kind < 64 ? kind : 0, enable);
	for (i = 0; !enable && of && i < WORDS; i++)
		__atomic_store_n(&of[i], 0, __ATOMIC_RELAXED);
	changed();
}

void cupti_others_enable_function(uint32_t kind, uint32_t cbid, bool enable)
{
	cupti_others_set(functions(kind), cbid < CUPTI_CALLS_MAX ? cbid : 0, enable);
	changed();
}

void cupti_others_end(void)
{
	memset(&on, 0, sizeof(on));
	changed();
}
