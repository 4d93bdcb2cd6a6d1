// SPDX-License-Identifier: Apache-2.0
/* Calls that the agent hands over become spans, each name before its first span. */
#include "source/agent.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"

#define LOOK_MS	 20	      /* between two looks at what was handed over */
#define TAILS_NS 200000000ull /* between two looks at what was not */

struct agent_source {
	struct agt *agt;
	uint32_t tgid;
	struct src *src;
	pthread_t thread;
	int stop_fd;	       /* readable: the thread shall end; -1: it does not run */
	struct hash names;     /* the agent's number of a name -> its id */
	struct buf recs;       /* of one delivery */
	uint64_t stored, lost; /* atomic; lost: for want of memory here */
	uint64_t twins;	       /* atomic: of open calls, which the agent had not recorded */
	uint64_t until_ns;     /* atomic: calls that ended before have been delivered */
};

/* ---- records */

static int put_name(struct agent_source *a, uint64_t id, const char *text, uint32_t len)
{
	const size_t pad = -len & 7;
	const uint64_t zeros = 0;
	const struct mxbpf_name r = {
		.h = {.kind = MXBPF_NAME, .size = (uint16_t)(sizeof(r) + len + pad), .tgid = a->tgid},
		.id = id,
		.len = len,
		.kind = MXBPF_NAME_SPAN};

	if (buf_put(&a->recs, &r, sizeof(r)) || buf_put(&a->recs, text, len))
		return -ENOMEM;
	return buf_put(&a->recs, &zeros, pad);
}

/* The id that a probe would have given the same text. */
static uint64_t name_id(struct agent_source *a, uint32_t name)
{
	uint64_t *known = name ? hash_put(&a->names, name, 0) : NULL, id;
	const char *text;

	if (!known || *known)
		return known ? *known : 0;
	text = agt_name(a->agt, name);
	id = *text ? plan_hash(text) : MXBPF_NAME_UNNAMED;
	if (*text && put_name(a, id, text, (uint32_t)strlen(text)))
		return 0;
	*known = id;
	return id;
}

static unsigned span_flags(unsigned scope, unsigned flags)
{
	return (scope == MXBPF_AGENT_USER ? MXBPF_SPAN_USER : 0) |
	       (flags & MXBPF_AGENT_CALL_ASYNC ? MXBPF_SPAN_ASYNC : 0);
}

static void on_calls(void *ctx, const struct mxbpf_agent_call *calls, unsigned n)
{
	struct agent_source *a = ctx;
	unsigned i;

	for (i = 0; i < n; i++) {
		const struct mxbpf_agent_call *c = &calls[i];
		struct mxbpf_span s = {
			.h = {.kind = MXBPF_SPAN,
			      .size = MXBPF_SPAN_BYTES_PLAIN,
			      .tgid = a->tgid,
			      .ts_ns = c->start_ns},
			.dur_ns = c->dur_ns ? c->dur_ns : 1,
			.self_ns = c->self_ns,
			.name_id = name_id(a, c->name),
			.tid = c->tid,
			.end_tid = c->end_tid,
			.cls = MXBPF_CLASS_OPERATOR,
			.flags = (uint8_t)span_flags(c->scope, c->flags),
		};

		if (buf_put(&a->recs, &s, s.h.size))
			__atomic_fetch_add(&a->lost, 1, __ATOMIC_RELAXED);
		else
			__atomic_fetch_add(&a->stored, 1, __ATOMIC_RELAXED);
	}
}

static void on_open(void *ctx, const struct mxbpf_agent_open *o, uint32_t tid, unsigned level)
{
	struct agent_source *a = ctx;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct mxbpf_open r = {
		.h = {.kind = MXBPF_OPEN, .size = sizeof(r), .tgid = a->tgid, .ts_ns = o->start_ns},
		.open_ns = now > o->start_ns ? now - o->start_ns : 0,
		.name_id = name_id(a, o->name),
		.tid = tid,
		.syscall = -1,
		.cls = MXBPF_CLASS_OPERATOR,
		.flags = (uint8_t)span_flags(o->scope, 0),
		.level = (uint8_t)(level < UINT8_MAX ? level : UINT8_MAX),
	};

	buf_put(&a->recs, &r, sizeof(r));
	if (o->inner != MXBPF_AGENT_INNER_TWIN)
		return;
	__atomic_fetch_add(&a->twins, 1, __ATOMIC_RELAXED);
	on_calls(a, &o->twin, 1);
}

