// SPDX-License-Identifier: Apache-2.0
/* A model: folding of records, and the kinds of records that belong to no feature. */
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void mdl_tell_threads(struct mdl *m)
{
	m->tells_threads = true;
}

void mdl_tell_ranges(struct mdl *m)
{
	m->tells_ranges = true;
}

bool mdl_tells_ranges(const struct mdl *m)
{
	return m->tells_ranges;
}

void mdl_in_range(struct mdl *m, uint64_t name_id)
{
	m->range_id = name_id;
}

void mdl_tell_processes(struct mdl *m)
{
	m->tells_processes = true;
}

struct mdl *mdl_new_like(const struct mdl *m)
{
	struct mdl *like = mdl_new();

	if (!like)
		return NULL;
	like->tells_threads = m->tells_threads;
	like->tells_ranges = m->tells_ranges;
	like->tells_processes = m->tells_processes;
	return like;
}

void mdl_free(struct mdl *m)
{
	struct hash none = {0};
	unsigned cls;

	if (!m)
		return;
	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++)
		mdl_rows_fini(&m->row_index[cls], &m->rows[cls]);
	mdl_rows_fini(&none, &m->reserved);
	mdl_rows_fini(&m->mem_index, &m->mem_rows);
	groups_fini(m);
	hash_fini(&m->nrows);
	hash_fini(&m->text_bytes);
	features_fini(m);
	buf_fini(&m->opens);
	buf_fini(&m->held);
	names_fini(m);
	window_fini(&m->window);
	free(m);
}

static int features_before_row(struct mdl *m, struct mxbpf_span *s)
{
	unsigned i;

	for (i = 0; i < m->nbefore_row; i++)
		if (m->before_row[i](m, s))
			return -ENOMEM;
	return 0;
}

static int features_span(struct mdl *m, struct mdl_row *r, const struct mxbpf_span *s)
{
	unsigned i;

	for (i = 0; i < m->nspan; i++)
		if (m->span[i](m, r, s))
			return -ENOMEM;
	return 0;
}

static int fold_span(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_span span, *s = &span;
	struct mdl_row *r;

	kind_span(rec, s);
	if (s->cls == MXBPF_CLASS_CUSTOM && s->flags & MXBPF_SPAN_UNWOUND)
		return 0;
	m->range_id = 0;
	r = features_before_row(m, s) ? NULL : row_of_span(m, s);
	/* A function of Python is around calls of the runtime, and is none: to features it is code of the program. */
	if (!r || (s->cls != MXBPF_CLASS_PYTHON && features_span(m, r, s)))
		return -ENOMEM;
	mdl_row_widen(r, s->dur_ns, s->dur_ns);
	add_sat(&r->count, 1); /* a count that wraps to 0 would be a divisor */
	row_count_traits(r, 1);
	add_sat(&r->total_ns, s->dur_ns);
	add_sat(&r->self_ns, s->self_ns);
	add_sat_signed(&r->alloc_bytes, s->alloc_bytes);
	add_sat_signed(&r->self_alloc_bytes, s->self_alloc_bytes);
	add_sat(&r->hist[mxbpf_bucket(s->dur_ns)], 1);
	mdl_account_add(&r->account, s);
	m->tallies[s->cls][MXBPF_TALLY_UNWOUND] += !!(s->flags & MXBPF_SPAN_UNWOUND);
	return window_span(m, s);
}

static int fold_agg(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg *a = (const void *)rec;
	struct mdl_row *r;

	if (!a->count)
		return 0;
	r = row_get(m, a->cls, a->name_id, a->h.tgid, a->device);
	if (!r)
		return -ENOMEM;
	mdl_row_widen(r, a->min_ns, a->max_ns);
	add_sat(&r->count, a->count);
	row_count_traits(r, a->count);
	add_sat(&r->total_ns, a->total_ns);
	add_sat(&r->self_ns, a->self_ns);
	mdl_hist_fold(r->hist, a->buckets, a->nbuckets);
	return 0;
}

/* The record belongs to an AGG record before it. Without that one there is no row, and the model skips it. */
static int fold_agg_mem(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_mem *a = (const void *)rec;
	struct mdl_row *r = mdl_row_find(m, a->cls, a->name_id, a->h.tgid, a->device);

	if (r) {
		add_sat_signed(&r->alloc_bytes, a->alloc_bytes);
		add_sat_signed(&r->self_alloc_bytes, a->self_alloc_bytes);
	}
	return 0;
}

static int fold_agg_account(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_agg_account a = {0};
	struct mdl_row *r;

	memcpy(&a, rec, rec->size < sizeof(a) ? rec->size : sizeof(a));
	r = mdl_row_find(m, a.cls, a.name_id, a.h.tgid, a.device);
	if (r)
		account_merge(&r->account, &a.sum);
	return 0;
}

static int fold_tally(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_tally *c = (const void *)rec;
	uint64_t *max_open = &m->tallies[c->cls][MXBPF_TALLY_MAX_OPEN];

	if (c->id == MXBPF_TALLY_MAX_OPEN)
		*max_open = c->value > *max_open ? c->value : *max_open;
	else if (c->id && c->id < TALLY_IDS)
		add_sat(&m->tallies[c->cls][c->id], c->value);
	return 0;
}

/*
 * Records of one device come in the order of time. The totals of each begin at 0 live bytes, so peak_bytes and
 * low_bytes count from what the records before have left.
 */
