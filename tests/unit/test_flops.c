// SPDX-License-Identifier: Apache-2.0
/* Tests estimates of floating-point operations, and how views show output shapes. */
#include "feature/flops/flops.h"

#include "mxbpf_config.h"
#include "printed.h"
#include "records.h"
#include "schema.h"

#define OP MXBPF_CLASS_OPERATOR

static enum flops_estimate estimate(const char *name, const char *in, const char *in_types, const char *out,
				    uint64_t *flops)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s\n%s\n[]\n%s\n[]", in, in_types, out);

	*flops = 0;
	return flops_estimate(name, strlen(name), text, (size_t)n, flops);
}

/* Checks an estimate; flops 0: none is expected. */
static void check(const char *name, const char *in, const char *out, uint64_t flops)
{
	uint64_t got;
	enum flops_estimate known = estimate(name, in, "[]", out, &got);

	CHECK(known == (flops ? FLOPS_KNOWN : FLOPS_UNKNOWN) && got == flops);
	if (got != flops)
		printf("# %s %s -> %s: %llu, not %llu\n", name, in, out, (unsigned long long)got,
		       (unsigned long long)flops);
}

static void test_forward(void)
{
	check("Convolution", "[[2,3,8,8],[4,3,3,3],[4]]", "[[2,4,8,8]]", 2ull * 2 * 4 * 8 * 8 * 3 * 9);
	check("Convolution", "[[2,4,9,9],[6,2,3,3]]", "[[2,6,4,4]]",
	      2ull * 2 * 6 * 16 * 2 * 9);						      /* two groups, stride 2 */
	check("Convolution", "[[2,9,9,4],[6,3,3,4]]", "[[2,7,7,6]]", 2ull * 2 * 49 * 6 * 36); /* channels last */
	check("Convolution", "[[2,4,11],[5,4,3]]", "[[2,5,9]]", 2ull * 2 * 5 * 9 * 12);
	check("Deconvolution", "[[2,4,9,9],[4,3,3,3]]", "[[2,3,19,19]]", 2ull * 2 * 4 * 81 * 27);
	check("FullyConnected", "[[2,4,8],[5,32],[5]]", "[[2,5]]", 2ull * 2 * 5 * 32);
	check("FullyConnected", "[[2,4,8],[5,8],[5]]", "[[2,4,5]]", 2ull * 8 * 5 * 8); /* only the last axis */
	check("dot", "[[3,5],[5,4]]", "[[3,4]]", 2ull * 3 * 5 * 4);
	check("dot", "[[5,3],[4,5]]", "[[3,4]]", 2ull * 3 * 5 * 4); /* both are transposed */
	check("dot", "[[5],[5]]", "[[1]]", 2ull * 5);
	check("dot", "[[6,3,5],[5,4]]", "[[6,3,4]]", 2ull * 18 * 5 * 4);
	check("batch_dot", "[[6,3,5],[6,4,5]]", "[[6,3,4]]", 2ull * 6 * 3 * 5 * 4);
	check("dot", "[[3000000000,3000000000],[3000000000,3000000000]]", "[[3000000000,3000000000]]", 0);
}

/* PyTorch's calls have no outputs: their text has three lines. */
static void check_inputs(const char *name, const char *in, uint64_t flops)
{
	char text[256];
	const int n = snprintf(text, sizeof(text), "%s\n[]\n[]", in);
	uint64_t got = 0;

	CHECK(flops_estimate(name, strlen(name), text, (size_t)n, &got) == (flops ? FLOPS_KNOWN : FLOPS_UNKNOWN) &&
	      got == flops);
}

