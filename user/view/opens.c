// SPDX-License-Identifier: Apache-2.0
/* The sheet of calls that were still open when the window ended. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/syscall.h"
#include "view/calls.h"

/* People see the calls that were open for this long, because every window of a healthy job cuts some calls off. */
#define LONG_NS	     1000000000ull
#define LONG_PART    2 /* or for this part of the window, if that is less */
#define SHOWN_MAX    20
#define THREAD_BYTES 64

static const struct {
	char letter;
	const char *word;
} states[] = {
	{'R', "running"}, {'S', "sleeping"}, {'D', "disk sleep"}, {'T', "stopped"}, {'t', "traced"},
	{'X', "ended"},	  {'Z', "ended"},    {'I', "idle"},	  {0, ""},
};

const char *view_open_state(const struct mxbpf_open *o)
{
	size_t i;

	if (o->flags & MXBPF_SPAN_ASYNC && o->state != 'X')
		return "async";
	for (i = 0; states[i].letter && states[i].letter != (char)o->state; i++)
		;
	return states[i].word;
}

const char *view_open_waits(const struct mdl *m, const struct mxbpf_open *o, char buf[VIEW_WAITS_BYTES])
{
	const char *call = syscall_name(o->syscall);
	const char *wchan = mdl_text(m, MXBPF_NAME_WCHAN, o->wchan_id, NULL);

	snprintf(buf, VIEW_WAITS_BYTES, "%s%s%s", call ? call : "", call && wchan ? ": " : "", wchan ? wchan : "");
	return buf;
}

static uint64_t long_ns(const struct mdl_session *ss)
{
	uint64_t part = ss->duration_ns / LONG_PART;

	return part && part < LONG_NS ? part : LONG_NS;
}

struct open_row {
	struct view_text name, domain, category, thread_name, thread_label, state, letter, waits, syscall, wchan;
	uint32_t device, tgid, tid;
	uint64_t start_ns, open_ns, count;
	bool async;
	struct view_details details;
	char label[THREAD_BYTES], waits_text[VIEW_WAITS_BYTES], state_letter[2];
};

struct open_table {
	struct view_list list;
	const struct mxbpf_open *opens; /* the oldest first */
	struct open_row row;
};

static int opens_make(const struct view *s, void *table)
{
	struct open_table *t = table;
	size_t n;

	t->opens = mdl_opens(s->in->model, &n);
	if (!t->list.people)
		t->list.all = n;
	else
		while (t->list.all < n && t->opens[t->list.all].open_ns >= long_ns(s->in->session))
			t->list.all++;
	return 0;
}

static const void *make_row(const struct view *s, void *table, size_t i)
{
	struct open_table *t = table;
	const struct mxbpf_open *o = &t->opens[i];
	const struct mdl *m = s->in->model;
	struct open_row *r = &t->row;

	*r = (struct open_row){
		.category = view_word(mdl_category(o->cls)),
		.thread_name = view_word(mdl_thread_name(m, o->h.tgid, o->tid)),
		.state = view_word(view_open_state(o)),
		.syscall = view_word(syscall_name(o->syscall)),
		.wchan = view_word(mdl_text(m, MXBPF_NAME_WCHAN, o->wchan_id, NULL)),
		.device = o->device,
		.tgid = o->h.tgid,
		.tid = o->tid,
		.start_ns = o->h.ts_ns,
		.open_ns = o->open_ns,
		.count = 1,
		.async = o->flags & MXBPF_SPAN_ASYNC,
		.state_letter = {(char)o->state},
	};
	r->name.data = mdl_name(m, o->name_id, &r->name.len);
	r->domain.data = mdl_text(m, MXBPF_NAME_DOMAIN, o->name_id, &r->domain.len);
	if (o->state)
		r->letter = view_word(r->state_letter);
	r->waits = view_word(view_open_waits(m, o, r->waits_text));
	snprintf(r->label, sizeof(r->label), "%" PRIu32 "%s%s", o->tid, r->thread_name.data ? " " : "",
		 r->thread_name.data ? r->thread_name.data : "");
	r->thread_label = view_word(r->label);
	if (view_details_fill(s, (struct view_detail_ids){o->args_id, o->stack_id, o->layer_id, 0}, NULL, &r->details))
		return NULL;
	if (t->list.people)
		r->details.shapes = r->details.layer = (struct view_text){0};
	return r;
}

