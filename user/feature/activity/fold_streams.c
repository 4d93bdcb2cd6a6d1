// SPDX-License-Identifier: Apache-2.0
/*
 * Computes how long streams and devices were busy: the lengths of unions of intervals. Activities come out of order,
 * because CUPTI completes buffers in any order. So they are kept for a while, and then swept in the order of their
 * starts. What is pending when a table is made is swept in a copy.
 */
#include <errno.h>

#include "feature/activity/state.h"

#define PENDING_MIN (1u << 12)
#define PENDING_MAX (1u << 20) /* 32 MiB */

struct interval {
	uint64_t start_ns, end_ns;
	uint32_t stream, device; /* 1 + index in rows */
	bool copy;
};

struct stream {
	struct mxbpf_agg_gpu_stream a;
	/* Ends of the latest intervals that were swept: of all, of those that are no copies, of copies. */
	uint64_t busy_until_ns, compute_until_ns, copy_until_ns;
};

static int activity_fold_streams_row_of(struct streams *s, uint32_t tgid, const struct mxbpf_track *track, bool whole,
					uint32_t *place)
{
	const uint64_t in = whole ? 0 : win_stream(track);
	struct stream *r;
	bool added;

	r = mdl_item_put(whole ? &s->whole : &s->index, &s->rows, (uint64_t)tgid << 32 | track->device, in, sizeof(*r),
			 &added);
	if (!r)
		return -ENOMEM;
	*place = (uint32_t)(r - buf_at(&s->rows, struct stream, 0)) + 1;
	if (!added)
		return 0;
	r->a.h = (struct mxbpf_rec){.kind = MXBPF_AGG_GPU_STREAM, .size = sizeof(r->a), .tgid = tgid};
	r->a.track = *track;
	if (whole)
		r->a.track.context = r->a.track.stream = 0;
	r->a.whole = whole;
	return 0;
}

static void extend(uint64_t *until_ns, __u64 *sum, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= *until_ns)
		return;
	*sum += end_ns - (start_ns > *until_ns ? start_ns : *until_ns);
	*until_ns = end_ns;
}

/* The part of a late activity before the end of others is left out, because it may count already. */
static void sweep_row(struct stream *r, const struct interval *i, bool late)
{
	if (!r->a.count || i->start_ns < r->a.first_ns)
		r->a.first_ns = i->start_ns;
	if (i->end_ns > r->a.last_ns)
		r->a.last_ns = i->end_ns;
	r->a.count++;
	r->a.late += late && i->start_ns < r->busy_until_ns;
	extend(&r->busy_until_ns, &r->a.busy_ns, i->start_ns, i->end_ns);
	if (i->copy)
		extend(&r->copy_until_ns, &r->a.copy_ns, i->start_ns, i->end_ns);
	else
		extend(&r->compute_until_ns, &r->a.compute_ns, i->start_ns, i->end_ns);
}

/* Sweeps the intervals that start before until_ns. */
static void activity_sweep(struct buf *rows, struct win_queue *pending, uint64_t until_ns)
{
	const size_t n = win_ready(pending, sizeof(struct interval), win_by_times, until_ns);
	const struct interval *p;
	size_t i;
	bool late;

	for (i = 0; i < n; i++) {
		p = buf_at(&pending->all, struct interval, i);
		late = win_is_late(pending, p->start_ns);
		sweep_row(buf_at(rows, struct stream, p->stream - 1), p, late);
		sweep_row(buf_at(rows, struct stream, p->device - 1), p, late);
	}
	win_take(pending, sizeof(*p), n);
}

int streams_activity(struct streams *s, const struct mxbpf_activity *a)
{
	struct interval i = {
		.start_ns = a->h.ts_ns, .end_ns = a->h.ts_ns + a->dur_ns, .copy = a->cls == MXBPF_ACTIVITY_COPY};

	if (activity_fold_streams_row_of(s, a->h.tgid, &a->track, false, &i.stream) ||
	    activity_fold_streams_row_of(s, a->h.tgid, &a->track, true, &i.device))
		return -ENOMEM;
	return win_put(&s->pending, &i, sizeof(i));
}

int streams_window(struct streams *s)
{
	if (!win_is_due(buf_count(&s->pending.all, struct interval), s->pending.kept, PENDING_MIN, PENDING_MAX))
		return 0;
	activity_sweep(&s->rows, &s->pending, win_until(&s->pending, sizeof(struct interval), PENDING_MAX));
	s->pending.kept = buf_count(&s->pending.all, struct interval);
	return 0;
}

int streams_fold(struct streams *s, const struct mxbpf_agg_gpu_stream *a)
{
	struct stream *r;
	uint32_t place;

	if (!a->count)
		return 0;
	if (activity_fold_streams_row_of(s, a->h.tgid, &a->track, a->whole, &place))
		return -ENOMEM;
	r = buf_at(&s->rows, struct stream, place - 1);
	if (!r->a.count || a->first_ns < r->a.first_ns)
		r->a.first_ns = a->first_ns;
	r->a.last_ns = a->last_ns > r->a.last_ns ? a->last_ns : r->a.last_ns;
	add_sat(&r->a.count, a->count);
	add_sat(&r->a.busy_ns, a->busy_ns);
	add_sat(&r->a.compute_ns, a->compute_ns);
	add_sat(&r->a.copy_ns, a->copy_ns);
	add_sat(&r->a.late, a->late);
	return 0;
}

/* Sweeps everything in copies of the rows. The caller frees them. */
static int sweep_all(const struct streams *s, struct buf *rows)
{
	struct win_queue pending = {.kept = 0};
	const int err = buf_put(rows, s->rows.data, s->rows.len) || win_copy(&pending, &s->pending);

	if (!err)
		activity_sweep(rows, &pending, UINT64_MAX);
	buf_fini(&pending.all);
	return err ? -ENOMEM : 0;
}

int streams_rows(const struct streams *s, struct buf *out)
{
	struct buf rows = {0};
	size_t i;
	int err = sweep_all(s, &rows);

	for (i = 0; !err && i < buf_count(&rows, struct stream); i++)
		if (buf_at(&rows, struct stream, i)->a.count)
			err = buf_put(out, &buf_at(&rows, struct stream, i)->a, sizeof(struct mxbpf_agg_gpu_stream));
	buf_fini(&rows);
	return err;
}

int streams_copy(struct streams *to, const struct streams *from)
{
	if (hash_copy(&to->index, &from->index) || hash_copy(&to->whole, &from->whole) ||
	    buf_put(&to->rows, from->rows.data, from->rows.len))
		return -ENOMEM;
	return win_copy(&to->pending, &from->pending);
}

/* What is pending counts in `from`. `to` begins with what was busy then. */
int streams_move(struct streams *to, struct streams *from)
{
	struct stream *r;
	size_t i;

	if (hash_copy(&to->index, &from->index) || hash_copy(&to->whole, &from->whole) || sweep_all(from, &to->rows))
		return -ENOMEM;
	for (i = 0; i < buf_count(&to->rows, struct stream); i++) {
		r = buf_at(&to->rows, struct stream, i);
		r->a.count = r->a.busy_ns = r->a.compute_ns = r->a.copy_ns = 0;
		r->a.first_ns = r->a.last_ns = r->a.late = 0;
	}
	return 0;
}

void streams_fini(struct streams *s)
{
	hash_fini(&s->whole);
	mdl_items_fini(&s->index, &s->rows);
	buf_fini(&s->pending.all);
}
