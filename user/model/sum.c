// SPDX-License-Identifier: Apache-2.0
/* Several processes as if they were one. */
#include <errno.h>

#include "model/priv.h"

static int count_processes(const struct mdl *m, struct hash *seen)
{
	unsigned cls;
	size_t i;
	int err = 0;

	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++)
		for (i = 0; i < buf_count(&m->rows[cls], void *) && !err; i++)
			err = hash_put(seen, (*buf_at(&m->rows[cls], struct mdl_row *, i))->tgid, 0) ? 0 : -ENOMEM;
	for (i = 0; i < buf_count(&m->samples, struct mdl_samples) && !err; i++)
		err = hash_put(seen, buf_at(&m->samples, struct mdl_samples, i)->tgid, 0) ? 0 : -ENOMEM;
	for (i = 0; i < buf_count(&m->values, void *) && !err; i++)
		err = hash_put(seen, (*buf_at(&m->values, struct mxbpf_value *, i))->h.tgid, 0) ? 0 : -ENOMEM;
	for (i = 0; i < buf_count(&m->mem_rows, void *) && !err; i++)
		err = hash_put(seen, (*buf_at(&m->mem_rows, struct mdl_mem_row *, i))->tgid, 0) ? 0 : -ENOMEM;
	return err;
}

unsigned mdl_nprocesses(const struct mdl *m)
{
	struct hash seen = {0};
	unsigned n = m->summed;

	if (!n && !count_processes(m, &seen))
		n = (unsigned)seen.len;
	hash_fini(&seen);
	return n;
}

/* They ran side by side, so that their accounts add up; of the peaks that is an upper bound. */
static int add_memory(struct mdl *sum, const struct mdl_mem_row *r)
{
	struct mdl_mem_row *all = mem_row(sum, 0, r->device);

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

/* Accounts of memory are added apart. What is open is not added up, and its thread keeps its name. */
static int feed_one(struct mdl *sum, struct mxbpf_rec *r)
{
	if (r->kind == MXBPF_MEM || r->kind == MXBPF_MEM_TIME || r->kind == MXBPF_HOLDER)
		return 0;
	if (r->kind != MXBPF_OPEN && (r->kind != MXBPF_NAME || ((struct mxbpf_name *)r)->kind != MXBPF_NAME_THREAD))
		r->tgid = 0;
	return mdl_feed(sum, r, r->size);
}

static bool any_process(void *ctx, uint32_t tgid)
{
	return true;
}

struct mdl *mdl_sum(const struct mdl *m)
{
	return mdl_sum_of(m, any_process, NULL);
}

struct mdl *mdl_sum_of(const struct mdl *m, bool (*of)(void *ctx, uint32_t tgid), void *ctx)
{
	struct mdl *sum = mdl_new();
	struct buf recs = {0};
	const struct mxbpf_rec *r;
	size_t pos = 0, i;
	bool bad;
	int err = sum ? mdl_emit(m, &recs) : -ENOMEM;

	while (!err && (r = mdl_next_rec(recs.data, recs.len, &pos, &bad)))
		err = !r->tgid || of(ctx, r->tgid) ? feed_one(sum, (struct mxbpf_rec *)r) : 0;
	for (i = 0; i < buf_count(&m->mem_rows, void *) && !err; i++)
		if (of(ctx, (*buf_at(&m->mem_rows, struct mdl_mem_row *, i))->tgid))
			err = add_memory(sum, *buf_at(&m->mem_rows, struct mdl_mem_row *, i));
	err = err ? err : held_sum(sum, m);
	buf_fini(&recs);
	if (err) {
		mdl_free(sum);
		return NULL;
	}
	sum->summed = mdl_nprocesses(m);
	return sum;
}
