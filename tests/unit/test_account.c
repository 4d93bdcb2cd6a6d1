/* SPDX-License-Identifier: Apache-2.0 */
/* Tests how accounts of spans add up and how outputs show them. The records contain arbitrary values. */

#include <cjson/cJSON.h>

#include "printed.h"
#include "records.h"

#define OP  MXBPF_CLASS_OPERATOR
#define MAX UINT64_MAX
#define ALL MXBPF_SPAN_ACCOUNT

static struct mxbpf_span last;

/* Adds a call of OP that takes 1 us and has account a. */
static void put_call(struct buf *b, uint64_t name_id, uint8_t flags, struct mxbpf_account a)
{
	last = (struct mxbpf_span){.h = {MXBPF_SPAN, sizeof(last), 77, 1000},
				   .dur_ns = 1000,
				   .self_ns = 1000,
				   .name_id = name_id,
				   .tid = 78,
				   .end_tid = 78,
				   .cls = OP,
				   .flags = flags,
				   .cpu = 3,
				   .account = a};
	buf_put(b, &last, sizeof(last));
}

static const struct mdl_row *row_of(struct mdl *m, struct buf *b)
{
	size_t n;

	CHECK(!feed(m, b));
	return mdl_rows(m, OP, &n)[0];
}

static bool same(const struct mdl_row *r, struct mxbpf_account_sum sum)
{
	return !memcmp(&r->account, &sum, sizeof(sum));
}

static void test_sums(struct buf *b)
{
	FREED(model_freed) struct mdl *m = mdl_new(), *again = mdl_new();
	FREED(buf_fini) struct buf recs = {0};
	const struct mdl_row *r;

	put_call(b, 5, ALL, (struct mxbpf_account){.on_cpu_ns = 300, .runq_ns = 200, .blocked_ns = 500, .nvcsw = 2});
	put_call(b, 5, ALL | MXBPF_SPAN_ASYNC,
		 (struct mxbpf_account){.on_cpu_ns = 100, .runq_ns = 50, .nivcsw = 1, .flags = MXBPF_ACCOUNT_PART});
	put_call(b, 5, ALL,
		 (struct mxbpf_account){.on_cpu_ns = 1000, .majflt = 9, .nvcsw = 1, .flags = MXBPF_ACCOUNT_MIGRATED});
	put_call(b, 5, 0, (struct mxbpf_account){.runq_ns = 7});
	r = row_of(m, b);
	CHECK(same(r, (struct mxbpf_account_sum){250, 500, 850, 3, 1, 0, 9, 1, 50, 0, 0, 1, 0, 0}) &&
	      mdl_on_cpu_ns(r) == 4000 - 1600);
	CHECK(!mdl_emit(m, &recs) && same(row_of(again, &recs), r->account));
}

static void test_short(struct buf *b)
{
	struct mxbpf_span s;

	put_call(b, 5, ALL, (struct mxbpf_account){.on_cpu_ns = 7, .runq_ns = 8, .flags = 0xff, .end_cpu = 9});
	((struct mxbpf_rec *)b->data)->size = MXBPF_SPAN_BYTES_PLAIN;
	kind_span((const struct mxbpf_rec *)b->data, &s);
	CHECK(s.account.on_cpu_ns == 1000 && !s.account.runq_ns && !s.account.flags && s.account.end_cpu == 3);
	((struct mxbpf_span *)b->data)->flags = 0;
	kind_span((const struct mxbpf_rec *)b->data, &s);
	CHECK(!s.account.on_cpu_ns && !s.account.end_cpu);
	b->len = 0;
}

static void test_lies(struct buf *b)
{
	const struct mxbpf_account lie = {MAX, MAX, MAX, ~0u, ~0u, ~0u, ~0u, ~0, 0xff, {0}};
	struct mxbpf_agg_account a = {
		.h = {MXBPF_AGG_ACCOUNT, sizeof(a), 77, 0}, .name_id = 5, .cls = OP, .sum = {.nvcsw = MAX}};
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct mdl_row *r;

	put_call(b, 5, ALL, lie);
	put_call(b, 5, ALL, lie);
	buf_put(b, &a, sizeof(a));
	a.name_id = 6; /* a row that does not exist */
	buf_put(b, &a, sizeof(a));
	r = row_of(m, b);
	CHECK(r->account.runq_ns == MAX && r->account.blocked_ns == MAX && r->account.nvcsw == MAX);
	CHECK(!mdl_on_cpu_ns(r) && !r->account.elsewhere_ns && r->account.migrated == 2);
}

/* ---- outputs */

static const void *tape;
static size_t tape_bytes;
static bool played;

static int rewind_tape(void *ctx)
{
	played = false;
	return 0;
}

static int next_of_tape(void *ctx, const void **recs, size_t *bytes)
{
	*recs = tape;
	*bytes = tape_bytes;
	played = !played;
	return played;
}

/* Returns what the view writes for the records in b; b keeps them. The caller frees the text. */
static char *render(const char *view, const struct buf *b, bool account, struct view_opts opts)
{
	struct mdl_session s = {.account = account, .comm = "c", .cmdline = "", .hostname = "", .mxbpf_version = ""};
	struct view_source source = {.rewind = rewind_tape, .next = next_of_tape};
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct view_input in = {.session = &s, .model = m, .source = &source};

	if (!strcmp(view, "kineto"))
		s.trace_form = "kineto";
	tape = b->data;
	tape_bytes = b->len;
	s.class_title[OP] = "operator";
	CHECK(!mdl_feed(m, b->data, b->len));
	return printed(view_find(s.trace_form ? "chrome" : view), &in, &opts);
}

