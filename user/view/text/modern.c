// SPDX-License-Identifier: Apache-2.0
/* The tables for people. If a table is too wide, its least useful columns are hidden. */
#include "base/fmt.h"
#include "view/calls.h"

struct modern {
	struct view s;
	bool account;		/* some table has the columns of the account */
	bool nested;		/* in some table, self time is less than the total */
	uint64_t migrated;	/* calls whose account is less exact */
	struct mdl_flops flops; /* calls and unknown, over all tables */
};

/* Says what the columns of the account mean, and how exact they are. */
static void put_account(const struct modern *m)
{
	char n[32];

	out_puts(m->s.out, "account  share of a row's time on CPU (cpu), waiting for one (runq), blocked\n");
	if (m->migrated)
		out_printf(
			m->s.out,
			"         %s blocked and ended on another CPU: cpu is up to %llu ms off, runq may hold some of "
			"blocked\n",
			fmt_count(m->migrated, n), MXBPF_ACCOUNT_SLACK_NS / 1000000);
}

/* Keeps what the footer says about tables of calls. */
static void modern_take(struct view *s, const struct view_calls *c)
{
	struct modern *m = (struct modern *)s;

	m->nested |= c->nested;
	m->account |= c->cpu;
	m->migrated += c->migrated;
	m->flops.calls += c->sum.calls;
	m->flops.unknown += c->sum.unknown;
}

static int sheet(struct view *s, const struct view_sheet *sh, const void *table)
{
	const struct view_list *list = table;
	int err;

	if (sh == &sheet_calls)
		modern_take(s, table);
	if ((!sh->above && !sh->print) || (!list->n && sh->if_any))
		return 0;
	if (sh->print)
		return sh->print(s, table);
	if (s->opts->brief && !s->opts->top && sh->left_out) {
		view_leave_out(s, sh->left_out);
		return 0;
	}
	if (s->opts->brief && !list->n && !list->empty_too)
		return 0;
	err = view_sheet_print(s, sh, table, "");
	out_puts(s->out, "\n");
	return err;
}

static int modern_end(struct view *s)
{
	const struct modern *m = (const struct modern *)s;

	if (m->nested && !s->opts->brief)
		out_puts(s->out, "share    of the table's self time (in the heading); totals include nested calls\n");
	if (m->account && !s->opts->brief)
		put_account(m);
	view_put_flops_footer(s, &((struct modern *)s)->flops);
	view_footer(s, "");
	return 0;
}

const struct view_ops view_modern = {
	.name = "modern",
	.layout = true,
	.help = "percentiles and shares; 100 columns, or as wide as the terminal",
	.magic = view_text_magic,
	.details = true,
	.state_bytes = sizeof(struct modern),
	.people = true,
	.table = view_calls_table,
	.sheet = sheet,
	.end = modern_end,
};
