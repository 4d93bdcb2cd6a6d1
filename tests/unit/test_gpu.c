// SPDX-License-Identifier: Apache-2.0
/* Tests what the model makes of activities of GPUs: their rows, the calls that they belong to, and busy times. */
#include "chrome_tape.h"
#include "feature/activity/activity.h"
#include "feature/steps/steps.h"
#include "printed.h"

#define GEMM  101
#define COPY  102
#define CONV  201
#define BLOCK 202
#define USER  203
#define CALL  204
#define LAYER 205
#define SEC   1000000000ull

/* ---- records */

static struct mxbpf_activity *activity(struct tape *t, uint64_t edge_id, uint64_t start_ns, uint64_t end_ns)
{
	return kernel(t, GEMM, edge_id, start_ns, end_ns);
}

static struct mxbpf_activity *copy(struct tape *t, uint64_t edge_id, uint64_t start_ns, uint64_t end_ns, uint64_t bytes)
{
	struct mxbpf_activity *a = activity(t, edge_id, start_ns, end_ns);

	a->name_id = COPY;
	a->cls = MXBPF_ACTIVITY_COPY;
	a->bytes = bytes;
	a->copy = MXBPF_COPY_HTOD;
	a->from = MXBPF_MEMORY_PAGEABLE;
	a->to = MXBPF_MEMORY_DEVICE;
	a->track.stream = 20;
	return a;
}

/* ---- rows */

static const struct mxbpf_agg_gpu_work *row_of(const struct mdl *m, enum mxbpf_gpu_work_of of, uint64_t id)
{
	static const struct mxbpf_agg_gpu_work none;
	size_t n, i;
	const struct activity_work *const *rows = activity_work_rows(m, &n);

	for (i = 0; i < n; i++)
		if (rows[i]->a.of == of &&
		    (!id || rows[i]->a.name_id == id || rows[i]->a.layer_id == id || rows[i]->a.graph == id))
			return &rows[i]->a;
	return &none;
}

static const struct mxbpf_agg_gpu_work *calls(const struct mdl *m, uint64_t name_id)
{
	return row_of(m, MXBPF_WORK_OF_CALLS, name_id);
}

static const struct activity_join *counts(const struct mdl *m)
{
	static const struct activity_join none;
	size_t n;
	const struct activity_join *all = activity_joins(m, &n);

	return n ? all : &none;
}

static bool is_same(const struct mdl *a, const struct mdl *b)
{
	FREED(buf_fini) struct buf x = {0}, y = {0};

	CHECK(!mdl_emit(a, &x) && !mdl_emit(b, &y));
	return x.len == y.len && !memcmp(x.data, y.data, x.len);
}

/* ---- the join */

/* A step (user annotation) has a block (operator) with a convolution in it, and a call of the C API. */
static void put_calls(struct tape *t)
{
	call(t, OP, CONV, 200, 300)->layer_id = LAYER;
	call(t, OP, BLOCK, 150, 400);
	call(t, API, CALL, 500, 600);
	call(t, OP, USER, 100, 700)->flags = MXBPF_SPAN_USER;
}

static void put_launches(struct tape *t)
{
	launch(t, PID, 250, 1);	    /* in the convolution */
	launch(t, PID, 350, 2);	    /* in the block */
	launch(t, PID, 550, 3);	    /* in the call */
	launch(t, PID, 650, 4);	    /* in the annotation alone */
	launch(t, PID, 800, 5);	    /* outside */
	launch(t, PID + 1, 250, 6); /* another thread */
	launch(t, PID, 260, 7);	    /* has no activity */
}

static void put_activities(struct tape *t)
{
	activity(t, 1, 1000, 1010);
	activity(t, 2, 1020, 1040);
	copy(t, 3, 1050, 1080, 4096);
	activity(t, 4, 1100, 1140);
	activity(t, 5, 1200, 1250);
	activity(t, 6, 1300, 1360);
	activity(t, 99, 1400, 1470); /* its launch was lost */
}