static void test_torch(void)
{
	check_inputs("aten::mm", "[[3,5],[5,4]]", 2ull * 3 * 5 * 4);
	check_inputs("aten::addmm", "[[4],[3,5],[5,4],[],[]]", 2ull * 3 * 5 * 4);
	check_inputs("aten::bmm", "[[6,3,5],[6,5,4]]", 2ull * 6 * 3 * 5 * 4);
	check_inputs("aten::baddbmm", "[[6,3,4],[6,3,5],[6,5,4]]", 2ull * 6 * 3 * 5 * 4);
	check_inputs("aten::linear", "[[2,3,5],[4,5],[4]]", 2ull * 6 * 5 * 4);
	check_inputs("aten::mm", "[[3,5],[4,5]]", 0);
	check_inputs("aten::bmm", "[[6,3,5],[5,5,4]]", 0);
	check_inputs("aten::mm", "[[3,5]]", 0);
	check_inputs("Convolution", "[[2,3,8,8],[4,3,3,3],[4]]", 0); /* it needs its output */
}

static void test_backward(void)
{
	const uint64_t conv = 2ull * 2 * 4 * 8 * 8 * 3 * 9;

	check("_backward_Convolution", "[[2,4,8,8],[2,3,8,8],[4,3,3,3],[4]]", "[[2,3,8,8],[4,3,3,3],[4]]", 2 * conv);
	check("_backward_Convolution", "[[2,4,8,8],[2,3,8,8],[4,3,3,3],[4]]", "[\"unwanted\",[4,3,3,3],[4]]", conv);
	check("_backward_FullyConnected", "[[2,5],[2,32],[5,32]]", "[[2,32],[5,32],[5]]", 4ull * 2 * 5 * 32);
	check("_backward_dot", "[[3,4],[3,5],[5,4]]", "[[3,5],[5,4]]", 4ull * 3 * 5 * 4);
}

/* No estimate is better than one that might be wrong. */
static void test_unknown(void)
{
	static const struct {
		const char *name, *in, *types, *out;
	} none[] = {
		{"Convolution", "[[2,3,8,8]]", "[]", "[[2,4,8,8]]"},
		{"Convolution", "[[2,3,8,8],[4,3,3,3]]", "[]", "[\"unknown\"]"},
		{"Convolution", "[\"unreadable\",[4,3,3,3]]", "[]", "[[2,4,8,8]]"},
		{"Convolution", "[[2,3,8,8],[4,3,3,3]]", "[]", "[[2,7,8,8]]"},
		{"Convolution", "[[2,3,8,8],[4,3,3,3]]", "[]", "[]"},
		{"Convolution", "[[2,3,8,8],[4,3,3,3]]", "[]", "[[0,4,8,8]]"},
		{"Convolution", "[[2,3,-1,8],[4,3,3,3]]", "[]", "[[2,4,8,8]]"},
		{"Convolution", "\"too many\"", "[]", "[[2,4,8,8]]"},
		{"Convolution", "[[2,3,8,8],[4,3,3,3]", "[]", "[[2,4,8,8]]"},
		{"Convolution", "[[2,3,8,8],[4,3,3,3]]", "[]", ""},
		{"Convolution", "", "", ""},
		{"FullyConnected", "[[2,4,8],[5,31]]", "[]", "[[2,5]]"},
		{"FullyConnected", "[[2,4,8],[5,8]]", "[]", "[[2,5]]"},
		{"dot", "[[3,5],[6,4]]", "[]", "[[3,4]]"},
		{"dot", "[[],[6,4]]", "[]", "[[6,4]]"},
		{"dot", "[[3,5],[5,4]]", "[\"float32 csr\",\"float32\"]", "[[3,4]]"},
		{"batch_dot", "[[6,3,5],[5,4,5]]", "[]", "[[6,3,4]]"},
	};
	uint64_t flops;
	size_t i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		CHECK(estimate(none[i].name, none[i].in, none[i].types, none[i].out, &flops) == FLOPS_UNKNOWN &&
		      !flops);
	CHECK(estimate("sum", "[[2]]", "[]", "[[1]]", &flops) == FLOPS_OTHER);
	CHECK(flops_estimate("dot", 3, NULL, 0, &flops) == FLOPS_UNKNOWN);
}

