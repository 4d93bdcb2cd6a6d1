// SPDX-License-Identifier: Apache-2.0
/* Tests metrics: what intervals add up to, and the text that Prometheus reads. */
#include "metrics/priv.h"

#include "feature/kv/kv.h"
#include "mxbpf_cost.h"
#include "mxbpf_step.h"
#include "mxbpf_track.h"
#include "nvml/nvml.h"
#include "rendered.h"

FREES(met_freed, struct met, met_free)

#define NS_PER_S 1000000000ull

#define NOBODY 5000000 /* no process can have this number, so labels do not depend on what else runs */

/* Calls of one duration, with their bucket. */
static void feed_calls(struct mdl *m, unsigned cls, const char *name, uint64_t calls, uint64_t each_ns)
{
	struct {
		struct mxbpf_agg a;
		struct mxbpf_bucket b;
	} rec = {
		.a = {.h = {MXBPF_AGG, sizeof(rec), NOBODY, 0},
		      .name_id = feed_name(m, name, strlen(name)),
		      .count = calls,
		      .total_ns = calls * each_ns,
		      .self_ns = calls * each_ns,
		      .min_ns = each_ns,
		      .max_ns = each_ns,
		      .nbuckets = 1,
		      .cls = (uint8_t)cls},
		.b = {.index = mxbpf_bucket(each_ns), .count = calls},
	};

	CHECK(!mdl_feed(m, &rec, sizeof(rec)));
}

/* Takes an interval of a model, which it frees, and returns the text. The caller frees it. */
static char *take(struct met *m, struct mdl *model, enum met_form form)
{
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	static uint64_t now_ns;
	struct mdl_interval in = {.session = &s, .model = model, .now_ns = now_ns += NS_PER_S};
	struct buf text = {0};

	CHECK(!met_take(m, &in));
	CHECK(!met_write(m, form, &text) && !buf_put(&text, "", 1));
	mdl_free(model);
	return text.data;
}

/* The number behind the sample that begins with `start`; -1: there is none. */
static double value_of(const char *text, const char *start)
{
	const size_t n = strlen(start);
	const char *p = text;

	for (; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (!strncmp(p, start, n) && p[n] == ' ')
			return strtod(p + n, NULL);
	return -1;
}

static struct mdl *one_row(const char *name, uint64_t calls, uint64_t each_ns)
{
	struct mdl *m = mdl_new();

	feed_calls(m, OP, name, calls, each_ns);
	return m;
}

#define OF_JOB "job_name=\"ended\""

static void test_sums(void)
{
	FREED(met_freed) struct met *m = met_new();
	char *text;
	unsigned i;

	for (i = 1; i <= 3; i++) {
		text = take(m, one_row("dot", 10, 5000), MET_PROMETHEUS);
		CHECK(value_of(text, "mxbpf_operator_duration_seconds_count{" OF_JOB ",operator=\"dot\"}") == 10 * i);
		CHECK(value_of(text, "mxbpf_operator_self_seconds_total{" OF_JOB ",operator=\"dot\"}") > 49e-6 * i);
		free(text);
	}
	/* An interval in which nothing happens takes nothing away. */
	text = take(m, mdl_new(), MET_PROMETHEUS);
	CHECK(value_of(text, "mxbpf_operator_duration_seconds_count{" OF_JOB ",operator=\"dot\"}") == 30);
	free(text);
}

static void test_other(void)
{
	FREED(met_freed) struct met *m = met_new();
	struct mdl *model = mdl_new();
	char name[128];
	double sum = 0;
	unsigned i;

	for (i = 0; i < 2 * MET_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "op%02u", i);
		feed_calls(model, OP, name, 1, 1000 + i);
	}
	FREED(memory_freed) char *text = take(m, model, MET_PROMETHEUS);
	for (i = 0; i < 2 * MET_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "mxbpf_operator_duration_seconds_count{" OF_JOB ",operator=\"op%02u\"}",
			 i);
		/* Those with the most time have series of their own. */
		CHECK((value_of(text, name) == 1) == (i >= MET_NAMES_MAX));
		sum += value_of(text, name) == 1;
	}
	CHECK(sum == MET_NAMES_MAX);
	CHECK(value_of(text, "mxbpf_operator_duration_seconds_count{" OF_JOB ",operator=\"other\"}") == MET_NAMES_MAX);
	free(text);
	/* A name that was in `other` stays there. */
	text = take(m, one_row("op00", 5, NS_PER_S), MET_PROMETHEUS);
	CHECK(value_of(text, "mxbpf_operator_duration_seconds_count{" OF_JOB ",operator=\"other\"}") ==
	      MET_NAMES_MAX + 5);
}

