// SPDX-License-Identifier: Apache-2.0
/* Why GPUs ran nothing: a row for each GPU and cause. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/idle/sheet.h"
#include "feature/lines/lines.h"
#include "feature/steps/steps.h"
#include "view/gpu.h"

#define NAMES_MAX   8  /* operators or calls of a cause, and lines, that programs see */
#define PLACE_BYTES 28 /* of an operator or line that people see */

/* The causes, and what is in none: the time before the first work of the window and after the last one. */
#define EDGES MXBPF_IDLE_CAUSES

#define CAUSE_WORDS                                                                                                    \
	[MXBPF_IDLE_BUSY] = "busy", [MXBPF_IDLE_DATA] = "data", [MXBPF_IDLE_PYTHON] = "program",                       \
	[MXBPF_IDLE_OPERATOR] = "cpu", [MXBPF_IDLE_BLOCKED] = "blocked", [MXBPF_IDLE_RUNQ] = "no_cpu",                 \
	[MXBPF_IDLE_LAUNCH] = "launch", [MXBPF_IDLE_COPY] = "copy", [MXBPF_IDLE_EVENT] = "event",                      \
	[MXBPF_IDLE_COLLECTIVE] = "others", [MXBPF_IDLE_HOST] = "host_waits", [MXBPF_IDLE_UNKNOWN] = "unknown",        \
	[MXBPF_IDLE_OWN_CPU] = "program_cpu", [MXBPF_IDLE_OWN_BLOCKED] = "program_blocked",                            \
	[MXBPF_IDLE_OWN_RUNQ] = "program_no_cpu"

const char *const idle_words[MXBPF_IDLE_CAUSES] = {CAUSE_WORDS};
static const char *const words[] = {CAUSE_WORDS, [EDGES] = "edges"};

struct name {
	struct view_text name;
	uint64_t name_id, ns;
};

/* The line of a cause is the one that most looks have found, else that of the stack with the most time. */
struct line {
	struct view_text text;
	uint64_t looks, ns;
};

struct row {
	struct view_text gpu, cause, name, line;
	uint32_t tgid, device;
	uint8_t which; /* index in words */
	bool idle;     /* it is a cause */
	uint64_t ns, count, per_iteration_ns, looks;
	uint64_t p50_ns, max_ns; /* of an iteration; TBL_UNKNOWN */
	double share;
	struct view_list by, by_line;
	struct name names[NAMES_MAX];
	struct line lines[NAMES_MAX];
	struct view_text place; /* for people: the operator, else the line without its directory */
	char text[VIEW_LABEL_BYTES + 32], place_text[PLACE_BYTES + 4];
};

struct table {
	struct view_list list;
	bool devices, iterations;
	uint64_t idle_ns, all_ns;
	bool has_spread;
	struct idle_spread spread; /* of the GPU whose rows are made */
};

/* ---- rows */

static int by_cause(const void *va, const void *vb)
{
	const struct mxbpf_agg_gpu_idle *a = va, *b = vb;

	if (a->h.tgid != b->h.tgid)
		return a->h.tgid < b->h.tgid ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->cause != b->cause)
		return a->cause < b->cause ? -1 : 1;
	if (a->name_id != b->name_id)
		return a->name_id < b->name_id ? -1 : 1;
	return a->stack_id < b->stack_id ? -1 : a->stack_id > b->stack_id;
}

/* Busy first, then the causes with the most time, then what is in none. */
static int idle_by_time(const void *va, const void *vb)
{
	const struct row *a = va, *b = vb;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (!a->which != !b->which)
		return a->which ? 1 : -1;
	if ((a->which == EDGES) != (b->which == EDGES))
		return a->which == EDGES ? 1 : -1;
	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->which - b->which;
}

/* Keeps the names with the most time, in order. */
static void keep_name(struct row *r, uint64_t name_id, uint64_t ns)
{
	size_t i = r->by.n;

	if (!name_id || !ns || (i == NAMES_MAX && r->names[i - 1].ns >= ns))
		return;
	i -= i == NAMES_MAX;
	for (; i && r->names[i - 1].ns < ns; i--)
		r->names[i] = r->names[i - 1];
	r->names[i] = (struct name){.name_id = name_id, .ns = ns};
	r->by.n += r->by.n < NAMES_MAX;
}