static int fold_mem(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_mem *a = (const void *)rec;
	uint64_t peak_bytes = a->peak_bytes, low_bytes = a->low_bytes;
	struct mdl_mem_row *r;

	if (!a->allocs && !a->frees)
		return 0;
	r = mem_row(m, a->h.tgid, a->device);
	if (!r)
		return -ENOMEM;
	add_sat(&peak_bytes, r->live_bytes);
	add_sat(&low_bytes, r->live_bytes);
	if (peak_bytes > r->peak_bytes)
		r->peak_bytes = peak_bytes;
	if (low_bytes < r->low_bytes || !(r->allocs || r->frees))
		r->low_bytes = low_bytes;
	add_sat(&r->allocs, a->allocs);
	add_sat(&r->frees, a->frees);
	add_sat(&r->alloc_bytes, a->alloc_bytes);
	add_sat(&r->free_bytes, a->free_bytes);
	add_sat(&r->live_bytes, a->live_bytes);
	return 0;
}

static int fold_alloc(struct mdl *m, const struct mxbpf_rec *rec)
{
	return window_alloc(m, (const void *)rec);
}

static int fold_name(struct mdl *m, const struct mxbpf_rec *rec)
{
	return names_define(m, (const void *)rec);
}

static int fold_group(struct mdl *m, const struct mxbpf_rec *rec)
{
	return group_define(m, (const void *)rec);
}

static int fold_open(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_open o = {0};

	memcpy(&o, rec, rec->size < sizeof(o) ? rec->size : sizeof(o));
	o.h.size = sizeof(o); /* a newer version has a longer record */
	return mdl_expect_name(m, o.name_id) || buf_put(&m->opens, &o, sizeof(o)) ? -ENOMEM : 0;
}

/* The kinds of the core. Each feature has a list of its own kinds. */
static const mdl_fold_fn folds[MDL_KINDS] = {
	[MXBPF_SPAN] = fold_span,
	[MXBPF_ALLOC] = fold_alloc,
	[MXBPF_NAME] = fold_name,
	[MXBPF_GROUP] = fold_group,
	[MXBPF_OPEN] = fold_open,
	[MXBPF_TALLY] = fold_tally,
	[MXBPF_MEM] = fold_mem,
	[MXBPF_AGG] = fold_agg,
	[MXBPF_AGG_MEM] = fold_agg_mem,
	[MXBPF_AGG_ACCOUNT] = fold_agg_account,
	[MXBPF_TABLE] = features_fold_table,
};

struct mdl *mdl_new(void)
{
	struct mdl *m = calloc(1, sizeof(*m));
	unsigned i;

	if (!m)
		return NULL;
	for (i = 0; i < MDL_KINDS; i++)
		m->kinds[i].fold = folds[i];
	features_init(m);
	return m;
}

void mdl_begin(struct mdl *m, unsigned source)
{
	m->source = source < MDL_SOURCES_MAX ? source : 0;
}

int mdl_fold(struct mdl *m, const struct mxbpf_rec *r)
{
	if (m->tells_ranges && hold_wants(m, r))
		return hold_put(m, r);
	return r->kind < MDL_KINDS && m->kinds[r->kind].fold ? m->kinds[r->kind].fold(m, r) : 0;
}

int mdl_fold_end(struct mdl *m)
{
	const int held = m->held.len ? hold_release(m, false) : 0, err = window_fold(m);

	return held ? held : err ? err : features_window(m);
}

int mdl_fold_all(struct mdl *m, const void *recs, size_t bytes)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;
	int err = 0, err2;

	while (!err && (r = kind_next(recs, bytes, &pos)))
		err = mdl_fold(m, r);
	err2 = mdl_fold_end(m);
	return err ? err : err2;
}

int mdl_feed(struct mdl *m, const void *recs, size_t bytes)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;
	int err = 0, err2;
	bool bad = false;

	while (!err && (r = kind_check_next(recs, bytes, &pos, &bad)))
		err = mdl_fold(m, r);
	err2 = mdl_fold_end(m);
	if (!err && bad)
		err = -EBADMSG;
	return err ? err : err2;
}

const struct mdl_row *const *mdl_rows(struct mdl *m, enum mxbpf_class cls, size_t *n)
{
	*n = buf_count(&m->rows[cls], struct mdl_row *);
	return (const void *)m->rows[cls].data;
}

const struct mdl_mem_row *const *mdl_mem_rows(struct mdl *m, size_t *n)
{
	*n = buf_count(&m->mem_rows, struct mdl_mem_row *);
	return (const void *)m->mem_rows.data;
}

static int by_age(const void *va, const void *vb)
{
	const struct mxbpf_open *a = va, *b = vb;

	if (a->open_ns != b->open_ns)
		return a->open_ns > b->open_ns ? -1 : 1;
	return a->level < b->level ? -1 : a->level > b->level;
}

const struct mxbpf_open *mdl_opens(struct mdl *m, size_t *n)
{
	*n = buf_count(&m->opens, struct mxbpf_open);
	if (*n)
		qsort(m->opens.data, *n, sizeof(struct mxbpf_open), by_age);
	return (const void *)m->opens.data;
}

uint64_t mdl_tally(const struct mdl *m, enum mxbpf_class cls, enum mxbpf_tally_id id)
{
	return m->tallies[cls][id];
}

void mdl_tally_add(struct mdl *m, unsigned cls, enum mxbpf_tally_id id, uint64_t n)
{
	add_sat(&m->tallies[cls][id], n);
}
