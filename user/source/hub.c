// SPDX-License-Identifier: Apache-2.0
#include "source/source.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "records/kinds.h"

#define HELD_STEP    (1u << 16) /* bytes of a batch of held records, if they are not delivered in larger ones */
#define PASSED_BYTES (1u << 20) /* of records that are passed on at once: folding them takes several times as much */

/* Records that wait, in the order in which they were delivered. */
struct held {
	struct held *next;
	size_t len, size;
	uint64_t first_ns, last_ns; /* the earliest end, and the latest */
	char recs[];
};

struct src_hub {
	src_fn fn;
	void *ctx;
	struct src *sources[SRC_MAX];
	unsigned n;
	unsigned nopened;
	bool holds; /* true if a source delivers late, so that records must wait for it */
	bool flushed;
	pthread_mutex_t lock; /* protects n, nopened and the members below, if `holds` */
	size_t held_bytes;
	uint64_t newest_ns;   /* largest end of a delivered record */
	uint64_t released_ns; /* everything that ended before was passed on */
	size_t ndue;	      /* bytes of records that are passed on next */
	char due[PASSED_BYTES + UINT16_MAX];
};

struct src_hub *src_hub_new(src_fn fn, void *ctx)
{
	struct src_hub *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->fn = fn;
	h->ctx = ctx;
	pthread_mutex_init(&h->lock, NULL);
	return h;
}

struct src *src_add(struct src_hub *h, const struct src_ops *ops, const char *name, void *ctx)
{
	struct src *s = h->n < SRC_MAX ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return NULL;
	*s = (struct src){.ops = ops, .name = name, .ctx = ctx, .hub = h, .number = h->n};
	pthread_mutex_lock(&h->lock);
	h->sources[h->n] = s;
	__atomic_store_n(&h->n, h->n + 1, __ATOMIC_RELEASE);
	h->holds |= ops->late;
	pthread_mutex_unlock(&h->lock);
	return s;
}

static void source_free(struct src *s)
{
	struct held *b;

	if (s->ops->close)
		s->ops->close(s);
	while ((b = s->held)) {
		s->held = b->next;
		mem_free(b);
	}
	free(s);
}

static int open_next(struct src_hub *h, struct err *e)
{
	const int err = h->sources[h->nopened]->ops->open(h->sources[h->nopened], e);

	if (err)
		return err;
	pthread_mutex_lock(&h->lock);
	h->nopened++;
	pthread_mutex_unlock(&h->lock);
	return 0;
}

int src_open(struct src_hub *h, struct err *e)
{
	int err = 0;

	while (!err && h->nopened < h->n)
		err = open_next(h, e);
	if (err)
		src_flush(h);
	return err;
}

int src_open_more(struct src_hub *h, struct err *e)
{
	struct src *s;
	int err = 0;

	while (!err && h->nopened < h->n)
		err = open_next(h, e);
	while (err && h->nopened < h->n) {
		pthread_mutex_lock(&h->lock);
		s = h->sources[h->n - 1];
		h->sources[h->n - 1] = NULL;
		__atomic_store_n(&h->n, h->n - 1, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&h->lock);
		source_free(s);
	}
	return err;
}

/*
 * Returns the time up to which records may be passed on: every source has delivered everything before, or took too
 * long.
 */
static uint64_t watermark(const struct src_hub *h)
{
	uint64_t least = UINT64_MAX, of;
	unsigned i;

	if (h->held_bytes > SRC_HELD_BYTES)
		return UINT64_MAX;
	if (h->nopened < h->n)
		return 0;
	for (i = 0; i < h->n; i++) {
		if (!h->sources[i]->ops->watermark)
			continue;
		of = h->sources[i]->ops->watermark(h->sources[i]);
		least = of < least ? of : least;
	}
	return h->newest_ns > SRC_WAIT_NS && least < h->newest_ns - SRC_WAIT_NS ? h->newest_ns - SRC_WAIT_NS : least;
}

static void pass_on(struct src_hub *h, const struct src *s)
{
	if (h->ndue)
		h->fn(h->ctx, s->number, h->due, h->ndue);
	h->ndue = 0;
}

/* Takes the records out of a batch that ended before until_ns. The others stay in order. */
static void release_batch(struct src_hub *h, const struct src *s, struct held *b, uint64_t until_ns)
{
	const struct mxbpf_rec *r;
	size_t pos = 0, kept = 0, size;
	uint64_t end_ns;
	bool is_due;

	b->first_ns = UINT64_MAX;
	while ((r = kind_next(b->recs, b->len, &pos))) {
		end_ns = kind_end_ns(r);
		is_due = end_ns < until_ns || until_ns == UINT64_MAX;
		if (!is_due && end_ns < b->first_ns)
			b->first_ns = end_ns;
		size = r->size; /* read it now, because moving the record may overwrite it */
		memmove(is_due ? h->due + h->ndue : b->recs + kept, r, size);
		*(is_due ? &h->ndue : &kept) += size;
		if (h->ndue >= PASSED_BYTES)
			pass_on(h, s);
	}
	h->held_bytes -= b->len - kept;
	b->len = kept;
}

