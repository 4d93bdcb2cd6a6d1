// SPDX-License-Identifier: Apache-2.0
/*
 * Tests a hub with two sources: one delivers in time; the other has five lanes, whose batches arrive 300 ms late and
 * in another order than they were made. Time is simulated. The same records folded in time order give the expected
 * result.
 */

#include "base/buf.h"
#include "model/model.h"
#include "source/source.h"
#include "unit.h"

#define MS	   1000000ull
#define SECONDS	   4
#define TICKS	   (SECONDS * 100) /* one tick is 10 ms */
#define LANES	   5
#define BATCH_MS   100
#define BATCHES	   (SECONDS * 1000 / BATCH_MS)
#define LATE_MS	   300
#define DROPS	   97 /* one of this many records is lost */
#define START_NS   (1000 * MS)
#define NAMES	   7
#define WINDOW_MS  50 /* of the expected model */
#define NO_LANE	   LANES
#define STALLED_MS 3500

static uint64_t seed;

static unsigned next_random(unsigned below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % below;
}

/* All records of both sources, by the tick or batch in which they end. */
static struct buf in_time[TICKS], lanes[LANES][BATCHES], in_order[SECONDS * 1000 / WINDOW_MS];

struct late {
	unsigned delivered[LANES]; /* number of batches */
	uint64_t attempted, stored, dropped;
	unsigned stalled; /* lane that delivers nothing until the end */
	struct src *src;
};

static uint64_t prompt_sent, prompt_until_ns;

static void put_span(struct buf *to, uint64_t end_ns, uint32_t tid, unsigned cls)
{
	const uint64_t dur_ns = 1000 + next_random(90000);
	const struct mxbpf_span s = {
		.h = {MXBPF_SPAN, sizeof(s), 7, end_ns - dur_ns},
		.dur_ns = dur_ns,
		.self_ns = dur_ns,
		.name_id = 1 + next_random(NAMES),
		.tid = tid,
		.end_tid = tid,
		.cls = (uint8_t)cls,
	};

	CHECK(!buf_put(to, &s, sizeof(s)));
}

/* One lane allocates memory, and another lane frees as much a little later. */
static void put_alloc(struct buf *to, uint64_t at_ns, bool take)
{
	const struct mxbpf_alloc a = {
		.h = {MXBPF_ALLOC, MXBPF_ALLOC_BYTES_PLAIN, 7, at_ns}, .bytes = take ? 1000 : -1000, .device = 1};

	CHECK(!buf_put(to, &a, MXBPF_ALLOC_BYTES_PLAIN));
}

static void copy_last(struct buf *to, const struct buf *from, size_t at)
{
	CHECK(!buf_put(to, from->data + at, from->len - at));
}

static void make_one(unsigned ms, unsigned lane, struct late *l)
{
	const uint64_t at_ns = START_NS + ms * MS + lane * 1000 + 500;
	struct buf *to = &lanes[lane][ms / BATCH_MS];
	size_t at = to->len;

	l->attempted++;
	if (l->attempted % DROPS == 0) {
		l->dropped++;
		return;
	}
	if ((ms + lane) % 4)
		put_span(to, at_ns, lane, lane % 2 ? MXBPF_CLASS_API : MXBPF_CLASS_OPERATOR);
	else
		put_alloc(to, at_ns, (ms / 40 + lane) % 2);
	copy_last(&in_order[ms / WINDOW_MS], to, at);
}

static void make_records(struct late *l)
{
	unsigned ms, lane;
	size_t at;

	seed = 1;
	for (ms = 0; ms < SECONDS * 1000; ms++) {
		at = in_time[ms / 10].len;
		put_span(&in_time[ms / 10], START_NS + ms * MS + 100, 100, MXBPF_CLASS_API);
		copy_last(&in_order[ms / WINDOW_MS], &in_time[ms / 10], at);
		for (lane = 0; lane < LANES; lane++)
			make_one(ms, lane, l);
	}
}

static void free_records(void)
{
	unsigned i, k;

	for (i = 0; i < TICKS; i++)
		buf_fini(&in_time[i]);
	for (i = 0; i < sizeof(in_order) / sizeof(in_order[0]); i++)
		buf_fini(&in_order[i]);
	for (k = 0; k < LANES; k++)
		for (i = 0; i < BATCHES; i++)
			buf_fini(&lanes[k][i]);
}

