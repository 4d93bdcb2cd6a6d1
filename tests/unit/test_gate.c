// SPDX-License-Identifier: Apache-2.0
/* The gate copies and checks everything that a target hands over. Each test forges one thing. */
#include <pthread.h>

#include "base/clock.h"
#include "mxbpf_table.h"
#include "records/gate.h"
#include "source/source.h"
#include "unit.h"

static struct mxbpf_agent_shared *shared;
static struct mxbpf_agent_batch batch;
static int fd;
static uint64_t now;

#define TID 77

static struct mxbpf_agent_call a_call(void)
{
	return (struct mxbpf_agent_call){
		.start_ns = now - 1000, .dur_ns = 500, .self_ns = 400, .name = 1, .tid = TID, .end_tid = TID};
}

/* Honest shared memory: one thread with one call that ended and one that is open. */
static struct gate begin(void)
{
	struct mxbpf_agent_slot *t = &shared->slots[0];

	now = clock_ns(CLOCK_MONOTONIC);
	CHECK(!ftruncate(fd, 0) && !ftruncate(fd, sizeof(*shared)));
	shared->magic = MXBPF_AGENT_MAGIC;
	shared->version = MXBPF_AGENT_VERSION;
	strcpy(shared->texts + 1, "aten::mul");
	strcpy(shared->gpu_names.texts + 1, "k");
	*t = (struct mxbpf_agent_slot){.tid = TID, .uses = 1, .depth = 1, .calls = 1};
	t->batch.slot_use = 1;
	t->batch.ncalls = 1;
	t->batch.calls[0] = a_call();
	t->open[0] = (struct mxbpf_agent_open){.call = 8, .start_ns = now - 1000, .name = 1};
	batch = (struct mxbpf_agent_batch){.slot_use = 1, .ncalls = 1, .what = MXBPF_AGENT_CALLS};
	batch.calls[0] = a_call();
	return (struct gate){.fd = fd};
}

static void test_honest(void)
{
	struct gate g = begin();
	struct mxbpf_gpu_shared gpu;
	struct mxbpf_agent_batch tail;
	struct mxbpf_agent_open open;
	struct gate_head head;
	struct gate_slot slot;
	char text[MXBPF_GPU_NAME_BYTES];

	TEST("what an honest agent writes passes")
	{
		CHECK(!gate_head(&g, &head) && head.magic == MXBPF_AGENT_MAGIC && head.version == MXBPF_AGENT_VERSION);
		CHECK(!gate_slot(&g, 0, &slot) && slot.tid == TID && slot.uses == 1 && slot.depth == 1 &&
		      slot.calls == 1);
		CHECK(gate_tail(&g, 0, &tail) == 1 && tail.calls[0].dur_ns == 500);
		CHECK(gate_open(&g, 0, 0, &open) == 1 && open.call == 8);
		CHECK(!gate_batch(&g, &batch, sizeof(batch)) && !gate_gpu(&g, &gpu));
		CHECK(!gate_name(&g, 1, text) && !strcmp(text, "aten::mul"));
		CHECK(!gate_name(&g, 0, text) && !*text);
		CHECK(!gate_gpu_name(&g, 1, text) && !strcmp(text, "k"));
		CHECK(!gate_why(&g));
	}
	TEST("a broken gate stays shut, and keeps the first reason")
	{
		g = begin();
		CHECK(gate_break(&g, "first %d", 1) == -EPROTO && gate_break(&g, "second") == -EPROTO);
		CHECK(gate_head(&g, &head) == -EPROTO && gate_batch(&g, &batch, sizeof(batch)) == -EPROTO);
		CHECK(gate_name(&g, 1, text) == -EPROTO && !*text && !strcmp(gate_why(&g), "first 1"));
	}
	TEST("memory that was made shorter is a reason, not a SIGBUS")
	{
		g = begin();
		CHECK(!ftruncate(fd, 4096));
		CHECK(gate_slot(&g, 5, &slot) == -EPROTO && strstr(gate_why(&g), "shorter"));
	}
}

