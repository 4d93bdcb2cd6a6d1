// SPDX-License-Identifier: Apache-2.0
/*
 * Compares the tables of PyTorch layouts with what PyTorch itself prints for the same rows
 * (tests/golden/torch/make.py). Runs in the top folder.
 */

#include <glob.h>

#include "mxbpf_config.h"
#include "mxbpf_track.h"
#include "printed.h"
#include "schema.h"

#define OP     MXBPF_CLASS_OPERATOR
#define GOLDEN "tests/golden/torch/"

/* Spans of the current case in reverse order, as a source with one window. */
static struct buf events;
static bool events_read;

static int rewind_events(void *ctx)
{
	events_read = false;
	return 0;
}

static int next_events(void *ctx, const void **recs, size_t *bytes)
{
	*recs = events.data;
	*bytes = events.len;
	events_read = !events_read;
	return events_read;
}

/* Returns what a layout prints of m. The caller frees it. */
static char *render(const char *layout, struct mdl *m, const struct view_opts *opts)
{
	struct mdl_session s = {.comm = "python",
				.cmdline = "train.py",
				.details = MXBPF_DETAIL_ARGS | MXBPF_DETAIL_STACK,
				.class_title = {[OP] = "ops", [MXBPF_CLASS_API] = "api"}};
	struct view_source source = {.rewind = rewind_events, .next = next_events};
	const struct view_input in = {.session = &s, .model = m, .source = &source};

	return printed(view_find(layout), &in, opts);
}

struct row {
	uint64_t count, total_ns, self_ns;
	int64_t bytes, self_bytes;
	uint32_t tgid, device;
	unsigned cls;
	uint64_t id;	   /* 0: use a hash of the name */
	uint64_t start_ns; /* start of a single event; 0: the row is not an event */
};

/* Adds a name and returns its id: a hash unless an id is given. An empty detail has id 0. */
static uint64_t put_name(struct buf *b, enum mxbpf_name_kind kind, uint64_t id, const char *text)
{
	size_t len = strlen(text), size = sizeof(struct mxbpf_name) + (len + 7) / 8 * 8, i;
	struct mxbpf_name *n;

	if (kind != MXBPF_NAME_SPAN && !len)
		return 0;
	for (i = 0; i < len && (i || !id); i++)
		id = ((i ? id : 14695981039346656037ull) ^ (unsigned char)text[i]) * 1099511628211ull;
	n = buf_add(b, size);
	memset(n, 0, size);
	n->h = (struct mxbpf_rec){MXBPF_NAME, (uint16_t)size, 0, 0};
	n->kind = kind;
	n->id = id;
	n->len = (uint32_t)len;
	memcpy(n->text, text, len);
	return id;
}

static void put_event(const struct row *r, const struct mxbpf_group *g)
{
	struct mxbpf_span s = {
		.h = {MXBPF_SPAN, sizeof(s), r->tgid, r->start_ns},
		.dur_ns = r->total_ns,
		.self_ns = r->self_ns,
		.name_id = g->name_id,
		.cls = OP,
		.alloc_bytes = r->bytes,
		.self_alloc_bytes = r->self_bytes,
		.args_id = g->args_id,
		.stack_id = g->stack_id,
	};

	buf_put(&events, &s, sizeof(s));
}

static void feed_detailed(struct mdl *m, const struct row *r, const char *name, const char *shapes, const char *stack)
{
	struct mxbpf_group g = {.h = {MXBPF_GROUP, sizeof(g), 0, 0}};
	struct mxbpf_agg_mem mem = {.h = {MXBPF_AGG_MEM, sizeof(mem), r->tgid, 0}};
	struct mxbpf_agg agg = {.h = {MXBPF_AGG, sizeof(agg), r->tgid, 0}};
	FREED(buf_fini) struct buf b = {0};

	g.name_id = put_name(&b, MXBPF_NAME_SPAN, r->id, name);
	g.args_id = put_name(&b, MXBPF_NAME_ARGS, 0, shapes);
	g.stack_id = put_name(&b, MXBPF_NAME_STACK, 0, stack);
	g.id = agg.name_id = mem.name_id = mdl_group_id(&(struct mxbpf_group){
		.name_id = g.name_id, .args_id = g.args_id, .stack_id = g.stack_id, .layer_id = 0});
	if (r->start_ns)
		put_event(r, &g);
	if (g.id != g.name_id)
		buf_put(&b, &g, sizeof(g));
	agg.cls = mem.cls = (uint8_t)(r->cls ? r->cls : OP);
	agg.device = mem.device = r->device;
	agg.count = r->count;
	agg.total_ns = r->total_ns;
	agg.self_ns = r->self_ns;
	mem.alloc_bytes = r->bytes;
	mem.self_alloc_bytes = r->self_bytes;
	CHECK(!buf_put(&b, &agg, sizeof(agg)) && !buf_put(&b, &mem, sizeof(mem)) && !mdl_feed(m, b.data, b.len));
}

