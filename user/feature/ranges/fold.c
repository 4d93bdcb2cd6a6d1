// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps the ranges of each thread in the order of their starts. A range starts with a record and ends with a span. The
 * calls inside it come in between, or later if another source sends them, so ranges are kept for a while after their
 * ends. Each range knows the one before it that was open at its start, so that a search goes outwards from range to
 * range instead of over all of them.
 */
#include "feature/ranges/state.h"
#include "records/kinds.h"

#include <errno.h>
#include <string.h>

#define THREADS_MAX 4096
#define KEPT_MAX    32768      /* ranges of a thread; if there are more, old ones that have ended are forgotten */
#define ALL_MAX	    (1u << 18) /* ranges of all threads: 40 MiB */
#define DOMAIN_MAX  64
#define DEPTH_MAX   256 /* ranges that a search passes: a limit, because a file can contain a circle */

struct range {
	struct mxbpf_range rec;
	uint64_t end_ns;    /* 0: it is open */
	uint64_t parent_ns; /* start of the range around it; 0: none */
};

struct thread {
	struct buf ranges; /* struct range, by start */
};

static struct range *at(const struct thread *t, size_t i)
{
	return buf_at(&t->ranges, struct range, i);
}

static int is_behind(const void *range, const void *ns)
{
	return ((const struct range *)range)->rec.h.ts_ns > *(const uint64_t *)ns ? 1 : -1;
}

/* Returns the number of ranges that started before ns, or at that time. */
static size_t number_before(const struct thread *t, uint64_t ns)
{
	return buf_first(&t->ranges, sizeof(struct range), &ns, is_behind);
}

static struct range *last_before(const struct thread *t, uint64_t ns)
{
	const size_t n = number_before(t, ns);

	return n ? at(t, n - 1) : NULL;
}

static const struct thread *thread_find(const struct ranges_state *s, uint32_t tgid, uint32_t tid)
{
	const uint64_t *place = s && s->threads.len ? hash_get(&s->index, tid, tgid) : NULL;

	return place ? buf_at(&s->threads, struct thread, *place - 1) : NULL;
}

static struct range *outer(const struct thread *t, const struct range *r)
{
	struct range *parent = r->parent_ns && r->parent_ns < r->rec.h.ts_ns ? last_before(t, r->parent_ns) : NULL;

	return parent && parent->rec.h.ts_ns == r->parent_ns ? parent : NULL;
}

/* Returns the innermost range, from r outwards, that is open from start_ns to end_ns. */
static struct range *enclosing(const struct thread *t, struct range *r, uint64_t start_ns, uint64_t end_ns)
{
	unsigned n;

	for (n = 0; r && n < DEPTH_MAX; n++, r = outer(t, r))
		if (r->rec.h.ts_ns <= start_ns && (!r->end_ns || r->end_ns >= end_ns))
			return r;
	return NULL;
}

/* Forgets ranges of the older half that have ended, or all of that half if none has. */
static void ranges_forget(struct ranges_state *s, struct thread *t)
{
	const size_t n = buf_count(&t->ranges, struct range);
	size_t i, kept = 0;

	for (i = 0; i < n; i++)
		if (i >= n / 2 || !at(t, i)->end_ns)
			*at(t, kept++) = *at(t, i);
	if (kept == n) {
		kept = n / 2;
		memmove(t->ranges.data, at(t, n - kept), kept * sizeof(struct range));
	}
	t->ranges.len = kept * sizeof(struct range);
	s->all -= n - kept;
}

/* A push at a depth shows that ranges which were pushed there or deeper are over, also if their ends were not seen. */
static void end_deeper(const struct thread *t, const struct mxbpf_range *rec)
{
	struct range *r = last_before(t, rec->h.ts_ns);
	unsigned n;

	for (n = 0; r && rec->depth != MXBPF_RANGE_APART && n < DEPTH_MAX; n++, r = outer(t, r))
		if (!r->end_ns && r->rec.depth != MXBPF_RANGE_APART && r->rec.depth >= rec->depth)
			r->end_ns = rec->h.ts_ns;
}

static int insert(struct ranges_state *s, struct thread *t, const struct mxbpf_range *rec)
{
	const struct range *around;
	struct range r = {0};
	size_t i = number_before(t, rec->h.ts_ns), n = buf_count(&t->ranges, struct range);

	if (i && at(t, i - 1)->rec.h.ts_ns == rec->h.ts_ns) { /* its end says more (nvtxRangePopPayload) */
		ranges_add(&at(t, i - 1)->rec, rec);
		return 0;
	}
	memcpy(&r.rec, rec, rec->h.size < sizeof(r.rec) ? rec->h.size : sizeof(r.rec));
	around = i ? at(t, i - 1) : NULL;
	around = around ? enclosing(t, at(t, i - 1), rec->h.ts_ns, rec->h.ts_ns + 1) : NULL;
	r.parent_ns = around ? around->rec.h.ts_ns : 0;
	if (!buf_add(&t->ranges, sizeof(r)))
		return -ENOMEM;
	s->all++;
	memmove(at(t, i) + 1, at(t, i), (n - i) * sizeof(r));
	*at(t, i) = r;
	for (i++; i <= n; i++) /* another source has sent later ranges before */
		if (at(t, i)->parent_ns < rec->h.ts_ns)
			at(t, i)->parent_ns = rec->h.ts_ns;
	return 0;
}