/* One forged field. */
struct forged {
	const char *what;
	size_t off, bytes;
	uint64_t value;
};
#define FORGED(type, field, value)                                                                                     \
	{                                                                                                              \
#field " " #value, offsetof(struct type, field), sizeof(((struct type *)0)->field), value              \
	}
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void forge(void *at, const struct forged *f)
{
	memcpy((char *)at + f->off, &f->value, f->bytes);
	printf("# %s\n", f->what);
}

static void test_calls(void)
{
	static const struct forged calls[] = {
		FORGED(mxbpf_agent_call, start_ns, UINT64_MAX / 2), /* in the future */
		FORGED(mxbpf_agent_call, start_ns, 0),
		FORGED(mxbpf_agent_call, dur_ns, 1ull << 60),
		FORGED(mxbpf_agent_call, dur_ns, UINT64_MAX), /* the end wraps */
		FORGED(mxbpf_agent_call, self_ns, 501),
		FORGED(mxbpf_agent_call, scope, MXBPF_AGENT_MEMORY), /* it takes no time */
		FORGED(mxbpf_agent_call, scope, MXBPF_AGENT_RANGE),  /* it has not ended */
		FORGED(mxbpf_agent_call, scope, MXBPF_AGENT_RANGE + 1),
		FORGED(mxbpf_agent_call, flags, MXBPF_AGENT_CALL_FREED), /* only of memory */
		FORGED(mxbpf_agent_call, flags, 8),
		FORGED(mxbpf_agent_call, tid, 0),
		FORGED(mxbpf_agent_call, tid, TID + 1),
		FORGED(mxbpf_agent_call, end_tid, GATE_TID_MAX + 1),
		FORGED(mxbpf_agent_call, name, MXBPF_AGENT_TEXTS),
		FORGED(mxbpf_agent_call, args, MXBPF_AGENT_WORDS),
		FORGED(mxbpf_agent_call, stack, MXBPF_AGENT_WORDS),
	};
	static const struct forged batches[] = {
		FORGED(mxbpf_agent_batch, ncalls, MXBPF_AGENT_BATCH + 1),
		FORGED(mxbpf_agent_batch, ncalls, UINT32_MAX),
		FORGED(mxbpf_agent_batch, what, MXBPF_AGENT_GPU),
		FORGED(mxbpf_agent_batch, what, 7),
		FORGED(mxbpf_agent_batch, slot_use, (uint64_t)MXBPF_AGENT_THREADS << 32),
	};
	struct mxbpf_agent_batch tail;
	struct gate g;
	size_t i;

	TEST("a forged field of a call breaks the gate, in a batch and in one that is being filled")
	{
		for (i = 0; i < COUNT(calls); i++) {
			g = begin();
			forge(&batch.calls[0], &calls[i]);
			CHECK(gate_batch(&g, &batch, sizeof(batch)) == -EPROTO && gate_why(&g));
			g = begin();
			forge(&shared->slots[0].batch.calls[0], &calls[i]);
			CHECK(gate_tail(&g, 0, &tail) == -EPROTO && gate_why(&g));
		}
	}
	TEST("a forged number of calls, kind or slot of a batch breaks the gate")
	{
		for (i = 0; i < COUNT(batches); i++) {
			g = begin();
			forge(&batch, &batches[i]);
			CHECK(gate_batch(&g, &batch, sizeof(batch)) == -EPROTO && gate_why(&g));
		}
		g = begin();
		CHECK(gate_batch(&g, &batch, sizeof(batch) - 1) == -EPROTO);
		g = begin();
		shared->slots[0].batch.ncalls = MXBPF_AGENT_BATCH + 1;
		CHECK(gate_tail(&g, 0, &tail) == -EPROTO);
		g = begin();
		shared->slots[0].batch.slot_use = 1ull << 32 | 1;
		CHECK(gate_tail(&g, 0, &tail) == -EPROTO);
	}
	TEST("a call that another thread ended may name two threads")
	{
		g = begin();
		batch.calls[0].tid = TID + 1;
		batch.calls[0].flags = MXBPF_AGENT_CALL_ASYNC;
		CHECK(!gate_batch(&g, &batch, sizeof(batch)));
	}
}

