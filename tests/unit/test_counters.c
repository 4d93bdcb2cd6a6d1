// SPDX-License-Identifier: Apache-2.0
/*
 * Tests performance counters with made-up records, because not every machine has counters: derived ratios, and calls
 * without counters.
 */

#include "mxbpf_scale.h"
#include "printed.h"
#include "records.h"
#include "schema.h"

#define OP MXBPF_CLASS_OPERATOR

static struct mdl_perf_event events[] = {{"cycles"}, {"instructions"}, {"cache-misses"}, {"task-clock"}};

/* Returns what a view prints of m. The caller frees it. */
static char *render(const char *view, struct mdl *m)
{
	struct mdl_session s = {.comm = "python",
				.cmdline = "train.py",
				.class_title = {[OP] = "ops"},
				.counters = events,
				.ncounters = sizeof(events) / sizeof(events[0])};
	const struct view_input in = {.session = &s, .model = m};
	const struct view_opts opts = {.width = 120};

	return printed(view_find(view), &in, &opts);
}

static void put_span(struct buf *b, uint64_t name_id, unsigned flags, uint64_t cycles, uint64_t misses, unsigned bytes)
{
	struct mxbpf_span s = {
		.h = {MXBPF_SPAN, (uint16_t)bytes, 77, 1000},
		.dur_ns = 1000,
		.self_ns = 1000,
		.name_id = name_id,
		.cls = OP,
		.flags = (uint8_t)flags,
		.counters = {cycles, 3 * cycles, misses, cycles / 2},
	};

	buf_put(b, &s, bytes);
}

/* Two of four calls of `mm` have counters; `relu` has none, `zero` has counted nothing. */
static struct mdl *model(void)
{
	const unsigned whole = sizeof(struct mxbpf_span);
	struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};

	put_name(&b, 5, MXBPF_NAME_SPAN, "mm");
	put_name(&b, 7, MXBPF_NAME_SPAN, "relu");
	put_name(&b, 9, MXBPF_NAME_SPAN, "zero");
	put_span(&b, 5, 0, 1000000, 600, whole);
	put_span(&b, 5, MXBPF_SPAN_SCALED, 3000000, 600, whole);
	put_span(&b, 5, 0, MXBPF_COUNTER_NONE, 1, whole);
	put_span(&b, 5, 0, 1, 1, MXBPF_SPAN_BYTES_ACCOUNT);
	put_span(&b, 7, 0, 1, 1, MXBPF_SPAN_BYTES_PLAIN);
	put_span(&b, 9, 0, 0, 0, whole);
	CHECK(!mdl_feed(m, b.data, b.len));
	return m;
}

static void check_json(struct mdl *m)
{
	FREED(memory_freed) char *t = render("json", m);

	CHECK(follows_schema(t));
	CHECK(strstr(t, "\"counters\": {\"calls\": 2, \"scaled\": 1, \"cycles\": 4000000, \"instructions\": 12000000, "
			"\"cache-misses\": 1200, \"task-clock\": 2000000, \"instructions_per_cycle\": 3.0000, "
			"\"ghz\": 2.0000, \"cache_misses_per_1000_instructions\": 0.1000}"));
	CHECK(strstr(t, "\"counters\": {\"calls\": 1, \"scaled\": 0, \"cycles\": 0, \"instructions\": 0, "
			"\"cache-misses\": 0, \"task-clock\": 0}"));
	CHECK(strstr(t, "\"counters\": {\"calls\": 0, "));
}

static void check_table(struct mdl *m)
{
	FREED(memory_freed) char *t = render("modern", m);

	CHECK(strstr(t, "name calls cycles instructions cache-misses task-clock  IPC  GHz cmiss/1k\n"));
	CHECK(strstr(t, "mm       2  4.00M        12.0M        1.20k     2.00ms 3.00 2.00     0.10\n"));
	CHECK(strstr(t, "relu     0      -            -            -          -    -    -        -\n"));
	CHECK(strstr(t, "zero     1      0            0            0        0ns    -    -        -\n"));
	CHECK(strstr(t, "\ncounters 3 of 6 calls have none: "));
	CHECK(strstr(t, "\ncounters of 1 calls are estimates, "));
}

static void check_csv(struct mdl *m)
{
	FREED(memory_freed) char *t = render("csv", m);

	CHECK(strstr(t, ",counted_calls,scaled_calls,cycles,instructions,cache-misses,task-clock,"
			"instructions_per_cycle,ghz,cache_misses_per_1000_instructions\n"));
	CHECK(strstr(t, ",2,1,4000000,12000000,1200,2000000,3.0000,2.0000,0.1000\n"));
	CHECK(strstr(t, "\"relu\"") && strstr(t, ",,,,,,,,,\n"));
}

static void check_emitted(struct mdl *m)
{
	FREED(model_freed) struct mdl *again = mdl_new();
	FREED(memory_freed) char *before = render("json", m);
	FREED(buf_fini) struct buf recs = {0};

	CHECK(!mdl_emit(m, &recs) && !mdl_feed(again, recs.data, recs.len));
	FREED(memory_freed) char *after = render("json", again);
	CHECK(!strcmp(before, after));
}

int main(void)
{
	struct mdl *m;

	TEST("a counter is scaled up to the whole time, even for long times and large counts")
	{
		CHECK(mxbpf_scaled(1000, 300, 100) == 3000 && mxbpf_scaled(7, 3, 2) == 10 &&
		      mxbpf_scaled(0, 5, 1) == 0);
		CHECK(mxbpf_scaled(1ull << 60, (1ull << 32) - 1, (1ull << 32) - 1) == 1ull << 60);
		CHECK(mxbpf_scaled(3ull << 50, 1ull << 43, 1ull << 42) == 3ull << 51); /* in two hours */
		CHECK(mxbpf_scaled(5, 1ull << 43, 100) == 0 && mxbpf_scaled(5, 100, 0) == 0);
	}
	m = model();
	TEST("ratios are computed from sums, are absent if nothing was counted, and obey the JSON schema")
	check_json(m);
	TEST("the table has rounded numbers, and notes how many calls have no counters and how many are estimates")
	check_table(m);
	TEST("CSV has a column for each counter and each ratio, empty where there is no value")
	check_csv(m);
	TEST("the records at the end of a recording give the same rows")
	check_emitted(m);
	TEST("an unknown event name from an untrusted file is not shown")
	{
		events[0].name = "\", \"x\": \"";
		FREED(memory_freed) char *t = render("json", m);
		CHECK(strstr(t, "\"counter-1\": 4000000") && !strstr(t, "\"x\"") && !strstr(t, "\"ghz\""));
	}
	mdl_free(m);
	UNIT_MAIN_END;
}
