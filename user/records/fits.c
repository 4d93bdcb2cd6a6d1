// SPDX-License-Identifier: Apache-2.0
/* Checks of field values, one function per kind. */
#include "records/priv.h"

static bool class_fits(unsigned cls)
{
	return cls > MXBPF_CLASS_NONE && cls < MXBPF_CLASS_MAX;
}

bool fits_span(const struct mxbpf_rec *r)
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

bool fits_agg(const struct mxbpf_rec *r)
{
	const struct mxbpf_agg *a = (const void *)r;

	return class_fits(a->cls) && buckets_fit(a->buckets, a->nbuckets, r->size - sizeof(*a));
}

bool fits_agg_mem(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_agg_mem *)r)->cls);
}

bool fits_agg_cost(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_agg_cost *)r)->cls);
}

bool fits_agg_estimate(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_agg_estimate *)r)->cls);
}

bool fits_partial(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_partial *)r)->cls);
}

bool fits_agg_account(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_agg_account *)r)->cls);
}

bool fits_slow(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_slow *)r)->cls);
}

bool fits_agg_counters(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_agg_counters *)r)->cls);
}

bool fits_tally(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_tally *)r)->cls < MXBPF_CLASS_MAX;
}

bool fits_edge(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_edge *)r)->src_cls < MXBPF_CLASS_MAX;
}

bool fits_range(const struct mxbpf_rec *r)
{
	const struct mxbpf_range *range = (const void *)r;

	return range->cls < MXBPF_CLASS_MAX && range->data.nvalues <= MXBPF_RANGE_VALUES &&
	       range->data.type < MXBPF_RANGE_TYPES;
}

bool fits_sched(const struct mxbpf_rec *r)
{
	const struct mxbpf_sched *s = (const void *)r;

	return s->span_cls < MXBPF_CLASS_MAX && s->state < MXBPF_SCHED_STATES && s->woken_ns >= r->ts_ns &&
	       s->back_ns >= s->woken_ns && s->ran_ns <= r->ts_ns &&
	       s->nslices <= (r->size - sizeof(*s)) / sizeof(s->slices[0]);
}

bool fits_off_cpu(const struct mxbpf_rec *r)
{
	const struct mxbpf_off_cpu *o = (const void *)r;

	return o->woken_ns >= r->ts_ns && o->back_ns >= o->woken_ns;
}

bool fits_sample(const struct mxbpf_rec *r)
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

bool fits_team(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_team *)r)->cls < MXBPF_CLASS_MAX;
}

bool fits_kv(const struct mxbpf_rec *r)
{
	const struct mxbpf_kv *k = (const void *)r;

	return k->nvalues <= (r->size - sizeof(*k)) / sizeof(struct mxbpf_kv_value) && k->nsent <= k->nvalues;
}

bool fits_mem_owner(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_mem_owner *)r)->cls < MXBPF_CLASS_MAX;
}

bool fits_mem_failed(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_mem_failed *)r)->cls < MXBPF_CLASS_MAX;
}

bool fits_mem_holder(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_mem_holder *)r)->cls < MXBPF_CLASS_MAX;
}

bool fits_collector(const struct mxbpf_rec *r)
{
	const struct mxbpf_collector *c = (const struct mxbpf_collector *)r;

	return c->looks && c->looks <= MXBPF_COLLECTOR_LOOKS && c->last_ns >= c->h.ts_ns;
}

bool fits_alloc(const struct mxbpf_rec *r)
{
	return r->size < MXBPF_ALLOC_BYTES_OWNER || ((const struct mxbpf_alloc *)r)->cls < MXBPF_CLASS_MAX;
}

bool fits_instant(const struct mxbpf_rec *r)
{
	const struct mxbpf_instant *i = (const void *)r;

	return i->what < MXBPF_INSTANT_WHATS && i->scope < MXBPF_SCOPES;
}

bool fits_agg_extent(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_agg_extent *)r)->cls);
}

static bool column_fits(const struct mxbpf_table_column *c)
{
	return !c->name[sizeof(c->name) - 1] && c->nvalues && c->id_of <= MXBPF_NAME_KINDS;
}

bool fits_table(const struct mxbpf_rec *r)
{
	const struct mxbpf_table *t = (const void *)r;
	size_t cells = 0, bytes = r->size - sizeof(*t);
	unsigned i;

	if (t->name[sizeof(t->name) - 1] || t->ncols > MXBPF_TABLE_COLUMNS_MAX ||
	    t->ncols * sizeof(t->columns[0]) > bytes)
		return false;
	for (i = 0; i < t->ncols; i++) {
		if (!column_fits(&t->columns[i]))
			return false;
		cells += t->columns[i].nvalues;
	}
	return t->ncols * sizeof(t->columns[0]) + t->nrows * cells * sizeof(__u64) == bytes;
}

