// SPDX-License-Identifier: Apache-2.0
/*
 * The tables as one, for spreadsheets and data frames: a row is a row of a table, and its last two cells say of which
 * window. Loss and window are rows as well, so that nothing but one header and rows stands in the file.
 */
#include "sched/sched.h"
#include "sink/csv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What asks for a column, all of it. */
enum when {
	ALWAYS = 0,
	WITH_BACKWARD = 1 << 0,
	BY_EVENT = 1 << 1,
	WITH_ACCOUNT = 1 << 2,
	WITH_MACHINE = 1 << 3,
	WITH_SCHED = 1 << 4,
	WITH_TEAMS = 1 << 5,
	WITH_HELD = 1 << 6,
	WITH_MARKS = 1 << 7,
	WITH_KV = 1 << 8,
	WITH_FAULTS = 1 << 9
};

static const struct {
	const char *head;
	unsigned when;
} columns[NCOLUMNS] = {
	[TABLE] = {"table", ALWAYS},
	[NAME] = {"name", ALWAYS},
	[DEVICE] = {"device", ALWAYS},
	[COUNT] = {"count", ALWAYS},
	[TOTAL] = {"total_ns", ALWAYS},
	[SELF] = {"self_ns", ALWAYS},
	[MIN] = {"min_ns", ALWAYS},
	[MAX] = {"max_ns", ALWAYS},
	[AVG] = {"avg_ns", ALWAYS},
	[P50] = {"p50_ns", ALWAYS},
	[P99] = {"p99_ns", ALWAYS},
	[ALLOCS] = {"allocs", ALWAYS},
	[FREES] = {"frees", ALWAYS},
	[ALLOC_BYTES] = {"alloc_bytes", ALWAYS},
	[SELF_ALLOC_BYTES] = {"self_alloc_bytes", ALWAYS},
	[FREE_BYTES] = {"free_bytes", ALWAYS},
	[LIVE_BYTES] = {"live_bytes", ALWAYS},
	[PEAK_BYTES] = {"peak_bytes", ALWAYS},
	[STATE] = {"state", ALWAYS},
	[WAITS_IN] = {"waits_in", ALWAYS},
	[START] = {"window_start_unix_ns", ALWAYS},
	[DURATION] = {"window_ns", ALWAYS},
	[ANNOTATION] = {"annotation", ALWAYS},
	[PID] = {"pid", ALWAYS},
	[BACKWARD_COUNT] = {"backward_count", WITH_BACKWARD},
	[BACKWARD] = {"backward_ns", WITH_BACKWARD},
	[DEEPER_COUNT] = {"deeper_count", WITH_BACKWARD},
	[DEEPER] = {"deeper_ns", WITH_BACKWARD},
	[EVENT_START] = {"start_unix_ns", BY_EVENT},
	[EVENT_THREAD] = {"thread", BY_EVENT},
	[EVENT_UNWOUND] = {"unwound", BY_EVENT},
	[ON_CPU] = {"on_cpu_ns", WITH_ACCOUNT},
	[RUNQ] = {"runq_ns", WITH_ACCOUNT},
	[BLOCKED] = {"blocked_ns", WITH_ACCOUNT},
	[ELSEWHERE] = {"elsewhere_ns", WITH_ACCOUNT},
	[NVCSW] = {"nvcsw", WITH_ACCOUNT},
	[NIVCSW] = {"nivcsw", WITH_ACCOUNT},
	[MINFLT] = {"minflt", WITH_FAULTS},
	[MAJFLT] = {"majflt", WITH_FAULTS},
	[MIGRATED] = {"migrated", WITH_ACCOUNT},
	[CPU] = {"cpu", WITH_ACCOUNT | BY_EVENT},
	[END_CPU] = {"end_cpu", WITH_ACCOUNT | BY_EVENT},
	[FIRST] = {"first", WITH_MACHINE},
	[LAST] = {"last", WITH_MACHINE},
	[DIFFERENCE] = {"difference", WITH_MACHINE},
	[LEAST] = {"least", WITH_MACHINE},
	[MOST] = {"most", WITH_MACHINE},
	[MEAN] = {"mean", WITH_MACHINE},
	[TEAM_THREADS] = {"threads", WITH_TEAMS},
	[TEAM_THREADS_NS] = {"threads_ns", WITH_TEAMS},
	[TEAM_CPU] = {"team_cpu_ns", WITH_TEAMS},
	[TEAM_RUNQ] = {"team_runq_ns", WITH_TEAMS},
	[TEAM_WORK] = {"team_work_ns", WITH_TEAMS},
	[TEAM_LATE] = {"team_late_ns", WITH_TEAMS},
	[TEAM_LATE_RUNQ] = {"team_late_runq_ns", WITH_TEAMS},
	[TEAM_BARRIER] = {"team_barrier_ns", WITH_TEAMS},
	[TEAM_SPUN] = {"team_spun_ns", WITH_TEAMS},
	[KV_VALUES] = {"values", WITH_KV},
	[KV_UNKNOWN] = {"values_unknown", WITH_KV},
	[KV_SENT] = {"sent_bytes", WITH_KV},
	[KV_RECEIVED] = {"received_bytes", WITH_KV},
	[START_BYTES] = {"start_bytes", WITH_HELD},
	[LIVE_BLOCKS] = {"live_blocks", WITH_HELD},
	[MEAN_BYTES] = {"mean_bytes", WITH_HELD},
	[PEAK_UNIX] = {"peak_unix_ns", WITH_HELD},
	[MARK_FIRST] = {"first_unix_ns", WITH_MARKS},
	[MARK_LAST] = {"last_unix_ns", WITH_MARKS},
	[VALUE_LAST] = {"last_value", WITH_MARKS},
	[VALUE_MIN] = {"min_value", WITH_MARKS},
	[VALUE_MAX] = {"max_value", WITH_MARKS},
	[OFF_CPU] = {"off_cpu_ns", WITH_SCHED},
	[OFF_CPU + 1 + MXBPF_SCHED_WAITED] = {"waited_ns", WITH_SCHED},
	[OFF_CPU + 1 + MXBPF_SCHED_FUTEX] = {"futex_ns", WITH_SCHED},
	[OFF_CPU + 1 + MXBPF_SCHED_IO] = {"io_ns", WITH_SCHED},
	[OFF_CPU + 1 + MXBPF_SCHED_FAULT] = {"fault_ns", WITH_SCHED},
	[OFF_CPU + 1 + MXBPF_SCHED_NAP] = {"sleep_ns", WITH_SCHED},
	[OFF_CPU + 1 + MXBPF_SCHED_OTHER] = {"other_ns", WITH_SCHED},
};

