// SPDX-License-Identifier: Apache-2.0
/*
 * Takes batches of an agent from a ring that this program plays, beside the batch that a thread is still filling: no
 * call counts twice, and none is lost.
 */
#include <bpf/libbpf.h>

static int consume(struct ring_buffer *ring);
#define ring_buffer__consume consume
#include "../../user/agent/take.c"
#undef ring_buffer__consume

#include "unit.h"

#define TID   77
#define CALLS 3 /* of each batch */

static struct mxbpf_agent_shared *shared;
static struct agts all = {.ring_bytes = AGT_RING_BYTES};
static struct agt agt;
static struct mxbpf_agent_batch batch;
static uint32_t next_seq, nbatches; /* batches with the numbers in between are in the ring */
static uint64_t taken;

static int consume(struct ring_buffer *ring)
{
	int n = 0, err;

	(void)ring;
	while (next_seq < nbatches) {
		batch.seq = next_seq++;
		err = agt_on_batch(&agt, &batch, sizeof(batch));
		if (err)
			return err;
		n++;
	}
	return n;
}

static void count(void *ctx, const struct mxbpf_agent_call *calls, unsigned n)
{
	(void)ctx;
	(void)calls;
	taken += n;
}

static void fill(struct mxbpf_agent_batch *b, uint64_t now)
{
	unsigned i;

	*b = (struct mxbpf_agent_batch){.slot_use = 1, .ncalls = CALLS, .what = MXBPF_AGENT_CALLS};
	for (i = 0; i < CALLS; i++)
		b->calls[i] = (struct mxbpf_agent_call){
			.start_ns = now - 1000, .dur_ns = 500, .self_ns = 400, .tid = TID, .end_tid = TID};
}

/* The ring has this many batches of a thread, which is filling the next one. */
static void begin(uint32_t n)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	static struct agent_bpf__bss bss;
	static struct agent_bpf skel = {.bss = &bss};
	const int fd = memfd_create("shared", 0);

	CHECK(fd >= 0 && !ftruncate(fd, sizeof(*shared)));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		exit(1);
	shared->magic = MXBPF_AGENT_MAGIC;
	shared->version = MXBPF_AGENT_VERSION;
	shared->slots[0].tid = TID;
	shared->slots[0].uses = 1;
	shared->slots[0].calls = (n + 1ull) * CALLS;
	fill(&shared->slots[0].batch, now);
	shared->slots[0].batch.seq = n;
	fill(&batch, now);
	memset(&agt, 0, sizeof(agt));
	agt.gate.fd = fd;
	agt.all = &all;
	agt.skel = &skel;
	agt.in = true;
	agt.ncpus = 1;
	agt.since_ns = now - 2000;
	agt.opened_ns = now - 1000000000;
	next_seq = 0;
	nbatches = n;
	taken = 0;
	agt_receive(&agt, count, NULL);
}

/* As a source takes calls: tails, too, or full batches only. */
static void take(bool tails)
{
	consume(NULL);
	if (tails)
		agt_tails(&agt);
}

static void end(void)
{
	munmap(shared, sizeof(*shared));
	close(agt.gate.fd);
}

int main(void)
{
	/* As many as the ring can hold. */
	static const uint32_t most = AGT_RING_BYTES / sizeof(struct mxbpf_agent_batch);
	static const uint32_t in_ring[] = {0,	1, BATCHES_MAX - 1, BATCHES_MAX, 2 * BATCHES_MAX, 2 * BATCHES_MAX + 1,
					   most};
	unsigned i;

	TEST("no call of a batch that is still being filled counts twice, however many batches are in the ring")
	{
		for (i = 0; i < sizeof(in_ring) / sizeof(in_ring[0]); i++) {
			begin(in_ring[i]);
			take(true);
			CHECK(taken == (in_ring[i] + 1ull) * CALLS);
			take(true);
			CHECK(taken == (in_ring[i] + 1ull) * CALLS && agt.received == taken && !gate_why(&agt.gate));
			end();
		}
	}
	TEST("a batch that is handed over while its copy is taken counts once")
	{
		begin(BATCHES_MAX + 2);
		take(true);
		nbatches++; /* the copied one */
		take(false);
		CHECK(taken == (BATCHES_MAX + 3ull) * CALLS);
		end();
	}
	UNIT_MAIN_END;
}
