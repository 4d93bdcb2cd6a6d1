// SPDX-License-Identifier: Apache-2.0
/*
 * Takes the cost of watching out of the times of calls. A row keeps no single calls, so its durations move as a
 * distribution: min, max, percentiles and the total stay those of one set of calls.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/whole.h"
#include "feature/cost/cost.h"
#include "feature/steps/steps.h"

#define CALLS_LEAST 16	 /* of a row, before its quick calls are believed */
#define QUICK	    0.1	 /* percentile */
#define LOWER	    0.25 /* share of all estimates */
#define HALVINGS    50

/* ---- how much of the measured cost lies in the calls */

/* The least that the quick calls of a row leave of the estimates, weighed by these. */
struct bound {
	double scale, weight;
};

static int by_scale(const void *va, const void *vb)
{
	const struct bound *a = va, *b = vb;

	return a->scale < b->scale ? -1 : a->scale > b->scale;
}

/*
 * Estimates are of the hits. Watching also slows down the job's own code between hits, which is measured with them, but
 * does not lie in the calls. The quick calls of a row show how much does: no call takes less than nothing.
 * Returns the scale of the estimates within calls. Rows of calls that differ much are in the lower quarter.
 */
static double scale_within(struct mdl *m, enum mxbpf_class cls, double scale)
{
	size_t n, i, nbounds = 0;
	const struct mdl_row *const *rows = mdl_rows(m, cls, &n);
	struct bound *b = malloc((n + 1) * sizeof(*b));
	double all = 0, seen = 0;

	for (i = 0; b && i < n; i++) {
		const double cost = (double)rows[i]->cost_ns;

		if (rows[i]->count < CALLS_LEAST || cost <= 0)
			continue;
		b[nbounds++] =
			(struct bound){(double)mdl_percentile(rows[i], QUICK) * (double)rows[i]->count / cost, cost};
		all += cost;
	}
	if (nbounds)
		qsort(b, nbounds, sizeof(*b), by_scale);
	for (i = 0; i < nbounds && seen + b[i].weight < all * LOWER; i++)
		seen += b[i].weight;
	scale = nbounds ? fmin(scale, b[i].scale) : scale;
	free(b);
	return scale;
}

/* ---- the durations of a row */

/* Calls by duration, one entry for each bucket of the histogram. */
struct calls {
	double n[MXBPF_HIST_BUCKETS], ns[MXBPF_HIST_BUCKETS];
	double min_ns, max_ns, count, sum_ns;
};

