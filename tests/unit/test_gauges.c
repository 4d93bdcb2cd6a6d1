// SPDX-License-Identifier: Apache-2.0
/* Tests how gauge readings are folded over a window, and the sentences about them. */
#include "feature/machine/machine.h"

#include "printed.h"
#include "records.h"

#define S  1000000000ull
#define MS 1000000ull

static void put_gauge(struct buf *b, unsigned id, unsigned scope, uint64_t ts_ns, uint64_t value, unsigned flags)
{
	struct mxbpf_gauge g = {
		.h = {.kind = MXBPF_GAUGE, .size = MXBPF_GAUGE_BYTES_MIN, .ts_ns = ts_ns},
		.value = value,
		.id = (uint16_t)id,
		.scope = (uint16_t)scope,
		.flags = flags,
	};

	buf_put(b, &g, MXBPF_GAUGE_BYTES_MIN);
}

/* Adds two readings that are ten seconds apart. */
static void put_ten(struct buf *b, unsigned id, unsigned scope, uint64_t from, uint64_t to)
{
	put_gauge(b, id, scope, 5 * S, from, 0);
	put_gauge(b, id, scope, 15 * S, to, 0);
}

/* Returns what a view prints of a model. The caller frees it. */
static char *shown(const char *format, struct mdl *m)
{
	struct mdl_session s = {.start_mono_ns = 5 * S,
				.duration_ns = 10 * S,
				.comm = "x",
				.cmdline = "x",
				.mxbpf_version = "x",
				.hostname = "x",
				.pid = 7};
	const struct view_input in = {.session = &s, .model = m};
	const struct view_opts opts = {0};

	return printed(view_find(format), &in, &opts);
}

/* Returns true if the table contains the text, or with NULL, if it has no sentence. Empties b. */
static bool says(struct buf *b, const char *text)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	bool is;

	CHECK(m && !feed(m, b));
	FREED(memory_freed) char *all = shown("modern", m);
	is = text ? !!strstr(all, text) : !strstr(all, "machine ");
	if (!is)
		printf("# %s\n", all);
	return is;
}

static bool same_rows(const struct mdl *a, const struct mdl *b)
{
	const struct machine_row *x, *y;
	size_t n, m, i;

	x = machine_rows(a, &n);
	y = machine_rows(b, &m);
	for (i = 0; i < n && n == m; i++)
		if (x[i].id != y[i].id || x[i].scope != y[i].scope ||
		    memcmp(&x[i].first_ns, &y[i].first_ns, sizeof(x[i]) - offsetof(struct machine_row, first_ns)))
			return false;
	return n == m;
}

static void test_folding(void)
{
	FREED(model_freed) struct mdl *m = mdl_new(), *again = mdl_new();
	const struct machine_row *r;
	FREED(buf_fini) struct buf b = {0};
	size_t n;

	TEST("a rising gauge is summed from reading to reading, without pauses and restarts of the count")
	{
		put_gauge(&b, MXBPF_GAUGE_THROTTLED, 1, 1 * S, 100, 0);
		put_gauge(&b, MXBPF_GAUGE_THROTTLED, 1, 2 * S, 150, 0);
		put_gauge(&b, MXBPF_GAUGE_THROTTLED, 1, 9 * S, 950, MXBPF_GAUGE_RESUMED);
		put_gauge(&b, MXBPF_GAUGE_THROTTLED, 1, 10 * S, 960, 0);
		put_gauge(&b, MXBPF_GAUGE_THROTTLED, 1, 11 * S, 7, 0);
		CHECK(!feed(m, &b));
		r = machine_row(m, MXBPF_GAUGE_THROTTLED, 1);
		CHECK(r && r->difference == 60 && r->elapsed_ns == 3 * S && r->first == 100 && r->last == 7);
		CHECK(!machine_row(m, MXBPF_GAUGE_THROTTLED, 2));
	}
	TEST("a level has extremes and a mean, and \"no limit\" counts for neither")
	{
		put_gauge(&b, MXBPF_GAUGE_MEMORY_MAX, 1, 1 * S, MXBPF_GAUGE_NO_LIMIT, 0);
		put_gauge(&b, MXBPF_GAUGE_MEMORY_MAX, 1, 2 * S, 30, 0);
		put_gauge(&b, MXBPF_GAUGE_MEMORY_MAX, 1, 3 * S, 10, 0);
		CHECK(!feed(m, &b));
		r = machine_row(m, MXBPF_GAUGE_MEMORY_MAX, 1);
		CHECK(r && r->count == 2 && r->sum == 40 && r->min == 10 && r->max == 30);
		CHECK(r && r->first == MXBPF_GAUGE_NO_LIMIT && r->last == 10);
	}
	TEST("an emitted model has the same gauges after it is read again")
	{
		CHECK(!mdl_emit(m, &b) && !feed(again, &b));
		machine_rows(again, &n);
		CHECK(n == 2 && same_rows(m, again));
	}
	TEST("the sum of several processes has each reading once")
	{
		FREED(model_freed) struct mdl *sum = mdl_sum(m);

		CHECK(sum && same_rows(m, sum));
	}
	TEST("an unknown gauge is ignored, and a record that is too short is refused")
	{
		put_gauge(&b, MXBPF_GAUGE_IDS, 0, 1, 1, 0);
		put_gauge(&b, 0, 0, 1, 1, 0);
		put_gauge(&b, 65535, 65535, 1, 1, 0);
		CHECK(!feed(m, &b));
		machine_rows(m, &n);
		CHECK(n == 2);
		put_gauge(&b, 1, 0, 1, 1, 0);
		((struct mxbpf_rec *)b.data)->size = 24;
		b.len = 24;
		CHECK(feed(m, &b) == -EBADMSG);
	}
}

