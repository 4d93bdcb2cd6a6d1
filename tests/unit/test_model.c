// SPDX-License-Identifier: Apache-2.0

#include "records.h"

#define API MXBPF_CLASS_API
#define OP  MXBPF_CLASS_OPERATOR

static void put_span(struct buf *b, uint64_t start_ns, uint64_t dur_ns, uint64_t name_id, unsigned cls)
{
	struct mxbpf_span s = {
		.h = {MXBPF_SPAN, sizeof(s), 77, start_ns},
		.dur_ns = dur_ns,
		.self_ns = dur_ns / 2,
		.name_id = name_id,
		.tid = 78,
		.device = MXBPF_DEVICE(1, 0),
		.cls = (uint8_t)cls,
		.alloc_bytes = (int64_t)(dur_ns % 1000) - 300,
		.self_alloc_bytes = -(int64_t)(dur_ns % 70),
	};

	buf_put(b, &s, sizeof(s));
}

static void put_alloc(struct buf *b, uint64_t ts_ns, int64_t bytes)
{
	struct mxbpf_alloc a = {.h = {MXBPF_ALLOC, sizeof(a), 77, ts_ns}, .bytes = bytes, .device = 0x10000};

	buf_put(b, &a, sizeof(a));
}

static const struct mdl_row *find_row(struct mdl *m, const struct mdl_row *like)
{
	const struct mdl_row *const *rows;
	size_t n, i;

	rows = mdl_rows(m, like->cls, &n);
	for (i = 0; i < n; i++)
		if (rows[i]->tgid == like->tgid && rows[i]->name_id == like->name_id && rows[i]->device == like->device)
			return rows[i];
	return NULL;
}

static bool same_row(const struct mdl_row *a, const struct mdl_row *b)
{
	return b && a->count == b->count && a->total_ns == b->total_ns && a->self_ns == b->self_ns &&
	       a->min_ns == b->min_ns && a->max_ns == b->max_ns && a->alloc_bytes == b->alloc_bytes &&
	       a->self_alloc_bytes == b->self_alloc_bytes && !memcmp(a->hist, b->hist, sizeof(a->hist)) &&
	       !memcmp(&a->account, &b->account, sizeof(a->account));
}

static void check_same(struct mdl *a, struct mdl *b)
{
	const struct mdl_mem_row *const *ma, *const *mb;
	const struct mdl_row *const *rows;
	size_t n, nb, i;
	unsigned cls;

	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++) {
		rows = mdl_rows(a, cls, &n);
		mdl_rows(b, cls, &nb);
		CHECK(n == nb);
		for (i = 0; i < n; i++) {
			CHECK(same_row(rows[i], find_row(b, rows[i])));
			CHECK(!strcmp(mdl_name(a, rows[i]->name_id, NULL), mdl_name(b, rows[i]->name_id, NULL)));
		}
		CHECK(mdl_tally(a, cls, MXBPF_TALLY_MAX_OPEN) == mdl_tally(b, cls, MXBPF_TALLY_MAX_OPEN));
		CHECK(mdl_tally(a, cls, MXBPF_TALLY_LATE) == mdl_tally(b, cls, MXBPF_TALLY_LATE));
		CHECK(mdl_tally(a, cls, MXBPF_TALLY_UNWOUND) == mdl_tally(b, cls, MXBPF_TALLY_UNWOUND));
	}
	ma = mdl_mem_rows(a, &n);
	mb = mdl_mem_rows(b, &nb);
	CHECK(n == nb);
	for (i = 0; i < n && i < nb; i++)
		CHECK(!memcmp(ma[i], mb[i], sizeof(*ma[i])));
}

