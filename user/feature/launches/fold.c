// SPDX-License-Identifier: Apache-2.0
/* Keeps what a sweep needs, and adds launches up by process, stream and call. */
#include <errno.h>

#include "feature/activity/activity.h"
#include "feature/launches/state.h"

#define CALLS_MAX (1u << 18) /* 14 MiB; if there are more, the oldest half is forgotten */
#define ROWS_MAX  4096	     /* beyond that, new calls and streams count in one row without a name */

static struct launches_state *launches_state_of(struct mdl *m)
{
	return mdl_state(m, &feature_launches);
}

/* ---- rows */

struct launches_row *launches_row_of(struct launches_state *t, const struct mxbpf_agg_gpu_launch *like)
{
	const uint64_t place = (uint64_t)like->h.tgid << 32 | like->track.device;
	const uint64_t key = like->call_id ^ win_stream(&like->track) * 0x9e3779b97f4a7c15ull;
	struct launches_row *r;
	bool added;

	if (buf_count(&t->rows, *r) >= ROWS_MAX && !hash_get(&t->row_index, key, place))
		return mdl_item_put(&t->row_index, &t->rows, 0, 0, sizeof(*r), &added);
	r = mdl_item_put(&t->row_index, &t->rows, key, place, sizeof(*r), &added);
	if (r && added) {
		r->a.h.tgid = like->h.tgid;
		r->a.call_id = like->call_id;
		r->a.track = like->track;
	}
	return r;
}

static int launches_fold_add(struct launches_state *t, const struct mxbpf_agg_gpu_launch *from,
			     const struct mxbpf_bucket *buckets)
{
	struct launches_row *r = launches_row_of(t, from);

	if (!r)
		return -ENOMEM;
	add_sat(&r->a.count, from->count);
	add_sat(&r->a.call_ns, from->call_ns);
	add_sat(&r->a.slow_calls, from->slow_calls);
	add_sat(&r->a.shorter, from->shorter);
	add_sat(&r->a.delay_ns, from->delay_ns);
	add_sat(&r->a.delayed, from->delayed);
	add_sat(&r->a.queued_ns, from->queued_ns);
	add_sat(&r->a.full_ns, from->full_ns);
	r->a.call_max_ns = from->call_max_ns > r->a.call_max_ns ? from->call_max_ns : r->a.call_max_ns;
	r->a.delay_max_ns = from->delay_max_ns > r->a.delay_max_ns ? from->delay_max_ns : r->a.delay_max_ns;
	r->a.queue_max = from->queue_max > r->a.queue_max ? from->queue_max : r->a.queue_max;
	mdl_hist_fold(r->hist, buckets, from->nbuckets);
	return 0;
}

static int launches_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_gpu_launch *a = (const void *)rec;
	struct launches_state *t = launches_state_of(m);

	return t && (!a->call_id || !mdl_expect_name(m, a->call_id)) ? launches_fold_add(t, a, (const void *)(a + 1))
								     : -ENOMEM;
}

static int fold_types(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct launches_state *t = launches_state_of(m);

	return t ? launches_types_fold(t, (const void *)rec) : -ENOMEM;
}

/* ---- what a sweep needs */

/* Makes the state, because a model without it has no records of what is pending. */
static int activity(struct mdl *m, const struct mxbpf_activity *a)
{
	return launches_state_of(m) ? 0 : -ENOMEM;
}

/* activity_calls() has the launch as its last one. */
static int launched(struct mdl *m, const struct mxbpf_launch *l)
{
	struct launches_state *t = launches_state_of(m);
	size_t n;
	const struct activity_call *all = activity_calls(m, &n);
	const struct launches_call call = {.number = activity_call_number(m, &all[n - 1])};

	if (!t || (l->call_id && mdl_expect_name(m, l->call_id)))
		return -ENOMEM;
	return buf_put_latest(&t->calls, &call, sizeof(call), CALLS_MAX);
}

static int settled(struct mdl *m, const struct win_work *work, size_t n, uint64_t until_ns)
{
	struct launches_state *t = launches_state_of(m);

	return t ? launches_sweep(m, t, work, n, until_ns) : -ENOMEM;
}

/* ---- the state */

static void state_fini(struct launches_state *t)
{
	buf_fini(&t->calls);
	mdl_items_fini(&t->row_index, &t->rows);
	mdl_items_fini(&t->stream_index, &t->streams);
	mdl_items_fini(&t->device_index, &t->devices);
	hash_fini(&t->types);
}

