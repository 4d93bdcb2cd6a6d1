// SPDX-License-Identifier: Apache-2.0
/* Reads the calls that the agents of a session record. What becomes of them is in agent_order.c. */
#include "source/agent_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#define LOOK_MS	       20	    /* interval between two reads of full batches */
#define TAILS_NS       200000000ull /* interval between two reads of batches that threads are still filling */
#define TAILS_BYTES    (4u << 20)   /* of calls in between: a fast program does not wait so long */
#define BIRTHS_AT_ONCE 64	    /* forked children that are looked at in one interval */

/* ---- the queue */

/* Says of calls that cannot be put into the queue what is known of them: that they are lost. */
static void put_lost(struct agent_source *a, uint64_t from_ns, uint64_t to_ns, uint64_t n)
{
	struct agent_item *i = agent_item_new(NULL, 0);

	if (!i)
		return;
	i->lost_from_ns = from_ns;
	i->lost_to_ns = to_ns;
	i->lost = n;
	i->ends_lost = true;
	agent_queue_put(&a->queue, i);
}

/* Gets calls that an agent has recorded, in the order in which they ended. */
static void on_calls(void *ctx, const struct mxbpf_agent_call *calls, unsigned n)
{
	struct proc *p = ctx;
	struct agent_source *a = p->of;
	struct agent_item *i = agent_item_new(p, n);

	if (!i) {
		__atomic_fetch_add(&a->lost, n, __ATOMIC_RELAXED);
		put_lost(a, calls[0].start_ns, clock_ns(CLOCK_MONOTONIC), n);
		return;
	}
	memcpy(i->calls, calls, n * sizeof(*calls));
	a->fresh_bytes += n * sizeof(*calls);
	agent_queue_put(&a->queue, i);
}

/*
 * What says where iterations end: annotations, which have the optimizer's steps, and the first function of a backward
 * pass after them.
 */
static bool is_kept(void *ctx, const struct mxbpf_agent_call *c, bool first)
{
	struct proc *p = ctx;
	enum src_agent_role role;

	p->ended |= first;
	if (c->scope == MXBPF_AGENT_RANGE)
		return true;
	role = c->scope == MXBPF_AGENT_MEMORY ? SRC_AGENT_PLAIN : agent_role(p, c->name);
	if (role == SRC_AGENT_ENDS || c->scope == MXBPF_AGENT_USER) {
		p->ended = true;
		return true;
	}
	if (role != SRC_AGENT_CONFIRMS || !p->ended)
		return false;
	p->ended = false;
	return true;
}

/* Orders what was put into the queue until now. */
static void order_all(struct agent_source *a)
{
	const uint64_t until = agent_queue_nput(&a->queue);
	struct agent_item *i;

	pthread_mutex_lock(&a->ordering);
	while (agent_queue_ntaken(&a->queue) < until && (i = agent_queue_take(&a->queue))) {
		agent_order(a, i);
		agent_item_free(i);
	}
	pthread_mutex_unlock(&a->ordering);
}

static void *order(void *ctx)
{
	struct agent_source *a = ctx;
	struct agent_item *i;

	while (agent_queue_wait(&a->queue)) {
		pthread_mutex_lock(&a->ordering);
		i = agent_queue_take(&a->queue);
		if (i) {
			agent_order(a, i);
			agent_item_free(i);
		}
		pthread_mutex_unlock(&a->ordering);
	}
	return NULL;
}

/* ---- open calls */

/* Takes the copy that an open call holds of the only call that ended in it. */
static void on_twin(void *ctx, const struct mxbpf_agent_open *o, uint32_t tid, unsigned level, bool outlived)
{
	struct proc *p = ctx;

	(void)tid;
	(void)level;
	(void)outlived;
	if (o->inner != MXBPF_AGENT_INNER_TWIN)
		return;
	__atomic_fetch_add(&p->of->twins, 1, __ATOMIC_RELAXED);
	on_calls(p, &o->twin, 1);
}

static void on_open(void *ctx, const struct mxbpf_agent_open *o, uint32_t tid, unsigned level, bool outlived)
{
	agent_order_open(ctx, o, tid, level, clock_ns(CLOCK_MONOTONIC));
	on_twin(ctx, o, tid, level, outlived);
}

struct opens {
	struct proc *of;
	struct buf *list; /* struct still_open */
};