static bool has_machine(const struct snk *s)
{
	size_t n;

	mdl_gauge_rows(s->in->model, &n);
	return n;
}

static bool has_kv(const struct snk *s)
{
	return s->in->session->class_title[MXBPF_CLASS_KVSTORE];
}

/* They can be, so that all tables of a series have their columns. */
static bool has_marks(const struct snk *s)
{
	return s->in->session->class_title[MXBPF_CLASS_TASK];
}

static bool has_column(const struct snk *s, unsigned c)
{
	const unsigned given = (s->opts->backward ? WITH_BACKWARD : 0) | (s->opts->by == SNK_BY_EVENT ? BY_EVENT : 0) |
			       (s->in->session->account ? WITH_ACCOUNT : 0) |
			       (s->in->session->account && !s->in->session->no_faults ? WITH_FAULTS : 0) |
			       (has_machine(s) ? WITH_MACHINE : 0) | (s->in->session->sched ? WITH_SCHED : 0) |
			       (s->in->session->team_cpus ? WITH_TEAMS : 0) | (s->in->session->held ? WITH_HELD : 0) |
			       (has_marks(s) ? WITH_MARKS : 0) | (has_kv(s) ? WITH_KV : 0);

	return !(columns[c].when & ~given);
}

static void put_holder(struct snk *s, const struct snk_holder *h)
{
	if (!snk_shows_layer(s)) {
		out_puts(s->out, ",");
		snk_csv_text(s->out, h ? h->layer : "", h ? h->layer_len : 0);
	}
	out_puts(s->out, ",");
	snk_csv_text(s->out, h ? h->scope : "", h ? h->scope_len : 0);
	out_puts(s->out, ",");
	snk_csv_text(s->out, h ? h->label : "", h ? h->label_len : 0);
}

