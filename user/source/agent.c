// SPDX-License-Identifier: Apache-2.0
/* Turns calls that the agents of a session record into spans. Each name comes before its first span. */
#include "source/agent.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/thread.h"
#include "mxbpf_range.h"
#include "records/kinds.h"

#define LOOK_MS	       20	    /* interval between two reads of full batches */
#define TAILS_NS       200000000ull /* interval between two reads of batches that threads are still filling */
#define BIRTHS_AT_ONCE 64	    /* forked children that are looked at in one interval */
#define SPANS_BYTES                                                                                                    \
	(30u << 20) /* of calls that wait for their turn; more are lost. Folding them takes five times as much */
#define MOMENTS_BYTES (32u << 20) /* of memory that waits */
#define BLOCKS_MAX    (1u << 18)  /* live blocks whose size is known */
/* What the agent knows of a span: less to copy and to sort. */
#define CALL_BYTES MXBPF_SPAN_BYTES_DETAILS

/* A process with the agent. */
struct proc {
	struct agent_source *of;
	struct agt *agt; /* borrowed */
	uint32_t tgid;
	struct hash names; /* the agent's number of a name -> its id */
	struct hash lists; /* (place, kind) of a list of the agent -> 1 + its id */
};

/*
 * The main thread adds and removes processes, with both locks, and reads the list without one. The lock of the list is
 * taken last, and for a moment only.
 */
struct agent_source {
	struct agts *all; /* borrowed */
	pthread_mutex_t list_lock;
	struct buf procs;	/* struct proc *, owned */
	size_t next_birth;	/* used with the lock of the source: where to look for a birth next */
	struct mxbpf_loss gone; /* with the list's lock: loss of processes that were removed */
	bool owners;		/* records of memory have room for their owner */
	bool stacks;		/* and for their stack */
	uint64_t (*list_id)(void *ctx, uint32_t tgid, unsigned kind, const uint64_t *list, uint32_t n);
	void *list_ctx;
	uint64_t list[MXBPF_AGENT_LIST_WORDS];
	struct src *src;
	pthread_t thread;
	int stop_fd;	       /* readable: the thread must end; -1: the thread does not run */
	struct calls *calls;   /* finds the call of records from other sources; borrowed, NULL: not needed */
	pthread_mutex_t lock;  /* protects the members below that are not atomic */
	struct buf spans;      /* CALL_BYTES of struct mxbpf_span each, unsorted: calls not yet delivered */
	struct buf moments;    /* struct moment, unsorted: memory not yet delivered */
	struct hash blocks;    /* address of a live block, its process and device -> its bytes */
	struct buf texts;      /* names of one delivery */
	struct buf recs;       /* other records of one delivery */
	uint64_t looked_ns;    /* time of the last read of open calls and unfinished batches */
	uint64_t stopped_ns;   /* atomic: time of src_agent_stop() while src_agent_settle() is still due; 0: not due */
	struct buf stopped;    /* used without the lock: struct still_open, calls that were open at stopped_ns */
	uint64_t stored, lost; /* atomic; lost counts spans for which there was no memory */
	uint64_t unsized;      /* atomic: blocks whose size was not kept; their frees have none */
	uint64_t unlisted;     /* atomic: lists that could not be read */
	struct src_agent_counts counts; /* atomic */
	uint64_t twins;			/* atomic: copies of open calls, which the agent did not record itself */
	uint64_t until_ns;		/* atomic: all calls that ended before were delivered */
};

/* Memory that is allocated, or freed: then bytes may be 0. Or an annotation that begins: then only its name is known.
 */
struct moment {
	uint64_t ns, addr, bytes, stack_id;
	uint64_t range_id;	  /* name of the annotation; 0: memory */
	uint64_t total, reserved; /* as the allocator counts them after this; 0: it does not reserve */
	uint32_t tid, tgid, device;
	bool freed;
};

/* ---- records */

static int put_name(struct agent_source *a, uint32_t tgid, uint64_t id, const char *text, uint32_t len)
{
	const size_t pad = -len & 7;
	const uint64_t zeros = 0;
	const struct mxbpf_name r = {.h = {.kind = MXBPF_NAME, .size = (uint16_t)(sizeof(r) + len + pad), .tgid = tgid},
				     .id = id,
				     .len = len,
				     .kind = MXBPF_NAME_SPAN};

	if (buf_put(&a->texts, &r, sizeof(r)) || buf_put(&a->texts, text, len))
		return -ENOMEM;
	return buf_put(&a->texts, &zeros, pad);
}

