/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the sums that the kernel keeps (MXBPF_STATS_CHECK) with the records of the same calls and allocations. */
#ifndef ADDED_UP_H
#define ADDED_UP_H

#include <string.h>

#include "attach/attach.h"
#include "model/model.h"

#define ADDED_ROWS_MAX 64

struct added_up {
	struct mxbpf_stat_key keys[ADDED_ROWS_MAX];
	struct mxbpf_stat rows[ADDED_ROWS_MAX]; /* minus the records taken so far */
	unsigned nrows;
	uint64_t calls; /* in all rows, including those beyond ADDED_ROWS_MAX */
	struct mxbpf_stat_mem mem;
};

static inline void added_mem(void *ctx, const struct mxbpf_stat_mem_key *key, const struct mxbpf_stat_mem *m)
{
	struct added_up *a = ctx;

	a->mem.allocs += m->allocs;
	a->mem.frees += m->frees;
	a->mem.alloc_bytes += m->alloc_bytes;
	a->mem.free_bytes += m->free_bytes;
	a->mem.empty += m->empty;
}

static struct mxbpf_stat *added_find(struct added_up *a, const struct mxbpf_stat_key *key)
{
	unsigned i;

	for (i = 0; i < a->nrows; i++)
		if (!memcmp(&a->keys[i], key, sizeof(*key)))
			return &a->rows[i];
	return NULL;
}

static void added_account(struct mxbpf_account_sum *to, const struct mxbpf_account_sum *from, bool less)
{
	uint64_t *sums = (uint64_t *)to;
	const uint64_t *more = (const uint64_t *)from;
	unsigned i;

	for (i = 0; i < sizeof(*to) / sizeof(*sums); i++)
		sums[i] += less ? -more[i] : more[i];
}

/* Adds all stripes of a row together. */
static void added_row(void *ctx, const struct mxbpf_stat_key *striped, const struct mxbpf_stat *s)
{
	struct added_up *a = ctx;
	struct mxbpf_stat_key key = *striped;
	struct mxbpf_stat *r;
	unsigned i;

	key.stripe = 0;
	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		a->calls += s->hist[i];
	r = added_find(a, &key);
	if (!r && a->nrows == ADDED_ROWS_MAX)
		return;
	if (!r) {
		a->keys[a->nrows] = key;
		r = &a->rows[a->nrows++];
	}
	r->total_ns += s->total_ns;
	r->self_ns += s->self_ns;
	r->max_ns = s->max_ns > r->max_ns ? s->max_ns : r->max_ns;
	r->min_ns_inv = s->min_ns_inv > r->min_ns_inv ? s->min_ns_inv : r->min_ns_inv;
	r->alloc_bytes += s->alloc_bytes;
	r->self_alloc_bytes += s->self_alloc_bytes;
	r->unwound += s->unwound;
	added_account(&r->account, &s->account, false);
	for (i = 0; i < MXBPF_HIST_BUCKETS; i++)
		r->hist[i] += s->hist[i];
}

/* Subtracts the span from its row. Returns false if the row lacks the span or the span lies outside its extremes. */
static bool added_take_span(struct added_up *a, const struct mxbpf_span *s)
{
	const struct mxbpf_stat_key key = {
		.name_id = s->name_id, .tgid = s->h.tgid, .device = s->device, .cls = s->cls};
	struct mxbpf_stat *r = added_find(a, &key);
	struct mxbpf_account_sum account = {0};

	if (!r || !r->hist[mxbpf_bucket(s->dur_ns)]-- || s->dur_ns > r->max_ns || s->dur_ns < ~r->min_ns_inv)
		return false;
	r->total_ns -= s->dur_ns;
	r->self_ns -= s->self_ns;
	r->alloc_bytes -= s->alloc_bytes;
	r->self_alloc_bytes -= s->self_alloc_bytes;
	r->unwound -= !!(s->flags & MXBPF_SPAN_UNWOUND);
	mdl_account_add(&account, s);
	added_account(&r->account, &account, true);
	return true;
}

static inline void added_take_alloc(struct added_up *a, const struct mxbpf_alloc *r)
{
	a->mem.allocs -= r->bytes > 0;
	a->mem.frees -= r->bytes < 0;
	a->mem.alloc_bytes -= r->bytes > 0 ? (uint64_t)r->bytes : 0;
	a->mem.free_bytes -= r->bytes < 0 ? (uint64_t)-r->bytes : 0;
	a->mem.empty -= !r->bytes;
}

/* Returns true if the records account for everything in the sums. */
static bool added_all_taken(const struct added_up *a)
{
	static const struct mxbpf_stat none;
	struct mxbpf_stat r;
	unsigned i;

	for (i = 0; i < a->nrows; i++) {
		r = a->rows[i];
		r.max_ns = r.min_ns_inv = 0;
		if (memcmp(&r, &none, sizeof(r)))
			return false;
	}
	return !a->mem.allocs && !a->mem.frees && !a->mem.alloc_bytes && !a->mem.free_bytes && !a->mem.empty;
}

#endif
