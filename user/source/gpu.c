// SPDX-License-Identifier: Apache-2.0
/* Delivers what the agents' clients of CUPTI hand over. Each process has a clock, names and an account of its own. */
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

struct progress {
	uint64_t records, flushes, ns; /* when one of the numbers changed last */
};

/* A process whose agent is a client of CUPTI. */
struct client {
	struct agt *agt; /* borrowed */
	uint32_t tgid;
	struct gpu_convert convert;
	uint32_t ndevices;   /* devices that were delivered */
	bool ended;	     /* nothing more will be taken: what was not is lost */
	uint64_t account_ns; /* when its last account was delivered */
	struct progress progress;
	bool has_account; /* `account` is to be delivered */
	struct mxbpf_gpu_account account;
	struct mxbpf_gpu_account sums; /* guarded by the source's sum_lock */
};

struct gpu_source {
	struct agts *all; /* borrowed */
	struct src *src;
	pthread_t thread;
	int stop_fd;		  /* readable: the thread must end; -1: the thread does not run */
	bool settle;		  /* atomic: the thread has to take all that is there, once */
	pthread_mutex_t sum_lock; /* protects the next three; taken inside of `lock`, too */
	uint64_t stored;	  /* records that were delivered or are about to be */
	uint64_t lost;		  /* records for which there was no memory */
	uint64_t dropped;	  /* records that did not arrive */
	pthread_mutex_t lock;	  /* protects what follows */
	struct buf clients; /* struct client *, owned; the main thread changes it, and reads it without the lock */
	uint64_t gone_stored, gone_lost, gone_dropped; /* of processes that have left */
	uint64_t since_ns;			       /* when the window opened; UINT64_MAX: none is open */
	uint64_t accounts;			       /* accounts that were delivered */
	uint64_t launches; /* launches that probes have counted; changed atomically, without the lock */
};

static size_t nclients(const struct gpu_source *g)
{
	return buf_count(&g->clients, struct client *);
}

static struct client *client_at(const struct gpu_source *g, size_t i)
{
	return *buf_at(&g->clients, struct client *, i);
}

/* Returns its index, or nclients() if it is none. */
static size_t find_client(const struct gpu_source *g, const struct agt *agt)
{
	size_t i;

	for (i = 0; i < nclients(g) && client_at(g, i)->agt != agt; i++)
		;
	return i;
}

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

/* Probes count the launches of all processes in one sum. It is the account's only if there is one process. */
static uint64_t launches_of(const struct gpu_source *g)
{
	return nclients(g) == 1 ? __atomic_load_n(&g->launches, __ATOMIC_RELAXED) : 0;
}

static void fill_account(const struct gpu_source *g, const struct client *from, struct mxbpf_gpu_account *to)
{
	const struct gpu_convert *c = &from->convert;
	struct agt_gpu_sums sums;

	agt_gpu_count(from->agt, &sums);
	*to = (struct mxbpf_gpu_account){
		.h = {.kind = MXBPF_GPU_ACCOUNT, .size = sizeof(*to), .tgid = from->tgid},
		.records = sums.records,
		.activities = c->activities,
		.calls = c->calls,
		.nested = c->nested,
		.overheads = c->overheads,
		.outside = c->outside,
		.dropped = sums.dropped,
		.scrapped = sums.scrapped,
		.unreadable = sums.unreadable,
		.unsent = from->ended && sums.records > c->taken ? sums.records - c->taken : sums.unsent,
		.unmeasured = c->unmeasured,
		.unjoined = c->unjoined,
		.queries = c->queries,
		.memory = c->memory,
		.early = c->early,
		.threadless = c->threadless,
		.unnamed = c->unnamed,
		.unknown = sums.unknown,
		.subscriptions = sums.subscriptions,
		.held_ns = sums.held_ns,
		.counted_launches = launches_of(g),
	};
}

