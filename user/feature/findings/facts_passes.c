// SPDX-License-Identifier: Apache-2.0
/*
 * How often a program without an optimizer, such as a server, does its work. An annotation of the program says it.
 * Else the numbers of calls do: what runs a model again and again calls each operator a multiple of so many times.
 */
#include "feature/findings/findings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PASSES_LEAST 10
#define NAMES_LEAST  3	/* operators that are called once in each pass */
#define TIMES_MOST   12 /* in a pass: larger multiples need more passes, see is_large_multiple() */
#define LARGE_OFF    0.2
#define TOLERANCE    0.02 /* the window cuts passes off at both ends, one in each thread */
#define EDGES	     2
#define FITS_LEAST   0.9 /* of the calls */

struct calls {
	uint64_t name_id, count;
	bool fits;
};

static bool is_annotation(const struct mdl_row *r)
{
	return r->traits & MXBPF_TRAIT_USER;
}

static int findings_by_name(const void *va, const void *vb)
{
	const struct calls *a = va, *b = vb;

	return a->name_id < b->name_id ? -1 : a->name_id > b->name_id;
}

/* The process with the most calls of operators. */
static uint32_t busiest(const struct mdl_row *const *rows, size_t n)
{
	uint64_t most = 0, sum;
	uint32_t tgid = 0;
	size_t i, k;

	for (i = 0; i < n; i++) {
		if (rows[i]->tgid == tgid)
			continue;
		for (sum = k = 0; k < n; k++)
			sum += rows[k]->tgid == rows[i]->tgid && !is_annotation(rows[k]) ? rows[k]->count : 0;
		if (sum <= most)
			continue;
		most = sum;
		tgid = rows[i]->tgid;
	}
	return tgid;
}

/* Adds rows of one name up, for example those of several shapes. Returns the number of names. */
static size_t findings_join(struct calls *c, size_t n)
{
	size_t i, kept = 0;

	qsort(c, n, sizeof(*c), findings_by_name);
	for (i = 0; i < n; i++)
		if (kept && c[kept - 1].name_id == c[i].name_id)
			add_sat(&c[kept - 1].count, c[i].count);
		else
			c[kept++] = c[i];
	return kept;
}

static int by_count(const void *va, const void *vb)
{
	const struct calls *a = va, *b = vb;

	return a->count < b->count ? -1 : a->count > b->count;
}

/* The number of calls is a small multiple of `passes`. */
static bool is_multiple(uint64_t count, uint64_t passes)
{
	const double times = (double)count / (double)passes, whole_times = (double)(uint64_t)(times + 0.5);
	const double off = times > whole_times ? times - whole_times : whole_times - times;

	return times <= TIMES_MOST + 0.5 && off <= (whole_times + 1) * (TOLERANCE + (double)EDGES / (double)passes);
}

/*
 * A large number is a multiple of anything within the tolerance. Something that runs now and then is no pass: of 670
 * requests, 33 may have refreshed an index. With enough passes the number of a model's layers is exact.
 */
static bool is_large_multiple(uint64_t count, uint64_t passes)
{
	const double times = (double)count / (double)passes, off = times - (double)(uint64_t)(times + 0.5);

	return EDGES * times / (double)passes < LARGE_OFF && off < LARGE_OFF && off > -LARGE_OFF;
}

/* Returns whether most calls are multiples of `passes`, or of another number that is one. c: by count */
static bool fits(struct calls *c, size_t n, uint64_t passes)
{
	double calls = 0, right = 0;
	unsigned once = 0;
	size_t i, k;

	for (i = 0; i < n; i++) {
		c[i].fits = is_multiple(c[i].count, passes) || is_large_multiple(c[i].count, passes);
		for (k = i; k-- && !c[i].fits && c[i].count > TIMES_MOST * passes;)
			c[i].fits = c[k].fits && c[k].count > passes && is_multiple(c[i].count, c[k].count);
		calls += (double)c[i].count;
		right += c[i].fits ? (double)c[i].count : 0;
		once += c[i].fits && c[i].count < passes * 3 / 2 && c[i].count > passes / 2;
	}
	return once >= NAMES_LEAST && right >= FITS_LEAST * calls;
}

static void find_annotation(const struct mdl *m, struct facts *f, const struct mdl_row *const *rows, size_t n)
{
	const struct mdl_row *most = NULL;
	size_t i;

	for (i = 0; i < n; i++)
		if (is_annotation(rows[i]) && rows[i]->count >= PASSES_LEAST &&
		    (!most || rows[i]->total_ns > most->total_ns))
			most = rows[i];
	if (!most)
		return;
	f->passes.n = most->count;
	f->passes.annotation.much = most->total_ns;
	f->passes.annotation.name = mdl_name(m, most->name_id, &f->passes.annotation.len);
}

/* Returns whether operators of a backward pass run. */
static bool trains(const struct mdl *m, const struct mdl_row *const *rows, size_t n)
{
	const char *name;
	size_t i, len;

	for (i = 0; i < n; i++) {
		name = mdl_name(m, rows[i]->name_id, &len);
		if (memmem(name, len, "Backward", 8) || memmem(name, len, "backward", 8) ||
		    memmem(name, len, "autograd::", 10))
			return true;
	}
	return false;
}

int facts_passes(struct mdl *m, struct facts *f)
{
	size_t n, i, names = 0;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);
	struct calls *c = calloc(n + 1, sizeof(*c));
	const uint32_t tgid = busiest(rows, n);
	uint64_t passes = 0;

	if (!c)
		return -ENOMEM;
	find_annotation(m, f, rows, n);
	for (i = 0; i < n; i++) {
		if (rows[i]->tgid != tgid || is_annotation(rows[i]) || !rows[i]->count)
			continue;
		c[names++] = (struct calls){.name_id = rows[i]->name_id, .count = rows[i]->count};
		add_sat(&f->passes.calls, rows[i]->count);
		add_sat(&f->passes.op_ns, rows[i]->self_ns);
	}
	names = findings_join(c, names);
	qsort(c, names, sizeof(*c), by_count);
	for (i = 0; i < names && !passes; i++)
		if (c[i].count >= PASSES_LEAST && fits(c, names, c[i].count))
			passes = c[i].count;
	if (!f->passes.n && passes && !trains(m, rows, n))
		f->passes.n = passes;
	free(c);
	return 0;
}