/* What is shown of shapes; NULL behind the last. */
static const char *const *shape_heads(const struct snk *s)
{
	static const char *const all[] = {"shapes", "types", "output_shapes", "output_types", NULL};
	static const char *const some[] = {"shapes", NULL};

	return snk_shows_outputs(s) ? all : snk_shows_shapes(s) ? some : some + 1;
}

void csv_put(struct snk *s, struct row *r)
{
	char device[48] = "";
	const char *text;
	unsigned c;

	fill(r, START, s->in->session->start_unix_ns);
	fill(r, DURATION, s->in->session->duration_ns);
	if (r->tgid)
		fill(r, PID, r->tgid);
	if (MXBPF_DEVICE_TYPE(r->device))
		mdl_device_name(s->in->session, r->device, device);
	snk_csv_table(s, r->table, r->tgid);
	out_puts(s->out, ",");
	snk_csv_text(s->out, r->name, r->name_len);
	out_puts(s->out, ",");
	snk_csv_text(s->out, device, strlen(device));
	for (c = DEVICE + 1; c < NCOLUMNS; c++) {
		if (!has_column(s, c))
			continue;
		out_puts(s->out, ",");
		text = c == STATE ? r->state : c == WAITS_IN ? r->waits : NULL;
		if (text)
			snk_csv_text(s->out, text, strlen(text));
		else if (r->filled[c])
			out_printf(s->out, "%s%" PRIu64, r->below[c] ? "-" : "", r->n[c]);
	}
	for (c = 0; shape_heads(s)[c]; c++)
		snk_csv_lines(s->out, r->shapes[c].text, r->shapes[c].len);
	snk_put_flops_csv(s, &r->flops);
	if (snk_shows_stack(s))
		snk_csv_lines(s->out, r->stack.text, r->stack.len);
	if (snk_shows_layer(s))
		snk_csv_lines(s->out, r->layer.text, r->layer.len);
	snk_put_counters_csv(s, &r->counters);
	if (has_machine(s)) {
		out_puts(s->out, ",");
		snk_csv_text(s->out, r->group.text, r->group.len);
		out_puts(s->out, ",");
		snk_csv_text(s->out, r->unit.text, r->unit.len);
	}
	if (s->in->session->sched) {
		out_puts(s->out, ",");
		snk_csv_text(s->out, r->by.text, r->by.len);
	}
	if (s->in->session->held)
		put_holder(s, r->holder);
	if (has_marks(s)) {
		out_puts(s->out, ",");
		snk_csv_text(s->out, r->domain.text, r->domain.len);
	}
	if (has_kv(s)) {
		out_puts(s->out, ",");
		snk_csv_text(s->out, r->key.text, r->key.len);
	}
	if (s->in->session->life) {
		out_puts(s->out, ",");
		snk_csv_text(s->out, r->call.text, r->call.len);
		out_puts(s->out, ",");
		snk_csv_text(s->out, r->within.text, r->within.len);
	}
	out_puts(s->out, "\n");
}

