// SPDX-License-Identifier: Apache-2.0
/*
 * The tables as one, for spreadsheets and data frames: a row is a row of a table, and its last two cells say of which
 * window. Loss and window are rows as well, so that nothing but one header and rows stands in the file.
 */
#include "sched/sched.h"
#include "sink/priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Cells are empty where a table has no such column. */
enum column {
	TABLE,
	NAME,
	DEVICE,
	COUNT,
	TOTAL,
	SELF,
	MIN,
	MAX,
	AVG,
	P50,
	P99,
	ALLOCS,
	FREES,
	ALLOC_BYTES,
	SELF_ALLOC_BYTES,
	FREE_BYTES,
	LIVE_BYTES,
	PEAK_BYTES,
	STATE,
	WAITS_IN,
	START,
	DURATION,
	BACKWARD_COUNT,
	BACKWARD,
	DEEPER_COUNT,
	DEEPER,
	EVENT_START,
	EVENT_THREAD,
	EVENT_UNWOUND,
	ON_CPU,
	RUNQ,
	BLOCKED,
	ELSEWHERE,
	NVCSW,
	NIVCSW,
	MINFLT,
	MAJFLT,
	MIGRATED,
	CPU,
	END_CPU,
	FIRST,
	LAST,
	DIFFERENCE,
	LEAST,
	MOST,
	MEAN,
	OFF_CPU, /* then enum mxbpf_sched_what */
	OFF_LAST = OFF_CPU + MXBPF_SCHED_OTHER + 1,
	TEAM_THREADS,
	TEAM_THREADS_NS,
	TEAM_CPU,
	TEAM_RUNQ,
	TEAM_WORK,
	TEAM_LATE,
	TEAM_LATE_RUNQ,
	TEAM_BARRIER,
	TEAM_SPUN,
	KV_VALUES,
	KV_UNKNOWN,
	KV_SENT,
	KV_RECEIVED,
	LIVE_BLOCKS,
	MEAN_BYTES,
	PEAK_UNIX,
	MARK_FIRST,
	MARK_LAST,
	VALUE_LAST,
	VALUE_MIN,
	VALUE_MAX,
	NCOLUMNS,
};

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
	WITH_KV = 1 << 8
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
	[MINFLT] = {"minflt", WITH_ACCOUNT},
	[MAJFLT] = {"majflt", WITH_ACCOUNT},
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

struct row {
	const char *table, *name;
	size_t name_len;
	uint32_t device;
	uint64_t n[NCOLUMNS];
	bool filled[NCOLUMNS]; /* the number is there */
	bool below[NCOLUMNS];  /* below 0: what stands there is its magnitude */
	struct {
		const char *text;
		size_t len;
	} shapes[SNK_ARGS_LINES], stack, layer, group, unit, by, domain, call, within,
		key;			   /* by: of whom a row of kept_by and woken_by is */
	const struct snk_holder *holder;   /* its scope and array; NULL */
	const char *state, *waits;	   /* STATE, WAITS_IN: of calls that are open; NULL */
	struct mdl_flops flops;
	struct mxbpf_counter_sum counters; /* spans 0: none */
};

static void fill(struct row *r, enum column c, uint64_t n)
{
	r->n[c] = n;
	r->filled[c] = true;
}

static void fill_signed(struct row *r, enum column c, int64_t n)
{
	fill(r, c, n < 0 ? -(uint64_t)n : (uint64_t)n);
	r->below[c] = n < 0;
}

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
			       (s->in->session->account ? WITH_ACCOUNT : 0) | (has_machine(s) ? WITH_MACHINE : 0) |
			       (s->in->session->sched ? WITH_SCHED : 0) | (s->in->session->team_cpus ? WITH_TEAMS : 0) |
			       (s->in->session->held ? WITH_HELD : 0) | (has_marks(s) ? WITH_MARKS : 0) |
			       (has_kv(s) ? WITH_KV : 0);

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

static void put_row(struct snk *s, struct row *r)
{
	char device[48] = "";
	const char *text;
	unsigned c;

	fill(r, START, s->in->session->start_unix_ns);
	fill(r, DURATION, s->in->session->duration_ns);
	if (MXBPF_DEVICE_TYPE(r->device))
		mdl_device_name(s->in->session, r->device, device);
	snk_csv_table(s, r->table);
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
	fill(r, CPU, e->cpu);
	fill(r, END_CPU, e->account.end_cpu);
}

