// SPDX-License-Identifier: Apache-2.0
/* The sheets of calls, and their rows. */
#include "feature/cost/cost.h"
#include "feature/counters/counters.h"
#include "feature/flops/flops.h"
#include "feature/marks/marks.h"
#include "view/text/grid.h"
#include "view/calls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"

#define DOMAIN_BYTES_MAX 63 /* bytes of a domain that people see, because they read the name first */

static bool by_event(const struct view *s)
{
	return s->opts->by == VIEW_BY_EVENT;
}

static bool has_account(const struct view *s)
{
	return s->in->session->account;
}

static bool always(const struct view *s)
{
	return true;
}

/* CSV has the columns of user annotations if the runtime can have some, so that a series has the same columns. */
static bool has_annotations(const struct view *s)
{
	return s->in->session->class_title[MXBPF_CLASS_TASK];
}

/* Ranges of NVTX can have a domain as well. */
static bool has_domains(const struct view *s)
{
	size_t n, i, len;
	const struct mdl_row *const *rows = mdl_rows(s->in->model, MXBPF_CLASS_EVENT, &n);

	for (i = 0; !has_annotations(s) && i < n; i++)
		if (mdl_text(s->in->model, MXBPF_NAME_DOMAIN, rows[i]->name_id, &len))
			return true;
	return has_annotations(s);
}

static struct view_text domain_of(const struct view *s, uint64_t name_id, bool people)
{
	struct view_text text = {0};

	text.data = mdl_text(s->in->model, MXBPF_NAME_DOMAIN, name_id, &text.len);
	if (people && text.len > DOMAIN_BYTES_MAX)
		text.len = DOMAIN_BYTES_MAX;
	return text.data ? text : (struct view_text){0};
}

/* ---- details */

int view_details_fill(const struct view *s, struct view_detail_ids ids, struct buf *note, struct view_details *d)
{
	const struct mdl *m = s->in->model;
	int err = 0;

	memset(d, 0, sizeof(*d));
	if (view_shows_shapes(s) && note) {
		note->len = 0;
		err = view_shapes_note(m, ids.args, note);
		if (note->len > strlen("[]"))
			d->shapes = (struct view_text){note->data, note->len};
	} else if (view_shows_shapes(s)) {
		d->shapes.data = view_args_line(m, ids.args, VIEW_ARGS_DIMS, &d->shapes.len);
		d->types.data = view_args_line(m, ids.args, VIEW_ARGS_TYPES, &d->types.len);
		d->out_shapes.data = view_args_line(m, ids.args, VIEW_ARGS_OUT_DIMS, &d->out_shapes.len);
		d->out_types.data = view_args_line(m, ids.args, VIEW_ARGS_OUT_TYPES, &d->out_types.len);
	}
	if (view_shows_stack(s))
		d->stack.data = view_stack(m, s->opts, ids.stack, &d->stack.len);
	if (view_shows_range(s) && ids.range)
		d->range.data = mdl_name(m, ids.range, &d->range.len);
	if (view_shows_layer(s))
		d->layer.data = view_layer(m, s->opts, ids.layer, &d->layer.len);
	if (!d->layer.data)
		d->layer.len = 0;
	return err;
}

#define ROW struct view_details
const struct tbl_column view_details_columns[] = {
	{"shapes", NULL, "shapes", TBL_RAW, AT(shapes), .asked = view_shows_shapes, .def = "shapes",
	 .help = "shapes of the tensor arguments, with --by shape; of single calls, with --shapes"},
	{"types", NULL, NULL, TBL_RAW, AT(types), .asked = view_shows_outputs, .def = "types"},
	{"output_shapes", NULL, NULL, TBL_RAW, AT(out_shapes), .asked = view_shows_outputs, .def = "shapes"},
	{"output_types", NULL, NULL, TBL_RAW, AT(out_types), .asked = view_shows_outputs, .def = "types"},
	{"stack", NULL, "stack", TBL_LINES, AT(stack), .asked = view_shows_stack,
	 .help = "lines, the innermost first, with --by stack; of single calls, with --py-stacks"},
	{"layer", NULL, "layer", TBL_TEXT, AT(layer), TBL_NULL | TBL_BELOW, .asked = view_shows_layer,
	 .help = "node of the model's graph, with --by layer; of single calls, with --layers; null: calls of no layer"},
	{"range", NULL, "range", TBL_TEXT, AT(range), TBL_NULL, .asked = view_shows_range,
	 .help = "innermost range of the program around the calls (NVTX, record_function, tasks of MXNet), with --by "
		 "range; "
		 "null: calls that are in no range of their thread"},
	{0},
};
#undef ROW

