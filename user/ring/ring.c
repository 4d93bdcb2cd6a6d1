// SPDX-License-Identifier: Apache-2.0
#include "ring/ring.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "records/kinds.h"

#define CHUNK_BYTES (256u << 10)
#define QUEUE_MAX   64 /* chunks waiting for the second thread; beyond this, records stay in the ring */
#define SPARES_MAX  4  /* chunks kept for reuse; more are freed after a burst */
#define POLL_MS	    50
/*
 * Allowed time from the end of a record to its place in the ring. A thread can lose its CPU in a program that has read
 * the time, or that fills a record; then the records behind it cannot be read either.
 */
#define RING_ENTRY_NS 100000000ull

struct chunk {
	struct chunk *next;
	size_t used;
	char data[CHUNK_BYTES];
};

struct ring {
	struct ring_buffer *rb;
	ring_chunk_fn fn;
	void *ctx;
	pthread_t consumer, worker;
	bool stopping;		      /* atomic: the consumer must drain the ring and end */
	uint64_t received, malformed; /* atomic: written by the consumer */
	uint64_t until_ns;	      /* atomic: see ring_until_ns() */
	struct chunk *cur;	      /* used by the consumer only */
	pthread_mutex_t lock;	      /* protects all members below */
	pthread_cond_t changed;
	struct chunk *head, **tail;
	uint64_t nqueued, npassed;   /* chunks that were queued so far, and those of them that were passed on */
	uint64_t read_ns, read_upto; /* when a reading began, and the chunks that were queued after it */
	struct chunk *spare;
	unsigned nspare;
	bool ended; /* no chunk will be queued any more */
};

static struct chunk *chunk_get(struct ring *r)
{
	struct chunk *c;

	pthread_mutex_lock(&r->lock);
	while (r->nqueued - r->npassed >= QUEUE_MAX)
		pthread_cond_wait(&r->changed, &r->lock);
	c = r->spare;
	if (c) {
		r->spare = c->next;
		r->nspare--;
	}
	pthread_mutex_unlock(&r->lock);
	if (!c)
		c = malloc(sizeof(*c));
	if (c) {
		c->next = NULL;
		c->used = 0;
	}
	return c;
}

static void chunk_queue(struct ring *r)
{
	if (!r->cur || !r->cur->used)
		return;
	pthread_mutex_lock(&r->lock);
	*r->tail = r->cur;
	r->tail = &r->cur->next;
	r->nqueued++;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	r->cur = NULL;
}

/* Never returns an error: libbpf would then leave the record in the ring, and the ring would stop. */
static int on_record(void *ctx, void *data, size_t size)
{
	struct ring *r = ctx;

	if (!kind_sent(data, size)) {
		__atomic_fetch_add(&r->malformed, 1, __ATOMIC_RELAXED);
		return 0;
	}
	if (r->cur && r->cur->used + size > CHUNK_BYTES)
		chunk_queue(r);
	if (!r->cur)
		r->cur = chunk_get(r);
	if (!r->cur) /* without memory the record is not received, and the final loss counts it as dropped */
		return 0;
	memcpy(r->cur->data + r->cur->used, data, size);
	r->cur->used += size;
	__atomic_fetch_add(&r->received, 1, __ATOMIC_RELAXED);
	return 0;
}

/* With the lock. */
static void see_passed_on(struct ring *r)
{
	if (r->npassed >= r->read_upto && r->read_ns > RING_ENTRY_NS)
		__atomic_store_n(&r->until_ns, r->read_ns - RING_ENTRY_NS, __ATOMIC_RELEASE);
}

