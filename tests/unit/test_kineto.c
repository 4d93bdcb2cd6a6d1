// SPDX-License-Identifier: Apache-2.0
/* Tests the trace of a PyTorch session in Kineto's conventions, rule by rule, on small recordings. */
#include "chrome_tape.h"

#define SEQ(nr) MXBPF_SEQ(1, nr)

static struct tape kineto_tape(void)
{
	struct tape t = tape_new();

	t.session.trace_form = (char *)"kineto";
	t.session.mem_title = (char *)"memory";
	return t;
}

static struct mxbpf_span *numbered(struct tape *t, uint64_t start_ns, uint64_t end_ns, uint64_t seq)
{
	struct mxbpf_span *s = span(t, OP, PID, start_ns, end_ns);

	s->flags = MXBPF_SPAN_SEQ;
	s->seq = seq;
	return s;
}

static struct mxbpf_span *node(struct tape *t, uint64_t start_ns, uint64_t end_ns, uint64_t seq)
{
	struct mxbpf_span *s = numbered(t, start_ns, end_ns, seq);

	s->flags |= MXBPF_SPAN_BACKWARD;
	return s;
}

static void annotation(struct tape *t, uint32_t tid, uint64_t start_ns, uint64_t end_ns, uint64_t name_id)
{
	struct mxbpf_span *s = span(t, OP, tid, start_ns, end_ns);

	s->flags = MXBPF_SPAN_USER;
	s->name_id = name_id;
}

static const cJSON *arg(const cJSON *e, const char *key)
{
	return cJSON_GetObjectItem(cJSON_GetObjectItem(e, "args"), key);
}

static double arg_num(const cJSON *e, const char *key)
{
	return num(cJSON_GetObjectItem(e, "args"), key);
}

/* Returns the arrows as "from>to" in us, sorted by id. */
static const char *arrows(const struct trace *r, char buf[200])
{
	double from[16] = {0}, to[16] = {0};
	size_t len = 0;
	cJSON *e;
	int i;

	cJSON_ArrayForEach(e, r->events)
	{
		int id = (int)num(e, "id");

		if (strcmp(str(e, "cat"), "fwdbwd"))
			continue;
		CHECK(id > 0 && id < 16 && !strcmp(str(e, "name"), "fwdbwd"));
		if (!strcmp(str(e, "ph"), "f"))
			CHECK(!strcmp(str(e, "bp"), "e"));
		*(strcmp(str(e, "ph"), "s") ? &to[id] : &from[id]) = num(e, "ts");
	}
	buf[0] = 0;
	for (i = 0; i < 16; i++)
		if (from[i] || to[i])
			len += (size_t)snprintf(buf + len, 200 - len, "%g>%g ", from[i], to[i]);
	return buf;
}

