// SPDX-License-Identifier: Apache-2.0
/*
 * Tests device activities and their launches, from records to outputs. Runs in the top folder: reads tests/golden and
 * share/.
 */

#include "chrome_tape.h"
#include "feature/activity/activity.h"
#include "mxbpf_cost.h"
#include "mxbpf_file.h"
#include "mxbpf_queue.h"
#include "record/record.h"
#include "rendered.h"
#include "schema.h"

FREES(reader_closed, struct rec_reader, rec_reader_close)

#define OTHER	    (PID + 1000) /* another process */
#define GEMM	    101
#define RELU	    102
#define COPY	    103
#define SET	    104
#define NACTIVITIES 10
#define NARROWS	    6

/* ---- records: three batches, as the agent and BPF send them, in any order */

static struct mxbpf_activity *activity(struct tape *t, uint64_t name_id, uint64_t edge_id, uint64_t start_ns,
				       uint64_t end_ns)
{
	struct mxbpf_activity *a = kernel(t, name_id, edge_id, start_ns, end_ns);

	a->cls = name_id == COPY ? MXBPF_ACTIVITY_COPY : name_id == SET ? MXBPF_ACTIVITY_SET : MXBPF_ACTIVITY_KERNEL;
	a->bytes = a->cls == MXBPF_ACTIVITY_KERNEL ? 0 : 4096;
	return a;
}

static void put_activities(struct tape *t)
{
	activity(t, GEMM, 4, 6000, 6010);
	activity(t, RELU, 99, 1300, 1310); /* its launch was lost */
	activity(t, RELU, 0, 1100, 1200);
	activity(t, GEMM, 1, 400, 500)->h.tgid = OTHER;
	activity(t, SET, 3, 1000, 1010);
	/* One edge of a CUDA graph has four activities. Two of them overlap in one stream. */
	activity(t, GEMM, 2, 600, 700);
	activity(t, GEMM, 2, 650, 750);
	activity(t, RELU, 2, 620, 640)->track.stream = 13;
	activity(t, COPY, 2, 630, 640)->track = (struct mxbpf_track){1, 2, 7};
	activity(t, GEMM, 1, 400, 500);
}

static void put_launches(struct tape *t)
{
	launch(t, PID + 1, 5000, 4); /* outside of any span */
	launch(t, PID + 1, 800, 3);
	launch(t, PID, 400, 2);
	launch(t, PID, 200, 1);
}

/* Operators with nested calls of the CUDA runtime. */
static void put_spans(struct tape *t)
{
	span(t, API, PID, 200, 300);
	span(t, API, PID, 310, 400); /* ends when the next call launches */
	span(t, API, PID, 400, 450);
	span(t, OP, PID + 1, 700, 900);
	span(t, OP, PID, 100, 1000);
}

static void put_names(struct tape *t)
{
	name(t, GEMM, MXBPF_NAME_SPAN, "gemm", 4);
	name(t, RELU, MXBPF_NAME_SPAN, "relu", 4);
	name(t, COPY, MXBPF_NAME_SPAN, "Memcpy DtoD", 11);
	name(t, SET, MXBPF_NAME_SPAN, "Memset", 6);
}

static void (*const batches[])(struct tape *t) = {put_activities, put_launches, put_spans};

/* Adds names and then the batches in one of their six orders. */
static struct tape tape_in_order(unsigned order)
{
	const unsigned first = order / 2, second = (first + 1 + order % 2) % 3;
	struct tape t = tape_new();

	t.session.class_title[API] = (char *)"api";
	t.session.class_title[OP] = (char *)"operator";
	put_names(&t);
	batches[first](&t);
	batches[second](&t);
	batches[3 - first - second](&t);
	return t;
}

static struct mxbpf_agg_activity row(const struct mdl *m, uint64_t name_id, uint32_t tgid)
{
	const struct mxbpf_agg_activity none = {.count = 0};
	size_t n, i;
	const struct activity_row *const *rows = activity_rows(m, &n);

	for (i = 0; i < n; i++)
		if (rows[i]->a.name_id == name_id && rows[i]->a.h.tgid == tgid)
			return rows[i]->a;
	return none;
}

