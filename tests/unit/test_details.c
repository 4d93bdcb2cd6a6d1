// SPDX-License-Identifier: Apache-2.0
/* Tests rows of one name that differ in shapes or stacks, in every view that can show them. */

#include "feature/backward/backward.h"
#include "printed.h"
#include "records.h"
#include "schema.h"
#include "view/priv.h"

#define OP MXBPF_CLASS_OPERATOR

/* Returns what a view prints of m. The caller frees it. */
static char *render(const char *view, struct mdl *m, const struct view_opts *opts)
{
	struct mdl_session s = {.comm = "python", .cmdline = "train.py", .class_title = {[OP] = "ops"}};
	const struct view_input in = {.session = &s, .model = m};

	return printed(view_find(view), &in, opts);
}

static void put_span(struct buf *b, uint64_t dur_ns, uint64_t args_id, uint64_t stack_id)
{
	struct mxbpf_span s = {
		.h = {MXBPF_SPAN, sizeof(s), 77, 1000},
		.dur_ns = dur_ns,
		.self_ns = dur_ns,
		.name_id = 5,
		.cls = OP,
		.args_id = args_id,
		.stack_id = stack_id,
	};

	buf_put(b, &s, sizeof(s));
}

/*
 * Shapes 1 and 2 differ only in their types, 3 differs in dimensions, and 4 is malformed. Stacks 1 and 2 differ in
 * their third line.
 */
static struct mdl *model(void)
{
	struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};

	put_name(&b, 5, MXBPF_NAME_SPAN, "aten::mm");
	put_name(&b, 1, MXBPF_NAME_ARGS, "[[8,3],[]]\n[\"float\",\"\"]\n[[3,1],[]]");
	put_name(&b, 2, MXBPF_NAME_ARGS, "[[8,3],[]]\n[\"double\",\"\"]\n[[3,1],[]]");
	put_name(&b, 3, MXBPF_NAME_ARGS, "[[8,-3],[[1],[2,2]]]\n[]\n[]");
	put_name(&b, 4, MXBPF_NAME_ARGS, "[1], \"no\": [2]\n[]\n[]");
	put_name(&b, 1, MXBPF_NAME_STACK, "a.py(1): f\nb.py(2): \"g\"\nc.py(3): h");
	put_name(&b, 2, MXBPF_NAME_STACK, "a.py(1): f\nb.py(2): \"g\"\nd.py(4): i");
	put_span(&b, 1000, 1, 1);
	put_span(&b, 2000, 2, 2);
	put_span(&b, 4000, 3, 1);
	put_span(&b, 8000, 4, 9);
	put_span(&b, 16000, 0, 0);
	CHECK(!mdl_feed(m, b.data, b.len));
	return m;
}