/* Returns the id that a probe would give the same text. */
static uint64_t name_id(struct proc *p, uint32_t name)
{
	uint64_t *known = name ? hash_put(&p->names, name, 0) : NULL, id;
	char text[MXBPF_AGENT_NAME_BYTES];

	if (!known || *known)
		return known ? *known : 0;
	agt_name(p->agt, name, text);
	id = *text ? plan_hash(text) : MXBPF_NAME_UNNAMED;
	if (*text && put_name(p->of, p->tgid, id, text, (uint32_t)strlen(text)))
		return 0;
	*known = id;
	return id;
}

/* Returns the id of the list at a place, or 0 if there is none. */
static uint64_t list_id(struct proc *p, uint32_t place, enum mxbpf_agent_list kind)
{
	struct agent_source *a = p->of;
	uint64_t *known, id = 0;
	uint32_t n;

	if (!place || !a->list_id)
		return 0;
	known = hash_put(&p->lists, place, kind);
	if (known && *known)
		return *known - 1;
	if (!agt_list(p->agt, place, kind, a->list, &n))
		id = a->list_id(a->list_ctx, p->tgid, kind, a->list, n);
	if (!id)
		__atomic_fetch_add(&a->unlisted, 1, __ATOMIC_RELAXED);
	if (known)
		*known = 1 + id;
	return id;
}

static unsigned span_flags(unsigned scope, unsigned flags)
{
	return (scope == MXBPF_AGENT_USER ? MXBPF_SPAN_USER : 0) |
	       (scope == MXBPF_AGENT_BACKWARD ? MXBPF_SPAN_BACKWARD : 0) |
	       (flags & MXBPF_AGENT_CALL_ASYNC ? MXBPF_SPAN_ASYNC : 0) |
	       (flags & MXBPF_AGENT_CALL_SEQ ? MXBPF_SPAN_SEQ : 0);
}

static void count(struct agent_source *a, bool kept)
{
	__atomic_fetch_add(kept ? &a->stored : &a->lost, 1, __ATOMIC_RELAXED);
}

static void on_memory(struct proc *p, const struct mxbpf_agent_call *c)
{
	struct agent_source *a = p->of;
	const struct moment m = {.ns = c->start_ns,
				 .addr = c->seq,
				 .bytes = c->origin,
				 .total = c->self_ns,
				 .reserved = c->dur_ns,
				 .stack_id = list_id(p, c->stack, MXBPF_AGENT_LIST_STACK),
				 .tid = c->tid,
				 .tgid = p->tgid,
				 .device = c->name,
				 .freed = c->flags & MXBPF_AGENT_CALL_FREED};

	__atomic_fetch_add(&a->counts.memory, 1, __ATOMIC_RELAXED);
	count(a, a->moments.len < MOMENTS_BYTES && !buf_put(&a->moments, &m, sizeof(m)));
}

static void on_range(struct proc *p, const struct mxbpf_agent_call *c)
{
	struct agent_source *a = p->of;
	const uint64_t id = name_id(p, c->name);
	const struct moment m = {
		.ns = c->start_ns, .range_id = id ? id : MXBPF_NAME_UNNAMED, .tid = c->tid, .tgid = p->tgid};

	count(a, a->moments.len < MOMENTS_BYTES && !buf_put(&a->moments, &m, sizeof(m)));
}

static void on_calls(void *ctx, const struct mxbpf_agent_call *calls, unsigned n)
{
	struct proc *p = ctx;
	struct agent_source *a = p->of;
	unsigned i;

	for (i = 0; i < n; i++) {
		const struct mxbpf_agent_call *c = &calls[i];
		struct mxbpf_span s;

		if (c->scope == MXBPF_AGENT_MEMORY) {
			on_memory(p, c);
			continue;
		}
		if (c->scope == MXBPF_AGENT_RANGE) {
			on_range(p, c);
			continue;
		}
		s = (struct mxbpf_span){
			.h = {.kind = MXBPF_SPAN,
			      .size = MXBPF_SPAN_BYTES_PLAIN,
			      .tgid = p->tgid,
			      .ts_ns = c->start_ns},
			.dur_ns = c->dur_ns ? c->dur_ns : 1,
			.self_ns = c->self_ns,
			.name_id = name_id(p, c->name),
			.tid = c->tid,
			.end_tid = c->end_tid,
			.cls = MXBPF_CLASS_OPERATOR,
			.flags = (uint8_t)span_flags(c->scope, c->flags),
			.args_id = list_id(p, c->args, MXBPF_AGENT_LIST_ARGS),
			.stack_id = list_id(p, c->stack, MXBPF_AGENT_LIST_STACK),
			.seq = c->seq,
			.origin = c->origin,
		};

		__atomic_fetch_add(&a->counts.args, s.args_id != 0, __ATOMIC_RELAXED);
		__atomic_fetch_add(&a->counts.stacks, s.stack_id != 0, __ATOMIC_RELAXED);
		if (s.seq || s.origin || s.args_id || s.stack_id)
			s.h.size = MXBPF_SPAN_BYTES_DETAILS;
		count(a, a->spans.len < SPANS_BYTES && !buf_put(&a->spans, &s, CALL_BYTES) &&
				 !(a->calls && calls_ended(a->calls, &s)));
	}
}

