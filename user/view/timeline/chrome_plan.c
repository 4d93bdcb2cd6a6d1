// SPDX-License-Identifier: Apache-2.0
#include "view/timeline/chrome_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "records/kinds.h"

/* A span of a thread that is not nested in another one so far. They are disjoint and in order of time. */
struct done {
	uint64_t start_ns, end_ns, ordinal;
	uint64_t inner; /* 1 + index of the trim of the nested span that ended at the same time; 0: none */
};

/* A span whose end is shown earlier than it was, so that no other span has the same end. */
struct trim {
	uint64_t ordinal, back_ns;
	uint64_t inner; /* as in struct done */
};

/* A span that waits for all others of its thread. */
struct unordered {
	uint64_t start_ns, end_ns, ordinal;
	uint32_t track; /* its index */
	uint8_t cls;
};

#define NESTING_MAX 512 /* most spans that end at the same time: MXBPF_FRAMES_MAX */

/* A span that is written elsewhere than its place in the recording says. */
struct moved {
	uint64_t ordinal, start_ns, end_ns;
	uint32_t tgid;
	uint32_t lane_tid; /* 0: on its own thread, behind all other spans */
};

/* An event of a link: an edge passed it on, or an operator with it started. */
struct moment {
	uint64_t link, ts_ns;
	uint64_t index; /* index of its edge or linked operator */
	uint32_t tgid;
	uint32_t is_op;
};

struct edge {
	uint64_t src_start_ns; /* NO_SOURCE until the source is found */
	uint32_t next;	       /* 1 + index of the next edge that waits for the same source */
	uint32_t arrow;	       /* 0: none */
};

#define NO_SOURCE UINT64_MAX

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static void sort(struct buf *b, size_t item_bytes, int (*order)(const void *, const void *))
{
	if (b->len)
		qsort(b->data, b->len / item_bytes, item_bytes, order);
}

static uint64_t span_end(const struct mxbpf_span *s)
{
	return s->dur_ns > UINT64_MAX - s->h.ts_ns ? UINT64_MAX : s->h.ts_ns + s->dur_ns;
}

static struct view_plan_track *track_add(struct view_plan *p, uint32_t tgid, uint32_t tid, uint32_t lane)
{
	struct view_plan_track t = {.tgid = tgid, .tid = tid, .lane = lane};

	if (buf_put(&p->tracks, &t, sizeof(t)))
		return NULL;
	return buf_at(&p->tracks, struct view_plan_track, buf_count(&p->tracks, struct view_plan_track) - 1);
}

static struct view_plan_track *track_find(struct view_plan *p, uint32_t tgid, uint32_t tid)
{
	struct view_plan_track *t;
	uint64_t *at;

	if (p->tracks.len) {
		t = buf_at(&p->tracks, struct view_plan_track, p->last_track);
		if (t->tgid == tgid && t->tid == tid)
			return t;
	}
	at = hash_put(&p->track_of, tgid, tid);
	if (!at)
		return NULL;
	if (!*at) {
		if (!track_add(p, tgid, tid, 0))
			return NULL;
		*at = buf_count(&p->tracks, struct view_plan_track);
	}
	p->last_track = *at - 1;
	return buf_at(&p->tracks, struct view_plan_track, p->last_track);
}

static int move_span(struct view_plan *p, const struct mxbpf_span *s, uint64_t ordinal)
{
	struct moved m = {
		.ordinal = ordinal,
		.start_ns = s->h.ts_ns,
		.end_ns = span_end(s),
		.tgid = s->h.tgid,
		.lane_tid = VIEW_PLAN_LANE_TID,
	};

	return buf_put(&p->moved, &m, sizeof(m));
}

/* Limits the memory of long recordings. A span that encloses forgotten spans is drawn on a lane. */
static void forget_oldest(struct view_plan_track *t)
{
	size_t half = buf_count(&t->done, struct done) / 2;

	t->known_ns = buf_at(&t->done, struct done, half - 1)->end_ns;
	t->done.len -= half * sizeof(struct done);
	memmove(t->done.data, t->done.data + half * sizeof(struct done), t->done.len);
}

