// SPDX-License-Identifier: Apache-2.0
/*
 * Joins activities of devices to the spans that launched them: activity -> edge -> launch -> the spans of the launch's
 * thread that enclose it. Spans, launches and activities come in any order, so each of them looks for the others that
 * came before it, and the rows are right at the end of each window.
 *
 * A span that comes later than a launch finds it among the launches of its thread. A launch that comes later than a
 * span waits for the end of the window, when one walk over the thread's last spans serves all fresh launches.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/activity/join.h"
#include "feature/ranges/ranges.h"
#include "feature/roofline/roofline.h"

#define WAITERS_MAX (1u << 18) /* activities that can wait for their launch; if there are more, all that wait stay */
#define SPANS_MAX   (1u << 19) /* remembered spans of all threads: 36 MiB */
#define BACKLOG_MAX (1u << 12) /* remembered spans while there is no sign of a GPU: 288 KiB */
#define THREADS_MAX 4096
#define REUSES_MAX  16 /* launches with the same id that an activity looks at */

/* What a span wants to be the owner of a launch. The highest rank wins, and of equals the innermost one. */
enum rank { RANK_OUTSIDE, RANK_ANNOTATION, RANK_CALL, RANK_OPERATOR };

struct waiter {
	struct work work;
	struct activity_row *row;
	uint32_t next; /* 1 + index of the next waiter for the edge, or of the next free one; 0: none */
};

/* Returns the second word of an edge's key. The first word is its id. */
static uint64_t edge_of(uint32_t tgid, uint16_t domain)
{
	return (uint64_t)tgid << 16 | domain;
}

/* ---- a launch and its spans */

static bool has_latency(const struct launch *l)
{
	return l->latency_ns != NONE && !l->moved;
}

static void own(struct join *j, struct launch *l, uint32_t place)
{
	if (l->own) {
		work_sub(&work_row_at(j, l->own)->a.self, &l->self);
		if (has_latency(l))
			work_latency_sub(work_row_at(j, l->own), l->latency_ns);
	}
	l->own = place;
	if (place) {
		work_add(&work_row_at(j, place)->a.self, &l->self);
		if (has_latency(l))
			work_latency_add(work_row_at(j, place), l->latency_ns);
	}
}

/* Moves a launch to the row of its owner's Python stack; 0: the owner has none. */
static void own_stack(struct join *j, struct launch *l, uint32_t place)
{
	if (l->own_stack)
		work_sub(&work_row_at(j, l->own_stack)->a.self, &l->self);
	l->own_stack = place;
	if (place)
		work_add(&work_row_at(j, place)->a.self, &l->self);
}

/* Calls that a graph replays have shapes once, so their rates are not known. */
static void own_roof(struct mdl *m, struct launch *l, uint32_t place)
{
	if (l->node || l->graph)
		return;
	if (l->own_roof)
		work_sub(&roofline_row(m, l->own_roof)->self, &l->work);
	l->own_roof = place;
	if (place)
		work_add(&roofline_row(m, place)->self, &l->work);
}

static struct mxbpf_gpu_work *total_at(struct mdl *m, const struct join *j, uint32_t credit)
{
	return credit & CREDIT_ROOF ? &roofline_row(m, credit & ~CREDIT_ROOF)->total : &work_row_at(j, credit)->a.total;
}

/*
 * What a node has already, launches have given to the rows around them, among which a span that comes so late can be
 * as well.
 */
static void credit(struct mdl *m, struct join *j, struct launch *l, uint32_t place)
{
	unsigned i;

	for (i = 0; i < l->ncredits; i++)
		if (l->credits[i] == place)
			return;
	if (!place || l->ncredits == CREDITS_MAX)
		return;
	l->credits[l->ncredits++] = place;
	if (!l->node)
		work_add(total_at(m, j, place), &l->work);
}

static enum rank rank_of(const struct span *s)
{
	switch (s->cls) {
	case MXBPF_CLASS_TASK:
	case MXBPF_CLASS_FRAME:
	case MXBPF_CLASS_EVENT:
	case MXBPF_CLASS_STEP:
		return RANK_ANNOTATION;
	case MXBPF_CLASS_OPERATOR:
	case MXBPF_CLASS_KERNEL:
		return s->user ? RANK_ANNOTATION : RANK_OPERATOR;
	}
	return s->user ? RANK_ANNOTATION : RANK_CALL;
}