/* Checks all numbers of the rows, for `times` recordings like this one. */
static bool has_rows(const struct mdl *m, uint64_t times)
{
	const struct mxbpf_agg_activity g = row(m, GEMM, PID), o = row(m, GEMM, OTHER), r = row(m, RELU, PID);
	const struct mxbpf_agg_activity c = row(m, COPY, PID), s = row(m, SET, PID);

	return g.count == 4 * times && g.total_ns == 310 * times && g.min_ns == 10 && g.max_ns == 100 && !g.bytes &&
	       !g.unlaunched && o.count == times && o.unlaunched == times && r.count == 3 * times &&
	       r.total_ns == 130 * times && r.unlaunched == times && c.count == times && c.bytes == 4096 * times &&
	       c.device == 1 && c.cls == MXBPF_ACTIVITY_COPY && !c.unlaunched && s.count == times &&
	       s.bytes == 4096 * times && !s.unlaunched;
}

/* ---- model */

static void test_model(void)
{
	TEST("activities find their launches in any order, several per edge and only in their own process")
	{
		unsigned order;

		for (order = 0; order < 6; order++) {
			FREED(tape_free) struct tape t = tape_in_order(order);
			FREED(model_freed) struct mdl *again = mdl_new();
			FREED(buf_fini) struct buf recs = {0};

			CHECK(!mdl_feed(t.model, t.recs.data, t.recs.len) && has_rows(t.model, 1));
			CHECK(!mdl_emit(t.model, &recs) && !mdl_feed(again, recs.data, recs.len));
			CHECK(has_rows(again, 1));
			FREED(model_freed) struct mdl *sum = mdl_sum(again);
			CHECK(row(sum, GEMM, 0).count == 5 && row(sum, GEMM, 0).unlaunched == 1);
		}
	}
	TEST("a launch finds its activities in a later window")
	{
		FREED(tape_free) struct tape t = tape_new();
		FREED(model_freed) struct mdl *next = mdl_new();

		put_launches(&t);
		CHECK(!mdl_feed(t.model, t.recs.data, t.recs.len));
		t.recs.len = 0;
		put_activities(&t);
		CHECK(!mdl_move(next, t.model, 0));
		CHECK(!mdl_feed(next, t.recs.data, t.recs.len) && has_rows(next, 1));
	}
	TEST("activities that wait for a launch need bounded memory, and each of them is counted")
	{
		FREED(model_freed) struct mdl *m = mdl_new();
		FREED(tape_free) struct tape t = tape_new();
		uint64_t i;

		for (i = 1; i <= 300000; i++) {
			t.recs.len = 0;
			activity(&t, GEMM, i, 10, 20);
			CHECK(!mdl_feed(m, t.recs.data, t.recs.len));
		}
		CHECK(row(m, GEMM, PID).count == 300000 && row(m, GEMM, PID).unlaunched == 300000);
		t.recs.len = 0;
		launch(&t, PID, 5, 1); /* forgotten, because too many came after it */
		launch(&t, PID, 5, 300000);
		launch(&t, PID, 5, 299999);
		CHECK(!mdl_feed(m, t.recs.data, t.recs.len) && row(m, GEMM, PID).unlaunched == 299998);
	}
}

static void test_many_launches(void)
{
	TEST("the last 262,144 launches are remembered, and at most twice as many")
	{
		FREED(tape_free) struct tape t = tape_new();
		uint64_t i;

		for (i = 1; i <= 600000; i++) {
			t.recs.len = 0;
			launch(&t, PID, 5, i);
			CHECK(!mdl_feed(t.model, t.recs.data, t.recs.len));
		}
		t.recs.len = 0;
		activity(&t, GEMM, 600000, 10, 20);
		activity(&t, GEMM, 600001 - 262144, 10, 20);
		activity(&t, RELU, 600000 - 2 * 262144, 10, 20);
		CHECK(!mdl_feed(t.model, t.recs.data, t.recs.len));
		CHECK(row(t.model, GEMM, PID).count == 2 && !row(t.model, GEMM, PID).unlaunched);
		CHECK(row(t.model, RELU, PID).unlaunched == 1);
	}
}

