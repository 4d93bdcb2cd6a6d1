// SPDX-License-Identifier: Apache-2.0
/* --life: adds up the parts of operators' lives by name, and the time that the program waited for operators. */
#include "feature/life/life.h"

#include <errno.h>
#include <string.h>

struct state {
	struct hash index; /* (name_id, tgid and device) -> struct life_row * */
	struct buf rows;   /* struct life_row *, owned */
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

const struct mxbpf_wait *life_waits(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_life, &life_waits_table, n);
}

/* ---- lives in recordings and copies */

static int life_emit(const struct mdl *m, struct buf *out)
{
	size_t i, n;
	const struct life_row *const *rows = life_rows(m, &n);
	unsigned part;
	int err = 0;

	for (i = 0; i < n; i++)
		for (part = 0; !err && part < MXBPF_LIFE_PARTS; part++)
			err = emit_part(rows[i], part, out);
	return err;
}

static int life_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_life);
	struct state *t = mdl_state(to, &feature_life);

	return t ? mdl_rows_copy(&t->index, &t->rows, &f->index, &f->rows, sizeof(struct life_row)) : -ENOMEM;
}

static void life_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_life);

	mdl_rows_fini(&state->index, &state->rows);
}

const struct mdl_feature feature_life = {
	.option = &life_option,
	.session = &life_session,
	.trace = &life_trace,
	.state_bytes = sizeof(struct state),
	.tables = {{&life_waits_table, MXBPF_WAIT}},
	.kinds = {{MXBPF_LIFE, life_fold}, {MXBPF_AGG_LIFE, life_fold_agg}},
	.emit = life_emit,
	.copy = life_copy,
	.fini = life_fini,
};
