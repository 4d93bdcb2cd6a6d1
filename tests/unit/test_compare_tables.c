// SPDX-License-Identifier: Apache-2.0
/* Tests how tables of recordings are joined, and when a change of one is certain, with tables of threads. */
#include <math.h>
#include <string.h>

#include "compare/tables.h"
#include "feature/threads/threads.h"
#include "records.h"
#include "unit.h"

#define RUNS	4
#define THREADS 20

static struct mdl_session with = {.features = THREADS_BIT, .duration_ns = 2000000000}, without = {.duration_ns = 1};
static struct cmp_run runs[CMP_SIDES][RUNS];
static struct cmp_tables tables;

static void put_thread(struct cmp_run *run, uint32_t tid, const char *name, uint64_t cpu_ns, uint64_t times)
{
	const struct thread_use use = {.tgid = 77, .tid = tid, .cpu_ns = cpu_ns, .runs = times};
	struct buf b = {0};

	if (!run->m) {
		run->m = mdl_new();
		run->s = &with;
	}
	put_name(&b, tid, MXBPF_NAME_THREAD, name);
	CHECK(!feed(run->m, &b) && !mdl_table_add(run->m, &feature_threads, &threads_table, &use));
	buf_fini(&b);
}

static void compare(unsigned n, uint64_t iterations)
{
	const struct cmp_sides sides = {{runs[CMP_A], runs[CMP_B]}, {n, n}};
	const struct cmp_result r = {.iterations = iterations, .several = n > 1, .wall_ns = {100, 100}};
	struct err e = {0};
	unsigned side, i;

	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < n; i++)
			runs[side][i].x.count = side == CMP_A ? iterations : 3 * iterations;
	CHECK(!cmp_tables_make(&tables, &sides, &r, view_sheet_find("threads", 7), &e));
}

static void end(void)
{
	unsigned i;

	for (i = 0; i < 2 * RUNS; i++)
		mdl_free(runs[i / RUNS][i % RUNS].m);
	memset(runs, 0, sizeof(runs));
	cmp_tables_fini(&tables);
}

static const struct cmp_value *value_of(const char *name, const char *column)
{
	const struct cmp_value *v;
	size_t i;

	for (i = 0; i < buf_count(&tables.values, *v); i++) {
		v = buf_at(&tables.values, struct cmp_value, i);
		if (!strcmp(tables.keys.data + v->keys, name) && !strcmp(v->number->key, column))
			return v;
	}
	return NULL;
}

static bool is(const char *name, const char *column, double a, double b)
{
	const struct cmp_value *v = value_of(name, column);

	return v && fabs(v->value[CMP_A] - a) < 1e-6 && fabs(v->value[CMP_B] - b) < 1e-6;
}

static void two_recordings(void)
{
	put_thread(&runs[CMP_A][0], 1, "worker", 1000, 10);
	put_thread(&runs[CMP_A][0], 2, "worker", 2000, 20);
	put_thread(&runs[CMP_A][0], 3, "main", 500, 5);
	put_thread(&runs[CMP_A][0], 4, "early", 70, 7);
	put_thread(&runs[CMP_B][0], 11, "main", 600, 6);
	put_thread(&runs[CMP_B][0], 12, "worker", 9000, 60);
}

/*
 * Recordings of THREADS threads whose times are within 10 % of each other; on side B, one takes `factor` as long, and
 * another one runs once, which is chance.
 */
static void draw(uint64_t *seed, double factor)
{
	unsigned i, k, side;
	char name[16];

	for (i = 0; i < RUNS * THREADS * CMP_SIDES; i++) {
		k = i % THREADS;
		side = i / THREADS % CMP_SIDES;
		*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
		snprintf(name, sizeof(name), "thread %u", k);
		put_thread(&runs[side][i / THREADS / CMP_SIDES], 100 + i, name,
			   (uint64_t)((side && !k ? factor : 1) * (side ? 3 : 1) *
				      (double)(1000000 + (*seed >> 40) % 100000)),
			   side && k == 1);
	}
}

int main(void)
{
	uint64_t seed = 1;
	unsigned i, k, wrong = 0, found = 0;

	TEST("rows are joined by their names whatever their ids, rows of one name are added up, and sums are per "
	     "iteration")
	{
		two_recordings();
		compare(1, 10);
		CHECK(is("worker", "cpu_ns", 300, 300) && is("worker", "runs", 3, 2));
		CHECK(is("main", "cpu_ns", 50, 20) && is("early", "cpu_ns", 7, 0));
		CHECK(tables.nmost == 1 && tables.most[0] == value_of("main", "cpu_ns"));
		CHECK(!value_of("main", "cpu_ns")->certain && fabs(value_of("main", "cpu_ns")->change + 0.6) < 1e-6);
		end();
	}
	TEST("without iterations sums are per second of the window")
	{
		two_recordings();
		compare(1, 0);
		CHECK(is("worker", "cpu_ns", 1500, 4500) && is("worker", "runs", 15, 30));
		end();
	}
	TEST("a table that a side was recorded without is not compared")
	{
		two_recordings();
		runs[CMP_B][0].s = &without;
		compare(1, 10);
		CHECK(!tables.values.len && !tables.table[0].lacks[CMP_A] && tables.table[0].lacks[CMP_B]);
		end();
	}
	TEST("of several recordings a doubled time is certain, and other changes hardly ever")
	{
		for (i = 0; i < 100; i++) {
			draw(&seed, i % 2 ? 2 : 1);
			compare(RUNS, 10);
			for (k = 0; k < buf_count(&tables.values, struct cmp_value); k++)
				wrong += buf_at(&tables.values, struct cmp_value, k)->certain;
			found += value_of("thread 0", "cpu_ns")->certain;
			end();
		}
		CHECK(found == 50 && wrong <= found + 3); /* a certain change is wrong in 1 of 100 comparisons */
	}
	return unit_end();
}
