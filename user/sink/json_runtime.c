// SPDX-License-Identifier: Apache-2.0
/* Members for what a runtime has besides calls: memory, iterations, lives of operators, stores of parameters, marks. */
#include <inttypes.h>

#include "mxbpf_kv.h"
#include "sink/json.h"

static void put_mem_time(struct snk *s, const struct mxbpf_mem_time *t)
{
	json_device(s, t->device);
	json_process(s, t->h.tgid);
	out_printf(s->out, ", \"peak_bytes\": %" PRId64 ", \"peak_unix_ns\": ", (int64_t)t->peak_bytes);
	if (t->peak_ns)
		out_printf(s->out, "%" PRIu64, json_unix_ns(s, t->peak_ns));
	else
		out_puts(s->out, "null");
	out_printf(s->out,
		   ", \"mean_bytes\": %" PRId64 ", \"live_bytes\": %" PRId64 ", \"unsized_frees\": %" PRIu64
		   ", \"missed_frees\": %" PRIu64 ", \"untracked_allocs\": %" PRIu64,
		   snk_mem_mean(s, t), (int64_t)t->live_bytes, (uint64_t)t->unsized, (uint64_t)t->missed,
		   (uint64_t)t->untracked);
	if (t->pool_peak_bytes)
		out_printf(s->out,
			   ", \"pool\": {\"last_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRIu64
			   ", \"used_bytes\": %" PRIu64 "}",
			   (uint64_t)t->pool_bytes, (uint64_t)t->pool_peak_bytes, (uint64_t)t->pool_used_bytes);
}

static void put_text_or_null(struct snk *s, const char *key, const char *text, size_t len)
{
	out_printf(s->out, ", \"%s\": ", key);
	if (len)
		snk_put_json(s->out, text, len);
	else
		out_puts(s->out, "null");
}

static void put_holder(struct snk *s, const struct snk_held *t, const struct snk_holder *r)
{
	snk_put_json(s->out, r->name, r->len);
	out_puts(s->out, ", \"category\": ");
	if (r->h.cls)
		out_printf(s->out, "\"%s\"", mdl_category(r->h.cls));
	else
		out_puts(s->out, "null");
	out_puts(s->out, ", ");
	json_device(s, r->h.device);
	json_process(s, r->h.h.tgid);
	if (t->layers)
		put_text_or_null(s, "layer", r->layer, r->layer_len);
	if (t->scopes) {
		put_text_or_null(s, "scope", r->scope, r->scope_len);
		put_text_or_null(s, "array", r->label, r->label_len);
	}
	out_printf(s->out,
		   ", \"allocs\": %" PRIu64 ", \"frees\": %" PRIu64 ", \"start_bytes\": %" PRId64
		   ", \"alloc_bytes\": %" PRIu64 ", \"free_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRId64
		   ", \"live_bytes\": %" PRId64 ", \"live_blocks\": %" PRIu64 "}",
		   (uint64_t)r->h.allocs, (uint64_t)r->h.frees, snk_start_bytes(&r->h), (uint64_t)r->h.alloc_bytes,
		   (uint64_t)r->h.free_bytes, (int64_t)r->h.peak_bytes, (int64_t)r->h.live_bytes,
		   (uint64_t)r->h.live_blocks);
}