static int begin(struct snk *s)
{
	unsigned c;

	if (s->opts->continued)
		return 0;
	for (c = 0; c < NCOLUMNS; c++)
		if (has_column(s, c))
			out_printf(s->out, "%s%s", c ? "," : "", columns[c].head);
	for (c = 0; shape_heads(s)[c]; c++)
		out_printf(s->out, ",%s", shape_heads(s)[c]);
	snk_put_flops_csv(s, NULL);
	out_printf(s->out, "%s%s", snk_shows_stack(s) ? ",stack" : "", snk_shows_layer(s) ? ",layer" : "");
	snk_put_counters_csv(s, NULL);
	out_puts(s->out, has_machine(s) ? ",group,unit" : "");
	out_puts(s->out, s->in->session->sched ? ",by" : "");
	if (s->in->session->held)
		out_puts(s->out, snk_shows_layer(s) ? ",scope,array" : ",layer,scope,array");
	out_puts(s->out, has_marks(s) ? ",domain" : "");
	out_puts(s->out, has_kv(s) ? ",key" : "");
	out_puts(s->out, s->in->session->life ? ",call,within\n" : "\n");
	return 0;
}

static void set_details(const struct snk *s, struct row *r, uint64_t args_id, uint64_t stack_id, uint64_t layer_id)
{
	static const enum snk_args_line lines[] = {SNK_ARGS_DIMS, SNK_ARGS_TYPES, SNK_ARGS_OUT_DIMS,
						   SNK_ARGS_OUT_TYPES};
	unsigned i;

	for (i = 0; shape_heads(s)[i]; i++)
		r->shapes[i].text = snk_args_line(s->in->model, args_id, lines[i], &r->shapes[i].len);
	if (snk_shows_stack(s))
		r->stack.text = snk_stack(s->in->model, s->opts, stack_id, &r->stack.len);
	if (snk_shows_layer(s))
		r->layer.text = snk_layer(s->in->model, s->opts, layer_id, &r->layer.len);
}

static void set_account(struct row *r, const struct mdl_row *m)
{
	fill(r, ON_CPU, mdl_on_cpu_ns(m));
	fill(r, RUNQ, m->account.runq_ns);
	fill(r, BLOCKED, m->account.blocked_ns);
	fill(r, ELSEWHERE, m->account.elsewhere_ns);
	fill(r, NVCSW, m->account.nvcsw);
	fill(r, NIVCSW, m->account.nivcsw);
	fill(r, MINFLT, m->account.minflt);
	fill(r, MAJFLT, m->account.majflt);
	fill(r, MIGRATED, m->account.migrated);
}

static void set_event_account(struct row *r, const struct mxbpf_span *e)
{
	const struct mdl_row m = snk_event_row(e);

	if (!(e->flags & MXBPF_SPAN_ACCOUNT))
		return;
	set_account(r, &m);
	if (e->cpu != MXBPF_CPU_NONE)
		fill(r, CPU, e->cpu);
	if (e->account.end_cpu != MXBPF_CPU_NONE)
		fill(r, END_CPU, e->account.end_cpu);
}

void csv_fill_extent(const struct snk *s, struct row *r, uint64_t first_ns, uint64_t last_ns)
{
	const struct mdl_session *ss = s->in->session;

	if (!last_ns)
		return;
	fill(r, MARK_FIRST, ss->start_unix_ns + (first_ns - ss->start_mono_ns));
	fill(r, MARK_LAST, ss->start_unix_ns + (last_ns - ss->start_mono_ns));
}

