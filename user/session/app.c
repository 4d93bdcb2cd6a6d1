// SPDX-License-Identifier: Apache-2.0
/*
 * --follow-app: BPF opens and closes the window at the very calls by which the program has its runtime's own profiler
 * record and not record. All stays attached in between, but what is hit does nothing.
 */
#include <errno.h>

#include "base/fmt.h"
#include "session/priv.h"

/* Every call that may decide has to be seen. */
int ses_app_check(struct session *ses, const struct ses_target *of, struct err *e)
{
	const struct plan_probe *p;
	struct err why = {0};

	if (!ses->o->follow_app)
		return 0;
	for (p = of->plan.probes; p < of->plan.probes + of->plan.nprobes; p++)
		if (p->row->row.action == MXBPF_ACT_APP && p->reason[0])
			return err_set(e, ERR_TARGET, -ENOTSUP, "--follow-app: %s: %s", p->row->name, p->reason);
	if (!of->plan.adp->marks.profiler)
		return err_set(e, ERR_USAGE, -ENOTSUP, "--follow-app: %s has no profiler whose calls could be followed",
			       of->plan.adp->title);
	if (plan_app_state(&of->plan, of->tgt, &ses->app_was, &why))
		return err_set(e, ERR_TARGET, -ENOTSUP,
			       "--follow-app: whether the program's profiler runs cannot be told: %s", why.why);
	return 0;
}

/* A call that comes between the reading and the start of this is seen by BPF, and its word counts. */
void ses_app_start(struct session *ses)
{
	struct mxbpf_app now = ses->app_was;
	struct err e = {0};

	att_app_start(ses->att, tgt_pid(ses->targets[0].tgt), &now);
	if (!plan_app_state(&ses->targets[0].plan, ses->targets[0].tgt, &now, &e) &&
	    (now.runs != ses->app_was.runs || now.paused != ses->app_was.paused))
		att_app_start(ses->att, tgt_pid(ses->targets[0].tgt), &now);
	att_app(ses->att, true);
	if (!now.runs || now.paused)
		ses_note(ses, "waiting for the program to start its profiler");
}

void ses_app(struct session *ses)
{
	struct mxbpf_app now;
	char ns[24];

	att_windows_take(ses->att);
	now = att_app_windows(ses->att);
	if (now.opened + now.closed == ses->app_windows)
		return;
	ses->app_windows = now.opened + now.closed;
	ses_machine_read(ses, now.opened > now.closed);
	if (now.opened == now.closed)
		ses_sched_end(ses);
	ses_note(ses, "%s by the program, %s into the window", now.opened > now.closed ? "resumed" : "paused",
		 fmt_ns(now.window_ns, ns));
}

/* What is not in a window is a pause, whoever made it. */
void ses_app_account(const struct session *ses, struct mdl_session *s)
{
	const uint64_t passed_ns = clock_ns(CLOCK_MONOTONIC) - s->start_mono_ns;

	if (ses->o->follow_app)
		s->paused_ns = passed_ns > s->duration_ns ? passed_ns - s->duration_ns : 0;
}