static void opens_above(struct view *s, const void *table, const char *prefix)
{
	const struct view_list *t = table;
	const size_t max = s->opts->top	    ? s->opts->top
			   : s->opts->brief ? VIEW_BRIEF_WORST
					    : SHOWN_MAX,
		     shown = t->n < max ? t->n : max;

	out_printf(s->out, "still open when the window ended: %zu call%s", t->all, t->all == 1 ? "" : "s");
	s->hinted = true;
	if (shown < t->all)
		out_printf(s->out, ", of which %zu are shown%s", shown, s->opts->top ? "" : " (--top N shows more)");
	out_puts(s->out, "\n");
}

static bool opens_when(const struct view *s)
{
	return true;
}

/* CSV has columns of single calls with --by event. */
static bool by_event(const struct view *s)
{
	return s->opts->by == VIEW_BY_EVENT;
}

#define ROW struct open_row
static const struct tbl_column columns[] = {
	{"name", NULL, "name", TBL_TEXT, AT(name)},
	{"domain", "", NULL, TBL_TEXT, AT(domain), TBL_OMIT, .def = "domain"},
	{"class", "", NULL, TBL_TEXT, AT(category), .help = "category of the call in traces"},
	{"device", NULL, NULL, TBL_DEVICE, AT(device)},
	{"pid", "", NULL, TBL_COUNT, AT(tgid)},
	{NULL, "pid", NULL, TBL_PID, AT(tgid)},
	{"thread", "", NULL, TBL_COUNT, AT(tid)},
	{NULL, "thread", NULL, TBL_COUNT, AT(tid), .asked = by_event},
	{"thread_name", "", NULL, TBL_TEXT, AT(thread_name), TBL_OMIT},
	{"start_unix_ns", "", NULL, TBL_MOMENT, AT(start_ns)},
	{NULL, "start_unix_ns", NULL, TBL_MOMENT, AT(start_ns), .asked = by_event},
	{NULL, "count", NULL, TBL_COUNT, AT(count)},
	{"open_ns", "total_ns", "open", TBL_NS, AT(open_ns), TBL_TIGHT,
	 .help = "time from its start until the end of the window"},
	{NULL, "", "thread", TBL_TEXT, AT(thread_label)},
	{"async", "", NULL, TBL_BOOL, AT(async), TBL_OMIT,
	 .help = "true if its function has returned, so that its thread does something else"},
	{"state", "", NULL, TBL_TEXT, AT(letter), TBL_OMIT,
	 .help = "state of its thread as in /proc/PID/stat; X: it has ended; absent if unknown"},
	{NULL, "state", "state", TBL_TEXT, AT(state), .name_min = 12},
	{"syscall", "", NULL, TBL_TEXT, AT(syscall), TBL_OMIT, .help = "system call in which its thread sleeps"},
	{"wchan", "", NULL, TBL_TEXT, AT(wchan), TBL_OMIT, .help = "kernel function in which its thread sleeps"},
	{NULL, "waits_in", "waits in", TBL_TEXT, AT(waits), .name_min = 10,
	 .help = "system call and kernel function in which its thread sleeps"},
	{"details", NULL, NULL, TBL_PART, AT(details), .columns = view_details_columns},
	{0},
};

const struct view_sheet sheet_opens = {
	.title = "Open calls",
	.help = "calls still running at the end of the window, the oldest first; absent if there are none",
	.member = "open",
	.csv = "open",
	.columns = columns,
	.row_bytes = sizeof(struct open_row),
	.table_bytes = sizeof(struct open_table),
	.people_max = SHOWN_MAX,
	.whole = true,
	.if_any = true,
	.when = opens_when,
	.make = opens_make,
	.row = make_row,
	.above = opens_above,
};