static int event_table(struct snk *s, const struct snk_table *t)
{
	const struct mdl_session *ss = s->in->session;
	size_t i;

	for (i = 0; i < t->nspans; i++) {
		const struct mxbpf_span *e = &t->spans[i];
		struct row r = {.table = t->title, .device = e->device};

		r.name = mdl_name(s->in->model, e->name_id, &r.name_len);
		r.domain.text = snk_domain(s->in->model, e->name_id, &r.domain.len);
		r.tgid = e->h.tgid;
		fill(&r, COUNT, 1);
		fill(&r, TOTAL, e->dur_ns);
		fill(&r, SELF, e->self_ns);
		if (mxbpf_traits(e) & MXBPF_TRAIT_USER)
			fill(&r, ANNOTATION, 1);
		fill(&r, EVENT_START, ss->start_unix_ns + (e->h.ts_ns - ss->start_mono_ns));
		fill(&r, EVENT_THREAD, e->tid);
		fill(&r, EVENT_UNWOUND, !!(e->flags & MXBPF_SPAN_UNWOUND));
		mdl_counters_add(&r.counters, e);
		if (t->memory) {
			fill_signed(&r, ALLOC_BYTES, e->alloc_bytes);
			fill_signed(&r, SELF_ALLOC_BYTES, e->self_alloc_bytes);
		}
		set_event_account(&r, e);
		r.flops = mdl_flops_of(s->in->model, e);
		set_details(s, &r, e->args_id, e->stack_id, e->layer_id);
		csv_put(s, &r);
	}
	return 0;
}

static int class_table(struct snk *s, const struct snk_table *t)
{
	char label[SNK_LABEL_BYTES];
	size_t i;

	if (s->opts->by == SNK_BY_EVENT)
		return event_table(s, t);
	for (i = 0; i < t->nrows; i++) {
		const struct mdl_row *m = t->rows[i];
		struct row r = {.table = t->title, .device = m->device, .counters = m->counters};

		r.name = snk_row_name(s, m, label, &r.name_len);
		r.domain.text = snk_domain(s->in->model, m->name_id, &r.domain.len);
		csv_fill_extent(s, &r, m->first_ns, m->last_ns);
		r.tgid = m->tgid;
		set_details(s, &r, m->args_id, m->stack_id, m->layer_id);
		if (snk_is_annotation(s, m))
			fill(&r, ANNOTATION, 1);
		fill(&r, COUNT, m->count);
		fill(&r, TOTAL, m->total_ns);
		fill(&r, SELF, m->self_ns);
		fill(&r, MIN, m->min_ns);
		fill(&r, MAX, m->max_ns);
		fill(&r, AVG, mdl_row_avg(m));
		fill(&r, P50, mdl_percentile(m, 0.50));
		fill(&r, P99, mdl_percentile(m, 0.99));
		if (t->memory) {
			fill_signed(&r, ALLOC_BYTES, m->alloc_bytes);
			fill_signed(&r, SELF_ALLOC_BYTES, m->self_alloc_bytes);
		}
		set_account(&r, m);
		r.flops = m->flops;
		csv_put(s, &r);
	}
	return 0;
}

static int mem_table(struct snk *s, const struct mdl_mem_row *const *rows, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		struct row r = {.table = s->in->session->mem_title, .device = rows[i]->device};

		r.tgid = rows[i]->tgid;
		fill(&r, ALLOCS, rows[i]->allocs);
		fill(&r, FREES, rows[i]->frees);
		fill(&r, ALLOC_BYTES, rows[i]->alloc_bytes);
		fill(&r, FREE_BYTES, rows[i]->free_bytes);
		fill(&r, LIVE_BYTES, rows[i]->live_bytes);
		fill(&r, PEAK_BYTES, rows[i]->peak_bytes);
		csv_put(s, &r);
	}
	return 0;
}

static int joins(struct snk *s, const struct snk_joins *t)
{
	struct row unjoined = {.table = "window", .name = "unjoined", .name_len = strlen("unjoined")};
	const struct snk_join *j;

	for (j = t->rows; j < t->rows + t->nrows; j++) {
		struct row r = {.table = "backward", .name = j->name, .name_len = j->len};

		r.tgid = j->j.h.tgid;
		fill(&r, COUNT, j->j.count);
		fill(&r, TOTAL, j->j.total_ns);
		fill(&r, BACKWARD_COUNT, j->j.bwd_count);
		fill(&r, BACKWARD, j->j.bwd_total_ns);
		fill(&r, DEEPER_COUNT, j->j.deep_count);
		fill(&r, DEEPER, j->j.deep_total_ns);
		csv_put(s, &r);
	}
	fill(&unjoined, COUNT, t->unjoined); /* each in the row of its own name */
	csv_put(s, &unjoined);
	return 0;
}

