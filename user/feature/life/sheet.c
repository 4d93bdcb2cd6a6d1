// SPDX-License-Identifier: Apache-2.0
/* --life: waits of operators before they ran, and waits of the program. */
#include "feature/life/life.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "feature/life/sheet.h"
#include "view/priv.h"
#include "view/sheet.h"

struct part {
	uint64_t count, total_ns, min_ns, max_ns, p50_ns, p99_ns;
	uint64_t known_p50_ns, known_p99_ns; /* p50 and p99, or TBL_UNKNOWN without calls */
};

struct life {
	struct view_text name;
	uint64_t ns; /* all parts except the dispatch: from push to result, as the program sees it */
	struct part parts[MXBPF_LIFE_PARTS];
	uint32_t tgid, device;
};

const char *const life_parts[MXBPF_LIFE_PARTS] = {
	[MXBPF_LIFE_DISPATCH] = "dispatch",
	[MXBPF_LIFE_DEPENDENCIES] = "dependencies",
	[MXBPF_LIFE_QUEUE] = "queue",
	[MXBPF_LIFE_RUN] = "run",
};

const char *const life_wait_whats[MXBPF_WAIT_WHATS] = {
	[MXBPF_WAIT_NOTHING] = "nothing",
	[MXBPF_WAIT_OPERATOR] = "operator",
	[MXBPF_WAIT_UNSEEN] = "unseen",
};

static void add_part(struct life *r, const struct life_row *p)
{
	const struct mdl_extent of = {p->count, p->min_ns, p->max_ns};
	const uint64_t p50_ns = mdl_hist_percentile(p->hist, &of, 0.5),
		       p99_ns = mdl_hist_percentile(p->hist, &of, 0.99);

	r->parts[p->part] = (struct part){p->count, p->total_ns, p->min_ns, p->max_ns, p50_ns, p99_ns, p50_ns, p99_ns};
	if (p->part >= MXBPF_LIFE_DEPENDENCIES)
		add_sat(&r->ns, p->total_ns);
}

/* Adds a life without parts. */
static void add_life(const struct mdl *m, struct view_list *t, const struct life_row *p)
{
	struct life *r = &((struct life *)t->rows)[t->all++];
	unsigned i;

	r->tgid = p->tgid;
	r->device = p->device;
	r->name.data = mdl_name(m, p->name_id, &r->name.len);
	for (i = 0; i < MXBPF_LIFE_PARTS; i++)
		r->parts[i].known_p50_ns = r->parts[i].known_p99_ns = TBL_UNKNOWN;
}

static int life_by_name(const struct life *a, const struct life *b)
{
	int order = view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);

	if (order)
		return order;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return a->tgid < b->tgid ? -1 : a->tgid > b->tgid;
}

static int life_by_opts(const void *va, const void *vb, void *vopts)
{
	const struct life *a = va, *b = vb;
	const struct view_opts *opts = vopts;
	const bool count = opts->sort == VIEW_SORT_COUNT;
	const uint64_t ka = count ? a->parts[MXBPF_LIFE_RUN].count : a->ns;
	const uint64_t kb = count ? b->parts[MXBPF_LIFE_RUN].count : b->ns;

	if (opts->sort != VIEW_SORT_NAME && ka != kb)
		return (ka < kb) == opts->ascending ? -1 : 1;
	return life_by_name(a, b);
}

static int life_make(const struct view *s, void *table)
{
	struct view_list *t = table;
	struct hash index = {0}; /* (name, process and device) -> 1 + index of the life */
	size_t i, n;
	const struct life_row *all = life_rows(s->in->model, &n);
	struct life *r = calloc(n + 1, sizeof(*r));
	uint64_t *at;

	t->rows = r;
	for (i = 0; r && i < n; i++) {
		at = hash_put(&index, all[i].name_id, (uint64_t)all[i].tgid << 32 | all[i].device);
		if (!at)
			break;
		if (!*at) {
			add_life(s->in->model, t, &all[i]);
			*at = t->all;
		}
		add_part(&r[*at - 1], &all[i]);
	}
	hash_fini(&index);
	if (!r || i < n)
		return -ENOMEM;
	qsort_r(r, t->all, sizeof(*r), life_by_opts, (void *)s->opts);
	return 0;
}