static void test_kind(void)
{
	TEST("threads and streams are tracks, and invalid records are refused")
	{
		FREED(tape_free) struct tape t = tape_new();
		struct mxbpf_activity a = *activity(&t, COPY, 2, 10, 20);
		struct mxbpf_launch l = {
			.h = {MXBPF_LAUNCH, sizeof(l), PID, 1}, .tid = 5, .domain = MXBPF_DOMAIN_CUPTI};
		struct mxbpf_mem none = {.h = {MXBPF_MEM, sizeof(none), PID, 0}};
		struct kind_track k;

		a.track = (struct mxbpf_track){1, 2, 7};
		CHECK(kind_track(&a.h, &k) && k.tgid == PID && k.of == KIND_TRACK_STREAM);
		CHECK(k.a == 1 && k.b == 2 && k.c == 7);
		CHECK(kind_track(&l.h, &k) && k.tgid == PID && k.of == KIND_TRACK_THREAD && k.a == 5 && !k.b && !k.c);
		CHECK(!kind_track(&none.h, &k));
		CHECK(kind_sent(&a.h, sizeof(a)) && kind_sent(&l.h, sizeof(l)) && kind_end_ns(&a.h) == MONO + 20);
		a.domain = 77; /* from a newer agent */
		CHECK(!kind_check(&a, sizeof(a)));
		a.cls = MXBPF_ACTIVITY_MAX;
		CHECK(kind_check(&a, sizeof(a)) && !kind_sent(&a.h, sizeof(a)));
		a.cls = MXBPF_ACTIVITY_SET;
		a.dur_ns = UINT64_MAX;
		CHECK(kind_check(&a, sizeof(a)));
		l.domain = MXBPF_DOMAIN_NONE;
		CHECK(kind_check(&l, sizeof(l)));
		none.h.kind = 200; /* from a newer version */
		CHECK(!kind_check(&none, sizeof(none)) && !mdl_feed(t.model, &none, sizeof(none)));
	}
}

/* ---- recordings */

/* Folds and writes each batch, as a session does, in the order of tape_in_order(). */
static int record(int fd, unsigned order, bool finished, const char *hostname, uint64_t later_ns)
{
	int copy = dup(fd);
	FREED(tape_free) struct tape t = tape_in_order(order);
	struct rec_writer *w = NULL;
	struct err e = {0};
	const struct mxbpf_loss loss = {.attempted = 19, .stored = 19};
	const struct mxbpf_rec *r;
	size_t pos = 0;

	t.session.hostname = (char *)hostname;
	t.session.start_unix_ns += later_ns;
	CHECK(!rec_writer_open(fd, 0, &t.session, &w, &e));
	while ((r = kind_next(t.recs.data, t.recs.len, &pos))) {
		CHECK(!mdl_feed(t.model, r, r->size));
		if (r->kind != MXBPF_NAME)
			CHECK(!rec_writer_append(w, r, r->size, t.model, &loss));
	}
	if (finished)
		CHECK(!rec_writer_finish(w, t.model, &t.session, &e));
	rec_writer_free(w);
	return copy;
}

static int recording(unsigned order, bool finished, const char *hostname, uint64_t later_ns)
{
	return record(memfd_create("test_tracks", MFD_CLOEXEC), order, finished, hostname, later_ns);
}

static struct rec_reader *opened(int fd)
{
	struct rec_reader *r = NULL;
	struct err e = {0};

	CHECK(!rec_reader_open(fd, &r, &e));
	close(fd);
	return r;
}

/* Returns the records of a recording as a tape that can be exported. */
static struct tape tape_of(struct rec_reader *r)
{
	struct view_source *source = rec_reader_source(r);
	struct tape t = tape_new();
	const void *recs;
	size_t bytes;

	while (source->next(source->ctx, &recs, &bytes) == 1)
		buf_put(&t.recs, recs, bytes);
	return t;
}

