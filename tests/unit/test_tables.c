// SPDX-License-Identifier: Apache-2.0
/* Tests the views that print tables. Runs in the top folder: reads tests/golden/mxnet and share/. */

#include "base/fmt.h"
#include "mxbpf_kv.h"
#include "mxbpf_step.h"
#include "rendered.h"
#include "schema.h"

static void feed_counter(struct mdl *m, unsigned cls, enum mxbpf_tally_id id, uint64_t value)
{
	struct mxbpf_tally c = {.h = {MXBPF_TALLY, sizeof(c), 0, 0}, .value = value, .id = id, .cls = cls};

	CHECK(!mdl_feed(m, &c, sizeof(c)));
}

static void feed_mem(struct mdl *m, uint32_t device, uint64_t allocs, uint64_t low, uint64_t peak)
{
	struct mxbpf_mem a = {.h = {MXBPF_MEM, sizeof(a), 1234, 0},
			      .allocs = allocs,
			      .low_bytes = low,
			      .alloc_bytes = peak,
			      .peak_bytes = peak,
			      .live_bytes = low,
			      .device = device};

	CHECK(!mdl_feed(m, &a, sizeof(a)));
}

/* ---- parses a table that MXNet printed back into records */

/* Removes the last number from the line and returns it. */
static double take_number(char *line)
{
	char *blank = strrchr(line, ' '), *end;
	double v = blank ? strtod(blank + 1, &end) : 0;

	while (blank && blank >= line && *blank == ' ')
		*blank-- = 0;
	return v;
}

static uint64_t thousand(double v)
{
	return (uint64_t)(v * 1000 + 0.5);
}

static void parse_row(struct mdl *m, const char *category, char *line)
{
	bool memory = !strcmp(category, "Device Storage");
	uint64_t max, min, total = 0, count;

	take_number(line); /* avg */
	max = thousand(take_number(line));
	min = thousand(take_number(line));
	if (!memory)
		total = thousand(take_number(line));
	count = (uint64_t)take_number(line);
	if (memory)
		feed_mem(m, MXBPF_DEVICE(1, 0), count, min, max);
	else if (!strcmp(line, "MXNet C API Concurrency"))
		feed_counter(m, API, MXBPF_TALLY_MAX_OPEN, max);
	else if (strcmp(line, "MXNet C API Calls"))
		feed_agg(m, strcmp(category, "operator") ? API : OP, 0, line,
			 (uint64_t[]){count, total * 1000, total * 1000, min * 1000, max * 1000});
}

static struct mdl *parse_table(const char *path)
{
	FREED(memory_freed) char *text = read_file(path);
	char *save, *line, *last = NULL, *category = NULL;
	struct mdl *m = mdl_new();

	for (line = strtok_r(text, "\n", &save); line; last = line, line = strtok_r(NULL, "\n", &save)) {
		if (!strcmp(line, "=================")) {
			category = last;
			strtok_r(NULL, "\n", &save); /* Name */
			strtok_r(NULL, "\n", &save); /* ---- */
		} else if (category && strspn(line, " ") == 0 && strchr(line, ' ') && strstr(line, ".0") != line &&
			   line[strlen(line) - 5] == '.') {
			parse_row(m, category, line);
		}
	}
	return m;
}

/* Lines with '#' after the table are additions that MXNet does not print. */
static void cut_comments(char *text)
{
	char *p = strncmp(text, "# ", 2) ? strstr(text, "\n# ") : text - 1;

	CHECK(p != NULL);
	if (p)
		p[1] = 0;
}

static void same_text(const char *what, const char *got, const char *want)
{
	size_t n = 0;

	CHECK(*want);
	if (!strcmp(got, want))
		return;
	while (got[n] && got[n] == want[n])
		n++;
	while (n && want[n - 1] != '\n')
		n--;
	printf("# %s differs:\n# want %.100s\n# got  %.100s\n", what, want + n, got + n);
	CHECK(!"same bytes");
}

