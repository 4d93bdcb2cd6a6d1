// SPDX-License-Identifier: Apache-2.0
/*
 * A hostile target hands over calls: rings the bell, shares memory, and changes it while it is read. See hostile.h. A
 * byte behind the patches selects what the session asks for, and how it ends.
 */
#include "hostile.h"

#include "../../user/source/agent.c"

/* The bell's ring: one batch. */
int ring_buffer__consume(struct ring_buffer *ring)
{
	(void)ring;
	return agt_on_batch(&agt, ring_bell(), sizeof(bell));
}

bool agts_take(struct agts *s)
{
	ring_buffer__consume(s->ring);
	return false;
}

void agts_drain(struct agts *s)
{
	ring_buffer__consume(s->ring);
}

void agts_detach(struct agts *s)
{
	(void)s;
}

uint64_t agts_lost(const struct agts *s)
{
	return s->skel->bss->lost_calls;
}

pid_t agt_pid(const struct agt *a)
{
	return a->pid;
}

void agt_ended(struct agt *a)
{
	(void)a;
}

void agt_look_born(struct agt *a)
{
	(void)a;
}

void agt_gpu_tell(struct agt *a)
{
	(void)a;
}

/* Bits of the last byte. */
enum { LISTS = 1, OWNERS = 2, STACKS = 4, NO_CALLS = 8, OTHER_IDS = 16, LEAVES = 32, STOPS = 64, BORN = 128 };

static uint64_t on_list(void *ctx, uint32_t tgid, unsigned kind, const uint64_t *list, uint32_t n)
{
	uint64_t sum = kind;
	uint32_t i;

	(void)ctx;
	(void)tgid;
	if (!n || n > MXBPF_AGENT_LIST_WORDS)
		abort();
	for (i = 0; i < n; i++)
		sum += list[i];
	return sum;
}

static void end_session(struct src *s, unsigned how)
{
	if (how & STOPS) {
		src_agent_start(s);
		src_agent_stop(s);
		src_agent_settle(s);
	}
	if (how & LEAVES) {
		src_agent_leave(s, &agt);
		return;
	}
	agent_flush(s);
	order_all(s->ctx);
	agt_opens(&agt, on_open, proc_at(s->ctx, 0)); /* as a flush does whose threads have run */
	order_all(s->ctx);
	agent_order_rest(s->ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const unsigned how = size % 12 == 1 ? data[size - 1] : 0;
	struct src_hub *hub = src_hub_new(on_delivered, NULL);
	struct calls *calls = calls_new((const uint64_t[MXBPF_LENDERS_MAX]){0});
	struct mxbpf_loss loss;
	struct src *s;
	unsigned i;

	begin_memory(data, size);
	bell.slot_use = 1;
	bell.ncalls = CALLS;
	bell.our_tid = 7;
	bell.what = MXBPF_AGENT_CALLS;
	for (i = 0; i < MXBPF_AGENT_BATCH; i++) /* a patch may change ncalls to any number */
		bell.calls[i] = honest_call(i % CALLS);
	agt.threads.other = how & OTHER_IDS;
	agt.born = how & BORN;
	agt.o.children = how & BORN;
	s = hub && calls ? src_add_agent(hub, &all,
					 &(struct src_agent_opts){.calls = how & NO_CALLS ? NULL : calls,
								  .list_id = how & LISTS ? on_list : NULL,
								  .owners = how & OWNERS,
								  .stacks = how & STACKS})
			 : NULL;
	if (!s || src_agent_join(s, &agt))
		abort();
	for (i = 0; i < 3; i++)
		agent_take(s->ctx, i > 0);
	end_session(s, how);
	src_loss(s, &loss);
	src_agent_counts(s);
	if (s->malformed)
		abort();
	src_hub_free(hub);
	calls_free(calls);
	hash_fini(&agt.tids);
	return 0;
}
