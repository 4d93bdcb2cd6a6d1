// SPDX-License-Identifier: Apache-2.0
/* Tests how life cycles of operators and waits of the program are added up. */

#include "feature/life/life.h"
#include "model/model.h"
#include "unit.h"

#define CPU0 MXBPF_DEVICE(1, 0)

static struct mxbpf_life life(uint64_t name_id, uint32_t tgid, uint64_t dispatch_ns, uint64_t queue_ns)
{
	return (struct mxbpf_life){
		.h = {MXBPF_LIFE, sizeof(struct mxbpf_life), tgid, 1000},
		.name_id = name_id,
		.ns = {dispatch_ns, 50, queue_ns, 100},
		.device = CPU0,
		.tid = 9,
	};
}

static struct mxbpf_wait waited(uint64_t call_id, uint64_t op_id, uint64_t within_id, uint8_t what, uint64_t ns)
{
	return (struct mxbpf_wait){
		.h = {MXBPF_WAIT, sizeof(struct mxbpf_wait), 7, 1000},
		.name_id = 3,
		.call_id = call_id,
		.op_id = op_id,
		.within_id = within_id,
		.count = 1,
		.total_ns = ns,
		.max_ns = ns,
		.tid = 9,
		.what = what,
	};
}

static const struct life_row *life_of(struct mdl *m, uint64_t name_id, uint32_t tgid, enum mxbpf_life_part part)
{
	static const struct life_row none;
	size_t n, i;
	const struct life_row *all = life_rows(m, &n);

	for (i = 0; i < n; i++)
		if (all[i].name_id == name_id && all[i].tgid == tgid && all[i].part == part)
			return &all[i];
	return &none;
}

static struct mxbpf_wait wait_of(struct mdl *m, uint64_t op_id, uint64_t within_id, uint8_t what)
{
	size_t n, i;
	const struct mxbpf_wait *all = life_waits(m, &n);

	for (i = 0; i < n; i++)
		if (all[i].op_id == op_id && all[i].within_id == within_id && all[i].what == what)
			return all[i];
	return (struct mxbpf_wait){0};
}

static uint64_t percentile(const struct life_row *p, double fraction)
{
	return mdl_hist_percentile(p->hist, &(struct mdl_extent){p->count, p->min_ns, p->max_ns}, fraction);
}

static void check_lives(struct mdl *m)
{
	const struct life_row *run = life_of(m, 11, 7, MXBPF_LIFE_RUN), *queue = life_of(m, 11, 7, MXBPF_LIFE_QUEUE);
	const struct life_row *dispatch = life_of(m, 11, 7, MXBPF_LIFE_DISPATCH);

	CHECK(run->device == CPU0 && run->count == 3 && run->total_ns == 300);
	CHECK(dispatch->count == 2 && dispatch->total_ns == 30);
	CHECK(queue->min_ns == 1 && queue->max_ns == 1000 && queue->hist[mxbpf_bucket(1000)] == 1);
	CHECK(percentile(queue, 0.99) == 992); /* the middle of its bucket */
	CHECK(percentile(queue, 0.5) == 2);
	CHECK(life_of(m, 11, 8, MXBPF_LIFE_RUN)->count == 1);
}

static void test_lives(void)
{
	struct mxbpf_life r[] = {life(11, 7, 10, 1), life(11, 7, 20, 2), life(11, 7, MXBPF_LIFE_UNKNOWN, 1000),
				 life(11, 8, 10, 1)};
	FREED(model_freed) struct mdl *m = mdl_new(), *again = mdl_new();
	FREED(buf_fini) struct buf recs = {0};

	TEST("each part of a life counts the operators for which it is known")
	CHECK(!mdl_feed(m, r, sizeof(r)));
	check_lives(m);

	TEST("emitted lives give the same lives again, and processes can be summed")
	CHECK(!mdl_emit(m, &recs) && !mdl_feed(again, recs.data, recs.len));
	check_lives(again);
	FREED(model_freed) struct mdl *sum = mdl_sum(m);
	CHECK(sum && life_of(sum, 11, 0, MXBPF_LIFE_RUN)->count == 4);
}