static void test_buckets(void)
{
	FREED(met_freed) struct met *m = met_new();
	struct mdl *model = mdl_new();
	char start[128];
	double before = 0, n = 0;
	const char *p;
	unsigned buckets = 0;

	feed_calls(model, OP, "dot", 4, 1000);
	feed_calls(model, OP, "dot", 3, 20000000);
	feed_calls(model, OP, "dot", 2, 60 * NS_PER_S);
	FREED(memory_freed) char *text = take(m, model, MET_PROMETHEUS);
	snprintf(start, sizeof(start), "mxbpf_operator_duration_seconds_bucket{" OF_JOB ",operator=\"dot\",le=\"");
	for (p = strstr(text, start); p; p = strstr(p + 1, start), buckets++) {
		n = strtod(strchr(p, '}') + 1, NULL);
		CHECK(n >= before);
		before = n;
	}
	CHECK(buckets == 42 && n == 9);
	snprintf(start, sizeof(start),
		 "mxbpf_operator_duration_seconds_bucket{" OF_JOB ",operator=\"dot\",le=\"0.016777216\"}");
	CHECK(value_of(text, start) == 4);
	snprintf(start, sizeof(start),
		 "mxbpf_operator_duration_seconds_bucket{" OF_JOB ",operator=\"dot\",le=\"0.025165824\"}");
	CHECK(value_of(text, start) == 7);
	snprintf(start, sizeof(start),
		 "mxbpf_operator_duration_seconds_bucket{" OF_JOB ",operator=\"dot\",le=\"+Inf\"}");
	CHECK(value_of(text, start) == n);
	CHECK(value_of(text, "mxbpf_operator_duration_seconds_count{" OF_JOB ",operator=\"dot\"}") == n);
}

/* The first bound of an operator up to which all its calls lasted. */
static double bound_of(uint64_t each_ns)
{
	FREED(met_freed) struct met *m = met_new();
	FREED(memory_freed) char *text = take(m, one_row("dot", 3, each_ns), MET_PROMETHEUS);
	char *p = text;
	double bound = 0;

	do {
		p = strstr(p + 1, "operator=\"dot\",le=\"");
		bound = strtod(strstr(p, "le=\"") + 4, NULL);
	} while (strtod(strchr(p, '}') + 1, NULL) != 3);
	return bound;
}

/* What an alert on twice the time needs; see share/serve/alerts.yml. */
static void test_doubled(void)
{
	uint64_t ns;

	for (ns = 5000; ns < NS_PER_S; ns = ns * 8 / 7) {
		CHECK(bound_of(2 * ns) / bound_of(ns) > 1.99 && bound_of(2 * ns) / bound_of(ns) < 2.01);
		CHECK(bound_of(ns * 21 / 20) / bound_of(ns) < 1.51);
	}
}

static char *take_of(struct met *m, pid_t pid, const char *comm)
{
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	struct mdl_labels l = {.comm = (char *)(uintptr_t)comm, .job_name = (char *)(uintptr_t)comm};
	struct mdl_interval in = {.session = &s, .model = mdl_new(), .pids = &pid, .npids = 1, .now_ns = NS_PER_S};
	struct buf text = {0};

	CHECK(!mdl_labels_add(&s, &l, (uint32_t)pid, "host"));
	CHECK(!met_take(m, &in));
	CHECK(!met_write(m, MET_PROMETHEUS, &text) && !buf_put(&text, "", 1));
	mdl_free(in.model);
	return text.data;
}

/* What the configuration says counts more than what the job says. */
static void test_rules(void)
{
	static const char *const rules[] = {"other*=never", "tr*.py=resnet", "*=last"};
	FREED(met_freed) struct met *m = met_new();

	met_name_jobs(m, rules, 3);
	FREED(memory_freed) char *text = take_of(m, NOBODY, "train.py");
	CHECK(strstr(text, "{job_name=\"resnet\"") && !strstr(text, "train.py") && !strstr(text, "last"));
}

