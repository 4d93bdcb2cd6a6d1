// SPDX-License-Identifier: Apache-2.0
/*
 * Python's garbage collector. The state of the interpreter says whether a collection runs and how many there were, so
 * that no line has to tell: a collection runs inside whatever line makes the next object.
 */
#include "feature/findings/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/lines/lines.h"
#include "feature/steps/steps.h"

#define LEAST	  0.08 /* of the time; in most jobs it is less than a hundredth */
#define LOOKS_MIN 20   /* to judge a process */

/* Of a process. */
struct sums {
	struct cause_collector c;
	uint64_t looks, runs, first_ns, last_ns, before[3], after[3];
	uint64_t since_ns; /* of the collection that runs; 0: none */
};

static uint64_t distance_ns(const struct mxbpf_collector *c)
{
	return c->looks > 1 ? (c->last_ns - c->h.ts_ns) / (c->looks - 1) : 0;
}

static uint64_t look_ns(const struct mxbpf_collector *c, unsigned i)
{
	return c->h.ts_ns + i * distance_ns(c);
}

static void sum_record(struct sums *s, const struct mxbpf_collector *c)
{
	unsigned i;

	for (i = 0; i < 3; i++) {
		s->before[i] = s->looks ? s->before[i] : c->collections[i];
		s->after[i] = c->collections[i];
	}
	s->first_ns = s->looks ? s->first_ns : c->h.ts_ns;
	s->last_ns = c->last_ns;
	for (i = 0; i < c->looks; i++) {
		const bool runs = c->runs >> i & 1;
		uint64_t ns;

		s->runs += runs;
		s->since_ns = !runs ? 0 : s->since_ns ? s->since_ns : look_ns(c, i);
		ns = runs ? look_ns(c, i) + distance_ns(c) - s->since_ns : 0;
		s->c.longest_ns = ns > s->c.longest_ns && s->since_ns <= look_ns(c, i) ? ns : s->c.longest_ns;
	}
	s->looks += c->looks;
}

static void end_sums(struct sums *s)
{
	unsigned i;

	s->c.share = s->looks >= LOOKS_MIN ? facts_share((double)s->runs, (double)s->looks) : 0;
	s->c.window_ns = s->last_ns > s->first_ns ? s->last_ns - s->first_ns : 0;
	for (i = 0; i < 3; i++)
		*(i == 2 ? &s->c.all : &s->c.young) += s->after[i] > s->before[i] ? s->after[i] - s->before[i] : 0;
}

/* Returns how many processes there are. */
static unsigned sum_all(const struct mxbpf_collector *c, size_t n, struct sums sums[CAUSE_PROCESSES])
{
	unsigned processes = 0, k;
	size_t i;

	for (i = 0; i < n; i++) {
		for (k = 0; k < processes && sums[k].c.tgid != c[i].h.tgid; k++)
			;
		if (k == CAUSE_PROCESSES)
			continue;
		processes += k == processes;
		sums[k].c.tgid = c[i].h.tgid;
		sums[k].c.rank = c[i].rank;
		sum_record(&sums[k], &c[i]);
	}
	for (k = 0; k < processes; k++)
		end_sums(&sums[k]);
	return processes;
}

double causes_collecting(const struct facts *f, uint32_t tgid)
{
	unsigned k;

	for (k = 0; k < CAUSE_PROCESSES; k++)
		if (f->cause.collecting[k].tgid == tgid)
			return f->cause.collecting[k].share;
	return 0;
}

/* That of the loop, else of the late rank, else the one with the largest share. */
static const struct cause_collector *choose_process(const struct facts *f, const struct sums *s, unsigned n)
{
	const struct cause_collector *best = NULL;
	unsigned k;

	for (k = 0; k < n; k++)
		if (s[k].c.tgid == f->loop.tgid && s[k].c.share >= LEAST)
			return &s[k].c;
	for (k = 0; k < n; k++) {
		if (s[k].c.tgid == f->late_tgid && s[k].c.share >= LEAST)
			return &s[k].c;
		best = !best || s[k].c.share > best->share ? &s[k].c : best;
	}
	return best;
}

/* The line that collections interrupt most often. */
static int find_line(const struct mdl *m, const struct mxbpf_collector *c, size_t n, struct cause_collector *to)
{
	const struct mxbpf_agg_line one = {.count = 1};
	struct facts_tally t = {.of = 0};
	const char *text;
	size_t i, len;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		text = c[i].h.tgid == to->tgid ? lines_of_program(m, c[i].stack_id, &len) : NULL;
		t.of += text != NULL;
		err = text ? facts_tally_add(&t, text, len, &one) : 0;
	}
	to->line = facts_tally_top(&t);
	facts_tally_fini(&t);
	return err;
}

