// SPDX-License-Identifier: Apache-2.0
/* Tests copies of models. Two models count as equal if they emit the same bytes. Runs in the top folder. */

#include "feature/ranges/ranges.h"
#include "feature/slow/slow.h"
#include "feature/steps/steps.h"
#include "feature/threads/threads.h"
#include "mxbpf_collective.h"
#include "mxbpf_kv.h"
#include "mxbpf_life.h"
#include "mxbpf_mark.h"
#include "mxbpf_memory.h"
#include "mxbpf_omp.h"
#include "mxbpf_queue.h"
#include "mxbpf_range.h"
#include "mxbpf_kernels.h"
#include "mxbpf_roofline.h"
#include "mxbpf_sample.h"
#include "mxbpf_sched.h"
#include "mxbpf_graph.h"
#include "record/record.h"
#include "table/table.h"
#include "records.h"
#include "mxbpf_lines.h"
#include "mxbpf_neighbours.h"

#define API	  MXBPF_CLASS_API
#define OP	  MXBPF_CLASS_OPERATOR
#define CPU0	  MXBPF_DEVICE(1, 0)
#define NSLOW	  (SLOW_MAX + 20)
#define ROUND_NS  1000000000ull
#define TYPICAL	  1000
#define SLOW_NS	  1000000ull
#define NROUNDS	  4
#define RECORDING "tests/golden/real.mxd"

/* Ids of names. The last one never gets a text. */
enum { CONV = 11, CONV_BACKWARD = 13, PUSH = 15, STEP = 17, TASK = 19, ARGS = 21, NEW = 23, UNNAMED = 25, SYNC = 27 };

static void put(struct buf *b, const void *rec)
{
	buf_put(b, rec, ((const struct mxbpf_rec *)rec)->size);
}