static void put_cpus(struct buf *b, uint64_t idle_ns, uint64_t steal_ns)
{
	put_ten(b, MXBPF_GAUGE_CPU_BUSY, 0, 77 * S, 87 * S);
	put_ten(b, MXBPF_GAUGE_CPU_IDLE, 0, 0, idle_ns);
	put_ten(b, MXBPF_GAUGE_CPU_IOWAIT, 0, 0, 0);
	put_ten(b, MXBPF_GAUGE_CPU_STEAL, 0, 3, 3 + steal_ns);
}

static void test_sentences(void)
{
	FREED(buf_fini) struct buf b = {0};

	TEST("throttling is shown with its limit, its cgroup, and the file name of its cgroup version")
	{
		put_name(&b, 1, MXBPF_NAME_SCOPE, "/pod/a");
		put_ten(&b, MXBPF_GAUGE_THROTTLED, 1, 4 * S, 4 * S + 3800 * MS);
		put_ten(&b, MXBPF_GAUGE_CPU_MAX, 1, 300, 300);
		CHECK(says(&b,
			   "\nmachine  throttled 38 % of the window by the cgroup's cpu.max (0.30 CPUs): /pod/a\n"));
		put_name(&b, 1, MXBPF_NAME_SCOPE, "cpu:/");
		put_ten(&b, MXBPF_GAUGE_THROTTLED, 1, 0, 3800 * MS);
		put_ten(&b, MXBPF_GAUGE_CPU_MAX, 1, 300, 300);
		CHECK(says(&b, "throttled 38 % of the window by the cgroup's cpu.cfs_quota_us (0.30 CPUs)\n"));
		put_ten(&b, MXBPF_GAUGE_THROTTLED, 1, 0, 3800 * MS);
		CHECK(says(&b, "throttled 38 % of the window by the cgroup's "));
	}
	TEST("throttled time above one CPU is marked as a sum over CPUs")
	{
		put_name(&b, 1, MXBPF_NAME_SCOPE, "/a");
		put_ten(&b, MXBPF_GAUGE_THROTTLED, 1, 0, 14 * S);
		CHECK(says(&b, "throttled 140 % (summed over CPUs) of the window"));
		put_ten(&b, MXBPF_GAUGE_THROTTLED, 1, 0, 5 * S);
		put_ten(&b, MXBPF_GAUGE_CPU_MAX, 1, 3600, 3600);
		CHECK(says(&b, "throttled 50 % (summed over CPUs) of the window"));
	}
	TEST("steal is a share of all CPU time, and single ticks are not shown")
	{
		put_cpus(&b, 7600 * MS, 2400 * MS);
		CHECK(says(&b, "machine  the hypervisor took 12 % of CPU time (steal)\n"));
		put_cpus(&b, 30 * S, 400 * MS);
		CHECK(says(&b, NULL));
		put_gauge(&b, MXBPF_GAUGE_CPU_BUSY, 0, 1, 0, 0);
		put_gauge(&b, MXBPF_GAUGE_CPU_BUSY, 0, 2, 20 * MS, 0);
		put_gauge(&b, MXBPF_GAUGE_CPU_STEAL, 0, 1, 0, 0);
		put_gauge(&b, MXBPF_GAUGE_CPU_STEAL, 0, 2, 20 * MS, 0);
		CHECK(says(&b, NULL));
	}
	TEST("pressure is that of the cgroup if known, and that of the machine otherwise")
	{
		put_ten(&b, MXBPF_GAUGE_STALL_MEMORY, 0, 1, 2 * S + 1);
		CHECK(says(&b, "machine  memory pressure: some task stalled 20 % of the window\n"));
		put_ten(&b, MXBPF_GAUGE_STALL_MEMORY, 0, 1, 2 * S + 1);
		put_ten(&b, MXBPF_GAUGE_GROUP_STALL_MEMORY, 1, 1, 1);
		CHECK(says(&b, NULL));
		put_ten(&b, MXBPF_GAUGE_STALL_MEMORY, 0, 1, 2 * S + 1);
		put_ten(&b, MXBPF_GAUGE_GROUP_STALL_MEMORY, 1, 1, 7 * S + 1);
		CHECK(says(&b, "machine  memory pressure: some task of the cgroup stalled 70 % of the window\n"));
	}
	TEST("a frequency is compared with the highest frequency if that is known")
	{
		put_ten(&b, MXBPF_GAUGE_CPU_KHZ, 0, 1200000, 1500000);
		CHECK(says(&b, NULL));
		put_ten(&b, MXBPF_GAUGE_CPU_KHZ, 0, 1200000, 1500000);
		put_ten(&b, MXBPF_GAUGE_CPU_KHZ_MAX, 0, 3000000, 3000000);
		CHECK(says(&b, "machine  the CPUs ran at 45 % of their highest frequency\n"));
		put_ten(&b, MXBPF_GAUGE_CPU_KHZ, 0, 2000000, 2000000);
		put_ten(&b, MXBPF_GAUGE_CPU_KHZ_MAX, 0, 3000000, 3000000);
		CHECK(says(&b, NULL));
	}
	TEST("memory limit hits are counted")
	{
		put_name(&b, 1, MXBPF_NAME_SCOPE, "/a");
		put_ten(&b, MXBPF_GAUGE_MEMORY_MAX_HITS, 1, 5, 1239);
		put_ten(&b, MXBPF_GAUGE_MEMORY_MAX, 1, 1 << 30, 1 << 30);
		CHECK(says(&b, "memory ran into its limit 1,234 times: the cgroup's memory.max (1.00 GiB): /a\n"));
	}
	TEST("gauges that did not change or were read only once give no sentence")
	{
		put_ten(&b, MXBPF_GAUGE_THROTTLED, 1, 4 * S, 4 * S);
		put_ten(&b, MXBPF_GAUGE_MEMORY_MAX_HITS, 1, 999, 999);
		put_gauge(&b, MXBPF_GAUGE_STALL_CPU, 0, 1, 99 * S, 0);
		put_gauge(&b, MXBPF_GAUGE_OOM_KILLS, 1, 1, 99, 0);
		CHECK(says(&b, NULL));
	}
}