static void test_form(void)
{
	TEST("the head of the file is Kineto's, with the window and the losses beside it")
	{
		FREED(tape_free) struct tape t = kineto_tape();

		op(&t, PID, 1000, 2000, 0);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(num(r.json, "schemaVersion") == 1 && num(r.json, "profile_memory") == 1);
		CHECK(cJSON_IsArray(cJSON_GetObjectItem(r.json, "deviceProperties")));
		CHECK(!cJSON_GetObjectItem(r.json, "record_shapes") && !cJSON_GetObjectItem(r.json, "with_stack"));
		CHECK(!strcmp(str(r.json, "displayTimeUnit"), "ms"));
		CHECK(strstr(r.text, "\"baseTimeNanoseconds\":1795145533000000123,"));
		CHECK(!strcmp(str(r.json, "traceName"), "host_4242.pt.trace.json"));
		CHECK(num(cJSON_GetObjectItem(r.other, "loss"), "dropped") == 10);
		CHECK(num(cJSON_GetObjectItem(r.other, "window"), "duration_ns") == 5000000);
	}

	TEST("a session without a trace form in its metadata gets the general trace")
	{
		FREED(tape_free) struct tape t = tape_new();

		numbered(&t, 1000, 2000, SEQ(1));
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(!cJSON_GetObjectItem(r.json, "deviceProperties") && !arg(event(&r, "X", 0), "External id"));
	}

	TEST("operators, annotations and nodes have Kineto's categories and arguments")
	{
		FREED(tape_free) struct tape t = kineto_tape();
		cJSON *e;

		numbered(&t, 1000, 2000, SEQ(48));
		node(&t, 3000, 4000, MXBPF_SEQ(3, 47));
		annotation(&t, PID, 5000, 6000, 5);
		FREED(trace_free) struct trace r = trace_of(&t);
		e = slice(&r, "cpu_op", 1000);
		CHECK(arg_num(e, "Sequence number") == 48 && arg_num(e, "Fwd thread id") == 0);
		CHECK(arg_num(e, "Record function id") == 0);
		e = slice(&r, "cpu_op", 3000);
		CHECK(arg_num(e, "Sequence number") == 47 && arg_num(e, "Fwd thread id") == 3);
		e = slice(&r, "user_annotation", 5000);
		CHECK(e && !arg(e, "Sequence number") && !arg(e, "Fwd thread id"));
	}

	TEST("events are numbered in time order, and an enclosing event comes before its nested events")
	{
		FREED(tape_free) struct tape t = kineto_tape();

		alloc(&t, 2500, 10);
		op(&t, PID, 2000, 2100, 0);
		op(&t, PID, 2000, 3000, 0);
		op(&t, PID, 4000, 4100, 0);
		op(&t, PID + 1, 1000, 9000, 0);
		alloc(&t, 500, 10);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(arg_num(event(&r, "i", 0), "Ev Idx") == 0);
		CHECK(arg_num(slice(&r, "cpu_op", 1000), "External id") == 1);
		CHECK(arg_num(slice(&r, "cpu_op", 1000), "Ev Idx") == 1);
		/* Of two spans that start together, this is the first one in the file. */
		CHECK(num(slice(&r, "cpu_op", 2000), "dur") == 1 &&
		      arg_num(slice(&r, "cpu_op", 2000), "External id") == 2);
		CHECK(arg_num(event(&r, "i", 1), "Ev Idx") == 4);
		CHECK(arg_num(slice(&r, "cpu_op", 4000), "External id") == 4);
		CHECK(arg_num(slice(&r, "cpu_op", 4000), "Ev Idx") == 5);
		CHECK(!dropped(&r));
	}
}

static void test_arrows(void)
{
	TEST("an arrow goes to a node from the last operator that began with the node's number")
	{
		FREED(tape_free) struct tape t = kineto_tape();
		char buf[200];

		numbered(&t, 2000, 2900, SEQ(7)); /* made the node */
		numbered(&t, 2100, 2800, SEQ(8)); /* ran nested in the maker, later */
		numbered(&t, 1000, 3000, SEQ(7)); /* called the maker */
		node(&t, 5000, 5900, SEQ(7));
		span(&t, OP, PID, 4900, 6000); /* evaluate_function */
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(!strcmp(arrows(&r, buf), "2>5 "));
		CHECK(num(r.other, "arrows") == 1 && num(r.other, "arrows_unmatched") == 0);
	}

	TEST("equal numbers of different threads or processes do not mix, and an unknown thread has no arrow")
	{
		FREED(tape_free) struct tape t = kineto_tape();
		char buf[200];

		numbered(&t, 1000, 1100, MXBPF_SEQ(1, 7));
		numbered(&t, 2000, 2100, MXBPF_SEQ(2, 7));
		numbered(&t, 3000, 3100, MXBPF_SEQ(1, 7))->h.tgid = PID + 9;
		numbered(&t, 3500, 3600, MXBPF_SEQ(0, 7));
		node(&t, 5000, 5900, MXBPF_SEQ(2, 7));
		node(&t, 6000, 6900, MXBPF_SEQ(1, 7));
		node(&t, 7000, 7900, MXBPF_SEQ(0, 7));
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(!strcmp(arrows(&r, buf), "2>5 1>6 "));
	}

	TEST("a node that runs twice has one arrow, and a node made before the window has none and is counted")
	{
		FREED(tape_free) struct tape t = kineto_tape();
		char buf[200];

		numbered(&t, 1000, 1100, SEQ(7));
		node(&t, 2000, 2900, SEQ(7));
		node(&t, 3000, 3900, SEQ(7));
		node(&t, 4000, 4900, SEQ(6));
		numbered(&t, 5000, 5100, SEQ(6)); /* starts later than the node, so it is not its maker */
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(!strcmp(arrows(&r, buf), "1>2 "));
		CHECK(num(r.other, "arrows") == 1 && num(r.other, "arrows_unmatched") == 2);
	}

	TEST("an operator nested in a backward node makes nodes of its own")
	{
		FREED(tape_free) struct tape t = kineto_tape();
		char buf[200];

		numbered(&t, 1000, 1100, SEQ(7));
		numbered(&t, 2100, 2200, SEQ(8));
		node(&t, 2000, 2900, SEQ(7));
		node(&t, 3000, 3900, SEQ(8));
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(!strcmp(arrows(&r, buf), "1>2 2.1>3 "));
	}
}

