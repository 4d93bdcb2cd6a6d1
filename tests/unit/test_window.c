// SPDX-License-Identifier: Apache-2.0
/* Tests the stores of events that wait for their order. */
#include "window/window.h"

#include "unit.h"

#define S 1000000000ull

struct item {
	uint64_t start_ns, end_ns, number;
};

static void put(struct win_queue *q, uint64_t start_ns, uint64_t number)
{
	const struct item one = {start_ns, start_ns + 10, number};

	CHECK(!win_put(q, &one, sizeof(one)));
}

static size_t ready(struct win_queue *q, uint64_t until_ns)
{
	return win_ready(q, sizeof(struct item), win_by_times, until_ns);
}

static uint64_t until(struct win_queue *q, size_t most)
{
	return win_until(q, sizeof(struct item), most);
}

static bool is_number(const struct win_queue *q, size_t i, uint64_t number)
{
	return i < buf_count(&q->all, struct item) && buf_at(&q->all, struct item, i)->number == number;
}

static void check_order(void)
{
	struct win_queue q = {.kept = 0};

	put(&q, 30, 3);
	put(&q, 10, 1);
	put(&q, 40, 4);
	put(&q, 20, 2);
	CHECK(ready(&q, 30) == 2 && is_number(&q, 0, 1) && is_number(&q, 1, 2));
	win_take(&q, sizeof(struct item), 2);
	CHECK(is_number(&q, 0, 3) && is_number(&q, 1, 4));
	put(&q, 35, 5);
	CHECK(ready(&q, UINT64_MAX) == 3 && is_number(&q, 0, 3) && is_number(&q, 1, 5) && is_number(&q, 2, 4));
	buf_fini(&q.all);
}

static void check_horizon(void)
{
	struct win_queue q = {.kept = 0};

	put(&q, S, 1);
	CHECK(!win_horizon(&q) && !ready(&q, win_horizon(&q)));
	put(&q, 4 * S, 3);
	put(&q, 2 * S, 2);
	CHECK(win_horizon(&q) == 4 * S - WIN_HOLD_NS);
	CHECK(ready(&q, until(&q, 4)) == 1 && is_number(&q, 0, 1)); /* the second one begins at the horizon */
	CHECK(!win_is_due(3, 0, 4, 8) && win_is_due(4, 0, 4, 8));   /* at least 4, */
	CHECK(!win_is_due(7, 4, 4, 8) && win_is_due(8, 4, 4, 99));  /* and twice as many as were left, */
	CHECK(win_is_due(8, 7, 4, 8));				    /* or as many as there may be */
	buf_fini(&q.all);
}

static void check_limit(void)
{
	struct win_queue q = {.kept = 0};
	FREED(buf_fini) struct buf latest = {0};
	uint64_t lost_ns = 5, i;

	for (i = 0; i < 4; i++)
		put(&q, 40 - 10 * i, i);
	CHECK(until(&q, 5) == 0 && until(&q, 4) == 31 && ready(&q, 31) == 3);
	win_take(&q, sizeof(struct item), 4);
	for (i = 0; i < 4; i++)
		put(&q, 50, i);
	CHECK(ready(&q, until(&q, 4)) == 4);
	buf_fini(&q.all);

	for (i = 0; i < 5; i++) {
		const struct item one = {10 * i, 90 - 10 * i, i};

		CHECK(lost_ns == 5 && !win_put_latest(&latest, &one, sizeof(one), 4, &lost_ns));
	}
	CHECK(lost_ns == 90 && buf_count(&latest, struct item) == 3 && buf_at(&latest, struct item, 0)->number == 2);
}

static void check_late(void)
{
	struct win_queue q = {.kept = 0}, copy = {.kept = 0};

	put(&q, 10, 1);
	put(&q, 20, 2);
	CHECK(!win_is_late(&q, 0) && ready(&q, 30) == 2);
	win_take(&q, sizeof(struct item), 2);
	CHECK(win_is_late(&q, 19) && !win_is_late(&q, 20));
	put(&q, 5, 3);
	CHECK(!win_copy(&copy, &q) && ready(&copy, 30) == 1);
	win_take(&copy, sizeof(struct item), 1);
	CHECK(win_is_late(&copy, 19) && is_number(&q, 0, 3));
	buf_fini(&q.all);
	buf_fini(&copy.all);
}

static int by_start(const void *va, const void *vb)
{
	BUF_ORDER(((const struct item *)va)->start_ns, ((const struct item *)vb)->start_ns);
	return 0;
}

static void check_search(void)
{
	const struct item below = {9, 0, 0}, same = {20, 0, 0}, above = {31, 0, 0};
	struct win_queue q = {.kept = 0};

	CHECK(buf_first(&q.all, sizeof(same), &same, by_start) == 0);
	put(&q, 30, 1);
	put(&q, 20, 2);
	put(&q, 10, 3);
	put(&q, 20, 4);
	buf_sort(&q.all, sizeof(same), by_start);
	CHECK(buf_first(&q.all, sizeof(same), &below, by_start) == 0);
	CHECK(buf_first(&q.all, sizeof(same), &same, by_start) == 1);
	CHECK(buf_first(&q.all, sizeof(same), &above, by_start) == 4);
	buf_fini(&q.all);
}

int main(void)
{
	TEST("items are taken in the order of their starts, whichever way they came")
	check_order();
	TEST("an item waits until none before it can be missing, and a sweep is worth while")
	check_horizon();
	TEST("beyond a limit half of the items are taken early, or forgotten, and it is known until when")
	check_limit();
	TEST("an item that came after later ones were taken is late, and a copy knows it too")
	check_late();
	TEST("the first item that is not before another one is found")
	check_search();
	UNIT_MAIN_END;
}
