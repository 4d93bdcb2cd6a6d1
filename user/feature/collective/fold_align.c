// SPDX-License-Identifier: Apache-2.0
/*
 * Aligns the clocks of hosts by the collectives themselves. All parts of a collective end nearly together. So of the
 * differences between the ends on one host and those of the same operation and size on another host, most lie close
 * together: around the difference of the two clocks. The times of day have aligned the clocks to about a second before.
 */
#include "feature/collective/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FAR_NS	    1000000000ll /* the clocks differ by less */
#define NEAR_NS	    2000000ll	 /* and by less than this from what was found for the time before */
#define WIDTH_NS    200000ll	 /* ends of one collective on two hosts, and the drift of a piece of time */
#define PIECE	    256		 /* parts from which one difference is computed */
#define DIFFS_MAX   (1u << 20)
#define LEAST_SHARE 2 /* a half of the parts must agree */

static uint32_t host_of(const struct item *it)
{
	return (uint32_t)(it->who >> 32) >> MDL_PID_BITS;
}

static int by_host(const void *va, const void *vb)
{
	const struct item *a = va, *b = vb;

	if (host_of(a) != host_of(b))
		return host_of(a) < host_of(b) ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static int by_i64(const void *va, const void *vb)
{
	const int64_t a = *(const int64_t *)va, b = *(const int64_t *)vb;

	return a < b ? -1 : a > b;
}

/* Collects how much later each of n parts ends than parts of the first host that may belong to it. */
static size_t collective_collect(const struct item *ref, size_t nref, const struct item *it, size_t n, int64_t around,
				 int64_t within, int64_t *diffs)
{
	size_t i, k, first = 0, found = 0;

	for (i = 0; i < n; i++) {
		while (first < nref && (int64_t)(it[i].end_ns - ref[first].end_ns) > around + within)
			first++;
		for (k = first; k < nref && (int64_t)(it[i].end_ns - ref[k].end_ns) >= around - within; k++)
			if (ref[k].what == it[i].what && ref[k].bytes == it[i].bytes && found < DIFFS_MAX)
				diffs[found++] = (int64_t)(it[i].end_ns - ref[k].end_ns);
	}
	return found;
}

/* The middle of the densest stretch. Returns how many are in it. */
static size_t densest(int64_t *diffs, size_t n, int64_t *middle)
{
	size_t i, from = 0, best = 0, at = 0;

	qsort(diffs, n, sizeof(*diffs), by_i64);
	for (i = 0; i < n; i++) {
		while (diffs[i] - diffs[from] > WIDTH_NS)
			from++;
		if (i + 1 - from > best) {
			best = i + 1 - from;
			at = from;
		}
	}
	*middle = best ? diffs[at + best / 2] : 0;
	return best;
}

/*
 * Changes the times of one host, piece by piece, because clocks drift. A piece in which too few parts agree has the
 * difference of the one before it.
 */
static void align(const struct item *ref, size_t nref, struct item *it, size_t n, int64_t *diffs)
{
	int64_t by = 0, within = FAR_NS, found;
	size_t i, k, piece;

	for (i = 0; i < n; i += piece) {
		piece = n - i < 2 * PIECE ? n - i : PIECE;
		k = collective_collect(ref, nref, it + i, piece, by, within, diffs);
		if (densest(diffs, k, &found) * LEAST_SHARE >= piece) {
			by = found;
			within = NEAR_NS;
		}
		for (k = i; k < i + piece; k++) {
			it[k].start_ns -= (uint64_t)by;
			it[k].end_ns -= (uint64_t)by;
		}
	}
}

int align_hosts(struct item *items, size_t n, bool *several)
{
	int64_t *diffs;
	size_t i, from, nref;

	for (i = 1; i < n && host_of(&items[i]) == host_of(&items[0]); i++)
		;
	*several = i < n;
	if (!*several)
		return 0;
	diffs = calloc(DIFFS_MAX, sizeof(*diffs));
	if (!diffs)
		return -ENOMEM;
	qsort(items, n, sizeof(*items), by_host);
	for (nref = 0; host_of(&items[nref]) == host_of(&items[0]); nref++)
		;
	for (from = nref; from < n; from = i) {
		for (i = from; i < n && host_of(&items[i]) == host_of(&items[from]); i++)
			;
		align(items, nref, items + from, i - from, diffs);
	}
	free(diffs);
	return 0;
}