static void test_rows(struct buf *b)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct mdl_row *const *rows;
	size_t n;

	put_span(b, 100, 10, 5, OP);
	put_span(b, 200, 30, 5, OP);
	put_span(b, 300, 7, 6, OP);
	put_span(b, 300, 7, 5, API);
	put_span(b, 400, 1, 5, OP);
	((struct mxbpf_span *)(b->data + b->len))[-1].device = MXBPF_DEVICE(2, 1);
	put_span(b, 400, 1, 5, OP);
	((struct mxbpf_span *)(b->data + b->len))[-1].h.tgid = 99;
	CHECK(!feed(m, b));
	rows = mdl_rows(m, OP, &n);
	CHECK(n == 4);
	CHECK(rows[0]->count == 2 && rows[0]->total_ns == 40 && rows[0]->self_ns == 20 && rows[0]->min_ns == 10 &&
	      rows[0]->max_ns == 30 && rows[0]->hist[mxbpf_bucket(10)] == 1 && rows[0]->hist[mxbpf_bucket(30)] == 1);
	mdl_rows(m, API, &n);
	CHECK(n == 1);
}

static void test_sum(struct buf *b)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct mdl_row *const *rows;
	const struct mdl_mem_row *mem;
	unsigned i;
	size_t n;

	for (i = 0; i < 3; i++) {
		put_span(b, 100 + i, 10 + i, 5, OP);
		((struct mxbpf_span *)(b->data + b->len))[-1].h.tgid = 77 + i;
		put_alloc(b, 100 + i, 1000);
		((struct mxbpf_alloc *)(b->data + b->len))[-1].h.tgid = 77 + i;
	}
	put_name(b, 5, MXBPF_NAME_SPAN, "dot");
	CHECK(!feed(m, b));
	FREED(model_freed) struct mdl *sum = mdl_sum(m);
	CHECK(sum && mdl_nprocesses(m) == 3 && mdl_nprocesses(sum) == 3);
	rows = mdl_rows(sum, OP, &n);
	CHECK(n == 1 && rows[0]->count == 3 && rows[0]->total_ns == 33 && rows[0]->min_ns == 10 &&
	      rows[0]->max_ns == 12);
	CHECK(!strcmp(mdl_name(sum, rows[0]->name_id, NULL), "dot"));
	mem = mdl_mem_rows(sum, &n)[0];
	CHECK(n == 1 && mem->allocs == 3 && mem->live_bytes == 3000 && mem->peak_bytes == 3000);
}

static bool is_that(void *tgid, uint32_t of)
{
	return of == *(uint32_t *)tgid;
}

static void test_some(struct buf *b)
{
	FREED(model_freed) struct mdl *some = NULL, *sum = NULL, *m = mdl_new();
	const struct mdl_row *const *rows;
	uint32_t i;
	size_t n;

	for (i = 77; i < 80; i++) {
		put_span(b, 100 + i, 10, 5, OP);
		((struct mxbpf_span *)(b->data + b->len))[-1].h.tgid = i;
	}
	CHECK(!feed(m, b));
	i = 78;
	sum = mdl_sum_of(m, is_that, &i);
	some = mdl_only(m, is_that, &i);
	CHECK(sum && mdl_nprocesses(sum) == 1 && some && mdl_nprocesses(some) == 1);
	rows = mdl_rows(some, OP, &n);
	CHECK(n == 1 && rows[0]->tgid == 78 && rows[0]->count == 1);
}

static void test_account(struct buf *b)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct mdl_mem_row *r;
	size_t n;

	put_alloc(b, 30, -100); /* arrives first, happened last */
	put_alloc(b, 20, 50);
	put_alloc(b, 10, 100);
	CHECK(!feed(m, b));
	r = mdl_mem_rows(m, &n)[0];
	CHECK(n == 1 && r->live_bytes == 50 && r->peak_bytes == 150 && r->low_bytes == 50);
	put_alloc(b, 40, -1000); /* allocated before the attach */
	put_alloc(b, 50, 70);
	put_alloc(b, 50, -60); /* equal times keep the order of arrival */
	CHECK(!feed(m, b));
	r = mdl_mem_rows(m, &n)[0];
	CHECK(n == 1 && r->allocs == 3 && r->frees == 3 && r->alloc_bytes == 220 && r->free_bytes == 1160);
	CHECK(r->live_bytes == 10 && r->peak_bytes == 150 && r->low_bytes == 0);
	put_alloc(b, 60, 500);
	CHECK(!feed(m, b));
	r = mdl_mem_rows(m, &n)[0];
	CHECK(r->live_bytes == 510 && r->peak_bytes == 510 && r->low_bytes == 0);
	CHECK(mdl_tally(m, MXBPF_CLASS_NONE, MXBPF_TALLY_LATE) == 0);
	put_alloc(b, 59, 1); /* the only record older than those already folded */
	put_alloc(b, 60, 1);
	CHECK(!feed(m, b));
	CHECK(mdl_tally(m, MXBPF_CLASS_NONE, MXBPF_TALLY_LATE) == 1);
	put_alloc(b, 70, INT64_MIN);
	CHECK(!feed(m, b));
	CHECK(mdl_mem_rows(m, &n)[0]->live_bytes == 0);
}

