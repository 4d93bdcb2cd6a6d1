// SPDX-License-Identifier: Apache-2.0
/*
 * The tables as one, for spreadsheets and data frames: a row is a row of a table, and its last two cells say of which
 * window. Loss and window are rows as well, so that nothing but one header and rows stands in the file.
 */
#include "view/data/csv.h"
#include "feature/counters/counters.h"
#include "feature/flops/flops.h"
#include "feature/machine/gauge.h"
#include "feature/machine/machine.h"
#include "feature/marks/marks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What asks for a column, all of it. */
enum when {
	ALWAYS = 0,
	BY_EVENT = 1 << 1,
	WITH_ACCOUNT = 1 << 2,
	WITH_MACHINE = 1 << 3,
	WITH_MARKS = 1 << 7,
	WITH_FAULTS = 1 << 9,
	WITH_SHAPES = 1 << 10,
	WITH_OUTPUTS = 1 << 11,
	WITH_FLOPS = 1 << 12,
	WITH_STACK = 1 << 13,
	WITH_LAYER = 1 << 14,
	WITH_COUNTERS = 1 << 16,
};

/* What is filled by hand. */
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
	[MARK_FIRST] = {"first_unix_ns", WITH_MARKS},
	[MARK_LAST] = {"last_unix_ns", WITH_MARKS},
	[SHAPES] = {"shapes", WITH_SHAPES},
	[TYPES] = {"types", WITH_OUTPUTS},
	[OUT_SHAPES] = {"output_shapes", WITH_OUTPUTS},
	[OUT_TYPES] = {"output_types", WITH_OUTPUTS},
	[FLOPS] = {"flops", WITH_FLOPS},
	[STACK] = {"stack", WITH_STACK},
	[LAYER] = {"layer", WITH_LAYER},
	[COUNTERS] = {"counters", WITH_COUNTERS},
	[GROUP] = {"group", WITH_MACHINE},
	[UNIT] = {"unit", WITH_MACHINE},
	[DOMAIN] = {"domain", WITH_MARKS},
};

/* Programs may count on the places of these. What a sheet has beside them stands behind them, in the order of sheets.
 * '@': a place for what is filled by hand alone. */
static const char *const order[] = {
	/* clang-format off */
	"table", "name", "device", "count", "total_ns", "self_ns", "min_ns", "max_ns", "avg_ns", "p50_ns", "p99_ns",
	"allocs", "frees", "alloc_bytes", "self_alloc_bytes", "free_bytes", "live_bytes", "peak_bytes", "state",
	"waits_in", "window_start_unix_ns", "window_ns", "annotation", "pid", "backward_count", "backward_ns",
	"deeper_count", "deeper_ns", "start_unix_ns", "thread", "unwound", "on_cpu_ns", "runq_ns", "blocked_ns",
	"elsewhere_ns", "nvcsw", "nivcsw", "minflt", "majflt", "migrated", "cpu", "end_cpu", "first", "last",
	"difference", "least", "most", "mean", "off_cpu_ns", "waited_ns", "futex_ns", "io_ns", "fault_ns",
	"sleep_ns", "other_ns", "threads", "threads_ns", "team_cpu_ns", "team_runq_ns", "team_work_ns",
	"team_late_ns", "team_late_runq_ns", "team_barrier_ns", "team_spun_ns", "values", "values_unknown",
	"sent_bytes", "received_bytes", "start_bytes", "live_blocks", "mean_bytes", "peak_unix_ns", "first_unix_ns",
	"last_unix_ns", "last_value", "min_value", "max_value", "shapes", "types", "output_shapes", "output_types",
	"flops", "stack", "@layer", "counters", "group", "unit", "by", "layer", "scope", "array", "domain", "key",
	"call", "within",
	/* clang-format on */
};

struct csv {
	struct view s;
	unsigned shown[CSV_CELLS], nshown; /* in the order of the line */
	const char *new_heads[CSV_NEW_MAX];
	unsigned nnew;
};

static bool has_machine(const struct view *s)
{
	size_t n;

	machine_rows(s->in->model, &n);
	return n;
}

/* They can be, so that all tables of a series have their columns. */
static bool has_marks(const struct view *s)
{
	return s->in->session->class_title[MXBPF_CLASS_TASK];
}

