// SPDX-License-Identifier: Apache-2.0
/*
 * Iterations that become slower. At each look at the loop's thread it is known how many iterations have ended, and how
 * long the thread has waited for a CPU, which is left out, so that a busy machine changes little. The window is cut
 * into parts with equal numbers of iterations. It is a trend if the time of one rises from part to part, and rather
 * along a line than by a step, which is another speed of the machine or another phase of the program. If all that an
 * iteration does becomes a little slower alike, the machine can be the cause, so that something else must grow.
 */
#include "feature/findings/rules.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/cost/cost.h"
#include "feature/lines/lines.h"
#include "feature/resident/resident.h"
#include "feature/steps/steps.h"

#define PARTS	     9
#define THIRD	     (PARTS / 3)
#define EACH_LEAST   2	  /* iterations of a part */
#define RISES_LEAST  0.72 /* Kendall's rank correlation of 9 parts; by chance 3 of 1000 reach it */
#define RISES_PLAIN  0.85
#define MEMORY_LEAST (1 << 18) /* bytes */
#define GROWTH_LEAST 1.15      /* of an iteration, from the first third to the last */
#define GROWTH_PLAIN 1.3       /* and so much needs nothing else that grows, if the rise is plain */
#define MIDDLE	     0.15      /* of the growth has happened, and remains, in the middle third */
#define OTHERS_LEAST 1.1       /* growth of the number of operators */
#define POINTS_LEAST 5	       /* slices whose number of operators rises */
#define NODES_LEAST  20
#define AGAIN_LEAST  5	  /* a graph that is kept on purpose is passed through two or three times */
#define AGAIN_MORE   1.02 /* one that is passed through once for each output has as many nodes in each iteration */
#define POINTS_RISE  0.9
#define LINE_MORE    0.12 /* of the looks: a line has more of the last third than of the first */
#define LINE_PART    0.4  /* of the growth */
#define RANKS_LEAST  0.55 /* it goes on, so that it stands before what takes a half now */

/* How far the loop is at a look at its thread. */
struct point {
	uint64_t at_ns;
	double cpu_ns, on_ns; /* CPU time of the thread; time without that in which it waited for a CPU */
	double n;	      /* iterations that have ended */
};

/* Points in order of time, and the looks that they are of. */
struct course {
	struct buf looks;  /* struct mxbpf_look */
	struct buf points; /* struct point */
};

static int by_time(const void *va, const void *vb)
{
	const struct mxbpf_look *a = va, *b = vb;

	return a->h.ts_ns < b->h.ts_ns ? -1 : a->h.ts_ns > b->h.ts_ns;
}

/* Copies the looks at the loop's thread. Returns 0 or -ENOMEM. */
static int trend_looks(const struct mdl *m, const struct facts *f, struct buf *own)
{
	size_t n, i;
	const struct mxbpf_look *looks = lines_looks(m, &n);
	int err = 0;

	for (i = 0; i < n && !err; i++)
		if (looks[i].h.tgid == f->loop.tgid && looks[i].tid == f->loop.tid && looks[i].read_ns)
			err = buf_put(own, &looks[i], sizeof(looks[i]));
	if (own->len)
		qsort(own->data, buf_count(own, *looks), sizeof(*looks), by_time);
	return err;
}

/* How many of the loop's iterations had ended at a time, by their records; they are in order of time. */
static double ended_by(const struct facts *f, const struct mxbpf_iteration *it, size_t n, uint64_t ns)
{
	uint64_t ended = 0;
	size_t i;

	for (i = 0; i < n; i++)
		ended += it[i].h.tgid == f->loop.tgid && it[i].tid == f->loop.tid && steps_end_ns(&it[i]) <= ns;
	return (double)ended;
}

/* Watching has made the job slower in this time. */
static bool is_sliced(const struct mdl *m, const struct facts *f, uint64_t from_ns, uint64_t to_ns)
{
	unsigned n, i;
	const struct cost_point *p = cost_points(m, f->loop.tgid, &n);

	for (i = 0; i < n; i++)
		if (p[i].from_ns < to_ns + LINES_LOOK_NS / 2 && from_ns < p[i].to_ns + LINES_LOOK_NS / 2)
			return true;
	return false;
}

