// SPDX-License-Identifier: Apache-2.0
#include "source/calls.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "mxbpf_sched.h"
#include "mxbpf_omp.h"

#define OPEN_KEPT_NS 8000000000ull /* how long open calls are kept, in ns; longer than the hub holds a record back */

/* A call that has ended. The calls of a thread are numbered from 1 in the order of their ends. */
struct ended {
	uint64_t start_ns, end_ns, name_id;
	uint64_t link; /* higher: the call around it; lower: the last call before it without one; 0: none */
};

/* A call that was open at least until until_ns, or one that ended before a call nested in it. */
struct open {
	uint64_t start_ns, until_ns, name_id;
};

struct thread {
	uint32_t tid, tgid;
	uint64_t first; /* number of the first call that is kept */
	size_t skipped; /* items of `ended` before that call */
	struct buf ended, open;
};

struct calls {
	pthread_mutex_t lock; /* protects all members below */
	uint64_t lenders[MXBPF_LENDERS_MAX];
	struct hash threads; /* (tid, tgid) -> struct thread * */
	uint64_t known_ns;
	uint64_t lost;
};

struct calls *calls_new(const uint64_t lenders[MXBPF_LENDERS_MAX])
{
	struct calls *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	memcpy(c->lenders, lenders, sizeof(c->lenders));
	return c;
}

static void thread_free(struct thread *t)
{
	buf_fini(&t->ended);
	buf_fini(&t->open);
	free(t);
}