/* What the session, and how it is shown, asks for. */
static unsigned given(const struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	const struct {
		bool is;
		unsigned when;
	} all[] = {
		{s->opts->by == VIEW_BY_EVENT, BY_EVENT},
		{ss->account, WITH_ACCOUNT},
		{ss->account && !ss->no_faults, WITH_FAULTS},
		{has_machine(s), WITH_MACHINE},
		{has_marks(s), WITH_MARKS},
		{view_shows_shapes(s), WITH_SHAPES},
		{view_shows_outputs(s), WITH_OUTPUTS},
		{view_shows_flops(s), WITH_FLOPS},
		{view_shows_stack(s), WITH_STACK},
		{view_shows_layer(s), WITH_LAYER},
		{view_ncounters(ss), WITH_COUNTERS},
	};
	unsigned when = 0, i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		when |= all[i].is ? all[i].when : 0;
	return when;
}

static const char *head_of(const struct csv *csv, unsigned c)
{
	return c < NCOLUMNS ? columns[c].head : csv->new_heads[c - NCOLUMNS];
}

/* The cell of a column that is shown; CSV_CELLS: none is called so. */
static unsigned find(const struct csv *csv, const char *head)
{
	unsigned i;

	for (i = 0; i < csv->nshown; i++)
		if (!strcmp(head_of(csv, csv->shown[i]), head))
			return csv->shown[i];
	return CSV_CELLS;
}

static bool has_head(const struct view_sheet *sh, const struct view_column *of, const char *head)
{
	const struct view_column *c;
	const char *other;

	for (c = of; c->bytes; c++) {
		other = view_csv_head(sh, c);
		if (c->columns ? view_in_csv(c) && has_head(sh, c->columns, head) : other && !strcmp(other, head))
			return true;
	}
	return false;
}

/* The column that is filled by hand, or else by a sheet that was asked for. */
static void show_column(struct csv *csv, const char *head, unsigned when)
{
	const struct view_sheet *const *sh;
	const bool by_hand = *head == '@';
	unsigned i;

	head += by_hand;
	if (find(csv, head) < CSV_CELLS)
		return;
	for (i = 0; i < NCOLUMNS; i++)
		if (!strcmp(columns[i].head, head) && !(columns[i].when & ~when)) {
			csv->shown[csv->nshown++] = i;
			return;
		}
	for (sh = view_sheets; *sh && !by_hand; sh++)
		if ((*sh)->when(&csv->s) && has_head(*sh, (*sh)->columns, head) && csv->nnew < CSV_NEW_MAX) {
			csv->shown[csv->nshown++] = NCOLUMNS + csv->nnew;
			csv->new_heads[csv->nnew++] = head;
			return;
		}
}

static void show_sheet(struct csv *csv, const struct view_sheet *sh, const struct view_column *of)
{
	const struct view_column *c;

	for (c = of; c->bytes; c++)
		if (c->columns && view_in_csv(c))
			show_sheet(csv, sh, c->columns);
		else if (view_csv_head(sh, c))
			show_column(csv, view_csv_head(sh, c), 0);
}

static void choose_columns(struct csv *csv)
{
	const unsigned when = given(&csv->s);
	const struct view_sheet *const *sh;
	unsigned i;

	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		show_column(csv, order[i], when);
	for (sh = view_sheets; *sh; sh++)
		if ((*sh)->when(&csv->s))
			show_sheet(csv, *sh, (*sh)->columns);
}

static void put_cell(struct view *s, const struct cell *cell)
{
	if (cell->is == LINES) {
		view_csv_lines(s->out, cell->text, cell->len);
		return;
	}
	out_puts(s->out, ",");
	if (cell->is == TEXT)
		view_csv_text(s->out, cell->text, cell->len);
	else if (cell->is)
		out_printf(s->out, "%s%" PRIu64, cell->is == BELOW ? "-" : "", cell->n);
}

void csv_put(struct view *s, struct row *r)
{
	const struct csv *csv = (const struct csv *)s;
	char device[48];
	unsigned i;

	fill(r, START, s->in->session->start_unix_ns);
	fill(r, DURATION, s->in->session->duration_ns);
	if (r->tgid)
		fill(r, PID, r->tgid);
	if (MXBPF_DEVICE_TYPE(r->device)) {
		mdl_device_name(s->in->session, r->device, device);
		fill_word(r, DEVICE, device);
	}
	view_csv_table(s, r->table, r->tgid);
	for (i = 1; i < csv->nshown; i++)
		if (csv->shown[i] == FLOPS)
			view_put_flops_csv(s, &r->flops);
		else if (csv->shown[i] == COUNTERS)
			view_put_counters_csv(s, &r->counters);
		else
			put_cell(s, &r->cells[csv->shown[i]]);
	out_puts(s->out, "\n");
}