static void test_recording(void)
{
	TEST("a recording has its version, and its rows, records and names are those that were written")
	{
		unsigned order;

		for (order = 0; order < 12; order++) {
			int fd = recording(order % 6, order < 6, "host", 0);
			struct mxbpf_file_header h;
			FREED(model_freed) struct mdl *m = mdl_new(), *folded = mdl_new();
			struct err e = {0};

			CHECK(pread(fd, &h, sizeof(h), 0) == sizeof(h) && h.major == MXBPF_FILE_MAJOR &&
			      h.minor == MXBPF_FILE_MINOR);
			FREED(reader_closed) struct rec_reader *r = opened(fd);
			CHECK(!rec_reader_model(r, m, &e) && has_rows(m, 1));
			CHECK(!rec_reader_events(r, folded, &e) && has_rows(folded, 1));
			CHECK(!strcmp(mdl_name(m, COPY, NULL), "Memcpy DtoD"));
			CHECK(!strcmp(mdl_name(folded, GEMM, NULL), "gemm"));
		}
	}
}

/* ---- outputs */

static void test_report(void)
{
	const struct view_opts by_total = {.sort = VIEW_SORT_TOTAL}, one = {.sort = VIEW_SORT_COUNT, .top = 1};

	TEST("report shows activities and how many have no launch, and shows no such table without activities")
	{
		FREED(tape_free) struct tape plain = tape_new(), t = tape_in_order(0);

		CHECK(!mdl_feed(t.model, t.recs.data, t.recs.len));
		put_spans(&plain);
		CHECK(!mdl_feed(plain.model, plain.recs.data, plain.recs.len));
		FREED(memory_freed) char *text = render("modern", &t.session, t.model, &by_total);
		CHECK(strstr(text, "GPU kernels: 8, ") && strstr(text, "GPU copies: 1, 4.00 KiB, ") &&
		      strstr(text, "GPU memsets: 1, ") && strstr(text, "Memcpy DtoD"));
		CHECK(strstr(text, "2 of them belong to no call, because the launch was not seen"));
		free(text);
		text = render("modern", &t.session, t.model, &one);
		CHECK(strstr(text, ", of which 1 are shown") && strstr(text, "gemm") && !strstr(text, "\nrelu"));
		free(text);
		text = render("modern", &plain.session, plain.model, &by_total);
		CHECK(*text && !strstr(text, "GPU"));
		free(text);
		text = render("json", &plain.session, plain.model, &by_total);
		CHECK(*text && !strstr(text, "gpu"));
	}
	TEST("JSON has the activities and obeys the schema")
	{
		FREED(tape_free) struct tape t = tape_in_order(3);
		cJSON *root, *rows, *r;

		CHECK(!mdl_feed(t.model, t.recs.data, t.recs.len));
		FREED(memory_freed) char *text = render("json", &t.session, t.model, &by_total);
		root = cJSON_Parse(text);
		rows = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "gpu"), "kernels");
		CHECK(follows_schema(text) && cJSON_GetArraySize(rows) == 3);
		r = cJSON_GetArrayItem(rows, 0);
		CHECK(!strcmp(str(r, "name"), "gemm") && num(r, "count") == 4);
		CHECK(num(r, "pid") == PID && num(r, "gpu") == 0 && num(r, "total_ns") == 310 &&
		      num(r, "min_ns") == 10 && num(r, "max_ns") == 100 && num(r, "unlaunched") == 0);
		cJSON_Delete(root);
	}
}

/* Returns the event at the other end of an arrow. */
static const cJSON *start_of(const struct trace *r, const cJSON *f)
{
	const cJSON *e, *found = NULL;

	cJSON_ArrayForEach(e, r->events)
	{
		if (strcmp(str(e, "ph"), "s") || num(e, "id") != num(f, "id"))
			continue;
		CHECK(!found && !strcmp(str(e, "cat"), str(f, "cat")) && !strcmp(str(e, "name"), str(f, "name")));
		found = e;
	}
	CHECK(found);
	return found;
}