static size_t count(const struct buf *b)
{
	const struct mxbpf_rec *r;
	size_t pos = 0, n = 0;

	while ((r = kind_next(b->data, b->len, &pos)))
		n++;
	return n;
}

/* ---- the sources */

static int nothing_to_open(struct src *s, struct err *e)
{
	return 0;
}

static void prompt_loss(const struct src *s, struct mxbpf_loss *loss)
{
	*loss = (struct mxbpf_loss){.attempted = prompt_sent, .stored = prompt_sent};
}

static void late_loss(const struct src *s, struct mxbpf_loss *loss)
{
	const struct late *l = s->ctx;

	*loss = (struct mxbpf_loss){.attempted = l->attempted, .stored = l->stored, .dropped = l->dropped};
}

static uint64_t prompt_watermark(const struct src *s)
{
	return prompt_until_ns;
}

static uint64_t late_watermark(const struct src *s)
{
	const struct late *l = s->ctx;
	unsigned lane, least = BATCHES;

	for (lane = 0; lane < LANES; lane++)
		least = l->delivered[lane] < least ? l->delivered[lane] : least;
	return least == BATCHES ? UINT64_MAX : START_NS + (uint64_t)least * BATCH_MS * MS;
}

static void deliver_batch(struct late *l, unsigned lane)
{
	struct buf *b = &lanes[lane][l->delivered[lane]++];

	l->stored += count(b);
	src_deliver(l->src, b->data, b->len);
}

static void late_flush(struct src *s)
{
	struct late *l = s->ctx;
	unsigned lane;

	for (lane = LANES; lane-- > 0;)
		while (l->delivered[lane] < BATCHES)
			deliver_batch(l, lane);
}

static const struct src_ops prompt_ops = {.open = nothing_to_open, .loss = prompt_loss, .watermark = prompt_watermark};
static const struct src_ops late_ops = {
	.open = nothing_to_open, .flush = late_flush, .loss = late_loss, .watermark = late_watermark, .late = true};

/* ---- the run */

static void fold(void *ctx, unsigned number, void *recs, size_t bytes)
{
	struct mdl *m = ctx;

	mdl_begin(m, number);
	CHECK(!mdl_fold_all(m, recs, bytes));
}

/* A batch is delivered 300 ms after its end, for some lanes a little later; the lanes take turns. */
static void run(struct src_hub *h, struct src *prompt, struct late *l)
{
	unsigned tick, i, lane, due;

	for (tick = 0; tick < TICKS; tick++) {
		prompt_sent += count(&in_time[tick]);
		src_deliver(prompt, in_time[tick].data, in_time[tick].len);
		prompt_until_ns = START_NS + (tick + 1) * 10 * MS;
		for (i = 0; i < LANES; i++) {
			lane = (i * 3 + tick) % LANES;
			due = (l->delivered[lane] + 1) * BATCH_MS + LATE_MS + lane * 7 * (l->delivered[lane] % 3);
			if (due <= tick * 10 && (lane != l->stalled || tick < 10))
				deliver_batch(l, lane);
		}
	}
	src_flush(h);
}

static bool same_row(const struct mdl_row *a, const struct mdl_row *b)
{
	return a->count == b->count && a->total_ns == b->total_ns && a->self_ns == b->self_ns &&
	       a->min_ns == b->min_ns && a->max_ns == b->max_ns && !memcmp(a->hist, b->hist, sizeof(a->hist));
}

static void check_rows(struct mdl *m, struct mdl *truth, enum mxbpf_class cls)
{
	size_t n, ntruth, i, k;
	const struct mdl_row *const *rows = mdl_rows(m, cls, &n), *const *want = mdl_rows(truth, cls, &ntruth);

	CHECK(n == NAMES && ntruth == NAMES);
	for (i = 0; i < ntruth; i++) {
		for (k = 0; k < n && rows[k]->name_id != want[i]->name_id; k++)
			;
		CHECK(k < n && same_row(rows[k], want[i]));
	}
	CHECK(mdl_tally(m, cls, MXBPF_TALLY_LATE) == 0);
}