static int begin(struct view *s)
{
	struct csv *csv = (struct csv *)s;
	unsigned i;

	choose_columns(csv);
	for (i = 0; i < csv->nshown && !s->opts->continued; i++)
		if (csv->shown[i] == FLOPS)
			view_put_flops_csv(s, NULL);
		else if (csv->shown[i] == COUNTERS)
			view_put_counters_csv(s, NULL);
		else
			out_printf(s->out, "%s%s", i ? "," : "", head_of(csv, csv->shown[i]));
	if (!s->opts->continued)
		out_puts(s->out, "\n");
	return 0;
}

/* ---- sheets */

static void set_cell(struct view *s, struct row *r, unsigned cell, const struct view_column *c, const void *row)
{
	const struct mdl_session *ss = s->in->session;
	uint64_t n;

	if (cell == TABLE) {
		r->table = view_cell_text(c, row).data;
		return;
	}
	if (view_is_text(c)) {
		fill_text(r, cell, view_cell_text(c, row).data, view_cell_text(c, row).len);
		return;
	}
	n = view_cell_number(c, row);
	if (c->type == VIEW_DEVICE)
		r->device = (uint32_t)n;
	else if (c->type == VIEW_PID)
		r->tgid = (uint32_t)n;
	else if (c->flags & VIEW_NULL && n == VIEW_UNKNOWN)
		return;
	else if (c->flags & VIEW_SIGNED)
		fill_signed(r, cell, (int64_t)n);
	else
		fill(r, cell, c->type == VIEW_MOMENT ? ss->start_unix_ns + (n - ss->start_mono_ns) : n);
}

/* What is of the table as a whole is of the window. */
static void put_totals(struct view *s, const struct view_sheet *sh, const void *table)
{
	const struct view_column *c;

	for (c = sh->totals; c && c->bytes; c++) {
		struct row r = {.table = "window"};

		if (!view_csv_head(sh, c))
			continue;
		fill_word(&r, NAME, view_csv_head(sh, c));
		fill(&r, COUNT, view_cell_number(c, table));
		csv_put(s, &r);
	}
}

static void set_cells(struct view *s, struct row *r, const struct view_sheet *sh, const struct view_column *of,
		      const void *row)
{
	const struct view_column *c;
	unsigned cell;

	for (c = of; c->bytes; c++) {
		if (c->type == VIEW_OBJECT && !c->csv)
			set_cells(s, r, sh, c->columns, (const char *)row + c->at);
		cell = view_csv_head(sh, c) ? find((struct csv *)s, view_csv_head(sh, c)) : CSV_CELLS;
		if (cell < CSV_CELLS)
			set_cell(s, r, cell, c, row);
	}
}

/* What of a row has rows of its own: the items of a list, an object, a number. They say whose they are. */
static void put_own_rows(struct view *s, const struct row *of, const struct view_sheet *sh, const void *row)
{
	const struct view_column *c;
	size_t i;

	for (c = sh->columns; c->bytes; c++) {
		const bool is = view_has_own_row(c) && (!(c->flags & VIEW_OMIT) || view_is_there(c, row));
		const struct view_list one = {.rows = (char *)row + c->at, .n = is};
		const struct view_list *list = is && c->type == VIEW_LIST ? one.rows : &one;

		for (i = 0; i < list->n; i++) {
			struct row r = {.table = c->csv, .device = of->device, .tgid = of->tgid};

			r.cells[NAME] = of->cells[NAME];
			if (c->columns) {
				set_cells(s, &r, sh, c->columns, (const char *)list->rows + i * c->item_bytes);
			} else {
				fill_word(&r, NAME, c->key);
				fill(&r, COUNT, view_cell_number(c, row));
			}
			csv_put(s, &r);
		}
	}
}

