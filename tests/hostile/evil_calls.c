// SPDX-License-Identifier: Apache-2.0
/* Attacks by batches of calls, by their names, and by the state of threads. */
#define _GNU_SOURCE
#include "evil.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME_HEAD 32u /* bytes of a record of mxbpf before the text of a name */
#define HUGE	  9000000000000000000ull
#define CALL_NS	  40 /* the shortest call of an operator with its callbacks */

static struct mxbpf_agent_batch b;

/* ---- honest */

static void legal(void)
{
	unsigned i;

	for (i = 0; i < 10; i++) {
		evil_fill(&b, MXBPF_AGENT_BATCH);
		evil_hand_over(&b);
	}
}

/* As many calls as a thread can make. The agent stops when mxbpf does not record any more. */
static void flood(void)
{
	uint64_t began;

	while (__atomic_load_n(&evil_shared->since_ns, __ATOMIC_ACQUIRE)) {
		began = evil_now();
		evil_fill(&b, MXBPF_AGENT_BATCH);
		evil_hand_over(&b);
		while (evil_now() < began + CALL_NS * MXBPF_AGENT_BATCH)
			;
	}
}

static void flood_on(void)
{
	for (;;) {
		evil_fill(&b, MXBPF_AGENT_BATCH);
		evil_hand_over(&b);
	}
}

/* ---- names */

static void call_names(const uint32_t *names, unsigned n)
{
	unsigned i;

	evil_fill(&b, n);
	for (i = 0; i < n; i++)
		b.calls[i].name = names[i];
	evil_hand_over(&b);
}

static char *text_at(uint32_t at, int c, size_t len)
{
	char *text = evil_shared->texts + at;

	memset(text, c, len);
	text[len] = '\0';
	if (evil_shared->texts_len < at + len)
		evil_shared->texts_len = at + (uint32_t)len;
	return text;
}

static void long_name(size_t len)
{
	const uint32_t at = 200000;

	text_at(at, 'A', len);
	call_names(&at, 1);
}

/* One byte more than the longest name. */
static void name_256(void)
{
	long_name(MXBPF_AGENT_NAME_BYTES);
}

/* The size of the name's record, which has 16 bits, becomes 0, and then 64. */
static void name_wraps_to_0(void)
{
	long_name(65536 - NAME_HEAD);
}

static void name_wraps_to_64(void)
{
	long_name(65536 - NAME_HEAD + 64);
}

/* The bytes behind the wrapped size look like records: kind 1, size 0x118. A text has no zeros. */
static void name_is_records(void)
{
	static const uint8_t head[8] = {0x01, 0x01, 0x18, 0x01, 0x41, 0x41, 0x41, 0x41};
	const size_t len = 65536 - NAME_HEAD + 64;
	const uint32_t at = 200000;
	char *text = text_at(at, 'A', len);
	size_t i;

	for (i = 64 - NAME_HEAD; i + 8 < len; i += 8)
		memcpy(text + i, head, sizeof(head));
	call_names(&at, 1);
}

static void name_random(void)
{
	const size_t len = 65536 - NAME_HEAD + 64;
	uint32_t at;
	size_t i;

	for (at = 200000; at < 210000; at += 8) {
		text_at(at, 'A', len);
		for (i = 0; i < len; i++)
			evil_shared->texts[at + i] = (char)(1 + evil_random() % 255);
		call_names(&at, 1);
		usleep(1000);
	}
}

/* The record of the second name lies in a record that the first name forges. */
static void forge_with(const uint8_t first[4], size_t cut, const uint8_t *second, size_t at_second)
{
	const size_t len = 65536 + 64 - NAME_HEAD - cut;
	const uint32_t at[2] = {200000, 400000};
	char *text = text_at(at[0], 'A', len);

	memcpy(text + 64 - NAME_HEAD, first, 4);
	text[len - 1] = 1; /* kind of the forged record */
	text = text_at(at[1], 0xee, 4000);
	if (second)
		memcpy(text + at_second, second, 4);
	call_names(at, 2);
}