static bool is_better_owner(const struct launch *l, const struct span *s, enum rank rank)
{
	if (rank != l->rank)
		return rank > l->rank;
	return s->start_ns > l->owner_start || (s->start_ns == l->owner_start && s->end_ns < l->owner_end);
}

/* The rows of a span, which are looked up for its first launch. */
struct rows_of_span {
	bool known;
	uint32_t calls, layer, stack, roof; /* places; 0: none */
};

static int find_rows(struct mdl *m, struct join *j, const struct span *s, struct rows_of_span *rows)
{
	const struct mxbpf_agg_gpu_work calls = {
		.h.tgid = s->tgid, .of = MXBPF_WORK_OF_CALLS, .name_id = s->name_id, .cls = s->cls, .user = s->user};
	const struct mxbpf_agg_gpu_work layer = {.h.tgid = s->tgid, .of = MXBPF_WORK_OF_LAYER, .layer_id = s->layer_id};
	const struct roofline_row roof = {.tgid = s->tgid, .name_id = s->name_id, .args_id = s->args_id};
	struct mxbpf_agg_gpu_work stack = calls;

	stack.of = MXBPF_WORK_OF_STACK;
	stack.stack_id = s->stack_id;
	if (work_row(m, j, &calls, &rows->calls) || (s->layer_id && work_row(m, j, &layer, &rows->layer)) ||
	    (s->stack_id && work_row(m, j, &stack, &rows->stack)) ||
	    (s->args_id && rank_of(s) == RANK_OPERATOR && roofline_place(m, &roof, &rows->roof)))
		return -ENOMEM;
	rows->known = true;
	return 0;
}

static int enclose(struct mdl *m, struct join *j, struct launch *l, const struct span *s, struct rows_of_span *rows)
{
	const enum rank rank = rank_of(s);

	if (!rows->known && find_rows(m, j, s, rows))
		return -ENOMEM;
	credit(m, j, l, rows->calls);
	credit(m, j, l, rows->layer);
	credit(m, j, l, rows->roof && !l->node ? rows->roof | CREDIT_ROOF : 0);
	if (rows->calls && is_better_owner(l, s, rank)) {
		own(j, l, rows->calls);
		own_stack(j, l, rows->stack);
		own_roof(m, l, rows->roof);
		l->rank = (uint8_t)rank;
		l->owner_start = s->start_ns;
		l->owner_end = s->end_ns;
	}
	return 0;
}