/* The table is "slow" and the cause: each has a row of its own, with its row's median. */
static int slow(struct snk *s, const struct snk_slow *t)
{
	const struct mdl_slow *e;
	char table[32];

	for (e = t->rows; e < t->rows + t->nrows; e++) {
		struct row r = {.table = table, .device = e->span.device};

		snprintf(table, sizeof(table), "slow.%s", snk_causes[e->cause]);
		r.name = mdl_name(s->in->model, e->row->name_id, &r.name_len);
		r.tgid = e->span.h.tgid;
		fill(&r, COUNT, 1);
		fill(&r, TOTAL, e->span.dur_ns);
		fill(&r, P50, e->median_ns);
		csv_put(s, &r);
	}
	return 0;
}

static void fill_limit(struct row *r, enum column c, uint64_t n)
{
	if (n != MXBPF_GAUGE_NO_LIMIT)
		fill(r, c, n);
}

static void put_machine(struct snk *s)
{
	const struct mdl_gauge_row *g;
	size_t n, i;

	g = mdl_gauge_rows(s->in->model, &n);
	for (i = 0; i < n; i++, g++) {
		const struct mdl_gauge *gauge = &mdl_gauges[g->id];
		struct row r = {.table = "machine", .name = gauge->name, .name_len = strlen(gauge->name)};

		r.group.text = snk_scope_name(s->in->model, g->scope, &r.group.len);
		r.unit.text = mdl_units[gauge->unit];
		r.unit.len = strlen(r.unit.text);
		fill_limit(&r, FIRST, g->first);
		fill_limit(&r, LAST, g->last);
		if (gauge->rises) {
			fill(&r, DIFFERENCE, g->difference);
		} else if (g->count) {
			fill(&r, LEAST, g->min);
			fill(&r, MOST, g->max);
			fill(&r, MEAN, g->sum / g->count);
		}
		csv_put(s, &r);
	}
}

static int samples(struct snk *s, const struct snk_samples *t)
{
	struct row hz = {.table = "window", .name = "sample_hz", .name_len = strlen("sample_hz")};
	const struct snk_sample *r;

	for (r = t->rows; r < t->rows + t->nrows; r++) {
		struct row row = {.table = "samples", .name = r->name, .name_len = r->len};

		row.tgid = r->tgid;
		fill(&row, COUNT, r->count);
		csv_put(s, &row);
	}
	fill(&hz, COUNT, s->in->session->sample_hz);
	csv_put(s, &hz);
	return 0;
}

static int opens(struct snk *s, const struct mxbpf_open *rows, size_t n)
{
	char waits[SNK_WAITS_BYTES];
	size_t i;

	for (i = 0; i < n; i++) {
		const struct mxbpf_open *o = &rows[i];
		struct row r = {.table = "open", .device = o->device, .state = snk_open_state(o)};

		r.name = mdl_name(s->in->model, o->name_id, &r.name_len);
		r.waits = snk_open_waits(s->in->model, o, waits);
		r.tgid = o->h.tgid;
		fill(&r, COUNT, 1);
		fill(&r, TOTAL, o->open_ns);
		fill(&r, EVENT_START, s->in->session->start_unix_ns + (o->h.ts_ns - s->in->session->start_mono_ns));
		fill(&r, EVENT_THREAD, o->tid);
		set_details(s, &r, o->args_id, o->stack_id, o->layer_id);
		csv_put(s, &r);
	}
	return 0;
}

