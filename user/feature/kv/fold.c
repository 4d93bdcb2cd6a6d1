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
	struct hash begun; /* (start, tgid and tid) -> struct mxbpf_kv *, owned: calls that have not ended */
};

static const struct mxbpf_kv_value *values_of(const struct mxbpf_kv *k)
{
	return (const void *)(k + 1);
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
	const struct kv_row like = {.name_id = k->name_id, .key = v->key, .tgid = k->h.tgid, .flags = k->flags};
	struct kv_row *r = mdl_table_row(m, &feature_kv, &kv_table, &like);

	if (!r)
		return -ENOMEM;
	add_sat(&r->values, 1);
	if (v->bytes == MXBPF_KV_UNKNOWN)
		add_sat(&r->unknown, 1);
	else
		add_sat(i < k->nsent ? &r->sent_bytes : &r->received_bytes, v->bytes);
	if (had_before(k, i))
		return 0;
	r->min_ns = !r->count || dur_ns < r->min_ns ? dur_ns : r->min_ns;
	r->max_ns = dur_ns > r->max_ns ? dur_ns : r->max_ns;
	add_sat(&r->count, 1);
	add_sat(&r->total_ns, dur_ns);
	add_sat(&r->hist[mxbpf_bucket(dur_ns)], 1);
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

	return t ? mdl_owned_copy(&t->begun, &f->begun, dup_begun) : -ENOMEM;
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
}

const struct mdl_feature feature_kv = {
	.trace = &kv_trace,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_KV, kv_fold}},
	.tables = {{&kv_table}},
	.span = kv_span,
	.copy = kv_copy,
	.move = kv_move,
	.fini = kv_fini,
};