static bool is_joined(const struct mdl *m)
{
	const struct mxbpf_agg_gpu_work *conv = calls(m, CONV), *block = calls(m, BLOCK), *user = calls(m, USER);
	const struct mxbpf_agg_gpu_work *outside = row_of(m, MXBPF_WORK_OF_OUTSIDE, 0);
	const struct mxbpf_agg_gpu_work *unknown = row_of(m, MXBPF_WORK_OF_UNKNOWN, 0);

	return conv->self.gpu_ns == 10 && conv->total.gpu_ns == 10 && conv->total.launches == 2 &&
	       block->self.gpu_ns == 20 && block->total.gpu_ns == 30 && block->total.kernels == 2 &&
	       calls(m, CALL)->self.gpu_ns == 30 && calls(m, CALL)->self.bytes == 4096 &&
	       calls(m, CALL)->self.copies == 1 && user->user && user->self.gpu_ns == 40 && user->total.gpu_ns == 100 &&
	       user->total.launches == 5 && user->self.launches == 1 && outside->self.gpu_ns == 110 &&
	       outside->self.launches == 2 && unknown->self.gpu_ns == 70 &&
	       row_of(m, MXBPF_WORK_OF_LAYER, LAYER)->total.gpu_ns == 10 && conv->latencies == 1 &&
	       conv->latency_ns == 750 && conv->latency_max_ns == 750 && counts(m)->launches == 7 &&
	       counts(m)->without_work == 1 && !counts(m)->late_launches && !counts(m)->late_spans;
}

static void (*const parts[])(struct tape *t) = {put_calls, put_launches, put_activities};

/* Folds the three parts in one of their six orders, each in a window of its own if `windows` is set. */
static struct tape joined(unsigned order, bool windows)
{
	const unsigned first = order / 2, second = (first + 1 + order % 2) % 3;
	struct tape t = tape_new();

	parts[first](&t);
	if (windows)
		CHECK(!fold(&t));
	parts[second](&t);
	if (windows)
		CHECK(!fold(&t));
	parts[3 - first - second](&t);
	CHECK(!fold(&t));
	return t;
}

