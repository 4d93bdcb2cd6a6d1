// SPDX-License-Identifier: Apache-2.0
/* What a record must satisfy before anybody looks into it. */
#include "model/model.h"
#include "mxbpf_kv.h"

#include <string.h>

static bool class_fits(unsigned cls)
{
	return cls > MXBPF_CLASS_NONE && cls < MXBPF_CLASS_MAX;
}

static bool span_fits(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_span *)r)->cls);
}

static bool buckets_fit(const struct mxbpf_bucket *b, unsigned n, size_t bytes)
{
	unsigned i;

	if (n > bytes / sizeof(*b))
		return false;
	for (i = 0; i < n; i++) {
		if (b[i].index >= MXBPF_HIST_BUCKETS || (i && b[i].index <= b[i - 1].index))
			return false;
	}
	return true;
}

static bool agg_fits(const struct mxbpf_rec *r)
{
	const struct mxbpf_agg *a = (const void *)r;

	return class_fits(a->cls) && buckets_fit(a->buckets, a->nbuckets, r->size - sizeof(*a));
}

static bool agg_mem_fits(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_agg_mem *)r)->cls);
}

static bool agg_account_fits(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_agg_account *)r)->cls);
}

static bool slow_fits(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_slow *)r)->cls);
}

static bool agg_counters_fits(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_agg_counters *)r)->cls);
}

static bool counter_fits(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_counter *)r)->cls < MXBPF_CLASS_MAX;
}

static bool edge_fits(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_edge *)r)->src_cls < MXBPF_CLASS_MAX;
}

static bool sched_fits(const struct mxbpf_rec *r)
{
	const struct mxbpf_sched *s = (const void *)r;

	return s->span_cls < MXBPF_CLASS_MAX && s->state < MXBPF_SCHED_STATES && s->woken_ns >= r->ts_ns &&
	       s->back_ns >= s->woken_ns && s->ran_ns <= r->ts_ns &&
	       s->nslices <= (r->size - sizeof(*s)) / sizeof(s->slices[0]);
}

static bool agg_sched_fits(const struct mxbpf_rec *r)
{
	const struct mxbpf_agg_sched *a = (const void *)r;

	return a->cls < MXBPF_CLASS_MAX && a->what < MXBPF_SCHED_WHATS;
}

static bool sample_fits(const struct mxbpf_rec *r)
{
	const struct mxbpf_sample *s = (const void *)r;
	const struct mxbpf_sample_span *spans = (const void *)(s + 1);
	unsigned i, n = mxbpf_sample_nspans(s);

	if (n > (r->size - sizeof(*s)) / sizeof(*spans))
		return false;
	for (i = 0; i < n; i++)
		if (!class_fits(spans[i].cls))
			return false;
	return true;
}

static bool team_fits(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_team *)r)->cls < MXBPF_CLASS_MAX;
}

static bool kv_fits(const struct mxbpf_rec *r)
{
	const struct mxbpf_kv *k = (const void *)r;

	return k->nvalues <= (r->size - sizeof(*k)) / sizeof(struct mxbpf_kv_value) && k->nsent <= k->nvalues;
}

static bool agg_kv_fits(const struct mxbpf_rec *r)
{
	const struct mxbpf_agg_kv *a = (const void *)r;

	return buckets_fit(a->buckets, a->nbuckets, r->size - sizeof(*a));
}

static bool holder_fits(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_holder *)r)->cls < MXBPF_CLASS_MAX;
}

static bool alloc_fits(const struct mxbpf_rec *r)
{
	return r->size < sizeof(struct mxbpf_alloc) || ((const struct mxbpf_alloc *)r)->cls < MXBPF_CLASS_MAX;
}

static bool instant_fits(const struct mxbpf_rec *r)
{
	const struct mxbpf_instant *i = (const void *)r;

	return i->what < MXBPF_INSTANT_WHATS && i->scope < MXBPF_SCOPES;
}

static bool agg_extent_fits(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_agg_extent *)r)->cls);
}

static bool name_fits(const struct mxbpf_rec *r)
{
	const struct mxbpf_name *n = (const void *)r;

	const bool is_text = n->kind == MXBPF_NAME_ARGS || n->kind == MXBPF_NAME_STACK || n->kind == MXBPF_NAME_CODE;

	return n->len <= (is_text ? MXBPF_TEXT_BYTES_MAX : MXBPF_NAME_BYTES_MAX) && n->len <= r->size - sizeof(*n);
}

static bool open_fits(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_open *)r)->cls);
}

static bool agg_life_fits(const struct mxbpf_rec *r)
{
	const struct mxbpf_agg_life *a = (const void *)r;
	unsigned i;

	if (a->part >= MXBPF_LIFE_PARTS || a->nbuckets > (r->size - sizeof(*a)) / sizeof(a->buckets[0]))
		return false;
	for (i = 0; i < a->nbuckets; i++)
		if (a->buckets[i].index >= MXBPF_HIST_BUCKETS)
			return false;
	return true;
}

static bool wait_fits(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_wait *)r)->what < MXBPF_WAIT_WHATS;
}

static bool step_fits(const struct mxbpf_rec *r)
{
	const struct mxbpf_step *s = (const void *)r;

	return s->what > MXBPF_STEP_NONE && s->what < MXBPF_STEP_WHATS;
}