/* Shows the end of a span 1 ns earlier, and also the ends of all nested spans that ended at the same time. */
static int trim_span(struct view_plan *p, const struct done *d)
{
	struct trim t = {.ordinal = d->ordinal, .back_ns = 1, .inner = d->inner}, *inner = &t;
	unsigned i;

	for (i = 0; inner->inner && i < NESTING_MAX; i++) {
		inner = buf_at(&p->trims, struct trim, inner->inner - 1);
		inner->back_ns++;
	}
	return buf_put(&p->trims, &t, sizeof(t));
}

/*
 * After an exception or a tail call, several spans end at the same time, and another one can start then. Readers that
 * add start and duration as doubles need the inner span to end before the outer one, and both before the next starts.
 * prev: the span before the new one; last: the last span nested in it; NULL: none.
 */
static int trim_ends(struct view_plan *p, const struct done *prev, const struct done *last, struct done *new)
{
	int ret = 0;

	if (prev && prev->end_ns == new->start_ns)
		ret = trim_span(p, prev);
	if (ret || !last || last->end_ns != new->end_ns)
		return ret;
	ret = trim_span(p, last);
	new->inner = buf_count(&p->trims, struct trim);
	return ret;
}

/*
 * Viewers draw a thread as one stack and drop spans that do not nest. Spans come in order of their ends. So the spans
 * nested in a new one are at the end of the list, and the new one replaces them.
 */
static int nest_span(struct view_plan *p, struct view_plan_track *t, const struct mxbpf_span *s, uint64_t ordinal)
{
	struct done new = {.start_ns = s->h.ts_ns, .end_ns = span_end(s), .ordinal = ordinal};
	size_t n = buf_count(&t->done, struct done), from, to, i;
	struct done *d = (struct done *)t->done.data;

	for (to = n; to && d[to - 1].start_ns >= new.end_ns; to--)
		;
	for (from = to; from && d[from - 1].start_ns >= new.start_ns; from--)
		;
	if ((from < to && d[to - 1].end_ns > new.end_ns) || (from && d[from - 1].end_ns > new.start_ns) ||
	    new.start_ns < t->known_ns)
		return move_span(p, s, ordinal);
	if (trim_ends(p, from ? &d[from - 1] : NULL, from < to ? &d[to - 1] : NULL, &new))
		return -ENOMEM;
	/* If two spans start together, the viewer takes the first one in the file as the outer one. */
	for (i = from; i < to && d[i].start_ns == new.start_ns; i++) {
		struct moved late = {.ordinal = d[i].ordinal};

		if (buf_put(&p->moved, &late, sizeof(late)))
			return -ENOMEM;
	}
	if (from == to && !buf_add(&t->done, sizeof(new)))
		return -ENOMEM;
	d = (struct done *)t->done.data;
	memmove(d + from + 1, d + to, (n - to) * sizeof(*d));
	d[from] = new;
	t->done.len = (n - (to - from) + 1) * sizeof(*d);
	if (buf_count(&t->done, struct done) >= VIEW_PLAN_OPEN_MAX)
		forget_oldest(t);
	return 0;
}

/* An edge names its source by these keys. The source is still open then, so the edge comes before it. */
static uint64_t source_key(uint64_t start_ns, uint8_t cls)
{
	return start_ns ^ (uint64_t)cls << 56;
}

static uint64_t thread_key(uint32_t tgid, uint32_t tid)
{
	return (uint64_t)tgid << 32 | tid;
}

static bool linked(const struct mxbpf_span *s)
{
	return s->cls == MXBPF_CLASS_OPERATOR && s->link;
}

static int begin_arrows(struct view_plan *p, const struct mxbpf_span *s, uint64_t ordinal)
{
	uint64_t next;

	if (!p->waiting.len ||
	    !hash_del(&p->waiting, source_key(s->h.ts_ns, s->cls), thread_key(s->h.tgid, s->tid), &next))
		return 0;
	while (next) {
		struct view_plan_source src = {.ordinal = ordinal, .arrow = next - 1};
		struct edge *e = buf_at(&p->edges, struct edge, next - 1);

		if (buf_put(&p->sources, &src, sizeof(src)))
			return -ENOMEM;
		e->src_start_ns = s->h.ts_ns;
		next = e->next;
	}
	return 0;
}