static void check_memory(struct mdl *m, struct mdl *truth)
{
	size_t n, ntruth;
	const struct mdl_mem_row *const *is = mdl_mem_rows(m, &n), *const *want = mdl_mem_rows(truth, &ntruth);

	CHECK(n == 1 && ntruth == 1 && want[0]->peak_bytes > 1000);
	CHECK(n == 1 && is[0]->allocs == want[0]->allocs && is[0]->frees == want[0]->frees &&
	      is[0]->peak_bytes == want[0]->peak_bytes && is[0]->live_bytes == want[0]->live_bytes);
	CHECK(mdl_tally(m, MXBPF_CLASS_NONE, MXBPF_TALLY_LATE) == 0);
}

static void check_loss(const struct src_hub *h, const struct late *l)
{
	const uint64_t made = SECONDS * 1000 * LANES;
	struct mxbpf_loss of, all;

	src_loss(src_at(h, 1), &of);
	CHECK(of.attempted == made && of.dropped == made / DROPS && of.stored == made - made / DROPS);
	CHECK(!strcmp(src_at(h, 1)->name, "lanes") && l->stored == of.stored);
	src_loss_all(h, &all);
	CHECK(all.dropped == of.dropped && all.attempted == of.attempted + prompt_sent);
}

static struct mdl *fold_in_order(void)
{
	struct mdl *m = mdl_new();
	size_t i;

	for (i = 0; i < sizeof(in_order) / sizeof(in_order[0]); i++)
		CHECK(!mdl_fold_all(m, in_order[i].data, in_order[i].len));
	return m;
}

/* stalled: lane that delivers nothing until the end; NO_LANE: none. */
static void watch(unsigned stalled)
{
	struct mdl *m = mdl_new(), *truth;
	struct src_hub *h = src_hub_new(fold, m);
	struct late l = {.stalled = stalled};
	struct src *prompt = src_add(h, &prompt_ops, "clock", NULL);
	struct err e = {0};
	size_t n;

	prompt_sent = prompt_until_ns = 0;
	l.src = src_add(h, &late_ops, "lanes", &l);
	make_records(&l);
	truth = fold_in_order();
	CHECK(!src_open(h, &e));
	run(h, prompt, &l);
	check_loss(h, &l);
	CHECK(src_late(prompt) == 0);
	if (stalled == NO_LANE) {
		CHECK(src_late(l.src) == 0);
		check_rows(m, truth, MXBPF_CLASS_OPERATOR);
		check_rows(m, truth, MXBPF_CLASS_API);
		check_memory(m, truth);
	} else { /* all records older than SRC_WAIT_NS at the end arrive after later ones */
		n = (SECONDS * 1000 - SRC_WAIT_NS / MS) / 4 * 4;
		CHECK(src_late(l.src) > n - 2 * n / DROPS - BATCH_MS && src_late(l.src) <= n);
		CHECK(mdl_tally(m, MXBPF_CLASS_API, MXBPF_TALLY_LATE) == 0);
		mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);
		CHECK(n == NAMES);
	}
	src_hub_free(h);
	mdl_free(m);
	mdl_free(truth);
	free_records();
}

/* Neither source waits for the other; one is 100 ms ahead. */
static void watch_apart(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	struct src_hub *h = src_hub_new(fold, m);
	struct src *ahead = src_add(h, &prompt_ops, "ahead", NULL), *behind = src_add(h, &prompt_ops, "behind", NULL);
	FREED(buf_fini) struct buf batch = {0};
	struct err e = {0};
	unsigned i;

	CHECK(!src_open(h, &e));
	for (i = 0; i < 20; i++) {
		batch.len = 0;
		put_span(&batch, START_NS + (i / 2 + (i % 2 ? 0 : 10)) * 10 * MS, 1, MXBPF_CLASS_OPERATOR);
		src_deliver(i % 2 ? behind : ahead, batch.data, batch.len);
	}
	src_flush(h);
	CHECK(mdl_tally(m, MXBPF_CLASS_OPERATOR, MXBPF_TALLY_LATE) == 0);
	batch.len = 0;
	put_span(&batch, START_NS + 10 * MS, 1, MXBPF_CLASS_OPERATOR); /* older than the source's own last record */
	src_deliver(behind, batch.data, batch.len);
	CHECK(mdl_tally(m, MXBPF_CLASS_OPERATOR, MXBPF_TALLY_LATE) == 1);
	src_hub_free(h);
}

static uint64_t half_watermark(const struct src *s)
{
	return *(const uint64_t *)s->ctx;
}

