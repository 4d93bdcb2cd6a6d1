// SPDX-License-Identifier: Apache-2.0
/* Tests --layers: spans with a layer, in rows, recordings of any age, views and traces. */

#include "chrome_tape.h"
#include "mxbpf_config.h"
#include "printed.h"
#include "record/record.h"
#include "schema.h"

/* Sizes of records of a version without layers. */
#define OLD_SPAN_BYTES	offsetof(struct mxbpf_span, layer_id)
#define OLD_GROUP_BYTES MXBPF_GROUP_BYTES_MIN
#define OLD_OPEN_BYTES	MXBPF_OPEN_BYTES_MIN

#define FC	 5
#define BACKWARD 7
#define DELETE	 9

static void put_op(struct tape *t, uint64_t at_ns, uint64_t dur_ns, uint64_t name_id, uint64_t layer_id)
{
	struct mxbpf_span *s = span(t, OP, PID, at_ns, at_ns + dur_ns);

	s->name_id = name_id;
	s->layer_id = layer_id;
	s->device = 0;
	s->counters[0] = MXBPF_COUNTER_NONE;
}

/* Two dense layers, forward and backward, and operators without a layer. */
static struct tape layered(void)
{
	struct tape t = tape_new();

	name(&t, FC, MXBPF_NAME_SPAN, "FullyConnected", 14);
	name(&t, BACKWARD, MXBPF_NAME_SPAN, "_backward_FullyConnected", 24);
	name(&t, DELETE, MXBPF_NAME_SPAN, "DeleteVariable", 14);
	name(&t, 1, MXBPF_NAME_LAYER, "dense0_fwd", 10);
	name(&t, 3, MXBPF_NAME_LAYER, "dense1_fwd", 10);
	name(&t, 11, MXBPF_NAME_LAYER, "dense1_fwd_backward", 19);
	name(&t, 13, MXBPF_NAME_LAYER, "DeleteVariable", 14); /* a layer with the name of an operator */
	put_op(&t, 1000, 100, FC, 1);
	put_op(&t, 2000, 200, FC, 3);
	put_op(&t, 3000, 400, BACKWARD, 11);
	put_op(&t, 4000, 800, DELETE, 0);
	put_op(&t, 5000, 1600, FC, 13);
	put_op(&t, 6000, 3200, FC, 15); /* the name of this layer was lost */
	t.session.details = MXBPF_DETAIL_LAYER;
	t.session.class_title[OP] = (char *)"ops";
	return t;
}

/* Returns what a view prints. The caller frees it. */
static char *render(const char *view, struct tape *t, const struct view_opts *opts)
{
	struct view_source source = {tape_rewind, tape_next, t, t->recs.len};
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct view_input in = {.session = &t->session, .model = m, .source = &source};

	CHECK(!mdl_feed(m, t->recs.data, t->recs.len));
	return printed(view_find(view), &in, opts);
}

/* Returns the number of calls in the row of this name and layer; layer_id 0 means no layer. */
static uint64_t calls(struct mdl *m, uint64_t name_id, uint64_t layer_id)
{
	const struct mdl_row *const *rows;
	size_t n, i;

	rows = mdl_rows(m, OP, &n);
	for (i = 0; i < n; i++)
		if (rows[i]->name_id == name_id && rows[i]->layer_id == layer_id &&
		    rows[i]->id == mdl_group_id(&(struct mxbpf_group){
					   .name_id = name_id, .args_id = 0, .stack_id = 0, .layer_id = layer_id}))
			return rows[i]->count;
	return 0;
}

static void check_rows(struct mdl *m)
{
	size_t n;

	mdl_rows(m, OP, &n);
	CHECK(n == 6);
	CHECK(calls(m, FC, 1) == 1 && calls(m, FC, 3) == 1 && calls(m, BACKWARD, 11) == 1 && calls(m, DELETE, 0) == 1 &&
	      calls(m, FC, 15) == 1 && !calls(m, FC, 0));
	CHECK(!strcmp(mdl_text(m, MXBPF_NAME_LAYER, 11, NULL), "dense1_fwd_backward"));
}

static void test_rows(void)
{
	FREED(tape_free) struct tape t = layered();
	FREED(model_freed) struct mdl *again = mdl_new();
	FREED(buf_fini) struct buf recs = {0};

	CHECK(!mdl_feed(t.model, t.recs.data, t.recs.len));
	check_rows(t.model);
	FREED(model_freed) struct mdl *sum = mdl_sum(t.model);
	check_rows(sum);
	CHECK(!mdl_emit(t.model, &recs) && !mdl_feed(again, recs.data, recs.len));
	check_rows(again);
	CHECK(mdl_group_id(&(struct mxbpf_group){.name_id = 5, .args_id = 7, .stack_id = 9, .layer_id = 0}) ==
	      0x70abb0c7353fc76eull); /* the id in existing recordings */
}

/* finish: write the final tables; otherwise the reader folds the spans. */
static void test_recording(bool finish)
{
	FREED(tape_free) struct tape t = layered();
	struct mxbpf_loss loss = {0};
	FREED(model_freed) struct mdl *again = mdl_new();
	struct rec_reader *r = NULL;
	struct rec_writer *w = NULL;
	struct err e = {0};

	CHECK(!mdl_feed(t.model, t.recs.data, t.recs.len));
	CHECK(!rec_writer_open(memfd_create("test_layers", MFD_CLOEXEC), 0, &t.session, &w, &e));
	CHECK(!rec_writer_append(w, t.recs.data, t.recs.len, t.model, &loss));
	CHECK(!finish || !rec_writer_finish(w, t.model, &t.session, &e));
	CHECK(!rec_reader_open(rec_writer_fd(w), &r, &e) && !rec_reader_model(r, again, &e));
	check_rows(again);
	rec_reader_close(r);
	rec_writer_free(w);
}

