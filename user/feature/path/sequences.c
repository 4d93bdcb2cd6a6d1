// SPDX-License-Identifier: Apache-2.0
/* Finds which activities operators launch one after another. */
#include <errno.h>

#include "feature/path/state.h"

#define ROWS_MAX 4096 /* beyond that, new sequences are left out */

/* An activity, by the moment of its launch. */
struct launched {
	uint64_t ns, start_ns, dur_ns, name_id;
	uint32_t tgid, tid;
};

struct search {
	struct buf all;	  /* struct launched, by thread and time */
	struct hash seen; /* (first, number of activities) -> 1: of an operator inside, which has them */
	struct hash index;
	struct buf *rows;
};

static int path_sequences_by_thread(const void *va, const void *vb)
{
	const struct launched *a = va, *b = vb;

	BUF_ORDER(a->tgid, b->tgid);
	BUF_ORDER(a->tid, b->tid);
	BUF_ORDER(a->ns, b->ns);
	BUF_ORDER(a->start_ns, b->start_ns);
	return 0;
}

/* The inner spans first. */
static int path_by_start(const void *va, const void *vb)
{
	const struct idle_span *a = va, *b = vb;

	BUF_ORDER(b->start_ns, a->start_ns);
	BUF_ORDER(a->end_ns, b->end_ns);
	return 0;
}

static int path_collect(struct search *s, const struct mdl *m, const struct path_state *t)
{
	const struct activity_call *l;
	const struct win_work *w;
	struct launched one;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&t->work, *w); i++) {
		w = buf_at(&t->work, struct win_work, i);
		l = path_launch_of(m, w);
		if (!l)
			continue;
		one = (struct launched){l->start_ns, w->start_ns, w->end_ns - w->start_ns, w->name_id, l->tgid, l->tid};
		err = buf_put(&s->all, &one, sizeof(one));
	}
	buf_sort(&s->all, sizeof(one), path_sequences_by_thread);
	return err;
}

static uint64_t path_key_of(const struct launched *a, size_t n)
{
	uint64_t key = 0xcbf29ce484222325ull;
	size_t i;

	for (i = 0; i < n; i++)
		key = (key ^ a[i].name_id) * 0x100000001b3ull;
	return key;
}

static int path_count(struct search *s, const struct idle_span *span, const struct launched *a, size_t n)
{
	const uint64_t name = span->name_id ^ (uint64_t)span->tgid * 0x9e3779b97f4a7c15ull;
	struct path_sequence *r;
	bool added;
	size_t i;

	if (buf_count(s->rows, *r) >= ROWS_MAX && !hash_get(&s->index, path_key_of(a, n), name))
		return 0;
	r = mdl_item_put(&s->index, s->rows, path_key_of(a, n), name, sizeof(*r), &added);
	if (!r)
		return -ENOMEM;
	if (added) {
		r->a.h.tgid = span->tgid;
		r->a.name_id = span->name_id;
		r->a.n = (uint32_t)n;
		for (i = 0; i < n; i++)
			r->names[i] = a[i].name_id;
	}
	add_sat(&r->a.count, 1);
	add_sat(&r->a.cpu_ns, span->end_ns - span->start_ns);
	for (i = 0; i < n; i++)
		add_sat(&r->a.gpu_ns, a[i].dur_ns);
	return 0;
}

static bool is_operator(const struct idle_span *s)
{
	return !s->user && !s->async && (s->cls == MXBPF_CLASS_OPERATOR || s->cls == MXBPF_CLASS_KERNEL);
}

/* An operator around another one that launches the same activities does not count. */
static int path_look(struct search *s, const struct idle_span *span)
{
	const struct launched from = {.ns = span->start_ns, .tgid = span->tgid, .tid = span->tid};
	const struct launched to = {.ns = span->end_ns, .tgid = span->tgid, .tid = span->tid};
	const size_t at = buf_first(&s->all, sizeof(from), &from, path_sequences_by_thread);
	const size_t n = buf_first(&s->all, sizeof(to), &to, path_sequences_by_thread) - at;
	uint64_t *seen;

	if (n < MXBPF_SEQUENCE_MIN || n > MXBPF_SEQUENCE_MAX)
		return 0;
	seen = hash_put(&s->seen, at, n);
	if (!seen)
		return -ENOMEM;
	if (*seen)
		return 0;
	*seen = 1;
	return path_count(s, span, buf_at(&s->all, struct launched, at), n);
}

int path_find_sequences(const struct mdl *m, const struct path_state *t, struct buf *out)
{
	const struct idle_state *idle = mdl_state_of(m, &feature_idle);
	const uint64_t lost_ns = path_lost_ns(m, t);
	struct search s = {.rows = out};
	struct buf spans = {0};
	const struct idle_span *span;
	size_t i;
	int err = path_collect(&s, m, t);

	err = err || !idle ? err : buf_put(&spans, idle->spans.data, idle->spans.len);

	buf_sort(&spans, sizeof(*span), path_by_start);
	for (i = 0; !err && i < buf_count(&spans, *span); i++) {
		span = buf_at(&spans, struct idle_span, i);
		if (is_operator(span) && span->start_ns >= lost_ns)
			err = path_look(&s, span);
	}
	buf_fini(&spans);
	buf_fini(&s.all);
	hash_fini(&s.seen);
	hash_fini(&s.index);
	return err;
}
