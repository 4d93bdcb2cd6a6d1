// SPDX-License-Identifier: Apache-2.0
#include "compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/judge.h"
#include "feature/cost/cost.h"
#include "feature/steps/steps.h"

#define EPS	  0.0002 /* part of an iteration that is added to times, because logarithms of smaller ones say nothing */
#define MOST	  0.8	 /* part of an iteration's change that the rows which are named make up */
#define ALIKE	  0.03	 /* a change of all operators that is worth a sentence */
#define PEAK_NAME "memory.peak"

const char *const cmp_verdict_words[] = {
	[CMP_NOISE] = "noise", [CMP_SMALL] = "small", [CMP_CHANGED] = "changed", [CMP_NEW] = "new", [CMP_GONE] = "gone",
};

/* Returns true if a watched call costs the same in both recordings, because they were made in the same way. */
static bool made_alike(const struct mdl_session *a, const struct mdl_session *b)
{
	return !a->agent_route == !b->agent_route && a->account == b->account && a->details == b->details &&
	       !strcmp(a->hostname, b->hostname);
}

void cmp_share_scale(const struct cmp_sides *of)
{
	const struct mdl_session *first = of->run[CMP_A][0].s, *s;
	uint64_t sum = 0;
	unsigned side, i, n = 0;
	bool alike = true;

	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < of->n[side]; i++) {
			s = of->run[side][i].s;
			alike &= made_alike(first, s);
			sum += s->cost.scale;
			n += s->cost.scale > 0;
			of->run[side][i].scale = s->cost.scale;
		}
	for (side = 0; side < CMP_SIDES && alike && n; side++)
		for (i = 0; i < of->n[side]; i++)
			of->run[side][i].scale = (uint32_t)(sum / n);
}

/*
 * Subtracts the cost of watching from the model. Findings are made without it, but samples need the parts of iterations
 * with it, so these are copied before.
 */
int cmp_run_take(struct cmp_run *run, bool slices, cmp_events_fn each, void *source)
{
	struct buf iterations = {0};
	struct mdl_session s = *run->s; /* a shallow copy */
	const struct cmp_from from = {run->m, &s, &iterations, each, source};
	const struct mxbpf_iteration *it;
	size_t n;
	int err;

	s.cost.scale = run->scale;
	it = steps_iterations(run->m, &n);
	err = n ? buf_put(&iterations, it, n * sizeof(*it)) : 0;
	if (!err)
		err = cost_take(run->m, &s);
	if (!err)
		err = findings_make(run->m, run->s, &run->found);
	if (!err)
		err = cmp_samples_take(&run->x, &from, slices ? 0 : run->found.facts.loop.tgid);
	buf_fini(&iterations);
	return err;
}

void cmp_run_fini(struct cmp_run *run)
{
	findings_fini(&run->found);
	cmp_samples_fini(&run->x);
}

/* ---- rows */

static bool has_row(const struct buf *rows, uint64_t key)
{
	size_t i;

	for (i = 0; i < buf_count(rows, struct cmp_judged); i++)
		if (buf_at(rows, struct cmp_judged, i)->row.key == key)
			return true;
	return false;
}

static int add_rows(struct buf *rows, const struct cmp_samples *x, bool iterations)
{
	const struct cmp_series *s;
	struct cmp_judged j;
	size_t i;
	int err = 0;

	for (i = 0; i < buf_count(&x->series, *s) && !err; i++) {
		s = buf_at(&x->series, struct cmp_series, i);
		if (has_row(rows, s->key) || (!iterations && s->kind < CMP_OPERATOR))
			continue;
		j = (struct cmp_judged){.row = {.kind = s->kind,
						.key = s->key,
						.name = s->name,
						.detail = s->detail,
						.name_len = s->name_len,
						.detail_len = s->detail_len,
						.p = 1}};
		err = buf_put(rows, &j, sizeof(j));
	}
	return err;
}