size_t join_first_moment(const struct buf *moments, size_t low, uint64_t ns)
{
	size_t high = buf_count(moments, struct moment), mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (buf_at(moments, struct moment, mid)->ns < ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Joins a span with those of the launches, ordered by time, that it encloses. */
static int enclose_all(struct mdl *m, struct join *j, const struct buf *launches, size_t first, struct span *s)
{
	struct rows_of_span rows = {.known = false};
	struct launch *l;
	size_t i;
	int err = 0;

	for (i = join_first_moment(launches, first, s->start_ns); !err && i < buf_count(launches, struct moment); i++) {
		if (buf_at(launches, struct moment, i)->ns >= s->end_ns)
			break;
		l = launch_of_moment(j, buf_at(launches, struct moment, i));
		err = l ? enclose(m, j, l, s, &rows) : 0;
		err = !err && l && l->node ? graphs_touch(j, l) : err;
	}
	if (rows.roof && !s->launched)
		add_sat(&roofline_row(m, rows.roof)->calls, 1);
	s->launched |= rows.known;
	return err;
}

/* ---- threads and their spans */

int join_thread(struct join *j, uint32_t tgid, uint32_t tid, struct thread **t)
{
	bool added;

	*t = NULL;
	if (buf_count(&j->threads, struct thread) >= THREADS_MAX && !hash_get(&j->thread_index, tid, tgid))
		return 0;
	*t = mdl_item_put(&j->thread_index, &j->threads, tid, tgid, sizeof(**t), &added);
	if (*t)
		(*t)->tgid = tgid;
	return *t ? 0 : -ENOMEM;
}

/* Forgets the older half of the spans of a thread. */
static void forget_spans(struct join *j, struct thread *t)
{
	const size_t n = buf_count(&t->spans, struct span), gone = n - n / 2;

	if (!gone)
		return;
	t->lost_spans_ns = buf_at(&t->spans, struct span, gone - 1)->max_end_ns;
	t->spans.len = (n - gone) * sizeof(struct span);
	memmove(t->spans.data, t->spans.data + gone * sizeof(struct span), t->spans.len);
	j->nspans -= gone;
}

static void forget_launches(const struct join *j, struct thread *t)
{
	const size_t n = buf_count(&t->launches, struct moment);

	while (t->first < n && !is_kept(j, buf_at(&t->launches, struct moment, t->first)))
		t->lost_launch_ns = buf_at(&t->launches, struct moment, t->first++)->ns;
	if (t->first * 2 < n || !t->first)
		return;
	t->launches.len -= t->first * sizeof(struct moment);
	memmove(t->launches.data, t->launches.data + t->first * sizeof(struct moment), t->launches.len);
	t->first = 0;
}

static int keep_span(struct mdl *m, struct join *j, const struct span *span)
{
	struct span s = *span, *last;
	struct activity_join *c;
	struct thread *t;
	int err = join_thread(j, s.tgid, s.tid, &t);

	if (err || !t)
		return err;
	if (j->nspans >= SPANS_MAX)
		forget_spans(j, t);
	last = t->spans.len ? buf_at(&t->spans, struct span, buf_count(&t->spans, struct span) - 1) : NULL;
	s.max_end_ns = last && last->max_end_ns > s.end_ns ? last->max_end_ns : s.end_ns;
	if (buf_put(&t->spans, &s, sizeof(s)))
		return -ENOMEM;
	j->nspans++;
	if (!t->launches.len)
		return 0;
	forget_launches(j, t);
	if (s.start_ns < t->lost_launch_ns) {
		c = work_counts(m, s.tgid);
		if (!c)
			return -ENOMEM;
		add_sat(&c->late_spans, 1);
	}
	last = buf_at(&t->spans, struct span, buf_count(&t->spans, struct span) - 1);
	return enclose_all(m, j, &t->launches, t->first, last);
}

static struct span span_of(const struct mxbpf_span *s)
{
	return (struct span){
		.start_ns = s->h.ts_ns,
		.end_ns = s->h.ts_ns + s->dur_ns,
		.name_id = s->name_id,
		.layer_id = s->layer_id,
		.stack_id = s->stack_id,
		.args_id = s->args_id,
		.tgid = s->h.tgid,
		.tid = s->tid,
		.cls = s->cls,
		.user = !!(s->flags & MXBPF_SPAN_USER),
	};
}

/* While a span with MXBPF_SPAN_ASYNC was open, its thread was in other spans. */
int join_span(struct mdl *m, struct join *j, const struct mxbpf_span *s)
{
	struct span span;

	if (s->flags & MXBPF_SPAN_ASYNC)
		return 0;
	if (j->on) {
		span = span_of(s);
		return keep_span(m, j, &span);
	}
	if (!j->backlog)
		j->backlog = malloc(BACKLOG_MAX * sizeof(*j->backlog));
	if (!j->backlog)
		return -ENOMEM;
	j->backlog[j->nbacklog++ % BACKLOG_MAX] = span_of(s);
	return 0;
}

int join_on(struct mdl *m, struct join *j)
{
	uint64_t i = j->nbacklog > BACKLOG_MAX ? j->nbacklog - BACKLOG_MAX : 0;
	int err = 0;

	if (j->on)
		return 0;
	j->on = true;
	for (; !err && i < j->nbacklog; i++)
		err = keep_span(m, j, &j->backlog[i % BACKLOG_MAX]);
	free(j->backlog);
	j->backlog = NULL;
	return err;
}

/* ---- launches */

void join_give_self(struct join *j, struct launch *l, const struct mxbpf_gpu_work *sum)
{
	work_add(&l->self, sum);
	if (l->own)
		work_add(&work_row_at(j, l->own)->a.self, sum);
	if (l->own_stack)
		work_add(&work_row_at(j, l->own_stack)->a.self, sum);
}

void join_take_self(struct join *j, struct launch *l, const struct mxbpf_gpu_work *sum)
{
	work_sub(&l->self, sum);
	if (l->own)
		work_sub(&work_row_at(j, l->own)->a.self, sum);
	if (l->own_stack)
		work_sub(&work_row_at(j, l->own_stack)->a.self, sum);
}

/* Gives an activity to its launch. */
static int activity_attach(struct mdl *m, struct join *j, struct launch *l, const struct work *w)
{
	const uint64_t latency_ns = work_less(w->start_ns, l->ts_ns);
	struct activity_work *r = l->own ? work_row_at(j, l->own) : NULL;
	struct activity_join *c;
	uint32_t place;
	unsigned i;

	if (w->kernel_id &&
	    ranges_kernel(m, &(struct ranges_launch){l->ts_ns, tgid_of(l), l->tid}, w->kernel_id, w->sum.gpu_ns))
		return -ENOMEM;
	if (!l->works) {
		c = work_counts(m, tgid_of(l));
		if (!c)
			return -ENOMEM;
		c->without_work = work_less(c->without_work, 1);
		l->works = true;
	}
	if (w->graph && !l->graph) {
		if (work_row_of_kind(m, j, tgid_of(l), MXBPF_WORK_OF_GRAPH, w->graph, &place))
			return -ENOMEM;
		if (place)
			add_sat(&work_row_at(j, place)->a.total.launches, 1);
		l->graph = true;
	}
	work_add(&l->work, &w->sum);
	if (!w->placed)
		join_give_self(j, l, &w->sum);
	if (l->slot)
		work_add(&buf_at(&j->slots, struct slot, l->slot - 1)->work, &w->sum);
	for (i = 0; i < l->ncredits; i++)
		work_add(total_at(m, j, l->credits[i]), &w->sum);
	if (l->own_roof && !l->graph)
		work_add(&roofline_row(m, l->own_roof)->self, &w->sum);
	if (l->moved || latency_ns >= l->latency_ns)
		return 0;
	if (r && l->latency_ns != NONE)
		work_latency_sub(r, l->latency_ns);
	l->latency_ns = latency_ns;
	if (r)
		work_latency_add(r, latency_ns);
	return 0;
}

/* Returns where the next launch is kept. The launch that was there is forgotten. */
static struct launch *launch_new(struct join *j)
{
	struct launch *l;
	uint64_t *last;

	if (j->nlaunches < LAUNCHES_MAX)
		return buf_add(&j->launches, sizeof(*l));
	l = buf_at(&j->launches, struct launch, j->nlaunches % LAUNCHES_MAX);
	j->lost_ns = l->ts_ns > j->lost_ns ? l->ts_ns : j->lost_ns;
	last = hash_get(&j->by_edge, l->edge_id, l->edge_of);
	if (last && *last == j->nlaunches - LAUNCHES_MAX + 1)
		hash_del(&j->by_edge, l->edge_id, l->edge_of, NULL);
	return l;
}

static int add_launch(struct mdl *m, struct join *j, const struct mxbpf_launch *from, struct launch **l)
{
	const uint64_t of = edge_of(from->h.tgid, from->domain);
	uint64_t *at;
	uint32_t place;

	*l = launch_new(j);
	at = *l ? hash_put(&j->by_edge, from->edge_id, of) : NULL;
	if (!at || work_row_of_kind(m, j, from->h.tgid, MXBPF_WORK_OF_OUTSIDE, 0, &place))
		return -ENOMEM;
	**l = (struct launch){.edge_id = from->edge_id,
			      .edge_of = of,
			      .ts_ns = from->h.ts_ns,
			      .tid = from->tid,
			      .previous = *at,
			      .latency_ns = NONE,
			      .work = {.launches = 1},
			      .self = {.launches = 1}};
	j->first_ns = !j->nlaunches || from->h.ts_ns < j->first_ns ? from->h.ts_ns : j->first_ns;
	*at = ++j->nlaunches;
	own(j, *l, place);
	return 0;
}

/* Takes the activities that have waited for a launch. */
static int take_waiters(struct mdl *m, struct join *j, struct launch *l)
{
	uint64_t place = 0;
	struct waiter *w;
	uint32_t next, unknown;
	int err = work_row_of_kind(m, j, tgid_of(l), MXBPF_WORK_OF_UNKNOWN, 0, &unknown);

	hash_del(&j->waiting, l->edge_id, l->edge_of, &place);
	for (; !err && place; place = next) {
		w = buf_at(&j->waiters, struct waiter, place - 1);
		next = w->next;
		w->row->a.unlaunched = work_less(w->row->a.unlaunched, 1);
		if (unknown && !w->work.placed)
			work_sub(&work_row_at(j, unknown)->a.self, &w->work.sum);
		err = activity_attach(m, j, l, &w->work);
		w->next = j->free_waiter;
		j->free_waiter = (uint32_t)place;
	}
	return err;
}

int join_fresh(struct join *j, struct thread *t, const struct moment *moment)
{
	const uint32_t index = (uint32_t)(t - thread_at(j, 0));

	if (!t->fresh.len && buf_put(&j->fresh, &index, sizeof(index)))
		return -ENOMEM;
	return buf_put(&t->fresh, moment, sizeof(*moment));
}

int join_launch(struct mdl *m, struct join *j, const struct mxbpf_launch *from)
{
	const struct moment moment = {from->h.ts_ns, j->nlaunches};
	struct activity_join *c;
	struct launch *l;
	struct thread *t;

	if (join_on(m, j) || join_thread(j, from->h.tgid, from->tid, &t) || add_launch(m, j, from, &l))
		return -ENOMEM;
	c = work_counts(m, from->h.tgid);
	if (!c)
		return -ENOMEM;
	add_sat(&c->launches, 1);
	add_sat(&c->without_work, 1);
	add_sat(&c->late_launches, !t || from->h.ts_ns < t->lost_spans_ns);
	if (t && join_fresh(j, t, &moment))
		return -ENOMEM;
	return j->waiting.len ? take_waiters(m, j, l) : 0;
}

static int activity_by_time(const void *va, const void *vb)
{
	const struct moment *a = va, *b = vb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->launch < b->launch ? -1 : a->launch > b->launch;
}

/* ---- the end of a window */

/* Moves the fresh launches of a thread to the others, which stay ordered by time. */
static int merge_fresh(struct thread *t)
{
	size_t i = buf_count(&t->launches, struct moment), k = buf_count(&t->fresh, struct moment), to = i + k;
	const struct moment *fresh = (const struct moment *)t->fresh.data;
	struct moment *all;

	if (!buf_add(&t->launches, t->fresh.len))
		return -ENOMEM;
	all = (struct moment *)t->launches.data;
	while (k)
		if (i > t->first && all[i - 1].ns > fresh[k - 1].ns)
			all[--to] = all[--i];
		else
			all[--to] = fresh[--k];
	t->fresh.len = 0;
	return 0;
}

/* Joins the fresh launches of a thread with the spans that came before them. */
static int activity_settle(struct mdl *m, struct join *j, struct thread *t)
{
	const size_t n = buf_count(&t->fresh, struct moment);
	struct span *s;
	uint64_t first_ns, last_ns;
	size_t i;
	int err = 0;

	if (!n)
		return 0;
	qsort(t->fresh.data, n, sizeof(struct moment), activity_by_time);
	first_ns = buf_at(&t->fresh, struct moment, 0)->ns;
	last_ns = buf_at(&t->fresh, struct moment, n - 1)->ns;
	for (i = buf_count(&t->spans, struct span); !err && i; i--) {
		s = buf_at(&t->spans, struct span, i - 1);
		if (s->max_end_ns <= first_ns)
			break;
		if (s->start_ns <= last_ns)
			err = enclose_all(m, j, &t->fresh, 0, s);
	}
	for (i = 0; i < n; i++)
		join_find_slot(j, t->tgid, buf_at(&t->fresh, struct moment, i));
	forget_launches(j, t);
	return err ? err : merge_fresh(t);
}

int join_window(struct mdl *m, struct join *j)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&j->fresh, uint32_t); i++)
		err = activity_settle(m, j, thread_at(j, *buf_at(&j->fresh, uint32_t, i)));
	j->fresh.len = 0;
	return err ? err : graphs_settle(m, j);
}

