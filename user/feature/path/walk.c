// SPDX-License-Identifier: Apache-2.0
/*
 * Walks back from the end of an iteration to its start. At each moment the path is in one place: a stream of a GPU, or
 * a thread.
 *
 *   Work of a GPU began when the work before it in its stream had ended, when an event for which its stream waited had
 *   come, or when it was launched: the path goes to what was last.
 *   A thread that waits for the GPU went on when work ended: the path goes to the last work that ended in the wait.
 *   A thread that is in no call has nothing to do if another thread that launches is in one: the path goes there.
 *
 * So each ns of the iteration has one owner. What ran beside it does not count: without it the iteration would have
 * taken as long.
 */
#include <errno.h>
#include <string.h>

#include "feature/steps/steps.h"
#include "feature/path/state.h"

#define THREADS_MAX 64

struct walk {
	const struct mdl *m;
	struct idle_threads threads;
	struct buf work;	    /* struct win_work of the process, by stream and start */
	struct buf waits;	    /* streams that were told to wait for an event, by stream and time */
	uint32_t tids[THREADS_MAX]; /* threads that launch, after that of the iteration */
	unsigned ntids;
	uint32_t tgid, tid; /* where the path is, if `at` is NULL */
	const struct win_work *at;
	uint64_t from_ns, now_ns; /* the path begins at from_ns; it is known from now_ns on */
	struct hash index;	  /* (name_id, part) -> 1 + index in own */
	struct buf own;		  /* struct mxbpf_gpu_path: those of this walk */
};

static int by_stream(const void *va, const void *vb)
{
	const struct win_work *a = va, *b = vb;

	BUF_ORDER(a->track.device, b->track.device);
	BUF_ORDER(a->track.context, b->track.context);
	BUF_ORDER(a->track.stream, b->track.stream);
	return win_by_times(a, b);
}

/* ---- the path */

/* The path was at one thing from ns on. */
static int give(struct walk *w, enum mxbpf_path_part part, uint64_t name_id, uint64_t ns)
{
	const uint64_t since_ns = ns > w->from_ns ? ns : w->from_ns;
	struct mxbpf_gpu_path *r;
	bool added;

	if (since_ns >= w->now_ns)
		return 0;
	r = mdl_item_put(&w->index, &w->own, name_id, part, sizeof(*r), &added);
	if (!r)
		return -ENOMEM;
	r->name_id = name_id;
	r->part = (uint8_t)part;
	add_sat(&r->ns, w->now_ns - since_ns);
	add_sat(&r->count, 1);
	w->now_ns = since_ns;
	return 0;
}

/* ---- on a GPU */

static bool in_one_stream(const struct win_work *a, const struct win_work *b)
{
	return !memcmp(&a->track, &b->track, sizeof(a->track));
}

static const struct win_work *before(const struct walk *w, const struct win_work *one)
{
	return one > (const struct win_work *)w->work.data && in_one_stream(one - 1, one) ? one - 1 : NULL;
}

/* Returns the work that ended last until ns, of those that ended after since_ns. */
static const struct win_work *ended_last(const struct walk *w, uint64_t since_ns, uint64_t ns)
{
	const struct win_work *one, *last = NULL;
	size_t i;

	for (i = 0; i < buf_count(&w->work, *one); i++) {
		one = buf_at(&w->work, struct win_work, i);
		if (one->end_ns > since_ns && one->end_ns <= ns && (!last || one->end_ns > last->end_ns))
			last = one;
	}
	return last;
}

/* Returns whether the stream was told to wait for an event between the launch before and this one. */
static bool waits_for_event(const struct walk *w, const struct win_work *one, const struct activity_call *l,
			    const struct win_work *prev)
{
	const struct activity_call *was = prev ? path_launch_of(w->m, prev) : NULL;
	const struct win_work *wait;
	size_t i;

	for (i = 0; l && i < buf_count(&w->waits, *wait); i++) {
		wait = buf_at(&w->waits, struct win_work, i);
		if (wait->track.stream == one->track.stream && wait->track.context == one->track.context &&
		    wait->start_ns <= l->start_ns && (!was || wait->start_ns >= was->start_ns))
			return true;
	}
	return false;
}

