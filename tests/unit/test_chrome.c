// SPDX-License-Identifier: Apache-2.0
/*
 * Tests what Perfetto requires of a Chrome JSON file, rule by rule, on small recordings.
 * With an argument, the program writes the recording with all kinds of records to that file, for tests/trace.bats.
 */
#include "chrome_tape.h"

/* ---- a recording with all kinds of records, as the engine of a framework makes it */

static void rich_tape(struct tape *t)
{
	static const char hostile[] = "Conv\"\\\n\x01\x7f\xc3\x28 </script> \xf0\x9f\x94\xa5";
	uint64_t i, at;

	name(t, PID, MXBPF_NAME_THREAD, "trainer", 7);
	name(t, PID + 1, MXBPF_NAME_THREAD, "worker", 6);
	name(t, API, MXBPF_NAME_SPAN, "MXInvoke", 8);
	name(t, OP, MXBPF_NAME_SPAN, hostile, sizeof(hostile) - 1);
	name(t, WAIT, MXBPF_NAME_SPAN, "WaitForVar", 10);
	for (i = 0; i < 200; i++) {
		at = i * 10000;
		edge(t, PID, at + 100, at, 0x1000 + i % 3);
		edge(t, PID, at + 200, at, 0x2000);
		span(t, API, PID, at, at + 1000 + i % 999);
		op(t, PID + 1, at + 2000, at + 5000, 0x1000 + i % 3);
		async_op(t, PID + 2, at + 5001, at + 28000, 0x2000);
		alloc(t, at + 2500, 4096 + (int64_t)i);
		alloc(t, at + 2400, -1024);
		span(t, WAIT, PID, at + 6000, at + 9000);
		span(t, API, PID, at + 5500, at + 9001);
	}
	/* Hard cases for viewers: spans with the same start, empty spans, adjacent spans. */
	at = i * 10000;
	span(t, WAIT, PID, at, at);
	span(t, WAIT, PID, at, at + 100);
	span(t, API, PID, at, at + 100);
	span(t, API, PID, at + 100, at + 200);
	span(t, API, PID, at + 150, at + 300); /* overlaps the previous span */
	span(t, API, PID, at + 300, at + 300);
	span(t, API, PID, at + 300, at + 300);
}

static void test_times(void)
{
	TEST("times are microseconds since the start of the window with exactly three decimals")
	{
		FREED(tape_free) struct tape t = tape_new();

		span(&t, API, PID, 1, 2);
		span(&t, API, PID, 1000125, 1000125 + 999);
		span(&t, API, PID, 86400000000001ull, 86400000000001ull + 1000001);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(strstr(r.text, "\"ts\":0.001,\"dur\":0.001,"));
		CHECK(strstr(r.text, "\"ts\":1000.125,\"dur\":0.999,"));
		CHECK(strstr(r.text, "\"ts\":86400000000.001,\"dur\":1000.001,"));
		CHECK(strstr(r.text, "\"baseTimeNanoseconds\":1795145533000000123,"));
		CHECK(!strcmp(str(r.json, "displayTimeUnit"), "ns"));
	}

	TEST("a span that began before the window moves the time base, and no time is negative")
	{
		FREED(tape_free) struct tape t = tape_new();

		span(&t, API, PID, (uint64_t)-1000, 500);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(strstr(r.text, "\"ts\":0.000,\"dur\":1.500,"));
		CHECK(strstr(r.text, "\"baseTimeNanoseconds\":1795145532999999123,"));
	}
}

static void test_memory(void)
{
	TEST("the memory counter is a running sum in time order across windows and never negative")
	{
		static const double want[] = {0, 100, 300, 50, 0, 10};
		FREED(tape_free) struct tape t = tape_new();
		int i;

		t.window_recs = 2;
		alloc(&t, 400, -250);
		alloc(&t, 200, 100);
		alloc(&t, 100, -999); /* was allocated before the window */
		alloc(&t, 300, 200);
		alloc(&t, 600, 10);
		alloc(&t, 500, -51);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(count(&r, "C") == 6);
		for (i = 0; i < 6; i++) {
			cJSON *e = event(&r, "C", i);

			CHECK(num(cJSON_GetObjectItem(e, "args"), "bytes") == want[i]);
			CHECK(at_ns(e) == (i + 1) * 100 && num(e, "pid") == PID);
			CHECK(!strcmp(str(e, "name"), "memory cpu/0"));
		}
	}
}