static double within(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

/* The middles of the buckets, such that they add up to the total of the row. */
static void calls_of(const struct mdl_row *r, struct calls *c)
{
	double sum = 0;
	unsigned i;

	*c = (struct calls){.min_ns = (double)r->min_ns, .max_ns = (double)r->max_ns, .sum_ns = (double)r->total_ns};
	for (i = 0; i < MXBPF_HIST_BUCKETS; i++) {
		const uint64_t low = mdl_bucket_low(i), high = i + 1 < MXBPF_HIST_BUCKETS ? mdl_bucket_low(i + 1) : low;

		c->n[i] = (double)r->hist[i];
		c->ns[i] = within((double)low + (double)(high - low) / 2, c->min_ns, c->max_ns);
		c->count += c->n[i];
		sum += c->n[i] * c->ns[i];
	}
	for (i = 0; i < MXBPF_HIST_BUCKETS && sum > 0; i++)
		c->ns[i] *= c->sum_ns / sum;
}

/* Returns the sum of all durations if none were longer than `most`. */
static double sum_up_to(const struct calls *c, double most)
{
	double sum = 0;
	unsigned i;

	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		sum += c->n[i] * fmin(c->ns[i], most);
	return sum;
}

/* Returns the duration for which sum_up_to() is `sum`. */
static double most_for(const struct calls *c, double sum)
{
	double low = 0, high = c->max_ns, middle;
	unsigned i;

	for (i = 0; i < HALVINGS; i++) {
		middle = (low + high) / 2;
		if (sum_up_to(c, middle) < sum)
			low = middle;
		else
			high = middle;
	}
	return high;
}

static double median(const struct calls *c)
{
	double seen = 0;
	unsigned i;

	for (i = 0; i + 1 < MXBPF_HIST_BUCKETS; i++) {
		seen += c->n[i];
		if (seen >= c->count / 2)
			break;
	}
	return c->ns[i];
}

/* Takes `part` of what a duration has between `from` and `to`. */
struct cut {
	double from, to, part;
};

static double without(double ns, const struct cut *by)
{
	return ns - by->part * fmax(fmin(ns, by->to) - by->from, 0);
}

/* Takes a time in all out of what the durations have between `from` and `to`. */
static void cut_calls(struct calls *c, double from, double to, double all_ns)
{
	const double there = sum_up_to(c, to) - sum_up_to(c, from);
	const struct cut by = {from, to, there > all_ns ? all_ns / there : 1};
	unsigned i;

	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		c->ns[i] = without(c->ns[i], &by);
	c->min_ns = without(c->min_ns, &by);
	c->max_ns = without(c->max_ns, &by);
	c->sum_ns = fmax(c->sum_ns - all_ns, 0);
}

/*
 * Takes the cost: of a call of average duration the average, of a shorter one less in proportion. The cost of a longer
 * one does not grow with what it waits for.
 */
static void cut_cost(struct calls *c, double cost_ns)
{
	const double mean = c->count > 0 ? c->sum_ns / c->count : 0;

	cut_calls(c, 0, sum_up_to(c, mean) >= cost_ns ? mean : most_for(c, cost_ns), cost_ns);
}

/* Takes time in the run queue. Few calls have it, and are longer for it. */
static void cut_late(struct calls *c, double late_ns)
{
	const double usual = median(c), longer = c->sum_ns - sum_up_to(c, usual);

	cut_calls(c, longer >= late_ns ? usual : most_for(c, c->sum_ns - late_ns), HUGE_VAL, late_ns);
}

/* What stays of rounding and of the width of buckets is taken out here. */
static void put_calls(struct mdl_row *r, const struct calls *c)
{
	uint64_t hist[MXBPF_HIST_BUCKETS] = {0}, avg;
	unsigned i;

	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		if (r->hist[i])
			add_sat(&hist[mxbpf_bucket(whole(c->ns[i]))], r->hist[i]);
	memcpy(r->hist, hist, sizeof(hist));
	r->total_ns = whole(c->sum_ns);
	avg = r->total_ns / r->count;
	r->min_ns = whole(fmin(c->min_ns, (double)avg));
	r->max_ns = whole(within(c->max_ns, (double)(avg + (r->total_ns % r->count > 0)), c->sum_ns));
}

/* ---- a row */

/* What watching adds to a time: what ran, and what waited for a CPU meanwhile. */
struct share {
	double cpu_ns, runq_ns;
};

/* A thread waits for a CPU in proportion to the time that it runs. */
static struct share share_of(double cost_ns, double on_cpu_ns, double runq_ns)
{
	const double cost = within(cost_ns, 0, on_cpu_ns);

	return (struct share){cost, on_cpu_ns > 0 ? runq_ns * cost / on_cpu_ns : 0};
}

static double less(double a, double b)
{
	return a > b ? a - b : 0;
}

static struct share self_share(const struct mdl_row *r, double cost_ns)
{
	const struct mxbpf_account_sum *a = &r->account;
	const double runq_ns = less((double)a->runq_ns, (double)a->nested_runq_ns);
	const double blocked_ns = less((double)a->blocked_ns, (double)a->nested_blocked_ns);

	return share_of(cost_ns, less((double)r->self_ns, runq_ns + blocked_ns), runq_ns);
}

static void take_row(struct mdl_row *r, double scale)
{
	const struct share all =
		share_of(scale * (double)r->cost_ns, (double)mdl_on_cpu_ns(r), (double)r->account.runq_ns);
	const struct share its = self_share(r, scale * (double)r->self_cost_ns);
	struct calls c;

	if (r->raw_total_ns || !r->count) /* it is taken out already */
		return;
	r->raw_total_ns = r->total_ns;
	r->raw_self_ns = r->self_ns;
	calls_of(r, &c);
	cut_late(&c, all.runq_ns);
	cut_cost(&c, all.cpu_ns);
	put_calls(r, &c);
	r->self_ns = whole(within((double)r->self_ns - its.cpu_ns - its.runq_ns, 0, (double)r->total_ns));
	r->account.runq_ns -= whole(all.runq_ns);
	r->account.nested_runq_ns -= whole(within(all.runq_ns - its.runq_ns, 0, (double)r->account.nested_runq_ns));
	r->flops.ns = whole((double)r->flops.ns * (double)r->total_ns / (double)r->raw_total_ns);
}

int cost_take(struct mdl *m, const struct mdl_session *s)
{
	struct cost_state *state = mdl_state(m, &feature_cost);
	const struct mdl_row *const *rows;
	unsigned cls;
	size_t n, i;

	if (!s->cost.scale)
		return 0;
	if (!state)
		return -ENOMEM;
	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++) {
		if (!state->within[cls])
			state->within[cls] = scale_within(m, (enum mxbpf_class)cls, (double)s->cost.scale / 1000);
		rows = mdl_rows(m, (enum mxbpf_class)cls, &n);
		for (i = 0; i < n; i++)
			take_row(mdl_row_find(m, cls, rows[i]->id, rows[i]->tgid, rows[i]->device), state->within[cls]);
	}
	return steps_take_cost(m, &s->cost);
}

void cost_take_span(const struct mdl *m, struct mxbpf_span *span, const struct mdl_session *s)
{
	const struct cost_state *state = mdl_state_of(m, &feature_cost);
	const double known = state ? state->within[span->cls] : 0, measured = (double)s->cost.scale / 1000;
	const double scale = known && measured ? known : measured;
	const bool account = span->flags & MXBPF_SPAN_ACCOUNT;
	const uint64_t most = account ? span->account.on_cpu_ns : span->dur_ns;
	const uint64_t cost = whole(scale * (double)span->cost.all * MXBPF_COST_UNIT_NS);
	const uint64_t self = whole(scale * (double)span->cost.self * MXBPF_COST_UNIT_NS);
	const uint64_t all = cost < most ? cost : most;

	span->dur_ns -= all < span->dur_ns ? all : span->dur_ns;
	span->self_ns -= self < span->self_ns ? self : span->self_ns;
	span->self_ns = span->self_ns < span->dur_ns ? span->self_ns : span->dur_ns;
	span->account.on_cpu_ns -= account ? all : 0;
}
