// SPDX-License-Identifier: Apache-2.0
/* Who is late in collectives, which group is slower than others, and what nothing overlaps on GPUs. */
#include "feature/findings/findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "feature/activity/activity.h"
#include "feature/collective/collective.h"

#define LATE_TIMES 2 /* as late is the process as the others are on average */
#define LATE_CALLS 5 /* in fewer collectives nobody is late */
#define SLOW_TIMES 2 /* as fast are the others */
#define SLOW_CALLS 3

/* The operation in which a process is late the most. */
static const char *late_in(const struct buf *rows, const struct mxbpf_agg_collective *late)
{
	uint64_t by[MXBPF_COLLECTIVE_OPS] = {0};
	const struct mxbpf_agg_collective *r;
	unsigned most = 0, op;
	size_t i;

	for (i = 0; i < buf_count(rows, *r); i++) {
		r = buf_at(rows, struct mxbpf_agg_collective, i);
		if (r->group == late->group && r->h.tgid == late->h.tgid)
			add_sat(&by[r->op], r->late_ns);
	}
	for (op = 0; op < MXBPF_COLLECTIVE_OPS; op++)
		most = by[op] > by[most] ? op : most;
	return collective_ops[most];
}

/*
 * Judges the processes ranks[0..n) of a group. The others wait for the one that is late for as long as it begins after
 * them.
 */
static int judge_group(const struct mdl_session *s, const struct buf *rows, const struct mxbpf_agg_collective *ranks,
		       size_t n, struct facts *f)
{
	const struct mxbpf_agg_collective *late = ranks;
	double share, others_ns = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		others_ns += (double)ranks[i].late_ns;
		late = ranks[i].late_ns > late->late_ns ? &ranks[i] : late;
	}
	others_ns -= (double)late->late_ns;
	share = facts_share((double)late->late_ns, f->collective.extent_ns);
	if (n < 2 || late->last < LATE_CALLS || share <= f->collective.late.share ||
	    (double)late->late_ns < LATE_TIMES * others_ns / (double)(n - 1))
		return 0;
	f->collective.late.tgid = late->h.tgid;
	f->collective.late.n = late->last;
	f->collective.late.of = late->matched;
	f->collective.late.by_ns = late->late_ns / late->last;
	f->collective.late.share = share < 1 ? share : 1;
	f->collective.late.op = late_in(rows, late);
	collective_process(s, late->h.tgid, f->collective.late.who);
	return collective_group(s, rows, late, f->collective.late.group);
}

static int find_late(const struct mdl_session *s, struct buf *rows, struct facts *f)
{
	const struct mxbpf_agg_collective *r;
	struct buf ranks = {0};
	size_t i, k, n;
	int err = collective_ranks(rows, &ranks);

	n = buf_count(&ranks, *r);
	r = (const void *)ranks.data;
	for (i = 0; !err && i < n; i = k) {
		for (k = i; k < n && r[k].group == r[i].group; k++)
			;
		err = judge_group(s, rows, r + i, k - i, f);
	}
	buf_fini(&ranks);
	return err;
}

static int by_double(const void *va, const void *vb)
{
	const double a = *(const double *)va, b = *(const double *)vb;

	return a < b ? -1 : a > b;
}

static bool is_comparable(const struct collective_sum *a, const struct collective_sum *b)
{
	return a->all.backend == b->all.backend && a->all.op == b->all.op && a->all.bytes == b->all.bytes &&
	       a->all.members == b->all.members;
}

/* Judges c[0..n), which are collectives of one operation, size and number of processes. room: n numbers */
static int judge_links(const struct mdl_session *s, const struct buf *rows, const struct collective_sum *c, size_t n,
		       double *room, struct facts *f)
{
	const struct collective_sum *slow = NULL;
	size_t i, others = 0;
	double usual, share;

	for (i = 0; i < n; i++)
		if (c[i].all.group && c[i].bus > 0 && c[i].calls >= SLOW_CALLS && (!slow || c[i].bus < slow->bus))
			slow = &c[i];
	for (i = 0; i < n; i++)
		if (c[i].all.group && c[i].bus > 0 && c[i].calls >= SLOW_CALLS && &c[i] != slow)
			room[others++] = c[i].bus;
	if (!slow || !others)
		return 0;
	qsort(room, others, sizeof(*room), by_double);
	usual = room[others / 2];
	share = facts_share((double)slow->move_ns * (1 - slow->bus / usual) * (double)slow->calls,
			    f->collective.extent_ns);
	if (slow->bus * SLOW_TIMES > usual || share <= f->collective.slow.share)
		return 0;
	f->collective.slow.share = share < 1 ? share : 1;
	f->collective.slow.bus = slow->bus;
	f->collective.slow.usual = usual;
	f->collective.slow.bytes = slow->all.bytes;
	f->collective.slow.op = collective_ops[slow->all.op];
	return collective_group(s, rows, &slow->all, f->collective.slow.group);
}

