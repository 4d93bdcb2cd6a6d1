// SPDX-License-Identifier: Apache-2.0
/* Keys and bytes of parameter store calls, as args of their spans. */
#include "feature/kv/kv.h"
#include "view/timeline/trace.h"

#include <errno.h>
#include <inttypes.h>

#include "mxbpf_kv.h"

#define KEYS_SHOWN 8

struct state {
	struct hash at;	  /* (start of a span, process and thread) -> 1 + offset in calls */
	struct buf calls; /* struct mxbpf_kv, each with its values behind it */
};

static int kv_survey(struct view_trace *t, void *vstate, const struct mxbpf_rec *r)
{
	const struct mxbpf_kv *k = (const void *)r;
	struct state *state = vstate;
	uint64_t *at = hash_put(&state->at, k->h.ts_ns, (uint64_t)k->h.tgid << 32 | k->tid);

	if (!at)
		return -ENOMEM;
	*at = 1 + state->calls.len;
	return buf_put(&state->calls, k, k->h.size);
}

static void put_key(struct view_trace *t, const struct mxbpf_kv *k, uint64_t key)
{
	struct view_text name;

	if (!(k->flags & MXBPF_KV_NAMED)) {
		out_printf(t->s.out, "%" PRId64, (int64_t)key);
		return;
	}
	name = view_trace_text(t, key, view_text_name);
	out_write(t->s.out, name.data, name.len);
}

/* Sums of the values whose size is known, and the number of those whose size is not. */
static void put_sums(struct view_trace *t, const struct mxbpf_kv *k, const struct mxbpf_kv_value *v)
{
	uint64_t bytes[2] = {0}, unknown = k->more;
	bool any[2] = {false};
	unsigned i;

	for (i = 0; i < k->nvalues; i++) {
		any[i >= k->nsent] = true;
		if (v[i].bytes == MXBPF_KV_UNKNOWN)
			unknown++;
		else
			bytes[i >= k->nsent] += v[i].bytes;
	}
	if (any[0])
		out_printf(t->s.out, ",\"sent_bytes\":%" PRIu64, bytes[0]);
	if (any[1])
		out_printf(t->s.out, ",\"received_bytes\":%" PRIu64, bytes[1]);
	if (unknown)
		out_printf(t->s.out, ",\"values_unknown\":%" PRIu64, unknown);
}

static void kv_args(struct view_trace *t, void *vstate, const struct mxbpf_span *s)
{
	const struct state *state = vstate;
	const struct mxbpf_kv_value *v;
	const struct mxbpf_kv *k;
	const uint64_t *at;
	unsigned i;

	if (s->cls != MXBPF_CLASS_KVSTORE || !state->calls.len)
		return;
	at = hash_get(&state->at, s->h.ts_ns, (uint64_t)s->h.tgid << 32 | s->tid);
	if (!at || !*at)
		return;
	k = (const void *)((const char *)state->calls.data + *at - 1);
	v = (const void *)(k + 1);
	out_printf(t->s.out, ",\"values\":%u", k->nvalues + k->more);
	if (k->flags & MXBPF_KV_SERVED)
		out_printf(t->s.out, ",\"asked\":\"%s\"", k->flags & MXBPF_KV_PULLED ? "pull" : "push");
	out_puts(t->s.out, ",\"keys\":\"");
	for (i = 0; i < k->nvalues && i < KEYS_SHOWN; i++) {
		out_puts(t->s.out, i ? "," : "");
		put_key(t, k, v[i].key);
	}
	out_puts(t->s.out, k->nvalues + k->more > KEYS_SHOWN ? ",...\"" : "\"");
	put_sums(t, k, v);
}

static void kv_trace_fini(void *vstate)
{
	struct state *state = vstate;

	hash_fini(&state->at);
	buf_fini(&state->calls);
}

const struct view_trace_feature kv_trace = {
	.state_bytes = sizeof(struct state),
	.kinds = {MXBPF_KV},
	.survey = kv_survey,
	.args = {[VIEW_ARGS_LAST] = kv_args},
	.fini = kv_trace_fini,
};