static uint64_t max_open(struct buf *b, unsigned cls)
{
	FREED(model_freed) struct mdl *m = mdl_new();

	feed(m, b);
	return mdl_tally(m, cls, MXBPF_TALLY_MAX_OPEN);
}

static void test_max_open(struct buf *b)
{
	put_span(b, 200, 10, 1, API);
	put_span(b, 100, 100, 1, API); /* ends when the span above begins */
	CHECK(max_open(b, API) == 1);
	put_span(b, 100, 100, 1, API);
	put_span(b, 110, 10, 1, API);
	put_span(b, 115, 1000000000000, 1, API); /* long enough for a radix sort with four digits */
	put_span(b, 111, 3, 1, API);
	put_span(b, 116, 1, 1, OP);
	CHECK(max_open(b, API) == 3);
	put_span(b, 5, 0, 1, OP);
	CHECK(max_open(b, OP) == 1);
	put_span(b, 1, UINT64_MAX, 1, OP);
	put_span(b, UINT64_MAX, UINT64_MAX, 1, OP);
	CHECK(max_open(b, OP) <= 2);
	CHECK(max_open(b, OP) == 0);
}

static void test_earlier_start(struct buf *b)
{
	FREED(model_freed) struct mdl *m = mdl_new();

	put_span(b, 1000, 10, 1, API);
	feed(m, b);
	CHECK(mdl_tally(m, API, MXBPF_TALLY_MAX_OPEN) == 1);
	put_span(b, 2000, 10, 1, API);
	put_span(b, 500, 3000, 1, API); /* open since before the first window */
	feed(m, b);
	CHECK(mdl_tally(m, API, MXBPF_TALLY_MAX_OPEN) == 2);
	CHECK(mdl_tally(m, API, MXBPF_TALLY_LATE) == 0);
	put_span(b, 2100, 10, 1, API); /* ended before 3500 */
	feed(m, b);
	CHECK(mdl_tally(m, API, MXBPF_TALLY_LATE) == 1);
}

static size_t rows_in(struct mdl *m, unsigned cls)
{
	size_t n;

	mdl_rows(m, cls, &n);
	return n;
}

static void test_unwound(struct buf *b)
{
	FREED(model_freed) struct mdl *m = mdl_new(), *again = mdl_new();
	FREED(buf_fini) struct buf out = {0};

	put_span(b, 1000, 10, 1, API);
	put_span(b, 1000, 10, 1, API);
	((struct mxbpf_span *)b->data)->flags = MXBPF_SPAN_UNWOUND;
	put_span(b, 1000, 10, 1, MXBPF_CLASS_CUSTOM); /* the Python function of an operator that failed */
	((struct mxbpf_span *)(b->data + b->len))[-1].flags = MXBPF_SPAN_UNWOUND;
	feed(m, b);
	CHECK(mdl_tally(m, API, MXBPF_TALLY_UNWOUND) == 1 && !mdl_tally(m, OP, MXBPF_TALLY_UNWOUND));
	CHECK(!mdl_tally(m, MXBPF_CLASS_CUSTOM, MXBPF_TALLY_UNWOUND) && !rows_in(m, MXBPF_CLASS_CUSTOM));
	CHECK(!mdl_emit(m, &out) && !mdl_feed(again, out.data, out.len));
	check_same(m, again);
}