/* ---- activities */

/*
 * The launch is the last one with the id that is not later than the start of the activity. If all are later, the clocks
 * were converted inexactly, and the first one is it.
 */
struct launch *join_launch_of(const struct join *j, const struct graph_work *w)
{
	const uint64_t *at =
		w->domain == MXBPF_DOMAIN_NONE ? NULL : hash_get(&j->by_edge, w->edge_id, edge_of(w->tgid, w->domain));
	struct launch *l = at ? launch_at(j, *at - 1) : NULL, *earlier;
	unsigned i;

	for (i = 0; l && l->ts_ns > w->work.start_ns && l->previous && i < REUSES_MAX; i++) {
		earlier = launch_at(j, l->previous - 1);
		if (!earlier)
			break;
		l = earlier;
	}
	return l;
}

static int wait_for(struct join *j, const struct graph_work *from)
{
	struct waiter w = {.work = from->work, .row = from->row};
	uint32_t place = j->free_waiter;
	uint64_t *at;

	if (!place && buf_count(&j->waiters, struct waiter) == WAITERS_MAX) {
		hash_clear(&j->waiting);
		j->waiters.len = 0;
	}
	at = hash_put(&j->waiting, from->edge_id, edge_of(from->tgid, from->domain));
	if (!at)
		return -ENOMEM;
	w.next = (uint32_t)*at;
	if (place) {
		j->free_waiter = buf_at(&j->waiters, struct waiter, place - 1)->next;
		*buf_at(&j->waiters, struct waiter, place - 1) = w;
	} else {
		if (buf_put(&j->waiters, &w, sizeof(w)))
			return -ENOMEM;
		place = (uint32_t)buf_count(&j->waiters, struct waiter);
	}
	*at = place;
	return 0;
}

