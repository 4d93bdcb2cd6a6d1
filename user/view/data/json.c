// SPDX-License-Identifier: Apache-2.0
/* The tables for programs: exact integers, schema by mxbpf --generate schema. */
#include "base/syscall.h"
#include "feature/counters/counters.h"
#include "feature/flops/flops.h"
#include "feature/marks/marks.h"
#include "view/data/json.h"

#include <inttypes.h>
#include <string.h>

void json_text(struct view *s, const char *key, const char *text)
{
	out_printf(s->out, "\"%s\": ", key);
	view_put_json(s->out, text, strlen(text));
}

void json_optional(struct view *s, const char *key, const char *text)
{
	if (!text)
		return;
	out_puts(s->out, ", ");
	json_text(s, key, text);
}

static void put_target(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	const struct mdl_target target = mdl_target_of(ss);
	size_t i;

	out_printf(s->out, "  \"target\": {\"pid\": %" PRIu32 ", ", target.pid);
	json_text(s, "comm", target.comm);
	out_puts(s->out, ", ");
	json_text(s, "cmdline", target.cmdline);
	json_optional(s, "agent", ss->agent_route);
	out_puts(s->out, ", \"libraries\": [");
	for (i = 0; i < ss->nlibs; i++) {
		out_puts(s->out, i ? ",\n    {" : "\n    {");
		json_text(s, "path", ss->libs[i].path);
		out_puts(s->out, ", ");
		json_text(s, "build_id", ss->libs[i].build_id);
		out_puts(s->out, ", ");
		json_text(s, "runtime", ss->libs[i].runtime);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "]},\n");
}

/* Of a distributed job. */
static void put_processes(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	const struct mdl_process *p;

	if (!ss->nprocesses)
		return;
	out_puts(s->out, "  \"processes\": [");
	for (p = ss->processes; p < ss->processes + ss->nprocesses; p++) {
		out_printf(s->out, "%s\n    {\"pid\": %" PRIu32 ", ", p > ss->processes ? "," : "", p->pid);
		json_text(s, "role", p->role);
		out_printf(s->out, ", \"rank\": %" PRIu32 ", \"of\": %" PRIu32 ", \"rank_known\": %s, ", p->rank, p->of,
			   p->by_order ? "false" : "true");
		json_text(s, "hostname", p->hostname);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "],\n");
}

static void put_probes(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	size_t i;

	out_puts(s->out, "  \"probes\": [");
	for (i = 0; i < ss->nprobes; i++) {
		out_puts(s->out, i ? ",\n    {" : "\n    {");
		json_text(s, "name", ss->probes[i].name);
		out_puts(s->out, ", ");
		json_text(s, "status", ss->probes[i].status);
		out_puts(s->out, ", ");
		json_text(s, "reason", ss->probes[i].reason);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "],\n");
}

static int begin(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	const uint64_t ungrouped = view_tally(s->in->model, MXBPF_TALLY_UNGROUPED);
	const uint64_t moments = view_tally(s->in->model, MXBPF_TALLY_MOMENTS);
	const uint64_t unkeyed = view_tally(s->in->model, MXBPF_TALLY_UNKEYED);

	((struct json *)s)->several =
		mdl_nprocesses(s->in->model) > 1 || ss->shown_role || s->opts->by == VIEW_BY_PROCESS;
	out_puts(s->out, "{\n  \"schema_version\": 1,\n");
	put_target(s);
	put_processes(s);
	out_printf(s->out, "  \"window\": {\"start_unix_ns\": %" PRIu64 ", \"duration_ns\": %" PRIu64,
		   ss->start_unix_ns, ss->duration_ns);
	view_put_window_json(s->out, ss);
	if (ss->incomplete)
		out_puts(s->out, ", \"incomplete\": true");
	if (ss->cut_records)
		out_printf(s->out, ", \"cut_records\": %" PRIu64, ss->cut_records);
	out_printf(s->out, "},\n  \"mode\": \"%s\",\n  \"loss\": {", ss->stats ? "stats" : "events");
	view_put_loss_json(s->out, &ss->loss);
	out_puts(s->out, "}");
	view_put_sources_json(s->out, ss, ",\n  ");
	out_printf(s->out, ",\n  \"late\": %" PRIu64 ", \"unwound\": %" PRIu64 ",\n",
		   view_tally(s->in->model, MXBPF_TALLY_LATE), view_tally(s->in->model, MXBPF_TALLY_UNWOUND));
	if (moments)
		out_printf(s->out, "  \"moments\": %" PRIu64 ",\n", moments);
	if (unkeyed)
		out_printf(s->out, "  \"unkeyed\": %" PRIu64 ",\n", unkeyed);
	if (ungrouped && s->opts->by != VIEW_BY_NAME)
		out_printf(s->out, "  \"ungrouped\": %" PRIu64 ",\n", ungrouped);
	put_probes(s);
	out_puts(s->out, "  \"tables\": {");
	return 0;
}