/* ---- rows by name, layer, device, process or thread */

/* A user annotation that has the name of an operator of the same table. */
static bool is_namesake(const struct view *s, const struct view_table *t, const struct mdl_row *r,
			struct view_text name)
{
	const char *other;
	size_t len, i;

	for (i = 0; view_is_annotation(s, r) && i < t->nrows; i++) {
		if (view_is_annotation(s, t->rows[i]))
			continue;
		other = mdl_name(s->in->model, t->rows[i]->name_id, &len);
		if (len == name.len && !memcmp(name.data, other, len))
			return true;
	}
	return false;
}

/* Fills in what only people see in this form: marks behind the name, and no layer beside itself. */
static int make_people(const struct view *s, struct view_calls *c, const struct mdl_row *r)
{
	struct view_call *to = &c->call;

	if (s->opts->by == VIEW_BY_LAYER) /* which is the name of the row */
		to->details.layer = (struct view_text){0};
	const bool namesake = !c->counters && is_namesake(s, c->of, r, to->name);

	const bool lacks = to->partial && !to->estimate.known;

	if (!namesake && !lacks)
		return 0;
	c->name.len = 0;
	if (buf_printf(&c->name, "%.*s%s%s", (int)to->name.len, to->name.data, namesake ? " (annotation)" : "",
		       lacks ? " *" : ""))
		return -ENOMEM;
	to->name = (struct view_text){c->name.data, c->name.len};
	return 0;
}

static double percent(uint64_t n, uint64_t of)
{
	return of ? 100.0 * (double)n / (double)of : 0;
}

/* Returns a time of the row as a share of its total time, in percent; -1 if the time is 0. */
static double own_percent(uint64_t ns, const struct mdl_row *r)
{
	return ns ? percent(ns, r->total_ns) : -1;
}

static bool has_cost(const struct view *s)
{
	return s->in->session->cost.scale;
}

static bool has_slices(const struct view *s)
{
	return cost_has_slices(s->in->model);
}

static bool has_partial(const struct view *s)
{
	return cost_has_partial(s->in->model);
}

const void *view_call_make(const struct view *s, void *table, size_t i)
{
	struct view_calls *c = table;
	const bool people = c->list.people;
	const struct mdl_row seen = cost_recorded(c->of->rows[i]), *r = people ? c->of->rows[i] : &seen;
	struct view_call *to = &c->call;
	int err;

	*to = (struct view_call){
		.domain = domain_of(s, r->name_id, people),
		.device = r->device,
		.tgid = r->tgid,
		.of_process = !view_by_label(s->opts->by),
		.tid = s->opts->by == VIEW_BY_THREAD ? r->tid : 0,
		.first_ns = r->first_ns,
		.last_ns = r->last_ns,
		.lasts = r->last_ns,
		.rate = marks_rate(r),
		.count = r->count,
		.total_ns = r->total_ns,
		.self_ns = r->self_ns,
		.partial = cost_is_partial(s->in->model, r, view_by_place(s->opts->by)),
		.raw_total_ns = r->raw_total_ns,
		.raw_self_ns = r->raw_self_ns,
		.single = !r->many,
		.spread = !r->many && mdl_has_spread(r),
		.min_ns = r->min_ns,
		.max_ns = r->max_ns,
		.avg_ns = mdl_row_avg(r),
		.p50_ns = mdl_percentile(r, 0.50),
		.p99_ns = mdl_percentile(r, 0.99),
		.nparts = r->nparts,
		.nbulks = r->nbulks,
		.alloc_bytes = r->alloc_bytes,
		.self_alloc_bytes = r->self_alloc_bytes,
		.memory = c->of->memory,
		.annotation = view_is_annotation(s, r),
		.share = percent(c->of->rows[i]->self_ns, c->of->self_ns),
		.cpu = own_percent(mdl_on_cpu_ns(r), r),
		.runq = own_percent(r->account.runq_ns, r),
		.blocked = own_percent(r->account.blocked_ns, r),
		.account = view_account_of(r),
		.counters = view_counters_of(s, &r->counters, people),
		.counted = r->counters.spans,
		.flops = view_flops_of(&r->flops),
		.estimate = view_estimate_of(s, c, c->of->rows[i]),
	};
	to->name.data = view_row_name(s, r, to->label, &to->name.len);
	err = view_details_fill(s, (struct view_detail_ids){r->args_id, r->stack_id, r->layer_id, r->range_id},
				people ? &c->note : NULL, &to->details);
	if (!err && people)
		err = make_people(s, c, r);
	return err ? NULL : to;
}