static void *consume(void *arg)
{
	struct ring *r = arg;
	uint64_t now;

	while (!__atomic_load_n(&r->stopping, __ATOMIC_ACQUIRE)) {
		ring_buffer__poll(r->rb, POLL_MS);
		now = clock_ns(CLOCK_MONOTONIC);
		ring_buffer__consume(r->rb);
		chunk_queue(r);
		pthread_mutex_lock(&r->lock);
		if (r->npassed >= r->read_upto) { /* otherwise the reading before is still waited for */
			r->read_ns = now;
			r->read_upto = r->nqueued;
		}
		see_passed_on(r);
		pthread_mutex_unlock(&r->lock);
	}
	while (ring_buffer__consume(r->rb) > 0)
		;
	chunk_queue(r);
	pthread_mutex_lock(&r->lock);
	r->ended = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void *work(void *arg)
{
	struct ring *r = arg;
	struct chunk *c;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		while (!r->head && !r->ended)
			pthread_cond_wait(&r->changed, &r->lock);
		c = r->head;
		if (!c)
			break;
		r->head = c->next;
		if (!r->head)
			r->tail = &r->head;
		pthread_mutex_unlock(&r->lock);
		r->fn(r->ctx, c->data, c->used);
		pthread_mutex_lock(&r->lock);
		r->npassed++;
		see_passed_on(r);
		if (r->nspare < SPARES_MAX) {
			c->next = r->spare;
			r->spare = c;
			r->nspare++;
		} else {
			free(c);
		}
		pthread_cond_broadcast(&r->changed);
	}
	__atomic_store_n(&r->until_ns, UINT64_MAX, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

int ring_start(int ring_fd, ring_chunk_fn fn, void *ctx, struct ring **out, struct err *e)
{
	struct ring *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	r->fn = fn;
	r->ctx = ctx;
	r->tail = &r->head;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	r->rb = ring_buffer__new(ring_fd, on_record, r, NULL);
	if (!r->rb) {
		err = err_set(e, ERR_RUNTIME, -errno, "cannot map the ring buffer: %s", strerror(errno));
		goto fail;
	}
	err = thread_start(&r->consumer, consume, r);
	if (!err) {
		err = thread_start(&r->worker, work, r);
		if (!err) {
			*out = r;
			return 0;
		}
		__atomic_store_n(&r->stopping, true, __ATOMIC_RELEASE);
		pthread_join(r->consumer, NULL);
	}
	err_set(e, ERR_RUNTIME, err, "cannot start a thread: %s", strerror(-err));
fail:
	ring_free(r);
	return err;
}

void ring_stop(struct ring *r)
{
	if (__atomic_exchange_n(&r->stopping, true, __ATOMIC_ACQ_REL))
		return;
	pthread_join(r->consumer, NULL);
	pthread_join(r->worker, NULL);
}

static void free_chunks(struct chunk *c)
{
	struct chunk *next;

	for (; c; c = next) {
		next = c->next;
		free(c);
	}
}

void ring_free(struct ring *r)
{
	if (!r)
		return;
	ring_buffer__free(r->rb);
	free(r->cur);
	free_chunks(r->head);
	free_chunks(r->spare);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

uint64_t ring_until_ns(const struct ring *r)
{
	return __atomic_load_n(&r->until_ns, __ATOMIC_ACQUIRE);
}

uint64_t ring_received(const struct ring *r)
{
	return __atomic_load_n(&r->received, __ATOMIC_RELAXED);
}

uint64_t ring_malformed(const struct ring *r)
{
	return __atomic_load_n(&r->malformed, __ATOMIC_RELAXED);
}

int ring_read_name(int names_fd, uint64_t id, char *text, unsigned *tag)
{
	struct mxbpf_name_key key = {.id = id};
	struct mxbpf_name_part part;
	size_t len = 0;

	*tag = 0;
	for (key.part = 0; key.part < MXBPF_NAME_PARTS_MAX; key.part++) {
		if (bpf_map_lookup_elem(names_fd, &key, &part))
			return key.part ? (int)len : -ENOENT;
		if (part.len >= MXBPF_NAME_PART_BYTES)
			return -EBADMSG;
		memcpy(text + len, part.text, part.len);
		len += part.len;
		*tag = part.tag;
		if (!part.more)
			break;
	}
	return (int)len;
}

int ring_read_args(int args_fd, uint64_t id, uint64_t words[MXBPF_ARG_WORDS_MAX])
{
	struct mxbpf_name_key key = {.id = id};
	struct mxbpf_name_part part = {.more = 1};
	size_t n = 0;

	for (key.part = 0; part.more && key.part < MXBPF_ARG_WORDS_MAX / MXBPF_ARG_WORDS_PART; key.part++) {
		if (bpf_map_lookup_elem(args_fd, &key, &part))
			return -ENOENT;
		if (part.len > MXBPF_NAME_PART_BYTES)
			return -EBADMSG;
		memcpy(&words[n], part.text, part.len);
		n += part.len / 8;
	}
	return (int)n;
}

int ring_read_tensor(int tensors_fd, uint64_t word, struct mxbpf_tensor *out)
{
	if (bpf_map_lookup_elem(tensors_fd, &word, out))
		return -ENOENT;
	return out->ndim <= MXBPF_TENSOR_DIMS ? 0 : -EBADMSG;
}
