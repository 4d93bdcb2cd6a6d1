// SPDX-License-Identifier: Apache-2.0
/* Lists of words that calls refer to. Each different list is kept once, so that a call needs only its place. */
#include "agent.h"

#include <string.h>

#define TRIES_MAX                                                                                                      \
	64 /* places that are looked at; with more lists than that at one place, the table is as good as full */

static uint64_t list_fold(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/* Folds words in two lanes, which the CPU computes side by side. */
static uint64_t hash(const __u64 *words, uint32_t n, uint64_t head)
{
	uint64_t a = list_fold(1, head), b = 2;
	uint32_t i;

	for (i = 0; i + 1 < n; i += 2) {
		a = list_fold(a, words[i]);
		b = list_fold(b, words[i + 1]);
	}
	if (i < n)
		a = list_fold(a, words[i]);
	a = list_fold(a, b);
	return a ^ a >> 32;
}

/* Returns the place of a copy of the list, or 0 if there is no room. */
static uint32_t list_add(struct mxbpf_agent_shared *s, uint64_t head, const __u64 *words, uint32_t n)
{
	uint64_t at = __atomic_load_n(&s->words_len, __ATOMIC_RELAXED);

	do {
		if (at + n + 2 > MXBPF_AGENT_WORDS)
			return 0;
	} while (
		!__atomic_compare_exchange_n(&s->words_len, &at, at + n + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	at++; /* the first word is not used */
	s->words[at] = head;
	memcpy(&s->words[at + 1], words, n * sizeof(*words));
	return (uint32_t)at;
}

uint32_t agent_list(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, enum mxbpf_agent_list kind, uint32_t n)
{
	const uint64_t head = MXBPF_AGENT_LIST(kind, n), h = hash(t->list, n, head);
	uint32_t at = 0, was, i;

	for (i = 0; i < TRIES_MAX; i++) {
		uint32_t *place = &s->lists[(h + i) & (MXBPF_AGENT_LISTS - 1)];

		was = __atomic_load_n(place, __ATOMIC_ACQUIRE);
		if (!was) {
			at = at ? at : list_add(s, head, t->list, n);
			if (!at)
				break;
			if (__atomic_compare_exchange_n(place, &was, at, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
				return at;
		}
		if (s->words[was] == head && !memcmp(&s->words[was + 1], t->list, n * sizeof(*t->list)))
			return was;
	}
	__atomic_store_n(&t->truncated, t->truncated + 1, __ATOMIC_RELAXED);
	return 0;
}