static void test_memory(void)
{
	TEST("allocations become reports of the allocator with address, running total and thread")
	{
		FREED(tape_free) struct tape t = kineto_tape();
		struct mxbpf_alloc *a;
		cJSON *e;

		alloc(&t, 1000, 4096);
		a = rec_add(&t, MXBPF_ALLOC, sizeof(*a), 2000);
		a->bytes = -96;
		a->tid = PID + 1;
		a->device = CPU0;
		a->addr = 0x7f0000001000;
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(count(&r, "i") == 2 && count(&r, "C") == 2);
		e = event(&r, "i", 1);
		CHECK(!strcmp(str(e, "name"), "[memory]"));
		/* Perfetto draws a thread's instants among its operators, but the process's on a track of their own. */
		CHECK(!strcmp(str(e, "s"), "p"));
		CHECK(!strcmp(str(e, "cat"), "cpu_instant_event") && num(e, "tid") == PID + 1 && at_ns(e) == 2000);
		CHECK(arg_num(e, "Bytes") == -96 && arg_num(e, "Total Allocated") == 4000);
		CHECK(arg_num(e, "Total Reserved") == 0 && arg_num(e, "Addr") == (double)0x7f0000001000);
		CHECK(arg_num(e, "Device Id") == -1 && arg_num(e, "Device Type") == 0);
	}
}

/* Returns true if the text is written as `want` in "Input Dims". */
static bool dims_are(const char *text, const char *want, bool string)
{
	FREED(tape_free) struct tape t = kineto_tape();
	bool same;

	name(&t, 9, MXBPF_NAME_ARGS, text, strlen(text));
	op(&t, PID, 1000, 2000, 0);
	span(&t, OP, PID, 3000, 4000)->args_id = 9;
	FREED(trace_free) struct trace r = trace_of(&t);
	FREED(memory_freed) char *got = cJSON_PrintUnformatted(arg(slice(&r, "cpu_op", 3000), "Input Dims"));
	same = got && !strcmp(got, want) && cJSON_IsString(arg(slice(&r, "cpu_op", 3000), "Input Dims")) == string;
	CHECK(num(r.json, "record_shapes") == 1 && !arg(slice(&r, "cpu_op", 1000), "Input Dims"));
	return same;
}

