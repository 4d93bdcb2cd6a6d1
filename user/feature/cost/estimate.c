// SPDX-License-Identifier: Apache-2.0
/* Slices: what they stand for, and what rows have with the calls between them. */
#include <errno.h>
#include <string.h>

#include "base/ratio.h"
#include "base/whole.h"
#include "feature/cost/cost.h"
#include "feature/steps/steps.h"

#define BLUR 64 /* the ends of a slice and those of its iterations differ by less than one part in so many of it */

/* ---- records */

static void add_slices(struct mxbpf_slice_part *sum, const struct mxbpf_slice_part *from)
{
	add_sat(&sum->slices, from->slices);
	add_sat(&sum->slice_ns, from->slice_ns);
	add_sat(&sum->seen_ns, from->seen_ns);
	add_sat(&sum->all_ns, from->all_ns);
	add_sat(&sum->seen_iterations, from->seen_iterations);
	add_sat(&sum->all_iterations, from->all_iterations);
	add_sat(&sum->marks_ns, from->marks_ns);
	add_sat(&sum->marks_iterations, from->marks_iterations);
}

/* The time between slices in which nothing was recorded. That of a slice itself has what watching cost. */
static void add_free(struct cost_slices *s, const struct mxbpf_slice_part *from)
{
	const uint64_t little_ns = from->marks_ns > from->seen_ns ? from->marks_ns - from->seen_ns : 0;

	if (from->marks_ns >= from->all_ns || from->all_ns < from->slice_ns + little_ns ||
	    from->all_iterations < from->marks_iterations)
		return;
	add_sat(&s->free_ns, from->all_ns - from->slice_ns - little_ns);
	add_sat(&s->free_iterations, from->all_iterations - from->marks_iterations);
}

/* A row has grown since the last slice by the calls of this one. */
static void sample_row(struct mdl_row *r, const double base[COST_BASES])
{
	const double count = (double)(r->count - r->sampled.count);
	const double self = (double)(r->self_ns - r->sampled.self_ns);
	unsigned k;

	r->sampled.count = r->count;
	r->sampled.self_ns = r->self_ns;
	r->sampled.count_squares += count * count;
	r->sampled.self_squares += self * self;
	for (k = 0; k < COST_BASES; k++) {
		r->sampled.count_bases[k] += count * base[k];
		r->sampled.self_bases[k] += self * base[k];
	}
}

static void count_calls(const struct mdl *m, const struct mdl_row *r, struct cost_point *p)
{
	const uint64_t calls = r->count - r->sampled.count;
	size_t len;
	const char *name = mdl_name(m, r->name_id, &len);

	add_sat(&p->calls, calls);
	if (memmem(name, len, "Backward", 8) && !memmem(name, len, "::", 2)) /* not what evaluates the node */
		add_sat(&p->passes, calls);
}

static void join_points(struct cost_point *p, const struct cost_point *next)
{
	p->to_ns = next->to_ns;
	add_sat(&p->iterations, next->iterations);
	add_sat(&p->calls, next->calls);
	add_sat(&p->passes, next->passes);
}

static void add_point(struct cost_slices *s, const struct cost_point *p)
{
	struct cost_point *at = s->points;
	unsigned i;

	if (s->npoints && s->last < s->each) {
		join_points(&at[s->npoints - 1], p);
		s->last++;
		return;
	}
	s->each += !s->each;
	if (s->npoints == COST_POINTS) {
		for (i = 0; i < COST_POINTS / 2; i++) {
			at[i] = at[2 * i];
			join_points(&at[i], &at[2 * i + 1]);
		}
		s->npoints /= 2;
		s->each *= 2;
	}
	at[s->npoints++] = *p;
	s->last = 1;
}

const struct cost_point *cost_points(const struct mdl *m, uint32_t tgid, unsigned *n)
{
	const struct cost_slices *s = cost_slices_find(m, tgid);

	*n = s ? s->npoints : 0;
	return s ? s->points : NULL;
}

/*
 * Records of a time without slices, when all probes were attached, may be folded after their MXBPF_SLICE record, so
 * that time is a part of the slice that follows.
 */