static void test_hostile(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};
	char *all, name[200];

	TEST("a hostile cgroup name stays inside its field in every format")
	{
		memset(name, 'x', sizeof(name));
		memcpy(name, "/\"\n,\x1b[2J", 8);
		name[sizeof(name) - 1] = '\0';
		put_name(&b, 1, MXBPF_NAME_SCOPE, name);
		put_ten(&b, MXBPF_GAUGE_THROTTLED, 1, 0, 9 * S);
		CHECK(!feed(m, &b));
		all = shown("modern", m);
		CHECK(strstr(all, "/\"\\x0a,\\x1b[2J") && !strchr(all, '\x1b'));
		free(all);
		all = shown("json", m);
		CHECK(strstr(all, "\"group\": \"/\\\"\\n,\\u001b[2J") && strstr(all, ": /\\\"\\\\x0a,\\\\x1b[2J"));
		free(all);
		all = shown("csv", m);
		CHECK(strstr(all, ",9000000000,,,,\"/\"\"\n,\\x1b[2J"));
		free(all);
	}
	TEST("extreme values break no output")
	{
		put_ten(&b, MXBPF_GAUGE_THROTTLED, 1, 0, UINT64_MAX - 1);
		put_ten(&b, MXBPF_GAUGE_CPU_MAX, 1, UINT64_MAX - 1, UINT64_MAX);
		put_gauge(&b, MXBPF_GAUGE_CPU_STEAL, 0, UINT64_MAX, UINT64_MAX, 0);
		put_gauge(&b, MXBPF_GAUGE_CPU_STEAL, 0, 0, 0, 0);
		CHECK(!feed(m, &b));
		free(shown("modern", m));
		free(shown("json", m));
	}
}