static void test_golden(const char *name, bool avg_ascending)
{
	const struct view_opts opts = {.sort = avg_ascending ? VIEW_SORT_AVG : VIEW_SORT_TOTAL,
				       .ascending = avg_ascending};
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	FREED(memory_freed) char *want = NULL, *got = NULL;
	char path[128];

	/* The records always come from the table in default order, so the view must sort them. */
	snprintf(path, sizeof(path), "tests/golden/mxnet/%s.table.txt", name);
	FREED(model_freed) struct mdl *m = parse_table(path);
	snprintf(path, sizeof(path), "tests/golden/mxnet/%s.table%s.txt", name, avg_ascending ? "-avg-asc" : "");
	want = read_file(path);
	got = render("mxnet", &s, m, &opts);
	cut_comments(got);
	same_text(path, got, want);
}

static void test_golden_json(const char *name)
{
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	FREED(memory_freed) char *want = NULL, *got = NULL;
	char path[128], *own, *p;
	cJSON *root;

	snprintf(path, sizeof(path), "tests/golden/mxnet/%s.table.txt", name);
	FREED(model_freed) struct mdl *m = parse_table(path);
	snprintf(path, sizeof(path), "tests/golden/mxnet/%s.json", name);
	want = read_file(path);
	got = render("mxnet-json", &s, m, &(struct view_opts){0});
	root = cJSON_Parse(got);
	CHECK(cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(root, "mxbpf"), "loss"), "dropped"));
	cJSON_Delete(root);
	own = strstr(got, ",\n    \"mxbpf\"");
	CHECK(own != NULL);
	for (p = got; own && (p = strstr(p, "\n}\n")); p++)
		memmove(own, p + 1, strlen(p + 1) + 1), p = own;
	same_text(path, got, want);
}

/* ---- details of MXNet's layout that no reference file has */

static void test_mxnet_rows(void)
{
	static const uint64_t one[] = {1, 5000, 5000, 5000, 5000};
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	FREED(model_freed) struct mdl *m = mdl_new();

	feed_agg(m, OP, 0x10000, "Custom", one);
	feed_agg(m, OP, 0x10000, "CustomOperatorWait", one);
	feed_agg(m, OP, 0x10000, "dot", one);
	feed_agg(m, OP, 0x10001, "dot", (uint64_t[]){3, 3000, 3000, 1000, 1000});
	feed_agg(m, API, 0, "MXSetProcessProfilerState", one);
	feed_agg(m, API, 0, "MXProfileCreateTask", one);
	feed_agg(m, API, 0, "MXNotifyShutdown", one);
	feed_agg(m, API, 0, NULL, one);
	feed_agg(m, MXBPF_CLASS_WAIT, 0, "wait", one);
	s.class_title[MXBPF_CLASS_WAIT] = strdup("Engine wait");
	FREED(memory_freed) char *t = render("mxnet", &s, m, &(struct view_opts){0});
	CHECK(!strstr(t, "Custom") && !strstr(t, "MXProfile") && !strstr(t, "MXSet") && !strstr(t, "MXNotify"));
	CHECK(!strstr(t, "Engine wait") && !strstr(t, "Device Storage"));
	CHECK(strstr(t, "dot                                     4           0.0080           0.0010           0.0050"
			"           0.0020\n"));
	CHECK(strstr(t, "[unreadable]                            1 "));
	CHECK(strstr(t, "MXNet C API Calls                       1           0.0010 "));
}

/* ---- the modern layout */

static struct mdl *plain_model(void)
{
	return parse_table("tests/golden/mxnet/plain-1.9.1.table.txt");
}