static void add_line(const struct view *s, struct buf *lines, const struct mxbpf_agg_gpu_idle *a)
{
	struct line one = {.looks = a->looks, .ns = a->ns}, *l;
	size_t i;

	one.text.data = lines_of_program(s->in->model, a->stack_id, &one.text.len);
	for (i = 0; one.text.data && i < buf_count(lines, one); i++) {
		l = buf_at(lines, struct line, i);
		if (l->text.len != one.text.len || memcmp(l->text.data, one.text.data, one.text.len))
			continue;
		add_sat(&l->looks, one.looks);
		add_sat(&l->ns, one.ns);
		return;
	}
	if (one.text.data)
		buf_put(lines, &one, sizeof(one)); /* without memory a line is missing */
}

static int by_looks(const void *va, const void *vb)
{
	const struct line *a = va, *b = vb;

	if (a->looks != b->looks)
		return a->looks > b->looks ? -1 : 1;
	return a->ns > b->ns ? -1 : a->ns < b->ns;
}

static void choose_lines(struct row *r, struct buf *lines)
{
	const size_t n = buf_count(lines, struct line);

	if (!n)
		return;
	qsort(lines->data, n, sizeof(struct line), by_looks);
	r->by_line.n = n < NAMES_MAX ? n : NAMES_MAX;
	memcpy(r->lines, lines->data, r->by_line.n * sizeof(struct line));
	r->line = r->lines[0].text;
	r->looks = r->lines[0].looks;
}

/* Adds up the n records of a GPU and a cause. */
static void idle_fill(const struct view *s, struct row *r, const struct mxbpf_agg_gpu_idle *a, size_t n)
{
	struct buf lines = {0};
	uint64_t ns = 0;
	size_t i;

	*r = (struct row){.tgid = a->h.tgid, .device = a->device, .which = a->cause};
	for (i = 0; i < n; i++) {
		add_sat(&r->ns, a[i].ns);
		add_sat(&r->count, a[i].count);
		add_sat(&ns, a[i].ns);
		if (i + 1 == n || a[i + 1].name_id != a[i].name_id) {
			keep_name(r, a[i].name_id, ns);
			ns = 0;
		}
		add_line(s, &lines, &a[i]);
	}
	choose_lines(r, &lines);
	buf_fini(&lines);
}

/* Adds a row with the rest of the time in which the GPU was watched. Returns the time of all. */
static uint64_t add_edges(const struct view *s, struct row **r, const struct mxbpf_agg_gpu_idle *busy)
{
	const uint64_t work_ns = busy->last_ns > busy->first_ns ? busy->last_ns - busy->first_ns : 0;
	const uint64_t all_ns = activity_seen_ns(s->in->model, busy->h.tgid, s->in->session->duration_ns);

	if (all_ns <= work_ns)
		return work_ns;
	*(*r)++ = (struct row){
		.tgid = busy->h.tgid, .device = busy->device, .which = EDGES, .ns = all_ns - work_ns, .count = 1};
	return all_ns;
}

/* The rows keep their process in a sum of processes, and iterations do not. */
static uint64_t iterations_of(const struct view *s, uint32_t tgid)
{
	size_t n, i;
	const struct mxbpf_iteration *all = steps_iterations(s->in->processes ? s->in->processes : s->in->model, &n);
	uint64_t count = 0;

	for (i = 0; i < n; i++)
		count += all[i].h.tgid == tgid;
	return count;
}

/* Makes the rows of a GPU, of which there are n records. Returns the row behind them. */
static struct row *make_device(const struct view *s, struct table *t, struct row *r, const struct mxbpf_agg_gpu_idle *a,
			       size_t n)
{
	const struct idle_spread *spread = &t->spread;
	const uint64_t iterations = iterations_of(s, a->h.tgid);
	struct row *const first_row = r, *one;
	uint64_t all_ns = 0;
	size_t i, k;

	for (i = 0; i < n; i = k) {
		for (k = i; k < n && a[k].cause == a[i].cause; k++)
			;
		idle_fill(s, r, &a[i], k - i);
		all_ns += r->ns;
		r += r->ns || !r->which;
	}
	if (!a->cause)
		all_ns = add_edges(s, &r, a);
	for (one = first_row; one < r; one++) {
		one->idle = one->which != MXBPF_IDLE_BUSY && one->which != EDGES;
		one->share = all_ns ? (double)one->ns / (double)all_ns : 0;
		one->per_iteration_ns = iterations ? one->ns / iterations : 0;
		one->p50_ns = one->which < EDGES && t->has_spread ? spread->p50_ns[one->which] : TBL_UNKNOWN;
		one->max_ns = one->which < EDGES && t->has_spread ? spread->max_ns[one->which] : TBL_UNKNOWN;
		add_sat(&t->idle_ns, one->which ? one->ns : 0);
		add_sat(&t->all_ns, one->ns);
	}
	t->iterations |= iterations;
	if (!t->list.people || r == first_row || first_row->which)
		return r;
	memmove(first_row, first_row + 1, (size_t)(r - first_row - 1) * sizeof(*r)); /* the heading has what was busy */
	return r - 1;
}