static bool iteration_fits(const struct mxbpf_rec *r)
{
	const struct mxbpf_iteration *it = (const void *)r;

	return it->told > MXBPF_STEP_NONE && it->told < MXBPF_STEP_WHATS && it->dur_ns <= UINT64_MAX - r->ts_ns;
}

/* A kind that is not here is a newer one: it passes on its header alone and is skipped by who does not know it. */
static const struct {
	size_t bytes;
	bool (*fits)(const struct mxbpf_rec *r);
} kinds[] = {
	[MXBPF_SPAN] = {MXBPF_SPAN_BYTES_MIN, span_fits},
	[MXBPF_AGG] = {sizeof(struct mxbpf_agg), agg_fits},
	[MXBPF_COUNTER] = {sizeof(struct mxbpf_counter), counter_fits},
	[MXBPF_ALLOC] = {MXBPF_ALLOC_BYTES_MIN, alloc_fits},
	[MXBPF_EDGE] = {sizeof(struct mxbpf_edge), edge_fits},
	[MXBPF_NAME] = {sizeof(struct mxbpf_name), name_fits},
	[MXBPF_MEM] = {sizeof(struct mxbpf_mem), NULL},
	[MXBPF_AGG_MEM] = {sizeof(struct mxbpf_agg_mem), agg_mem_fits},
	[MXBPF_GROUP] = {MXBPF_GROUP_BYTES_MIN, NULL},
	[MXBPF_JOIN] = {sizeof(struct mxbpf_join), NULL},
	[MXBPF_SCHED] = {sizeof(struct mxbpf_sched), sched_fits},
	[MXBPF_AGG_SCHED] = {sizeof(struct mxbpf_agg_sched), agg_sched_fits},
	[MXBPF_AGG_ACCOUNT] = {MXBPF_AGG_ACCOUNT_BYTES_MIN, agg_account_fits},
	[MXBPF_SLOW] = {sizeof(struct mxbpf_slow), slow_fits},
	[MXBPF_AGG_COUNTERS] = {sizeof(struct mxbpf_agg_counters), agg_counters_fits},
	[MXBPF_TEAM] = {sizeof(struct mxbpf_team), team_fits},
	[MXBPF_INSTANT] = {sizeof(struct mxbpf_instant), instant_fits},
	[MXBPF_VALUE] = {sizeof(struct mxbpf_value), NULL},
	[MXBPF_AGG_EXTENT] = {sizeof(struct mxbpf_agg_extent), agg_extent_fits},
	[MXBPF_GAUGE] = {MXBPF_GAUGE_BYTES_MIN, NULL},
	[MXBPF_SAMPLE] = {sizeof(struct mxbpf_sample), sample_fits},
	[MXBPF_LIFE] = {sizeof(struct mxbpf_life), NULL},
	[MXBPF_AGG_LIFE] = {sizeof(struct mxbpf_agg_life), agg_life_fits},
	[MXBPF_WAIT] = {sizeof(struct mxbpf_wait), wait_fits},
	[MXBPF_AGG_WAIT] = {sizeof(struct mxbpf_wait), wait_fits},
	[MXBPF_KV] = {sizeof(struct mxbpf_kv), kv_fits},
	[MXBPF_AGG_KV] = {sizeof(struct mxbpf_agg_kv), agg_kv_fits},
	[MXBPF_OPEN] = {MXBPF_OPEN_BYTES_MIN, open_fits},
	[MXBPF_STEP] = {sizeof(struct mxbpf_step), step_fits},
	[MXBPF_ITERATION] = {sizeof(struct mxbpf_iteration), iteration_fits},
	[MXBPF_HOLDER] = {sizeof(struct mxbpf_holder), holder_fits},
	[MXBPF_MEM_TIME] = {sizeof(struct mxbpf_mem_time), NULL},
};

static bool rec_fits(const struct mxbpf_rec *r, size_t left)
{
	if (r->size < sizeof(*r) || r->size % 8 || r->size > left)
		return false;
	if (r->kind >= sizeof(kinds) / sizeof(kinds[0]))
		return true;
	return r->size >= kinds[r->kind].bytes && (!kinds[r->kind].fits || kinds[r->kind].fits(r));
}

struct mxbpf_span mdl_span(const struct mxbpf_rec *r)
{
	struct mxbpf_span s = {.counters = {MXBPF_COUNTER_NONE}};

	memcpy(&s, r, r->size < sizeof(s) ? r->size : sizeof(s));
	if (s.flags & MXBPF_SPAN_ASYNC)
		s.self_ns = 0; /* the first recordings have all of it */
	if (r->size < MXBPF_SPAN_BYTES_ACCOUNT && s.flags & MXBPF_SPAN_ACCOUNT)
		s.account = (struct mxbpf_account){.on_cpu_ns = s.dur_ns, .end_cpu = s.cpu};
	return s;
}

const struct mxbpf_rec *mdl_next_rec(const void *recs, size_t bytes, size_t *pos, bool *bad)
{
	const struct mxbpf_rec *r = (const void *)((const char *)recs + *pos);
	size_t left = bytes - *pos;

	*bad = false;
	if (!left)
		return NULL;
	if (left < sizeof(*r) || !rec_fits(r, left)) {
		*bad = true;
		return NULL;
	}
	*pos += r->size;
	return r;
}
