// SPDX-License-Identifier: Apache-2.0
/*
 * Tests that nested time is counted once: rows of threads, devices and names, headings and shares, with made-up
 * records.
 */

#include "printed.h"
#include "records.h"
#include "schema.h"

#define OP	MXBPF_CLASS_OPERATOR
#define WINDOW	1000000ull
#define THREADS 3
#define NAMES	5
#define DEEP	6

static struct buf recs;
static uint64_t busy_ns[THREADS]; /* time in any call, for each thread */

/* Half of a call's time is run-queue wait; the same holds for its nested calls. */
static struct mxbpf_span span(uint32_t tid, uint64_t start, uint64_t dur, uint64_t nested)
{
	return (struct mxbpf_span){
		.h = {MXBPF_SPAN, sizeof(struct mxbpf_span), 7, start},
		.dur_ns = dur,
		.self_ns = dur - nested,
		.name_id = 1 + 2 * (start % NAMES),
		.tid = tid,
		.end_tid = tid,
		.device = MXBPF_DEVICE(1, tid % 2),
		.cls = OP,
		.flags = MXBPF_SPAN_ACCOUNT,
		.alloc_bytes = (int64_t)dur,
		.self_alloc_bytes = (int64_t)(dur - nested),
		.account = {.on_cpu_ns = dur - dur / 2, .runq_ns = dur / 2, .nivcsw = 2},
		.counters = {dur},
		.nested = {.runq_ns = nested / 2, .nivcsw = nested ? 1 : 0},
	};
}

/* Adds a call from start to end with nested calls, in the order in which they end. */
static void call(uint32_t tid, uint64_t start, uint64_t end, unsigned depth)
{
	uint64_t at = start + 2, nested = 0, len = (end - start) / 4 * 2;
	struct mxbpf_span s;

	for (; depth < DEEP && at + len < end && len > 2; at += len + 2, nested += len)
		call(tid, at, at + len, depth + 1);
	s = span(tid, start, end - start, nested);
	buf_put(&recs, &s, sizeof(s));
}

static struct mdl *threads_model(void)
{
	struct mdl *m = mdl_new();
	uint64_t at;
	uint32_t t;

	mdl_tell_threads(m);
	for (t = 0; t < THREADS; t++)
		for (at = 100 * t; at + 90000 < WINDOW; at += 100000) {
			call(21 + t, at, at + 80000, 0);
			busy_ns[t] += 80000;
		}
	CHECK(!mdl_feed(m, recs.data, recs.len));
	recs.len = 0;
	return m;
}

/* Returns the model after a recording has been written and read. */
static struct mdl *recorded(const struct mdl *m)
{
	struct mdl *again = mdl_new_like(m);
	FREED(buf_fini) struct buf b = {0};

	CHECK(!mdl_emit(m, &b) && !mdl_feed(again, b.data, b.len));
	return again;
}

static char *render(const char *view, struct mdl *m, struct view_opts opts)
{
	struct mdl_session s = {.comm = "python",
				.cmdline = "",
				.hostname = "",
				.mxbpf_version = "",
				.duration_ns = WINDOW,
				.account = true,
				.class_title = {[OP] = "operator"}};
	const struct view_input in = {.session = &s, .model = m};

	return printed(view_find(view), &in, &opts);
}

static uint64_t number(const cJSON *row, const char *key)
{
	const cJSON *n = cJSON_GetObjectItem(row, key);

	return n ? (uint64_t)n->valuedouble : 0;
}

/* Returns the rows of the table. The caller deletes *root. */
static const cJSON *rows_by(struct mdl *m, enum view_by by, cJSON **root)
{
	FREED(memory_freed) char *text = render("json", m, (struct view_opts){.by = by});

	CHECK(follows_schema(text));
	*root = cJSON_Parse(text);
	return cJSON_GetObjectItem(cJSON_GetObjectItem(*root, "tables"), "operator")->child;
}

/* Checks a row with calls of many names: all its sums must be self times of its calls. */
static void check_own(const cJSON *row, uint64_t most)
{
	const cJSON *a = cJSON_GetObjectItem(row, "account");
	const uint64_t total = number(row, "total_ns"), runq = number(a, "runq_ns");

	CHECK(total && total <= most && total == number(row, "self_ns"));
	CHECK(number(row, "alloc_bytes") == total && number(row, "self_alloc_bytes") == total);
	CHECK(runq > total / 3 && runq <= total && number(a, "on_cpu_ns") + runq == total);
	CHECK(number(a, "nivcsw") < 2 * number(row, "count"));
}

