// SPDX-License-Identifier: Apache-2.0
/* --sched: where operators were off the CPU, who took the CPU and who woke them. */
#include "feature/sched/sched.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/memory.h"
#include "feature/sched/words.h"
#include "view/priv.h"
#include "view/sheet.h"

#define PARTIES_SHOWN 3

/* A thread that occupied the CPU, or that woke the waiting thread. */
struct party {
	struct view_text comm;
	uint64_t count, ns;
	bool own;
};

/* Time off the CPU while a call was the innermost open one. */
struct sched {
	struct view_text op, category; /* without data if no call was open */
	struct view_text name;
	uint64_t off_ns, ns[MXBPF_SCHED_KEPT_BY];
	struct view_list kept, woken; /* struct party, the longest first; borrowed from the table */
	struct view_text note;	      /* owned */
	uint32_t tgid;
	uint8_t cls; /* 0: no call was open, or it is not known */
	bool between;
};

struct scheds {
	struct view_list list;
	bool seen[MXBPF_SCHED_KEPT_BY]; /* in a row that is shown */
	struct sched_row *items;	/* owned */
	struct party *parties;		/* owned */
};

/* Groups the items of an operator by kind, the longest first. */
static int by_row(const void *va, const void *vb)
{
	const struct sched_row *a = va, *b = vb;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	if (a->cls != b->cls)
		return a->cls < b->cls ? -1 : 1;
	if (a->between != b->between)
		return a->between - b->between;
	if (a->name_id != b->name_id)
		return a->name_id < b->name_id ? -1 : 1;
	if (a->what != b->what)
		return a->what < b->what ? -1 : 1;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return a->own != b->own ? a->own - b->own : memcmp(a->comm, b->comm, sizeof(a->comm));
}

/* Sorts by time off the CPU. Time outside all calls comes last, because idle threads wait all the time. */
static int sched_by_time(const void *va, const void *vb)
{
	const struct sched *a = va, *b = vb;

	if (!a->cls != !b->cls)
		return a->cls ? -1 : 1;
	if (a->off_ns != b->off_ns)
		return a->off_ns > b->off_ns ? -1 : 1;
	return view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len);
}

static struct sched sched_row_of(const struct view *s, const struct sched_row *a)
{
	struct sched r = {.name = view_word(a->between ? VIEW_BETWEEN_SLICES : VIEW_NO_OPERATOR),
			  .tgid = a->tgid,
			  .cls = a->cls,
			  .between = a->between};

	if (!a->cls)
		return r;
	r.name.data = mdl_name(s->in->model, a->name_id, &r.name.len);
	r.op = r.name;
	r.category = view_word(mdl_category((enum mxbpf_class)a->cls));
	return r;
}

static void add_item(struct sched *r, const struct sched_row *a, struct party *party)
{
	struct view_list *of = a->what == MXBPF_SCHED_KEPT_BY ? &r->kept : &r->woken;

	if (a->what < MXBPF_SCHED_KEPT_BY) {
		r->ns[a->what] = r->ns[a->what] > a->total_ns ? r->ns[a->what] : a->total_ns;
		if (__builtin_add_overflow(r->off_ns, a->total_ns, &r->off_ns))
			r->off_ns = UINT64_MAX;
		return;
	}
	*party = (struct party){
		{a->comm, strnlen(a->comm, sizeof(a->comm))}, (uint64_t)a->count, (uint64_t)a->total_ns, a->own};
	if (!of->n++)
		of->rows = party;
}

/* Writes "woken by python (own) 1.20 ms, kworker/0:1 3.10 us, and 2 more". */
static int put_parties(struct buf *line, const struct view_list *of, const char *verb)
{
	const struct party *p = of->rows;
	char ns[24];
	size_t i;
	int err = of->n ? buf_printf(line, "%s%s ", line->len ? "\n" : "", verb) : 0;

	for (i = 0; !err && i < of->n && i < PARTIES_SHOWN; i++)
		err = buf_printf(line, "%s%.*s%s %s", i ? ", " : "", (int)p[i].comm.len, p[i].comm.data,
				 p[i].own ? " (own)" : "", fmt_ns(p[i].ns, ns));
	if (!err && of->n > PARTIES_SHOWN)
		err = buf_printf(line, ", and %zu more", of->n - PARTIES_SHOWN);
	return err;
}

static int sched_put_notes(struct scheds *t)
{
	struct sched *r = t->list.rows;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < t->list.all; i++) {
		struct buf line = {0};

		err = put_parties(&line, &r[i].kept, "kept by");
		err = err ? err : put_parties(&line, &r[i].woken, "woken by");
		r[i].note = (struct view_text){(char *)line.data, line.len};
	}
	return err;
}

static void set_seen(const struct view *s, struct scheds *t)
{
	const size_t n = s->opts->top && s->opts->top < t->list.all ? s->opts->top : t->list.all;
	const struct sched *r = t->list.rows;
	unsigned what;
	size_t i;

	for (i = 0; i < n; i++)
		for (what = 0; what < MXBPF_SCHED_KEPT_BY; what++)
			t->seen[what] |= r[i].ns[what];
}