static void fill(struct buf *b, unsigned from, unsigned to)
{
	unsigned i;

	for (i = from; i < to; i++) {
		put_span(b, i * 7919u % 5000, (uint64_t)i * i * i * 31, i % 41, 1 + i % 3);
		put_alloc(b, i * 7, i % 3 ? 1000 + i : -(int64_t)i * 3);
	}
}

static void test_round_trip(struct buf *b)
{
	FREED(model_freed) struct mdl *a = mdl_new(), *c = mdl_new(), *whole = mdl_new();
	FREED(buf_fini) struct buf recs = {0};

	put_name(b, 5, MXBPF_NAME_SPAN, "Convolution");
	put_name(b, 6, MXBPF_NAME_SPAN, "");
	put_name(b, 7, MXBPF_NAME_SPAN, "a\nb");
	put_name(b, 78, MXBPF_NAME_THREAD, "python");
	feed(a, b);
	fill(b, 1, 2000);
	feed(a, b);
	put_span(b, 1, 1, 5, OP);
	feed(a, b);
	CHECK(!mdl_emit(a, &recs));
	CHECK(!mdl_feed(c, recs.data, recs.len));
	check_same(a, c);
	CHECK(mdl_tally(c, OP, MXBPF_TALLY_LATE) > 0);
	CHECK(mdl_has_name(c, 5) && mdl_has_name(c, 6) && !mdl_has_name(c, 8) && !mdl_has_name(c, 0));
	CHECK(mdl_thread_name(c, 77, 78) && !strcmp(mdl_thread_name(c, 77, 78), "python"));

	/* Merging the aggregates of two windows gives those of both. */
	recs.len = 0;
	mdl_free(a);
	mdl_free(c);
	a = mdl_new();
	c = mdl_new();
	fill(b, 1, 700);
	feed(a, b);
	fill(b, 700, 2000);
	feed(c, b);
	CHECK(!mdl_emit(c, &recs) && !mdl_feed(a, recs.data, recs.len));
	fill(b, 1, 2000);
	feed(whole, b);
	CHECK(find_row(a, mdl_rows(whole, OP, &(size_t){0})[0]) != NULL);
	CHECK(same_row(mdl_rows(whole, OP, &(size_t){0})[0], find_row(a, mdl_rows(whole, OP, &(size_t){0})[0])));
}

/* Spans in the first recordings end before the byte counts; what follows them must not be read as byte counts. */
static void test_bytes(struct buf *b)
{
	struct mxbpf_agg_mem a = {
		.h = {MXBPF_AGG_MEM, sizeof(a), 77, 0}, .name_id = 6, .alloc_bytes = 4, .device = 0x10000, .cls = OP};
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct mdl_row *r;
	size_t n;

	put_span(b, 100, 500, 5, OP);
	put_span(b, 100, 200, 5, OP);
	buf_put(b, &a, sizeof(a));
	feed(m, b);
	r = mdl_rows(m, OP, &n)[0];
	CHECK(n == 1); /* an aggregate without a row makes no row */
	CHECK(r->alloc_bytes == 200 - 100 && r->self_alloc_bytes == -(500 % 70) - 200 % 70);
	put_span(b, 100, 7, 5, OP);
	((struct mxbpf_rec *)b->data)->size = MXBPF_SPAN_BYTES_MIN;
	b->len = MXBPF_SPAN_BYTES_MIN;
	put_span(b, 100, 9, 5, OP);
	CHECK(!feed(m, b) && r->count == 4 && r->alloc_bytes == 100 - 291);
	a.name_id = 5;
	a.alloc_bytes = INT64_MIN;
	buf_put(b, &a, sizeof(a));
	CHECK(!feed(m, b) && r->alloc_bytes == INT64_MIN);
}

