// SPDX-License-Identifier: Apache-2.0
/* What the clients of CUPTI's double have enabled: kinds of records, and single functions of the runtime and the
 * driver. */
#include "collect.h"

#include <string.h>

#define CBIDS 1024

static uint64_t kinds; /* mask; all here is atomic */
/* By domain - 1: how often this call alone was enabled; and whether calls that CUPTI is called back at have records. */
static uint32_t singles[2][CBIDS];
static bool recorded[2];

void enabled_set_kind(uint32_t kind, bool on)
{
	if (on)
		__atomic_or_fetch(&kinds, 1ull << kind, __ATOMIC_RELAXED);
	else
		__atomic_and_fetch(&kinds, ~(1ull << kind), __ATOMIC_RELAXED);
	if (kind == KIND_RUNTIME || kind == KIND_DRIVER)
		__atomic_store_n(&recorded[kind == KIND_RUNTIME], on, __ATOMIC_RELAXED);
}

void enabled_set_call(uint32_t domain, uint32_t cbid, bool on)
{
	uint32_t *n = &singles[domain - 1][cbid < CBIDS ? cbid : 0];

	if (on)
		__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
	else if (__atomic_load_n(n, __ATOMIC_RELAXED))
		__atomic_fetch_sub(n, 1, __ATOMIC_RELAXED);
	if (on)
		__atomic_store_n(&recorded[domain - 1], true, __ATOMIC_RELAXED);
}

uint64_t enabled_kinds(void)
{
	return __atomic_load_n(&kinds, __ATOMIC_RELAXED);
}

bool enabled_callback(uint32_t domain, uint32_t cbid)
{
	const uint32_t kind = domain == DOUBLE_RUNTIME ? KIND_RUNTIME : KIND_DRIVER;

	return cbid < CBIDS &&
	       ((enabled_kinds() >> kind & 1) || __atomic_load_n(&singles[domain - 1][cbid], __ATOMIC_RELAXED));
}

bool enabled_call(uint32_t domain, uint32_t cbid)
{
	return enabled_callback(domain, cbid) && __atomic_load_n(&recorded[domain - 1], __ATOMIC_RELAXED);
}

uint64_t enabled_calls(void)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < CBIDS; i++)
		n += singles[0][i] + singles[1][i];
	return n;
}

void enabled_nothing(void)
{
	__atomic_store_n(&kinds, 0, __ATOMIC_RELAXED);
	memset(singles, 0, sizeof(singles));
	memset(recorded, 0, sizeof(recorded));
}
