// SPDX-License-Identifier: Apache-2.0
/* Tests critical paths of iterations, and what operators launch one after another. */
#include "feature/path/path.h"

#include "mxbpf_step.h"
#include "gpu_records.h"

#define OP MXBPF_CLASS_OPERATOR

/* Ids of names. */
enum { RELU = GPU_NAMES, CONV, LOSS, BLOCK, LOADER, SYNC, GLOO };

static void put_names(struct buf *b)
{
	put_gpu_names(b);
	put_name(b, RELU, MXBPF_NAME_SPAN, "relu");
	put_name(b, CONV, MXBPF_NAME_SPAN, "conv");
	put_name(b, LOSS, MXBPF_NAME_SPAN, "loss");
	put_name(b, BLOCK, MXBPF_NAME_SPAN, "block");
	put_name(b, LOADER, MXBPF_NAME_SPAN, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
	put_name(b, SYNC, MXBPF_NAME_SPAN, "cudaStreamSynchronize");
	put_name(b, GLOO, MXBPF_NAME_SPAN, "gloo:all_reduce");
}

static void iteration(struct buf *b, uint64_t start_ns, uint64_t end_ns)
{
	struct mxbpf_iteration *it = rec(b, MXBPF_ITERATION, sizeof(*it), start_ns);

	it->dur_ns = end_ns - start_ns;
	it->tid = PID;
	it->told = MXBPF_STEP_OPTIMIZER;
}

/* ---- results */

static uint64_t ns_of(const struct mdl *m, unsigned part, uint64_t name_id)
{
	const struct mxbpf_gpu_path *p;
	struct buf all = {0};
	uint64_t ns = 0;
	size_t i;

	CHECK(!path_parts(m, &all));
	for (i = 0; i < buf_count(&all, *p); i++) {
		p = buf_at(&all, struct mxbpf_gpu_path, i);
		ns += p->part == part && p->name_id == name_id ? p->ns : 0;
	}
	buf_fini(&all);
	return ns;
}

/* Returns the length of the path, which its parts make up. */
static uint64_t whole(const struct mdl *m)
{
	const struct mxbpf_gpu_path *p;
	struct buf all = {0};
	uint64_t ns = 0, length_ns = 0;
	size_t i;

	CHECK(!path_parts(m, &all));
	for (i = 0; i < buf_count(&all, *p); i++) {
		p = buf_at(&all, struct mxbpf_gpu_path, i);
		ns += p->ns;
		length_ns = p->end_ns - p->h.ts_ns;
	}
	buf_fini(&all);
	CHECK(ns == length_ns);
	return length_ns;
}

static struct mdl *recorded(const struct mdl *m)
{
	struct mdl *again = mdl_new();
	struct buf recs = {0};

	CHECK(!mdl_emit(m, &recs) && !mdl_feed(again, recs.data, recs.len));
	buf_fini(&recs);
	return again;
}

static struct mdl *fed(struct buf *b)
{
	struct mdl *m = mdl_new();

	put_names(b);
	CHECK(!feed(m, b));
	buf_fini(b);
	*b = (struct buf){0};
	return m;
}

/* ---- paths */

static void check_stream(const struct mdl *m)
{
	CHECK(ns_of(m, MXBPF_PATH_DATA, LOADER) == 200 && ns_of(m, MXBPF_PATH_OPERATOR, CONV) == 100);
	CHECK(ns_of(m, MXBPF_PATH_LAUNCH, LAUNCH) == 20 && ns_of(m, MXBPF_PATH_KERNEL, GEMM) == 380);
	CHECK(ns_of(m, MXBPF_PATH_GAP, 0) == 10 && ns_of(m, MXBPF_PATH_KERNEL, RELU) == 190);
	CHECK(ns_of(m, MXBPF_PATH_WAIT, SYNC) == 5 && ns_of(m, MXBPF_PATH_PROGRAM, 0) == 95);
	CHECK(!ns_of(m, MXBPF_PATH_OPERATOR, LOSS) && whole(m) == 1000);
}

/* The kernel of an operator waits for that of the one before, and the program for the GPU. */
static void test_stream(void)
{
	struct mdl *m, *again, *sum, *copy = mdl_new();
	struct buf b = {0};

	launch(&b, 300);
	work(&b, 300, 320, 700);
	launch(&b, 450);
	work(&b, 450, 710, 900)->name_id = RELU;
	call(&b, OP, LOADER, 0, 200)->flags = MXBPF_SPAN_USER;
	call(&b, OP, CONV, 200, 400);
	call(&b, OP, LOSS, 400, 500);
	call(&b, MXBPF_CLASS_CUDA, SYNC, 500, 905);
	iteration(&b, 0, 1000);
	m = fed(&b);
	again = recorded(m);
	sum = mdl_sum(m);
	CHECK(!mdl_copy_to(copy, m));
	check_stream(m);
	check_stream(again);
	check_stream(sum);
	check_stream(copy);
	mdl_free(m);
	mdl_free(again);
	mdl_free(sum);
	mdl_free(copy);
}

/* The program waits for a thread that launches for it. */
static void test_threads(void)
{
	struct buf b = {0};
	struct mdl *m;

	launch(&b, 250)->tid = HELPER;
	work(&b, 250, 260, 600);
	call(&b, OP, CONV, 100, 300)->tid = HELPER;
	call(&b, OP, LOSS, 0, 60);
	call(&b, MXBPF_CLASS_CUDA, SYNC, 400, 610);
	iteration(&b, 0, 650);
	m = fed(&b);
	CHECK(ns_of(m, MXBPF_PATH_OPERATOR, LOSS) == 60 && ns_of(m, MXBPF_PATH_PROGRAM, 0) == 40 + 40);
	CHECK(ns_of(m, MXBPF_PATH_OPERATOR, CONV) == 150 && ns_of(m, MXBPF_PATH_LAUNCH, LAUNCH) == 10);
	CHECK(ns_of(m, MXBPF_PATH_KERNEL, GEMM) == 340 && ns_of(m, MXBPF_PATH_WAIT, SYNC) == 10 && whole(m) == 650);
	mdl_free(m);
}

/* The program has done nothing while another thread was in an operator, as in a backward pass. */
static void test_backward(void)
{
	struct buf b = {0};
	struct mdl *m;

	launch(&b, 250)->tid = HELPER;
	work(&b, 250, 260, 290);
	call(&b, OP, CONV, 100, 310)->tid = HELPER;
	call(&b, OP, LOSS, 300, 350);
	iteration(&b, 0, 400);
	m = fed(&b);
	CHECK(ns_of(m, MXBPF_PATH_OPERATOR, LOSS) == 50 && ns_of(m, MXBPF_PATH_OPERATOR, CONV) == 200);
	CHECK(ns_of(m, MXBPF_PATH_PROGRAM, 0) == 50 + 100 && whole(m) == 400);
	mdl_free(m);
}

/* An exchange on a thread that does not launch holds the program up. */
static void test_exchange(void)
{
	struct buf b = {0};
	struct mdl *m;

	launch(&b, 10);
	work(&b, 10, 20, 30);
	call(&b, OP, LOSS, 0, 50);
	call(&b, OP, GLOO, 60, 380)->tid = 99;
	iteration(&b, 0, 400);
	m = fed(&b);
	CHECK(ns_of(m, MXBPF_PATH_OTHERS, GLOO) == 320 && ns_of(m, MXBPF_PATH_PROGRAM, 0) == 20 + 10);
	CHECK(ns_of(m, MXBPF_PATH_OPERATOR, LOSS) == 50 && whole(m) == 400);
	mdl_free(m);
}

/* A stream waits for an event of another one, and the last work ends after the iteration. */
static void test_events(void)
{
	struct mxbpf_activity *a;
	struct buf b = {0};
	struct mdl *m;

	launch(&b, 50);
	work(&b, 50, 100, 500);
	a = work(&b, 305, 305, 306);
	a->cls = MXBPF_ACTIVITY_SYNC;
	a->sync_type = MXBPF_SYNC_STREAM_WAITS;
	a->track.stream = 9;
	launch(&b, 310);
	a = work(&b, 310, 510, 600);
	a->track.stream = 9;
	a->name_id = RELU;
	call(&b, OP, CONV, 0, 100);
	call(&b, OP, LOSS, 300, 330);
	iteration(&b, 0, 400);
	m = fed(&b);
	CHECK(ns_of(m, MXBPF_PATH_KERNEL, RELU) == 90 && ns_of(m, MXBPF_PATH_GAP, 0) == 10);
	CHECK(ns_of(m, MXBPF_PATH_KERNEL, GEMM) == 400 && ns_of(m, MXBPF_PATH_LAUNCH, LAUNCH) == 50);
	CHECK(ns_of(m, MXBPF_PATH_OPERATOR, CONV) == 50 && whole(m) == 600);
	mdl_free(m);
}

/* Of 64 iterations and more, the median of the latest ones is looked at. */
static void test_median(void)
{
	struct mxbpf_gpu_path *p;
	struct buf b = {0}, all = {0};
	struct mdl *m;
	uint64_t i;

	for (i = 0; i < 100; i++) {
		launch(&b, i * 1000 + 10);
		work(&b, i * 1000 + 10, i * 1000 + 20, i * 1000 + 30);
		iteration(&b, i * 1000, i * 1000 + 100 + 5 * i);
	}
	m = fed(&b);
	CHECK(!path_parts(m, &all) && all.len);
	for (i = 0; i < buf_count(&all, *p); i++) {
		p = buf_at(&all, struct mxbpf_gpu_path, i);
		CHECK(p->h.ts_ns == BASE + 68000 && p->end_ns - p->h.ts_ns == 100 + 5 * 68);
	}
	buf_fini(&all);
	mdl_free(m);
}

/* ---- sequences */

static struct path_sequence sequence_of(const struct mdl *m, uint64_t name_id)
{
	struct path_sequence one, found = {.a = {.count = 0}};
	struct buf all = {0};
	size_t i;

	CHECK(!path_sequences(m, &all));
	for (i = 0; i < buf_count(&all, one); i++) {
		one = *buf_at(&all, struct path_sequence, i);
		if (one.a.name_id == name_id)
			found = one;
	}
	buf_fini(&all);
	return found;
}

/* A block of two operators: the first launches two kernels, the second one. An annotation is around both. */
static void put_block(struct buf *b, uint64_t at)
{
	launch(b, at + 110);
	work(b, at + 110, at + 200, at + 300);
	launch(b, at + 120);
	work(b, at + 120, at + 300, at + 330)->name_id = RELU;
	launch(b, at + 160);
	work(b, at + 160, at + 400, at + 401);
	call(b, OP, CONV, at + 105, at + 130);
	call(b, OP, LOADER, at + 102, at + 140); /* around the same kernels as CONV */
	call(b, OP, LOSS, at + 150, at + 170);
	call(b, OP, BLOCK, at + 100, at + 180);
	call(b, OP, SYNC, at + 99, at + 190)->flags = MXBPF_SPAN_USER;
}

static void check_sequences(const struct mdl *m)
{
	const struct path_sequence c = sequence_of(m, CONV), k = sequence_of(m, BLOCK);

	CHECK(c.a.count == 3 && c.a.n == 2 && c.names[0] == GEMM && c.names[1] == RELU && c.a.gpu_ns == 390);
	CHECK(c.a.cpu_ns == 75 && k.a.count == 3 && k.a.n == 3 && k.names[2] == GEMM && k.a.gpu_ns == 393);
	CHECK(!sequence_of(m, LOADER).a.count && !sequence_of(m, LOSS).a.count && !sequence_of(m, SYNC).a.count);
}

/* Feeds the records one by one from the last to the first: calls come before any sign of a GPU. */
static struct mdl *fed_backwards(const struct buf *b)
{
	const struct mxbpf_rec *all[256], *r;
	struct mdl *m = mdl_new();
	size_t pos = 0, n = 0;

	while ((r = kind_next(b->data, b->len, &pos)) && n < 256)
		all[n++] = r;
	while (n--)
		CHECK(!mdl_feed(m, all[n], all[n]->size));
	return m;
}

/* Work of 5 s, so that the idle time before has its causes, and its calls are needed for that no more. */
static void put_long(struct buf *b)
{
	uint64_t ms;

	for (ms = 1000; ms < 6000; ms++)
		work(b, ms * 1000000, ms * 1000000, ms * 1000000 + 10);
}

static void test_sequences(void)
{
	struct mdl *m, *again, *late;
	struct buf b = {0};
	unsigned i;

	for (i = 0; i < 3; i++)
		put_block(&b, i * 1000ull);
	late = fed_backwards(&b);
	m = fed(&b);
	again = recorded(m);
	check_sequences(m);
	check_sequences(again);
	check_sequences(late);
	b = (struct buf){0};
	put_long(&b);
	CHECK(!feed(m, &b));
	check_sequences(m);
	buf_fini(&b);
	mdl_free(late);
	mdl_free(m);
	mdl_free(again);
}

int main(void)
{
	TEST("the path of an iteration goes back from a wait through the stream to the launch and its thread, also in "
	     "recordings")
	test_stream();
	TEST("the path goes to the thread that launched, and back")
	test_threads();
	test_backward();
	TEST("the path has exchanges with other processes for which the program waits")
	test_exchange();
	TEST("the path goes to another stream if the work has waited for its event, and ends with the last work")
	test_events();
	TEST("the path is that of the median of the latest iterations")
	test_median();
	TEST("what calls of an operator launch one after another is counted once, for the innermost operator, in "
	     "whatever order records come, and seconds later")
	test_sequences();
	UNIT_MAIN_END;
}