static void put_place(struct row *r)
{
	const struct view_text *of = r->name.data ? &r->name : &r->line;
	const char *slash = r->name.data || !of->data ? NULL : memrchr(of->data, '/', of->len);
	const char *from = slash ? slash + 1 : of->data;
	size_t len = of->data ? of->len - (size_t)(from - of->data) : 0;
	const char *end = "";

	if (len > PLACE_BYTES) {
		for (len = PLACE_BYTES - 3; len && (from[len] & 0xc0) == 0x80; len--)
			; /* not within a character */
		end = "...";
	}
	snprintf(r->place_text, sizeof(r->place_text), "%.*s%s", (int)len, from ? from : "", end);
	r->place = len ? view_word(r->place_text) : (struct view_text){0};
}

/* Sorting has moved the texts. */
static void idle_put_texts(const struct view *s, struct row *r, bool processes)
{
	char process[VIEW_LABEL_BYTES + 2] = "", owner[VIEW_LABEL_BYTES];
	size_t i;

	if (processes)
		snprintf(process, sizeof(process), "%s ", gpu_owner(s, r->tgid, owner));
	snprintf(r->text, sizeof(r->text), "%sGPU %" PRIu32, process, r->device);
	r->gpu = view_word(r->text);
	r->cause = view_word(r->which < MXBPF_IDLE_CAUSES ? idle_cause_words[r->which] : "before and after all work");
	for (i = 0; i < r->by.n; i++)
		r->names[i].name.data = mdl_name(s->in->model, r->names[i].name_id, &r->names[i].name.len);
	if (r->by.n)
		r->name = r->names[0].name;
	put_place(r);
	r->by.rows = r->names;
	r->by.all = r->by.n;
	r->by_line.rows = r->lines;
	r->by_line.all = r->by_line.n;
}

static int idle_make(const struct view *s, void *table)
{
	struct table *t = table;
	struct idle_results all = {0};
	struct mxbpf_agg_gpu_idle *a;
	struct row *rows = NULL, *r;
	size_t n, i, k;
	int err = idle_results(s->in->model, &all);

	n = buf_count(&all.rows, *a);
	a = (struct mxbpf_agg_gpu_idle *)all.rows.data;
	if (!err)
		t->list.rows = rows = calloc(2 * n + 1, sizeof(*rows)); /* a device has a row more than causes */
	if (n)
		qsort(a, n, sizeof(*a), by_cause);
	for (r = rows, i = 0; rows && i < n; i = k) {
		for (k = i; k < n && a[k].h.tgid == a[i].h.tgid && a[k].device == a[i].device; k++)
			;
		t->has_spread = all.steps.len && !idle_spread_of(&all.steps, a[i].h.tgid, a[i].device, &t->spread);
		r = make_device(s, t, r, &a[i], k - i);
		t->devices |= i;
	}
	t->list.all = rows ? (size_t)(r - rows) : 0;
	if (t->list.all)
		qsort(rows, t->list.all, sizeof(*rows), idle_by_time);
	for (i = 0; i < t->list.all; i++)
		idle_put_texts(s, &rows[i], rows[0].tgid != rows[t->list.all - 1].tgid);
	idle_results_fini(&all);
	gpu_show_empty(s, &t->list);
	return rows ? 0 : -ENOMEM;
}

static void idle_above(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;
	char idle[24], all[24];

	out_printf(s->out, "%sGPU idle time by cause: %s of %s (%.1f%%)\n", prefix, fmt_ns(t->idle_ns, idle),
		   fmt_ns(t->all_ns, all), t->all_ns ? 100 * (double)t->idle_ns / (double)t->all_ns : 0);
}

static void idle_below(struct view *s, const void *table, const char *prefix)
{
	const struct view_list *list = &((const struct table *)table)->list;
	const struct row *r = list->rows;
	size_t i;

	for (i = 0; i < list->all && r[i].which != MXBPF_IDLE_PYTHON; i++)
		;
	if (i == list->all)
		return;
	out_printf(
		s->out,
		"%swhether your Python code had a CPU is not known, because no switches of its threads were recorded\n",
		prefix);
	if (!s->in->session->profiler)
		out_printf(s->out, "%s(--no-bpf, --no-account and slices leave them out)\n", prefix);
}

