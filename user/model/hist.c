// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#define LAST_BUCKET (MXBPF_HIST_BUCKETS - 1)

uint64_t mdl_bucket_low(unsigned index)
{
	if (index < 8)
		return index;
	return (uint64_t)(8 + index % 8) << (index / 8 - 1);
}

/* How many spans lie at or below the percentile: at least one, at most all. */
static uint64_t rank_of(uint64_t count, double fraction)
{
	double want = fraction * (double)count;
	uint64_t rank;

	if (want >= (double)count)
		return count;
	rank = want > 0 ? (uint64_t)want : 0;
	if ((double)rank < want || !rank)
		rank++;
	return rank;
}

uint64_t mdl_percentile(const struct mdl_row *r, double fraction)
{
	uint64_t rank = rank_of(r->count, fraction), seen = 0, middle;
	unsigned i;

	for (i = 0; i < LAST_BUCKET; i++) {
		if (r->hist[i] >= rank - seen)
			break;
		seen += r->hist[i];
	}
	middle = mdl_bucket_low(i) + (mdl_bucket_low(i + 1) - mdl_bucket_low(i)) / 2;
	if (i == LAST_BUCKET || middle > r->max_ns)
		return r->max_ns;
	return middle < r->min_ns ? r->min_ns : middle;
}