/* Returns what an iteration takes on a side: its own row, or the sum of the operators in a slice of time. */
static double whole_of(const struct cmp_sides *of, unsigned side)
{
	const struct cmp_samples *x = &of->run[side][0].x;
	const struct cmp_series *s;
	double sum = 0, own = 0, *to;
	size_t i, k;

	for (i = 0; i < buf_count(&x->series, *s); i++) {
		s = buf_at(&x->series, struct cmp_series, i);
		if (s->kind != CMP_ITERATION && s->kind != CMP_OPERATOR)
			continue;
		to = s->kind == CMP_ITERATION ? &own : &sum;
		for (k = 0; k < x->n; k++)
			*to += s->value[k] / (double)x->n;
	}
	return x->iterations && own > 0 ? own : sum;
}

static int track_all(struct buf *rows, const struct cmp_sides *of)
{
	const double whole[CMP_SIDES] = {whole_of(of, CMP_A), whole_of(of, CMP_B)};
	const double least = whole[CMP_A] < whole[CMP_B] ? whole[CMP_A] : whole[CMP_B];
	struct cmp_judged *j;
	double a, b;
	bool bytes;
	size_t i;
	int err = 0;

	for (i = 0; i < buf_count(rows, *j) && !err; i++) {
		j = buf_at(rows, struct cmp_judged, i);
		bytes = j->row.kind == CMP_MEMORY;
		err = judge_track(j, of, bytes ? 1 : least * EPS + 1, bytes ? 1 : least * CMP_SHARE + 1);
		a = whole[CMP_A] > 0 ? j->row.value[CMP_A] / whole[CMP_A] : 0;
		b = whole[CMP_B] > 0 ? j->row.value[CMP_B] / whole[CMP_B] : 0;
		j->share = j->row.kind == CMP_MEMORY || a > 1 || b > 1 ? 1 : a > b ? a : b;
	}
	return err;
}

static double distance(const struct cmp_row *r)
{
	return fabs(r->value[CMP_B] - r->value[CMP_A]);
}

/* The iteration, memory, then certain changes and new rows by their time, then the rest by time. */
static int by_importance(const void *va, const void *vb)
{
	const struct cmp_row *a = va, *b = vb;
	const bool head_a = a->kind == CMP_ITERATION, head_b = b->kind == CMP_ITERATION;
	double x, y;

	if (head_a != head_b)
		return head_a ? -1 : 1;
	if (cmp_certain(a) != cmp_certain(b))
		return cmp_certain(a) ? -1 : 1;
	if (a->recalled != b->recalled)
		return a->recalled ? -1 : 1;
	x = cmp_certain(a) ? distance(a) : a->value[CMP_A];
	y = cmp_certain(b) ? distance(b) : b->value[CMP_A];
	return x > y ? -1 : x < y;
}

/*
 * Profilers differ in which calls they count, and in what they add to a call: a row that only one side has says nothing
 * of the job, and neither does a small difference in each call. Returns false if the row is not to be shown.
 */
static bool keep_mixed(struct cmp_row *row, double calls)
{
	const bool whole = row->kind == CMP_ITERATION || row->kind == CMP_PART;
	const double own = row->calls[CMP_A] > row->calls[CMP_B] ? row->calls[CMP_A] : row->calls[CMP_B];

	if (row->verdict == CMP_NEW || row->verdict == CMP_GONE || !row->value[CMP_A] || !row->value[CMP_B])
		return false;
	if (row->recalled ||
	    (row->kind != CMP_MEMORY && distance(row) < CMP_PROFILER_US * 1000 * (whole ? calls : own)))
		row->verdict = CMP_NOISE;
	row->recalled = false;
	return true;
}

/* Calls of all operators in an iteration, of the side that has more of each. */
static double calls_of(const struct buf *judged)
{
	const struct cmp_row *row;
	double sum = 0;
	size_t i;

	for (i = 0; i < buf_count(judged, struct cmp_judged); i++) {
		row = &buf_at(judged, struct cmp_judged, i)->row;
		if (row->kind == CMP_OPERATOR)
			sum += row->calls[CMP_A] > row->calls[CMP_B] ? row->calls[CMP_A] : row->calls[CMP_B];
	}
	return sum;
}

