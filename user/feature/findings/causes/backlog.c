// SPDX-License-Identifier: Apache-2.0
/*
 * A queue of MXNet's engine that grows. A call of the C API that does work only pushes operators, and the engine runs
 * them later. A program that never waits for a result can push faster than they run, and all arrays of what has not run
 * stay alive, so that memory grows, though nothing leaks. It is known by three things: no call waits, the engine's
 * threads run operators all the time, and less has run than was pushed.
 */
#include "feature/findings/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/lines/lines.h"

#define PUSHED_LEAST 20	  /* calls that push */
#define BEHIND_LEAST 0.05 /* of them, that have not run */
#define SLICED_LEAST 0.2  /* the same in slices, where both counts are estimates */
#define BUSY_LEAST   0.8  /* of the window: operators run */
#define RARE_PART    20	  /* an operator that runs less often than once in so many calls is none of the net */
#define SHARE_LEAST  0.55 /* it stands before the growth of memory, which it explains */

/* A call of a net that was hybridized pushes all of its operators, any other call one. */
static const char NET[] = "MXInvokeCachedOp", SINGLE[] = "MXImperativeInvoke";

/* The process that pushes the most, and how often it did. */
static void count_pushes(struct mdl *m, struct cause_backlog *q)
{
	size_t n, i, len;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_API, &n);
	const char *name;
	bool net;

	for (i = 0; i < n; i++) {
		name = mdl_name(m, rows[i]->name_id, &len);
		net = facts_starts_with(name, len, NET);
		if ((!net && !facts_starts_with(name, len, SINGLE)) || (q->net && !net))
			continue;
		if (net == q->net && rows[i]->count <= q->pushed)
			continue;
		q->net = net;
		q->pushed = rows[i]->count;
		q->tgid = rows[i]->tgid;
		q->call = (struct fact_operator){name, len, rows[i]->count};
	}
}

/* How often the engine did what was pushed, at most: as often as the rarest of the operators of the net. */
static void count_runs(struct mdl *m, struct cause_backlog *q)
{
	size_t n, i;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);
	uint64_t self_ns = 0, all = 0, least = UINT64_MAX;

	for (i = 0; i < n; i++)
		if (rows[i]->tgid == q->tgid)
			add_sat(&self_ns, rows[i]->self_ns);
	for (i = 0; i < n; i++) {
		if (rows[i]->tgid != q->tgid)
			continue;
		add_sat(&all, rows[i]->count);
		if (rows[i]->count >= q->pushed / RARE_PART && rows[i]->count < least)
			least = rows[i]->count;
	}
	q->ran = q->net ? least : all;
	q->busy_ns = self_ns;
}

static bool waits_for_engine(struct mdl *m, uint32_t tgid)
{
	size_t n, i, len;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_API, &n);
	const char *name;

	for (i = 0; i < n; i++) {
		name = mdl_name(m, rows[i]->name_id, &len);
		if (rows[i]->tgid == tgid && rows[i]->count && facts_is_wait(name, len))
			return true;
	}
	mdl_rows(m, MXBPF_CLASS_WAIT, &n);
	return n;
}

/*
 * The line of the program on which threads of the process are found in MXNet's Python code the most. A single look is
 * enough: a call that pushes takes little time, and what is called there is sure.
 */
static int find_line(const struct mdl *m, struct cause_backlog *q)
{
	struct facts_tally t = {.of = 0};
	size_t n, i, len, bytes;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	const char *text, *line;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		text = l[i].h.tgid == q->tgid ? mdl_text(m, MXBPF_NAME_STACK, l[i].stack_id, &bytes) : NULL;
		if (!text || !memmem(text, bytes, "mxnet/", 6))
			continue;
		line = lines_of_program(m, l[i].stack_id, &len);
		if (!line)
			continue;
		t.of += l[i].count;
		err = facts_tally_add(&t, line, len, &l[i]);
	}
	for (i = 0; i < buf_count(&t.lines, struct fact_line); i++)
		if (buf_at(&t.lines, struct fact_line, i)->looks > q->line.looks)
			q->line = *buf_at(&t.lines, struct fact_line, i);
	q->line.of = t.of;
	facts_tally_fini(&t);
	return err;
}

int make_backlog(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct cause_backlog q = {.pushed = 0};
	double behind;
	int err;

	count_pushes(m, &q);
	if (q.pushed < PUSHED_LEAST || !s->duration_ns || waits_for_engine(m, q.tgid))
		return 0;
	count_runs(m, &q);
	behind = q.pushed > q.ran ? (double)(q.pushed - q.ran) : 0;
	if ((double)q.busy_ns < BUSY_LEAST * (double)s->duration_ns ||
	    behind < (f->sliced ? SLICED_LEAST : BEHIND_LEAST) * (double)q.pushed)
		return 0;
	q.each_second = behind / ((double)s->duration_ns / 1e9);
	if (f->resident.tgid == q.tgid)
		q.grown_bytes = f->resident.grown_bytes;
	else if (f->grown_bytes > 0 && f->loop.tgid == q.tgid)
		q.grown_bytes = f->grown_bytes;
	/* If one net is called more often than another, a rare operator proves nothing. A queue also holds memory. */
	if ((q.net || f->sliced) && q.grown_bytes <= 0)
		return 0;
	err = find_line(m, &q);
	/* A call that pushes is quick, so that few looks meet it. What it pushes holds the memory that is new. */
	if (q.line.looks < FACTS_LOOKS_LEAST && f->grown_line.looks && f->resident.tgid == q.tgid)
		q.line = f->grown_line;
	f->cause.backlog = q;
	return err;
}

/* ---- what is said */

static double backlog_share(const struct facts *f)
{
	const struct cause_backlog *q = &f->cause.backlog;
	const double share = q->pushed ? 1 - facts_share((double)q->ran, (double)q->pushed) : 0;

	return q->pushed && share < SHARE_LEAST ? SHARE_LEAST : share;
}

static void backlog_say(const struct facts *f, struct buf *b)
{
	const struct cause_backlog *q = &f->cause.backlog;
	char bytes[24];

	buf_printf(
		b,
		"The queue of MXNet's engine grows: the program pushes faster than operators run, and never waits; of "
		"%" PRIu64 " calls of %.*s about %" PRIu64 " have not run, %.0f more each second",
		q->pushed, (int)q->call.len, q->call.name, q->pushed - q->ran, q->each_second);
	if (q->grown_bytes > 0)
		buf_printf(b, "; what waits holds %s more than when the window began, which is no leak",
			   fmt_bytes((uint64_t)q->grown_bytes, bytes));
}

static void backlog_evidence(const struct facts *f, struct buf *b)
{
	if (f->cause.backlog.line.looks)
		buf_printf(b, "it pushes at ");
	rules_put_line(&f->cause.backlog.line, b);
}

/* clang-format off */
const struct finding_rule rules_backlog[] = {
	{.key = "backlog", .all_records = true, .least = 0.1, .share = backlog_share, .say = backlog_say, .evidence = backlog_evidence,
	 .explains = "memory_growth", .pid_at = offsetof(struct facts, cause.backlog.tgid), .next = "--pid PID --life",
	 .advice = "The engine keeps the inputs and outputs of all that waits, until there is no memory left. Wait for a result every few "
		   "iterations, as loss.wait_to_read(), loss.asnumpy() or mx.nd.waitall() do: then memory stays as it is, and nothing "
		   "becomes slower, because the engine always has work. The program is done no sooner than the engine either way."},
	{.key = NULL},
};
/* clang-format on */