/* ---- delivery in the order of time */

static uint64_t end_of(const struct mxbpf_span *s)
{
	return s->h.ts_ns + s->dur_ns;
}

/* Sorts by end. An inner call comes before the call around it. */
static int by_end(const void *x, const void *y)
{
	const struct mxbpf_span *a = x, *b = y;

	if (end_of(a) != end_of(b))
		return end_of(a) < end_of(b) ? -1 : 1;
	return a->h.ts_ns != b->h.ts_ns ? (a->h.ts_ns > b->h.ts_ns ? -1 : 1) : 0;
}

static int by_time(const void *x, const void *y)
{
	const struct moment *a = x, *b = y;

	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/* Sorts items that are mostly sorted already, as those of one thread are. */
static void sort(struct buf *b, size_t bytes, int (*compare)(const void *, const void *))
{
	const size_t n = b->len / bytes;
	size_t i = 1;

	while (i < n && compare(b->data + (i - 1) * bytes, b->data + i * bytes) <= 0)
		i++;
	if (i < n)
		qsort(b->data, n, bytes, compare);
}

/* Keeps the rest for later. */
static void take_first(struct buf *b, size_t bytes)
{
	if (!bytes)
		return;
	b->len -= bytes;
	memmove(b->data, b->data + bytes, b->len);
}

static void put(struct agent_source *a, const void *rec, size_t bytes)
{
	if (!buf_put(&a->recs, rec, bytes))
		return;
	__atomic_fetch_add(&a->lost, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&a->stored, 1, __ATOMIC_RELAXED);
}

static void put_range(struct agent_source *a, const struct moment *m)
{
	const struct mxbpf_range r = {
		.h = {.kind = MXBPF_RANGE, .size = sizeof(r), .tgid = m->tgid, .ts_ns = m->ns},
		.name_id = m->range_id,
		.tid = m->tid,
		.cls = MXBPF_CLASS_OPERATOR,
		.depth = MXBPF_RANGE_APART,
	};

	put(a, &r, sizeof(r));
}

/*
 * Delivers memory, and keeps the size of a block until it is freed. A block that was allocated before the window has no
 * known size; then its free is delivered only if somebody asks who owned it.
 */
static void put_moment(struct agent_source *a, const struct moment *m)
{
	struct mxbpf_alloc r = {
		.h = {.kind = MXBPF_ALLOC,
		      .size = a->owners ? MXBPF_ALLOC_BYTES_OWNER : MXBPF_ALLOC_BYTES_PLAIN,
		      .tgid = m->tgid,
		      .ts_ns = m->ns},
		.bytes = (int64_t)m->bytes,
		.tid = m->tid,
		.device = m->device,
		.addr = m->addr,
		.pool_bytes = m->reserved,
		.stack_id = m->stack_id,
		.total_bytes = m->total,
	};
	const uint64_t of = (uint64_t)m->device << 32 | m->tgid;
	uint64_t *known, bytes = m->bytes;

	if (m->range_id) {
		put_range(a, m);
		return;
	}
	if (a->owners && m->reserved)
		r.h.size = sizeof(r);
	else if (a->stacks)
		r.h.size = MXBPF_ALLOC_BYTES_STACK;
	if (!m->freed) {
		known = a->blocks.len < BLOCKS_MAX ? hash_put(&a->blocks, m->addr, of)
						   : hash_get(&a->blocks, m->addr, of);
		if (known)
			*known = m->bytes;
		else
			__atomic_fetch_add(&a->unsized, 1, __ATOMIC_RELAXED);
	} else if (hash_del(&a->blocks, m->addr, of, &bytes) || bytes || a->owners) {
		r.bytes = -(int64_t)bytes;
		r.flags = MXBPF_ALLOC_FREED;
	} else {
		return;
	}
	put(a, &r, r.h.size);
}

/*
 * Delivers the calls that ended before until_ns, and memory of that time, sorted over all threads. Threads fill their
 * batches at different speeds, so a call of one thread may arrive after later calls of another.
 */
static void put_records(struct agent_source *a, uint64_t until_ns)
{
	const struct moment *m = (void *)a->moments.data;
	const size_t n = a->spans.len / CALL_BYTES, nmoments = buf_count(&a->moments, struct moment);
	const struct mxbpf_span *s;
	size_t i, k = 0;

	sort(&a->spans, CALL_BYTES, by_end);
	sort(&a->moments, sizeof(*m), by_time);
	for (i = 0; i < n; i++) {
		s = (const void *)(a->spans.data + i * CALL_BYTES);
		if (end_of(s) > until_ns)
			break;
		while (k < nmoments && m[k].ns <= end_of(s))
			put_moment(a, &m[k++]);
		put(a, s, s->h.size);
	}
	while (k < nmoments && m[k].ns <= until_ns)
		put_moment(a, &m[k++]);
	take_first(&a->spans, i * CALL_BYTES);
	take_first(&a->moments, k * sizeof(*m));
}

static struct mxbpf_open open_call(struct proc *p, const struct mxbpf_agent_open *o, uint32_t tid, unsigned level,
				   uint64_t now)
{
	return (struct mxbpf_open){
		.h = {.kind = MXBPF_OPEN, .size = sizeof(struct mxbpf_open), .tgid = p->tgid, .ts_ns = o->start_ns},
		.open_ns = now > o->start_ns ? now - o->start_ns : 0,
		.name_id = name_id(p, o->name),
		.tid = tid,
		.syscall = -1,
		.cls = MXBPF_CLASS_OPERATOR,
		.flags = (uint8_t)span_flags(o->scope, 0),
		.level = (uint8_t)(level < UINT8_MAX ? level : UINT8_MAX),
		.args_id = list_id(p, o->args, MXBPF_AGENT_LIST_ARGS),
		.stack_id = list_id(p, o->stack, MXBPF_AGENT_LIST_STACK),
	};
}

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
	struct proc *p = ctx;
	struct mxbpf_open r = open_call(p, o, tid, level, clock_ns(CLOCK_MONOTONIC));

	buf_put(&p->of->recs, &r, sizeof(r));
	on_twin(p, o, tid, level, outlived);
}