static size_t count(const char *text, const char *word)
{
	size_t n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

static void check_json(struct mdl *m, const struct view_opts *opts, size_t nrows, const char *has, const char *has2)
{
	FREED(memory_freed) char *t = render("json", m, opts);

	CHECK(follows_schema(t));
	CHECK(count(t, "\"aten::mm\"") == nrows && strstr(t, has) && strstr(t, has2));
}

static void test_json(struct mdl *m)
{
	check_json(m, &(struct view_opts){0}, 1, "\"device\": null, \"count\": 5, \"total_ns\": 31000", "");
	check_json(m, &(struct view_opts){.by = VIEW_BY_SHAPE}, 3,
		   "\"shapes\": [[8,3],[]], \"count\": 2, \"total_ns\": 3000",
		   "\"shapes\": [], \"count\": 2, \"total_ns\": 24000");
	check_json(
		m, &(struct view_opts){.by = VIEW_BY_STACK}, 3,
		"\"stack\": [\"a.py(1): f\", \"b.py(2): \\\"g\\\"\", \"c.py(3): h\"], \"count\": 2, \"total_ns\": 5000",
		"\"stack\": [], \"count\": 2");
	check_json(m, &(struct view_opts){.by = VIEW_BY_STACK, .stack_depth = 2}, 2,
		   "\"stack\": [\"a.py(1): f\", \"b.py(2): \\\"g\\\"\"], \"count\": 3, \"total_ns\": 7000", "");
}

static void test_csv(struct mdl *m)
{
	FREED(memory_freed) char *t = render("csv", m, &(struct view_opts){0});

	CHECK(!strstr(t, "shapes") && count(t, "aten::mm") == 1);
	free(t);
	t = render("csv", m, &(struct view_opts){.by = VIEW_BY_SHAPE});
	CHECK(strstr(t, "window_ns,annotation,pid,shapes\n") && strstr(t, ",\"[[8,3],[]]\"\n") &&
	      count(t, "aten::mm") == 3);
	free(t);
	t = render("csv", m, &(struct view_opts){.by = VIEW_BY_STACK, .stack_depth = 2, .continued = true});
	CHECK(!strstr(t, ",stack\n") && strstr(t, ",\"a.py(1): f;b.py(2): \"\"g\"\"\"\n") && strstr(t, ",\n\"loss\""));
}

static void test_modern(struct mdl *m)
{
	FREED(memory_freed) char *t = render("modern", m, &(struct view_opts){.by = VIEW_BY_STACK, .width = 40});

	CHECK(strstr(t, "\n    a.py(1): f\n    b.py(2): \"g\"\n    c.py(3): h\naten::mm "));
	CHECK(strstr(t, " in 3 rows\n"));
	free(t);
	t = render("modern", m, &(struct view_opts){.by = VIEW_BY_SHAPE, .width = 20});
	CHECK(strstr(t, "\n    [[8,-3],\xe2\x80\xa6[2,2]]]\n") && strstr(t, "\n    [[8,3],[]]\n"));
}

static void test_hostile_shapes(void)
{
	static const char *const good[] = {"[]", "[[]]", "[[0,10,-3],[[7],[]]]", "[-1]"};
	static const char *const bad[] = {"",	   "[",	       "]",	"[]]",	 "[[]",	  "[01]",  "[-]", "[1-]",
					  "[--1]", "[,1]",     "[1,]",	"[1][]", "[] []", "[1 2]", "1",	  "-",
					  "[a]",   "[[1][2]]", "[1[]]", "[]1",	 "[+1]",  "[1.5]"};
	const size_t ngood = sizeof(good) / sizeof(*good);
	const char *text;
	char line[64], *t;
	struct mdl *m;
	struct buf b;
	size_t i;

	for (i = 0; i < ngood + sizeof(bad) / sizeof(*bad); i++) {
		text = i < ngood ? good[i] : bad[i - ngood];
		m = mdl_new();
		b = (struct buf){0};
		put_name(&b, 1, MXBPF_NAME_ARGS, text);
		put_span(&b, 100, 1, 0);
		CHECK(!mdl_feed(m, b.data, b.len));
		t = render("json", m, &(struct view_opts){.by = VIEW_BY_SHAPE});
		snprintf(line, sizeof(line), "\"shapes\": %s, \"count\"", i < ngood ? text : "[]");
		CHECK(strstr(t, line));
		free(t);
		buf_fini(&b);
		mdl_free(m);
	}
}

/* torch's tables do not show shapes of lists of tensors, so calls that differ only there share a row. */
static void test_as_torch(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	struct buf b = {0};

	put_name(&b, 5, MXBPF_NAME_SPAN, "aten::cat");
	put_name(&b, 1, MXBPF_NAME_ARGS, "[[[8,3],[]],[2]]\n[]\n[]");
	put_name(&b, 2, MXBPF_NAME_ARGS, "[[[[1]],[8]],[2]]\n[]\n[]");
	put_name(&b, 3, MXBPF_NAME_ARGS, "[[],[2]]\n[]\n[]");
	put_name(&b, 4, MXBPF_NAME_ARGS, "[[3],[2]]\n[]\n[]");
	put_span(&b, 100, 1, 0);
	put_span(&b, 100, 2, 0);
	put_span(&b, 100, 3, 0);
	put_span(&b, 100, 4, 0);
	CHECK(!mdl_feed(m, b.data, b.len));
	buf_fini(&b);
	FREED(memory_freed) char *t = render("torch", m, &(struct view_opts){.by = VIEW_BY_SHAPE});
	CHECK(strstr(t, "             3       [[], [2]]  \n") && strstr(t, "             1      [[3], [2]]  \n"));
	CHECK(count(t, "aten::cat") == 2);
	free(t);
	t = render("modern", m, &(struct view_opts){.by = VIEW_BY_SHAPE});
	CHECK(count(t, "aten::cat") == 4 && strstr(t, "\n    [[[8,3],[]],[2]]\n"));
}

/* Recordings may hold very long shapes; a column shows their beginning. */
static void test_long_shapes(void)
{
	static const char *const views[] = {"torch", "torch-classic", "modern", "csv", "json"};
	static uint64_t room[(sizeof(struct mxbpf_name) + MXBPF_TEXT_BYTES_MAX) / 8];
	struct mxbpf_name *n = (struct mxbpf_name *)room;
	FREED(model_freed) struct mdl *m = mdl_new();
	struct buf b = {0};
	size_t i;
	char *t;

	n->h = (struct mxbpf_rec){.kind = MXBPF_NAME, .size = sizeof(room)};
	n->id = 1;
	n->kind = MXBPF_NAME_ARGS;
	n->len = MXBPF_TEXT_BYTES_MAX - 1;
	for (i = 0; i < n->len; i++)
		n->text[i] = i % 2 ? '8' : ',';
	n->text[0] = '[';
	n->text[n->len - 1] = ']';
	buf_put(&b, n, sizeof(room));
	put_name(&b, 5, MXBPF_NAME_SPAN, "aten::mm");
	put_span(&b, 100, 1, 0);
	CHECK(!mdl_feed(m, b.data, b.len));
	buf_fini(&b);
	for (i = 0; i < sizeof(views) / sizeof(*views); i++) {
		t = render(views[i], m, &(struct view_opts){.by = VIEW_BY_SHAPE});
		CHECK(count(t, "aten::mm") == 1 && strstr(t, "[8,"));
		free(t);
	}
}

static void test_module(void)
{
	FREED(model_freed) struct mdl *m = model();
	struct buf b = {0};

	put_name(&b, 20, MXBPF_NAME_STACK, "a.py(1): f\nnn.Module: Linear\nnn.Module: Net");
	put_name(&b, 21, MXBPF_NAME_STACK, "nn.Module: Linear");
	put_name(&b, 22, MXBPF_NAME_STACK, "a.py(1): not nn.Module: Linear");
	put_span(&b, 100, 1, 20);
	put_span(&b, 100, 1, 21);
	put_span(&b, 100, 1, 22);
	CHECK(!mdl_feed(m, b.data, b.len));
	buf_fini(&b);
	check_json(m, &(struct view_opts){.by = VIEW_BY_MODULE}, 2, "\"stack\": [\"nn.Module: Linear\"], \"count\": 2",
		   "\"stack\": [], \"count\": 6");
	FREED(memory_freed) char *t = render("torch", m, &(struct view_opts){.by = VIEW_BY_MODULE});
	CHECK(strstr(t, "  nn.Module: Linear      \n") && !strstr(t, "Net"));
}

static void test_bound(void)
{
	FREED(model_freed) struct mdl *m = model();
	struct mxbpf_tally c = {
		.h = {MXBPF_TALLY, sizeof(c), 77, 0}, .value = 1234, .id = MXBPF_TALLY_UNGROUPED, .cls = OP};

	CHECK(!mdl_feed(m, &c, sizeof(c)));
	FREED(memory_freed) char *t = render("torch", m, &(struct view_opts){.by = VIEW_BY_SHAPE});
	CHECK(strstr(t, "\n# UNTOLD   1,234 calls are only in the row of their name"));
	free(t);
	t = render("torch", m, &(struct view_opts){0});
	CHECK(!strstr(t, "UNTOLD"));
	free(t);
	check_json(m, &(struct view_opts){.by = VIEW_BY_SHAPE}, 3, "\"ungrouped\": 1234,", "");
	t = render("csv", m, &(struct view_opts){.by = VIEW_BY_SHAPE});
	CHECK(strstr(t, "\"window\",\"ungrouped\",,1234,"));
}

/* Makes two ids with the name aten::mm, as for two ways to call it, and aten::t, which is short. */
static struct mdl *joined(void)
{
	struct backward_row j = {.tgid = 77, .name_id = 5, .count = 2, .total_ns = 2000};
	struct mxbpf_tally c = {
		.h = {MXBPF_TALLY, sizeof(c), 77, 0}, .value = 3, .id = MXBPF_TALLY_UNJOINED, .cls = OP};
	struct mdl *m = model();
	FREED(buf_fini) struct buf b = {0};

	j.bwd_count = 3;
	j.bwd_total_ns = 5000;
	put_name(&b, 7, MXBPF_NAME_SPAN, "aten::mm");
	put_name(&b, 9, MXBPF_NAME_SPAN, "aten::t");
	CHECK(!mdl_table_add(m, &feature_backward, &backward_table, &j));
	j.name_id = 7;
	j.deep_count = 1;
	j.deep_total_ns = 7000;
	CHECK(!mdl_table_add(m, &feature_backward, &backward_table, &j));
	j = (struct backward_row){.tgid = 77, .name_id = 9, .count = 9, .bwd_count = 1, .bwd_total_ns = 40};
	CHECK(!mdl_table_add(m, &feature_backward, &backward_table, &j));
	buf_put(&b, &c, sizeof(c));
	CHECK(!mdl_feed(m, b.data, b.len));
	return m;
}

static void test_backward(void)
{
	const struct view_opts with = {.backward = true};
	FREED(model_freed) struct mdl *m = joined();
	FREED(memory_freed) char *t = render("modern", m, &with);

	CHECK(strstr(t, "\nforward and backward: 2 operators\n"
			"name     calls forward backward  deeper   total ratio\n"
			"aten::mm     4 4.00 us  10.0 us 7.00 us 21.0 us  4.25\n"
			"aten::t      9    0 ns    40 ns    0 ns   40 ns     -\n"
			"3 backward nodes are listed under their own names: their operator ran before the window or "
			"cannot be seen\n\n"));
	free(t);
	t = render("torch", m, &(struct view_opts){.backward = true, .sort = VIEW_SORT_COUNT, .top = 1});
	CHECK(strstr(t, "\n# forward and backward: 2 operators, of which 1 are shown\n# name "));
	CHECK(strstr(t, "\n# aten::t     9 ") && !strstr(t, "# aten::mm "));
	free(t);
	check_json(m, &with, 2,
		   "\"backward\": {\"unjoined\": 3, \"operators\": [\n    {\"name\": \"aten::mm\", \"count\": 4, "
		   "\"total_ns\": 4000, \"backward_count\": 6, \"backward_ns\": 10000, \"deeper_count\": 1, "
		   "\"deeper_ns\": 7000},",
		   "\"aten::t\"");
	t = render("csv", m, &with);
	CHECK(strstr(t, "window_ns,annotation,pid,backward_count,backward_ns,deeper_count,deeper_ns\n"));
	CHECK(strstr(t, "\"backward\",\"aten::mm\",,4,4000,,") && strstr(t, ",6,10000,1,7000\n"));
	CHECK(strstr(t, "\n\"window\",\"unjoined\",,3,") && count(t, "\n\"backward\",") == 2);
	free(t);
	t = render("json", m, &(struct view_opts){0});
	CHECK(!strstr(t, "backward"));
}

/* Memory after the text is not accessible. */
static void test_endless(void)
{
	static const char *const texts[] = {"[[[1,2]", "]]", "[[[[[[["};
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *room = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), to[64];
	size_t i, len;

	CHECK(room != MAP_FAILED && !mprotect(room + page, page, PROT_NONE));
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		len = strlen(texts[i]);
		memcpy(room + page - len, texts[i], len);
		CHECK(view_flat_shapes(room + page - len, len, to) <= len);
	}
	munmap(room, 2 * page);
}

int main(void)
{
	FREED(model_freed) struct mdl *m = model();

	TEST("json has one row per name, or one per shape or stack top, and malformed shapes count as none")
	test_json(m);
	TEST("csv has one row per name, or one per shape or stack top, and a column for it")
	test_csv(m);
	TEST("modern prints shapes and stacks in lines below the row and shortens long lines in the middle")
	test_modern(m);
	TEST("shapes that are not lists of numbers are shown as empty")
	test_hostile_shapes();
	TEST("torch layouts leave out shapes of lists of tensors, as torch's own tables do")
	test_as_torch();
	TEST("shapes of the maximum length harm no view")
	test_long_shapes();
	TEST("shapes with unbalanced brackets are read only to the end of the text")
	test_endless();
	TEST("grouping by module uses the innermost module of the stack")
	test_module();
	TEST("the number of calls without a row of their own is shown where rows have details")
	test_bound();
	TEST("the backward table has one row per operator name with its backward time, and the number of unjoined "
	     "nodes")
	test_backward();
	UNIT_MAIN_END;
}
