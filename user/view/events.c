// SPDX-License-Identifier: Apache-2.0
/* --by event: single spans of a recording, the first ones in the order of --sort. */
#include "view/priv.h"
#include "feature/backward/backward.h"
#include "feature/cost/cost.h"
#include "feature/counters/counters.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define SPARE 4096 /* spans that are read before each sort, even if only few are shown */

struct view_events {
	struct mdl *makers;		   /* follows backward nodes, because they have the stacks of their operators */
	struct buf spans[MXBPF_CLASS_MAX]; /* struct mxbpf_span: at most SPARE and twice as many as are shown */
	uint64_t n[MXBPF_CLASS_MAX];	   /* spans that were read */
	size_t max;			   /* spans that are shown */
	bool sorted[MXBPF_CLASS_MAX];	   /* the first `max` of `spans` are sorted */
};

/* Offset in struct mxbpf_span of the value that a key compares. 0: nothing, because a single call has no such value. */
static const size_t key_off[VIEW_SORT_NKEYS] = {
	[VIEW_SORT_TOTAL] = offsetof(struct mxbpf_span, dur_ns),
	[VIEW_SORT_SELF] = offsetof(struct mxbpf_span, self_ns),
	[VIEW_SORT_AVG] = offsetof(struct mxbpf_span, dur_ns),
	[VIEW_SORT_MIN] = offsetof(struct mxbpf_span, dur_ns),
	[VIEW_SORT_MAX] = offsetof(struct mxbpf_span, dur_ns),
	[VIEW_SORT_P99] = offsetof(struct mxbpf_span, dur_ns),
	[VIEW_SORT_ALLOC] = offsetof(struct mxbpf_span, alloc_bytes),
	[VIEW_SORT_SELF_ALLOC] = offsetof(struct mxbpf_span, self_alloc_bytes),
	[VIEW_SORT_CPU] = offsetof(struct mxbpf_span, account.on_cpu_ns),
	[VIEW_SORT_RUNQ] = offsetof(struct mxbpf_span, account.runq_ns),
	[VIEW_SORT_BLOCKED] = offsetof(struct mxbpf_span, account.blocked_ns),
};

/* Returns -1, 0 or 1; the smallest comes first. Bytes can be negative, so they are compared as signed numbers. */
static int by_key(const struct mxbpf_span *a, const struct mxbpf_span *b, enum view_sort by)
{
	const uint64_t sign = by == VIEW_SORT_ALLOC || by == VIEW_SORT_SELF_ALLOC ? 1ull << 63 : 0;
	uint64_t ka, kb;

	if (!key_off[by])
		return 0;
	ka = *(const uint64_t *)((const char *)a + key_off[by]) ^ sign;
	kb = *(const uint64_t *)((const char *)b + key_off[by]) ^ sign;
	return ka < kb ? -1 : ka > kb;
}