static void percent_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	const double v = *(const double *)value;

	snprintf(cell, TBL_CELL_BYTES, v < 99.95 ? "%.1f%%" : "%.0f%%", v);
}

/* Writes calls per iteration or second. Decimal places matter for a few calls, not for hundreds. */
static void each_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	const double v = *(const double *)value;

	snprintf(cell, TBL_CELL_BYTES, v < 10 ? "%.2f" : v < 100 ? "%.1f" : "%.0f", v);
}

static void error_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	const double v = 100 * *(const double *)value;

	snprintf(cell, TBL_CELL_BYTES, v <= 0 ? "0" : v < 1 ? "<1%%" : "%.0f%%", v);
}

static void own_percent_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	const double v = *(const double *)value;

	snprintf(cell, TBL_CELL_BYTES, v < 0 ? "-" : v < 1 ? "<1%%" : "%.0f%%", v);
}

static void rate_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	const double v = *(const double *)value;

	snprintf(cell, TBL_CELL_BYTES, v < 100 ? "%.2f" : "%.0f", v);
}

#define ROW	     struct view_call
#define SEEN(member) .shown = offsetof(struct view_calls, member)
#define HAS(member)  .has = offsetof(ROW, member)
static const struct tbl_column calls_columns[] = {
	{"name", NULL, "name", TBL_TEXT, AT(name)},
	{"device", NULL, "device", TBL_DEVICE, AT(device), SEEN(devices)},
	PID_COLUMN(tgid, HAS(of_process)),
	{"thread", "", NULL, TBL_COUNT, AT(tid), TBL_OMIT,
	 .help = "only with --by thread; absent for calls whose thread is unknown"},
	{"domain", NULL, "domain", TBL_TEXT, AT(domain), TBL_OMIT, SEEN(domain), .place = 12, .asked = has_domains,
	 .def = "domain"},
	{"details", NULL, NULL, TBL_PART, AT(details), .columns = view_details_columns},
	{NULL, NULL, "calls/it", TBL_RATIO, AT(estimate.each), SEEN(by_iteration), .cell = each_cell},
	{NULL, NULL, "self/it", TBL_NS, AT(estimate.self_each_ns), TBL_TIGHT, SEEN(by_iteration)},
	{NULL, NULL, "calls/s", TBL_RATIO, AT(estimate.each), SEEN(by_second), .cell = each_cell},
	{NULL, NULL, "self/s", TBL_NS, AT(estimate.self_each_ns), TBL_TIGHT, SEEN(by_second)},
	{NULL, NULL, "+-", TBL_RATIO, AT(estimate.self_error), SEEN(estimates), .cell = error_cell},
	{"count", NULL, "calls", TBL_COUNT, AT(count), SEEN(whole)},
	{"total_ns", NULL, "total", TBL_NS, AT(total_ns), TBL_TIGHT, SEEN(whole),
	 .help = "sum of the calls' durations including nested calls, so nested time is in several rows of a table. "
		 "Rows "
		 "by thread, device and layer have calls of many names: there total_ns equals self_ns, and the account "
		 "and alloc_bytes exclude nested calls, too"},
	{"self_ns", NULL, "self", TBL_NS, AT(self_ns), TBL_TIGHT, SEEN(nested),
	 .help = "sum of the calls' durations minus directly nested calls of any table; 0 for a call that ended on "
		 "another thread or after its function had returned. Each moment of a thread is in the self time of at "
		 "most one row, so self times can be added up; shares in text are shares of their sum"},
	/* Hidden first if no call was nested, because self time is then the total time. */
	{NULL, NULL, "self", TBL_NS, AT(self_ns), TBL_TIGHT, SEEN(flat), .name_min = 32},
	{"estimate", NULL, NULL, TBL_OBJECT, AT(estimate), HAS(estimate.known), .columns = view_estimate_columns,
	 .asked = has_slices,
	 .help = "for calls that were recorded in slices: what they would be if all had been recorded. Other members "
		 "of "
		 "the row have what was recorded"},
	{"raw_total_ns", NULL, NULL, TBL_NS, AT(raw_total_ns), TBL_OMIT, .asked = has_cost,
	 .help = "total_ns with profiling overhead; absent with --raw, where total_ns has it"},
	{"raw_self_ns", NULL, NULL, TBL_NS, AT(raw_self_ns), TBL_OMIT, .asked = has_cost,
	 .help = "self_ns with profiling overhead"},
	{"min_ns", NULL, "min", TBL_NS, AT(min_ns), TBL_TIGHT, HAS(single), SEEN(durations), .place = 2,
	 .name_min = 24},
	{"max_ns", NULL, "max", TBL_NS, AT(max_ns), TBL_TIGHT, HAS(single), SEEN(durations), .place = 5},
	{"avg_ns", NULL, "avg", TBL_NS, AT(avg_ns), TBL_TIGHT, HAS(single), SEEN(durations), .place = 1,
	 .help = "mean duration, rounded down: total_ns / count; like the other durations of single calls it is absent "
		 "in rows of many "
		 "names (by thread, device and layer), whose calls can be nested in one another"},
	{"p50_ns", NULL, "p50", TBL_NS, AT(p50_ns), TBL_TIGHT, HAS(spread), SEEN(flat_durations), .place = 3,
	 .name_min = 12, .help = "middle of the histogram bucket, which is at most 12.5 % wide"},
	{NULL, NULL, "p50", TBL_NS, AT(p50_ns), TBL_TIGHT, HAS(spread), SEEN(nested_durations), .place = 3,
	 .name_min = 16},
	{"p99_ns", NULL, "p99", TBL_NS, AT(p99_ns), TBL_TIGHT, HAS(spread), SEEN(durations), .place = 4},
	{NULL, NULL, "share", TBL_SHARE, AT(share), .place = 6, .cell = percent_cell,
	 .help = "self_ns as a share of the self time of the table"},
	{"in_segments", "", NULL, TBL_COUNT, AT(nparts), TBL_OMIT,
	 .help = "calls in a segment of a static graph, whose name includes theirs; absent if 0"},
	{"bulks", "", NULL, TBL_COUNT, AT(nbulks), TBL_OMIT,
	 .help = "calls that are bulks of several operators, which have rows, too; absent if 0"},
	{"annotation", NULL, NULL, TBL_BOOL, AT(annotation), TBL_OMIT, HAS(annotation),
	 .help = "user annotations (record_function), separate from the runtime's operators of that name"},
	{"partial", NULL, NULL, TBL_BOOL, AT(partial), TBL_OMIT, HAS(partial), .asked = has_partial,
	 .help = "calls are missing, because --max-overhead left out probes for a time; in text, * behind the name"},
	{"alloc_bytes", NULL, NULL, TBL_BYTES, AT(alloc_bytes), TBL_SIGNED, HAS(memory),
	 .help = "bytes allocated minus bytes freed by the calls' own threads during the calls; in all rows of a table "
		 "or in none"},
	{"self_alloc_bytes", NULL, NULL, TBL_BYTES, AT(self_alloc_bytes), TBL_SIGNED, HAS(memory),
	 .help = "alloc_bytes without those of directly nested calls"},
	{"first_start_unix_ns", "", NULL, TBL_MOMENT, AT(first_ns), HAS(lasts),
	 .help = "only for user annotations, like the next two"},
	{NULL, "first_unix_ns", NULL, TBL_MOMENT, AT(first_ns), HAS(lasts), .asked = has_annotations},
	{"last_end_unix_ns", "", NULL, TBL_MOMENT, AT(last_ns), HAS(lasts)},
	{NULL, "last_unix_ns", NULL, TBL_MOMENT, AT(last_ns), HAS(lasts), .asked = has_annotations},
	{"per_second", "", "per s", TBL_RATIO, AT(rate), HAS(lasts), SEEN(rate), .place = 13, .data_digits = 3,
	 .cell = rate_cell,
	 .help = "count divided by the time from the first start to the last end; for frames, the frame rate"},
	{"account", NULL, NULL, TBL_OBJECT, AT(account), .columns = view_account_columns, .asked = has_account,
	 .def = "account"},
	{NULL, NULL, "cpu", TBL_SHARE, AT(cpu), SEEN(cpu), .place = 7, .name_min = 20, .cell = own_percent_cell,
	 .help = "on_cpu_ns as a share of total_ns"},
	{NULL, NULL, "runq", TBL_SHARE, AT(runq), SEEN(runq), .place = 8, .cell = own_percent_cell,
	 .help = "runq_ns as a share of total_ns"},
	{NULL, NULL, "blocked", TBL_SHARE, AT(blocked), SEEN(blocked), .place = 9, .cell = own_percent_cell,
	 .help = "blocked_ns as a share of total_ns"},
	{"counters", NULL, NULL, TBL_OBJECT, AT(counters), TBL_KEEP, HAS(counted), SEEN(counters),
	 .generate = view_counter_columns, .asked = view_asks_counters, .def = "counters"},
	{"flops", NULL, NULL, TBL_PART, AT(flops), .columns = view_flops_columns, .asked = view_shows_flops},
	{0},
};