void src_gpu_launches(struct src *s, uint64_t counted)
{
	struct gpu_source *g = s->ctx;

	__atomic_store_n(&g->launches, counted, __ATOMIC_RELAXED);
}

bool src_gpu_account(const struct src *s, const struct agt *agt, struct mxbpf_gpu_account *to)
{
	struct gpu_source *g = s->ctx;
	const size_t i = find_client(g, agt);

	*to = (struct mxbpf_gpu_account){.records = 0};
	if (i == nclients(g))
		return false;
	pthread_mutex_lock(&g->sum_lock);
	*to = client_at(g, i)->sums;
	pthread_mutex_unlock(&g->sum_lock);
	return true;
}

static uint64_t dropped_of(const struct mxbpf_gpu_account *a)
{
	return a->dropped + a->scrapped + a->unreadable + a->unsent + a->unmeasured;
}

static void sum_up(struct gpu_source *g)
{
	struct client *c;
	size_t i;

	pthread_mutex_lock(&g->sum_lock);
	g->stored = g->gone_stored + g->accounts;
	g->lost = g->gone_lost;
	g->dropped = g->gone_dropped;
	for (i = 0; i < nclients(g); i++) {
		c = client_at(g, i);
		fill_account(g, c, &c->sums);
		g->stored += c->convert.stored;
		g->lost += c->convert.lost;
		g->dropped += dropped_of(&c->sums);
	}
	__atomic_store_n(&g->src->unkept, g->lost, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&g->sum_lock);
}

/* It waits beside the records, not behind them: there is always room for what says that records are lost. */
static void put_account(struct gpu_source *g, struct client *c)
{
	struct mxbpf_gpu_account account;

	fill_account(g, c, &account);
	c->account_ns = clock_ns(CLOCK_MONOTONIC);
	c->has_account = account.records || account.dropped || account.unreadable || account.unknown;
	if (!c->has_account)
		return;
	c->account = account;
	g->accounts++;
}

/* ---- delivery */

/* With the lock. Whoever gets the records asks for the loss, which needs the other lock only. */
static void deliver(struct gpu_source *g, struct client *c)
{
	if (c->convert.texts.len)
		src_deliver_names(g->src, c->convert.texts.data, c->convert.texts.len);
	if (c->convert.recs.len)
		src_deliver(g->src, c->convert.recs.data, c->convert.recs.len);
	if (c->has_account)
		src_deliver(g->src, &c->account, sizeof(c->account));
	c->has_account = false;
	buf_fini(&c->convert.texts);
	buf_fini(&c->convert.recs);
}

/* Before its records are taken: what they mean depends on the state of its CUPTI. */
static void gpu_look(struct client *c)
{
	struct mxbpf_gpu_shared shared;

	if (!agt_gpu(c->agt, &shared))
		return;
	for (; c->ndevices < shared.ndevices; c->ndevices++)
		gpu_put_device(&c->convert, c->ndevices, &shared.devices[c->ndevices]);
	c->convert.foreign_tids = shared.foreign_tids;
	c->convert.graphs_wrong = gpu_graphs_wrong(&shared);
	c->convert.has_calls = gpu_has_calls(&shared);
	c->convert.has_memory = shared.enabled & 1u << MXBPF_GPU_MEMORY;
}

static void convert(struct gpu_source *g, struct client *c, bool last)
{
	gpu_convert(&c->convert, last);
	if (last || clock_ns(CLOCK_MONOTONIC) - c->account_ns >= ACCOUNT_NS)
		put_account(g, c);
}

/* Takes a piece. last: converts everything that waits. Returns true if more may be left. */
static bool take_piece(struct gpu_source *g, bool last)
{
	bool more;
	size_t i;

	pthread_mutex_lock(&g->lock);
	for (i = 0; i < nclients(g); i++)
		gpu_look(client_at(g, i));
	more = agts_take_gpu(g->all);
	for (i = 0; i < nclients(g); i++)
		convert(g, client_at(g, i), last);
	sum_up(g);
	for (i = 0; i < nclients(g); i++)
		deliver(g, client_at(g, i));
	pthread_mutex_unlock(&g->lock);
	return more;
}

