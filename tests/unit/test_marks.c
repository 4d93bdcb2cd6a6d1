// SPDX-License-Identifier: Apache-2.0
/*
 * Tests user annotations and user counters in the model, and the offsets of the state of MXNet's own profiler, which
 * are read from the code of the real MXNet (MXBPF_TEST_LIBMXNET).
 */

#include "feature/marks/marks.h"
#include "insn/layout.h"
#include "model/model.h"
#include "unit.h"

static struct mxbpf_value set(uint64_t name_id, uint64_t ts_ns, uint64_t seq, uint64_t value)
{
	return (struct mxbpf_value){.h = {MXBPF_VALUE, sizeof(struct mxbpf_value), 7, ts_ns},
				    .name_id = name_id,
				    .count = 1,
				    .value = value,
				    .min = value,
				    .max = value,
				    .seq = seq,
				    .tid = 8};
}

/*
 * Values 5, 9, 2 of one counter, the last two at the same time, and one value of another counter. The order of arrival
 * must not matter.
 */
static void test_order(void)
{
	const struct mxbpf_value v[] = {set(11, 100, 0, 5), set(11, 200, 1, 9), set(11, 200, 2, 2), set(13, 150, 0, 1)};
	static const int orders[][4] = {{0, 1, 2, 3}, {2, 1, 0, 3}, {3, 1, 2, 0}, {1, 2, 3, 0}};
	const struct mxbpf_value *rows;
	size_t n, i, k;

	for (i = 0; i < 4; i++) {
		FREED(model_freed) struct mdl *m = mdl_new();

		for (k = 0; k < 4; k++)
			CHECK(!mdl_feed(m, &v[orders[i][k]], sizeof(v[0])));
		rows = marks_values(m, &n);
		CHECK(n == 2);
		for (k = 0; k < n; k++)
			CHECK(rows[k].name_id == 13 || (rows[k].count == 3 && rows[k].value == 2 && rows[k].min == 2 &&
							rows[k].max == 9 && rows[k].h.ts_ns == 200 && !rows[k].tid));
	}
}

static struct mxbpf_instant moment(uint64_t name_id, uint8_t what, uint64_t ts_ns)
{
	return (struct mxbpf_instant){.h = {MXBPF_INSTANT, sizeof(struct mxbpf_instant), 7, ts_ns},
				      .name_id = name_id,
				      .count = 1,
				      .tid = 8,
				      .what = what,
				      .scope = MXBPF_SCOPE_PROCESS};
}

static struct mxbpf_span frame(uint64_t ts_ns, uint64_t dur_ns)
{
	return (struct mxbpf_span){.h = {MXBPF_SPAN, MXBPF_SPAN_BYTES_PLAIN, 7, ts_ns},
				   .dur_ns = dur_ns,
				   .self_ns = dur_ns,
				   .name_id = 21,
				   .cls = MXBPF_CLASS_FRAME,
				   .flags = MXBPF_SPAN_USER};
}

/* Checks the annotations of a model. */
static void expect(struct mdl *m)
{
	const struct mxbpf_instant *instants;
	const struct mxbpf_value *values;
	const struct mdl_row *const *frames;
	size_t n;

	instants = marks_instants(m, &n);
	CHECK(n == 2);
	CHECK(instants[0].count == 2 && instants[0].h.ts_ns == 100 && instants[0].last_ns == 300);
	CHECK(instants[1].what == MXBPF_INSTANT_RUN && instants[1].count == 1);
	values = marks_values(m, &n);
	CHECK(n == 1 && values[0].value == 4 && values[0].count == 2 && values[0].max == 6);
	frames = mdl_rows(m, MXBPF_CLASS_FRAME, &n);
	CHECK(n == 1 && frames[0]->count == 3 && frames[0]->first_ns == 1000 && frames[0]->last_ns == 1001000);
	CHECK(marks_rate(frames[0]) > 2999 && marks_rate(frames[0]) < 3001);
}