/* Outputs have the domain of a user annotation with its name. */
static int tell_domain(struct mdl *m, const struct mxbpf_range *r)
{
	struct {
		struct mxbpf_name n;
		char text[DOMAIN_MAX];
	} name = {.n = {.h = {.kind = MXBPF_NAME, .tgid = r->h.tgid}, .id = r->name_id, .kind = MXBPF_NAME_DOMAIN}};
	const char *text;
	size_t len;

	if (!r->domain_id || mdl_text(m, MXBPF_NAME_DOMAIN, r->name_id, &len))
		return 0;
	text = mdl_has_name(m, r->domain_id) ? mdl_name(m, r->domain_id, &len) : NULL;
	if (!text)
		return 0;
	name.n.len = (uint32_t)(len < DOMAIN_MAX ? len : DOMAIN_MAX);
	memcpy(name.n.text, text, name.n.len);
	name.n.h.size = (uint16_t)((sizeof(name.n) + name.n.len + 7) & ~7u);
	return mdl_fold(m, &name.n.h);
}

static int range_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_range *r = (const void *)rec;
	struct ranges_state *s = mdl_state(m, &feature_ranges);
	struct thread *t;
	bool added;

	if (!s || tell_domain(m, r))
		return -ENOMEM;
	if (r->depth == MXBPF_RANGE_MARK)
		return 0;
	if (buf_count(&s->threads, struct thread) >= THREADS_MAX && !thread_find(s, r->h.tgid, r->tid))
		return 0;
	t = mdl_item_put(&s->index, &s->threads, r->tid, r->h.tgid, sizeof(*t), &added);
	if (!t)
		return -ENOMEM;
	end_deeper(t, r);
	if (buf_count(&t->ranges, struct range) >= KEPT_MAX || (s->all >= ALL_MAX && t->ranges.len))
		ranges_forget(s, t);
	return s->all < ALL_MAX ? insert(s, t, r) : 0;
}

static struct range *start_of(const struct mdl *m, const struct mxbpf_span *s)
{
	const struct thread *t =
		s->flags & MXBPF_SPAN_USER ? thread_find(mdl_state_of(m, &feature_ranges), s->h.tgid, s->tid) : NULL;
	struct range *r = t ? last_before(t, s->h.ts_ns) : NULL;

	return r && r->rec.h.ts_ns == s->h.ts_ns ? r : NULL;
}

const struct mxbpf_range *ranges_start(const struct mdl *m, const struct mxbpf_span *s)
{
	const struct range *r = start_of(m, s);

	return r ? &r->rec : NULL;
}

const struct mxbpf_range *ranges_around(const struct mdl *m, uint32_t tgid, uint32_t tid, uint64_t start_ns,
					uint64_t end_ns)
{
	const struct thread *t = thread_find(mdl_state_of(m, &feature_ranges), tgid, tid);
	const struct range *r = t ? enclosing(t, last_before(t, start_ns), start_ns, end_ns) : NULL;

	return r ? &r->rec : NULL;
}

/* The end of a range is known at once. */
static void ranges_held(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_span s;
	struct range *own;

	if (rec->kind != MXBPF_SPAN)
		return;
	kind_span(rec, &s);
	own = s.flags & MXBPF_SPAN_USER ? start_of(m, &s) : NULL;
	if (own)
		own->end_ns = s.h.ts_ns + s.dur_ns;
}

/* Operators have numbers of their own. */
static int learn_numbers(struct mdl *m, const struct range *own, struct mxbpf_span *s)
{
	struct ranges_state *state;

	if (s->flags & MXBPF_SPAN_SEQ && !(s->flags & MXBPF_SPAN_USER)) {
		state = mdl_state(m, &feature_ranges);
		return state && hash_put(&state->numbered, s->h.tgid, 0) ? 0 : -ENOMEM;
	}
	if (own && own->rec.data.type == MXBPF_RANGE_SEQ) {
		state = mdl_state(m, &feature_ranges);
		if (state && !hash_get(&state->numbered, s->h.tgid, 0))
			ranges_number(m, &own->rec, s);
	}
	return 0;
}

/* Tells the model in which range a span lies. A range lies in the one around it. */
static int ranges_before_row(struct mdl *m, struct mxbpf_span *s)
{
	const uint64_t end_ns = s->h.ts_ns + s->dur_ns;
	struct range *own = start_of(m, s), *around;
	const struct thread *t;

	if (own)
		own->end_ns = end_ns;
	if (learn_numbers(m, own, s))
		return -ENOMEM;
	if (!mdl_tells_ranges(m))
		return 0;
	t = thread_find(mdl_state_of(m, &feature_ranges), s->h.tgid, s->tid);
	if (!t)
		return 0;
	around = enclosing(t, own ? outer(t, own) : last_before(t, s->h.ts_ns), s->h.ts_ns, end_ns);
	if (around)
		mdl_in_range(m, around->rec.name_id);
	return 0;
}

/* A copy lacks the ranges, because only folding uses them. */
static int ranges_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct ranges_state *t = mdl_state(to, &feature_ranges), *f = mdl_state(from, &feature_ranges);

	(void)now_ns;
	if (!t)
		return -ENOMEM;
	t->index = f->index;
	t->threads = f->threads;
	t->all = f->all;
	t->numbered = f->numbered;
	*f = (struct ranges_state){0};
	return 0;
}

static void ranges_fini(struct mdl *m)
{
	struct ranges_state *s = mdl_state(m, &feature_ranges);
	size_t i;

	for (i = 0; i < buf_count(&s->threads, struct thread); i++)
		buf_fini(&buf_at(&s->threads, struct thread, i)->ranges);
	mdl_items_fini(&s->index, &s->threads);
	hash_fini(&s->numbered);
}

const struct mdl_feature feature_ranges = {
	.trace = &ranges_trace,
	.state_bytes = sizeof(struct ranges_state),
	.kinds = {{MXBPF_RANGE, range_fold}},
	.tables = {{&ranges_kernels}},
	.held = ranges_held,
	.before_row = ranges_before_row,
	.move = ranges_move,
	.fini = ranges_fini,
};
