// SPDX-License-Identifier: Apache-2.0
#include "feature/memory/growth.h"

#define PART_BITS 20 /* the first parts have a millisecond */
#define SHIFT_MAX 40
#define LEAST_PARTS                                                                                                    \
	4 /* the first one does not count: memory of before the window is not known, and all seems to grow */

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static uint64_t part_at(const struct memory_growth *g, uint64_t ns)
{
	return ns > g->start_ns ? (ns - g->start_ns) >> (PART_BITS + g->shift) : 0;
}

/* The bytes did not change in the parts up to this one. */
static void memory_fill(struct memory_growth *g, uint64_t until, int64_t bytes)
{
	while (g->part < until && g->part < GROWTH_PARTS - 1)
		g->least[++g->part] = bytes;
}

void growth_note(struct memory_growth *g, uint64_t start_ns, uint64_t now_ns, int64_t bytes)
{
	unsigned i;

	if (!g->start_ns)
		*g = (struct memory_growth){.start_ns = start_ns, .least = {bytes}};
	g->least[g->part] = smaller(g->least[g->part], bytes);
	memory_fill(g, part_at(g, now_ns), bytes);
	while (part_at(g, now_ns) >= GROWTH_PARTS && g->shift < SHIFT_MAX) {
		for (i = 0; i < GROWTH_PARTS / 2; i++)
			g->least[i] = smaller(g->least[2 * i], g->least[2 * i + 1]);
		g->part = GROWTH_PARTS / 2 - 1;
		g->shift++;
		memory_fill(g, part_at(g, now_ns), bytes);
	}
}

int64_t growth_of(const struct memory_growth *g, uint64_t *ns)
{
	const unsigned n = g->part; /* parts that are over */
	int64_t first, second, all;

	*ns = 0;
	if (!g->start_ns || n < LEAST_PARTS || __builtin_sub_overflow(g->least[n / 2], g->least[1], &first) ||
	    __builtin_sub_overflow(g->least[n - 1], g->least[n / 2], &second) ||
	    __builtin_add_overflow(first, second, &all))
		return 0;
	/* A cache levels off. */
	if (first <= 0 || second < first / 2 || g->least[n - 1] <= g->least[n - 2])
		return 0;
	*ns = (uint64_t)(n - 2) << (PART_BITS + g->shift);
	return all;
}