static bool has_domain(const struct view *s, const struct view_table *t)
{
	size_t i, len;

	for (i = 0; i < t->nrows; i++)
		if (mdl_text(s->in->model, MXBPF_NAME_DOMAIN, t->rows[i]->name_id, &len))
			return true;
	return false;
}

/* Returns true if a row's time is at least 1 % of the time of the table. */
static bool is_worth(uint64_t ns, const struct view_table *t)
{
	return ns && ns >= t->self_ns / 100;
}

/* Chooses the columns that say something about these rows; all of the account on a terminal with room to spare. */
static void choose_columns(const struct view *s, struct view_calls *c)
{
	const bool wide = s->opts->width > VIEW_WIDTH, account = has_account(s);
	const struct view_table *t = c->of;
	size_t i;

	c->runq = c->blocked = wide;
	for (i = 0; i < t->nrows; i++) {
		const struct mdl_row *r = t->rows[i];

		c->durations |= !r->many;
		c->devices |= r->device != t->rows[0]->device;
		c->nested |= r->self_ns != r->total_ns;
		c->runq |= is_worth(r->account.runq_ns, t);
		c->blocked |= is_worth(r->account.blocked_ns, t);
		c->migrated += r->account.migrated;
		if (view_shows_flops(s)) {
			c->sum.calls += r->flops.calls;
			c->sum.unknown += r->flops.unknown;
		}
	}
	view_estimate_columns_of(s, c);
	c->flat = c->whole && !c->nested;
	c->nested &= c->whole;
	c->nested_durations = c->nested && c->durations;
	c->flat_durations = !c->nested && c->durations;
	c->runq &= account;
	c->blocked &= account;
	c->cpu = c->runq || c->blocked;
	c->flops = c->sum.calls;
	c->domain = has_domain(s, t);
	c->rate = t->cls == MXBPF_CLASS_FRAME;
}