static void test_join(void)
{
	TEST("work belongs to the innermost operator, else to another call, else to an annotation, in whatever order "
	     "records come")
	{
		unsigned i;

		for (i = 0; i < 12; i++) {
			FREED(tape_free) struct tape t = joined(i % 6, i >= 6);

			CHECK(is_joined(t.model));
		}
	}
	TEST("the records of a model give the same rows again, and sums of processes add them up")
	{
		FREED(tape_free) struct tape t = joined(0, false);
		FREED(model_freed) struct mdl *sum = mdl_sum(t.model), *again = mdl_new();
		FREED(buf_fini) struct buf recs = {0};

		CHECK(!mdl_emit(t.model, &recs) && !mdl_feed(again, recs.data, recs.len));
		CHECK(is_joined(again) && is_same(t.model, again));
		CHECK(calls(sum, BLOCK)->total.gpu_ns == 30 && !calls(sum, BLOCK)->h.tgid);
	}
	TEST("an operator that calls itself has the work of its launches once")
	{
		FREED(tape_free) struct tape t = tape_new();

		call(&t, OP, CONV, 220, 230);
		call(&t, OP, CONV, 210, 240);
		call(&t, OP, CONV, 200, 300);
		launch(&t, PID, 225, 1);
		activity(&t, 1, 1000, 1010);
		CHECK(!fold(&t));
		CHECK(calls(t.model, CONV)->total.gpu_ns == 10 && calls(t.model, CONV)->self.gpu_ns == 10);
	}
	TEST("the innermost operator is the owner even if its record comes after the one around it")
	{
		FREED(tape_free) struct tape t = tape_new();

		launch(&t, PID, 250, 1);
		activity(&t, 1, 1000, 1010);
		CHECK(!fold(&t));
		call(&t, OP, BLOCK, 150, 400);
		CHECK(!fold(&t));
		CHECK(calls(t.model, BLOCK)->self.gpu_ns == 10 && calls(t.model, BLOCK)->latencies == 1);
		call(&t, OP, CONV, 200, 300);
		CHECK(!fold(&t));
		CHECK(calls(t.model, CONV)->self.gpu_ns == 10 && calls(t.model, CONV)->latency_ns == 750);
		CHECK(!calls(t.model, BLOCK)->self.gpu_ns && calls(t.model, BLOCK)->total.gpu_ns == 10);
		CHECK(!calls(t.model, BLOCK)->latencies && !calls(t.model, BLOCK)->latency_max_ns);
		launch(&t, PID, 350, 2); /* after the inner one, whose record came last */
		CHECK(!fold(&t) && calls(t.model, BLOCK)->self.launches == 1);
	}
	TEST("a span that ended elsewhere, and a call of CUDA itself, own no work")
	{
		FREED(tape_free) struct tape t = tape_new();

		call(&t, OP, CONV, 200, 300)->flags = MXBPF_SPAN_ASYNC;
		call(&t, MXBPF_CLASS_CUDA, CALL, 240, 260);
		launch(&t, PID, 250, 1);
		activity(&t, 1, 1000, 1010);
		CHECK(!fold(&t));
		CHECK(row_of(t.model, MXBPF_WORK_OF_OUTSIDE, 0)->self.gpu_ns == 10);
	}
	TEST("all kernels of a CUDA graph belong to the operator that launched it, and to the graph")
	{
		FREED(tape_free) struct tape t = tape_new();
		unsigned i;

		call(&t, OP, CONV, 200, 300);
		launch(&t, PID, 250, 1);
		for (i = 0; i < 5; i++)
			activity(&t, 1, 1100 - 20 * i, 1110 - 20 * i)->graph = 12;
		CHECK(!fold(&t));
		CHECK(calls(t.model, CONV)->self.kernels == 5 && calls(t.model, CONV)->self.launches == 1);
		/* The latency is that of the first kernel, which came last. */
		CHECK(calls(t.model, CONV)->latencies == 1 && calls(t.model, CONV)->latency_ns == 1020 - 250);
		CHECK(row_of(t.model, MXBPF_WORK_OF_GRAPH, 12)->total.kernels == 5 &&
		      row_of(t.model, MXBPF_WORK_OF_GRAPH, 12)->total.launches == 1);
	}
	TEST("an activity belongs to the last launch with its id that is not later, or to a launch that is a little "
	     "later")
	{
		FREED(tape_free) struct tape t = tape_new();

		call(&t, OP, CONV, 100, 200);
		call(&t, OP, BLOCK, 500, 600);
		launch(&t, PID, 150, 1);
		launch(&t, PID, 550, 1);
		launch(&t, PID, 560, 2);
		activity(&t, 1, 300, 310);
		activity(&t, 1, 570, 590);
		activity(&t, 2, 555, 585);
		CHECK(!fold(&t));
		CHECK(calls(t.model, CONV)->self.gpu_ns == 10 && calls(t.model, BLOCK)->self.gpu_ns == 50);
	}
}