/* track_find() has just found its track. */
static int keep_span(struct view_plan *p, const struct mxbpf_span *s, uint64_t ordinal)
{
	struct unordered u = {.start_ns = s->h.ts_ns,
			      .end_ns = span_end(s),
			      .ordinal = ordinal,
			      .track = (uint32_t)p->last_track,
			      .cls = s->cls};

	return buf_put(&p->unordered, &u, sizeof(u));
}

/* Of two that end together, the inner one started last. A call of CUDA is in the operator with the same times. */
static int by_nesting(const void *x, const void *y)
{
	const struct unordered *a = x, *b = y;

	if (a->end_ns != b->end_ns)
		return ORDER(a->end_ns, b->end_ns);
	if (a->start_ns != b->start_ns)
		return ORDER(b->start_ns, a->start_ns);
	if ((a->cls == MXBPF_CLASS_CUDA) != (b->cls == MXBPF_CLASS_CUDA))
		return a->cls == MXBPF_CLASS_CUDA ? -1 : 1;
	return ORDER(a->ordinal, b->ordinal);
}

static int nest_kept(struct view_plan *p)
{
	size_t i;
	int ret = 0;

	sort(&p->unordered, sizeof(struct unordered), by_nesting);
	for (i = 0; i < buf_count(&p->unordered, struct unordered) && !ret; i++) {
		const struct unordered *u = buf_at(&p->unordered, struct unordered, i);
		struct view_plan_track *t = buf_at(&p->tracks, struct view_plan_track, u->track);
		struct mxbpf_span s = {
			.h = {.tgid = t->tgid, .ts_ns = u->start_ns}, .dur_ns = u->end_ns - u->start_ns, .tid = t->tid};

		ret = nest_span(p, t, &s, u->ordinal);
	}
	buf_fini(&p->unordered);
	p->unordered = (struct buf){0};
	return ret;
}

static int survey_span(struct view_plan *p, const struct mxbpf_span *s)
{
	struct moment began = {.link = s->link, .ts_ns = s->h.ts_ns, .index = p->nops, .tgid = s->h.tgid, .is_op = 1};
	uint64_t ordinal = p->nspans++;
	struct view_plan_track *t;
	int ret = 0;

	if (linked(s)) {
		p->nops++;
		ret = buf_put(&p->moments, &began, sizeof(began));
	}
	if (!ret)
		ret = begin_arrows(p, s, ordinal);
	if (ret)
		return ret;
	if (s->flags & MXBPF_SPAN_ASYNC)
		return move_span(p, s, ordinal);
	t = track_find(p, s->h.tgid, s->tid);
	if (!t)
		return -ENOMEM;
	return p->reorder ? keep_span(p, s, ordinal) : nest_span(p, t, s, ordinal);
}

static int survey_edge(struct view_plan *p, const struct mxbpf_edge *e)
{
	struct moment handed = {.link = e->link, .ts_ns = e->h.ts_ns, .index = p->nedges++, .tgid = e->h.tgid};
	struct edge edge = {.src_start_ns = NO_SOURCE};
	uint64_t *first;

	/* An edge outside any span is kept, too, because it has a place in the queue of its link. */
	if (e->src_cls == MXBPF_CLASS_NONE) {
		p->nrootless++;
	} else {
		first = hash_put(&p->waiting, source_key(e->src_start_ns, e->src_cls), thread_key(e->h.tgid, e->tid));
		if (!first)
			return -ENOMEM;
		edge.next = (uint32_t)*first;
		*first = p->nedges;
	}
	if (e->link && buf_put(&p->moments, &handed, sizeof(handed)))
		return -ENOMEM;
	return buf_put(&p->edges, &edge, sizeof(edge));
}

static int survey_alloc(struct view_plan *p, const struct mxbpf_alloc *a)
{
	struct view_plan_alloc alloc = {
		.ts_ns = a->h.ts_ns,
		.ordinal = buf_count(&p->allocs, struct view_plan_alloc),
		.bytes = a->bytes,
		.addr = a->h.size >= MXBPF_ALLOC_BYTES_PLAIN ? a->addr : 0,
		.tgid = a->h.tgid,
		.tid = a->tid,
		.device = a->device,
	};

	if (a->h.size >= sizeof(*a) && a->pool_bytes) {
		alloc.total_bytes = a->total_bytes;
		alloc.pool_bytes = a->pool_bytes;
		alloc.counted = true;
	}
	return a->bytes ? buf_put(&p->allocs, &alloc, sizeof(alloc)) : 0;
}