/* Times in slices are left out, with their iterations, if that leaves a half. Returns 0 or -ENOMEM. */
static int make_points(struct mdl *m, const struct facts *f, struct course *c, bool with_slices)
{
	size_t n, i, nit;
	const struct mxbpf_iteration *it = steps_iterations(m, &nit);
	const struct mxbpf_look *l = (const struct mxbpf_look *)c->looks.data;
	struct point p = {.n = 0};
	bool counted;
	int err = 0;

	n = buf_count(&c->looks, *l);
	counted = n && l[n - 1].iterations > l[0].iterations;
	c->points.len = 0;
	for (i = 0; i < n && !err; i++) {
		const struct mxbpf_look *was = i ? &l[i - 1] : l;
		const double passed = (double)(l[i].read_ns - was->read_ns),
			     waits = (double)(l[i].runq_ns - was->runq_ns);

		if (l[i].read_ns < was->read_ns || l[i].runq_ns < was->runq_ns || l[i].cpu_ns < was->cpu_ns ||
		    l[i].iterations < was->iterations)
			return 0; /* a recording is untrusted */
		if (!with_slices && is_sliced(m, f, was->read_ns, l[i].read_ns))
			continue;
		p.at_ns = l[i].read_ns;
		p.on_ns += passed > waits ? passed - waits : 0;
		p.cpu_ns += (double)(l[i].cpu_ns - was->cpu_ns);
		p.n += counted ? (double)(l[i].iterations - was->iterations)
			       : ended_by(f, it, nit, l[i].read_ns) - ended_by(f, it, nit, was->read_ns);
		err = buf_put(&c->points, &p, sizeof(p));
	}
	return !err && !with_slices && buf_count(&c->points, p) < n / 2 ? make_points(m, f, c, true) : err;
}

/* The moment at which so many iterations have ended, between the two looks before and after it. */
static struct point point_at(const struct course *c, double n)
{
	const struct point *p = (const struct point *)c->points.data, *end = p + buf_count(&c->points, *p) - 1;
	double part;

	while (p < end && p[1].n < n)
		p++;
	if (p == end || p[1].n <= p->n)
		return *p;
	part = n > p->n ? (n - p->n) / (p[1].n - p->n) : 0;
	return (struct point){p->at_ns + whole(part * (double)(p[1].at_ns - p->at_ns)),
			      p->cpu_ns + part * (p[1].cpu_ns - p->cpu_ns), p->on_ns + part * (p[1].on_ns - p->on_ns),
			      n};
}

/* ---- is it a trend? */

static double rises(const double each[PARTS])
{
	int more = 0, i, k;

	for (i = 0; i < PARTS; i++)
		for (k = i + 1; k < PARTS; k++)
			more += (each[k] > each[i]) - (each[k] < each[i]);
	return more / (PARTS * (PARTS - 1) / 2.0);
}

static double mean_of(const double *each, size_t n)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += each[i];
	return sum / (double)n;
}

static double rest_of_mean(const double *each, size_t n)
{
	const double mean = mean_of(each, n);
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += (each[i] - mean) * (each[i] - mean);
	return sum;
}

/* A line leaves less of the differences than the best step does. */
static bool is_line(const double each[PARTS])
{
	const double middle = (PARTS - 1) / 2.0;
	double slope = 0, all = 0, step = INFINITY, rest;
	size_t i;

	for (i = 0; i < PARTS; i++) {
		slope += ((double)i - middle) * each[i];
		all += ((double)i - middle) * ((double)i - middle);
	}
	rest = rest_of_mean(each, PARTS) - slope * slope / all;
	for (i = 1; i < PARTS; i++)
		step = facts_least(step, rest_of_mean(each, i) + rest_of_mean(each + i, PARTS - i));
	return rest < step;
}