/* Goes to what the work has waited for. */
static int leave_work(struct walk *w, const struct win_work *one)
{
	const struct activity_call *l = path_launch_of(w->m, one);
	const struct win_work *prev = before(w, one), *other = NULL;
	const uint64_t prev_ns = prev ? (prev->end_ns < w->now_ns ? prev->end_ns : w->now_ns) : 0;

	if (waits_for_event(w, one, l, prev))
		other = ended_last(w, prev_ns, w->now_ns);
	if (other && other != one && other->start_ns < one->start_ns && other->end_ns > l->start_ns) {
		w->at = other;
		return give(w, MXBPF_PATH_GAP, 0, other->end_ns);
	}
	if (prev && (!l || prev_ns > l->start_ns)) {
		w->at = prev;
		return give(w, MXBPF_PATH_GAP, 0, prev_ns);
	}
	w->at = NULL;
	if (!l || l->start_ns >= w->now_ns) /* not known, or the clocks differ */
		return 0;
	w->tid = l->tid;
	return give(w, MXBPF_PATH_LAUNCH, l->call_id, l->start_ns);
}

static int step_on_gpu(struct walk *w)
{
	const struct win_work *one = w->at;
	const enum mxbpf_path_part kind = one->cls == MXBPF_ACTIVITY_COPY ? MXBPF_PATH_COPY : MXBPF_PATH_KERNEL;

	if (give(w, kind, one->name_id, one->start_ns))
		return -ENOMEM;
	return w->now_ns > w->from_ns ? leave_work(w, one) : 0;
}

/* ---- on a thread */

static int path_walk_by_thread(const void *va, const void *vb)
{
	const struct idle_piece *a = va, *b = vb;

	BUF_ORDER(a->tid, b->tid);
	BUF_ORDER(a->start_ns, b->start_ns);
	return 0;
}

/* Returns the last piece of a thread that begins before ns, or NULL. */
static const struct idle_piece *piece_before(const struct walk *w, uint32_t tid, uint64_t ns)
{
	const struct idle_piece like = {.start_ns = ns, .tid = tid};
	const size_t n = buf_first(&w->threads.pieces, sizeof(like), &like, path_walk_by_thread);
	const struct idle_piece *p = n ? buf_at(&w->threads.pieces, struct idle_piece, n - 1) : NULL;

	return p && p->tid == tid ? p : NULL;
}

/* Returns the piece in which a thread is just before now: this one, that of the iteration, or another that launches. */
static const struct idle_piece *piece_now(struct walk *w)
{
	const struct idle_piece *p = piece_before(w, w->tid, w->now_ns);
	unsigned i;

	if (p && p->end_ns >= w->now_ns)
		return p;
	for (i = 0; i < w->ntids; i++) {
		p = piece_before(w, w->tids[i], w->now_ns);
		if (!p || p->end_ns < w->now_ns)
			continue;
		w->tid = w->tids[i];
		return p;
	}
	return NULL;
}

/* No thread is in a call: since the last one was, the program has been in its own code or has waited for an exchange.
 */
static int step_outside(struct walk *w)
{
	const struct idle_piece *p;
	struct idle_span exchange;
	uint64_t since_ns = w->from_ns;
	unsigned i;

	for (i = 0; i < w->ntids; i++) {
		p = piece_before(w, w->tids[i], w->now_ns);
		if (!p || p->end_ns <= since_ns)
			continue;
		since_ns = p->end_ns;
		w->tid = w->tids[i];
	}
	if (!idle_exchange_in(&w->threads, w->tgid, since_ns, w->now_ns, &exchange))
		return give(w, MXBPF_PATH_PROGRAM, 0, since_ns);
	if (give(w, MXBPF_PATH_PROGRAM, 0, exchange.end_ns))
		return -ENOMEM;
	return give(w, MXBPF_PATH_OTHERS, exchange.name_id, exchange.start_ns);
}

static enum mxbpf_path_part path_part_of(const struct idle_piece *p)
{
	switch (p->cause) {
	case MXBPF_IDLE_DATA:
		return MXBPF_PATH_DATA;
	case MXBPF_IDLE_COLLECTIVE:
		return MXBPF_PATH_OTHERS;
	case MXBPF_IDLE_HOST:
		return MXBPF_PATH_WAIT;
	}
	return MXBPF_PATH_OPERATOR;
}