static struct buf tape;
static bool rewound;

static int rewind_tape(void *ctx)
{
	rewound = true;
	return 0;
}

static int next_window(void *ctx, const void **recs, size_t *bytes)
{
	bool had = rewound;

	rewound = false;
	*recs = tape.data;
	*bytes = tape.len;
	return had;
}

/* Returns the trace of the tape. The caller frees it. */
static char *traced(const char *format)
{
	struct mdl_session s = {.start_mono_ns = 5 * S,
				.duration_ns = 10 * S,
				.comm = "x",
				.cmdline = "x",
				.mxbpf_version = "x",
				.hostname = "x",
				.pid = 7};
	struct view_source source = {.rewind = rewind_tape, .next = next_window};
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct view_input in = {.session = &s, .model = m, .source = &source};
	const struct view_opts opts = {0};

	CHECK(!mdl_feed(m, tape.data, tape.len));
	return printed(view_find(format), &in, &opts);
}

#define COUNTER(pid, ts, name, key, value)                                                                             \
	"{\"ph\":\"C\",\"pid\":" pid ",\"tid\":3100000000,\"ts\":" ts ",\"name\":\"" name "\",\"args\":{\"" key        \
	"\":" value "}"                                                                                                \
	"}"

static void test_counters(void)
{
	char *all;

	put_name(&tape, 1, MXBPF_NAME_SCOPE, "/a\"b");
	put_gauge(&tape, MXBPF_GAUGE_THROTTLED, 1, 5 * S, 100, 0);
	put_gauge(&tape, MXBPF_GAUGE_THROTTLED, 1, 6 * S, 100 + 700 * MS, 0);
	put_gauge(&tape, MXBPF_GAUGE_THROTTLED, 1, 9 * S, 99 * S, MXBPF_GAUGE_RESUMED);
	put_gauge(&tape, MXBPF_GAUGE_THROTTLED, 1, 11 * S, 99 * S + 100 * MS, 0);
	put_gauge(&tape, MXBPF_GAUGE_CPU_STEAL, 0, 5 * S, 3, 0);
	put_gauge(&tape, MXBPF_GAUGE_CPU_STEAL, 0, 6 * S, 3, 0);
	put_gauge(&tape, MXBPF_GAUGE_CPU_BUSY, 0, 5 * S, 3, 0);
	put_gauge(&tape, MXBPF_GAUGE_CPU_BUSY, 0, 6 * S, 3 + 1500 * MS, 0);
	put_gauge(&tape, MXBPF_GAUGE_GROUP_MEMORY, 1, 6 * S, 4096, 0);
	put_gauge(&tape, MXBPF_GAUGE_GROUP_MEMORY, 65535, 1, 4096, 0); /* before the window */
	TEST("a counter covers the time of its readings, a pause is drawn as zero, and a gauge that is always 0 is not "
	     "drawn")
	{
		all = traced("chrome");
		CHECK(strstr(all, COUNTER("3100000000", "0.000", "cgroup /a\\\"b: throttled", "%", "70.000")));
		CHECK(strstr(all, COUNTER("3100000000", "1000000.000", "cgroup /a\\\"b: throttled", "%", "0.000")));
		CHECK(strstr(all, COUNTER("3100000000", "4000000.000", "cgroup /a\\\"b: throttled", "%", "5.000")));
		CHECK(strstr(all, COUNTER("3100000000", "0.000", "machine: busy", "CPUs", "1.500")));
		CHECK(strstr(all, COUNTER("3100000000", "1000000.000", "cgroup: memory", "bytes", "4096")));
		CHECK(!strstr(all, "steal"));
		free(all);
	}
	TEST("the classic form has the counters in a process of its own")
	{
		all = traced("chrome-classic");
		CHECK(strstr(all, COUNTER("\"CPU functions\"", "0.000", "machine: busy", "CPUs", "1.500")));
		free(all);
	}
	buf_fini(&tape);
}

int main(void)
{
	test_folding();
	test_sentences();
	test_hostile();
	test_counters();
	UNIT_MAIN_END;
}