static void put_parties(struct snk *s, const struct snk_sched *r, enum mxbpf_sched_what what)
{
	const struct mxbpf_agg_sched *a;

	for (a = r->of[what]; a < r->of[what] + r->n[what]; a++) {
		struct row row = {.table = sched_what_name(what), .name = r->name, .name_len = r->len};

		row.tgid = r->tgid;
		row.by.text = a->comm;
		row.by.len = strnlen(a->comm, sizeof(a->comm));
		fill(&row, COUNT, a->count);
		fill(&row, TOTAL, a->total_ns);
		csv_put(s, &row);
	}
}

static int sched(struct snk *s, const struct snk_scheds_table *t)
{
	const struct snk_sched *r;
	unsigned what;

	for (r = t->rows; r < t->rows + t->nrows; r++) {
		struct row row = {.table = "off_cpu", .name = r->name, .name_len = r->len};

		row.tgid = r->tgid;
		fill(&row, OFF_CPU, r->off_ns);
		for (what = 0; what <= MXBPF_SCHED_OTHER; what++)
			fill(&row, OFF_CPU + 1 + what, snk_sched_ns(r, (enum mxbpf_sched_what)what));
		csv_put(s, &row);
		put_parties(s, r, MXBPF_SCHED_KEPT_BY);
		put_parties(s, r, MXBPF_SCHED_WOKEN_BY);
	}
	return 0;
}

static int teams(struct snk *s, const struct snk_teams *t)
{
	const struct snk_team *k;

	for (k = t->rows; k < t->rows + t->nrows; k++) {
		struct row r = {.table = "teams", .name = k->name, .name_len = k->len};

		r.tgid = k->t.h.tgid;
		fill(&r, COUNT, k->t.regions);
		fill(&r, TOTAL, k->t.dur_ns);
		fill(&r, TEAM_THREADS, k->t.threads);
		fill(&r, TEAM_THREADS_NS, k->t.threads_ns);
		fill(&r, TEAM_CPU, k->t.cpu_ns);
		fill(&r, TEAM_RUNQ, k->t.runq_ns);
		fill(&r, TEAM_WORK, k->t.work_ns);
		fill(&r, TEAM_LATE, k->t.late_ns);
		fill(&r, TEAM_LATE_RUNQ, k->t.late_runq_ns);
		fill(&r, TEAM_BARRIER, k->t.barrier_ns);
		fill(&r, TEAM_SPUN, k->t.spun_ns);
		csv_put(s, &r);
	}
	return 0;
}

static void put_texts(struct snk *s)
{
	const struct mdl_session *ss = s->in->session;
	size_t i;

	for (i = 0; i < ss->nnotes; i++) {
		const char *text = ss->notes[i].text;

		csv_put(s, &(struct row){.table = ss->notes[i].name, .name = text, .name_len = strlen(text)});
	}
	for (i = 0; i < ss->nprobes; i++) {
		const struct mdl_probe *p = &ss->probes[i];

		if (!strcmp(p->status, "refused"))
			csv_put(s, &(struct row){.table = "refused", .name = p->name, .name_len = strlen(p->name)});
	}
}

/* The loss of each source, where there are several. */
static void put_sources(struct snk *s)
{
	const struct mdl_session *ss = s->in->session;
	char name[96];
	size_t i, k;

	for (i = 0; ss->nsources > 1 && i < ss->nsources; i++) {
		const struct mxbpf_loss *l = &ss->sources[i].loss;
		const struct {
			const char *what;
			uint64_t n;
		} rows[] = {{"attempted", l->attempted},  {"stored", l->stored},	 {"dropped", l->dropped},
			    {"truncated", l->truncated},  {"unreadable", l->unreadable}, {"unmatched", l->unmatched},
			    {"late", ss->sources[i].late}};

		for (k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			struct row r = {.table = "loss", .name = name};

			snprintf(name, sizeof(name), "%s: %s", ss->sources[i].name, rows[k].what);
			r.name_len = strlen(name);
			fill(&r, COUNT, rows[k].n);
			csv_put(s, &r);
		}
	}
}

