// SPDX-License-Identifier: Apache-2.0
/* Args of operators and waits, and the number of operators that wait for each thread (--life). */
#include "feature/life/life.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/life/sheet.h"
#include "view/timeline/trace.h"

/* Indexes have the start of a span and its thread as the key, and 1 + a place in the buffer as the value. */
struct state {
	struct hash life_at, wait_at;
	struct buf lives; /* struct mxbpf_life */
	struct buf waits; /* struct mxbpf_wait */
};

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

static int life_survey(struct view_trace *t, void *vstate, const struct mxbpf_rec *r)
{
	struct state *s = vstate;

	if (r->kind == MXBPF_LIFE)
		return note(&s->life_at, &s->lives, r, ((const struct mxbpf_life *)r)->tid, sizeof(struct mxbpf_life));
	return note(&s->wait_at, &s->waits, r, ((const struct mxbpf_wait *)r)->tid, sizeof(struct mxbpf_wait));
}

static void life_trace_fini(void *vstate)
{
	struct state *s = vstate;

	hash_fini(&s->life_at);
	buf_fini(&s->lives);
	hash_fini(&s->wait_at);
	buf_fini(&s->waits);
}

/* ---- args of spans */

static void write_life(struct view_trace *t, const struct mxbpf_life *l)
{
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES), *p = start;
	unsigned i;

	for (i = 0; i < MXBPF_LIFE_RUN; i++) {
		if (l->ns[i] == MXBPF_LIFE_UNKNOWN)
			continue;
		p = put(put(put(p, ",\""), life_parts[i]), "_us\":");
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
		out_printf(t->s.out, ",\"waited_for\":\"(%s)\"", life_wait_whats[w->what]);
	write_name(t, "waited_for", w->op_id);
	write_name(t, "within", w->within_id);
}

static void life_args(struct view_trace *t, void *vstate, const struct mxbpf_span *s)
{
	const struct state *state = vstate;
	const uint64_t *at;

	if (s->cls == MXBPF_CLASS_OPERATOR && state->lives.len) {
		at = hash_get(&state->life_at, s->h.ts_ns, s->tid);
		if (at)
			write_life(t, buf_at(&state->lives, struct mxbpf_life, *at - 1));
	} else if (s->cls == MXBPF_CLASS_WAIT && state->waits.len) {
		at = hash_get(&state->wait_at, s->h.ts_ns, s->tid);
		if (at)
			write_wait(t, buf_at(&state->waits, struct mxbpf_wait, *at - 1));
	}
}

/* ---- queues */

/* An operator enters the queue of a thread, or the thread takes it. */
struct step {
	uint64_t ts_ns;
	uint32_t tgid, tid;
	bool comes;
};

static int life_by_time(const void *x, const void *y)
{
	const struct step *a = x, *b = y;

	if (a->ts_ns != b->ts_ns)
		return a->ts_ns < b->ts_ns ? -1 : 1;
	return a->comes < b->comes ? -1 : a->comes > b->comes;
}

/* An operator that the pushing thread executes itself is in no queue. */
static bool queued(const struct view_trace *t, const struct mxbpf_life *l)
{
	return l->ready_tid && l->ns[MXBPF_LIFE_QUEUE] && l->ns[MXBPF_LIFE_QUEUE] != MXBPF_LIFE_UNKNOWN &&
	       (l->ready_tid != l->tid || l->push_tid != l->tid) && l->h.ts_ns - l->ns[MXBPF_LIFE_QUEUE] >= t->base_ns;
}

static int put_steps(const struct view_trace *t, const struct buf *lives, struct buf *steps)
{
	size_t i;
	int err = 0;

	for (i = 0; i < buf_count(lives, struct mxbpf_life) && !err; i++) {
		const struct mxbpf_life *l = buf_at(lives, struct mxbpf_life, i);
		const struct step pair[] = {{l->h.ts_ns - l->ns[MXBPF_LIFE_QUEUE], l->h.tgid, l->tid, true},
					    {l->h.ts_ns, l->h.tgid, l->tid, false}};

		if (queued(t, l))
			err = buf_put(steps, pair, sizeof(pair));
	}
	if (steps->len)
		qsort(steps->data, buf_count(steps, struct step), sizeof(struct step), life_by_time);
	return err;
}

static void write_depth(struct view_trace *t, const struct step *e, uint64_t depth)
{
	char name[48], value[24];
	struct view_counter c = {.pid = e->tgid, .tid = e->tid, .ts_ns = e->ts_ns, .unit = "operators", .value = value};

	snprintf(name, sizeof(name), "queue of thread %u", e->tid);
	c.name = view_text_of(name);
	*view_put_u64(value, depth) = '\0';
	view_counter(t, &c);
}

static int write_queues(struct view_trace *t, void *vstate)
{
	const struct state *state = vstate;
	struct buf steps = {0};
	struct hash depths = {0};
	size_t i;
	int err;

	if (!t->form->thread)
		return 0;
	err = put_steps(t, &state->lives, &steps);
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
	return err;
}

const struct view_trace_feature life_trace = {
	.state_bytes = sizeof(struct state),
	.kinds = {MXBPF_LIFE, MXBPF_WAIT},
	.survey = life_survey,
	.before = write_queues,
	.args = {[VIEW_ARGS_LAST] = life_args},
	.fini = life_trace_fini,
};
