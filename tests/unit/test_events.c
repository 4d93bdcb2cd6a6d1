// SPDX-License-Identifier: Apache-2.0
/* Tests --by event, which lists the calls of a recording one by one. */
#include "view/view.h"

#include "mxbpf_config.h"
#include "schema.h"

#define OP     MXBPF_CLASS_OPERATOR
#define API    MXBPF_CLASS_API
#define NSPANS 10000

static char dir[] = "/tmp/mxbpf-test-XXXXXX";

/* A source of spans in a scattered order, in windows of 100 spans. */
struct tape {
	struct buf recs;
	size_t pos;
	int fail_at; /* number of the window that cannot be read; 0: none */
};

static int rewind_tape(void *ctx)
{
	((struct tape *)ctx)->pos = 0;
	return 0;
}

static int next_window(void *ctx, const void **recs, size_t *bytes)
{
	struct tape *t = ctx;
	size_t left = t->recs.len - t->pos, window = 100 * sizeof(struct mxbpf_span);

	if (t->fail_at && t->pos >= (size_t)t->fail_at * window)
		return -EIO;
	*recs = t->recs.data + t->pos;
	*bytes = left < window ? left : window;
	t->pos += *bytes;
	return *bytes > 0;
}

/* Returns what a view prints, or "" if it fails. The caller frees it. */
static char *render(const char *view, struct tape *t, unsigned details, const struct view_opts *opts)
{
	struct mdl_session s = {.comm = "python",
				.cmdline = "train.py",
				.details = details,
				.start_unix_ns = 1000000,
				.start_mono_ns = 1000,
				.class_title = {[OP] = "ops", [API] = "api"}};
	struct view_source source = {.rewind = rewind_tape, .next = next_window, .ctx = t};
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct view_input in = {.session = &s, .model = m, .source = &source};
	struct err e = {0};
	char path[64], *text = NULL;
	struct out *o;

	CHECK(!mdl_feed(m, t->recs.data, t->recs.len));
	snprintf(path, sizeof(path), "%s/out", dir);
	CHECK(!out_open(path, false, &o, &e));
	if (view_write(view_find(view), &in, opts, o, &e)) {
		out_abort(o);
		text = strdup("");
	} else {
		CHECK(!out_commit(o, &e));
		text = read_file(path);
	}
	unlink(path);
	return text;
}

/* Adds a span with name 2i+1 that starts at 1000 + i and lasts (7i mod NSPANS) + 1. */
static void put_span(struct tape *t, uint64_t i)
{
	struct mxbpf_span s = {
		.h = {MXBPF_SPAN, sizeof(s), 77, 1000 + i},
		.dur_ns = 7 * i % NSPANS + 1,
		.self_ns = 1,
		.name_id = 2 * i + 1,
		.tid = 78,
		.cls = OP,
	};

	buf_put(&t->recs, &s, sizeof(s));
}

static struct tape *tape(void)
{
	static struct tape t;
	uint64_t i;

	t.recs.len = 0;
	for (i = 0; i < NSPANS; i++)
		put_span(&t, i * 4001 % NSPANS);
	((struct mxbpf_span *)t.recs.data)[NSPANS / 2].cls = API;
	return &t;
}

/* Returns the start of the n-th event of a table, relative to the first event of all; UINT64_MAX if there is none. */
static uint64_t start_of(const cJSON *root, const char *table, int n)
{
	const cJSON *e = cJSON_GetArrayItem(cJSON_GetObjectItem(cJSON_GetObjectItem(root, "tables"), table), n);

	return e ? (uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(e, "start_unix_ns")) - 1000000 : UINT64_MAX;
}

static cJSON *json_of(struct tape *t, unsigned details, const struct view_opts *opts)
{
	FREED(memory_freed) char *text = render("json", t, details, opts);

	CHECK(follows_schema(text));
	return cJSON_Parse(text);
}

static void test_order(struct tape *t)
{
	FREED(json_freed)
	cJSON *root = json_of(t, 0, &(struct view_opts){.by = VIEW_BY_EVENT, .sort = VIEW_SORT_START});
	const cJSON *e;
	uint64_t last = 0, start;

	CHECK(start_of(root, "ops", NSPANS - 2) == NSPANS - 1 && start_of(root, "ops", NSPANS - 1) == UINT64_MAX);
	CHECK(!cJSON_GetObjectItem(root, "events_not_shown"));
	CHECK(start_of(root, "api", 0) == NSPANS / 2 * 4001ull % NSPANS && start_of(root, "api", 1) == UINT64_MAX);
	cJSON_ArrayForEach(e, cJSON_GetObjectItem(cJSON_GetObjectItem(root, "tables"), "ops"))
	{
		start = (uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(e, "start_unix_ns"));
		CHECK(start > last);
		last = start;
	}
}