static void test_details(void)
{
	TEST("sizes, types and strides of tensors, and stacks, have the form that torch's own readers expect")
	{
		static const char args[] =
			"[[8,3],[[2,2],[1]],[]]\n[\"float\",\"TensorList\",\"\"]\n[[3,1],[[2,1],[1]],[]]";
		static const char stack[] = "nn.Module: Conv2d\nnet.py(3): forward \"x\"\ntrain.py(12): step";
		FREED(tape_free) struct tape t = kineto_tape();
		struct mxbpf_span *s;

		name(&t, 7, MXBPF_NAME_ARGS, args, sizeof(args) - 1);
		name(&t, 7, MXBPF_NAME_STACK, stack, sizeof(stack) - 1);
		s = span(&t, OP, PID, 1000, 2000);
		s->args_id = s->stack_id = 7;
		span(&t, OP, PID, 3000, 4000)->args_id = 8; /* its text was lost */
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(strstr(r.text,
			     ",\"Input Dims\":[[8,3],[[2,2],[1]],[]],\"Input type\":[\"float\",\"TensorList\",\"\"],"
			     "\"Input Strides\":[[3,1],[[2,1],[1]],[]],"));
		CHECK(!strcmp(str(cJSON_GetObjectItem(slice(&r, "cpu_op", 1000), "args"), "Call stack"),
			      "nn.Module: Conv2d;net.py(3): forward \"x\";train.py(12): step"));
		CHECK(!arg(slice(&r, "cpu_op", 3000), "Input Dims") && !arg(slice(&r, "cpu_op", 3000), "Call stack"));
		CHECK(num(r.json, "record_shapes") == 1 && num(r.json, "with_stack") == 1);
	}

	TEST("hostile sizes are written as a string and cannot break the file")
	{
		CHECK(dims_are("[[8,3],[-1,0]]", "[[8,3],[-1,0]]", false) && dims_are("[]", "[]", false));
		CHECK(dims_are("[[8,3]", "\"[[8,3]\"", true) && dims_are("[[8,3]]}", "\"[[8,3]]}\"", true));
		CHECK(dims_are("[8,]", "\"[8,]\"", true) && dims_are("[,8]", "\"[,8]\"", true));
		CHECK(dims_are("8", "\"8\"", true) && dims_are("[08]", "\"[08]\"", true) &&
		      dims_are("[-]", "\"[-]\"", true));
		CHECK(dims_are("[", "\"[\"", true) && dims_are("[\"a", "\"[\\\"a\"", true));
		CHECK(dims_are("[\"a\\\"]", "\"[\\\"a\\\\\\\"]\"", true));
		CHECK(dims_are("[[[[[[8]]]]]]", "\"[[[[[[8]]]]]]\"", true) &&
		      dims_are("[\"\x01\"]", "\"[\\\"\\u0001\\\"]\"", true));
	}
}

static void test_growing(void)
{
	TEST("events added to the recording after the first pass are exported without numbers")
	{
		FREED(tape_free) struct tape t = kineto_tape();
		int i, numberless = 0;

		op(&t, PID, 1000, 2000, 0);
		t.surveyed = t.recs.len;
		for (i = 0; i < 5000; i++)
			op(&t, PID, 3000 + i * 10ull, 3005 + i * 10ull, 0);
		FREED(trace_free) struct trace r = trace_of(&t);
		for (const cJSON *e = r.events->child; e; e = e->next)
			numberless += !strcmp(str(e, "ph"), "X") && !arg_num(e, "External id") && !arg_num(e, "Ev Idx");
		CHECK(numberless == 5000 && arg_num(slice(&r, "cpu_op", 1000), "External id") == 1);
	}
}

/*
 * Readers add start and duration as doubles. Returns true if by that sum each of n nested spans that end at 838338 ns
 * ends before the span around it, and all end before 838.338 us.
 */
static bool ends_apart(struct tape *t, int n)
{
	FREED(trace_free) struct trace r = trace_of(t);
	double end, inner = 0;
	bool apart = true;
	int i;

	for (i = 0; i < n; i++) {
		const cJSON *e = slice(&r, "cpu_op", 766461 - i * 1000);

		end = num(e, "ts") + num(e, "dur");
		apart &= end > inner && end < 838.338 && end >= 838.338 - (n + 1) * 0.001;
		inner = end;
	}
	apart &= !dropped(&r);
	return apart;
}