/* all: what the ring buffer holds now, in pieces, because all of it at once would need as much memory again. */
static void source_gpu_take(struct gpu_source *g, bool all)
{
	unsigned i;

	for (i = 0; all && i < PIECES && take_piece(g, false); i++)
		;
	take_piece(g, all);
}

static void *source_gpu_run(void *ctx)
{
	struct gpu_source *g = ctx;
	struct pollfd stop = {.fd = g->stop_fd, .events = POLLIN};
	bool settle;

	do {
		settle = __atomic_load_n(&g->settle, __ATOMIC_ACQUIRE);
		source_gpu_take(g, settle);
		if (settle)
			__atomic_store_n(&g->settle, false, __ATOMIC_RELEASE);
	} while (poll(&stop, 1, LOOK_MS) <= 0);
	return NULL;
}

/* ---- processes */

static void client_free(struct client *c)
{
	gpu_convert_fini(&c->convert);
	free(c);
}

int src_gpu_join(struct src *s, struct agt *agt)
{
	struct gpu_source *g = s->ctx;
	struct client *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->agt = agt;
	c->tgid = (uint32_t)agt_pid(agt);
	c->convert = (struct gpu_convert){.from = {name, thread, agt}, .tgid = c->tgid, .since_ns = g->since_ns};
	pthread_mutex_lock(&g->lock);
	err = buf_put(&g->clients, &c, sizeof(c));
	if (!err)
		agt_receive_gpu(agt, on_records, &c->convert);
	pthread_mutex_unlock(&g->lock);
	if (err)
		client_free(c);
	return err;
}

/* With the lock: takes a process out of the list, and keeps its loss. */
static void gpu_forget(struct gpu_source *g, size_t i)
{
	struct client *c = client_at(g, i);

	agt_receive_gpu(c->agt, NULL, NULL);
	g->gone_stored += c->convert.stored;
	g->gone_lost += c->convert.lost;
	g->gone_dropped += dropped_of(&c->sums);
	g->clients.len -= sizeof(c);
	memmove(g->clients.data + i * sizeof(c), g->clients.data + (i + 1) * sizeof(c), g->clients.len - i * sizeof(c));
	client_free(c);
}

void src_gpu_leave(struct src *s, struct agt *agt)
{
	struct gpu_source *g = s->ctx;
	const size_t i = find_client(g, agt);
	unsigned piece;

	if (i == nclients(g))
		return;
	for (piece = 0; piece < PIECES && take_piece(g, false); piece++)
		;
	pthread_mutex_lock(&g->lock);
	client_at(g, i)->ended = true;
	gpu_look(client_at(g, i));
	convert(g, client_at(g, i), true);
	sum_up(g);
	deliver(g, client_at(g, i));
	gpu_forget(g, i);
	pthread_mutex_unlock(&g->lock);
}

/* ---- the window */

static bool is_released(const struct client *c)
{
	struct mxbpf_gpu_shared shared;

	return !agt_gpu(c->agt, &shared) ||
	       shared.state != MXBPF_GPU_ON; /* if it is just subscribing, it lets go as soon as CUPTI returns to it */
}

/*
 * Returns false if the agent has done nothing for too long: the process may only say that it still holds CUPTI. While
 * work that was launched in the window is queued, there are flushes and no records.
 */
static bool goes_on(struct client *c)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct agt_gpu_sums sums;

	agt_gpu_count(c->agt, &sums);
	if (sums.records != c->progress.records || sums.flushes != c->progress.flushes)
		c->progress = (struct progress){sums.records, sums.flushes, now};
	return now - c->progress.ns < STILL_NS;
}