static void test_first(struct tape *t)
{
	const struct view_opts opts = {.by = VIEW_BY_EVENT, .sort = VIEW_SORT_START, .top = 3};
	struct view_opts longest = {.by = VIEW_BY_EVENT, .sort = VIEW_SORT_TOTAL, .top = 2};
	FREED(json_freed) cJSON *root = json_of(t, 0, &opts);
	char *text;

	CHECK(start_of(root, "ops", 0) == 0 && start_of(root, "ops", 1) == 1 && start_of(root, "ops", 2) == 2);
	CHECK(start_of(root, "ops", 3) == UINT64_MAX && start_of(root, "api", 0) != UINT64_MAX);
	CHECK(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "events_not_shown")) == NSPANS - 1 - 3);
	cJSON_Delete(root);
	text = render("csv", t, 0, &opts);
	CHECK(strstr(text, "\n\"window\",\"events_not_shown\",,9996,"));
	free(text);
	text = render("modern", t, 0, &opts);
	CHECK(strstr(text, "ops: 9999 calls, of which 3 are shown\nname  thread    start time self\n"));
	CHECK(strstr(text, "\n[0x3]     78 0.000000  8ns  1ns\n") && strstr(text, "api: 1 call\n"));
	free(text);
	root = json_of(t, 0, &longest);
	CHECK(start_of(root, "ops", 0) * 7 % NSPANS == NSPANS - 1 &&
	      start_of(root, "ops", 1) * 7 % NSPANS == NSPANS - 2);
	cJSON_Delete(root);
	longest.ascending = true;
	root = json_of(t, 0, &longest);
	CHECK(start_of(root, "ops", 0) == 0 && start_of(root, "ops", 1) * 7 % NSPANS == 1);
}

static void put_stack(struct tape *t, uint64_t id, const char *text)
{
	char rec[48] = {0};
	struct mxbpf_name *n = (void *)rec;

	n->h = (struct mxbpf_rec){MXBPF_NAME, sizeof(rec), 77, 0};
	n->id = id;
	n->len = (uint32_t)strlen(text);
	n->kind = MXBPF_NAME_STACK;
	memcpy(n->text, text, n->len);
	buf_put(&t->recs, rec, sizeof(rec));
}

static void test_details(void)
{
	struct mxbpf_span s = {.h = {MXBPF_SPAN, sizeof(s), 77, 1000}, .dur_ns = 10, .name_id = 3, .cls = OP};
	struct tape t = {0};

	put_stack(&t, 7, "forward");
	put_stack(&t, 9, "backward");
	s.args_id = 5;
	s.stack_id = 7;
	s.seq = MXBPF_SEQ(1, 48);
	s.flags = MXBPF_SPAN_SEQ;
	buf_put(&t.recs, &s, sizeof(s));
	s.h.ts_ns = 2000;
	s.stack_id = 9;
	s.flags |= MXBPF_SPAN_BACKWARD | MXBPF_SPAN_UNWOUND;
	buf_put(&t.recs, &s, sizeof(s));
	FREED(memory_freed)
	char *text =
		render("csv", &t, MXBPF_DETAIL_ARGS | MXBPF_DETAIL_STACK, &(struct view_opts){.by = VIEW_BY_EVENT});
	CHECK(strstr(text, ",start_unix_ns,thread,unwound,shapes,stack\n\"ops\",") &&
	      strstr(text, ",1001000,0,1,\"[]\",\"forward\"\n"));
	free(text);
	text = render("csv", &t, MXBPF_DETAIL_ARGS, &(struct view_opts){.by = VIEW_BY_EVENT});
	CHECK(strstr(text, ",thread,unwound,shapes\n"));
	free(text);
	text = render("json", &t, MXBPF_DETAIL_STACK, &(struct view_opts){.by = VIEW_BY_EVENT});
	CHECK(strstr(text, "\"stack\": [\"forward\"], \"unwound\": true}") && !strstr(text, "shapes"));
	free(text);
	text = render("modern", &t, 0, &(struct view_opts){.by = VIEW_BY_EVENT});
	CHECK(strstr(text, " 10ns ") && strstr(text, " <10ns "));
	buf_fini(&t.recs);
}

static void test_unreadable(struct tape *t)
{
	char *text;

	t->fail_at = 5;
	text = render("modern", t, 0, &(struct view_opts){.by = VIEW_BY_EVENT});
	CHECK(!*text);
	free(text);
	t->fail_at = 0;
}

int main(void)
{
	struct tape *t = tape();

	if (!mkdtemp(dir))
		return 1;
	TEST("every call has its line, sorted by start, in the table of its class")
	test_order(t);
	TEST("--top keeps the first calls in the sort order and shows how many there are in all")
	test_first(t);
	TEST("calls have shapes and stacks if the session recorded them, and a backward call has its forward stack")
	test_details();
	TEST("a recording that cannot be read to its end gives an error")
	test_unreadable(t);
	buf_fini(&t->recs);
	rmdir(dir);
	UNIT_MAIN_END;
}