static void test_processes(void)
{
	FREED(met_freed) struct met *m = met_new();
	char *text = take_of(m, getpid(), "train.py"), name[128];
	unsigned i;

	snprintf(name, sizeof(name), ",pid=\"%d\"} 1\n", getpid());
	CHECK(strstr(text, "mxbpf_process_info{job_name=\"train.py\"") && strstr(text, name));
	free(text);
	text = take(m, mdl_new(), MET_PROMETHEUS);
	CHECK(!strstr(text, "mxbpf_process_info{"));
	free(text);
	/* Numbers of processes that have ended make room before many are kept. */
	for (i = 0; i < 1000; i++)
		free(take_of(m, NOBODY + (pid_t)i, "train.py"));
	CHECK(buf_count(&m->series, struct met_series) < 400);
}

/* A name of any bytes is one line of UTF-8 within its quotes. */
static void test_hostile(void)
{
	static const char *const names[] = {"a\"} 1\nmxbpf_evil 1", "back\\slash", "\xff\xfe", "tab\there", "\x1b[31m"};
	FREED(met_freed) struct met *m = met_new();
	char *line, *save, longest[2000];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		free(take(m, one_row(names[i], 1, NS_PER_S), MET_PROMETHEUS));
	memset(longest, '"', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	FREED(memory_freed) char *text = take(m, one_row(longest, 1, NS_PER_S), MET_PROMETHEUS);
	CHECK(strstr(text, "operator=\"a\\\"} 1") && strstr(text, "operator=\"back\\\\slash\""));
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		CHECK(!strncmp(line, "# ", 2) || !strncmp(line, "mxbpf_", 6) || !strncmp(line, "process_", 8));
		CHECK(strncmp(line, "mxbpf_evil", 10) != 0);
		for (i = 0; line[i]; i++)
			CHECK((unsigned char)line[i] >= ' ' && (unsigned char)line[i] < 0x7f);
	}
}

static void test_bounded(void)
{
	FREED(met_freed) struct met *m = met_new();
	unsigned i, k;
	char name[32], *text = NULL;
	size_t series = 0;
	const char *p;

	for (i = 0; i < 2000; i++) { /* kinds of calls and processes by turns */
		struct mdl *model = mdl_new();

		for (k = 1; k < MXBPF_CLASS_MAX; k++) {
			snprintf(name, sizeof(name), "op%u", i);
			feed_calls(model, k, name, 1, 1000);
		}
		free(text);
		text = take(m, model, MET_PROMETHEUS);
	}
	for (p = text; (p = strstr(p, "_count{")); p++)
		series++;
	CHECK(series <= (MET_NAMES_MAX + 1) * MXBPF_CLASS_MAX);
	free(text);
}

static void test_openmetrics(void)
{
	FREED(met_freed) struct met *m = met_new();
	FREED(memory_freed) char *text = take(m, one_row("dot", 10, 5000), MET_OPENMETRICS);

	CHECK(strlen(text) > 6 && !strcmp(text + strlen(text) - 6, "# EOF\n"));
	CHECK(strstr(text, "# TYPE mxbpf_operator_self_seconds counter\n# UNIT mxbpf_operator_self_seconds seconds\n"));
	CHECK(strstr(text, "\nmxbpf_operator_self_seconds_total{") && strstr(text, "# TYPE mxbpf_build info\n"));
	free(text);
	text = take(m, mdl_new(), MET_PROMETHEUS);
	CHECK(strstr(text, "# TYPE mxbpf_operator_self_seconds_total counter\n") && !strstr(text, "# EOF"));
}

/* ---- slices */

#define IN_ALL	 200 /* iterations of an interval */
#define IN_SLICE 4   /* and in its slice */

static uint64_t random_ns(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return 10000 + (*seed >> 33) % 90000;
}