int json_held(struct snk *s, const struct snk_held *t)
{
	size_t i;

	json_close_tables(s);
	out_puts(s->out, ",\n  \"memory\": {\"devices\": [");
	for (i = 0; i < t->ndevices; i++) {
		out_puts(s->out, i ? ",\n    {" : "\n    {");
		put_mem_time(s, &t->devices[i]);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "], \"holders\": [");
	for (i = 0; i < t->nrows; i++) {
		out_puts(s->out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
		put_holder(s, t, &t->rows[i]);
	}
	out_puts(s->out, "]}");
	return 0;
}

static void put_iteration(struct snk *s, const struct snk_loop *l, const struct mxbpf_iteration *it)
{
	uint64_t ns;
	unsigned i;
	int part = snk_longer(l, it, &ns);

	out_printf(s->out, "{\"number\": %" PRIu64, (uint64_t)it->nr);
	json_process(s, it->h.tgid);
	out_printf(s->out,
		   ", \"thread\": %" PRIu32 ", \"start_unix_ns\": %" PRIu64 ", \"total_ns\": %" PRIu64
		   ", \"median_ns\": %" PRIu64,
		   it->tid, json_unix_ns(s, it->h.ts_ns), (uint64_t)it->dur_ns, l->p50_ns);
	if (part >= 0)
		out_printf(s->out, ", \"longer\": \"%s\", \"longer_ns\": %" PRIu64, snk_parts[part], ns);
	if (it->flags & MXBPF_ITERATION_PARTS) {
		out_printf(s->out, ", \"operators_ns\": %" PRIu64, (uint64_t)it->busy_ns);
		for (i = 0; i < MXBPF_STEP_PARTS; i++)
			out_printf(s->out, ", \"%s_ns\": %" PRIu64, snk_parts[i], (uint64_t)it->part_ns[i]);
	}
	out_puts(s->out, "}");
}

int json_iterations(struct snk *s, const struct snk_iterations *t)
{
	size_t i;

	json_close_tables(s);
	out_puts(s->out, ",\n  \"iterations\": {\"loops\": [");
	for (i = 0; i < t->nloops; i++) {
		out_puts(s->out, i ? ",\n    " : "\n    ");
		out_printf(s->out, "{\"told_by\": \"%s\"", snk_tolds[t->loops[i].told]);
		json_process(s, t->loops[i].tgid);
		snk_put_loop_json(s->out, &t->loops[i]);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "],\n    \"slowest\": [");
	for (i = 0; i < t->nslowest; i++) {
		out_puts(s->out, i ? ",\n    " : "\n    ");
		put_iteration(s, snk_loop_of(t, t->slowest[i]), t->slowest[i]);
	}
	out_puts(s->out, "]}");
	return 0;
}

static void put_part(struct snk *s, const struct mdl_life_part *p)
{
	out_printf(s->out,
		   "{\"count\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"min_ns\": %" PRIu64 ", \"max_ns\": %" PRIu64
		   ", \"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64 "}",
		   p->count, p->total_ns, p->min_ns, p->max_ns, mdl_life_percentile(p, 0.5),
		   mdl_life_percentile(p, 0.99));
}

static void put_name_or_null(struct snk *s, const char *key, uint64_t id)
{
	size_t len;
	const char *name = mdl_name(s->in->model, id, &len);

	out_printf(s->out, ", \"%s\": ", key);
	if (id)
		snk_put_json(s->out, name, len);
	else
		out_puts(s->out, "null");
}

static void put_wait(struct snk *s, const struct mxbpf_wait *w)
{
	out_printf(s->out, "{\"for\": \"%s\"", snk_wait_whats[w->what]);
	put_name_or_null(s, "operator", w->op_id);
	put_name_or_null(s, "within", w->within_id);
	put_name_or_null(s, "call", w->call_id);
	put_name_or_null(s, "wait", w->name_id);
	json_process(s, w->h.tgid);
	out_printf(s->out, ", \"count\": %llu, \"total_ns\": %llu, \"max_ns\": %llu}", w->count, w->total_ns,
		   w->max_ns);
}

