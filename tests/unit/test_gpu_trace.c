// SPDX-License-Identifier: Apache-2.0
/* Tests what a timeline shows of a GPU, in the general form and in that of torch's tools. */

#include "gpu_tape.h"
#include "record/record.h"
#include "view/timeline/trace.h"

static const struct view_ops *const forms[] = {&view_chrome, &view_kineto};

static double arg(const cJSON *slice, const char *key)
{
	return num(cJSON_GetObjectItem(slice, "args"), key);
}

static bool has(const cJSON *slice, const char *key)
{
	return cJSON_HasObjectItem(cJSON_GetObjectItem(slice, "args"), key);
}

/* The event at the other end of an arrow to an activity that starts at `us`, or NULL. */
static const cJSON *source_of(const struct trace *r, const cJSON *activity)
{
	const cJSON *f, *s;
	int i, k;

	for (i = 0; (f = event(r, "f", i)); i++) {
		if (at_ns(f) != at_ns(activity) || num(f, "pid") != num(activity, "pid") ||
		    num(f, "tid") != num(activity, "tid"))
			continue;
		for (k = 0; (s = event(r, "s", k)); k++)
			if (num(s, "id") == num(f, "id"))
				return s;
	}
	return NULL;
}

/* Whether the arrow to the activity begins at the call of CUDA, which shares its correlation id. */
static bool called_by(const struct trace *r, const char *cat, long at_us, const char *call_cat, long call_us)
{
	const cJSON *activity = slice(r, cat, at_us * 1000), *call = slice(r, call_cat, call_us * 1000);
	const cJSON *from = activity ? source_of(r, activity) : NULL;

	return call && from && at_ns(from) == at_ns(call) && num(from, "tid") == num(call, "tid") &&
	       num(from, "pid") == PID && arg(activity, "correlation") > 0 &&
	       arg(activity, "correlation") == arg(call, "correlation");
}