#define PUT(b, what, number, when_ns, ...)                                                                             \
	put(b, &(struct mxbpf_##what){                                                                                 \
		       .h = {.kind = (number), .size = sizeof(struct mxbpf_##what), .tgid = 77, .ts_ns = (when_ns)},   \
		       __VA_ARGS__})

static void put_names(struct buf *b)
{
	put_name(b, CONV, MXBPF_NAME_SPAN, "Convolution");
	put_name(b, CONV_BACKWARD, MXBPF_NAME_SPAN, "Convolution_backward");
	put_name(b, PUSH, MXBPF_NAME_SPAN, "MXKVStorePush");
	put_name(b, STEP, MXBPF_NAME_SPAN, "Optimizer.step#SGD.step");
	put_name(b, TASK, MXBPF_NAME_SPAN, "task");
	put_name(b, TASK, MXBPF_NAME_DOMAIN, "domain");
	put_name(b, SYNC, MXBPF_NAME_SPAN, "cudaStreamSynchronize");
	put_name(b, ARGS, MXBPF_NAME_ARGS, "[[8,3]]");
	put_name(b, 78, MXBPF_NAME_THREAD, "python");
}

/*
 * Adds rows of every form: with details, an account, counters, memory and an extent; and a backward node joined to its
 * operator.
 */
static void put_spans(struct buf *b, unsigned nr, uint64_t at_ns)
{
	PUT(b, span, MXBPF_SPAN, at_ns, .dur_ns = 500 + nr, .self_ns = 200, .name_id = CONV, .tid = 78, .cls = OP,
	    .flags = MXBPF_SPAN_SEQ | MXBPF_SPAN_ACCOUNT, .args_id = ARGS, .seq = MXBPF_SEQ(1, nr), .device = CPU0,
	    .alloc_bytes = 4096, .self_alloc_bytes = -64, .account = {.on_cpu_ns = 300, .runq_ns = 200},
	    .counters = {5, 6, 7, 8});
	PUT(b, span, MXBPF_SPAN, at_ns + 600, .dur_ns = 900, .name_id = CONV_BACKWARD, .tid = 79, .cls = OP,
	    .flags = MXBPF_SPAN_SEQ | MXBPF_SPAN_BACKWARD, .seq = MXBPF_SEQ(1, nr), .counters = {MXBPF_COUNTER_NONE});
	PUT(b, span, MXBPF_SPAN, at_ns + 700, .dur_ns = 40, .name_id = TASK, .tid = 78 + nr, .cls = MXBPF_CLASS_TASK,
	    .flags = MXBPF_SPAN_USER, .counters = {MXBPF_COUNTER_NONE});
	PUT(b, span, MXBPF_SPAN, at_ns + 700, .dur_ns = 40, .name_id = UNNAMED, .tid = 78, .cls = API,
	    .flags = MXBPF_SPAN_UNWOUND, .bulk = 1, .counters = {MXBPF_COUNTER_NONE});
	/* Ended before the previous round, so it arrives late. */
	PUT(b, span, MXBPF_SPAN, nr * 10, .dur_ns = 1, .name_id = UNNAMED, .tid = 78, .cls = API,
	    .counters = {MXBPF_COUNTER_NONE});
}

/* Adds two iterations with calls in both. The second one has not ended. */
static void put_steps(struct buf *b, uint64_t at_ns)
{
	unsigned i;

	for (i = 0; i < 2; i++, at_ns += 10000) {
		PUT(b, step, MXBPF_STEP, at_ns, .what = MXBPF_STEP_BACKWARD, .tid = 78);
		PUT(b, span, MXBPF_SPAN, at_ns + 100, .dur_ns = 1000, .name_id = UNNAMED, .tid = 78, .cls = API,
		    .counters = {MXBPF_COUNTER_NONE});
		PUT(b, span, MXBPF_SPAN, at_ns + 5000, .dur_ns = 100, .name_id = STEP, .tid = 78, .cls = OP,
		    .flags = MXBPF_SPAN_USER, .counters = {MXBPF_COUNTER_NONE});
	}
}

static void put_sched(struct buf *b, uint64_t left_ns)
{
	struct {
		struct mxbpf_sched s;
		struct mxbpf_sched_slice slice;
	} r = {.s = {.h = {.kind = MXBPF_SCHED, .size = sizeof(r), .tgid = 77, .ts_ns = left_ns},
		     .woken_ns = left_ns + 100,
		     .back_ns = left_ns + 300,
		     .span_name_id = CONV,
		     .span_cls = OP,
		     .tid = 90,
		     .syscall = -1,
		     .state = MXBPF_SCHED_SLEEPING,
		     .nslices = 1},
	       .slice = {.from_ns = left_ns + 100, .to_ns = left_ns + 300, .tid = 5, .tgid = 5, .comm = "other"}};

	put(b, &r);
}

/*
 * Adds more slow calls than the model keeps; the first one of a round is the slowest. Its thread leaves the CPU twice
 * in it: one record of this comes in the previous round, the other one in the next round.
 */
static void put_slow(struct buf *b, unsigned nr, uint64_t at_ns)
{
	unsigned i;

	if (nr)
		put_sched(b, at_ns - ROUND_NS + 1000);
	put_sched(b, at_ns + ROUND_NS + 2000);
	for (i = 0; i < (nr ? 0 : 2 * NSLOW); i++)
		PUT(b, span, MXBPF_SPAN, at_ns, .dur_ns = TYPICAL, .name_id = CONV, .tid = 90, .cls = OP,
		    .flags = MXBPF_SPAN_ACCOUNT, .account = {.on_cpu_ns = TYPICAL}, .counters = {MXBPF_COUNTER_NONE});
	for (i = 0; i < (nr ? 9 : NSLOW); i++)
		PUT(b, span, MXBPF_SPAN, at_ns + 2 * i * SLOW_NS, .dur_ns = 2 * SLOW_NS * (nr + 1) - i, .name_id = CONV,
		    .tid = 90, .cls = OP, .flags = MXBPF_SPAN_ACCOUNT,
		    .account = {.on_cpu_ns = TYPICAL, .blocked_ns = SLOW_NS}, .counters = {MXBPF_COUNTER_NONE});
}

/* The keys of a call come in one round, its end in the next one. */
static void put_kv(struct buf *b, unsigned nr, uint64_t at_ns)
{
	struct {
		struct mxbpf_kv k;
		struct mxbpf_kv_value value;
	} r = {.k = {.h = {.kind = MXBPF_KV, .size = sizeof(r), .tgid = 77, .ts_ns = at_ns},
		     .name_id = PUSH,
		     .tid = 78,
		     .nvalues = 1,
		     .nsent = 1,
		     .more = 2},
	       .value = {.key = 3, .bytes = 1000}};

	put(b, &r);
	r.k.h.ts_ns++;
	r.value.key = nr;
	put(b, &r);
	PUT(b, span, MXBPF_SPAN, at_ns + 1, .dur_ns = 50, .name_id = PUSH, .tid = 78, .cls = MXBPF_CLASS_KVSTORE,
	    .counters = {MXBPF_COUNTER_NONE});
	if (nr)
		PUT(b, span, MXBPF_SPAN, at_ns - ROUND_NS, .dur_ns = 70, .name_id = PUSH, .tid = 78,
		    .cls = MXBPF_CLASS_KVSTORE, .counters = {MXBPF_COUNTER_NONE});
}

/* Adds blocks that stay allocated and one that is freed. */
static void put_allocs(struct buf *b, unsigned nr, uint64_t at_ns)
{
	unsigned i;

	for (i = 0; i < 3; i++)
		PUT(b, alloc, MXBPF_ALLOC, at_ns + i, .bytes = 1000 * (i + 1), .tid = 78, .device = CPU0,
		    .addr = 4096 * (10 * nr + i + 1), .name_id = i ? CONV : TASK, .cls = OP, .pool_bytes = 9000);
	PUT(b, alloc, MXBPF_ALLOC, at_ns + 5, .bytes = -1000, .tid = 78, .device = CPU0, .addr = 4096 * (10 * nr + 1),
	    .flags = MXBPF_ALLOC_FREED);
}

static void put_sample(struct buf *b, uint64_t at_ns, uint64_t name_id)
{
	struct {
		struct mxbpf_sample s;
		struct mxbpf_sample_span span;
	} r = {.s = {.h = {.kind = MXBPF_SAMPLE, .size = sizeof(r), .tgid = 77, .ts_ns = at_ns},
		     .count = 1,
		     .tid = 78,
		     .nspans_low = 1},
	       .span = {.name_id = name_id, .cls = OP}};

	put(b, &r);
}

/* One activity has its launch in the same round, the others have none. */
static void put_activities(struct buf *b, unsigned nr, uint64_t at_ns)
{
	const size_t first = b->len;
	unsigned cls;
	size_t pos;

	/* Each launch has a thread of its own, because the copy lacks the launches of earlier rounds. */
	PUT(b, span, MXBPF_SPAN, at_ns, .dur_ns = 30, .name_id = CONV, .tid = 200 + nr, .cls = API, .layer_id = CONV,
	    .counters = {MXBPF_COUNTER_NONE});
	PUT(b, span, MXBPF_SPAN, at_ns, .dur_ns = 20, .name_id = CONV, .tid = 200 + nr, .cls = OP, .args_id = ARGS,
	    .counters = {MXBPF_COUNTER_NONE});
	PUT(b, launch, MXBPF_LAUNCH, at_ns, .edge_id = 100 + nr, .tid = 200 + nr, .domain = MXBPF_DOMAIN_CUPTI);
	PUT(b, span, MXBPF_SPAN, at_ns, .dur_ns = 30, .name_id = SYNC, .tid = 200 + nr, .cls = MXBPF_CLASS_CUDA,
	    .counters = {MXBPF_COUNTER_NONE});
	PUT(b, gpu_device, MXBPF_GPU_DEVICE, 0, .name_id = CONV, .device = nr, .multiprocessors = 132);
	PUT(b, gpu_step, MXBPF_GPU_STEP, at_ns, .ns = {nr, 1});
	PUT(b, gpu_limits, MXBPF_GPU_LIMITS, 0, .device = nr, .memory_bus_bits = 5120);
	PUT(b, gpu_account, MXBPF_GPU_ACCOUNT, 0, .records = 10 + nr, .activities = 9 + nr, .dropped = 1);
	PUT(b, activity, MXBPF_ACTIVITY, at_ns + 10, .dur_ns = 5 + nr, .name_id = CONV, .edge_id = 100 + nr,
	    .domain = MXBPF_DOMAIN_CUPTI, .cls = MXBPF_ACTIVITY_KERNEL, .graph = 7, .grid = {nr, 1, 1},
	    .registers = 32);
	for (cls = 1; cls < MXBPF_ACTIVITY_MAX; cls++)
		PUT(b, activity, MXBPF_ACTIVITY, at_ns + 20, .dur_ns = 50, .name_id = nr ? NEW : TASK, .bytes = 4096,
		    .edge_id = 200 + nr, .domain = MXBPF_DOMAIN_CUPTI, .cls = (__u8)cls);
	/* In a process without iterations, because the copy does not know the launches of an iteration that goes on. */
	for (pos = first; pos < b->len; pos += ((struct mxbpf_rec *)(b->data + pos))->size)
		((struct mxbpf_rec *)(b->data + pos))->tgid = 99;
}

static void put_threads(struct buf *b, unsigned nr)
{
	const struct thread_use use = {.tgid = 77, .tid = 78 + nr, .cpu_ns = 9, .runs = 1};
	FREED(tbl_fini) struct tbl t = {.def = &threads_table};
	bool added;

	CHECK(tbl_add(&t, &use, &added) && !tbl_emit(&t, b));
}

static void put_others(struct buf *b, unsigned nr, uint64_t at_ns)
{
	/* After a pause in the current iteration. */
	PUT(b, gauge, MXBPF_GAUGE, at_ns + ROUND_NS / 2, .value = 100 + nr, .id = MXBPF_GAUGE_CPU_BUSY,
	    .flags = nr ? 0 : MXBPF_GAUGE_RESUMED, .count = 1);
	PUT(b, gauge, MXBPF_GAUGE, at_ns, .value = 7, .id = MXBPF_GAUGE_MEMORY_MAX, .scope = (uint16_t)nr, .count = 1);
	PUT(b, team, MXBPF_TEAM, at_ns, .regions = 1, .name_id = CONV, .dur_ns = 10, .threads_ns = 20, .threads = 2,
	    .cls = OP);
	PUT(b, life, MXBPF_LIFE, at_ns, .name_id = CONV, .ns = {1, 2 + nr, 3, 4}, .device = CPU0, .tid = 78);
	PUT(b, wait, MXBPF_WAIT, at_ns, .name_id = PUSH, .call_id = TASK, .op_id = CONV, .count = 1, .total_ns = 9 + nr,
	    .max_ns = 9 + nr, .what = MXBPF_WAIT_OPERATOR);
	PUT(b, instant, MXBPF_INSTANT, at_ns, .name_id = TASK, .count = 1, .scope = MXBPF_SCOPE_PROCESS);
	PUT(b, value, MXBPF_VALUE, at_ns, .name_id = TASK, .count = 1, .value = nr, .min = nr, .max = nr, .seq = nr);
	PUT(b, open, MXBPF_OPEN, at_ns, .open_ns = 10 + nr, .name_id = CONV, .tid = 78, .cls = OP, .syscall = -1);
	put_sample(b, at_ns, CONV);
	put_sample(b, at_ns, nr ? NEW : TASK);
	put_activities(b, nr, at_ns);
	PUT(b, collective, MXBPF_COLLECTIVE, at_ns, .dur_ns = 10 + nr, .bytes = 64, .tid = 78,
	    .backend = MXBPF_BACKEND_GLOO, .op = MXBPF_COLLECTIVE_ALL_REDUCE);
	PUT(b, agg_collective, MXBPF_AGG_COLLECTIVE, 0, .bytes = 64, .count = 1 + nr, .total_ns = 9,
	    .backend = MXBPF_BACKEND_GLOO, .op = MXBPF_COLLECTIVE_ALL_REDUCE);
	PUT(b, agg_overlap, MXBPF_AGG_OVERLAP, 0, .ns = 9 + nr, .overlapped_ns = 3);
	put_threads(b, nr);
}

/* Feeds two windows. Each round has later times than the previous one. */
static void put_looks(struct buf *b, unsigned nr, uint64_t at_ns)
{
	const struct mxbpf_agg_line line = {
		.h = {.kind = MXBPF_AGG_LINE, .size = sizeof(line), .tgid = 7, .ts_ns = at_ns},
		.stack_id = 1000 + nr,
		.count = 3,
		.tid = 7,
		.syscall = -1,
	};
	const struct mxbpf_neighbour process = {
		.h = {.kind = MXBPF_NEIGHBOUR, .size = sizeof(process), .tgid = 900 + nr, .ts_ns = at_ns},
		.cpu_ns = 10000000,
		.elapsed_ns = 20000000,
		.comm = "other",
	};

	const struct mxbpf_look look = {
		.h = {.kind = MXBPF_LOOK, .size = sizeof(look), .tgid = 7, .ts_ns = at_ns},
		.stack_id = 1000 + nr,
		.tid = 7,
	};

	CHECK(!buf_put(b, &line, sizeof(line)) && !buf_put(b, &process, sizeof(process)) &&
	      !buf_put(b, &look, sizeof(look)));
	PUT(b, resident, MXBPF_RESIDENT, at_ns, .bytes = 4096 * (1 + nr));
}

static void add_range_kernels(struct mdl *m, unsigned nr)
{
	const struct ranges_row r = {.tgid = 77,
				     .name_id = TASK,
				     .range_id = nr ? TASK : 0,
				     .count = 2,
				     .total_ns = 30,
				     .min_ns = 10,
				     .max_ns = 20};

	CHECK(!mdl_table_add(m, &feature_ranges, &ranges_kernels, &r));
}

static void put_kernel_metrics(struct buf *b, unsigned nr)
{
	const struct mxbpf_kernel_metric k = {.h = {MXBPF_KERNEL_METRIC, sizeof(k), 77, 1000},
					      .name_id = nr ? NEW : TASK,
					      .milli = 37125 + nr,
					      .held_ns = 1000 * (nr + 1),
					      .edge_id = 3,
					      .passes = 1,
					      .number = (uint16_t)(3 + nr),
					      .first = 1};

	buf_put(b, &k, sizeof(k));
}

/* Calls of CUDA that no operator is around, of which one region stays, and what the driver says. */
static void put_gpu_memory(struct buf *b, unsigned nr, uint64_t at_ns)
{
	unsigned i;

	for (i = 0; i < 3; i++)
		PUT(b, gpu_alloc, MXBPF_GPU_ALLOC, at_ns + i, .dur_ns = 5, .name_id = CONV,
		    .addr = 4096 * (nr + 1 + i % 2), .bytes = 8192, .tid = 99,
		    .flags = i == 2 ? MXBPF_GPU_ALLOC_FREED : 0, .kind = MXBPF_MEMORY_DEVICE);
	PUT(b, gpu_used, MXBPF_GPU_USED, at_ns, .total_bytes = 1 << 20, .used_bytes = 1000 * (nr % 3),
	    .own_bytes = 500 * (nr % 3), .pci_bus = 1);
}

static void feed_round(struct mdl *m, unsigned nr)
{
	const uint64_t at_ns = (nr + 1) * ROUND_NS;
	FREED(buf_fini) struct buf b = {0};

	put_names(&b);
	if (nr)
		put_name(&b, NEW, MXBPF_NAME_SPAN, "new");
	if (nr)
		put_name(&b, 78, MXBPF_NAME_THREAD, "renamed");
	put_spans(&b, nr, at_ns);
	put_steps(&b, at_ns + 1000);
	put_slow(&b, nr, at_ns);
	CHECK(!feed(m, &b));
	put_kv(&b, nr, at_ns);
	put_allocs(&b, nr, at_ns);
	put_others(&b, nr, at_ns);
	put_looks(&b, nr, at_ns);
	add_range_kernels(m, nr);
	put_kernel_metrics(&b, nr);
	put_gpu_memory(&b, nr, at_ns);
	CHECK(!feed(m, &b));
}

/* Returns a model after the first round. */
static struct mdl *model(void)
{
	struct mdl *m = mdl_new();

	mdl_tell_threads(m);
	mdl_tell_processes(m);
	feed_round(m, 0);
	return m;
}

static bool emits(const struct mdl *m, const struct buf *recs)
{
	FREED(buf_fini) struct buf own = {0};

	CHECK(!mdl_emit(m, &own));
	return own.len == recs->len && !memcmp(own.data, recs->data, own.len);
}

static bool is_same(const struct mdl *a, const struct mdl *b)
{
	FREED(buf_fini) struct buf recs = {0};

	CHECK(a && b && !mdl_emit(a, &recs));
	return emits(b, &recs);
}

static struct mdl *copy_of(const struct mdl *m)
{
	struct mdl *to = mdl_new();

	if (to && !mdl_copy_to(to, m))
		return to;
	mdl_free(to);
	return NULL;
}

static void test_kinds(void)
{
	static const unsigned emitted[] = {
		MXBPF_NAME,	    MXBPF_GROUP,	  MXBPF_AGG,	       MXBPF_AGG_MEM,
		MXBPF_AGG_ACCOUNT,  MXBPF_AGG_COUNTERS,	  MXBPF_MEM,	       MXBPF_TALLY,
		MXBPF_SLOW,	    MXBPF_GAUGE,	  MXBPF_TABLE,	       MXBPF_AGG_EXTENT,
		MXBPF_OPEN,	    MXBPF_RESIDENT,	  MXBPF_ITERATION,     MXBPF_MEM_TIME,
		MXBPF_MEM_OWNER,    MXBPF_AGG_ACTIVITY,	  MXBPF_NEIGHBOUR,     MXBPF_LOOK,
		MXBPF_GPU_DEVICE,   MXBPF_GPU_ACCOUNT,	  MXBPF_AGG_GPU_WORK,  MXBPF_AGG_GPU_STREAM,
		MXBPF_AGG_GPU_IDLE, MXBPF_AGG_GPU_LAUNCH, MXBPF_AGG_GPU_TYPES, MXBPF_GPU_IDLE,
		MXBPF_GPU_STEP,	    MXBPF_AGG_GPU_GRAPH,  MXBPF_COLLECTIVE,    MXBPF_AGG_COLLECTIVE,
		MXBPF_AGG_OVERLAP,  MXBPF_GPU_INSIDE,	  MXBPF_GPU_USED,
	};
	FREED(model_freed) struct mdl *m = model(), *copy = copy_of(m);
	const struct mxbpf_rec *r;
	unsigned n[128] = {0}, i;
	FREED(buf_fini) struct buf recs = {0};
	size_t pos = 0;

	CHECK(copy && !mdl_emit(m, &recs) && emits(copy, &recs));
	while ((r = kind_next(recs.data, recs.len, &pos)))
		n[r->kind]++;
	for (i = 0; i < sizeof(emitted) / sizeof(emitted[0]); i++) {
		CHECK(n[emitted[i]]);
		if (!n[emitted[i]])
			printf("# kind %u\n", emitted[i]);
		n[emitted[i]] = emitted[i] == MXBPF_SLOW ? n[MXBPF_SLOW] - SLOW_MAX : 0;
	}
	for (i = 0; i < 128; i++)
		CHECK(!n[i]); /* a new kind needs an entry in the list above, and records in a round */
	CHECK(!strcmp(mdl_thread_name(copy, 77, 78), "python") && !strcmp(mdl_name(copy, UNNAMED, NULL), "[0x19]"));
}

static void test_recording(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	struct rec_reader *r = NULL;
	struct err e = {0};

	CHECK(!rec_reader_open(open(RECORDING, O_RDONLY | O_CLOEXEC), &r, &e) && !rec_reader_model(r, m, &e));
	FREED(model_freed) struct mdl *copy = copy_of(m);
	CHECK(mdl_nrows(m) > 10 && is_same(m, copy));
	mdl_free(copy);
	copy = mdl_new();
	CHECK(!mdl_reserve(copy, mdl_nrows(m) / 2) && !mdl_copy_to(copy, m) && is_same(m, copy));
	mdl_free(copy);
	copy = mdl_new();
	CHECK(!mdl_reserve(copy, mdl_nrows(m) * 2) && !mdl_copy_to(copy, m) && is_same(m, copy));
	rec_reader_close(r);
}

/* Later rounds change every store that the first round has filled, and the emitted records change every row. */
static void test_later(void)
{
	struct mdl *m = model();
	FREED(model_freed) struct mdl *copy = copy_of(m), *sum = NULL, *sum2 = NULL;
	FREED(buf_fini) struct buf recs = {0}, before = {0};
	unsigned nr;

	CHECK(!mdl_emit(m, &before));
	for (nr = 1; nr < NROUNDS; nr++)
		feed_round(m, nr);
	CHECK(emits(copy, &before) && !emits(m, &before));
	for (nr = 1; nr < NROUNDS; nr++)
		feed_round(copy, nr);
	CHECK(is_same(m, copy));
	CHECK(!mdl_emit(m, &recs) && !mdl_feed(m, recs.data, recs.len) && !mdl_feed(copy, recs.data, recs.len));
	CHECK(is_same(m, copy));
	sum = mdl_sum(m);
	sum2 = mdl_sum(copy);
	CHECK(is_same(sum, sum2));
	mdl_free(sum2);
	sum2 = copy_of(sum);
	CHECK(is_same(sum, sum2) && mdl_nprocesses(sum) == mdl_nprocesses(sum2));
	recs.len = 0;
	CHECK(!mdl_emit(m, &recs));
	mdl_free(m);
	CHECK(emits(copy, &recs));
	feed_round(copy, NROUNDS);
	CHECK(!emits(copy, &recs));
}

static void test_iterations(void)
{
	FREED(model_freed) struct mdl *report = mdl_new(), *m = model(), *copy = copy_of(m);
	const struct mxbpf_iteration *a, *b, *c;
	FREED(buf_fini) struct buf before = {0};
	size_t na, nb, nc, i;

	CHECK(!mdl_emit(m, &before));
	b = steps_iterations(copy, &nb);
	CHECK(emits(m, &before)); /* steps_iterations() ends the iteration of the copy, but not of the model */
	a = steps_iterations(m, &na);
	CHECK(na == nb && na && !memcmp(a, b, na * sizeof(*a)));
	/* The report of a recording knows the memory at the end of each iteration, as the session does. */
	CHECK(!mdl_feed(report, before.data, before.len));
	c = steps_iterations(report, &nc);
	CHECK(nc == na && a[na - 1].live_bytes);
	for (i = 0; i < na && i < nc; i++)
		CHECK(c[i].live_bytes == a[i].live_bytes);
}

static size_t niterations(struct mdl *m)
{
	size_t n;

	steps_iterations(m, &n);
	return n;
}

/* First one optimizer steps, then another one, whose steps become the iterations. */
static void test_optimizers(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	struct mdl *copy, *again;
	FREED(buf_fini) struct buf b = {0};
	uint64_t i;

	put_names(&b);
	put_name(&b, NEW, MXBPF_NAME_SPAN, "Optimizer.step#Adam.step");
	for (i = 1; i <= 40; i++) {
		PUT(&b, step, MXBPF_STEP, i * 1000, .what = MXBPF_STEP_BACKWARD, .tid = 78);
		PUT(&b, span, MXBPF_SPAN, i * 1000 + 500, .dur_ns = 100, .name_id = i < 10 ? STEP : NEW, .tid = 78,
		    .cls = OP, .flags = MXBPF_SPAN_USER, .counters = {MXBPF_COUNTER_NONE});
		CHECK(!feed(m, &b) && !mdl_emit(m, &b));
		copy = copy_of(m);
		again = mdl_new();
		CHECK(!feed(again, &b) && niterations(again) == niterations(copy));
		mdl_free(copy);
		mdl_free(again);
	}
	CHECK(niterations(m) > 20);
}

/* Rows with details are counted, so that there are at most MDL_GROUPED_MAX of them. */
static void test_grouped(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};
	unsigned i;

	for (i = 0; i < MDL_GROUPED_MAX - 1; i++)
		PUT(&b, span, MXBPF_SPAN, 1000, .name_id = CONV, .cls = OP, .stack_id = i + 1);
	CHECK(!feed(m, &b));
	FREED(model_freed) struct mdl *copy = copy_of(m);
	for (i = 0; i < 3; i++)
		PUT(&b, span, MXBPF_SPAN, 1000, .name_id = CONV, .cls = OP, .stack_id = MDL_GROUPED_MAX + i);
	CHECK(copy && !feed(copy, &b) && mdl_tally(copy, OP, MXBPF_TALLY_UNGROUPED) == 2);
}

static void test_names(void)
{
	FREED(model_freed) struct mdl *to = mdl_new();
	struct mdl *m = model();
	FREED(buf_fini) struct buf b = {0};
	size_t n;

	PUT(&b, span, MXBPF_SPAN, 1000, .name_id = CONV, .cls = OP);
	put_name(&b, TASK, MXBPF_NAME_SPAN, "not a task");
	put_name(&b, 78, MXBPF_NAME_THREAD, "before");
	put_name(&b, 79, MXBPF_NAME_THREAD, "other");
	CHECK(!feed(to, &b) && !mdl_has_name(to, CONV));
	CHECK(!mdl_copy_names(to, m));
	mdl_free(m);
	CHECK(!strcmp(mdl_name(to, CONV, NULL), "Convolution") && mdl_has_name(to, CONV));
	CHECK(!strcmp(mdl_name(to, TASK, NULL), "not a task"));
	CHECK(!strcmp(mdl_text(to, MXBPF_NAME_ARGS, ARGS, &n), "[[8,3]]") && n == 7);
	CHECK(!strcmp(mdl_text(to, MXBPF_NAME_DOMAIN, TASK, NULL), "domain") && !mdl_has_name(to, UNNAMED));
	CHECK(!strcmp(mdl_thread_name(to, 77, 78), "python") && !strcmp(mdl_thread_name(to, 77, 79), "other"));
	mdl_rows(to, OP, &n);
	CHECK(n == 1 && mdl_nrows(to) == 1);
}

int main(void)
{
	struct mdl *m = mdl_new(), *copy = copy_of(m);

	TEST("a copy emits the same records as the model, for every kind")
	test_kinds();
	TEST("a copy of an empty model is empty")
	CHECK(is_same(m, copy) && !mdl_nrows(copy));
	TEST("a copy of a recording's model emits the same records, whatever room was reserved for it")
	test_recording();
	TEST("a copy is independent of the model, outlives it, and changes in the same way if it gets the same records")
	test_later();
	TEST("ending the iterations of a copy does not end those of the model")
	test_iterations();
	TEST("a copy and the emitted records give the same iterations, whichever optimizer comes last")
	test_optimizers();
	TEST("a copy knows how many of its rows have details")
	test_grouped();
	TEST("copying names alone adds texts without replacing any, and updates the names of threads")
	test_names();
	mdl_free(m);
	mdl_free(copy);
	UNIT_MAIN_END;
}