static struct mxbpf_agent_call freed_memory(void)
{
	return (struct mxbpf_agent_call){.start_ns = clock_ns(CLOCK_MONOTONIC) - 1,
					 .dur_ns = 1 << 21,
					 .seq = 4096,
					 .name = MXBPF_DEVICE(2, 1),
					 .tid = TID,
					 .end_tid = TID,
					 .scope = MXBPF_AGENT_MEMORY,
					 .flags = MXBPF_AGENT_CALL_FREED};
}

static void test_memory(void)
{
	static const struct forged fields[] = {
		FORGED(mxbpf_agent_call, start_ns, UINT64_MAX / 2),
		FORGED(mxbpf_agent_call, start_ns, 0),
		FORGED(mxbpf_agent_call, dur_ns, 1ull << 60),
		FORGED(mxbpf_agent_call, self_ns, 1ull << 60),
		FORGED(mxbpf_agent_call, seq, 0),
		FORGED(mxbpf_agent_call, origin, 1ull << 60),
		FORGED(mxbpf_agent_call, flags, 0), /* no bytes are allocated */
		FORGED(mxbpf_agent_call, flags, MXBPF_AGENT_CALL_FREED | MXBPF_AGENT_CALL_ASYNC),
		FORGED(mxbpf_agent_call, name, MXBPF_DEVICE(0, 1)),
		FORGED(mxbpf_agent_call, name, MXBPF_DEVICE(129, 1)),
		FORGED(mxbpf_agent_call, name, MXBPF_DEVICE(2, 128)),
		FORGED(mxbpf_agent_call, tid, TID + 1),
		FORGED(mxbpf_agent_call, tid, 0),
	};
	struct gate g;
	size_t i;

	TEST("a record of memory passes, and a forged field of it breaks the gate")
	{
		g = begin();
		batch.calls[0] = freed_memory();
		CHECK(!gate_batch(&g, &batch, sizeof(batch)));
		for (i = 0; i < COUNT(fields); i++) {
			g = begin();
			batch.calls[0] = freed_memory();
			forge(&batch.calls[0], &fields[i]);
			CHECK(gate_batch(&g, &batch, sizeof(batch)) == -EPROTO && gate_why(&g));
		}
	}
}

static void test_opens(void)
{
	static const struct forged opens[] = {
		FORGED(mxbpf_agent_open, start_ns, UINT64_MAX / 2),
		FORGED(mxbpf_agent_open, start_ns, 0),
		FORGED(mxbpf_agent_open, scope, 255),
		FORGED(mxbpf_agent_open, inner, 3),
		FORGED(mxbpf_agent_open, name, UINT32_MAX),
		FORGED(mxbpf_agent_open, args, MXBPF_AGENT_WORDS),
		FORGED(mxbpf_agent_open, stack, MXBPF_AGENT_WORDS),
	};
	static const struct forged slots[] = {
		FORGED(mxbpf_agent_slot, depth, MXBPF_AGENT_OPEN + 1),
		FORGED(mxbpf_agent_slot, depth, UINT32_MAX),
		FORGED(mxbpf_agent_slot, tid, UINT32_MAX),
	};
	struct mxbpf_agent_open o;
	struct gate_slot slot;
	struct gate g;
	size_t i;

	TEST("a forged field of an open call or of a slot breaks the gate")
	{
		for (i = 0; i < COUNT(opens); i++) {
			g = begin();
			forge(&shared->slots[0].open[0], &opens[i]);
			CHECK(gate_open(&g, 0, 0, &o) == -EPROTO && gate_why(&g));
		}
		for (i = 0; i < COUNT(slots); i++) {
			g = begin();
			forge(&shared->slots[0], &slots[i]);
			CHECK(gate_slot(&g, 0, &slot) == -EPROTO && gate_why(&g));
		}
	}
	TEST("a call inside an open one that is just being written is left out, and the open one is kept")
	{
		g = begin();
		shared->slots[0].open[0].inner = MXBPF_AGENT_INNER_TWIN;
		shared->slots[0].open[0].twin.dur_ns = UINT64_MAX;
		CHECK(gate_open(&g, 0, 0, &o) == 1 && o.inner == MXBPF_AGENT_INNER_NONE && !gate_why(&g));
	}
	TEST("a call that has ended is none")
	{
		g = begin();
		shared->slots[0].open[0].call = 0;
		CHECK(!gate_open(&g, 0, 0, &o) && !gate_why(&g));
	}
}

