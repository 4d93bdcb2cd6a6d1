// SPDX-License-Identifier: Apache-2.0
/* Iterations: durations, the parts of their time, and the slowest ones. */
#include "feature/steps/steps.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/idle/sheet.h"
#include "feature/steps/sheet.h"
#include "view/priv.h"
#include "view/sheet.h"

#define WHY_BYTES   160
#define SLOWEST_MAX 8  /* rows without --top */
#define NOTABLE	    10 /* percent of the median: a part that is longer by more gets a sentence */

struct part {
	uint64_t total_ns, p50_ns, max_ns;
};

/* A row of CSV: a part of the iterations of a loop. */
struct csv_part {
	struct view_text name;
	uint64_t count, total_ns, p50_ns, max_ns; /* p50_ns, max_ns: TBL_UNKNOWN if not known */
};

/* Iterations of a thread, or of all processes together. */
struct loop {
	uint32_t tgid, tid;
	uint8_t told;	     /* enum mxbpf_step_what */
	uint64_t count;	     /* iterations that began and ended in the window */
	uint64_t missing;    /* the first of count, whose records were dropped; not in the other members */
	uint64_t told_count; /* count without missing */
	uint64_t total_ns, min_ns, max_ns, avg_ns, p50_ns, p99_ns;
	struct {
		uint64_t count, total_ns, busy_ns;
		struct part parts[MXBPF_STEP_PARTS];
	} known; /* sums of the iterations with known parts */
	struct {
		uint64_t count;	      /* iterations for which it is known */
		struct part part;     /* time on GPUs of what they launched */
		uint64_t kernels;     /* in all of them */
		uint64_t kernels_p50; /* in one */
	} gpu;
	uint64_t first_p50_ns;	   /* median time before the first call, part of OUTSIDE */
	struct view_list csv_list; /* rows: csv_parts */
	struct csv_part csv_parts[MXBPF_STEP_PARTS + 1];
};

struct slow {
	struct mxbpf_iteration it;
	uint64_t median_ns;
	uint64_t one;
	uint8_t longer; /* the part that exceeds its median the most; MXBPF_STEP_PARTS: none does */
	uint64_t longer_ns;
	uint64_t busy_ns, part_ns[MXBPF_STEP_PARTS]; /* TBL_UNKNOWN */
	uint64_t gpu_ns, kernels;		     /* TBL_UNKNOWN */
	struct idle_step idle;
	struct view_text number, hash_number, note, csv_table;
	char number_text[24], note_text[WHY_BYTES], table[64];
};

struct slowest {
	struct view_list list;
	struct view_list loops; /* owned */
	struct idle_steps idle;
};

const char *const steps_tolds[MXBPF_STEP_WHATS] = {
	[MXBPF_STEP_NONE] = "nothing",	[MXBPF_STEP_BACKWARD] = "backward",	   [MXBPF_STEP_KVSTORE] = "kvstore",
	[MXBPF_STEP_UPDATE] = "update", [MXBPF_STEP_OPTIMIZER] = "optimizer_step", [MXBPF_STEP_COUNTED] = "sampled",
};

static const char *const ends[MXBPF_STEP_WHATS] = {
	[MXBPF_STEP_NONE] = "nothing",
	[MXBPF_STEP_BACKWARD] = "where a backward pass begins: no operator of an optimizer was seen",
	[MXBPF_STEP_KVSTORE] = "with the last call of the KVStore before the next backward pass",
	[MXBPF_STEP_UPDATE] = "with the optimizer's last operator before the next backward pass",
	[MXBPF_STEP_OPTIMIZER] = "with a step of the optimizer",
	[MXBPF_STEP_COUNTED] = "as --iterations counts them",
};

static const char *end_of(const struct view *s, unsigned told)
{
	return told == MXBPF_STEP_COUNTED && s->in->session->profiler ? "with a step of the profiler" : ends[told];
}

static const char *const titles[MXBPF_STEP_PARTS] = {
	[MXBPF_PART_DATA] = "waits for data",
	[MXBPF_PART_WAIT] = "waits for the engine",
	[MXBPF_PART_KVSTORE] = "exchange with other processes",
	[MXBPF_PART_OPERATOR] = "operators on its own thread",
	[MXBPF_PART_API] = "the rest of the C API",
	[MXBPF_PART_OUTSIDE] = "your Python code",
};

