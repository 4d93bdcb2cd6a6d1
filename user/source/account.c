// SPDX-License-Identifier: Apache-2.0
#include "source/account.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "mxbpf_sched.h"

#define KEPT_MAX (1u << 17) /* limit of items of one kind for all threads; each thread may have an equal share */
#define KEPT_MIN 256	    /* a thread may keep this many in any case */

/* Sums of a thread since its first record. */
struct sums {
	uint64_t runq_ns, blocked_ns;
	uint64_t nvcsw, nivcsw;
};

/* A time off the CPU. */
struct off {
	struct sums before;
	uint64_t left_ns, woken_ns, back_ns;
	uint16_t left_cpu, back_cpu;
	bool slept;
};

/* An allocation, or memory that was freed. */
struct taken {
	uint64_t ts_ns;
	int64_t sum_bytes; /* sum of the thread's bytes, including this item */
};

/* A span that has ended while the span around it is still open. */
struct inside {
	uint64_t start_ns;
	struct sums sums;
	int64_t bytes;
};

struct thread {
	uint32_t tid, tgid;
	bool ended;
	size_t noffs, ntakes; /* what count_until() returned last for the lists below */
	uint64_t used;	      /* time of the last use, counted in calls of thread_of() */
	struct sums sums;     /* up to the last record */
	struct buf offs;      /* struct off, ascending */
	struct buf takes;     /* struct taken, ascending */
	struct buf spans;     /* struct inside, in the order of their ends; spans with zero sums are left out */
};

struct acc {
	bool switches;
	struct hash threads; /* (tid, tgid) -> struct thread * */
	struct thread *last; /* returned by thread_of(), because most records have the thread of the one before */
	bool any_ended;
	uint64_t uses, forgotten;
};

struct acc *acc_new(bool switches)
{
	struct acc *a = calloc(1, sizeof(*a));

	if (a)
		a->switches = switches;
	return a;
}

static void thread_free(struct thread *t)
{
	buf_fini(&t->offs);
	buf_fini(&t->takes);
	buf_fini(&t->spans);
	free(t);
}

void acc_free(struct acc *a)
{
	const struct hash_entry *e;
	size_t pos = 0;

	if (!a)
		return;
	while ((e = hash_next(&a->threads, &pos)))
		thread_free((struct thread *)(uintptr_t)e->val);
	hash_fini(&a->threads);
	free(a);
}

void acc_forget_ended(struct acc *a)
{
	const struct hash_entry *e;
	struct buf ended = {0};
	struct thread *t;
	size_t pos = 0, i;

	a->last = NULL;
	while (a->any_ended && (e = hash_next(&a->threads, &pos))) {
		t = (struct thread *)(uintptr_t)e->val;
		if (t->ended && buf_put(&ended, &t, sizeof(t)))
			break; /* try again with the next call */
	}
	for (i = 0; i < buf_count(&ended, struct thread *); i++) {
		t = *buf_at(&ended, struct thread *, i);
		hash_del(&a->threads, t->tid, t->tgid, NULL);
		thread_free(t);
	}
	buf_fini(&ended);
	a->any_ended = false;
}

static int longest_unused(const void *x, const void *y)
{
	const struct thread *a = *(struct thread *const *)x, *b = *(struct thread *const *)y;

	return a->used < b->used ? -1 : a->used > b->used;
}

/* Frees the half of the threads that was unused for longest. Returns 0 or -ENOMEM. */
static int forget_half(struct acc *a)
{
	struct buf all = {0};
	const struct hash_entry *e;
	struct thread *t;
	size_t pos = 0, i;
	int err = 0;

	a->last = NULL;
	while (!err && (e = hash_next(&a->threads, &pos))) {
		t = (struct thread *)(uintptr_t)e->val;
		err = buf_put(&all, &t, sizeof(t));
	}
	if (!err && all.data)
		qsort(all.data, buf_count(&all, struct thread *), sizeof(t), longest_unused);
	for (i = 0; !err && i < buf_count(&all, struct thread *) / 2; i++) {
		t = *buf_at(&all, struct thread *, i);
		hash_del(&a->threads, t->tid, t->tgid, NULL);
		thread_free(t);
		a->forgotten++;
	}
	buf_fini(&all);
	return err;
}

uint64_t acc_forgotten(const struct acc *a)
{
	return a->forgotten;
}

/* Returns NULL if there is no memory. */
static struct thread *thread_of(struct acc *a, uint32_t tid, uint32_t tgid)
{
	struct thread *t = a->last;
	uint64_t *at;