static void test_threads(struct mdl *m)
{
	uint64_t sum = 0;
	const cJSON *row;
	cJSON *root;

	for (row = rows_by(m, VIEW_BY_THREAD, &root); row; row = row->next) {
		check_own(row, WINDOW);
		CHECK(number(row, "total_ns") == busy_ns[number(row, "thread") - 21]);
	}
	cJSON_Delete(root);
	for (row = rows_by(m, VIEW_BY_DEVICE, &root); row; row = row->next)
		check_own(row, WINDOW * THREADS), sum += number(row, "total_ns");
	cJSON_Delete(root);
	CHECK(sum == busy_ns[0] + busy_ns[1] + busy_ns[2]);
}

/* Rows by name keep their total times, whose sum exceeds the time of the threads. */
static void test_names(struct mdl *m)
{
	uint64_t total = 0, self = 0;
	const cJSON *row;
	cJSON *root;

	for (row = rows_by(m, VIEW_BY_NAME, &root); row; row = row->next) {
		total += number(row, "total_ns");
		self += number(row, "self_ns");
	}
	cJSON_Delete(root);
	CHECK(self == busy_ns[0] + busy_ns[1] + busy_ns[2] && total > self + self / 2);
}

/* Reads the time in the heading of the table and the sum of its shares. */
static void read_heading(struct mdl *m, enum view_by by, double *ms, double *shares)
{
	FREED(memory_freed) char *text = render("modern", m, (struct view_opts){.by = by, .width = 200});
	char *line, *save = NULL, *at;
	double total;

	*ms = *shares = 0;
	CHECK(sscanf(text, "operator: %lf ms", ms) == 1);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, "share ", 6))
			break;
		for (at = strchr(line, '%'); at && at > line && !strchr(" ", at[-1]); at--)
			;
		if (at && sscanf(at, "%lf%%", &total) == 1)
			*shares += total;
	}
}

static void test_headings(struct mdl *m)
{
	static const enum view_by bys[] = {VIEW_BY_NAME,  VIEW_BY_SHAPE,  VIEW_BY_STACK, VIEW_BY_MODULE,
					   VIEW_BY_LAYER, VIEW_BY_DEVICE, VIEW_BY_THREAD};
	const double busy_ms = (double)(busy_ns[0] + busy_ns[1] + busy_ns[2]) / 1e6;
	double ms, shares;
	size_t i;

	for (i = 0; i < sizeof(bys) / sizeof(bys[0]); i++) {
		read_heading(m, bys[i], &ms, &shares);
		CHECK(ms > busy_ms * 0.99 && ms < busy_ms * 1.01 && shares > 99 && shares < 101);
	}
}

/* Annotations of a program with names like MXNet's bulks and segments, and one with the name of an operator. */
static struct mdl *annotated(void)
{
	static const char *const names[] = {"a,b", "[pl][profile]run", "", "ImperativeBulk", "aten::mm"};
	struct mdl *m = mdl_new();
	struct mxbpf_span s;
	uint64_t i, k;

	for (i = 0; i < 5; i++)
		put_name(&recs, 1 + 2 * i, MXBPF_NAME_SPAN, names[i]);
	put_name(&recs, 99, MXBPF_NAME_SPAN, "aten::mm");
	for (i = 0; i < 95; i++) {
		s = span(21, 1000 * i, 1000, i < 5 ? 900 : 0);
		s.flags |= i < 5 ? MXBPF_SPAN_USER : 0;
		s.name_id = i < 5 ? 9 : 99;
		buf_put(&recs, &s, sizeof(s));
	}
	for (k = 0; k < 4; k++) {
		s = span(21, 100000 + 1000 * k, 1000, 950);
		s.flags |= MXBPF_SPAN_USER;
		s.name_id = 1 + 2 * k;
		buf_put(&recs, &s, sizeof(s));
	}
	CHECK(!mdl_feed(m, recs.data, recs.len));
	recs.len = 0;
	return m;
}

static unsigned count_rows(const char *text, const char *name)
{
	unsigned n = 0;

	for (; (text = strstr(text, name)); text++)
		n++;
	return n;
}