static void life_above(struct view *s, const void *table, const char *prefix)
{
	out_printf(s->out, "%slife of operators: medians, in ", prefix);
	view_put_rows(s, table);
	out_puts(s->out, "\n");
}

static bool life_when(const struct view *s)
{
	return s->in->session->life;
}

#define ROW struct part
static const struct tbl_column part_columns[] = {
	{"count", NULL, NULL, TBL_COUNT, AT(count),
	 .help = "operators for which this part is known; some parts of operators that were pushed before the window "
		 "are not"},
	{"total_ns", NULL, NULL, TBL_NS, AT(total_ns)},
	{"min_ns", NULL, NULL, TBL_NS, AT(min_ns)},
	{"max_ns", NULL, NULL, TBL_NS, AT(max_ns)},
	{"p50_ns", NULL, NULL, TBL_NS, AT(p50_ns)},
	{"p99_ns", NULL, NULL, TBL_NS, AT(p99_ns)},
	{0},
};
#undef ROW

#define ROW struct life
/* A part, with its median and 99th percentile for people. */
#define PART(i, key, head, min, p99_min, text)                                                                         \
	{key, "life_" key, NULL, TBL_OBJECT, AT(parts[i]), .columns = part_columns, .help = text},                     \
		{NULL, NULL, head, TBL_NS, AT(parts[i].known_p50_ns), TBL_TIGHT | TBL_NULL, .name_min = min},          \
	{                                                                                                              \
		NULL, NULL, "p99", TBL_NS, AT(parts[i].known_p99_ns), TBL_TIGHT | TBL_NULL, .name_min = p99_min        \
	}
static const struct tbl_column columns[] = {
	{"name", NULL, "name", TBL_TEXT, AT(name)},
	{"device", NULL, NULL, TBL_DEVICE, AT(device)},
	PID_COLUMN(tgid),
	{NULL, NULL, "calls", TBL_COUNT, AT(parts[MXBPF_LIFE_RUN].count), .name_min = 12},
	PART(MXBPF_LIFE_DISPATCH, "dispatch", "dispatch", 18, 30,
	     "from the start of the enclosing call, or from the push of the previous operator in that call, to the "
	     "push of this one"),
	PART(MXBPF_LIFE_DEPENDENCIES, "dependencies", "depend", 0, 24,
	     "from the push until all arrays that the operator reads and writes were free"),
	PART(MXBPF_LIFE_QUEUE, "queue", "queue", 0, 24, "from then until a thread took the operator"),
	PART(MXBPF_LIFE_RUN, "run", "run", 0, 28, "from its start to its end, as in the table of operators"),
	{0},
};
#undef ROW

const struct view_sheet sheet_life = {
	.title = "life of operators",
	.help = "Requires --life: operators from push to completion, and what the program waited for.",
	.member = "life",
	.list = "operators",
	.csv = "",
	.columns = columns,
	.row_bytes = sizeof(struct life),
	.table_bytes = sizeof(struct view_list),
	.when = life_when,
	.make = life_make,
	.above = life_above,
};

/* ---- waits of the program */

struct wait {
	struct mxbpf_wait w;
	struct view_text op, within, call, name; /* without data if there is none */
	struct view_text op_or_what;
	struct view_text cause; /* for people; owned */
	struct view_text in;	/* the call, or the wait if there is no call */
};

static int by_total(const void *va, const void *vb, void *opts)
{
	const struct wait *a = va, *b = vb;

	if (a->w.total_ns != b->w.total_ns)
		return a->w.total_ns > b->w.total_ns ? -1 : 1;
	if (a->w.count != b->w.count)
		return a->w.count > b->w.count ? -1 : 1;
	return a->w.op_id < b->w.op_id ? -1 : a->w.op_id > b->w.op_id;
}

static struct view_text life_name_of(const struct mdl *m, uint64_t id)
{
	struct view_text text = {0};

	if (id)
		text.data = mdl_name(m, id, &text.len);
	return text;
}