static bool any_goes_on(struct gpu_source *g)
{
	size_t i;

	for (i = 0; i < nclients(g); i++)
		if (!is_released(client_at(g, i)) && goes_on(client_at(g, i)) && agt_alive(client_at(g, i)->agt))
			return true;
	return false;
}

unsigned src_gpu_stop(struct src *s, unsigned ms)
{
	struct gpu_source *g = s->ctx;
	const struct timespec nap = {.tv_nsec = 1000000};
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), until_ns = now + ms * 1000000ull;
	unsigned held = 0;
	size_t i;

	pthread_mutex_lock(&g->lock);
	g->since_ns = UINT64_MAX;
	for (i = 0; i < nclients(g); i++) {
		client_at(g, i)->convert.until_ns = now;
		client_at(g, i)->progress = (struct progress){.ns = now};
		agt_gpu_want(client_at(g, i)->agt, 0);
	}
	pthread_mutex_unlock(&g->lock);
	while (any_goes_on(g) && clock_ns(CLOCK_MONOTONIC) < until_ns)
		nanosleep(&nap, NULL);
	__atomic_store_n(&g->settle, true, __ATOMIC_RELEASE);
	while (__atomic_load_n(&g->settle, __ATOMIC_ACQUIRE) && g->stop_fd >= 0)
		nanosleep(&nap, NULL);
	for (i = 0; i < nclients(g); i++)
		held += !is_released(client_at(g, i));
	return held;
}

void src_gpu_start(struct src *s)
{
	struct gpu_source *g = s->ctx;
	size_t i;

	pthread_mutex_lock(&g->lock);
	g->since_ns = clock_ns(CLOCK_MONOTONIC);
	for (i = 0; i < nclients(g); i++) {
		client_at(g, i)->convert.since_ns = g->since_ns;
		client_at(g, i)->convert.until_ns = 0;
	}
	pthread_mutex_unlock(&g->lock);
}

/* ---- the source */

static int gpu_open(struct src *s, struct err *e)
{
	struct gpu_source *g = s->ctx;
	int err;

	g->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (g->stop_fd < 0)
		return err_set(e, ERR_RUNTIME, -errno, "eventfd: %s", strerror(errno));
	err = thread_start(&g->thread, source_gpu_run, g);
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
	size_t i;

	if (g->stop_fd < 0)
		return;
	if (write(g->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(g->thread, NULL);
	close(g->stop_fd);
	g->stop_fd = -1;
	for (i = 0; i < nclients(g); i++)
		client_at(g, i)->ended = true;
	source_gpu_take(g, true);
}

static void gpu_loss(const struct src *s, struct mxbpf_loss *loss)
{
	struct gpu_source *g = s->ctx;

	pthread_mutex_lock(&g->sum_lock);
	*loss = (struct mxbpf_loss){.stored = g->stored, .dropped = g->dropped + g->lost};
	pthread_mutex_unlock(&g->sum_lock);
	loss->attempted = loss->stored + loss->dropped;
}

static void gpu_close(struct src *s)
{
	struct gpu_source *g = s->ctx;
	size_t i;

	for (i = 0; i < nclients(g); i++)
		client_free(client_at(g, i));
	buf_fini(&g->clients);
	pthread_mutex_destroy(&g->lock);
	pthread_mutex_destroy(&g->sum_lock);
	free(g);
}

static const struct src_ops ops = {.open = gpu_open, .flush = gpu_flush, .loss = gpu_loss, .close = gpu_close};

struct src *src_add_gpu(struct src_hub *h, struct agts *all)
{
	struct gpu_source *g = calloc(1, sizeof(*g));
	struct src *s = g ? src_add(h, &ops, "gpu", g) : NULL;

	if (!s) {
		free(g);
		return NULL;
	}
	g->all = all;
	g->since_ns = UINT64_MAX;
	pthread_mutex_init(&g->lock, NULL);
	pthread_mutex_init(&g->sum_lock, NULL);
	g->src = s;
	demangle_start();
	g->stop_fd = -1;
	return s;
}
