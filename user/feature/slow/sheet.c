// SPDX-License-Identifier: Apache-2.0
/* Calls that took much longer than the median call of their row, and why. */
#include "feature/slow/slow.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/machine/sheet.h"
#include "feature/sched/words.h"
#include "view/priv.h"
#include "view/sheet.h"

#define SHOWN_MAX 8 /* rows for people without --top */
#define WHY_BYTES 192

/* Known only with --sched. */
struct by {
	struct view_text comm;
	uint64_t ns;
	uint32_t tid;
	uint8_t what;
};

struct slow {
	struct view_text name, why;
	struct slow_call s;
	struct by kept, slept;
	struct view_account account;
	uint64_t one;	       /* number of calls: 1, or that of the group */
	uint64_t cpu, end_cpu; /* TBL_UNKNOWN */
	char why_text[WHY_BYTES];
};

static const char *const causes[SLOW_NCAUSES] = {
	[SLOW_COMPUTED] = "computed", [SLOW_FAULTED] = "faulted", [SLOW_RUNNABLE] = "runnable",
	[SLOW_BLOCKED] = "blocked",   [SLOW_READ] = "read",	  [SLOW_ELSEWHERE] = "elsewhere",
};

/* Writes "once" or "12 times". Returns buf. */
static const char *times(uint32_t n, char buf[40])
{
	char count[32];

	snprintf(buf, 40, n == 1 ? "once" : "%s times", fmt_count(n, count));
	return buf;
}

/* Throttling looks like preemption. If it happened in the window, a single call may have been throttled or preempted.
 */
static void why_runnable(const struct mdl *m, const struct slow_call *s, const char *ns, char buf[WHY_BYTES])
{
	const struct mxbpf_account *a = &s->span.account;
	const struct mxbpf_slow_by *by = &s->span.kept;
	const char *limited =
		machine_throttled(m) && by->ns < s->cause_ns / 2 ? "throttled by the cgroup's limit, or " : "";
	char kept[24], n[40];
	int at;

	if (a->nivcsw)
		at = snprintf(buf, WHY_BYTES, "%spreempted %s (%s)", limited, ns, times(a->nivcsw, n));
	else
		at = snprintf(buf, WHY_BYTES, "%swaited %s for a CPU after it woke", limited, ns);
	if (by->ns)
		snprintf(buf + at, WHY_BYTES - (size_t)at, ", %s by %.16s (%u) on CPU %u", fmt_ns(by->ns, kept),
			 by->comm, by->tid, by->cpu);
}

/* The kind of sleep, which only --sched knows. */
static const char *const sleeps[MXBPF_SCHED_WHATS] = {
	[MXBPF_SCHED_FUTEX] = "a lock (futex)",
	[MXBPF_SCHED_IO] = "a disk",
	[MXBPF_SCHED_FAULT] = "page faults",
	[MXBPF_SCHED_NAP] = "the time it asked for (sleep)",
};

static void why_blocked(const struct slow_call *s, const char *ns, char buf[WHY_BYTES])
{
	const struct mxbpf_slow_by *by = &s->span.slept;
	const char *what = by->ns && by->what < MXBPF_SCHED_WHATS ? sleeps[by->what] : NULL;
	char n[40];
	int at;

	if (what)
		at = snprintf(buf, WHY_BYTES, "blocked %s, for %s", ns, what);
	else
		at = snprintf(buf, WHY_BYTES, "blocked %s, asleep or for a lock (%s)", ns,
			      times(s->span.account.nvcsw, n));
	if (by->ns && by->tid)
		snprintf(buf + at, WHY_BYTES - (size_t)at, ", until %.16s (%u) woke it", by->comm, by->tid);
}

