// SPDX-License-Identifier: Apache-2.0
/* The loops of processes: where their iterations end, and the live memory there. */
#include "feature/steps/loops.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"

#define KEPT_MAX    (1u << 16) /* iterations; the older half of twice as many is dropped */
#define LOOPS_MAX   64	       /* per process; what ends on further threads is no iteration */
#define MOMENTS_MAX (1u << 16) /* per process */
#define TOLD_MAX    4096
#define FOREIGN_MAX 16 /* steps of other optimizers, after which another one counts */

/* Memory was allocated or freed. */
struct moment {
	uint64_t ns;
	int64_t bytes;
};

struct loops *loops_process(const struct steps_state *m, uint32_t tgid)
{
	const uint64_t *at = hash_get(&m->processes, tgid, 0);

	return at ? (void *)(uintptr_t)*at : NULL;
}

struct loops *loops_process_add(struct steps_state *m, uint32_t tgid)
{
	uint64_t *at = hash_put(&m->processes, tgid, 0);
	struct loops *p;

	if (!at || *at)
		return at ? (void *)(uintptr_t)*at : NULL;
	p = mem_zalloc(sizeof(*p));
	if (!p) {
		hash_del(&m->processes, tgid, 0, NULL);
		return NULL;
	}
	p->tgid = tgid;
	*at = (uintptr_t)p;
	return p;
}

struct loop *loops_at(const struct loops *p, size_t i)
{
	return i < buf_count(&p->loops, struct loop) ? buf_at(&p->loops, struct loop, i) : NULL;
}

struct loop *loops_of(const struct loops *p, uint32_t tid)
{
	struct loop *l;
	size_t i;

	for (i = 0; (l = loops_at(p, i)); i++)
		if (l->tid == tid)
			return l;
	return NULL;
}

/* Returns NULL without memory, or if there are too many. */
struct loop *loops_add(struct loops *p, uint32_t tid)
{
	struct loop *l = loops_of(p, tid);

	if (l || buf_count(&p->loops, *l) >= LOOPS_MAX)
		return l;
	l = buf_add(&p->loops, sizeof(*l));
	if (l)
		*l = (struct loop){.tid = tid, .passes = p->passes};
	return l;
}

void loops_forget(struct loops *p)
{
	struct loop *l;
	size_t i;

	for (i = 0; (l = loops_at(p, i)); i++)
		buf_fini(&l->pieces);
	p->loops.len = 0;
}

/* ---- live memory at the ends of iterations. Allocations come behind the spans of their batch. */

#define UNSET pad[0] /* of an iteration whose live_bytes are not set yet */

static void fold_moments(struct loops *p, size_t n)
{
	const struct moment *at = (const struct moment *)p->moments.data;
	const size_t all = buf_count(&p->moments, *at);
	size_t i;

	if (!n)
		return;
	for (i = 0; i < n; i++)
		add_sat_signed(&p->live_bytes, at[i].bytes);
	p->moments.len = (all - n) * sizeof(*at);
	memmove(p->moments.data, p->moments.data + n * sizeof(*at), p->moments.len);
}

int loops_alloc(struct loops *p, uint64_t ns, int64_t bytes)
{
	const struct moment moment = {ns, bytes};

	if (buf_count(&p->moments, moment) >= MOMENTS_MAX)
		fold_moments(p, MOMENTS_MAX / 2);
	return buf_put(&p->moments, &moment, sizeof(moment));
}

int64_t loops_live(const struct loops *p, uint64_t ns)
{
	const struct moment *at = (const struct moment *)p->moments.data;
	int64_t live = p->live_bytes;
	size_t i;

	for (i = 0; i < buf_count(&p->moments, *at); i++)
		if (at[i].ns <= ns)
			add_sat_signed(&live, at[i].bytes);
	return live;
}

/* Forgets the moments before the iterations that have not ended. */
static void steps_settle(struct loops *p)
{
	const struct moment *at = (const struct moment *)p->moments.data;
	const struct loop *l;
	uint64_t since = UINT64_MAX;
	size_t i, n = 0;

	for (i = 0; (l = loops_at(p, i)); i++)
		if (l->start_ns && l->start_ns < since)
			since = l->start_ns;
	while (n < buf_count(&p->moments, *at) && at[n].ns <= since)
		n++;
	fold_moments(p, n);
}

void loops_set_memory(const struct steps_state *m, struct mxbpf_iteration *it, size_t n)
{
	const struct loops *p;
	size_t i;

	for (i = n > m->unset ? n - m->unset : 0; i < n; i++) {
		p = it[i].UNSET ? loops_process(m, it[i].h.tgid) : NULL;
		if (p)
			it[i].live_bytes = loops_live(p, steps_end_ns(&it[i]));
		it[i].UNSET = 0;
	}
}

void loops_settle_memory(struct steps_state *m)
{
	const struct hash_entry *h;
	size_t pos = 0;

	loops_set_memory(m, (struct mxbpf_iteration *)m->iterations.data,
			 buf_count(&m->iterations, struct mxbpf_iteration));
	m->unset = 0;
	while ((h = hash_next(&m->processes, &pos)))
		steps_settle((struct loops *)(uintptr_t)h->val);
}

/* ---- ends of iterations */