static size_t widest_line(const char *text)
{
	size_t max = 0, n;
	FREED(memory_freed) char *line = strdup(text);
	char *save, *p;

	for (p = strtok_r(line, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
		n = fmt_columns(p);
		max = n > max ? n : max;
	}
	return max;
}

static void test_modern_width(void)
{
	static const char heads[] = "calls  total   self    avg    min    p50    p99    max share";
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	FREED(model_freed) struct mdl *m = plain_model(), *few = mdl_new();
	FREED(memory_freed) char *t = render("modern", &s, m, &(struct view_opts){0});

	CHECK(widest_line(t) <= 100);
	CHECK(strstr(t, "\n_backward_FullyConnected ") && strstr(t, " min "));
	CHECK(strstr(t, "\ndevice allocs frees allocated freed live     peak\n"
			"cpu/0     274     0  3.15 MiB   0 B  0 B 3.15 MiB\n"));
	free(t);
	t = render("modern", &s, m, &(struct view_opts){.width = 200});
	CHECK(strstr(t, " min ") && widest_line(t) < 120);
	free(t);
	feed_agg(few, OP, 0x10000, "multi_sgd", (uint64_t[]){12345, 345678000, 345678000, 12345, 1234567});
	feed_agg(few, OP, 0x10001, "dot", (uint64_t[]){1, 25800, 25800, 25800, 25800});
	t = render("modern", &s, few, &(struct view_opts){0});
	CHECK(strstr(t, heads) && strstr(t, " device ") && strstr(t, " cpu/1 "));
	CHECK(widest_line(t) <= 100);
}

static void test_modern_names(void)
{
	static const uint64_t one[] = {1, 5000, 5000, 5000, 5000};
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	FREED(model_freed) struct mdl *m = mdl_new();
	char *wide;

	feed_agg(m, OP, 0, "[_identity_with_attr_like_rhs,_backward_sum,_backward_Activation,_backward_FullyConnected]",
		 one);
	feed_agg(m, OP, 0, "ops\xc3\xa9\x1b[2Jdel\xff", one);
	feed_agg(m, OP, 0, NULL, one);
	FREED(memory_freed) char *t = render("modern", &s, m, &(struct view_opts){0});
	CHECK(widest_line(t) <= 100 && strstr(t, "[_identity") && strstr(t, "…") && strstr(t, "Connected] "));
	CHECK(!strchr(t, 0x1b) && strstr(t, "ops\xc3\xa9\\x1b[2Jdel\\xff ") && strstr(t, "\n[unreadable] "));
	wide = render("modern", &s, m, &(struct view_opts){.width = 160});
	CHECK(!strstr(wide, "…"));
	free(t);
	free(wide);
	t = render("mxnet", &s, m, &(struct view_opts){0});
	CHECK(!strchr(t, 0x1b));
}

static void test_long_name(void)
{
	static const uint64_t one[] = {1, 5000, 5000, 5000, 5000};
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	FREED(model_freed) struct mdl *m = mdl_new();
	char name[MXBPF_NAME_BYTES_MAX + 1];
	size_t i;

	name[0] = 'x'; /* an odd offset, so that a two-byte character spans every power of two */
	for (i = 1; i + 2 < sizeof(name); i += 2)
		memcpy(name + i, "\xc3\xa9", 2);
	name[i] = 0;
	feed_agg(m, OP, 0, name, one);
	FREED(memory_freed) char *t = render("json", &s, m, &(struct view_opts){0});
	CHECK(strstr(t, name));
	free(t);
	t = render("mxnet", &s, m, &(struct view_opts){0});
	CHECK(strstr(t, name));
	free(t);
	t = render("modern", &s, m, &(struct view_opts){0});
	CHECK(widest_line(t) <= 100);
}

static void test_empty(void)
{
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(memory_freed) char *t = render("modern", &s, m, &(struct view_opts){0});

	CHECK(strstr(t, "operator: nothing seen\n") && strstr(t, "MXNET_C_API: nothing seen\n"));
	CHECK(strstr(t, "Device Storage: nothing seen\n"));
	free(t);
	t = render("mxnet", &s, m, &(struct view_opts){0});
	CHECK(!strncmp(t, "\nProfile Statistics:\n\tNote the difference in units for different entries.\n# ", 76));
}

static void test_loss(void)
{
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(memory_freed) char *t = render("modern", &s, m, &(struct view_opts){0});

	CHECK(strstr(t, "\nwindow   10.2 s from 2025-11-20 05:20:00 UTC, pid 1234 (python)\n"));
	CHECK(strstr(t, "\nevents   1,204,118 attempted, 1,204,118 stored\n"));
	CHECK(strstr(t, "\nloss     0 dropped, 0 names truncated, 0 unreadable, 0 unmatched\n"));
	CHECK(!strstr(t, "LOST") && !strstr(t, "PARTIAL") && !strstr(t, "CUT"));
	free(t);
	s.loss = (struct mxbpf_loss){.attempted = 5, .stored = 5, .truncated = 1};
	t = render("modern", &s, m, &(struct view_opts){0});
	CHECK(strstr(t,
		     "\nloss     0 dropped, 1 name truncated, 0 unreadable, 0 unmatched\n")); /* its calls are kept */
	free(t);
	s.loss = (struct mxbpf_loss){1000, 990, 10, 2, 3, 4};
	s.incomplete = true;
	s.cut_records = 5;
	s.nprobes = 2;
	s.probes = calloc(2, sizeof(*s.probes));
	s.probes[0] = (struct mdl_probe){strdup("a"), strdup("op"), strdup(""), strdup("attached"), strdup(""), NULL};
	s.probes[1] = (struct mdl_probe){strdup("mem.free"), strdup("mem"),	   strdup(""),
					 strdup("refused"),  strdup("no\nsymbol"), NULL};
	feed_counter(m, API, MXBPF_TALLY_LATE, 7);
	feed_counter(m, API, MXBPF_TALLY_UNWOUND, 8);
	t = render("modern", &s, m, &(struct view_opts){0});
	CHECK(strstr(t, "\nLOST     10 dropped (1 %), 2 names truncated, 3 unreadable, 4 unmatched\n"));
	CHECK(strstr(t, "\nPARTIAL ") && strstr(t, "\nCUT      5 records") && strstr(t, "\nlate     7 records"));
	CHECK(strstr(t, "\nunwound  8 calls"));
	CHECK(strstr(t, "\nrefused  probe mem.free: no\\x0asymbol\n") && !strstr(t, "probe a"));
	free(t);
	t = render("mxnet", &s, m, &(struct view_opts){0});
	CHECK(strstr(t, "\n# LOST     10 dropped") && strstr(t, "\n# PARTIAL "));
}

/* ---- sorting */

static void test_sort(void)
{
	static const struct {
		enum view_sort by;
		bool ascending;
		const char *order;
	} cases[] = {
		{VIEW_SORT_TOTAL, false, "cba"}, {VIEW_SORT_TOTAL, true, "bac"}, {VIEW_SORT_SELF, false, "abc"},
		{VIEW_SORT_COUNT, false, "bac"}, {VIEW_SORT_AVG, false, "cab"},	 {VIEW_SORT_MIN, true, "abc"},
		{VIEW_SORT_MAX, false, "cba"},	 {VIEW_SORT_P99, true, "abc"},	 {VIEW_SORT_NAME, false, "abc"},
		{VIEW_SORT_NAME, true, "abc"},
	};
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct mdl_row **rows;
	char order[8];
	size_t n, i, k;

	feed_agg(m, OP, 0, "a", (uint64_t[]){20, 200, 90, 1, 10});
	feed_agg(m, OP, 0, "b", (uint64_t[]){30, 200, 80, 2, 20});
	feed_agg(m, OP, 0, "c", (uint64_t[]){10, 300, 70, 3, 30});
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct view_opts opts = {.sort = cases[i].by, .ascending = cases[i].ascending};

		CHECK(!view_sorted_rows(&(struct view_input){.model = m}, OP, &opts, &rows, &n) && n == 3);
		for (k = 0; k < n; k++)
			order[k] = *mdl_name(m, rows[k]->name_id, NULL);
		order[k] = 0;
		if (strcmp(order, cases[i].order)) {
			printf("# %s: %s, not %s\n", view_sort_keys[cases[i].by].name, order, cases[i].order);
			CHECK(!"sorted");
		}
		free(rows);
	}
}