static const struct src_ops half_ops = {
	.open = nothing_to_open, .loss = prompt_loss, .watermark = half_watermark, .late = true};

static void append(void *ctx, unsigned number, void *recs, size_t bytes)
{
	CHECK(!buf_put(ctx, recs, bytes));
}

/* In one batch, a short record is due and the long ones after it are not. Those move by less than their size. */
static void watch_moved(void)
{
	struct buf got = {0}, batch = {0};
	struct src_hub *h = src_hub_new(append, &got);
	uint64_t until_ns = START_NS + 10 * MS;
	struct src *half = src_add(h, &half_ops, "half", &until_ns);
	struct err e = {0};
	unsigned i;

	CHECK(!src_open(h, &e));
	put_alloc(&batch, START_NS + 5 * MS, true);
	for (i = 0; i < 10; i++)
		put_span(&batch, START_NS + (20 + i) * MS, i, MXBPF_CLASS_OPERATOR);
	src_deliver(half, batch.data, batch.len);
	CHECK(got.len == MXBPF_ALLOC_BYTES_PLAIN);
	src_flush(h);
	CHECK(got.len == batch.len && !memcmp(got.data, batch.data, batch.len));
	src_hub_free(h);
	buf_fini(&got);
	buf_fini(&batch);
}

/* The first batch has a call that is due and one that is not. The second batch is large, and all of it is due. */
static void watch_large(void)
{
	struct buf got = {0}, batch = {0};
	struct src_hub *h = src_hub_new(append, &got);
	uint64_t until_ns = START_NS;
	struct src *half = src_add(h, &half_ops, "half", &until_ns);
	struct err e = {0};
	size_t first;

	CHECK(!src_open(h, &e));
	put_span(&batch, START_NS + 5 * MS, 0, MXBPF_CLASS_OPERATOR);
	put_span(&batch, START_NS + 20 * MS, 0, MXBPF_CLASS_OPERATOR);
	first = batch.len / 2;
	src_deliver(half, batch.data, batch.len);
	batch.len = first;
	while (batch.len < first + (1 << 20))
		put_span(&batch, START_NS + 6 * MS, batch.len & 1023, MXBPF_CLASS_OPERATOR);
	src_deliver(half, batch.data + first, batch.len - first);
	until_ns = START_NS + 10 * MS;
	src_deliver(half, NULL, 0);
	CHECK(got.len == batch.len && !memcmp(got.data, batch.data, batch.len));
	src_flush(h);
	CHECK(got.len == batch.len + first);
	src_hub_free(h);
	buf_fini(&got);
	buf_fini(&batch);
}

/* The source that delivers late is ahead of the prompt one, which then has nothing to deliver. */
static void watch_silent(void)
{
	struct buf got = {0}, batch = {0};
	struct src_hub *h = src_hub_new(append, &got);
	uint64_t until_ns = START_NS + 10 * MS;
	struct src *prompt = src_add(h, &prompt_ops, "clock", NULL), *half = src_add(h, &half_ops, "half", &until_ns);
	struct err e = {0};

	CHECK(!src_open(h, &e));
	put_span(&batch, START_NS + 5 * MS, 1, MXBPF_CLASS_OPERATOR);
	prompt_until_ns = START_NS + 4 * MS;
	src_deliver(half, batch.data, batch.len);
	CHECK(!got.len);
	prompt_until_ns = START_NS + 6 * MS;
	src_deliver(half, NULL, 0);
	CHECK(got.len == batch.len);
	src_deliver(prompt, batch.data, batch.len);
	CHECK(src_late(prompt) == 1);
	src_hub_free(h);
	buf_fini(&got);
	buf_fini(&batch);
}

int main(void)
{
	TEST("records that arrive 300 ms late and out of order are added up as if in order, and none counts as late")
	{
		watch(NO_LANE);
	}
	TEST("records that arrive after the maximum wait are in the sums and count as late for their own source only")
	{
		watch(2);
	}
	TEST("records of a source are not late only because another source is ahead")
	{
		watch_apart();
	}
	TEST("records of any size that are held back are passed on unchanged")
	{
		watch_moved();
		watch_large();
	}
	TEST("a record is passed on as soon as all sources have told that no older one comes, and not before")
	{
		watch_silent();
	}
	UNIT_MAIN_END;
}