static void test_names(void)
{
	TEST("hostile names give valid JSON and keep their valid characters")
	{
		FREED(tape_free) struct tape t = tape_new();
		char longest[MXBPF_NAME_BYTES_MAX];

		memset(longest, 1, sizeof(longest));
		name(&t, 77, MXBPF_NAME_SPAN, longest, sizeof(longest));
		name(&t, PID, MXBPF_NAME_THREAD, "a\"\\\n\xff", 5);
		name(&t, OP, MXBPF_NAME_SPAN, "x\"},{\"ph\":\"X\"\x02\xc3\x28", 17);
		op(&t, PID, 100, 200, 0);
		span(&t, OP, PID, 300, 400)->name_id = 77;
		span(&t, OP, PID, 500, 600)->name_id = 0;
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(count(&r, "X") == 3);
		CHECK(!strcmp(str(slice(&r, "cpu_op", 100), "name"), "x\"},{\"ph\":\"X\"\x02\xef\xbf\xbd("));
		CHECK(strlen(str(slice(&r, "cpu_op", 300), "name")) == sizeof(longest));
		CHECK(!strcmp(str(slice(&r, "cpu_op", 500), "name"), "[unreadable]"));
		CHECK(!strcmp(track_name(&r, PID), "a\"\\\n\xef\xbf\xbd"));
	}

	/* All texts share one block, which may move when it grows: pointers into the old block must not be used. */
	TEST("user annotations have their device and their domain of any length")
	{
		static char domain[MXBPF_NAME_BYTES_MAX];
		FREED(tape_free) struct tape t = tape_new();
		struct mxbpf_span *s;
		unsigned i;

		memset(domain, 'd', sizeof(domain));
		for (i = 0; i < 20; i++) {
			name(&t, 2 * i + 1, MXBPF_NAME_DOMAIN, domain, sizeof(domain) - i);
			s = span(&t, MXBPF_CLASS_TASK, PID, 1000 * i, 1000 * i + 10);
			s->name_id = 2 * i + 1;
			s->flags = MXBPF_SPAN_USER;
			s->device = CPU0 + i;
		}
		FREED(trace_free) struct trace r = trace_of(&t);
		for (i = 0; i < 20; i++) {
			const cJSON *args = cJSON_GetObjectItem(event(&r, "X", (int)i), "args");
			char device[16];

			snprintf(device, sizeof(device), "cpu/%u", i);
			CHECK(strlen(str(args, "domain")) == sizeof(domain) - i &&
			      !strcmp(str(args, "device"), device));
		}
	}

	TEST("processes and threads are named, and the main thread is first and the lanes are last")
	{
		FREED(tape_free) struct tape t = tape_new();
		cJSON *e;

		name(&t, PID - 2, MXBPF_NAME_THREAD, "older", 5);
		op(&t, PID + 3, 10, 20, 0);
		op(&t, PID - 2, 10, 20, 0);
		op(&t, PID, 10, 20, 0);
		async_op(&t, PID + 3, 10, 20, 0);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(!strcmp(track_name(&r, PID), "trainer") && !strcmp(track_name(&r, PID - 2), "older"));
		CHECK(!strcmp(track_name(&r, PID + 3), "thread"));
		cJSON_ArrayForEach(e, r.events)
		{
			double at = num(cJSON_GetObjectItem(e, "args"), "sort_index"), tid = num(e, "tid");

			if (!strcmp(str(e, "name"), "thread_sort_index"))
				CHECK(at == (tid == PID ? 0 : tid == PID - 2 ? 1 : tid == PID + 3 ? 2 : 3));
			if (!strcmp(str(e, "name"), "process_name"))
				CHECK(!strcmp(str(cJSON_GetObjectItem(e, "args"), "name"), "trainer"));
		}
	}
}

