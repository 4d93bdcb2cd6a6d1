// SPDX-License-Identifier: Apache-2.0
/* --life: what operators waited for before they ran, by name, and what the program waited for. */
#include "feature/life/life.h"
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- lives */

static struct life_row *life_row(struct mdl *m, uint64_t name_id, uint32_t tgid, uint32_t device)
{
	uint64_t process = (uint64_t)tgid << 32 | device;
	bool added;
	struct life_row *r = mdl_row_put(&m->life_index, &m->lives, name_id, process, sizeof(*r), &added);

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
	hist_fold(from.hist, a->buckets, a->nbuckets);
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

	return p->count ? hist_emit(p->hist, &a, sizeof(a), &a.nbuckets, out) : 0;
}

const struct life_row *const *life_rows(struct mdl *m, size_t *n)
{
	*n = buf_count(&m->lives, void *);
	return (const void *)m->lives.data;
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
	uint64_t ids = mdl_group_id(&g);
	uint64_t process = (uint64_t)like->h.tgid << 8 | like->what;
	bool added;
	struct mxbpf_wait *w = mdl_item_put(&m->wait_index, &m->waits, ids, process, sizeof(*w), &added);

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
	*n = buf_count(&m->waits, struct mxbpf_wait);
	return (const void *)m->waits.data;
}

/* ---- */

static int lives_emit(const struct mdl *m, struct buf *out)
{
	size_t i;
	unsigned part;
	int err = 0;

	for (i = 0; i < buf_count(&m->lives, void *); i++)
		for (part = 0; !err && part < MXBPF_LIFE_PARTS; part++)
			err = emit_part(*buf_at(&m->lives, struct life_row *, i), part, out);
	return err ? err : buf_put(out, m->waits.data, m->waits.len);
}

static void lives_fini(struct mdl *m)
{
	size_t i;

	for (i = 0; i < buf_count(&m->lives, void *); i++)
		free(*buf_at(&m->lives, void *, i));
	buf_fini(&m->lives);
	hash_fini(&m->life_index);
	buf_fini(&m->waits);
	hash_fini(&m->wait_index);
}

const struct mdl_feature feature_life = {
	.kinds = {{MXBPF_LIFE, life_fold},
		  {MXBPF_AGG_LIFE, life_fold_agg},
		  {MXBPF_WAIT, wait_fold},
		  {MXBPF_AGG_WAIT, wait_fold}},
	.emit = lives_emit,
	.fini = lives_fini,
};