static void test_top(void)
{
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	FREED(model_freed) struct mdl *m = plain_model();
	FREED(memory_freed) char *t = render("modern", &s, m, &(struct view_opts){.top = 2});

	CHECK(strstr(t, "operator: 8.55 ms in 26 rows, of which 2 are shown\n"));
	CHECK(strstr(t, "\ndot ") && !strstr(t, "\nConvolution "));
	CHECK(strstr(t, " 12.3%\n")); /* share of all rows */
	free(t);
	t = render("mxnet", &s, m, &(struct view_opts){.top = 2});
	CHECK(strstr(t, "\ndot ") && !strstr(t, "\nConvolution "));
}

/* ---- json */

static void test_json(void)
{
	FREED(memory_freed) char *schema_text = read_schema();
	cJSON *schema = cJSON_Parse(schema_text), *root, *tables;
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	FREED(model_freed) struct mdl *m = plain_model();

	s.nlibs = 1;
	s.libs = calloc(1, sizeof(*s.libs));
	s.libs[0] = (struct mdl_lib){strdup("/x/\"lib\nmxnet.so"), strdup("0a1b"), strdup("MXNet 1.9.1")};
	s.nprobes = 1;
	s.probes = calloc(1, sizeof(*s.probes));
	s.probes[0] = (struct mdl_probe){strdup("op"), strdup("op"), strdup("f"), strdup("attached"), strdup(""), NULL};
	s.class_title[MXBPF_CLASS_WAIT] = strdup("Engine wait");
	feed_agg(m, OP, 0x30000, "bad\xff\x01name", (uint64_t[]){3, UINT64_MAX, (1ull << 53) + 1, 0, 7});
	FREED(memory_freed) char *t = render("json", &s, m, &(struct view_opts){0});
	root = cJSON_Parse(t);
	tables = cJSON_GetObjectItem(root, "tables");
	CHECK(schema && root && valid(schema, schema, root));
	CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(tables, "operator")) == 27);
	CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(tables, "MXNET_C_API")) == 14);
	CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(tables, "Device Storage")) == 1);
	CHECK(cJSON_IsArray(cJSON_GetObjectItem(tables, "Engine wait")));
	CHECK(strstr(t,
		     "{\"name\": \"bad\\\\xff\\u0001name\", \"device\": \"cpu pinned/\", \"count\": 3, \"total_ns\": "
		     "18446744073709551615, \"self_ns\": 9007199254740993, "));
	CHECK(strstr(t, "\"start_unix_ns\": 1763616000123456789, \"duration_ns\": 10200000000}"));
	CHECK(strstr(t, "/x/\\\"lib\\nmxnet.so"));
	cJSON_DeleteItemFromObject(cJSON_GetObjectItem(root, "loss"), "dropped");
	CHECK(!valid(schema, schema, root));
	cJSON_Delete(root);
	cJSON_Delete(schema);
}