int join_work(struct mdl *m, struct join *j, const struct graph_work *w)
{
	struct launch *l = join_launch_of(j, w);
	uint32_t place;

	if (l)
		return activity_attach(m, j, l, &w->work);
	if (work_row_of_kind(m, j, w->tgid, MXBPF_WORK_OF_UNKNOWN, 0, &place))
		return -ENOMEM;
	if (place && !w->work.placed)
		work_add(&work_row_at(j, place)->a.self, &w->work.sum);
	if (w->domain == MXBPF_DOMAIN_NONE)
		return 0;
	add_sat(&w->row->a.unlaunched, 1);
	return wait_for(j, w);
}

int join_activity(struct mdl *m, struct join *j, const struct mxbpf_activity *a, struct activity_row *row)
{
	const struct graph_work w = {.row = row,
				     .edge_id = a->edge_id,
				     .tgid = a->h.tgid,
				     .domain = a->domain,
				     .work = {.start_ns = a->h.ts_ns,
					      .graph = a->graph,
					      .node = a->graph_node,
					      .kernel_id = a->cls == MXBPF_ACTIVITY_KERNEL ? a->name_id : 0,
					      .sum = {.kernels = a->cls == MXBPF_ACTIVITY_KERNEL,
						      .copies = a->cls == MXBPF_ACTIVITY_COPY,
						      .gpu_ns = a->dur_ns,
						      .bytes = a->cls == MXBPF_ACTIVITY_COPY ? a->bytes : 0}}};
	uint32_t place;
	int taken = 0;

	if (join_on(m, j))
		return -ENOMEM;
	if (a->graph) {
		if (work_row_of_kind(m, j, a->h.tgid, MXBPF_WORK_OF_GRAPH, a->graph, &place))
			return -ENOMEM;
		if (place)
			work_add(&work_row_at(j, place)->a.total, &w.work.sum);
		taken = graphs_take(m, j, &w);
	}
	if (taken > 0 && graphs_full(j))
		return join_window(m, j);
	return taken ? (taken < 0 ? taken : 0) : join_work(m, j, &w);
}