static bool says(const char *view, const struct buf *b, struct view_opts opts, const char *text)
{
	FREED(memory_freed) char *all = render(view, b, true, opts);
	bool found = strstr(all, text);

	if (!found)
		printf("# %s\n", all);
	return found;
}

static bool silent(const struct buf *b, bool account, struct view_opts opts, const char *text)
{
	FREED(memory_freed) char *all = render("modern", b, account, opts);
	bool found = strstr(all, text);

	return !found;
}

static void test_modern(struct buf *b)
{
	struct view_opts narrow = {.width = 80}, wide = {.width = 160}, by_event = {.by = VIEW_BY_EVENT};
	unsigned i;

	for (i = 0; i < 200; i++) /* one call waited: 0.5 % of the table's time */
		put_call(b, 5, ALL, (struct mxbpf_account){.on_cpu_ns = i ? 1000 : 0, .runq_ns = i ? 0 : 1000});
	CHECK(silent(b, true, narrow, "runq") && says("modern", b, wide, "cpu runq blocked\n"));
	CHECK(says("modern", b, wide, " 100%  <1%       -\n") && silent(b, false, wide, "runq"));
	put_call(b, 6, ALL, (struct mxbpf_account){.on_cpu_ns = 400, .blocked_ns = 600, .nvcsw = 1});
	put_call(b, 7, ALL, (struct mxbpf_account){.on_cpu_ns = 100, .runq_ns = 600, .blocked_ns = 300, .nvcsw = 1});
	CHECK(silent(b, true, narrow, "runq"));
	for (i = 0; i < 5; i++)
		put_call(b, 7, ALL,
			 (struct mxbpf_account){
				 .on_cpu_ns = 0, .runq_ns = 1000, .flags = MXBPF_ACCOUNT_MIGRATED, .nvcsw = 1});
	CHECK(says("modern", b, narrow, "cpu runq\n") && silent(b, true, narrow, "cpu runq blocked"));
	CHECK(says("modern", b, narrow, "  2%  93%\n") && says("modern", b, narrow, "\naccount  "));
	CHECK(says("modern", b, narrow, "\n         5 blocked and ended on another CPU: cpu is up to 10 ms off"));
	CHECK(says("modern", b, by_event, "  cpu   runq blocked\n") &&
	      says("modern", b, by_event, "100ns  600ns   300ns\n"));
	b->len = 0;
}

static void test_trace(struct buf *b)
{
	put_call(b, 5, ALL, (struct mxbpf_account){.on_cpu_ns = 1000, .end_cpu = 3});
	CHECK(says("chrome", b, (struct view_opts){0}, "\"args\":{\"self_ns\":1000,\"cpu\":3}}"));
	b->len = 0;
	put_call(b, 5, ALL,
		 (struct mxbpf_account){
			 .on_cpu_ns = 1, .blocked_ns = 999, .end_cpu = 4, .nvcsw = 2, .minflt = 5, .flags = 1});
	CHECK(says("chrome", b, (struct view_opts){0},
		   "\"self_ns\":1000,\"cpu\":3,\"end_cpu\":4,\"on_cpu_us\":0.001,\"blocked_us\":0.999,\"nvcsw\":2,"
		   "\"minflt\":5,\"migrated\":true}}"));
	CHECK(says("kineto", b, (struct view_opts){0}, ",\"cpu\":3,\"end_cpu\":4,\"on_cpu_us\":0.001,"));
	b->len = 0;
	put_call(b, 5, 0, (struct mxbpf_account){.on_cpu_ns = 1, .nvcsw = 2});
	CHECK(says("chrome", b, (struct view_opts){0}, "\"args\":{\"self_ns\":1000}}"));
	b->len = 0;
}

/* Checks that the longest numbers fit into the reserved bytes and that JSON stays valid. */
static void test_long(struct buf *b)
{
	const struct mxbpf_account lie = {MAX, MAX - 1, MAX, ~0u, ~0u, ~0u, ~0u, 65535, 0xff, {0}};
	static const char *const views[] = {"chrome", "kineto", "json"};
	struct view_opts by_event = {.by = VIEW_BY_EVENT};
	struct mxbpf_span *s;
	size_t i;

	put_call(b, MAX, 0xff, lie);
	s = (struct mxbpf_span *)b->data;
	s->self_ns = s->link = s->seq = MAX;
	s->end_tid = s->device = ~0u;
	for (i = 0; i < 3; i++) {
		FREED(memory_freed) char *text = render(views[i], b, true, by_event);
		cJSON *root = cJSON_Parse(text);

		CHECK(root != NULL && strstr(text, "18446744073709551"));
		cJSON_Delete(root);
	}
	free(render("modern", b, true, by_event));
	free(render("modern", b, true, (struct view_opts){0}));
	CHECK(says("csv", b, by_event, ",18446744073709551614,18446744073709551615,0,4294967295,"));
	b->len = 0;
}

int main(void)
{
	FREED(buf_fini) struct buf b = {0};

	TEST("accounts add up, time on other threads counts as elsewhere, and emitted records give the same sums")
	{
		test_sums(&b);
	}
	TEST("a span record without account fields counts as on CPU for its whole duration if its account flag is set")
	{
		test_short(&b);
	}
	TEST("accounts that exceed the duration of the span neither overflow nor add time on CPU")
	{
		test_lies(&b);
	}
	TEST("a table shows an account column if a row waited for 1 % of its time or if it is wide enough, and always "
	     "for calls")
	{
		test_modern(&b);
	}
	TEST("a trace shows only the CPU of a call that stayed on it, and the nonzero account fields of other calls")
	{
		test_trace(&b);
	}
	TEST("the longest numbers break no output")
	{
		test_long(&b);
	}
	UNIT_MAIN_END;
}
