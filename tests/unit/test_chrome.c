// SPDX-License-Identifier: Apache-2.0
/*
 * The trace: what Perfetto requires of a Chrome JSON file (facts/ecosystem.md 1.3), rule by rule, on small recordings.
 * With an argument: writes the recording that has everything to that file, for tests/chrome.bats.
 */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/out.h"
#include "sink/chrome_plan.h"
#include "sink/sink.h"
#include "unit.h"

extern const struct snk_ops snk_chrome;

#define PID   4242u
#define START 1795145533000000123ull /* unix, ns */
#define MONO  7000000000123ull	     /* the same moment on the records' clock */
#define CPU0  MXBPF_DEVICE(1, 0)
#define API   MXBPF_CLASS_API
#define OP    MXBPF_CLASS_OPERATOR
#define WAIT  MXBPF_CLASS_WAIT

/* ---- recordings: times are ns from MONO */

struct tape {
	struct buf recs;
	size_t window_recs; /* records a window; 0: all in one */
	size_t pos;
	struct mdl *model;
	struct mdl_session session;
};

static struct mdl_device devices[] = {{.type = 1, .numbered = true, .name = (char *)"cpu"}};
static struct mdl_probe probes[] = {
	{(char *)"operator.start", (char *)"op", (char *)"_ZN5start", (char *)"attached", (char *)""},
	{(char *)"storage.free", (char *)"mem", (char *)"", (char *)"refused", (char *)"no \"symbol\"\n"},
};
static struct mdl_lib libs[] = {{(char *)"/lib/libx.so", (char *)"abcd", (char *)"X 1.0"}};

static struct tape tape_new(void)
{
	struct tape t = {.model = mdl_new()};

	t.session = (struct mdl_session){
		.mxbpf_version = (char *)"1.2.3",
		.pid = PID,
		.comm = (char *)"trainer",
		.cmdline = (char *)"trainer -v \xff\x01\"",
		.hostname = (char *)"host",
		.libs = libs,
		.nlibs = 1,
		.probes = probes,
		.nprobes = 2,
		.devices = devices,
		.ndevices = 1,
		.start_unix_ns = START,
		.start_mono_ns = MONO,
		.duration_ns = 5000000,
		.hits = 77,
		.open_spans = 3,
		.cut_records = 9,
		.loss = {.attempted = 100,
			 .stored = 90,
			 .dropped = 10,
			 .truncated = 1,
			 .unreadable = 2,
			 .unmatched = 4},
	};
	return t;
}

static void tape_free(struct tape *t)
{
	mdl_free(t->model);
	buf_fini(&t->recs);
}

static void *rec_add(struct tape *t, uint16_t kind, size_t bytes, uint64_t at_ns)
{
	struct mxbpf_rec *r = buf_add(&t->recs, bytes);

	memset(r, 0, bytes);
	*r = (struct mxbpf_rec){.kind = kind, .size = (uint16_t)bytes, .tgid = PID, .ts_ns = MONO + at_ns};
	return r;
}

/* Valid until the next record. */
static struct mxbpf_span *span(struct tape *t, uint8_t cls, uint32_t tid, uint64_t start_ns, uint64_t end_ns)
{
	struct mxbpf_span *s = rec_add(t, MXBPF_SPAN, sizeof(*s), start_ns);

	s->dur_ns = end_ns - start_ns;
	s->self_ns = s->dur_ns;
	s->name_id = cls;
	s->tid = s->end_tid = tid;
	s->cls = cls;
	s->device = cls == OP ? CPU0 : 0;
	return s;
}

static void op(struct tape *t, uint32_t tid, uint64_t start_ns, uint64_t end_ns, uint64_t link)
{
	span(t, OP, tid, start_ns, end_ns)->link = link;
}

static void async_op(struct tape *t, uint32_t tid, uint64_t start_ns, uint64_t end_ns, uint64_t link)
{
	struct mxbpf_span *s = span(t, OP, tid, start_ns, end_ns);

	s->link = link;
	s->flags = MXBPF_SPAN_ASYNC;
	s->end_tid = tid + 1;
}

