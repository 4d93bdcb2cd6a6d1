// SPDX-License-Identifier: Apache-2.0
/* Divides the time of threads into pieces, in each of which the thread did one thing, by the spans that were open. */
#include <errno.h>

#include "feature/activity/activity.h"
#include "feature/idle/state.h"
#include "feature/steps/steps.h"

#define DEPTH_MAX 128 /* deeper spans count as the one around them */

/* What a name says. */
enum role { ROLE_DATA = 1, ROLE_EXCHANGE = 2, ROLE_WAIT = 4, ROLE_KNOWN = 8 };

struct frame {
	uint64_t end_ns;
	struct idle_piece does; /* what the thread does while it is the innermost one; cause 0: nothing */
};

struct stack {
	const struct mdl *m;
	struct hash roles; /* (name_id, 0) -> enum role */
	struct idle_threads *to;
	struct frame frames[DEPTH_MAX];
	unsigned depth;
	uint64_t now_ns;
};

static unsigned idle_role_of(struct stack *k, uint64_t name_id)
{
	uint64_t *at = hash_put(&k->roles, name_id, 0);
	const char *name;
	unsigned role = 0;
	size_t len;

	if (at && *at)
		return (unsigned)*at;
	name = mdl_name(k->m, name_id, &len);
	role |= steps_is_data(k->m, name_id) ? ROLE_DATA : 0;
	role |= steps_is_exchange(k->m, name_id) ? ROLE_EXCHANGE : 0;
	role |= activity_is_wait(name, len) ? ROLE_WAIT : 0;
	if (at)
		*at = role | ROLE_KNOWN;
	return role;
}

/* Returns 0 for spans that say nothing: annotations of the user. */
static enum mxbpf_idle_cause cause_of(const struct idle_span *s, unsigned role)
{
	if (s->cls == MXBPF_CLASS_DATA || role & ROLE_DATA)
		return MXBPF_IDLE_DATA;
	if (s->cls == MXBPF_CLASS_KVSTORE || role & ROLE_EXCHANGE)
		return MXBPF_IDLE_COLLECTIVE;
	if (s->user)
		return 0;
	switch (s->cls) {
	case MXBPF_CLASS_WAIT:
		return MXBPF_IDLE_HOST;
	case MXBPF_CLASS_CUDA:
		return role & ROLE_WAIT ? MXBPF_IDLE_HOST : MXBPF_IDLE_OPERATOR;
	case MXBPF_CLASS_API:
	case MXBPF_CLASS_OPERATOR:
	case MXBPF_CLASS_KERNEL:
	case MXBPF_CLASS_CUSTOM:
		return MXBPF_IDLE_OPERATOR;
	default:
		return 0;
	}
}

/*
 * What is waited for outweighs what the thread does in detail. Calls of CUDA belong to the operator around them, which
 * says more to people.
 */
static struct idle_piece does(const struct idle_piece *outer, const struct idle_span *s, enum mxbpf_idle_cause cause)
{
	const bool in_operator = outer && outer->cause == MXBPF_IDLE_OPERATOR;
	struct idle_piece p = {.since_ns = s->start_ns,
			       .name_id = s->name_id,
			       .stack_id = s->stack_id,
			       .tgid = s->tgid,
			       .tid = s->tid,
			       .cause = (uint8_t)cause};

	if (outer && outer->cause && !in_operator)
		return *outer;
	if (outer && (!cause || (in_operator && s->cls == MXBPF_CLASS_CUDA && cause == MXBPF_IDLE_OPERATOR)))
		return *outer;
	if (in_operator && cause == MXBPF_IDLE_HOST)
		p.name_id = outer->name_id;
	if (in_operator && !p.stack_id)
		p.stack_id = outer->stack_id;
	p.runq = cause == MXBPF_IDLE_OPERATOR ? s->runq : 0;
	p.blocked = cause == MXBPF_IDLE_OPERATOR ? s->blocked : 0;
	return p;
}

/* Puts what the innermost frame does until ns. */
static int idle_put(struct stack *k, uint64_t ns)
{
	const struct frame *f = k->depth ? &k->frames[k->depth - 1] : NULL;
	struct idle_piece p;

	if (ns <= k->now_ns)
		return 0;
	if (f && f->does.cause) {
		p = f->does;
		p.start_ns = k->now_ns;
		p.end_ns = ns;
		if (buf_put(&k->to->pieces, &p, sizeof(p)))
			return -ENOMEM;
	}
	k->now_ns = ns;
	return 0;
}

/* Ends the frames that end before ns. */
static int idle_end(struct stack *k, uint64_t ns)
{
	int err = 0;

	for (; !err && k->depth && k->frames[k->depth - 1].end_ns <= ns; k->depth--)
		err = idle_put(k, k->frames[k->depth - 1].end_ns);
	return err;
}