/* Ignores a call that outlived the call around it, because it does not run on its thread any more. */
static void on_still_open(void *ctx, const struct mxbpf_agent_open *o, uint32_t tid, unsigned level, bool outlived)
{
	const struct opens *to = ctx;
	const struct still_open one = {to->of, *o, tid, level};

	if (!outlived)
		buf_put(to->list, &one, sizeof(one)); /* if there is no memory, the call around it takes its place */
}

static size_t nprocs(const struct agent_source *a)
{
	return buf_count(&a->procs, struct proc *);
}

static struct proc *proc_at(const struct agent_source *a, size_t i)
{
	return *buf_at(&a->procs, struct proc *, i);
}

static void read_opens(struct agent_source *a, struct buf *list)
{
	size_t i;

	for (i = 0; i < nprocs(a); i++)
		agt_opens(proc_at(a, i)->agt, on_still_open, &(struct opens){proc_at(a, i), list});
}

/* Takes all calls of all processes that have ended. */
static void take_all(struct agent_source *a)
{
	size_t i;

	agts_take(a->all);
	for (i = 0; i < nprocs(a); i++)
		agt_tails(proc_at(a, i)->agt);
}

/* Tells that all calls that ended before until_ns are in the queue, or which calls were open at at_ns. */
static void put_moment(struct agent_source *a, uint64_t until_ns, uint64_t at_ns, struct buf *opens)
{
	struct agent_item *i = agent_item_new(NULL, 0);

	if (!i) { /* the next moment tells the same, and more */
		buf_fini(opens);
		return;
	}
	i->until_ns = until_ns;
	i->at_ns = at_ns;
	i->opens = *opens;
	*opens = (struct buf){0};
	agent_queue_put(&a->queue, i);
}

/* Calls that were handed over while the ring was full are lost, but for those that the last look, at since_ns, took. */
static void see_loss(struct agent_source *a, uint64_t since_ns)
{
	const uint64_t lost = agts_lost(a->all);

	if (lost > a->ring_lost)
		put_lost(a, since_ns, clock_ns(CLOCK_MONOTONIC), lost - a->ring_lost);
	a->ring_lost = lost;
}

/*
 * Reads the state of all threads. A thread may be just about to record a call, so the call is neither open nor
 * recorded. Therefore calls are complete only up to the time of the previous look.
 */
static void agent_look(struct agent_source *a)
{
	uint64_t before_ns = a->looked_ns;
	struct buf open = {0};

	a->looked_ns = clock_ns(CLOCK_MONOTONIC);
	a->fresh_bytes = 0;
	if (a->calls) {
		read_opens(a, &open);
		put_moment(a, 0, a->looked_ns, &open);
	}
	take_all(a);
	see_loss(a, before_ns);
	if (before_ns && !__atomic_load_n(&a->stopped_ns, __ATOMIC_ACQUIRE))
		put_moment(a, before_ns, 0, &open);
}

/* Forked children keep a limited number of batches until they are found. Many of them take turns. */
static void look_for_births(struct agent_source *a)
{
	unsigned looked = 0;
	size_t i;

	for (i = 0; i < nprocs(a) && looked < BIRTHS_AT_ONCE; i++)
		looked += agt_births(proc_at(a, a->next_birth++ % nprocs(a))->agt);
}

/* Returns true if there is more to take at once. */
static bool agent_take(struct agent_source *a, bool tails)
{
	bool more = true;
	size_t i;

	pthread_mutex_lock(&a->lock);
	for (i = 0; i < nprocs(a); i++)
		agt_renew(proc_at(a, i)->agt);
	if (tails)
		agent_look(a);
	while (!tails && more && a->fresh_bytes < TAILS_BYTES)
		more = agts_take(a->all);
	if (!tails)
		see_loss(a, a->looked_ns);
	look_for_births(a);
	pthread_mutex_unlock(&a->lock);
	return !tails && more;
}

/*
 * Calls that end after the agent stops are neither recorded nor open, so first read the open calls, without waiting for
 * anyone.
 */
