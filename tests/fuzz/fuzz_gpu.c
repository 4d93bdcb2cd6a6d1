// SPDX-License-Identifier: Apache-2.0
/* A hostile target hands over records of a GPU, with clocks, names and states of its own. See hostile.h. */
#include "hostile.h"

#include "../../user/source/gpu.c"

static int (*on_batch)(void *ctx, void *data, size_t bytes);

struct ring_buffer *ring_buffer__new(int fd, ring_buffer_sample_fn fn, void *ctx, const struct ring_buffer_opts *opts)
{
	(void)fd;
	(void)ctx;
	(void)opts;
	on_batch = fn;
	return (struct ring_buffer *)&agt;
}

void ring_buffer__free(struct ring_buffer *ring)
{
	(void)ring;
}

int ring_buffer__consume(struct ring_buffer *ring)
{
	(void)ring;
	return on_batch(&all, ring_bell(), sizeof(bell));
}

struct agt *agt_at(struct agts *s, unsigned number)
{
	(void)s;
	return number ? NULL : &agt;
}

pid_t agt_pid(const struct agt *a)
{
	return a->pid;
}

void agt_check_bell(struct agt *a)
{
	(void)a;
}

static void begin_bell(void)
{
	static const uint8_t kinds[CALLS] = {MXBPF_GPU_CLOCK, MXBPF_GPU_CALL, MXBPF_GPU_KERNEL, MXBPF_GPU_NODE,
					     MXBPF_GPU_CALL};
	unsigned i;

	bell.ncalls = CALLS;
	bell.our_tid = 7;
	bell.what = MXBPF_AGENT_GPU;
	for (i = 0; i < MXBPF_AGENT_GPU_BATCH; i++) /* a patch may change ncalls to any number */
		bell.gpu[i] = (struct mxbpf_gpu_rec){.start_ns = now - 9000 + i,
						     .end_ns = now - 8000 + i,
						     .name = i == 1 ? 20 : 1,
						     .correlation = 3,
						     .kind = kinds[i < CALLS ? i : 1]};
	bell.gpu[0].clock.before_high = bell.gpu[0].clock.after_high = (uint32_t)(now >> 32);
	bell.gpu[0].clock.before_low = bell.gpu[0].clock.after_low = (uint32_t)now;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct src_hub *hub = src_hub_new(on_delivered, NULL);
	struct mxbpf_gpu_account account;
	struct mxbpf_loss loss;
	struct gpu_source *g;
	struct err e = {0};
	struct src *s;
	unsigned i;

	begin_memory(data, size);
	begin_bell();
	s = hub ? src_add_gpu(hub, &all) : NULL;
	if (!s || agts_gpu_open(&all, &e) || src_gpu_join(s, &agt))
		abort();
	g = s->ctx;
	client_at(g, 0)->convert.since_ns = now - 1000000;
	for (i = 0; i < 4; i++)
		source_gpu_take(g, i == 3);
	src_gpu_launches(s, 5);
	src_gpu_stop(s, 0);
	if (!src_gpu_account(s, &agt, &account))
		abort();
	src_gpu_leave(s, &agt);
	src_loss(s, &loss);
	if (s->malformed)
		abort();
	src_hub_free(hub);
	agt_gpu_close(&agt);
	return 0;
}
