// SPDX-License-Identifier: Apache-2.0
/*
 * Spans that are open when a window ends, and what their threads wait for. The first pass reads what each thread does.
 * The second pass reports the spans that are still open then.
 */
#include <errno.h>
#include <string.h>

#include "session/priv.h"

struct pass {
	struct session *ses;
	struct ses_look *look;
	struct buf *recs; /* result of the second pass */
	uint64_t now_ns;
	int err;
};

/* Reads what a thread does, once for all its spans. */
static struct ses_doing *doing_of(struct ses_look *k, uint32_t tgid, uint32_t tid)
{
	uint64_t *at = hash_put(&k->threads, tgid, tid);
	struct ses_doing *d;

	if (!at)
		return NULL;
	if (!*at) {
		d = buf_add(&k->doings, sizeof(*d));
		if (!d)
			return NULL;
		d->asked_ns = clock_ns(CLOCK_MONOTONIC);
		if (tgt_peek_doing((pid_t)tgid, (pid_t)tid, &d->doing) == -ESRCH || tgid == k->gone)
			d->doing = (struct tgt_doing){.state = 'X', .syscall = -1};
		*at = buf_count(&k->doings, struct ses_doing);
	}
	return buf_at(&k->doings, struct ses_doing, *at - 1);
}

/*
 * Returns true if the function has returned without an event, because of an exception or because its end has no probe:
 * its frame lies below the thread's stack pointer, or its return address has changed. This must be read while events
 * are recorded, because afterwards every call ends without an event.
 */
static bool was_left(const struct session *ses, const struct att_open *o, const struct ses_doing *d)
{
	const struct mxbpf_frame *f = o->frame;
	uint64_t word;

	if (f->end != MXBPF_END_CUT && f->end != MXBPF_END_NEXT)
		return false;
	if (f->end == MXBPF_END_NEXT && o->tgid == (uint32_t)tgt_pid(ses->targets[0].tgt) &&
	    !tgt_read(ses->targets[0].tgt, f->sp + f->return_off, &word, sizeof(word)) && word != f->key)
		return true;
	return f->start_ns < d->asked_ns && f->sp < d->doing.sp;
}

static void on_first(void *ctx, const struct att_open *o)
{
	struct pass *p = ctx;
	uint64_t *seen = hash_put(&p->look->spans, o->frame->start_ns, o->frame->tid);
	const struct ses_doing *d = seen ? doing_of(p->look, o->tgid, o->frame->tid) : NULL;

	if (!d || (was_left(p->ses, o, d) && !hash_put(&p->look->left, o->frame->start_ns, o->frame->tid))) {
		p->err = -ENOMEM;
		return;
	}
	*seen = hash_get(&p->look->threads, o->tgid, o->frame->tid)[0];
}

void ses_look(struct session *ses, struct ses_look *k)
{
	struct pass p = {.ses = ses, .look = k};
	struct ses_build *b;

	*k = (struct ses_look){.since_ns = att_active_since_ns(ses->first->att),
			       .gone = tgt_gone(ses->targets[0].tgt) ? (uint32_t)tgt_pid(ses->targets[0].tgt) : 0};
	SES_EACH_BUILD(ses, b)
	att_open_spans(b->att, on_first, &p);
	k->err = p.err;
}

/*
 * Returns true if the function has returned or may have returned. A span that was open before a pause may have ended
 * during it.
 */
static bool is_over(const struct ses_look *k, const struct mxbpf_frame *f)
{
	return !k->since_ns || f->start_ns < k->since_ns || hash_get(&k->left, f->start_ns, f->tid);
}

bool ses_was_left(void *ctx, const struct mxbpf_frame *f)
{
	return hash_get(&((struct ses_look *)ctx)->left, f->start_ns, f->tid);
}

static void tell_doing(struct session *ses, struct mxbpf_open *r, const struct tgt_doing *d)
{
	r->state = (uint8_t)d->state;
	r->syscall = d->syscall;
	if (!d->wchan[0])
		return;
	r->wchan_id = plan_hash(d->wchan);
	ses_add_name(ses, MXBPF_NAME_WCHAN, r->h.tgid, r->wchan_id, d->wchan);
}

static void on_second(void *ctx, const struct att_open *o)
{
	struct pass *p = ctx;
	const struct mxbpf_frame *f = o->frame;
	const uint64_t *seen = hash_get(&p->look->spans, f->start_ns, f->tid);
	const struct tgt_doing *d = seen ? &buf_at(&p->look->doings, struct ses_doing, *seen - 1)->doing : NULL;
	struct mxbpf_open r = {
		.h = {.kind = MXBPF_OPEN, .size = sizeof(r), .tgid = o->tgid, .ts_ns = f->start_ns},
		.open_ns = p->now_ns > f->start_ns ? p->now_ns - f->start_ns : 0,
		.name_id = f->name_id,
		.args_id = f->args_id,
		.stack_id = f->stack_id,
		.tid = f->tid,
		.device = f->device,
		.syscall = -1,
		.cls = f->cls,
		.flags = (uint8_t)(f->flags | (o->async ? MXBPF_SPAN_ASYNC : 0)),
		.level = (uint8_t)(o->level < UINT8_MAX ? o->level : UINT8_MAX),
		.layer_id = f->layer_id,
	};

	if (is_over(p->look, f))
		return;
	if (d && (!o->async || d->state == 'X'))
		tell_doing(p->ses, &r, d);
	if (!p->err)
		p->err = buf_put(p->recs, &r, sizeof(r));
}

void ses_open_spans(struct session *ses, struct ses_look *k, uint64_t now_ns, struct buf *recs)
{
	struct pass p = {.ses = ses, .look = k, .recs = recs, .now_ns = now_ns, .err = k->err};
	struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	att_open_spans(b->att, on_second, &p);
	hash_fini(&k->spans);
	hash_fini(&k->threads);
	hash_fini(&k->left);
	buf_fini(&k->doings);
	if (p.err && !ses->write_error)
		ses->write_error = p.err;
}

void ses_note_last(struct session *ses, const struct mxbpf_rec *r)
{
	struct mxbpf_span s;
	uint64_t *at;

	if (!ses->lasts.wanted || r->kind != MXBPF_SPAN)
		return;
	kind_span(r, &s);
	if (!s.end_tid)
		return;
	at = hash_get(&ses->lasts.of, s.end_tid, 0);
	if (at) {
		*buf_at(&ses->lasts.spans, struct mxbpf_span, *at) = s;
		return;
	}
	at = buf_put(&ses->lasts.spans, &s, sizeof(s)) ? NULL : hash_put(&ses->lasts.of, s.end_tid, 0);
	if (at)
		*at = buf_count(&ses->lasts.spans, struct mxbpf_span) - 1;
}