static void feed_row(struct mdl *m, const struct row *r, const char *name)
{
	feed_detailed(m, r, name, "", "");
}

/*
 * A line has calls (or the start of an event), total ns, self ns, bytes, self bytes and the name; then, separated by
 * tabs, the shapes and the lines of the stack.
 */
static struct mdl *read_rows(const char *path, bool are_events)
{
	FREED(file_closed) FILE *f = fopen(path, "r");
	struct mdl *m = mdl_new();
	char line[2048], *text, *shapes, *stack, *tab;
	struct row r;
	int name;

	CHECK(f);
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		r = (struct row){.tgid = 1};
		CHECK(sscanf(line, "%lu %lu %lu %ld %ld %n", &r.count, &r.total_ns, &r.self_ns, &r.bytes, &r.self_bytes,
			     &name) == 5);
		if (are_events) {
			r.start_ns = r.count;
			r.count = 1;
		}
		text = line + name;
		strsep(&text, "\t");
		shapes = strsep(&text, "\t");
		for (stack = text; text && (tab = strchr(text, '\t')); text = tab + 1)
			*tab = '\n';
		feed_detailed(m, &r, line + name, shapes ? shapes : "", stack ? stack : "");
	}
	return m;
}

/* Of an operator if calls is 0, else of kernels or copies. */
static void feed_work(struct mdl *m, uint64_t calls, uint64_t self_ns, uint64_t total_ns, const char *name)
{
	struct mxbpf_agg_gpu_work work = {.h = {MXBPF_AGG_GPU_WORK, sizeof(work), 1, 0}};
	struct mxbpf_agg_activity activity = {.h = {MXBPF_AGG_ACTIVITY, sizeof(activity), 1, 0}};
	FREED(buf_fini) struct buf b = {0};

	work.name_id = activity.name_id = put_name(&b, MXBPF_NAME_SPAN, 0, name);
	work.cls = OP;
	work.total.gpu_ns = total_ns;
	work.self.gpu_ns = self_ns;
	activity.cls = MXBPF_ACTIVITY_KERNEL;
	activity.count = calls;
	activity.total_ns = total_ns;
	CHECK(calls ? !buf_put(&b, &activity, sizeof(activity)) : !buf_put(&b, &work, sizeof(work)));
	CHECK(!mdl_feed(m, b.data, b.len));
}

/* A line has calls, self ns, total ns and the name. The file is optional. */
static void read_work(struct mdl *m, const char *path)
{
	FREED(file_closed) FILE *f = fopen(path, "r");
	uint64_t calls, self_ns, total_ns;
	char line[512];
	int name;

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		CHECK(sscanf(line, "%lu %lu %lu %n", &calls, &self_ns, &total_ns, &name) == 3);
		feed_work(m, calls, self_ns, total_ns, line + name);
	}
}

/* The file name is CASE.LAYOUT.KEY[.TOP].txt. The layout of 2017 sorts the smallest first. */
static void check_golden(const char *path)
{
	FREED(memory_freed) char *got = NULL, *want = NULL;
	char file[128], rows[256], *layout, *key, *top;
	struct view_opts opts = {0};

	snprintf(file, sizeof(file), "%s", path + strlen(GOLDEN));
	layout = strchr(file, '.');
	*layout++ = 0;
	key = strchr(layout, '.');
	*key++ = 0;
	top = strchr(key, '.');
	*top++ = 0;
	opts.sort = (enum view_sort)view_sort_find(key);
	opts.ascending = !strcmp(layout, "torch-classic");
	opts.top = (unsigned)strtoul(top, NULL, 10);
	opts.by = !strcmp(file, "shapes") ? VIEW_BY_SHAPE : !strcmp(file, "stacks") ? VIEW_BY_STACK : VIEW_BY_NAME;
	snprintf(rows, sizeof(rows), GOLDEN "%s.rows", file);
	opts.by = !strcmp(file, "events") ? VIEW_BY_EVENT : opts.by;
	events.len = 0;
	FREED(model_freed) struct mdl *m = read_rows(rows, opts.by == VIEW_BY_EVENT);
	snprintf(rows, sizeof(rows), GOLDEN "%s.work", file);
	read_work(m, rows);
	want = read_file(path);
	got = render(layout, m, &opts);
	if (strncmp(got, want, strlen(want)) || (got[strlen(want)] != '#')) {
		printf("# %s is not what is printed:\n%s", path, got);
		CHECK(!"as torch prints it");
	}
}

