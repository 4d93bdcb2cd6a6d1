// SPDX-License-Identifier: Apache-2.0
/* --by event: the spans of a recording one by one, the first of them in the order that is asked for. */
#include "sink/priv.h"

#include <errno.h>
#include <stdlib.h>

struct snk_events {
	struct mdl *makers;		   /* of backward nodes, for their stacks */
	struct buf spans[MXBPF_CLASS_MAX]; /* struct mxbpf_span: twice as many as are shown, at most */
	uint64_t n[MXBPF_CLASS_MAX];	   /* all that came */
	size_t max;			   /* that are shown */
};

static long double key_of(const struct mxbpf_span *s, enum snk_sort by)
{
	const long double keys[SNK_SORT_NKEYS] = {
		[SNK_SORT_TOTAL] = (long double)s->dur_ns,
		[SNK_SORT_SELF] = (long double)s->self_ns,
		[SNK_SORT_AVG] = (long double)s->dur_ns,
		[SNK_SORT_MIN] = (long double)s->dur_ns,
		[SNK_SORT_MAX] = (long double)s->dur_ns,
		[SNK_SORT_P99] = (long double)s->dur_ns,
		[SNK_SORT_ALLOC] = (long double)s->alloc_bytes,
		[SNK_SORT_SELF_ALLOC] = (long double)s->self_alloc_bytes,
	};

	return keys[by];
}

/* As torch does: what began first; of two that began together the one around the other. */
static int by_start(const struct mxbpf_span *a, const struct mxbpf_span *b)
{
	if (a->h.ts_ns != b->h.ts_ns)
		return a->h.ts_ns < b->h.ts_ns ? -1 : 1;
	if (a->dur_ns != b->dur_ns)
		return a->dur_ns > b->dur_ns ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static int by_opts(const void *va, const void *vb, void *vs)
{
	const struct mxbpf_span *a = va, *b = vb;
	const struct snk *s = vs;
	long double ka = key_of(a, s->opts->sort), kb = key_of(b, s->opts->sort);
	const char *na, *nb;
	size_t la, lb;
	int order = 0;

	if (s->opts->sort == SNK_SORT_NAME) {
		na = mdl_name(s->in->model, a->name_id, &la);
		nb = mdl_name(s->in->model, b->name_id, &lb);
		order = snk_name_cmp(na, la, nb, lb);
	} else if (ka != kb) {
		order = (ka < kb) == s->opts->ascending ? -1 : 1;
	}
	return order ? order : by_start(a, b);
}

static void keep_first(const struct snk *s, struct buf *spans)
{
	size_t n = buf_count(spans, struct mxbpf_span), max = s->events->max;

	if (n)
		qsort_r(spans->data, n, sizeof(struct mxbpf_span), by_opts, (void *)s);
	if (n > max)
		spans->len = max * sizeof(struct mxbpf_span);
}

static int on_record(struct snk *s, const struct mxbpf_rec *r)
{
	struct snk_events *e = s->events;
	struct mxbpf_span span;
	struct buf *spans;

	if (r->kind != MXBPF_SPAN)
		return 0;
	span = mdl_span(r);
	spans = &e->spans[span.cls];
	e->n[span.cls]++;
	if (mdl_follow(e->makers, &span) || buf_put(spans, &span, sizeof(span)))
		return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (buf_count(spans, struct mxbpf_span) / 2 >= e->max)
		keep_first(s, spans);
	return 0;
}

int snk_events_read(struct snk *s)
{
	struct snk_events *e = calloc(1, sizeof(*e));
	uint64_t done = 0;
	unsigned cls;
	int err;

	s->events = e;
	if (e)
		e->makers = mdl_new();
	if (!e || !e->makers)
		return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
	e->max = s->opts->top ? s->opts->top : SNK_EVENTS_MAX;
	err = snk_pass(s, on_record, &done, s->in->source->total_bytes);
	for (cls = 0; !err && cls < MXBPF_CLASS_MAX; cls++)
		keep_first(s, &e->spans[cls]);
	return err;
}

void snk_events_table(const struct snk *s, struct snk_table *t)
{
	t->spans = (const void *)s->events->spans[t->cls].data;
	t->nspans = buf_count(&s->events->spans[t->cls], struct mxbpf_span);
	t->nspans_all = s->events->n[t->cls];
}

struct mdl_row snk_event_row(const struct mxbpf_span *s)
{
	struct mdl_row r = {
		.tgid = s->h.tgid,
		.device = s->device,
		.cls = s->cls,
		.id = s->name_id,
		.name_id = s->name_id,
		.args_id = s->args_id,
		.stack_id = s->stack_id,
		.count = 1,
		.total_ns = s->dur_ns,
		.self_ns = s->self_ns,
		.min_ns = s->dur_ns,
		.max_ns = s->dur_ns,
		.alloc_bytes = s->alloc_bytes,
		.self_alloc_bytes = s->self_alloc_bytes,
	};

	return r;
}

void snk_events_fini(struct snk *s)
{
	unsigned cls;

	if (!s->events)
		return;
	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++)
		buf_fini(&s->events->spans[cls]);
	mdl_free(s->events->makers);
	free(s->events);
}
