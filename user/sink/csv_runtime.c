// SPDX-License-Identifier: Apache-2.0
/* Rows of what a runtime has besides calls: lives of operators, stores of parameters, holders of memory, marks. */
#include <stdio.h>
#include <string.h>

#include "sink/csv.h"

static void fill_part(struct row *r, const struct mdl_life_part *p)
{
	fill(r, COUNT, p->count);
	fill(r, TOTAL, p->total_ns);
	fill(r, MIN, p->min_ns);
	fill(r, MAX, p->max_ns);
	fill(r, P50, mdl_life_percentile(p, 0.5));
	fill(r, P99, mdl_life_percentile(p, 0.99));
}

/* A part of the lives is a table. */
int csv_lives(struct snk *s, const struct snk_lives *t)
{
	const struct mdl *m = s->in->model;
	size_t i;
	unsigned part;

	for (i = 0; i < t->nrows * MXBPF_LIFE_PARTS; i++) {
		const struct mdl_life *l = t->rows[i / MXBPF_LIFE_PARTS];
		struct row r = {.device = l->device, .tgid = l->tgid};
		char table[32];

		part = i % MXBPF_LIFE_PARTS;
		snprintf(table, sizeof(table), "life_%s", snk_life_parts[part]);
		r.table = table;
		r.name = mdl_name(m, l->name_id, &r.name_len);
		fill_part(&r, &l->parts[part]);
		csv_put(s, &r);
	}
	for (i = 0; i < t->nwaits; i++) {
		const struct mxbpf_wait *w = &t->waits[i];
		struct row r = {.table = "waits", .name = snk_wait_whats[w->what], .tgid = w->h.tgid};

		r.name_len = strlen(r.name);
		if (w->op_id)
			r.name = mdl_name(m, w->op_id, &r.name_len);
		if (w->within_id)
			r.within.text = mdl_name(m, w->within_id, &r.within.len);
		if (w->call_id)
			r.call.text = mdl_name(m, w->call_id, &r.call.len);
		fill(&r, COUNT, w->count);
		fill(&r, TOTAL, w->total_ns);
		fill(&r, MAX, w->max_ns);
		csv_put(s, &r);
	}
	return 0;
}

int csv_kvs(struct snk *s, const struct snk_kvs *t)
{
	const struct snk_kv *k;

	for (k = t->rows; k < t->rows + t->nrows; k++) {
		struct row r = {.table = "KVStore by key",
				.name = k->name,
				.name_len = k->len,
				.tgid = k->kv->calls.tgid,
				.key = {.text = k->key, .len = k->key_len}};

		fill(&r, COUNT, k->kv->calls.count);
		fill(&r, TOTAL, k->kv->calls.total_ns);
		fill(&r, MIN, k->kv->calls.min_ns);
		fill(&r, MAX, k->kv->calls.max_ns);
		fill(&r, AVG, k->kv->calls.total_ns / k->kv->calls.count);
		fill(&r, P50, mdl_percentile(&k->kv->calls, 0.50));
		fill(&r, P99, mdl_percentile(&k->kv->calls, 0.99));
		fill(&r, KV_VALUES, k->kv->values);
		fill(&r, KV_UNKNOWN, k->kv->unknown);
		fill(&r, KV_SENT, k->kv->sent_bytes);
		fill(&r, KV_RECEIVED, k->kv->received_bytes);
		csv_put(s, &r);
	}
	return 0;
}

/* What the numbers of a device lack. */
static void put_lost(struct snk *s, const struct mxbpf_mem_time *d)
{
	const struct {
		const char *name;
		uint64_t n;
	} lost[] = {{"unsized_frees", d->unsized}, {"missed_frees", d->missed}, {"untracked_allocs", d->untracked}};
	size_t i;

	for (i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
		struct row r = {.table = "held.lost",
				.name = lost[i].name,
				.name_len = strlen(lost[i].name),
				.tgid = d->h.tgid,
				.device = d->device};

		fill(&r, COUNT, lost[i].n);
		csv_put(s, &r);
	}
}

int csv_held(struct snk *s, const struct snk_held *t)
{
	const struct mdl_session *ss = s->in->session;
	const struct mxbpf_mem_time *d;
	const struct snk_holder *k;

	for (d = t->devices; d < t->devices + t->ndevices; d++) {
		struct row r = {.table = "held.device", .tgid = d->h.tgid, .device = d->device};

		r.name = "";
		fill_signed(&r, LIVE_BYTES, d->live_bytes);
		fill_signed(&r, PEAK_BYTES, d->peak_bytes);
		fill_signed(&r, MEAN_BYTES, snk_mem_mean(s, d));
		if (d->peak_ns)
			fill(&r, PEAK_UNIX, ss->start_unix_ns + (d->peak_ns - ss->start_mono_ns));
		csv_put(s, &r);
		put_lost(s, d);
	}
	for (k = t->rows; k < t->rows + t->nrows; k++) {
		struct row r = {.table = "held", .name = k->name, .name_len = k->len, .holder = k};

		r.device = k->h.device;
		r.tgid = k->h.h.tgid;
		r.layer.text = k->layer;
		r.layer.len = k->layer_len;
		fill(&r, ALLOCS, k->h.allocs);
		fill(&r, FREES, k->h.frees);
		fill(&r, ALLOC_BYTES, k->h.alloc_bytes);
		fill(&r, FREE_BYTES, k->h.free_bytes);
		fill_signed(&r, LIVE_BYTES, k->h.live_bytes);
		fill_signed(&r, PEAK_BYTES, k->h.peak_bytes);
		fill_signed(&r, START_BYTES, snk_start_bytes(&k->h));
		fill(&r, LIVE_BLOCKS, k->h.live_blocks);
		csv_put(s, &r);
	}
	return 0;
}

int csv_marks(struct snk *s, const struct snk_marks *t)
{
	const struct snk_mark *k;

	for (k = t->values; k < t->values + t->nvalues; k++) {
		struct row r = {
			.table = "counter", .name = k->name, .name_len = k->len, .domain = {k->domain, k->domain_len}};

		r.tgid = k->tgid;
		fill(&r, COUNT, k->count);
		fill(&r, VALUE_LAST, k->value->value);
		fill(&r, VALUE_MIN, k->value->min);
		fill(&r, VALUE_MAX, k->value->max);
		csv_put(s, &r);
	}
	for (k = t->instants; k < t->instants + t->ninstants; k++) {
		struct row r = {
			.table = "instant", .name = k->name, .name_len = k->len, .domain = {k->domain, k->domain_len}};

		r.tgid = k->tgid;
		fill(&r, COUNT, k->count);
		csv_fill_extent(s, &r, k->instant->h.ts_ns, k->instant->last_ns);
		csv_put(s, &r);
	}
	return 0;
}