/* How many of the slow iterations had a collection. */
static int find_slow(struct mdl *m, const struct facts *f, const struct mxbpf_collector *c, size_t n,
		     struct cause_collector *to)
{
	size_t all, from, nit, i;
	const struct mxbpf_iteration *it = steps_iterations(m, &all), *at;
	unsigned char *has;
	unsigned k;

	for (from = 0; from < all && (it[from].h.tgid != f->loop.tgid || it[from].tid != f->loop.tid); from++)
		;
	for (nit = 0; from + nit < all && it[from + nit].h.tgid == f->loop.tgid && it[from + nit].tid == f->loop.tid;)
		nit++;
	it += from;
	has = calloc(nit + 1, 1);
	for (i = 0; has && i < n; i++)
		for (k = 0; k < c[i].looks; k++) {
			at = c[i].h.tgid == to->tgid && c[i].runs >> k & 1 ? steps_at(it, nit, look_ns(&c[i], k))
									   : NULL;
			if (at)
				has[at - it] = 1;
		}
	for (i = 0; has && i < nit; i++)
		if (facts_is_slow(f, &it[i])) {
			to->slow++;
			to->slow_with += has[i];
		}
	free(has);
	return has ? 0 : -ENOMEM;
}

int make_collector(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct cause_collector *to = &f->cause.collector;
	const struct cause_collector *best;
	size_t n;
	const struct mxbpf_collector *c = lines_collectors(m, &n);
	struct sums *sums = n ? calloc(CAUSE_PROCESSES, sizeof(*sums)) : NULL;
	unsigned processes, k;
	int err = 0;

	if (!sums)
		return n ? -ENOMEM : 0;
	processes = sum_all(c, n, sums);
	for (k = 0; k < processes; k++) {
		f->cause.collecting[k].tgid = sums[k].c.tgid;
		f->cause.collecting[k].share = sums[k].c.share;
	}
	best = choose_process(f, sums, processes);
	if (best && best->share >= LEAST) {
		*to = *best;
		err = find_line(m, c, n, to);
		if (f->loop.tid && to->tgid == f->loop.tgid)
			err = err ? err : find_slow(m, f, c, n, to);
	}
	free(sums);
	return err;
}

static double collector_share(const struct facts *f)
{
	const struct cause_collector *c = &f->cause.collector;

	return c->rank ? c->share : cause_of_worker(f, c->tgid, c->share);
}

static void collector_say(const struct facts *f, struct buf *b)
{
	const struct cause_collector *c = &f->cause.collector;
	const uint64_t mean_ns = f->loop.n ? f->loop.total_ns / f->loop.n : 0;
	char ns[4][24];

	buf_printf(b, "Python's garbage collector takes %.0f%% of the time of process %" PRIu32 ": ", 100 * c->share,
		   c->tgid);
	if (c->all)
		buf_printf(b, "%" PRIu64 " collections of all objects, ", c->all);
	if (c->young)
		buf_printf(b, "%" PRIu64 " of young ones, ", c->young);
	buf_printf(b, "%s in %s, the longest %s", fmt_ns(whole(c->share * (double)c->window_ns), ns[0]),
		   fmt_ns(c->window_ns, ns[1]), fmt_ns(c->longest_ns, ns[2]));
	if (mean_ns && c->tgid == f->loop.tgid)
		buf_printf(b, "; without them an iteration would take %s instead of %s",
			   fmt_ns(whole((1 - c->share) * (double)mean_ns), ns[3]), fmt_ns(mean_ns, ns[0]));
}

static void collector_evidence(const struct facts *f, struct buf *b)
{
	const struct cause_collector *c = &f->cause.collector;

	if (c->line.looks)
		buf_printf(b, "most begin at ");
	rules_put_line(&c->line, b);
	if (c->slow_with * 2 > c->slow)
		buf_printf(b, "%s%" PRIu64 " of %" PRIu64 " slow iterations have one", c->line.looks ? "; " : "",
			   c->slow_with, c->slow);
}

/* clang-format off */
const struct finding_rule rules_collector[] = {
	{.key = "collector", .least = LEAST, .full_gpu = true, .explains = "own_code slow_iterations", .share = collector_share, .say = collector_say,
	 .evidence = collector_evidence, .pid_at = offsetof(struct facts, cause.collector.tgid),
	 .advice = "A collection walks through all objects of the program that can contain others, whatever the line that it interrupts. "
		   "Call gc.collect() and gc.freeze() once before the loop, so that what exists then is never walked through again. Or call "
		   "gc.disable(), and gc.collect() where a pause does no harm, on all ranks in the same step. If the line itself calls "
		   "gc.collect(), call it less often. Many collections of young objects become fewer with gc.set_threshold(100000)."},
	{.key = NULL},
};
/* clang-format on */
