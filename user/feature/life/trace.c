// SPDX-License-Identifier: Apache-2.0
/* --life in timelines: what each operator waited for, what each wait was for, and how many wait for each thread. */
#include "feature/life/life.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "view/timeline/trace.h"

/* ---- survey */

static int note(struct hash *at, struct buf *b, const struct mxbpf_rec *r, uint32_t tid, size_t bytes)
{
	uint64_t *place = hash_put(at, r->ts_ns, tid);

	if (!place || (!*place && buf_put(b, r, bytes)))
		return -ENOMEM;
	if (!*place)
		*place = b->len / bytes;
	return 0;
}

int view_life_survey(struct view_trace *t, const struct mxbpf_rec *r)
{
	if (r->kind == MXBPF_LIFE)
		return note(&t->life_at, &t->lives, r, ((const struct mxbpf_life *)r)->tid, sizeof(struct mxbpf_life));
	if (r->kind == MXBPF_WAIT)
		return note(&t->wait_at, &t->waits, r, ((const struct mxbpf_wait *)r)->tid, sizeof(struct mxbpf_wait));
	return 0;
}

void view_life_fini(struct view_trace *t)
{
	hash_fini(&t->life_at);
	buf_fini(&t->lives);
	hash_fini(&t->wait_at);
	buf_fini(&t->waits);
}

/* ---- args of spans */

static void write_life(struct view_trace *t, const struct mxbpf_life *l)
{
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES), *p = start;
	unsigned i;

	for (i = 0; i < MXBPF_LIFE_RUN; i++) {
		if (l->ns[i] == MXBPF_LIFE_UNKNOWN)
			continue;
		p = put(put(put(p, ",\""), view_life_parts[i]), "_us\":");
		p = view_put_us(p, l->ns[i]);
	}
	if (l->push_tid)
		p = view_put_u64(put(p, ",\"pushed_by\":"), l->push_tid);
	if (l->ready_tid)
		p = view_put_u64(put(p, ",\"readied_by\":"), l->ready_tid);
	out_filled(t->s.out, (size_t)(p - start));
}

static void write_name(struct view_trace *t, const char *key, uint64_t id)
{
	struct view_text name;

	if (!id)
		return;
	name = view_trace_text(t, id, view_text_name);
	out_printf(t->s.out, ",\"%s\":\"", key);
	out_write(t->s.out, name.data, name.len);
	out_puts(t->s.out, "\"");
}

static void write_wait(struct view_trace *t, const struct mxbpf_wait *w)
{
	if (w->what != MXBPF_WAIT_OPERATOR)
		out_printf(t->s.out, ",\"waited_for\":\"(%s)\"", view_wait_whats[w->what]);
	write_name(t, "waited_for", w->op_id);
	write_name(t, "within", w->within_id);
}

void view_life_args(struct view_trace *t, const struct mxbpf_span *s)
{
	const uint64_t *at = NULL;

	if (s->cls == MXBPF_CLASS_OPERATOR && t->lives.len)
		at = hash_get(&t->life_at, s->h.ts_ns, s->tid);
	if (at)
		write_life(t, buf_at(&t->lives, struct mxbpf_life, *at - 1));
	at = s->cls == MXBPF_CLASS_WAIT && t->waits.len ? hash_get(&t->wait_at, s->h.ts_ns, s->tid) : NULL;
	if (at)
		write_wait(t, buf_at(&t->waits, struct mxbpf_wait, *at - 1));
}

/* ---- queues */

/* An operator comes to the thread that will take it, or is taken. */
struct step {
	uint64_t ts_ns;
	uint32_t tgid, tid;
	bool comes;
};

static int by_time(const void *x, const void *y)
{
	const struct step *a = x, *b = y;

	if (a->ts_ns != b->ts_ns)
		return a->ts_ns < b->ts_ns ? -1 : 1;
	return a->comes < b->comes ? -1 : a->comes > b->comes;
}

/* What its pusher executes itself is in no queue. */
static bool queued(const struct view_trace *t, const struct mxbpf_life *l)
{
	return l->ready_tid && l->ns[MXBPF_LIFE_QUEUE] && l->ns[MXBPF_LIFE_QUEUE] != MXBPF_LIFE_UNKNOWN &&
	       (l->ready_tid != l->tid || l->push_tid != l->tid) && l->h.ts_ns - l->ns[MXBPF_LIFE_QUEUE] >= t->base_ns;
}

static int put_steps(const struct view_trace *t, struct buf *steps)
{
	size_t i;
	int err = 0;

	for (i = 0; i < buf_count(&t->lives, struct mxbpf_life) && !err; i++) {
		const struct mxbpf_life *l = buf_at(&t->lives, struct mxbpf_life, i);
		const struct step pair[] = {{l->h.ts_ns - l->ns[MXBPF_LIFE_QUEUE], l->h.tgid, l->tid, true},
					    {l->h.ts_ns, l->h.tgid, l->tid, false}};

		if (queued(t, l))
			err = buf_put(steps, pair, sizeof(pair));
	}
	if (steps->len)
		qsort(steps->data, buf_count(steps, struct step), sizeof(struct step), by_time);
	return err;
}

static void write_depth(struct view_trace *t, const struct step *e, uint64_t depth)
{
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES), *p;

	p = put(start, ",\n{\"ph\":\"C\",");
	p = view_put_where(t, p, e->tgid, e->tid, e->ts_ns);
	p = view_put_u64(put(p, ",\"name\":\"queue of thread "), e->tid);
	p = view_put_u64(put(p, "\",\"args\":{\"operators\":"), depth);
	p = put(p, "}}");
	out_filled(t->s.out, (size_t)(p - start));
}

int view_life_queues(struct view_trace *t)
{
	struct buf steps = {0};
	struct hash depths = {0};
	int err = put_steps(t, &steps);
	size_t i;

	for (i = 0; i < buf_count(&steps, struct step) && !err; i++) {
		const struct step *e = buf_at(&steps, struct step, i);
		uint64_t *depth = hash_put(&depths, e->tgid, e->tid);

		if (!depth)
			err = -ENOMEM;
		else
			write_depth(t, e, e->comes ? ++*depth : --*depth);
	}
	hash_fini(&depths);
	buf_fini(&steps);
	return err ? view_trace_no_memory(t) : t->error;
}
