// SPDX-License-Identifier: Apache-2.0
/* Tests to which operators the model gives the work of CUDA graphs. */
#include "chrome_tape.h"
#include "feature/activity/activity.h"

#define KERNEL 101
#define CONV   201
#define BLOCK  202
#define REPLAY 203
#define GRAPH  12

/* ---- records */

static void node(struct tape *t, uint64_t at_ns, uint64_t number, uint64_t original)
{
	struct mxbpf_graph_node *n = rec_add(t, MXBPF_GRAPH_NODE, sizeof(*n), at_ns);

	n->node = number;
	n->original = original;
	n->tid = PID;
}

static struct mxbpf_activity *activity(struct tape *t, uint64_t edge_id, uint64_t number, uint64_t start_ns,
				       uint64_t ns)
{
	struct mxbpf_activity *a = kernel(t, KERNEL, edge_id, start_ns, start_ns + ns);

	a->graph = GRAPH;
	a->graph_node = number;
	return a;
}

/* ---- rows */

static const struct mxbpf_agg_gpu_work *row_of(const struct mdl *m, enum mxbpf_gpu_work_of of, uint64_t name_id)
{
	static const struct mxbpf_agg_gpu_work none;
	size_t n, i;
	const struct activity_work *const *rows = activity_work_rows(m, &n);

	for (i = 0; i < n; i++)
		if (rows[i]->a.of == of && rows[i]->a.name_id == name_id)
			return &rows[i]->a;
	return &none;
}

static const struct mxbpf_agg_gpu_work *calls(const struct mdl *m, uint64_t name_id)
{
	return row_of(m, MXBPF_WORK_OF_CALLS, name_id);
}

static uint64_t in_graph(const struct mdl *m, enum mxbpf_captured captured, uint64_t name_id)
{
	size_t n, i;
	const struct mxbpf_agg_gpu_graph *all = activity_graphs(m, &n);

	for (i = 0; i < n; i++)
		if (all[i].graph == GRAPH && all[i].captured == captured && all[i].name_id == name_id)
			return all[i].sum.gpu_ns;
	return 0;
}

/* ---- the records of a graph */

static void put_spans(struct tape *t)
{
	call(t, OP, CONV, 200, 300);
	call(t, OP, BLOCK, 150, 400);
	call(t, OP, REPLAY, 1000, 1100);
	call(t, OP, REPLAY, 2000, 2100);
}

/* The nodes 1 to 3 were captured in the convolution, in the block, and outside; 11 to 13 are their copies. */
static void put_nodes(struct tape *t)
{
	node(t, 250, 1, 0);
	node(t, 350, 2, 0);
	node(t, 450, 3, 0);
	node(t, 500, 11, 0); /* each copy is told twice */
	node(t, 500, 11, 1);
	node(t, 501, 12, 0);
	node(t, 501, 12, 2);
	node(t, 502, 13, 0);
	node(t, 502, 13, 3);
	launch(t, PID, 249, 101);
	launch(t, PID, 349, 102);
	launch(t, PID, 449, 103);
}

static void put_replays(struct tape *t)
{
	launch(t, PID, 1050, 1);
	launch(t, PID, 2050, 2);
	activity(t, 1, 11, 1200, 10);
	activity(t, 1, 12, 1210, 20);
	activity(t, 1, 13, 1230, 5);
	activity(t, 2, 11, 2200, 10);
	activity(t, 2, 12, 2210, 20);
	activity(t, 2, 13, 2230, 5);
}

static bool is_joined(const struct mdl *m)
{
	size_t n;
	const struct mxbpf_agg_gpu_work *conv = calls(m, CONV), *block = calls(m, BLOCK), *replay = calls(m, REPLAY);

	return conv->self.gpu_ns == 20 && conv->self.kernels == 2 && conv->total.gpu_ns == 20 &&
	       block->self.gpu_ns == 40 && block->self.kernels == 2 && block->total.gpu_ns == 60 &&
	       replay->self.gpu_ns == 10 && replay->total.gpu_ns == 70 && replay->total.kernels == 6 &&
	       replay->total.launches == 2 && in_graph(m, MXBPF_CAPTURED_BY, CONV) == 20 &&
	       in_graph(m, MXBPF_CAPTURED_BY, BLOCK) == 40 && in_graph(m, MXBPF_CAPTURED_OUTSIDE, 0) == 10 &&
	       activity_joins(m, &n)->without_work == 0;
}

