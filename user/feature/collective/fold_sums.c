// SPDX-License-Identifier: Apache-2.0
/* Sums over the processes of a group. */
#include "feature/collective/collective.h"

#include <errno.h>
#include <stdlib.h>

static int collective_fold_sums_compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_process(const struct mxbpf_agg_collective *a, const struct mxbpf_agg_collective *b)
{
	int by = collective_fold_sums_compare(a->h.tgid, b->h.tgid);

	return by ? by : collective_fold_sums_compare(a->device, b->device);
}

static int by_operation(const struct mxbpf_agg_collective *a, const struct mxbpf_agg_collective *b)
{
	int by = collective_fold_sums_compare(a->backend, b->backend);

	by = by ? by : collective_fold_sums_compare(a->op, b->op);
	by = by ? by : collective_fold_sums_compare(a->bytes, b->bytes);
	by = by ? by : collective_fold_sums_compare(a->group, b->group);
	by = by ? by : collective_fold_sums_compare(a->comm, b->comm);
	by = by ? by : collective_fold_sums_compare(a->root, b->root);
	by = by ? by : collective_fold_sums_compare(a->reduction, b->reduction);
	return by || a->group ? by : by_process(a, b);
}

static int by_sum(const void *va, const void *vb)
{
	const int by = by_operation(va, vb);

	return by ? by : by_process(va, vb);
}

static int by_group(const void *va, const void *vb)
{
	const struct mxbpf_agg_collective *a = va, *b = vb;
	int by = collective_fold_sums_compare(a->group, b->group);

	return by ? by : by_process(a, b);
}

void collective_merge(struct mxbpf_agg_collective *to, const struct mxbpf_agg_collective *from)
{
	add_sat(&to->count, from->count);
	add_sat(&to->total_ns, from->total_ns);
	add_sat(&to->matched, from->matched);
	add_sat(&to->matched_ns, from->matched_ns);
	add_sat(&to->wait_ns, from->wait_ns);
	add_sat(&to->move_ns, from->move_ns);
	add_sat(&to->last, from->last);
	add_sat(&to->late_ns, from->late_ns);
	to->source |= from->source;
	to->ranks = from->ranks > to->ranks ? from->ranks : to->ranks;
}

static void collective_finish(struct collective_sum *s)
{
	const struct mxbpf_agg_collective *a = &s->all;
	const uint64_t n = a->matched;

	s->calls = a->group && a->members ? a->count / a->members : a->count;
	s->each_ns = a->count ? a->total_ns / a->count : 0;
	s->wait_ns = n ? a->wait_ns / n : 0;
	s->move_ns = n ? a->move_ns / n : 0;
	if (a->bytes == MXBPF_COLLECTIVE_UNSIZED || !(n ? a->move_ns : a->total_ns))
		return;
	s->algorithm = (double)a->bytes * 1e9 * (double)(n ? n : a->count) / (double)(n ? a->move_ns : a->total_ns);
	s->bus = s->algorithm * collective_bus_factor(a->op, a->ranks ? a->ranks : a->members);
}

/* Makes one sum of n rows. */
static struct collective_sum sum_of(const struct mxbpf_agg_collective *r, size_t n)
{
	struct collective_sum s = {.all = r[0]};
	size_t i;

	for (i = 0; i < n; i++) {
		if (i)
			collective_merge(&s.all, &r[i]);
		if (r[i].last <= s.last)
			continue;
		s.last = r[i].last;
		s.late_ns = r[i].late_ns;
		s.last_tgid = r[i].h.tgid;
	}
	collective_finish(&s);
	return s;
}

int collective_sums(struct buf *rows, struct buf *out)
{
	const size_t n = buf_count(rows, struct mxbpf_agg_collective);
	const struct mxbpf_agg_collective *r = (const void *)rows->data;
	struct collective_sum s;
	size_t i, k;
	int err = 0;

	if (n)
		qsort(rows->data, n, sizeof(*r), by_sum);
	for (i = 0; !err && i < n; i = k) {
		for (k = i; k < n && !by_operation(&r[i], &r[k]); k++)
			;
		s = sum_of(r + i, k - i);
		err = buf_put(out, &s, sizeof(s));
	}
	return err;
}

int collective_ranks(struct buf *rows, struct buf *out)
{
	const size_t n = buf_count(rows, struct mxbpf_agg_collective);
	const struct mxbpf_agg_collective *r = (const void *)rows->data;
	struct mxbpf_agg_collective *last = NULL;
	size_t i;
	int err = 0;

	if (n)
		qsort(rows->data, n, sizeof(*r), by_group);
	for (i = 0; !err && i < n; i++) {
		if (!r[i].group || !collective_waits(r[i].op))
			continue;
		if (last && !by_group(last, &r[i])) {
			collective_merge(last, &r[i]);
			continue;
		}
		err = buf_put(out, &r[i], sizeof(r[i]));
		last = err ? NULL : (struct mxbpf_agg_collective *)(out->data + out->len) - 1;
	}
	return err;
}

static int by_u32(const void *va, const void *vb)
{
	return collective_fold_sums_compare(*(const uint32_t *)va, *(const uint32_t *)vb);
}

int collective_members(const struct buf *rows, uint64_t group, struct buf *out)
{
	const struct mxbpf_agg_collective *r;
	uint32_t *of;
	size_t i, n = 0;
	int err = 0;

	for (i = 0; !err && i < buf_count(rows, *r); i++) {
		r = buf_at(rows, struct mxbpf_agg_collective, i);
		err = r->group == group ? buf_put(out, &r->h.tgid, sizeof(r->h.tgid)) : 0;
	}
	of = (uint32_t *)out->data;
	if (!err && out->len)
		qsort(of, buf_count(out, *of), sizeof(*of), by_u32);
	for (i = 0; !err && i < buf_count(out, *of); i++)
		if (!n || of[n - 1] != of[i])
			of[n++] = of[i];
	out->len = n * sizeof(*of);
	return err;
}