static void test_devices(void)
{
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	char buf[48];

	CHECK(!strcmp(mdl_device_name(&s, MXBPF_DEVICE(1, 3), buf), "cpu/3"));
	CHECK(!strcmp(mdl_device_name(&s, MXBPF_DEVICE(3, 1), buf), "cpu pinned/"));
	CHECK(!strcmp(mdl_device_name(&s, MXBPF_DEVICE(7, 1), buf), "dev7/1"));
	CHECK(!strcmp(mdl_device_name(&s, 0, buf), "-"));
}

/* A hostile file may contain any number. */
static void test_iteration(void)
{
	static const char *const views[] = {"modern", "json", "csv"};
	const struct mxbpf_iteration it = {
		.h = {MXBPF_ITERATION, sizeof(it), 7, 1}, .dur_ns = 5, .nr = UINT64_MAX, .told = MXBPF_STEP_UPDATE};
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	const struct view_opts opts = {.top = 0};
	FREED(model_freed) struct mdl *m = mdl_new();
	size_t i;
	char *t;

	CHECK(!mdl_feed(m, &it, sizeof(it)));
	for (i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		t = render(views[i], &s, m, &opts);
		CHECK(strstr(t, "18446744073709551615"));
		free(t);
	}
}

/* A call has three values, of which two were read. The emitted records must report the third one, too. */
static void test_unkeyed(void)
{
	const struct {
		struct mxbpf_kv kv;
		struct mxbpf_kv_value values[2];
		struct mxbpf_span span;
	} call = {.kv = {.h = {MXBPF_KV, sizeof(call.kv) + sizeof(call.values), 7, 10},
			 .name_id = 3,
			 .tid = 8,
			 .more = 1,
			 .nvalues = 2,
			 .nsent = 2},
		  .values = {{1, 100}, {2, 100}},
		  .span = {.h = {MXBPF_SPAN, sizeof(call.span), 7, 10},
			   .dur_ns = 5,
			   .name_id = 3,
			   .tid = 8,
			   .cls = MXBPF_CLASS_KVSTORE}};
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	const struct view_opts opts = {.top = 0};
	FREED(model_freed) struct mdl *again = mdl_new(), *m = mdl_new();
	FREED(buf_fini) struct buf recs = {0};

	CHECK(!mdl_feed(m, &call, sizeof(call)) && !mdl_emit(m, &recs) && !mdl_feed(again, recs.data, recs.len));
	FREED(memory_freed) char *t = render("modern", &s, again, &opts);
	CHECK(strstr(t, " 1 more values are in no row"));
	free(t);
	t = render("json", &s, again, &opts);
	CHECK(strstr(t, "\"unkeyed\": 1,"));
	free(t);
	t = render("csv", &s, again, &opts);
	CHECK(strstr(t, "\"window\",\"unkeyed\",,1,"));
}