static void name_forges_span(void)
{
	static const uint8_t head[4] = {0x41, 0x41, 0xfe, 0xff};

	forge_with(head, 1, NULL, 0);
}

static void name_forges_two(void)
{
	static const uint8_t head[4] = {0x41, 0x41, 0xfd, 0xff}, next[4] = {0x41, 0x41, 0xff, 0xff};

	forge_with(head, 2, next, 2013);
}

static void name_unended(void)
{
	const uint32_t at = MXBPF_AGENT_TEXTS - 10;

	memset(evil_shared->texts + at, 'A', 10);
	evil_shared->slots[0].tid |= 0x01010101; /* no NUL follows, either */
	call_names(&at, 1);
}

static void name_beyond(void)
{
	const uint32_t at[] = {MXBPF_AGENT_TEXTS, MXBPF_AGENT_TEXTS + 1000, UINT32_MAX};

	call_names(at, 3);
}

/* Each offset is a name of its own, so there are 64 times as many as the agent can have. */
static void names_many(void)
{
	struct mxbpf_agent_shared *s = evil_shared;
	uint32_t at, i;

	for (i = 1; i < MXBPF_AGENT_TEXTS; i++)
		s->texts[i] = i % 250 ? (char)('a' + evil_random() % 26) : '\0';
	s->texts[MXBPF_AGENT_TEXTS - 1] = '\0';
	s->texts_len = MXBPF_AGENT_TEXTS - 1;
	for (at = 1; at + MXBPF_AGENT_BATCH < MXBPF_AGENT_TEXTS; at += MXBPF_AGENT_BATCH) {
		evil_fill(&b, MXBPF_AGENT_BATCH);
		for (i = 0; i < MXBPF_AGENT_BATCH; i++)
			b.calls[i].name = at + i;
		evil_hand_over(&b);
		usleep(100);
	}
}

static void *take_ends(void *text)
{
	volatile char *end = (char *)text + 100;

	for (;;)
		*end = *end ? '\0' : 'A';
	return NULL;
}

/* The end of the name comes and goes while mxbpf reads it. */
static void name_changes(void)
{
	pthread_t thread;
	uint32_t at = 300000;

	memset(evil_shared->texts + at, 'A', 700000);
	pthread_create(&thread, NULL, take_ends, evil_shared->texts + at);
	for (; at < 300100; at++) {
		call_names(&at, 1);
		usleep(2000);
	}
}

/* The agent takes texts as they are: these are legal. */
static void name_escapes(void)
{
	const uint32_t at[] = {evil_name("\033]0;evil\007\033[2J"), evil_name("\xff\xfe\xc0\xaf"),
			       evil_name("a\nattached: 1 probes\r"), evil_name("\"},{\"evil\": [\\"),
			       evil_name("</script>\xe2\x80\xae%s%n")};

	call_names(at, sizeof(at) / sizeof(at[0]));
}

/* ---- lists */

static void call_list(uint32_t place, unsigned kind)
{
	evil_fill(&b, 1);
	*(kind == MXBPF_AGENT_LIST_ARGS ? &b.calls[0].args : &b.calls[0].stack) = place;
	evil_hand_over(&b);
}

/* Words that begin like tensors and lists, or are addresses: of anything, of this process, of nothing. */
static uint64_t wild_word(void)
{
	switch (evil_random() % 5) {
	case 0:
		return MXBPF_AGENT_TENSOR_WORD(evil_random() & 0xffff, evil_random() & 0xff, evil_random() & 3);
	case 1:
		return MXBPF_WORD_LIST + evil_random() % 64;
	case 2:
		return (uint64_t)(uintptr_t)evil_shared + evil_random() % sizeof(*evil_shared);
	case 3:
		return evil_random() % 16;
	default:
		return evil_random() << 32 | evil_random();
	}
}

