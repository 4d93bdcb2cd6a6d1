// SPDX-License-Identifier: Apache-2.0
/*
 * Joins work with the calls that launched it, and counts the calls in the order of time. A call is counted when its
 * work is SETTLE_NS old, because a launch of a CUDA graph has work for a while.
 */
#include <errno.h>

#include "feature/activity/activity.h"
#include "feature/launches/state.h"

#define SETTLE_NS   1000000000ull
#define STREAMS_MAX 512u	  /* with a queue: 8 MiB; further ones have none */
#define KEEP_NS	    8000000000ull /* calls are kept for work that starts so much later */

/* A call whose work is complete. */
struct due {
	const struct activity_call *of;
	const struct launches_call *work;
};

static int launches_by_time(const void *va, const void *vb)
{
	const struct due *a = va, *b = vb;

	BUF_ORDER(a->of->start_ns, b->of->start_ns);
	BUF_ORDER(a->of->tgid, b->of->tgid);
	BUF_ORDER(a->of->domain, b->of->domain);
	BUF_ORDER(a->of->edge_id, b->of->edge_id);
	return 0;
}

/* ---- work and its calls */

static int launches_by_number(const void *va, const void *vb)
{
	const struct launches_call *a = va, *b = vb;

	return a->number < b->number ? -1 : a->number > b->number;
}

static struct launches_call *call_of(const struct mdl *m, const struct launches_state *t, const struct win_work *w)
{
	const struct activity_call *of = activity_call_of(m, w->tgid, w->domain, w->edge_id, w->start_ns);
	const struct launches_call like = {.number = of ? activity_call_number(m, of) : 0};
	const size_t i = of ? buf_first(&t->calls, sizeof(like), &like, launches_by_number) : 0;
	struct launches_call *c = buf_at(&t->calls, struct launches_call, i);

	return of && i < buf_count(&t->calls, like) && c->number == like.number ? c : NULL;
}

static void launches_join(struct launches_call *c, const struct win_work *w)
{
	if (!c->nwork) {
		c->work_start_ns = w->start_ns;
		c->track = w->track;
	}
	c->work_end_ns = w->end_ns > c->work_end_ns ? w->end_ns : c->work_end_ns;
	add_sat(&c->work_ns, w->end_ns - w->start_ns);
	c->nwork++;
}

static int join_all(const struct mdl *m, struct launches_state *t, const struct win_work *work, size_t n)
{
	struct launches_call *c;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		c = call_of(m, t, &work[i]);
		if (c)
			launches_join(c, &work[i]);
		err = launches_types_take(m, t, &work[i]);
	}
	return err;
}

/* ---- calls */

/* Adds the work of a call to its stream, and what that makes of the queue to the row. */
static int queue(struct launches_state *t, struct launches_row *r, const struct due *d)
{
	const struct activity_call *of = d->of;
	const struct launches_call *c = d->work;
	const uint64_t stream = win_stream(&c->track);
	const uint64_t device = (uint64_t)of->tgid << 32 | c->track.device;
	struct launches_stream *s;
	uint64_t end_ns;
	bool added;

	if (buf_count(&t->streams, *s) >= STREAMS_MAX && !hash_get(&t->stream_index, stream, device))
		return 0;
	s = mdl_item_put(&t->stream_index, &t->streams, stream, device, sizeof(*s), &added);
	if (!s)
		return -ENOMEM;
	while (s->n && s->ends_ns[s->first] <= of->start_ns) {
		s->first = (s->first + 1) % LAUNCHES_QUEUE_MAX;
		s->n--;
	}
	if (s->n == LAUNCHES_QUEUE_MAX) {
		s->first = (s->first + 1) % LAUNCHES_QUEUE_MAX;
		s->n--;
	}
	s->ends_ns[(s->first + s->n++) % LAUNCHES_QUEUE_MAX] = c->work_end_ns;
	r->a.queue_max = s->n > r->a.queue_max ? s->n : r->a.queue_max;
	if (s->n < MXBPF_QUEUE_FULL)
		return 0;
	/* It has too many until so many have ended that one less than MXBPF_QUEUE_FULL is left. */
	end_ns = s->ends_ns[(s->first + s->n - MXBPF_QUEUE_FULL) % LAUNCHES_QUEUE_MAX];
	s->full_until_ns = of->start_ns > s->full_until_ns ? of->start_ns : s->full_until_ns;
	if (end_ns > s->full_until_ns) {
		add_sat(&r->a.full_ns, end_ns - s->full_until_ns);
		s->full_until_ns = end_ns;
	}
	return 0;
}

