// SPDX-License-Identifier: Apache-2.0
/*
 * Tests arrows in the trace, from the call that handed work over to the operator that it caused, and lanes for
 * overlapping spans.
 */
#include "chrome_tape.h"

static void test_arrows(void)
{
	TEST("an arrow leaves at the start of its source and enters at the start of its operator")
	{
		FREED(tape_free) struct tape t = tape_new();
		cJSON *s, *f;

		edge(&t, PID, 600, 100, 0xabc);
		span(&t, WAIT, PID, 200, 300); /* a child that has ended: an `s` at 600 would wrongly bind to it */
		op(&t, PID + 1, 800, 900, 0xabc);
		span(&t, API, PID, 100, 1000);
		FREED(trace_free) struct trace r = trace_of(&t);
		s = event(&r, "s", 0);
		f = event(&r, "f", 0);
		CHECK(s && f && at_ns(s) == 100 && num(s, "tid") == PID && num(s, "pid") == PID);
		CHECK(f && at_ns(f) == 800 && num(f, "tid") == PID + 1 && !strcmp(str(f, "bp"), "e"));
		CHECK(s && f && num(s, "id") > 0 && num(s, "id") == num(f, "id"));
		CHECK(s && !strcmp(str(s, "cat"), str(f, "cat")) && !strcmp(str(s, "name"), str(f, "name")));
		CHECK(num(r.other, "arrows") == 1 && num(r.other, "arrows_unmatched") == 0);
		CHECK(!strcmp(str(cJSON_GetObjectItem(slice(&r, "cpu_op", 800), "args"), "link"), "0xabc"));
	}

	TEST("a link that is handed over twice before it runs is taken first in, first out, in time order")
	{
		FREED(tape_free) struct tape t = tape_new();
		cJSON *s;

		edge(&t, PID, 110, 100, 7);
		span(&t, API, PID, 100, 150);
		edge(&t, PID, 210, 200, 7);
		span(&t, API, PID, 200, 250);
		/* The operator that starts second ends first. */
		async_op(&t, PID + 2, 400, 500, 7);
		async_op(&t, PID + 1, 300, 600, 7);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(count(&r, "s") == 2 && count(&r, "f") == 2);
		cJSON_ArrayForEach(s, r.events)
		{
			long begins = 0;
			int i;

			if (strcmp(str(s, "ph"), "f"))
				continue;
			for (i = 0; i < 2; i++)
				if (num(event(&r, "s", i), "id") == num(s, "id"))
					begins = at_ns(event(&r, "s", i));
			CHECK(begins == (at_ns(s) == 300 ? 100 : 200));
		}
	}

	TEST("an operator that started before a link was handed over does not take the link")
	{
		FREED(tape_free) struct tape t = tape_new();

		op(&t, PID + 1, 50, 60, 7);
		edge(&t, PID, 105, 100, 8);
		edge(&t, PID, 106, 100, 8);
		edge(&t, PID, 110, 100, 7);
		span(&t, API, PID, 100, 150);
		op(&t, PID + 1, 110, 400, 7);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(count(&r, "f") == 1 && at_ns(event(&r, "f", 0)) == 110);
	}

	TEST("an edge without source or operator makes no arrow, takes its turn, and is counted")
	{
		FREED(tape_free) struct tape t = tape_new();

		edge(&t, PID, 110, 100, 7); /* its source was lost */
		edge(&t, PID, 210, 200, 7);
		span(&t, API, PID, 200, 250);
		edge(&t, PID, 260, 255, 7); /* its operator was lost */
		edge(&t, PID, 261, 255, 0);
		span(&t, API, PID, 255, 270);
		op(&t, PID + 1, 300, 310, 7);
		op(&t, PID + 1, 320, 330, 7);
		op(&t, PID + 1, 340, 350, 8);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(count(&r, "s") == 1 && count(&r, "f") == 1);
		CHECK(at_ns(event(&r, "s", 0)) == 200 && at_ns(event(&r, "f", 0)) == 320);
		CHECK(num(r.other, "arrows") == 1 && num(r.other, "arrows_unmatched") == 3);
	}

	TEST("an edge handed over outside of any span takes its turn and does not count as a missing arrow")
	{
		FREED(tape_free) struct tape t = tape_new();

		edge(&t, PID + 1, 100, 0, 7);
		((struct mxbpf_edge *)(t.recs.data + t.recs.len) - 1)->src_cls = MXBPF_CLASS_NONE;
		edge(&t, PID, 110, 105, 7);
		span(&t, API, PID, 105, 150);
		op(&t, PID + 1, 200, 210, 7);
		op(&t, PID + 1, 220, 230, 7);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(count(&r, "f") == 1 && at_ns(event(&r, "f", 0)) == 220);
		CHECK(num(r.other, "arrows_unmatched") == 0 && num(r.other, "edges_rootless") == 1);
	}

	TEST("the same link in two processes makes no arrow")
	{
		FREED(tape_free) struct tape t = tape_new();

		edge(&t, PID, 110, 100, 7);
		span(&t, API, PID, 100, 150);
		span(&t, OP, PID + 90, 200, 210)->link = 7;
		((struct mxbpf_span *)(t.recs.data + t.recs.len) - 1)->h.tgid = PID + 90;
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(!count(&r, "f") && num(r.other, "arrows_unmatched") == 1);
	}

	TEST("an arrow that would arrive before it left is not drawn")
	{
		FREED(tape_free) struct tape t = tape_new();

		edge(&t, PID, 100, 100, 7);
		op(&t, PID + 1, 100, 310, 7);
		span(&t, API, PID, 100, 400);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(!count(&r, "s") && !count(&r, "f") && num(r.other, "arrows_unmatched") == 1);
	}
}

