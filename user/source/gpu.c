// SPDX-License-Identifier: Apache-2.0
/* Delivers what the agent's client of CUPTI hands over. */
#include "source/gpu.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/demangle.h"
#include "base/thread.h"
#include "source/gpu_convert.h"

#define LOOK_MS	   20		 /* interval between two reads */
#define ACCOUNT_NS 1000000000ull /* interval between two accounts */
#define PIECES	   8		 /* of a full ring buffer */
#define STILL_NS   1500000000ull /* how long CUPTI may do nothing while it ends */

struct gpu_source {
	struct agt *agt;
	uint32_t tgid;
	struct src *src;
	pthread_t thread;
	int stop_fd;		  /* readable: the thread must end; -1: the thread does not run */
	bool settle;		  /* atomic: the thread has to take all that is there, once */
	pthread_mutex_t sum_lock; /* protects the next three; taken inside of `lock`, too */
	struct mxbpf_gpu_account sums;
	uint64_t stored;      /* records that were delivered or are about to be */
	uint64_t lost;	      /* records for which there was no memory */
	pthread_mutex_t lock; /* protects what follows */
	struct gpu_convert convert;
	uint32_t ndevices;   /* devices that were delivered */
	bool ended;	     /* nothing more will be taken: what was not is lost */
	uint64_t account_ns; /* when the last account was delivered */
	uint64_t accounts;   /* accounts that were delivered */
	uint64_t launches;   /* launches that probes have counted; changed atomically, without the lock */
};

static void name(void *ctx, uint32_t number, char to[MXBPF_GPU_NAME_BYTES])
{
	agt_gpu_name(ctx, number, to);
}

static uint32_t thread(void *ctx, uint32_t its)
{
	return agt_thread(ctx, its);
}

static void on_records(void *ctx, const struct mxbpf_gpu_rec *recs, unsigned n)
{
	gpu_take(ctx, recs, n);
}

/* ---- the account */

static void fill_account(const struct gpu_source *g, struct mxbpf_gpu_account *to)
{
	const struct gpu_convert *c = &g->convert;
	struct agt_gpu_sums sums;

	agt_gpu_count(g->agt, &sums);
	*to = (struct mxbpf_gpu_account){
		.h = {.kind = MXBPF_GPU_ACCOUNT, .size = sizeof(*to), .tgid = g->tgid},
		.records = sums.records,
		.activities = c->activities,
		.calls = c->calls,
		.nested = c->nested,
		.overheads = c->overheads,
		.outside = c->outside,
		.dropped = sums.dropped,
		.scrapped = sums.scrapped,
		.unreadable = sums.unreadable,
		.unsent = g->ended && sums.records > c->taken ? sums.records - c->taken : sums.unsent,
		.unmeasured = c->unmeasured,
		.unjoined = c->unjoined,
		.queries = c->queries,
		.early = c->early,
		.threadless = c->threadless,
		.unnamed = c->unnamed,
		.unknown = sums.unknown,
		.subscriptions = sums.subscriptions,
		.held_ns = sums.held_ns,
		.counted_launches = __atomic_load_n(&g->launches, __ATOMIC_RELAXED),
	};
}

void src_gpu_launches(struct src *s, uint64_t counted)
{
	struct gpu_source *g = s->ctx;

	__atomic_store_n(&g->launches, counted, __ATOMIC_RELAXED);
}

void src_gpu_account(const struct src *s, struct mxbpf_gpu_account *to)
{
	struct gpu_source *g = s->ctx;

	pthread_mutex_lock(&g->sum_lock);
	*to = g->sums;
	pthread_mutex_unlock(&g->sum_lock);
}

static void sum_up(struct gpu_source *g)
{
	pthread_mutex_lock(&g->sum_lock);
	fill_account(g, &g->sums);
	g->stored = g->convert.stored + g->accounts;
	g->lost = g->convert.lost;
	__atomic_store_n(&g->src->unkept, g->lost, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&g->sum_lock);
}

static void put_account(struct gpu_source *g)
{
	struct mxbpf_gpu_account account;

	fill_account(g, &account);
	g->account_ns = clock_ns(CLOCK_MONOTONIC);
	if (!account.records && !account.dropped && !account.unreadable && !account.unknown)
		return;
	if (!buf_put(&g->convert.recs, &account, sizeof(account)))
		g->accounts++;
}

/* ---- delivery */

/* Not under the lock: whoever gets the records asks for the loss. */
static void deliver(struct gpu_source *g, struct buf *texts, struct buf *recs)
{
	if (texts->len)
		src_deliver_names(g->src, texts->data, texts->len);
	if (recs->len)
		src_deliver(g->src, recs->data, recs->len);
	buf_fini(texts);
	buf_fini(recs);
}

/* Takes a piece. last: converts everything that waits. Returns true if more may be left. */
static bool take_piece(struct gpu_source *g, bool last)
{
	struct mxbpf_gpu_shared shared;
	struct buf texts, recs;
	bool more = false;

	pthread_mutex_lock(&g->lock);
	if (agt_gpu(g->agt, &shared)) {
		for (; g->ndevices < shared.ndevices; g->ndevices++)
			gpu_put_device(&g->convert, g->ndevices, &shared.devices[g->ndevices]);
		g->convert.foreign_tids = shared.foreign_tids;
		g->convert.graphs_wrong = gpu_graphs_wrong(&shared);
		g->convert.has_calls = gpu_has_calls(&shared);
		more = agt_take_gpu(g->agt, on_records, &g->convert);
		gpu_convert(&g->convert, last);
	}
	if (last || clock_ns(CLOCK_MONOTONIC) - g->account_ns >= ACCOUNT_NS)
		put_account(g);
	sum_up(g);
	texts = g->convert.texts;
	recs = g->convert.recs;
	g->convert.texts = g->convert.recs = (struct buf){0};
	pthread_mutex_unlock(&g->lock);
	deliver(g, &texts, &recs);
	return more;
}