static void test_whole(void)
{
	TEST("the trace contains its window, its losses, its probes and the number of truncated records")
	{
		FREED(tape_free) struct tape t = tape_new();
		FREED(trace_free) struct trace r = trace_of(&t);
		const cJSON *loss = cJSON_GetObjectItem(r.other, "loss"),
			    *window = cJSON_GetObjectItem(r.other, "window");
		const cJSON *probe = cJSON_GetArrayItem(cJSON_GetObjectItem(r.other, "probes"), 1);
		const cJSON *target = cJSON_GetObjectItem(r.other, "target");

		CHECK(num(loss, "attempted") == 100 && num(loss, "stored") == 90 && num(loss, "dropped") == 10);
		CHECK(num(loss, "truncated") == 1 && num(loss, "unreadable") == 2 && num(loss, "unmatched") == 4);
		CHECK(num(window, "duration_ns") == 5000000 &&
		      cJSON_IsFalse(cJSON_GetObjectItem(window, "incomplete")));
		CHECK(strstr(r.text, "\"start_unix_ns\":1795145533000000123"));
		CHECK(!strcmp(str(probe, "status"), "refused") && !strcmp(str(probe, "reason"), "no \"symbol\"\n"));
		CHECK(num(r.other, "cut_records") == 9 && num(r.other, "open_spans") == 3 &&
		      num(r.other, "hits") == 77);
		CHECK(num(target, "pid") == PID && !strcmp(str(target, "cmdline"), "trainer -v \xef\xbf\xbd\x01\""));
		CHECK(!strcmp(str(r.other, "mxbpf_version"), "1.2.3"));
		/* An empty recording gives a valid trace, too. */
		CHECK(!count(&r, "X") && count(&r, "M") == 1);
	}

	TEST("slices and counters are as many as in the tables, and each arrow has a unique id and two ends")
	{
		static const char *const cats[] = {[API] = "c_api", [OP] = "cpu_op", [WAIT] = "wait"};
		FREED(tape_free) struct tape t = tape_new();
		struct hash ids = {0};
		int cls;
		size_t n, i;
		cJSON *e;

		t.window_recs = 64;
		rich_tape(&t);
		FREED(trace_free) struct trace r = trace_of(&t);
		for (cls = API; cls <= WAIT; cls++) {
			const struct mdl_row *const *rows = mdl_rows(t.model, (enum mxbpf_class)cls, &n);
			uint64_t calls = 0, slices = 0;

			for (i = 0; i < n; i++)
				calls += rows[i]->count;
			cJSON_ArrayForEach(e, r.events)
			{
				slices += !strcmp(str(e, "ph"), "X") && !strcmp(str(e, "cat"), cats[cls]);
			}
			CHECK(calls > 0 && calls == slices);
		}
		CHECK(mdl_mem_rows(t.model, &n)[0]->allocs + mdl_mem_rows(t.model, &n)[0]->frees ==
		      (uint64_t)count(&r, "C"));
		CHECK(count(&r, "s") == 400 && count(&r, "f") == 400 && num(r.other, "arrows") == 400);
		cJSON_ArrayForEach(e, r.events)
		{
			uint64_t *seen;

			if (strcmp(str(e, "ph"), "s") && strcmp(str(e, "ph"), "f"))
				continue;
			seen = hash_put(&ids, (uint64_t)num(e, "id"), *str(e, "ph") == 's');
			CHECK(!*seen);
			*seen = 1;
		}
		CHECK(!dropped(&r));
		hash_fini(&ids);
	}
}

/* ---- processes of a distributed job */

/* Returns the name of a process in the trace. */
static char *process_name(struct tape *t, double pid)
{
	FREED(trace_free) struct trace r = trace_of(t);
	char *name = NULL;
	cJSON *e;

	cJSON_ArrayForEach(e, r.events)
	{
		if (!strcmp(str(e, "name"), "process_name") && num(e, "pid") == pid)
			name = strdup(str(cJSON_GetObjectItem(e, "args"), "name"));
	}
	return name ? name : strdup("");
}

static bool process_is(struct tape *t, double pid, const char *want)
{
	FREED(memory_freed) char *name = process_name(t, pid);
	bool same = !strcmp(name, want);

	if (!same)
		printf("# \"%s\" instead of \"%s\"\n", name, want);
	return same;
}

static void test_processes(void)
{
	TEST("a process of a distributed job has its rank or its role in its name, and any other process has its "
	     "program")
	{
		static struct mdl_process roles[] = {{PID, (char *)"worker", 1, 2, false, (char *)"alpha"}};
		static struct mdl_process local[] = {{PID + 9, (char *)"", 1, 2, false, (char *)"alpha"}};
		static struct mdl_process ranks[] = {{PID, (char *)"rank", 3, 8, false, (char *)"alpha"},
						     {PID + 9, (char *)"rank", 4, 8, false, (char *)"beta"}};
		FREED(tape_free) struct tape t = tape_new();

		name(&t, PID + 9, MXBPF_NAME_THREAD, "python", 6);
		((struct mxbpf_name *)t.recs.data)->h.tgid = PID + 9;
		op(&t, PID, 10, 20, 0);
		span(&t, OP, PID + 9, 10, 20)->h.tgid = PID + 9;
		CHECK(process_is(&t, PID, "trainer") && process_is(&t, PID + 9, "python"));
		t.session.cmdline = (char *)"/usr/bin/python train.py --data /x";
		CHECK(process_is(&t, PID, "trainer"));
		t.session.rank = 3;
		t.session.world_size = 8;
		CHECK(process_is(&t, PID, "rank 3 of 8: python train.py --data /x"));
		CHECK(process_is(&t, PID + 9, "python"));
		t.ops = &view_kineto;
		CHECK(process_is(&t, PID, "rank 3 of 8: python train.py --data /x"));
		t.ops = NULL;
		t.session.world_size = 0;
		t.session.processes = ranks;
		t.session.nprocesses = 2;
		CHECK(process_is(&t, PID, "rank 3 of 8: python train.py --data /x on alpha"));
		CHECK(process_is(&t, PID + 9, "rank 4 of 8: python on beta"));
		t.session.processes = local;
		t.session.nprocesses = 1;
		CHECK(process_is(&t, PID + 9, "rank 1 of 2: python") && process_is(&t, PID, "trainer"));
		t.session.processes = roles;
		t.session.nprocesses = 1;
		CHECK(process_is(&t, PID, "worker 1 (trainer of alpha)"));
	}
}

