// SPDX-License-Identifier: Apache-2.0
#include "base/timed.h"

#include <errno.h>

#define DIGIT_BITS 12
#define DIGITS	   (1u << DIGIT_BITS)

static void sort_digit(const struct timed *from, struct timed *to, size_t n, uint64_t low_ns, unsigned shift)
{
	uint32_t start[DIGITS] = {0}, sum = 0, count;
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
}

/*
 * A radix sort, lowest digit first. What is sorted lies within seconds, so two or three passes are enough. A sort that
 * compares would take longer than the rest of the work with spans.
 */
int timed_sort(struct buf *timed, struct buf *spare)
{
	const size_t n = buf_count(timed, struct timed);
	const struct timed *p = (const void *)timed->data;
	uint64_t low_ns = UINT64_MAX, high_ns = 0;
	bool sorted = true;
	struct buf other;
	unsigned shift;
	size_t i;

	for (i = 0; i < n; i++) {
		sorted &= p[i].ns >= high_ns;
		low_ns = p[i].ns < low_ns ? p[i].ns : low_ns;
		high_ns = p[i].ns > high_ns ? p[i].ns : high_ns;
	}
	if (sorted)
		return 0;
	spare->len = 0;
	if (!buf_add(spare, timed->len))
		return -ENOMEM;
	for (shift = 0; shift < 64 && (high_ns - low_ns) >> shift; shift += DIGIT_BITS) {
		sort_digit((void *)timed->data, (void *)spare->data, n, low_ns, shift);
		other = *timed;
		*timed = *spare;
		*spare = other;
	}
	return 0;
}
