/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A target that attacks mxbpf, for fuzzers: its shared memory, and changes of it. The input is a list of patches, of
 * which each puts a value at a place of the shared memory or of the batch that rings the bell. Every read of the
 * shared memory applies the next patch before it, so memory changes while it is read, and an input always does the
 * same. Everything starts as an honest agent writes it, because random bytes would end at the first check.
 */
#ifndef FUZZ_HOSTILE_H
#define FUZZ_HOSTILE_H

#include <bpf/libbpf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/clock.h"
#include "records/kinds.h"
#include "source/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t off);

#define SLOTS	  2
#define CALLS	  5
#define PATCH_MAX 64
#define ARGS_AT	  8 /* places of lists among the words */
#define STACK_AT  16

/* The pieces of memory that patches reach. The last three have numbers of their own. */
enum piece {
	HEAD,
	TEXTS,
	SLOT0,
	OPEN0,
	SLOT1,
	GPU,
	GPU_TEXTS,
	BATCH,
	LENGTH,
	PIECES,
	WORDS = PIECES,
	SPILLED,
	SPILL,
	ALL
};
#define EXTRA 240 /* the first of these numbers */

static struct mxbpf_agent_shared *shared;
static struct mxbpf_agent_batch bell;
static uint64_t shared_bytes;
static const uint8_t *patches, *patches_end;
static uint64_t now;
static struct agt agt;
static struct agts all;
static struct agent_bpf skel;
static __typeof__(*skel.bss) bss;

struct place {
	void *at;
	size_t bytes;
};

static struct place place_of(unsigned piece)
{
	switch (piece) {
	case HEAD:
		return (struct place){shared, offsetof(struct mxbpf_agent_shared, names)};
	case TEXTS:
		return (struct place){shared->texts, 600};
	case SLOT0:
	case SLOT1:
		return (struct place){&shared->slots[piece == SLOT1], offsetof(struct mxbpf_agent_slot, batch) +
									      MXBPF_AGENT_BATCH_HEAD +
									      CALLS * sizeof(struct mxbpf_agent_call)};
	case OPEN0:
		return (struct place){shared->slots[0].open, 2 * sizeof(struct mxbpf_agent_open)};
	case GPU:
		return (struct place){&shared->gpu, sizeof(shared->gpu)};
	case GPU_TEXTS:
		return (struct place){shared->gpu_names.texts, 5000};
	case BATCH:
		return (struct place){&bell, MXBPF_AGENT_BATCH_HEAD + CALLS * sizeof(bell.gpu[0])};
	case WORDS:
		return (struct place){shared->words, 600};
	case SPILLED:
		return (struct place){shared->is_spilled, 2 * sizeof(shared->is_spilled[0])};
	case SPILL:
		return (struct place){shared->spill, MXBPF_AGENT_BATCH_HEAD + CALLS * sizeof(struct mxbpf_agent_call)};
	default:
		return (struct place){&shared_bytes, sizeof(shared_bytes)};
	}
}

/* A patch has 12 bytes: the piece, the number of bytes, the offset, the value. */
static void apply_patch(void)
{
	uint64_t value;
	struct place to;
	uint16_t off;
	size_t bytes;

	if (patches_end - patches < 12)
		return;
	to = place_of(patches[0] < EXTRA ? patches[0] % PIECES : PIECES + patches[0] % (ALL - PIECES));
	bytes = 1u << patches[1] % 4;
	memcpy(&off, patches + 2, sizeof(off));
	memcpy(&value, patches + 4, sizeof(value));
	if (patches[1] & 0x80) /* near now, which a fuzzer cannot guess */
		value += now;
	if (patches[1] & 0x40) /* a run of bytes, as of a text without an end */
		memset((char *)to.at + off % to.bytes, (int)value, to.bytes - off % to.bytes);
	else
		memcpy((char *)to.at + off % (to.bytes - bytes + 1), &value, bytes);
	patches += 12;
}

ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t off)
{
	const uint64_t have = shared_bytes < sizeof(*shared) ? shared_bytes : sizeof(*shared);

	(void)fd;
	apply_patch();
	if ((uint64_t)off >= have)
		return 0;
	bytes = bytes < have - (uint64_t)off ? bytes : have - (uint64_t)off;
	memcpy(to, (const char *)shared + off, bytes);
	return (ssize_t)bytes;
}

/* The batch as it is in the ring, which the target cannot change. */
static struct mxbpf_agent_batch *ring_bell(void)
{
	static struct mxbpf_agent_batch rung;

	apply_patch();
	rung = bell;
	return &rung;
}

/* A call, one with arguments and a stack, memory that is allocated and freed, and an annotation that begins. */
static struct mxbpf_agent_call honest_call(unsigned i)
{
	struct mxbpf_agent_call c = {.start_ns = now - 10000 + 1000 * i, .tid = 7, .end_tid = 7};