static int step_on_thread(struct walk *w)
{
	const struct idle_piece *p = piece_now(w);
	const struct win_work *work;

	if (!p)
		return step_outside(w);
	work = p->cause == MXBPF_IDLE_HOST ? ended_last(w, p->start_ns, w->now_ns) : NULL;
	if (!work)
		return give(w, path_part_of(p), p->name_id, p->start_ns);
	w->at = work;
	return give(w, MXBPF_PATH_WAIT, p->name_id, work->end_ns);
}

/* ---- the walk */

static void add_thread(struct walk *w, uint32_t tid)
{
	unsigned i;

	for (i = 0; i < w->ntids && w->tids[i] != tid; i++)
		;
	if (i < THREADS_MAX && i == w->ntids)
		w->tids[w->ntids++] = tid;
}

static int copy_of_process(struct buf *to, const struct buf *from, uint32_t tgid)
{
	const struct win_work *one;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(from, *one); i++) {
		one = buf_at(from, struct win_work, i);
		if (one->tgid == tgid)
			err = buf_put(to, one, sizeof(*one));
	}
	buf_sort(to, sizeof(*one), by_stream);
	return err;
}

static void add_threads(struct walk *w)
{
	size_t n, i;
	const struct activity_call *l = activity_calls(w->m, &n);

	for (i = 0; i < n; i++)
		if (l[i].tgid == w->tgid)
			add_thread(w, l[i].tid);
}

/* The path ends with the iteration, or with the last work that was launched in it, if that is later. */
static void find_end(struct walk *w, const struct mxbpf_iteration *it)
{
	const uint64_t end_ns = steps_end_ns(it);
	const struct win_work *one;
	const struct activity_call *l;
	size_t i;

	w->now_ns = end_ns;
	for (i = 0; i < buf_count(&w->work, *one); i++) {
		one = buf_at(&w->work, struct win_work, i);
		l = one->end_ns > w->now_ns ? path_launch_of(w->m, one) : NULL;
		if (!l || l->start_ns < it->h.ts_ns || l->start_ns >= end_ns)
			continue;
		w->now_ns = one->end_ns;
		w->at = one;
	}
}

/* Each step goes back in time, or from a GPU to a thread, or to the work before. So there are fewer than these. */
static size_t steps_max(const struct walk *w)
{
	return 4 * (buf_count(&w->work, struct win_work) + buf_count(&w->threads.pieces, struct idle_piece)) + 16;
}

static int walk(struct walk *w)
{
	const size_t most = steps_max(w);
	size_t i;
	int err = 0;

	for (i = 0; !err && i < most && w->now_ns > w->from_ns; i++)
		err = w->at ? step_on_gpu(w) : step_on_thread(w);
	/* Hostile times can lead round in a circle. */
	return err ? err : give(w, MXBPF_PATH_PROGRAM, 0, w->from_ns);
}

static int path_put_parts(const struct walk *w, const struct mxbpf_iteration *it, uint64_t end_ns, struct buf *parts)
{
	struct mxbpf_gpu_path one;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&w->own, one); i++) {
		one = *buf_at(&w->own, struct mxbpf_gpu_path, i);
		one.h = (struct mxbpf_rec){MXBPF_GPU_PATH, sizeof(one), w->tgid, w->from_ns};
		one.end_ns = end_ns;
		one.nr = it->nr;
		err = buf_put(parts, &one, sizeof(one));
	}
	return err;
}

int path_walk(const struct mdl *m, const struct path_state *t, const struct mxbpf_iteration *it, struct buf *parts)
{
	struct walk w = {.m = m, .tgid = it->h.tgid, .tid = it->tid, .from_ns = it->h.ts_ns};
	const struct idle_state *idle = mdl_state_of(m, &feature_idle);
	uint64_t end_ns;
	int err;

	add_thread(&w, it->tid);
	add_threads(&w);
	err = copy_of_process(&w.work, &t->work, w.tgid);
	err = err ? err : copy_of_process(&w.waits, &t->waits, w.tgid);
	if (!err)
		find_end(&w, it);
	end_ns = w.now_ns;
	err = err || !idle ? err : idle_threads_make(m, idle, w.tgid, w.from_ns, w.now_ns, &w.threads);
	err = err ? err : walk(&w);
	err = err ? err : path_put_parts(&w, it, end_ns, parts);
	idle_threads_fini(&w.threads);
	buf_fini(&w.work);
	buf_fini(&w.waits);
	mdl_items_fini(&w.index, &w.own);
	return err ? -ENOMEM : 0;
}
