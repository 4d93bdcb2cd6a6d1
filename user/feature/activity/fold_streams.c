// SPDX-License-Identifier: Apache-2.0
/*
 * Computes how long streams and devices were busy: the lengths of unions of intervals, which come in the order of their
 * starts.
 */
#include <errno.h>

#include "feature/activity/state.h"

struct stream {
	struct mxbpf_agg_gpu_stream a;
	/* Ends of the latest intervals that were swept: of all, of those that are no copies, of copies. */
	uint64_t busy_until_ns, compute_until_ns, copy_until_ns;
};

/* Returns the row of a stream or of a whole device, or NULL if out of memory. */
static struct stream *activity_fold_streams_row_of(struct streams *s, uint32_t tgid, const struct mxbpf_track *track,
						   bool whole)
{
	const uint64_t in = whole ? 0 : win_stream(track);
	struct stream *r;
	bool added;

	r = mdl_item_put(whole ? &s->whole : &s->index, &s->rows, (uint64_t)tgid << 32 | track->device, in, sizeof(*r),
			 &added);
	if (!r || !added)
		return r;
	r->a.h = (struct mxbpf_rec){.kind = MXBPF_AGG_GPU_STREAM, .size = sizeof(r->a), .tgid = tgid};
	r->a.track = *track;
	if (whole)
		r->a.track.context = r->a.track.stream = 0;
	r->a.whole = whole;
	return r;
}

static void extend(uint64_t *until_ns, __u64 *sum, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= *until_ns)
		return;
	*sum += end_ns - (start_ns > *until_ns ? start_ns : *until_ns);
	*until_ns = end_ns;
}

/* The part of a late activity before the end of others is left out, because it may count already. */
static void streams_add(struct stream *r, const struct win_work *w, bool late)
{
	if (!r->a.count || w->start_ns < r->a.first_ns)
		r->a.first_ns = w->start_ns;
	if (w->end_ns > r->a.last_ns)
		r->a.last_ns = w->end_ns;
	r->a.count++;
	r->a.late += late && w->start_ns < r->busy_until_ns;
	extend(&r->busy_until_ns, &r->a.busy_ns, w->start_ns, w->end_ns);
	if (w->cls == MXBPF_ACTIVITY_COPY)
		extend(&r->copy_until_ns, &r->a.copy_ns, w->start_ns, w->end_ns);
	else
		extend(&r->compute_until_ns, &r->a.compute_ns, w->start_ns, w->end_ns);
}

int streams_take(struct streams *s, const struct win_queue *of, const struct win_work *w, size_t n)
{
	struct stream *r;
	size_t i;
	int whole;

	for (i = 0; i < n; i++)
		for (whole = 0; whole < 2; whole++) {
			r = activity_fold_streams_row_of(s, w[i].tgid, &w[i].track, whole);
			if (!r)
				return -ENOMEM;
			streams_add(r, &w[i], win_is_late(of, w[i].start_ns));
		}
	return 0;
}

int streams_fold(struct streams *s, const struct mxbpf_agg_gpu_stream *a)
{
	struct stream *r = a->count ? activity_fold_streams_row_of(s, a->h.tgid, &a->track, a->whole) : NULL;

	if (!r)
		return a->count ? -ENOMEM : 0;
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

int streams_emit(const struct streams *s, struct buf *out)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&s->rows, struct stream); i++)
		if (buf_at(&s->rows, struct stream, i)->a.count)
			err = buf_put(out, &buf_at(&s->rows, struct stream, i)->a, sizeof(struct mxbpf_agg_gpu_stream));
	return err;
}

int streams_copy(struct streams *to, const struct streams *from)
{
	return hash_copy(&to->whole, &from->whole) ? -ENOMEM
						   : mdl_items_copy(&to->index, &to->rows, &from->index, &from->rows);
}

int streams_move(struct streams *to, const struct streams *from)
{
	struct stream *r;
	size_t i;

	if (streams_copy(to, from))
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
}