void calls_free(struct calls *c)
{
	const struct hash_entry *e;
	size_t pos = 0;

	if (!c)
		return;
	while ((e = hash_next(&c->threads, &pos)))
		thread_free((struct thread *)(uintptr_t)e->val);
	hash_fini(&c->threads);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- threads */

static struct thread *source_calls_find(const struct calls *c, uint32_t tid, uint32_t tgid)
{
	uint64_t *at = hash_get(&c->threads, tid, tgid);

	return at ? (struct thread *)(uintptr_t)*at : NULL;
}

/* Returns NULL if there is no memory. */
static struct thread *thread_of(struct calls *c, uint32_t tid, uint32_t tgid)
{
	struct thread *t = source_calls_find(c, tid, tgid);
	uint64_t *at;

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	at = t ? hash_put(&c->threads, tid, tgid) : NULL;
	if (!at) {
		free(t);
		return NULL;
	}
	*t = (struct thread){.tid = tid, .tgid = tgid, .first = 1};
	*at = (uintptr_t)t;
	return t;
}

/* Returns the number of the next call. */
static uint64_t next_number(const struct thread *t)
{
	return t->first + buf_count(&t->ended, struct ended) - t->skipped;
}

/* Returns a call by its number, or NULL if it is not kept. */
static struct ended *ended_at(const struct thread *t, uint64_t number)
{
	if (number < t->first || number >= next_number(t))
		return NULL;
	return buf_at(&t->ended, struct ended, t->skipped + (number - t->first));
}

/* ---- calls that have ended */

static int add_open(struct calls *c, struct thread *t, const struct open *o)
{
	if (buf_count(&t->open, struct open) < CALLS_OPEN_MAX)
		return buf_put(&t->open, o, sizeof(*o));
	c->lost++;
	return 0;
}

/* Adds a call. The calls nested directly in it are the last ones that have no call around them yet. */
static int add_ended(struct thread *t, const struct mxbpf_span *s)
{
	uint64_t number = next_number(t), in = number - 1;
	struct ended e = {.start_ns = s->h.ts_ns, .end_ns = s->h.ts_ns + s->dur_ns, .name_id = s->name_id}, *last, *i;

	last = ended_at(t, in);
	if (last && e.end_ns < last->end_ns) /* a copy of an open call; the call around it has the name */
		return 0;
	while ((i = ended_at(t, in)) && i->start_ns >= e.start_ns) {
		in = i->link;
		i->link = number;
	}
	e.link = in;
	return buf_put(&t->ended, &e, sizeof(e));
}

/*
 * A call that another thread ended was not around the calls of its own thread, because it may have outlived its
 * function. A call that ended before a call nested in it counts as open until then.
 */
int calls_ended(struct calls *c, const struct mxbpf_span *s)
{
	const struct open o = {s->h.ts_ns, s->h.ts_ns + s->dur_ns, s->name_id};
	struct thread *t;
	int err = -ENOMEM;

	if (s->end_tid != s->tid)
		return 0;
	pthread_mutex_lock(&c->lock);
	t = thread_of(c, s->tid, s->h.tgid);
	if (t)
		err = s->flags & MXBPF_SPAN_ASYNC ? add_open(c, t, &o) : add_ended(t, s);
	pthread_mutex_unlock(&c->lock);
	return err;
}

static void forget_ended(struct thread *t, uint64_t until_ns)
{
	struct ended *e;

	while ((e = ended_at(t, t->first)) && e->end_ns <= until_ns) {
		t->first++;
		t->skipped++;
	}
	if (2 * t->skipped < buf_count(&t->ended, struct ended))
		return;
	t->ended.len -= t->skipped * sizeof(*e);
	memmove(t->ended.data, t->ended.data + t->skipped * sizeof(*e), t->ended.len);
	t->skipped = 0;
}

static void forget_open(struct thread *t, uint64_t start_ns, uint64_t until_ns)
{
	size_t n = buf_count(&t->open, struct open), kept = 0, i;
	struct open *o = buf_at(&t->open, struct open, 0);

	for (i = 0; i < n; i++)
		if (o[i].start_ns != start_ns && o[i].until_ns >= until_ns)
			o[kept++] = o[i];
	t->open.len = kept * sizeof(*o);
}

void calls_forget(struct calls *c, const struct mxbpf_span *s)
{
	struct thread *t;

	pthread_mutex_lock(&c->lock);
	t = source_calls_find(c, s->tid, s->h.tgid);
	if (t) {
		if (!(s->flags & MXBPF_SPAN_ASYNC))
			forget_ended(t, s->h.ts_ns + s->dur_ns);
		if (t->open.len)
			forget_open(t, s->h.ts_ns, 0);
	}
	pthread_mutex_unlock(&c->lock);
}

/* ---- calls that are open */

int calls_open(struct calls *c, const struct mxbpf_open *r)
{
	const struct open o = {r->h.ts_ns, r->h.ts_ns + r->open_ns, r->name_id};
	struct thread *t;
	size_t i, n;
	int err = -ENOMEM;

	pthread_mutex_lock(&c->lock);
	t = thread_of(c, r->tid, r->h.tgid);
	if (t) {
		n = buf_count(&t->open, struct open);
		for (i = 0; i < n && buf_at(&t->open, struct open, i)->start_ns != o.start_ns; i++)
			;
		err = 0;
		if (i < n)
			*buf_at(&t->open, struct open, i) = o;
		else
			err = add_open(c, t, &o);
	}
	pthread_mutex_unlock(&c->lock);
	return err;
}

/* Removes threads without calls, because they may have ended. */
static void calls_sweep(struct calls *c, uint64_t now_ns)
{
	const struct hash_entry *e;
	struct buf empty = {0};
	struct thread *t;
	size_t pos = 0, i;

	while ((e = hash_next(&c->threads, &pos))) {
		t = (struct thread *)(uintptr_t)e->val;
		if (now_ns > OPEN_KEPT_NS)
			forget_open(t, 0, now_ns - OPEN_KEPT_NS);
		if (!t->open.len && !ended_at(t, t->first) && buf_put(&empty, &t, sizeof(t)))
			break; /* try again with the next call */
	}
	for (i = 0; i < buf_count(&empty, struct thread *); i++) {
		t = *buf_at(&empty, struct thread *, i);
		hash_del(&c->threads, t->tid, t->tgid, NULL);
		thread_free(t);
	}
	buf_fini(&empty);
}

void calls_known(struct calls *c, uint64_t until_ns)
{
	pthread_mutex_lock(&c->lock);
	c->known_ns = until_ns > c->known_ns ? until_ns : c->known_ns;
	calls_sweep(c, until_ns);
	pthread_mutex_unlock(&c->lock);
}

uint64_t calls_lost(struct calls *c)
{
	uint64_t n;

	pthread_mutex_lock(&c->lock);
	n = c->lost;
	pthread_mutex_unlock(&c->lock);
	return n;
}

/* ---- search */

/* Returns the number of the first call that ended after ns. */
static uint64_t first_after(const struct thread *t, uint64_t ns)
{
	uint64_t lo = t->first, hi = next_number(t);

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (ended_at(t, mid)->end_ns <= ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Returns the number of the ended call around a call, or 0 if none is known. */
static uint64_t around(const struct thread *t, uint64_t number)
{
	const struct ended *e = ended_at(t, number);

	return e && e->link > number ? e->link : 0;
}

/* Returns the last call to start before `before_ns` among those open at `ns`. start_ns is 0 if there is none. */
static struct open innermost(const struct thread *t, uint64_t ns, uint64_t before_ns)
{
	size_t n = buf_count(&t->open, struct open), i;
	const struct open *open = buf_at(&t->open, const struct open, 0);
	struct open best = {0};
	uint64_t number = first_after(t, ns);
	const struct ended *e;

	while ((e = ended_at(t, number)) && (e->start_ns > ns || e->start_ns >= before_ns))
		number = around(t, number);
	if (e)
		best = (struct open){e->start_ns, e->end_ns, e->name_id};
	for (i = 0; i < n; i++)
		if (open[i].start_ns <= ns && ns < open[i].until_ns && open[i].start_ns < before_ns &&
		    open[i].start_ns > best.start_ns)
			best = open[i];
	return best;
}

static bool is_lender(const struct calls *c, uint64_t name_id)
{
	unsigned i;

	for (i = 0; i < MXBPF_LENDERS_MAX; i++)
		if (c->lenders[i] && c->lenders[i] == name_id)
			return true;
	return false;
}

/*
 * Returns the call that owns an allocation: the innermost one that does not allocate for its caller, or else the
 * innermost one.
 */
static struct open owner(const struct calls *c, const struct thread *t, uint64_t ns)
{
	const struct open inner = innermost(t, ns, UINT64_MAX);
	struct open o = inner;

	while (o.start_ns && is_lender(c, o.name_id))
		o = innermost(t, ns, o.start_ns);
	return o.start_ns ? o : inner;
}

static bool fill_alloc(struct calls *c, struct mxbpf_alloc *r)
{
	const struct thread *t = source_calls_find(c, r->tid, r->h.tgid);
	const struct open o = t ? owner(c, t, r->h.ts_ns) : (struct open){0};

	if (!o.start_ns)
		return r->h.ts_ns < c->known_ns;
	r->name_id = o.name_id;
	r->cls = MXBPF_CLASS_OPERATOR;
	return true;
}

/* The fields of a record that name a span. */
struct told {
	uint64_t *start_ns, *name_id;
	uint8_t *cls;
};

/* If BPF has set a span that started inside the call, that span is the inner one and stays. */
static bool fill_span(struct calls *c, const struct mxbpf_rec *r, uint32_t tid, const struct told *to)
{
	const struct thread *t = source_calls_find(c, tid, r->tgid);
	const struct open o = t ? innermost(t, r->ts_ns, UINT64_MAX) : (struct open){0};

	if (!o.start_ns)
		return r->ts_ns < c->known_ns;
	if (*to->start_ns > o.start_ns)
		return true;
	*to->start_ns = o.start_ns;
	*to->name_id = o.name_id;
	*to->cls = MXBPF_CLASS_OPERATOR;
	return true;
}

static bool source_calls_fill(struct calls *c, struct mxbpf_rec *r)
{
	struct mxbpf_team *team = (void *)r;
	struct mxbpf_sched *off = (void *)r;

	if (r->kind == MXBPF_ALLOC && r->size >= MXBPF_ALLOC_BYTES_OWNER)
		return fill_alloc(c, (void *)r);
	if (r->kind == MXBPF_TEAM)
		return fill_span(c, r, team->tid,
				 &(struct told){(void *)&team->span_start_ns, (void *)&team->name_id, &team->cls});
	if (r->kind == MXBPF_SCHED &&
	    !(off->flags & MXBPF_SCHED_LAST)) /* a record with MXBPF_SCHED_LAST has no time off the CPU */
		return fill_span(
			c, r, off->tid,
			&(struct told){(void *)&off->span_start_ns, (void *)&off->span_name_id, &off->span_cls});
	return true;
}

bool calls_fill(struct calls *c, struct mxbpf_rec *r)
{
	bool known;

	pthread_mutex_lock(&c->lock);
	known = source_calls_fill(c, r);
	pthread_mutex_unlock(&c->lock);
	return known;
}

static void reverse(uint64_t *ids, unsigned n)
{
	unsigned i;
	uint64_t id;

	for (i = 0; i < n / 2; i++) {
		id = ids[i];
		ids[i] = ids[n - 1 - i];
		ids[n - 1 - i] = id;
	}
}

unsigned calls_around(struct calls *c, uint32_t tid, uint32_t tgid, uint64_t ns, uint64_t *ids, unsigned max,
		      bool *known)
{
	const struct thread *t;
	struct open o = {0};
	unsigned n = 0;

	pthread_mutex_lock(&c->lock);
	t = source_calls_find(c, tid, tgid);
	if (t)
		o = innermost(t, ns, UINT64_MAX);
	while (o.start_ns && n < max) {
		ids[n++] = o.name_id;
		o = innermost(t, ns, o.start_ns);
	}
	*known = n || ns < c->known_ns;
	pthread_mutex_unlock(&c->lock);
	reverse(ids, n);
	return n;
}