static void test_annotations(struct mdl *m)
{
	FREED(memory_freed) char *t = render("json", m, (struct view_opts){0});
	CHECK(strstr(t, "\"name\": \"aten::mm\", \"device\": \"dev1/1\", \"count\": 90,"));
	CHECK(strstr(t, "\"name\": \"aten::mm\", \"device\": \"dev1/1\", \"count\": 5,"));
	CHECK(count_rows(t, "\"annotation\": true") == 5 && !strstr(t, "\"bulks\""));
	free(t);
	t = render("csv", m, (struct view_opts){0});
	CHECK(count_rows(t, "\"operator\",\"aten::mm\"") == 2);
	free(t);
	t = render("modern", m, (struct view_opts){.width = 200});
	CHECK(strstr(t, "\naten::mm (annotation) ") && strstr(t, "\naten::mm ") && !strstr(t, "a,b (annotation)"));
	free(t);
	t = render("torch", m, (struct view_opts){0});
	CHECK(count_rows(t, " aten::mm ") == 2);
	free(t);
	t = render("torch-classic", m, (struct view_opts){0}); /* in 2017 a row was one name */
	CHECK(count_rows(t, "aten::mm ") == 1 && strstr(t, " 95 "));
	free(t);
	t = render("mxnet", m, (struct view_opts){0});
	CHECK(strstr(t, "\nImperativeBulk ") && strstr(t, "\na,b "));
}

/* Three bulks with nested operators, and an operator of the same name without any. */
static void test_bulks(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	struct mxbpf_span s;
	unsigned i;

	put_name(&recs, 1, MXBPF_NAME_SPAN, "work");
	for (i = 0; i < 4; i++) {
		s = span(21, 1000 * i, 1000, i < 3 ? 800 : 0);
		s.name_id = 1;
		s.bulk = i < 3;
		buf_put(&recs, &s, sizeof(s));
	}
	CHECK(!mdl_feed(m, recs.data, recs.len));
	recs.len = 0;
	FREED(model_freed) struct mdl *again = recorded(m);
	FREED(memory_freed) char *t = render("json", again, (struct view_opts){0});
	CHECK(count_rows(t, "\"name\": \"work\"") == 1 && strstr(t, "\"count\": 4,") && strstr(t, "\"bulks\": 3,"));
	free(t);
	t = render("mxnet", again, (struct view_opts){0});
	CHECK(!strstr(t, "\nwork "));
	free(t);
	/* Self time of the bulks, and the call that was an operator. */
	t = render("json", again, (struct view_opts){.by = VIEW_BY_DEVICE});
	CHECK(strstr(t, "\"count\": 1, \"total_ns\": 1600,"));
}

/*
 * A record of the previous version has no bulk flag and no nested times, and counts all time of an asynchronous span
 * as self time.
 */
static void test_old(void)
{
	struct mxbpf_span old = span(21, 1000, 1000, 600), s;
	struct mxbpf_agg_account a = {
		.h = {MXBPF_AGG_ACCOUNT, MXBPF_AGG_ACCOUNT_BYTES_MIN, 7, 0}, .name_id = 1, .cls = OP};
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct mdl_row *r;
	size_t n;

	old.h.size = offsetof(struct mxbpf_span, nested);
	old.name_id = 1;
	old.device = 0;
	a.sum.runq_ns = 40;
	buf_put(&recs, &old, old.h.size);
	buf_put(&recs, &a, a.h.size);
	CHECK(!mdl_feed(m, recs.data, recs.len));
	r = mdl_rows(m, OP, &n)[0];
	CHECK(n == 1 && r->self_ns == 400 && !r->nbulks && r->account.runq_ns == 540 && !r->account.nested_runq_ns);
	((struct mxbpf_span *)recs.data)->flags |= MXBPF_SPAN_ASYNC;
	kind_span((const struct mxbpf_rec *)recs.data, &s);
	CHECK(!s.self_ns && s.dur_ns == 1000);
	recs.len = 0;
}

int main(void)
{
	struct mdl *m, *again;

	m = threads_model();
	again = recorded(m);
	TEST("a row by thread has at most the time of the window, and one by device that of its threads: only self "
	     "time counts")
	test_threads(m);
	test_threads(again);
	TEST("rows by name keep their total times, and self times add up to the time of the threads")
	test_names(again);
	TEST("the heading is the sum of self times and the shares add up to 100 % for every grouping")
	test_headings(m);
	mdl_free(m);
	mdl_free(again);
	m = annotated();
	again = recorded(m);
	TEST("an annotation is neither a bulk nor the operator of the same name")
	test_annotations(m);
	test_annotations(again);
	TEST("a span is a bulk if its flag says so, also after recording")
	test_bulks();
	TEST("records of the previous version can be read")
	test_old();
	mdl_free(m);
	mdl_free(again);
	buf_fini(&recs);
	UNIT_MAIN_END;
}