/* Records of a version without layers. Each is followed by bytes that must not be read as its layer. */
static void test_old(void)
{
	FREED(tape_free) struct tape t = tape_new();
	struct mxbpf_group *g;
	struct mxbpf_open *o;
	struct mxbpf_agg *a;
	const struct mdl_row *const *rows;
	size_t n;

	put_op(&t, 1000, 100, FC, 0);
	((struct mxbpf_span *)t.recs.data)->h.size = OLD_SPAN_BYTES;
	t.recs.len = OLD_SPAN_BYTES;
	g = rec_add(&t, MXBPF_GROUP, OLD_GROUP_BYTES, 0);
	g->name_id = FC;
	g->args_id = 3;
	g->id = mdl_group_id(&(struct mxbpf_group){.name_id = FC, .args_id = 3, .stack_id = 0, .layer_id = 0});
	a = rec_add(&t, MXBPF_AGG, sizeof(*a), 0);
	a->name_id = mdl_group_id(&(struct mxbpf_group){.name_id = FC, .args_id = 3, .stack_id = 0, .layer_id = 0});
	a->count = 2;
	a->cls = OP;
	o = rec_add(&t, MXBPF_OPEN, OLD_OPEN_BYTES, 0);
	o->cls = OP;
	name(&t, ~0ull, MXBPF_NAME_SPAN, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	CHECK(!mdl_feed(t.model, t.recs.data, t.recs.len));
	rows = mdl_rows(t.model, OP, &n);
	CHECK(n == 2 && !rows[0]->layer_id && !rows[1]->layer_id);
	CHECK(rows[0]->args_id + rows[1]->args_id == 3);
	o = (struct mxbpf_open *)mdl_opens(t.model, &n);
	CHECK(n == 1 && !o->layer_id && o->h.size == sizeof(*o));
}

static void test_json(void)
{
	FREED(tape_free) struct tape t = layered();
	FREED(memory_freed) char *text = render("json", &t, &(struct view_opts){.by = VIEW_BY_LAYER});

	CHECK(follows_schema(text));
	CHECK(strstr(
		text,
		"{\"name\": \"dense1\", \"device\": null, \"layer\": \"dense1\", \"count\": 2, \"total_ns\": 600,"));
	CHECK(strstr(text, "{\"name\": \"dense0\", \"device\": null, \"layer\": \"dense0\", \"count\": 1,"));
	CHECK(strstr(
		text,
		"{\"name\": \"DeleteVariable\", \"device\": null, \"layer\": null, \"count\": 1, \"total_ns\": 800"));
	CHECK(strstr(text,
		     "{\"name\": \"DeleteVariable\", \"device\": null, \"layer\": \"DeleteVariable\", \"count\": 1,"));
	CHECK(strstr(
		text,
		"{\"name\": \"FullyConnected\", \"device\": null, \"layer\": null, \"count\": 1, \"total_ns\": 3200"));
	free(text);
	text = render("json", &t, &(struct view_opts){0});
	CHECK(!strstr(text, "layer") && strstr(text, "{\"name\": \"FullyConnected\", \"device\": null, \"count\": 4,"));
	free(text);
	text = render("json", &t, &(struct view_opts){.by = VIEW_BY_EVENT, .sort = VIEW_SORT_START});
	CHECK(follows_schema(text) && strstr(text, "\"layer\": \"dense1_fwd_backward\"}"));
}

static void test_tables(void)
{
	FREED(tape_free) struct tape t = layered();
	FREED(memory_freed) char *text = render("csv", &t, &(struct view_opts){.by = VIEW_BY_LAYER});

	CHECK(strstr(text, "window_ns,annotation,pid,layer\n") && strstr(text, "\"ops\",\"dense1\",,2,600,600,") &&
	      strstr(text, ",\"dense1\"\n"));
	free(text);
	text = render("csv", &t, &(struct view_opts){.by = VIEW_BY_EVENT});
	CHECK(strstr(text, ",unwound,layer\n") && strstr(text, ",\"dense0_fwd\"\n"));
	free(text);
	text = render("modern", &t, &(struct view_opts){.by = VIEW_BY_LAYER});
	CHECK(strstr(text, "\ndense1 ") && strstr(text, "\ndense0 ") && !strstr(text, "_fwd"));
	free(text);
	text = render("modern", &t, &(struct view_opts){.by = VIEW_BY_EVENT});
	CHECK(strstr(text, "\n    dense1_fwd_backward\n"));
}

static void test_trace(void)
{
	const struct view_ops *const views[] = {&view_chrome, &view_kineto};
	FREED(tape_free) struct tape t = layered();
	struct trace r;
	size_t i;

	for (i = 0; i < sizeof(views) / sizeof(*views); i++) {
		t.ops = views[i];
		r = trace_of(&t);
		CHECK(r.json && strstr(r.text, ",\"layer\":\"dense1_fwd_backward\""));
		trace_free(&r);
	}
}

int main(void)
{
	TEST("spans of different layers have separate rows, also in sums and emitted records")
	test_rows();
	TEST("a recording has the rows of layers, both from its final tables and from its spans")
	{
		test_recording(true);
		test_recording(false);
	}
	TEST("records of a version without layers have no layer")
	test_old();
	TEST("JSON by layer joins a layer's forward and backward operators, and operators without a layer keep their "
	     "names")
	test_json();
	TEST("CSV and the table group by layer, and single events have the full name of the layer")
	test_tables();
	TEST("traces have the layer among the arguments")
	test_trace();
	UNIT_MAIN_END;
}