static void test_emit(void)
{
	const struct mxbpf_instant i[] = {moment(31, MXBPF_INSTANT_MARKER, 300), moment(0, MXBPF_INSTANT_RUN, 50),
					  moment(31, MXBPF_INSTANT_MARKER, 100)};
	const struct mxbpf_value v[] = {set(11, 100, 0, 6), set(11, 200, 1, 4)};
	const struct mxbpf_span s[] = {frame(400000, 500), frame(1000, 200), frame(1000500, 500)};
	FREED(model_freed) struct mdl *sum = NULL, *again = mdl_new(), *m = mdl_new();
	FREED(buf_fini) struct buf recs = {0};
	size_t k;

	for (k = 0; k < 3; k++) {
		CHECK(!mdl_feed(m, &i[k], sizeof(i[k])));
		CHECK(!mdl_feed(m, &s[k], s[k].h.size));
	}
	CHECK(!mdl_feed(m, v, sizeof(v)));
	expect(m);
	CHECK(!mdl_emit(m, &recs));
	CHECK(!mdl_feed(again, recs.data, recs.len));
	expect(again);
	sum = mdl_sum(m);
	expect(sum);
}

/* Malformed records and unknown kinds are refused. */
static void test_bad(void)
{
	struct mxbpf_instant i = moment(31, MXBPF_INSTANT_WHATS, 1);
	struct mxbpf_agg_extent x = {.h = {MXBPF_AGG_EXTENT, sizeof(x), 7, 0}, .cls = MXBPF_CLASS_MAX};
	FREED(model_freed) struct mdl *m = mdl_new();

	CHECK(mdl_feed(m, &i, sizeof(i)));
	i = moment(31, MXBPF_INSTANT_MARKER, 1);
	i.scope = MXBPF_SCOPES;
	CHECK(mdl_feed(m, &i, sizeof(i)));
	CHECK(mdl_feed(m, &x, sizeof(x)));
	x.cls = MXBPF_CLASS_FRAME; /* no row has it */
	CHECK(!mdl_feed(m, &x, sizeof(x)));
}

/* A domain belongs to the annotation with its id only. */
static void test_domain(void)
{
	char room[sizeof(struct mxbpf_name) + 8] __attribute__((aligned(8))) = {0};
	struct mxbpf_name *name = (struct mxbpf_name *)room;
	FREED(model_freed) struct mdl *m = mdl_new();
	size_t len;

	name->h = (struct mxbpf_rec){MXBPF_NAME, sizeof(room), 7, 0};
	name->id = 11;
	name->len = 5;
	name->kind = MXBPF_NAME_DOMAIN;
	strcpy(name->text, "train");
	CHECK(!mdl_feed(m, name, sizeof(room)));
	CHECK(!strcmp(mdl_text(m, MXBPF_NAME_DOMAIN, 11, &len), "train") && len == 5);
	CHECK(!mdl_text(m, MXBPF_NAME_DOMAIN, 13, &len) && !mdl_has_name(m, 11));
}

static void test_profiler(const char *path)
{
	struct elf *elf = NULL;
	struct elf_sym sym;
	int32_t state = 0, paused = 0;
	uint64_t va = 0;

	CHECK(!elf_open(open(path, O_RDONLY | O_CLOEXEC), &elf, NULL));
	if (!elf)
		return;
	CHECK(!elf_find_sym(elf, "_ZN5mxnet8profiler8Profiler8SetStateENS1_13ProfilerStateE", &sym, NULL));
	CHECK(!layout_state(elf, &sym, &state, &paused, NULL));
	CHECK(state == 0x30 && paused == 0xc0); /* in MXNet 1.9.1 */
	CHECK(layout_result(elf, &sym, &va, NULL) == -EILSEQ);
	CHECK(!elf_find_sym(elf, "_ZN5mxnet8profiler8Profiler3GetEPSt10shared_ptrIS1_E", &sym, NULL));
	CHECK(!layout_result(elf, &sym, &va, NULL));
	CHECK(va == 0x94dcc50);
	CHECK(layout_state(elf, &sym, &state, &paused, NULL) == -EILSEQ);
	elf_close(elf);
}

int main(void)
{
	const char *mxnet = unit_library("MXBPF_TEST_LIBMXNET");

	TEST("the row of a user counter does not depend on the order of its values") test_order();
	TEST("annotations of one name share a row, and emitted records give the same rows") test_emit();
	TEST("malformed annotations are refused") test_bad();
	TEST("an annotation has its domain, and other names have none") test_domain();
	TEST_IF(mxnet, "the offsets of the state of MXNet's profiler are read from its code", NO_MXNET)
	test_profiler(mxnet);
	UNIT_MAIN_END;
}