	if (t && t->tid == tid && t->tgid == tgid) {
		t->used = ++a->uses;
		return t;
	}
	at = hash_get(&a->threads, tid, tgid);
	if (at) {
		t = a->last = (struct thread *)(uintptr_t)*at;
		t->used = ++a->uses;
		return t;
	}
	if (a->threads.len == ACC_THREADS_MAX && forget_half(a))
		return NULL;
	t = calloc(1, sizeof(*t));
	at = t ? hash_put(&a->threads, tid, tgid) : NULL;
	if (!at) {
		free(t);
		return NULL;
	}
	t->tid = tid;
	t->tgid = tgid;
	t->used = ++a->uses;
	*at = (uintptr_t)t;
	return t;
}

/* ---- sums */

static uint64_t between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static struct sums plus(struct sums x, const struct sums *y)
{
	x.runq_ns += y->runq_ns;
	x.blocked_ns += y->blocked_ns;
	x.nvcsw += y->nvcsw;
	x.nivcsw += y->nivcsw;
	return x;
}

static struct sums minus(struct sums x, const struct sums *y)
{
	x.runq_ns -= y->runq_ns;
	x.blocked_ns -= y->blocked_ns;
	x.nvcsw -= y->nvcsw;
	x.nivcsw -= y->nivcsw;
	return x;
}

/* ---- lists of limited length */

/* Removes every second item of the older half. Spans are merged in pairs instead, so their sums stay right. */
static void thin(struct buf *list, size_t bytes, bool spans)
{
	size_t n = list->len / bytes, half = n / 2 & ~(size_t)1, i;

	for (i = 0; i < half; i += 2) {
		if (spans) {
			struct inside *first = buf_at(list, struct inside, i), *second = first + 1;

			first->sums = plus(first->sums, &second->sums);
			first->bytes += second->bytes;
		}
		memmove(list->data + i / 2 * bytes, list->data + i * bytes, bytes);
	}
	memmove(list->data + half / 2 * bytes, list->data + half * bytes, list->len - half * bytes);
	list->len -= half / 2 * bytes;
}

/* Adds an item of a thread, and thins the list if the thread has used its share. Returns 0 or -ENOMEM. */
static int account_add(const struct acc *a, struct buf *list, const void *item, size_t bytes, bool spans)
{
	size_t share = KEPT_MAX / (a->threads.len ? a->threads.len : 1);

	if (list->len / bytes >= (share > KEPT_MIN ? share : KEPT_MIN))
		thin(list, bytes, spans);
	return buf_put(list, item, bytes);
}

static uint64_t time_of(const char *times, size_t bytes, size_t i)
{
	uint64_t ns;

	memcpy(&ns, times + i * bytes, sizeof(ns));
	return ns;
}

/*
 * Returns the number of items whose time is not after ns, and keeps it in *last. The list is sorted by time. Most calls
 * have the same number as the call before them, so look there first.
 */