static void feed_slice(struct mdl *m, uint64_t all)
{
	const struct mxbpf_partial classes[] = {
		{.h = {MXBPF_PARTIAL, sizeof(classes[0]), 0, 0}, .cls = OP, .flags = MXBPF_PARTIAL_SLICED},
		{.h = {MXBPF_PARTIAL, sizeof(classes[0]), 0, 0},
		 .name_id = feed_name(m, "allreduce", 9),
		 .cls = OP,
		 .flags = MXBPF_PARTIAL_SLICED | MXBPF_PARTIAL_LITTLE},
	};
	const struct mxbpf_slice_part slice = {.h = {MXBPF_SLICE, sizeof(slice), NOBODY, 0},
					       .slices = 1,
					       .slice_ns = 1000,
					       .seen_ns = 1000,
					       .all_ns = 500000,
					       .marks_ns = 500000,
					       .seen_iterations = IN_SLICE,
					       .all_iterations = all,
					       .marks_iterations = all};

	CHECK(!mdl_feed(m, classes, sizeof(classes)) && !mdl_feed(m, &slice, sizeof(slice)));
}

/* Makes a job with a few iterations in slices. Returns true if its true time lies in the confidence interval. */
static bool is_confident(uint64_t *seed)
{
	struct met *m = met_new();
	struct mdl *model;
	double truth = 0, all, error;
	char *text = NULL;
	unsigned i, k;
	uint64_t ns;

	for (i = 0; i < 30; i++) {
		model = mdl_new();
		for (k = 0; k < IN_ALL; k++) {
			ns = random_ns(seed);
			truth += (double)ns / 1e9;
			if (k < IN_SLICE)
				feed_calls(model, OP, "dot", 1, ns);
			feed_calls(model, OP, "allreduce", 1, ns);
		}
		feed_slice(model, IN_ALL);
		free(text);
		text = take(m, model, MET_PROMETHEUS);
	}
	all = value_of(text, "mxbpf_operator_self_seconds_total{" OF_JOB ",operator=\"dot\"}");
	error = value_of(text, "mxbpf_operator_error_ratio{" OF_JOB ",operator=\"dot\"}");
	CHECK(value_of(text, "mxbpf_operator_duration_seconds_count{" OF_JOB ",operator=\"dot\"}") == 30 * IN_ALL);
	/* Calls that were recorded all the time are not estimated. */
	CHECK(value_of(text, "mxbpf_operator_duration_seconds_count{" OF_JOB ",operator=\"allreduce\"}") ==
	      30 * IN_ALL);
	CHECK(value_of(text, "mxbpf_operator_error_ratio{" OF_JOB ",operator=\"allreduce\"}") == -1);
	CHECK(value_of(text, "mxbpf_slices_total{" OF_JOB "}") == 30);
	CHECK(error > 0.03 && error < 0.2);
	free(text);
	met_free(m);
	return all * (1 - error) <= truth && truth <= all * (1 + error);
}

static void test_slices(void)
{
	uint64_t seed = 1;
	unsigned i, right = 0;

	for (i = 0; i < 100; i++)
		right += is_confident(&seed);
	CHECK(right >= 88 && right < 100);
}

/* ---- recordings of slow iterations */

static void test_exemplars(void)
{
	const struct mxbpf_iteration it = {
		.h = {MXBPF_ITERATION, sizeof(it), NOBODY, NS_PER_S}, .tid = NOBODY, .nr = 1, .dur_ns = 2 * NS_PER_S};
	struct met_recorded r = {.dur_ns = 2 * NS_PER_S, .unix_ns = 1763616000500000000, .file = "mxbpf-\"x\".mxd"};
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	struct mdl_interval in = {.session = &s, .model = mdl_new(), .now_ns = NS_PER_S};
	FREED(met_freed) struct met *m = met_new();
	FREED(buf_fini) struct buf text = {0};

	CHECK(!met_iterations(m, &in, NOBODY)); /* it has made none yet */
	CHECK(!mdl_fold_all(in.model, &it, sizeof(it)) && !met_take(m, &in));
	r.series = met_iterations(m, &in, NOBODY);
	CHECK(r.series && !met_iterations(m, &in, (uint32_t)getpid())); /* of another job */
	met_record(m, &r);
	r.series = 99; /* is no series any more */
	met_record(m, &r);
	CHECK(!met_write(m, MET_OPENMETRICS, &text) && !buf_put(&text, "", 1));
	CHECK(strstr(text.data, "le=\"2.0\"} 1 # {recording=\"mxbpf-\\\"x\\\".mxd\"} 2 1763616000.5\n"));
	CHECK(strstr(text.data, "le=\"1.0\"} 0\n") && strstr(text.data, "le=\"10.0\"} 1\n"));
	FREED(memory_freed) char *plain = take(m, mdl_new(), MET_PROMETHEUS);
	CHECK(strstr(plain, "le=\"2.0\"} 1\n") && !strstr(plain, "recording"));
	mdl_free(in.model);
}