/* A call that was open at one moment. */
struct still_open {
	struct proc *of;
	struct mxbpf_agent_open call;
	uint32_t tid;
	unsigned level;
};

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

static void learn_open(struct agent_source *a, const struct buf *open, uint64_t at_ns)
{
	const struct still_open *o = buf_at(open, const struct still_open, 0);
	size_t n = buf_count(open, struct still_open), i;
	struct mxbpf_open r;

	for (i = 0; i < n; i++) {
		if (o[i].call.start_ns >= at_ns)
			continue;
		r = open_call(o[i].of, &o[i].call, o[i].tid, o[i].level, at_ns);
		if (calls_open(a->calls, &r))
			__atomic_fetch_add(&a->lost, 1, __ATOMIC_RELAXED);
	}
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

static void deliver(struct agent_source *a)
{
	if (a->texts.len)
		src_deliver_names(a->src, a->texts.data, a->texts.len);
	if (a->recs.len)
		src_deliver(a->src, a->recs.data, a->recs.len);
	a->texts.len = a->recs.len = 0;
}

/* Tells other sources that all calls that ended before until_ns have arrived, and delivers them. */
static void known(struct agent_source *a, uint64_t until_ns)
{
	if (until_ns <= a->until_ns)
		return;
	if (a->calls)
		calls_known(a->calls, until_ns);
	put_records(a, until_ns);
	__atomic_store_n(&a->until_ns, until_ns, __ATOMIC_RELEASE);
}

/*
 * Reads the state of all threads. A thread may be just about to record a call, so the call is neither open nor
 * recorded. Therefore calls are complete only up to the time of the previous look.
 */
static void look(struct agent_source *a)
{
	uint64_t before_ns = a->looked_ns;
	struct buf open = {0};

	a->looked_ns = clock_ns(CLOCK_MONOTONIC);
	if (a->calls) {
		read_opens(a, &open);
		learn_open(a, &open, a->looked_ns);
	}
	take_all(a);
	if (!__atomic_load_n(&a->stopped_ns, __ATOMIC_ACQUIRE))
		known(a, before_ns);
	buf_fini(&open);
}

/* Forked children keep a limited number of batches until they are found. Many of them take turns. */
static void look_for_births(struct agent_source *a)
{
	unsigned looked = 0;
	size_t i;

	for (i = 0; i < nprocs(a) && looked < BIRTHS_AT_ONCE; i++)
		looked += agt_births(proc_at(a, a->next_birth++ % nprocs(a))->agt);
}

static void take(struct agent_source *a, bool tails)
{
	size_t i;

	pthread_mutex_lock(&a->lock);
	for (i = 0; i < nprocs(a); i++)
		agt_renew(proc_at(a, i)->agt);
	if (tails)
		look(a);
	else
		agts_take(a->all);
	look_for_births(a);
	deliver(a);
	pthread_mutex_unlock(&a->lock);
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
		learn_open(a, &a->stopped, ns);
	take_all(a);
	known(a, ns);
	__atomic_store_n(&a->stopped_ns, 0, __ATOMIC_RELEASE);
	deliver(a);
	pthread_mutex_unlock(&a->lock);
	buf_fini(&a->stopped);
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

static int agent_open(struct src *s, struct err *e)
{
	struct agent_source *a = s->ctx;
	int err;

	a->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (a->stop_fd < 0)
		return err_set(e, ERR_RUNTIME, -errno, "eventfd: %s", strerror(errno));
	err = thread_start(&a->thread, run, a);
	if (!err)
		return 0;
	close(a->stop_fd);
	a->stop_fd = -1;
	return err_set(e, ERR_RUNTIME, err, "cannot start a thread: %s", strerror(-err));
}

/*
 * Reads unfinished batches before the thread ends and once more after it, because a thread of the process may finish a
 * batch in between.
 */
static void agent_flush(struct src *s)
{
	struct agent_source *a = s->ctx;
	uint64_t one = 1;
	size_t i;

	src_agent_settle(s);
	if (a->stop_fd < 0)
		return;
	if (write(a->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(a->thread, NULL);
	close(a->stop_fd);
	a->stop_fd = -1;
	take(a, true);
	agts_detach(a->all);
	agts_drain(a->all);
	take(a, true);
	for (i = 0; i < nprocs(a); i++)
		agt_opens(proc_at(a, i)->agt, on_open, proc_at(a, i));
	put_records(a, UINT64_MAX);
	__atomic_store_n(&a->until_ns, UINT64_MAX, __ATOMIC_RELEASE);
	deliver(a);
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
	loss->dropped += __atomic_load_n(&a->lost, __ATOMIC_RELAXED);
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
static void forget(struct agent_source *a, size_t i)
{
	struct proc *p = proc_at(a, i);
	struct mxbpf_loss loss;

	pthread_mutex_lock(&a->list_lock);
	agt_loss(p->agt, &loss);
	mxbpf_loss_add(&a->gone, &loss);
	a->procs.len -= sizeof(p);
	memmove(a->procs.data + i * sizeof(p), a->procs.data + (i + 1) * sizeof(p), a->procs.len - i * sizeof(p));
	pthread_mutex_unlock(&a->list_lock);
	proc_free(p);
}

void src_agent_leave(struct src *s, struct agt *agt)
{
	struct agent_source *a = s->ctx;
	size_t i;

	src_agent_settle(s); /* it may still need the process */
	pthread_mutex_lock(&a->lock);
	agt_ended(agt);
	agts_take(a->all);
	agt_tails(agt);
	for (i = 0; i < nprocs(a) && proc_at(a, i)->agt != agt; i++)
		;
	if (i < nprocs(a)) {
		agt_opens(agt, on_twin, proc_at(a, i));
		forget(a, i);
	}
	pthread_mutex_unlock(&a->lock);
}

static void agent_close(struct src *s)
{
	struct agent_source *a = s->ctx;
	size_t i;

	for (i = 0; i < nprocs(a); i++)
		proc_free(proc_at(a, i));
	buf_fini(&a->procs);
	hash_fini(&a->blocks);
	buf_fini(&a->spans);
	buf_fini(&a->moments);
	buf_fini(&a->texts);
	buf_fini(&a->recs);
	buf_fini(&a->stopped);
	pthread_mutex_destroy(&a->lock);
	pthread_mutex_destroy(&a->list_lock);
	free(a);
}

static const struct src_ops ops = {.open = agent_open,
				   .flush = agent_flush,
				   .loss = agent_loss,
				   .watermark = agent_watermark,
				   .close = agent_close};

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
	pthread_mutex_init(&a->lock, NULL);
	pthread_mutex_init(&a->list_lock, NULL);
	a->src = s;
	a->stop_fd = -1;
	return s;
}
