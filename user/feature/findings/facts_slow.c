// SPDX-License-Identifier: Apache-2.0
/* Iterations that take much longer than the others, and whether they come regularly. */
#include "feature/findings/findings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define GROUP_TIMES	1.5  /* a slow one takes at least so many times the median of all */
#define GROUP_LEAST	2    /* so many make a group */
#define GROUP_MOST	0.4  /* of all iterations: more of them are no exception */
#define DISTANCES_LEAST 3    /* two distances by chance differ by less in a fifth of all cases */
#define REGULAR_PERCENT 20   /* by which distances between slow ones may differ and still be regular */
#define PART_LEAST	0.03 /* share of the time of usual iterations; smaller parts are ignored */
#define EVEN_LEAST	0.5  /* every part must grow by at least this share of the relative growth of the whole */

/* A busy machine makes some iterations slow, and among enough of them some pattern is always there by chance. */
#define PERIOD_MAX    256
#define PERIOD_LEAST  3	    /* every second one is no exception */
#define MEMBERS_LEAST 4	    /* iterations of a period */
#define MEMBERS_SLOW  0.8   /* of them are slow */
#define PERIOD_CHANCE 1e-4  /* probability that slow ones would fall on a period by chance, over all periods */
#define RARE	      0.005 /* share of other slow ones that is assumed at least */

/* With slices, an iteration whose parts are known was in one, and its time has what watching cost. */
bool facts_is_slow(const struct facts *f, const struct mxbpf_iteration *it)
{
	if (f->partial && it->flags & MXBPF_ITERATION_PARTS)
		return false;
	return (double)it->dur_ns > GROUP_TIMES * (double)f->loop.median_ns;
}

bool facts_in_group(const struct facts *f, const struct mxbpf_iteration *it)
{
	return f->slow.period ? it->nr % f->slow.period == f->slow.phase : facts_is_slow(f, it);
}

static void add_excess(struct facts *f, const struct mxbpf_iteration *it, uint64_t excess[MXBPF_STEP_PARTS])
{
	unsigned part;

	for (part = 0; part < MXBPF_STEP_PARTS; part++) {
		const uint64_t usual = f->loop.complete ? f->loop.part_ns[part] / f->loop.complete : 0;

		excess[part] += it->part_ns[part] > usual ? it->part_ns[part] - usual : 0;
	}
}

/* Whether the slow ones come at equal distances: those are evaluations, checkpoints, logging. */
static uint64_t regular_distance(const uint64_t *nr, size_t n)
{
	uint64_t mean, apart;
	size_t i;

	if (n < DISTANCES_LEAST + 1)
		return 0;
	mean = (nr[n - 1] - nr[0] + (n - 1) / 2) / (n - 1);
	for (i = 1; i < n; i++) {
		apart = nr[i] - nr[i - 1];
		if (apart * 100 > mean * (100 + REGULAR_PERCENT) || apart * 100 < mean * (100 - REGULAR_PERCENT))
			return 0;
	}
	return mean > 1 ? mean : 0;
}

/*
 * Iterations k, k + p, k + 2p, ... are the members of a pattern, and `slow` of them are slow. Returns the logarithm of
 * the probability that this is chance, if each is slow with the probability `others`, as those outside the pattern.
 */
static double log_chance(uint64_t members, uint64_t slow, double others)
{
	others = others > RARE ? others : RARE;
	return (double)slow * log(others) + (double)(members - slow) * log((double)members);
}

/* Finds iterations of which every so many-th is slow, among others that are slow without a pattern. */
static void find_period(struct facts *f, const struct mxbpf_iteration *it, size_t n, size_t slow)
{
	uint64_t members[PERIOD_MAX], hits[PERIOD_MAX];
	uint64_t p, k, last = n / MEMBERS_LEAST < PERIOD_MAX - 1 ? n / MEMBERS_LEAST : PERIOD_MAX - 1;
	double chance, best = log(PERIOD_CHANCE / (double)(1 + last * last / 2));
	size_t i;

	for (p = PERIOD_LEAST; p <= last; p++) {
		for (k = 0; k < p; k++)
			members[k] = hits[k] = 0;
		for (i = 0; i < n; i++) {
			members[it[i].nr % p]++;
			hits[it[i].nr % p] += facts_is_slow(f, &it[i]);
		}
		for (k = 0; k < p; k++) {
			if (members[k] < MEMBERS_LEAST || (double)hits[k] < MEMBERS_SLOW * (double)members[k])
				continue;
			chance = log_chance(members[k], hits[k], (double)(slow - hits[k]) / (double)(n - members[k]));
			if (chance >= best)
				continue;
			best = chance;
			f->slow.period = p;
			f->slow.phase = k;
		}
	}
}

/*
 * Returns true if every part of the slow iterations is longer in about the same proportion. If the job does more work
 * in them, one part grows. If the processor is slow for a while, all parts grow.
 */
static bool grew_evenly(const struct facts *f, const struct mxbpf_iteration *it, size_t n)
{
	double mean_ns[2][MXBPF_STEP_PARTS] = {{0}}, sum_ns[2] = {0}, least, *usual = mean_ns[0], *slow = mean_ns[1];
	double count[2] = {0};
	unsigned part, of, parts = 0;
	size_t i;

	for (i = 0; i < n; i++)
		count[facts_in_group(f, &it[i])]++;
	for (i = 0; i < n; i++) {
		of = facts_in_group(f, &it[i]);
		for (part = 0; part < MXBPF_STEP_PARTS; part++) {
			mean_ns[of][part] += (double)it[i].part_ns[part] / count[of];
			sum_ns[of] += (double)it[i].part_ns[part] / count[of];
		}
	}
	if (sum_ns[0] <= 0)
		return false;
	least = 1 + EVEN_LEAST * (sum_ns[1] / sum_ns[0] - 1);
	for (part = 0; part < MXBPF_STEP_PARTS; part++) {
		if (usual[part] < PART_LEAST * sum_ns[0])
			continue;
		if (slow[part] < least * usual[part])
			return false;
		parts++;
	}
	return parts > 1;
}

int facts_slow_group(struct facts *f, const struct mxbpf_iteration *it, size_t n)
{
	uint64_t *ns = calloc(2 * n + 1, sizeof(*ns)), *nr, excess[MXBPF_STEP_PARTS] = {0};
	size_t i, k = 0, slow = 0;
	unsigned part;

	if (!ns)
		return -ENOMEM;
	nr = ns + n;
	for (i = 0; i < n; i++)
		if (facts_is_slow(f, &it[i]))
			nr[slow++] = it[i].nr;
	f->slow.every = regular_distance(nr, slow);
	if (!f->slow.every)
		find_period(f, it, n, slow);
	f->slow.every = f->slow.period ? f->slow.period : f->slow.every;
	for (i = 0; i < n; i++) {
		if (!facts_in_group(f, &it[i]))
			continue;
		ns[k++] = it[i].dur_ns;
		f->slow.excess_ns += it[i].dur_ns > f->loop.median_ns ? it[i].dur_ns - f->loop.median_ns : 0;
		add_excess(f, &it[i], excess);
	}
	if (k >= GROUP_LEAST && (double)k <= GROUP_MOST * (double)n) {
		f->slow.n = k;
		f->slow.median_ns = facts_median(ns, k);
		for (part = 1; part < MXBPF_STEP_PARTS; part++)
			f->slow.part = excess[part] > excess[f->slow.part] ? part : f->slow.part;
		f->slow.evenly = grew_evenly(f, it, n);
	}
	free(ns);
	return 0;
}