static void test_golden(void)
{
	glob_t files = {0};
	size_t i;

	CHECK(!glob(GOLDEN "*.torch*.txt", 0, NULL, &files) && files.gl_pathc > 20);
	for (i = 0; i < files.gl_pathc; i++)
		check_golden(files.gl_pathv[i]);
	globfree(&files);
}

static void test_merge(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();

	feed_row(m, &(struct row){1, 1000, 500, 2048, 1024, 1, 0, 0, 0, 0}, "aten::mm");
	feed_row(m, &(struct row){2, 3000, 3000, -1024, 0, 2, 0x10000, 0, 0, 0}, "aten::mm");
	feed_row(m, &(struct row){1, 2000, 500, 0, 0, 2, 0, 0, 77, 0}, "aten::mm"); /* from another library */
	feed_row(m, &(struct row){9, 9000, 9000, 0, 0, 2, 0, MXBPF_CLASS_API, 0, 0}, "Py_Main");
	FREED(memory_freed) char *t = render("torch", m, &(struct view_opts){0});
	CHECK(strstr(t, "\n    aten::mm       100.00%       4.000us       150.00%       6.000us       1.500us       "
			"1.00 KB       1.00 KB             4  \n"));
	CHECK(!strstr(t, "Py_Main"));
}

/* Work of one name in two processes, of an operator and of an annotation of the same name. */
static void test_gpu(void)
{
	struct mxbpf_agg_gpu_work work = {.h = {MXBPF_AGG_GPU_WORK, sizeof(work), 1, 0}, .cls = OP};
	struct mxbpf_span step = {.h = {MXBPF_SPAN, sizeof(step), 1, 0}, .dur_ns = 9000, .self_ns = 9000, .cls = OP};
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};

	feed_row(m, &(struct row){1, 1000, 500, 0, 0, 1, 0, 0, 0, 0}, "step");
	work.name_id = step.name_id = put_name(&b, MXBPF_NAME_SPAN, 0, "step");
	step.flags = MXBPF_SPAN_USER;
	buf_put(&b, &step, sizeof(step));
	work.total.gpu_ns = 2000;
	work.self.gpu_ns = 500;
	buf_put(&b, &work, sizeof(work));
	work.h.tgid = 2;
	buf_put(&b, &work, sizeof(work));
	work.user = 1;
	buf_put(&b, &work, sizeof(work));
	work.of = MXBPF_WORK_OF_OUTSIDE;
	buf_put(&b, &work, sizeof(work));
	CHECK(!mdl_feed(m, b.data, b.len));
	feed_work(m, 4, 7000, 7000, "gemm");
	FREED(memory_freed) char *t = render("torch", m, &(struct view_opts){0});
	/* The annotation has the work of operators in it, and none of its own. */
	CHECK(strstr(t, "       9.000us       0.000us         0.00%       1.500us       1.500us             1  \n"));
	CHECK(strstr(t, "       1.000us       1.000us        14.29%       4.000us       4.000us             1  \n"));
	CHECK(strstr(t, "       0.000us       7.000us       100.00%       7.000us       1.750us             4  \n"));
	CHECK(strstr(t, "\nSelf CUDA time total: 7.000us\n"));
	free(t);
	t = render("torch", m, &(struct view_opts){.by = VIEW_BY_SHAPE});
	CHECK(!strstr(t, "CUDA total") && !strstr(t, "gemm"));
	free(t);
	t = render("torch-classic", m, &(struct view_opts){0});
	CHECK(strstr(t, " CUDA total\n") && strstr(t, "4.000us\n") && !strstr(t, "gemm"));
}