static void sample(struct mdl *m, struct cost_slices *s, const struct mxbpf_slice_part *from)
{
	const double seen[][COST_BASES] = {
		[COST_SLICED] = {(double)from->seen_iterations, (double)from->seen_ns},
		[COST_LITTLE] = {(double)from->marks_iterations, (double)from->marks_ns},
	};
	const struct mdl_row *const *rows;
	struct cost_point point = {
		.from_ns = from->h.ts_ns, .to_ns = from->h.ts_ns + from->slice_ns, .iterations = from->seen_iterations};
	const bool alone = !s->base[COST_SLICED][COST_TIME]; /* no time without slices is a part of it */
	struct mdl_row *r;
	unsigned cls, of, k;
	size_t n, i;

	for (of = 0; of < 2; of++)
		for (k = 0; k < COST_BASES; k++)
			s->base[of][k] += seen[of][k];
	if (!from->slices)
		return;
	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++) {
		rows = mdl_rows(m, (enum mxbpf_class)cls, &n);
		for (i = 0; i < n; i++) {
			r = rows[i]->tgid != from->h.tgid
				    ? NULL
				    : mdl_row_find(m, cls, rows[i]->id, rows[i]->tgid, rows[i]->device);
			if (r && cls == MXBPF_CLASS_OPERATOR)
				count_calls(m, r, &point);
			if (r)
				sample_row(r, s->base[cost_is_little(m, r) ? COST_LITTLE : COST_SLICED]);
		}
	}
	if (alone && point.iterations)
		add_point(s, &point);
	s->n++;
	for (of = 0; of < 2; of++)
		for (k = 0; k < COST_BASES; k++) {
			s->base_squares[of][k] += s->base[of][k] * s->base[of][k];
			s->base[of][k] = 0;
		}
}

/* The time in which all calls were recorded; its ends are those of iterations. */
static int keep_seen(struct mdl *m, const struct mxbpf_slice_part *s)
{
	const uint64_t ns = s->slices ? s->slice_ns : s->seen_ns;
	const uint64_t end_ns = s->h.ts_ns + (s->slices ? s->slice_ns : 0);

	return ns && s->h.tgid && end_ns > ns ? steps_seen(m, s->h.tgid, end_ns - ns - ns / BLUR, end_ns + ns / BLUR)
					      : 0;
}

int cost_slice_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_slice_part *from = (const void *)rec;
	struct cost_state *state = mdl_state(m, &feature_cost);
	struct cost_slices *s;
	bool added;

	if (!state)
		return -ENOMEM;
	s = mdl_item_put(&state->slices_of, &state->slices, from->h.tgid, 0, sizeof(*s), &added);
	if (!s)
		return -ENOMEM;
	s->all.h = from->h;
	s->all.h.size = sizeof(s->all);
	s->end_ns = from->h.ts_ns + from->slice_ns;
	add_slices(&s->all, from);
	add_free(s, from);
	if (from->slices > 1) /* a sum: its slices were folded one by one */
		return 0;
	sample(m, s, from);
	if (from->marks_ns < from->all_ns)
		steps_gap(m, from->h.tgid, from->h.ts_ns, from->h.ts_ns + from->slice_ns);
	return keep_seen(m, from);
}

int cost_estimate_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_estimate *a = (const void *)rec;
	struct mdl_row *r = mdl_row_find(m, a->cls, a->name_id, a->h.tgid, a->device);
	const struct mdl_estimate e = {a->count, a->total_ns, a->self_ns, a->count_error, a->self_error_ns};

	if (r && a->count <= r->count && a->total_ns <= r->total_ns && a->self_ns <= r->self_ns)
		cost_estimate_add(r, &e);
	return 0;
}

int cost_estimate_emit(const struct mdl_row *r, struct buf *out)
{
	const struct mdl_estimate *e = &r->estimate;
	const struct mxbpf_agg_estimate a = {
		.h = {.kind = MXBPF_AGG_ESTIMATE, .size = sizeof(a), .tgid = r->tgid},
		.name_id = r->id,
		.count = e->count,
		.total_ns = e->total_ns,
		.self_ns = e->self_ns,
		.count_error = e->count_error,
		.self_error_ns = e->self_error_ns,
		.device = r->device,
		.cls = r->cls,
	};

	return e->count ? buf_put(out, &a, sizeof(a)) : 0;
}

