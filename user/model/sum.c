// SPDX-License-Identifier: Apache-2.0
/* Adds several processes up as if they were one. */
#include <errno.h>

#include "model/priv.h"

typedef bool (*of_fn)(void *ctx, uint32_t tgid);

struct seen {
	of_fn of;
	void *ctx;
	struct hash tgids;
};

static int see(void *ctx, uint32_t tgid)
{
	struct seen *s = ctx;

	return !s->of(s->ctx, tgid) || hash_put(&s->tgids, tgid, 0) ? 0 : -ENOMEM;
}

static int count_processes(const struct mdl *m, struct seen *s)
{
	unsigned cls;
	size_t i;
	int err = 0;

	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++)
		for (i = 0; i < buf_count(&m->rows[cls], void *) && !err; i++)
			err = see(s, (*buf_at(&m->rows[cls], struct mdl_row *, i))->tgid);
	for (i = 0; i < buf_count(&m->mem_rows, void *) && !err; i++)
		err = see(s, (*buf_at(&m->mem_rows, struct mdl_mem_row *, i))->tgid);
	return err ? err : features_processes(m, see, s);
}

static unsigned nprocesses(const struct mdl *m, of_fn of, void *ctx)
{
	struct seen s = {of, ctx, {0}};
	unsigned n = count_processes(m, &s) ? 0 : (unsigned)s.tgids.len;

	hash_fini(&s.tgids);
	return n;
}

static bool any_process(void *ctx, uint32_t tgid)
{
	return true;
}

unsigned mdl_nprocesses(const struct mdl *m)
{
	return m->summed ? m->summed : nprocesses(m, any_process, NULL);
}

/* Processes run at the same time, so their bytes add up. The sum of the peaks is an upper bound. */
static int add_memory(struct mdl *sum, const struct mdl_mem_row *r)
{
	struct mdl_mem_row *all = mem_row(sum, sum->tells_processes ? r->tgid : 0, r->device);

	if (!all)
		return -ENOMEM;
	add_sat(&all->allocs, r->allocs);
	add_sat(&all->frees, r->frees);
	add_sat(&all->alloc_bytes, r->alloc_bytes);
	add_sat(&all->free_bytes, r->free_bytes);
	add_sat(&all->live_bytes, r->live_bytes);
	add_sat(&all->peak_bytes, r->peak_bytes);
	add_sat(&all->low_bytes, r->low_bytes);
	return 0;
}

/*
 * Returns whether a record keeps its process in a sum. It does if processes are told apart, or if it is a row of a
 * thread: another host can have a thread of the same number, and the name of a thread is found by its process.
 */
static bool keeps_process(const struct mdl *m, const struct mxbpf_rec *r)
{
	const struct kind *k = kind_of(r);
	const struct mxbpf_group *g;
	const struct mdl_feature *f;
	const struct tbl_def *def;

	if (r->kind == MXBPF_TABLE) {
		f = features_of_table(r, &def);
		return f && (def->of_process || (f->by_process && m->tells_processes));
	}
	if (!k || k->of_process)
		return k;
	if (features_keep_process(m, r))
		return m->tells_processes;
	if (!k->of_row)
		return false;
	if (m->tells_processes || !m->tells_threads)
		return m->tells_processes;
	g = group_find(m, ((const struct mxbpf_agg *)r)->name_id);
	return g && g->tid;
}

/*
 * Adds a record of one process. Memory, and the kinds that features add up themselves, are not added here. Open spans
 * and names of threads keep their process.
 */
static int feed_one(struct mdl *sum, struct mxbpf_rec *r)
{
	if (r->kind == MXBPF_MEM || features_sum_kind(sum, r))
		return 0;
	if (r->kind != MXBPF_OPEN && !keeps_process(sum, r) &&
	    (r->kind != MXBPF_NAME || ((struct mxbpf_name *)r)->kind != MXBPF_NAME_THREAD))
		r->tgid = 0;
	return mdl_fold_all(sum, r, r->size);
}

struct mdl *mdl_sum(const struct mdl *m)
{
	return mdl_sum_of(m, any_process, NULL);
}

struct mdl *mdl_only(const struct mdl *m, of_fn of, void *ctx)
{
	struct mdl *some = mdl_new();
	struct buf recs = {0};
	const struct mxbpf_rec *r;
	size_t pos = 0;
	int err = some ? mdl_emit(m, &recs) : -ENOMEM;

	while (!err && (r = kind_next(recs.data, recs.len, &pos)))
		err = !r->tgid || of(ctx, r->tgid) ? mdl_fold_all(some, r, r->size) : 0;
	buf_fini(&recs);
	if (err) {
		mdl_free(some);
		return NULL;
	}
	return some;
}

struct mdl *mdl_sum_of(const struct mdl *m, of_fn of, void *ctx)
{
	struct mdl *sum = mdl_new_like(m);
	struct buf recs = {0};
	const struct mxbpf_rec *r;
	size_t pos = 0, i;
	int err = sum ? mdl_emit(m, &recs) : -ENOMEM;

	while (!err && (r = kind_next(recs.data, recs.len, &pos)))
		err = !r->tgid || of(ctx, r->tgid) ? feed_one(sum, (struct mxbpf_rec *)r) : 0;
	for (i = 0; i < buf_count(&m->mem_rows, void *) && !err; i++)
		if (of(ctx, (*buf_at(&m->mem_rows, struct mdl_mem_row *, i))->tgid))
			err = add_memory(sum, *buf_at(&m->mem_rows, struct mdl_mem_row *, i));
	err = err ? err : features_sum(sum, m);
	buf_fini(&recs);
	if (err) {
		mdl_free(sum);
		return NULL;
	}
	sum->summed = nprocesses(m, of, ctx);
	return sum;
}