/* Writes why a call was slow: "preempted 3.10 ms (12 times)". The names of programs in it are untrusted. */
static void put_why(const struct mdl *m, const struct slow_call *s, char buf[WHY_BYTES])
{
	const struct mxbpf_account *a = &s->span.account;
	char ns[24], n[32];

	fmt_ns(s->cause_ns, ns);
	switch (s->cause) {
	case SLOW_RUNNABLE:
		why_runnable(m, s, ns, buf);
		break;
	case SLOW_READ:
		snprintf(buf, WHY_BYTES, "waited %s; %s page%s read from disk", ns, fmt_count(a->majflt, n),
			 a->majflt == 1 ? "" : "s");
		break;
	case SLOW_BLOCKED:
		why_blocked(s, ns, buf);
		break;
	case SLOW_FAULTED:
		snprintf(buf, WHY_BYTES, "%s more CPU time than the median call, with %s page faults", ns,
			 fmt_count(a->minflt, n));
		break;
	case SLOW_ELSEWHERE:
		snprintf(buf, WHY_BYTES, "ended %s after its own thread had left it", ns);
		break;
	default:
		snprintf(buf, WHY_BYTES, "%s more CPU time than the median call: more work, %s", ns,
			 machine_stolen(m) ? "a slower CPU, or one that the hypervisor took" : "or a slower CPU");
	}
}

static struct by by_of(const struct mxbpf_slow_by *by)
{
	if (!by->ns || by->what >= MXBPF_SCHED_WHATS)
		return (struct by){.what = MXBPF_SCHED_WHATS};
	return (struct by){{by->comm, strnlen(by->comm, sizeof(by->comm))}, by->ns, by->tid, by->what};
}

static uint64_t known_cpu(uint16_t cpu)
{
	return cpu == MXBPF_CPU_NONE ? TBL_UNKNOWN : cpu;
}

static void slow_fill(const struct view *s, struct slow *r, const struct slow_call *slow)
{
	const struct mxbpf_span e = {
		.dur_ns = slow->span.dur_ns,
		.cpu = slow->span.cpu,
		.flags = MXBPF_SPAN_ACCOUNT,
		.account = slow->span.account,
	};
	const struct mdl_row one = view_event_row(&e);

	r->s = *slow;
	r->name.data = mdl_name(s->in->model, slow->row->name_id, &r->name.len);
	put_why(s->in->model, slow, r->why_text);
	r->why = view_word(r->why_text);
	r->kept = by_of(&r->s.span.kept);
	r->slept = by_of(&r->s.span.slept);
	r->account = view_account_of(&one);
	r->one = 1;
	r->cpu = known_cpu(e.cpu);
	r->end_cpu = known_cpu(e.account.end_cpu);
}

/* Calls of one name that were slow for one cause are one row: that of the worst, which says how many there are. */
static void group(struct view_list *t)
{
	struct slow *r = t->rows;
	size_t i, k, n = 0, len;

	for (i = 0; i < t->all; i++) {
		for (k = 0; k < n; k++)
			if (r[k].s.row == r[i].s.row && r[k].s.cause == r[i].s.cause)
				break;
		if (k < n) {
			r[k].one++;
			continue;
		}
		if (n != i)
			r[n] = r[i];
		n++;
	}
	for (k = 0; k < n; k++) {
		len = strlen(r[k].why_text);
		if (r[k].one > 1)
			snprintf(r[k].why_text + len, sizeof(r[k].why_text) - len,
				 "; %" PRIu64 " calls were slow for this cause", r[k].one);
		r[k].why = view_word(r[k].why_text);
	}
	t->all = n;
}

static int slow_make(const struct view *s, void *table)
{
	struct view_list *t = table;
	struct slow_call *all;
	struct slow *r;
	size_t i;

	if (!s->in->session->account)
		return 0;
	if (slow_calls(s->in->model, s->in->session->fault_ns, &all, &t->all))
		return -ENOMEM;
	t->rows = r = calloc(t->all + 1, sizeof(*r));
	for (i = 0; r && i < t->all; i++)
		slow_fill(s, &r[i], &all[i]);
	if (r && t->people && s->opts->brief)
		group(t);
	free(all);
	return r ? 0 : -ENOMEM;
}