/* The heading names the device if all rows have the same. */
static void calls_above(struct view *s, const void *table, const char *prefix)
{
	const struct view_calls *c = table;
	char ns[24], device[48], left[80] = "";

	if (c->of && c->of->cls == MXBPF_CLASS_API && s->in->session->api_left)
		snprintf(left, sizeof(left), "; %" PRIu32 " functions are not probed (not measured; see --api all)",
			 s->in->session->api_left);
	view_put_safe(s->out, c->list.title, strlen(c->list.title));
	if (!c->list.n) {
		out_printf(s->out, ": %s%s\n",
			   has_slices(s) && !cost_slices_all(s->in->model).seen_ns ? "unknown, because no slice ended"
										   : "nothing seen",
			   left);
		return;
	}
	if (!c->devices && c->of && c->of->rows[0]->device) {
		out_puts(s->out, " on ");
		mdl_device_name(s->in->session, c->of->rows[0]->device, device);
		view_put_safe(s->out, device, strlen(device));
	}
	out_printf(s->out, ": %s in ", fmt_ns(c->of ? c->of->self_ns : 0, ns));
	if (c->list.n < c->list.all)
		out_printf(s->out, "%zu rows, of which %zu are shown%s%s\n", c->list.all, c->list.n, view_hint(s),
			   left);
	else
		out_printf(s->out, "%zu row%s%s\n", c->list.all, c->list.all == 1 ? "" : "s", left);
}