static void test_equal_ends(void)
{
	TEST("spans left by an exception end one inside the other, even if added as doubles, and before the next span "
	     "begins")
	{
		FREED(tape_free) struct tape t = kineto_tape();
		int i;

		for (i = 0; i < 3; i++) {
			span(&t, OP, PID, 766461 - (uint64_t)i * 1000, 838338)->flags = MXBPF_SPAN_UNWOUND;
			span(&t, OP, PID + 1, 766461 - (uint64_t)i * 1000, 838338)->flags = MXBPF_SPAN_UNWOUND;
		}
		op(&t, PID + 1, 838338, 839000, 0);
		op(&t, PID, 838400, 838500, 0);
		op(&t, PID, 838338, 839000, 0);
		CHECK(ends_apart(&t, 3));
	}

	TEST("500 nested spans with the same end stay nested, even if their times are added as doubles")
	{
		FREED(tape_free) struct tape t = kineto_tape();
		int i;

		for (i = 0; i < 500; i++)
			op(&t, PID, 766461 - (uint64_t)i * 1000, 838338, 0);
		op(&t, PID, 838338, 839000, 0);
		CHECK(ends_apart(&t, 500));
	}

	TEST("a span stays apart from one that begins at its end, and a chain of tail calls stays nested in its caller")
	{
		FREED(tape_free) struct tape t = kineto_tape();

		op(&t, PID, 766461, 838338, 0);
		op(&t, PID, 838338, 839000, 0);
		CHECK(ends_apart(&t, 1));
		tape_free(&t);
		t = kineto_tape();
		op(&t, PID, 766461, 838338, 0);
		op(&t, PID, 765461, 838338, 0);
		op(&t, PID, 838338, 838339, 0);
		op(&t, PID, 700000, 838340, 0);
		CHECK(ends_apart(&t, 2));
	}

	TEST("a span whose end equals no other time keeps it")
	{
		FREED(tape_free) struct tape t = kineto_tape();

		op(&t, PID, 1100, 1899, 0);
		op(&t, PID, 1000, 1900, 0);
		op(&t, PID, 1901, 2000, 0);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(end_ns(slice(&r, "cpu_op", 1100)) == 1899 && end_ns(slice(&r, "cpu_op", 1000)) == 1900);
	}
}

static void test_classic(void)
{
	TEST("the classic form is an array of spans in one process, with threads and lanes by index, and the losses "
	     "first")
	{
		static const char hostile[] = "x\"},{\n";
		FREED(tape_free) struct tape t = tape_new();
		cJSON *e;

		t.ops = &view_chrome_classic;
		name(&t, OP, MXBPF_NAME_SPAN, hostile, sizeof(hostile) - 1);
		span(&t, API, PID + 1, 1000, 2000);
		op(&t, PID, 1500, 4125, 0);
		async_op(&t, PID, 1600, 9000, 3);
		alloc(&t, 100, 100);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(cJSON_IsArray(r.json) && cJSON_GetArraySize(r.json) == 4);
		e = event(&r, "M", 0);
		CHECK(!strcmp(str(cJSON_GetObjectItem(e, "args"), "name"), "CPU functions"));
		CHECK(num(cJSON_GetObjectItem(arg(e, "otherData"), "loss"), "dropped") == 10);
		e = event(&r, "X", 1);
		CHECK(!strcmp(str(e, "name"), hostile) && !strcmp(str(e, "pid"), "CPU functions"));
		CHECK(at_ns(e) == 1500 && end_ns(e) == 4125 && num(e, "tid") == 0);
		CHECK(num(event(&r, "X", 0), "tid") == 1 && num(event(&r, "X", 2), "tid") == 2);
		CHECK(!dropped(&r));
	}
}