static void test_calls(void)
{
	TEST("an arrow leads from each call of CUDA to its activities, and both have the same correlation id")
	{
		unsigned form;

		for (form = 0; form < 2; form++) {
			FREED(tape_free) struct tape t = gpu_tape(2);

			t.ops = forms[form];
			FREED(trace_free) struct trace r = trace_of(&t);
			CHECK(called_by(&r, "gpu_memcpy", 40, "cuda_runtime", 20));
			CHECK(called_by(&r, "kernel", 140, "cuda_runtime", 120));
			CHECK(called_by(&r, "kernel", 440, "cuda_runtime", 405));
			CHECK(called_by(&r, "gpu_memset", 650, "cuda_runtime", 610));
			CHECK(called_by(&r, "kernel", 840, "cuda_runtime", 810));
			CHECK(called_by(&r, "kernel", 860, "cuda_runtime", 810));
			CHECK(called_by(&r, "kernel", 1140, "cuda_runtime", 1120));
			CHECK(count(&r, "s") == 16 && num(r.other, "activities_unlaunched") == 0);
			CHECK(!has(slice(&r, "cuda_runtime", 700 * 1000), "correlation"));
		}
	}
	TEST("calls of CUDA that are recorded after the operator around them are drawn inside it")
	{
		unsigned form;

		for (form = 0; form < 2; form++) {
			FREED(tape_free) struct tape t = gpu_tape(3);

			t.ops = forms[form];
			FREED(trace_free) struct trace r = trace_of(&t);
			CHECK(num(slice(&r, "cuda_runtime", 120 * 1000), "tid") == PID);
			CHECK(num(slice(&r, "cuda_runtime", 1405 * 1000), "tid") == BACKWARD);
			CHECK(!dropped(&r) && !strstr(r.text, "async 1"));
		}
	}
	TEST("a call of CUDA that crosses the end of its operator by an error of the clock is drawn beside the thread")
	{
		FREED(tape_free) struct tape t = tape_new();

		gpu_span(&t, OP, PID, N_ADDMM, 100, 200);
		gpu_span(&t, OP, PID, N_LINEAR, 90, 300);
		gpu_call(&t, PID, N_LAUNCH_CALL, 190, 201, 1);
		gpu_call(&t, PID, N_LAUNCH_CALL, 110, 120, 2);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(num(slice(&r, "cuda_runtime", 110 * 1000), "tid") == PID && !dropped(&r));
		CHECK(num(slice(&r, "cpu_op", 90 * 1000), "tid") == PID);
		CHECK(num(slice(&r, "cuda_runtime", 190 * 1000), "tid") != num(slice(&r, "cpu_op", 100 * 1000), "tid"));
	}
	TEST("calls of CUDA that are recorded late move no iteration")
	{
		FREED(tape_free) struct tape t = tape_new();
		unsigned i;

		t.ops = &view_kineto;
		name(&t, N_STEP, MXBPF_NAME_SPAN, "Optimizer.step#SGD.step", 23);
		for (i = 0; i < 4; i++)
			gpu_span(&t, OP, PID, N_STEP, i * 100 + 50, i * 100 + 90)->flags = MXBPF_SPAN_USER;
		gpu_call(&t, PID, N_LAUNCH_CALL, 60, 70, 1);
		gpu_call(&t, PID, N_LAUNCH_CALL, 120, 130, 2);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(!dropped(&r) && end_ns(slice(&r, "user_annotation", 90 * 1000 + 2)) == 190 * 1000 + 1);
		CHECK(end_ns(slice(&r, "user_annotation", 190 * 1000 + 2)) == 290 * 1000 + 1);
	}
	TEST("calls of the driver have a category of their own")
	{
		FREED(tape_free) struct tape t = gpu_tape(1);
		FREED(trace_free) struct trace r = trace_of(&t);

		CHECK(called_by(&r, "kernel", 340, "cuda_driver", 220));
		CHECK(!strcmp(str(slice(&r, "cuda_driver", 220 * 1000), "name"), "cuLaunchKernel"));
		CHECK(!slice(&r, "cuda_runtime", 220 * 1000));
	}
	TEST("in the form of torch's tools an activity has the number of the operator around its launch")
	{
		FREED(tape_free) struct tape t = gpu_tape(1);
		const cJSON *op;

		t.ops = &view_kineto;
		FREED(trace_free) struct trace r = trace_of(&t);
		op = slice(&r, "cpu_op", 110 * 1000);
		CHECK(arg(op, "External id") > 0);
		CHECK(arg(slice(&r, "kernel", 140 * 1000), "External id") == arg(op, "External id"));
		CHECK(arg(slice(&r, "kernel", 440 * 1000), "External id") ==
		      arg(slice(&r, "cpu_op", 400 * 1000), "External id"));
		/* The annotation of the step is the only span around the launch of the graph. */
		CHECK(arg(slice(&r, "kernel", 840 * 1000), "External id") ==
		      arg(slice(&r, "user_annotation", 0), "External id"));
		CHECK(!has(slice(&r, "cuda_runtime", 120 * 1000), "External id"));
	}
}