static void slow_above(struct view *s, const void *table, const char *prefix)
{
	const struct view_list *t = table;
	const size_t max = s->opts->top ? s->opts->top : s->opts->brief ? VIEW_BRIEF_WORST : SHOWN_MAX;
	uint64_t calls = 0;
	size_t i;

	for (i = 0; i < t->all; i++)
		calls += ((const struct slow *)t->rows)[i].one;
	out_printf(s->out, "%swhy slow: %" PRIu64 " call%s took %d times the median of their row, or more", prefix,
		   calls, calls == 1 ? "" : "s", SLOW_TIMES);
	s->hinted = true;
	if (max < t->all)
		out_printf(s->out, "; the worst%s", s->opts->top ? "" : " (--top N shows more)");
	out_puts(s->out, "\n");
}

static bool slow_when(const struct view *s)
{
	return s->in->session->account;
}

static const char *const csv_tables[SLOW_NCAUSES] = {
	[SLOW_COMPUTED] = "slow.computed", [SLOW_FAULTED] = "slow.faulted", [SLOW_RUNNABLE] = "slow.runnable",
	[SLOW_BLOCKED] = "slow.blocked",   [SLOW_READ] = "slow.read",	    [SLOW_ELSEWHERE] = "slow.elsewhere",
};

#define ROW struct by
static const struct tbl_column by_columns[] = {
	{"ns", "", NULL, TBL_NS, AT(ns)},
	{"what", "", NULL, TBL_WORD, AT(what), .words = sched_what_names, .nwords = MXBPF_SCHED_KEPT_BY},
	{"thread", "", NULL, TBL_COUNT, AT(tid), .help = "0: it belongs to no thread"},
	{"comm", "", NULL, TBL_TEXT, AT(comm)},
	{0},
};
#undef ROW

#define ROW struct slow
static const struct tbl_column columns[] = {
	{NULL, "table", NULL, TBL_WORD, AT(s.cause), WORDS(csv_tables)},
	{"name", NULL, "name", TBL_TEXT, AT(name)},
	{"device", NULL, NULL, TBL_DEVICE, AT(s.span.device)},
	PID_COLUMN(s.span.h.tgid),
	{"thread", "", NULL, TBL_COUNT, AT(s.span.tid)},
	{"start_unix_ns", "", "at", TBL_MOMENT, AT(s.span.h.ts_ns), .digits = 3},
	{NULL, "count", NULL, TBL_COUNT, AT(one)},
	{"total_ns", NULL, "took", TBL_NS, AT(s.span.dur_ns)},
	{"median_ns", "p50_ns", "median", TBL_NS, AT(s.median_ns), .help = "median of its row"},
	{"cause", "", NULL, TBL_WORD, AT(s.cause), WORDS(causes),
	 .help = "the part of its time that exceeds the median call the most"},
	{"cause_ns", "", NULL, TBL_NS, AT(s.cause_ns)},
	{"why", "", "", TBL_NOTE, AT(why), .help = "the cause as a sentence"},
	{"kept_by", NULL, NULL, TBL_OBJECT, AT(kept), TBL_OMIT, .columns = by_columns,
	 .help = "thread that had its CPU the longest while it could have run; requires --sched"},
	{"slept", NULL, NULL, TBL_OBJECT, AT(slept), TBL_OMIT, .columns = by_columns,
	 .help = "what it slept for the longest, and who ended that sleep; requires --sched"},
	{"cpu", "", NULL, TBL_COUNT, AT(cpu), TBL_NULL, .help = VIEW_CPU_HELP},
	{"end_cpu", "", NULL, TBL_COUNT, AT(end_cpu), TBL_NULL, .help = VIEW_CPU_HELP},
	{"account", "", NULL, TBL_OBJECT, AT(account), .columns = view_account_columns, .help = VIEW_ACCOUNT_HELP},
	{0},
};

const struct view_sheet sheet_slow = {
	.title = "why slow",
	.help = "Calls far above their median, the worst first; absent if there are none and with "
		"--no-account.",
	.row_help = "A call that took at least twice the median of its row, and 50 us more.",
	.member = "slow",
	.csv = "slow",
	.columns = columns,
	.row_bytes = sizeof(struct slow),
	.table_bytes = sizeof(struct view_list),
	.people_max = SHOWN_MAX,
	.if_any = true,
	.when = slow_when,
	.make = slow_make,
	.above = slow_above,
};
