// SPDX-License-Identifier: Apache-2.0
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void mdl_tell_threads(struct mdl *m)
{
	m->tells_threads = true;
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
	like->tells_processes = m->tells_processes;
	return like;
}

static void free_rows(struct buf *rows)
{
	size_t i;

	for (i = 0; i < buf_count(rows, void *); i++)
		free(*buf_at(rows, void *, i));
	buf_fini(rows);
}

void mdl_free(struct mdl *m)
{
	const struct mdl_feature *const *f;
	unsigned cls;

	if (!m)
		return;
	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++) {
		hash_fini(&m->row_index[cls]);
		free_rows(&m->rows[cls]);
	}
	free_rows(&m->reserved);
	groups_fini(m);
	for (f = mdl_features; *f; f++) {
		if ((*f)->fini && (!(*f)->state_bytes || m->states[f - mdl_features]))
			(*f)->fini(m);
		free(m->states[f - mdl_features]);
	}
	hash_fini(&m->mem_index);
	free_rows(&m->mem_rows);
	recent_fini(m);
	buf_fini(&m->opens);
	names_fini(m);
	window_fini(&m->window);
	free(m);
}

/* Its id is made of more than a name, of which there are only as many as the program has. */
static bool has_details(const struct mxbpf_group *g)
{
	return g->args_id || g->stack_id || g->layer_id || g->tid;
}

static struct mdl_row *row_add(struct mdl *m, unsigned cls, uint64_t id, uint32_t tgid, uint32_t device)
{
	const struct mxbpf_group *g = group_find(m, id);
	struct mdl_row *r;
	bool added;

	if (mdl_expect_name(m, g ? g->name_id : id))
		return NULL;
	r = mdl_row_put(&m->row_index[cls], &m->rows[cls], id, (uint64_t)tgid << 32 | device, sizeof(*r), &added);
	if (!added)
		return r;
	*r = (struct mdl_row){.tgid = tgid, .device = device, .cls = (uint8_t)cls, .id = id, .name_id = id};
	if (g) {
		r->name_id = g->name_id;
		r->args_id = g->args_id;
		r->stack_id = g->stack_id;
		r->layer_id = g->layer_id;
		r->tid = g->tid;
		r->traits = (uint8_t)g->traits;
		m->ngrouped += has_details(g);
	}
	return r;
}

struct mdl_row *row_find(const struct mdl *m, unsigned cls, uint64_t id, uint32_t tgid, uint32_t device)
{
	uint64_t *slot = hash_get(&m->row_index[cls], id, (uint64_t)tgid << 32 | device);

	/* 0: there was no memory for the row when its slot was made. */
	return slot ? (void *)(uintptr_t)*slot : NULL;
}

static struct mdl_row *row(struct mdl *m, unsigned cls, uint64_t id, uint32_t tgid, uint32_t device)
{
	struct mdl_row *r = row_find(m, cls, id, tgid, device);

	return r ? r : row_add(m, cls, id, tgid, device);
}

static struct mdl_row *row_of_group(struct mdl *m, const struct mxbpf_span *s, struct mxbpf_group *g)
{
	struct mdl_row *r;

	g->id = mdl_group_id(g);
	r = row_find(m, s->cls, g->id, s->h.tgid, s->device);
	if (r)
		return r;
	if (m->ngrouped >= MDL_GROUPED_MAX && has_details(g)) {
		struct mxbpf_group name = {.h.size = sizeof(name), .name_id = g->name_id, .traits = g->traits};

		m->counters[s->cls][MXBPF_TALLY_UNGROUPED]++;
		return row_of_group(m, s, &name);
	}
	if (g->id != g->name_id && group_define(m, g))
		return NULL;
	return row_add(m, s->cls, g->id, s->h.tgid, s->device);
}

static struct mdl_row *row_of_span(struct mdl *m, const struct mxbpf_span *s)
{
	struct mxbpf_group g = {
		.h.size = sizeof(g),
		.name_id = s->name_id,
		.args_id = s->args_id,
		.stack_id = s->stack_id,
		.layer_id = s->layer_id,
		.tid = m->tells_threads ? s->tid : 0,
		.traits = mxbpf_traits(s),
	};

	return row_of_group(m, s, &g);
}

struct mdl_mem_row *mem_row(struct mdl *m, uint32_t tgid, uint32_t device)
{
	bool added;
	struct mdl_mem_row *r = mdl_row_put(&m->mem_index, &m->mem_rows, tgid, device, sizeof(*r), &added);

	if (added)
		*r = (struct mdl_mem_row){.tgid = tgid, .device = device};
	return r;
}

void row_widen(struct mdl_row *r, uint64_t min_ns, uint64_t max_ns)
{
	if (min_ns < r->min_ns || !r->count)
		r->min_ns = min_ns;
	if (max_ns > r->max_ns)
		r->max_ns = max_ns;
}

uint64_t mdl_row_avg(const struct mdl_row *r)
{
	uint64_t all = r->total_ns;

	add_sat(&all, r->nested_ns);
	return r->count ? all / r->count : 0;
}

void mdl_row_merge_time(struct mdl_row *to, const struct mdl_row *from)
{
	add_sat(&to->total_ns, from->total_ns);
	add_sat(&to->self_ns, from->self_ns);
	add_sat_signed(&to->alloc_bytes, from->alloc_bytes);
	add_sat_signed(&to->self_alloc_bytes, from->self_alloc_bytes);
	account_merge(&to->account, &from->account);
}