static double middle_of(const double *each)
{
	const double a = each[0], b = each[1], c = each[2];

	return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

static bool is_trend(const double each[PARTS], struct cause_trend *t)
{
	const double first = middle_of(each), second = middle_of(each + THIRD), third = middle_of(each + 2 * THIRD);

	t->first_ns = whole(first);
	t->last_ns = whole(third);
	return first > 0 && third >= GROWTH_LEAST * first && second - first >= MIDDLE * (third - first) &&
	       third - second >= MIDDLE * (third - first) && rises(each) >= RISES_LEAST && is_line(each);
}

/* ---- what grows with them */

/* Samples in the first third of the window and in the last. */
struct thirds {
	struct facts_tally lines[2], functions[2];
};

/* By how much more an iteration of the last third takes at a line or in a function; share: of both thirds. */
static double more_at(const struct cause_trend *t, const struct facts_tally tally[2], const char *text, double share[2])
{
	share[0] = facts_share((double)facts_tally_at(&tally[0], text), (double)tally[0].of);
	share[1] = facts_share((double)facts_tally_at(&tally[1], text), (double)tally[1].of);
	return share[1] * (double)t->last_ns - share[0] * (double)t->first_ns;
}

static int tally_thirds(const struct mdl *m, const struct course *c, const uint64_t third_ns[2], struct thirds *of)
{
	const struct mxbpf_look *l = (const struct mxbpf_look *)c->looks.data;
	const struct mxbpf_agg_line one = {.count = 1};
	char function[FACTS_LINE_BYTES];
	const char *text;
	size_t i, len;
	bool late;
	int err = 0;

	for (i = 0; i < buf_count(&c->looks, *l) && !err; i++) {
		late = l[i].h.ts_ns >= third_ns[1];
		text = late || l[i].h.ts_ns < third_ns[0] ? lines_of_program(m, l[i].stack_id, &len) : NULL;
		if (!text)
			continue;
		of->lines[late].of++;
		of->functions[late].of++;
		err = facts_tally_add(&of->lines[late], text, len, &one);
		len = facts_function(text, len, function);
		err = err ? err : facts_tally_add(&of->functions[late], function, len, &one);
	}
	return err;
}

/* The function in which an iteration spends the most more in the last third than in the first; "": none. */
static const char *growing_function(const struct cause_trend *t, const struct thirds *of)
{
	const struct facts_tally *last = &of->functions[1];
	const struct fact_line *f;
	const char *best = "";
	double share[2], by, most = 0;
	size_t i;

	for (i = 0; i < buf_count(&last->lines, struct fact_line); i++) {
		f = buf_at(&last->lines, const struct fact_line, i);
		by = more_at(t, of->functions, f->text, share);
		if (f->looks < FACTS_LOOKS_LEAST || by <= most)
			continue;
		most = by;
		best = f->text;
	}
	return most < LINE_PART * (double)(t->last_ns - t->first_ns) ? "" : best;
}

/* The line that grows the most in that function: one line of a loop over a list has a part of what grows. */
static int trend_line(const struct mdl *m, struct cause_trend *t, const struct course *c, const uint64_t third_ns[2])
{
	struct thirds of = {.lines = {{.of = 0}}};
	int err = tally_thirds(m, c, third_ns, &of);
	const char *name = growing_function(t, &of);
	char function[FACTS_LINE_BYTES];
	const struct fact_line *line;
	double share[2], by, most = 0;
	size_t i;

	for (i = 0; *name && i < buf_count(&of.lines[1].lines, struct fact_line); i++) {
		line = buf_at(&of.lines[1].lines, const struct fact_line, i);
		by = more_at(t, of.lines, line->text, share);
		function[facts_function(line->text, strlen(line->text), function)] = '\0';
		if (line->looks < FACTS_LOOKS_LEAST || by <= most || strcmp(function, name) != 0)
			continue;
		most = by;
		t->line = *line;
		t->line.of = of.lines[1].of;
	}
	t->line_more = more_at(t, of.functions, name, share) > 0 ? share[1] - share[0] : 0;
	t->line_before =
		t->line.looks ? facts_share((double)facts_tally_at(&of.lines[0], t->line.text), (double)of.lines[0].of)
			      : 0;
	for (i = 0; i < 2; i++) {
		facts_tally_fini(&of.lines[i]);
		facts_tally_fini(&of.functions[i]);
	}
	return err;
}

static double for_each_iteration(uint64_t n, uint64_t iterations)
{
	return facts_share((double)n, (double)iterations);
}

static bool grows(const double of[2])
{
	return of[0] > 0 && of[1] >= OTHERS_LEAST * of[0];
}

/* By how much the least memory of the loop's process rises from part to part; 0: it does not. */
static int64_t trend_memory(const struct mdl *m, const struct facts *f)
{
	double least[PARTS];
	const struct resident *p;
	size_t i, part;
	uint32_t k;

	if (f->resident.tgid && f->resident.tgid == f->loop.tgid)
		return f->resident.grown_bytes;
	for (i = 0; (p = resident_at(m, i)); i++)
		if (p->tgid == f->loop.tgid)
			break;
	if (!p || p->n < PARTS * EACH_LEAST)
		return 0;
	for (part = 0; part < PARTS; part++) {
		least[part] = INFINITY;
		for (k = (uint32_t)(p->n * part / PARTS); k < p->n * (part + 1) / PARTS; k++)
			least[part] = fmin(least[part], (double)p->at[k].bytes);
	}
	if (rises(least) < RISES_PLAIN || least[PARTS - 1] - least[0] < MEMORY_LEAST)
		return 0;
	return (int64_t)whole(least[PARTS - 1] - least[0]);
}

/*
 * Operators of an iteration in the first and in the last third of the slices. Returns whether their number rises from
 * slice to slice, which no load of the machine changes.
 */
static bool trend_operators(const struct mdl *m, const struct facts *f, struct cause_trend *t)
{
	unsigned n, i, third, k;
	const struct cost_point *p = cost_points(m, f->loop.tgid, &n);
	struct cost_point sums[2] = {{0}}, *sum;
	int more = 0;

	third = n < 3 ? n / 2 : n / 3;
	for (i = 0; i < n; i++) {
		for (k = 0; k < i; k++)
			more += for_each_iteration(p[i].calls, p[i].iterations) >
						for_each_iteration(p[k].calls, p[k].iterations)
					? 1
					: -1;
		if (i >= third && i < n - third)
			continue;
		sum = &sums[i >= n - third];
		add_sat(&sum->iterations, p[i].iterations);
		add_sat(&sum->calls, p[i].calls);
		add_sat(&sum->passes, p[i].passes);
	}
	for (i = 0; i < 2; i++) {
		t->calls[i] = for_each_iteration(sums[i].calls, sums[i].iterations);
		t->passes[i] = for_each_iteration(sums[i].passes, sums[i].iterations);
	}
	return n >= (t->grown_bytes ? POINTS_LEAST - 1 : POINTS_LEAST) && grows(t->calls) &&
	       more >= POINTS_RISE * n * (n - 1) / 2;
}

/* The node is that of the backward pass for the operator: "AddBackward0" and "aten::add", or "aten::add_" in place. */
static bool is_node_of(const char *node, size_t base, const char *name, size_t len)
{
	size_t i;

	len -= len && name[len - 1] == '_';
	if (len != base + 6 || memcmp(name, "aten::", 6))
		return false;
	for (i = 0; i < base && tolower((unsigned char)node[i]) == name[6 + i]; i++)
		;
	return i == base;
}

/*
 * How many times a node runs for each call of its operator, which is once, unless graphs of earlier iterations are kept
 * and passed through again. Operators that backward passes call themselves only make it less.
 */
static void trend_again(struct mdl *m, const struct facts *f, struct cause_trend *t)
{
	size_t n, i, k, len, other;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);
	const char *node, *end, *name;
	uint64_t nodes, calls;

	for (i = 0; i < n; i++) {
		node = mdl_name(m, rows[i]->name_id, &len);
		end = memmem(node, len, "Backward", 8);
		if (rows[i]->tgid != f->loop.tgid || !end || memmem(node, len, "::", 2))
			continue;
		nodes = rows[i]->count;
		for (calls = 0, k = 0; k < n; k++) {
			name = mdl_name(m, rows[k]->name_id, &other);
			if (rows[k]->tgid == f->loop.tgid && is_node_of(node, (size_t)(end - node), name, other))
				add_sat(&calls, rows[k]->count);
		}
		if (nodes < NODES_LEAST || facts_share((double)nodes, (double)calls) <= t->again)
			continue;
		t->again = facts_share((double)nodes, (double)calls);
		t->node = (struct fact_operator){node, len, nodes};
	}
}

