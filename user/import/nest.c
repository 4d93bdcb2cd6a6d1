// SPDX-License-Identifier: Apache-2.0
#include "import/nest.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "mxbpf_stack.h"
#include "records/kinds.h"

#define BATCH_BYTES (256u << 10)
#define THREADS_MAX 65536
#define DEPTH_MAX   4096
#define LOOSE_MAX   65536 /* each is looked at with each batch */

struct thread {
	struct buf spans;  /* struct mxbpf_span, the outermost first */
	struct buf frames; /* struct frame */
	uint64_t stack_id; /* of the frames; 0: not known yet */
};

struct frame {
	uint64_t name_id, end_ns;
};

struct nest {
	struct nest_out out;
	struct hash threads; /* (tgid, tid) -> struct thread *, owned */
	struct buf loose;    /* struct mxbpf_span: they overlap others of their thread, and their ends are to come */
	struct buf batch;
	uint64_t rounded_ns;
	uint64_t over_ns;
	uint64_t lost;
};

uint64_t nest_over_ns(const struct nest *n)
{
	return n->over_ns;
}

void nest_rounded(struct nest *n, uint64_t ns)
{
	n->rounded_ns = ns;
}

struct nest *nest_new(const struct nest_out *out)
{
	struct nest *n = calloc(1, sizeof(*n));

	if (n)
		n->out = *out;
	return n;
}

static uint64_t end_of(const struct mxbpf_span *s)
{
	uint64_t end;

	return __builtin_add_overflow(s->h.ts_ns, s->dur_ns, &end) ? UINT64_MAX : end;
}

/* Returns NULL without memory, or if there are too many threads. */
static struct thread *nest_thread(struct nest *n, uint32_t tgid, uint32_t tid)
{
	uint64_t *at = hash_get(&n->threads, tgid, tid);

	if (!at && n->threads.len < THREADS_MAX)
		at = hash_put(&n->threads, tgid, tid);
	if (at && !*at)
		*at = (uintptr_t)calloc(1, sizeof(struct thread));
	return at ? (struct thread *)(uintptr_t)*at : NULL;
}

/* ---- ends */

static struct mxbpf_span *innermost(const struct thread *t)
{
	const size_t depth = buf_count(&t->spans, struct mxbpf_span);

	return depth ? buf_at(&t->spans, struct mxbpf_span, depth - 1) : NULL;
}

/* Takes what is nested in a span out of its self time, which is not below 0. */
static void take_nested(struct nest *n, struct mxbpf_span *around, const struct mxbpf_span *s)
{
	if (s->dur_ns > around->self_ns)
		n->over_ns += s->dur_ns - around->self_ns;
	around->self_ns -= s->dur_ns < around->self_ns ? s->dur_ns : around->self_ns;
	around->alloc_bytes += s->alloc_bytes;
}

/* Ends the innermost open span, and adds it to `to`, as a record or `whole` as a struct. */
static int close_top(struct nest *n, struct thread *t, struct buf *to, bool whole)
{
	const struct mxbpf_span o = *innermost(t);

	t->spans.len -= sizeof(o);
	if (t->spans.len)
		take_nested(n, innermost(t), &o);
	return buf_put(to, &o, whole ? sizeof(o) : o.h.size);
}

static int close_until(struct nest *n, struct thread *t, uint64_t ns)
{
	int err = 0;

	while (!err && t->spans.len && end_of(innermost(t)) <= ns)
		err = close_top(n, t, &n->batch, false);
	return err;
}

static void end_frames(struct thread *t, uint64_t ns)
{
	while (t->frames.len &&
	       buf_at(&t->frames, struct frame, buf_count(&t->frames, struct frame) - 1)->end_ns <= ns) {
		t->frames.len -= sizeof(struct frame);
		t->stack_id = 0;
	}
}

static int close_loose(struct nest *n, uint64_t ns)
{
	struct mxbpf_span *all = buf_at(&n->loose, struct mxbpf_span, 0);
	const size_t count = buf_count(&n->loose, struct mxbpf_span);
	size_t i, kept = 0;
	int err = 0;

	for (i = 0; i < count; i++)
		if (!err && end_of(&all[i]) <= ns)
			err = buf_put(&n->batch, &all[i], all[i].h.size);
		else
			all[kept++] = all[i];
	n->loose.len = kept * sizeof(*all);
	return err;
}

/* Passes the batch on. All that ended until now must be in it, because later batches are of later times. */
static int pass_on(struct nest *n, uint64_t now_ns)
{
	struct hash_entry *e;
	size_t pos = 0;
	int err = close_loose(n, now_ns);

	while (!err && (e = hash_next(&n->threads, &pos)))
		err = close_until(n, (struct thread *)(uintptr_t)e->val, now_ns);
	if (!err && n->batch.len)
		err = n->out.batch(n->out.ctx, n->batch.data, n->batch.len);
	n->batch.len = 0;
	return err;
}

/* ---- starts */