bool fits_name(const struct mxbpf_rec *r)
{
	const struct mxbpf_name *n = (const void *)r;

	const bool is_text = n->kind == MXBPF_NAME_ARGS || n->kind == MXBPF_NAME_STACK || n->kind == MXBPF_NAME_CODE;

	return n->len <= (is_text ? MXBPF_TEXT_BYTES_MAX : MXBPF_NAME_BYTES_MAX) && n->len <= r->size - sizeof(*n);
}

bool fits_open(const struct mxbpf_rec *r)
{
	return class_fits(((const struct mxbpf_open *)r)->cls);
}

bool fits_wait(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_wait *)r)->what < MXBPF_WAIT_WHATS;
}

bool fits_step(const struct mxbpf_rec *r)
{
	const struct mxbpf_step *s = (const void *)r;

	return s->what > MXBPF_STEP_NONE && s->what < MXBPF_STEP_WHATS;
}

bool fits_iteration(const struct mxbpf_rec *r)
{
	const struct mxbpf_iteration *it = (const void *)r;

	return it->told > MXBPF_STEP_NONE && it->told < MXBPF_STEP_WHATS && it->dur_ns <= UINT64_MAX - r->ts_ns;
}

static bool activity_class_fits(unsigned cls)
{
	return cls > MXBPF_ACTIVITY_NONE && cls < MXBPF_ACTIVITY_MAX;
}

bool fits_activity(const struct mxbpf_rec *r)
{
	const struct mxbpf_activity *a = (const void *)r;

	return activity_class_fits(a->cls) && a->dur_ns <= UINT64_MAX - r->ts_ns;
}

/* Refuses a launch without a domain, which would start nothing, and one without a thread, which has no track. */
bool fits_launch(const struct mxbpf_rec *r)
{
	const struct mxbpf_launch *l = (const void *)r;

	return l->domain != MXBPF_DOMAIN_NONE && l->tid;
}

bool fits_agg_activity(const struct mxbpf_rec *r)
{
	const struct mxbpf_agg_activity *a = (const void *)r;

	return activity_class_fits(a->cls) && a->unlaunched <= a->count &&
	       (r->size < sizeof(*a) || buckets_fit((const void *)(a + 1), a->nbuckets, r->size - sizeof(*a)));
}

bool fits_agg_gpu_work(const struct mxbpf_rec *r)
{
	const struct mxbpf_agg_gpu_work *a = (const void *)r;

	return a->of < MXBPF_WORK_OFS && a->cls < MXBPF_CLASS_MAX &&
	       buckets_fit((const void *)(a + 1), a->nbuckets, r->size - sizeof(*a));
}

bool fits_graph_node(const struct mxbpf_rec *r)
{
	const struct mxbpf_graph_node *n = (const void *)r;

	return n->node && n->tid;
}

bool fits_agg_gpu_graph(const struct mxbpf_rec *r)
{
	const struct mxbpf_agg_gpu_graph *g = (const void *)r;

	return g->captured <= MXBPF_CAPTURED_UNSEEN && g->cls < MXBPF_CLASS_MAX;
}

bool fits_agg_gpu_idle(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_agg_gpu_idle *)r)->cause < MXBPF_IDLE_CAUSES;
}

bool fits_agg_gpu_launch(const struct mxbpf_rec *r)
{
	const struct mxbpf_agg_gpu_launch *a = (const void *)r;

	return buckets_fit((const void *)(a + 1), a->nbuckets, r->size - sizeof(*a));
}

bool fits_gpu_idle(const struct mxbpf_rec *r)
{
	return ((const struct mxbpf_gpu_idle *)r)->cause < MXBPF_IDLE_CAUSES;
}

bool fits_gpu_path(const struct mxbpf_rec *r)
{
	const struct mxbpf_gpu_path *a = (const void *)r;

	return a->part && a->part < MXBPF_PATH_PARTS && a->end_ns >= r->ts_ns;
}

bool fits_gpu_sequence(const struct mxbpf_rec *r)
{
	const struct mxbpf_gpu_sequence *a = (const void *)r;

	return a->count && a->n >= MXBPF_SEQUENCE_MIN && a->n <= MXBPF_SEQUENCE_MAX &&
	       r->size >= sizeof(*a) + a->n * sizeof(uint64_t);
}

bool fits_kernel_metric(const struct mxbpf_rec *r)
{
	const struct mxbpf_kernel_metric *k = (const void *)r;

	return k->number < MXBPF_KERNEL_COUNTERS && k->first <= 1;
}

bool fits_collective(const struct mxbpf_rec *r)
{
	const struct mxbpf_collective *c = (const void *)r;

	return c->backend < MXBPF_BACKENDS && c->op < MXBPF_COLLECTIVE_OPS;
}

bool fits_agg_collective(const struct mxbpf_rec *r)
{
	const struct mxbpf_agg_collective *a = (const void *)r;

	return a->backend < MXBPF_BACKENDS && a->op < MXBPF_COLLECTIVE_OPS && a->count && a->matched <= a->count;
}
