// SPDX-License-Identifier: Apache-2.0
/* Calls of a store of parameters by what they carry. A call's keys come when it begins, its time when it has ended. */
#include "feature/kv/kv.h"
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mxbpf_kv.h"

static const struct mxbpf_kv_value *values_of(const struct mxbpf_kv *k)
{
	return (const void *)(k + 1);
}

static struct kv_row *kv_row(struct mdl *m, uint32_t tgid, uint64_t name_id, uint64_t key, uint8_t flags)
{
	bool added;
	struct kv_row *r = mdl_row_put(&m->kv_index, &m->kvs, name_id ^ (key * 0x9e3779b97f4a7c15ull),
				       (uint64_t)tgid << 8 | flags, sizeof(*r), &added);

	if (!added)
		return r;
	r->calls = (struct mdl_row){.tgid = tgid, .cls = MXBPF_CLASS_KVSTORE, .id = name_id, .name_id = name_id};
	r->key = key;
	r->flags = flags;
	return mdl_expect_name(m, name_id) || ((flags & MXBPF_KV_NAMED) && mdl_expect_name(m, key)) ? NULL : r;
}

/* Until its span comes. */
static int kv_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_kv *k = (const void *)rec;
	uint64_t *at = hash_put(&m->kv_begun, rec->ts_ns, (uint64_t)rec->tgid << 32 | k->tid);
	struct mxbpf_kv *copy;

	if (!at)
		return -ENOMEM;
	copy = realloc((void *)(uintptr_t)*at, rec->size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, rec, rec->size);
	*at = (uintptr_t)copy;
	return 0;
}

static bool had_before(const struct mxbpf_kv *k, size_t i)
{
	size_t j;

	for (j = 0; j < i; j++)
		if (values_of(k)[j].key == values_of(k)[i].key)
			return true;
	return false;
}

static int add_value(struct mdl *m, const struct mxbpf_kv *k, size_t i, uint64_t dur_ns)
{
	const struct mxbpf_kv_value *v = &values_of(k)[i];
	struct kv_row *r = kv_row(m, k->h.tgid, k->name_id, v->key, k->flags);

	if (!r)
		return -ENOMEM;
	add_sat(&r->values, 1);
	if (v->bytes == MXBPF_KV_UNKNOWN)
		add_sat(&r->unknown, 1);
	else
		add_sat(i < k->nsent ? &r->sent_bytes : &r->received_bytes, v->bytes);
	if (had_before(k, i))
		return 0;
	row_widen(&r->calls, dur_ns, dur_ns);
	add_sat(&r->calls.count, 1);
	add_sat(&r->calls.total_ns, dur_ns);
	add_sat(&r->calls.hist[mxbpf_bucket(dur_ns)], 1);
	return 0;
}

static int kv_span(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s)
{
	struct mxbpf_kv *k;
	uint64_t at;
	size_t i;
	int err = 0;

	if (s->cls != MXBPF_CLASS_KVSTORE ||
	    !hash_del(&m->kv_begun, s->h.ts_ns, (uint64_t)s->h.tgid << 32 | s->tid, &at) || !at)
		return 0;
	k = (void *)(uintptr_t)at;
	for (i = 0; i < k->nvalues && !err; i++)
		err = add_value(m, k, i, s->dur_ns);
	add_sat(&m->counters[s->cls][MXBPF_TALLY_UNKEYED], k->more);
	free(k);
	return err;
}

static int kv_fold_agg(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_kv *a = (const void *)rec;
	struct kv_row *r = a->calls ? kv_row(m, rec->tgid, a->name_id, a->key, a->flags) : NULL;

	if (!r)
		return a->calls ? -ENOMEM : 0;
	row_widen(&r->calls, a->min_ns, a->max_ns);
	add_sat(&r->calls.count, a->calls);
	add_sat(&r->calls.total_ns, a->total_ns);
	add_sat(&r->values, a->values);
	add_sat(&r->unknown, a->unknown);
	add_sat(&r->sent_bytes, a->sent_bytes);
	add_sat(&r->received_bytes, a->received_bytes);
	hist_fold(r->calls.hist, a->buckets, a->nbuckets);
	return 0;
}

static int emit_row(const struct kv_row *r, struct buf *out)
{
	struct mxbpf_agg_kv a = {
		.h = {.kind = MXBPF_AGG_KV, .tgid = r->calls.tgid},
		.name_id = r->calls.name_id,
		.key = r->key,
		.calls = r->calls.count,
		.values = r->values,
		.sent_bytes = r->sent_bytes,
		.received_bytes = r->received_bytes,
		.unknown = r->unknown,
		.total_ns = r->calls.total_ns,
		.min_ns = r->calls.min_ns,
		.max_ns = r->calls.max_ns,
		.flags = r->flags,
	};

	return hist_emit(r->calls.hist, &a, sizeof(a), &a.nbuckets, out);
}

static int kv_emit(const struct mdl *m, struct buf *out)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&m->kvs, void *); i++)
		err = emit_row(*buf_at(&m->kvs, struct kv_row *, i), out);
	return err;
}

const struct kv_row *const *kv_rows(const struct mdl *m, size_t *n)
{
	*n = buf_count(&m->kvs, void *);
	return (const void *)m->kvs.data;
}

static void kv_move(struct mdl *to, struct mdl *from)
{
	struct hash empty = to->kv_begun;

	to->kv_begun = from->kv_begun;
	from->kv_begun = empty;
}

static void *dup_begun(const void *item)
{
	const struct mxbpf_rec *rec = item;
	void *begun = malloc(rec->size);

	return begun ? memcpy(begun, rec, rec->size) : NULL;
}

static int kv_copy_begun(struct mdl *to, const struct mdl *from)
{
	return copy_owned(&to->kv_begun, &from->kv_begun, dup_begun);
}

static void kvs_fini(struct mdl *m)
{
	struct hash_entry *h;
	size_t pos = 0, i;

	while ((h = hash_next(&m->kv_begun, &pos)))
		free((void *)(uintptr_t)h->val);
	hash_fini(&m->kv_begun);
	for (i = 0; i < buf_count(&m->kvs, void *); i++)
		free(*buf_at(&m->kvs, void *, i));
	buf_fini(&m->kvs);
	hash_fini(&m->kv_index);
}

const struct mdl_feature feature_kv = {
	.kinds = {{MXBPF_KV, kv_fold}, {MXBPF_AGG_KV, kv_fold_agg}},
	.span = kv_span,
	.emit = kv_emit,
	.copy = kv_copy_begun,
	.move = kv_move,
	.fini = kvs_fini,
};
