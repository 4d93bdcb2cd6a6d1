// SPDX-License-Identifier: Apache-2.0
/* The tables for programs: exact integers, schema in share/report.schema.json. */
#include "base/syscall.h"
#include "mxbpf_kv.h"
#include "sched/sched.h"
#include "sink/priv.h"

#include <inttypes.h>
#include <string.h>

struct json {
	struct snk s;
	bool tables;  /* one stands already */
	bool several; /* processes: each has rows of its own */
	bool closed;  /* the tables have their end: what follows are members beside them */
};

static void put_text(struct snk *s, const char *key, const char *text)
{
	out_printf(s->out, "\"%s\": ", key);
	snk_put_json(s->out, text, strlen(text));
}

static void put_optional(struct snk *s, const char *key, const char *text)
{
	if (!text)
		return;
	out_puts(s->out, ", ");
	put_text(s, key, text);
}

static void put_target(struct snk *s)
{
	const struct mdl_session *ss = s->in->session;
	size_t i;

	out_printf(s->out, "  \"target\": {\"pid\": %" PRIu32 ", ", ss->pid);
	put_text(s, "comm", ss->comm);
	out_puts(s->out, ", ");
	put_text(s, "cmdline", ss->cmdline);
	out_puts(s->out, ", \"libraries\": [");
	for (i = 0; i < ss->nlibs; i++) {
		out_puts(s->out, i ? ",\n    {" : "\n    {");
		put_text(s, "path", ss->libs[i].path);
		out_puts(s->out, ", ");
		put_text(s, "build_id", ss->libs[i].build_id);
		out_puts(s->out, ", ");
		put_text(s, "runtime", ss->libs[i].runtime);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "]},\n");
}

/* Of a distributed job. */
static void put_processes(struct snk *s)
{
	const struct mdl_session *ss = s->in->session;
	const struct mdl_process *p;

	if (!ss->nprocesses)
		return;
	out_puts(s->out, "  \"processes\": [");
	for (p = ss->processes; p < ss->processes + ss->nprocesses; p++) {
		out_printf(s->out, "%s\n    {\"pid\": %" PRIu32 ", ", p > ss->processes ? "," : "", p->pid);
		put_text(s, "role", p->role);
		out_printf(s->out, ", \"rank\": %" PRIu32 ", \"of\": %" PRIu32 ", \"rank_known\": %s, ", p->rank, p->of,
			   p->by_order ? "false" : "true");
		put_text(s, "hostname", p->hostname);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "],\n");
}

static void put_probes(struct snk *s)
{
	const struct mdl_session *ss = s->in->session;
	size_t i;

	out_puts(s->out, "  \"probes\": [");
	for (i = 0; i < ss->nprobes; i++) {
		out_puts(s->out, i ? ",\n    {" : "\n    {");
		put_text(s, "name", ss->probes[i].name);
		out_puts(s->out, ", ");
		put_text(s, "status", ss->probes[i].status);
		out_puts(s->out, ", ");
		put_text(s, "reason", ss->probes[i].reason);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "],\n");
}

static int begin(struct snk *s)
{
	const struct mdl_session *ss = s->in->session;
	const uint64_t ungrouped = snk_counter(s->in->model, MXBPF_COUNTER_UNGROUPED);

	((struct json *)s)->several = mdl_nprocesses(s->in->model) > 1;
	out_puts(s->out, "{\n  \"schema_version\": 1,\n");
	put_target(s);
	put_processes(s);
	out_printf(s->out, "  \"window\": {\"start_unix_ns\": %" PRIu64 ", \"duration_ns\": %" PRIu64,
		   ss->start_unix_ns, ss->duration_ns);
	snk_put_window_json(s->out, ss);
	if (ss->incomplete)
		out_puts(s->out, ", \"incomplete\": true");
	if (ss->cut_records)
		out_printf(s->out, ", \"cut_records\": %" PRIu64, ss->cut_records);
	out_printf(s->out, "},\n  \"mode\": \"%s\",\n  \"loss\": {", ss->stats ? "stats" : "events");
	snk_put_loss_json(s->out, &ss->loss);
	out_printf(s->out, "},\n  \"late\": %" PRIu64 ", \"unwound\": %" PRIu64 ",\n",
		   snk_counter(s->in->model, MXBPF_COUNTER_LATE), snk_counter(s->in->model, MXBPF_COUNTER_UNWOUND));
	if (ungrouped && s->opts->by != SNK_BY_NAME)
		out_printf(s->out, "  \"ungrouped\": %" PRIu64 ",\n", ungrouped);
	put_probes(s);
	out_puts(s->out, "  \"tables\": {");
	return 0;
}