void json_open_table(struct view *s, const char *title)
{
	struct json *j = (struct json *)s;

	out_puts(s->out, j->tables ? ",\n    " : "\n    ");
	view_put_json(s->out, title, strlen(title));
	out_puts(s->out, ": [");
	j->tables = true;
}

/* "-" of the tables for people is null here. */
void json_put_device(struct view *s, uint32_t device)
{
	char dev[48];

	mdl_device_name(s->in->session, device, dev);
	if (MXBPF_DEVICE_TYPE(device))
		view_put_json(s->out, dev, strlen(dev));
	else
		out_puts(s->out, "null");
}

void json_device(struct view *s, uint32_t device)
{
	out_puts(s->out, "\"device\": ");
	json_put_device(s, device);
}

void json_process(struct view *s, uint32_t tgid)
{
	if (((struct json *)s)->several)
		out_printf(s->out, ", \"pid\": %" PRIu32, tgid);
}

static void put_stack(struct view *s, const char *stack, size_t len)
{
	const char *line, *comma = "";
	size_t n;

	out_puts(s->out, ", \"stack\": [");
	for (; view_next_line(&stack, &len, &line, &n); comma = ", ") {
		out_puts(s->out, comma);
		view_put_json(s->out, line, n);
	}
	out_puts(s->out, "]");
}

/* What rows of one name, or events, differ in. */
static void put_details(struct view *s, uint64_t args_id, uint64_t stack_id, uint64_t layer_id)
{
	static const struct {
		enum view_args_line line;
		const char *key;
	} lines[] = {{VIEW_ARGS_TYPES, "types"},
		     {VIEW_ARGS_OUT_DIMS, "output_shapes"},
		     {VIEW_ARGS_OUT_TYPES, "output_types"}};
	const char *text;
	size_t len, i;

	if (view_shows_shapes(s)) {
		text = view_shapes(s->in->model, args_id, &len);
		out_puts(s->out, ", \"shapes\": ");
		out_write(s->out, text, len);
	}
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]) && view_shows_outputs(s); i++) {
		text = view_args_line(s->in->model, args_id, lines[i].line, &len);
		out_printf(s->out, ", \"%s\": ", lines[i].key);
		out_write(s->out, text, len);
	}
	if (view_shows_stack(s)) {
		text = view_stack(s->in->model, s->opts, stack_id, &len);
		put_stack(s, text, len);
	}
	if (view_shows_layer(s)) {
		text = view_layer(s->in->model, s->opts, layer_id, &len);
		out_puts(s->out, text ? ", \"layer\": " : ", \"layer\": null");
		if (text)
			view_put_json(s->out, text, len);
	}
}

static void put_account(struct view *s, const struct mdl_row *r)
{
	const struct view_account account = view_account_of(r);
	const struct view_list list = {.faults = !s->in->session->no_faults};

	out_puts(s->out, ", \"account\": ");
	json_put_object(s, view_account_columns, &list, &account);
}

static void put_cpu(struct view *s, const char *key, uint16_t cpu)
{
	if (cpu == MXBPF_CPU_NONE)
		out_printf(s->out, ", \"%s\": null", key);
	else
		out_printf(s->out, ", \"%s\": %u", key, cpu);
}