/* Counts the arrows from a moment of a thread to activities of a class. */
static int arrows(const struct trace *r, long pid, long tid, long from_ns, const char *cat)
{
	const cJSON *f, *s;
	int i, n = 0;

	for (i = 0; (f = event(r, "f", i)); i++) {
		s = start_of(r, f);
		n += s && slice(r, cat, at_ns(f)) && num(s, "pid") == pid && num(s, "tid") == tid &&
		     at_ns(s) == from_ns && num(f, "tid") == num(slice(r, cat, at_ns(f)), "tid") &&
		     num(f, "pid") == num(slice(r, cat, at_ns(f)), "pid");
	}
	return n;
}

static void check_trace(const struct trace *r)
{
	const cJSON *graph = slice(r, "kernel", 600), *copy = slice(r, "gpu_memcpy", 630), *args;

	CHECK(count(r, "s") == NARROWS && count(r, "f") == NARROWS && !dropped(r));
	CHECK(arrows(r, PID, PID, 200, "kernel") == 1);
	CHECK(arrows(r, PID, PID, 400, "kernel") == 3 && arrows(r, PID, PID, 400, "gpu_memcpy") == 1);
	CHECK(arrows(r, PID, PID + 1, 700, "gpu_memset") == 1);
	CHECK(num(r->other, "activities_unlaunched") == 2 && num(r->other, "arrows") == 0);
	CHECK(drawn_on(r, graph, "GPU 0, process 4242 (trainer)", "stream 7"));
	CHECK(drawn_on(r, slice(r, "kernel", 650), "GPU 0, process 4242 (trainer)", "stream 7 (2)"));
	CHECK(drawn_on(r, slice(r, "kernel", 620), "GPU 0, process 4242 (trainer)", "stream 13"));
	CHECK(drawn_on(r, copy, "GPU 1, process 4242 (trainer)", "stream 7"));
	CHECK(num(slice(r, "kernel", 1300), "tid") == num(graph, "tid"));
	args = cJSON_GetObjectItem(copy, "args");
	CHECK(num(args, "device") == 1 && num(args, "context") == 2 && num(args, "stream") == 7);
	CHECK(num(args, "correlation") == 2 && num(args, "bytes") == 4096);
	CHECK(!strcmp(str(copy, "name"), "Memcpy DtoD") && end_ns(copy) == 640);
}

static void test_trace(void)
{
	TEST("a timeline has a process per device and a track per stream, and an arrow from the innermost span to each "
	     "activity that it "
	     "launched")
	{
		static const struct view_ops *const forms[] = {&view_chrome, &view_kineto};
		unsigned order;

		for (order = 0; order < 12; order++) {
			FREED(reader_closed)
			struct rec_reader *rec = opened(recording(order % 6, order % 2, "host", 0));
			FREED(tape_free) struct tape t = tape_of(rec);

			t.ops = forms[order / 6];
			t.window_recs = 3;
			FREED(trace_free) struct trace r = trace_of(&t);
			check_trace(&r);
		}
	}
	TEST("streams of two contexts of a device have different names")
	{
		FREED(tape_free) struct tape t = tape_new();

		activity(&t, GEMM, 0, 100, 200);
		activity(&t, GEMM, 0, 150, 250)->track.context = 3;
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(drawn_on(&r, slice(&r, "kernel", 100), "GPU 0", "context 1 stream 7"));
		CHECK(drawn_on(&r, slice(&r, "kernel", 150), "GPU 0", "context 3 stream 7"));
		CHECK(num(slice(&r, "kernel", 100), "tid") != num(slice(&r, "kernel", 150), "tid"));
	}
	TEST("a reused id belongs to the last launch before the activity, and no arrow goes back in time")
	{
		FREED(tape_free) struct tape t = tape_new();

		launch(&t, PID, 500, 1);
		launch(&t, PID, 100, 1);
		span(&t, API, PID, 100, 200);
		span(&t, API, PID, 500, 600);
		activity(&t, GEMM, 1, 550, 560);
		activity(&t, GEMM, 1, 300, 310);
		activity(&t, GEMM, 1, 50, 60);
		activity(&t, GEMM, 1, 100, 110); /* starts together with its call: an arrow would have no length */
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(count(&r, "s") == 2 && arrows(&r, PID, PID, 100, "kernel") == 1);
		CHECK(arrows(&r, PID, PID, 500, "kernel") == 1 && num(r.other, "activities_unlaunched") == 1);
	}
	TEST("the innermost span is the launcher even if its record comes after the one around it")
	{
		FREED(tape_free) struct tape t = tape_new();

		launch(&t, PID, 250, 1);
		span(&t, OP, PID, 100, 1000);
		span(&t, API, PID, 200, 300);
		span(&t, OP, PID, 240, 2000)->flags = MXBPF_SPAN_ASYNC;
		launch(&t, PID, 300, 2); /* the call has ended */
		activity(&t, GEMM, 1, 400, 500);
		activity(&t, GEMM, 2, 600, 700);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(count(&r, "s") == 2 && at_ns(event(&r, "s", 0)) == 200);
		CHECK(num(event(&r, "s", 0), "tid") == num(slice(&r, mdl_category(API), 200), "tid"));
		CHECK(arrows(&r, PID, PID, 100, "kernel") == 1);
	}
	TEST("a form without threads leaves activities out")
	{
		FREED(tape_free) struct tape t = tape_in_order(0);

		t.ops = &view_chrome_classic;
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(!strstr(r.text, "gemm") && !strstr(r.text, "activities"));
	}
}