static void fill_extent(const struct snk *s, struct row *r, uint64_t first_ns, uint64_t last_ns)
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
		fill(&r, COUNT, 1);
		fill(&r, TOTAL, e->dur_ns);
		fill(&r, SELF, e->self_ns);
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
		put_row(s, &r);
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
		fill_extent(s, &r, m->first_ns, m->last_ns);
		set_details(s, &r, m->args_id, m->stack_id, m->layer_id);
		fill(&r, COUNT, m->count);
		fill(&r, TOTAL, m->total_ns);
		fill(&r, SELF, m->self_ns);
		fill(&r, MIN, m->min_ns);
		fill(&r, MAX, m->max_ns);
		fill(&r, AVG, m->total_ns / m->count);
		fill(&r, P50, mdl_percentile(m, 0.50));
		fill(&r, P99, mdl_percentile(m, 0.99));
		if (t->memory) {
			fill_signed(&r, ALLOC_BYTES, m->alloc_bytes);
			fill_signed(&r, SELF_ALLOC_BYTES, m->self_alloc_bytes);
		}
		set_account(&r, m);
		r.flops = m->flops;
		put_row(s, &r);
	}
	return 0;
}

static int mem_table(struct snk *s, const struct mdl_mem_row *const *rows, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		struct row r = {.table = s->in->session->mem_title, .device = rows[i]->device};

		fill(&r, ALLOCS, rows[i]->allocs);
		fill(&r, FREES, rows[i]->frees);
		fill(&r, ALLOC_BYTES, rows[i]->alloc_bytes);
		fill(&r, FREE_BYTES, rows[i]->free_bytes);
		fill(&r, LIVE_BYTES, rows[i]->live_bytes);
		fill(&r, PEAK_BYTES, rows[i]->peak_bytes);
		put_row(s, &r);
	}
	return 0;
}

static int joins(struct snk *s, const struct snk_joins *t)
{
	struct row unjoined = {.table = "window", .name = "unjoined", .name_len = strlen("unjoined")};
	const struct snk_join *j;

	for (j = t->rows; j < t->rows + t->nrows; j++) {
		struct row r = {.table = "backward", .name = j->name, .name_len = j->len};

		fill(&r, COUNT, j->j.count);
		fill(&r, TOTAL, j->j.total_ns);
		fill(&r, BACKWARD_COUNT, j->j.bwd_count);
		fill(&r, BACKWARD, j->j.bwd_total_ns);
		fill(&r, DEEPER_COUNT, j->j.deep_count);
		fill(&r, DEEPER, j->j.deep_total_ns);
		put_row(s, &r);
	}
	fill(&unjoined, COUNT, t->unjoined); /* each in the row of its own name */
	put_row(s, &unjoined);
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
		fill(&r, COUNT, 1);
		fill(&r, TOTAL, e->span.dur_ns);
		fill(&r, P50, e->median_ns);
		put_row(s, &r);
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
		put_row(s, &r);
	}
}

static int samples(struct snk *s, const struct snk_samples *t)
{
	struct row hz = {.table = "window", .name = "sample_hz", .name_len = strlen("sample_hz")};
	const struct snk_sample *r;

	for (r = t->rows; r < t->rows + t->nrows; r++) {
		struct row row = {.table = "samples", .name = r->name, .name_len = r->len};

		fill(&row, COUNT, r->count);
		put_row(s, &row);
	}
	fill(&hz, COUNT, s->in->session->sample_hz);
	put_row(s, &hz);
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
		fill(&r, COUNT, 1);
		fill(&r, TOTAL, o->open_ns);
		fill(&r, EVENT_START, s->in->session->start_unix_ns + (o->h.ts_ns - s->in->session->start_mono_ns));
		fill(&r, EVENT_THREAD, o->tid);
		set_details(s, &r, o->args_id, o->stack_id, o->layer_id);
		put_row(s, &r);
	}
	return 0;
}

static void put_parties(struct snk *s, const struct snk_sched *r, enum mxbpf_sched_what what)
{
	const struct mxbpf_agg_sched *a;

	for (a = r->of[what]; a < r->of[what] + r->n[what]; a++) {
		struct row row = {.table = sched_what_name(what), .name = r->name, .name_len = r->len};

		row.by.text = a->comm;
		row.by.len = strnlen(a->comm, sizeof(a->comm));
		fill(&row, COUNT, a->count);
		fill(&row, TOTAL, a->total_ns);
		put_row(s, &row);
	}
}