static void test_args(void)
{
	TEST("activities have the args of torch's traces")
	{
		FREED(tape_free) struct tape t = gpu_tape(1);
		FREED(trace_free) struct trace r = trace_of(&t);
		const cJSON *k = slice(&r, "kernel", 140 * 1000), *c = slice(&r, "gpu_memcpy", 40 * 1000), *a;

		CHECK(num(k, "pid") == 0 && num(k, "tid") == 7 && arg(k, "device") == 0 && arg(k, "context") == 1 &&
		      arg(k, "stream") == 7);
		CHECK(arg(k, "registers per thread") == 40 && arg(k, "shared memory") == 1536);
		CHECK(arg(k, "blocks per SM") == 1 && arg(k, "warps per SM") == 8);
		CHECK(arg(k, "est. achieved occupancy %") == 13); /* 256 of 2048 threads, although 16 blocks fit */
		a = cJSON_GetObjectItem(cJSON_GetObjectItem(k, "args"), "occupancy limit");
		CHECK(a && !strcmp(a->valuestring, "registers") && !has(k, "grid limit"));
		a = cJSON_GetObjectItem(cJSON_GetObjectItem(k, "args"), "grid");
		CHECK(cJSON_GetArraySize(a) == 3 && cJSON_GetArrayItem(a, 0)->valueint == 66 &&
		      cJSON_GetArrayItem(a, 2)->valueint == 1);
		a = cJSON_GetObjectItem(cJSON_GetObjectItem(k, "args"), "block");
		CHECK(cJSON_GetArraySize(a) == 3 && cJSON_GetArrayItem(a, 1)->valueint == 2);
		CHECK(!has(k, "bytes") && !has(k, "graph id"));
		CHECK(arg(c, "bytes") == GPU_COPY_BYTES && arg(c, "memory bandwidth (GB/s)") == 81.92);
		CHECK(!has(c, "grid"));
		k = slice(&r, "kernel", 860 * 1000);
		CHECK(arg(k, "graph id") == 3 && arg(k, "graph node id") == 18);
	}
	TEST("a record of an older format has no args that it does not know")
	{
		FREED(tape_free) struct tape t = tape_new();
		struct mxbpf_activity *a = rec_add(&t, MXBPF_ACTIVITY, MXBPF_ACTIVITY_BYTES_MIN, 100);

		a->cls = MXBPF_ACTIVITY_KERNEL;
		a->dur_ns = 50;
		a->track.stream = 7;
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(arg(slice(&r, "kernel", 100), "stream") == 7 && !has(slice(&r, "kernel", 100), "grid") &&
		      !has(slice(&r, "kernel", 100), "registers per thread") &&
		      !has(slice(&r, "kernel", 100), "correlation"));
	}
	TEST("a wait has a track of its own and no stream, because HTA counts what has a stream as work")
	{
		FREED(tape_free) struct tape t = gpu_tape(1);
		const cJSON *wait;

		gpu_activity(&t, MXBPF_ACTIVITY_SYNC, N_SYNC, 910, 920, 0)->track.stream = UINT32_MAX;
		FREED(trace_free) struct trace r = trace_of(&t);
		wait = slice(&r, "cuda_sync", 700 * 1000);
		CHECK(drawn_on(&r, wait, "GPU 0: NVIDIA H200", "stream 7 waits"));
		CHECK(arg(wait, "stream") == -1 && has(wait, "stream") && arg(wait, "wait_on_stream") == 7);
		CHECK(!strcmp(str(cJSON_GetObjectItem(wait, "args"), "cuda_sync_kind"), "Stream Sync"));
		CHECK(!strcmp(str(wait, "name"),
			      "Stream Sync")); /* whatever the record calls it: HTA knows this name */
		wait = slice(&r, "cuda_sync", 910 * 1000);
		CHECK(drawn_on(&r, wait, "GPU 0: NVIDIA H200", "device waits") && !has(wait, "wait_on_stream"));
		CHECK(num(r.other, "activities_unlaunched") == 0);
	}
}

/* ---- processes */

