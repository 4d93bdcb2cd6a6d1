// SPDX-License-Identifier: Apache-2.0
/*
 * --follow-app: BPF opens and closes the window at the very calls by which the program has its runtime's own profiler
 * record and not record. All stays attached in between, but what is hit does nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/live.h"

/* Every call that may decide has to be seen. */
int live_app_check(struct live *l, struct err *e)
{
	const struct plan_probe *p;
	struct err why = {0};

	if (!l->o->follow_app)
		return 0;
	for (p = l->plan.probes; p < l->plan.probes + l->plan.nprobes; p++)
		if (p->row->row.action == MXBPF_ACT_APP && p->reason[0])
			return err_set(e, ERR_TARGET, -ENOTSUP, "--follow-app: %s: %s", p->row->name, p->reason);
	if (!l->plan.adp->marks.profiler)
		return err_set(e, ERR_USAGE, -ENOTSUP, "--follow-app: %s has no profiler whose calls could be followed",
			       l->plan.adp->title);
	if (plan_app_state(&l->plan, l->target, &l->app_was, &why))
		return err_set(e, ERR_TARGET, -ENOTSUP,
			       "--follow-app: whether the program's profiler runs cannot be told: %s", why.why);
	return 0;
}

/* A call that comes between the reading and the start of this is seen by BPF, and its word counts. */
void live_app_start(struct live *l)
{
	struct mxbpf_app now = l->app_was;
	struct err e = {0};

	att_app_start(l->att, tgt_pid(l->target), &now);
	if (!plan_app_state(&l->plan, l->target, &now, &e) &&
	    (now.runs != l->app_was.runs || now.paused != l->app_was.paused))
		att_app_start(l->att, tgt_pid(l->target), &now);
	att_app(l->att, true);
	if ((!now.runs || now.paused) && !l->o->quiet)
		fprintf(stderr, "waiting for the program to start its profiler\n");
}

void live_app(struct live *l)
{
	struct mxbpf_app now;
	char ns[24];

	att_marks_take(l->att);
	now = att_app_windows(l->att);
	if (now.opened + now.closed == l->app_windows)
		return;
	l->app_windows = now.opened + now.closed;
	live_machine_read(l, now.opened > now.closed);
	if (now.opened == now.closed)
		live_sched_end(l);
	if (!l->o->quiet)
		fprintf(stderr, "%s%s by the program, %s into the window\n", isatty(STDERR_FILENO) ? "\r\033[K" : "",
			now.opened > now.closed ? "resumed" : "paused", fmt_ns(now.window_ns, ns));
}

/* What is not in a window is a pause, whoever made it. */
void live_app_account(const struct live *l, struct mdl_session *s)
{
	const uint64_t passed_ns = clock_ns(CLOCK_MONOTONIC) - s->start_mono_ns;

	if (l->o->follow_app)
		s->paused_ns = passed_ns > s->duration_ns ? passed_ns - s->duration_ns : 0;
}