/* Truncates a text at every length and damages each of its characters, for the sanitizers. */
static void test_hostile(void)
{
	const char *whole =
		"[[2,3,8,8],[4,3,3,3],\"unwanted\"]\n[\"float32\",\"float32 csr\"]\n[]\n[[2,4,8,8]]\n[\"a\"]";
	size_t len = strlen(whole), i;
	uint64_t flops;

	for (i = 0; i < 2 * len; i++) {
		FREED(memory_freed) char *text = strndup(whole, i < len ? i : len);

		if (i >= len)
			text[i - len] = '\n';
		flops_estimate("Convolution", 11, text, strlen(text), &flops);
	}
	CHECK(true);
}

/* Returns what a view prints of m. The caller frees it. */
static char *render(const char *view, struct mdl *m, enum view_by by)
{
	struct mdl_session s = {.comm = "python",
				.cmdline = "train.py",
				.class_title = {[OP] = "ops"},
				.details = MXBPF_DETAIL_ARGS | MXBPF_DETAIL_OUTPUTS};
	const struct view_input in = {.session = &s, .model = m};
	const struct view_opts opts = {.by = by, .width = 120};

	return printed(view_find(view), &in, &opts);
}

static void put_span(struct buf *b, uint64_t name_id, uint64_t args_id, uint32_t tid, uint32_t device)
{
	struct mxbpf_span s = {.h = {MXBPF_SPAN, sizeof(s), 77, 1000},
			       .dur_ns = 1000,
			       .self_ns = 1000,
			       .name_id = name_id,
			       .cls = OP,
			       .tid = tid,
			       .end_tid = tid,
			       .device = device,
			       .args_id = args_id};

	buf_put(b, &s, sizeof(s));
}

/*
 * Has dot with two shapes, dot with unknown shapes, and an operator without an estimate; two threads, one of them with
 * two devices.
 */
static struct mdl *model(bool tells_threads)
{
	struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};

	if (tells_threads)
		mdl_tell_threads(m);
	put_name(&b, 5, MXBPF_NAME_SPAN, "dot");
	put_name(&b, 6, MXBPF_NAME_SPAN, "sum");
	put_name(&b, 1, MXBPF_NAME_ARGS, "[[3,5],[5,4]]\n[\"float32\",\"float32\"]\n[[],[]]\n[[3,4]]\n[\"float32\"]");
	put_name(&b, 2, MXBPF_NAME_ARGS, "[[3,5],[5,4]]\n[\"float16\",\"float16\"]\n[[],[]]\n[[3,4]]\n[\"float32\"]");
	put_name(&b, 3, MXBPF_NAME_ARGS, "[\"unreadable\",[5,4]]\n[\"\",\"float32\"]\n[[],[]]\n[[3,4]]\n[\"float32\"]");
	put_name(&b, 4, MXBPF_NAME_ARGS, "[]\n[]\n[]\n[[4],\"unwanted\"]\n[\"int8\",\"\"]");
	put_span(&b, 5, 1, 21, 1 << 16);
	put_span(&b, 5, 1, 21, 1 << 16);
	put_span(&b, 5, 2, 22, 1 << 16);
	put_span(&b, 5, 3, 22, 2 << 16);
	put_span(&b, 6, 4, 22, 1 << 16);
	CHECK(!mdl_feed(m, b.data, b.len));
	return m;
}

static void check_json(struct mdl *m, enum view_by by, const char *has, const char *has2)
{
	FREED(memory_freed) char *t = render("json", m, by);

	CHECK(follows_schema(t));
	CHECK(strstr(t, has) && strstr(t, has2));
	if (!strstr(t, has) || !strstr(t, has2))
		printf("# %s\n", t);
}