/* Rows are seen in the same slices, so their errors are not independent: this is an upper bound. */
void cost_estimate_add(struct mdl_row *r, const struct mdl_estimate *e)
{
	add_sat(&r->estimate.count, e->count);
	add_sat(&r->estimate.total_ns, e->total_ns);
	add_sat(&r->estimate.self_ns, e->self_ns);
	add_sat(&r->estimate.count_error, e->count_error);
	add_sat(&r->estimate.self_error_ns, e->self_error_ns);
}

/* ---- what slices stand for */

const struct cost_slices *cost_slices_find(const struct mdl *m, uint32_t tgid)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);
	const uint64_t *at = state ? hash_get(&state->slices_of, tgid, 0) : NULL;

	return at ? buf_at(&state->slices, struct cost_slices, *at - 1) : NULL;
}

bool cost_slices_of(const struct mdl *m, uint32_t tgid, struct mxbpf_slice_part *sum)
{
	const struct cost_slices *s = cost_slices_find(m, tgid);

	if (s)
		*sum = s->all;
	return s;
}

struct mxbpf_slice_part cost_slices_all(const struct mdl *m)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);
	struct mxbpf_slice_part sum = {.slices = 0};
	size_t i;

	for (i = 0; state && i < buf_count(&state->slices, struct cost_slices); i++)
		add_slices(&sum, &buf_at(&state->slices, struct cost_slices, i)->all);
	return sum;
}

static double ratio(uint64_t all, uint64_t seen)
{
	return seen && all > seen ? (double)all / (double)seen : 1;
}

/* Iterations tell more than time: a job can rest in between. */
double cost_row_scale(const struct mdl *m, const struct mdl_row *row)
{
	const struct mxbpf_partial *p = cost_partial_of(m, row);
	struct mxbpf_slice_part sum;

	if (!p || !(p->flags & MXBPF_PARTIAL_SLICED) || !cost_slices_of(m, row->tgid, &sum))
		return 1;
	if (cost_is_little(m, row))
		return sum.marks_iterations ? ratio(sum.all_iterations, sum.marks_iterations)
					    : ratio(sum.all_ns, sum.marks_ns);
	return sum.seen_iterations ? ratio(sum.all_iterations, sum.seen_iterations) : ratio(sum.all_ns, sum.seen_ns);
}

/* ---- estimates */

struct errors {
	double count, self; /* relative */
};

static struct errors errors_of(const struct mdl *m, const struct mdl_row *r)
{
	const struct cost_slices *s = cost_slices_find(m, r->tgid);
	const bool little = cost_is_little(m, r);
	const uint64_t iterations = little ? s->all.marks_iterations : s->all.seen_iterations;
	const unsigned k = iterations ? COST_ITERATIONS : COST_TIME;
	struct ratio x = {
		.n = s->n,
		.t = (double)(iterations ? iterations
			      : little	 ? s->all.marks_ns
					 : s->all.seen_ns),
		.tt = s->base_squares[little ? COST_LITTLE : COST_SLICED][k],
	};
	struct errors e;

	x.x = (double)r->sampled.count;
	x.xx = r->sampled.count_squares;
	x.xt = r->sampled.count_bases[k];
	e.count = ratio_error(&x);
	x.x = (double)r->sampled.self_ns;
	x.xx = r->sampled.self_squares;
	x.xt = r->sampled.self_bases[k];
	e.self = ratio_error(&x);
	return e;
}

static uint64_t times(uint64_t n, double scale)
{
	return whole((double)n * scale + 0.5);
}

static int64_t times_signed(int64_t n, double scale)
{
	const uint64_t size = times(n < 0 ? -(uint64_t)n : (uint64_t)n, scale);
	const int64_t most = size < INT64_MAX ? (int64_t)size : INT64_MAX;

	return n < 0 ? -most : most;
}

