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
#define SLOW_LEAST     (3 << 20) /* if it is known which line it is */

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
/*
 * Of what a line touches, it keeps one part of so many, or more. The pages of one that keeps less may have been given
 * to others when it had freed them.
 */
#define KEPT_PART 4

int facts_touched(const struct mdl *m, uint32_t tgid, struct fact_line *line)
{
	size_t n, i, len;
	const struct mxbpf_touched *t = resident_touched(m, &n);
	struct facts_tally kept = {.of = 0}, all = {.of = 0};
	struct mxbpf_agg_line l = {.count = 0};
	uint64_t samples = 0;
	const char *text;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		text = t[i].h.tgid == tgid ? lines_of_program(m, t[i].stack_id, &len) : NULL;
		if (!text)
			continue;
		add_sat(&samples, t[i].samples);
		add_sat(&kept.of, t[i].pages);
		l.count = t[i].pages;
		err = facts_tally_add(&kept, text, len, &l);
		add_sat(&l.count, t[i].gone);
		err = err ? err : facts_tally_add(&all, text, len, &l);
	}
	*line = facts_tally_top(&kept);
	if (samples < TOUCHES_LEAST || line->looks < line->of / LINE_PART ||
	    line->looks < facts_tally_at(&all, line->text) / KEPT_PART)
		*line = (struct fact_line){.text = ""};
	facts_tally_fini(&kept);
	facts_tally_fini(&all);
	return err;
}

/* By how much the live memory of the runtime's allocators has grown in the window. */
static int64_t runtime_bytes(struct mdl *m, uint32_t tgid)
{
	size_t n, i;
	const struct mdl_mem_row *const *rows = mdl_mem_rows(m, &n);
	int64_t live = 0;

	for (i = 0; i < n; i++)
		if (rows[i]->tgid == tgid)
			add_sat_any(&live, rows[i]->live_bytes);
	return live > 0 ? live : 0;
}

/* Finds the lines of what grows, and drops what grows too little without one. */
static int find_grown_line(struct mdl *m, struct facts *f)
{
	const uint32_t tgid = f->resident.tgid ? f->resident.tgid : f->loop.tgid;
	const int err = f->resident.tgid || f->grown_bytes ? facts_touched(m, tgid, &f->grown_line) : 0;

	if (!f->grown_line.looks && f->resident.grown_bytes < RESIDENT_LEAST)
		f->resident.tgid = 0;
	if (err || !f->resident.tgid)
		return err;
	f->resident.runtime_bytes = runtime_bytes(m, tgid);
	return f->loop.n ? 0 : facts_owner(m, f, tgid);
}

/*
 * In slices a block can be allocated in one and freed beside it, so that memory of the runtime seems to grow. It does
 * if that of the process grows, and by as much, if it is more than other things make it grow.
 */
static void check_slices(struct facts *f, const struct resident *p, int64_t grown)
{
	const uint64_t over_ns = p->at[p->n - 1].h.ts_ns - p->at[0].h.ts_ns;

	if (!f->sliced || p->tgid != f->loop.tgid || !f->loop.n || !f->loop.total_ns)
		return;
	f->grown_bytes = f->grown_bytes > 0 && grown >= RESIDENT_LEAST ? grown : 0;
	f->grown_over = 1 + (uint64_t)((double)over_ns * (double)f->loop.n / (double)f->loop.total_ns);
}

/* The process whose resident memory grows the most. */
int facts_resident(struct mdl *m, struct facts *f)
{
	int64_t *bytes = calloc(RESIDENT_READINGS, sizeof(*bytes)), grown;
	const struct resident *p;
	size_t i;
	uint32_t k;

	if (!bytes)
		return -ENOMEM;
	for (i = 0; (p = resident_at(m, i)); i++) {
		for (k = 0; k < p->n; k++)
			bytes[k] = (int64_t)(p->at[k].bytes & INT64_MAX);
		grown = p->n < READINGS_LEAST || p->at[0].rank ? 0 : facts_grown(bytes, p->n);
		if (p->n)
			check_slices(f, p, grown);
		if (grown < SLOW_LEAST || grown <= f->resident.grown_bytes ||
		    p->at[p->n - 1].h.ts_ns <= p->at[0].h.ts_ns)
			continue;
		f->resident.tgid = p->tgid;
		f->resident.grown_bytes = grown;
		f->resident.over_ns = p->at[p->n - 1].h.ts_ns - p->at[0].h.ts_ns;
		f->resident.bytes = p->at[p->n - 1].bytes;
	}
	free(bytes);
	return find_grown_line(m, f);
}