static int compare_put_rows(struct cmp_result *r, const struct buf *judged)
{
	const double calls = calls_of(judged);
	struct cmp_row *row;
	size_t i;
	int err = 0;

	for (i = 0; i < buf_count(judged, struct cmp_judged) && !err; i++) {
		row = &buf_at(judged, struct cmp_judged, i)->row;
		if (!r->mixed || keep_mixed(row, calls))
			err = buf_put(&r->rows, row, sizeof(*row));
	}
	if (!err && r->rows.len)
		qsort(r->rows.data, buf_count(&r->rows, struct cmp_row), sizeof(struct cmp_row), by_importance);
	return err;
}

static int make_rows(const struct cmp_sides *of, struct cmp_result *r)
{
	struct buf judged = {0};
	unsigned side, i;
	size_t k;
	int err = 0;

	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < of->n[side] && !err; i++)
			err = add_rows(&judged, &of->run[side][i].x, r->iterations);
	if (!err)
		err = track_all(&judged, of);
	if (!err && judged.len) /* without rows, nothing says how the machine was */
		err = judge_all((struct cmp_judged *)judged.data, buf_count(&judged, struct cmp_judged), of, r);
	if (!err)
		err = compare_put_rows(r, &judged);
	for (k = 0; k < buf_count(&judged, struct cmp_judged); k++)
		judge_fini(buf_at(&judged, struct cmp_judged, k));
	buf_fini(&judged);
	return err;
}

const struct cmp_row *cmp_iteration(const struct cmp_result *r)
{
	const struct cmp_row *first = buf_at(&r->rows, struct cmp_row, 0);

	return r->rows.len && first->kind == CMP_ITERATION ? first : NULL;
}

unsigned cmp_layers(const struct cmp_result *r, const struct cmp_row *op, unsigned *changed)
{
	const struct cmp_row *row;
	unsigned n = 0;
	size_t i;

	*changed = 0;
	for (i = 0; i < buf_count(&r->rows, *row); i++) {
		row = buf_at(&r->rows, struct cmp_row, i);
		if (row->kind != CMP_LAYER || row->name_len != op->name_len ||
		    memcmp(row->name, op->name, op->name_len))
			continue;
		n++;
		*changed += cmp_certain(row);
	}
	return n;
}

/* ---- memory */

/*
 * Makes the row of the memory's peak. A recording has one peak, so its noise is that of the memory that iterations
 * need, or the spread of the recordings of a side if that is larger.
 */
static void make_peak(const struct cmp_sides *of, struct cmp_result *r)
{
	struct cmp_row *p = &r->peak;
	double low[CMP_SIDES] = {0}, high[CMP_SIDES] = {0}, v, spread, noise = CMP_FLOOR_BYTES;
	const struct cmp_row *row;
	unsigned side, i;
	size_t k;

	*p = (struct cmp_row){.kind = CMP_MEMORY, .name = PEAK_NAME, .name_len = sizeof(PEAK_NAME) - 1, .p = 1};
	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < of->n[side]; i++) {
			if (!of->run[side][i].x.peak_known) {
				p->value[CMP_A] *= !r->mixed; /* the other profiler does not say it */
				return;
			}
			v = (double)of->run[side][i].x.peak_bytes;
			p->value[side] += v / of->n[side];
			low[side] = i && low[side] < v ? low[side] : v;
			high[side] = v > high[side] ? v : high[side];
		}
	for (k = 0; k < buf_count(&r->rows, *row); k++) {
		row = buf_at(&r->rows, struct cmp_row, k);
		if (row->kind == CMP_MEMORY && row->noise > noise)
			noise = row->noise;
	}
	for (side = 0; side < CMP_SIDES; side++) {
		spread = low[side] > 0 ? 2 * (high[side] / low[side] - 1) : 0;
		noise = spread > noise ? spread : noise;
	}
	p->change = p->own = p->value[CMP_A] > 0 ? p->value[CMP_B] / p->value[CMP_A] - 1 : 0;
	if (r->mixed && (!p->value[CMP_A] || !p->value[CMP_B])) {
		*p = (struct cmp_row){.kind = p->kind};
		return;
	}
	p->p = fabs(p->change) >= noise && !r->few ? 0 : 1;
	p->noise = r->sums && r->few ? INFINITY : noise;
	p->verdict = p->p < CMP_LEVEL ? CMP_CHANGED : CMP_NOISE;
}