static void edge(struct tape *t, uint32_t tid, uint64_t at_ns, uint64_t src_start_ns, uint64_t link)
{
	struct mxbpf_edge *e = rec_add(t, MXBPF_EDGE, sizeof(*e), at_ns);

	e->link = link;
	e->src_start_ns = MONO + src_start_ns;
	e->tid = tid;
	e->src_cls = API;
}

static void alloc(struct tape *t, uint64_t at_ns, int64_t bytes)
{
	struct mxbpf_alloc *a = rec_add(t, MXBPF_ALLOC, sizeof(*a), at_ns);

	a->bytes = bytes;
	a->tid = PID;
	a->device = CPU0;
}

static void name(struct tape *t, uint64_t id, uint32_t kind, const char *text, size_t len)
{
	struct mxbpf_name *n = rec_add(t, MXBPF_NAME, sizeof(*n) + ((len + 7) & ~7ul), 0);

	n->h.ts_ns = 0;
	n->id = id;
	n->len = (uint32_t)len;
	n->kind = kind;
	memcpy(n->text, text, len);
}

/* ---- source over a tape */

static int tape_rewind(void *ctx)
{
	((struct tape *)ctx)->pos = 0;
	return 0;
}

static int tape_next(void *ctx, const void **recs, size_t *bytes)
{
	struct tape *t = ctx;
	size_t from = t->pos, n = 0;

	while (t->pos < t->recs.len && (!t->window_recs || n++ < t->window_recs))
		t->pos += ((struct mxbpf_rec *)(t->recs.data + t->pos))->size;
	*recs = t->recs.data + from;
	*bytes = t->pos - from;
	return *bytes > 0;
}

static int tape_write(struct tape *t, const char *path)
{
	struct snk_source source = {tape_rewind, tape_next, t, t->recs.len};
	struct snk_input in = {&t->session, t->model, &source};
	struct snk_opts opts = {0};
	struct err e = {0};
	struct out *o;
	int ret;

	tape_rewind(t);
	while (!mdl_feed(t->model, NULL, 0) && tape_next(t, (const void **)&source.ctx, &source.total_bytes))
		mdl_feed(t->model, source.ctx, source.total_bytes);
	source = (struct snk_source){tape_rewind, tape_next, t, t->recs.len};
	ret = out_open(path, false, &o, &e);
	if (ret)
		return ret;
	ret = snk_write(&snk_chrome, &in, &opts, o, &e);
	if (ret) {
		printf("# %s\n", e.why);
		out_abort(o);
		return ret;
	}
	return out_commit(o, &e);
}

/* ---- reading what was written */

struct trace {
	char *text; /* NUL-terminated */
	cJSON *json, *events, *other;
};

static struct trace trace_of(struct tape *t)
{
	char path[] = "/tmp/mxbpf-test-chrome-XXXXXX";
	struct trace r = {0};
	int fd = mkstemp(path);
	FILE *f;
	long n;

	CHECK(fd >= 0 && !tape_write(t, path));
	close(fd);
	f = fopen(path, "r");
	unlink(path);
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	r.text = calloc(1, (size_t)n + 1);
	CHECK(fread(r.text, 1, (size_t)n, f) == (size_t)n);
	fclose(f);
	r.json = cJSON_ParseWithOpts(r.text, NULL, 1);
	CHECK(r.json != NULL);
	r.events = cJSON_GetObjectItem(r.json, "traceEvents");
	r.other = cJSON_GetObjectItem(r.json, "otherData");
	CHECK(cJSON_IsArray(r.events));
	return r;
}

static void trace_free(struct trace *r)
{
	free(r->text);
	cJSON_Delete(r->json);
}

static double num(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItem(o, key);

	return cJSON_IsNumber(v) ? v->valuedouble : -1;
}

static const char *str(const cJSON *o, const char *key)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(o, key));

	return s ? s : "";
}