static void test_names(void)
{
	char text[MXBPF_GPU_NAME_BYTES];
	struct gate g = begin();
	unsigned i;

	TEST("a name that is too long, without an end or outside of the texts breaks the gate")
	{
		memset(shared->texts + 100, 'A', 65536);
		CHECK(gate_name(&g, 100, text) == -EPROTO && !*text && strstr(gate_why(&g), "255 bytes"));
		g = begin();
		memset(shared->texts + MXBPF_AGENT_TEXTS - 10, 'A', 10);
		CHECK(gate_name(&g, MXBPF_AGENT_TEXTS - 10, text) == -EPROTO);
		g = begin();
		CHECK(gate_name(&g, UINT32_MAX, text) == -EPROTO);
		g = begin();
		memset(shared->gpu_names.texts + 100, 'A', 1u << 20);
		CHECK(gate_gpu_name(&g, 100, text) == -EPROTO && strstr(gate_why(&g), "4095 bytes"));
		g = begin();
		CHECK(gate_gpu_name(&g, MXBPF_GPU_TEXTS, text) == -EPROTO);
	}
	TEST("more names than the agent has places for break the gate")
	{
		g = begin();
		for (i = 0; i < MXBPF_AGENT_NAMES; i++)
			CHECK(!gate_name(&g, 1, text));
		CHECK(gate_name(&g, 1, text) == -EPROTO);
	}
}

static void put_list(uint32_t place, uint32_t kind, uint32_t n)
{
	shared->words[place] = MXBPF_AGENT_LIST(kind, n);
	memset(&shared->words[place + 1], 7, sizeof(uint64_t) * (n <= MXBPF_AGENT_LIST_WORDS ? n : 0));
}

static void test_lists(void)
{
	static const struct {
		uint32_t place, kind, n;
	} forged[] = {
		{0, MXBPF_AGENT_LIST_ARGS, 1},
		{1, MXBPF_AGENT_LIST_ARGS, 0},
		{1, MXBPF_AGENT_LIST_ARGS, MXBPF_AGENT_LIST_WORDS + 1},
		{1, MXBPF_AGENT_LIST_STACK, 5}, /* the test asks for arguments */
		{1, 0, 5},
		{MXBPF_AGENT_WORDS - 4, MXBPF_AGENT_LIST_ARGS, 4}, /* the last word is outside */
	};
	static uint64_t list[MXBPF_AGENT_LIST_WORDS];
	struct gate g = begin();
	unsigned i;
	uint32_t n;

	TEST("lists of the agent pass, with their words")
	{
		put_list(1, MXBPF_AGENT_LIST_ARGS, MXBPF_AGENT_LIST_WORDS);
		CHECK(!gate_list(&g, 1, MXBPF_AGENT_LIST_ARGS, list, &n) && n == MXBPF_AGENT_LIST_WORDS);
		CHECK(list[0] == list[n - 1] && list[0] == 0x0707070707070707ull);
		put_list(MXBPF_AGENT_WORDS - 5, MXBPF_AGENT_LIST_STACK, 1);
		CHECK(!gate_list(&g, MXBPF_AGENT_WORDS - 5, MXBPF_AGENT_LIST_STACK, list, &n) && n == 1);
		put_list(1, MXBPF_AGENT_LIST_STACK, 1 + 4 * MXBPF_STACK_FRAMES_MAX);
		CHECK(!gate_list(&g, 1, MXBPF_AGENT_LIST_STACK, list, &n) && n == 1 + 4 * MXBPF_STACK_FRAMES_MAX);
	}
	TEST("a list outside of the words, of another kind or of an impossible size breaks the gate")
	{
		for (i = 0; i < COUNT(forged); i++) {
			g = begin();
			put_list(forged[i].place, forged[i].kind, forged[i].n);
			CHECK(gate_list(&g, forged[i].place, MXBPF_AGENT_LIST_ARGS, list, &n) == -EPROTO && !n);
		}
		for (i = 2; i < 5; i++) { /* a part of a frame */
			g = begin();
			put_list(1, MXBPF_AGENT_LIST_STACK, i);
			CHECK(gate_list(&g, 1, MXBPF_AGENT_LIST_STACK, list, &n) == -EPROTO);
		}
		g = begin();
		put_list(1, MXBPF_AGENT_LIST_STACK, 5 + 4 * MXBPF_STACK_FRAMES_MAX);
		CHECK(gate_list(&g, 1, MXBPF_AGENT_LIST_STACK, list, &n) == -EPROTO);
		g = begin();
		CHECK(gate_list(&g, UINT32_MAX, MXBPF_AGENT_LIST_ARGS, list, &n) == -EPROTO);
	}
	TEST("more lists than the agent has places for break the gate")
	{
		g = begin();
		put_list(1, MXBPF_AGENT_LIST_ARGS, 1);
		for (i = 0; i < MXBPF_AGENT_LISTS; i++)
			CHECK(!gate_list(&g, 1, MXBPF_AGENT_LIST_ARGS, list, &n));
		CHECK(gate_list(&g, 1, MXBPF_AGENT_LIST_ARGS, list, &n) == -EPROTO);
	}
}