/* ---- what made it */

/*
 * Returns true if a row can be named as a cause of the iteration's change. The time of a call that waits is in a part
 * of the iteration as well, so a part that changed is named instead.
 */
static bool explains(const struct cmp_result *r, const struct cmp_row *row)
{
	const struct cmp_row *part;
	size_t i;

	for (i = 0; i < buf_count(&r->rows, *part) && row->waits; i++) {
		part = buf_at(&r->rows, struct cmp_row, i);
		if (part->kind == CMP_PART && cmp_certain(part))
			return false;
	}
	return cmp_certain(row) && (row->kind == CMP_OPERATOR || row->kind == CMP_PART || row->kind == CMP_RUNQ);
}

static void name_most(struct cmp_result *r)
{
	const struct cmp_row *it = cmp_iteration(r), *row;
	double all, sum = 0, step;
	size_t i;

	if (!it || !cmp_certain(it))
		return;
	all = it->value[CMP_B] - it->value[CMP_A];
	for (i = 1; i < buf_count(&r->rows, *row) && r->nmost < CMP_NAMED && sum < MOST; i++) {
		row = buf_at(&r->rows, struct cmp_row, i);
		step = (row->value[CMP_B] - row->value[CMP_A]) / all;
		if (!explains(r, row) || step < (1 - MOST) / 2)
			continue;
		r->most[r->nmost++] = row;
		sum += step;
	}
}

static void note_drift(struct cmp_result *r)
{
	const struct cmp_row *it = cmp_iteration(r);

	r->delayed &= fabs(r->drift) >= ALIKE;
	r->drifted = r->alike && !r->delayed && fabs(r->drift) >= ALIKE && !(it && cmp_certain(it));
}

static const char *profiler_of(const struct cmp_sides *of, unsigned side, unsigned i)
{
	const char *profiler = of->run[side][i].s->profiler;

	return profiler ? profiler : "";
}

static void sum_up(const struct cmp_sides *of, struct cmp_result *r)
{
	const struct cmp_samples *x;
	unsigned side, i;

	r->iterations = r->events = true;
	r->several = of->n[CMP_A] > 1 && of->n[CMP_B] > 1;
	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < of->n[side]; i++) {
			x = &of->run[side][i].x;
			r->mixed |= strcmp(profiler_of(of, side, i), profiler_of(of, CMP_A, 0)) != 0;
			r->traced |= of->run[side][i].s->profiler != NULL;
			r->iterations &= x->iterations;
			r->events &= x->events;
			r->sums |= x->sums;
			r->few |= x->sums ? !r->several : x->n < CMP_LEAST;
			r->count[side] += x->iterations ? x->count : 0;
			r->wall_ns[side] += x->wall_ns / of->n[side];
			r->left_out += x->left_out;
		}
}

static bool has_common(const struct cmp_result *r)
{
	const struct cmp_row *row;
	size_t i;

	for (i = 0; i < buf_count(&r->rows, *row); i++) {
		row = buf_at(&r->rows, struct cmp_row, i);
		if (row->kind == CMP_OPERATOR && row->calls[CMP_A] > 0 && row->calls[CMP_B] > 0)
			return true;
	}
	return false;
}

int cmp_compare(const struct cmp_sides *of, struct cmp_result *r)
{
	int err;

	*r = (struct cmp_result){0};
	sum_up(of, r);
	err = make_rows(of, r);
	if (err)
		return err;
	r->common = has_common(r);
	make_peak(of, r);
	name_most(r);
	note_drift(r);
	return cmp_context(of, r);
}

void cmp_result_fini(struct cmp_result *r)
{
	struct cmp_difference *d;
	size_t i;

	for (i = 0; i < buf_count(&r->differences, *d); i++) {
		d = buf_at(&r->differences, struct cmp_difference, i);
		free(d->text[CMP_A]);
		free(d->text[CMP_B]);
	}
	buf_fini(&r->rows);
	buf_fini(&r->differences);
	buf_fini(&r->findings);
	buf_fini(&r->shapes);
}