/* The i-th event of a phase; NULL: none. */
static cJSON *event(const struct trace *r, const char *ph, int i)
{
	cJSON *e;

	cJSON_ArrayForEach(e, r->events)
	{
		if (!strcmp(str(e, "ph"), ph) && !i--)
			return e;
	}
	return NULL;
}

static int count(const struct trace *r, const char *ph)
{
	int n = 0;

	while (event(r, ph, n))
		n++;
	return n;
}

static long at_ns(const cJSON *e)
{
	return (long)(num(e, "ts") * 1000 + 0.5);
}

static long end_ns(const cJSON *e)
{
	return at_ns(e) + (long)(num(e, "dur") * 1000 + 0.5);
}

/* The X event of a class that starts there. */
static cJSON *slice(const struct trace *r, const char *cat, long ns)
{
	cJSON *e;

	cJSON_ArrayForEach(e, r->events)
	{
		if (!strcmp(str(e, "ph"), "X") && !strcmp(str(e, "cat"), cat) && at_ns(e) == ns)
			return e;
	}
	return NULL;
}

static const char *track_name(const struct trace *r, double tid)
{
	cJSON *e;

	cJSON_ArrayForEach(e, r->events)
	{
		if (!strcmp(str(e, "name"), "thread_name") && num(e, "tid") == tid)
			return str(cJSON_GetObjectItem(e, "args"), "name");
	}
	return "";
}

struct drawn {
	double tid;
	long start_ns, end_ns;
	int place;
};

static int by_drawing(const void *x, const void *y)
{
	const struct drawn *a = x, *b = y;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->place - b->place;
}

/* As Perfetto draws: by time, at equal times as the file has them, on a stack. Slices that would be dropped. */
static int dropped(const struct trace *r)
{
	int n = 0, bad = 0, depth = 0, max = cJSON_GetArraySize(r->events), i;
	struct drawn *d = calloc((size_t)max + 1, sizeof(*d));
	long *stack = calloc((size_t)max + 1, sizeof(*stack));
	cJSON *e;

	cJSON_ArrayForEach(e, r->events)
	{
		if (strcmp(str(e, "ph"), "X"))
			continue;
		d[n] = (struct drawn){num(e, "tid"), at_ns(e), end_ns(e), n};
		n++;
	}
	qsort(d, (size_t)n, sizeof(*d), by_drawing);
	for (i = 0; i < n; i++) {
		if (i && d[i].tid != d[i - 1].tid)
			depth = 0;
		while (depth && stack[depth - 1] <= d[i].start_ns)
			depth--;
		if (depth && d[i].end_ns > stack[depth - 1])
			bad++;
		else
			stack[depth++] = d[i].end_ns;
	}
	free(d);
	free(stack);
	return bad;
}

/* ---- a recording with everything in it, as the engine of a framework makes it */

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
	/* What a viewer is picky about: same start, empty, adjacent. */
	at = i * 10000;
	span(t, WAIT, PID, at, at);
	span(t, WAIT, PID, at, at + 100);
	span(t, API, PID, at, at + 100);
	span(t, API, PID, at + 100, at + 200);
	span(t, API, PID, at + 150, at + 300); /* overlaps */
	span(t, API, PID, at + 300, at + 300);
	span(t, API, PID, at + 300, at + 300);
}

static void test_times(void)
{
	TEST("times are us from the window's start with exactly three decimals, exact to the ns")
	{
		struct tape t = tape_new();
		struct trace r;

		span(&t, API, PID, 1, 2);
		span(&t, API, PID, 1000125, 1000125 + 999);
		span(&t, API, PID, 86400000000001ull, 86400000000001ull + 1000001);
		r = trace_of(&t);
		CHECK(strstr(r.text, "\"ts\":0.001,\"dur\":0.001,"));
		CHECK(strstr(r.text, "\"ts\":1000.125,\"dur\":0.999,"));
		CHECK(strstr(r.text, "\"ts\":86400000000.001,\"dur\":1000.001,"));
		CHECK(strstr(r.text, "\"baseTimeNanoseconds\":1795145533000000123,"));
		CHECK(!strcmp(str(r.json, "displayTimeUnit"), "ns"));
		trace_free(&r);
		tape_free(&t);
	}

	TEST("a span that began before the window moves the base, no time is negative")
	{
		struct tape t = tape_new();
		struct trace r;

		span(&t, API, PID, (uint64_t)-1000, 500);
		r = trace_of(&t);
		CHECK(strstr(r.text, "\"ts\":0.000,\"dur\":1.500,"));
		CHECK(strstr(r.text, "\"baseTimeNanoseconds\":1795145532999999123,"));
		trace_free(&r);
		tape_free(&t);
	}
}