static void test_bounds(void)
{
	TEST("the last spans before the first sign of a GPU own work, too")
	{
		FREED(tape_free) struct tape t = tape_new();
		unsigned i;

		for (i = 0; i < 20000; i++)
			call(&t, OP, i < 19000 ? CALL : CONV, 100 * i, 100 * i + 50);
		CHECK(!fold(&t));
		for (i = 0; i < 20000; i++)
			launch(&t, PID, 100 * i + 10, i + 1);
		CHECK(!fold(&t));
		CHECK(calls(t.model, CONV)->self.launches == 1000 &&
		      calls(t.model, CALL)->self.launches == 4096 - 1000);
	}
	TEST("spans and launches need bounded memory, and what they miss is counted")
	{
		FREED(tape_free) struct tape t = tape_new();
		struct mxbpf_gpu_device *d = rec_add(&t, MXBPF_GPU_DEVICE, sizeof(*d), 0);
		uint64_t i;

		d->name_id = GEMM;
		for (i = 1; i <= 600000; i++) {
			call(&t, OP, CONV, 100 * i, 100 * i + 50);
			CHECK(i % 1000 || !fold(&t));
		}
		launch(&t, PID, 110, 1); /* its span was forgotten */
		launch(&t, PID, 60000010, 2);
		CHECK(!fold(&t));
		CHECK(counts(t.model)->late_launches == 1 && calls(t.model, CONV)->self.launches == 1);
		for (i = 3; i <= 300000; i++) {
			launch(&t, PID, 60000100 + i, i);
			CHECK(i % 1000 || !fold(&t));
		}
		CHECK(!fold(&t));
		call(&t, OP, USER, 100, 70000000)->flags = MXBPF_SPAN_USER;
		CHECK(!fold(&t));
		CHECK(counts(t.model)->late_spans == 1 && calls(t.model, USER)->total.launches == 1 << 18);
	}
	TEST("an interval goes on with the launches of the one before, and counts activities where they arrive")
	{
		FREED(tape_free) struct tape t = tape_new();
		FREED(model_freed) struct mdl *next = mdl_new();

		put_calls(&t);
		put_launches(&t);
		activity(&t, 1, 1000, 1010);
		CHECK(!fold(&t));
		CHECK(!mdl_move(next, t.model, 0));
		CHECK(calls(t.model, CONV)->self.gpu_ns == 10);
		activity(&t, 1, 900, 920); /* earlier than the one that gave the latency */
		activity(&t, 2, 1050, 1080);
		call(&t, OP, CALL, 50, 900);
		CHECK(!mdl_feed(next, t.recs.data, t.recs.len));
		CHECK(calls(next, CONV)->self.gpu_ns == 20 && !calls(next, CONV)->self.launches);
		CHECK(calls(next, BLOCK)->self.gpu_ns == 30 && calls(next, BLOCK)->total.gpu_ns == 50);
		CHECK(!calls(next, CONV)->latencies && calls(next, BLOCK)->latency_ns == 1050 - 350);
		CHECK(row_of(next, MXBPF_WORK_OF_OUTSIDE, 0)->self.launches == 0);
	}
}

/* ---- iterations */

/* The backward pass begins the next iteration. */
static void pass(struct tape *t, uint64_t at_ns)
{
	struct mxbpf_step *s = rec_add(t, MXBPF_STEP, sizeof(*s), at_ns);

	s->what = MXBPF_STEP_BACKWARD;
	s->tid = PID;
}

/* Three iterations with launches in each, on two threads, and what comes with the first one. */
static void put_loop(struct tape *t)
{
	pass(t, 1000);
	pass(t, 2000);
	pass(t, 3000);
	pass(t, 4000);
}

static void put_loop_launches(struct tape *t)
{
	launch(t, PID, 900, 9); /* before the first one */
	launch(t, PID, 1100, 1);
	launch(t, PID + 1, 1999, 2);
	launch(t, PID, 2000, 3);
	launch(t, PID, 3500, 4);
}

static void put_loop_activities(struct tape *t)
{
	activity(t, 9, 1000, 1005);
	activity(t, 1, 2500, 2510); /* while the next one runs */
	activity(t, 2, 2600, 2620);
	copy(t, 3, 2700, 2730, 10);
	activity(t, 4, 5000, 5040);
}

static bool has_loop(struct mdl *m)
{
	size_t n;
	const struct mxbpf_iteration *it = steps_iterations(m, &n);

	return n == 3 && it[0].flags & MXBPF_ITERATION_GPU && it[0].gpu_ns == 30 && it[0].kernels == 2 &&
	       it[1].gpu_ns == 30 && it[1].kernels == 0 && it[2].gpu_ns == 40 && it[2].kernels == 1;
}

