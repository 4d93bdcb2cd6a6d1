// SPDX-License-Identifier: Apache-2.0
/* What all agents of a session share: the programs at their bells, and the ring. */
#include "agent/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/backend.h"
#include "base/clock.h"
#include "base/thread.h"

#define DETACHERS 32 /* threads that detach; each of them mostly waits for the kernel to remove a probe */

static char is_closing; /* its address keeps the number of an agent that agt_close_later() closes */
#define CLOSING ((struct agt *)&is_closing)

struct agt *agt_at(struct agts *s, unsigned number)
{
	struct agt *a = number < MXBPF_AGENT_PROCESSES ? __atomic_load_n(&s->at[number], __ATOMIC_ACQUIRE) : NULL;

	return a == CLOSING ? NULL : a;
}

static int on_batch(void *ctx, void *data, size_t bytes)
{
	const struct mxbpf_agent_batch *b = data;
	struct agt *a = bytes >= sizeof(*b) ? agt_at(ctx, b->process) : NULL;

	return a ? agt_on_batch(a, data, bytes) : 0;
}

int agts_open(uint32_t ring_bytes, bool gpu, struct agts **out, struct err *e)
{
	struct agts *s = *out = calloc(1, sizeof(*s));

	if (!s)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->births, NULL);
	pthread_cond_init(&s->closed, NULL);
	s->opened_ns = clock_ns(CLOCK_MONOTONIC);
	s->ring_bytes = ring_bytes ? ring_bytes : AGT_RING_BYTES;
	s->gpu = gpu;
	return 0;
}

int agts_load(struct agts *s, struct err *e)
{
	s->skel = agent_bpf__open();
	if (!s->skel)
		return backend_load_failed(-errno, e);
	backend_namespace(&s->skel->rodata->cfg_pidns_dev, &s->skel->rodata->cfg_pidns_ino);
	bpf_map__set_max_entries(s->skel->maps.batches, s->ring_bytes);
	bpf_map__set_max_entries(s->skel->maps.gpu_batches, s->gpu ? AGT_GPU_RING_BYTES : 4096);
	if (agent_bpf__load(s->skel))
		return backend_load_failed(-errno, e);
	s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.batches), on_batch, s, NULL);
	if (!s->ring)
		return err_set(e, ERR_RUNTIME, -errno, "cannot read the agent's ring buffer: %s", strerror(errno));
	return s->gpu ? agts_gpu_open(s, e) : 0;
}

void agts_close(struct agts *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	while (s->closing)
		pthread_cond_wait(&s->closed, &s->lock);
	pthread_mutex_unlock(&s->lock);
	ring_buffer__free(s->ring);
	ring_buffer__free(s->gpu_ring);
	agent_bpf__destroy(s->skel);
	pthread_mutex_destroy(&s->births);
	pthread_cond_destroy(&s->closed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int agts_enter(struct agts *s, struct agt *a)
{
	unsigned i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < MXBPF_AGENT_PROCESSES && s->at[i]; i++)
		;
	if (i < MXBPF_AGENT_PROCESSES) {
		s->skel->bss->impossible[i] = s->skel->bss->cleared_ns[i] = s->skel->bss->lost_gpu[i] = 0;
		a->number = i;
		__atomic_store_n(&s->at[i], a, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&s->lock);
	return i < MXBPF_AGENT_PROCESSES ? 0 : -E2BIG;
}

void agts_leave(struct agt *a)
{
	if (a->number < MXBPF_AGENT_PROCESSES)
		__atomic_store_n(&a->all->at[a->number], NULL, __ATOMIC_RELEASE);
}

/* ---- reading */

bool agts_take(struct agts *s)
{
	return ring_buffer__consume(s->ring) == -EAGAIN;
}

void agts_drain(struct agts *s)
{
	while (ring_buffer__consume(s->ring) == -EAGAIN)
		;
}

uint64_t agts_lost(const struct agts *s)
{
	return __atomic_load_n(&s->skel->bss->lost_calls, __ATOMIC_RELAXED);
}

/* ---- detaching */

struct detacher {
	struct agts *all;
	unsigned *next; /* atomic: number of the next agent to detach */
	pthread_t thread;
	bool started;
};

static void *detach_some(void *ctx)
{
	const struct detacher *d = ctx;
	struct agt *a;
	unsigned i;

	while ((i = __atomic_fetch_add(d->next, 1, __ATOMIC_RELAXED)) < MXBPF_AGENT_PROCESSES) {
		a = agt_at(d->all, i);
		if (a)
			agt_detach(a);
	}
	return NULL;
}

void agts_detach(struct agts *s)
{
	struct detacher d[DETACHERS];
	unsigned next = 0, agents = 0, i, n;

	for (i = 0; i < MXBPF_AGENT_PROCESSES; i++)
		agents += !!agt_at(s, i);
	for (n = 0; n < DETACHERS && n + 1 < agents; n++) {
		d[n] = (struct detacher){.all = s, .next = &next};
		d[n].started = !thread_start(&d[n].thread, detach_some, &d[n]);
	}
	detach_some(&(struct detacher){.all = s, .next = &next});
	while (n--)
		if (d[n].started)
			pthread_join(d[n].thread, NULL);
}

struct closing {
	struct agt *agt;
	void *owned;
};

static void *close_one(void *ctx)
{
	struct closing *c = ctx;
	struct agts *s = c->agt->all;

	agt_close(c->agt);
	free(c->owned);
	free(c);
	pthread_mutex_lock(&s->lock);
	s->closing--;
	pthread_cond_signal(&s->closed);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

void agt_close_later(struct agt *a, void *owned)
{
	struct closing *c = malloc(sizeof(*c));
	struct agts *s = a->all;
	pthread_t thread;

	if (!c) {
		agt_close(a);
		free(owned);
		return;
	}
	*c = (struct closing){a, owned};
	__atomic_store_n(&s->at[a->number], CLOSING, __ATOMIC_RELEASE);
	pthread_mutex_lock(&s->lock);
	s->closing++;
	pthread_mutex_unlock(&s->lock);
	if (thread_start(&thread, close_one, c))
		close_one(c);
	else
		pthread_detach(thread);
}