static int sched(struct snk *s, const struct snk_scheds_table *t)
{
	const struct snk_sched *r;
	unsigned what;

	for (r = t->rows; r < t->rows + t->nrows; r++) {
		struct row row = {.table = "off_cpu", .name = r->name, .name_len = r->len};

		fill(&row, OFF_CPU, r->off_ns);
		for (what = 0; what <= MXBPF_SCHED_OTHER; what++)
			fill(&row, OFF_CPU + 1 + what, snk_sched_ns(r, (enum mxbpf_sched_what)what));
		put_row(s, &row);
		put_parties(s, r, MXBPF_SCHED_KEPT_BY);
		put_parties(s, r, MXBPF_SCHED_WOKEN_BY);
	}
	return 0;
}

static void put_loop(struct snk *s, const struct snk_loop *l)
{
	struct row r = {.table = "iterations", .name = snk_tolds[l->told], .name_len = strlen(snk_tolds[l->told])};
	unsigned i;

	fill(&r, COUNT, l->count - l->missing);
	fill(&r, TOTAL, l->total_ns);
	fill(&r, MIN, l->min_ns);
	fill(&r, MAX, l->max_ns);
	fill(&r, AVG, l->total_ns / (l->count - l->missing));
	fill(&r, P50, l->p50_ns);
	fill(&r, P99, l->p99_ns);
	put_row(s, &r);
	for (i = 0; i <= MXBPF_STEP_PARTS && l->known; i++) {
		const char *name = i < MXBPF_STEP_PARTS ? snk_parts[i] : "operators";
		struct row part = {.table = "iterations.part", .name = name, .name_len = strlen(name)};

		fill(&part, COUNT, l->known);
		fill(&part, TOTAL, i < MXBPF_STEP_PARTS ? l->parts[i].total_ns : l->busy_ns);
		if (i < MXBPF_STEP_PARTS) {
			fill(&part, P50, l->parts[i].p50_ns);
			fill(&part, MAX, l->parts[i].max_ns);
		}
		put_row(s, &part);
	}
}

/* The table is "iterations.slowest" and what of it was the longest beyond its median; its name is its number. */
static int iterations(struct snk *s, const struct snk_iterations *t)
{
	char table[64], nr[24];
	size_t i;

	for (i = 0; i < t->nloops; i++)
		put_loop(s, &t->loops[i]);
	for (i = 0; i < t->nslowest; i++) {
		const struct mxbpf_iteration *it = t->slowest[i];
		const struct snk_loop *l = snk_loop_of(t, it);
		struct row r = {.table = table, .name = nr};
		uint64_t ns;
		int part = snk_longer(l, it, &ns);

		snprintf(table, sizeof(table), "iterations.slowest%s%s", part < 0 ? "" : ".",
			 part < 0 ? "" : snk_parts[part]);
		r.name_len = (size_t)snprintf(nr, sizeof(nr), "%" PRIu64, (uint64_t)it->nr);
		fill(&r, COUNT, 1);
		fill(&r, TOTAL, it->dur_ns);
		fill(&r, P50, l->p50_ns);
		fill(&r, EVENT_START, s->in->session->start_unix_ns + (it->h.ts_ns - s->in->session->start_mono_ns));
		fill(&r, EVENT_THREAD, it->tid);
		put_row(s, &r);
	}
	return 0;
}

static int teams(struct snk *s, const struct snk_teams *t)
{
	const struct snk_team *k;

	for (k = t->rows; k < t->rows + t->nrows; k++) {
		struct row r = {.table = "teams", .name = k->name, .name_len = k->len};

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
		put_row(s, &r);
	}
	return 0;
}

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
static int lives(struct snk *s, const struct snk_lives *t)
{
	const struct mdl *m = s->in->model;
	size_t i;
	unsigned part;

	for (i = 0; i < t->nrows * MXBPF_LIFE_PARTS; i++) {
		const struct mdl_life *l = t->rows[i / MXBPF_LIFE_PARTS];
		struct row r = {.device = l->device};
		char table[32];

		part = i % MXBPF_LIFE_PARTS;
		snprintf(table, sizeof(table), "life_%s", snk_life_parts[part]);
		r.table = table;
		r.name = mdl_name(m, l->name_id, &r.name_len);
		fill_part(&r, &l->parts[part]);
		put_row(s, &r);
	}
	for (i = 0; i < t->nwaits; i++) {
		const struct mxbpf_wait *w = &t->waits[i];
		struct row r = {.table = "waits", .name = snk_wait_whats[w->what]};

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
		put_row(s, &r);
	}
	return 0;
}

