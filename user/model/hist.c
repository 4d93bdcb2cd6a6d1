// SPDX-License-Identifier: Apache-2.0
/* Histograms of durations. Their buckets are those of mxbpf_bucket(). */
#include "model/priv.h"

#include <errno.h>

#define LAST_BUCKET (MXBPF_HIST_BUCKETS - 1)

uint64_t mdl_bucket_low(unsigned index)
{
	if (index < 8)
		return index;
	return (uint64_t)(8 + index % 8) << (index / 8 - 1);
}

void mdl_hist_fold(uint64_t hist[MXBPF_HIST_BUCKETS], const struct mxbpf_bucket *buckets, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		add_sat(&hist[buckets[i].index], buckets[i].count);
}

int mdl_hist_emit(const uint64_t hist[MXBPF_HIST_BUCKETS], void *head, size_t head_bytes, uint16_t *nbuckets,
		  struct buf *out)
{
	struct mxbpf_bucket buckets[MXBPF_HIST_BUCKETS];
	struct mxbpf_rec *h = head;
	unsigned i, n = 0;

	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		if (hist[i])
			buckets[n++] = (struct mxbpf_bucket){.index = i, .count = hist[i]};
	*nbuckets = (uint16_t)n;
	h->size = (uint16_t)(head_bytes + n * sizeof(buckets[0]));
	return buf_put(out, head, head_bytes) || buf_put(out, buckets, n * sizeof(buckets[0])) ? -ENOMEM : 0;
}

/* Returns the number of spans at or below the percentile: at least 1, at most all. */
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

uint64_t mdl_hist_percentile(const uint64_t hist[MXBPF_HIST_BUCKETS], const struct mdl_extent *of, double fraction)
{
	uint64_t rank = rank_of(of->count, fraction), seen = 0, middle;
	unsigned i;

	for (i = 0; i < LAST_BUCKET; i++) {
		if (hist[i] >= rank - seen)
			break;
		seen += hist[i];
	}
	middle = mdl_bucket_low(i) + (mdl_bucket_low(i + 1) - mdl_bucket_low(i)) / 2;
	if (i == LAST_BUCKET || middle > of->max_ns)
		return of->max_ns;
	return middle < of->min_ns ? of->min_ns : middle;
}

bool mdl_has_spread(const struct mdl_row *r)
{
	unsigned i;

	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		if (r->hist[i])
			return true;
	return false;
}

uint64_t mdl_percentile(const struct mdl_row *r, double fraction)
{
	const struct mdl_extent of = {r->count - r->estimate.count, r->min_ns, r->max_ns};

	return mdl_hist_percentile(r->hist, &of, fraction);
}