static void put_event_account(struct view *s, const struct mxbpf_span *e)
{
	const struct mdl_row r = view_event_row(e);

	if (!(e->flags & MXBPF_SPAN_ACCOUNT))
		return;
	put_cpu(s, "cpu", e->cpu);
	put_cpu(s, "end_cpu", e->account.end_cpu);
	put_account(s, &r);
}

uint64_t json_unix_ns(const struct view *s, uint64_t mono_ns)
{
	return s->in->session->start_unix_ns + (mono_ns - s->in->session->start_mono_ns);
}

/* Of the program's own marks. */
void json_domain(struct view *s, uint64_t name_id)
{
	size_t len;
	const char *text = mdl_text(s->in->model, MXBPF_NAME_DOMAIN, name_id, &len);

	if (!text)
		return;
	out_puts(s->out, ", \"domain\": ");
	view_put_json(s->out, text, len);
}

static void put_event(struct view *s, const struct mxbpf_span *e, bool memory)
{
	const struct mdl_flops flops = flops_of(s->in->model, e);
	struct mxbpf_counter_sum counters = {0};
	const char *text;
	size_t len;

	counters_add(&counters, e);
	text = mdl_name(s->in->model, e->name_id, &len);
	view_put_json(s->out, text, len);
	out_puts(s->out, ", ");
	json_device(s, e->device);
	json_process(s, e->h.tgid);
	json_domain(s, e->name_id);
	out_printf(s->out,
		   ", \"thread\": %" PRIu32 ", \"start_unix_ns\": %" PRIu64 ", \"total_ns\": %" PRIu64
		   ", \"self_ns\": %" PRIu64,
		   e->tid, json_unix_ns(s, e->h.ts_ns), (uint64_t)e->dur_ns, (uint64_t)e->self_ns);
	if (memory)
		out_printf(s->out, ", \"alloc_bytes\": %" PRId64 ", \"self_alloc_bytes\": %" PRId64,
			   (int64_t)e->alloc_bytes, (int64_t)e->self_alloc_bytes);
	put_event_account(s, e);
	view_put_counters_json(s, &counters);
	put_details(s, e->args_id, e->stack_id, e->layer_id);
	view_put_flops_json(s, &flops);
	if (e->flags & MXBPF_SPAN_UNWOUND)
		out_puts(s->out, ", \"unwound\": true");
	if (e->flags & MXBPF_SPAN_PART)
		out_puts(s->out, ", \"in_segment\": true");
	if (e->bulk)
		out_puts(s->out, ", \"bulk\": true");
	if (mxbpf_traits(e) & MXBPF_TRAIT_USER)
		out_puts(s->out, ", \"annotation\": true");
	out_puts(s->out, "}");
}

static int event_table(struct view *s, const struct view_table *t)
{
	size_t i;

	json_open_table(s, t->title);
	for (i = 0; i < t->nspans; i++) {
		out_puts(s->out, i ? ",\n      {\"name\": " : "\n      {\"name\": ");
		put_event(s, &t->spans[i], t->memory);
	}
	out_puts(s->out, "]");
	return 0;
}

static void put_extent(struct view *s, const struct mdl_row *r)
{
	if (r->last_ns)
		out_printf(s->out,
			   ", \"first_start_unix_ns\": %" PRIu64 ", \"last_end_unix_ns\": %" PRIu64
			   ", \"per_second\": %.3f",
			   json_unix_ns(s, r->first_ns), json_unix_ns(s, r->last_ns), marks_rate(r));
}