/* ---- spans that have not ended */

static bool is_unfinished(const cJSON *e, double tid, long start_ns, long until_ns)
{
	return e && num(e, "tid") == tid && at_ns(e) == start_ns && end_ns(e) == until_ns &&
	       cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetObjectItem(e, "args"), "unfinished"));
}

static void test_unfinished(void)
{
	static const struct view_ops *const forms[] = {&view_chrome, &view_kineto};
	const char *outer;
	unsigned i;

	TEST("a span that has not ended is a slice until the end of the window, around the spans nested in it")
	{
		for (i = 0; i < 2; i++) {
			FREED(tape_free) struct tape t = tape_new();

			t.ops = forms[i];
			open_span(&t, API, PID, 1000, 9000);
			open_span(&t, WAIT, PID, 4000, 9000);
			op(&t, PID, 1000, 2000, 0); /* starts together with the first one */
			op(&t, PID, 4500, 5000, 0);
			open_span(&t, OP, PID + 1, 6000, 9000);
			FREED(trace_free) struct trace r = trace_of(&t);
			CHECK(!dropped(&r) && count(&r, "X") == 5);
			CHECK(is_unfinished(slice(&r, "c_api,unfinished", 1000), PID, 1000, 9000));
			/* Two that end together differ by 1 ns, for readers that add start and duration. */
			CHECK(is_unfinished(slice(&r, "wait,unfinished", 4000), PID, 4000, 8999));
			CHECK(is_unfinished(slice(&r, "cpu_op,unfinished", 6000), PID + 1, 6000, 9000));
			CHECK(slice(&r, "cpu_op", 1000) && slice(&r, "cpu_op", 4500));
			outer = strstr(r.text, "\"c_api,unfinished\"");
			CHECK(outer && strstr(outer, "\"cat\":\"cpu_op\""));
		}
	}

	TEST("an asynchronous span that has not ended is a slice on a lane, and one before the window moves the time "
	     "base")
	{
		FREED(tape_free) struct tape t = tape_new();
		const cJSON *e;

		open_span(&t, OP, PID, 2000, 9000)->flags = MXBPF_SPAN_ASYNC;
		open_span(&t, OP, PID, (uint64_t)-1000, 9000)->flags = MXBPF_SPAN_ASYNC;
		async_op(&t, PID, 100, 3000, 0);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(!dropped(&r) && count(&r, "X") == 3);
		e = slice(&r, "cpu_op,unfinished", 0);
		CHECK(is_unfinished(e, VIEW_PLAN_LANE_TID + 1, 0, 10000));
		CHECK(num(cJSON_GetObjectItem(e, "args"), "thread") == PID);
		CHECK(is_unfinished(slice(&r, "cpu_op,unfinished", 3000), VIEW_PLAN_LANE_TID + 3, 3000, 10000));
		CHECK(num(slice(&r, "cpu_op", 1100), "tid") == VIEW_PLAN_LANE_TID + 2);
	}

	TEST("a recording that grows between the passes keeps its unfinished spans apart from the new ones")
	{
		FREED(tape_free) struct tape t = tape_new();

		open_span(&t, API, PID, 1000, 9000);
		op(&t, PID, 2000, 3000, 0);
		t.surveyed = t.recs.len;
		op(&t, PID + 1, 4000, 5000, 0);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(is_unfinished(slice(&r, "c_api,unfinished", 1000), PID, 1000, 9000) && count(&r, "X") == 3);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		FREED(tape_free) struct tape t = tape_new();
		int ret;

		rich_tape(&t);
		ret = tape_write(&t, argv[1]);
		return ret ? 1 : 0;
	}
	test_times();
	test_memory();
	test_names();
	test_whole();
	test_processes();
	test_unfinished();
	UNIT_MAIN_END;
}