int view_plan_survey(struct view_plan *p, const struct mxbpf_rec *r)
{
	if (r->kind != MXBPF_SPAN && r->kind != MXBPF_EDGE && r->kind != MXBPF_ALLOC && r->kind != MXBPF_OPEN &&
	    r->kind != MXBPF_INSTANT && r->kind != MXBPF_VALUE)
		return 0;
	if (!p->first_ns || r->ts_ns < p->first_ns)
		p->first_ns = r->ts_ns;
	if (r->kind == MXBPF_SPAN)
		return survey_span(p, (const struct mxbpf_span *)r);
	if (r->kind == MXBPF_OPEN || r->kind == MXBPF_INSTANT)
		return track_find(p, r->tgid, kind_thread(r, 0)) ? 0 : -ENOMEM;
	if (r->kind == MXBPF_VALUE)
		return 0;
	if (r->kind == MXBPF_EDGE)
		return survey_edge(p, (const struct mxbpf_edge *)r);
	return survey_alloc(p, (const struct mxbpf_alloc *)r);
}

/* ---- between the passes */

/* Ordinals of spans that have not ended. They are larger than those of all others, even if the recording grows. */
#define OPEN_ORDINAL (1ull << 63)

static uint64_t open_end(const struct mxbpf_open *o)
{
	return o->open_ns > UINT64_MAX - o->h.ts_ns ? UINT64_MAX : o->h.ts_ns + o->open_ns;
}

/* Of two that end together, which is usual, the nested one started last. */
static int chrome_plan_by_end(const void *x, const void *y)
{
	const struct mxbpf_open *a = x, *b = y;

	if (open_end(a) != open_end(b))
		return ORDER(open_end(a), open_end(b));
	return ORDER(b->h.ts_ns, a->h.ts_ns);
}

int view_plan_opens(struct view_plan *p, const struct mxbpf_open *rows, size_t n)
{
	struct view_plan_track *t;
	size_t i;
	int ret = nest_kept(p);

	if (!ret && n)
		ret = buf_put(&p->opens, rows, n * sizeof(*rows));
	if (ret)
		return ret;
	sort(&p->opens, sizeof(*rows), chrome_plan_by_end);
	for (i = 0; i < n && !ret; i++) {
		const struct mxbpf_open *o = buf_at(&p->opens, struct mxbpf_open, i);
		struct mxbpf_span s = {.h = o->h, .dur_ns = o->open_ns, .tid = o->tid};

		if (!p->first_ns || o->h.ts_ns < p->first_ns)
			p->first_ns = o->h.ts_ns;
		t = o->flags & MXBPF_SPAN_ASYNC ? NULL : track_find(p, o->h.tgid, o->tid);
		if (t)
			ret = nest_span(p, t, &s, OPEN_ORDINAL | i);
		else
			ret = o->flags & MXBPF_SPAN_ASYNC ? move_span(p, &s, OPEN_ORDINAL | i) : -ENOMEM;
	}
	return ret;
}

static int by_link(const void *x, const void *y)
{
	const struct moment *a = x, *b = y;

	if (a->link != b->link)
		return ORDER(a->link, b->link);
	if (a->tgid != b->tgid)
		return ORDER(a->tgid, b->tgid);
	if (a->ts_ns != b->ts_ns)
		return ORDER(a->ts_ns, b->ts_ns);
	if (a->is_op != b->is_op)
		return ORDER(a->is_op, b->is_op);
	return ORDER(a->index, b->index);
}

static bool same_link(const struct moment *a, const struct moment *b)
{
	return a->link == b->link && a->tgid == b->tgid;
}

/* The first edge of a link belongs to its first operator. An arrow must end after it started, so equal times give none.
 */