static int idle_threads_begin(struct stack *k, const struct idle_span *s)
{
	const unsigned role = idle_role_of(k, s->name_id);
	const struct idle_piece *outer;

	if (role & ROLE_EXCHANGE && buf_put(&k->to->exchanges, s, sizeof(*s)))
		return -ENOMEM;
	if (s->async)
		return 0;
	if (idle_end(k, s->start_ns) || idle_put(k, s->start_ns))
		return -ENOMEM;
	if (k->depth == DEPTH_MAX)
		return 0;
	outer = k->depth ? &k->frames[k->depth - 1].does : NULL;
	k->frames[k->depth].does = does(outer, s, cause_of(s, role));
	k->frames[k->depth++].end_ns = s->end_ns;
	return 0;
}

/* By process, thread and start; of those that start together, the outer one is first. */
static int idle_threads_by_thread(const void *va, const void *vb)
{
	const struct idle_span *a = va, *b = vb;

	BUF_ORDER(a->tgid, b->tgid);
	BUF_ORDER(a->tid, b->tid);
	BUF_ORDER(a->start_ns, b->start_ns);
	BUF_ORDER(b->end_ns, a->end_ns);
	return (a->cls == MXBPF_CLASS_CUDA) - (b->cls == MXBPF_CLASS_CUDA);
}

static int idle_threads_by_end(const void *va, const void *vb)
{
	const struct idle_span *a = va, *b = vb;

	BUF_ORDER(a->tgid, b->tgid);
	BUF_ORDER(a->end_ns, b->end_ns);
	return 0;
}

int idle_threads_make(const struct mdl *m, const struct idle_state *t, uint32_t tgid, uint64_t from_ns, uint64_t to_ns,
		      struct idle_threads *to)
{
	struct stack k = {.m = m, .to = to};
	struct buf spans = {0};
	const struct idle_span *s;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&t->spans, *s); i++) {
		s = buf_at(&t->spans, struct idle_span, i);
		if ((!tgid || s->tgid == tgid) && (s->end_ns > from_ns || i >= t->nswept) && s->start_ns < to_ns)
			err = buf_put(&spans, s, sizeof(*s));
	}
	buf_sort(&spans, sizeof(*s), idle_threads_by_thread);
	s = (const struct idle_span *)spans.data;
	for (i = 0; !err && i < buf_count(&spans, *s); i++) {
		if (!i || s[i].tgid != s[i - 1].tgid || s[i].tid != s[i - 1].tid) {
			err = idle_end(&k, UINT64_MAX);
			k.now_ns = 0;
		}
		err = err ? err : idle_threads_begin(&k, &s[i]);
	}
	err = err ? err : idle_end(&k, UINT64_MAX);
	buf_sort(&to->exchanges, sizeof(*s), idle_threads_by_end);
	hash_fini(&k.roles);
	buf_fini(&spans);
	return err;
}

void idle_threads_fini(struct idle_threads *t)
{
	buf_fini(&t->pieces);
	buf_fini(&t->exchanges);
}

static int by_thread_and_end(const void *va, const void *vb)
{
	const struct idle_piece *a = va, *b = vb;

	BUF_ORDER(a->tgid, b->tgid);
	BUF_ORDER(a->tid, b->tid);
	BUF_ORDER(a->end_ns, b->end_ns);
	return 0;
}

const struct idle_piece *idle_piece_at(const struct idle_threads *t, uint32_t tgid, uint32_t tid, uint64_t ns,
				       uint64_t *end_ns)
{
	const struct idle_piece like = {.end_ns = ns + 1, .tgid = tgid, .tid = tid};
	const size_t i = buf_first(&t->pieces, sizeof(like), &like, by_thread_and_end);
	const struct idle_piece *p = buf_at(&t->pieces, struct idle_piece, i);

	if (i == buf_count(&t->pieces, *p) || p->tgid != tgid || p->tid != tid) {
		*end_ns = UINT64_MAX;
		return NULL;
	}
	*end_ns = p->start_ns <= ns ? p->end_ns : p->start_ns;
	return p->start_ns <= ns ? p : NULL;
}

bool idle_exchange_in(const struct idle_threads *t, uint32_t tgid, uint64_t from_ns, uint64_t to_ns,
		      struct idle_span *found)
{
	const struct idle_span like = {.end_ns = from_ns + 1, .tgid = tgid}, *s;
	size_t i = buf_first(&t->exchanges, sizeof(like), &like, idle_threads_by_end);
	bool any = false;

	for (; i < buf_count(&t->exchanges, *s); i++) {
		s = buf_at(&t->exchanges, struct idle_span, i);
		if (s->tgid != tgid || s->end_ns > to_ns)
			break;
		if (!any)
			*found = *s;
		found->start_ns = s->start_ns < found->start_ns ? s->start_ns : found->start_ns;
		found->end_ns = s->end_ns;
		any = true;
	}
	if (!any)
		return false;
	found->start_ns = found->start_ns > from_ns ? found->start_ns : from_ns;
	return to_ns - found->end_ns <= (found->end_ns - found->start_ns) / 2;
}
