// SPDX-License-Identifier: Apache-2.0
#include "base/timed.h"

#include <errno.h>

#define DIGIT_BITS 12
#define DIGITS	   (1u << DIGIT_BITS)
#define NEAR	   4 /* moves per item, on average, that are cheaper than passes over all items */

/* The sorted items are in `timed` again, and the two buffers have changed their memory. */
static void sort_digit(struct buf *timed, struct buf *spare, uint64_t low_ns, unsigned shift)
{
	const struct buf before = *timed;
	const struct timed *from = (const void *)before.data;
	struct timed *to = (void *)spare->data;
	uint32_t start[DIGITS] = {0}, sum = 0, count;
	const size_t n = buf_count(timed, struct timed);
	size_t i;

	for (i = 0; i < n; i++)
		start[(from[i].ns - low_ns) >> shift & (DIGITS - 1)]++;
	for (i = 0; i < DIGITS; i++) {
		count = start[i];
		start[i] = sum;
		sum += count;
	}
	for (i = 0; i < n; i++)
		to[start[(from[i].ns - low_ns) >> shift & (DIGITS - 1)]++] = from[i];
	*timed = *spare;
	*spare = before;
}

/*
 * Moves each item before the later ones in front of it, as long as there are few of them. Starts of calls that are in
 * the order of their ends have as many as calls are nested. Returns whether all are sorted. Equal ones keep their
 * order.
 */
static bool sort_near(const struct buf *timed)
{
	struct timed *t = (void *)timed->data;
	const size_t n = buf_count(timed, struct timed);
	size_t moves = 0, i, k;
	struct timed one;

	for (i = 1; i < n && moves <= NEAR * i; i++) {
		one = t[i];
		for (k = i; k && t[k - 1].ns > one.ns; k--)
			t[k] = t[k - 1];
		t[k] = one;
		moves += i - k;
	}
	return i >= n;
}

/*
 * If the items are not nearly sorted, they mostly are after a pass by their highest digit. Else a radix sort, lowest
 * digit first: what is sorted lies within seconds, so two or three passes are enough.
 */
int timed_sort(struct buf *timed, struct buf *spare)
{
	const size_t n = buf_count(timed, struct timed);
	const struct timed *p = (const void *)timed->data;
	uint64_t low_ns = UINT64_MAX, high_ns = 0;
	unsigned shift = 0;
	size_t i;

	if (sort_near(timed))
		return 0;
	for (i = 0; i < n; i++) {
		low_ns = p[i].ns < low_ns ? p[i].ns : low_ns;
		high_ns = p[i].ns > high_ns ? p[i].ns : high_ns;
	}
	spare->len = 0;
	if (!buf_add(spare, timed->len))
		return -ENOMEM;
	while ((high_ns - low_ns) >> shift >= DIGITS)
		shift++;
	sort_digit(timed, spare, low_ns, shift);
	if (sort_near(timed))
		return 0;
	for (shift = 0; shift < 64 && (high_ns - low_ns) >> shift; shift += DIGIT_BITS)
		sort_digit(timed, spare, low_ns, shift);
	return 0;
}