void mdl_row_merge(struct mdl_row *to, const struct mdl_row *from)
{
	unsigned i;

	if (!from->count)
		return;
	row_widen(to, from->min_ns, from->max_ns);
	add_sat(&to->count, from->count);
	mdl_row_merge_time(to, from);
	add_sat(&to->nparts, from->nparts);
	add_sat(&to->nbulks, from->nbulks);
	counters_merge(&to->counters, &from->counters);
	if (from->last_ns)
		extent_add(to, from->first_ns, from->last_ns);
	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		add_sat(&to->hist[i], from->hist[i]);
}

static void count_traits(struct mdl_row *r, uint64_t n)
{
	add_sat(&r->nparts, r->traits & MXBPF_TRAIT_PART ? n : 0);
	add_sat(&r->nbulks, r->traits & MXBPF_TRAIT_BULK ? n : 0);
}

static int fold_span(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_span span = kind_span(rec), *s = &span;
	const struct mdl_feature *const *f;
	struct mdl_row *r;

	if (s->cls == MXBPF_CLASS_CUSTOM && s->flags & MXBPF_SPAN_UNWOUND)
		return 0;
	r = backward_follow(m, s) ? NULL : row_of_span(m, s);
	if (!r)
		return -ENOMEM;
	for (f = mdl_features; *f; f++)
		if ((*f)->span && (*f)->span(m, r, s))
			return -ENOMEM;
	row_widen(r, s->dur_ns, s->dur_ns);
	add_sat(&r->count, 1); /* 0 would be divided by */
	count_traits(r, 1);
	add_sat(&r->total_ns, s->dur_ns);
	add_sat(&r->self_ns, s->self_ns);
	add_sat_signed(&r->alloc_bytes, s->alloc_bytes);
	add_sat_signed(&r->self_alloc_bytes, s->self_alloc_bytes);
	add_sat(&r->hist[mxbpf_bucket(s->dur_ns)], 1);
	mdl_account_add(&r->account, s);
	counters_add(&r->counters, s);
	if (s->flags & MXBPF_SPAN_USER)
		extent_add(r, s->h.ts_ns, s->h.ts_ns + s->dur_ns);
	m->counters[s->cls][MXBPF_TALLY_UNWOUND] += !!(s->flags & MXBPF_SPAN_UNWOUND);
	return window_span(m, s);
}

static int fold_agg(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg *a = (const void *)rec;
	struct mdl_row *r;

	if (!a->count)
		return 0;
	r = row(m, a->cls, a->name_id, a->h.tgid, a->device);
	if (!r)
		return -ENOMEM;
	row_widen(r, a->min_ns, a->max_ns);
	add_sat(&r->count, a->count);
	count_traits(r, a->count);
	add_sat(&r->total_ns, a->total_ns);
	add_sat(&r->self_ns, a->self_ns);
	hist_fold(r->hist, a->buckets, a->nbuckets);
	return 0;
}

/* A row of its own would have no calls: what names none is skipped. */
static int fold_agg_mem(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_mem *a = (const void *)rec;
	struct mdl_row *r = row_find(m, a->cls, a->name_id, a->h.tgid, a->device);

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
	r = row_find(m, a.cls, a.name_id, a.h.tgid, a.device);
	if (r)
		account_merge(&r->account, &a.sum);
	return 0;
}

static int fold_agg_counters(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_counters *a = (const void *)rec;
	struct mdl_row *r = row_find(m, a->cls, a->name_id, a->h.tgid, a->device);

	if (r)
		counters_merge(&r->counters, &a->sum);
	return 0;
}

static int fold_counter(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_tally *c = (const void *)rec;
	uint64_t *max_open = &m->counters[c->cls][MXBPF_TALLY_MAX_OPEN];

	if (c->id == MXBPF_TALLY_MAX_OPEN)
		*max_open = c->value > *max_open ? c->value : *max_open;
	else if (c->id && c->id < TALLY_IDS)
		add_sat(&m->counters[c->cls][c->id], c->value);
	return 0;
}

/* What is merged later happened later: its account began with what the earlier one left. */
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
	o.h.size = sizeof(o); /* a newer one is longer */
	return mdl_expect_name(m, o.name_id) || buf_put(&m->opens, &o, sizeof(o)) ? -ENOMEM : 0;
}

/* What every model has; features have the rest. */
static const mdl_fold_fn folds[MDL_KINDS] = {
	[MXBPF_SPAN] = fold_span,
	[MXBPF_ALLOC] = fold_alloc,
	[MXBPF_NAME] = fold_name,
	[MXBPF_GROUP] = fold_group,
	[MXBPF_OPEN] = fold_open,
	[MXBPF_TALLY] = fold_counter,
	[MXBPF_MEM] = fold_mem,
	[MXBPF_AGG] = fold_agg,
	[MXBPF_AGG_MEM] = fold_agg_mem,
	[MXBPF_AGG_ACCOUNT] = fold_agg_account,
	[MXBPF_AGG_COUNTERS] = fold_agg_counters,
};

struct mdl *mdl_new(void)
{
	struct mdl *m = calloc(1, sizeof(*m));
	const struct mdl_feature *const *f;
	unsigned i;

	if (!m)
		return NULL;
	memcpy(m->folds, folds, sizeof(folds));
	for (f = mdl_features; *f; f++)
		for (i = 0; i < MDL_FEATURE_KINDS && (*f)->kinds[i].kind; i++)
			m->folds[(*f)->kinds[i].kind] = (*f)->kinds[i].fold;
	return m;
}

void mdl_begin(struct mdl *m, unsigned source)
{
	m->source = source < MDL_SOURCES_MAX ? source : 0;
}

int mdl_fold(struct mdl *m, const struct mxbpf_rec *r)
{
	return r->kind < MDL_KINDS && m->folds[r->kind] ? m->folds[r->kind](m, r) : 0;
}

int mdl_fold_end(struct mdl *m)
{
	return window_fold(m);
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
	return m->counters[cls][id];
}