#define STEP  101
#define OTHER 102
#define OUTER 103

static struct tape training_tape(void)
{
	struct tape t = kineto_tape();

	name(&t, STEP, MXBPF_NAME_SPAN, "Optimizer.step#SGD.step", 23);
	name(&t, OTHER, MXBPF_NAME_SPAN, "Optimizer.step#Adam.step", 24);
	name(&t, OUTER, MXBPF_NAME_SPAN, "epoch", 5);
	return t;
}

/* Returns the steps of a thread as "number:from-to" in us. */
static const char *steps(struct tape *t, uint32_t tid, char buf[200])
{
	FREED(trace_free) struct trace r = trace_of(t);
	size_t len = 0;
	cJSON *e;

	buf[0] = 0;
	cJSON_ArrayForEach(e, r.events)
	{
		if (strncmp(str(e, "name"), "ProfilerStep#", 13) || num(e, "tid") != tid)
			continue;
		CHECK(!strcmp(str(e, "cat"), "user_annotation") && arg_num(e, "External id") > 0);
		len += (size_t)snprintf(buf + len, 200 - len, "%s:%g-%g ", str(e, "name") + 13, num(e, "ts") - 0.002,
					num(e, "ts") + num(e, "dur") - 0.001);
	}
	CHECK(!dropped(&r));
	return buf;
}

/* Three iterations, the last of which has no annotation that has ended. */
static struct tape three_steps(void)
{
	struct tape t = training_tape();
	uint64_t i;

	for (i = 0; i < 3; i++) {
		annotation(&t, PID, i * 10000 + 5000, i * 10000 + 6000, STEP);
		if (i < 2)
			annotation(&t, PID, i * 10000 + 3000, i * 10000 + 8000, OUTER);
	}
	return t;
}