static int end(struct snk *s)
{
	const struct mdl_session *ss = s->in->session;
	const struct mdl *m = s->in->model;
	const struct {
		const char *table, *name;
		enum column column;
		uint64_t n;
	} rows[] = {
		{"loss", "attempted", COUNT, ss->loss.attempted},
		{"loss", "stored", COUNT, ss->loss.stored},
		{"loss", "dropped", COUNT, ss->loss.dropped},
		{"loss", "truncated", COUNT, ss->loss.truncated},
		{"loss", "unreadable", COUNT, ss->loss.unreadable},
		{"loss", "unmatched", COUNT, ss->loss.unmatched},
		{"window", "paused", TOTAL, ss->paused_ns},
		{"window", "open", COUNT, ss->open_spans},
		{"window", "cut_records", COUNT, ss->cut_records},
		{"window", "incomplete", COUNT, ss->incomplete},
		{"window", "left_out", COUNT, ss->left_out},
		{"window", "iterations", COUNT, ss->iterations},
		{"window", "sampled_iterations", COUNT, ss->sampled_iterations},
		{"window", "followed", COUNT, ss->followed},
		{"window", "unfollowed", COUNT, ss->unfollowed},
		{"window", "follow_lag", TOTAL, ss->follow_lag_ns},
		{"window", "stranger_hits", COUNT, ss->stranger_hits},
		{"window", "stranger_time", TOTAL, ss->stranger_ns},
		{"window", "late_libraries", COUNT, ss->late_libs},
		{"window", "late_refused", COUNT, ss->late_refused},
		{"window", "moments", COUNT, snk_counter(m, MXBPF_COUNTER_MOMENTS)},
		{"window", "unkeyed", COUNT, snk_counter(m, MXBPF_COUNTER_UNKEYED)},
		{"window", "late", COUNT, snk_counter(m, MXBPF_COUNTER_LATE)},
		{"window", "unwound", COUNT, snk_counter(m, MXBPF_COUNTER_UNWOUND)},
		{"window", "ungrouped", COUNT,
		 s->opts->by == SNK_BY_NAME ? 0 : snk_counter(m, MXBPF_COUNTER_UNGROUPED)},
	};
	size_t i;

	put_machine(s);
	put_texts(s);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct row r = {.table = rows[i].table, .name = rows[i].name, .name_len = strlen(rows[i].name)};

		fill(&r, rows[i].column, rows[i].n);
		csv_put(s, &r);
	}
	put_sources(s);
	if (s->opts->by == SNK_BY_EVENT) {
		struct row r = {.table = "window", .name = "events_not_shown", .name_len = strlen("events_not_shown")};

		fill(&r, COUNT, snk_events_not_shown(s));
		csv_put(s, &r);
	}
	for (i = 0; i < ss->nfallbacks; i++) {
		struct row r = {.table = "fallback", .name = ss->fallbacks[i].name};

		r.name_len = strlen(r.name);
		fill(&r, COUNT, ss->fallbacks[i].spans);
		fill(&r, TOTAL, ss->fallbacks[i].at_ns);
		csv_put(s, &r);
	}
	return 0;
}

static const char *const magic[] = {"table,name,", NULL};

const struct snk_ops snk_csv = {
	.name = "csv",
	.help = "one table of exact integers (ns, bytes), loss included",
	.magic = magic,
	.begin = begin,
	.details = true,
	.by_process = true,
	.table = class_table,
	.marks = csv_marks,
	.mem = mem_table,
	.held = csv_held,
	.joins = joins,
	.teams = teams,
	.lives = csv_lives,
	.kvs = csv_kvs,
	.slow = slow,
	.samples = samples,
	.iterations = csv_iterations,
	.opens = opens,
	.sched = sched,
	.end = end,
};