const struct view_sheet sheet_calls = {
	.title = "Calls",
	.help = "Operators, calls of the C API and user annotations. Each class of calls is a table with the title "
		"that "
		"the runtime uses.",
	.def = "row",
	.csv = "calls",
	.columns = calls_columns,
	.row_bytes = sizeof(struct view_call),
	.table_bytes = sizeof(struct view_calls),
	.of_class = true,
	.when = always,
	.row = view_call_make,
	.above = calls_above,
};
#undef ROW

/* ---- events */

static const void *make_event(const struct view *s, void *table, size_t i)
{
	struct view_calls *c = table;
	const struct mxbpf_span *e = &c->of->spans[i];
	const struct mdl_row r = view_event_row(e);
	const struct mdl_flops flops = flops_of(s->in->model, e);
	struct view_event *to = &c->event;

	*to = (struct view_event){
		.domain = domain_of(s, e->name_id, c->list.people),
		.device = e->device,
		.tgid = e->h.tgid,
		.tid = e->tid,
		.start_ns = e->h.ts_ns,
		.count = 1,
		.self_ns = e->self_ns,
		.time = {e->dur_ns, e->flags & MXBPF_SPAN_UNWOUND},
		.unwound = e->flags & MXBPF_SPAN_UNWOUND,
		.part = e->flags & MXBPF_SPAN_PART,
		.bulk = e->bulk,
		.annotation = mxbpf_traits(e) & MXBPF_TRAIT_USER,
		.memory = c->of->memory,
		.alloc_bytes = e->alloc_bytes,
		.self_alloc_bytes = e->self_alloc_bytes,
		.has_account = e->flags & MXBPF_SPAN_ACCOUNT,
		.cpu = e->cpu == MXBPF_CPU_NONE ? TBL_UNKNOWN : e->cpu,
		.end_cpu = e->account.end_cpu == MXBPF_CPU_NONE ? TBL_UNKNOWN : e->account.end_cpu,
		.on_cpu_ns = e->account.on_cpu_ns,
		.runq_ns = e->account.runq_ns,
		.blocked_ns = e->account.blocked_ns,
		.account = view_account_of(&r),
		.counters = view_counters_of(s, &r.counters, c->list.people),
		.counted = r.counters.spans,
		.flops = view_flops_of(&flops),
	};
	to->name.data = mdl_name(s->in->model, e->name_id, &to->name.len);
	return view_details_fill(s, (struct view_detail_ids){e->args_id, e->stack_id, e->layer_id, 0},
				 c->list.people ? &c->note : NULL, &to->details)
		       ? NULL
		       : to;
}

static void time_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	const struct view_event_time *t = value;

	cell[0] = '<'; /* an upper bound: its end was not seen */
	fmt_tight_ns(t->ns, cell + t->unwound);
}