/* Lists whose sizes are allowed, and whose words mean nothing. */
static void lists_wild(void)
{
	const unsigned frame = sizeof(struct mxbpf_stack_frame) / sizeof(uint64_t);
	struct mxbpf_agent_shared *s = evil_shared;
	unsigned kind, n, i, at = 1, left;

	for (left = 1000; left; left--) {
		kind = left & 1 ? MXBPF_AGENT_LIST_ARGS : MXBPF_AGENT_LIST_STACK;
		n = left & 1 ? 1 + evil_random() % MXBPF_AGENT_LIST_WORDS
			     : 1 + frame * (evil_random() % (MXBPF_STACK_FRAMES_MAX + 1));
		if (at + n + 1 >= MXBPF_AGENT_WORDS)
			break;
		s->words[at] = MXBPF_AGENT_LIST(kind, n);
		for (i = 1; i <= n; i++)
			s->words[at + i] = wild_word();
		call_list(at, kind);
		at += n + 1;
	}
}

/* Each call has a list of its own, which are more than the agent can have. */
static void lists_many(void)
{
	struct mxbpf_agent_shared *s = evil_shared;
	uint32_t at, i;

	for (at = 1; at + 2 * MXBPF_AGENT_BATCH < MXBPF_AGENT_WORDS; at += 2 * MXBPF_AGENT_BATCH) {
		evil_fill(&b, MXBPF_AGENT_BATCH);
		for (i = 0; i < MXBPF_AGENT_BATCH; i++) {
			s->words[at + 2 * i] = MXBPF_AGENT_LIST(MXBPF_AGENT_LIST_ARGS, 1);
			s->words[at + 2 * i + 1] = at + i;
			b.calls[i].args = at + 2 * i;
		}
		evil_hand_over(&b);
		usleep(100);
	}
}

/* ---- fields of calls, in a batch that is handed over and in one that mxbpf takes itself */

static void forge_dur(struct mxbpf_agent_call *c)
{
	c->dur_ns = 1ull << 60;
}

static void forge_end(struct mxbpf_agent_call *c)
{
	c->dur_ns = -c->start_ns;
}

static void forge_scope(struct mxbpf_agent_call *c)
{
	c->scope = 255;
}

static void forge_flags(struct mxbpf_agent_call *c)
{
	c->flags = 255;
}

static void forge_self(struct mxbpf_agent_call *c)
{
	c->self_ns = c->dur_ns + 1;
}

static void forge_future(struct mxbpf_agent_call *c)
{
	c->start_ns = evil_now() + 1000000000000ull;
}

static void forge_start_0(struct mxbpf_agent_call *c)
{
	c->start_ns = 0;
}

static void forge_tid_0(struct mxbpf_agent_call *c)
{
	c->tid = c->end_tid = 0;
}

static void forge(void (*how)(struct mxbpf_agent_call *c))
{
	evil_fill(&b, 10);
	how(&b.calls[5]);
	evil_hand_over(&b);
}

static void leave(void (*how)(struct mxbpf_agent_call *c))
{
	struct mxbpf_agent_slot *t = evil_slot();

	evil_fill(&b, 10);
	how(&b.calls[5]);
	memcpy(t->batch.calls, b.calls, 10 * sizeof(b.calls[0]));
	t->calls += 10;
	__atomic_store_n(&t->batch.ncalls, 10, __ATOMIC_RELEASE);
}

