// SPDX-License-Identifier: Apache-2.0
/* Turns the calls of agents into records in the order of time, and delivers them. Names come before their first span.
 */
#include "source/agent_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/timed.h"
#include "mxbpf_range.h"
#include "records/kinds.h"

#define SPANS_BYTES   (30u << 20) /* of calls that wait for their turn; more are lost */
#define MOMENTS_BYTES (32u << 20) /* of memory that waits */
#define BLOCKS_MAX    (1u << 18)  /* live blocks whose size is known */
#define AT_ONCE_BYTES (1u << 20)  /* of records that are delivered at once: folding them takes several times as much */

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

enum src_agent_role agent_role(struct proc *p, uint32_t name)
{
	enum src_agent_role role = SRC_AGENT_ENDS;
	const uint64_t *known;

	pthread_mutex_lock(&p->of->naming);
	known = hash_get(&p->roles, name, 0);
	if (known)
		role = (enum src_agent_role) * known;
	pthread_mutex_unlock(&p->of->naming);
	return role;
}

static void learn_role(struct proc *p, uint32_t name, const char *text)
{
	uint64_t *at;

	pthread_mutex_lock(&p->of->naming);
	at = hash_put(&p->roles, name, 0);
	if (at)
		*at = p->of->role ? p->of->role(text) : SRC_AGENT_PLAIN;
	pthread_mutex_unlock(&p->of->naming);
}

