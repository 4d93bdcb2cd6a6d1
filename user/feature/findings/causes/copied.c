// SPDX-License-Identifier: Apache-2.0
/*
 * Child processes that copy the pages which they got from their parent by fork(): a page is copied when something is
 * written into it, and Python writes a count into each object that it looks at. Their resident memory does not grow
 * by that, but what of it is theirs alone does.
 */
#include "feature/findings/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/resident/resident.h"

#define READINGS_LEAST 20
#define EACH_LEAST     (1 << 20) /* bytes, of a process */
#define ALL_LEAST      (4 << 20)
#define TOUCHED_PART   4 /* of what a process copies, it was seen to touch one part of so many, or more */

/* A reading that is repeated until the next one becomes a straight line to it. Returns the readings up to the last. */
static size_t straighten(int64_t *bytes, size_t n)
{
	size_t from = 0, to, i;

	for (to = 1; to < n; to++) {
		if (bytes[to] == bytes[from])
			continue;
		for (i = from + 1; i < to; i++)
			bytes[i] = bytes[from] + (bytes[to] - bytes[from]) / (int64_t)(to - from) * (int64_t)(i - from);
		from = to;
	}
	return from + 1;
}

/* The private memory of a process less that by which its memory has grown, at each reading. */
static int64_t copied_by(const struct resident *r, int64_t *bytes)
{
	int64_t more, grown;
	size_t n;
	uint32_t i, first = 0; /* they are read a little later than the others */

	while (first < r->n && !r->at[first].private_bytes)
		first++;
	if (r->n - first < READINGS_LEAST || r->at[0].rank || r->at[r->n - 1].h.ts_ns <= r->at[0].h.ts_ns)
		return 0;
	for (i = first; i < r->n; i++) {
		bytes[i - first] = (int64_t)(r->at[i].private_bytes & INT64_MAX / 2);
		if (!bytes[i - first])
			return 0;
	}
	n = straighten(bytes, r->n - first);
	grown = facts_grown(bytes, n);
	more = (int64_t)(r->at[first + n - 1].bytes & INT64_MAX / 2) - (int64_t)(r->at[first].bytes & INT64_MAX / 2);
	return grown - (more > 0 ? more : 0);
}

/* It has written itself. What the parent writes becomes the child's alone as well, but then the parent copies it. */
static bool has_touched(const struct mdl *m, uint32_t tgid, int64_t bytes)
{
	size_t n, i;
	const struct mxbpf_touched *t = resident_touched(m, &n);
	uint64_t pages = 0;

	for (i = 0; i < n; i++)
		if (t[i].h.tgid == tgid) {
			add_sat(&pages, t[i].pages);
			add_sat(&pages, t[i].gone);
		}
	return !n || pages >= (uint64_t)bytes / FACTS_PAGE_BYTES / TOUCHED_PART;
}

int make_copied(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct cause_copied *c = &f->cause.copied;
	int64_t *bytes = calloc(RESIDENT_READINGS, sizeof(*bytes)), by, most = 0;
	const struct resident *r;
	size_t i;

	(void)s;
	if (!bytes)
		return -ENOMEM;
	for (i = 0; (r = resident_at(m, i)); i++) {
		by = copied_by(r, bytes);
		if (by < EACH_LEAST || r->tgid == f->resident.tgid || !has_touched(m, r->tgid, by))
			continue;
		c->processes++;
		add_sat(&c->bytes, (uint64_t)by);
		if (by <= most)
			continue;
		most = by;
		c->tgid = r->tgid;
		c->over_ns = r->at[r->n - 1].h.ts_ns - r->at[0].h.ts_ns;
	}
	free(bytes);
	return c->tgid ? facts_touched(m, c->tgid, &c->line) : 0;
}

/* It takes no time yet, and ends with no memory left. */
static double copied_share(const struct facts *f)
{
	return f->cause.copied.bytes >= ALL_LEAST ? 0.6 : 0;
}

static void copied_say(const struct facts *f, struct buf *b)
{
	const struct cause_copied *c = &f->cause.copied;
	char each[24], all[24];

	buf_printf(b, "%" PRIu32 " worker process%s cop%s memory of the parent, %s a second, %s in this window",
		   c->processes, c->processes == 1 ? "" : "es", c->processes == 1 ? "ies" : "y",
		   fmt_bytes(whole(facts_share((double)c->bytes * 1e9, (double)c->over_ns)), each),
		   fmt_bytes(c->bytes, all));
	if (c->line.looks)
		buf_printf(b, ": objects are touched at %s", c->line.text);
}

static void copied_evidence(const struct facts *f, struct buf *b)
{
	const struct cause_copied *c = &f->cause.copied;

	buf_printf(b,
		   "process %" PRIu32 " copies the most, and its resident memory does not grow by that; nothing leaks",
		   c->tgid);
}

/* clang-format off */
const struct finding_rule rules_copied[] = {
	{.key = "copied_pages", .full_gpu = true, .other_time = true, .least = 0.1, .share = copied_share, .say = copied_say, .evidence = copied_evidence,
	 .pid_at = offsetof(struct facts, cause.copied.tgid),
	 .advice = "A forked worker shares its pages with its parent until something is written into them, and Python writes the reference "
		   "count of each object that it looks at. A large list or dict of Python objects in a dataset is therefore copied page by "
		   "page, by each worker. Keep it in one numpy array, torch tensor or pyarrow table, or as bytes with an array of offsets, "
		   "or in shared memory: such data has one reference count, and the workers share it for good."},
	{.key = NULL},
};
/* clang-format on */
