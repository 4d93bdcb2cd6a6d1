// SPDX-License-Identifier: Apache-2.0
/*
 * Compares memory attribution with simple books that copy all owners at each peak: the order of records in a window
 * must not matter.
 */

#include "feature/memory/growth.h"
#include "feature/memory/memory.h"
#include "model/model.h"
#include "unit.h"

#define OP     MXBPF_CLASS_OPERATOR
#define DEV    MXBPF_DEVICE(1, 0)
#define OWNERS 5
#define BEFORE OWNERS /* its index in the books */
#define SLOTS  64

static struct mxbpf_alloc record(uint64_t ts_ns, uint32_t tgid, uint64_t owner, uint64_t addr, int64_t bytes)
{
	return (struct mxbpf_alloc){
		.h = {MXBPF_ALLOC, sizeof(struct mxbpf_alloc), tgid, ts_ns},
		.bytes = bytes,
		.tid = tgid,
		.device = DEV,
		.addr = addr,
		.name_id = bytes > 0 ? 100 + owner : 0,
		.cls = bytes > 0 ? OP : 0,
		.flags = bytes > 0 ? 0 : MXBPF_ALLOC_FREED,
	};
}

static struct mxbpf_mem_owner holder(const struct mdl *m, uint64_t owner, uint32_t tgid)
{
	const struct mxbpf_mem_owner *h;
	size_t i;

	for (i = 0; (h = memory_owner(m, i)); i++)
		if (h->h.tgid == tgid &&
		    (owner == BEFORE ? h->flags == MXBPF_MEM_OWNER_BEFORE : !h->flags && h->name_id == 100 + owner))
			return *h;
	return (struct mxbpf_mem_owner){0};
}

static size_t nholders(const struct mdl *m)
{
	size_t n = 0;

	while (memory_owner(m, n))
		n++;
	return n;
}

/* A simple account of memory. */
struct books {
	int64_t live[OWNERS + 1], at_peak[OWNERS + 1], total, peak;
	uint64_t peak_ns, end_ns;
	uint64_t allocs[OWNERS + 1], frees[OWNERS + 1];
	double area;
};

static void book(struct books *b, unsigned owner, int64_t bytes, uint64_t now_ns)
{
	if (b->end_ns)
		b->area += (double)b->total * (double)(now_ns - b->end_ns);
	b->end_ns = now_ns;
	b->live[owner] += bytes;
	b->total += bytes;
	*(bytes > 0 ? &b->allocs[owner] : &b->frees[owner]) += 1;
	if (b->total > b->peak) {
		b->peak = b->total;
		b->peak_ns = now_ns;
		memcpy(b->at_peak, b->live, sizeof(b->live));
	}
}

/* Makes n events of the process of `slots`, from time `from` on, in the books and in recs. */
static void happen(struct books *b, struct mxbpf_alloc *recs, size_t n, uint64_t from, struct mxbpf_alloc *slots)
{
	const uint32_t tgid = slots[0].h.tgid;
	size_t i;

	for (i = 0; i < n; i++) {
		const uint64_t now = from + 10 * i;
		struct mxbpf_alloc *s = &slots[rand() % SLOTS];
		unsigned owner = (unsigned)rand() % OWNERS;

		if (rand() % 20 == 0) { /* frees a block from before the window */
			recs[i] = record(now, tgid, 0, 1000000 + i, -(1 + rand() % 5000));
			book(b, BEFORE, recs[i].bytes, now);
		} else if (s->bytes) {
			recs[i] = record(now, tgid, 0, s->addr, -s->bytes);
			book(b, (unsigned)(s->name_id - 100), -s->bytes, now);
			s->bytes = 0;
		} else {
			recs[i] = *s = record(now, tgid, owner, (uint64_t)(s - slots + 1) << 12, 1 + rand() % 10000);
			book(b, owner, s->bytes, now);
		}
	}
}

static void shuffle(struct mxbpf_alloc *recs, size_t n)
{
	for (; n > 1; n--) {
		size_t k = (size_t)rand() % n;
		struct mxbpf_alloc r = recs[k];

		recs[k] = recs[n - 1];
		recs[n - 1] = r;
	}
}

static int feed_all(struct mdl *m, struct mxbpf_alloc *recs, size_t n, size_t window)
{
	int err = 0;

	for (; n && !err; recs += window, n -= window) {
		window = window < n ? window : n;
		shuffle(recs, window);
		err = mdl_feed(m, recs, window * sizeof(*recs));
	}
	return err;
}