static int begin_frame(struct thread *t, const struct mxbpf_span *s)
{
	const struct frame f = {s->name_id, end_of(s)};

	if (buf_count(&t->frames, struct frame) >= DEPTH_MAX)
		return 0;
	t->stack_id = 0;
	return buf_put(&t->frames, &f, sizeof(f));
}

/* The stack of a thread, by its innermost frames. */
static uint64_t stack_of(struct nest *n, struct thread *t)
{
	const size_t count = buf_count(&t->frames, struct frame);
	uint64_t ids[MXBPF_STACK_FRAMES_MAX];
	size_t i;

	if (t->stack_id || !count)
		return t->stack_id;
	for (i = 0; i < MXBPF_STACK_FRAMES_MAX && i < count; i++)
		ids[i] = buf_at(&t->frames, struct frame, count - 1 - i)->name_id;
	t->stack_id = n->out.stack(n->out.ctx, ids, i);
	return t->stack_id;
}

/* Returns whether a span is nested in the one around it, or ends so little later that rounding explains it. */
static bool fits_in(const struct nest *n, const struct mxbpf_span *around, const struct mxbpf_span *s)
{
	return end_of(s) <= end_of(around) || end_of(s) - end_of(around) <= n->rounded_ns;
}

/*
 * The function that begins an annotation returns after it has begun, and the one that ends it returns after its end:
 * record_function() has both. As in the table of torch.profiler, neither is then nested in the other.
 */
static int leave_functions(struct nest *n, struct thread *t, const struct mxbpf_span *s)
{
	struct mxbpf_span *top;
	int err = 0;

	while (!err && (top = innermost(t)) && (top->cls == MXBPF_CLASS_PYTHON || s->cls == MXBPF_CLASS_PYTHON) &&
	       !fits_in(n, top, s))
		err = close_top(n, t, &n->loose, true);
	return err;
}

/* A span that ends after the one around it is nested in none. */
static bool is_loose(const struct nest *n, const struct thread *t, const struct mxbpf_span *s)
{
	const struct mxbpf_span *around = innermost(t);

	return s->flags & MXBPF_SPAN_ASYNC || buf_count(&t->spans, struct mxbpf_span) >= DEPTH_MAX ||
	       (around && !fits_in(n, around, s));
}

static int begin_span(struct nest *n, const struct mxbpf_rec *r)
{
	struct mxbpf_span s;
	struct thread *t;
	int err;

	kind_span(r, &s);
	s.h.size = MXBPF_SPAN_BYTES_DETAILS;
	t = nest_thread(n, s.h.tgid, s.tid);
	if (!t) {
		n->lost++;
		return 0;
	}
	end_frames(t, s.h.ts_ns);
	err = close_until(n, t, s.h.ts_ns);
	err = err ? err : leave_functions(n, t, &s);
	if (s.cls == MXBPF_CLASS_PYTHON)
		err = err ? err : begin_frame(t, &s);
	else if (!s.stack_id)
		s.stack_id = stack_of(n, t);
	s.self_ns = s.dur_ns;
	s.alloc_bytes = s.self_alloc_bytes = 0;
	if (!err && is_loose(n, t, &s)) {
		if (buf_count(&n->loose, struct mxbpf_span) >= LOOSE_MAX) {
			n->lost++;
			return 0;
		}
		s.flags |= MXBPF_SPAN_ASYNC;
		s.self_ns = 0;
		return buf_put(&n->loose, &s, sizeof(s));
	}
	return err ? err : buf_put(&t->spans, &s, sizeof(s));
}

/* Memory belongs to the innermost span of its thread. */
static int own_memory(struct nest *n, const struct mxbpf_alloc *a)
{
	struct thread *t = a->tid ? nest_thread(n, a->h.tgid, a->tid) : NULL;
	int err = t ? close_until(n, t, a->h.ts_ns) : 0;

	if (err || !t || !t->spans.len)
		return err;
	innermost(t)->alloc_bytes += a->bytes;
	innermost(t)->self_alloc_bytes += a->bytes;
	return 0;
}

int nest_put(struct nest *n, struct mxbpf_rec *r)
{
	int err = 0;

	if (n->batch.len >= BATCH_BYTES)
		err = pass_on(n, r->ts_ns);
	if (!err && r->kind == MXBPF_SPAN)
		return begin_span(n, r);
	if (!err && r->kind == MXBPF_ALLOC)
		err = own_memory(n, (const void *)r);
	return err ? err : buf_put(&n->batch, r, r->size);
}

int nest_end(struct nest *n)
{
	return pass_on(n, UINT64_MAX);
}

uint64_t nest_lost(const struct nest *n)
{
	return n->lost;
}

void nest_free(struct nest *n)
{
	struct hash_entry *e;
	size_t pos = 0;

	if (!n)
		return;
	while ((e = hash_next(&n->threads, &pos))) {
		struct thread *t = (struct thread *)(uintptr_t)e->val;

		if (t) {
			buf_fini(&t->spans);
			buf_fini(&t->frames);
		}
		free(t);
	}
	hash_fini(&n->threads);
	buf_fini(&n->loose);
	buf_fini(&n->batch);
	free(n);
}