int main(void)
{
	static const char *const runs[] = {"plain-1.9.1", "hyb-1.9.1", "hybstatic-1.9.1", "naive-1.9.1"};
	size_t i;

	TEST("mxnet: the table equals the text of dumps() byte for byte")
	{
		for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
			test_golden(runs[i], false);
		test_golden("segments-1.9.1", false);
	}
	TEST("mxnet: the sorted table equals dumps(sort_by='avg', ascending=True) byte for byte")
	{
		for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
			test_golden(runs[i], true);
	}
	TEST("mxnet: JSON equals dumps(format='json') byte for byte, plus one key")
	{
		test_golden_json("plain-1.9.1");
		test_golden_json("hyb-1.9.1");
	}
	TEST("mxnet: rows are those of MXNet, with devices summed and without the profiler's own calls")
	test_mxnet_rows();
	TEST("modern: lines fit into 100 columns with all columns if names are short")
	test_modern_width();
	TEST("modern: long names are shortened in the middle, and hostile names are escaped")
	test_modern_names();
	TEST("a name of the maximum length is printed completely")
	test_long_name();
	TEST("an empty table says that it is empty")
	test_empty();
	TEST("losses are shown after every table and stand out")
	test_loss();
	TEST("every sort key sorts, and ties put the larger name first")
	test_sort();
	TEST("--top limits and counts the rows, and shares stay those of all rows")
	test_top();
	TEST("json has exact integers and obeys the schema")
	test_json();
	TEST("devices have the runtime's names")
	test_devices();
	TEST("an iteration with any number is shown")
	test_iteration();
	TEST("every table counts the values of a call that were not read")
	test_unkeyed();
	UNIT_MAIN_END;
}
