// SPDX-License-Identifier: Apache-2.0
/* How long each device ran kernels of communication, and how much of that time it computed, too. */
#include "feature/collective/state.h"

#include <errno.h>

#define ROWS_MAX 4096 /* beyond that, devices of further processes count together */
#define WORK_MIN (1u << 14)
#define WORK_MAX (1u << 18) /* 8 MiB */

static int collective_by_device(const void *va, const void *vb)
{
	const struct work *a = va, *b = vb;

	if (a->tgid != b->tgid || a->device != b->device)
		return a->tgid != b->tgid ? (a->tgid < b->tgid ? -1 : 1) : a->device < b->device ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static struct mxbpf_agg_overlap *row(struct overlaps *o, uint32_t tgid, uint32_t device)
{
	const bool room = buf_count(&o->rows, struct mxbpf_agg_overlap) < ROWS_MAX || hash_get(&o->index, tgid, device);
	bool added;
	struct mxbpf_agg_overlap *r;

	tgid = room ? tgid : 0;
	device = room ? device : 0;
	r = mdl_item_put(&o->index, &o->rows, tgid, device, sizeof(*r), &added);

	if (r && added)
		*r = (struct mxbpf_agg_overlap){.h = {.kind = MXBPF_AGG_OVERLAP, .size = sizeof(*r), .tgid = tgid},
						.device = device};
	return r;
}

int overlaps_add(struct overlaps *o, const struct mxbpf_activity *a, bool moves)
{
	const struct work w = {a->h.ts_ns, a->h.ts_ns + a->dur_ns, a->h.tgid, a->track.device, moves};

	return win_put(&o->work, &w, sizeof(w));
}

/*
 * Adds up the work of one device, in the order of its starts, up to a time. Between two starts, kernels of each sort
 * run until the latest end of those that have begun.
 */
static void sweep_device(const struct work *w, size_t n, uint64_t until_ns, struct mxbpf_agg_overlap *to)
{
	uint64_t ends[2] = {0}, at_ns = 0, next_ns, step_ns;
	size_t i;

	for (i = 0; i <= n; i++) {
		next_ns = i < n && w[i].start_ns < until_ns ? w[i].start_ns : until_ns;
		while (at_ns < next_ns && (ends[0] > at_ns || ends[1] > at_ns)) {
			step_ns = next_ns;
			step_ns = ends[0] > at_ns && ends[0] < step_ns ? ends[0] : step_ns;
			step_ns = ends[1] > at_ns && ends[1] < step_ns ? ends[1] : step_ns;
			add_sat(&to->compute_ns, ends[0] > at_ns ? step_ns - at_ns : 0);
			add_sat(&to->ns, ends[1] > at_ns ? step_ns - at_ns : 0);
			add_sat(&to->overlapped_ns, ends[0] > at_ns && ends[1] > at_ns ? step_ns - at_ns : 0);
			at_ns = step_ns;
		}
		at_ns = next_ns;
		if (i < n && w[i].end_ns > ends[w[i].moves])
			ends[w[i].moves] = w[i].end_ns;
	}
}

/* Adds up what ran before a time, and keeps the rest. */
static int collective_fold_overlap_sweep(struct overlaps *o, uint64_t until_ns)
{
	struct work *w = (struct work *)o->work.all.data;
	const size_t n = buf_count(&o->work.all, *w);
	struct mxbpf_agg_overlap *r;
	size_t i, k, kept = 0;

	buf_sort(&o->work.all, sizeof(*w), collective_by_device);
	for (i = 0; i < n; i = k) {
		for (k = i; k < n && w[k].tgid == w[i].tgid && w[k].device == w[i].device; k++)
			;
		r = row(o, w[i].tgid, w[i].device);
		if (!r)
			return -ENOMEM;
		sweep_device(w + i, k - i, until_ns, r);
	}
	for (i = 0; i < n; i++) {
		if (w[i].end_ns <= until_ns)
			continue;
		w[kept] = w[i];
		w[kept].start_ns = w[i].start_ns > until_ns ? w[i].start_ns : until_ns;
		kept++;
	}
	o->work.all.len = kept * sizeof(*w);
	o->work.kept = kept;
	return 0;
}

int overlaps_window(struct overlaps *o)
{
	int err;

	if (!win_is_due(buf_count(&o->work.all, struct work), o->work.kept, WORK_MIN, WORK_MAX))
		return 0;
	err = collective_fold_overlap_sweep(o, win_horizon(&o->work));
	if (!err && o->work.kept >= WORK_MAX / 2) /* room is made also if all work begins at once */
		err = collective_fold_overlap_sweep(o, UINT64_MAX);
	return err;
}

int overlaps_fold(struct overlaps *o, const struct mxbpf_agg_overlap *from)
{
	struct mxbpf_agg_overlap *r = row(o, from->h.tgid, from->device);

	if (!r)
		return -ENOMEM;
	add_sat(&r->ns, from->ns);
	add_sat(&r->overlapped_ns, from->overlapped_ns);
	add_sat(&r->compute_ns, from->compute_ns);
	return 0;
}

int overlaps_copy(struct overlaps *to, const struct overlaps *from)
{
	if (win_copy(&to->work, &from->work))
		return -ENOMEM;
	return mdl_items_copy(&to->index, &to->rows, &from->index, &from->rows);
}

/* Appends the devices that had kernels of communication. */
int overlaps_rows(const struct overlaps *o, struct buf *out)
{
	struct overlaps all = {.work.kept = 0};
	const struct mxbpf_agg_overlap *r;
	size_t i;
	int err = overlaps_copy(&all, o);

	err = err ? err : collective_fold_overlap_sweep(&all, UINT64_MAX);
	for (i = 0; !err && i < buf_count(&all.rows, *r); i++) {
		r = buf_at(&all.rows, struct mxbpf_agg_overlap, i);
		err = r->ns ? buf_put(out, r, sizeof(*r)) : 0;
	}
	overlaps_fini(&all);
	return err;
}

void overlaps_fini(struct overlaps *o)
{
	buf_fini(&o->work.all);
	hash_fini(&o->index);
	buf_fini(&o->rows);
}