static void open_table(struct snk *s, const char *title)
{
	struct json *j = (struct json *)s;

	out_puts(s->out, j->tables ? ",\n    " : "\n    ");
	snk_put_json(s->out, title, strlen(title));
	out_puts(s->out, ": [");
	j->tables = true;
}

/* "-" of the tables for people is null here. */
static void put_device(struct snk *s, uint32_t device)
{
	char dev[48];

	mdl_device_name(s->in->session, device, dev);
	out_puts(s->out, "\"device\": ");
	if (MXBPF_DEVICE_TYPE(device))
		snk_put_json(s->out, dev, strlen(dev));
	else
		out_puts(s->out, "null");
}

static void put_process(struct snk *s, uint32_t tgid)
{
	if (((struct json *)s)->several)
		out_printf(s->out, ", \"pid\": %" PRIu32, tgid);
}

static void put_stack(struct snk *s, const char *stack, size_t len)
{
	const char *line, *comma = "";
	size_t n;

	out_puts(s->out, ", \"stack\": [");
	for (; snk_next_line(&stack, &len, &line, &n); comma = ", ") {
		out_puts(s->out, comma);
		snk_put_json(s->out, line, n);
	}
	out_puts(s->out, "]");
}

/* What rows of one name, or events, differ in. */
static void put_details(struct snk *s, uint64_t args_id, uint64_t stack_id, uint64_t layer_id)
{
	static const struct {
		enum snk_args_line line;
		const char *key;
	} lines[] = {
		{SNK_ARGS_TYPES, "types"}, {SNK_ARGS_OUT_DIMS, "output_shapes"}, {SNK_ARGS_OUT_TYPES, "output_types"}};
	const char *text;
	size_t len, i;

	if (snk_shows_shapes(s)) {
		text = snk_shapes(s->in->model, args_id, &len);
		out_puts(s->out, ", \"shapes\": ");
		out_write(s->out, text, len);
	}
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]) && snk_shows_outputs(s); i++) {
		text = snk_args_line(s->in->model, args_id, lines[i].line, &len);
		out_printf(s->out, ", \"%s\": ", lines[i].key);
		out_write(s->out, text, len);
	}
	if (snk_shows_stack(s)) {
		text = snk_stack(s->in->model, s->opts, stack_id, &len);
		put_stack(s, text, len);
	}
	if (snk_shows_layer(s)) {
		text = snk_layer(s->in->model, s->opts, layer_id, &len);
		out_puts(s->out, text ? ", \"layer\": " : ", \"layer\": null");
		if (text)
			snk_put_json(s->out, text, len);
	}
}

/* An event is a sum of one. */
static void put_account(struct snk *s, uint64_t on_cpu_ns, const struct mxbpf_account_sum *a)
{
	out_printf(s->out,
		   ", \"account\": {\"on_cpu_ns\": %" PRIu64 ", \"runq_ns\": %" PRIu64 ", \"blocked_ns\": %" PRIu64
		   ", \"elsewhere_ns\": %" PRIu64 ", \"nvcsw\": %" PRIu64 ", \"nivcsw\": %" PRIu64
		   ", \"minflt\": %" PRIu64 ", \"majflt\": %" PRIu64 ", \"migrated\": %" PRIu64 "}",
		   on_cpu_ns, (uint64_t)a->runq_ns, (uint64_t)a->blocked_ns, (uint64_t)a->elsewhere_ns,
		   (uint64_t)a->nvcsw, (uint64_t)a->nivcsw, (uint64_t)a->minflt, (uint64_t)a->majflt,
		   (uint64_t)a->migrated);
}