/* ---- GPUs */

#define MS	 1000000ull
#define INSTANCE 5 /* this device is an instance of a GPU that MIG divides */
static struct nvml_list gpus;

static void feed_device(struct mdl *m, uint32_t device)
{
	const struct mxbpf_gpu_device d = {.h = {MXBPF_GPU_DEVICE, sizeof(d), (uint32_t)getpid(), 0},
					   .name_id = feed_name(m, "L4", 2),
					   .device = device,
					   .pci_bus = (uint8_t)(7 + device),
					   .uuid = {device == INSTANCE ? 0xa1 : 0},
					   .whole_uuid = {device == INSTANCE ? 0xb2 : 0}};

	CHECK(!mdl_fold_all(m, &d, sizeof(d)));
}

/* A kernel on a device of this process. */
static void feed_named_kernel(struct mdl *m, const char *name, uint32_t device, uint64_t start_ms, uint64_t ms)
{
	const struct mxbpf_activity a = {.h = {MXBPF_ACTIVITY, sizeof(a), (uint32_t)getpid(), start_ms * MS},
					 .dur_ns = ms * MS,
					 .name_id = feed_name(m, name, strlen(name)),
					 .track = {.device = device, .stream = 7},
					 .cls = MXBPF_ACTIVITY_KERNEL};

	feed_device(m, device);
	CHECK(!mdl_fold_all(m, &a, sizeof(a)));
}

static void feed_kernel(struct mdl *m, uint32_t device, uint64_t start_ms, uint64_t ms)
{
	feed_named_kernel(m, "gemm", device, start_ms, ms);
}

static char *take_with_gpus(struct met *m, struct mdl *model, const pid_t *pids, size_t npids)
{
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	struct mdl_interval in = {
		.session = &s, .model = model, .pids = pids, .npids = npids, .now_ns = NS_PER_S, .gpus = &gpus};
	struct buf text = {0};

	CHECK(!met_take(m, &in) && !met_write(m, MET_PROMETHEUS, &text) && !buf_put(&text, "", 1));
	mdl_free(model);
	return text.data;
}

/* The value of a family for the GPU with this number. */
static double of_gpu(const char *text, const char *name, const char *gpu)
{
	const size_t n = strlen(name);
	char word[128];
	const char *p = text, *end;

	snprintf(word, sizeof(word), "%s", gpu);
	for (; p && *p; p = end ? end + 1 : NULL) {
		end = strchr(p, '\n');
		if (!strncmp(p, name, n) && p[n] == '{' && strstr(p, word) && strstr(p, word) < end)
			return strtod(strstr(p, "} ") + 2, NULL);
	}
	return -1;
}

/* Columns of tables that are metrics: here the time of kernels by name. */
static void test_table_names(void)
{
	const pid_t self = getpid();
	FREED(met_freed) struct met *m = met_new();
	struct mdl *model = mdl_new();
	char name[16];
	unsigned i;

	gpus.n = 0;
	for (i = 0; i < MET_NAMES_MAX + 2; i++) {
		snprintf(name, sizeof(name), "k%u", i);
		feed_named_kernel(model, name, 0, 1000 + 100 * i, i < MET_NAMES_MAX ? 10 : 2);
	}
	FREED(memory_freed) char *text = take_with_gpus(m, model, &self, 1);
	CHECK(of_gpu(text, "mxbpf_gpu_kernel_seconds_total", "kernel=\"k7\"") == 0.01);
	CHECK(of_gpu(text, "mxbpf_gpu_kernel_seconds_total", "kernel=\"other\"") == 0.004);
	CHECK(of_gpu(text, "mxbpf_gpu_kernel_seconds_total", "kernel=\"k20\"") == -1);
	free(text);
	/* Names that have series keep them, also if others take longer now. */
	model = mdl_new();
	feed_named_kernel(model, "k21", 0, 9000, 50);
	feed_named_kernel(model, "k7", 0, 9100, 1);
	text = take_with_gpus(m, model, &self, 1);
	CHECK(of_gpu(text, "mxbpf_gpu_kernel_seconds_total", "kernel=\"k7\"") == 0.011);
	CHECK(of_gpu(text, "mxbpf_gpu_kernel_seconds_total", "kernel=\"other\"") == 0.054);
}