static bool same_device(const struct mdl *m, const struct books *b)
{
	const struct mxbpf_mem_time *t = memory_device(m, 0);
	const double mean = t ? (double)memory_mean(t, b->end_ns - 1000, b->end_ns) : 0;

	return t && !memory_device(m, 1) && t->live_bytes == b->total && t->peak_bytes == b->peak &&
	       t->peak_ns == b->peak_ns && mean - b->area / 1000 < 1 && mean - b->area / 1000 > -1;
}

static bool same_holders(const struct mdl *m, const struct books *b, uint32_t tgid)
{
	unsigned i;

	for (i = 0; i <= OWNERS; i++) {
		const struct mxbpf_mem_owner h = holder(m, i, tgid);

		if (h.live_bytes != b->live[i] || h.peak_bytes != b->at_peak[i] || h.allocs != b->allocs[i] ||
		    h.frees != b->frees[i] || (int64_t)(h.alloc_bytes - h.free_bytes) != b->live[i] ||
		    h.live_blocks != (i == BEFORE ? 0 : b->allocs[i] - b->frees[i]))
			return false;
	}
	return true;
}

static struct mdl *again(const struct mdl *m)
{
	struct mdl *copy = mdl_new();
	FREED(buf_fini) struct buf recs = {0};

	if (mdl_emit(m, &recs) || mdl_feed(copy, recs.data, recs.len)) {
		mdl_free(copy);
		copy = NULL;
	}
	return copy;
}

/* Returns the owner with this stack, or zeros. */
static struct mxbpf_mem_owner of_stack(const struct mdl *m, uint64_t stack_id)
{
	const struct mxbpf_mem_owner *h;
	size_t i;

	for (i = 0; (h = memory_owner(m, i)); i++)
		if (!h->flags && h->stack_id == stack_id)
			return *h;
	return (struct mxbpf_mem_owner){0};
}

/* One operator allocates from the stacks 5 and 6 and from an unknown one, and frees some of it. */
static void feed_stacks(struct mdl *m)
{
	const struct {
		uint64_t stack_id, addr;
		int64_t bytes;
	} all[] = {{5, 1, 100}, {6, 2, 30}, {0, 3, 7}, {5, 4, 50}, {0, 1, -100}, {0, 3, -7}};
	struct mxbpf_alloc a;
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		a = record(10 + i, 7, 0, all[i].addr, all[i].bytes);
		a.stack_id = all[i].stack_id;
		CHECK(!mdl_feed(m, &a, sizeof(a)));
	}
}

static void test_stacks(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	struct mdl *copy;
	struct mxbpf_alloc a[2];
	struct mxbpf_mem_owner o;
	char old[MXBPF_MEM_OWNER_BYTES_MIN + 8];

	TEST("an operator's allocations from different Python stacks have different owners, which add up to its memory")
	{
		feed_stacks(m);
		CHECK(nholders(m) == 3 && of_stack(m, 5).live_bytes == 50 && of_stack(m, 5).peak_bytes == 150);
		CHECK(of_stack(m, 5).allocs == 2 && of_stack(m, 5).frees == 1 && of_stack(m, 6).live_bytes == 30);
		CHECK(of_stack(m, 0).allocs == 1 && of_stack(m, 0).live_bytes == 0);
		o = of_stack(m, 5);
		memory_owner_add(
			&o, &(struct mxbpf_mem_owner){.allocs = 1, .alloc_bytes = 9, .live_bytes = 4, .peak_bytes = 2});
		CHECK(o.allocs == 3 && o.alloc_bytes == 159 && o.live_bytes == 54 && o.peak_bytes == 152);
	}
	TEST("emitted owners have their stacks again")
	{
		copy = again(m);
		CHECK(copy && nholders(copy) == 3 && of_stack(copy, 5).live_bytes == 50 &&
		      of_stack(copy, 6).peak_bytes == 30);
		mdl_free(copy);
	}
	TEST("records without a stack, which older recordings have, are of an unknown stack, whatever follows them")
	{
		copy = mdl_new();
		a[0] = record(10, 7, 0, 1, 100);
		a[0].h.size = MXBPF_ALLOC_BYTES_OWNER;
		a[0].stack_id = 5;
		CHECK(!mdl_feed(copy, a, MXBPF_ALLOC_BYTES_OWNER) && of_stack(copy, 0).live_bytes == 100);
		o = of_stack(copy, 0);
		o.h.size = MXBPF_MEM_OWNER_BYTES_MIN;
		memcpy(old, &o, MXBPF_MEM_OWNER_BYTES_MIN);
		memset(old + MXBPF_MEM_OWNER_BYTES_MIN, 0xff, 8);
		CHECK(!mdl_feed(copy, old, MXBPF_MEM_OWNER_BYTES_MIN) && of_stack(copy, 0).live_bytes == 200);
		CHECK(nholders(copy) == 1);
		a[0] = record(20, 7, 0, 9, 0); /* a free of unknown size */
		a[0].h.size = MXBPF_ALLOC_BYTES_OWNER;
		CHECK(!mdl_feed(copy, a, MXBPF_ALLOC_BYTES_OWNER) && memory_device(copy, 0)->unsized == 1);
		mdl_free(copy);
	}
}