static void put_event_account(struct snk *s, const struct mxbpf_span *e)
{
	const struct mdl_row r = snk_event_row(e);

	if (!(e->flags & MXBPF_SPAN_ACCOUNT))
		return;
	out_printf(s->out, ", \"cpu\": %u, \"end_cpu\": %u", e->cpu, e->account.end_cpu);
	put_account(s, mdl_on_cpu_ns(&r), &r.account);
}

static uint64_t unix_ns(const struct snk *s, uint64_t mono_ns)
{
	return s->in->session->start_unix_ns + (mono_ns - s->in->session->start_mono_ns);
}

/* Of the program's own marks. */
static void put_domain(struct snk *s, uint64_t name_id)
{
	size_t len;
	const char *text = mdl_text(s->in->model, MXBPF_NAME_DOMAIN, name_id, &len);

	if (!text)
		return;
	out_puts(s->out, ", \"domain\": ");
	snk_put_json(s->out, text, len);
}

static void put_event(struct snk *s, const struct mxbpf_span *e, bool memory)
{
	const struct mdl_flops flops = mdl_flops_of(s->in->model, e);
	struct mxbpf_counter_sum counters = {0};
	const char *text;
	size_t len;

	mdl_counters_add(&counters, e);
	text = mdl_name(s->in->model, e->name_id, &len);
	snk_put_json(s->out, text, len);
	out_puts(s->out, ", ");
	put_device(s, e->device);
	put_process(s, e->h.tgid);
	put_domain(s, e->name_id);
	out_printf(s->out,
		   ", \"thread\": %" PRIu32 ", \"start_unix_ns\": %" PRIu64 ", \"total_ns\": %" PRIu64
		   ", \"self_ns\": %" PRIu64,
		   e->tid, unix_ns(s, e->h.ts_ns), (uint64_t)e->dur_ns, (uint64_t)e->self_ns);
	if (memory)
		out_printf(s->out, ", \"alloc_bytes\": %" PRId64 ", \"self_alloc_bytes\": %" PRId64,
			   (int64_t)e->alloc_bytes, (int64_t)e->self_alloc_bytes);
	put_event_account(s, e);
	snk_put_counters_json(s, &counters);
	put_details(s, e->args_id, e->stack_id, e->layer_id);
	snk_put_flops_json(s, &flops);
	if (e->flags & MXBPF_SPAN_UNWOUND)
		out_puts(s->out, ", \"unwound\": true");
	if (e->flags & MXBPF_SPAN_PART)
		out_puts(s->out, ", \"in_segment\": true");
	out_puts(s->out, "}");
}

static int event_table(struct snk *s, const struct snk_table *t)
{
	size_t i;

	open_table(s, t->title);
	for (i = 0; i < t->nspans; i++) {
		out_puts(s->out, i ? ",\n      {\"name\": " : "\n      {\"name\": ");
		put_event(s, &t->spans[i], t->memory);
	}
	out_puts(s->out, "]");
	return 0;
}

static void put_extent(struct snk *s, const struct mdl_row *r)
{
	if (r->last_ns)
		out_printf(s->out,
			   ", \"first_start_unix_ns\": %" PRIu64 ", \"last_end_unix_ns\": %" PRIu64
			   ", \"per_second\": %.3f",
			   unix_ns(s, r->first_ns), unix_ns(s, r->last_ns), mdl_rate(r));
}