/* A collective runs beside a kernel for 5 ms, and a copy on its own. */
static void test_types(void)
{
	const struct mxbpf_activity copy = {.h = {MXBPF_ACTIVITY, sizeof(copy), (uint32_t)getpid(), 1030 * MS},
					    .dur_ns = 3 * MS,
					    .bytes = 64,
					    .track = {.stream = 7},
					    .cls = MXBPF_ACTIVITY_COPY,
					    .copy = MXBPF_COPY_HTOD};
	const struct mxbpf_mem allocated = {
		.h = {MXBPF_MEM, sizeof(allocated), (uint32_t)getpid(), 0}, .allocs = 2, .alloc_bytes = 4096};
	const struct mxbpf_partial slices = {
		.h = {MXBPF_PARTIAL, sizeof(slices), 0, 0}, .cls = OP, .flags = MXBPF_PARTIAL_SLICED};
	const pid_t self = getpid();
	FREED(met_freed) struct met *m = met_new();
	struct mdl *model = mdl_new();

	gpus.n = 0;
	feed_named_kernel(model, "gemm", 0, 1000, 10);
	feed_named_kernel(model, "ncclDevKernel_AllReduce", 0, 1005, 15);
	CHECK(!mdl_fold_all(model, &copy, sizeof(copy)) && !mdl_fold_all(model, &allocated, sizeof(allocated)));
	FREED(memory_freed) char *text = take_with_gpus(m, model, &self, 1);
	CHECK(of_gpu(text, "mxbpf_gpu_type_seconds_total", "type=\"computation\"") == 0.01);
	CHECK(of_gpu(text, "mxbpf_gpu_type_seconds_total", "type=\"communication\"") == 0.015);
	CHECK(of_gpu(text, "mxbpf_gpu_type_alone_seconds_total", "type=\"communication\"") == 0.01);
	CHECK(of_gpu(text, "mxbpf_gpu_type_alone_seconds_total", "type=\"memory\"") == 0.003);
	CHECK(of_gpu(text, "mxbpf_gpu_type_seconds_total", "type=\"idle\"") == -1);
	CHECK(of_gpu(text, "mxbpf_gpu_copy_seconds_total", "direction=\"HtoD\"") == 0.003);
	CHECK(of_gpu(text, "mxbpf_memory_allocated_bytes_total", "job_name=") == 4096);
	free(text);
	/* Slices see only some of the allocations, so the counter stands still. */
	model = mdl_new();
	CHECK(!mdl_fold_all(model, &slices, sizeof(slices)) && !mdl_fold_all(model, &allocated, sizeof(allocated)));
	text = take_with_gpus(m, model, &self, 1);
	CHECK(of_gpu(text, "mxbpf_memory_allocated_bytes_total", "job_name=") == 4096);
}

static struct mdl *one_push(void)
{
	struct mdl *m = mdl_new();
	const struct kv_row push = {
		.tgid = NOBODY, .name_id = feed_name(m, "push", 4), .count = 1, .values = 1, .sent_bytes = 64};

	CHECK(!mdl_table_add(m, &feature_kv, &kv_table, &push));
	return m;
}

/* Exchanges have no estimate. */
static void test_slices_alone(void)
{
	const struct mxbpf_partial iterations = {
		.h = {MXBPF_PARTIAL, sizeof(iterations), 0, 0}, .cls = MXBPF_CLASS_STEP, .flags = MXBPF_PARTIAL_SLICED};
	FREED(met_freed) struct met *m = met_new();
	struct mdl *model = one_push();
	FREED(memory_freed) char *text = take(m, model, MET_PROMETHEUS);

	CHECK(of_gpu(text, "mxbpf_kvstore_sent_bytes_total", "operation=\"push\"") == 64);
	free(text);
	model = one_push();
	CHECK(!mdl_fold_all(model, &iterations, sizeof(iterations)));
	text = take(m, model, MET_PROMETHEUS);
	CHECK(of_gpu(text, "mxbpf_kvstore_sent_bytes_total", "operation=\"push\"") == 64);
}