static int launches_count(struct launches_state *t, const struct due *d)
{
	const struct activity_call *of = d->of;
	const struct launches_call *c = d->work;
	const struct mxbpf_agg_gpu_launch like = {.h.tgid = of->tgid, .call_id = of->call_id, .track = c->track};
	const uint64_t call_ns = of->end_ns - of->start_ns;
	const uint64_t delay_ns = c->work_start_ns > of->end_ns ? c->work_start_ns - of->end_ns : 0;
	struct launches_row *r = launches_row_of(t, &like);

	if (!r)
		return -ENOMEM;
	add_sat(&r->a.count, 1);
	add_sat(&r->a.call_ns, call_ns);
	r->a.call_max_ns = call_ns > r->a.call_max_ns ? call_ns : r->a.call_max_ns;
	add_sat(&r->a.slow_calls, call_ns > MXBPF_SLOW_CALL_NS);
	add_sat(&r->a.shorter, c->nwork == 1 && c->work_ns < call_ns);
	add_sat(&r->a.delay_ns, delay_ns);
	r->a.delay_max_ns = delay_ns > r->a.delay_max_ns ? delay_ns : r->a.delay_max_ns;
	add_sat(&r->a.delayed, delay_ns > MXBPF_LONG_DELAY_NS);
	add_sat(&r->a.queued_ns, c->work_end_ns > of->start_ns ? c->work_end_ns - of->start_ns : 0);
	add_sat(&r->hist[mxbpf_bucket(delay_ns)], 1);
	return queue(t, r, d);
}

static int count_due(struct launches_state *t, struct buf *dues)
{
	size_t i;
	int err = 0;

	buf_sort(dues, sizeof(struct due), launches_by_time);
	for (i = 0; !err && i < buf_count(dues, struct due); i++)
		err = launches_count(t, buf_at(dues, struct due, i));
	return err;
}

/* Counts the calls that have their work, and forgets those that will have none. */
static int count_all(const struct mdl *m, struct launches_state *t, uint64_t until_ns, uint64_t now_ns)
{
	const bool all = until_ns == UINT64_MAX;
	const uint64_t settled_ns = all ? until_ns : until_ns > SETTLE_NS ? until_ns - SETTLE_NS : 0;
	const uint64_t since_ns = now_ns > KEEP_NS ? now_ns - KEEP_NS : 0;
	struct launches_call *c = (struct launches_call *)t->calls.data;
	const size_t n = buf_count(&t->calls, *c);
	struct buf dues = {0}, left = {0};
	struct due d;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		d = (struct due){activity_call_at(m, c[i].number), &c[i]};
		if (d.of && c[i].nwork && d.of->start_ns < settled_ns)
			err = buf_put(&dues, &d, sizeof(d));
		else if (d.of && (c[i].nwork || d.of->end_ns >= since_ns))
			err = buf_put(&left, &c[i], sizeof(c[i]));
	}
	err = err ? err : count_due(t, &dues);
	buf_fini(&dues);
	buf_fini(&t->calls);
	t->calls = left;
	return err;
}

int launches_sweep(const struct mdl *m, struct launches_state *t, const struct win_work *work, size_t n,
		   uint64_t until_ns)
{
	int err = join_all(m, t, work, n);

	err = err ? err : count_all(m, t, until_ns, until_ns != UINT64_MAX ? until_ns : n ? work[n - 1].start_ns : 0);
	if (!err && until_ns == UINT64_MAX)
		launches_types_finish(t);
	return err;
}