/* Writes "dot" or "dot in ImperativeBulk". The names are untrusted. Without memory, people see no cause. */
static void set_cause(struct wait *r)
{
	static const char *const words[MXBPF_WAIT_WHATS] = {
		[MXBPF_WAIT_NOTHING] = "(nothing: it was done)",
		[MXBPF_WAIT_UNSEEN] = "(pushed before the window)",
	};
	const struct view_text of = words[r->w.what] ? view_word(words[r->w.what]) : r->op;
	struct buf text = {0};

	buf_put(&text, of.data, of.len);
	if (!words[r->w.what] && r->within.data) {
		buf_put(&text, " in ", 4);
		buf_put(&text, r->within.data, r->within.len);
	}
	r->cause = (struct view_text){text.data, text.len};
}

static void fill_wait(const struct view *s, void *row)
{
	const struct mdl *m = s->in->model;
	struct wait *r = row;

	r->op = life_name_of(m, r->w.op_id);
	r->within = life_name_of(m, r->w.within_id);
	r->call = life_name_of(m, r->w.call_id);
	r->name = life_name_of(m, r->w.name_id);
	r->in = r->call.data ? r->call : r->name;
	r->op_or_what = r->op.data ? r->op : view_word(life_wait_whats[r->w.what]);
	set_cause(r);
}

static void fini_waits(void *table)
{
	struct view_list *t = table;
	struct wait *r = t->rows;
	size_t i;

	for (i = 0; r && i < t->all; i++)
		mem_free((void *)r[i].cause.data);
}

static void above_waits(struct view *s, const void *table, const char *prefix)
{
	out_printf(s->out, "%swhat the program waited for%s", prefix,
		   ((const struct view_list *)table)->n ? "\n" : ": nothing seen\n");
}

#define ROW struct wait
static const struct tbl_column wait_columns[] = {
	{.stored = "operator_id", .type = TBL_NAME, KEY_AT(w.op_id)},
	{.stored = "within_id", .type = TBL_NAME, KEY_AT(w.within_id)},
	{.stored = "call_id", .type = TBL_NAME, KEY_AT(w.call_id)},
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(w.name_id)},
	{"for", "", NULL, TBL_WORD, KEY_AT(w.what), WORDS(life_wait_whats), .limit = MXBPF_WAIT_WHATS - 1,
	 .help = "nothing: everything had completed already; unseen: the operator was pushed before the window"},
	{NULL, "name", NULL, TBL_TEXT, AT(op_or_what)},
	{NULL, NULL, "for", TBL_TEXT, AT(cause)},
	{NULL, NULL, "in", TBL_TEXT, AT(in), .name_min = 12},
	{"operator", "", NULL, TBL_TEXT, AT(op), TBL_NULL,
	 .help = "operator that was pushed last of those that write the array; for a wait for all, the operator that "
		 "ended last"},
	{"within", NULL, NULL, TBL_TEXT, AT(within), TBL_NULL, .help = "bulk in which the operator ran"},
	{"call", NULL, NULL, TBL_TEXT, AT(call), TBL_NULL, .help = "call of the C API that waited"},
	{"wait", "", NULL, TBL_TEXT, AT(name), TBL_NULL, .help = "wait of the engine"},
	PID_COLUMN(w.h.tgid, .merge = TBL_IS_KEY),
	{"count", NULL, "waits", TBL_COUNT, SUM_AT(w.count)},
	{"total_ns", NULL, "total", TBL_NS, SUM_AT(w.total_ns), TBL_TIGHT},
	{"max_ns", NULL, "max", TBL_NS, MAX_AT(w.max_ns), TBL_TIGHT},
	{0},
};

const struct tbl_def life_waits_table = {
	.name = "waits", .row_bytes = sizeof(struct mxbpf_wait), .columns = wait_columns};

const struct view_sheet sheet_life_waits = {
	.title = "waits of the program",
	.help = "Requires --life: what the program waited for.",
	.member = "life",
	.list = "waits",
	.csv = "waits",
	.columns = wait_columns,
	.row_bytes = sizeof(struct wait),
	.table_bytes = sizeof(struct view_list),
	.when = life_when,
	.stored = &life_waits_table,
	.feature = &feature_life,
	.fill = fill_wait,
	.order = by_total,
	.fini = fini_waits,
	.above = above_waits,
};