static int class_table(struct view *s, const struct view_table *t)
{
	char label[VIEW_LABEL_BYTES];
	const struct mdl_row *r;
	const char *name;
	size_t i, len;

	if (s->opts->by == VIEW_BY_EVENT)
		return event_table(s, t);
	json_open_table(s, t->title);
	for (i = 0; i < t->nrows; i++) {
		r = t->rows[i];
		name = view_row_name(s, r, label, &len);
		out_puts(s->out, i ? ",\n      {\"name\": " : "\n      {\"name\": ");
		view_put_json(s->out, name, len);
		out_puts(s->out, ", ");
		json_device(s, r->device);
		json_process(s, r->tgid);
		if (s->opts->by == VIEW_BY_THREAD && r->tid)
			out_printf(s->out, ", \"thread\": %" PRIu32, r->tid);
		json_domain(s, r->name_id);
		put_details(s, r->args_id, r->stack_id, r->layer_id);
		out_printf(s->out,
			   ", \"count\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"self_ns\": %" PRIu64
			   ", \"min_ns\": %" PRIu64 ", \"max_ns\": %" PRIu64 ", \"avg_ns\": %" PRIu64
			   ", \"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64,
			   r->count, r->total_ns, r->self_ns, r->min_ns, r->max_ns, mdl_row_avg(r),
			   mdl_percentile(r, 0.50), mdl_percentile(r, 0.99));
		if (r->nparts)
			out_printf(s->out, ", \"in_segments\": %" PRIu64, r->nparts);
		if (r->nbulks)
			out_printf(s->out, ", \"bulks\": %" PRIu64, r->nbulks);
		if (view_is_annotation(s, r))
			out_puts(s->out, ", \"annotation\": true");
		if (t->memory)
			out_printf(s->out, ", \"alloc_bytes\": %" PRId64 ", \"self_alloc_bytes\": %" PRId64,
				   r->alloc_bytes, r->self_alloc_bytes);
		put_extent(s, r);
		if (s->in->session->account)
			put_account(s, r);
		view_put_counters_json(s, &r->counters);
		view_put_flops_json(s, &r->flops);
		out_puts(s->out, "}");
	}
	out_puts(s->out, "]");
	return 0;
}

void json_close_tables(struct view *s)
{
	struct json *j = (struct json *)s;

	if (!j->closed || j->member)
		out_puts(s->out, j->closed ? "}" : "\n  }");
	j->closed = true;
	j->member = NULL;
}

static void put_open(struct view *s, const struct mxbpf_open *o)
{
	const char *thread = mdl_thread_name(s->in->model, o->h.tgid, o->tid), *name;
	size_t len;

	name = mdl_name(s->in->model, o->name_id, &len);
	view_put_json(s->out, name, len);
	json_domain(s, o->name_id);
	out_printf(s->out, ", \"class\": \"%s\", ", mdl_category(o->cls));
	json_device(s, o->device);
	out_printf(s->out, ", \"pid\": %" PRIu32 ", \"thread\": %" PRIu32, o->h.tgid, o->tid);
	json_optional(s, "thread_name", thread);
	out_printf(s->out, ", \"start_unix_ns\": %" PRIu64 ", \"open_ns\": %" PRIu64, json_unix_ns(s, o->h.ts_ns),
		   (uint64_t)o->open_ns);
	if (o->flags & MXBPF_SPAN_ASYNC)
		out_puts(s->out, ", \"async\": true");
	if (o->state)
		out_printf(s->out, ", \"state\": \"%c\"", o->state);
	json_optional(s, "syscall", syscall_name(o->syscall));
	json_optional(s, "wchan", mdl_text(s->in->model, MXBPF_NAME_WCHAN, o->wchan_id, NULL));
	put_details(s, o->args_id, o->stack_id, o->layer_id);
	out_puts(s->out, "}");
}

static int opens(struct view *s, const struct mxbpf_open *rows, size_t n)
{
	size_t i;

	json_close_tables(s);
	out_puts(s->out, ",\n  \"open\": [");
	for (i = 0; i < n; i++) {
		out_puts(s->out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
		put_open(s, &rows[i]);
	}
	out_puts(s->out, "]");
	return 0;
}

static int end(struct view *s)
{
	uint64_t not_shown = view_events_not_shown(s);

	json_close_tables(s);
	if (not_shown)
		out_printf(s->out, ",\n  \"events_not_shown\": %" PRIu64, not_shown);
	view_put_machine_json(s);
	out_puts(s->out, "\n}\n");
	return 0;
}

/* The second: as one line of a series. */
static const char *const magic[] = {"{\n  \"schema_version\": ", "{\"schema_version\": ", NULL};

const struct view_ops view_json = {
	.name = "json",
	.help = "exact integers (ns, bytes); schema in report.schema.json",
	.magic = magic,
	.state_bytes = sizeof(struct json),
	.by_process = true,
	.begin = begin,
	.details = true,
	.table = class_table,
	.sheet = view_sheet_json,
	.opens = opens,
	.end = end,
};