static int by_size(const void *va, const void *vb)
{
	const struct mxbpf_agg_collective *a = &((const struct collective_sum *)va)->all;
	const struct mxbpf_agg_collective *b = &((const struct collective_sum *)vb)->all;

	if (a->backend != b->backend || a->op != b->op)
		return a->backend != b->backend ? a->backend - b->backend : a->op - b->op;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	if (a->members != b->members)
		return a->members < b->members ? -1 : 1;
	return a->group < b->group ? -1 : a->group > b->group;
}

/* Also adds up how much of the time in NCCL's kernels is a wait. */
static int find_slow(const struct mdl_session *s, struct buf *rows, struct facts *f)
{
	struct buf sums = {0};
	struct collective_sum *c;
	uint64_t wait_ns = 0, all_ns = 0;
	double *room;
	size_t i, k, n;
	int err = collective_sums(rows, &sums);

	n = buf_count(&sums, *c);
	c = (struct collective_sum *)sums.data;
	room = calloc(n + 1, sizeof(*room));
	err = room ? err : -ENOMEM;
	if (!err && n)
		qsort(c, n, sizeof(*c), by_size);
	for (i = 0; !err && i < n; i = k) {
		for (k = i; k < n && is_comparable(&c[i], &c[k]); k++)
			if (c[k].all.backend == MXBPF_BACKEND_NCCL) {
				add_sat(&wait_ns, c[k].all.wait_ns);
				add_sat(&all_ns, c[k].all.matched_ns);
			}
		err = judge_links(s, rows, c + i, k - i, room, f);
	}
	f->collective.gpu.wait = facts_share((double)wait_ns, (double)all_ns);
	free(room);
	buf_fini(&sums);
	return err;
}

static int find_exposed(const struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	const struct mxbpf_agg_overlap *o;
	struct buf all = {0};
	const int err = collective_overlaps(m, &all);
	size_t i;

	for (i = 0; !err && i < buf_count(&all, *o); i++) {
		o = buf_at(&all, struct mxbpf_agg_overlap, i);
		f->collective.gpu.gpus++;
		add_sat(&f->collective.gpu.ns, o->ns);
		add_sat(&f->collective.gpu.exposed_ns, o->ns > o->overlapped_ns ? o->ns - o->overlapped_ns : 0);
		add_sat(&f->collective.gpu.seen_ns, activity_seen_ns(m, o->h.tgid, s->duration_ns));
	}
	buf_fini(&all);
	return err;
}

/* The time from the first collective to the last one. */
static double extent_of(const struct buf *rows)
{
	const struct mxbpf_agg_collective *r;
	uint64_t first_ns = UINT64_MAX, last_ns = 0;
	size_t i;

	for (i = 0; i < buf_count(rows, *r); i++) {
		r = buf_at(rows, struct mxbpf_agg_collective, i);
		first_ns = r->first_ns < first_ns ? r->first_ns : first_ns;
		last_ns = r->last_ns > last_ns ? r->last_ns : last_ns;
	}
	return last_ns > first_ns ? (double)(last_ns - first_ns) : 0;
}

int facts_collective(const struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct buf rows = {0};
	int err = collective_rows(m, &rows);

	f->collective.extent_ns = extent_of(&rows);
	if (!err && rows.len)
		err = find_late(s, &rows, f);
	if (!err && rows.len)
		err = find_slow(s, &rows, f);
	buf_fini(&rows);
	return err ? err : find_exposed(m, s, f);
}