/* The earlier start comes first; of two spans that start together, the enclosing one. */
static int events_by_start(const struct mxbpf_span *a, const struct mxbpf_span *b)
{
	if (a->h.ts_ns != b->h.ts_ns)
		return a->h.ts_ns < b->h.ts_ns ? -1 : 1;
	if (a->dur_ns != b->dur_ns)
		return a->dur_ns > b->dur_ns ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static int events_by_name(const struct mxbpf_span *a, const struct mxbpf_span *b, const struct mdl *m)
{
	const char *na, *nb;
	size_t la, lb;

	na = mdl_name(m, a->name_id, &la);
	nb = mdl_name(m, b->name_id, &lb);
	return view_name_cmp(na, la, nb, lb);
}

static int events_by_opts(const void *va, const void *vb, void *vs)
{
	const struct mxbpf_span *a = va, *b = vb;
	const struct view *s = vs;
	int order = s->opts->sort == VIEW_SORT_NAME ? events_by_name(a, b, s->in->model) : by_key(a, b, s->opts->sort);

	if (s->opts->sort != VIEW_SORT_NAME && !s->opts->ascending)
		order = -order;
	return order ? order : events_by_start(a, b);
}

/* Sorts the spans and drops those that are not shown. */
static void keep_first(const struct view *s, struct buf *spans)
{
	size_t n = buf_count(spans, struct mxbpf_span), max = s->events->max;

	if (n)
		qsort_r(spans->data, n, sizeof(struct mxbpf_span), events_by_opts, (void *)s);
	if (n > max)
		spans->len = max * sizeof(struct mxbpf_span);
}

static int events_add(struct view *s, struct buf *spans, const struct mxbpf_span *span)
{
	const size_t max = s->events->max, n = buf_count(spans, struct mxbpf_span);

	/* Drop a span that comes after all `max` spans sorted last: in a long recording, most do. */
	if (s->events->sorted[span->cls] && events_by_opts(span, buf_at(spans, struct mxbpf_span, max - 1), s) > 0)
		return 0;
	if (buf_put(spans, span, sizeof(*span)))
		return -ENOMEM;
	if (n < 2 * max + SPARE)
		return 0;
	keep_first(s, spans);
	s->events->sorted[span->cls] = true;
	return 0;
}

static int on_record(struct view *s, const struct mxbpf_rec *r)
{
	struct view_events *e = s->events;
	struct mxbpf_span span;

	if (r->kind != MXBPF_SPAN || !mdl_shows(s->in->session, r->tgid))
		return 0;
	kind_span(r, &span);
	cost_take_span(s->in->model, &span, s->in->session);
	e->n[span.cls]++;
	if (backward_follow(e->makers, &span) || events_add(s, &e->spans[span.cls], &span))
		return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	return 0;
}

int view_events_read(struct view *s)
{
	struct view_events *e = calloc(1, sizeof(*e));
	uint64_t done = 0;
	unsigned cls;
	int err;

	s->events = e;
	if (e)
		e->makers = mdl_new();
	if (!e || !e->makers)
		return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	e->max = s->opts->top ? s->opts->top : VIEW_EVENTS_MAX;
	err = view_pass(s, on_record, &done, s->in->source->total_bytes);
	for (cls = 0; !err && cls < MXBPF_CLASS_MAX; cls++)
		keep_first(s, &e->spans[cls]);
	return err;
}

void view_events_table(const struct view *s, struct view_table *t)
{
	t->spans = (const void *)s->events->spans[t->cls].data;
	t->nspans = buf_count(&s->events->spans[t->cls], struct mxbpf_span);
	t->nspans_all = s->events->n[t->cls];
}

struct mdl_row view_event_row(const struct mxbpf_span *s)
{
	struct mdl_row r = {
		.tgid = s->h.tgid,
		.device = s->device,
		.cls = s->cls,
		.id = s->name_id,
		.name_id = s->name_id,
		.args_id = s->args_id,
		.stack_id = s->stack_id,
		.layer_id = s->layer_id,
		.count = 1,
		.total_ns = s->dur_ns,
		.self_ns = s->self_ns,
		.min_ns = s->dur_ns,
		.max_ns = s->dur_ns,
		.alloc_bytes = s->alloc_bytes,
		.self_alloc_bytes = s->self_alloc_bytes,
	};

	mdl_account_add(&r.account, s);
	counters_add(&r.counters, s);
	return r;
}

uint64_t view_events_not_shown(const struct view *s)
{
	uint64_t n = 0;
	unsigned cls;

	for (cls = 0; s->events && cls < MXBPF_CLASS_MAX; cls++)
		if (mdl_class_title(s->in->session, cls))
			n += s->events->n[cls] - buf_count(&s->events->spans[cls], struct mxbpf_span);
	return n;
}

void view_events_fini(struct view *s)
{
	unsigned cls;

	if (!s->events)
		return;
	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++)
		buf_fini(&s->events->spans[cls]);
	mdl_free(s->events->makers);
	free(s->events);
}