int view_sheet_csv(struct view *s, const struct view_sheet *sh, const void *table)
{
	const struct view_list *list = table;
	size_t i;

	for (i = 0; sh->csv && i < list->n; i++) {
		const void *row = view_row(sh, table, i);
		struct row r = {.table = list->title ? list->title : sh->csv};

		set_cells(s, &r, sh, sh->columns, row);
		if (*sh->csv)
			csv_put(s, &r);
		put_own_rows(s, &r, sh, row);
	}
	if (sh->csv)
		put_totals(s, sh, table);
	return 0;
}

/* ---- calls */

static void fill_lines(struct row *r, unsigned c, const char *text, size_t len)
{
	r->cells[c] = (struct cell){.is = LINES, .text = text, .len = len};
}

static void set_details(const struct view *s, struct row *r, uint64_t args_id, uint64_t stack_id, uint64_t layer_id)
{
	static const enum view_args_line lines[] = {VIEW_ARGS_DIMS, VIEW_ARGS_TYPES, VIEW_ARGS_OUT_DIMS,
						    VIEW_ARGS_OUT_TYPES};
	const char *text;
	size_t len;
	unsigned i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]) && view_shows_shapes(s); i++) {
		text = view_args_line(s->in->model, args_id, lines[i], &len);
		fill_lines(r, SHAPES + i, text, len);
	}
	text = view_shows_stack(s) ? view_stack(s->in->model, s->opts, stack_id, &len) : NULL;
	fill_lines(r, STACK, text, text ? len : 0);
	text = view_shows_layer(s) ? view_layer(s->in->model, s->opts, layer_id, &len) : NULL;
	fill_lines(r, LAYER, text, text ? len : 0);
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
	const struct mdl_row m = view_event_row(e);

	if (!(e->flags & MXBPF_SPAN_ACCOUNT))
		return;
	set_account(r, &m);
	if (e->cpu != MXBPF_CPU_NONE)
		fill(r, CPU, e->cpu);
	if (e->account.end_cpu != MXBPF_CPU_NONE)
		fill(r, END_CPU, e->account.end_cpu);
}

void csv_fill_extent(const struct view *s, struct row *r, uint64_t first_ns, uint64_t last_ns)
{
	const struct mdl_session *ss = s->in->session;

	if (!last_ns)
		return;
	fill(r, MARK_FIRST, ss->start_unix_ns + (first_ns - ss->start_mono_ns));
	fill(r, MARK_LAST, ss->start_unix_ns + (last_ns - ss->start_mono_ns));
}

static int event_table(struct view *s, const struct view_table *t)
{
	const struct mdl_session *ss = s->in->session;
	const char *text;
	size_t i, len;

	for (i = 0; i < t->nspans; i++) {
		const struct mxbpf_span *e = &t->spans[i];
		struct row r = {.table = t->title, .device = e->device};

		text = mdl_name(s->in->model, e->name_id, &len);
		fill_text(&r, NAME, text, len);
		text = marks_domain(s->in->model, e->name_id, &len);
		fill_text(&r, DOMAIN, text, len);
		r.tgid = e->h.tgid;
		fill(&r, COUNT, 1);
		fill(&r, TOTAL, e->dur_ns);
		fill(&r, SELF, e->self_ns);
		if (mxbpf_traits(e) & MXBPF_TRAIT_USER)
			fill(&r, ANNOTATION, 1);
		fill(&r, EVENT_START, ss->start_unix_ns + (e->h.ts_ns - ss->start_mono_ns));
		fill(&r, EVENT_THREAD, e->tid);
		fill(&r, EVENT_UNWOUND, !!(e->flags & MXBPF_SPAN_UNWOUND));
		counters_add(&r.counters, e);
		if (t->memory) {
			fill_signed(&r, ALLOC_BYTES, e->alloc_bytes);
			fill_signed(&r, SELF_ALLOC_BYTES, e->self_alloc_bytes);
		}
		set_event_account(&r, e);
		r.flops = flops_of(s->in->model, e);
		set_details(s, &r, e->args_id, e->stack_id, e->layer_id);
		csv_put(s, &r);
	}
	return 0;
}