static void test_names(struct buf *b)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	size_t len;

	put_span(b, 1, 1, 0, OP);
	put_span(b, 1, 1, 0xabc, OP);
	feed(m, b);
	CHECK(!strcmp(mdl_name(m, 0, &len), "[unreadable]") && len == 12);
	CHECK(!strcmp(mdl_name(m, 0xabc, &len), "[0xabc]") && len == 7);
	CHECK(!strcmp(mdl_name(m, 0xdef, NULL), "[0xdef]"));
	CHECK(!mdl_has_name(m, 0xabc) && !mdl_has_name(m, 0xdef));
	put_name(b, 0xabc, MXBPF_NAME_SPAN, "dot");
	put_name(b, 0, MXBPF_NAME_SPAN, "liar");
	put_name(b, 9, MXBPF_NAME_THREAD, "old");
	put_name(b, 9, MXBPF_NAME_THREAD, "new");
	feed(m, b);
	CHECK(!strcmp(mdl_name(m, 0xabc, NULL), "dot") && mdl_has_name(m, 0xabc));
	CHECK(!strcmp(mdl_name(m, 0, NULL), "[unreadable]"));
	CHECK(!strcmp(mdl_thread_name(m, 77, 9), "new") && !mdl_thread_name(m, 1, 9));
}

/* Feeds a good record and one of `kind`, all zeros except for what `set` writes. Returns the result of mdl_feed(). */
static int feed_bad(unsigned kind, unsigned size, void (*set)(void *rec))
{
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf b = {0};
	struct mxbpf_rec *r;
	FREED(memory_freed) char *exact = NULL;
	size_t n;
	int err;

	put_span(&b, 1, 1, 1, OP);
	r = buf_add(&b, size > sizeof(*r) ? size : sizeof(*r));
	memset(r, 0, (size_t)(b.data + b.len - (char *)r));
	r->kind = (uint16_t)kind;
	r->size = (uint16_t)size;
	if (set)
		set(r);
	/* The buffer has the exact size, so that the sanitizer notices a read beyond the end. */
	exact = malloc(b.len);
	memcpy(exact, b.data, b.len);
	err = mdl_feed(m, exact, b.len);
	mdl_rows(m, OP, &n);
	if (err)
		CHECK(n == 1);
	return err;
}

static void set_size_beyond(void *rec)
{
	((struct mxbpf_rec *)rec)->size += 8;
}

static void set_name_len(void *rec)
{
	((struct mxbpf_name *)rec)->len = 9;
}

static void set_name_huge(void *rec)
{
	((struct mxbpf_name *)rec)->len = UINT32_MAX;
}

static void set_agg_good(void *rec)
{
	struct mxbpf_agg *a = rec;

	a->cls = OP;
	a->count = 1;
	a->nbuckets = 2;
	a->buckets[1].index = MXBPF_HIST_BUCKETS - 1;
}

static void set_agg_long(void *rec)
{
	set_agg_good(rec);
	((struct mxbpf_agg *)rec)->nbuckets = 3;
}

static void set_agg_index(void *rec)
{
	set_agg_good(rec);
	((struct mxbpf_agg *)rec)->buckets[1].index++;
}

static void set_agg_order(void *rec)
{
	set_agg_good(rec);
	((struct mxbpf_agg *)rec)->buckets[1].index = 0;
}

static void set_agg_class(void *rec)
{
	set_agg_good(rec);
	((struct mxbpf_agg *)rec)->cls = MXBPF_CLASS_MAX;
}

static void set_span_class(void *rec)
{
	((struct mxbpf_span *)rec)->cls = 127;
}

static void set_counter_class(void *rec)
{
	((struct mxbpf_tally *)rec)->cls = MXBPF_CLASS_MAX;
}

static void set_edge_class(void *rec)
{
	((struct mxbpf_edge *)rec)->src_cls = MXBPF_CLASS_MAX;
}

static void set_agg_mem_class(void *rec)
{
	((struct mxbpf_agg_mem *)rec)->cls = OP;
}