/* A GPU whose process has ended is in the tables of all later intervals, with nothing. */
static void test_ended(void)
{
	const struct mxbpf_agg_gpu_idle none = {.h = {MXBPF_AGG_GPU_IDLE, sizeof(none), NOBODY, 0},
						.cause = MXBPF_IDLE_BUSY,
						.first_ns = 1,
						.last_ns = 2};
	FREED(met_freed) struct met *m = met_new();
	struct mdl *model = mdl_new();

	feed_calls(model, OP, "add", 1, 1000);
	free(take(m, model, MET_PROMETHEUS));
	CHECK(buf_count(&m->processes, struct met_process) == 1);
	model = mdl_new();
	CHECK(!mdl_fold_all(model, &none, sizeof(none)));
	free(take(m, model, MET_PROMETHEUS));
	CHECK(!buf_count(&m->processes, struct met_process));
}

static void test_agent_gpus(void)
{
	const pid_t self = getpid();
	FREED(met_freed) struct met *m = met_new();
	struct mdl *model = mdl_new();

	gpus.n = 1; /* the driver knows one of both */
	gpus.gpus[0] = (struct nvml_gpu){.index = 3, .bus = 7, .uuid = "GPU-\"a", .model = "L4"};
	feed_kernel(model, 0, 1000, 10);
	feed_kernel(model, 0, 1020, 5);
	feed_kernel(model, 1, 1000, 40);
	feed_kernel(model, INSTANCE, 1000, 20);
	gpus.ninstances = 1;
	gpus.instances[0] =
		(struct nvml_instance){.gpu_instance = 9, .uuid = "MIG-a1000000-0000-0000-0000-000000000000"};
	FREED(memory_freed) char *text = take_with_gpus(m, model, &self, 1);
	CHECK(of_gpu(text, "mxbpf_gpu_busy_seconds_total", ",gpu=\"3\",UUID=\"GPU-\\\"a\",device=\"nvidia3\",") ==
	      0.015);
	CHECK(of_gpu(text, "mxbpf_gpu_kernels_total", "pci_bus_id=\"00000000:07:00.0\"}") == 2);
	CHECK(of_gpu(text, "mxbpf_gpu_busy_seconds_total", "pci_bus_id=\"00000000:08:00.0\"}") == 0.04);
	CHECK(of_gpu(text, "mxbpf_gpu_seen_seconds_total", "00000000:08:00.0") == 10.2);
	CHECK(of_gpu(text, "mxbpf_gpu_busy_seconds_total", ",UUID=\"GPU-b2000000-0000-0000-0000-000000000000\",") ==
	      0.02);
	CHECK(of_gpu(text, "mxbpf_gpu_busy_seconds_total",
		     "0C:00.0\",mig_uuid=\"MIG-a1000000-0000-0000-0000-000000000000\",GPU_I_ID=\"9\"}") == 0.02);
	CHECK(of_gpu(text, "mxbpf_gpu_info", "gpu=\"3\"") == 1);
	free(text);
	/* A GPU that does nothing now is idle, and not unseen. */
	model = mdl_new();
	feed_kernel(model, 0, 20000, 10);
	feed_device(model, 1);
	feed_device(model, 2); /* which the process has never used */
	text = take_with_gpus(m, model, &self, 1);
	CHECK(of_gpu(text, "mxbpf_gpu_busy_seconds_total", "00000000:08:00.0") == 0.04);
	CHECK(of_gpu(text, "mxbpf_gpu_seen_seconds_total", "00000000:08:00.0") == 20.4);
	CHECK(of_gpu(text, "mxbpf_gpu_seen_seconds_total", "00000000:07:00.0") == 20.4);
	CHECK(of_gpu(text, "mxbpf_gpu_seen_seconds_total", "00000000:09:00.0") == -1);
}