static void test_arrows(void)
{
	TEST("an arrow leaves at its source's start and enters its operator at the operator's start")
	{
		struct tape t = tape_new();
		struct trace r;
		cJSON *s, *f;

		edge(&t, PID, 600, 100, 0xabc);
		span(&t, WAIT, PID, 200, 300); /* a child that has ended: where an `s` at 600 would wrongly bind */
		op(&t, PID + 1, 800, 900, 0xabc);
		span(&t, API, PID, 100, 1000);
		r = trace_of(&t);
		s = event(&r, "s", 0);
		f = event(&r, "f", 0);
		CHECK(s && f && at_ns(s) == 100 && num(s, "tid") == PID && num(s, "pid") == PID);
		CHECK(f && at_ns(f) == 800 && num(f, "tid") == PID + 1 && !strcmp(str(f, "bp"), "e"));
		CHECK(s && f && num(s, "id") > 0 && num(s, "id") == num(f, "id"));
		CHECK(s && !strcmp(str(s, "cat"), str(f, "cat")) && !strcmp(str(s, "name"), str(f, "name")));
		CHECK(num(r.other, "arrows") == 1 && num(r.other, "arrows_unmatched") == 0);
		CHECK(!strcmp(str(cJSON_GetObjectItem(slice(&r, "cpu_op", 800), "args"), "link"), "0xabc"));
		trace_free(&r);
		tape_free(&t);
	}

	TEST("a link handed over again before it ran: first in, first out, in order of time")
	{
		struct tape t = tape_new();
		struct trace r;
		cJSON *s;

		edge(&t, PID, 110, 100, 7);
		span(&t, API, PID, 100, 150);
		edge(&t, PID, 210, 200, 7);
		span(&t, API, PID, 200, 250);
		/* The second to start is the first to end. */
		async_op(&t, PID + 2, 400, 500, 7);
		async_op(&t, PID + 1, 300, 600, 7);
		r = trace_of(&t);
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
		trace_free(&r);
		tape_free(&t);
	}

	TEST("a link is not taken by an operator that started before it was handed over")
	{
		struct tape t = tape_new();
		struct trace r;

		op(&t, PID + 1, 50, 60, 7);
		edge(&t, PID, 110, 100, 7);
		span(&t, API, PID, 100, 150);
		op(&t, PID + 1, 110, 400, 7);
		r = trace_of(&t);
		CHECK(count(&r, "f") == 1 && at_ns(event(&r, "f", 0)) == 110);
		trace_free(&r);
		tape_free(&t);
	}

	TEST("an edge without source or operator makes no arrow, takes its turn, and is counted")
	{
		struct tape t = tape_new();
		struct trace r;

		edge(&t, PID, 110, 100, 7); /* its source was lost */
		edge(&t, PID, 210, 200, 7);
		span(&t, API, PID, 200, 250);
		edge(&t, PID, 260, 255, 7); /* its operator was lost */
		edge(&t, PID, 261, 255, 0);
		span(&t, API, PID, 255, 270);
		op(&t, PID + 1, 300, 310, 7);
		op(&t, PID + 1, 320, 330, 7);
		op(&t, PID + 1, 340, 350, 8);
		r = trace_of(&t);
		CHECK(count(&r, "s") == 1 && count(&r, "f") == 1);
		CHECK(at_ns(event(&r, "s", 0)) == 200 && at_ns(event(&r, "f", 0)) == 320);
		CHECK(num(r.other, "arrows") == 1 && num(r.other, "arrows_unmatched") == 3);
		trace_free(&r);
		tape_free(&t);
	}

	TEST("links of two processes are two links")
	{
		struct tape t = tape_new();
		struct trace r;

		edge(&t, PID, 110, 100, 7);
		span(&t, API, PID, 100, 150);
		span(&t, OP, PID + 90, 200, 210)->link = 7;
		((struct mxbpf_span *)(t.recs.data + t.recs.len) - 1)->h.tgid = PID + 90;
		op(&t, PID + 1, 300, 310, 7);
		r = trace_of(&t);
		CHECK(count(&r, "f") == 1 && at_ns(event(&r, "f", 0)) == 300);
		trace_free(&r);
		tape_free(&t);
	}

	TEST("an arrow that would arrive before it left is not drawn")
	{
		struct tape t = tape_new();
		struct trace r;

		edge(&t, PID, 100, 100, 7);
		op(&t, PID + 1, 100, 310, 7);
		span(&t, API, PID, 100, 400);
		r = trace_of(&t);
		CHECK(!count(&r, "s") && !count(&r, "f") && num(r.other, "arrows_unmatched") == 1);
		trace_free(&r);
		tape_free(&t);
	}
}

