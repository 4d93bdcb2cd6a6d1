// SPDX-License-Identifier: Apache-2.0
/*
 * What the clients of CUPTI's mock have enabled: kinds of records, and single functions of the runtime and the
 * driver. Enabling the kind of calls enables each of its functions, and disables what was said of single ones before.
 */
#include "collect.h"

#include <string.h>

#define CBIDS 1024

/*
 * kinds: a mask. By domain - 1: how often CUPTI was asked to run at a function, and whether the function's calls have
 * records while the kind is enabled. All here is atomic.
 */
static uint64_t kinds;
static uint32_t counts[2][CBIDS];
static uint8_t recorded[2][CBIDS];

static void count(uint32_t *n, bool on)
{
	if (on)
		__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
	else if (__atomic_load_n(n, __ATOMIC_RELAXED))
		__atomic_fetch_sub(n, 1, __ATOMIC_RELAXED);
}

void enabled_set_kind(uint32_t kind, bool on)
{
	const uint64_t bit = 1ull << kind;
	const uint64_t was = on ? __atomic_fetch_or(&kinds, bit, __ATOMIC_RELAXED)
				: __atomic_fetch_and(&kinds, ~bit, __ATOMIC_RELAXED);
	const unsigned of = kind == KIND_RUNTIME;
	unsigned i;

	if (kind != KIND_RUNTIME && kind != KIND_DRIVER)
		return;
	for (i = 0; i < CBIDS; i++) {
		if (!(was & bit) == on)
			count(&counts[of][i], on);
		__atomic_store_n(&recorded[of][i], on, __ATOMIC_RELAXED);
	}
}

void enabled_set_call(uint32_t domain, uint32_t cbid, bool on)
{
	const uint32_t i = cbid < CBIDS ? cbid : 0;

	count(&counts[domain - 1][i], on);
	__atomic_store_n(&recorded[domain - 1][i], on, __ATOMIC_RELAXED);
}

uint64_t enabled_kinds(void)
{
	return __atomic_load_n(&kinds, __ATOMIC_RELAXED);
}

bool enabled_callback(uint32_t domain, uint32_t cbid)
{
	return cbid < CBIDS && __atomic_load_n(&counts[domain - 1][cbid], __ATOMIC_RELAXED);
}

bool enabled_call(uint32_t domain, uint32_t cbid)
{
	const uint32_t kind = domain == DOUBLE_RUNTIME ? KIND_RUNTIME : KIND_DRIVER;

	return enabled_kinds() >> kind & 1 && cbid < CBIDS &&
	       __atomic_load_n(&recorded[domain - 1][cbid], __ATOMIC_RELAXED);
}

uint64_t enabled_calls(void)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < CBIDS; i++)
		n += counts[0][i] + counts[1][i];
	return n;
}

void enabled_nothing(void)
{
	__atomic_store_n(&kinds, 0, __ATOMIC_RELAXED);
	memset(counts, 0, sizeof(counts));
	memset(recorded, 0, sizeof(recorded));
}