static int kvs(struct snk *s, const struct snk_kvs *t)
{
	const struct snk_kv *k;

	for (k = t->rows; k < t->rows + t->nrows; k++) {
		struct row r = {.table = "KVStore by key",
				.name = k->name,
				.name_len = k->len,
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
		put_row(s, &r);
	}
	return 0;
}

static int held(struct snk *s, const struct snk_held *t)
{
	const struct mdl_session *ss = s->in->session;
	const struct mxbpf_mem_time *d;
	const struct snk_holder *k;

	for (d = t->devices; d < t->devices + t->ndevices; d++) {
		struct row r = {.table = "held.device", .device = d->device};

		r.name = "";
		fill_signed(&r, LIVE_BYTES, d->live_bytes);
		fill_signed(&r, PEAK_BYTES, d->peak_bytes);
		fill_signed(&r, MEAN_BYTES, snk_mem_mean(s, d));
		if (d->peak_ns)
			fill(&r, PEAK_UNIX, ss->start_unix_ns + (d->peak_ns - ss->start_mono_ns));
		put_row(s, &r);
	}
	for (k = t->rows; k < t->rows + t->nrows; k++) {
		struct row r = {.table = "held", .name = k->name, .name_len = k->len, .holder = k};

		r.device = k->h.device;
		r.layer.text = k->layer;
		r.layer.len = k->layer_len;
		fill(&r, ALLOCS, k->h.allocs);
		fill(&r, FREES, k->h.frees);
		fill(&r, ALLOC_BYTES, k->h.alloc_bytes);
		fill(&r, FREE_BYTES, k->h.free_bytes);
		fill_signed(&r, LIVE_BYTES, k->h.live_bytes);
		fill_signed(&r, PEAK_BYTES, k->h.peak_bytes);
		fill(&r, LIVE_BLOCKS, k->h.live_blocks);
		put_row(s, &r);
	}
	return 0;
}

static int marks(struct snk *s, const struct snk_marks *t)
{
	const struct snk_mark *k;

	for (k = t->values; k < t->values + t->nvalues; k++) {
		struct row r = {
			.table = "counter", .name = k->name, .name_len = k->len, .domain = {k->domain, k->domain_len}};

		fill(&r, COUNT, k->count);
		fill(&r, VALUE_LAST, k->value->value);
		fill(&r, VALUE_MIN, k->value->min);
		fill(&r, VALUE_MAX, k->value->max);
		put_row(s, &r);
	}
	for (k = t->instants; k < t->instants + t->ninstants; k++) {
		struct row r = {
			.table = "instant", .name = k->name, .name_len = k->len, .domain = {k->domain, k->domain_len}};

		fill(&r, COUNT, k->count);
		fill_extent(s, &r, k->instant->h.ts_ns, k->instant->last_ns);
		put_row(s, &r);
	}
	return 0;
}

static void put_texts(struct snk *s)
{
	const struct mdl_session *ss = s->in->session;
	size_t i;

	for (i = 0; i < ss->nnotes; i++) {
		const char *text = ss->notes[i].text;

		put_row(s, &(struct row){.table = ss->notes[i].name, .name = text, .name_len = strlen(text)});
	}
	for (i = 0; i < ss->nprobes; i++) {
		const struct mdl_probe *p = &ss->probes[i];

		if (!strcmp(p->status, "refused"))
			put_row(s, &(struct row){.table = "refused", .name = p->name, .name_len = strlen(p->name)});
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
		{"window", "late_libraries", COUNT, ss->late_libs},
		{"window", "late_refused", COUNT, ss->late_refused},
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
		put_row(s, &r);
	}
	if (s->opts->by == SNK_BY_EVENT) {
		struct row r = {.table = "window", .name = "events_not_shown", .name_len = strlen("events_not_shown")};

		fill(&r, COUNT, snk_events_not_shown(s));
		put_row(s, &r);
	}
	for (i = 0; i < ss->nfallbacks; i++) {
		struct row r = {.table = "fallback", .name = ss->fallbacks[i].name};

		r.name_len = strlen(r.name);
		fill(&r, COUNT, ss->fallbacks[i].spans);
		fill(&r, TOTAL, ss->fallbacks[i].at_ns);
		put_row(s, &r);
	}
	return 0;
}

const struct snk_ops snk_csv = {
	.name = "csv",
	.help = "one table of exact integers (ns, bytes), loss included",
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