void src_agent_stop(struct src *s)
{
	struct agent_source *a = s->ctx;
	size_t i;

	__atomic_store_n(&a->stopped_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
	if (a->calls)
		read_opens(a, &a->stopped);
	for (i = 0; i < nprocs(a); i++)
		agt_activate(proc_at(a, i)->agt, false);
}

void src_agent_start(struct src *s)
{
	struct agent_source *a = s->ctx;
	size_t i;

	for (i = 0; i < nprocs(a); i++)
		agt_activate(proc_at(a, i)->agt, true);
}

void src_agent_settle(struct src *s)
{
	struct agent_source *a = s->ctx;
	uint64_t ns = a->stopped_ns;

	if (!ns)
		return;
	pthread_mutex_lock(&a->lock);
	if (a->calls)
		put_moment(a, 0, ns, &a->stopped);
	take_all(a);
	see_loss(a, a->looked_ns);
	put_moment(a, ns, 0, &(struct buf){0});
	__atomic_store_n(&a->stopped_ns, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&a->lock);
	order_all(a);
	buf_fini(&a->stopped);
}

/* ---- the source */

static void *read_agents(void *ctx)
{
	struct agent_source *a = ctx;
	struct pollfd stop = {.fd = a->stop_fd, .events = POLLIN};
	uint64_t next = 0, now;
	bool tails, more;

	do {
		now = clock_ns(CLOCK_MONOTONIC);
		tails = now >= next || a->fresh_bytes >= TAILS_BYTES;
		more = agent_take(a, tails);
		if (tails)
			next = now + TAILS_NS;
	} while (poll(&stop, 1, more ? 0 : LOOK_MS) <= 0);
	return NULL;
}

/* Ends the thread that takes the calls, then the one that has ordered all of them. */
static void end_threads(struct agent_source *a, bool both)
{
	const uint64_t one = 1;

	if (write(a->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(a->reader, NULL);
	agent_queue_end(&a->queue);
	if (both)
		pthread_join(a->orderer, NULL);
	close(a->stop_fd);
	a->stop_fd = -1;
}

static int agent_open(struct src *s, struct err *e)
{
	struct agent_source *a = s->ctx;
	int err;

	a->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (a->stop_fd < 0)
		return err_set(e, ERR_RUNTIME, -errno, "eventfd: %s", strerror(errno));
	err = thread_start(&a->reader, read_agents, a);
	if (err) {
		close(a->stop_fd);
		a->stop_fd = -1;
	} else {
		err = thread_start(&a->orderer, order, a);
		if (!err)
			return 0;
		end_threads(a, false);
	}
	return err_set(e, ERR_RUNTIME, err, "cannot start a thread: %s", strerror(-err));
}

/*
 * Reads unfinished batches before the thread ends and once more after it, because a thread of the process may finish a
 * batch in between.
 */
static void agent_flush(struct src *s)
{
	struct agent_source *a = s->ctx;
	size_t i;

	src_agent_settle(s);
	if (a->stop_fd < 0)
		return;
	end_threads(a, true);
	agent_take(a, true);
	agts_detach(a->all);
	agts_drain(a->all);
	agent_take(a, true);
	order_all(a);
	for (i = 0; i < nprocs(a); i++)
		agt_opens(proc_at(a, i)->agt, on_open, proc_at(a, i));
	order_all(a);
	agent_order_rest(a);
}

static uint64_t agent_watermark(const struct src *s)
{
	return __atomic_load_n(&((const struct agent_source *)s->ctx)->until_ns, __ATOMIC_ACQUIRE);
}

static void agent_loss(const struct src *s, struct mxbpf_loss *loss)
{
	struct agent_source *a = s->ctx;
	struct mxbpf_loss one;
	size_t i;

	pthread_mutex_lock(&a->list_lock);
	*loss = a->gone;
	for (i = 0; i < nprocs(a); i++) {
		agt_loss(proc_at(a, i)->agt, &one);
		mxbpf_loss_add(loss, &one);
	}
	pthread_mutex_unlock(&a->list_lock);
	loss->dropped += agts_lost(a->all);
	loss->attempted += __atomic_load_n(&a->twins, __ATOMIC_RELAXED);
	loss->stored = __atomic_load_n(&a->stored, __ATOMIC_RELAXED);
	loss->dropped += __atomic_load_n(&a->lost, __ATOMIC_RELAXED) + agent_queue_given_up(&a->queue);
	loss->truncated += __atomic_load_n(&a->unsized, __ATOMIC_RELAXED);
	loss->unreadable += __atomic_load_n(&a->unlisted, __ATOMIC_RELAXED);
	/* Calls that were taken while their batch was filled are not lost with the batch. */
	if (loss->stored <= loss->attempted && loss->dropped > loss->attempted - loss->stored)
		loss->dropped = loss->attempted - loss->stored;
}

static void proc_free(struct proc *p)
{
	hash_fini(&p->names);
	hash_fini(&p->lists);
	hash_fini(&p->roles);
	free(p);
}

int src_agent_join(struct src *s, struct agt *agt)
{
	struct agent_source *a = s->ctx;
	struct proc *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	*p = (struct proc){.of = a, .agt = agt, .tgid = (uint32_t)agt_pid(agt)};
	agt_receive(agt, on_calls, p);
	pthread_mutex_lock(&a->lock);
	pthread_mutex_lock(&a->list_lock);
	err = buf_put(&a->procs, &p, sizeof(p));
	pthread_mutex_unlock(&a->list_lock);
	pthread_mutex_unlock(&a->lock);
	if (err)
		free(p);
	return err;
}

/* With the lock: takes a process out of the list, and keeps its loss. */
static struct proc *agent_forget(struct agent_source *a, size_t i)
{
	struct proc *p = proc_at(a, i);
	struct mxbpf_loss loss;

	agt_receive(p->agt, NULL, NULL);
	pthread_mutex_lock(&a->list_lock);
	agt_loss(p->agt, &loss);
	mxbpf_loss_add(&a->gone, &loss);
	a->procs.len -= sizeof(p);
	memmove(a->procs.data + i * sizeof(p), a->procs.data + (i + 1) * sizeof(p), a->procs.len - i * sizeof(p));
	pthread_mutex_unlock(&a->list_lock);
	return p;
}

void src_agent_leave(struct src *s, struct agt *agt)
{
	struct agent_source *a = s->ctx;
	struct proc *p = NULL;
	size_t i;

	src_agent_settle(s); /* it may still need the process */
	pthread_mutex_lock(&a->lock);
	agt_ended(agt);
	while (agts_take(a->all))
		;
	agt_tails(agt);
	for (i = 0; i < nprocs(a) && proc_at(a, i)->agt != agt; i++)
		;
	if (i < nprocs(a)) {
		agt_opens(agt, on_twin, proc_at(a, i));
		p = agent_forget(a, i);
	}
	pthread_mutex_unlock(&a->lock);
	if (!p)
		return;
	order_all(a); /* its calls are in the queue */
	proc_free(p);
}

static void agent_close(struct src *s)
{
	struct agent_source *a = s->ctx;
	size_t i;

	agent_queue_fini(&a->queue);
	for (i = 0; i < nprocs(a); i++)
		proc_free(proc_at(a, i));
	buf_fini(&a->procs);
	hash_fini(&a->blocks);
	buf_fini(&a->spans);
	buf_fini(&a->order);
	buf_fini(&a->spare);
	buf_fini(&a->moments);
	buf_fini(&a->texts);
	buf_fini(&a->recs);
	buf_fini(&a->stopped);
	pthread_mutex_destroy(&a->lock);
	pthread_mutex_destroy(&a->list_lock);
	pthread_mutex_destroy(&a->ordering);
	pthread_mutex_destroy(&a->naming);
	free(a);
}

static const struct src_ops ops = {.open = agent_open,
				   .flush = agent_flush,
				   .loss = agent_loss,
				   .watermark = agent_watermark,
				   .close = agent_close,
				   .late = true};

struct src_agent_counts src_agent_counts(const struct src *s)
{
	const struct src_agent_counts *c = &((const struct agent_source *)s->ctx)->counts;

	return (struct src_agent_counts){__atomic_load_n(&c->memory, __ATOMIC_RELAXED),
					 __atomic_load_n(&c->args, __ATOMIC_RELAXED),
					 __atomic_load_n(&c->stacks, __ATOMIC_RELAXED)};
}

struct src *src_add_agent(struct src_hub *h, struct agts *all, const struct src_agent_opts *o)
{
	struct agent_source *a = calloc(1, sizeof(*a));
	struct src *s = a ? src_add(h, &ops, "agent", a) : NULL;

	if (!s) {
		free(a);
		return NULL;
	}
	a->all = all;
	a->calls = o->calls;
	a->owners = o->owners;
	a->stacks = o->stacks;
	a->list_id = o->list_id;
	a->list_ctx = o->ctx;
	a->role = o->role;
	pthread_mutex_init(&a->lock, NULL);
	pthread_mutex_init(&a->list_lock, NULL);
	pthread_mutex_init(&a->ordering, NULL);
	pthread_mutex_init(&a->naming, NULL);
	agent_queue_init(&a->queue, is_kept);
	a->src = s;
	a->stop_fd = -1;
	return s;
}
