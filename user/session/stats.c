// SPDX-License-Identifier: Apache-2.0
/* --stats: reads the sums of the kernel at each interval and at the end, and folds them as records of rows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "session/priv.h"

/*
 * The agent's calls are summed up in user space. What probes see beside the agent is rare, and calls and memory need
 * its events: shared memory has the device of the agent's allocations, whose peak cannot be summed up in two places.
 */
bool ses_kernel_sums(const struct session *ses)
{
	return ses->o->stats && !ses->o->agent;
}

struct taken_row {
	struct mdl_row row;
	uint64_t unwound;
};

struct taken {
	struct buf rows;   /* struct taken_row */
	struct buf groups; /* struct mxbpf_group of each row, which has the ids of its names */
	struct buf recs;   /* records for the model; those of rows follow when their names are known */
	uint64_t count;	   /* spans and allocations in all of it */
	int err;
};

static void take_row(void *ctx, const struct mxbpf_stat_key *key, const struct mxbpf_stat *s)
{
	struct taken *t = ctx;
	const struct mxbpf_group g = {
		.h = {.kind = MXBPF_GROUP, .size = sizeof(g), .tgid = key->tgid},
		.name_id = key->name_id,
		.args_id = key->args_id,
		.stack_id = key->stack_id,
		.layer_id = key->layer_id,
		.traits = key->traits,
		.tid = key->tid,
	};
	struct taken_row r = {
		.row = {.tgid = key->tgid,
			.device = key->device,
			.cls = key->cls,
			.total_ns = s->total_ns,
			.self_ns = s->self_ns,
			.min_ns = ~s->min_ns_inv,
			.max_ns = s->max_ns,
			.first_ns = s->last_ns ? ~s->first_ns_inv : 0,
			.last_ns = s->last_ns,
			.alloc_bytes = s->alloc_bytes,
			.self_alloc_bytes = s->self_alloc_bytes,
			.cost_ns = s->cost_units * MXBPF_COST_UNIT_NS,
			.self_cost_ns = s->self_cost_units * MXBPF_COST_UNIT_NS,
			.account = s->account,
			.counters = s->counters},
		.unwound = s->unwound,
	};
	unsigned i;

	memcpy(r.row.hist, s->hist, sizeof(r.row.hist));
	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		r.row.count += r.row.hist[i];
	t->count += r.row.count;
	if (!t->err && r.row.count && (buf_put(&t->groups, &g, sizeof(g)) || buf_put(&t->rows, &r, sizeof(r))))
		t->err = -ENOMEM;
}

static int put_unwound(struct buf *out, const struct taken_row *r)
{
	const struct mxbpf_tally c = {.h = {.kind = MXBPF_TALLY, .size = sizeof(c)},
				      .value = r->unwound,
				      .id = MXBPF_TALLY_UNWOUND,
				      .cls = r->row.cls};

	return r->unwound ? buf_put(out, &c, sizeof(c)) : 0;
}

/* Writes a row as records. */
static int put_row(struct buf *out, struct taken_row *r, struct mxbpf_group *g)
{
	int err = 0;

	r->row.id = g->id = mdl_group_id(g);
	r->row.name_id = g->name_id;
	if (g->id != g->name_id)
		err = buf_put(out, g, sizeof(*g));
	err = err ? err : mdl_emit_row(&r->row, out);
	return err ? err : put_unwound(out, r);
}

static int put_rows(struct session *ses, struct taken *t)
{
	struct mxbpf_group *g;
	struct taken_row *r;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&t->rows, struct taken_row); i++) {
		g = buf_at(&t->groups, struct mxbpf_group, i);
		r = buf_at(&t->rows, struct taken_row, i);
		if (!ses_ops_leave(ses, r->row.cls, g->name_id, ses->beside ? 0 : r->row.count))
			err = put_row(&t->recs, r, g);
	}
	return err;
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

/* Only the model of events has names, so copies them first. */
static int feed_beside(struct session *ses, const struct buf *recs)
{
	int err = mdl_copy_names(ses->beside, ses->model);

	return err ? err : mdl_fold_all(ses->beside, recs->data, recs->len);
}

static int feed(struct session *ses, struct taken *t)
{
	int err;

	ses_learn_locked(ses, t->groups.data, t->groups.len); /* this changes the ids of stacks */
	err = put_rows(ses, t);
	if (err || ses->beside)
		return err ? err : feed_beside(ses, &t->recs);
	err = mdl_fold_all(ses->model, t->recs.data, t->recs.len);
	return ses->fresh && !err ? mdl_fold_all(ses->fresh, t->recs.data, t->recs.len) : err;
}

/*
 * Memory of devices cannot be folded in parts, because each part would need the bytes that were live before it. So
 * until the end, `going` has the current sums.
 */
static void take_build(struct ses_build *b, bool keep, struct taken *going)
{
	struct session *ses = b->ses;
	struct taken now = {0};
	int err = att_take_rows(b->att, take_row, &now);

	err = err ? err : att_take_mems(b->att, keep, take_mem, keep ? going : &now);
	pthread_mutex_lock(&ses->lock);
	err = err ? err : now.err ? now.err : going->err;
	err = err ? err : feed(ses, &now);
	ses->folded[b->rings[ATT_CALLS]->number] += now.count;
	if (err && !ses->write_error)
		ses->write_error = err;
	pthread_mutex_unlock(&ses->lock);
	buf_fini(&now.rows);
	buf_fini(&now.groups);
	buf_fini(&now.recs);
}

void ses_take_stats(struct session *ses, bool last)
{
	const bool keep = !last && !ses->o->reset;
	struct taken going = {0};
	struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	take_build(b, keep, &going);
	pthread_mutex_lock(&ses->lock);
	buf_fini(&ses->going);
	ses->going = going.recs;
	ses->ngoing = going.count;
	pthread_mutex_unlock(&ses->lock);
}