static int class_table(struct snk *s, const struct snk_table *t)
{
	char label[SNK_LABEL_BYTES];
	const struct mdl_row *r;
	const char *name;
	size_t i, len;

	if (s->opts->by == SNK_BY_EVENT)
		return event_table(s, t);
	open_table(s, t->title);
	for (i = 0; i < t->nrows; i++) {
		r = t->rows[i];
		name = snk_row_name(s, r, label, &len);
		out_puts(s->out, i ? ",\n      {\"name\": " : "\n      {\"name\": ");
		snk_put_json(s->out, name, len);
		out_puts(s->out, ", ");
		put_device(s, r->device);
		put_process(s, r->tgid);
		if (s->opts->by == SNK_BY_THREAD && r->tid)
			out_printf(s->out, ", \"thread\": %" PRIu32, r->tid);
		put_domain(s, r->name_id);
		put_details(s, r->args_id, r->stack_id, r->layer_id);
		out_printf(s->out,
			   ", \"count\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"self_ns\": %" PRIu64
			   ", \"min_ns\": %" PRIu64 ", \"max_ns\": %" PRIu64 ", \"avg_ns\": %" PRIu64
			   ", \"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64,
			   r->count, r->total_ns, r->self_ns, r->min_ns, r->max_ns, r->total_ns / r->count,
			   mdl_percentile(r, 0.50), mdl_percentile(r, 0.99));
		if (r->nparts)
			out_printf(s->out, ", \"in_segments\": %" PRIu64, r->nparts);
		if (t->memory)
			out_printf(s->out, ", \"alloc_bytes\": %" PRId64 ", \"self_alloc_bytes\": %" PRId64,
				   r->alloc_bytes, r->self_alloc_bytes);
		put_extent(s, r);
		if (s->in->session->account)
			put_account(s, mdl_on_cpu_ns(r), &r->account);
		snk_put_counters_json(s, &r->counters);
		snk_put_flops_json(s, &r->flops);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "]");
	return 0;
}

static int mem_table(struct snk *s, const struct mdl_mem_row *const *rows, size_t n)
{
	size_t i;

	open_table(s, s->in->session->mem_title);
	for (i = 0; i < n; i++) {
		out_puts(s->out, i ? ",\n      {" : "\n      {");
		put_device(s, rows[i]->device);
		put_process(s, rows[i]->tgid);
		out_printf(s->out,
			   ", \"allocs\": %" PRIu64 ", \"frees\": %" PRIu64 ", \"alloc_bytes\": %" PRIu64
			   ", \"free_bytes\": %" PRIu64 ", \"live_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRIu64 "}",
			   rows[i]->allocs, rows[i]->frees, rows[i]->alloc_bytes, rows[i]->free_bytes,
			   rows[i]->live_bytes, rows[i]->peak_bytes);
	}
	out_puts(s->out, "]");
	return 0;
}

static void close_tables(struct snk *s)
{
	struct json *j = (struct json *)s;

	if (!j->closed)
		out_puts(s->out, "\n  }");
	j->closed = true;
}

static void put_mem_time(struct snk *s, const struct mxbpf_mem_time *t)
{
	put_device(s, t->device);
	put_process(s, t->h.tgid);
	out_printf(s->out, ", \"peak_bytes\": %" PRId64 ", \"peak_unix_ns\": ", (int64_t)t->peak_bytes);
	if (t->peak_ns)
		out_printf(s->out, "%" PRIu64, unix_ns(s, t->peak_ns));
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
	put_device(s, r->h.device);
	put_process(s, r->h.h.tgid);
	if (t->layers)
		put_text_or_null(s, "layer", r->layer, r->layer_len);
	if (t->scopes) {
		put_text_or_null(s, "scope", r->scope, r->scope_len);
		put_text_or_null(s, "array", r->label, r->label_len);
	}
	out_printf(s->out,
		   ", \"allocs\": %" PRIu64 ", \"frees\": %" PRIu64 ", \"alloc_bytes\": %" PRIu64
		   ", \"free_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRId64 ", \"live_bytes\": %" PRId64
		   ", \"live_blocks\": %" PRIu64 "}",
		   (uint64_t)r->h.allocs, (uint64_t)r->h.frees, (uint64_t)r->h.alloc_bytes, (uint64_t)r->h.free_bytes,
		   (int64_t)r->h.peak_bytes, (int64_t)r->h.live_bytes, (uint64_t)r->h.live_blocks);
}

