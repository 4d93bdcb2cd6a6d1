// SPDX-License-Identifier: Apache-2.0
/* Tests the order of points in time. */
#include "base/timed.h"

#include "unit.h"

#define N 5000

/* Numbers that are always the same ones. */
static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 20;
}

/* Sorts N points whose times lie within `range`, twice with the same memory. */
static void check_order(uint64_t range)
{
	FREED(buf_fini) struct buf timed = {0}, spare = {0};
	const struct timed *t;
	uint64_t seed = range;
	size_t i, round;

	for (round = 0; round < 2; round++) {
		timed.len = 0;
		for (i = 0; i < N; i++) {
			const struct timed one = {UINT64_MAX / 2 + next(&seed) % range, i};

			CHECK(!buf_put(&timed, &one, sizeof(one)));
		}
		CHECK(!timed_sort(&timed, &spare) && buf_count(&timed, struct timed) == N);
		t = buf_at(&timed, const struct timed, 0);
		for (i = 1; i < N; i++)
			CHECK(t[i - 1].ns < t[i].ns || (t[i - 1].ns == t[i].ns && t[i - 1].what < t[i].what));
		CHECK(!timed_sort(&timed, &spare) && buf_at(&timed, const struct timed, N - 1)->ns == t[N - 1].ns);
	}
}

int main(void)
{
	TEST("points in time are sorted, and equal ones keep their order, however far apart they are")
	check_order(3);
	check_order(1ull << 12);
	check_order(1000000007);
	check_order(1ull << 43);
	UNIT_MAIN_END;
}