/* ---- the state */

/*
 * `to` goes on with the spans and launches. Activities count where they arrive, so launches begin at 0 there. Those
 * that wait for a launch stay without one, because their rows stay in `from`.
 */
int join_move(struct join *to, struct join *from)
{
	struct launch *l;
	size_t i;

	if (join_copy(to, from))
		return -ENOMEM;
	work_clear(to);
	join_forget_slots(to);
	for (i = 0; i < buf_count(&from->launches, struct launch); i++) {
		l = buf_at(&from->launches, struct launch, i);
		memset(&l->work, 0, sizeof(l->work));
		memset(&l->self, 0, sizeof(l->self));
		l->works = true;
		l->moved = l->latency_ns != NONE;
		l->slot = 0;
	}
	MOVE(backlog);
	MOVE(nbacklog);
	MOVE(thread_index);
	MOVE(threads);
	MOVE(fresh);
	MOVE(nspans);
	MOVE(launches);
	MOVE(nlaunches);
	MOVE(lost_ns);
	MOVE(first_ns);
	MOVE(by_edge);
	graphs_move(&to->graphs, &from->graphs);
	return 0;
}

void join_fini(struct join *j)
{
	size_t i;

	for (i = 0; i < buf_count(&j->threads, struct thread); i++) {
		buf_fini(&thread_at(j, i)->spans);
		buf_fini(&thread_at(j, i)->fresh);
		buf_fini(&thread_at(j, i)->launches);
	}
	mdl_items_fini(&j->thread_index, &j->threads);
	mdl_rows_fini(&j->row_index, &j->rows);
	mdl_items_fini(&j->waiting, &j->waiters);
	mdl_items_fini(&j->slot_index, &j->slots);
	hash_fini(&j->last_slots);
	hash_fini(&j->by_edge);
	graphs_fini(&j->graphs);
	buf_fini(&j->launches);
	buf_fini(&j->fresh);
	free(j->backlog);
}