static void test_steps(void)
{
	TEST("a step lasts from the end of one optimizer step to the end of the next, separately for each thread")
	{
		FREED(tape_free) struct tape t = training_tape();
		char buf[200];

		annotation(&t, PID, 1000, 2000, STEP);
		annotation(&t, PID + 1, 3000, 4000, STEP);
		annotation(&t, PID, 5000, 6000, STEP);
		annotation(&t, PID, 9000, 10000, STEP);
		annotation(&t, PID + 1, 11000, 12000, STEP);
		op(&t, PID, 12000, 13000, 0);
		CHECK(!strcmp(steps(&t, PID, buf), "0:2-6 1:6-10 "));
		CHECK(!strcmp(steps(&t, PID + 1, buf), "0:4-12 "));
	}

	TEST("the first optimizer of an iteration ends the step, and operators or annotations of that name do not")
	{
		FREED(tape_free) struct tape t = training_tape();
		char buf[200];
		int i;

		for (i = 0; i < 3; i++) {
			annotation(&t, PID, (uint64_t)i * 10000 + 1000, (uint64_t)i * 10000 + 2000, OTHER);
			annotation(&t, PID, (uint64_t)i * 10000 + 5000, (uint64_t)i * 10000 + 6000, STEP);
			span(&t, OP, PID, (uint64_t)i * 10000 + 7000, (uint64_t)i * 10000 + 8000)->name_id = OTHER;
			annotation(&t, PID, (uint64_t)i * 10000 + 8500, (uint64_t)i * 10000 + 8600, OUTER);
		}
		CHECK(!strcmp(steps(&t, PID, buf), "0:2-12 1:12-22 "));
	}

	TEST("an annotation around each iteration moves the end of the step to its own end")
	{
		FREED(tape_free) struct tape t = training_tape();
		char buf[200];
		int i;

		for (i = 0; i < 3; i++) {
			annotation(&t, PID, (uint64_t)i * 10000 + 5000, (uint64_t)i * 10000 + 6000, STEP);
			annotation(&t, PID, (uint64_t)i * 10000 + 4000, (uint64_t)i * 10000 + 7000, OUTER);
			annotation(&t, PID, (uint64_t)i * 10000 + 3000, (uint64_t)i * 10000 + 8000, OUTER);
		}
		annotation(&t, PID, 2000, 60000, OUTER);
		CHECK(!strcmp(steps(&t, PID, buf), "0:8-18 1:18-28 "));
	}

	TEST("a step does not cross the start or end of an annotation around several iterations")
	{
		FREED(tape_free) struct tape t = training_tape();
		char buf[200];
		int i;

		for (i = 0; i < 5; i++) {
			annotation(&t, PID, (uint64_t)i * 10000 + 5000, (uint64_t)i * 10000 + 6000, STEP);
			if (i == 3)
				annotation(&t, PID, 12000, 37000, OUTER); /* around iterations 1, 2 and 3 */
		}
		CHECK(!strcmp(steps(&t, PID, buf), "0:12-16 1:16-26 2:26-36 3:37-46 "));
	}

	TEST("an annotation that has not ended limits the steps as one that has ended")
	{
		FREED(tape_free) struct tape t = three_steps();
		char buf[200];

		/* The window ends between the end of the optimizer's step and that of the iteration. */
		open_span(&t, OP, PID, 23000, 27000)->name_id = OUTER;
		CHECK(!strcmp(steps(&t, PID, buf), "0:8-18 1:18-27 "));
		tape_free(&t);

		/* An annotation around two iterations, and one around all, end with the window as well. */
		t = three_steps();
		open_span(&t, OP, PID, 23000, 27000)->name_id = OUTER;
		open_span(&t, OP, PID, 12500, 27000)->name_id = OUTER;
		open_span(&t, OP, PID, 2000, 27000)->name_id = OUTER;
		CHECK(!strcmp(steps(&t, PID, buf), "0:12.5-18 1:18-26.998 "));
		tape_free(&t);

		/* A span on a lane is on no thread. */
		t = three_steps();
		open_span(&t, OP, PID, 12500, 27000)->flags = MXBPF_SPAN_ASYNC;
		CHECK(!strcmp(steps(&t, PID, buf), "0:8-18 1:18-26 "));
	}

	TEST("a program that marks its iterations itself gets no steps from mxbpf")
	{
		FREED(tape_free) struct tape t = training_tape();
		char buf[200];

		name(&t, 104, MXBPF_NAME_SPAN, "ProfilerStep#7", 14);
		annotation(&t, PID, 1000, 2000, STEP);
		annotation(&t, PID, 5000, 6000, STEP);
		annotation(&t, PID, 3002, 7001, 104);
		CHECK(!strcmp(steps(&t, PID, buf), "7:3-7 "));
	}

	TEST("a session with pauses has no steps, because the number of missed iterations is unknown")
	{
		FREED(tape_free) struct tape t = training_tape();
		char buf[200];

		t.session.paused_ns = 1000;
		annotation(&t, PID, 1000, 2000, STEP);
		annotation(&t, PID, 5000, 6000, STEP);
		CHECK(!strcmp(steps(&t, PID, buf), ""));
	}

	TEST("an optimizer step nested in another step of the same class is not counted")
	{
		FREED(tape_free) struct tape t = training_tape();
		char buf[200];
		int i;

		for (i = 0; i < 2; i++) {
			annotation(&t, PID, (uint64_t)i * 10000 + 5000, (uint64_t)i * 10000 + 6000, STEP);
			annotation(&t, PID, (uint64_t)i * 10000 + 4000, (uint64_t)i * 10000 + 7000, STEP);
		}
		CHECK(!strcmp(steps(&t, PID, buf), "0:7-17 "));
	}
}

int main(int argc, char **argv)
{
	test_form();
	test_arrows();
	test_memory();
	test_steps();
	test_details();
	test_growing();
	test_equal_ends();
	test_classic();
	UNIT_MAIN_END;
}