static void test_gpu(void)
{
	static const struct forged states[] = {
		FORGED(mxbpf_gpu_shared, state, UINT32_MAX),
		FORGED(mxbpf_gpu_shared, failed, 100),
		FORGED(mxbpf_gpu_shared, ndevices, UINT32_MAX),
		FORGED(mxbpf_gpu_shared, ndevices, MXBPF_GPU_DEVICES + 1),
	};
	static struct mxbpf_gpu_shared gpu;
	struct gate g;
	size_t i;

	TEST("a forged state of the client of CUPTI breaks the gate, and its texts end")
	{
		for (i = 0; i < COUNT(states); i++) {
			g = begin();
			forge(&shared->gpu, &states[i]);
			CHECK(gate_gpu(&g, &gpu) == -EPROTO && gate_why(&g));
		}
		g = begin();
		memset(shared->gpu.path, 'A', sizeof(gpu.path));
		memset(shared->gpu.devices[0].name, 'A', sizeof(gpu.devices[0].name));
		CHECK(!gate_gpu(&g, &gpu) && strlen(gpu.path) == sizeof(gpu.path) - 1);
		CHECK(strlen(gpu.devices[0].name) == sizeof(gpu.devices[0].name) - 1);
	}
	TEST("a forged record of a GPU breaks the gate")
	{
		g = begin();
		batch.what = MXBPF_AGENT_GPU;
		batch.gpu[0] = (struct mxbpf_gpu_rec){.kind = MXBPF_GPU_KERNEL, .name = 1};
		CHECK(!gate_gpu_batch(&g, &batch, sizeof(batch)));
		batch.gpu[0].name = MXBPF_GPU_TEXTS;
		CHECK(gate_gpu_batch(&g, &batch, sizeof(batch)) == -EPROTO);
		g = begin();
		batch.gpu[0] = (struct mxbpf_gpu_rec){.kind = 255};
		CHECK(gate_gpu_batch(&g, &batch, sizeof(batch)) == -EPROTO);
		g = begin();
		batch.what = MXBPF_AGENT_GPU;
		batch.ncalls = MXBPF_AGENT_GPU_BATCH + 1;
		CHECK(gate_gpu_batch(&g, &batch, sizeof(batch)) == -EPROTO);
	}
}

static void test_config(void)
{
	struct mxbpf_agent_config config = {.shared = 4096};
	struct gate g = begin();
	uint64_t bytes;

	TEST("a forged address or error number of the configuration breaks the gate")
	{
		CHECK(!gate_config(&g, &config, &bytes) && bytes >= sizeof(*shared));
		config.shared = UINT64_MAX - 4095;
		CHECK(gate_config(&g, &config, &bytes) == -EPROTO);
		g = begin();
		config = (struct mxbpf_agent_config){.shared = 4096 + 8};
		CHECK(gate_config(&g, &config, &bytes) == -EPROTO);
		g = begin();
		config = (struct mxbpf_agent_config){.error = INT64_MIN};
		CHECK(gate_config(&g, &config, &bytes) == -EPROTO);
	}
}

/* ---- before the hub */

static size_t delivered;