#define FORGED(what)                                                                                                   \
	static void call_##what(void)                                                                                  \
	{                                                                                                              \
		forge(forge_##what);                                                                                   \
	}                                                                                                              \
	static void left_##what(void)                                                                                  \
	{                                                                                                              \
		leave(forge_##what);                                                                                   \
	}
FORGED(dur)
FORGED(end)
FORGED(scope)
FORGED(flags)
FORGED(self)
FORGED(future)
FORGED(start_0)
FORGED(tid_0)

static void threads_many(void)
{
	uint32_t tid = 1, i;

	for (;;) {
		evil_fill(&b, MXBPF_AGENT_BATCH);
		for (i = 0; i < MXBPF_AGENT_BATCH; i++) {
			b.calls[i].tid = tid++;
			b.calls[i].end_tid = tid;
		}
		evil_hand_over(&b);
	}
}

/* ---- batches */

static void batch_long(void)
{
	evil_fill(&b, 10);
	b.ncalls = MXBPF_AGENT_BATCH + 1;
	evil_ring(&b);
	b.ncalls = UINT32_MAX;
	evil_ring(&b);
}

static void batch_what(void)
{
	evil_fill(&b, 10);
	b.what = 7;
	evil_hand_over(&b);
}

static void batch_slot(void)
{
	evil_fill(&b, 10);
	b.slot_use = (uint64_t)MXBPF_AGENT_THREADS << 32 | 1;
	evil_ring(&b);
	b.slot_use = UINT64_MAX;
	evil_ring(&b);
}

static void batch_seq(void)
{
	static const uint32_t seqs[] = {1000000, 0, 0x80000000, UINT32_MAX, 5, 5, 4};
	unsigned i;

	for (i = 0; i < sizeof(seqs) / sizeof(seqs[0]); i++) {
		evil_fill(&b, 10);
		b.seq = seqs[i];
		evil_hand_over(&b);
	}
}

/* The kernel cannot read these. */
static void batch_nowhere(void)
{
	const long page = sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	evil_ring(NULL);
	evil_ring((void *)-4096l);
	evil_ring((void *)0xffff888000000000ul);
	if (at == MAP_FAILED)
		return;
	munmap(at + page, (size_t)page);
	evil_fill(&b, MXBPF_AGENT_BATCH);
	memcpy(at + page - 64, &b, 64); /* the head alone can be read */
	evil_ring((void *)(at + page - 64));
}

static void batches_random(void)
{
	uint32_t *words = (uint32_t *)&b;
	size_t i;

	for (;;) {
		for (i = 0; i < sizeof(b) / sizeof(*words); i++)
			words[i] = (uint32_t)evil_random();
		b.ncalls = evil_random() % (MXBPF_AGENT_BATCH + 8);
		if (evil_random() % 4)
			b.what = evil_random() % 2;
		if (evil_random() % 2)
			b.slot_use = (evil_random() % MXBPF_AGENT_THREADS) << 32 | 1;
		evil_ring(&b);
		usleep(100);
	}
}

/* ---- counters and open calls */

static void count_calls(void)
{
	evil_fill(&b, 1);
	evil_slot()->calls = HUGE;
}

static void count_deep(void)
{
	evil_fill(&b, 1);
	evil_slot()->too_deep = HUGE;
}

static void count_no_slot(void)
{
	evil_shared->no_slot = HUGE;
}

/* The sums over all slots fall. */
static void count_back(void)
{
	evil_fill(&b, 1);
	evil_slot()->calls = -1000000000ull;
	evil_slot()->too_deep = UINT64_MAX - 5;
	evil_shared->no_slot = UINT64_MAX - 7;
}

/* Leaves open calls. An honest one begins in the window and before now. */
static struct mxbpf_agent_slot *open_calls(unsigned n)
{
	struct mxbpf_agent_slot *t = evil_slot();
	unsigned i;

	evil_fill(&b, 1);
	for (i = 0; i < n; i++)
		t->open[i] = (struct mxbpf_agent_open){
			.call = 0x1000 + i, .start_ns = b.calls[0].start_ns, .name = b.calls[0].name};
	__atomic_store_n(&t->depth, n, __ATOMIC_RELEASE);
	return t;
}

static void open_deep(void)
{
	__atomic_store_n(&open_calls(MXBPF_AGENT_OPEN)->depth, 4000000000u, __ATOMIC_RELEASE);
}

static void open_future(void)
{
	open_calls(2)->open[1].start_ns = evil_now() + 1000000000000ull;
}

static void open_scope(void)
{
	open_calls(1)->open[0].scope = 255;
}

static void open_name(void)
{
	open_calls(1)->open[0].name = 0x7fffffff;
}

static void open_twin(void)
{
	struct mxbpf_agent_open *o = open_calls(1)->open;

	memset(&o->twin, 0xee, sizeof(o->twin));
	o->inner = MXBPF_AGENT_INNER_TWIN;
}

/* ---- the process ends in the middle */

/* No more calls than an honest agent could record on this CPU: a flood of calls is another attack. */
static void *ring_on(void *unused)
{
	(void)unused;
	for (;;) {
		evil_fill(&b, MXBPF_AGENT_BATCH);
		evil_hand_over(&b);
		usleep(10);
	}
	return NULL;
}

static void exits(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, ring_on, NULL);
	usleep(100000);
	_exit(0);
}

static void execs(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, ring_on, NULL);
	usleep(100000);
	execl("/bin/true", "true", (char *)NULL);
}