static void test_tables(struct mdl *m)
{
	check_json(m, VIEW_BY_SHAPE,
		   "\"shapes\": [[3,5],[5,4]], \"types\": [\"float32\",\"float32\"], \"output_shapes\": [[3,4]], "
		   "\"output_types\": [\"float32\"], \"count\": 2",
		   "\"flops\": 240, \"flops_calls\": 2, \"flops_ns\": 2000, \"gflop_per_s\": 0.12}");
	check_json(m, VIEW_BY_SHAPE, "\"shapes\": [\"unreadable\",[5,4]], ", "\"flops_unknown\": 1}");
	check_json(m, VIEW_BY_NAME, "\"flops\": 360, \"flops_calls\": 3, \"flops_ns\": 3000, \"gflop_per_s\": 0.12}",
		   "\"flops_unknown\": 1}");
	FREED(memory_freed) char *t = render("csv", m, VIEW_BY_SHAPE);
	CHECK(strstr(
		t, ",shapes,types,output_shapes,output_types,flops,flops_calls,flops_ns,flops_unknown,gflop_per_s\n"));
	CHECK(strstr(t, ",\"[[3,5],[5,4]]\",\"[\"\"float32\"\",\"\"float32\"\"]\",\"[[3,4]]\","
			"\"[\"\"float32\"\"]\",240,2,2000,0,0.12\n"));
	free(t);
	t = render("modern", m, VIEW_BY_SHAPE);
	CHECK(strstr(t, "\n    [[3,5],[5,4]] -> [[3,4]] float32\n"));
	CHECK(strstr(t, "\n    [[3,5],[5,4]] -> [[3,4]] [\"float16\",\"float16\"] -> [\"float32\"]\n"));
	CHECK(strstr(t, "\n    [\"unreadable\",[5,4]] -> [[3,4]] float32\n"));
	CHECK(strstr(t, "\n    [] -> [[4],\"unwanted\"] int8\n"));
	CHECK(strstr(t, " flop GFLOP/s\n") && strstr(t, " 240    0.12\n"));
	CHECK(strstr(t, "estimated for 3 convolutions and matrix products"));
	CHECK(strstr(t, "1 more have no estimate"));
}

static void test_runners(void)
{
	FREED(model_freed) struct mdl *m = model(true);
	char *t = render("modern", m, VIEW_BY_THREAD);

	CHECK(strstr(t, "\n21 ") && strstr(t, "\n22 ") && strstr(t, "in 2 rows"));
	free(t);
	check_json(m, VIEW_BY_THREAD, "\"name\": \"22\", \"device\": null, \"thread\": 22, \"count\": 3",
		   "\"thread\": 21");
	check_json(m, VIEW_BY_NAME, "\"name\": \"sum\", \"device\": \"dev1/0\", \"count\": 1",
		   "\"device\": \"dev1/0\", \"count\": 3");
	t = render("torch", m, VIEW_BY_THREAD); /* this layout always merges processes, but not threads */
	CHECK(strstr(t, " 21 ") && strstr(t, " 22 "));
	free(t);
	mdl_free(m);
	m = model(false);
	check_json(m, VIEW_BY_DEVICE, "\"device\": \"dev1/0\", \"count\": 4", "\"device\": \"dev2/0\", \"count\": 1");
}

int main(void)
{
	struct mdl *m;

	m = model(false);
	TEST("the estimate of a forward operator follows its definition for any layout, groups, strides and "
	     "transposition")
	test_forward();
	TEST("matrix products of PyTorch have an estimate from their inputs alone")
	test_torch();
	TEST("the estimate of a backward operator counts each requested gradient")
	test_backward();
	TEST("there is no estimate if shapes are missing, do not fit, or belong to sparse storage")
	test_unknown();
	TEST("hostile text is read within its bounds")
	test_hostile();
	TEST("every table has shapes, types, estimates and rates, and the number of calls without an estimate")
	test_tables(m);
	TEST("grouping by thread or device puts all of its operators in one row")
	test_runners();
	mdl_free(m);
	UNIT_MAIN_END;
}
