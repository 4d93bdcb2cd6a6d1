// SPDX-License-Identifier: Apache-2.0
/*
 * Reads what the garbage collector of an interpreter does: struct _gc_runtime_state. CPython 3.13 and 3.14 describe
 * where it is. In 3.8 to 3.12 its place differs between builds, but its member generation0 has the address of the
 * lists that lie right before it, and no other word has that.
 */
#include "python/priv.h"

#include <string.h>

#define GENERATIONS  3
#define SEARCH_BYTES (128u << 10)
#define CHUNK_WORDS  512
#define MINOR_OWN    9 /* from this version on, each interpreter has a collector */
#define MINOR_TABLE  13

/* Words from the first list to generation0, each with {next, previous, {int threshold, count}}. */
#define LIST_WORDS 3
#define LISTS	   (GENERATIONS * LIST_WORDS)
/* From there to `collecting` are a list and {collections, collected, uncollectable} of each generation. */
#define STATS_WORDS 3
#define STATS	    (GENERATIONS * STATS_WORDS)

/* Words of struct _Py_DebugOffsets: where an interpreter has the struct, its size, and then where it has the member. */
static const struct {
	unsigned minor, interp, size;
} described[] = {{13, 10, 71}, {14, 11, 81}};
#define DESC_WORDS   96
#define GC_BYTES_MAX 4096
#define INTERP_MAX   (1u << 20)

/* Returns the address of `collecting`, or 0. */
static uint64_t described_place(const struct py *p, uint64_t interp)
{
	uint64_t d[DESC_WORDS];
	size_t i;

	for (i = 0; i < sizeof(described) / sizeof(described[0]); i++) {
		const uint64_t *size = d + described[i].size;

		if (described[i].minor != p->l.minor || tgt_read(p->t, p->runtime, d, sizeof(d)))
			continue;
		if (d[described[i].interp] < INTERP_MAX && size[0] <= GC_BYTES_MAX && size[1] >= STATS * sizeof(*d) &&
		    size[1] + sizeof(*d) <= size[0] && size[1] % sizeof(*d) == 0)
			return interp + d[described[i].interp] + size[1];
	}
	return 0;
}

static uint64_t searched_place(const struct py *p, uint64_t from)
{
	uint64_t words[CHUNK_WORDS + LISTS], at;
	size_t i, n = CHUNK_WORDS + LISTS;
	ssize_t got;

	for (at = from; at < from + SEARCH_BYTES && n == CHUNK_WORDS + LISTS; at += CHUNK_WORDS * sizeof(words[0])) {
		got = tgt_read_some(p->t, at, words, sizeof(words));
		n = got > 0 ? (size_t)got / sizeof(words[0]) : 0;
		for (i = LISTS; i < n; i++)
			if (words[i] == at + (i - LISTS) * sizeof(words[0]))
				return at + (i + 1 + LIST_WORDS + STATS) * sizeof(words[0]);
	}
	return 0;
}

void py_find_collector(struct py *p)
{
	uint64_t from = p->runtime;

	p->collector = 0;
	if (p->l.minor >= MINOR_OWN && !py_word(p, p->runtime + p->l.runtime_interp, &from))
		return;
	p->collector = p->l.minor >= MINOR_TABLE ? described_place(p, from) : searched_place(p, from);
}

bool py_collector(const struct py *p, struct py_collector *c)
{
	uint64_t words[STATS + 1];
	unsigned i;

	if (!p->collector || tgt_read(p->t, p->collector - STATS * sizeof(words[0]), words, sizeof(words)))
		return false;
	for (i = 0; i < GENERATIONS; i++)
		c->collections[i] = words[i * STATS_WORDS];
	c->runs = (uint32_t)words[STATS];
	return true;
}
