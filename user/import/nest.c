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
#define ROUNDED_NS  1001 /* old traces have whole us, so that a nested span may end later than the one around it */

struct thread {
	struct buf spans;  /* struct mxbpf_span, open, the outermost first */
	struct buf frames; /* struct frame */
	uint64_t stack_id; /* of the frames; 0: not known yet */
};

struct frame {
	uint64_t name_id, end_ns;
};

struct nest {
	struct nest_out out;
	struct hash threads; /* (tgid, tid) -> struct thread *, owned */
	struct buf loose;    /* struct mxbpf_span: they overlap others of their thread */
	struct buf batch;
	uint64_t lost;
};

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

/* Passes on the innermost open span. What is nested in another is no self time of that. */
static int close_top(struct nest *n, struct thread *t)
{
	struct mxbpf_span *s = buf_at(&t->spans, struct mxbpf_span, buf_count(&t->spans, struct mxbpf_span) - 1),
			  *around;

	t->spans.len -= sizeof(*s);
	if (t->spans.len) {
		around = s - 1;
		around->self_ns -= s->dur_ns < around->self_ns ? s->dur_ns : around->self_ns;
		around->alloc_bytes += s->alloc_bytes;
	}
	return buf_put(&n->batch, s, s->h.size);
}

static int close_until(struct nest *n, struct thread *t, uint64_t ns)
{
	int err = 0;

	while (!err && t->spans.len &&
	       end_of(buf_at(&t->spans, struct mxbpf_span, buf_count(&t->spans, struct mxbpf_span) - 1)) <= ns)
		err = close_top(n, t);
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

/* A span that ends after the one around it is nested in none. */
static bool is_loose(const struct thread *t, const struct mxbpf_span *s)
{
	const size_t depth = buf_count(&t->spans, struct mxbpf_span);
	const struct mxbpf_span *around = depth ? buf_at(&t->spans, const struct mxbpf_span, depth - 1) : NULL;

	return s->flags & MXBPF_SPAN_ASYNC || depth >= DEPTH_MAX ||
	       (around && end_of(s) > end_of(around) && end_of(s) - end_of(around) >= ROUNDED_NS);
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
	if (s.cls == NEST_FRAME)
		return begin_frame(t, &s);
	err = close_until(n, t, s.h.ts_ns);
	s.stack_id = s.stack_id ? s.stack_id : stack_of(n, t);
	s.self_ns = s.dur_ns;
	s.alloc_bytes = s.self_alloc_bytes = 0;
	if (!err && is_loose(t, &s)) {
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
	struct mxbpf_span *s;
	int err = t ? close_until(n, t, a->h.ts_ns) : 0;

	if (err || !t || !t->spans.len)
		return err;
	s = buf_at(&t->spans, struct mxbpf_span, buf_count(&t->spans, struct mxbpf_span) - 1);
	s->alloc_bytes += a->bytes;
	s->self_alloc_bytes += a->bytes;
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