/* Time of an iteration's parts in the first third and in the last, of those in which they are known. */
static void trend_part(struct mdl *m, const struct facts *f, struct cause_trend *t, const uint64_t third_ns[2])
{
	size_t n;
	const struct mxbpf_iteration *it = steps_iterations(m, &n);
	double ns[2][MXBPF_STEP_PARTS] = {{0}}, count[2] = {0}, by, most = 0;
	unsigned part, late;
	size_t i;

	for (i = 0; i < n; i++) {
		late = it[i].h.ts_ns >= third_ns[1];
		if (!(it[i].flags & MXBPF_ITERATION_PARTS) || it[i].h.tgid != f->loop.tgid ||
		    it[i].tid != f->loop.tid || (!late && it[i].h.ts_ns >= third_ns[0]))
			continue;
		count[late]++;
		for (part = 0; part < MXBPF_STEP_PARTS; part++)
			ns[late][part] += (double)it[i].part_ns[part];
	}
	t->part = MXBPF_STEP_PARTS;
	for (part = 0; part < MXBPF_STEP_PARTS && count[0] && count[1]; part++) {
		by = ns[1][part] / count[1] - ns[0][part] / count[0];
		if (by <= most || by < LINE_PART * (double)(t->last_ns - t->first_ns))
			continue;
		most = by;
		t->part = part;
	}
}