/* all: what the ring buffer holds now, in pieces, because all of it at once would need as much memory again. */
static void take(struct gpu_source *g, bool all)
{
	unsigned i;

	for (i = 0; all && i < PIECES && take_piece(g, false); i++)
		;
	take_piece(g, all);
}

static void *run(void *ctx)
{
	struct gpu_source *g = ctx;
	struct pollfd stop = {.fd = g->stop_fd, .events = POLLIN};
	bool settle;

	do {
		settle = __atomic_load_n(&g->settle, __ATOMIC_ACQUIRE);
		take(g, settle);
		if (settle)
			__atomic_store_n(&g->settle, false, __ATOMIC_RELEASE);
	} while (poll(&stop, 1, LOOK_MS) <= 0);
	return NULL;
}

/* ---- the source */

static bool is_released(const struct gpu_source *g)
{
	struct mxbpf_gpu_shared shared;

	return !agt_gpu(g->agt, &shared) ||
	       shared.state != MXBPF_GPU_ON; /* if it is just subscribing, it lets go as soon as CUPTI returns to it */
}

struct progress {
	uint64_t records, flushes, ns; /* when one of the numbers changed last */
};

/*
 * Returns false if the agent has done nothing for too long: the process may only say that it still holds CUPTI. While
 * work that was launched in the window is queued, there are flushes and no records.
 */
static bool goes_on(const struct gpu_source *g, struct progress *p)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct agt_gpu_sums sums;

	agt_gpu_count(g->agt, &sums);
	if (sums.records != p->records || sums.flushes != p->flushes)
		*p = (struct progress){sums.records, sums.flushes, now};
	return now - p->ns < STILL_NS;
}

bool src_gpu_stop(struct src *s, unsigned ms)
{
	struct gpu_source *g = s->ctx;
	const struct timespec nap = {.tv_nsec = 1000000};
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), until_ns = now + ms * 1000000ull;
	struct progress p = {.ns = now};

	pthread_mutex_lock(&g->lock);
	g->convert.until_ns = now;
	pthread_mutex_unlock(&g->lock);
	agt_gpu_want(g->agt, 0);
	while (!is_released(g) && goes_on(g, &p) && clock_ns(CLOCK_MONOTONIC) < until_ns && agt_alive(g->agt))
		nanosleep(&nap, NULL);
	__atomic_store_n(&g->settle, true, __ATOMIC_RELEASE);
	while (__atomic_load_n(&g->settle, __ATOMIC_ACQUIRE) && g->stop_fd >= 0)
		nanosleep(&nap, NULL);
	return is_released(g);
}

void src_gpu_start(struct src *s)
{
	struct gpu_source *g = s->ctx;

	pthread_mutex_lock(&g->lock);
	g->convert.since_ns = clock_ns(CLOCK_MONOTONIC);
	g->convert.until_ns = 0;
	pthread_mutex_unlock(&g->lock);
}

static int gpu_open(struct src *s, struct err *e)
{
	struct gpu_source *g = s->ctx;
	int err;

	g->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (g->stop_fd < 0)
		return err_set(e, ERR_RUNTIME, -errno, "eventfd: %s", strerror(errno));
	err = thread_start(&g->thread, run, g);
	if (!err)
		return 0;
	close(g->stop_fd);
	g->stop_fd = -1;
	return err_set(e, ERR_RUNTIME, err, "cannot start a thread: %s", strerror(-err));
}

static void gpu_flush(struct src *s)
{
	struct gpu_source *g = s->ctx;
	uint64_t one = 1;

	if (g->stop_fd < 0)
		return;
	if (write(g->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(g->thread, NULL);
	close(g->stop_fd);
	g->stop_fd = -1;
	g->ended = true;
	take(g, true);
}

static void gpu_loss(const struct src *s, struct mxbpf_loss *loss)
{
	struct gpu_source *g = s->ctx;
	const struct mxbpf_gpu_account *a = &g->sums;

	pthread_mutex_lock(&g->sum_lock);
	*loss = (struct mxbpf_loss){.stored = g->stored,
				    .dropped = a->dropped + a->scrapped + a->unreadable + a->unsent + a->unmeasured +
					       g->lost};
	pthread_mutex_unlock(&g->sum_lock);
	loss->attempted = loss->stored + loss->dropped;
}

static void gpu_close(struct src *s)
{
	struct gpu_source *g = s->ctx;

	gpu_convert_fini(&g->convert);
	pthread_mutex_destroy(&g->lock);
	pthread_mutex_destroy(&g->sum_lock);
	free(g);
}

static const struct src_ops ops = {
	.open = gpu_open, .flush = gpu_flush, .loss = gpu_loss, .close = gpu_close, .any_time = true};

struct src *src_add_gpu(struct src_hub *h, struct agt *agt, uint32_t tgid)
{
	struct gpu_source *g = calloc(1, sizeof(*g));
	struct src *s = g ? src_add(h, &ops, "gpu", g) : NULL;

	if (!s) {
		free(g);
		return NULL;
	}
	g->agt = agt;
	g->tgid = tgid;
	g->convert = (struct gpu_convert){
		.from = {name, thread, agt}, .tgid = tgid, .since_ns = UINT64_MAX /* no window is open */};
	pthread_mutex_init(&g->lock, NULL);
	pthread_mutex_init(&g->sum_lock, NULL);
	g->src = s;
	demangle_start();
	g->stop_fd = -1;
	return s;
}