/* ---- several recordings */

static void test_merge(void)
{
	TEST("merged recordings keep the edges of each host, use one clock, and add up rows")
	{
		struct rec_reader *parts[] = {opened(recording(0, true, "alpha", 0)),
					      opened(recording(5, false, "beta", 300))};
		FREED(reader_closed) struct rec_reader *both = NULL;
		const uint32_t far = PID | 1u << MDL_PID_BITS;
		FREED(model_freed) struct mdl *m = mdl_new();
		struct mdl *sum;
		struct err e = {0};

		CHECK(!rec_reader_merge(parts, 2, &both, &e));
		CHECK(!rec_reader_model(both, m, &e) && has_rows(m, 1) && row(m, GEMM, far).count == 4);
		CHECK(row(m, RELU, far).unlaunched == 1);
		sum = mdl_sum(m);
		CHECK(row(sum, RELU, 0).count == 6 && row(sum, GEMM, 0).unlaunched == 2);
		mdl_free(sum);
		FREED(tape_free) struct tape t = tape_of(both);
		FREED(trace_free) struct trace r = trace_of(&t);
		CHECK(count(&r, "s") == 2 * NARROWS && num(r.other, "activities_unlaunched") == 4);
		CHECK(arrows(&r, PID, PID, 400, "kernel") == 3 && arrows(&r, far, PID, 700, "kernel") == 3);
		CHECK(arrows(&r, far, PID + 1, 1000, "gpu_memset") == 1);
	}
}

/* ---- recordings of the first version */

static void test_older(void)
{
	TEST("a recording of format 1.0 gives the same table as ever and has no activities")
	{
		int fd = open("tests/golden/real.mxd", O_RDONLY | O_CLOEXEC);
		const struct view_opts opts = {.sort = VIEW_SORT_TOTAL};
		FREED(memory_freed) char *want = read_file("tests/golden/real.modern.txt");
		struct mxbpf_file_header h;
		FREED(model_freed) struct mdl *m = mdl_new();
		struct err e = {0};
		size_t n;

		CHECK(pread(fd, &h, sizeof(h), 0) == sizeof(h) && h.major == 1 && h.minor == 0);
		FREED(reader_closed) struct rec_reader *r = opened(fd);
		CHECK(!rec_reader_model(r, m, &e) && !activity_rows(m, &n) && !n);
		FREED(memory_freed) char *text = render("modern", rec_reader_session(r), m, &opts);
		CHECK(*want && !strcmp(text, want));
	}
}

/* With an argument, the program writes a recording to that file, for tests/trace.bats. */
int main(int argc, char **argv)
{
	if (argc > 1) {
		close(record(open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600), 0, true, "host", 0));
		return unit_bad;
	}
	test_kind();
	test_model();
	test_many_launches();
	test_recording();
	test_report();
	test_trace();
	test_merge();
	test_older();
	UNIT_MAIN_END;
}