/* Most batches are due as a whole or not at all, so few records are looked at again and again. */
static void release_source(struct src_hub *h, struct src *s, uint64_t until_ns)
{
	struct held **at = &s->held, *b;

	s->newest = NULL;
	while ((b = *at)) {
		if (b->last_ns < until_ns && b->len >= PASSED_BYTES && b->len <= sizeof(h->due)) { /* without a copy */
			pass_on(h, s);
			h->fn(h->ctx, s->number, b->recs, b->len);
			h->held_bytes -= b->len;
			b->len = 0;
		} else if (b->first_ns <= until_ns) {
			release_batch(h, s, b, until_ns);
		}
		if (b->len) {
			s->newest = b;
			at = &b->next;
			continue;
		}
		*at = b->next;
		mem_free(b);
	}
	pass_on(h, s);
}

static void release(struct src_hub *h)
{
	uint64_t until_ns = watermark(h);
	unsigned i;

	if (until_ns <= h->released_ns)
		return;
	for (i = 0; i < h->n; i++)
		release_source(h, h->sources[i], until_ns);
	/* If the memory limit was reached, records of the same time may still come. */
	h->released_ns = until_ns == UINT64_MAX ? h->newest_ns : until_ns;
}

/* Returns a batch with room for so many bytes, or NULL without memory. */
static struct held *batch_for(struct src *s, size_t bytes)
{
	const size_t size = bytes > HELD_STEP ? bytes : HELD_STEP;
	struct held *b = s->newest;

	if (b && b->size - b->len >= bytes)
		return b;
	b = mem_alloc(sizeof(*b) + size);
	if (!b)
		return NULL;
	*b = (struct held){.size = size, .first_ns = UINT64_MAX};
	*(s->newest ? &s->newest->next : &s->held) = b;
	s->newest = b;
	return b;
}

/* Returns 0 or -ENOMEM. */
static int hub_hold(struct src_hub *h, struct src *s, const void *recs, size_t bytes)
{
	struct held *b = batch_for(s, bytes);
	const struct mxbpf_rec *r;
	size_t pos = 0;

	if (!b)
		return -ENOMEM;
	memcpy(b->recs + b->len, recs, bytes);
	b->len += bytes;
	h->held_bytes += bytes;
	while ((r = kind_next(recs, bytes, &pos))) {
		uint64_t end_ns = kind_end_ns(r);

		if (end_ns && end_ns < h->released_ns &&
		    s->ops->watermark) /* end 0 means that the record has no time */
			__atomic_fetch_add(&s->late, 1, __ATOMIC_RELAXED);
		h->newest_ns = end_ns > h->newest_ns ? end_ns : h->newest_ns;
		b->first_ns = end_ns < b->first_ns ? end_ns : b->first_ns;
		b->last_ns = end_ns > b->last_ns ? end_ns : b->last_ns;
	}
	return 0;
}

/* Returns the bytes before the first record that must not be seen. What follows it has no known beginning. */
static size_t whole(struct src *s, const void *recs, size_t bytes)
{
	size_t pos = 0;
	bool bad = false;

	if (s->ops->checked)
		return bytes;
	while (kind_check_next(recs, bytes, &pos, &bad))
		;
	if (bad)
		__atomic_fetch_add(&s->malformed, 1, __ATOMIC_RELAXED);
	return pos;
}

void src_deliver(struct src *s, void *recs, size_t bytes)
{
	struct src_hub *h = s->hub;

	bytes = whole(s, recs, bytes);
	if (!h->holds) {
		h->fn(h->ctx, s->number, recs, bytes);
		return;
	}
	pthread_mutex_lock(&h->lock);
	if (bytes && hub_hold(h, s, recs, bytes)) /* without memory pass the records on at once */
		h->fn(h->ctx, s->number, recs, bytes);
	release(h);
	pthread_mutex_unlock(&h->lock);
}

void src_deliver_names(struct src *s, void *recs, size_t bytes)
{
	struct src_hub *h = s->hub;

	bytes = whole(s, recs, bytes);
	pthread_mutex_lock(&h->lock);
	h->fn(h->ctx, s->number, recs, bytes);
	pthread_mutex_unlock(&h->lock);
}

void src_flush(struct src_hub *h)
{
	unsigned i;

	if (h->flushed)
		return;
	h->flushed = true;
	for (i = 0; i < h->nopened; i++)
		if (h->sources[i]->ops->flush)
			h->sources[i]->ops->flush(h->sources[i]);
	pthread_mutex_lock(&h->lock);
	for (i = 0; i < h->n; i++)
		release_source(h, h->sources[i], UINT64_MAX);
	pthread_mutex_unlock(&h->lock);
}

void src_hub_free(struct src_hub *h)
{
	unsigned i;

	if (!h)
		return;
	for (i = 0; i < SRC_MAX && h->sources[i]; i++)
		source_free(h->sources[i]);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

unsigned src_count(const struct src_hub *h)
{
	return __atomic_load_n(&h->n, __ATOMIC_ACQUIRE);
}

const struct src *src_at(const struct src_hub *h, unsigned i)
{
	return h->sources[i];
}

void src_loss(const struct src *s, struct mxbpf_loss *loss)
{
	s->ops->loss(s, loss);
}

void src_loss_all(const struct src_hub *h, struct mxbpf_loss *loss)
{
	struct mxbpf_loss one;
	unsigned i;

	*loss = (struct mxbpf_loss){0};
	for (i = 0; i < h->n; i++) {
		src_loss(h->sources[i], &one);
		mxbpf_loss_add(loss, &one);
	}
}

uint64_t src_late(const struct src *s)
{
	return __atomic_load_n(&s->late, __ATOMIC_RELAXED);
}