static bool grows_too(const struct cause_trend *t)
{
	return grows(t->calls) || (t->line.looks && t->line_more >= LINE_MORE) || t->grown_bytes;
}

/*
 * CPU time is what a busy machine disturbs the least. An iteration can also become slower because its thread sleeps for
 * longer. Returns whether one of both is a trend; rise: how plain it is.
 */
static bool becomes_slower(const struct course *c, double ended, struct cause_trend *t, double *rise)
{
	double cpu[PARTS], on[PARTS];
	struct point from, to;
	bool slower;
	int i;

	for (i = 0; i < PARTS; i++) {
		from = point_at(c, ended * i / PARTS);
		to = point_at(c, ended * (i + 1) / PARTS);
		cpu[i] = (to.cpu_ns - from.cpu_ns) * PARTS / ended;
		on[i] = (to.on_ns - from.on_ns) * PARTS / ended;
	}
	slower = is_trend(cpu, t);
	*rise = rises(slower ? cpu : on);
	return slower || is_trend(on, t);
}

/* Returns 0 or -ENOMEM. */
static int look_for_trend(struct mdl *m, struct facts *f, const struct course *c)
{
	const size_t n = buf_count(&c->points, struct point);
	const double ended = n ? buf_at(&c->points, struct point, n - 1)->n : 0;
	struct cause_trend t = {.n = (uint64_t)ended};
	uint64_t third_ns[2];
	double rise = 0;
	bool longer;
	int err;

	if (!n || ended < EACH_LEAST)
		return 0;
	t.grown_bytes = trend_memory(m, f);
	trend_again(m, f, &t);
	longer = trend_operators(m, f, &t);
	/* Slices cut iterations into unequal parts, and so do two optimizers: their numbers of operators prove nothing.
	 */
	if (!longer)
		t.calls[0] = t.calls[1] = 0;
	if (t.passes[0] > 0 && t.passes[1] <= AGAIN_MORE * t.passes[0])
		t.again = 0;
	longer = (longer || t.again >= AGAIN_LEAST) && t.grown_bytes;
	t.slower = n >= PARTS * EACH_LEAST && ended >= PARTS * EACH_LEAST && becomes_slower(c, ended, &t, &rise);
	if (!t.slower && !longer)
		return 0;
	if (!t.slower)
		t.first_ns = t.last_ns = 0;
	third_ns[0] = point_at(c, ended / 3).at_ns;
	third_ns[1] = point_at(c, ended * 2 / 3).at_ns;
	err = trend_line(m, &t, c, third_ns);
	trend_part(m, f, &t, third_ns);
	if (longer || ((double)t.last_ns >= GROWTH_PLAIN * (double)t.first_ns && rise >= RISES_PLAIN) || grows_too(&t))
		f->cause.trend = t;
	return err;
}