static int class_table(struct view *s, const struct view_table *t)
{
	char label[VIEW_LABEL_BYTES];
	const char *text;
	size_t i, len;

	if (s->opts->by == VIEW_BY_EVENT)
		return event_table(s, t);
	for (i = 0; i < t->nrows; i++) {
		const struct mdl_row *m = t->rows[i];
		struct row r = {.table = t->title, .device = m->device, .counters = m->counters};

		text = view_row_name(s, m, label, &len);
		fill_text(&r, NAME, text, len);
		text = marks_domain(s->in->model, m->name_id, &len);
		fill_text(&r, DOMAIN, text, len);
		csv_fill_extent(s, &r, m->first_ns, m->last_ns);
		r.tgid = m->tgid;
		set_details(s, &r, m->args_id, m->stack_id, m->layer_id);
		if (view_is_annotation(s, m))
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

static void fill_limit(struct row *r, enum column c, uint64_t n)
{
	if (n != MXBPF_GAUGE_NO_LIMIT)
		fill(r, c, n);
}

static void put_machine(struct view *s)
{
	const struct machine_row *g;
	const char *group;
	size_t n, i, len;

	g = machine_rows(s->in->model, &n);
	for (i = 0; i < n; i++, g++) {
		const struct machine_gauge *gauge = &machine_gauges[g->id];
		struct row r = {.table = "machine"};

		fill_word(&r, NAME, gauge->name);
		group = machine_scope_name(s->in->model, g->scope, &len);
		fill_text(&r, GROUP, group, len);
		fill_word(&r, UNIT, machine_units[gauge->unit]);
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

static int opens(struct view *s, const struct mxbpf_open *rows, size_t n)
{
	char waits[VIEW_WAITS_BYTES];
	const char *name;
	size_t i, len;

	for (i = 0; i < n; i++) {
		const struct mxbpf_open *o = &rows[i];
		struct row r = {.table = "open", .device = o->device};

		name = mdl_name(s->in->model, o->name_id, &len);
		fill_text(&r, NAME, name, len);
		fill_word(&r, STATE, view_open_state(o));
		fill_word(&r, WAITS_IN, view_open_waits(s->in->model, o, waits));
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

static void put_line(struct view *s, const char *table, const char *name, enum column c, uint64_t n)
{
	struct row r = {.table = table};

	fill_word(&r, NAME, name);
	if (c != NAME)
		fill(&r, c, n);
	csv_put(s, &r);
}

static void put_texts(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	size_t i;

	for (i = 0; i < ss->nnotes; i++)
		put_line(s, ss->notes[i].name, ss->notes[i].text, NAME, 0);
	for (i = 0; i < ss->nprobes; i++)
		if (!strcmp(ss->probes[i].status, "refused"))
			put_line(s, "refused", ss->probes[i].name, NAME, 0);
}

/* The loss of each source, where there are several. */
static void put_sources(struct view *s)
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
			snprintf(name, sizeof(name), "%s: %s", ss->sources[i].name, rows[k].what);
			put_line(s, "loss", name, COUNT, rows[k].n);
		}
	}
}

static int end(struct view *s)
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
		{"window", "moments", COUNT, view_tally(m, MXBPF_TALLY_MOMENTS)},
		{"window", "unkeyed", COUNT, view_tally(m, MXBPF_TALLY_UNKEYED)},
		{"window", "late", COUNT, view_tally(m, MXBPF_TALLY_LATE)},
		{"window", "unwound", COUNT, view_tally(m, MXBPF_TALLY_UNWOUND)},
		{"window", "ungrouped", COUNT, s->opts->by == VIEW_BY_NAME ? 0 : view_tally(m, MXBPF_TALLY_UNGROUPED)},
	};
	size_t i;

	put_machine(s);
	put_texts(s);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		put_line(s, rows[i].table, rows[i].name, rows[i].column, rows[i].n);
	put_sources(s);
	if (s->opts->by == VIEW_BY_EVENT)
		put_line(s, "window", "events_not_shown", COUNT, view_events_not_shown(s));
	for (i = 0; i < ss->nfallbacks; i++) {
		struct row r = {.table = "fallback"};

		fill_word(&r, NAME, ss->fallbacks[i].name);
		fill(&r, COUNT, ss->fallbacks[i].spans);
		fill(&r, TOTAL, ss->fallbacks[i].at_ns);
		csv_put(s, &r);
	}
	return 0;
}

static const char *const magic[] = {"table,name,", NULL};

const struct view_ops view_csv = {
	.name = "csv",
	.help = "one table of exact integers (ns, bytes), loss included",
	.magic = magic,
	.begin = begin,
	.details = true,
	.by_process = true,
	.state_bytes = sizeof(struct csv),
	.sheet = view_sheet_csv,
	.table = class_table,
	.opens = opens,
	.end = end,
};
