// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include "unit.h"

#define LAST (MXBPF_HIST_BUCKETS - 1)
#define N    20000

static uint64_t seed = 88172645463325252ull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static int by_value(const void *va, const void *vb)
{
	uint64_t a = *(const uint64_t *)va, b = *(const uint64_t *)vb;

	return a < b ? -1 : a > b;
}

static void count(struct mdl_row *r, uint64_t ns)
{
	if (!r->count || ns < r->min_ns)
		r->min_ns = ns;
	if (ns > r->max_ns)
		r->max_ns = ns;
	r->count++;
	r->hist[mxbpf_bucket(ns)]++;
}

static void test_percentiles(void)
{
	static const double fractions[] = {0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0};
	FREED(memory_freed) uint64_t *v = calloc(N, sizeof(*v));
	uint64_t exact, got;
	struct mdl_row r = {0};
	size_t i, k;
	double want;

	for (i = 0; i < N; i++) {
		v[i] = rnd() >> (22 + rnd() % 42);
		count(&r, v[i]);
	}
	qsort(v, N, sizeof(*v), by_value);
	for (i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++) {
		want = fractions[i] * N;
		k = (size_t)want + ((double)(size_t)want < want);
		exact = v[k ? k - 1 : 0];
		got = mdl_percentile(&r, fractions[i]);
		CHECK(mxbpf_bucket(got) == mxbpf_bucket(exact));
		CHECK(got >= r.min_ns && got <= r.max_ns);
	}
}

int main(void)
{
	unsigned i;

	TEST("every bucket contains its bounds and nothing beyond")
	{
		for (i = 0; i < LAST; i++) {
			CHECK(mxbpf_bucket(mdl_bucket_low(i)) == i);
			CHECK(mxbpf_bucket(mdl_bucket_low(i + 1) - 1) == i);
			CHECK(mdl_bucket_low(i) < mdl_bucket_low(i + 1));
		}
	}
	TEST("a bucket is at most 12.5 % wide")
	{
		for (i = 8; i <= LAST; i++)
			CHECK((mdl_bucket_low(i + 1) - mdl_bucket_low(i)) * 8 <= mdl_bucket_low(i));
	}
	TEST("the buckets are the documented ones, which BPF uses too")
	{
		CHECK(mxbpf_bucket(0) == 0 && mxbpf_bucket(7) == 7 && mxbpf_bucket(8) == 8 && mxbpf_bucket(15) == 15);
		CHECK(mxbpf_bucket(1000) == (9 - 2) * 8 + 7); /* 1111101000 in binary: octave 9, then 111 */
		CHECK(mxbpf_bucket(1ull << 42) == (42 - 2) * 8);
	}
	TEST("a duration of any length has a bucket")
	{
		CHECK(mxbpf_bucket((15ull << 39) - 1) == LAST - 1);
		CHECK(mxbpf_bucket(15ull << 39) == LAST);
		CHECK(mxbpf_bucket(UINT64_MAX) == LAST);
	}
	TEST("a percentile lies in the bucket of the exact one")
	test_percentiles();
	TEST("percentiles of equal durations are that duration")
	{
		struct mdl_row r = {0};

		for (i = 0; i < 100; i++)
			count(&r, 1003);
		CHECK(mdl_percentile(&r, 0.5) == 1003 && mdl_percentile(&r, 0.99) == 1003);
	}
	TEST("the median of three durations is the second one")
	{
		struct mdl_row r = {0};

		for (i = 10; i <= 1000; i *= 10)
			count(&r, i);
		CHECK(mxbpf_bucket(mdl_percentile(&r, 0.5)) == mxbpf_bucket(100));
	}
	TEST("a row without a histogram has its maximum as every percentile")
	{
		struct mdl_row r = {.count = 5, .min_ns = 10, .max_ns = 90};

		CHECK(mdl_percentile(&r, 0.5) == 90);
	}
	TEST("a count larger than the sum of the histogram does not run past its end")
	{
		struct mdl_row r = {.count = UINT64_MAX, .min_ns = 1, .max_ns = 9, .hist = {[1] = 1}};

		CHECK(mdl_percentile(&r, 0.99) == 9 && mdl_percentile(&r, 1.0) == 9);
	}
	UNIT_MAIN_END;
}