static void test_operators(void)
{
	TEST("work of a graph is the operators' that captured it, and in the total of those that launch it, in "
	     "whatever order spans come")
	{
		static void (*const parts[])(struct tape * t) = {put_spans, put_nodes, put_replays};
		/* The nodes of an activity are always told before it. */
		static const uint8_t orders[][3] = {{0, 1, 2}, {1, 0, 2}, {1, 2, 0}};
		unsigned order, windows, i;

		for (order = 0; order < 3; order++)
			for (windows = 0; windows < 2; windows++) {
				FREED(tape_free) struct tape t = tape_new();

				for (i = 0; i < 3; i++) {
					parts[orders[order][i]](&t);
					if (windows)
						CHECK(!fold(&t));
				}
				CHECK(!fold(&t) && is_joined(t.model));
			}
	}
	TEST("a row that encloses the capture and the launch has the work once")
	{
		FREED(tape_free) struct tape t = tape_new();

		call(&t, OP, BLOCK, 100, 400);
		call(&t, OP, CONV, 200, 300);
		call(&t, OP, BLOCK, 1000, 1100);
		node(&t, 250, 1, 0);
		node(&t, 260, 11, 1);
		launch(&t, PID, 1050, 1);
		activity(&t, 1, 11, 1200, 10);
		CHECK(!fold(&t));
		CHECK(calls(t.model, BLOCK)->total.gpu_ns == 10 && !calls(t.model, BLOCK)->self.gpu_ns);
		CHECK(calls(t.model, CONV)->self.gpu_ns == 10);
	}
}

static void test_unseen(void)
{
	TEST("a graph that was captured before stays with its launch, also if its copy was seen to be made")
	{
		FREED(tape_free) struct tape t = tape_new();

		call(&t, OP, CONV, 200, 300); /* instantiates the graph */
		call(&t, OP, REPLAY, 1000, 1100);
		node(&t, 250, 11, 0);
		node(&t, 250, 11, 1);
		launch(&t, PID, 1050, 1);
		activity(&t, 1, 11, 1200, 10);
		activity(&t, 1, 99, 1210, 20);
		CHECK(!fold(&t));
		CHECK(calls(t.model, REPLAY)->self.gpu_ns == 30 && !calls(t.model, CONV)->total.gpu_ns);
		CHECK(in_graph(t.model, MXBPF_CAPTURED_UNSEEN, 0) == 30);
	}
	TEST("operators have the work of a graph even if nobody knows its launch")
	{
		FREED(tape_free) struct tape t = tape_new();

		call(&t, OP, CONV, 200, 300);
		node(&t, 250, 1, 0);
		node(&t, 260, 11, 1);
		activity(&t, 0, 11, 1200, 10); /* CUPTI names its launch wrongly */
		activity(&t, 7, 11, 1300, 10);
		CHECK(!fold(&t));
		CHECK(calls(t.model, CONV)->self.gpu_ns == 20 &&
		      !row_of(t.model, MXBPF_WORK_OF_UNKNOWN, 0)->self.gpu_ns);
		call(&t, OP, REPLAY, 1000, 1100);
		launch(&t, PID, 1050, 7);
		CHECK(!fold(&t));
		CHECK(calls(t.model, REPLAY)->total.gpu_ns == 10 && !calls(t.model, REPLAY)->self.gpu_ns);
		CHECK(!row_of(t.model, MXBPF_WORK_OF_UNKNOWN, 0)->self.gpu_ns);
	}
}

static void test_state(void)
{
	TEST("an interval goes on with the nodes of the one before, and begins with no work")
	{
		FREED(tape_free) struct tape t = tape_new();
		FREED(model_freed) struct mdl *next = mdl_new();

		put_spans(&t);
		put_nodes(&t);
		put_replays(&t);
		CHECK(!fold(&t) && !mdl_move(next, t.model, 0));
		launch(&t, PID, 2060, 3);
		activity(&t, 3, 11, 3000, 7);
		CHECK(!fold_into(next, &t));
		CHECK(is_joined(t.model));
		CHECK(calls(next, CONV)->self.gpu_ns == 7 && in_graph(next, MXBPF_CAPTURED_BY, CONV) == 7);
		CHECK(calls(next, REPLAY)->total.gpu_ns == 7 && !calls(next, REPLAY)->self.gpu_ns);
	}
	TEST("the records of a model give the same rows again")
	{
		FREED(tape_free) struct tape t = tape_new();
		FREED(model_freed) struct mdl *again = mdl_new();
		FREED(buf_fini) struct buf recs = {0};

		put_spans(&t);
		put_nodes(&t);
		put_replays(&t);
		CHECK(!fold(&t) && !mdl_emit(t.model, &recs) && !mdl_feed(again, recs.data, recs.len) &&
		      is_joined(again));
	}
}

int main(void)
{
	test_operators();
	test_unseen();
	test_state();
	return unit_end();
}