static void join_arrows(struct view_plan *p)
{
	const struct moment *m = (const struct moment *)p->moments.data;
	size_t n = buf_count(&p->moments, struct moment), oldest = 0, i;
	struct edge *e;

	for (i = 0; i < n; i++) {
		if (i && !same_link(&m[i], &m[i - 1]))
			oldest = i;
		if (!m[i].is_op)
			continue;
		while (oldest < i && m[oldest].is_op)
			oldest++;
		if (oldest == i)
			continue;
		e = buf_at(&p->edges, struct edge, m[oldest++].index);
		if (e->src_start_ns < m[i].ts_ns) {
			e->arrow = (uint32_t)++p->narrows;
			*buf_at(&p->arrows_in, uint32_t, m[i].index) = e->arrow;
		}
	}
}

static int find_arrows(struct view_plan *p)
{
	struct view_plan_source *s = (struct view_plan_source *)p->sources.data;
	size_t i;

	if (p->nops && !buf_add(&p->arrows_in, p->nops * sizeof(uint32_t)))
		return -ENOMEM;
	for (i = 0; i < p->nops; i++)
		*buf_at(&p->arrows_in, uint32_t, i) = 0;
	sort(&p->moments, sizeof(struct moment), by_link);
	join_arrows(p);
	for (i = 0; i < buf_count(&p->sources, struct view_plan_source); i++)
		s[i].arrow = buf_at(&p->edges, struct edge, s[i].arrow)->arrow;
	buf_fini(&p->moments);
	buf_fini(&p->edges);
	hash_fini(&p->waiting);
	return 0;
}

static int chrome_plan_by_start(const void *x, const void *y)
{
	const struct moved *a = x, *b = y;

	if (a->tgid != b->tgid)
		return ORDER(a->tgid, b->tgid);
	if (a->start_ns != b->start_ns)
		return ORDER(a->start_ns, b->start_ns);
	return ORDER(a->ordinal, b->ordinal);
}

static int by_ordinal(const void *x, const void *y)
{
	const struct moved *a = x, *b = y;

	return ORDER(a->ordinal, b->ordinal);
}

/* Takes the first free lane. In order of the starts, this needs the fewest lanes. */
static int assign_lanes(struct view_plan *p)
{
	size_t nmoved = buf_count(&p->moved, struct moved), nthreads = buf_count(&p->tracks, struct view_plan_track);
	size_t first = nthreads, i, k;
	struct view_plan_track *t;

	sort(&p->moved, sizeof(struct moved), chrome_plan_by_start);
	for (i = 0; i < nmoved; i++) {
		struct moved *m = buf_at(&p->moved, struct moved, i);

		if (!m->lane_tid)
			continue;
		if (i && m[-1].tgid != m->tgid)
			first = buf_count(&p->tracks, struct view_plan_track);
		for (k = first; k < buf_count(&p->tracks, struct view_plan_track); k++)
			if (buf_at(&p->tracks, struct view_plan_track, k)->busy_ns <= m->start_ns)
				break;
		m->lane_tid = VIEW_PLAN_LANE_TID + (uint32_t)(k - nthreads) + 1;
		t = k < buf_count(&p->tracks, struct view_plan_track)
			    ? buf_at(&p->tracks, struct view_plan_track, k)
			    : track_add(p, m->tgid, m->lane_tid, (uint32_t)(k - first) + 1);
		if (!t)
			return -ENOMEM;
		t->busy_ns = m->end_ns;
	}
	sort(&p->moved, sizeof(struct moved), by_ordinal);
	return 0;
}

static int chrome_plan_by_place(const void *x, const void *y)
{
	const struct view_plan_track *a = x, *b = y;

	if (a->tgid != b->tgid)
		return ORDER(a->tgid, b->tgid);
	if (!a->lane != !b->lane)
		return a->lane ? 1 : -1;
	if ((a->tid == a->tgid) != (b->tid == b->tgid))
		return a->tid == a->tgid ? -1 : 1;
	return ORDER(a->tid, b->tid);
}

static int chrome_plan_by_time(const void *x, const void *y)
{
	const struct view_plan_alloc *a = x, *b = y;

	return a->ts_ns != b->ts_ns ? ORDER(a->ts_ns, b->ts_ns) : ORDER(a->ordinal, b->ordinal);
}

static int by_trimmed(const void *x, const void *y)
{
	const struct trim *a = x, *b = y;

	return ORDER(a->ordinal, b->ordinal);
}