static int copy_buf(struct buf *to, const struct buf *from)
{
	return buf_put(to, from->data, from->len);
}

/* Copies what is kept for a sweep. */
static int copy_kept(struct launches_state *to, const struct launches_state *from)
{
	if (copy_buf(&to->calls, &from->calls) || hash_copy(&to->types, &from->types) ||
	    mdl_items_copy(&to->stream_index, &to->streams, &from->stream_index, &from->streams))
		return -ENOMEM;
	return mdl_items_copy(&to->device_index, &to->devices, &from->device_index, &from->devices);
}

static int copy_state(struct launches_state *to, const struct launches_state *from)
{
	if (copy_kept(to, from))
		return -ENOMEM;
	return mdl_items_copy(&to->row_index, &to->rows, &from->row_index, &from->rows);
}

/* Copies the state and sweeps everything in the copy, which the caller frees by state_fini(). */
static int finished(const struct mdl *m, struct launches_state *all)
{
	const struct launches_state *t = mdl_state_of(m, &feature_launches);
	struct buf work = {0};
	int err = t ? copy_state(all, t) : 0;

	err = err ? err : activity_pending(m, &work);
	err = err ? err : launches_sweep(m, all, (void *)work.data, buf_count(&work, struct win_work), UINT64_MAX);
	buf_fini(&work);
	return err;
}

int launches_rows(const struct mdl *m, struct buf *out)
{
	struct launches_state all = {.calls = {0}};
	int err = finished(m, &all);

	err = err ? err : copy_buf(out, &all.rows);
	state_fini(&all);
	return err;
}

static int put_types(const struct launches_state *all, struct buf *out)
{
	const struct launches_device *d;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&all->devices, *d); i++) {
		d = buf_at(&all->devices, struct launches_device, i);
		err = d->a.last_ns > d->a.first_ns ? buf_put(out, &d->a, sizeof(d->a)) : 0;
	}
	return err;
}

int launches_types(const struct mdl *m, struct buf *out)
{
	struct launches_state all = {.calls = {0}};
	int err = finished(m, &all);

	err = err ? err : put_types(&all, out);
	state_fini(&all);
	return err;
}

static int launches_emit(const struct mdl *m, struct buf *out)
{
	struct launches_state all = {.calls = {0}};
	struct launches_row *r;
	size_t i;
	int err = finished(m, &all);

	for (i = 0; !err && i < buf_count(&all.rows, *r); i++) {
		r = buf_at(&all.rows, struct launches_row, i);
		r->a.h = (struct mxbpf_rec){.kind = MXBPF_AGG_GPU_LAUNCH, .size = sizeof(r->a), .tgid = r->a.h.tgid};
		err = r->a.count ? mdl_hist_emit(r->hist, &r->a, sizeof(r->a), &r->a.nbuckets, out) : 0;
	}
	err = err ? err : put_types(&all, out);
	state_fini(&all);
	return err;
}

static int launches_copy(struct mdl *to, const struct mdl *from)
{
	struct launches_state *t = launches_state_of(to);

	return t ? copy_state(t, mdl_state_of(from, &feature_launches)) : -ENOMEM;
}

/* What had work counts in `from`, whose activities have settled. `to` begins with the calls without work and the queues
 * of then. */
static int launches_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct launches_state *t = launches_state_of(to);
	struct launches_device *d;
	size_t i;

	if (!t || copy_kept(t, launches_state_of(from)))
		return -ENOMEM;
	for (i = 0; i < buf_count(&t->devices, *d); i++) {
		d = buf_at(&t->devices, struct launches_device, i);
		d->a = (struct mxbpf_agg_gpu_types){.h = d->a.h, .device = d->a.device};
	}
	return 0;
}

static int processes(const struct mdl *m, mdl_process_fn fn, void *ctx)
{
	const struct launches_state *t = mdl_state_of(m, &feature_launches);

	return mdl_items_processes(&t->rows, sizeof(struct launches_row), fn, ctx);
}

static void launches_fini(struct mdl *m)
{
	state_fini(launches_state_of(m));
}

const struct mdl_feature feature_launches = {
	.state_bytes = sizeof(struct launches_state),
	.by_process = true, /* each process numbers its devices itself */
	.kinds = {{MXBPF_AGG_GPU_LAUNCH, launches_fold}, {MXBPF_AGG_GPU_TYPES, fold_types}},
	.activity = activity,
	.launch = launched,
	.settled = settled,
	.emit = launches_emit,
	.copy = launches_copy,
	.move = launches_move,
	.processes = processes,
	.fini = launches_fini,
};