static void test_iterations(void)
{
	static void (*const of_loop[])(struct tape * t) = {put_loop, put_loop_launches, put_loop_activities};

	TEST("an iteration has the work that was launched in it, whenever that comes, and keeps it in a recording")
	{
		unsigned order, k;

		for (order = 0; order < 12; order++) {
			const unsigned first = order % 6 / 2, second = (first + 1 + order % 2) % 3;
			const unsigned all[] = {first, second, 3 - first - second};
			FREED(model_freed) struct mdl *again = mdl_new();
			FREED(tape_free) struct tape t = tape_new();
			FREED(buf_fini) struct buf recs = {0};

			if (order >= 6) /* the process is known to launch before its iterations end */
				launch(&t, PID, 10, 77);
			CHECK(!fold(&t));
			for (k = 0; k < 3; k++) {
				of_loop[all[k]](&t);
				CHECK(!fold(&t));
			}
			CHECK(!mdl_emit(t.model, &recs) && !mdl_feed(again, recs.data, recs.len));
			CHECK(has_loop(t.model) && has_loop(again));
		}
	}
	TEST("iterations of a process that launches nothing know nothing of GPUs, and their records are those of "
	     "before")
	{
		FREED(tape_free) struct tape t = tape_new();
		FREED(buf_fini) struct buf recs = {0};
		const struct mxbpf_rec *r;
		size_t pos = 0, n = 0;

		put_loop(&t);
		CHECK(!fold(&t) && !mdl_emit(t.model, &recs));
		while ((r = kind_next(recs.data, recs.len, &pos)))
			n += r->kind == MXBPF_ITERATION && r->size == MXBPF_ITERATION_BYTES_PLAIN;
		CHECK(n == 3 && !(steps_iterations(t.model, &n)->flags & MXBPF_ITERATION_GPU));
	}
}

/* ---- rows of activities */

static const struct mxbpf_agg_activity *first_row(const struct mdl *m)
{
	size_t n;
	const struct activity_row *const *rows = activity_rows(m, &n);

	return &rows[0]->a;
}

static void put_shape(struct mxbpf_activity *a, uint32_t grid, uint16_t block, uint16_t registers)
{
	a->grid[0] = grid;
	a->grid[1] = a->grid[2] = 1;
	a->block[0] = block;
	a->block[1] = a->block[2] = 1;
	a->registers = registers;
}

static void test_rows(void)
{
	TEST("a row of kernels has the shape of the latest one, and says which parts differ")
	{
		FREED(tape_free) struct tape t = tape_new();

		put_shape(activity(&t, 0, 200, 300), 64, 256, 32);
		put_shape(activity(&t, 0, 100, 150), 128, 256, 32);
		CHECK(!fold(&t));
		CHECK(first_row(t.model)->grid[0] == 64 && first_row(t.model)->block[0] == 256 &&
		      first_row(t.model)->registers == 32 && first_row(t.model)->varies == MXBPF_SHAPE_GRID);
	}
	TEST("records of older versions lack members, which count as 0")
	{
		FREED(tape_free) struct tape t = tape_new();
		struct mxbpf_gpu_account sum;
		struct mxbpf_activity *a = activity(&t, 1, 200, 300);
		struct mxbpf_launch l = {.h = {MXBPF_LAUNCH, MXBPF_LAUNCH_BYTES_MIN, PID, MONO + 100},
					 .edge_id = 1,
					 .tid = PID,
					 .domain = MXBPF_DOMAIN_CUPTI,
					 .dur_ns = 77};

		a->graph = 5;
		a->h.size = MXBPF_ACTIVITY_BYTES_MIN;
		t.recs.len = MXBPF_ACTIVITY_BYTES_MIN;
		((struct mxbpf_gpu_account *)rec_add(&t, MXBPF_GPU_ACCOUNT, MXBPF_GPU_ACCOUNT_BYTES_MIN, 0))->records =
			7;
		buf_put(&t.recs, &l, MXBPF_LAUNCH_BYTES_MIN);
		CHECK(!fold(&t) && !row_of(t.model, MXBPF_WORK_OF_GRAPH, 0)->total.kernels);
		CHECK(!first_row(t.model)->unlaunched && !first_row(t.model)->shape_ns && !kind_launch(&l.h).dur_ns);
		sum = *activity_accounts(t.model, &(size_t){0});
		CHECK(sum.records == 7 && !sum.unreadable && !sum.unjoined && !sum.queries);
	}
	TEST("copies of different kinds of memory have different rows, and a wait is in no busy time and unlaunched by "
	     "nobody")
	{
		FREED(tape_free) struct tape t = tape_new();
		FREED(buf_fini) struct buf streams = {0};
		size_t n;

		copy(&t, 0, 100, 200, 10);
		copy(&t, 0, 300, 400, 10)->from = MXBPF_MEMORY_PINNED;
		activity(&t, 55, 500, 600)->cls = MXBPF_ACTIVITY_SYNC;
		CHECK(!fold(&t));
		activity_rows(t.model, &n);
		CHECK(n == 3 && !activity_streams(t.model, &streams));
		CHECK(buf_at(&streams, struct mxbpf_agg_gpu_stream, 0)->busy_ns == 200);
		CHECK(row_of(t.model, MXBPF_WORK_OF_UNKNOWN, 0)->self.gpu_ns == 200);
	}
}