int loops_keep(struct steps_state *m, const struct mxbpf_iteration *it)
{
	if (buf_count(&m->iterations, *it) >= 2 * KEPT_MAX) {
		m->iterations.len -= KEPT_MAX * sizeof(*it);
		memmove(m->iterations.data, m->iterations.data + KEPT_MAX * sizeof(*it), m->iterations.len);
	}
	m->unset += it->UNSET;
	return buf_put(&m->iterations, it, sizeof(*it));
}

int loops_settle(struct steps_state *m, const struct loops *p, struct loop *l)
{
	const struct mdl_ended end = {p->tgid, l->ended.start_ns, l->ended.end_ns};
	struct mxbpf_iteration it;
	int err;

	if (!l->ended.end_ns)
		return 0;
	if (buf_count(&m->told, end) < TOLD_MAX && buf_put(&m->told, &end, sizeof(end)))
		return -ENOMEM;
	err = parts_make(&l->pieces, p->tgid, &l->ended, l->nr++, &it);
	it.UNSET = 1;
	l->ended.end_ns = 0;
	return err ? err : loops_keep(m, &it);
}

static void forget_pieces(struct loop *l, uint64_t before_ns)
{
	struct piece *piece = (struct piece *)l->pieces.data;
	size_t i, n = buf_count(&l->pieces, struct piece), kept = 0;

	for (i = 0; i < n; i++)
		if (piece[i].end_ns > before_ns)
			piece[kept++] = piece[i];
	l->pieces.len = kept * sizeof(*piece);
}

/* Returns whether the start and the end of the current iteration, ns, are known. A pause is no part of one. */
bool loops_whole(const struct steps_state *m, const struct loop *l, uint64_t ns)
{
	return l->start_ns && ns > l->start_ns && !(m->resumed_ns > l->start_ns && m->resumed_ns <= ns) &&
	       !lost_in(&m->lost, l->start_ns, ns, true);
}

struct extent loops_extent(const struct steps_state *m, const struct loops *p, const struct loop *l, uint64_t ns)
{
	return (struct extent){.start_ns = l->start_ns,
			       .end_ns = ns,
			       .tid = l->tid,
			       .told = p->mode,
			       .full = l->full,
			       .lost = l->after_lost || lost_in(&m->lost, l->start_ns, ns, false)};
}

int loops_boundary(struct steps_state *m, const struct loops *p, struct loop *l, uint64_t ns)
{
	int err = loops_settle(m, p, l);

	if (loops_whole(m, l, ns)) {
		l->ended = loops_extent(m, p, l, ns);
		l->after_lost = false;
		forget_pieces(l, l->start_ns);
	} else {
		l->after_lost = loops_extent(m, p, l, ns).lost;
		forget_pieces(l, ns);
	}
	l->start_ns = ns;
	l->full = false;
	return err;
}

/* Returns whether the calls are of the optimizer that counts, or that counts from now on. */
bool loops_counts(const struct loop *l)
{
	return !l->main_key || l->burst_key == l->main_key || l->foreign + 1 >= FOREIGN_MAX;
}

int loops_end(struct steps_state *m, const struct loops *p, struct loop *l)
{
	l->burst = false;
	l->called = false;
	if (!loops_counts(l)) {
		l->foreign++;
		return 0;
	}
	l->main_key = l->burst_key;
	l->foreign = 0;
	return loops_boundary(m, p, l, l->burst_end_ns);
}

/* A better sign of the end was found. The iterations that were found before it are wrong. */
void loops_mode(struct steps_state *m, struct loops *p, uint8_t mode)
{
	struct mxbpf_iteration *it = (struct mxbpf_iteration *)m->iterations.data;
	size_t i, n = buf_count(&m->iterations, *it), kept = 0;

	for (i = 0; i < n && p->mode; i++)
		if (it[i].h.tgid != p->tgid)
			it[kept++] = it[i];
	if (p->mode)
		m->iterations.len = kept * sizeof(*it);
	p->mode = mode;
	loops_forget(p);
}

/* Notes a call that can be the end of an iteration. Returns its loop, or NULL. */
struct loop *loops_may_end(struct steps_state *m, struct loops *p, uint8_t what, uint64_t key, uint64_t ns,
			   uint32_t tid)
{
	struct loop *l = loops_of(p, tid);

	if (what < p->mode && !(l && l->burst)) /* calls of a KVStore, although there is an optimizer */
		return NULL;
	if (what > p->mode)
		loops_mode(m, p, what);
	l = loops_add(p, tid);
	if (!l)
		return NULL;
	if (!l->burst) {
		l->burst = true;
		l->burst_key = key | 1; /* 0 means none */
		l->burst_end_ns = 0;
	}
	if (ns > l->burst_end_ns)
		l->burst_end_ns = ns;
	return l;
}

/* A thread that ends no iterations works for all loops of its process. */
int loops_pass(struct steps_state *m, struct loops *p, uint32_t tid)
{
	const struct loop *own = loops_of(p, tid);
	struct loop *l;
	size_t i;
	int err = 0;

	p->passes = true;
	for (i = 0; !err && (l = loops_at(p, i)); i++) {
		if (own && l != own)
			continue;
		l->passes = true;
		l->alone = 0;
		err = l->burst ? loops_end(m, p, l) : 0;
	}
	return err;
}