int make_trend(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct course c = {.looks = {0}};
	int err = f->loop.tid ? trend_looks(m, f, &c.looks) : 0;

	(void)s;
	err = err ? err : make_points(m, f, &c, false);
	err = err ? err : look_for_trend(m, f, &c);
	buf_fini(&c.looks);
	buf_fini(&c.points);
	return err;
}

/* ---- what is said */

static double trend_share(const struct facts *f)
{
	const struct cause_trend *t = &f->cause.trend;
	const double share = t->slower ? 1 - facts_share((double)t->first_ns, (double)t->last_ns) : 0;

	return t->n && share < RANKS_LEAST ? RANKS_LEAST : share;
}

static void trend_say(const struct facts *f, struct buf *b)
{
	const struct cause_trend *t = &f->cause.trend;
	const double over = (double)t->n * 2 / 3; /* between the middles of the thirds */
	char ns[3][24], bytes[24];

	if (t->slower)
		buf_printf(b,
			   "Iterations become slower: each takes %s in the last third of the window and %s in the "
			   "first, %s more per 100 iterations",
			   fmt_ns(t->last_ns, ns[0]), fmt_ns(t->first_ns, ns[1]),
			   fmt_ns(whole(100 * (double)(t->last_ns - t->first_ns) / over), ns[2]));
	else
		buf_printf(b, "Each iteration does more than the one before");
	if (t->again >= AGAIN_LEAST)
		buf_printf(
			b,
			"; the backward pass goes through the graphs of earlier iterations again, because a state was "
			"never detached: %.*s runs %.0f times for each call of its operator",
			(int)t->node.len, t->node.name, t->again);
	else if (grows(t->passes))
		buf_printf(
			b,
			"; the backward pass of an iteration has %.0f nodes instead of %.0f, as if a state was never "
			"detached",
			t->passes[1], t->passes[0]);
	else if (grows(t->calls))
		buf_printf(b, "; an iteration has %.0f operators instead of %.0f", t->calls[1], t->calls[0]);
	else if (t->part < MXBPF_STEP_PARTS)
		buf_printf(b, "; most of what grows is %s",
			   t->part == MXBPF_PART_OUTSIDE ? (f->python ? "your Python code" : "your own code")
							 : steps_part_words(t->part, f->python));
	if (f->grown_bytes > 0)
		buf_printf(b, "; memory grows by %s in each",
			   fmt_bytes((uint64_t)f->grown_bytes / (f->grown_over ? f->grown_over : 1), bytes));
	else if (t->grown_bytes)
		buf_printf(b, "; the memory of the process grows by %s in this window",
			   fmt_bytes((uint64_t)t->grown_bytes, bytes));
}

static void trend_evidence(const struct facts *f, struct buf *b)
{
	const struct cause_trend *t = &f->cause.trend;

	if (!t->line.looks)
		return;
	buf_printf(b, "what grows is at ");
	rules_put_line(&t->line, b);
	buf_printf(b, " in the last third, %.0f%% in the first", 100 * t->line_before);
}

/* clang-format off */
const struct finding_rule rules_trend[] = {
	{.key = "slower_iterations", .full_gpu = true, .least = 0.1, .share = trend_share, .say = trend_say, .evidence = trend_evidence,
	 .explains = "own_code tiny_operators slow_iterations page_faults", .next = "--pid PID --memory --py-stacks", .taken = FACTS_HAVE_STACKS,
	 .advice = "Something grows with each iteration, so that the job will stand still in the end. A state that is carried on keeps "
		   "the graphs of all iterations before: detach() it. A list that is searched or summed takes longer as it grows: use a "
		   "set or a dict, and a running sum of .item(). A buffer that is concatenated in each step is copied whole: give it a "
		   "limit, or write into a tensor that is allocated once. Then an iteration stays as quick as the first ones."},
	{.key = NULL},
};
/* clang-format on */