int view_plan_finish(struct view_plan *p)
{
	size_t i;
	int ret;

	for (i = 0; i < buf_count(&p->tracks, struct view_plan_track); i++)
		buf_fini(&buf_at(&p->tracks, struct view_plan_track, i)->done);
	hash_fini(&p->track_of);
	ret = find_arrows(p);
	if (!ret)
		ret = assign_lanes(p);
	if (ret)
		return ret;
	sort(&p->tracks, sizeof(struct view_plan_track), chrome_plan_by_place);
	sort(&p->allocs, sizeof(struct view_plan_alloc), chrome_plan_by_time);
	sort(&p->trims, sizeof(struct trim), by_trimmed);
	return 0;
}

/* ---- the second pass */

static void place_moved(struct view_plan *p, struct view_place *place)
{
	const struct moved *m;

	for (; p->moved_pos < buf_count(&p->moved, struct moved); p->moved_pos++) {
		m = buf_at(&p->moved, struct moved, p->moved_pos);
		if (m->ordinal != p->pos)
			break;
		if (m->lane_tid)
			place->tid = m->lane_tid;
		else
			place->late = true;
	}
}

static uint64_t trim_of(struct view_plan *p)
{
	uint64_t back_ns = 0;
	const struct trim *t;

	for (; p->trim_pos < buf_count(&p->trims, struct trim); p->trim_pos++) {
		t = buf_at(&p->trims, struct trim, p->trim_pos);
		if (t->ordinal != p->pos)
			break;
		back_ns = t->back_ns > back_ns ? t->back_ns : back_ns;
	}
	return back_ns;
}

struct view_place view_plan_place(struct view_plan *p, const struct mxbpf_span *s)
{
	struct view_place place = {.ordinal = p->pos, .tid = s->tid};
	const struct view_plan_source *src = (const struct view_plan_source *)p->sources.data;
	size_t n = buf_count(&p->sources, struct view_plan_source), first = p->source_pos;

	place.back_ns = trim_of(p);
	place_moved(p, &place);
	if (linked(s) && p->op_pos < p->nops)
		place.arrow_in = *buf_at(&p->arrows_in, uint32_t, p->op_pos++);
	while (p->source_pos < n && src[p->source_pos].ordinal == p->pos)
		p->source_pos++;
	place.narrows_out = p->source_pos - first;
	place.arrows_out = src ? src + first : NULL;
	p->pos++;
	return place;
}

const struct mxbpf_open *view_plan_open(const struct view_plan *p, size_t i, struct view_place *place)
{
	const size_t n = buf_count(&p->opens, struct mxbpf_open);
	const struct mxbpf_open *o;
	const struct moved *m;
	const struct trim *t;

	if (i >= n)
		return NULL;
	o = buf_at(&p->opens, struct mxbpf_open, n - 1 - i);
	*place = (struct view_place){.ordinal = OPEN_ORDINAL | (n - 1 - i), .tid = o->tid};
	/* Few spans have not ended, and they are the last ones in these lists. */
	for (i = buf_count(&p->moved, struct moved); i--;) {
		m = buf_at(&p->moved, struct moved, i);
		if (m->ordinal < place->ordinal)
			break;
		if (m->ordinal == place->ordinal && m->lane_tid)
			place->tid = m->lane_tid;
	}
	for (i = buf_count(&p->trims, struct trim); i--;) {
		t = buf_at(&p->trims, struct trim, i);
		if (t->ordinal < place->ordinal)
			break;
		if (t->ordinal == place->ordinal && t->back_ns > place->back_ns)
			place->back_ns = t->back_ns;
	}
	return o;
}

void view_plan_fini(struct view_plan *p)
{
	size_t i;

	for (i = 0; i < buf_count(&p->tracks, struct view_plan_track); i++)
		buf_fini(&buf_at(&p->tracks, struct view_plan_track, i)->done);
	buf_fini(&p->tracks);
	buf_fini(&p->allocs);
	buf_fini(&p->unordered);
	buf_fini(&p->edges);
	buf_fini(&p->sources);
	buf_fini(&p->moments);
	buf_fini(&p->arrows_in);
	buf_fini(&p->moved);
	buf_fini(&p->trims);
	buf_fini(&p->opens);
	hash_fini(&p->track_of);
	hash_fini(&p->waiting);
}