#define ROW struct view_event
static const struct tbl_column events_columns[] = {
	{"name", NULL, "name", TBL_TEXT, AT(name)},
	{"device", NULL, NULL, TBL_DEVICE, AT(device)},
	PID_COLUMN(tgid),
	{"domain", "", NULL, TBL_TEXT, AT(domain), TBL_OMIT, .def = "domain"},
	{NULL, "domain", NULL, TBL_TEXT, AT(domain), .asked = has_annotations},
	{"thread", NULL, "thread", TBL_COUNT, AT(tid)},
	{"start_unix_ns", NULL, "start", TBL_MOMENT, AT(start_ns), TBL_TIGHT, .digits = 6},
	{NULL, "count", NULL, TBL_COUNT, AT(count)},
	{"total_ns", NULL, "time", TBL_NS, AT(time), .cell = time_cell},
	{"self_ns", NULL, "self", TBL_NS, AT(self_ns), TBL_TIGHT},
	{"alloc_bytes", NULL, NULL, TBL_BYTES, AT(alloc_bytes), TBL_SIGNED, HAS(memory)},
	{NULL, "", "bytes", TBL_COUNT, AT(alloc_bytes), TBL_SIGNED, SEEN(memory)},
	{"self_alloc_bytes", NULL, NULL, TBL_BYTES, AT(self_alloc_bytes), TBL_SIGNED, HAS(memory)},
	{"cpu", NULL, NULL, TBL_COUNT, AT(cpu), TBL_NULL, HAS(has_account), .asked = has_account,
	 .help = "CPU on which the call began. " VIEW_CPU_HELP},
	{"end_cpu", NULL, NULL, TBL_COUNT, AT(end_cpu), TBL_NULL, HAS(has_account), .asked = has_account,
	 .help = VIEW_CPU_HELP},
	{"account", NULL, NULL, TBL_OBJECT, AT(account), HAS(has_account), .columns = view_account_columns,
	 .asked = has_account, .def = "account"},
	{NULL, "", "cpu", TBL_NS, AT(on_cpu_ns), TBL_TIGHT | TBL_DASH, .asked = has_account},
	{NULL, "", "runq", TBL_NS, AT(runq_ns), TBL_TIGHT | TBL_DASH, .asked = has_account},
	{NULL, "", "blocked", TBL_NS, AT(blocked_ns), TBL_TIGHT | TBL_DASH, .asked = has_account},
	{"counters", NULL, NULL, TBL_OBJECT, AT(counters), TBL_KEEP, HAS(counted), SEEN(counters),
	 .generate = view_counter_columns, .asked = view_asks_counters, .def = "counters"},
	{"details", NULL, NULL, TBL_PART, AT(details), .columns = view_details_columns},
	{"flops", NULL, NULL, TBL_PART, AT(flops), .columns = view_flops_columns, .asked = view_shows_flops},
	{"unwound", NULL, NULL, TBL_BOOL, AT(unwound), TBL_OMIT,
	 .help = "left without reaching its end: the duration is an upper bound"},
	{"in_segment", "", NULL, TBL_BOOL, AT(part), TBL_OMIT, .help = "in a segment of a static graph"},
	{"bulk", "", NULL, TBL_BOOL, AT(bulk), TBL_OMIT,
	 .help = "a bulk: the engine ran several operators, which have calls of their own, as one"},
	{"annotation", NULL, NULL, TBL_BOOL, AT(annotation), TBL_OMIT, HAS(annotation),
	 .help = "user annotation (record_function)"},
	{0},
};

static void events_above(struct view *s, const void *table, const char *prefix)
{
	const struct view_list *t = table;

	view_put_safe(s->out, t->title, strlen(t->title));
	if (!t->n)
		out_puts(s->out, ": nothing kept\n");
	else if (t->n < t->all)
		out_printf(s->out, ": %zu calls, of which %zu are shown\n", t->all, t->n);
	else
		out_printf(s->out, ": %zu call%s\n", t->n, t->n == 1 ? "" : "s");
}

const struct view_sheet sheet_events = {
	.title = "Calls one by one",
	.help = "With --by event: one call.",
	.row_help = "With --by event: one call.",
	.def = "event",
	.csv = "calls",
	.columns = events_columns,
	.row_bytes = sizeof(struct view_event),
	.table_bytes = sizeof(struct view_calls),
	.of_class = true,
	.when = by_event,
	.row = make_event,
	.above = events_above,
};

int view_calls_table(struct view *s, const struct view_table *t)
{
	const bool events = by_event(s);
	struct view_calls c = {
		.list = {.title = t->title,
			 .n = events ? t->nspans : t->nrows,
			 .all = events ? t->nspans_all : t->nrows_all,
			 .people = s->ops->people},
		.of = t,
		.memory = t->memory,
	};
	int err;

	if (!events)
		choose_columns(s, &c);
	err = s->ops->sheet(s, events ? &sheet_events : &sheet_calls, &c);
	c.counters = true;
	if (!err && !events && t->nrows && view_asks_counters(s))
		err = s->ops->sheet(s, &sheet_counters, &c);
	buf_fini(&c.name);
	buf_fini(&c.note);
	return err;
}
