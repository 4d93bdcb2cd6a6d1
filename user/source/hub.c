// SPDX-License-Identifier: Apache-2.0
#include "source/source.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "records/kinds.h"

#define HELD_STEP    (8u << 20) /* bytes by which the memory of held records grows */
#define PASSED_BYTES (1u << 20) /* of records that are passed on at once */

struct src_hub {
	src_fn fn;
	void *ctx;
	struct src *sources[SRC_MAX];
	unsigned n;
	unsigned nopened;
	bool holds; /* true if a source has a watermark, so that records must wait for it */
	bool flushed;
	pthread_mutex_t lock; /* protects n, nopened and the members below, if `holds` */
	size_t held_bytes;
	uint64_t newest_ns;   /* largest end of a delivered record */
	uint64_t released_ns; /* everything that ended before was passed on */
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
	h->holds |= ops->watermark != NULL;
	pthread_mutex_unlock(&h->lock);
	return s;
}

static void source_free(struct src *s)
{
	if (s->ops->close)
		s->ops->close(s);
	mem_free(s->held.data);
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
	uint64_t least = UINT64_MAX, of, in_time = h->newest_ns > SRC_IN_TIME_NS ? h->newest_ns - SRC_IN_TIME_NS : 0;
	unsigned i;

	if (h->held_bytes > SRC_HELD_BYTES)
		return UINT64_MAX;
	if (h->nopened < h->n)
		return 0;
	for (i = 0; i < h->n; i++) {
		if (h->sources[i]->ops->any_time)
			continue;
		of = h->sources[i]->ops->watermark ? h->sources[i]->ops->watermark(h->sources[i]) : in_time;
		least = of < least ? of : least;
	}
	return h->newest_ns > SRC_WAIT_NS && least < h->newest_ns - SRC_WAIT_NS ? h->newest_ns - SRC_WAIT_NS : least;
}

/* Passes on records, a part at once, because whoever gets them needs several times as much memory. */
static void pass_on(struct src_hub *h, const struct src *s, char *recs, size_t bytes)
{
	size_t pos = 0, from = 0;

	while (kind_next(recs, bytes, &pos)) {
		if (pos - from < PASSED_BYTES && pos < bytes)
			continue;
		h->fn(h->ctx, s->number, recs + from, pos - from);
		from = pos;
	}
}

static void release_all(struct src_hub *h, struct src *s)
{
	h->held_bytes -= s->held.len;
	pass_on(h, s, s->held.data, s->held.len);
	s->held.len = 0;
}

/* Passes on the records that ended before until_ns, and keeps the others in order. */
static void release_source(struct src_hub *h, struct src *s, uint64_t until_ns)
{
	const struct held all = s->held;
	const struct mxbpf_rec *r;
	char *due = mem_alloc(all.len), *to;
	size_t pos = 0, len = 0, kept = 0, size;
	bool is_due;

	if (!due) { /* without memory pass on all records now, some of them too early */
		release_all(h, s);
		return;
	}
	while ((r = kind_next(all.data, all.len, &pos))) {
		is_due = kind_end_ns(r) < until_ns;
		to = is_due ? due + len : all.data + kept;
		size = r->size; /* read it now, because moving the record may overwrite it */
		memmove(to, r, size);
		*(is_due ? &len : &kept) += size;
	}
	s->held.len = kept;
	h->held_bytes -= len;
	pass_on(h, s, due, len);
	mem_free(due);
}

static void release(struct src_hub *h)
{
	uint64_t until_ns = watermark(h);
	unsigned i;

	if (until_ns <= h->released_ns)
		return;
	for (i = 0; i < h->n; i++)
		if (h->sources[i]->held.len)
			release_source(h, h->sources[i], until_ns);
	/* If the memory limit was reached, records of the same time may still come. */
	h->released_ns = until_ns == UINT64_MAX ? h->newest_ns : until_ns;
}

/* Returns 0 or -ENOMEM. */
static int hold(struct src_hub *h, struct src *s, const void *recs, size_t bytes)
{
	size_t need = s->held.len + bytes, size = s->held.size ? s->held.size : 4096;
	const struct mxbpf_rec *r;
	size_t pos = 0;
	char *data;

	while (size < need)
		size += size < HELD_STEP ? size : HELD_STEP;
	data = size > s->held.size ? mem_resize(s->held.data, size) : s->held.data;
	if (!data)
		return -ENOMEM;
	s->held.data = data;
	s->held.size = size;
	memcpy(data + s->held.len, recs, bytes);
	s->held.len = need;
	h->held_bytes += bytes;
	while ((r = kind_next(recs, bytes, &pos))) {
		uint64_t end_ns = kind_end_ns(r);

		if (end_ns && end_ns < h->released_ns &&
		    !s->ops->any_time) /* end 0 means that the record has no time */
			__atomic_fetch_add(&s->late, 1, __ATOMIC_RELAXED);
		h->newest_ns = end_ns > h->newest_ns ? end_ns : h->newest_ns;
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
	if (hold(h, s, recs, bytes)) /* without memory pass the records on at once */
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
		if (h->sources[i]->held.len)
			release_all(h, h->sources[i]);
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