static void test_driver_gpus(void)
{
	const pid_t self = getpid();
	FREED(met_freed) struct met *m = met_new();

	gpus.n = 2;
	gpus.gpus[0] = (struct nvml_gpu){.index = 0, .bus = 7, .seen_ns = NS_PER_S, .busy_ns = NS_PER_S / 4};
	gpus.gpus[0].total_bytes = 9000;
	gpus.gpus[0].driver_bytes = 500;
	gpus.gpus[0].used_bytes = 2500;
	gpus.gpus[1] = (struct nvml_gpu){.index = 1, .bus = 8, .seen_ns = NS_PER_S, .busy_ns = NS_PER_S};
	/* A process can be named twice, and others are none of ours. */
	gpus.processes[0] = (struct nvml_process){0, (uint32_t)self, 1000};
	gpus.processes[1] = (struct nvml_process){0, (uint32_t)self, 500};
	gpus.processes[2] = (struct nvml_process){1, 1, 500};
	gpus.nprocesses = 3;
	free(take_with_gpus(m, mdl_new(), &self, 1));
	FREED(memory_freed) char *text = take_with_gpus(m, mdl_new(), &self, 1);
	CHECK(of_gpu(text, "mxbpf_gpu_utilized_seconds_total", "gpu=\"0\"") == 0.5);
	CHECK(of_gpu(text, "mxbpf_gpu_sampled_seconds_total", "gpu=\"0\"") == 2);
	CHECK(of_gpu(text, "mxbpf_gpu_memory_used_bytes", "gpu=\"0\"") == 1500);
	CHECK(of_gpu(text, "mxbpf_gpu_memory_total_bytes", "gpu=\"0\"") == 9000);
	CHECK(of_gpu(text, "mxbpf_gpu_memory_free_bytes", "gpu=\"0\"") == 6000);
	CHECK(of_gpu(text, "mxbpf_gpu_memory_free_bytes", "gpu=\"1\"") == -1);
	CHECK(of_gpu(text, "mxbpf_gpu_sampled_seconds_total", "gpu=\"1\"") == -1);
	free(text);
	/* A driver that does not answer says neither that memory is used nor that none is. */
	gpus.nprocesses = 0;
	gpus.gpus[0].total_bytes = 0;
	text = take_with_gpus(m, mdl_new(), &self, 1);
	CHECK(of_gpu(text, "mxbpf_gpu_memory_used_bytes", "gpu=\"0\"") == -1);
	CHECK(of_gpu(text, "mxbpf_gpu_memory_free_bytes", "gpu=\"0\"") == -1);
	CHECK(of_gpu(text, "mxbpf_gpu_sampled_seconds_total", "gpu=\"0\"") == 2);
}

int main(void)
{
	TEST("counters are the sums of all intervals, and an empty interval takes nothing away")
	test_sums();
	TEST("names beyond the limit of a kind and a job add up in `other`, and stay there")
	test_other();
	TEST("a histogram has buckets that rise to its count, and a call that takes twice as long is two buckets "
	     "higher")
	test_buckets();
	test_doubled();
	TEST("a process is named by its number while it is watched, and numbers do not fill the series")
	test_processes();
	TEST("the first rule that matches names a job")
	test_rules();
	TEST("a name of any bytes stays within its quotes and its line")
	test_hostile();
	TEST("the number of series is bounded, whatever names come")
	test_bounded();
	TEST("both formats have their names, types and ends")
	test_openmetrics();
	TEST("what is estimated from slices is within its interval of confidence, in some 95 of 100 jobs")
	test_slices();
	TEST("a slow iteration's bucket names its recording, in OpenMetrics alone")
	test_exemplars();
	TEST("work is counted on the GPU that did it, and a GPU that does nothing is idle")
	test_agent_gpus();
	TEST("columns of tables are metrics with twenty names, and further ones are together")
	test_table_names();
	TEST("a GPU has times by type of work, copies by direction, and memory counts while all calls are recorded")
	test_types();
	TEST("exchanges are not counted while even iterations are recorded in slices alone")
	test_slices_alone();
	TEST("a process that has ended is forgotten, although tables of GPUs still have it")
	test_ended();
	TEST("what the driver says of a GPU is counted once for each job that uses it")
	test_driver_gpus();
	UNIT_MAIN_END;
}