static void test_lanes(void)
{
	TEST("asynchronous spans have lanes of their own, as few as needed, and never overlap")
	{
		struct tape t = tape_new();
		struct trace r;
		int i, k, lanes = 0;

		for (i = 0; i < 50; i++)
			for (k = 0; k < 3; k++)
				async_op(&t, PID + 1, (uint64_t)(i * 30 + k * 10), (uint64_t)(i * 30 + k * 10 + 30), 0);
		op(&t, PID + 1, 5, 2000, 0);
		r = trace_of(&t);
		CHECK(count(&r, "X") == 151 && !dropped(&r));
		for (i = 0; event(&r, "M", i); i++)
			lanes += num(event(&r, "M", i), "tid") > SNK_PLAN_LANE_TID &&
				 !strcmp(str(event(&r, "M", i), "name"), "thread_name");
		CHECK(lanes == 3);
		CHECK(!strcmp(track_name(&r, SNK_PLAN_LANE_TID + 1), "async 1"));
		CHECK(!strcmp(track_name(&r, SNK_PLAN_LANE_TID + 3), "async 3"));
		/* What the lane hides: where it ran. */
		CHECK(num(cJSON_GetObjectItem(slice(&r, "cpu_op", 0), "args"), "thread") == PID + 1);
		CHECK(num(cJSON_GetObjectItem(slice(&r, "cpu_op", 0), "args"), "end_thread") == PID + 2);
		CHECK(num(slice(&r, "cpu_op", 5), "tid") == PID + 1);
		trace_free(&r);
		tape_free(&t);
	}

	TEST("lanes of two processes have different thread ids")
	{
		struct tape t = tape_new();
		struct trace r;

		async_op(&t, PID + 1, 0, 100, 0);
		async_op(&t, PID + 1, 10, 100, 0);
		((struct mxbpf_span *)(t.recs.data + t.recs.len) - 1)->h.tgid = PID - 1;
		r = trace_of(&t);
		CHECK(num(slice(&r, "cpu_op", 0), "tid") != num(slice(&r, "cpu_op", 10), "tid"));
		CHECK(!strcmp(track_name(&r, num(slice(&r, "cpu_op", 10), "tid")), "async 1"));
		trace_free(&r);
		tape_free(&t);
	}

	TEST("an arrow's ends are on the lane of a span that is on one")
	{
		struct tape t = tape_new();
		struct trace r;
		struct mxbpf_span *s;

		edge(&t, PID, 50, 10, 7);
		s = span(&t, API, PID, 10, 60);
		s->flags = MXBPF_SPAN_ASYNC;
		async_op(&t, PID + 1, 100, 200, 7);
		r = trace_of(&t);
		CHECK(num(event(&r, "s", 0), "tid") == num(slice(&r, "c_api", 10), "tid"));
		CHECK(num(event(&r, "f", 0), "tid") == num(slice(&r, "cpu_op", 100), "tid"));
		CHECK(num(event(&r, "s", 0), "tid") > SNK_PLAN_LANE_TID);
		trace_free(&r);
		tape_free(&t);
	}

	TEST("a span that overlaps its thread's stack is drawn, on a lane")
	{
		struct tape t = tape_new();
		struct trace r;

		op(&t, PID, 100, 200, 0);
		op(&t, PID, 150, 250, 0);
		op(&t, PID, 250, 300, 0);
		op(&t, PID, 90, 400, 0);
		r = trace_of(&t);
		CHECK(count(&r, "X") == 4 && !dropped(&r));
		CHECK(num(slice(&r, "cpu_op", 150), "tid") > SNK_PLAN_LANE_TID);
		CHECK(num(slice(&r, "cpu_op", 90), "tid") == PID && num(slice(&r, "cpu_op", 250), "tid") == PID);
		trace_free(&r);
		tape_free(&t);
	}

	TEST("whatever the spans and their order, none overlaps on its track and none is missing")
	{
		unsigned seed = 1;
		int round, i;

		for (round = 0; round < 200; round++) {
			struct tape t = tape_new();
			struct trace r;

			t.window_recs = 7;
			for (i = 0; i < 60; i++) {
				uint64_t at = (uint64_t)rand_r(&seed) % 100, n = (uint64_t)rand_r(&seed) % 20;
				struct mxbpf_span *s = span(&t, OP, PID + (uint32_t)(rand_r(&seed) % 2), at, at + n);

				s->flags = rand_r(&seed) % 4 ? 0 : MXBPF_SPAN_ASYNC;
			}
			r = trace_of(&t);
			CHECK(count(&r, "X") == 60 && !dropped(&r));
			trace_free(&r);
			tape_free(&t);
		}
	}

	TEST("of spans that start together the outer one is first in the file")
	{
		struct tape t = tape_new();
		struct trace r;
		int i;

		span(&t, WAIT, PID, 100, 110);
		op(&t, PID, 100, 200, 0);
		span(&t, API, PID, 100, 200);
		r = trace_of(&t);
		for (i = 0; i < 3; i++) {
			static const char *const order[] = {"c_api", "cpu_op", "wait"};

			CHECK(!strcmp(str(event(&r, "X", i), "cat"), order[i]));
			CHECK(num(event(&r, "X", i), "tid") == PID);
		}
		trace_free(&r);
		tape_free(&t);
	}

	TEST("a span over more spans than are remembered goes to a lane, not over them")
	{
		struct tape t = tape_new();
		struct snk_plan p = {.first_ns = UINT64_MAX};
		struct mxbpf_span *s;
		uint64_t i;

		for (i = 0; i < SNK_PLAN_OPEN_MAX + 10; i++)
			op(&t, PID, i * 10, i * 10 + 5, 0);
		span(&t, API, PID, 1, i * 10);
		span(&t, API, PID, i * 10 - 40, i * 10 + 1);
		for (s = (struct mxbpf_span *)t.recs.data; s < (struct mxbpf_span *)(t.recs.data + t.recs.len); s++)
			CHECK(!snk_plan_survey(&p, &s->h));
		CHECK(!snk_plan_finish(&p));
		for (i = 0; i < SNK_PLAN_OPEN_MAX + 10; i++)
			snk_plan_place(&p, (struct mxbpf_span *)t.recs.data + i);
		CHECK(snk_plan_place(&p, s - 2).tid == SNK_PLAN_LANE_TID + 1);
		CHECK(snk_plan_place(&p, s - 1).tid == PID);
		snk_plan_fini(&p);
		tape_free(&t);
	}
}