/* Returns the id that a probe would give the same text. */
static uint64_t name_id(struct proc *p, uint32_t name)
{
	uint64_t *known = name ? hash_put(&p->names, name, 0) : NULL, id;
	char text[MXBPF_AGENT_NAME_BYTES];

	if (!known || *known)
		return known ? *known : 0;
	agt_name(p->agt, name, text);
	learn_role(p, name, text);
	id = *text ? plan_hash(text) : MXBPF_NAME_UNNAMED;
	if (*text && kind_put_name(&p->of->texts, MXBPF_NAME_SPAN, p->tgid, id, text, strlen(text)))
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

static void agent_order_count(struct agent_source *a, unsigned kept, unsigned lost)
{
	__atomic_fetch_add(&a->stored, kept, __ATOMIC_RELAXED);
	__atomic_fetch_add(&a->lost, lost, __ATOMIC_RELAXED);
}

/* A moment that waits for its turn. */
static void add_moment(struct agent_source *a, const struct moment *m)
{
	const bool kept = a->moments.len < MOMENTS_BYTES && !buf_put(&a->moments, m, sizeof(*m));

	agent_order_count(a, kept, !kept);
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
	add_moment(a, &m);
}

static void on_range(struct proc *p, const struct mxbpf_agent_call *c)
{
	struct agent_source *a = p->of;
	const uint64_t id = name_id(p, c->name);
	const struct moment m = {
		.ns = c->start_ns, .range_id = id ? id : MXBPF_NAME_UNNAMED, .tid = c->tid, .tgid = p->tgid};

	add_moment(a, &m);
}

/* Appends the record of a call to those that wait for their turn, as short as it can be. 0 or -ENOMEM. */
static int agent_order_add_call(struct proc *p, const struct mxbpf_agent_call *c)
{
	struct agent_source *a = p->of;
	const uint64_t args_id = list_id(p, c->args, MXBPF_AGENT_LIST_ARGS);
	const uint64_t stack_id = list_id(p, c->stack, MXBPF_AGENT_LIST_STACK);
	const bool details = c->seq || c->origin || args_id || stack_id;
	const uint16_t bytes = details ? MXBPF_SPAN_BYTES_DETAILS : MXBPF_SPAN_BYTES_MIN;
	struct mxbpf_span *s = a->spans.len < SPANS_BYTES ? buf_add(&a->spans, bytes) : NULL;

	if (!s)
		return -ENOMEM;
	memset(s, 0, bytes);
	s->h = (struct mxbpf_rec){.kind = MXBPF_SPAN, .size = bytes, .tgid = p->tgid, .ts_ns = c->start_ns};
	s->dur_ns = c->dur_ns ? c->dur_ns : 1;
	s->self_ns = c->self_ns;
	s->name_id = name_id(p, c->name);
	s->tid = c->tid;
	s->end_tid = c->end_tid;
	s->cls = MXBPF_CLASS_OPERATOR;
	s->flags = (uint8_t)span_flags(c->scope, c->flags);
	if (details) {
		s->args_id = args_id;
		s->stack_id = stack_id;
		s->seq = c->seq;
		s->origin = c->origin;
	}
	if (args_id)
		__atomic_fetch_add(&a->counts.args, 1, __ATOMIC_RELAXED);
	if (stack_id)
		__atomic_fetch_add(&a->counts.stacks, 1, __ATOMIC_RELAXED);
	a->nspans++;
	return a->calls ? calls_ended(a->calls, s) : 0;
}

static void take_calls(struct proc *p, const struct mxbpf_agent_call *calls, unsigned n)
{
	unsigned i, kept = 0, lost = 0;

	for (i = 0; i < n; i++) {
		if (calls[i].scope == MXBPF_AGENT_MEMORY)
			on_memory(p, &calls[i]);
		else if (calls[i].scope == MXBPF_AGENT_RANGE)
			on_range(p, &calls[i]);
		else if (agent_order_add_call(p, &calls[i]))
			lost++;
		else
			kept++;
	}
	agent_order_count(p->of, kept, lost);
}

/* ---- delivery in the order of time */

static uint64_t end_of(const struct mxbpf_span *s)
{
	return s->h.ts_ns + s->dur_ns;
}

static int agent_order_by_time(const void *x, const void *y)
{
	const struct moment *a = x, *b = y;

	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/* Moments are mostly sorted already, as those of one thread are. */
static void sort_moments(struct buf *b)
{
	const size_t n = buf_count(b, struct moment);
	const struct moment *m = (const void *)b->data;
	size_t i = 1;

	while (i < n && m[i - 1].ns <= m[i].ns)
		i++;
	if (i < n)
		qsort(b->data, n, sizeof(*m), agent_order_by_time);
}

/* Returns 0, the number of calls that are left. */
static size_t lose_calls(struct agent_source *a)
{
	__atomic_fetch_add(&a->lost, a->nspans, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&a->stored, a->nspans, __ATOMIC_RELAXED);
	a->spans.len = a->nspans = 0;
	return 0;
}

/*
 * Makes the order in which the calls until until_ns ended. Of calls with the same end, an inner one comes first,
 * because it came first. Returns their number. Without memory all calls are lost.
 */
static size_t order_calls(struct agent_source *a, uint64_t until_ns)
{
	const struct mxbpf_rec *r;
	size_t pos = 0, due = 0;
	uint64_t end_ns;
	struct timed *t;

	a->order.len = 0;
	t = a->nspans ? buf_add(&a->order, a->nspans * sizeof(*t)) : NULL;
	if (!t)
		return lose_calls(a);
	while ((r = kind_next(a->spans.data, a->spans.len, &pos))) {
		end_ns = end_of((const void *)r);
		if (end_ns <= until_ns)
			t[due++] = (struct timed){end_ns, (uintptr_t)r};
	}
	a->order.len = due * sizeof(*t);
	return timed_sort(&a->order, &a->spare) ? lose_calls(a) : due;
}

/* Keeps the calls that ended after until_ns for later. Mostly these came last, one behind the other. */
static void keep_calls(struct agent_source *a, uint64_t until_ns)
{
	size_t pos = 0, kept = 0, run = 0, at;
	const struct mxbpf_rec *r;

	a->nspans = 0;
	do {
		at = pos;
		r = kind_next(a->spans.data, a->spans.len, &pos);
		if (r && end_of((const void *)r) > until_ns) {
			a->nspans++;
			continue;
		}
		if (at > run)
			memmove(a->spans.data + kept, a->spans.data + run, at - run);
		kept += at - run;
		run = pos;
	} while (r);
	a->spans.len = kept;
}

static void keep_moments(struct agent_source *a, size_t from)
{
	if (!from)
		return;
	a->moments.len -= from * sizeof(struct moment);
	memmove(a->moments.data, a->moments.data + from * sizeof(struct moment), a->moments.len);
}

static void agent_order_put(struct agent_source *a, const void *rec, size_t bytes)
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

	agent_order_put(a, &r, sizeof(r));
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
	agent_order_put(a, &r, r.h.size);
}

static void deliver(struct agent_source *a)
{
	if (a->texts.len)
		src_deliver_names(a->src, a->texts.data, a->texts.len);
	src_deliver(a->src, a->recs.data, a->recs.len); /* even nothing: others may have waited for this time */
	a->texts.len = a->recs.len = 0;
}

static void deliver_some(struct agent_source *a)
{
	if (a->recs.len >= AT_ONCE_BYTES)
		deliver(a);
}

/*
 * Delivers the calls that ended before until_ns, and memory of that time, sorted over all threads. Threads fill their
 * batches at different speeds, so a call of one thread may arrive after later calls of another.
 */
static void put_records(struct agent_source *a, uint64_t until_ns)
{
	const size_t nmoments = buf_count(&a->moments, struct moment), n = order_calls(a, until_ns);
	const struct timed *t = (const void *)a->order.data;
	const struct moment *m;
	const struct mxbpf_span *s;
	size_t i, k = 0;

	sort_moments(&a->moments);
	m = (const void *)a->moments.data;
	for (i = 0; i < n; i++) {
		s = (const void *)(uintptr_t)t[i].what;
		for (; k < nmoments && m[k].ns <= t[i].ns; deliver_some(a))
			put_moment(a, &m[k++]);
		agent_order_put(a, s, s->h.size);
		deliver_some(a);
	}
	for (; k < nmoments && m[k].ns <= until_ns; deliver_some(a))
		put_moment(a, &m[k++]);
	if (n)
		keep_calls(a, until_ns);
	keep_moments(a, k);
}

/* ---- open calls, and what is lost */

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

void agent_order_open(struct proc *p, const struct mxbpf_agent_open *o, uint32_t tid, unsigned level, uint64_t now)
{
	const struct mxbpf_open r = open_call(p, o, tid, level, now);

	buf_put(&p->of->recs, &r, sizeof(r));
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

/* It is passed on at once, before what ended in that time. */
static void tell_lost(struct agent_source *a, const struct agent_item *i)
{
	struct mxbpf_lost r = {
		.h = {.kind = MXBPF_LOST, .size = sizeof(r), .ts_ns = i->lost_from_ns},
		.to_ns = i->lost_to_ns,
		.lost = i->lost,
		.flags = i->ends_lost ? MXBPF_LOST_ENDS : 0,
	};

	src_deliver_names(a->src, &r, sizeof(r));
}

void agent_order(struct agent_source *a, const struct agent_item *i)
{
	if (i->lost_to_ns)
		tell_lost(a, i);
	if (i->at_ns && a->calls)
		learn_open(a, &i->opens, i->at_ns);
	if (i->n)
		take_calls(i->proc, i->calls, i->n);
	if (i->until_ns <= a->until_ns)
		return;
	if (a->calls)
		calls_known(a->calls, i->until_ns);
	put_records(a, i->until_ns);
	__atomic_store_n(&a->until_ns, i->until_ns, __ATOMIC_RELEASE);
	deliver(a);
}

void agent_order_rest(struct agent_source *a)
{
	put_records(a, UINT64_MAX);
	__atomic_store_n(&a->until_ns, UINT64_MAX, __ATOMIC_RELEASE);
	deliver(a);
}
