// SPDX-License-Identifier: Apache-2.0
#include "source/rings.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "ring/ring.h"

static const char *const names[ATT_RINGS] = {
	[ATT_CALLS] = "probes", [ATT_SWITCHES] = "scheduler", [ATT_SAMPLES] = "samples"};

struct ring_source {
	const struct att *att;
	enum att_ring which;
	struct ring *ring; /* NULL before src_open() */
	/* Used by the thread that delivers: time of the last look, and spans that had found the ring full by then. */
	uint64_t looked_ns, full;
};

/*
 * Says before the records of a chunk when the ring was full: since the last look. Only calls have iterations, and what
 * says where these end goes through the same ring.
 */
static void see_loss(struct src *s)
{
	struct ring_source *r = s->ctx;
	const uint64_t full = r->which == ATT_CALLS ? att_ring_full(r->att) : 0, now = clock_ns(CLOCK_MONOTONIC);
	struct mxbpf_lost lost = {
		.h = {.kind = MXBPF_LOST, .size = sizeof(lost), .ts_ns = r->looked_ns},
		.to_ns = now,
		.lost = full - r->full,
		.flags = MXBPF_LOST_ENDS,
	};

	if (full > r->full)
		src_deliver_names(s, &lost, sizeof(lost));
	r->looked_ns = now;
	r->full = full;
}

static void on_chunk(void *ctx, void *recs, size_t bytes)
{
	see_loss(ctx);
	src_deliver(ctx, recs, bytes);
}

static int ring_open(struct src *s, struct err *e)
{
	struct ring_source *r = s->ctx;

	r->looked_ns = clock_ns(CLOCK_MONOTONIC);
	return ring_start(att_ring_fd(r->att, r->which), on_chunk, s, &r->ring, e);
}

static void ring_flush(struct src *s)
{
	struct ring_source *r = s->ctx;

	ring_stop(r->ring);
	see_loss(s);
	s->malformed = ring_malformed(r->ring);
}

static void ring_loss(const struct src *s, struct mxbpf_loss *loss)
{
	const struct ring_source *r = s->ctx;

	att_loss(r->att, r->which, loss);
	loss->stored = r->ring ? ring_received(r->ring) : 0;
}

static uint64_t ring_watermark(const struct src *s)
{
	const struct ring_source *r = s->ctx;

	return ring_until_ns(r->ring);
}

static void ring_close(struct src *s)
{
	struct ring_source *r = s->ctx;

	ring_free(r->ring);
	free(r);
}

static const struct src_ops ops = {.open = ring_open,
				   .flush = ring_flush,
				   .loss = ring_loss,
				   .watermark = ring_watermark,
				   .close = ring_close,
				   .checked = true};

const char *src_ring_name(enum att_ring ring)
{
	return names[ring];
}

struct src *src_add_ring(struct src_hub *h, const struct att *att, enum att_ring ring, const char *name)
{
	struct ring_source *r = malloc(sizeof(*r));
	struct src *s = r ? src_add(h, &ops, name ? name : names[ring], r) : NULL;

	if (!s) {
		free(r);
		return NULL;
	}
	*r = (struct ring_source){.att = att, .which = ring};
	return s;
}