static void test_lanes(void)
{
	TEST("asynchronous spans are on separate lanes, as few as needed, and never overlap")
	{
		FREED(tape_free) struct tape t = tape_new();
		int i, k, lanes = 0;

		for (i = 0; i < 50; i++)
			for (k = 0; k < 3; k++)
				async_op(&t, PID + 1, (uint64_t)(i * 30 + k * 10), (uint64_t)(i * 30 + k * 10 + 30), 0);
		op(&t, PID + 1, 5, 2000, 0);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(count(&r, "X") == 151 && !dropped(&r));
		for (i = 0; event(&r, "M", i); i++)
			lanes += num(event(&r, "M", i), "tid") > VIEW_PLAN_LANE_TID &&
				 !strcmp(str(event(&r, "M", i), "name"), "thread_name");
		CHECK(lanes == 3);
		CHECK(!strcmp(track_name(&r, VIEW_PLAN_LANE_TID + 1), "async 1"));
		CHECK(!strcmp(track_name(&r, VIEW_PLAN_LANE_TID + 3), "async 3"));
		/* The lane hides the threads, so the arguments name them. */
		CHECK(num(cJSON_GetObjectItem(slice(&r, "cpu_op", 0), "args"), "thread") == PID + 1);
		CHECK(num(cJSON_GetObjectItem(slice(&r, "cpu_op", 0), "args"), "end_thread") == PID + 2);
		CHECK(num(slice(&r, "cpu_op", 5), "tid") == PID + 1);
	}

	TEST("lanes of two processes have different thread ids")
	{
		FREED(tape_free) struct tape t = tape_new();

		async_op(&t, PID + 1, 10, 100, 0);
		async_op(&t, PID + 1, 0, 5, 0);
		((struct mxbpf_span *)(t.recs.data + t.recs.len) - 1)->h.tgid = PID - 1;
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(num(slice(&r, "cpu_op", 0), "tid") != num(slice(&r, "cpu_op", 10), "tid"));
		CHECK(!strcmp(track_name(&r, num(slice(&r, "cpu_op", 0), "tid")), "async 1"));
		CHECK(!strcmp(track_name(&r, num(slice(&r, "cpu_op", 10), "tid")), "async 1"));
	}

	TEST("an arrow ends on the lane of its span if the span is on one")
	{
		FREED(tape_free) struct tape t = tape_new();
		struct mxbpf_span *s;

		edge(&t, PID, 50, 10, 7);
		s = span(&t, API, PID, 10, 60);
		s->flags = MXBPF_SPAN_ASYNC;
		async_op(&t, PID + 1, 100, 200, 7);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(num(event(&r, "s", 0), "tid") == num(slice(&r, "c_api", 10), "tid"));
		CHECK(num(event(&r, "f", 0), "tid") == num(slice(&r, "cpu_op", 100), "tid"));
		CHECK(num(event(&r, "s", 0), "tid") > VIEW_PLAN_LANE_TID);
	}

	TEST("a span that overlaps the stack of its thread is drawn on a lane")
	{
		FREED(tape_free) struct tape t = tape_new();

		op(&t, PID, 100, 200, 0);
		op(&t, PID, 150, 250, 0);
		op(&t, PID, 250, 300, 0);
		op(&t, PID, 90, 400, 0);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(count(&r, "X") == 4 && !dropped(&r));
		CHECK(num(slice(&r, "cpu_op", 150), "tid") > VIEW_PLAN_LANE_TID);
		CHECK(num(slice(&r, "cpu_op", 90), "tid") == PID && num(slice(&r, "cpu_op", 250), "tid") == PID);
	}

	TEST("random spans never overlap on a track, and none is missing")
	{
		unsigned seed = 1;
		int round, i;

		for (round = 0; round < 200; round++) {
			FREED(tape_free) struct tape t = tape_new();

			t.window_recs = 7;
			for (i = 0; i < 60; i++) {
				uint64_t at = (uint64_t)rand_r(&seed) % 100, n = (uint64_t)rand_r(&seed) % 20;
				struct mxbpf_span *s = span(&t, OP, PID + (uint32_t)(rand_r(&seed) % 2), at, at + n);

				s->flags = rand_r(&seed) % 4 ? 0 : MXBPF_SPAN_ASYNC;
			}
			FREED(trace_free) struct trace r = trace_of(&t);
			CHECK(count(&r, "X") == 60 && !dropped(&r));
		}
	}

	TEST("the outermost of several spans that start together is first in the file")
	{
		FREED(tape_free) struct tape t = tape_new();
		int i;

		span(&t, WAIT, PID, 100, 110);
		op(&t, PID, 100, 200, 0);
		span(&t, API, PID, 100, 200);
		FREED(trace_free) struct trace r = trace_of(&t);
		for (i = 0; i < 3; i++) {
			static const char *const order[] = {"c_api", "cpu_op", "wait"};

			CHECK(!strcmp(str(event(&r, "X", i), "cat"), order[i]));
			CHECK(num(event(&r, "X", i), "tid") == PID);
		}
	}

	TEST("a span over more spans than the plan remembers goes to a lane, not over them")
	{
		FREED(tape_free) struct tape t = tape_new();
		struct view_plan p = {0};
		struct mxbpf_span *s;
		uint64_t i;

		for (i = 0; i < VIEW_PLAN_OPEN_MAX + 10; i++)
			op(&t, PID, i * 10, i * 10 + 5, 0);
		span(&t, API, PID, 1, i * 10);
		span(&t, API, PID, i * 10 - 40, i * 10 + 1);
		for (s = (struct mxbpf_span *)t.recs.data; s < (struct mxbpf_span *)(t.recs.data + t.recs.len); s++)
			CHECK(!view_plan_survey(&p, &s->h));
		CHECK(!view_plan_finish(&p));
		for (i = 0; i < VIEW_PLAN_OPEN_MAX + 10; i++)
			view_plan_place(&p, (struct mxbpf_span *)t.recs.data + i);
		CHECK(view_plan_place(&p, s - 2).tid == VIEW_PLAN_LANE_TID + 1);
		CHECK(view_plan_place(&p, s - 1).tid == PID);
		view_plan_fini(&p);
	}
}

int main(void)
{
	test_arrows();
	test_lanes();
	UNIT_MAIN_END;
}