/* ---- tables */

/* Returns what people read. The caller frees it. */
static char *text_of(const struct tape *t, bool brief)
{
	const struct view_input in = {.session = &t->session, .model = t->model};
	const struct view_opts opts = {.sort = VIEW_SORT_TOTAL, .brief = brief, .width = 160};

	return printed(&view_modern, &in, &opts);
}

static void put_device(struct tape *t)
{
	struct mxbpf_gpu_device *d;

	name(t, COPY, MXBPF_NAME_SPAN, "NVIDIA H200", 11);
	d = rec_add(t, MXBPF_GPU_DEVICE, sizeof(*d), 0); /* valid until the next record */
	d->name_id = COPY;
	d->multiprocessors = 132;
	d->major = 9;
	d->threads_per_mp = 2048;
	d->blocks_per_mp = 32;
	d->registers_per_mp = 65536;
	d->shared_per_mp = 233472;
	d->warp = 32;
}

static void test_tables(void)
{
	TEST("tables show kernels with their shapes and occupancy, and mark shapes that differ")
	{
		FREED(tape_free) struct tape t = tape_new();

		put_device(&t);
		name(&t, GEMM, MXBPF_NAME_SPAN, "gemm", 4);
		put_shape(activity(&t, 0, 100, 150), 64, 256, 40);
		put_shape(activity(&t, 0, 200, 300), 128, 256, 40);
		CHECK(!fold(&t));
		FREED(memory_freed) char *text = text_of(&t, false);
		CHECK(strstr(text, "GPU kernels: 2, 150 ns in all, in 1 row") && strstr(text, " ~128 ") &&
		      strstr(text, " 256 ") && strstr(text, " 75% registers ") &&
		      strstr(text, " fewer blocks than SMs\n") && strstr(text, "~ calls differ"));
		CHECK(strstr(text, "GPU 0 NVIDIA H200"));
		CHECK(strstr(text, "GPU 0 NVIDIA H200"));
	}
	TEST("work on the GPU is shown by the innermost module of the owner's Python stack, each launch once")
	{
		static const char conv[] = "nn.Module: Conv2d_1\nnn.Module: Net_0\ntrain.py(7): main\n";
		static const char line[] = "train.py(3): forward\nnn.Module: Conv2d_1\nnn.Module: Net_0\n";
		static const char none[] = "train.py(9): main\n";
		FREED(tape_free) struct tape t = tape_new();

		name(&t, 901, MXBPF_NAME_STACK, conv, sizeof(conv) - 1);
		name(&t, 902, MXBPF_NAME_STACK, line, sizeof(line) - 1);
		name(&t, 903, MXBPF_NAME_STACK, none, sizeof(none) - 1);
		launch(&t, PID, 250, 1);
		launch(&t, PID, 350, 2);
		launch(&t, PID, 550, 3);
		activity(&t, 1, 1000, 1010);
		call(&t, OP, BLOCK, 150, 400)->stack_id = 902; /* comes before the operator inside it */
		call(&t, OP, CONV, 200, 300)->stack_id = 901;
		call(&t, OP, USER, 500, 600)->stack_id = 903;
		activity(&t, 2, 1020, 1040);
		activity(&t, 3, 1050, 1090);
		CHECK(!fold(&t));
		FREED(memory_freed) char *text = text_of(&t, false);
		CHECK(strstr(text, "Modules on the GPU: 1 row\n"));
		CHECK(strstr(text, "\nnn.Module: Conv2d_1        2       2     30ns"));
		if (!strstr(text, "Conv2d_1  "))
			printf("%s", text);
	}
	TEST("people read the names of kernels without their results, parameters and common beginnings")
	{
		FREED(tape_free) struct tape t = tape_new();
		char full[2000];

		snprintf(full, sizeof(full),
			 "void at::native::vectorized<4, at::native::(anonymous namespace)::Add<float>, %01000d>"
			 "(int, at::native::Add<float>)",
			 7);
		name(&t, GEMM, MXBPF_NAME_SPAN, full, strlen(full));
		activity(&t, 0, 100, 150);
		CHECK(!fold(&t));
		FREED(memory_freed) char *text = text_of(&t, false);
		CHECK(strstr(text, "\nvectorized<4, Add<float>, 000") && !strstr(text, "native"));
	}
	TEST("what was lost and what could not be joined stands below the tables, and nothing else does")
	{
		FREED(tape_free) struct tape t = tape_new();
		struct mxbpf_gpu_account *a = rec_add(&t, MXBPF_GPU_ACCOUNT, sizeof(*a), 0);

		a->dropped = 1234;
		activity(&t, 5, 100, 150);
		launch(&t, PID, 50, 1);
		CHECK(!fold(&t));
		FREED(memory_freed) char *text = text_of(&t, false);
		CHECK(strstr(text, "GPU records lost because CUPTI had no buffer: 1,234\n"));
		CHECK(strstr(text, "1 of them belongs to no call, because the launch was not seen\n"));
		CHECK(strstr(text, "1 launch without an activity, which was lost or had not ended\n"));
		CHECK(strstr(text, "[outside of calls]") && strstr(text, "[launch not seen]"));
		CHECK(!strstr(text, "full") && !strstr(text, "clocks") && !strstr(text, "forgotten"));
	}
	TEST("processes that lost records stand in the order of their numbers, in whichever order they told it")
	{
		static const uint32_t pids[] = {300, 100, 200};
		FREED(tape_free) struct tape t = tape_new();
		struct mxbpf_gpu_account *a;
		unsigned i;

		for (i = 0; i < 3; i++) {
			a = rec_add(&t, MXBPF_GPU_ACCOUNT, sizeof(*a), 0);
			a->h.tgid = pids[i];
			a->dropped = pids[i] + 1;
		}
		CHECK(!fold(&t));
		FREED(memory_freed) char *text = text_of(&t, false);
		CHECK(strstr(text, "no buffer: 603 (101 of 100, 201 of 200, 301 of 300)\n"));
	}
	TEST("a short output names the tables of GPUs that it leaves out")
	{
		FREED(tape_free) struct tape t = tape_new();

		activity(&t, 0, 100, 150)->cls = MXBPF_ACTIVITY_SYNC;
		activity(&t, 0, 100, 150)->cls = MXBPF_ACTIVITY_SET;
		activity(&t, 0, 200, 250)->graph = 7;
		CHECK(!fold(&t));
		FREED(memory_freed) char *text = text_of(&t, true);
		CHECK(strstr(
			text,
			"more     GPU memsets, waits for GPUs, CUDA graphs, streams of GPUs, GPU time by type: --all"));
		CHECK(strstr(text, "GPU kernels: 1") && !strstr(text, "GPU memsets: 1"));
		free(text);
		text = text_of(&t, false);
		CHECK(strstr(text, "GPU memsets: 1") && strstr(text, "CUDA graphs: 1 row") && strstr(text, "graph 7"));
	}
	TEST("calls of CUDA have a table although they belong to no runtime")
	{
		FREED(tape_free) struct tape t = tape_new();

		call(&t, MXBPF_CLASS_CUDA, CALL, 100, 200);
		CHECK(!fold(&t));
		FREED(memory_freed) char *text = text_of(&t, false);
		CHECK(strstr(text, "CUDA call: 100 ns in 1 row"));
	}
}