static int64_t grown(const int64_t *bytes, size_t n, uint64_t step_ns)
{
	struct memory_growth g = {.start_ns = 0};
	uint64_t ns;
	size_t i;

	for (i = 0; i < n; i++)
		growth_note(&g, 1000, 1000 + (i + 1) * step_ns, bytes[i]);
	return growth_of(&g, &ns);
}

static void test_growth(void)
{
	static int64_t leak[600], cache[600], saw[600], flat[600];
	uint64_t ns;
	size_t i;

	for (i = 0; i < 600; i++) {
		leak[i] = (int64_t)(i / 6) * 100 + (i % 6 ? 5000 : 0); /* up and down in an iteration of six events */
		cache[i] = i < 300 ? (int64_t)i * 100 : 30000;
		saw[i] = (int64_t)(i % 20) * 100;
		flat[i] = 7000;
	}
	TEST("what grows in each part of the window grows, however long it is; what goes up and down or levels off "
	     "does not")
	{
		for (ns = 100000; ns < 100000000000; ns *= 10) {
			CHECK(grown(leak, 600, ns) > 3000 && grown(leak, 600, ns) < 10000);
			CHECK(!grown(cache, 600, ns) && !grown(saw, 600, ns) && !grown(flat, 600, ns));
		}
		CHECK(!grown(leak, 12, 100)); /* too short */
	}
	TEST("the owner that leaks grows, beside one that holds more at times, also in the sum of emitted records")
	{
		struct mxbpf_alloc step[3];
		FREED(model_freed) struct mdl *m = mdl_new();

		for (i = 0; i < 300; i++) {
			step[0] = record(1000 + i * 1000000, 7, 0, 0x10000 + i, 100);
			step[1] = record(1300 + i * 1000000, 7, 1, 0x1000, 500000);
			step[2] = record(1600 + i * 1000000, 7, 0, 0x1000, -500000);
			CHECK(!mdl_feed(m, step, sizeof(step)));
		}
		FREED(model_freed) struct mdl *copy = again(m);
		CHECK(holder(m, 0, 7).grown_bytes > 10000 && !holder(m, 1, 7).grown_bytes);
		CHECK(copy && holder(copy, 0, 7).grown_bytes == holder(m, 0, 7).grown_bytes);
		CHECK(holder(copy, 0, 7).grown_ns == holder(m, 0, 7).grown_ns && holder(m, 0, 7).grown_ns > 100000000);
	}
}