static void test_memory(void)
{
	TEST("memory is a running value in order of time across windows, never below zero")
	{
		static const double want[] = {0, 100, 300, 50, 0, 10};
		struct tape t = tape_new();
		struct trace r;
		int i;

		t.window_recs = 2;
		alloc(&t, 400, -250);
		alloc(&t, 200, 100);
		alloc(&t, 100, -999); /* allocated before the window */
		alloc(&t, 300, 200);
		alloc(&t, 600, 10);
		alloc(&t, 500, -51);
		r = trace_of(&t);
		CHECK(count(&r, "C") == 6);
		for (i = 0; i < 6; i++) {
			cJSON *e = event(&r, "C", i);

			CHECK(num(cJSON_GetObjectItem(e, "args"), "bytes") == want[i]);
			CHECK(at_ns(e) == (i + 1) * 100 && num(e, "pid") == PID);
			CHECK(!strcmp(str(e, "name"), "memory cpu/0"));
		}
		trace_free(&r);
		tape_free(&t);
	}
}

static void test_names(void)
{
	TEST("hostile names are valid JSON and stay what they are")
	{
		struct tape t = tape_new();
		char longest[MXBPF_NAME_BYTES_MAX];
		struct trace r;

		memset(longest, 1, sizeof(longest));
		name(&t, 77, MXBPF_NAME_SPAN, longest, sizeof(longest));
		name(&t, PID, MXBPF_NAME_THREAD, "a\"\\\n\xff", 5);
		name(&t, OP, MXBPF_NAME_SPAN, "x\"},{\"ph\":\"X\"\x02\xc3\x28", 17);
		op(&t, PID, 100, 200, 0);
		span(&t, OP, PID, 300, 400)->name_id = 77;
		span(&t, OP, PID, 500, 600)->name_id = 0;
		r = trace_of(&t);
		CHECK(count(&r, "X") == 3);
		CHECK(!strcmp(str(slice(&r, "cpu_op", 100), "name"), "x\"},{\"ph\":\"X\"\x02\xef\xbf\xbd("));
		CHECK(strlen(str(slice(&r, "cpu_op", 300), "name")) == sizeof(longest));
		CHECK(!strcmp(str(slice(&r, "cpu_op", 500), "name"), "[unreadable]"));
		CHECK(!strcmp(track_name(&r, PID), "a\"\\\n\xef\xbf\xbd"));
		trace_free(&r);
		tape_free(&t);
	}

	TEST("processes and threads are named, the main thread first, lanes last")
	{
		struct tape t = tape_new();
		struct trace r;
		cJSON *e;

		name(&t, PID - 2, MXBPF_NAME_THREAD, "older", 5);
		op(&t, PID + 3, 10, 20, 0);
		op(&t, PID - 2, 10, 20, 0);
		op(&t, PID, 10, 20, 0);
		async_op(&t, PID + 3, 10, 20, 0);
		r = trace_of(&t);
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
		trace_free(&r);
		tape_free(&t);
	}
}

static void test_whole(void)
{
	TEST("the trace says its window, its loss, its probes and what was cut")
	{
		struct tape t = tape_new();
		struct trace r = trace_of(&t);
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
		/* Nothing recorded is a valid trace, too. */
		CHECK(!count(&r, "X") && count(&r, "M") == 1);
		trace_free(&r);
		tape_free(&t);
	}

	TEST("slices and counters are as many as the tables count, and arrows have unique ids with two ends")
	{
		static const char *const cats[] = {[API] = "c_api", [OP] = "cpu_op", [WAIT] = "wait"};
		struct tape t = tape_new();
		struct hash ids = {0};
		struct trace r;
		int cls;
		size_t n, i;
		cJSON *e;

		t.window_recs = 64;
		rich_tape(&t);
		r = trace_of(&t);
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
		trace_free(&r);
		tape_free(&t);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		struct tape t = tape_new();
		int ret;

		rich_tape(&t);
		ret = tape_write(&t, argv[1]);
		tape_free(&t);
		return ret ? 1 : 0;
	}
	test_times();
	test_arrows();
	test_lanes();
	test_memory();
	test_names();
	test_whole();
	UNIT_MAIN_END;
}