	if (i < 2) {
		c.dur_ns = 500;
		c.self_ns = 400;
		c.name = 1 + 10 * i;
		c.args = i ? ARGS_AT : 0;
		c.stack = i ? STACK_AT : 0;
		return c;
	}
	if (i == 4) {
		c.scope = MXBPF_AGENT_RANGE;
		c.name = 1;
		return c;
	}
	c.scope = MXBPF_AGENT_MEMORY;
	c.seq = 0x1000;
	c.origin = i == 2 ? 64 : 0;
	c.flags = i == 2 ? 0 : MXBPF_AGENT_CALL_FREED;
	c.name = 1 << 16;
	return c;
}

static void begin_lists(void)
{
	shared->words[ARGS_AT] = (uint64_t)MXBPF_AGENT_LIST_ARGS << 32 | 3;
	shared->words[STACK_AT] =
		(uint64_t)MXBPF_AGENT_LIST_STACK << 32 | (1 + sizeof(struct mxbpf_stack_frame) / sizeof(uint64_t));
}

static void begin_slot(struct mxbpf_agent_slot *t, unsigned i)
{
	unsigned k;

	t->tid = 7 + i;
	t->uses = 1;
	t->depth = 2;
	t->calls = CALLS * 2;
	t->batch.slot_use = (uint64_t)i << 32 | 1;
	t->batch.seq = 1;
	t->batch.ncalls = CALLS;
	for (k = 0; k < MXBPF_AGENT_BATCH; k++)
		t->batch.calls[k] = honest_call(k % CALLS);
	for (k = 0; k < 2; k++)
		t->open[k] = (struct mxbpf_agent_open){.call = 8 + k,
						       .start_ns = now - 9000,
						       .name = 1,
						       .inner = k ? MXBPF_AGENT_INNER_TWIN : MXBPF_AGENT_INNER_NONE,
						       .twin = honest_call(1)};
}

static void begin_memory(const uint8_t *data, size_t size)
{
	unsigned piece;

	if (!shared) {
		shared = calloc(1, sizeof(*shared));
		skel.bss = &bss;
	}
	if (!shared)
		abort();
	now = clock_ns(CLOCK_MONOTONIC);
	for (piece = 0; piece < ALL; piece++)
		memset(place_of(piece).at, 0, place_of(piece).bytes);
	shared_bytes = sizeof(*shared);
	shared->magic = MXBPF_AGENT_MAGIC;
	shared->version = MXBPF_AGENT_VERSION;
	strcpy(shared->texts + 1, "aten::mul");
	strcpy(shared->texts + 11, "aten::add");
	strcpy(shared->gpu_names.texts + 1, "_Z4convPfS_i");
	strcpy(shared->gpu_names.texts + 20, "cudaLaunchKernel");
	shared->gpu.state = MXBPF_GPU_ON;
	shared->gpu.ndevices = 1;
	strcpy(shared->gpu.devices[0].name, "GPU");
	begin_slot(&shared->slots[0], 0);
	begin_slot(&shared->slots[1], 1);
	begin_lists();
	patches = data;
	patches_end = data + (size < 12 * PATCH_MAX ? size : 12 * PATCH_MAX);
	memset(&agt, 0, offsetof(struct agt, taken)); /* the rest is too large to be cleared each time */
	memset(agt.taken, 0, SLOTS * sizeof(agt.taken[0]));
	memset(&agt.received, 0, offsetof(struct agt, tail) - offsetof(struct agt, received));
	agt.pid = getpid();
	all.skel = agt.skel = &skel;
	agt.all = &all;
	agt.in = true;
	agt.since_ns = 1;
	agt.opened_ns = now - 1000000000;
	agt.ncpus = 2;
	agt.o = (struct agt_opts){.calls = true, .gpu = true};
	agt.shared.fd = -1;
	bss.impossible[0] = bss.lost_calls = bss.lost_gpu[0] = 0;
}

/* Stands for the session: it gets the records of a source and checks them. */
static void on_delivered(void *ctx, unsigned number, void *recs, size_t bytes)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;

	(void)ctx;
	(void)number;
	if (kind_check(recs, bytes))
		abort();
	while ((r = kind_next(recs, bytes, &pos))) {
		const struct mxbpf_name *n = (const void *)r;

		if (r->kind == MXBPF_NAME && n->len > 4096)
			abort();
		if (r->kind != MXBPF_NAME && kind_end_ns(r) > clock_ns(CLOCK_MONOTONIC) + 2000000000ull)
			abort();
	}
}

/* ---- what the code under test calls, and belongs to other rooms */

uint64_t plan_hash(const char *name)
{
	return hash_text(HASH_SEED, name, strlen(name)) | 1;
}

void threads_read(struct threads *t)
{
	(void)t;
}

void threads_learn_ours(struct threads *t, uint32_t ours, uint32_t told)
{
	(void)t;
	(void)ours;
	(void)told;
}

uint32_t threads_ours(struct threads *t, uint32_t its)
{
	return t->other ? its + 1 : its;
}

void shared_write(const struct shared *s, uint64_t off, const void *from, size_t bytes)
{
	(void)s;
	(void)off;
	(void)from;
	(void)bytes;
}

void shared_wake(const struct shared *s)
{
	(void)s;
}

void agt_activate(struct agt *a, bool on)
{
	(void)a;
	(void)on;
}

void agt_detach(struct agt *a)
{
	(void)a;
}

#endif