int main(void)
{
	test_growth();
	enum { N = 20000 };
	static struct mxbpf_alloc recs[N], slots[SLOTS], others[SLOTS];
	struct mxbpf_alloc one[4];
	struct books b = {0}, c = {0};
	struct mdl *m = mdl_new(), *copy, *sum, *next;
	const struct mxbpf_mem_time *t;
	size_t i;

	srand(1);
	slots[0].h.tgid = 7;
	others[0].h.tgid = 8;
	happen(&b, recs, N, 1000, slots);
	CHECK(!feed_all(m, recs, N, 97));
	TEST("the peak, its time, its owners, the mean and the live bytes equal those of the books")
	{
		CHECK(same_device(m, &b));
		CHECK(same_holders(m, &b, 7));
	}
	TEST("emitted records give the same memory attribution again")
	{
		copy = again(m);
		CHECK(copy && same_device(copy, &b) && same_holders(copy, &b, 7));
		mdl_free(copy);
	}
	TEST("live bytes continue correctly after the memory state moves to a new model")
	{
		next = mdl_new();
		CHECK(!mdl_move(next, m, 1000 + 10 * N));
		happen(&b, recs, N, 1000 + 10 * N, slots);
		CHECK(!feed_all(next, recs, N, 50));
		for (i = 0; i <= OWNERS; i++)
			CHECK(holder(next, (uint64_t)i, 7).live_bytes == b.live[i]);
		CHECK(memory_device(next, 0)->live_bytes == b.total);
	}
	TEST("a new peak after the move includes blocks allocated before it")
	{
		CHECK(memory_device(next, 0)->peak_bytes <= b.peak);
		int64_t all = 0;

		for (i = 0; i <= OWNERS; i++)
			all += holder(next, (uint64_t)i, 7).peak_bytes;
		CHECK(all == memory_device(next, 0)->peak_bytes);
		mdl_free(next);
	}
	mdl_free(m);

	TEST("two separately folded halves have the peak of the whole after they are merged")
	{
		struct mxbpf_alloc up[] = {record(10, 7, 0, 0x1000, 100), record(20, 7, 1, 0x2000, 50)};
		struct mxbpf_alloc on[] = {record(30, 7, 2, 0x3000, 500), record(40, 7, 0, 0x3000, -500),
					   record(50, 7, 2, 0x4000, 10)};
		FREED(buf_fini) struct buf late = {0};

		m = mdl_new();
		next = mdl_new();
		CHECK(!mdl_feed(m, up, sizeof(up)) && !mdl_feed(next, on, sizeof(on)) && !mdl_emit(next, &late));
		CHECK(!mdl_feed(m, late.data, late.len));
		t = memory_device(m, 0);
		CHECK(t->peak_bytes == 650 && t->peak_ns == 30 && t->live_bytes == 160);
		CHECK(holder(m, 0, 7).peak_bytes == 100 && holder(m, 1, 7).peak_bytes == 50);
		CHECK(holder(m, 2, 7).peak_bytes == 500 && holder(m, 2, 7).live_bytes == 10);
		/* 100 bytes for 10 ns, 150 for 10, 650 for 10, 150 for 10, 160 for 50 */
		CHECK(memory_mean(t, 0, 100) == (1000 + 1500 + 6500 + 1500 + 8000) / 100);
		mdl_free(m);
		mdl_free(next);
	}
	TEST("the memory of several processes adds up")
	{
		memset(slots, 0, sizeof(slots));
		slots[0].h.tgid = 7;
		b = (struct books){0};
		m = mdl_new();
		happen(&b, recs, N / 2, 1000, slots);
		happen(&c, recs + N / 2, N / 2, 1000, others);
		CHECK(!feed_all(m, recs, N, 64));
		CHECK(same_holders(m, &b, 7) && same_holders(m, &c, 8));
		sum = mdl_sum(m);
		CHECK(sum && memory_device(sum, 0)->peak_bytes == b.peak + c.peak &&
		      memory_device(sum, 0)->live_bytes == b.total + c.total && !memory_device(sum, 1));
		for (i = 0; sum && i <= OWNERS; i++)
			CHECK(holder(sum, (uint64_t)i, 0).peak_bytes == b.at_peak[i] + c.at_peak[i]);
		mdl_free(sum);
		mdl_free(m);
	}
	TEST("an address that is allocated again without a free counts as a missed free")
	{
		m = mdl_new();
		one[0] = record(10, 7, 0, 0x1000, 100);
		one[1] = record(20, 7, 1, 0x1000, 30);
		one[2] = record(30, 7, 1, 0, 7); /* without an address its free cannot be recognized */
		one[3] = record(40, 7, 0, 0x5000, 0);
		CHECK(!mdl_feed(m, one, sizeof(one)));
		t = memory_device(m, 0);
		CHECK(t->missed == 1 && t->untracked == 1 && t->unsized == 1 && t->live_bytes == 37 &&
		      t->peak_bytes == 100);
		CHECK(holder(m, 0, 7).live_blocks == 0 && holder(m, 1, 7).live_blocks == 2);
		mdl_free(m);
	}
	TEST("owners beyond the maximum number share one row, and none of their bytes are lost")
	{
		int64_t live = 0;
		bool more = false;

		m = mdl_new();
		for (i = 0; i < MEMORY_OWNERS_MAX + 10; i++) {
			one[0] = record(10 + i, 7, i, 0x1000 + i, 3);
			CHECK(!mdl_feed(m, one, sizeof(one[0])));
		}
		CHECK(nholders(m) == MEMORY_OWNERS_MAX + 1);
		for (i = 0; memory_owner(m, i); i++) {
			live += memory_owner(m, i)->live_bytes;
			more |= memory_owner(m, i)->flags == MXBPF_MEM_OWNER_MORE && memory_owner(m, i)->allocs == 10;
		}
		CHECK(more && live == 3 * (MEMORY_OWNERS_MAX + 10));
		mdl_free(m);
	}
	test_stacks();
	UNIT_MAIN_END;
}