int json_lives(struct snk *s, const struct snk_lives *t)
{
	size_t i, len;
	unsigned part;

	json_close_tables(s);
	out_puts(s->out, ",\n  \"life\": {\"operators\": [");
	for (i = 0; i < t->nrows; i++) {
		const struct mdl_life *r = t->rows[i];
		const char *name = mdl_name(s->in->model, r->name_id, &len);

		out_puts(s->out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
		snk_put_json(s->out, name, len);
		out_puts(s->out, ", ");
		json_device(s, r->device);
		json_process(s, r->tgid);
		for (part = 0; part < MXBPF_LIFE_PARTS; part++) {
			out_printf(s->out, ", \"%s\": ", snk_life_parts[part]);
			put_part(s, &r->parts[part]);
		}
		out_puts(s->out, "}");
	}
	out_puts(s->out, "], \"waits\": [");
	for (i = 0; i < t->nwaits; i++) {
		out_puts(s->out, i ? ",\n    " : "\n    ");
		put_wait(s, &t->waits[i]);
	}
	out_puts(s->out, "]}");
	return 0;
}

int json_kvs(struct snk *s, const struct snk_kvs *t)
{
	const struct snk_kv *r;

	json_close_tables(s);
	out_puts(s->out, ",\n  \"kvstore\": [");
	for (r = t->rows; r < t->rows + t->nrows; r++) {
		const struct mdl_row *calls = &r->kv->calls;

		out_puts(s->out, r > t->rows ? ",\n    {\"operation\": " : "\n    {\"operation\": ");
		snk_put_json(s->out, r->name, r->len);
		out_puts(s->out, ", \"key\": ");
		if (r->kv->flags & MXBPF_KV_NAMED)
			snk_put_json(s->out, r->key, r->key_len);
		else
			out_write(s->out, r->key, r->key_len);
		json_process(s, calls->tgid);
		out_printf(s->out,
			   ", \"calls\": %" PRIu64 ", \"values\": %" PRIu64 ", \"values_unknown\": %" PRIu64
			   ", \"sent_bytes\": %" PRIu64 ", \"received_bytes\": %" PRIu64 ", \"total_ns\": %" PRIu64
			   ", \"min_ns\": %" PRIu64 ", \"max_ns\": %" PRIu64 ", \"p50_ns\": %" PRIu64
			   ", \"p99_ns\": %" PRIu64 ", \"bytes_per_second\": %" PRIu64 "}",
			   calls->count, r->kv->values, r->kv->unknown, r->kv->sent_bytes, r->kv->received_bytes,
			   calls->total_ns, calls->min_ns, calls->max_ns, mdl_percentile(calls, 0.50),
			   mdl_percentile(calls, 0.99), snk_kv_rate(s, r->kv));
	}
	out_puts(s->out, "]");
	return 0;
}

int json_activities(struct snk *s, const struct snk_activities *t)
{
	const struct snk_activity *r;

	json_close_tables(s);
	out_puts(s->out, ",\n  \"activities\": [");
	for (r = t->rows; r < t->rows + t->nrows; r++) {
		out_puts(s->out, r > t->rows ? ",\n    {\"name\": " : "\n    {\"name\": ");
		snk_put_json(s->out, r->name, r->len);
		out_printf(s->out, ", \"kind\": \"%s\", \"gpu\": %" PRIu32, snk_activity_kinds[r->a.cls], r->a.device);
		json_process(s, r->a.h.tgid);
		out_printf(s->out,
			   ", \"count\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"min_ns\": %" PRIu64
			   ", \"max_ns\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"unlaunched\": %" PRIu64 "}",
			   (uint64_t)r->a.count, (uint64_t)r->a.total_ns, (uint64_t)r->a.min_ns, (uint64_t)r->a.max_ns,
			   (uint64_t)r->a.bytes, (uint64_t)r->a.unlaunched);
	}
	out_puts(s->out, "]");
	return 0;
}

/* What instants say beside their names. */
static const char *const kinds[MXBPF_INSTANT_WHATS] = {
	[MXBPF_INSTANT_MARKER] = "marker", [MXBPF_INSTANT_RUN] = "run",	      [MXBPF_INSTANT_STOP] = "stop",
	[MXBPF_INSTANT_PAUSE] = "pause",   [MXBPF_INSTANT_RESUME] = "resume", [MXBPF_INSTANT_DUMP] = "dump",
};

static void put_mark(struct snk *s, const struct snk_mark *r, bool first)
{
	out_puts(s->out, first ? "\n    {\"name\": " : ",\n    {\"name\": ");
	snk_put_json(s->out, r->name, r->len);
	json_domain(s, r->value ? r->value->name_id : r->instant->name_id);
	json_process(s, r->tgid);
	out_printf(s->out, ", \"count\": %" PRIu64, r->count);
}

int json_marks(struct snk *s, const struct snk_marks *t)
{
	const struct snk_mark *r;

	json_close_tables(s);
	out_puts(s->out, ",\n  \"values\": [");
	for (r = t->values; r < t->values + t->nvalues; r++) {
		put_mark(s, r, r == t->values);
		out_printf(s->out,
			   ", \"last\": %" PRIu64 ", \"min\": %" PRIu64 ", \"max\": %" PRIu64
			   ", \"last_unix_ns\": %" PRIu64 "}",
			   (uint64_t)r->value->value, (uint64_t)r->value->min, (uint64_t)r->value->max,
			   json_unix_ns(s, r->value->h.ts_ns));
	}
	out_puts(s->out, "],\n  \"instants\": [");
	for (r = t->instants; r < t->instants + t->ninstants; r++) {
		put_mark(s, r, r == t->instants);
		out_printf(s->out, ", \"what\": \"%s\"", kinds[r->instant->what]);
		if (r->instant->scope)
			json_optional(s, "scope", snk_scopes[r->instant->scope]);
		out_printf(s->out, ", \"first_unix_ns\": %" PRIu64 ", \"last_unix_ns\": %" PRIu64 "}",
			   json_unix_ns(s, r->instant->h.ts_ns), json_unix_ns(s, r->instant->last_ns));
	}
	out_puts(s->out, "]");
	return 0;
}
