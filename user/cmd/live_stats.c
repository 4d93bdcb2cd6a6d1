// SPDX-License-Identifier: Apache-2.0
/* --stats: what the kernel added up is taken at each dump and at the end, and goes into the model as a row's records.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cmd/live.h"

struct taken {
	struct buf recs;
	uint64_t count; /* spans and allocations in them */
	int err;
};

static int put_unwound(struct buf *out, unsigned cls, uint64_t value)
{
	const struct mxbpf_counter c = {.h = {.kind = MXBPF_COUNTER, .size = sizeof(c)},
					.value = value,
					.id = MXBPF_COUNTER_UNWOUND,
					.cls = cls};

	return value ? buf_put(out, &c, sizeof(c)) : 0;
}

/* What the row's id is made of, if that is more than a name. */
static int put_group(struct buf *out, const struct mdl_row *r)
{
	const struct mxbpf_group g = {.h = {.kind = MXBPF_GROUP, .size = sizeof(g), .tgid = r->tgid},
				      .id = r->id,
				      .name_id = r->name_id,
				      .args_id = r->args_id,
				      .stack_id = r->stack_id};

	return r->id != r->name_id ? buf_put(out, &g, sizeof(g)) : 0;
}

static void take_row(void *ctx, const struct mxbpf_stat_key *key, const struct mxbpf_stat *s)
{
	struct taken *t = ctx;
	struct mdl_row r = {
		.tgid = key->tgid,
		.device = key->device,
		.cls = key->cls,
		.id = mdl_group_id(key->name_id, key->args_id, key->stack_id),
		.name_id = key->name_id,
		.args_id = key->args_id,
		.stack_id = key->stack_id,
		.total_ns = s->total_ns,
		.self_ns = s->self_ns,
		.min_ns = ~s->min_ns_inv,
		.max_ns = s->max_ns,
		.alloc_bytes = s->alloc_bytes,
		.self_alloc_bytes = s->self_alloc_bytes,
	};
	unsigned i;

	memcpy(r.hist, s->hist, sizeof(r.hist));
	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		r.count += r.hist[i];
	t->count += r.count;
	t->err = t->err || !r.count ? t->err : put_group(&t->recs, &r);
	t->err = t->err || !r.count ? t->err : mdl_emit_row(&r, &t->recs);
	t->err = t->err ? t->err : put_unwound(&t->recs, key->cls, s->unwound);
}

static void take_mem(void *ctx, const struct mxbpf_stat_mem_key *key, const struct mxbpf_stat_mem *s)
{
	struct taken *t = ctx;
	const struct mdl_mem_row r = {
		.tgid = key->tgid,
		.device = key->device,
		.allocs = s->allocs,
		.frees = s->frees,
		.alloc_bytes = s->alloc_bytes,
		.free_bytes = s->free_bytes,
		.live_bytes = s->live_bytes,
		.peak_bytes = s->peak_bytes,
		.low_bytes = ~s->low_bytes_inv,
	};

	t->count += s->allocs + s->frees + s->empty;
	t->err = t->err ? t->err : mdl_emit_mem(&r, &t->recs);
}

/* Of the events that are folded as well, the names are known. */
static int feed_beside(struct live *l, const struct buf *recs)
{
	struct buf names = {0};
	int err = mdl_emit_names(l->model, &names);

	err = err ? err : mdl_feed(l->beside, names.data, names.len);
	buf_fini(&names);
	return err ? err : mdl_feed(l->beside, recs->data, recs->len);
}

static int feed(struct live *l, struct taken *t)
{
	int err;

	if (l->beside)
		return feed_beside(l, &t->recs);
	live_learn_names(l, t->recs.data, t->recs.len);
	if (l->o->ops)
		t->recs.len = live_ops_keep(l, t->recs.data, t->recs.len);
	err = mdl_feed(l->model, t->recs.data, t->recs.len);
	return l->fresh && !err ? mdl_feed(l->fresh, t->recs.data, t->recs.len) : err;
}

/*
 * An account that goes on cannot be fed piece by piece, as each piece would have to know what was live before it: until
 * the end it is shown as it stands.
 */
void live_take_stats(struct live *l, bool last)
{
	const bool keep = !last && !l->o->reset;
	struct taken now = {0}, going = {0};
	int err = att_take_rows(l->att, take_row, &now);

	err = err ? err : att_take_mems(l->att, keep, take_mem, keep ? &going : &now);
	pthread_mutex_lock(&l->lock);
	err = err ? err : now.err ? now.err : going.err;
	err = err ? err : feed(l, &now);
	l->folded += now.count;
	buf_fini(&l->going);
	l->going = going.recs;
	l->ngoing = going.count;
	if (err && !l->write_error)
		l->write_error = err;
	pthread_mutex_unlock(&l->lock);
	buf_fini(&now.recs);
}