static int held(struct snk *s, const struct snk_held *t)
{
	size_t i;

	close_tables(s);
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

static int joins(struct snk *s, const struct snk_joins *t)
{
	const struct snk_join *r;

	close_tables(s);
	out_printf(s->out, ",\n  \"backward\": {\"unjoined\": %" PRIu64 ", \"operators\": [", t->unjoined);
	for (r = t->rows; r < t->rows + t->nrows; r++) {
		out_puts(s->out, r > t->rows ? ",\n    {\"name\": " : "\n    {\"name\": ");
		snk_put_json(s->out, r->name, r->len);
		put_process(s, r->j.h.tgid);
		out_printf(s->out,
			   ", \"count\": %llu, \"total_ns\": %llu, \"backward_count\": %llu, "
			   "\"backward_ns\": %llu, \"deeper_count\": %llu, \"deeper_ns\": %llu}",
			   r->j.count, r->j.total_ns, r->j.bwd_count, r->j.bwd_total_ns, r->j.deep_count,
			   r->j.deep_total_ns);
	}
	out_puts(s->out, "]}");
	return 0;
}

/* Only with --sched. */
static void put_slow_by(struct snk *s, const char *key, const struct mxbpf_slow_by *by)
{
	if (!by->ns || by->what >= MXBPF_SCHED_WHATS)
		return;
	out_printf(s->out, ", \"%s\": {\"ns\": %" PRIu64 ", \"what\": \"%s\", \"thread\": %" PRIu32 ", \"comm\": ", key,
		   (uint64_t)by->ns, sched_what_name(by->what), by->tid);
	snk_put_json(s->out, by->comm, strnlen(by->comm, sizeof(by->comm)));
	out_puts(s->out, "}");
}

static int slow(struct snk *s, const struct snk_slow *t)
{
	const struct mdl_slow *r;
	char why[SNK_WHY_BYTES];
	const char *name;
	size_t len;

	close_tables(s);
	out_puts(s->out, ",\n  \"slow\": [");
	for (r = t->rows; r < t->rows + t->nrows; r++) {
		const struct mxbpf_span e = {
			.dur_ns = r->span.dur_ns,
			.cpu = r->span.cpu,
			.flags = MXBPF_SPAN_ACCOUNT,
			.account = r->span.account,
		};

		name = mdl_name(s->in->model, r->row->name_id, &len);
		out_puts(s->out, r > t->rows ? ",\n    {\"name\": " : "\n    {\"name\": ");
		snk_put_json(s->out, name, len);
		out_puts(s->out, ", ");
		put_device(s, r->span.device);
		put_process(s, r->span.h.tgid);
		out_printf(s->out,
			   ", \"thread\": %" PRIu32 ", \"start_unix_ns\": %" PRIu64 ", \"total_ns\": %" PRIu64
			   ", \"median_ns\": %" PRIu64 ", \"cause\": \"%s\", \"cause_ns\": %" PRIu64 ", \"why\": ",
			   r->span.tid, unix_ns(s, r->span.h.ts_ns), (uint64_t)r->span.dur_ns, r->median_ns,
			   snk_causes[r->cause], r->cause_ns);
		snk_why(s->in->model, r, why);
		snk_put_json(s->out, why, strlen(why));
		put_slow_by(s, "kept_by", &r->span.kept);
		put_slow_by(s, "slept", &r->span.slept);
		put_event_account(s, &e);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "]");
	return 0;
}

static int samples(struct snk *s, const struct snk_samples *t)
{
	const struct snk_sample *r;

	close_tables(s);
	out_printf(s->out, ",\n  \"samples\": {\"hz\": %" PRIu32 ", \"count\": %" PRIu64 ", \"ran_in\": [",
		   s->in->session->sample_hz, t->count);
	for (r = t->rows; r < t->rows + t->nrows; r++) {
		out_puts(s->out, r > t->rows ? ",\n    {\"name\": " : "\n    {\"name\": ");
		snk_put_json(s->out, r->name, r->len);
		out_puts(s->out, ", \"table\": ");
		if (r->title)
			snk_put_json(s->out, r->title, strlen(r->title));
		else
			out_puts(s->out, "null");
		put_process(s, r->tgid);
		out_printf(s->out, ", \"count\": %" PRIu64 "}", r->count);
	}
	out_puts(s->out, "]}");
	return 0;
}

static void put_open(struct snk *s, const struct mxbpf_open *o)
{
	const char *thread = mdl_thread_name(s->in->model, o->h.tgid, o->tid), *name;
	size_t len;

	name = mdl_name(s->in->model, o->name_id, &len);
	snk_put_json(s->out, name, len);
	put_domain(s, o->name_id);
	out_printf(s->out, ", \"class\": \"%s\", ", mdl_category(o->cls));
	put_device(s, o->device);
	out_printf(s->out, ", \"pid\": %" PRIu32 ", \"thread\": %" PRIu32, o->h.tgid, o->tid);
	put_optional(s, "thread_name", thread);
	out_printf(s->out, ", \"start_unix_ns\": %" PRIu64 ", \"open_ns\": %" PRIu64, unix_ns(s, o->h.ts_ns),
		   (uint64_t)o->open_ns);
	if (o->flags & MXBPF_SPAN_ASYNC)
		out_puts(s->out, ", \"async\": true");
	if (o->state)
		out_printf(s->out, ", \"state\": \"%c\"", o->state);
	put_optional(s, "syscall", syscall_name(o->syscall));
	put_optional(s, "wchan", mdl_text(s->in->model, MXBPF_NAME_WCHAN, o->wchan_id, NULL));
	put_details(s, o->args_id, o->stack_id, o->layer_id);
	out_puts(s->out, "}");
}

static int opens(struct snk *s, const struct mxbpf_open *rows, size_t n)
{
	size_t i;

	close_tables(s);
	out_puts(s->out, ",\n  \"open\": [");
	for (i = 0; i < n; i++) {
		out_puts(s->out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
		put_open(s, &rows[i]);
	}
	out_puts(s->out, "]");
	return 0;
}

static void put_parties(struct snk *s, const struct snk_sched *r, enum mxbpf_sched_what what)
{
	const struct mxbpf_agg_sched *a;

	out_printf(s->out, ", \"%s\": [", sched_what_name(what));
	for (a = r->of[what]; a < r->of[what] + r->n[what]; a++) {
		out_puts(s->out, a > r->of[what] ? ", {\"comm\": " : "{\"comm\": ");
		snk_put_json(s->out, a->comm, strnlen(a->comm, sizeof(a->comm)));
		out_printf(s->out, ", \"own\": %s, \"count\": %llu, \"ns\": %llu}", a->own ? "true" : "false", a->count,
			   a->total_ns);
	}
	out_puts(s->out, "]");
}

static int sched(struct snk *s, const struct snk_scheds_table *t)
{
	const struct snk_sched *r;
	unsigned what;

	close_tables(s);
	out_puts(s->out, ",\n  \"off_cpu\": {\"calls\": [");
	for (r = t->rows; r < t->rows + t->nrows; r++) {
		out_puts(s->out, r > t->rows ? ",\n    {\"name\": " : "\n    {\"name\": ");
		if (r->cls)
			snk_put_json(s->out, r->name, r->len);
		else
			out_puts(s->out, "null");
		out_puts(s->out, ", \"category\": ");
		if (r->cls)
			out_printf(s->out, "\"%s\"", mdl_category((enum mxbpf_class)r->cls));
		else
			out_puts(s->out, "null");
		put_process(s, r->tgid);
		out_printf(s->out, ", \"off_cpu_ns\": %" PRIu64, r->off_ns);
		for (what = 0; what < MXBPF_SCHED_KEPT_BY; what++)
			out_printf(s->out, ", \"%s_ns\": %" PRIu64, sched_what_name((enum mxbpf_sched_what)what),
				   snk_sched_ns(r, (enum mxbpf_sched_what)what));
		put_parties(s, r, MXBPF_SCHED_KEPT_BY);
		put_parties(s, r, MXBPF_SCHED_WOKEN_BY);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "]}");
	return 0;
}

static void put_loop(struct snk *s, const struct snk_loop *l)
{
	unsigned i;

	out_printf(s->out, "{\"told_by\": \"%s\"", snk_tolds[l->told]);
	put_process(s, l->tgid);
	out_printf(s->out,
		   ", \"count\": %" PRIu64 ", \"missing\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"min_ns\": %" PRIu64
		   ", \"max_ns\": %" PRIu64 ", \"avg_ns\": %" PRIu64 ", \"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64,
		   l->count, l->missing, l->total_ns, l->min_ns, l->max_ns, l->total_ns / (l->count - l->missing),
		   l->p50_ns, l->p99_ns);
	if (l->known) {
		out_printf(s->out,
			   ",\n      \"parts\": {\"count\": %" PRIu64 ", \"total_ns\": %" PRIu64
			   ", \"operators_ns\": %" PRIu64,
			   l->known, l->known_ns, l->busy_ns);
		for (i = 0; i < MXBPF_STEP_PARTS; i++)
			out_printf(s->out,
				   ",\n        \"%s\": {\"total_ns\": %" PRIu64 ", \"p50_ns\": %" PRIu64
				   ", \"max_ns\": %" PRIu64 "}",
				   snk_parts[i], l->parts[i].total_ns, l->parts[i].p50_ns, l->parts[i].max_ns);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "}");
}

static void put_iteration(struct snk *s, const struct snk_loop *l, const struct mxbpf_iteration *it)
{
	uint64_t ns;
	unsigned i;
	int part = snk_longer(l, it, &ns);

	out_printf(s->out, "{\"number\": %" PRIu64, (uint64_t)it->nr);
	put_process(s, it->h.tgid);
	out_printf(s->out,
		   ", \"thread\": %" PRIu32 ", \"start_unix_ns\": %" PRIu64 ", \"total_ns\": %" PRIu64
		   ", \"median_ns\": %" PRIu64,
		   it->tid, unix_ns(s, it->h.ts_ns), (uint64_t)it->dur_ns, l->p50_ns);
	if (part >= 0)
		out_printf(s->out, ", \"longer\": \"%s\", \"longer_ns\": %" PRIu64, snk_parts[part], ns);
	if (it->flags & MXBPF_ITERATION_PARTS) {
		out_printf(s->out, ", \"operators_ns\": %" PRIu64, (uint64_t)it->busy_ns);
		for (i = 0; i < MXBPF_STEP_PARTS; i++)
			out_printf(s->out, ", \"%s_ns\": %" PRIu64, snk_parts[i], (uint64_t)it->part_ns[i]);
	}
	out_puts(s->out, "}");
}

static int iterations(struct snk *s, const struct snk_iterations *t)
{
	size_t i;

	close_tables(s);
	out_puts(s->out, ",\n  \"iterations\": {\"loops\": [");
	for (i = 0; i < t->nloops; i++) {
		out_puts(s->out, i ? ",\n    " : "\n    ");
		put_loop(s, &t->loops[i]);
	}
	out_puts(s->out, "],\n    \"slowest\": [");
	for (i = 0; i < t->nslowest; i++) {
		out_puts(s->out, i ? ",\n    " : "\n    ");
		put_iteration(s, snk_loop_of(t, t->slowest[i]), t->slowest[i]);
	}
	out_puts(s->out, "]}");
	return 0;
}

static int teams(struct snk *s, const struct snk_teams *t)
{
	const struct snk_team *r;

	close_tables(s);
	out_printf(s->out, ",\n  \"teams\": {\"cpus\": %u, \"operators\": [", s->in->session->team_cpus);
	for (r = t->rows; r < t->rows + t->nrows; r++) {
		out_puts(s->out, r > t->rows ? ",\n    {\"name\": " : "\n    {\"name\": ");
		if (r->t.cls)
			snk_put_json(s->out, r->name, r->len);
		else
			out_puts(s->out, "null");
		put_process(s, r->t.h.tgid);
		out_printf(s->out,
			   ", \"regions\": %llu, \"threads\": %u, \"wall_ns\": %llu, \"threads_ns\": %llu, "
			   "\"cpu_ns\": %llu, \"runq_ns\": %llu, \"work_ns\": %llu, \"late_ns\": %llu, "
			   "\"late_runq_ns\": %llu, \"barrier_ns\": %llu, \"spun_ns\": %llu, \"migrated\": %s}",
			   r->t.regions, r->t.threads, r->t.dur_ns, r->t.threads_ns, r->t.cpu_ns, r->t.runq_ns,
			   r->t.work_ns, r->t.late_ns, r->t.late_runq_ns, r->t.barrier_ns, r->t.spun_ns,
			   r->t.flags & MXBPF_TEAM_MIGRATED ? "true" : "false");
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
	put_process(s, w->h.tgid);
	out_printf(s->out, ", \"count\": %llu, \"total_ns\": %llu, \"max_ns\": %llu}", w->count, w->total_ns,
		   w->max_ns);
}

static int lives(struct snk *s, const struct snk_lives *t)
{
	size_t i, len;
	unsigned part;

	close_tables(s);
	out_puts(s->out, ",\n  \"life\": {\"operators\": [");
	for (i = 0; i < t->nrows; i++) {
		const struct mdl_life *r = t->rows[i];
		const char *name = mdl_name(s->in->model, r->name_id, &len);

		out_puts(s->out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
		snk_put_json(s->out, name, len);
		out_puts(s->out, ", ");
		put_device(s, r->device);
		put_process(s, r->tgid);
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

static int kvs(struct snk *s, const struct snk_kvs *t)
{
	const struct snk_kv *r;

	close_tables(s);
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
		put_process(s, calls->tgid);
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

/* What instants say beside their names. */
static const char *const kinds[MXBPF_INSTANT_WHATS] = {
	[MXBPF_INSTANT_MARKER] = "marker", [MXBPF_INSTANT_RUN] = "run",	      [MXBPF_INSTANT_STOP] = "stop",
	[MXBPF_INSTANT_PAUSE] = "pause",   [MXBPF_INSTANT_RESUME] = "resume", [MXBPF_INSTANT_DUMP] = "dump",
};

static void put_mark(struct snk *s, const struct snk_mark *r, bool first)
{
	out_puts(s->out, first ? "\n    {\"name\": " : ",\n    {\"name\": ");
	snk_put_json(s->out, r->name, r->len);
	put_domain(s, r->value ? r->value->name_id : r->instant->name_id);
	put_process(s, r->tgid);
	out_printf(s->out, ", \"count\": %" PRIu64, r->count);
}

static int marks(struct snk *s, const struct snk_marks *t)
{
	const struct snk_mark *r;

	close_tables(s);
	out_puts(s->out, ",\n  \"values\": [");
	for (r = t->values; r < t->values + t->nvalues; r++) {
		put_mark(s, r, r == t->values);
		out_printf(s->out,
			   ", \"last\": %" PRIu64 ", \"min\": %" PRIu64 ", \"max\": %" PRIu64
			   ", \"last_unix_ns\": %" PRIu64 "}",
			   (uint64_t)r->value->value, (uint64_t)r->value->min, (uint64_t)r->value->max,
			   unix_ns(s, r->value->h.ts_ns));
	}
	out_puts(s->out, "],\n  \"instants\": [");
	for (r = t->instants; r < t->instants + t->ninstants; r++) {
		put_mark(s, r, r == t->instants);
		out_printf(s->out, ", \"what\": \"%s\"", kinds[r->instant->what]);
		if (r->instant->scope)
			put_optional(s, "scope", snk_scopes[r->instant->scope]);
		out_printf(s->out, ", \"first_unix_ns\": %" PRIu64 ", \"last_unix_ns\": %" PRIu64 "}",
			   unix_ns(s, r->instant->h.ts_ns), unix_ns(s, r->instant->last_ns));
	}
	out_puts(s->out, "]");
	return 0;
}

static int end(struct snk *s)
{
	uint64_t not_shown = snk_events_not_shown(s);

	close_tables(s);
	if (not_shown)
		out_printf(s->out, ",\n  \"events_not_shown\": %" PRIu64, not_shown);
	snk_put_machine_json(s);
	out_puts(s->out, "\n}\n");
	return 0;
}

const struct snk_ops snk_json = {
	.name = "json",
	.help = "exact integers (ns, bytes); schema in report.schema.json",
	.state_bytes = sizeof(struct json),
	.by_process = true,
	.begin = begin,
	.details = true,
	.table = class_table,
	.marks = marks,
	.mem = mem_table,
	.held = held,
	.joins = joins,
	.teams = teams,
	.lives = lives,
	.kvs = kvs,
	.slow = slow,
	.samples = samples,
	.iterations = iterations,
	.opens = opens,
	.sched = sched,
	.end = end,
};