static void on_delivered(void *ctx, unsigned number, void *recs, size_t bytes)
{
	(void)ctx;
	(void)number;
	(void)recs;
	delivered += bytes;
}

/* A name of 64 KiB whose 16-bit size has wrapped to 64, and a whole one before it. */
static void test_hub(void)
{
	static const struct src_ops ops = {.open = NULL};
	struct src_hub *h = src_hub_new(on_delivered, NULL);
	struct src *s = src_add(h, &ops, "forged", NULL);
	static struct {
		struct mxbpf_name whole;
		char text[8];
		struct mxbpf_name wrapped;
		char rest[65536];
	} recs;

	recs.whole = (struct mxbpf_name){
		.h = {.kind = MXBPF_NAME, .size = sizeof(recs.whole) + 8}, .id = 3, .len = 8, .kind = MXBPF_NAME_SPAN};
	recs.wrapped = (struct mxbpf_name){
		.h = {.kind = MXBPF_NAME, .size = 64}, .id = 5, .len = 65536 + 64 - 32, .kind = MXBPF_NAME_SPAN};
	TEST("the hub passes on whole records alone, also names that wait for nothing, and counts")
	{
		src_deliver_names(s, &recs, sizeof(recs));
		CHECK(delivered == sizeof(recs.whole) + 8 && s->malformed == 1);
		src_deliver(s, &recs, sizeof(recs));
		CHECK(delivered == 2 * (sizeof(recs.whole) + 8) && s->malformed == 2);
	}
	src_hub_free(h);
}

/* ---- a target that writes while mxbpf reads */

static bool ended;

static void *scribble(void *ctx)
{
	unsigned short random[3] = {1, 2, 3};
	uint32_t *words = (uint32_t *)shared;

	(void)ctx;
	while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
		words[(size_t)nrand48(random) % (offsetof(struct mxbpf_agent_shared, slots[1]) / 4)] =
			(uint32_t)mrand48();
		words[offsetof(struct mxbpf_agent_shared, slots) / 4 + (size_t)nrand48(random) % 64] =
			(uint32_t)nrand48(random) % 300;
	}
	return NULL;
}

/* Returns true if a call is one that gate_batch() lets pass. */
static bool is_sound(const struct mxbpf_agent_call *c)
{
	const uint64_t at = clock_ns(CLOCK_MONOTONIC);

	return c->start_ns <= at && c->dur_ns <= at - c->start_ns && c->self_ns <= c->dur_ns && c->tid &&
	       c->scope <= MXBPF_AGENT_RANGE;
}

static void test_race(void)
{
	struct mxbpf_agent_batch tail;
	struct mxbpf_agent_open o;
	char text[MXBPF_AGENT_NAME_BYTES];
	struct gate_slot slot;
	pthread_t thread;
	struct gate g = begin();
	unsigned round, i;
	int n;

	TEST("what passes is sound, even if the target changes it while it is read")
	{
		CHECK(!pthread_create(&thread, NULL, scribble, NULL));
		for (round = 0; round < 20000; round++) {
			g = (struct gate){.fd = fd};
			n = gate_tail(&g, 0, &tail);
			for (i = 0; n > 0 && i < (unsigned)n; i++)
				CHECK(is_sound(&tail.calls[i]));
			if (!gate_slot(&g, 0, &slot))
				CHECK(slot.depth <= MXBPF_AGENT_OPEN);
			if (gate_open(&g, 0, 0, &o) == 1)
				CHECK(o.start_ns <= clock_ns(CLOCK_MONOTONIC) &&
				      (o.inner != MXBPF_AGENT_INNER_TWIN || is_sound(&o.twin)));
			if (!gate_name(&g, 1 + round % 1000, text))
				CHECK(strlen(text) < sizeof(text));
		}
		__atomic_store_n(&ended, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
	}
}

int main(void)
{
	fd = memfd_create("gate", MFD_CLOEXEC);
	CHECK(fd >= 0 && !ftruncate(fd, sizeof(*shared)));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return 1;
	test_honest();
	test_calls();
	test_memory();
	test_opens();
	test_names();
	test_lists();
	test_gpu();
	test_config();
	test_hub();
	test_race();
	return unit_end();
}