/* Calls of the C API that are not probed count as time outside the runtime, so both parts have other titles then. */
static const char *title_of(const struct view *s, unsigned part)
{
	if (part == MXBPF_PART_API && s->in->session->api_left)
		return "probed calls of the C API";
	if (part == MXBPF_PART_OUTSIDE && s->in->session->api_left)
		return "your Python code or not probed";
	return part == MXBPF_PART_OUTSIDE && !mdl_in_python(s->in->session) ? "your own code" : titles[part];
}

/* ---- sums */

static int by_ns(const void *va, const void *vb)
{
	const uint64_t *a = va, *b = vb;

	return *a < *b ? -1 : *a > *b;
}

/* Sorts ns and returns the percentile by nearest rank. */
static uint64_t percentile(uint64_t *ns, size_t n, unsigned percent)
{
	size_t rank = (n * percent + 99) / 100;

	qsort(ns, n, sizeof(*ns), by_ns);
	return n ? ns[rank ? rank - 1 : 0] : 0;
}

static uint64_t sum_sat(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void sum_part(struct part *part, uint64_t *ns, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		part->total_ns = sum_sat(part->total_ns, ns[i]);
	part->p50_ns = percentile(ns, n, 50);
	part->max_ns = n ? ns[n - 1] : 0;
}

static bool steps_is_known(const struct mxbpf_iteration *it)
{
	return it->flags & MXBPF_ITERATION_PARTS;
}

static void sum_parts(struct loop *l, const struct mxbpf_iteration *it, size_t n, uint64_t *ns)
{
	struct part busy = {0}, first = {0};
	size_t i, k = 0;
	unsigned part;

	for (part = 0; part < MXBPF_STEP_PARTS; part++) {
		for (i = k = 0; i < n; i++)
			if (steps_is_known(&it[i]))
				ns[k++] = it[i].part_ns[part];
		sum_part(&l->known.parts[part], ns, k);
	}
	for (i = k = 0; i < n; i++)
		if (steps_is_known(&it[i])) {
			l->known.total_ns = sum_sat(l->known.total_ns, it[i].dur_ns);
			ns[k++] = it[i].busy_ns;
		}
	l->known.count = k;
	sum_part(&busy, ns, k);
	l->known.busy_ns = busy.total_ns;
	for (i = k = 0; i < n; i++)
		if (steps_is_known(&it[i]))
			ns[k++] = it[i].first_ns;
	sum_part(&first, ns, k);
	l->first_p50_ns = first.p50_ns;
}

static bool is_gpu_known(const struct mxbpf_iteration *it)
{
	return it->flags & MXBPF_ITERATION_GPU;
}

static void sum_gpu(struct loop *l, const struct mxbpf_iteration *it, size_t n, uint64_t *ns)
{
	struct part kernels = {0};
	size_t i, k = 0;

	for (i = 0; i < n; i++)
		if (is_gpu_known(&it[i]))
			ns[k++] = it[i].kernels;
	sum_part(&kernels, ns, k);
	l->gpu.count = k;
	l->gpu.kernels = kernels.total_ns;
	l->gpu.kernels_p50 = kernels.p50_ns;
	for (i = k = 0; i < n; i++)
		if (is_gpu_known(&it[i]))
			ns[k++] = it[i].gpu_ns;
	sum_part(&l->gpu.part, ns, k);
}

static void set_csv_parts(struct loop *l)
{
	unsigned i;

	for (i = 0; i < MXBPF_STEP_PARTS; i++) {
		const struct part *p = &l->known.parts[i];

		l->csv_parts[i] =
			(struct csv_part){view_word(steps_parts[i]), l->known.count, p->total_ns, p->p50_ns, p->max_ns};
	}
	l->csv_parts[i] =
		(struct csv_part){view_word("operators"), l->known.count, l->known.busy_ns, TBL_UNKNOWN, TBL_UNKNOWN};
	l->csv_list.n = l->known.count ? i + 1 : 0;
}

/* begun: number of the first iteration of the model. */
static void sum_loop(struct loop *l, const struct mxbpf_iteration *it, size_t n, uint64_t begun, uint64_t *ns)
{
	struct part all = {0};
	size_t i;

	*l = (struct loop){.tgid = it->h.tgid,
			   .tid = it->h.tgid ? it->tid : 0,
			   .told = it->told,
			   .missing = it->nr,
			   .min_ns = UINT64_MAX};
	for (i = 0; i < n; i++) {
		ns[i] = it[i].dur_ns;
		l->min_ns = it[i].dur_ns < l->min_ns ? it[i].dur_ns : l->min_ns;
		l->missing = it[i].nr < l->missing ? it[i].nr : l->missing;
	}
	l->missing -= begun < l->missing ? begun : l->missing;
	if (l->missing > UINT64_MAX - n) /* a recording is untrusted */
		l->missing = UINT64_MAX - n;
	l->count = n + l->missing;
	sum_part(&all, ns, n);
	l->total_ns = all.total_ns;
	l->max_ns = all.max_ns;
	l->p50_ns = all.p50_ns;
	l->p99_ns = percentile(ns, n, 99);
	l->told_count = n;
	l->avg_ns = l->total_ns / n;
	sum_parts(l, it, n, ns);
	sum_gpu(l, it, n, ns);
	set_csv_parts(l);
}

static int by_length(const void *va, const void *vb)
{
	const struct mxbpf_iteration *a = *(const struct mxbpf_iteration *const *)va;
	const struct mxbpf_iteration *b = *(const struct mxbpf_iteration *const *)vb;

	if (a->dur_ns != b->dur_ns)
		return a->dur_ns > b->dur_ns ? -1 : 1;
	return a->h.ts_ns < b->h.ts_ns ? -1 : a->h.ts_ns > b->h.ts_ns;
}

/* Whether an iteration belongs to a loop. The sum over processes has one. */
static bool is_of(const struct mxbpf_iteration *it, uint32_t tgid, uint32_t tid)
{
	return it->h.tgid == tgid && (!tgid || it->tid == tid);
}

static int make_loops(const struct view *s, void *table)
{
	struct view_list *t = table;
	size_t n, i, k;
	const struct mxbpf_iteration *all = steps_iterations(s->in->model, &n);
	const struct mdl *own = s->in->processes ? s->in->processes : s->in->model; /* a sum does not know it */
	struct loop *loops = calloc(n + 1, sizeof(*loops));
	uint64_t *ns = calloc(n + 1, sizeof(*ns));

	t->rows = loops;
	for (i = 0; loops && ns && i < n; i = k) {
		for (k = i; k < n && is_of(&all[i], all[k].h.tgid, all[k].tid); k++)
			;
		sum_loop(&loops[t->all], &all[i], k - i, steps_begun(own, all[i].h.tgid, all[i].tid), ns);
		loops[t->all].csv_list.rows = loops[t->all].csv_parts;
		t->all++;
	}
	free(ns);
	return loops && ns ? 0 : -ENOMEM;
}

static const struct loop *loop_of(const struct view_list *loops, const struct mxbpf_iteration *it)
{
	const struct loop *l = loops->rows;

	while (l + 1 < (const struct loop *)loops->rows + loops->all && !is_of(it, l->tgid, l->tid))
		l++;
	return l;
}

/* Returns the part that exceeds its median the most, with *ns the excess, or -1 if none does. */
static int longer(const struct loop *l, const struct mxbpf_iteration *it, uint64_t *ns)
{
	int part, best = -1;

	*ns = 0;
	if (!steps_is_known(it))
		return -1;
	for (part = 0; part < MXBPF_STEP_PARTS; part++)
		if (it->part_ns[part] > l->known.parts[part].p50_ns &&
		    it->part_ns[part] - l->known.parts[part].p50_ns > *ns) {
			best = part;
			*ns = it->part_ns[part] - l->known.parts[part].p50_ns;
		}
	return best;
}

/* ---- for people */

/* The only row of a loop. */
struct seen_loop {
	struct view_text count;
	double per_s;
	uint64_t mean_ns, p50_ns, p99_ns, max_ns;
};

struct seen_part {
	struct view_text title;
	double percent;
	uint64_t mean_ns, p50_ns, max_ns;
};

/* Unlike TBL_SHARE, this keeps the digit of 100.0%. */
static void percent_cell(const void *value, char cell[TBL_CELL_BYTES])
{
	snprintf(cell, TBL_CELL_BYTES, "%.1f%%", *(const double *)value);
}

#define ROW struct seen_loop
static const struct tbl_column seen_loop_columns[] = {
	{NULL, NULL, "iterations", TBL_TEXT, AT(count)},
	{NULL, NULL, "per s", TBL_RATIO, AT(per_s), .digits = 2},
	{NULL, NULL, "mean", TBL_NS, AT(mean_ns), TBL_TIGHT},
	{NULL, NULL, "p50", TBL_NS, AT(p50_ns), TBL_TIGHT},
	{NULL, NULL, "p99", TBL_NS, AT(p99_ns), TBL_TIGHT},
	{NULL, NULL, "max", TBL_NS, AT(max_ns), TBL_TIGHT},
	{0},
};
#undef ROW

#define ROW struct seen_part
static const struct tbl_column seen_part_columns[] = {
	{NULL, NULL, "where their time went", TBL_TEXT, AT(title)},
	{NULL, NULL, "share", TBL_RATIO, AT(percent), .cell = percent_cell},
	{NULL, NULL, "mean", TBL_NS, AT(mean_ns), TBL_TIGHT},
	{NULL, NULL, "p50", TBL_NS, AT(p50_ns), TBL_TIGHT},
	{NULL, NULL, "max", TBL_NS, AT(max_ns), TBL_TIGHT},
	{0},
};
#undef ROW

/* People see these two for each loop, above the slowest iterations. They are not among view_sheets[]. */
static const struct view_sheet seen_loops = {.columns = seen_loop_columns, .row_bytes = sizeof(struct seen_loop)};
static const struct view_sheet seen_parts = {.columns = seen_part_columns, .row_bytes = sizeof(struct seen_part)};

static double percent(uint64_t ns, uint64_t of)
{
	return of ? 100.0 * (double)ns / (double)of : 0.0;
}

static void steps_put_parts(struct view *s, const struct loop *l)
{
	struct seen_part rows[MXBPF_STEP_PARTS];
	struct view_list table = {.rows = rows};
	const struct part *part;
	char known[24];
	unsigned i;

	for (i = 0; i < MXBPF_STEP_PARTS; i++) {
		part = &l->known.parts[i];
		if (part->total_ns)
			rows[table.n++] = (struct seen_part){
				view_word(title_of(s, i)), percent(part->total_ns, l->known.total_ns),
				part->total_ns / l->known.count, part->p50_ns, part->max_ns};
	}
	view_sheet_print(s, &seen_parts, &table, "");
	out_printf(s->out, "share is of %s, the time of these iterations on the thread that runs them\n",
		   fmt_ns(l->known.total_ns, known));
	if (l->known.busy_ns)
		out_printf(s->out, "an operator%s ran on some thread in %.1f%% of this time\n",
			   s->in->session->left_out ? " that --ops shows" : "",
			   100.0 * (double)l->known.busy_ns / (double)(l->known.total_ns ? l->known.total_ns : 1));
}

/* The first line of a short output has the parts. */
static bool is_said(const struct view *s)
{
	return s->opts->brief && s->parts_said;
}

/* Whether its process has other loops, too. */
static bool has_others(const struct view_list *loops, const struct loop *l)
{
	const struct loop *at = loops->rows;
	size_t i, n = 0;

	for (i = 0; i < loops->all; i++)
		n += at[i].tgid == l->tgid;
	return n > 1;
}

static void put_loop(struct view *s, const struct view_list *loops, const struct loop *l)
{
	char n[32], count[32], ns[3][24];
	struct seen_loop row = {
		.per_s = l->total_ns ? 1e9 * (double)l->told_count / (double)l->total_ns : 0.0,
		.mean_ns = l->avg_ns,
		.p50_ns = l->p50_ns,
		.p99_ns = l->p99_ns,
		.max_ns = l->max_ns,
	};
	const struct view_list table = {.rows = &row, .n = 1};

	if (has_others(loops, l))
		out_printf(s->out, "Iterations of thread %" PRIu32 ": each ends %s\n", l->tid, end_of(s, l->told));
	else
		out_printf(s->out, "Iterations: each ends %s\n", end_of(s, l->told));
	if (l->missing)
		out_printf(s->out, "the rows below leave out the first %s of %s iterations\n", fmt_count(l->missing, n),
			   fmt_count(l->count, count));
	fmt_count(l->told_count, count);
	row.count = view_word(count);
	if (is_said(s) && loops->all == 1) /* the first line has the rate and the mean */
		out_printf(s->out, "%s iterations: median %s, p99 %s, max %s\n", count, fmt_ns(l->p50_ns, ns[0]),
			   fmt_ns(l->p99_ns, ns[1]), fmt_ns(l->max_ns, ns[2]));
	else
		view_sheet_print(s, &seen_loops, &table, "");
	if (l->known.count && !is_said(s))
		steps_put_parts(s, l);
	if (l->gpu.part.total_ns)
		out_printf(s->out, "an iteration launches %s kernels, and its work takes %s on GPUs (medians)\n",
			   fmt_count(l->gpu.kernels_p50, n), fmt_ns(l->gpu.part.p50_ns, ns[0]));
	out_puts(s->out, "\n");
}

/* Writes which part was longer than its median, or "" if the excess is small. Returns buf. */
static const char *why(const struct view *s, const struct loop *l, const struct mxbpf_iteration *it,
		       char buf[WHY_BYTES])
{
	const uint64_t first = it->first_ns > l->first_p50_ns ? it->first_ns - l->first_p50_ns : 0;
	char more[24];
	uint64_t ns;
	int part = longer(l, it, &ns);

	buf[0] = 0;
	if (part >= 0 && ns > l->p50_ns / 100 * NOTABLE)
		snprintf(buf, WHY_BYTES, "%s: %s more than the median%s", title_of(s, (unsigned)part), fmt_ns(ns, more),
			 part == MXBPF_PART_OUTSIDE && first > ns / 2 ? ", before its first call" : "");
	return buf;
}

/* ---- sheets */

static bool steps_when(const struct view *s)
{
	return false; /* CSV shows iterations in its fixed columns */
}

#define ROW struct part
static const struct tbl_column part_columns[] = {
	{"total_ns", NULL, NULL, TBL_NS, AT(total_ns)},
	{"p50_ns", NULL, NULL, TBL_NS, AT(p50_ns)},
	{"max_ns", NULL, NULL, TBL_NS, AT(max_ns)},
	{0},
};
#undef ROW

#define ROW struct csv_part
static const struct tbl_column csv_part_columns[] = {
	{NULL, "name", NULL, TBL_TEXT, AT(name)},
	{NULL, "count", NULL, TBL_COUNT, AT(count)},
	{NULL, "total_ns", NULL, TBL_NS, AT(total_ns)},
	{NULL, "p50_ns", NULL, TBL_NS, AT(p50_ns), TBL_NULL},
	{NULL, "max_ns", NULL, TBL_NS, AT(max_ns), TBL_NULL},
	{0},
};
#undef ROW

#define ROW struct loop
static const struct tbl_column missing_columns[] = {
	{NULL, "count", NULL, TBL_COUNT, .at = 0, .bytes = sizeof(uint64_t)},
	{0},
};

#define PART_COLUMN(key, i, text)                                                                                      \
	{                                                                                                              \
		key, "", NULL, TBL_OBJECT, .at = offsetof(ROW, known.parts[i]) - offsetof(ROW, known),                 \
					   .bytes = sizeof(struct part), .columns = part_columns, .help = text         \
	}
#define KNOWN(member) .at = offsetof(ROW, known.member) - offsetof(ROW, known), .bytes = sizeof(uint64_t)
static const struct tbl_column known_columns[] = {
	{"count", NULL, NULL, TBL_COUNT, KNOWN(count)},
	{"total_ns", NULL, NULL, TBL_NS, KNOWN(total_ns)},
	{"operators_ns", NULL, NULL, TBL_NS, KNOWN(busy_ns),
	 .help = "time in which at least one operator ran, on any thread"},
	PART_COLUMN("data", MXBPF_PART_DATA, "waits for data: an iterator, or a loader's workers"),
	PART_COLUMN("wait", MXBPF_PART_WAIT, "waits for the engine, or for a backward pass that runs on other threads"),
	PART_COLUMN("kvstore", MXBPF_PART_KVSTORE,
		    "calls of the KVStore, and waits for exchanges with other processes"),
	PART_COLUMN("inline", MXBPF_PART_OPERATOR, "operators on the iteration's own thread"),
	PART_COLUMN("api", MXBPF_PART_API, "other calls of the C API, of those that are probed"),
	PART_COLUMN("outside", MXBPF_PART_OUTSIDE, "your Python code, and calls of the C API that are not probed"),
	{0},
};

#define OF_GPU(member) .at = offsetof(ROW, gpu.member) - offsetof(ROW, gpu), .bytes = sizeof(uint64_t)
static const struct tbl_column gpu_columns[] = {
	{"count", NULL, NULL, TBL_COUNT, OF_GPU(count), .help = "iterations for which it is known"},
	{"total_ns", NULL, NULL, TBL_NS, OF_GPU(part.total_ns)},
	{"p50_ns", NULL, NULL, TBL_NS, OF_GPU(part.p50_ns)},
	{"max_ns", NULL, NULL, TBL_NS, OF_GPU(part.max_ns)},
	{"kernels", NULL, NULL, TBL_COUNT, OF_GPU(kernels), .help = "in all of them"},
	{"kernels_p50", NULL, NULL, TBL_COUNT, OF_GPU(kernels_p50), .help = "median"},
	{0},
};

static const struct tbl_column loop_columns[] = {
	{"told_by", "name", NULL, TBL_WORD, AT(told), WORDS(steps_tolds),
	 .help = "event that ends an iteration: the beginning of a backward pass, the last call of the KVStore or the "
		 "last operator of the optimizer before one, a step of the optimizer, or the end that --iterations "
		 "counts"},
	PID_COLUMN(tgid),
	{"thread", NULL, NULL, TBL_COUNT, AT(tid), .help = "the thread on which they begin and end"},
	{"count", "", NULL, TBL_COUNT, AT(count), .help = "the first iteration begins at the first end in the window"},
	{NULL, "count", NULL, TBL_COUNT, AT(told_count)},
	{"missing", "", NULL, TBL_COUNT, AT(missing),
	 .help = "the first iterations, of which only the number is known; the times leave them out"},
	{"total_ns", NULL, NULL, TBL_NS, AT(total_ns)},
	{"min_ns", NULL, NULL, TBL_NS, AT(min_ns)},
	{"max_ns", NULL, NULL, TBL_NS, AT(max_ns)},
	{"avg_ns", NULL, NULL, TBL_NS, AT(avg_ns)},
	{"p50_ns", NULL, NULL, TBL_NS, AT(p50_ns)},
	{"p99_ns", NULL, NULL, TBL_NS, AT(p99_ns)},
	{NULL, "iterations.missing", NULL, TBL_OBJECT, AT(missing), TBL_OMIT, .columns = missing_columns},
	{"parts", "", NULL, TBL_OBJECT, AT(known), TBL_OMIT, .columns = known_columns,
	 .help = "Parts of the time of the thread that runs the iterations, for the iterations for which that is "
		 "known. Without operators_ns the parts add up to total_ns, and the shares in "
		 "text are shares of it."},
	{"gpu", "", NULL, TBL_OBJECT, AT(gpu), TBL_OMIT, .columns = gpu_columns,
	 .help = "Work that the iterations launched on GPUs; the durations of several streams add up. Absent if none "
		 "is "
		 "known."},
	{NULL, "iterations.part", NULL, TBL_LIST, AT(csv_list), .columns = csv_part_columns,
	 .item_bytes = sizeof(struct csv_part)},
	{0},
};
#undef ROW

const struct view_sheet sheet_steps_loops = {
	.title = "Iterations, in JSON and CSV",
	.help = "Iterations of training loops that began and ended in the window; absent if there are none.",
	.list_help = "one for each thread that ends iterations",
	.member = "iterations",
	.list = "loops",
	.csv = "iterations",
	.columns = loop_columns,
	.row_bytes = sizeof(struct loop),
	.table_bytes = sizeof(struct view_list),
	.whole = true,
	.if_any = true,
	.when = steps_when,
	.make = make_loops,
};

/* Appends why GPUs ran nothing for longer, if that is much. */
static void add_gpu_why(const struct loop *l, const struct idle_step *idle, char buf[WHY_BYTES])
{
	size_t n = strlen(buf);
	char more[24];

	if (idle->longer < MXBPF_IDLE_CAUSES && idle->longer_ns > l->p50_ns / 100 * NOTABLE)
		snprintf(buf + n, WHY_BYTES - n, "%sGPU idle %s longer: %s", n ? "; " : "",
			 fmt_ns(idle->longer_ns, more), idle_cause_words[idle->longer]);
}

/* Fills a row of the slowest iterations. */
static void steps_fill(const struct view *s, struct slow *r, const struct mxbpf_iteration *it, const struct slowest *t)
{
	const struct loop *l = loop_of(&t->loops, it);
	int part = longer(l, it, &r->longer_ns);
	unsigned i;

	r->it = *it;
	r->one = 1;
	r->median_ns = l->p50_ns;
	r->longer = (uint8_t)(part < 0 ? MXBPF_STEP_PARTS : part);
	snprintf(r->number_text, sizeof(r->number_text), "#%" PRIu64, (uint64_t)it->nr);
	r->hash_number = view_word(r->number_text);
	r->number = view_word(r->number_text + 1);
	r->busy_ns = steps_is_known(it) ? it->busy_ns : TBL_UNKNOWN;
	r->gpu_ns = is_gpu_known(it) ? it->gpu_ns : TBL_UNKNOWN;
	r->kernels = is_gpu_known(it) ? it->kernels : TBL_UNKNOWN;
	for (i = 0; i < MXBPF_STEP_PARTS; i++)
		r->part_ns[i] = steps_is_known(it) ? it->part_ns[i] : TBL_UNKNOWN;
	idle_step_of(&t->idle, it, &r->idle);
	why(s, l, it, r->note_text);
	add_gpu_why(l, &r->idle, r->note_text);
	r->note = view_word(r->note_text);
	snprintf(r->table, sizeof(r->table), "iterations.slowest%s%s", part < 0 ? "" : ".",
		 part < 0 ? "" : steps_parts[part]);
	r->csv_table = view_word(r->table);
}

static int make_slowest(const struct view *s, void *table)
{
	struct slowest *t = table;
	size_t n, i, top = s->opts->top ? s->opts->top : SLOWEST_MAX;
	const struct mxbpf_iteration *all = steps_iterations(s->in->model, &n), **order = calloc(n + 1, sizeof(*order));
	int err = make_loops(s, &t->loops);

	err = err ? err : idle_steps_open(s->in->model, &t->idle);
	t->list.all = n < top ? n : top;
	t->list.rows = calloc(t->list.all + 1, sizeof(struct slow));
	err = order && t->list.rows ? err : -ENOMEM;
	for (i = 0; !err && i < n; i++)
		order[i] = &all[i];
	if (!err)
		qsort(order, n, sizeof(*order), by_length);
	for (i = 0; !err && i < t->list.all; i++)
		steps_fill(s, (struct slow *)t->list.rows + i, order[i], t);
	free(order);
	return err;
}

static void fini_slowest(void *table)
{
	free(((struct slowest *)table)->loops.rows);
	idle_steps_close(&((struct slowest *)table)->idle);
}

static void above_slowest(struct view *s, const void *table, const char *prefix)
{
	const struct view_list *loops = &((const struct slowest *)table)->loops;
	size_t i;

	for (i = 0; i < loops->all; i++)
		put_loop(s, loops, (const struct loop *)loops->rows + i);
}

static int print_slowest(struct view *s, const void *table)
{
	int err;

	if (!s->opts->brief || s->opts->top) {
		err = view_sheet_print(s, &sheet_steps_slowest, table, "");
		out_puts(s->out, "\n");
		return err;
	}
	above_slowest(s, table, "");
	if (is_said(s))
		view_leave_out(s, "parts of iterations");
	view_leave_out(s, "slowest iterations");
	return 0;
}

#define ROW struct idle_step
#define CAUSE_COLUMN(key, cause)                                                                                       \
	{                                                                                                              \
		key "_ns", "", NULL, TBL_NS, AT(ns[cause]), TBL_OMIT                                                   \
	}
static const struct tbl_column idle_columns[] = {
	CAUSE_COLUMN("busy", MXBPF_IDLE_BUSY),
	CAUSE_COLUMN("data", MXBPF_IDLE_DATA),
	CAUSE_COLUMN("program", MXBPF_IDLE_PYTHON),
	CAUSE_COLUMN("cpu", MXBPF_IDLE_OPERATOR),
	CAUSE_COLUMN("blocked", MXBPF_IDLE_BLOCKED),
	CAUSE_COLUMN("no_cpu", MXBPF_IDLE_RUNQ),
	CAUSE_COLUMN("launch", MXBPF_IDLE_LAUNCH),
	CAUSE_COLUMN("copy", MXBPF_IDLE_COPY),
	CAUSE_COLUMN("event", MXBPF_IDLE_EVENT),
	CAUSE_COLUMN("others", MXBPF_IDLE_COLLECTIVE),
	CAUSE_COLUMN("host_waits", MXBPF_IDLE_HOST),
	CAUSE_COLUMN("unknown", MXBPF_IDLE_UNKNOWN),
	CAUSE_COLUMN("program_cpu", MXBPF_IDLE_OWN_CPU),
	CAUSE_COLUMN("program_blocked", MXBPF_IDLE_OWN_BLOCKED),
	CAUSE_COLUMN("program_no_cpu", MXBPF_IDLE_OWN_RUNQ),
	{"longer", "", NULL, TBL_WORD, AT(longer), TBL_OMIT, WORDS(idle_words),
	 .help = "the cause that exceeds its median the most"},
	{"longer_ns", "", NULL, TBL_NS, AT(longer_ns), TBL_OMIT},
	{0},
};
#undef ROW

#define ROW struct slow
#define NS_OF(key, member)                                                                                             \
	{                                                                                                              \
		key "_ns", "", NULL, TBL_NS, AT(member), TBL_NULL | TBL_OMIT                                           \
	}
static const struct tbl_column slowest_columns[] = {
	{NULL, "table", NULL, TBL_TEXT, AT(csv_table)},
	{NULL, "name", NULL, TBL_TEXT, AT(number)},
	{NULL, NULL, "slowest iterations", TBL_TEXT, AT(hash_number)},
	{"number", "", NULL, TBL_COUNT, AT(it.nr),
	 .help = "number of the iteration in its loop, from 0; traces call it ProfilerStep#N"},
	PID_COLUMN(it.h.tgid),
	{"thread", NULL, NULL, TBL_COUNT, AT(it.tid)},
	{"start_unix_ns", NULL, "at", TBL_MOMENT, AT(it.h.ts_ns), .digits = 3},
	{NULL, "count", NULL, TBL_COUNT, AT(one)},
	{"total_ns", NULL, "took", TBL_NS, AT(it.dur_ns), TBL_TIGHT},
	{"median_ns", "p50_ns", "median", TBL_NS, AT(median_ns), TBL_TIGHT, .help = "median of its loop"},
	{"longer", "", NULL, TBL_WORD, AT(longer), TBL_OMIT, WORDS(steps_parts),
	 .help = "the part that exceeds its median the most"},
	{"longer_ns", "", NULL, TBL_NS, AT(longer_ns), TBL_OMIT},
	NS_OF("operators", busy_ns),
	NS_OF("data", part_ns[MXBPF_PART_DATA]),
	NS_OF("wait", part_ns[MXBPF_PART_WAIT]),
	NS_OF("kvstore", part_ns[MXBPF_PART_KVSTORE]),
	NS_OF("inline", part_ns[MXBPF_PART_OPERATOR]),
	NS_OF("api", part_ns[MXBPF_PART_API]),
	NS_OF("outside", part_ns[MXBPF_PART_OUTSIDE]),
	NS_OF("gpu", gpu_ns),
	{"kernels", "", NULL, TBL_COUNT, AT(kernels), TBL_NULL | TBL_OMIT, .help = "kernels that it launched on GPUs"},
	{"gpu_time", "", NULL, TBL_OBJECT, AT(idle), TBL_OMIT, .columns = idle_columns,
	 .help = "What the process's GPUs did in this time, a mean if it has several: busy, and the causes of "
		 "gpu.idle. "
		 "Absent if it is not known."},
	{NULL, NULL, "", TBL_NOTE, AT(note)},
	{0},
};

const struct view_sheet sheet_steps_slowest = {
	.title = "slowest iterations",
	.help = "Iterations of training loops, the longest first.",
	.list_help = "the longest iterations first: 8, or as many as --top says",
	.member = "iterations",
	.list = "slowest",
	.csv = "iterations.slowest",
	.brief_first = true,
	.columns = slowest_columns,
	.row_bytes = sizeof(struct slow),
	.table_bytes = sizeof(struct slowest),
	.whole = true,
	.if_any = true,
	.when = steps_when,
	.make = make_slowest,
	.fini = fini_slowest,
	.above = above_slowest,
	.print = print_slowest,
};