static void test_processes(void)
{
	TEST("a device is a process with its ordinal as id, its name and its label")
	{
		unsigned form;

		for (form = 0; form < 2; form++) {
			FREED(tape_free) struct tape t = gpu_tape(1);
			const cJSON *d;

			gpu_activity(&t, MXBPF_ACTIVITY_KERNEL, N_GEMM, 10, 20, 0)->track.device = 3;
			t.ops = forms[form];
			FREED(trace_free) struct trace r = trace_of(&t);
			CHECK(!strcmp(process_about(&r, 0, "process_name", "name"), "GPU 0: NVIDIA H200"));
			CHECK(!strcmp(process_about(&r, 0, "process_labels", "labels"), "GPU 0"));
			CHECK(!strcmp(process_about(&r, 3, "process_name", "name"), "GPU 3"));
			d = cJSON_GetObjectItem(r.json, "deviceProperties");
			CHECK(cJSON_GetArraySize(d) == 1);
			d = cJSON_GetArrayItem(d, 0);
			CHECK(num(d, "id") == 0 && !strcmp(str(d, "name"), "NVIDIA H200") &&
			      num(d, "totalGlobalMem") == 161061273600.0 && num(d, "computeMajor") == 9 &&
			      num(d, "computeMinor") == 0 && num(d, "numSms") == 132 && num(d, "warpSize") == 32);
		}
	}
	TEST("a device whose ordinal is the id of a process in the trace has another id")
	{
		FREED(tape_free) struct tape t = tape_new();

		span(&t, OP, 1, 0, 50)->h.tgid = 1; /* the first process of a container */
		gpu_activity(&t, MXBPF_ACTIVITY_KERNEL, N_GEMM, 1, 2, 0)->track.device = 1;
		gpu_activity(&t, MXBPF_ACTIVITY_KERNEL, N_GEMM, 3, 4, 0)->track.device = 2;
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(num(slice(&r, "kernel", 1000), "pid") == VIEW_DEVICE_PID);
		CHECK(drawn_on(&r, slice(&r, "kernel", 1000), "GPU 1", "stream 7"));
		CHECK(num(slice(&r, "kernel", 3000), "pid") == 2);
	}
	TEST("the same ordinal in two processes of a job is two devices")
	{
		FREED(tape_free) struct tape t = tape_new();

		gpu_activity(&t, MXBPF_ACTIVITY_KERNEL, N_GEMM, 1, 2, 0);
		gpu_activity(&t, MXBPF_ACTIVITY_KERNEL, N_GEMM, 1, 2, 0)->h.tgid = PID + 7;
		gpu_activity(&t, MXBPF_ACTIVITY_KERNEL, N_GEMM, 3, 4, 0)->h.tgid = PID + 7;
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(num(slice(&r, "kernel", 1000), "pid") == 0);
		CHECK(drawn_on(&r, slice(&r, "kernel", 1000), "GPU 0, process 4242 (trainer)", "stream 7"));
		CHECK(num(slice(&r, "kernel", 3000), "pid") == VIEW_DEVICE_PID + 1);
		CHECK(drawn_on(&r, slice(&r, "kernel", 3000), "GPU 0, process 4249 (process)", "stream 7"));
	}
}

/* With arguments, the program writes a recording of so many steps to a file, for tests/gpu_trace.bats. */
static void write_recording(const char *path, unsigned nsteps)
{
	FREED(tape_free) struct tape t = gpu_tape(nsteps);
	struct rec_writer *w = NULL;
	struct err e = {0};
	const struct mxbpf_loss loss = {.attempted = 20, .stored = 20};
	const struct mxbpf_rec *r;
	size_t pos = 0, from = 0;

	CHECK(!rec_writer_open(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), 0, &t.session, &w, &e));
	while ((r = kind_next(t.recs.data, t.recs.len, &pos))) {
		CHECK(!mdl_feed(t.model, r, r->size));
		if (r->kind == MXBPF_NAME) {
			from = pos;
		} else if (pos - from > 65536 || pos == t.recs.len) {
			CHECK(!rec_writer_append(w, t.recs.data + from, pos - from, t.model, &loss));
			from = pos;
		}
	}
	CHECK(!rec_writer_finish(w, t.model, &t.session, &e));
	rec_writer_free(w);
}

int main(int argc, char **argv)
{
	if (argc > 2) {
		write_recording(argv[1], (unsigned)atoi(argv[2]));
		return unit_bad;
	}
	test_calls();
	test_args();
	test_processes();
	UNIT_MAIN_END;
}