static void test_json(void)
{
	FREED(memory_freed) char *t = NULL;
	FREED(model_freed) struct mdl *m = mdl_new();

	feed_row(m, &(struct row){.count = 1, .bytes = 2048, .self_bytes = -1024, .tgid = 1}, "aten::mm");
	feed_row(m, &(struct row){.count = 1, .tgid = 1}, "aten::t");
	feed_row(m, &(struct row){.count = 1, .tgid = 1, .cls = MXBPF_CLASS_API}, "Py_Main");
	t = render("json", m, &(struct view_opts){0});
	CHECK(follows_schema(t));
	CHECK(strstr(t, "\"alloc_bytes\": 2048, \"self_alloc_bytes\": -1024}"));
	CHECK(strstr(t, "\"alloc_bytes\": 0, \"self_alloc_bytes\": 0}"));
	CHECK(!strstr(strstr(t, "Py_Main"), "alloc_bytes"));
}

static void test_hostile(void)
{
	char name[MXBPF_NAME_BYTES_MAX + 1];
	FREED(model_freed) struct mdl *m = mdl_new();

	memset(name, 0xff, sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	feed_row(m, &(struct row){.count = 1, .tgid = 1}, name);
	feed_row(m, &(struct row){.count = 1, .total_ns = UINT64_MAX, .bytes = INT64_MIN, .tgid = 1}, "a\n\x1b[2J");
	FREED(memory_freed) char *t = render("torch", m, &(struct view_opts){0});
	CHECK(strstr(t, "\n\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff...  "));
	CHECK(strstr(t, " a\\x0a\\x1b[2J ") && strstr(t, " -8589934592.00 GB "));
	free(t);
	t = render("torch-classic", m, &(struct view_opts){0});
	CHECK(strlen(t) > 3 * 4 * MXBPF_NAME_BYTES_MAX && !strchr(t, 0x1b) && !strchr(t, 0xff));
}

static void test_cut(void)
{
	FREED(model_freed) struct mdl *m = read_rows(GOLDEN "real.rows", false);
	FREED(memory_freed) char *t = render("torch-classic", m, &(struct view_opts){.top = 2});

	CHECK(strstr(t, "\n# rows     ") && strstr(t, ", of which 2 are shown\n") && strstr(t, "\n# loss "));
	free(t);
	t = render("torch", m, &(struct view_opts){0});
	CHECK(!strstr(t, "\n# rows "));
}

/* The keys in the documentation of both profilers, and the aliases that they accept. */
static void test_keys(void)
{
	static const struct {
		const char *alias;
		enum view_sort key;
	} keys[] = {
		{"cpu_time", VIEW_SORT_AVG},
		{"cpu_time_total", VIEW_SORT_TOTAL},
		{"self_cpu_time_total", VIEW_SORT_SELF},
		{"count", VIEW_SORT_COUNT},
		{"cpu_memory_usage", VIEW_SORT_ALLOC},
		{"self_cpu_memory_usage", VIEW_SORT_SELF_ALLOC},
		{"cuda_time", VIEW_SORT_AVG_DEVICE},
		{"cuda_time_total", VIEW_SORT_DEVICE},
		{"cuda_memory_usage", VIEW_SORT_DEVICE},
		{"self_cuda_memory_usage", VIEW_SORT_DEVICE},
		{"device_time", VIEW_SORT_AVG_DEVICE},
		{"self_device_time_total", VIEW_SORT_SELF_DEVICE},
	};
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		CHECK(view_sort_find(keys[i].alias) == (int)keys[i].key);
	CHECK(view_sort_find("gpu_time") == -1);
}

int main(void)
{
	TEST("both torch layouts equal what torch prints byte for byte, for made-up and real rows in every sort order")
	test_golden();
	TEST("operators of all libraries, processes and devices share a row per name")
	test_merge();
	TEST("work on GPUs is added up over processes, and annotations have no work of their own, as in torch")
	test_gpu();
	TEST("JSON rows have byte counts if any row of the table has some")
	test_json();
	TEST("hostile names and numbers are escaped and never overrun a line")
	test_hostile();
	TEST("rows left out by --top are counted")
	test_cut();
	TEST("every sort_by key of torch is accepted")
	test_keys();
	buf_fini(&events);
	UNIT_MAIN_END;
}