static void take(struct agent_source *a, bool tails)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	a->recs.len = 0;
	agt_take(a->agt, tails, on_calls, a);
	if (tails)
		__atomic_store_n(&a->until_ns, now, __ATOMIC_RELAXED);
	if (a->recs.len)
		src_deliver(a->src, a->recs.data, a->recs.len);
}

/* ---- the source */

static void *run(void *ctx)
{
	struct agent_source *a = ctx;
	struct pollfd stop = {.fd = a->stop_fd, .events = POLLIN};
	uint64_t next = 0, now;

	do {
		now = clock_ns(CLOCK_MONOTONIC);
		take(a, now >= next);
		if (now >= next)
			next = now + TAILS_NS;
	} while (poll(&stop, 1, LOOK_MS) <= 0);
	return NULL;
}

/* Its thread never handles a signal of this process. */
static int agent_open(struct src *s, struct err *e)
{
	struct agent_source *a = s->ctx;
	sigset_t all, before;
	int err;

	a->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (a->stop_fd < 0)
		return err_set(e, ERR_RUNTIME, -errno, "eventfd: %s", strerror(errno));
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = -pthread_create(&a->thread, NULL, run, a);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		return 0;
	close(a->stop_fd);
	a->stop_fd = -1;
	return err_set(e, ERR_RUNTIME, err, "a thread cannot be started: %s", strerror(-err));
}

/*
 * What threads have not handed over is read before nobody listens any more, and once more behind that: a thread may
 * have filled its batch in between, and its bell was heard or was not.
 */
static void agent_flush(struct src *s)
{
	struct agent_source *a = s->ctx;
	uint64_t one = 1;

	if (a->stop_fd < 0)
		return;
	if (write(a->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(a->thread, NULL);
	close(a->stop_fd);
	a->stop_fd = -1;
	take(a, true);
	agt_detach(a->agt);
	take(a, true);
	a->recs.len = 0;
	agt_opens(a->agt, on_open, a);
	__atomic_store_n(&a->until_ns, UINT64_MAX, __ATOMIC_RELAXED);
	if (a->recs.len)
		src_deliver(s, a->recs.data, a->recs.len);
}

static uint64_t agent_watermark(const struct src *s)
{
	return __atomic_load_n(&((const struct agent_source *)s->ctx)->until_ns, __ATOMIC_RELAXED);
}

static void agent_loss(const struct src *s, struct mxbpf_loss *loss)
{
	const struct agent_source *a = s->ctx;

	agt_loss(a->agt, loss);
	loss->attempted += __atomic_load_n(&a->twins, __ATOMIC_RELAXED);
	loss->stored = __atomic_load_n(&a->stored, __ATOMIC_RELAXED);
	loss->dropped += __atomic_load_n(&a->lost, __ATOMIC_RELAXED);
}

static void agent_close(struct src *s)
{
	struct agent_source *a = s->ctx;

	hash_fini(&a->names);
	buf_fini(&a->recs);
	free(a);
}

static const struct src_ops ops = {.open = agent_open,
				   .flush = agent_flush,
				   .loss = agent_loss,
				   .watermark = agent_watermark,
				   .close = agent_close};

struct src *src_add_agent(struct src_hub *h, struct agt *agt, uint32_t tgid)
{
	struct agent_source *a = calloc(1, sizeof(*a));
	struct src *s = a ? src_add(h, &ops, "agent", a) : NULL;

	if (!s) {
		free(a);
		return NULL;
	}
	a->agt = agt;
	a->tgid = tgid;
	a->src = s;
	a->stop_fd = -1;
	return s;
}