/* Between slices calls wait and allocate as in them. */
static void scale_row(struct mdl_row *r, double scale)
{
	__u64 *account = (__u64 *)&r->account; /* it has nothing but sums */
	size_t i;

	r->count = times(r->count, scale);
	r->total_ns = times(r->total_ns, scale);
	r->self_ns = times(r->self_ns, scale);
	r->alloc_bytes = times_signed(r->alloc_bytes, scale);
	r->self_alloc_bytes = times_signed(r->self_alloc_bytes, scale);
	for (i = 0; i < sizeof(r->account) / sizeof(*account); i++)
		account[i] = times(account[i], scale);
}

static void estimate_row(const struct mdl *m, struct mdl_row *r)
{
	const double scale = cost_row_scale(m, r);
	const struct mdl_row seen = *r;
	struct errors e;

	if (scale <= 1 || !r->count || r->estimate.count)
		return;
	e = errors_of(m, r);
	scale_row(r, scale);
	r->estimate = (struct mdl_estimate){
		.count = r->count - seen.count,
		.total_ns = r->total_ns - seen.total_ns,
		.self_ns = r->self_ns - seen.self_ns,
		.count_error = times(r->count, e.count),
		.self_error_ns = times(r->self_ns, e.self),
	};
}

/*
 * Slices stand for the time after the last of them as well, up to the end of the window or of the process, and not for
 * that before the window, when the first of them was due.
 */
static void fit_window(struct mdl *m, struct cost_slices *of, uint64_t window_ns, uint64_t window_end_ns)
{
	struct mxbpf_slice_part *s = &of->all;
	size_t n, i;
	const struct mxbpf_iteration *it = steps_iterations(m, &n);
	uint64_t last_ns = 0, rest_ns, all_ns, all;

	for (i = 0; i < n; i++)
		if (it[i].h.tgid == s->h.tgid && steps_end_ns(&it[i]) > last_ns)
			last_ns = steps_end_ns(&it[i]);
	last_ns = last_ns && last_ns < window_end_ns ? last_ns : window_end_ns;
	rest_ns = last_ns > of->end_ns ? last_ns - of->end_ns : 0;
	if (!s->all_ns)
		return;
	all_ns = s->all_ns + rest_ns < window_ns ? s->all_ns + rest_ns : window_ns;
	all = times(s->all_iterations, (double)all_ns / (double)s->all_ns);
	if (!cost_misses_iterations(m) && all > s->all_iterations) { /* what costs little is recorded to the end */
		s->marks_iterations += all - s->all_iterations;
		s->marks_ns += all_ns - s->all_ns;
	}
	s->all_iterations = all;
	s->all_ns = all_ns;
	of->end_ns += rest_ns;
}

int cost_estimate(struct mdl *m, const struct mdl_session *s)
{
	struct cost_state *state = mdl_state(m, &feature_cost);
	const struct mdl_row *const *rows;
	unsigned cls;
	size_t n, i;

	if (!cost_has_slices(m))
		return 0;
	for (i = 0; i < buf_count(&state->slices, struct cost_slices); i++)
		fit_window(m, buf_at(&state->slices, struct cost_slices, i), s->duration_ns,
			   s->start_mono_ns + s->duration_ns + s->paused_ns);
	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++) {
		rows = mdl_rows(m, (enum mxbpf_class)cls, &n);
		for (i = 0; i < n; i++)
			estimate_row(m, mdl_row_find(m, cls, rows[i]->id, rows[i]->tgid, rows[i]->device));
	}
	return cost_lacks_memory(m) ? steps_only_seen(m) : 0; /* operators are in slices */
}

struct mdl_row cost_recorded(const struct mdl_row *r)
{
	struct mdl_row seen = *r;

	if (!r->estimate.count)
		return seen;
	scale_row(&seen, (double)(r->count - r->estimate.count) / (double)r->count);
	seen.count = r->count - r->estimate.count;
	seen.total_ns = r->total_ns - r->estimate.total_ns;
	seen.self_ns = r->self_ns - r->estimate.self_ns;
	seen.estimate = (struct mdl_estimate){0};
	return seen;
}
