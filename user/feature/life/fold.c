// SPDX-License-Identifier: Apache-2.0
/* --life: adds up the parts of operators' lives by name, and the time that the program waited for operators. */
#include "feature/life/life.h"

#include <errno.h>
#include <string.h>

struct state {
	struct hash index;	/* (name_id, tgid and device) -> struct life_row * */
	struct buf rows;	/* struct life_row *, owned */
	struct hash wait_index; /* (hash of the ids, tgid and what) -> 1 + index in waits */
	struct buf waits;	/* struct mxbpf_wait */
};

/* ---- lives */

static struct life_row *life_row(struct mdl *m, uint64_t name_id, uint32_t tgid, uint32_t device)
{
	struct state *state = mdl_state(m, &feature_life);
	struct life_row *r;
	bool added;

	if (!state)
		return NULL;
	r = mdl_row_put(&state->index, &state->rows, name_id, (uint64_t)tgid << 32 | device, sizeof(*r), &added);
	if (!added)
		return r;
	r->tgid = tgid;
	r->device = device;
	r->name_id = name_id;
	return mdl_expect_name(m, name_id) ? NULL : r;
}

static void part_add(struct life_part *to, const struct life_part *from)
{
	unsigned i;

	if (!from->count)
		return;
	if (!to->count || from->min_ns < to->min_ns)
		to->min_ns = from->min_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	add_sat(&to->count, from->count);
	add_sat(&to->total_ns, from->total_ns);
	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		add_sat(&to->hist[i], from->hist[i]);
}

static int life_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_life *l = (const void *)rec;
	struct life_row *r = life_row(m, l->name_id, l->h.tgid, l->device);
	unsigned i;

	if (!r)
		return -ENOMEM;
	for (i = 0; i < MXBPF_LIFE_PARTS; i++) {
		struct life_part *p = &r->parts[i];
		uint64_t ns = l->ns[i];

		if (ns == MXBPF_LIFE_UNKNOWN)
			continue;
		p->min_ns = !p->count || ns < p->min_ns ? ns : p->min_ns;
		p->max_ns = ns > p->max_ns ? ns : p->max_ns;
		add_sat(&p->count, 1);
		add_sat(&p->total_ns, ns);
		add_sat(&p->hist[mxbpf_bucket(ns)], 1);
	}
	return 0;
}

static int life_fold_agg(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_life *a = (const void *)rec;
	struct life_part from = {.count = a->count, .total_ns = a->total_ns, .min_ns = a->min_ns, .max_ns = a->max_ns};
	struct life_row *r = life_row(m, a->name_id, a->h.tgid, a->device);

	if (!r)
		return -ENOMEM;
	mdl_hist_fold(from.hist, a->buckets, a->nbuckets);
	part_add(&r->parts[a->part], &from);
	return 0;
}

static int emit_part(const struct life_row *r, unsigned part, struct buf *out)
{
	const struct life_part *p = &r->parts[part];
	struct mxbpf_agg_life a = {.h = {.kind = MXBPF_AGG_LIFE, .tgid = r->tgid},
				   .name_id = r->name_id,
				   .count = p->count,
				   .total_ns = p->total_ns,
				   .min_ns = p->min_ns,
				   .max_ns = p->max_ns,
				   .device = r->device,
				   .part = (uint8_t)part};

	return p->count ? mdl_hist_emit(p->hist, &a, sizeof(a), &a.nbuckets, out) : 0;
}

const struct life_row *const *life_rows(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_life);

	*n = state ? buf_count(&state->rows, void *) : 0;
	return state ? (const void *)state->rows.data : NULL;
}

uint64_t life_percentile(const struct life_part *p, double fraction)
{
	struct mdl_row r = {.count = p->count, .min_ns = p->min_ns, .max_ns = p->max_ns};

	memcpy(r.hist, p->hist, sizeof(r.hist));
	return p->count ? mdl_percentile(&r, fraction) : 0;
}

/* ---- waits */

static struct mxbpf_wait *wait_row(struct mdl *m, const struct mxbpf_wait *like)
{
	const struct mxbpf_group g = {.name_id = like->op_id,
				      .args_id = like->within_id,
				      .stack_id = like->call_id,
				      .layer_id = like->name_id};
	const uint64_t process = (uint64_t)like->h.tgid << 8 | like->what;
	struct state *state = mdl_state(m, &feature_life);
	struct mxbpf_wait *w;
	bool added;

	if (!state)
		return NULL;
	w = mdl_item_put(&state->wait_index, &state->waits, mdl_group_id(&g), process, sizeof(*w), &added);
	if (!added)
		return w;
	*w = *like;
	w->h = (struct mxbpf_rec){.kind = MXBPF_AGG_WAIT, .size = sizeof(*w), .tgid = like->h.tgid};
	w->count = w->total_ns = w->max_ns = 0;
	w->tid = 0;
	if (mdl_expect_name(m, w->name_id) || (w->call_id && mdl_expect_name(m, w->call_id)) ||
	    (w->op_id && mdl_expect_name(m, w->op_id)) || (w->within_id && mdl_expect_name(m, w->within_id)))
		return NULL;
	return w;
}

static int wait_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_wait *from = (const void *)rec;
	struct mxbpf_wait *w = wait_row(m, from);

	if (!w)
		return -ENOMEM;
	add_sat(&w->count, from->count);
	add_sat(&w->total_ns, from->total_ns);
	w->max_ns = from->max_ns > w->max_ns ? from->max_ns : w->max_ns;
	return 0;
}

const struct mxbpf_wait *life_waits(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_life);

	*n = state ? buf_count(&state->waits, struct mxbpf_wait) : 0;
	return state ? (const void *)state->waits.data : NULL;
}

/* ---- both */

static int life_emit(const struct mdl *m, struct buf *out)
{
	const struct state *state = mdl_state_of(m, &feature_life);
	size_t i, n;
	const struct life_row *const *rows = life_rows(m, &n);
	unsigned part;
	int err = 0;

	for (i = 0; i < n; i++)
		for (part = 0; !err && part < MXBPF_LIFE_PARTS; part++)
			err = emit_part(rows[i], part, out);
	return err ? err : buf_put(out, state->waits.data, state->waits.len);
}

static int life_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_life);
	struct state *t = mdl_state(to, &feature_life);
	int err;

	if (!t)
		return -ENOMEM;
	err = mdl_rows_copy(&t->index, &t->rows, &f->index, &f->rows, sizeof(struct life_row));
	return err ? err : mdl_items_copy(&t->wait_index, &t->waits, &f->wait_index, &f->waits);
}

static void life_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_life);

	mdl_rows_fini(&state->index, &state->rows);
	mdl_items_fini(&state->wait_index, &state->waits);
}

const struct mdl_feature feature_life = {
	.option = &life_option,
	.session = &life_session,
	.trace = &life_trace,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_LIFE, life_fold},
		  {MXBPF_AGG_LIFE, life_fold_agg},
		  {MXBPF_WAIT, wait_fold},
		  {MXBPF_AGG_WAIT, wait_fold}},
	.emit = life_emit,
	.copy = life_copy,
	.fini = life_fini,
};
