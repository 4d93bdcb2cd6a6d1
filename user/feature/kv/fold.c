// SPDX-License-Identifier: Apache-2.0
/*
 * Adds calls of a KVStore up by operation and key. The record with the keys of a call comes when the call starts, and
 * its span comes when it ends.
 */
#include "feature/kv/kv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "mxbpf_kv.h"

struct state {
	struct hash index; /* (name_id and key, tgid and flags) -> struct kv_row * */
	struct buf rows;   /* struct kv_row *, owned */
	struct hash begun; /* (start, tgid and tid) -> struct mxbpf_kv *, owned: calls that have not ended */
};

static const struct mxbpf_kv_value *values_of(const struct mxbpf_kv *k)
{
	return (const void *)(k + 1);
}

static struct kv_row *kv_row(struct mdl *m, uint32_t tgid, uint64_t name_id, uint64_t key, uint8_t flags)
{
	struct state *state = mdl_state(m, &feature_kv);
	struct kv_row *r;
	bool added;

	if (!state)
		return NULL;
	r = mdl_row_put(&state->index, &state->rows, name_id ^ (key * 0x9e3779b97f4a7c15ull),
			(uint64_t)tgid << 8 | flags, sizeof(*r), &added);
	if (!added)
		return r;
	r->calls = (struct mdl_row){.tgid = tgid, .cls = MXBPF_CLASS_KVSTORE, .id = name_id, .name_id = name_id};
	r->key = key;
	r->flags = flags;
	return mdl_expect_name(m, name_id) || ((flags & MXBPF_KV_NAMED) && mdl_expect_name(m, key)) ? NULL : r;
}

/* Keeps the record until the span of its call comes. */
static int kv_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_kv *k = (const void *)rec;
	struct state *state = mdl_state(m, &feature_kv);
	uint64_t *at = state ? hash_put(&state->begun, rec->ts_ns, (uint64_t)rec->tgid << 32 | k->tid) : NULL;
	struct mxbpf_kv *copy;

	if (!at)
		return -ENOMEM;
	copy = mem_resize((void *)(uintptr_t)*at, rec->size);
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
	mdl_row_widen(&r->calls, dur_ns, dur_ns);
	add_sat(&r->calls.count, 1);
	add_sat(&r->calls.total_ns, dur_ns);
	add_sat(&r->calls.hist[mxbpf_bucket(dur_ns)], 1);
	return 0;
}

static int kv_span(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s)
{
	struct mxbpf_kv *k;
	struct state *state;
	uint64_t at;
	size_t i;
	int err = 0;

	if (s->cls != MXBPF_CLASS_KVSTORE)
		return 0;
	state = mdl_state(m, &feature_kv);
	if (!state)
		return -ENOMEM;
	if (!hash_del(&state->begun, s->h.ts_ns, (uint64_t)s->h.tgid << 32 | s->tid, &at) || !at)
		return 0;
	k = (void *)(uintptr_t)at;
	for (i = 0; i < k->nvalues && !err; i++)
		err = add_value(m, k, i, s->dur_ns);
	mdl_tally_add(m, s->cls, MXBPF_TALLY_UNKEYED, k->more);
	mem_free(k);
	return err;
}

static int kv_fold_agg(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_kv *a = (const void *)rec;
	struct kv_row *r = a->calls ? kv_row(m, rec->tgid, a->name_id, a->key, a->flags) : NULL;

	if (!r)
		return a->calls ? -ENOMEM : 0;
	mdl_row_widen(&r->calls, a->min_ns, a->max_ns);
	add_sat(&r->calls.count, a->calls);
	add_sat(&r->calls.total_ns, a->total_ns);
	add_sat(&r->values, a->values);
	add_sat(&r->unknown, a->unknown);
	add_sat(&r->sent_bytes, a->sent_bytes);
	add_sat(&r->received_bytes, a->received_bytes);
	mdl_hist_fold(r->calls.hist, a->buckets, a->nbuckets);
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

	return mdl_hist_emit(r->calls.hist, &a, sizeof(a), &a.nbuckets, out);
}

const struct kv_row *const *kv_rows(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_kv);

	*n = state ? buf_count(&state->rows, void *) : 0;
	return state ? (const void *)state->rows.data : NULL;
}

static int kv_emit(const struct mdl *m, struct buf *out)
{
	size_t i, n;
	const struct kv_row *const *rows = kv_rows(m, &n);
	int err = 0;

	for (i = 0; !err && i < n; i++)
		err = emit_row(rows[i], out);
	return err;
}

static void *dup_begun(const void *item)
{
	const struct mxbpf_rec *rec = item;
	void *begun = mem_alloc(rec->size);

	return begun ? memcpy(begun, rec, rec->size) : NULL;
}

static int kv_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_kv);
	struct state *t = mdl_state(to, &feature_kv);
	int err;

	if (!t)
		return -ENOMEM;
	err = mdl_rows_copy(&t->index, &t->rows, &f->index, &f->rows, sizeof(struct kv_row));
	return err ? err : mdl_owned_copy(&t->begun, &f->begun, dup_begun);
}

static int kv_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct state *t = mdl_state(to, &feature_kv), *f = mdl_state(from, &feature_kv);
	struct hash empty;

	if (!t)
		return -ENOMEM;
	empty = t->begun;
	t->begun = f->begun;
	f->begun = empty;
	return 0;
}

static void kv_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_kv);

	mdl_owned_fini(&state->begun);
	mdl_rows_fini(&state->index, &state->rows);
}

const struct mdl_feature feature_kv = {
	.trace = &kv_trace,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_KV, kv_fold}, {MXBPF_AGG_KV, kv_fold_agg}},
	.span = kv_span,
	.emit = kv_emit,
	.copy = kv_copy,
	.move = kv_move,
	.fini = kv_fini,
};