/* A record of one life whose histogram begins at a value. */
static int feed_hist(struct mdl *m, unsigned first)
{
	const struct mxbpf_table head = {
		.h = {MXBPF_TABLE, sizeof(head) + 2 * sizeof(head.columns[0]) + 3 * sizeof(__u64), 7, 0},
		.name = "lives",
		.ncols = 2,
		.nrows = 1};
	const struct mxbpf_table_column columns[] = {{.name = "count", .nvalues = 1},
						     {.name = "hist", .nvalues = 2, .first = first}};
	const __u64 cells[] = {1, 2, 3};
	FREED(buf_fini) struct buf b = {0};

	CHECK(!buf_put(&b, &head, sizeof(head)) && !buf_put(&b, columns, sizeof(columns)) &&
	      !buf_put(&b, cells, sizeof(cells)));
	return mdl_feed(m, b.data, b.len);
}

static void test_hist(void)
{
	static const unsigned beyond[] = {MXBPF_HIST_BUCKETS - 1, MXBPF_HIST_BUCKETS, UINT32_MAX, UINT32_MAX - 1};
	FREED(model_freed) struct mdl *m = mdl_new();
	const uint64_t *hist;
	unsigned i;
	size_t n;

	TEST("a histogram in a record can begin anywhere, and one that ends beyond the last bucket is left out")
	for (i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++)
		CHECK(!feed_hist(m, beyond[i]));
	CHECK(!feed_hist(m, MXBPF_HIST_BUCKETS - 2));
	CHECK(life_rows(m, &n)->count == 5 && n == 1);
	hist = life_rows(m, &n)->hist;
	CHECK(hist[MXBPF_HIST_BUCKETS - 2] == 2 && hist[MXBPF_HIST_BUCKETS - 1] == 3);
	for (i = 0; i < MXBPF_HIST_BUCKETS - 2; i++)
		CHECK(!hist[i]);
}

static void test_waits(void)
{
	struct mxbpf_wait r[] = {waited(1, 11, 0, MXBPF_WAIT_OPERATOR, 10), waited(1, 11, 0, MXBPF_WAIT_OPERATOR, 30),
				 waited(1, 11, 12, MXBPF_WAIT_OPERATOR, 5), waited(2, 11, 12, MXBPF_WAIT_OPERATOR, 5),
				 waited(1, 0, 0, MXBPF_WAIT_NOTHING, 1),    waited(1, 0, 0, MXBPF_WAIT_UNSEEN, 2)};
	FREED(model_freed) struct mdl *m = mdl_new(), *again = mdl_new();
	struct mxbpf_wait w;
	FREED(buf_fini) struct buf recs = {0};
	size_t n;

	TEST("waits are added up by call, operator, bulk and what they were for")
	CHECK(!mdl_feed(m, r, sizeof(r)));
	life_waits(m, &n);
	CHECK(n == 5);
	w = wait_of(m, 11, 0, MXBPF_WAIT_OPERATOR);
	CHECK(w.count == 2 && w.total_ns == 40 && w.max_ns == 30 && !w.tid && !w.h.ts_ns);
	CHECK(wait_of(m, 0, 0, MXBPF_WAIT_UNSEEN).total_ns == 2);
	CHECK(!mdl_emit(m, &recs) && !mdl_feed(again, recs.data, recs.len));
	life_waits(again, &n);
	CHECK(n == 5 && wait_of(again, 11, 0, MXBPF_WAIT_OPERATOR).total_ns == 40);

	TEST("a wait for an unknown kind of thing is refused")
	r[0].what = MXBPF_WAIT_WHATS;
	CHECK(mdl_feed(m, r, sizeof(r[0])) == -EBADMSG);
}

int main(void)
{
	test_lives();
	test_hist();
	test_waits();
	UNIT_MAIN_END;
}