static void test_malformed(void)
{
	static const struct {
		unsigned kind, size;
		void (*set)(void *rec);
	} bad[] = {
		{MXBPF_MEM, 0, NULL},
		{MXBPF_MEM, 8, NULL},
		{MXBPF_ALLOC, 36, NULL},
		{MXBPF_SPAN, 56, NULL},
		{MXBPF_SPAN, 64, NULL},
		{MXBPF_SPAN, 64, set_span_class},
		{MXBPF_ALLOC, 24, NULL},
		{MXBPF_ALLOC, 32, set_size_beyond},
		{MXBPF_NAME, 24, NULL},
		{MXBPF_NAME, 40, set_name_len},
		{MXBPF_NAME, 8400, set_name_huge},
		{MXBPF_AGG, 64, NULL},
		{MXBPF_AGG, 72 + 32, set_agg_long},
		{MXBPF_AGG, 72 + 32, set_agg_index},
		{MXBPF_AGG, 72 + 32, set_agg_order},
		{MXBPF_AGG, 72 + 32, set_agg_class},
		{MXBPF_MEM, 72, NULL},
		{MXBPF_AGG_MEM, 40, set_agg_mem_class},
		{MXBPF_AGG_MEM, 48, NULL},
		{MXBPF_AGG_ACCOUNT, 88, NULL},
		{MXBPF_AGG_ACCOUNT, 96, NULL},
		{MXBPF_TALLY, 32, set_counter_class},
		{MXBPF_EDGE, 40, set_edge_class},
		{200, 24, set_size_beyond},
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (feed_bad(bad[i].kind, bad[i].size, bad[i].set) == -EBADMSG)
			continue;
		printf("# row %zu\n", i);
		CHECK(!"a malformed record was taken");
	}
	CHECK(!feed_bad(MXBPF_AGG, 72 + 32, set_agg_good));
	CHECK(!feed_bad(MXBPF_ALLOC, 48, NULL)); /* longer, as from a newer version */
	CHECK(!feed_bad(200, 24, NULL));	 /* a kind from a newer version */
}

static void test_random_bytes(struct buf *b)
{
	uint32_t seed = 1;
	struct mdl *m;
	size_t i, k;

	for (k = 0; k < 300; k++) {
		m = mdl_new();
		fill(b, 1, 20);
		put_name(b, 3, MXBPF_NAME_SPAN, "three");
		for (i = 0; i < 1 + k % 4; i++) {
			seed = seed * 1664525 + 1013904223;
			b->data[(seed >> 8) % b->len] = (char)(seed >> 3);
		}
		feed(m, b);
		mdl_emit(m, b);
		CHECK(!mdl_feed(m, b->data, b->len));
		b->len = 0;
		mdl_free(m);
	}
}

static void test_hostile_sums(struct buf *b)
{
	struct mxbpf_agg a = {.h = {MXBPF_AGG, sizeof(a), 77, 0},
			      .device = MXBPF_DEVICE(1, 0),
			      .cls = OP,
			      .count = UINT64_MAX,
			      .total_ns = UINT64_MAX};
	FREED(model_freed) struct mdl *m = mdl_new();
	size_t n;

	buf_put(b, &a, sizeof(a));
	a.count = 1;
	buf_put(b, &a, sizeof(a));
	a.count = 0;
	a.name_id = 5;
	buf_put(b, &a, sizeof(a));
	put_span(b, 1, 1, 0, OP);
	CHECK(!feed(m, b));
	CHECK(mdl_rows(m, OP, &n)[0]->count == UINT64_MAX);
	CHECK(n == 1); /* a row without calls is not added */
}

int main(void)
{
	FREED(buf_fini) struct buf b = {0};

	TEST("spans become rows by process, class, name and device")
	test_rows(&b);
	TEST("allocations are summed in time order and never below zero, and late ones are counted")
	test_account(&b);
	TEST("the maximum number of spans open at one time is counted")
	test_max_open(&b);
	TEST("a span that began before the window counts as open from its start, and a late span is counted")
	test_earlier_start(&b);
	TEST("spans left without their end are counted")
	test_unwound(&b);
	TEST("emitted records give an equal model, and aggregates can be merged")
	test_round_trip(&b);
	TEST("signed byte counts are summed, and a record without byte counts adds none")
	test_bytes(&b);
	TEST("every name id has a text")
	test_names(&b);
	TEST("a malformed record is refused, and earlier records are kept")
	test_malformed();
	TEST("the sum of processes has each row once and the number of processes")
	test_sum(&b);
	TEST("a selection of processes has only their rows and their number")
	test_some(&b);
	TEST("no damaged byte crashes the model")
	test_random_bytes(&b);
	TEST("sums of a hostile file saturate")
	test_hostile_sums(&b);
	UNIT_MAIN_END;
}