/* ---- busy times */

static struct mxbpf_agg_gpu_stream stream(const struct mdl *m, bool whole, uint32_t number)
{
	struct mxbpf_agg_gpu_stream found = {.count = 0};
	FREED(buf_fini) struct buf all = {0};
	size_t i;

	CHECK(!activity_streams(m, &all));
	for (i = 0; i < buf_count(&all, found); i++)
		if (buf_at(&all, struct mxbpf_agg_gpu_stream, i)->whole == whole &&
		    buf_at(&all, struct mxbpf_agg_gpu_stream, i)->track.stream == number)
			found = *buf_at(&all, struct mxbpf_agg_gpu_stream, i);
	return found;
}

static void test_busy(void)
{
	TEST("busy times are unions, and overlap is what copies and kernels have in common, in any order of arrival")
	{
		static const struct {
			bool copy;
			uint64_t start_ns, end_ns;
		} all[] = {{false, 0, 100}, {false, 50, 150}, {true, 120, 200}, {false, 300, 400}, {true, 350, 380}};
		unsigned first, i;

		for (first = 0; first < 5; first++) {
			FREED(tape_free) struct tape t = tape_new();
			struct mxbpf_agg_gpu_stream gpu;

			for (i = 0; i < 5; i++) {
				const unsigned k = (first + 3 * i) % 5;

				if (all[k].copy)
					copy(&t, 0, all[k].start_ns, all[k].end_ns, 1);
				else
					activity(&t, 0, all[k].start_ns, all[k].end_ns);
			}
			CHECK(!fold(&t));
			gpu = stream(t.model, true, 0);
			CHECK(gpu.busy_ns == 300 && gpu.compute_ns == 250 && gpu.copy_ns == 110 && gpu.count == 5);
			CHECK(stream(t.model, false, 7).busy_ns == 250 && stream(t.model, false, 20).busy_ns == 110);
		}
	}
	TEST("activities that come up to two seconds late count exactly, and later ones count without what may count "
	     "twice")
	{
		FREED(tape_free) struct tape t = tape_new();
		uint64_t i;

		/* Pairs of kernels that touch; the second one of each pair comes a second later. */
		for (i = 0; i < 60000; i++) {
			activity(&t, 0, i * 100000, i * 100000 + 30000);
			if (i >= 10000)
				activity(&t, 0, (i - 10000) * 100000 + 20000, (i - 10000) * 100000 + 50000);
			CHECK(i % 100 || !fold(&t));
		}
		for (i = 50000; i < 60000; i++)
			activity(&t, 0, i * 100000 + 20000, i * 100000 + 50000);
		CHECK(!fold(&t));
		CHECK(stream(t.model, true, 0).busy_ns == 60000ull * 50000 && !stream(t.model, true, 0).late);
		activity(&t, 0, 50000, 60000);
		activity(&t, 0, 50000, 60000)->track.stream = 8; /* nothing else ran there */
		CHECK(!fold(&t));
		CHECK(stream(t.model, false, 8).busy_ns == 10000 && !stream(t.model, false, 8).late);
		CHECK(stream(t.model, false, 7).late == 1 && stream(t.model, true, 0).busy_ns == 60000ull * 50000 &&
		      stream(t.model, true, 0).late == 2);
	}
}

int main(void)
{
	test_join();
	test_bounds();
	test_iterations();
	test_rows();
	test_tables();
	test_busy();
	UNIT_MAIN_END;
}