const struct attack evil_calls[] = {
	{.name = "none", .run = evil_wait},
	{.name = "legal", .run = legal},
	{.name = "flood", .run = flood},
	{.name = "flood-on", .run = flood_on},
	{.name = "name-256", .run = name_256},
	{.name = "name-wraps-to-0", .run = name_wraps_to_0},
	{.name = "name-wraps-to-64", .run = name_wraps_to_64},
	{.name = "name-is-records", .run = name_is_records},
	{.name = "name-random", .run = name_random},
	{.name = "name-forges-span", .run = name_forges_span},
	{.name = "name-forges-two", .run = name_forges_two},
	{.name = "name-unended", .run = name_unended},
	{.name = "name-beyond", .run = name_beyond},
	{.name = "names-many", .run = names_many},
	{.name = "lists-wild", .run = lists_wild},
	{.name = "lists-many", .run = lists_many},
	{.name = "name-changes", .run = name_changes},
	{.name = "name-escapes", .run = name_escapes},
	{.name = "call-dur", .run = call_dur},
	{.name = "left-dur", .run = left_dur},
	{.name = "call-end", .run = call_end},
	{.name = "left-end", .run = left_end},
	{.name = "call-scope", .run = call_scope},
	{.name = "left-scope", .run = left_scope},
	{.name = "call-flags", .run = call_flags},
	{.name = "left-flags", .run = left_flags},
	{.name = "call-self", .run = call_self},
	{.name = "left-self", .run = left_self},
	{.name = "call-future", .run = call_future},
	{.name = "left-future", .run = left_future},
	{.name = "call-start-0", .run = call_start_0},
	{.name = "left-start-0", .run = left_start_0},
	{.name = "call-tid-0", .run = call_tid_0},
	{.name = "left-tid-0", .run = left_tid_0},
	{.name = "threads-many", .run = threads_many},
	{.name = "batch-long", .run = batch_long},
	{.name = "batch-what", .run = batch_what},
	{.name = "batch-slot", .run = batch_slot},
	{.name = "batch-seq", .run = batch_seq},
	{.name = "batch-nowhere", .run = batch_nowhere},
	{.name = "batches-random", .run = batches_random},
	{.name = "count-calls", .run = count_calls},
	{.name = "count-deep", .run = count_deep},
	{.name = "count-no-slot", .run = count_no_slot},
	{.name = "count-back", .run = count_back},
	{.name = "open-deep", .run = open_deep},
	{.name = "open-future", .run = open_future},
	{.name = "open-scope", .run = open_scope},
	{.name = "open-name", .run = open_name},
	{.name = "open-twin", .run = open_twin},
	{.name = "exits", .run = exits},
	{.name = "execs", .run = execs},
	{.name = NULL},
};