static size_t count_until(const struct buf *list, size_t bytes, size_t time_at, uint64_t ns, size_t *last)
{
	const char *times = buf_place(list, time_at);
	size_t lo = 0, hi = list->len / bytes, mid = *last;

	if (mid <= hi && (!mid || time_of(times, bytes, mid - 1) <= ns) &&
	    (mid == hi || time_of(times, bytes, mid) > ns))
		return mid;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (time_of(times, bytes, mid) <= ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return *last = lo;
}

/* ---- input */

/* Returns the sums at time ns, which is in a time off the CPU or after it. */
static struct sums sums_in(const struct off *o, uint64_t ns)
{
	uint64_t until = ns < o->back_ns ? ns : o->back_ns;
	struct sums s = o->before;

	s.blocked_ns += between(o->left_ns, until < o->woken_ns ? until : o->woken_ns);
	s.runq_ns += between(o->woken_ns, until);
	s.nvcsw += o->slept;
	s.nivcsw += !o->slept;
	return s;
}

static int take_switch(struct acc *a, const struct mxbpf_sched *r)
{
	struct thread *t = thread_of(a, r->tid, r->h.tgid);
	struct off o = {
		.left_ns = r->h.ts_ns,
		.woken_ns = r->woken_ns,
		.back_ns = r->back_ns,
		.left_cpu = r->left_cpu,
		.back_cpu = r->back_cpu,
		.slept = r->state != MXBPF_SCHED_RUNNABLE,
	};

	if (!t)
		return -ENOMEM;
	t->ended = r->flags & MXBPF_SCHED_LAST;
	a->any_ended |= t->ended;
	if (t->ended)
		return 0;
	o.before = t->sums;
	t->sums = sums_in(&o, o.back_ns);
	return account_add(a, &t->offs, &o, sizeof(o), false);
}

static int take_alloc(struct acc *a, const struct mxbpf_alloc *r)
{
	struct thread *t = thread_of(a, r->tid, r->h.tgid);
	struct taken k = {.ts_ns = r->h.ts_ns, .sum_bytes = r->bytes};
	size_t n = t ? buf_count(&t->takes, struct taken) : 0;

	if (!t)
		return -ENOMEM;
	if (n)
		k.sum_bytes += buf_at(&t->takes, struct taken, n - 1)->sum_bytes;
	return account_add(a, &t->takes, &k, sizeof(k), false);
}

int acc_take(struct acc *a, const struct mxbpf_rec *r)
{
	if (r->kind == MXBPF_SCHED)
		return take_switch(a, (const void *)r);
	return r->kind == MXBPF_ALLOC ? take_alloc(a, (const void *)r) : 0;
}

/* ---- output */

/*
 * Returns the sums of a thread at time ns. *cpu is the CPU of the thread, or MXBPF_CPU_NONE if no switch of it was
 * seen.
 */
static struct sums sums_at(struct thread *t, uint64_t ns, uint16_t *cpu)
{
	size_t n = count_until(&t->offs, sizeof(struct off), offsetof(struct off, left_ns), ns, &t->noffs);
	const struct off *first = buf_at(&t->offs, const struct off, 0);

	if (!n) {
		*cpu = t->offs.len ? first->left_cpu : MXBPF_CPU_NONE;
		return t->offs.len ? first->before : t->sums;
	}
	*cpu = first[n - 1].back_cpu;
	return sums_in(&first[n - 1], ns);
}

static int64_t bytes_at(struct thread *t, uint64_t ns)
{
	size_t n = count_until(&t->takes, sizeof(struct taken), offsetof(struct taken, ts_ns), ns, &t->ntakes);

	return n ? buf_at(&t->takes, const struct taken, n - 1)->sum_bytes : 0;
}

/* Removes the spans nested directly in a span that started at start_ns, and returns their sums. */
static struct inside take_out(struct thread *t, uint64_t start_ns)
{
	struct inside all = {.start_ns = start_ns};
	const struct inside *in;
	size_t n;

	for (n = buf_count(&t->spans, struct inside); n; n--) {
		in = buf_at(&t->spans, const struct inside, n - 1);
		if (in->start_ns < start_ns)
			break;
		all.sums = plus(all.sums, &in->sums);
		all.bytes += in->bytes;
	}
	t->spans.len = n * sizeof(*in);
	return all;
}

static bool is_nothing(const struct sums *s)
{
	static const struct sums nothing;

	return !memcmp(s, &nothing, sizeof(nothing));
}

static void fill_account(struct mxbpf_span *s, const struct sums *own, const struct sums *nested, uint16_t end_cpu)
{
	const uint64_t off_ns = own->runq_ns + own->blocked_ns;

	s->account = (struct mxbpf_account){
		.on_cpu_ns = between(off_ns, s->dur_ns),
		.runq_ns = own->runq_ns,
		.blocked_ns = own->blocked_ns,
		.nvcsw = (uint32_t)own->nvcsw,
		.nivcsw = (uint32_t)own->nivcsw,
		.end_cpu = end_cpu,
	};
	s->nested = (struct mxbpf_account_nested){
		.runq_ns = nested->runq_ns,
		.blocked_ns = nested->blocked_ns,
		.nvcsw = (uint32_t)nested->nvcsw,
		.nivcsw = (uint32_t)nested->nivcsw,
	};
	s->h.size = sizeof(*s);
}

static void fill_elsewhere(struct mxbpf_span *s)
{
	s->flags |= MXBPF_SPAN_ACCOUNT;
	s->cpu = MXBPF_CPU_NONE;
	s->account = (struct mxbpf_account){.end_cpu = MXBPF_CPU_NONE, .flags = MXBPF_ACCOUNT_PART};
	s->h.size = sizeof(*s);
}

int acc_fill(struct acc *a, struct mxbpf_span *s)
{
	uint64_t end_ns = s->h.ts_ns + s->dur_ns;
	struct inside own = {.start_ns = s->h.ts_ns}, nested;
	struct sums before;
	struct thread *t;
	uint16_t end_cpu;

	if (s->flags & MXBPF_SPAN_ASYNC) {
		if (a->switches)
			fill_elsewhere(s);
		return 0;
	}
	t = thread_of(a, s->tid, s->h.tgid);
	if (!t)
		return -ENOMEM;
	nested = take_out(t, s->h.ts_ns);
	own.bytes = bytes_at(t, end_ns) - bytes_at(t, s->h.ts_ns);
	s->alloc_bytes = own.bytes;
	s->self_alloc_bytes = own.bytes - nested.bytes;
	if (a->switches) {
		before = sums_at(t, s->h.ts_ns, &s->cpu);
		own.sums = sums_at(t, end_ns, &end_cpu);
		own.sums = minus(own.sums, &before);
		s->flags |= MXBPF_SPAN_ACCOUNT;
		if (!is_nothing(&own.sums) || !is_nothing(&nested.sums))
			fill_account(s, &own.sums, &nested.sums, end_cpu);
	}
	return own.bytes || !is_nothing(&own.sums) ? account_add(a, &t->spans, &own, sizeof(own), true) : 0;
}