static int sched_make(const struct view *s, void *table)
{
	struct scheds *t = table;
	size_t n, i;
	const struct sched_row *all = sched_rows(s->in->model, &n), *a, *last = NULL;
	struct sched *r = calloc(n + 1, sizeof(*r));

	t->list.rows = r;
	t->items = calloc(n + 1, sizeof(*t->items));
	t->parties = calloc(n + 1, sizeof(*t->parties));
	if (!r || !t->items || !t->parties)
		return -ENOMEM;
	if (n)
		memcpy(t->items, all, n * sizeof(*t->items));
	qsort(t->items, n, sizeof(*t->items), by_row);
	for (i = 0; i < n; i++, last = a) {
		a = &t->items[i];
		if (!last || last->tgid != a->tgid || last->cls != a->cls || last->between != a->between ||
		    last->name_id != a->name_id)
			r[t->list.all++] = sched_row_of(s, a);
		add_item(&r[t->list.all - 1], a, &t->parties[i]);
	}
	qsort(r, t->list.all, sizeof(*r), sched_by_time);
	set_seen(s, t);
	return sched_put_notes(t);
}

static void sched_sheet_fini(void *table)
{
	struct scheds *t = table;
	struct sched *r = t->list.rows;
	size_t i;

	for (i = 0; r && i < t->list.all; i++)
		mem_free((void *)r[i].note.data);
	free(t->items);
	free(t->parties);
}

static void sched_above(struct view *s, const void *table, const char *prefix)
{
	out_printf(s->out, "%soff the CPU, by the innermost call that was open: ", prefix);
	view_put_shown(s, table, "row");
}

static bool sched_when(const struct view *s)
{
	return s->in->session->sched;
}

#define ROW struct party
static const struct tbl_column party_columns[] = {
	{"comm", "by", NULL, TBL_TEXT, AT(comm)},
	{"own", "", NULL, TBL_BOOL, AT(own), .help = "true for a thread of the target"},
	{"count", NULL, NULL, TBL_COUNT, AT(count)},
	{"ns", "total_ns", NULL, TBL_NS, AT(ns)},
	{0},
};
#undef ROW

#define ROW	   struct sched
#define SEEN(what) .shown = offsetof(struct scheds, seen[what])
#define OFF(what)  SUM_AT(ns[what]), TBL_DASH, SEEN(what)
#define PARTIES	   .columns = party_columns, .item_bytes = sizeof(struct party)
static const struct tbl_column columns[] = {
	{"name", "", NULL, TBL_TEXT, AT(op), TBL_NULL, .help = "null: no call was open"},
	{NULL, "name", "name", TBL_TEXT, AT(name)},
	{"between_slices", "", NULL, TBL_BOOL, AT(between), TBL_OMIT,
	 .help = "no call was recorded then, so it is not known which was open"},
	{"category", "", NULL, TBL_TEXT, AT(category), TBL_NULL},
	PID_COLUMN(tgid),
	{"off_cpu_ns", NULL, "off CPU", TBL_NS, SUM_AT(off_ns), .help = "sum of the next six columns"},
	{"waited_ns", NULL, "waited", TBL_NS, OFF(MXBPF_SCHED_WAITED),
	 .help = "time in which the thread could run, but others had the CPU"},
	{"futex_ns", NULL, "futex", TBL_NS, OFF(MXBPF_SCHED_FUTEX),
	 .help = "asleep until a lock is free, a condition is signalled or a thread ends"},
	{"io_ns", NULL, "I/O", TBL_NS, OFF(MXBPF_SCHED_IO),
	 .help = "asleep for a disk or another store of a file system"},
	{"fault_ns", NULL, "fault", TBL_NS, OFF(MXBPF_SCHED_FAULT), .help = "asleep in a page fault"},
	{"sleep_ns", NULL, "sleep", TBL_NS, OFF(MXBPF_SCHED_NAP),
	 .help = "asleep for a time that the thread requested"},
	{"other_ns", NULL, "other", TBL_NS, OFF(MXBPF_SCHED_OTHER)},
	{"kept_by", "kept_by", NULL, TBL_LIST, AT(kept), PARTIES,
	 .help = "threads that ran on its CPU while it waited; [not kept] is the beginning of waits with many "
		 "switches"},
	{"woken_by", "woken_by", NULL, TBL_LIST, AT(woken), PARTIES,
	 .help = "threads that ended its sleep, and how long the sleep was"},
	{NULL, NULL, "", TBL_NOTE, AT(note)},
	{0},
};
#undef ROW

const struct view_sheet sheet_sched = {
	.title = "off the CPU",
	.help = "Requires --sched: time of threads off the CPU, by the innermost call that was open when they left it.",
	.member = "off_cpu",
	.list = "calls",
	.csv = "off_cpu",
	.columns = columns,
	.row_bytes = sizeof(struct sched),
	.table_bytes = sizeof(struct scheds),
	.when = sched_when,
	.make = sched_make,
	.fini = sched_sheet_fini,
	.above = sched_above,
};
