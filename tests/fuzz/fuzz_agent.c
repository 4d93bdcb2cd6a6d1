// SPDX-License-Identifier: Apache-2.0
/* A hostile target hands over calls: rings the bell, shares memory, and changes it while it is read. See hostile.h. */
#include "hostile.h"

#include "../../user/source/agent.c"

/* The bell's ring: one batch. */
int ring_buffer__consume(struct ring_buffer *ring)
{
	(void)ring;
	apply_patch();
	return agt_on_batch(&agt, &bell, sizeof(bell));
}

void agts_take(struct agts *s)
{
	ring_buffer__consume(s->ring);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
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
	s = hub && calls ? src_add_agent(hub, &all, &(struct src_agent_opts){.calls = calls}) : NULL;
	if (!s || src_agent_join(s, &agt))
		abort();
	for (i = 0; i < 3; i++)
		take(s->ctx, i > 0);
	agent_flush(s);
	put_records(s->ctx, UINT64_MAX);
	deliver(s->ctx);
	src_loss(s, &loss);
	if (s->malformed)
		abort();
	src_hub_free(hub);
	calls_free(calls);
	hash_fini(&agt.tids);
	return 0;
}