#define ROW struct name
static const struct tbl_column name_columns[] = {
	{"name", NULL, NULL, TBL_TEXT, AT(name)},
	{"ns", NULL, NULL, TBL_NS, AT(ns)},
	{0},
};
#undef ROW

#define ROW struct line
static const struct tbl_column line_columns[] = {
	{"line", NULL, NULL, TBL_TEXT, AT(text)},
	{"looks", NULL, NULL, TBL_COUNT, AT(looks)},
	{"ns", NULL, NULL, TBL_NS, AT(ns), .help = "of calls on this line; of your Python code, before them"},
	{0},
};
#undef ROW

#define ROW	     struct row
#define SEEN(member) .shown = offsetof(struct table, member)
static const struct tbl_column columns[] = {
	{NULL, "name", "cause", TBL_TEXT, AT(cause), TBL_BEGINS},
	{"cause", "", NULL, TBL_WORD, AT(which), WORDS(words), .label = "cause",
	 .help = "busy: at least one kernel or set ran; edges: before the first work of the window and after the last; "
		 "program: your Python code, and whether it had a CPU is not known"},
	{NULL, NULL, "gpu", TBL_TEXT, AT(gpu), SEEN(devices)},
	PID_COLUMN(tgid),
	{"gpu", "", NULL, TBL_COUNT, KEY_AT(device), .label = "gpu", .help = "number of the GPU in the process"},
	/* Without what follows the last work of an interval: the next one has its cause. */
	{NULL, NULL, NULL, TBL_NS, AT(ns), .has = offsetof(struct row, idle),
	 .metric = METRIC("mxbpf_gpu_idle_seconds",
			  "Time between kernels and sets of the process on the GPU, by why none ran")},
	{"total_ns", NULL, "time", TBL_NS, SUM_AT(ns), TBL_TIGHT,
	 .help = "the rows of a GPU add up to the time in which it was watched"},
	{NULL, NULL, "share", TBL_SHARE, AT(share), .digits = 1,
	 .help = "part of the time in which the GPU was watched"},
	{"per_iteration_ns", NULL, "/iteration", TBL_NS, AT(per_iteration_ns), TBL_TIGHT | TBL_DASH, SEEN(iterations),
	 .help = "total_ns by the number of iterations; 0 if none were found"},
	{"p50_ns", NULL, NULL, TBL_NS, AT(p50_ns), TBL_NULL, .help = "of an iteration: median; null if not known"},
	{"max_ns", NULL, NULL, TBL_NS, AT(max_ns), TBL_NULL, .help = "of an iteration: the most"},
	{"count", NULL, "times", TBL_COUNT, SUM_AT(count), .name_min = 26, .help = "pieces of time"},
	{NULL, NULL, "most of it in", TBL_TEXT, AT(place), TBL_NULL},
	{"name", "operator", NULL, TBL_TEXT, LAST_AT(name), TBL_NULL,
	 .help = "operator or call with the most of this time"},
	{"line", NULL, NULL, TBL_TEXT, LAST_AT(line), TBL_NULL,
	 .help = "Python line on which most samples found the thread meanwhile; without samples, of the stack with the "
		 "most "
		 "time (--py-stacks)"},
	{"looks", NULL, NULL, TBL_COUNT, AT(looks),
	 .help = "samples (ten a second) that found the thread on this line"},
	{"by", "gpu.idle.by", NULL, TBL_LIST, AT(by), .columns = name_columns, .item_bytes = sizeof(struct name),
	 .help = "operators and calls with the most of this time, at most eight"},
	{"lines", "gpu.idle.line", NULL, TBL_LIST, AT(by_line), .columns = line_columns,
	 .item_bytes = sizeof(struct line),
	 .help = "Python lines, at most eight: those of samples first, then those of stacks (--py-stacks)"},
	{0},
};

const struct view_sheet sheet_gpu_idle = {
	.title = "GPU idle time by cause",
	.help = "Why each GPU ran no kernel; absent if no GPU had work.",
	.list_help = "GPUs that had work, by process and number: busy, then causes by time",
	.member = "gpu",
	.list = "idle",
	.csv = "GPU idle time",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.if_any = true,
	.whole = true,
	.when = gpu_when,
	.make = idle_make,
	.above = idle_above,
	.below = idle_below,
};
