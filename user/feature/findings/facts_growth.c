// SPDX-License-Identifier: Apache-2.0
/* Does memory grow? It goes up and down all the time, so the least of each part of the window counts. */
#include "feature/findings/findings.h"

#include <errno.h>
#include <stdlib.h>

#include "feature/lines/lines.h"
#include "feature/resident/resident.h"

#define THIRDS	       3
#define PARTS_MAX      12
#define READINGS_LEAST 20 /* of a process: two seconds */
#define RESIDENT_LEAST (4 << 20)

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t least_of_part(const int64_t *bytes, size_t n, size_t part, size_t parts)
{
	int64_t least = INT64_MAX;
	size_t i;

	for (i = n * part / parts; i < n * (part + 1) / parts; i++)
		least = smaller(least, bytes[i]);
	return least;
}

/*
 * By how much memory falls from one of the parts to a later one. What a collector frees falls by at least as much as it
 * rises after that, if the window has not a second fall.
 */
static int64_t largest_fall(const int64_t *bytes, size_t n)
{
	const size_t parts = n / 2 < PARTS_MAX ? n / 2 : PARTS_MAX;
	int64_t most = smaller(bytes[0], bytes[1]), fall = 0, least, by;
	size_t i;

	for (i = 0; i < parts; i++) {
		least = least_of_part(bytes, n, i, parts);
		if (__builtin_sub_overflow(most, least, &by))
			return INT64_MAX; /* a recording is untrusted */
		fall = by > fall ? by : fall;
		most = least > most ? least : most;
	}
	return fall;
}

int64_t facts_grown(const int64_t *bytes, size_t n)
{
	int64_t least[THIRDS], first, second, all;
	size_t i;

	if (n < 2 * THIRDS)
		return 0;
	for (i = 0; i < THIRDS; i++)
		least[i] = least_of_part(bytes, n, i, THIRDS);
	if (__builtin_sub_overflow(least[1], least[0], &first) || __builtin_sub_overflow(least[2], least[1], &second) ||
	    __builtin_add_overflow(first, second, &all) || all > INT64_MAX / THIRDS)
		return 0;
	if (first <= 0 || second <= 0 || second < first / 2) /* it levels off, as a cache does */
		return 0;
	return largest_fall(bytes, n) > all / 2 ? 0 : all * THIRDS / (THIRDS - 1);
}

#define TOUCHES_LEAST 5 /* samples of memory that a process has touched and kept, to name a line */
#define LINE_PART     3 /* of the pages, the line has one part of so many, or more */

int facts_touched(const struct mdl *m, uint32_t tgid, struct fact_line *line)
{
	size_t n, i, len;
	const struct mxbpf_touched *t = resident_touched(m, &n);
	struct facts_tally tally = {.of = 0};
	struct mxbpf_agg_line l = {.count = 0};
	uint64_t samples = 0;
	const char *text;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		if (t[i].h.tgid != tgid)
			continue;
		add_sat(&samples, t[i].samples);
		add_sat(&tally.of, t[i].pages);
		l.count = t[i].pages;
		text = lines_of_program(m, t[i].stack_id, &len);
		err = text ? facts_tally_add(&tally, text, len, &l) : 0;
	}
	*line = facts_tally_top(&tally);
	if (samples < TOUCHES_LEAST || line->looks < line->of / LINE_PART)
		*line = (struct fact_line){.text = ""};
	facts_tally_fini(&tally);
	return err;
}

/* The process whose resident memory grows the most. */
int facts_resident(const struct mdl *m, struct facts *f)
{
	int64_t *bytes = calloc(RESIDENT_READINGS, sizeof(*bytes)), grown;
	const struct resident *p;
	size_t i;
	uint32_t k;
	int err;

	if (!bytes)
		return -ENOMEM;
	for (i = 0; (p = resident_at(m, i)); i++) {
		for (k = 0; k < p->n; k++)
			bytes[k] = (int64_t)(p->at[k].bytes & INT64_MAX);
		grown = p->n < READINGS_LEAST || p->at[0].rank ? 0 : facts_grown(bytes, p->n);
		if (grown < RESIDENT_LEAST || grown <= f->resident.grown_bytes ||
		    p->at[p->n - 1].h.ts_ns <= p->at[0].h.ts_ns)
			continue;
		f->resident.tgid = p->tgid;
		f->resident.grown_bytes = grown;
		f->resident.over_ns = p->at[p->n - 1].h.ts_ns - p->at[0].h.ts_ns;
		f->resident.bytes = p->at[p->n - 1].bytes;
	}
	free(bytes);
	err = f->resident.tgid || f->grown_bytes
		      ? facts_touched(m, f->resident.tgid ? f->resident.tgid : f->loop.tgid, &f->grown_line)
		      : 0;
	return err || !f->resident.tgid || f->loop.n ? err : facts_owner(m, f, f->resident.tgid);
}
